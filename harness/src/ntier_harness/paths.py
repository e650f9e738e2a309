"""Where things are: the checkout, the machine-wide state with a folder for each target, the results."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ntier_harness.errors import RequestError


@dataclass(frozen=True)
class Paths:
    """`state` is machine-wide, since Incus is: a fresh clone must find the nodes that another one made. `target` names
    the folder of the deployment in it: deployments of two targets know nothing of each other."""

    root: Path
    state: Path
    results: Path
    target: str = "local"

    @classmethod
    def find(cls, results: str = "results", target: str = "local") -> Paths:
        """Raises RequestError for a checkout or a state whose place depends on where the command is given: set-up,
        Terraform and Ansible work in other folders."""
        root = Path(os.environ.get("NTIER_ROOT") or Path(__file__).resolve().parents[3])
        state = Path(os.environ.get("NTIER_STATE") or "/var/lib/ntier")
        for name, path in (("NTIER_ROOT", root), ("NTIER_STATE", state)):
            if not path.is_absolute():
                raise RequestError(
                    f"{name}: {str(path)!r} is not an absolute path; allowed are those that begin with /"
                )
        return cls(root, state, root / results, target)

    @property
    def raw(self) -> Path:
        return self.results / "raw"

    @property
    def workloads(self) -> Path:
        return self.root / "workloads"

    @property
    def jmeter(self) -> Path:
        """JMeter with its plug-in, as set-up makes it."""
        return self.root / "build" / "jmeter"

    @property
    def place(self) -> Path:
        """What is known of this target's deployment."""
        return self.state / self.target

    @property
    def nodes(self) -> Path:
        return self.place / "nodes.json"

    @property
    def access(self) -> Path:
        """How SSH reaches each node, where it is not the usual way: {node: fields of `ssh.Access`}."""
        return self.place / "access.json"

    @property
    def machine(self) -> Path:
        """Ansible's variables of a target whose nodes are machines of their own."""
        return self.place / "machine.json"

    @property
    def data(self) -> Path:
        """Folders of generated data, each with `data.json`. Those of images stand apart: all deployments use them."""
        return self.state / "data" if self.target == "local" else self.place / "data"

    @property
    def known_hosts(self) -> Path:
        return self.place / "known_hosts"

    @property
    def secrets(self) -> Path:
        return self.place / "secrets.yml"

    @property
    def deployment(self) -> Path:
        return self.place / "deployment.json"

    @property
    def install_digests(self) -> Path:
        """Digest of each role's installation, from set-up: what the images already have is not installed again."""
        return self.place / "install_digests.json"

    @property
    def in_force(self) -> Path:
        """What was deployed and warmed up, written when it is done: {digest, warm, ...}."""
        return self.place / "in_force.json"

    @property
    def deploying(self) -> Path:
        """There while a deployment replaces one that was in force: if it ends early, services may still run with what
        was configured before."""
        return self.place / "deploying"

    @property
    def noted(self) -> Path:
        """Options that the nodes were made with."""
        return self.place / "up.json"

    @property
    def written(self) -> Path:
        """There from when users of a sweep may change the data until they are restored for another: the sweep's folder,
        and the names of the nodes that hold the data, one in a line."""
        return self.place / "written"

    @property
    def lock(self) -> Path:
        return self.state / "lock"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def ssh(self) -> Path:
        return self.state / "ssh"


def nearest(path: Path) -> Path:
    """The path itself, or what there is of the folders above it, also for who may not look into all of them."""
    return next(p for p in (path, *path.parents) if os.path.lexists(p))
