"""Lists what this machine has and lacks: one finding per line, each fault with the command that mends it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from ntier_harness import awake, machine, systems
from ntier_harness.errors import RequestError, WorkError
from ntier_harness.lab import Lab
from ntier_harness.paths import nearest
from ntier_harness.runner import Done
from ntier_harness.screen import size
from ntier_harness.systems.definition import Program

NEEDED_DISK = 12_000_000_000  # base and golden images, data, the pool's copies
NEEDED_MEMORY = 4_000_000_000  # 1/1/1/1M with a client: 2.3 GB resident, and room for page cache
JAVA_LEAST = 17
PROGRAMS = {"maven": ("mvn", "maven"), "ssh": ("ssh", "openssh-client"), "git": ("git", "git")}
"""Finding -> command, and the package that has it."""
PROGRAMS_HERE = {"sysstat": ("sar", "sysstat"), "mmdebstrap": ("mmdebstrap", "mmdebstrap")}
"""Those that only nodes of this machine need."""
STEAL_S = 1.0
START_S = 0.3  # of what keeps CPUs awake
ASK_S = 20.0  # Incus, started by this very question, needs about 6 s


@dataclass
class Finding:
    what: str
    level: str  # ok | warn | fail
    detail: str
    mend: str = ""


def examine(lab: Lab) -> list[Finding]:
    """All findings; nothing is changed."""
    own = lab.target.doctor(lab)
    if lab.target.own_machines:  # this one carries no node
        return [system(), *own, *programs(lab)]
    known = {finding.what for finding in own}  # a target knows better what it needs, and where
    general = [finding for finding in resources(lab) if finding.what not in known]
    if not machine.is_linux():
        return [system(), *general, *own, *programs(lab)]
    return [system(), *general, steal(lab), *own, *programs(lab), apt(lab)]


def system() -> Finding:
    """What can be done here."""
    if machine.is_linux():
        release = platform.freedesktop_os_release() if Path("/etc/os-release").exists() else {}
        return Finding("system", "ok", release.get("PRETTY_NAME", platform.system()))
    where = f"{platform.system()}: analysis, reports and notebooks, and experiments on other machines (TARGET=hosts)"
    return Finding("system", "warn", where, "for experiments on this machine itself: Debian 12 or 13, or Ubuntu 24.04")


def needs(what: str, enough: bool, detail: str, mend: str) -> Finding:
    """`ok`, or `fail` with what mends it."""
    return Finding(what, "ok" if enough else "fail", detail, "" if enough else mend)


def resources(lab: Lab) -> list[Finding]:
    cores, info = os.cpu_count() or 1, machine.memory_info()
    memory = info.get("MemAvailable", info["MemTotal"])
    of = "available" if "MemAvailable" in info else "in all"
    place = nearest(lab.paths.state)
    free = shutil.disk_usage(place).free
    more_memory = f"free memory: {size(NEEDED_MEMORY)} are needed for 1/1/1/1M"
    more_disk = f"free {size(NEEDED_DISK - free)} there, or set NTIER_STATE to another disk"
    return [
        needs("cores", cores >= 2, f"{cores}", "use a machine with 2 cores or more"),
        needs("memory", memory >= NEEDED_MEMORY, f"{size(memory)} {of}", more_memory),
        needs("disk", free >= NEEDED_DISK, f"{size(free)} free in {place}", more_disk),
    ]


def steal(lab: Lab) -> Finding:
    """How busy this machine is over one second, and over another one the share of CPU time that the hypervisor gave to
    others: as in a trial, so without what waking a CPU costs where a trial keeps it awake."""
    work = _ticks_spent()
    with awake.as_in_a_trial(lab):
        time.sleep(START_S)
        taken = _ticks_spent()
    stolen, busy = 100 * taken[7] / max(1, sum(taken)), 100 * (sum(work) - work[3] - work[4]) / max(1, sum(work))
    level = "ok" if stolen <= 1 and busy <= 30 else "warn"
    mend = "" if level == "ok" else "stop other work on this machine while a sweep runs: its trials would be invalid"
    return Finding("host load", level, f"steal {stolen:.1f} %, busy {busy:.0f} % over {STEAL_S:g} s", mend)


def _ticks_spent() -> list[int]:
    before = machine.cpu_ticks()
    time.sleep(STEAL_S)
    return [b - a for a, b in zip(before, machine.cpu_ticks(), strict=True)]


def programs(lab: Lab) -> list[Finding]:
    """Programs with the command that brings them; where nodes run here, `make setup` brings those it can."""
    here = not lab.target.own_machines
    terraform = lab.target.terraform if lab.runner.has(lab.target.terraform) else None
    detail = first_line(lab, [terraform, "version"]) if terraform else "neither terraform nor tofu"
    findings = [needs("terraform", bool(terraform), detail, "install Terraform or OpenTofu from its makers")]
    findings.append(jdk(lab, here))
    for name, (command, package) in (PROGRAMS | (PROGRAMS_HERE if here and machine.is_linux() else {})).items():
        there = shutil.which(command)
        mend = "make setup" if here and name != "git" else f"apt-get install {package}"
        findings.append(Finding(name, "ok" if there else "warn", there or "missing", "" if there else mend))
    return [*findings, *brought(lab.paths.root, lab.paths.state)]


def jdk(lab: Lab, here: bool) -> Finding:
    """Set-up brings it where there is none. For machines elsewhere it is needed only by systems with parts in Java."""
    mend = "apt-get install default-jdk-headless"
    javac = machine.javac()
    if not javac:
        mend = "make setup" if here else f"{mend} (for JMeter, and for parts in Java)"
        return Finding("jdk", "warn", "missing", mend)
    version = int((re.findall(r"\d+", first_line(lab, [javac, "-version"])) or ["0"])[0])
    if version >= JAVA_LEAST:
        return Finding("jdk", "ok", f"javac {version}")
    return Finding("jdk", "fail" if here else "warn", f"javac {version}, older than {JAVA_LEAST}", mend)


def brought(root: Path, state: Path) -> list[Finding]:
    """Programs that no package source has: the user must bring them, or have them made."""
    every, wrong = [], []
    for name in systems.names(root):
        try:
            every.append(systems.find(root, name).definition)
        except RequestError as error:
            wrong.append(Finding("system", "warn", str(error), f"ntier systems check {root / 'systems' / name}"))
    choices = {n: c for d in every for v in d.variants.values() for n, c in v.choices.items() if c.program}
    return [*(bring(name, choice.program, state) for name, choice in choices.items()), *wrong]


def bring(name: str, program: Program, state: Path) -> Finding:
    if program.made:
        file = state / program.made
        there = os.path.exists(file)  # also where only root may look
        return Finding(name, "ok", str(file) if there else "not made, and not needed otherwise",
                       "" if there else program.get)  # fmt: skip
    given = os.environ.get(program.environment, "")
    if given and not Path(given).is_file():
        return Finding(name, "fail", f"{program.environment}={given}: no such file", "name its package or program")
    return Finding(name, "ok", given or "not given, and not needed", "" if given else program.get)


def ask(lab: Lab, argv: list[str]) -> Done:
    """First line that a program prints. A program that does not end within ASK_S has failed; the other findings still
    come."""
    try:
        return lab.runner.run(argv, check=False, timeout=ASK_S)
    except WorkError:
        return Done(argv, 124, "", f"no answer within {ASK_S:g} s")


def first_line(lab: Lab, argv: list[str | None]) -> str:
    done = ask(lab, [a for a in argv if a])
    return (done.out or done.err).strip().splitlines()[0] if (done.out or done.err).strip() else ""


def apt(lab: Lab) -> Finding:
    """Whether the host's own package sources answer (a connection, nothing is fetched)."""
    if not shutil.which("apt-get"):
        return Finding("apt", "fail", "not a Debian-like system", "use Debian 12 or newer, or Ubuntu 24.04 or newer")
    done = ask(lab, ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"])
    hosts = dict.fromkeys(re.findall(r"(https?)://([^/:\s]+)(?::(\d+))?", done.out))
    proxy = ask(lab, ["apt-config", "dump", "Acquire::http::Proxy"]).out
    if re.search(r'Proxy "https?://', proxy):
        hosts = dict.fromkeys(re.findall(r"(https?)://([^/:\s\"]+)(?::(\d+))?", proxy))
    for scheme, host, port in hosts:
        try:
            socket.create_connection((host, int(port or (443 if scheme == "https" else 80))), timeout=5).close()
        except OSError as error:
            return Finding(
                "apt",
                "warn",
                f"a package source does not answer: {error}",
                "check /etc/apt/sources.list and the network",
            )
    return Finding(
        "apt", "ok" if hosts else "warn", f"{len(hosts)} source host(s) answer", "" if hosts else "apt-get update"
    )


def text(findings: list[Finding]) -> str:
    lines = []
    for f in findings:
        lines.append(f"{f.level:<5} {f.what:<12} {f.detail}")
        if f.mend:
            lines.append(f"{'':5} {'':12} -> {f.mend}")
    worst = (
        "fail"
        if any(f.level == "fail" for f in findings)
        else "warn"
        if any(f.level == "warn" for f in findings)
        else "ok"
    )
    closing = {"ok": "all is there", "warn": "no obstacle", "fail": "something needed is missing"}[worst]
    return "\n".join([*lines, closing])
