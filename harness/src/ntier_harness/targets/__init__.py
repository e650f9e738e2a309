"""Places where nodes run. `Target` is all that the rest of the harness knows of one."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ntier_harness.errors import RequestError, unknown

if TYPE_CHECKING:
    from ntier_analysis.contracts.nodes import Node

    from ntier_harness.doctor import Finding
    from ntier_harness.lab import Lab
    from ntier_harness.paths import Paths
    from ntier_harness.runner import Runner
    from ntier_harness.spec import Spec
    from ntier_harness.ssh import Nodes

NAMES = ("local", "hosts", "hcloud", "openstack")
"""The first one is the default."""


@dataclass(frozen=True)
class Reading:
    """CPU of a node since the reading before. `t_s`: when it was taken (epoch); `share`: of its capacity, 0..1, by
    rounding and timing at times a little more."""

    t_s: float
    share: float


class Observation(Protocol):
    """Watches the nodes from this machine while a trial runs."""

    collectors: list[str]
    """Names of the collectors of the machine beneath the nodes; empty if there is none."""

    def problem(self) -> str | None:
        """Why the observation cannot go on; None if it can."""

    def busy(self) -> dict[str, Reading]:
        """The newest reading of each node that has one. Never older than a few seconds."""

    def stop(self) -> None:
        """Ends its programs; may be called twice."""

    def finish(self) -> None:
        """Brings its files into the form that the contract asks for. Raises WorkError."""


class Target(Protocol):
    """One place to run: says what may be asked of it, provisions nodes, limits them if it can, and sees from outside
    whether they live. Each is a module of this package, with its class as `TARGET`, and a root in `terraform/targets`;
    no other module knows a target by name, except `paths`, where `local` keeps the data of its images."""

    name: str
    own_machines: bool
    """Whether each node is a machine of its own, without a quota; else this machine carries them all."""
    root: Path
    """Its Terraform root."""
    terraform: str
    playbooks: tuple[str, ...]
    """What deploys the system; what verifies it is the system's."""

    # ---- what is known before anything of it is made

    needs_inventory: bool
    """Whether its machines are named by a file (--hosts)."""
    scaled: bool
    """Whether nodes are parts of machines, whose size the scale gives."""

    @staticmethod
    def parse_scale(text: str, cores: int, shares: float) -> float:
        """The scale of a request: `auto` or a number, `cores` of this machine, `shares` of all nodes together. Raises
        RequestError."""

    @staticmethod
    def images(spec: Spec) -> tuple[str, ...]:
        """Images that set-up must have made for a request: names of `setup/images`; may be empty."""

    def check(self, spec: Spec) -> None:
        """Preflight: raises RequestError unless the nodes can be made, and carried, as the request says."""

    def demand(self, spec: Spec) -> dict[str, Any]:
        """What the nodes take of this machine, for the plan: {cores, memory_bytes}; None where they take nothing."""

    def problems(self, spec: Spec) -> list[str]:
        """What may make trials invalid but does not forbid them."""

    def doctor(self, lab: Lab) -> list[Finding]:
        """What this machine has and lacks for it."""

    # ---- what it costs; `free.Free` has the answers of a target that rents nothing

    rents: bool
    """Whether its machines are rented."""
    keeps_snapshots: bool
    """Whether snapshots of them can be made."""

    def price(self, spec: Spec, seconds: float) -> dict[str, Any] | None: ...

    def price_of_all(self, legs: list[tuple[Spec, float]], work: str) -> dict[str, Any] | None: ...

    def rent(self) -> dict[str, Any] | None: ...

    def begin(self, work: str) -> None: ...

    def afford(self, seconds: float) -> None: ...

    def over(self) -> bool: ...

    def stay(self) -> None:
        """Nodes that would end by themselves while nobody is there do not, as long as this process lives. Raises
        RequestError if they are another deployment's by now."""

    def remarks(self) -> list[str]: ...

    def still_rented(self) -> str: ...

    def give_back(self) -> bool: ...

    def kept(self) -> str: ...

    # ---- what there is

    def require_privileges(self) -> None:
        """Raises RequestError unless this process may do what the target needs."""

    def require_answer(self) -> None:
        """Raises Unanswered unless the service that makes the nodes answers, so that it is said once and first."""

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

    def cpu_ticks(self, nodes: Nodes) -> dict[str, list[int]]:
        """Machine -> ticks of all its cores since boot: user, nice, system, idle, iowait, irq, softirq, steal. It
        covers the machines whose stolen time check H2 examines."""

    def stays_awake(self) -> bool:
        """Whether the machine's CPUs are kept from halting in a trial (awake.py)."""

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


def kind(name: str) -> type[Target]:
    """The class of a target. Raises RequestError if there is none of that name."""
    if name not in NAMES:
        raise unknown("target", name, NAMES)
    return import_module(f"{__name__}.{name}").TARGET


def make_target(
    name: str,
    runner: Runner,
    paths: Paths,
    hosts: str | None,
    machines: str | None = None,
    budget: str | None = None,
) -> Target:
    """`hosts`: the file that names its machines. `machines`, `budget`: what is rented, and for how much at most. Raises
    RequestError."""
    target = kind(name)
    if hosts and not target.needs_inventory:
        raise RequestError(
            f"hosts: target {name} takes no inventory ({hosts!r}); give --target {able('needs_inventory')}"
        )
    for option, value in (("machines", machines), ("budget", budget)):
        if value and not target.rents:
            raise RequestError(f"{option}: target {name} rents no machines; give --target {able('rents')}")
    if target.rents:
        return target(runner, paths, Path(machines) if machines else None, budget)
    return target(runner, paths, Path(hosts) if hosts else None)


def able(what: str) -> str:
    """Names of the targets that have this, for messages."""
    return " or ".join(name for name in NAMES if getattr(kind(name), what))
