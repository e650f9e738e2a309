"""A first look at a machine that somebody else set up: can it become a node, and may it? Nothing is changed."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Protocol

from ntier_harness import existing
from ntier_harness.errors import RequestError, WorkError
from ntier_harness.paths import Paths
from ntier_harness.runner import Done, Runner
from ntier_harness.ssh import ALONE, CONNECT_S, SADC_PLACES, Access, options
from ntier_harness.targets.inventory import Host

OWNER_FILE = "/etc/ntier/owner"
"""Which deployment's the machine is; there from `up` to `down`."""
UNDO = "/etc/ntier/before/ntier-made undo"
"""Brings the machine back by the record that is on it (ansible/roles/machine)."""
DEBIAN_LEAST = 12
SCRIPT = f"""
echo "uid=$(id -u)"
. /etc/os-release; echo "os=$PRETTY_NAME"; echo "distribution=$ID"; echo "release=${{VERSION_ID:-}}"
echo "init=$(cat /proc/1/comm)"
echo "cores=$(nproc)"
echo "memory_kib=$(awk '/^MemTotal/ {{print $2}}' /proc/meminfo)"
echo "python=$(command -v python3)"
echo "owner=$({existing.whose(OWNER_FILE, existing.OWNER_FILE)})"
echo "programs=$(cat /proc/[0-9]*/comm 2>/dev/null | sort -u | tr '\\n' ' ')"
listening() {{ cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '$4 == "0A" {{n = split($2, a, ":"); print a[n]}}'; }}
echo "listening=$(listening | tr '\\n' ' ')"
boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null) && pids=$(readlink /proc/self/ns/pid) &&
  echo "machine=$boot $pids"
own() {{ awk '$1 == "|--" {{a = $2}} /host LOCAL/ && a !~ /^127/ {{print a}}' /proc/net/fib_trie; }}
echo "addresses=$(own 2>/dev/null | sort -u | tr '\\n' ' ')"
echo "time=$(date +%s.%N)"
"""
"""Its first line is the first that is printed."""
COMM_MOST = 15
"""Characters that the kernel keeps of a program's name (/proc/PID/comm)."""
NO_CONNECTION = 255
"""Exit code of SSH itself; any other one is the command's."""
CLOCK_LIMIT_S = 2.0  # far beyond what a trial bears (check C4: 50 ms); said here, before anything is installed


class Expected(Protocol):
    """What a machine must be."""

    def look(self) -> str:
        """Commands beside SCRIPT that print name=value."""

    def wrong(self, said: dict[str, str], owner: str) -> str:
        """What keeps the machine from becoming the node, by what it said; empty if nothing does."""


@dataclass(frozen=True)
class Strangers:
    """For a machine on which the system is to be installed: signs that it serves somebody else. They are programs,
    listeners on the system's ports, and files that would hold the node's data."""

    services: tuple[str, ...]
    ports: set[int]
    data: tuple[str, ...]

    def look(self) -> str:
        files = " ".join(shlex.quote(file) for file in self.data)
        return f"""echo "databases=$(ls -d {files} 2>/dev/null | tr '\\n' ' ')"\n""" if files else "echo databases=\n"

    def wrong(self, said: dict[str, str], owner: str) -> str:
        return _unfit(said) or _foreign(said, owner, self)


MEASURES = {"/usr/bin/python3": "python3", "sadc": "sysstat", "sadf": "sysstat", "zstd": "zstd", "tar": "tar",
            "flock": "util-linux"}  # fmt: skip
"""What claiming a machine and `ntier-node` run -> its package."""
PYTHON_LEAST = (3, 9)


