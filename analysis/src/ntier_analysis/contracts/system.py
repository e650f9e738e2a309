"""What a trial's manifest says of the system under test: all that the analysis may know of it.

The harness takes it from `systems/<name>/system.yaml`; the analysis never reads that file. Tiers stand in order from
the users inwards: a cause is attributed to the deepest tier that has it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ntier_analysis.contracts.nodes import Name

Text = Annotated[str, Field(min_length=1, max_length=400)]
Positive = Annotated[float, Field(gt=0)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


NOT_TIERS = ("client", "host", "controller", "monitor", "management")
"""Where samples may come from that serve no requests; every other name is one of the system's tiers."""


class LoadModel(StrEnum):
    """How work arrives, which decides what reasoning holds.

    `closed`: a fixed number of users, who think between interactions. `open`: arrivals at a rate, whatever the system
    does. `work`: a fixed amount; the run ends when it is done."""

    CLOSED = "closed"
    OPEN = "open"
    WORK = "work"

    @property
    def who(self) -> str:
        """Who asks, in words."""
        return "workers" if self is LoadModel.WORK else "users"


class Replicas(StrEnum):
    """What the nodes of one tier do for each other.

    `balanced`: each interaction needs one of them, any will do. `partitioned`: each holds a part of the data.
    `all_write`: reads need one of them, writes need all."""

    BALANCED = "balanced"
    PARTITIONED = "partitioned"
    ALL_WRITE = "all_write"


class Tier(_Part):
    name: Name
    title: Text
    replicas: Replicas = Replicas.BALANCED
    most: int | None = None
    """Nodes that the system allows at most; None: not known."""


class Factor(_Part):
    """The variable that a sweep changes from trial to trial; all else stays."""

    name: Name
    title: Text
    unit: str = ""
    value: float


class Interaction(_Part):
    name: Text
    writes: bool = False
    slo_ms: Positive | None = None
    """Response-time objective, ms; None = that of the load."""
    rows: tuple[Text, ...] = ()
    """Tables; each interaction leaves exactly one row in one of them (check R1). Empty: that is not promised."""


class Resource(_Part):
    """What older records say is measured besides CPU, disk, network and memory of each node."""

    name: Name
    tier: Name
    utilization: Text
    """One sentence: what its utilization of 100 % means."""


@dataclass(frozen=True)
class Expectation:
    """`total(cache evictions_per_s) == 0`: what a measured quantity of a tier must be in the run phase of a trial."""

    function: str
    tier: str
    metric: str
    """As in the store: a counter `x_total` of a collector of the system's own is `x_per_s` there."""
    operator: str
    bound: float

    FUNCTIONS = ("total", "per_interaction", "highest", "lowest")
    OPERATORS = ("==", "<=", ">=", "<", ">")
    _FORM = re.compile(r"([a-z_]+)\(\s*([a-z][a-z0-9_]*)\s+([A-Za-z]\w*)\s*\)\s*(==|<=|>=|<|>)\s*([0-9.eE+-]+)")

    def __str__(self) -> str:
        return f"{self.function}({self.tier} {self.metric}) {self.operator} {self.bound:g}"

    @classmethod
    def parse(cls, text: str) -> Expectation:
        """Raises ValueError that names what is allowed."""
        match = cls._FORM.fullmatch(text.strip())
        try:
            if match and match[1] in cls.FUNCTIONS:
                return cls(match[1], match[2], match[3], match[4], float(match[5]))
        except ValueError:  # a number like 1.2.3
            pass
        raise ValueError(
            f"{text!r}: expected FUNCTION(TIER METRIC) OPERATOR NUMBER, for example total(db deadlocks_per_s) == 0; "
            f"functions are {', '.join(cls.FUNCTIONS)}, operators {' '.join(cls.OPERATORS)}"
        )


class OwnCheck(_Part):
    """A validity check that a system brings along."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    title: Text
    expect: Text
    """What must hold in the run phase: FUNCTION(TIER METRIC) OPERATOR NUMBER. `total` and `per_interaction` count the
    events of a rate (METRIC ends with _per_s; of the tier's nodes together), `highest` and `lowest` are readings."""
    required: bool = True
    """Whether a trial that fails it is invalid. If not, the report warns."""

    @model_validator(mode="after")
    def _readable(self) -> OwnCheck:
        wanted = self.wanted
        if wanted.function in ("total", "per_interaction") and not wanted.metric.endswith("_per_s"):
            raise ValueError(f"{wanted.function} counts events; {wanted.metric} does not end with _per_s")
        return self

    @property
    def wanted(self) -> Expectation:
        return Expectation.parse(self.expect)


class System(_Part):
    """One system under one load, as `Manifest.system`."""

    name: Name
    title: Text
    source: str = ""
    """Paper or URL."""
    tiers: Annotated[list[Tier], Field(min_length=1)]
    load_model: LoadModel
    factor: Factor
    scaled: bool = True
    """Whether the scale of the model multiplies the load as it does the nodes; if not, no figure is nominal."""
    interactions: list[Interaction] = Field(default_factory=list)
    """Empty: not known beforehand; those that the driver reports are taken as they come."""
    resources: list[Resource] = Field(default_factory=list)
    """In older records; nothing reads them. Pools are known by the names of their counters (systems/README.md)."""
    restores: bool | None = None
    """Whether its nodes can tell and restore what they hold, so that trials that write have it from before and after;
    None: not told (older records)."""
    checks_off: dict[str, Text] = Field(default_factory=dict)
    """Validity checks that do not apply to this system, with the reason; the report shows both."""
    checks_own: dict[Name, OwnCheck] = Field(default_factory=dict)
    """Validity checks of the system's own; their ids are `S.` and the name."""

    @model_validator(mode="after")
    def _names(self) -> System:
        tiers = [t.name for t in self.tiers]
        for kind, names in (("tiers", tiers), ("interactions", [i.name for i in self.interactions])):
            double = sorted({n for n in names if names.count(n) > 1})
            if double:
                raise ValueError(f"{kind}: {double[0]} is there twice")
        for resource in self.resources:
            if resource.tier not in tiers:
                raise ValueError(f"resources.{resource.name}: tier {resource.tier!r} is none of {', '.join(tiers)}")
        for name, check in self.checks_own.items():
            if check.wanted.tier not in tiers:
                raise ValueError(f"checks_own.{name}: tier {check.wanted.tier!r} is none of {', '.join(tiers)}")
        return self

    @property
    def order(self) -> tuple[str, ...]:
        """Names of the tiers from the users inwards."""
        return tuple(tier.name for tier in self.tiers)

    @property
    def depth(self) -> dict[str, int]:
        """Tier -> its place from the users inwards, from 0."""
        return {name: place for place, name in enumerate(self.order)}

    @property
    def writing(self) -> frozenset[str]:
        """Names of the interactions that write."""
        return frozenset(i.name for i in self.interactions if i.writes)

    @property
    def objectives(self) -> dict[str, float]:
        """Interaction -> its own response-time objective, ms; those without one have the load's."""
        return {i.name: i.slo_ms for i in self.interactions if i.slo_ms is not None}
