"""What makes the load: programs on the client nodes that follow one contract (docs/drivers.md).

A driver here says which program runs and what it must know besides what every driver is told; `load.Generator` starts,
watches and ends any of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ntier_analysis.contracts.nodes import Node
from ntier_analysis.contracts.system import LoadModel

from ntier_harness.catalog import Phases

CONTRACT = 1
BIN = "/opt/ntier/bin"  # of a client node
REMOTE = "/run/ntier"  # of a node: folders of runs, and what lives from one to the next
TIERS_WITHOUT_LOAD = ("client",)


@dataclass(frozen=True)
class Entry:
    """Where the load goes: a tier, its port and the first part of each path."""

    tier: str
    port: int
    path: str = ""


@dataclass(frozen=True)
class Share:
    """One client's part of the load: workers `first` to `first + workers - 1`."""

    client: int
    clients: int
    workers: int
    first: int


@dataclass(frozen=True)
class Run:
    """One use of the load, by any driver: a trial or a warm-up. `workers` of all clients together: users of a closed
    load, streams of arrivals of an open load, or streams of pieces of work."""

    directory: str
    workers: int
    phases: Phases
    seed: int
    entry: Entry
    model: LoadModel = LoadModel.CLOSED
    think_time_s: float | None = None
    workload: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Variables of the system's load, the factor's value among them."""
    leavers: int = 0
    """Users of all clients who come beside the workers and leave during the ramp-up."""

    @property
    def start_file(self) -> str:
        """Where each client finds the common start."""
        return f"{self.directory}/start"


class Driver(Protocol):
    """A program that follows the contract."""

    @property
    def title(self) -> str:
        """What errors call it."""

    def command(self) -> list[str]:
        """Program and arguments on a client; the folder of the run comes last."""

    def prepare(self, run: Run) -> str:
        """Shell command on a client before the program starts, in its folder; empty: none."""

    def configuration(self, run: Run, share: Share) -> dict[str, Any]:
        """What `driver.json` has besides `told`."""


def split(workers: int, clients: int) -> list[Share]:
    """Shares of the clients; they differ by one worker at most. Raises ValueError if a client would have none."""
    if workers < clients:
        raise ValueError(f"{workers} users or workers for {clients} clients: each needs one at least")
    shares = [workers // clients + (i < workers % clients) for i in range(clients)]
    return [Share(i, clients, n, sum(shares[:i])) for i, n in enumerate(shares)]


def leaving(run: Run, share: Share) -> Share | None:
    """The client's part of the users who leave; their numbers begin after those of the workers. None: nobody
    leaves."""
    if not run.leavers:
        return None
    part = split(run.leavers, share.clients)[share.client]
    return replace(part, first=run.workers + part.first)


def told(run: Run, share: Share, nodes: list[Node]) -> dict[str, Any]:
    """What every driver is told. The seed is the same on all clients: a worker's draws follow from it and from the
    worker's number, so that they do not depend on the split."""
    tiers = dict.fromkeys(node.tier for node in nodes if node.tier not in TIERS_WITHOUT_LOAD)
    leave = leaving(run, share)
    who = {"workers": leave.workers, "first_worker": leave.first, "leave_s": run.phases.ramp_up_s / 2} if leave else {}
    return {
        "contract": CONTRACT,
        "load_model": run.model.value,
        "workload": run.workload,
        "client": share.client,
        "clients": share.clients,
        "workers": share.workers,
        "first_worker": share.first,
        "workers_total": run.workers,
        "seed": run.seed,
        "think_time_s": run.think_time_s,
        "phases": {
            "ramp_up_s": run.phases.ramp_up_s,
            "run_s": run.phases.run_s,
            "ramp_down_s": run.phases.ramp_down_s,
        },
        "entry": {
            "addresses": [node.address for node in nodes if node.tier == run.entry.tier],
            "port": run.entry.port,
            "path": run.entry.path,
        },
        "targets": {tier: [node.address for node in nodes if node.tier == tier] for tier in tiers},
        "parameters": dict(run.parameters),
    } | ({"leaving": who} if who else {})


@dataclass(frozen=True)
class Command:
    """Any program: `words` as it is called on a client; `parameters` are added to those of the run, which take
    precedence."""

    words: tuple[str, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return self.words[0].rpartition("/")[2]

    def command(self) -> list[str]:
        return list(self.words)

    def prepare(self, _run: Run) -> str:
        return ""

    def configuration(self, run: Run, _share: Share) -> dict[str, Any]:
        return {"parameters": dict(self.parameters) | dict(run.parameters)}
