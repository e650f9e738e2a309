"""Names that a request may use: phases, mixes, loads (data in `workloads/`), targets, data profiles."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ntier_harness.errors import RequestError, unknown
from ntier_harness.files import Document, checked, read_json, read_yaml
from ntier_harness.mix_table import read_table

TARGETS = ("local", "hosts")
PROFILES = ("tiny", "small", "standard", "expanded")
SEARCHES = ("grid", "capacity")
SUPPORTED_DBMS = {"M": "MySQL", "P": "PostgreSQL"}
DEFAULT_MIX = "browse_only"
DEFAULT_PROFILE = "small"
WRITING = {"RegisterUser", "StoreComment", "StoreModerateLog", "StoreStory", "AcceptStory", "RejectStory"}
PLAN = "rubbos.jmx"
ENTRY = ("web", 80, "/rubbos")
"""Tier, port and first part of the path where the load goes."""
MAX_PHASE_S = 86_400
MIN_RUN_S = 5.0  # below this no check of the run phase can be decided


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
    """What the harness needs to know of a mix: its tables, mean think time and the response-time objective of goodput.
    A share of the users may be authors, who walk a table of their own."""

    name: str
    file: Path
    think_time_s: float
    slo_ms: float | None
    author_file: Path | None = None
    author_share: float = 0.0

    @cached_property
    def writes(self) -> bool:
        """Whether its users change the data."""
        tables = [read_table(file, _plan(self.file.parents[1])) for file in (self.file, self.author_file) if file]
        return bool(WRITING & {to for table in tables for targets in table.values() for to in targets})


class _Seconds(Document):
    ramp_up_s: Annotated[float, Field(ge=0, le=MAX_PHASE_S)]
    run_s: Annotated[float, Field(ge=MIN_RUN_S, le=MAX_PHASE_S)]
    ramp_down_s: Annotated[float, Field(ge=0, le=MAX_PHASE_S)]


class _Loads(Document):
    """`workloads/phases.yaml`"""

    phases: dict[str, _Seconds]
    default_phases: str
    default_users: str


class _Description(Document):
    """`workloads/mixes/NAME.yaml`"""

    description: str = ""
    think_time_s: Annotated[float, Field(gt=0, le=3600)] = 7.0
    slo_ms: Annotated[float, Field(gt=0)] | None = None
    author_table: str | None = None
    author_share: Annotated[float, Field(ge=0, le=1)] = 0.0


_Number = Annotated[int | float, Field(gt=0, lt=1e18)]


class _NodeType(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, _Number]

    cpu_share: _Number


class _NodeTypes(Document):
    normal: _NodeType
    low_cost: _NodeType
    client: dict[str, _Number]


def _plan(workloads: Path) -> Path:
    return workloads / PLAN


def _loads(workloads: Path) -> _Loads:
    file = workloads / "phases.yaml"
    return checked(_Loads, read_yaml(file)[0], file)


def phase_names(workloads: Path) -> dict[str, Phases]:
    """Named phases of `workloads/phases.yaml`."""
    return {name: Phases(name, *dict(seconds).values()) for name, seconds in _loads(workloads).phases.items()}


def default(workloads: Path, key: str) -> str:
    """`default_phases` or `default_users` of `workloads/phases.yaml`."""
    return getattr(_loads(workloads), key)


def parse_phases(text: str, workloads: Path) -> Phases:
    """A name of the catalogue, or `ramp-up/run/ramp-down` in seconds."""
    known = phase_names(workloads)
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


def mix_names(workloads: Path) -> list[str]:
    return sorted(p.stem for p in (workloads / "mixes").glob("*.csv"))


def read_mix(name: str, workloads: Path) -> Mix:
    names = mix_names(workloads)
    if name not in names:
        raise unknown("mix", name, names)
    file = workloads / "mixes" / f"{name}.csv"
    described = file.with_suffix(".yaml")
    data = checked(_Description, (read_yaml(described)[0] or {}) if described.exists() else {}, described)
    author_file = workloads / "mixes" / data.author_table if data.author_table else None
    if author_file and not author_file.is_file():
        raise RequestError(f"{described}: author_table: {author_file} does not exist")
    if author_file and not author_file.resolve().is_relative_to((workloads / "mixes").resolve()):
        raise RequestError(f"{described}: author_table: {data.author_table} is not below {workloads / 'mixes'}")
    for table in filter(None, (file, author_file)):
        read_table(table, _plan(workloads))
    return Mix(name, file, data.think_time_s, data.slo_ms, author_file, data.author_share if author_file else 0.0)
