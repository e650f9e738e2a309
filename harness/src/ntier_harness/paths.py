"""Where things are: the checkout, the machine-wide state of the local target, the results."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Paths:
    """`state` is machine-wide, since Incus is: a fresh clone must find the nodes that another one made."""

    root: Path
    state: Path
    results: Path

    @classmethod
    def find(cls, results: str = "results") -> Paths:
        root = Path(os.environ.get("NTIER_ROOT") or Path(__file__).resolve().parents[3])
        state = Path(os.environ.get("NTIER_STATE") or "/var/lib/ntier")
        return cls(root, state, root / results)

    @property
    def raw(self) -> Path:
        return self.results / "raw"

    @property
    def workloads(self) -> Path:
        return self.root / "workloads"

    @property
    def local(self) -> Path:
        return self.state / "local"

    @property
    def nodes(self) -> Path:
        return self.local / "nodes.json"

    @property
    def known_hosts(self) -> Path:
        return self.local / "known_hosts"

    @property
    def secrets(self) -> Path:
        return self.local / "secrets.yml"

    @property
    def deployment(self) -> Path:
        return self.local / "deployment.json"

    @property
    def install_digests(self) -> Path:
        """Digest of each role's installation, from set-up: what the images already have is not installed again."""
        return self.local / "install_digests.json"

    @property
    def in_force(self) -> Path:
        """What was deployed and warmed up, written when it is done: {digest, warm, ...}."""
        return self.local / "in_force.json"

    @property
    def written(self) -> Path:
        """There from when users of a sweep (its folder) may change the data until they are restored for another."""
        return self.local / "written"

    @property
    def active(self) -> Path:
        """The trial that runs now and the processes it started: what a later run must clean up after a crash."""
        return self.local / "active.json"

    @property
    def lock(self) -> Path:
        return self.state / "lock"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def ssh(self) -> Path:
        return self.state / "ssh"
