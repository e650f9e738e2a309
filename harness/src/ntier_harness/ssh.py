"""Commands on the nodes over multiplexed SSH: one connection per node, opened once, some milliseconds per command."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.nodes import Node

from ntier_harness.errors import WorkError
from ntier_harness.paths import Paths
from ntier_harness.runner import Done, Runner, Spawned

CLOCK_EXCHANGES = 20
CONNECT_S = 5


class Nodes:
    """The nodes of the deployment in force."""

    def __init__(self, runner: Runner, paths: Paths, nodes: list[Node]) -> None:
        self.runner = runner
        self.paths = paths
        self.all = nodes
        self.clients = [n for n in nodes if n.tier == "client"]
        self.servers = [n for n in nodes if n.tier != "client"]

    def tier(self, tier: str) -> list[Node]:
        return [n for n in self.all if n.tier == tier]

    def _options(self) -> list[str]:
        settings = {
            "BatchMode": "yes",
            "ConnectTimeout": CONNECT_S,
            "ControlPath": self.paths.ssh / "cm-%C",
            "GlobalKnownHostsFile": "/dev/null",
            "IdentitiesOnly": "yes",
            "IdentityFile": self.paths.ssh / "id_ed25519",
            "LogLevel": "ERROR",
            "ServerAliveCountMax": 3,
            "ServerAliveInterval": 5,
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": self.paths.known_hosts,
        }
        return ["-F", "none", *(f"-o{k}={v}" for k, v in settings.items())]

    def argv(self, node: Node, command: str) -> list[str]:
        return ["ssh", *self._options(), f"root@{node.address}", command]

    def connect(self) -> None:
        """Opens the connection to every node that has none. Raises WorkError naming the node that does not answer."""

        def one(node: Node) -> None:
            check = ["ssh", *self._options(), "-O", "check", f"root@{node.address}"]
            if self.runner.run(check, check=False, timeout=10).code == 0:
                return
            # -f and no output of its own: a master that kept our pipes open would never let us see the end of the call
            log = self.paths.logs / "ssh.log"
            master = ["ssh", *self._options(), "-oControlMaster=yes", "-oControlPersist=600", "-fN", "-E", str(log)]
            done = self.runner.run([*master, f"root@{node.address}"], check=False, timeout=3 * CONNECT_S)
            if done.code:
                raise WorkError(f"{node.name} ({node.address}) does not answer by SSH: see {log}")

        self.runner.parallel(one, self.all)

    def disconnect(self) -> None:
        def one(node: Node) -> None:
            self.runner.run(["ssh", *self._options(), "-O", "exit", f"root@{node.address}"], check=False, timeout=10)

        with contextlib.suppress(WorkError):
            self.runner.parallel(one, self.all)

    def call(
        self, node: Node, command: str, *, input: str | None = None, timeout: float = 60, check: bool = True
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
        return self.runner.spawn(self.argv(node, command), output)

    def fetch(self, node: Node, command: str, file: Path, timeout: float) -> None:
        """Output of a command on a node, to a file here."""
        try:
            self.runner.fetch(self.argv(node, command), file, timeout)
        except WorkError as error:
            raise WorkError(f"{node.name}: {error}") from None

    def facts(self, node: Node) -> dict[str, Any]:
        """What `ntier-node facts` says: boot id, services with pids and starts, versions."""
        out = self.call(node, "ntier-node facts", timeout=20).out
        try:
            return json.loads(out)
        except ValueError:
            raise WorkError(f"{node.name}: ntier-node facts did not print JSON: {out[:200]!r}") from None

    def clock(self, node: Node) -> tuple[float, float]:
        """(offset, round trip) of the node's clock against ours, s: the exchange with the smallest round trip of
        CLOCK_EXCHANGES; the offset is known to half of it."""
        return self.runner.exchange(self.argv(node, "ntier-node clock"), CLOCK_EXCHANGES)
