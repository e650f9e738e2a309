"""Facts of this machine, and whether it can make nodes of target local. On Linux they come from /proc, elsewhere
(macOS) from the system's own programs, or are missing. Only this module asks, so doctor, plan and reports also run on
machines that cannot run experiments. `python -m ntier_harness.machine` tells set-up which obstacles nodes have."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path

PROC = Path("/proc")
SADC_PLACES = ("/usr/libexec/sysstat/sadc", "/usr/lib/sysstat/sadc")
"""Debian 13 and later; Debian 12 and Ubuntu 24.04."""
CAP_SYS_ADMIN = 21  # mounts, control groups and namespaces: what a container needs to hold containers
INSTEAD = (
    "Nodes are Incus system containers, for which Docker is no substitute. Instead: a machine or virtual machine with "
    "Debian 12 or newer or Ubuntu 24.04 or newer; or, from here, machines reached by SSH (TARGET=hosts, "
    "docs/targets.md); the analysis alone runs anywhere: pip install ./analysis && ntier-analysis demo"
)


def javac() -> str | None:
    """The Java compiler that Maven takes: of JAVA_HOME, else of the path."""
    home = os.environ.get("JAVA_HOME")
    return (shutil.which("javac", path=f"{home}/bin") if home else None) or shutil.which("javac")


def is_linux() -> bool:
    """With /proc: what carries nodes."""
    return (PROC / "stat").exists()


def memory_info() -> dict[str, int]:
    """/proc/meminfo, bytes; without it MemTotal alone."""
    try:
        lines = (PROC / "meminfo").read_text().splitlines()
    except OSError:
        return {"MemTotal": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")}
    return {key: int(value.split()[0]) * 1024 for key, _, value in (line.partition(":") for line in lines)}


def cpu_model() -> str | None:
    try:
        lines = (PROC / "cpuinfo").read_text().splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def cpu_ticks() -> list[int]:
    """user, nice, system, idle, iowait, irq, softirq, steal of all cores since boot. Raises OSError without /proc."""
    return [int(n) for n in (PROC / "stat").read_text().splitlines()[0].split()[1:9]]


def sadc() -> str:
    """sysstat's collector, which is not on the PATH."""
    return next((p for p in SADC_PLACES if os.path.exists(p)), None) or shutil.which("sadc") or SADC_PLACES[0]


def obstacle() -> str:
    """Why this machine cannot make nodes, and what to do instead; empty if it can."""
    status = Path("/proc/self/status")
    powers = status.read_text() if os.geteuid() == 0 and status.exists() else ""
    can_have_incus = any(shutil.which(name) for name in ("incus", "apt-get"))
    return judge(platform.system(), powers, can_have_incus=can_have_incus)


def judge(system: str, powers: str, *, can_have_incus: bool) -> str:
    """`powers`: `/proc/<pid>/status` of a process of root, empty if there is none to look at."""
    if system != "Linux":
        return f"local needs Linux, and this is {system}. {INSTEAD}"
    if not may_hold_containers(powers):
        return (
            "local: this is a container whose root lacks CAP_SYS_ADMIN, and without it Incus can start no node in it. "
            f"{INSTEAD}"
        )
    if not can_have_incus:
        return f"local needs Incus, which set-up installs by apt only, and neither is here. {INSTEAD}"
    return ""


def may_hold_containers(status: str) -> bool:
    """By a `/proc/<pid>/status`; True if it does not say."""
    masks = [line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")]
    return not masks or bool(int(masks[0], 16) >> CAP_SYS_ADMIN & 1)


if __name__ == "__main__":
    if problem := obstacle():
        print(f"error: target {problem}", file=sys.stderr)
        sys.exit(2)
