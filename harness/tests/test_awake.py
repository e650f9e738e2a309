"""What keeps the CPUs of a virtual machine awake while something is measured on it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from ntier_harness import awake, sampler, stolen
from ntier_harness.errors import RequestError
from ntier_harness.runner import Runner
from ntier_harness.targets.local import HostSampling, Local

from .dry import DryRunner, DryTarget

LONGEST_S = 30.0  # until something that takes milliseconds counts as not done


@pytest.mark.parametrize(
    ("text", "virtual"),
    [
        ("processor: 0\nflags\t\t: fpu sse hypervisor lahf_lm\n", True),
        ("processor: 0\nflags\t\t: fpu sse lahf_lm\nbugs: hypervisor\n", False),
        ("processor: 0\nFeatures: fp asimd\n", False),
    ],
)
def test_a_virtual_machine_is_known_by_its_hypervisors_flag(tmp_path, text, virtual):
    (tmp_path / "cpuinfo").write_text(text)
    assert awake.is_virtual(tmp_path / "cpuinfo") is virtual
    assert not awake.is_virtual(tmp_path / "missing")


@pytest.mark.parametrize(("siblings", "shared"), [(["0", "1"], False), (["0-1", "0-1"], True), (["0,2", "1"], True)])
def test_threads_of_one_core_are_seen(tmp_path, siblings, shared):
    assert not awake.shares_cores(tmp_path)
    for cpu, text in enumerate(siblings):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(text + "\n")
    assert awake.shares_cores(tmp_path) is shared


@pytest.mark.parametrize(
    ("virtual", "shared", "told", "expected"),
    [(True, False, "", True), (False, False, "", False), (True, True, "", False), (True, False, "no", False)],
)
def test_where_it_is_wanted(monkeypatch, virtual, shared, told, expected):
    monkeypatch.setattr(awake, "is_virtual", lambda _: virtual)
    monkeypatch.setattr(awake, "shares_cores", lambda _: shared)
    monkeypatch.setenv(awake.NAME, told)
    assert awake.wanted() is expected


def test_another_word_is_refused_before_anything_is_made(lab, spec, monkeypatch):
    monkeypatch.setenv(awake.NAME, "off")
    with pytest.raises(RequestError, match="NTIER_AWAKE: 'off', allowed are yes and no"):
        awake.wanted()
    monkeypatch.setattr(DryTarget, "stays_awake", Local.stays_awake)
    with pytest.raises(RequestError, match="NTIER_AWAKE"):
        lab().target.check(spec())


# ---- the program ----------------------------------------------------------------------------------------------------


def group(tmp_path: Path, *files: str) -> Path:
    """A stand-in for the kernel's folder of control groups of version 1."""
    folder = tmp_path / "cpu" / awake.GROUP
    folder.mkdir(parents=True)
    for name in files:
        (folder / name).write_text("")
    return folder


def command(tmp_path: Path, also: str = "") -> list[str]:
    """The program with that stand-in."""
    code = f"import pathlib, sys; from ntier_harness import awake; awake.CGROUP = pathlib.Path({str(tmp_path)!r}); "
    return [sys.executable, "-c", f"{code} {also} sys.exit(awake.main())"]


@contextmanager
def running(tmp_path: Path, also: str = ""):
    program = subprocess.Popen(command(tmp_path, also), start_new_session=True)
    try:
        yield program
    finally:
        program.kill()
        program.wait()


def until(done) -> None:
    end = time.monotonic() + LONGEST_S
    while not done():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


