"""The part of a target that rents machines which is about reaching them: keys, addresses, the first boot, and the word
that the controller is still there."""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import json
import os
import re
import threading
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.files import read_json
from ntier_analysis.contracts.nodes import Node

from ntier_harness import durable
from ntier_harness.errors import Interrupted, RequestError, WorkError
from ntier_harness.paths import Paths
from ntier_harness.runner import Runner
from ntier_harness.spec import Spec
from ntier_harness.ssh import ALONE, CONNECT_S, Access, Nodes, options
from ntier_harness.targets.inventory import Host, wanted_nodes
from ntier_harness.targets.terraform import Terraform

ANYWHERE = "0.0.0.0/0"
BOOT_S = 300.0
ALIVE_S = 600.0
"""How often machines are told that the controller is there."""
SILENT_S = 3600.0
"""After how long without a word a machine shuts down. The same for all sweeps: it is in the user data, and
machines with other user data would be made anew."""
ALIVE = "systemctl restart ntier-expiry.timer 2>/dev/null; true"
BOOTED = """if command -v cloud-init >/dev/null; then cloud-init status --wait >/dev/null 2>&1; fi
echo "from=${SSH_CONNECTION%% *}" """


def _network(text: str) -> str:
    """An IPv4 network as the providers take it; an address is one of its own. The machines have IPv4 only."""
    try:
        return str(ipaddress.IPv4Network(text))
    except ValueError as error:
        raise RequestError(
            f"NTIER_CONTROLLER: {text!r} is no IPv4 network ({error}); allowed are such as 203.0.113.0/24, with commas"
        ) from None


class Reaching:
    """What is known of a rental is kept in files of its place, so that any later command reaches its machines."""

    user = "root"
    runner: Runner
    paths: Paths
    _terraform: Terraform
    _alive: threading.Event | None = None

    @property
    def key(self) -> Path:
        return self.paths.place / "id_ed25519"

    @property
    def host_keys(self) -> Path:
        return self.paths.place / "host_keys"

    @property
    def controller_file(self) -> Path:
        return self.paths.place / "controller.json"

    def read(self, name: str, otherwise: Any) -> Any:
        try:
            return read_json(self.paths.place / name)
        except (OSError, ValueError):
            return otherwise

    def make_keys(self, spec: Spec) -> None:
        """Our key, and a host key for each node, so that no first connection is blind. Anew if half of one is missing,
        or empty, as a full disk leaves it."""
        self.host_keys.mkdir(parents=True, exist_ok=True, mode=0o700)
        for file in (self.key, *(self.host_keys / name for name, _, _ in wanted_nodes(spec))):
            halves = (file, file.with_name(f"{file.name}.pub"))
            if not all(half.exists() and half.stat().st_size for half in halves):
                for half in halves:
                    half.unlink(missing_ok=True)
                self.runner.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", file.name, "-f", str(file)])

    def write_access(self) -> None:
        """How SSH reaches each node, and the one host key that is taken for it."""
        addresses: dict[str, str] = self._terraform.outputs["ssh"]
        lines = [
            f"{address} {' '.join((self.host_keys / f'{name}.pub').read_text().split()[:2])}\n"
            for name, address in addresses.items()
        ]
        durable.write(self.paths.known_hosts, "".join(lines))
        access = {name: dataclasses.asdict(self._access(address)) for name, address in addresses.items()}
        durable.write(self.paths.access, json.dumps(access, indent=1))

    def _access(self, address: str) -> Access:
        return Access(address, str(self.paths.known_hosts), self.user, key_file=str(self.key))

    def hosts(self, nodes: list[Node]) -> dict[str, Host]:
        addresses: dict[str, str] = self._terraform.outputs["ssh"]
        return {n.name: Host(n.address, self._access(addresses[n.name])) for n in nodes}

    def controllers(self) -> list[str]:
        """Networks that SSH is let in from: NTIER_CONTROLLER, or the address that the machines saw us come from; at
        first, any. Raises RequestError for what is no network."""
        given = os.environ.get("NTIER_CONTROLLER")
        return (
            [_network(text.strip()) for text in given.split(",")] if given else self.read("controller.json", [ANYWHERE])
        )

    def boot(self, hosts: dict[str, Host]) -> dict[str, str | None]:
        """Waits until every machine's first boot is done, BOOT_S at most. Node -> our address as it sees it; None: it
        is silent."""
        end = self.runner.monotonic() + BOOT_S

        def one(host: Host) -> str | None:
            argv = ["ssh", *ALONE, *options(host.access, self.paths), host.access.destination]
            while True:
                with contextlib.suppress(WorkError):
                    left = max(2.0 * CONNECT_S, end - self.runner.monotonic())
                    done = self.runner.run([*argv, BOOTED], check=False, timeout=left)
                    if done.code == 0 and (match := re.search(r"^from=(\S+)$", done.out, re.M)):
                        return match[1]
                if self.runner.monotonic() >= end:
                    return None
                self.runner.sleep(2.0)

        return dict(zip(hosts, self.runner.parallel(one, hosts.values()), strict=True))

    def learn(self, said: dict[str, str | None]) -> None:
        seen = sorted({f"{address}/32" for address in said.values() if address and ":" not in address})
        if seen and not set(seen) <= set(self.controllers()):
            durable.write(self.controller_file, json.dumps(seen))

    def keep_alive(self) -> None:
        """Tells the machines every ALIVE_S that we are there, as long as this process lives."""
        if self._alive is not None:
            return
        self._alive = end = threading.Event()

        def tell() -> None:
            while not end.wait(ALIVE_S):
                with contextlib.suppress(WorkError, Interrupted, OSError, ValueError):
                    self.say_that_we_are_there(Nodes(self.runner, self.paths, self._nodes()))

        threading.Thread(target=tell, daemon=True).start()

    def say_that_we_are_there(self, nodes: Nodes) -> None:
        self.runner.parallel(lambda n: nodes.call(n, ALIVE, check=False), nodes.all)

    def fall_silent(self) -> None:
        if self._alive is not None:
            self._alive.set()
            self._alive = None
