"""Keeps the CPUs of a virtual machine from halting while something is measured on it. A stand-alone program, standard
library only.

    python3 -I awake.py

The hypervisor must schedule a halted CPU before it goes on. That takes time each time that somebody wakes, and counts
as stolen (docs/decisions/awake.md has what it came to). So a process on each CPU computes as long as nobody else wants
it: by policy SCHED_IDLE, and in a control group of its own that is idle, too, since the policy alone holds only among
the processes of one group. The program ends with whoever started it, and its processes with it. Their CPU time is no
load: sampler.py notes it, and the analysis takes it for idle time."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ntier_harness.lab import Lab
    from ntier_harness.runner import Runner, Spawned

CGROUP, GROUP = Path("/sys/fs/cgroup"), "ntier_awake"
CPUS, PROC = Path("/sys/devices/system/cpu"), Path("/proc")
NAME = "NTIER_AWAKE"
STEPS = 100_000  # a few milliseconds, after which a process looks whether it is still wanted
LEAST = {"cpu.idle": "1", "cpu.weight": "1", "cpu.shares": "2"}
"""What makes a group yield to all others. Kernels before 5.15 have no cpu.idle; one version of control groups has
weights, the other one shares."""


def wanted() -> bool:
    """Whether this is a virtual machine whose CPUs show no threads of one core: there the other thread would lose
    speed. `NTIER_AWAKE=no` says that it is not wanted; on a machine that has CPU credits they would be used up. Raises
    RequestError for another word."""
    told = os.environ.get(NAME) or "yes"
    if told not in ("yes", "no"):
        from ntier_harness.errors import RequestError  # the program is on its own

        raise RequestError(f"{NAME}: {told!r}, allowed are yes and no")
    return told == "yes" and is_virtual(PROC / "cpuinfo") and not shares_cores(CPUS)


def is_virtual(cpuinfo: Path) -> bool:
    """By the flag that a hypervisor shows (x86); False if nothing can be said."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return False
    return any("hypervisor" in line.split() for line in lines if line.startswith("flags"))


def shares_cores(cpus: Path) -> bool:
    """Whether two CPUs are threads of one core."""
    siblings = [file.read_text().strip() for file in cpus.glob("cpu[0-9]*/topology/thread_siblings_list")]
    return not all(text.isdigit() for text in siblings)


@contextlib.contextmanager
def as_in_a_trial(lab: Lab) -> Iterator[None]:
    """The CPUs stay awake meanwhile, if they do so in a trial."""
    program = start(lab.runner) if lab.target.stays_awake() else None
    try:
        yield
    finally:
        if program:
            program.stop()


def start(runner: Runner) -> Spawned:
    """It ends when it is stopped, or with us."""
    return runner.spawn([sys.executable, "-I", __file__])


# ---- the program --------------------------------------------------------------------------------------------------


def is_counted(process: int) -> bool:
    """Whether the kernel tells what sampler.py reads of this program: what nobody can subtract would be load."""
    return (PROC / f"{process}/task/{process}/children").exists() and (PROC / f"{process}/schedstat").exists()


def yielding() -> Path | None:
    """The group that yields to all others. None if there can be none: among the groups of the nodes a group with the
    usual weight would take its share of the CPU, whatever its processes' policy."""
    base = CGROUP if (CGROUP / "cgroup.controllers").exists() else CGROUP / "cpu"
    group = base / GROUP
    try:
        group.mkdir(exist_ok=True)
    except OSError:
        return None
    known = [name for name in LEAST if (group / name).exists()]
    for name in known:
        with contextlib.suppress(OSError):  # an idle group has no weight to set
            (group / name).write_text(LEAST[name])
    return group if known else None


def compute(cpu: int, group: Path, parent: int) -> None:
    """On one CPU, as long as the program is there. Raises OSError if the group cannot be entered."""
    (group / "cgroup.procs").write_text(str(os.getpid()))
    os.sched_setaffinity(0, {cpu})
    os.nice(19)  # so /proc/stat counts it as nice
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while os.getppid() == parent:
        for _ in range(STEPS):
            pass


def main() -> int:
    parent, me = os.getppid(), os.getpid()
    group = yielding() if is_counted(me) else None
    if group is None:
        return 0
    for cpu in sorted(os.sched_getaffinity(0)):
        if os.fork() == 0:
            with contextlib.suppress(OSError):
                compute(cpu, group, me)
            os._exit(0)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # which the others notice
    while os.getppid() == parent:
        time.sleep(0.2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