def children(process: int) -> list[int]:
    return [int(n) for n in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_process_on_each_cpu_yields_to_all_others_and_ends_with_the_program(tmp_path):
    folder = group(tmp_path, "cgroup.procs", "cpu.idle", "cpu.shares")
    cpus = os.sched_getaffinity(0)
    with running(tmp_path) as program:
        until(lambda: len(children(program.pid)) == len(cpus))
        mine = children(program.pid)
        until(lambda: all(os.sched_getscheduler(p) == os.SCHED_IDLE for p in mine))
        assert [os.sched_getaffinity(p) for p in mine] == [{cpu} for cpu in sorted(cpus)]
        assert {os.getpriority(os.PRIO_PROCESS, p) for p in mine} == {19}
        assert int((folder / "cgroup.procs").read_text()) in mine, "each enters it by itself"
        assert [(folder / name).read_text() for name in ("cpu.idle", "cpu.shares")] == ["1", "2"]
        program.kill()
        program.wait()
        until(lambda: not any(alive(p) for p in mine))


def test_it_ends_with_whoever_started_it(tmp_path):
    group(tmp_path, "cgroup.procs", "cpu.idle")
    starter = (
        f"import subprocess, time; print(subprocess.Popen({command(tmp_path)!r}).pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE, text=True) as first:
        program = int(first.stdout.readline())
        until(lambda: children(program))
        mine = children(program)
        first.kill()
    until(lambda: not any(alive(p) for p in [program, *mine]))


def test_without_a_group_that_yields_nothing_computes(tmp_path):
    """Among the groups of the nodes its group would take its share."""
    group(tmp_path, "cgroup.procs")
    with running(tmp_path) as program:
        assert program.wait(LONGEST_S) == 0


def test_where_the_kernel_does_not_tell_what_they_use_nothing_computes(tmp_path):
    """It would count as load of the host, and refuse every trial."""
    group(tmp_path, "cgroup.procs", "cpu.idle")
    with running(tmp_path, "awake.PROC = awake.CGROUP;") as program:
        assert program.wait(LONGEST_S) == 0


def test_the_sampler_adds_up_what_they_used_and_forgets_nothing(tmp_path):
    group(tmp_path, "cgroup.procs", "cpu.idle")
    with running(tmp_path) as program:
        seen = sampler.Awake(program.pid)
        until(lambda: int(seen.row()[0]) > 50e6)
        before = int(seen.row()[0])
        used = sum(int(Path(f"/proc/{p}/schedstat").read_text().split()[0]) for p in children(program.pid))
        assert before <= used
    until(lambda: not any(alive(int(p)) for p in seen.used))
    assert int(seen.row()[0]) >= before
    assert sampler.Awake(2**22 - 1).row() == ["0"], "no such process"


# ---- who uses it ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("awake_too", [True, False])
def test_the_host_is_sampled_with_its_cpus_awake(tmp_path, monkeypatch, awake_too):
    """The sampler is told who keeps them awake, and that ends with the sampling."""
    started: list[list[str]] = []

    class Program:
        pid, stopped = 77, False

        def stop(self) -> None:
            self.stopped = True

    programs: list[Program] = []

    def spawn(_runner, argv, *_):
        started.append([str(a) for a in argv])
        programs.append(Program())
        return programs[-1]

    monkeypatch.setattr(Runner, "spawn", spawn)
    sampling = HostSampling(Runner(), tmp_path, ["db1=ntier_db1"], awake_too=awake_too)
    assert [awake.__file__ in argv for argv in started] == ([True] if awake_too else []) + [False, False]
    assert started[-2][4:] == ["db1=ntier_db1", *(["--awake", "77"] if awake_too else [])]
    sampling.stop()
    assert all(program.stopped for program in programs)


def test_stolen_time_is_looked_at_with_the_cpus_awake(lab, monkeypatch):
    """Otherwise an attempt would wait for what a trial does not suffer from."""
    machine, inside, looked = lab(), [False], []
    machine._nodes = []

    class Program:
        def stop(self) -> None:
            inside[0] = False

    def start(_runner) -> Program:
        inside[0] = True
        return Program()

    monkeypatch.setattr(awake, "start", start)
    monkeypatch.setattr(DryTarget, "stays_awake", lambda _: True)
    ticks = DryTarget.cpu_ticks
    monkeypatch.setattr(DryTarget, "cpu_ticks", lambda *a: looked.append(inside[0]) or ticks(*a))
    monkeypatch.setattr(DryRunner, "sleep", lambda *_: looked.append(inside[0]))
    stolen.share_pct(machine)
    assert looked == [True, True, True]
    assert not inside[0]
    monkeypatch.setattr(DryTarget, "stays_awake", lambda _: False)
    stolen.share_pct(machine)
    assert looked == [True, True, True, False, False, False]
