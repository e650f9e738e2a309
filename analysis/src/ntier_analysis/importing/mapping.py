"""The mapping from Prometheus' metrics to resources of tiers: a YAML file, or prometheus.yaml of this package, which
knows the usual exporters."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from ntier_analysis.contracts.files import read_yaml
from ntier_analysis.errors import DataError
from ntier_analysis.store.schema import RESOURCES

DEFAULT = Path(__file__).with_name("prometheus.yaml")


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{text[:40]!r} is no regular expression ({error})") from None
    return text


def _resource(text: str) -> str:
    if text not in RESOURCES:
        raise ValueError(f"{text[:40]!r} is none of {', '.join(RESOURCES)}")
    return text


Name = Annotated[str, Field(pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:.]*$", max_length=200)]
Pattern = Annotated[str, Field(max_length=400), AfterValidator(_regex)]
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=100)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Term(_Part):
    """Series of one metric, summed: `rate` (of a counter, per second), `gauge`, or `count` (how many series there are).
    `where`, `without`: label -> regular expression that all of its value matches. `positive`: a gauge of 0 or less
    is as if it was not there (a quota of -1 is none)."""

    rate: Name | None = None
    gauge: Name | None = None
    count: Name | None = None
    where: dict[Name, Pattern] = Field(default_factory=dict)
    without: dict[Name, Pattern] = Field(default_factory=dict)
    positive: bool = False

    @model_validator(mode="after")
    def _one(self) -> Term:
        if sum(name is not None for name in (self.rate, self.gauge, self.count)) != 1:
            raise ValueError("expected one of rate, gauge and count")
        if self.positive and self.gauge is None:
            raise ValueError("positive: only of a gauge")
        return self

    @property
    def metric(self) -> str:
        return self.rate or self.gauge or self.count or ""


class Rule(_Part):
    """One metric of the store: factor x value x times / of, or factor x (1 - value x times / of) with `rest`. `item`:
    label that tells device, interface or pool; or `named`: a fixed name. `each`: label that tells the containers of a
    node apart: each has a value of its own, if it has all terms, and the node their sum. `largest`: the largest of the
    terms of `value` and of what `each` tells apart, not their sum."""

    resource: Annotated[str, AfterValidator(_resource)]
    metric: Word
    value: Annotated[list[Term], Field(min_length=1)]
    of: list[Term] = Field(default_factory=list)
    times: list[Term] = Field(default_factory=list)
    factor: float = 1.0
    rest: bool = False
    largest: bool = False
    item: Name | None = None
    named: str = ""
    each: Name | None = None

    @property
    def terms(self) -> list[Term]:
        return [*self.value, *self.of, *self.times]


class Exporter(_Part):
    """`node`: label that names the node. `machine`: its CPU and disk are the machine's, even in a container.
    `advances`: a counter that no two scrapes show alike. `seconds`: one that, summed over its series, grows by as much
    in each second; without it `uptime`. `started`, `uptime`: metrics that tell a restart, at which counters begin anew.
    `where`: labels that all of its series must have."""

    node: Name = "instance"
    machine: bool = False
    advances: Name | None = None
    seconds: Name | None = None
    started: Name | None = None
    uptime: Name | None = None
    where: dict[Name, Pattern] = Field(default_factory=dict)
    series: Annotated[list[Rule], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _uptime_in_seconds(cls, told: Any) -> Any:
        return {"seconds": told["uptime"], **told} if isinstance(told, dict) and told.get("uptime") else told

    @property
    def measured(self) -> set[str]:
        """Metrics of its rules."""
        return {term.metric for rule in self.series for term in rule.terms}

    @property
    def metrics(self) -> set[str]:
        told = {self.advances, self.seconds, self.started, self.uptime} - {None}
        return self.measured | {str(name) for name in told}

    @property
    def labels(self) -> set[str]:
        """Labels that its rules name."""
        terms = [term for rule in self.series for term in rule.terms]
        own = {label for rule in self.series for label in (rule.item, rule.each) if label}
        return own | {k for t in terms for k in (*t.where, *t.without)}


class NodeName(_Part):
    """`match`: regular expression of the label's value, whole or without its port."""

    node: Word
    match: Pattern
    tier: Word | None = None


class Mapping(_Part):
    """`nodes`: the first that matches counts; without any, the name of an instance tells its tier (db1:9100). `match`:
    labels that all series must have."""

    nodes: list[NodeName] = Field(default_factory=list)
    match: dict[Name, Pattern] = Field(default_factory=dict)
    exporters: dict[Word, Exporter] = Field(default_factory=dict)


def read_mapping(path: Path | None) -> Mapping:
    """The file; exporters that it does not have are those that come along. Raises DataError naming file and place."""
    shipped = _checked(DEFAULT)
    if path is None:
        return shipped
    own = _checked(path)
    return own.model_copy(update={"exporters": dict(shipped.exporters) | dict(own.exporters)})


def _checked(path: Path) -> Mapping:
    document, node = read_yaml(path)
    if not isinstance(document, dict):
        raise DataError(f"{path}: expected the keys {', '.join(Mapping.model_fields)}")
    try:
        return Mapping.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])[:200]
        said = first["msg"].removeprefix("Value error, ")
        raise DataError(f"{path}:{_line(node, first['loc'])}: {where}: {said}") from None


def _line(node: Any, place: tuple) -> int:
    """Line of the deepest part of the place that the document has."""
    import yaml

    line = node.start_mark.line + 1
    for key in place:
        if isinstance(node, yaml.MappingNode):
            pair = next(((k, v) for k, v in node.value if getattr(k, "value", None) == str(key)), None)
            if pair is None:
                return line
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
            line = node.start_mark.line + 1
        else:
            return line
    return line
