"""What this machine has and lacks for nodes of target local."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from ntier_harness import machine, sampler, systems
from ntier_harness.doctor import NEEDED_DISK, Finding, ask, needs
from ntier_harness.lab import Lab
from ntier_harness.paths import nearest
from ntier_harness.request import make_spec
from ntier_harness.screen import size
from ntier_harness.targets.local import NETWORK, PROJECT

POOL_FILE = Path("/var/lib/incus/disks/ntier.img")  # where Incus keeps a pool that has no disk of its own
DOWNLOADS = 900_000_000  # packages of both distributions' images, Maven artefacts, JMeter; once


def examine(lab: Lab) -> list[Finding]:
    """All findings; nothing is changed."""
    if not machine.is_linux():
        return []
    return [disk(), cgroups(), privileges(), nodes(), incus(lab), bridge(lab), downloads(lab)]


def disk() -> Finding:
    """Room for images and nodes, which are in one sparse file of Incus; what it takes already is part of the need."""
    try:
        taken = POOL_FILE.stat().st_blocks * 512
    except OSError:
        taken = 0
    place = nearest(POOL_FILE.parent)
    free = shutil.disk_usage(place).free
    missing = NEEDED_DISK - taken - free
    detail = f"{size(free)} free in {place}" + (f", {size(taken)} taken by images and nodes" if taken else "")
    mend = f"free {size(missing)} there, or before the first set-up mount another disk at {POOL_FILE.parents[1]}"
    return needs("disk", missing <= 0, detail, mend)


def cgroups() -> Finding:
    """Whether the controllers are there by which nodes are limited and measured."""
    root = Path(sampler.CGROUP)
    if sampler.is_v2():
        controllers = (root / "cgroup.controllers").read_text().split()
        lacking = [name for name in ("cpu", "io", "memory") if name not in controllers]
        mend = "start the kernel without cgroup_disable=; in a container or virtual machine, ask who runs it"
        return needs("cgroup", not lacking, "version 2" + (f" without {', '.join(lacking)}" if lacking else ""), mend)
    lacking = [name for name in ("blkio", "cpu", "cpuacct", "memory") if not (root / name).exists()]
    detail = "version 1" + (f" without {', '.join(lacking)}" if lacking else "")
    return needs("cgroup", not lacking, detail, f"mount these controllers below {root}")


def privileges() -> Finding:
    root = os.geteuid() == 0
    return Finding(
        "privileges", "ok" if root else "fail", "root" if root else "not root", "" if root else "run with sudo"
    )


def nodes() -> Finding:
    """Whether this machine can make nodes of target local: a container without the powers for it cannot."""
    obstacle = machine.obstacle()
    said, _, instead = obstacle.partition(". ")
    return Finding("nodes", "fail" if obstacle else "ok", said or "Incus containers can be made here", instead)


def incus(lab: Lab) -> Finding:
    if not shutil.which("incus"):
        return Finding("incus", "warn", "missing", "make setup")
    done = ask(lab, ["incus", "query", "/1.0"])
    if done.code and os.geteuid() != 0 and "permission" in done.problem:
        return Finding("incus", "warn", "only root may ask it", "run with sudo")
    if done.code:
        return Finding("incus", "warn", f"does not answer: {done.problem}", "make setup")
    argv = ["incus", "--project", PROJECT, "image", "list", "--format", "csv", "--columns", "l"]
    image = ask(lab, argv)
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
    done = ask(lab, ["ip", "-o", "-4", "addr", "show"])
    taken = [line.split()[1] for line in done.out.splitlines() if re.search(r" inet 198\.1[89]\.", line)]
    others = sorted({name for name in taken if name != "ntierbr0"})
    level = "fail" if others else "ok"
    return Finding("network", level, f"{NETWORK}: " + (f"used by {', '.join(others)}" if others else "free or ours"),
                   f"free {NETWORK} on {', '.join(others)}" if others else "")  # fmt: skip


def downloads(lab: Lab) -> Finding:
    built = (lab.paths.root / "build").exists() and incus(lab).level == "ok"
    detail = "images are built: nothing to fetch" if built else f"first set-up fetches about {size(DOWNLOADS)}"
    return Finding("download", "ok", detail)
