"""Commands on the nodes over multiplexed SSH: one connection per node, opened once, some milliseconds per command."""

from __future__ import annotations

import contextlib
import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.nodes import Node

from ntier_harness.errors import RequestError, WorkError
from ntier_harness.paths import Paths
from ntier_harness.runner import Done, Runner, Spawned

CLOCK_EXCHANGES = 20
CONNECT_S = 5
SADC_PLACES = "/usr/libexec/sysstat:/usr/lib/sysstat:/usr/lib64/sa:/usr/lib/sa"
"""Where distributions keep sadc: Debian 13, earlier ones, Red Hat's and SUSE's, Arch and Alpine."""
ALONE = ("-oControlMaster=no", "-oControlPath=none")
"""A connection of its own; before all other options, since SSH takes the first value that it meets."""


@dataclass(frozen=True)
class Access:
    """How SSH reaches one machine. Without `key_file` SSH offers what it has (agent, ~/.ssh)."""

    host: str
    known_hosts: str
    """File with the host's key; hosts that are not in it are refused."""
    user: str = "root"
    port: int = 22
    key_file: str | None = None
    home: str | None = None
    """Folder of our programs (bin, lib, etc) where the machine is not ours; None: they are in their usual places."""

    @property
    def destination(self) -> str:
        return f"{self.user}@{self.host}"

    def as_root(self, command: str) -> str:
        """`command` for root's shell, by sudo where another user logs in."""
        if self.home:
            where = f"NTIER_ETC={self.home}/etc NTIER_LIB={self.home}/lib"
            command = f'export PATH={self.home}/bin:"$PATH":{SADC_PLACES} {where}; {command}'
        return command if self.user == "root" else f"sudo -n -- sh -c {shlex.quote(command)}"


def options(access: Access, paths: Paths) -> list[str]:
    """SSH's settings towards one machine; the person's own configuration is not read, the host's key always checked."""
    settings = {
        "BatchMode": "yes",
        "ConnectTimeout": CONNECT_S,
        "ControlPath": paths.ssh / "cm-%C",
        "GlobalKnownHostsFile": "/dev/null",
        "LogLevel": "ERROR",
        "ServerAliveCountMax": 3,
        "ServerAliveInterval": 5,
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": access.known_hosts,
    }
    if access.key_file:
        settings |= {"IdentitiesOnly": "yes", "IdentityFile": access.key_file}
    port = ["-p", str(access.port)] if access.port != 22 else []
    return ["-F", "none", *(f"-o{k}={v}" for k, v in settings.items()), *port]


SOCKET_MOST = 107
"""Bytes of a path of a Unix socket."""


def check_place(paths: Paths) -> None:
    """Raises RequestError for a folder of state that SSH cannot work with: its socket there is `cm-`, 40 digits of a
    digest, and 17 letters while it is made."""
    room = SOCKET_MOST - len("/cm-") - 40 - 17 - len(str(paths.ssh)) + len(str(paths.state))
    text = str(paths.state)
    if len(text.encode()) > room:
        raise RequestError(f"NTIER_STATE: {text} is too long for SSH's sockets in it; allowed are {room} bytes")
    check_path("NTIER_STATE", text)


def check_path(key: str, text: str) -> None:
    """Raises RequestError for a path that SSH's settings would not take as it is: there, and where Ansible hands them
    to SSH, blanks end a value, quotes begin one, and % and $ stand for something else."""
    if wrong := next((c for c in text if c.isspace() or c in "%$'\"\\"), ""):
        raise RequestError(f"{key}: {text} has {wrong!r} in it, which SSH's settings do not take; give another path")


def read_access(paths: Paths) -> dict[str, Access]:
    """Node -> access, as the target wrote it; empty if all nodes are reached in the usual way."""
    try:
        return {name: Access(**fields) for name, fields in json.loads(paths.access.read_text()).items()}
    except FileNotFoundError:
        return {}


