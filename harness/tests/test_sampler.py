"""Which control group is a container's, on trees as the kernel shows them."""

from __future__ import annotations

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


def test_the_canary_tells_the_cpu_time_of_its_work():
    rows = [[float(v) for v in sampler.canary_row()] for _ in range(20)]
    assert all(loop > 0 and pages > 0 for loop, pages in rows)
    assert min(loop for loop, _ in rows) < 5000, "5,000 steps in microseconds"


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
