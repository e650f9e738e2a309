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