class Nodes:
    """The nodes of the deployment in force."""

    def __init__(self, runner: Runner, paths: Paths, nodes: list[Node]) -> None:
        self.runner = runner
        self.paths = paths
        self.all = nodes
        self._access: dict[str, Access] | None = None
        self.clients = [n for n in nodes if n.tier == "client"]
        self.servers = [n for n in nodes if n.tier != "client"]

    def tier(self, tier: str) -> list[Node]:
        return [n for n in self.all if n.tier == tier]

    def argv(self, node: Node, command: str, *, shared: bool = True) -> list[str]:
        """`shared`: over the connection that a run has open, which ends with it."""
        access = self.access(node)
        alone = () if shared else ALONE
        return ["ssh", *alone, *options(access, self.paths), access.destination, access.as_root(command)]

    def access(self, node: Node) -> Access:
        if self._access is None:
            self._access = read_access(self.paths)
        usual = Access(
            node.address, known_hosts=str(self.paths.known_hosts), key_file=str(self.paths.ssh / "id_ed25519")
        )
        return self._access.get(node.name, usual)

    def connect(self) -> None:
        """Opens the connection to every node that has none. Raises WorkError naming the node that does not answer."""

        def open_master(node: Node) -> None:
            access = self.access(node)
            common = options(access, self.paths)
            check = ["ssh", *common, "-O", "check", access.destination]
            if self.runner.run(check, check=False, timeout=10).code == 0:
                return
            # -f and no output of its own: a master that kept our pipes open would never let us see the end of the call.
            # auto: with "yes" SSH leaves the socket of a master that was killed in place, and then shares nothing.
            log = self.paths.logs / "ssh.log"
            master = ["ssh", *common, "-oControlMaster=auto", "-oControlPersist=600", "-fN", "-E", str(log)]
            done = self.runner.run([*master, access.destination], check=False, timeout=3 * CONNECT_S)
            if done.code:
                raise WorkError(f"{node.name} ({node.address}) does not answer by SSH: see {log}")

        self.runner.parallel(open_master, self.all)

    def disconnect(self) -> None:
        def close_master(node: Node) -> None:
            access = self.access(node)
            argv = ["ssh", *options(access, self.paths), "-O", "exit", access.destination]
            self.runner.run(argv, check=False, timeout=10)

        with contextlib.suppress(WorkError):
            self.runner.parallel(close_master, self.all)

    def call(
        self, node: Node, command: str, *, input: str | bytes | None = None, timeout: float = 60, check: bool = True
    ) -> Done:
        """Runs a command on a node. Raises WorkError naming the node and the command (its first part)."""
        short = command.partition(" && ")[0]
        try:
            done = self.runner.run(self.argv(node, command), input=input, timeout=timeout, check=False)
        except WorkError:
            raise WorkError(f"{node.name}: {short}: no answer within {timeout:g} s") from None
        if check and done.code:
            raise WorkError(f"{node.name}: {short}: {done.problem}")
        return done

    def spawn(self, node: Node, command: str, output: Path) -> Spawned:
        """Starts a command on a node. `output` gets what it prints and nothing of SSH's own, which ssh.log gets."""
        return self.runner.spawn(self.argv(node, command), output, self.paths.logs / "ssh.log")

    def fetch(self, node: Node, command: str, file: Path, timeout: float) -> None:
        """Output of a command on a node, to a file here."""
        try:
            self.runner.fetch(self.argv(node, command), file, timeout)
        except WorkError as error:
            raise WorkError(f"{node.name}: {error}") from None

    def facts(self, node: Node) -> dict[str, Any]:
        """What `ntier-node facts` says: boot id, services with pids and starts, kernel, packages."""
        return _facts(node, self.call(node, "ntier-node facts", timeout=20).out)

    def facts_and_clock(self, node: Node, before: str = "") -> tuple[dict[str, Any], float, float]:
        """Facts, and (offset, round trip) of the node's clock against ours, s: the exchange with the smallest round
        trip of CLOCK_EXCHANGES; the offset is known to half of it. One call for both, and for a command of ntier-node
        `before` them that prints nothing."""
        (out,), offset, trip = self._after(node, f"{before} facts", 1)
        return _facts(node, out), offset, trip

    def start_collectors(
        self, node: Node, directory: str, *, reset: bool
    ) -> tuple[list[str], tuple[dict[str, Any], float, float]]:
        """Starts the node's collectors, which write to `directory` there, after a reset where that is asked for. Their
        names; facts and clock after it. One call for all: each begins with the start of an interpreter."""
        (*_, started, out), offset, trip = self._after(node, f"{'reset ' * reset}start {directory} facts", 2 + reset)
        return json.loads(started)["collectors"], (_facts(node, out), offset, trip)

    def _after(self, node: Node, commands: str, lines: int) -> tuple[list[str], float, float]:
        """What commands of ntier-node print, then the clock: Runner.exchange."""
        argv = self.argv(node, f"exec ntier-node {commands.strip()} clock")
        try:
            return self.runner.exchange(argv, CLOCK_EXCHANGES, lines)
        except WorkError as error:
            raise WorkError(f"{node.name}: {error}") from None


def _facts(node: Node, out: str) -> dict[str, Any]:
    try:
        return json.loads(out)
    except ValueError:
        raise WorkError(f"{node.name}: ntier-node facts did not print JSON: {out[:200]!r}") from None
