"""What this machine has and lacks for nodes of target local."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from ntier_harness import machine, systems
from ntier_harness.doctor import Finding
from ntier_harness.lab import Lab
from ntier_harness.screen import size
from ntier_harness.spec import make_spec
from ntier_harness.targets.local import NETWORK, PROJECT

DOWNLOADS = 900_000_000  # packages of both distributions' images, Maven artefacts, JMeter; once


def examine(lab: Lab) -> list[Finding]:
    """All findings; nothing is changed."""
    if not machine.is_linux():
        return []
    return [cgroups(), privileges(), nodes(), incus(lab), bridge(lab), downloads(lab)]


def cgroups() -> Finding:
    version = 2 if Path("/sys/fs/cgroup/cgroup.controllers").exists() else 1
    cpu = (
        version == 2 or Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").exists() or Path("/sys/fs/cgroup/cpuacct").exists()
    )
    return Finding(
        "cgroup", "ok" if cpu else "fail", f"version {version}", "" if cpu else "mount the cpu and cpuacct controllers"
    )


def privileges() -> Finding:
    root = os.geteuid() == 0
    return Finding(
        "privileges", "ok" if root else "fail", "root" if root else "not root", "" if root else "run with sudo"
    )


def nodes() -> Finding:
    """Whether this machine can make nodes of target local: a container without the powers for it cannot."""
    found = machine.obstacle()
    said, _, instead = found.partition(". ")
    return Finding("nodes", "fail" if found else "ok", said or "Incus containers can be made here", instead)


def incus(lab: Lab) -> Finding:
    if not shutil.which("incus"):
        return Finding("incus", "warn", "missing", "make setup")
    done = lab.runner.run(["incus", "query", "/1.0"], check=False, timeout=20)
    if done.code:
        return Finding("incus", "warn", f"does not answer: {done.problem}", "make setup")
    argv = ["incus", "--project", PROJECT, "image", "list", "--format", "csv", "--columns", "l"]
    image = lab.runner.run(argv, check=False, timeout=20)
    missing = [name for name in images(lab.paths.root) if name not in image.out.split()]
    detail = "answers" + (f"; images not built yet: {', '.join(missing)}" if missing else ", all images are built")
    return Finding("incus", "warn" if missing else "ok", detail, "make setup" if missing else "")


def images(root: Path) -> tuple[str, ...]:
    """Those of the default system's usual sweep."""
    example = systems.find(root, systems.default(root)).definition.notation.example
    return make_spec({"topo": example, "scale": "0.1"}, root, 1).images


def bridge(lab: Lab) -> Finding:
    """The experiment's addresses must not be in use for anything else."""
    if not shutil.which("ip"):
        return Finding("network", "warn", "the program ip is missing", "apt-get install iproute2")
    done = lab.runner.run(["ip", "-o", "-4", "addr", "show"], check=False)
    taken = [line.split()[1] for line in done.out.splitlines() if re.search(r" inet 198\.1[89]\.", line)]
    others = sorted({name for name in taken if name != "ntierbr0"})
    level = "fail" if others else "ok"
    return Finding("network", level, f"{NETWORK}: " + (f"used by {', '.join(others)}" if others else "free or ours"),
                   f"free {NETWORK} on {', '.join(others)}" if others else "")  # fmt: skip


def downloads(lab: Lab) -> Finding:
    built = (lab.paths.root / "build").exists() and incus(lab).level == "ok"
    detail = "images are built: nothing to fetch" if built else f"first set-up fetches about {size(DOWNLOADS)}"
    return Finding("download", "ok", detail)
