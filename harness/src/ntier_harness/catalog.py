"""What a system's load offers to a request: workloads (mixes), phases and, of every system, the types of nodes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from ntier_harness.errors import RequestError, unknown
from ntier_harness.files import Document, checked, read_json, read_yaml
from ntier_harness.mix_table import read_table
from ntier_harness.systems import System
from ntier_harness.systems.definition import MAX_PHASE_S, MIN_RUN_S, PhaseSeconds

SEARCHES = ("grid", "capacity")


@dataclass(frozen=True)
class Phases:
    """Seconds of ramp-up, run and ramp-down; `name` is the catalogue's or `a-b-c`."""

    name: str
    ramp_up_s: float
    run_s: float
    ramp_down_s: float

    @property
    def total_s(self) -> float:
        return self.ramp_up_s + self.run_s + self.ramp_down_s


@dataclass(frozen=True)
class Mix:
    """One workload of a system: mean think time, the response-time objective of goodput, whether it changes the data.

    Of a mix, `file` is its transition table; a share of its users may be authors, who walk a table of their own. They
    may have to start at home, since they are logged in nowhere else. Other workloads have `properties` for their driver
    instead."""

    name: str
    file: Path | None
    think_time_s: float
    slo_ms: float | None
    author_file: Path | None = None
    author_share: float = 0.0
    writes: bool = False
    authors_start_at_home: bool = False
    properties: dict[str, Any] = field(default_factory=dict, hash=False)


class _Phases(Document):
    """`phases_file`"""

    phases: dict[str, PhaseSeconds]
    default_phases: str


class _Description(Document):
    """`NAME.yaml` beside the transition table of a mix"""

    description: str = ""
    think_time_s: Annotated[float, Field(gt=0, le=3600)] | None = None
    slo_ms: Annotated[float, Field(gt=0)] | None = None
    author_table: str | None = None
    author_share: Annotated[float, Field(ge=0, le=1)] = 0.0
    authors_start_at_home: bool = False


_Number = Annotated[int | float, Field(gt=0, lt=1e18)]


class _NodeType(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, _Number]

    cpu_share: _Number


class _NodeTypes(Document):
    normal: _NodeType
    low_cost: _NodeType
    client: dict[str, _Number]


def _phases(system: System) -> _Phases:
    load = system.definition.load
    if load.phases_file:
        file = system.path(load.phases_file)
        return checked(_Phases, read_yaml(file)[0], file)
    assert load.default_phases is not None
    return _Phases(phases=load.phases, default_phases=load.default_phases)


def phase_names(system: System) -> dict[str, Phases]:
    """Named phases of a system."""
    return {name: Phases(name, *dict(seconds).values()) for name, seconds in _phases(system).phases.items()}


def default_phases(system: System) -> str:
    return _phases(system).default_phases


def parse_phases(text: str, system: System) -> Phases:
    """A name of the catalogue, or `ramp-up/run/ramp-down` in seconds."""
    known = phase_names(system)
    if text in known:
        return known[text]
    numbers = re.fullmatch(r"(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)", text)
    if not numbers:
        raise unknown("phases", text, known, ", or seconds as ramp-up/run/ramp-down: 20/40/5")
    up, run, down = (float(n) for n in numbers.groups())
    if run < MIN_RUN_S or max(up, run, down) > MAX_PHASE_S:
        raise RequestError(f"phases: {text!r}: run is {MIN_RUN_S:g}..{MAX_PHASE_S} s, the others 0..{MAX_PHASE_S} s")
    same = [p for p in known.values() if (p.ramp_up_s, p.run_s, p.ramp_down_s) == (up, run, down)]
    return same[0] if same else Phases(text.replace("/", "-"), up, run, down)


def node_types(root: Path) -> dict[str, dict[str, float]]:
    """What a node of each type has at scale 1: the file that Terraform's module reads."""
    file = root / "terraform/modules/topology/node_types.json"
    return checked(_NodeTypes, read_json(file), file).model_dump()


def mix_names(system: System) -> list[str]:
    load = system.definition.load
    return sorted(p.stem for p in system.path(load.mixes).glob("*.csv")) if load.mixes else list(load.workloads)


def read_mix(name: str, system: System) -> Mix:
    """One workload. Raises RequestError naming the file and what is wrong with it."""
    load = system.definition.load
    if name not in mix_names(system):
        raise unknown("mix", name, mix_names(system))
    if load.mixes:
        return _read_table(name, system, system.path(load.mixes))
    workload = load.workloads[name]
    slo_ms = workload.slo_ms or load.slo_ms
    think_time_s = workload.think_time_s or load.think_time_s
    return Mix(name, None, think_time_s, slo_ms, writes=workload.writes, properties=workload.properties)


def _read_table(name: str, system: System, folder: Path) -> Mix:
    load = system.definition.load
    file = folder / f"{name}.csv"
    described = file.with_suffix(".yaml")
    data = checked(_Description, (read_yaml(described)[0] or {}) if described.exists() else {}, described)
    if bool(data.author_table) != bool(data.author_share):
        raise RequestError(
            f"{described}: author_table: {data.author_table}, author_share: {data.author_share:g}; allowed are both "
            "(a share above 0), or none: no authors"
        )
    author_file = folder / data.author_table if data.author_table else None
    if author_file and not author_file.is_file():
        raise RequestError(f"{described}: author_table: {author_file} does not exist")
    if author_file and not author_file.resolve().is_relative_to(folder.resolve()):
        raise RequestError(f"{described}: author_table: {data.author_table} is not below {folder}")
    states = tuple(system.definition.interactions)
    tables = [read_table(table, states) for table in (file, author_file) if table]
    writing = {name for name, i in system.definition.interactions.items() if i.writes}
    return Mix(
        name, file, data.think_time_s or load.think_time_s, data.slo_ms or load.slo_ms,
        author_file, data.author_share,
        writes=bool(writing & {to for table in tables for targets in table.values() for to in targets}),
        authors_start_at_home=data.authors_start_at_home,
    )  # fmt: skip