@dataclass(frozen=True)
class Serving:
    """For a machine on which a part of the system runs already (`deploy: none`): programs that must run there, and
    programs that measuring and driving need, which are never installed. `programs`: those of the driver."""

    services: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    units: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()

    def look(self) -> str:
        programs, units, packages = (shlex.join(n) or "''" for n in (self._programs, self.units, self.packages))
        return f"""
PATH={SADC_PLACES}:$PATH
has() {{ dpkg-query -W $1 || rpm -q $1; }} >/dev/null 2>&1
echo "missing=$(for p in {programs}; do command -v $p >/dev/null || printf '%s ' $p; done)"
echo "inactive=$(for u in {units}; do [ -z $u ] || systemctl --quiet is-active $u || printf '%s ' $u; done)"
echo "absent=$(for p in {packages}; do [ -z $p ] || has $p || printf '%s ' $p; done)"
echo "python_new=$(/usr/bin/python3 -c 'import sys; print(sys.version_info >= {PYTHON_LEAST})' 2>/dev/null)"
echo "folder=$(ls -d {existing.HOME} 2>/dev/null)"
echo "apt=$(command -v apt-get)"
"""

    @property
    def _programs(self) -> tuple[str, ...]:
        return (*MEASURES, *self.programs)

    def wrong(self, said: dict[str, str], owner: str) -> str:
        if said["uid"] != "0":
            return f"commands run there as uid {said['uid']}, not as root"
        if said["owner"] and said["owner"] != owner:
            return _belongs(said["owner"])
        if said["folder"] and not said["owner"]:
            return f"has a folder {existing.HOME} that is not ours: not touched; move it away"
        parts = [self._lacks(said)]
        listening = {int(port, 16) for port in said["listening"].split()}
        parts += [f"unit {unit} is not active" for unit in said["inactive"].split()]
        parts += [f"{name} does not run" for name in self.services if not _runs(name, said)]
        parts += [f"nothing listens on port {port}" for port in self.ports if port not in listening]
        return "; ".join(filter(None, parts))

    def _lacks(self, said: dict[str, str]) -> str:
        missing = said["missing"].split()
        packages = dict.fromkeys([MEASURES[p] for p in missing if p in MEASURES] + said["absent"].split())
        if not missing and not packages:
            least = ".".join(map(str, PYTHON_LEAST))
            return "" if said["python_new"] == "True" else f"its Python is older than {least}"
        how = "run there: apt-get install" if said["apt"] else "install there"
        install = f"; {how} {' '.join(packages)}" if packages else ""
        return f"lacks {', '.join([*missing, *said['absent'].split()])}{install}"


@dataclass(frozen=True)
class Survey:
    """What a machine says of itself. `machine`: of its boot and its processes, the same however it is reached;
    containers of one machine differ, clones of a running one need not. `addresses`: IPv4. Empty: not known."""

    cores: int
    memory_bytes: int
    owner: str
    offset_s: float
    machine: str = ""
    addresses: tuple[str, ...] = ()


def survey(runner: Runner, paths: Paths, name: str, access: Access, owner: str, expected: Expected) -> Survey:
    """Raises RequestError naming the node, the machine, what is wrong with it and what mends it."""
    place = f"hosts: {name} ({access.destination})"
    argv = ["ssh", *ALONE, *options(access, paths), access.destination]
    began = runner.now()
    try:
        done = runner.run([*argv, access.as_root(SCRIPT + expected.look())], check=False, timeout=4 * CONNECT_S)
    except WorkError:
        raise RequestError(f"{place}: no answer within {4 * CONNECT_S} s") from None
    ended = runner.now()
    if done.code:
        raise RequestError(f"{place}: {_refusal(done, access)}")
    if (first := re.search(r"^uid=", done.out, re.MULTILINE)) and first.start():
        noise = done.out[: first.start()].strip()[:80]
        raise RequestError(
            f"{place}: its shell prints {noise!r} before each answer, and would spoil it; let it print for people "
            "only: begin its ~/.bashrc with the line  [ -t 1 ] || return"
        )
    said = dict(line.split("=", 1) for line in done.out.splitlines() if "=" in line)
    try:
        offset = max(0.0, began - float(said["time"]), float(said["time"]) - ended)
        machine = Survey(
            int(said["cores"]),
            int(said["memory_kib"]) * 1024,
            said["owner"],
            offset,
            said.get("machine", "").strip(),
            tuple(said.get("addresses", "").split()),
        )
        wrong = expected.wrong(said, owner) or _clock(machine.offset_s)
    except (KeyError, ValueError):
        raise RequestError(f"{place}: its answer is not understood: {done.out[-200:]!r}") from None
    if wrong:
        raise RequestError(f"{place}: {wrong}")
    return machine


def mistaken(hosts: dict[str, Host], surveys: dict[str, Survey]) -> list[str]:
    """A line for each machine that is not what the inventory says: one that is there twice, by two addresses, so that
    two nodes would share it; and one without the address that load and services would go to, which may be a stranger's.
    An address of the Internet may be translated on the way, and so may one by which SSH itself reaches the machine, or
    of which the inventory says so."""
    wrong: list[str] = []
    seen: dict[tuple[str, tuple[str, ...]], str] = {}
    for name, host in hosts.items():
        machine, addresses = surveys[name].machine, surveys[name].addresses
        place = f"hosts: {name} ({host.access.destination})"
        twin = seen.setdefault((machine, addresses), name) if machine else name
        if twin != name:
            wrong.append(
                f"{place}: is the same machine as {twin} ({hosts[twin].access.destination}); each host becomes one "
                "node, so name each machine once"
            )
        elif (
            addresses and host.is_private and not host.translated and host.address not in (host.access.host, *addresses)
        ):
            wrong.append(
                f"{place}: address: {host.address} is none of its addresses ({', '.join(addresses)}), so load would go "
                "to another machine; correct address or ssh. If SSH reaches it by that address, leave out ssh; if the "
                "address is translated on the way, as a floating one is, say address_is_translated: true for it"
            )
    return wrong


