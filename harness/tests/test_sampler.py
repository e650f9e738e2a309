"""Which control group is a container's, on trees as the kernel shows them; and what slow disks do."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from ntier_harness import sampler


def group(base: Path, name: str, processes: str, below: str = "") -> Path:
    (base / name / below).mkdir(parents=True, exist_ok=True)
    (base / name / "cgroup.procs").write_text("")
    (base / name / below / "cgroup.procs").write_text(processes)
    return base / name


@pytest.fixture
def cgroup(tmp_path, monkeypatch):
    monkeypatch.setattr(sampler, "CGROUP", str(tmp_path))
    return tmp_path / "cpu"


def test_the_group_with_processes_is_the_containers(cgroup):
    group(cgroup, "lxc.payload.ntier_db1", "")  # left behind by a monitor that was killed
    running = group(cgroup, "lxc.payload.ntier_db1-1", "4711\n")
    group(cgroup, "lxc.payload.ntier_db10", "4712\n")
    assert sampler.find_group("cpu", "ntier_db1") == str(running)


def test_systemd_sorts_its_processes_below(cgroup):
    running = group(cgroup, "lxc.payload.ntier_web1", "12\n", "init.scope")
    assert sampler.find_group("cpu", "ntier_web1") == str(running)


def test_a_container_that_stopped_has_no_group(cgroup):
    group(cgroup, "lxc.payload.ntier_db1", "")
    with pytest.raises(FileNotFoundError, match="ntier_db1"):
        sampler.find_group("cpu", "ntier_db1")


# cgroup v2, in the format of the kernel (Documentation/admin-guide/cgroup-v2.rst)
CPU_STAT = """usage_usec 1234567
user_usec 1000000
system_usec 234567
nice_usec 0
core_sched.force_idle_usec 0
nr_periods 310
nr_throttled 12
throttled_usec 98765
nr_bursts 0
burst_usec 0
"""
MEMORY_STAT = "anon 40000000\nfile 50000000\nkernel 3000000\nshmem 16384\n"
MEMORY_EVENTS = "low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\noom_group_kill 0\n"


@pytest.fixture
def unified(tmp_path, monkeypatch):
    """The tree of cgroup v2 with one running container, whose systemd is in a group below."""
    monkeypatch.setattr(sampler, "CGROUP", str(tmp_path))
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    node = group(tmp_path, "lxc.payload.ntier_db1", "120\n13\n", "init.scope")
    files = {
        "cpu.stat": CPU_STAT,
        "cpu.max": "20000 100000\n",
        "memory.current": "93016384\n",
        "memory.stat": MEMORY_STAT,
        "memory.events": MEMORY_EVENTS,
        "memory.swap.current": "4096\n",
        "io.stat": "7:0 rbytes=8192 wbytes=4096 rios=2 wios=1 dbytes=0 dios=0\n",
    }
    for name, text in files.items():
        (node / name).write_text(text)
    return node


def test_version_2_has_all_of_a_node_in_one_folder(unified):
    assert sampler.is_v2()
    assert {Path(sampler.find_group(c, "ntier_db1")) for c in ("cpu", "memory", "")} == {unified}
    assert sampler.processes_of(str(unified)) == [120, 13]
    assert sampler.first_process(str(unified)) == "13"


def test_version_2_counts_microseconds_and_version_1_nanoseconds(unified):
    row = dict(zip(sampler.CPU_COLUMNS.split(",")[1:], sampler.V2("ntier_db1").cpu_row(), strict=True))
    assert row == {
        "usage_user_ns": "1000000000",
        "usage_system_ns": "234567000",
        "usage_ns": "1234567000",
        "throttled_ns": "98765000",
        "nr_periods": "310",
        "nr_throttled": "12",
        "quota_us": "20000",
        "period_us": "100000",
    }


def test_version_2_without_a_quota_or_without_its_controllers(unified):
    (unified / "cpu.max").write_text("max 100000\n")
    assert sampler.V2("ntier_db1").cpu_row()[-2:] == ["-1", "100000"]
    for name in ("cpu.max", "memory.swap.current", "io.stat"):
        (unified / name).unlink()
    node = sampler.V2("ntier_db1")
    assert node.cpu_row()[-2:] == ["-1", "100000"]
    assert node.memory_row()[3:] == [sampler.BLANK, "0", "0"]


def test_memory_and_disk_of_version_2(unified):
    row = dict(zip(sampler.MEMORY_COLUMNS.split(",")[1:], sampler.V2("ntier_db1").memory_row(), strict=True))
    assert row == {
        "memory_bytes": "93016384",
        "memory_cache_bytes": "50000000",
        "oom_kills": "1",
        "swap_bytes": "4096",
        "io_read_bytes": "8192",
        "io_write_bytes": "4096",
    }


# Read on Debian 13 from a node whose pool is a file: 7:0 is the loop device, 98:0 the disk that holds the file.
IO_STAT = """98:0 rbytes=27578368 wbytes=35176448 rios=392 wios=1454 dbytes=0 dios=0
7:0 rbytes=27496448 wbytes=35176448 rios=218 wios=2132 dbytes=0 dios=0
"""


def test_version_2_counts_a_pool_in_a_file_once(unified):
    (unified / "io.stat").write_text(IO_STAT)
    assert sampler.V2("ntier_db1").memory_row()[-2:] == ["27578368", "35176448"]
    (unified / "io.stat").write_text("7:0 \n")
    assert sampler.V2("ntier_db1").memory_row()[-2:] == ["0", "0"], "a device without a count"


def test_the_canary_tells_the_cpu_time_of_its_work():
    rows = [[float(v) for v in sampler.canary_row()] for _ in range(20)]
    assert all(loop > 0 and pages > 0 for loop, pages in rows)
    assert min(loop for loop, _ in rows) < 5000, "5,000 steps in microseconds"


def test_a_machine_of_its_own_runs_the_canary_too(tmp_path):
    machine = sampler.Machine(str(tmp_path), 10.0)
    machine.slow()
    machine.writer.write()
    header, row = (tmp_path / "canary.csv").read_text().splitlines()
    assert header == sampler.CANARY_COLUMNS
    assert all(float(value) > 0 for value in row.split(","))


def test_the_first_process_of_a_container_leads_to_its_network(cgroup):
    running = group(cgroup, "lxc.payload.ntier_web1", "120\n13\n", "init.scope")
    assert sampler.first_process(str(running)) == "13"
    assert sampler.first_process(str(group(cgroup, "lxc.payload.ntier_db1", ""))) == ""


def test_tcp_counts_what_this_machine_sent_and_a_stopped_container_nothing():
    row = sampler.Tcp("self").row()
    assert len(row) == len(sampler.TCP_COLUMNS.split(",")) - 1
    assert int(row[0]) >= 0
    assert sampler.Tcp("").row() == [sampler.BLANK] * len(row)


def test_the_busiest_core_is_the_one_that_was_busy_most_of_its_own_time():
    before = {"cpu0": (0, 0), "cpu1": (50, 100)}
    assert sampler.busiest(before, {"cpu0": (2, 10), "cpu1": (60, 110), "cpu2": (9, 9)}) == "100.0"
    assert sampler.busiest({}, before) == sampler.BLANK
    assert sampler.busiest(before, before) == sampler.BLANK


# ---- a disk that stands still ----------------------------------------------------------------------------------------


def start(out: Path) -> subprocess.Popen[str]:
    argv = [sys.executable, "-I", sampler.__file__, "--machine", out, "--hz", "50"]
    return subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)


def test_a_disk_that_stands_still_leaves_no_gap(tmp_path):
    """One of the files is a pipe that is full after a second, and is read eleven seconds later."""
    os.mkfifo(tmp_path / "procstat.csv")
    with start(tmp_path) as program, (tmp_path / "procstat.csv").open() as reader:
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
        time.sleep(12)
        program.send_signal(signal.SIGTERM)
        rows = [float(line.partition(",")[0]) for line in reader.read().splitlines()[1:]]
        assert program.wait(10) == 0
    assert rows[-1] - rows[0] > 6, "up to the end"
    assert max(b - a for a, b in pairwise(rows)) < 8, "not one gap of eleven seconds"
    others = (tmp_path / "pressure.csv").read_text().splitlines()[1:]
    assert rows[-1] - float(others[-1].partition(",")[0]) < 4, "what could not be written then was written later"


def test_a_disk_that_is_full_ends_it_with_a_reason(tmp_path):
    (tmp_path / "procstat.csv").symlink_to("/dev/full")
    with start(tmp_path) as program:
        assert program.wait(10) == 1
        assert program.stderr.read() == "sampler: [Errno 28] No space left on device\n"


class Clock:
    """In place of the module `time`: only who sleeps takes time."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


class Stalling(sampler.Clocked):
    """Stands still over the tick that begins its second second; ends in that second."""

    def __init__(self, hz: float, clock: Clock) -> None:
        super().__init__(hz)
        self.clock, self.calls, self.seconds = clock, 0, 0

    def fast(self) -> None:
        self.calls += 1
        if self.calls == 18:
            self.clock.sleep(0.25)
        self.running = self.calls < 25

    def slow(self) -> None:
        self.seconds += 1
        super().slow()


def test_a_stall_over_the_tick_that_begins_a_second_loses_no_second(monkeypatch) -> None:
    clock = Clock()
    monkeypatch.setattr(sampler, "time", clock)
    clocked = Stalling(20, clock)
    clocked.run()
    assert clocked.seconds == 2
