"""Places where nodes run. `Target` is all that the rest of the harness knows of one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ntier_harness.errors import RequestError, unknown

if TYPE_CHECKING:
    from ntier_analysis.contracts.nodes import Node

    from ntier_harness.paths import Paths
    from ntier_harness.runner import Runner
    from ntier_harness.spec import Spec
    from ntier_harness.ssh import Nodes

NAMES = ("local", "hosts")
"""The first one is where nodes run unless told otherwise."""


class Observation(Protocol):
    """What looks at the nodes from here while a trial runs."""

    collectors: list[str]
    """Names of the collectors of the machine beneath the nodes; empty if there is none."""

    def problem(self) -> str | None:
        """Why the observation cannot go on; None if it can."""

    def busy(self) -> dict[str, float]:
        """Share of its capacity that each node used lately, 0..1, as far as it is known."""

    def stop(self) -> None:
        """Ends its programs; may be called twice."""

    def finish(self) -> None:
        """Brings its files into their stated form. Raises WorkError."""


class Target(Protocol):
    """One place to run: provisions nodes, limits them if it can, and sees from outside whether they live."""

    name: str
    own_machines: bool
    """Whether each node is a machine of its own, without a quota; else this machine carries them all."""
    root: Path
    """Its Terraform root."""
    terraform: str
    playbooks: tuple[str, ...]
    """What deploys the system; what verifies it is the system's."""

    def require_privileges(self) -> None:
        """Raises RequestError unless this process may do what the target needs."""

    def assignment(self, spec: Spec) -> dict[str, str]:
        """Node -> the machine it becomes, where there are machines to choose from. Raises RequestError."""

    def up(self, spec: Spec, log: Path) -> list[Node]:
        """Nodes as the topology says. Raises RequestError, WorkError."""

    def down(self, log: Path) -> None:
        """Ends the deployment. Raises WorkError."""

    def instances(self) -> dict[str, str]:
        """Nodes that are there and their status."""

    def cores(self, nodes: list[Node]) -> int:
        """Cores of the machine, or of the largest one: what the warm-up must be able to fill."""

    def guard(self, address: str, nodes: list[Node]) -> None:
        """Raises WorkError unless load may be sent to this address."""

    def set_limits(self, nodes: list[Node]) -> None: ...

    def lift_limits(self, nodes: list[Node]) -> None: ...

    def quota(self, node: Node) -> float | None:
        """Cores that the kernel allows the node now; None = no limit. Raises OSError if the node is gone."""

    def observe(self, directory: Path, remote: str, nodes: Nodes) -> Observation:
        """Begins to look at the nodes. `directory`: of the trial; `remote`: the trial's folder on each node."""

    def present(self, node: Node) -> bool:
        """Whether the node runs."""

    def newest(self, node: Node, directory: str) -> dict[str, float] | None:
        """Time of the last write (our clock, epoch s) to each file in a folder of the node; None if not known."""


def make_target(name: str, runner: Runner, paths: Paths, hosts: str | None) -> Target:
    """`hosts`: the inventory file of the target of that name. Raises RequestError."""
    if hosts and name != "hosts":
        raise RequestError(f"hosts: {hosts!r} is of no use to target {name}; give --target hosts")
    makers: dict[str, Callable[[], Any]] = {
        "local": lambda: _local(runner, paths),
        "hosts": lambda: _hosts(runner, paths, hosts),
    }
    if name not in NAMES:
        raise unknown("target", name, NAMES)
    return makers[name]()


def _local(runner: Runner, paths: Paths) -> Target:
    from ntier_harness.targets.local import Local

    return Local(runner, paths)


def _hosts(runner: Runner, paths: Paths, file: str | None) -> Target:
    from ntier_harness.targets.hosts import Hosts

    return Hosts(runner, paths, Path(file) if file else None)