def _refusal(done: Done, access: Access) -> str:
    """Why SSH or sudo did not let us in, and what mends it."""
    said = done.err + done.out
    if done.code != NO_CONNECTION:
        if "sudo" in said:
            return (
                f"{access.user} may not use sudo without a password ({done.problem}); log in as root, or allow it there"
            )
        return (
            f"answers, but not what it is asked: {done.problem}; it must be Linux, and the shell of {access.user} one "
            "like sh (bash, dash, zsh)"
        )
    known = access.host if access.port == 22 else f"'[{access.host}]:{access.port}'"  # as known_hosts has it
    scan = f"ssh-keyscan {f'-p {access.port} ' if access.port != 22 else ''}{access.host}"
    if "IDENTIFICATION HAS CHANGED" in said:
        return (
            f"its host key is not the one in {access.known_hosts}: somebody is in between, or the machine was "
            f"installed anew; if you know it was: ssh-keygen -R {known} -f {access.known_hosts}"
        )
    if "Host key verification failed" in said or "host key is known" in said:
        return (
            f"its host key is not in {access.known_hosts}; compare what the machine says (ssh-keygen -lf "
            f"/etc/ssh/ssh_host_ed25519_key.pub) with {scan} | ssh-keygen -lf -, then: {scan} >>{access.known_hosts}"
        )
    if "Permission denied" in said:
        if open_key := re.search(r"Permissions \d+ for '(.+)' are too open", said):
            return f"SSH does not use {open_key[1]}, since others may read it; run here: chmod 600 {open_key[1]}"
        key = access.key_file or "any key of yours (agent, ~/.ssh)"
        keys = f"~{access.user}/.ssh/authorized_keys"
        agent = f". If the key has a passphrase, run here: ssh-add {access.key_file}" if access.key_file else ""
        return f"does not let {access.user} in with {key}; put its public key into {keys} there{agent}"
    if "Could not resolve hostname" in said:
        return f"cannot be reached: {done.problem}; give its name or address: names of ~/.ssh/config are not known"
    return f"cannot be reached: {done.problem}"


def _runs(program: str, said: dict[str, str]) -> bool:
    return program[:COMM_MOST] in said["programs"].split()


def _unfit(said: dict[str, str]) -> str:
    if said["uid"] != "0":
        return f"commands run there as uid {said['uid']}, not as root"
    release = said["release"].partition(".")[0]  # testing and unstable have none
    if said["distribution"] != "debian" or (release.isdigit() and int(release) < DEBIAN_LEAST):
        return f"runs {said['os']}; a node is Debian ({DEBIAN_LEAST} or later)"
    if said["init"] != "systemd":
        return f"its init is {said['init']}; a node needs systemd"
    if not said["python"]:
        return "lacks python3, which Ansible needs; run there: apt-get install python3"
    return ""


def _clock(offset_s: float) -> str:
    if offset_s <= CLOCK_LIMIT_S:
        return ""
    return (
        f"its clock is {offset_s:.1f} s off: no trial would be valid (C4); run NTP there and here, as with "
        "timedatectl set-ntp true"
    )


def _belongs(owner: str) -> str:
    return (
        f"belongs to another deployment ({owner}); end it there with ntier down --target hosts; if that deployment no "
        f"longer exists, undo on this machine as root what it made there: {UNDO}, or rm -r {existing.HOME} if nothing "
        "was deployed"
    )


def _foreign(said: dict[str, str], owner: str, strangers: Strangers) -> str:
    """A service or data that we did not bring, or another deployment."""
    if said["owner"] == owner:
        return ""
    if said["owner"]:
        return _belongs(said["owner"])
    if said["databases"].strip():
        return f"holds databases that are not ours ({said['databases'].strip()}): not touched; use another machine"
    programs = [p for p in strangers.services if _runs(p, said)]
    ports = sorted({int(p, 16) for p in said["listening"].split()} & strangers.ports)
    if programs or ports:
        what = [f"{p} runs" for p in programs] + [f"something listens on port {p}" for p in ports]
        return f"{', '.join(what)}, not started by this project: not taken over; stop it, or use another machine"
    return ""
