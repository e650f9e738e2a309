"""Which series are of which node of which tier."""

from __future__ import annotations

import re
from collections import defaultdict

from pydantic import ValidationError

from ntier_analysis.errors import DataError
from ntier_analysis.importing.mapping import Exporter, Mapping, NodeName
from ntier_analysis.importing.prometheus.targets import target
from ntier_analysis.importing.sysstat_files import TIERS, NodeFile
from ntier_analysis.parsers.prometheus import Series

_PORT = re.compile(r":\d+$")


def node_name(text: str) -> NodeName:
    """`NODE=INSTANCE` or `NODE=INSTANCE:TIER`, as of `--sa`. Raises DataError."""
    named = NodeFile.parse(text, kind="instance")
    try:
        return NodeName(node=named.node, match=re.escape(str(named.path)), tier=named.tier)
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][0])
        if field == "match":
            raise DataError(f"--node {text[:80]!r}: an instance of so many letters; name it by a mapping") from None
        raise DataError(
            f"--node {text[:80]!r}: {field} {getattr(named, field)[:80]!r}: expected letters, digits, '.', '_' and '-' "
            "of ASCII, at most 100, a letter or digit first"
        ) from None


def matches(labels: dict[str, str], wanted: dict[str, str]) -> bool:
    return all(re.fullmatch(pattern, labels.get(name, "")) for name, pattern in wanted.items())


def by_node(
    source: str, all_series: list[Series], mapping: Mapping, notices: list[str]
) -> dict[tuple[str, tuple[str, str]], list[Series]]:
    """(exporter, (node, tier)) -> its series. Instances without a tier are left out and named."""
    by_metric: dict[str, list[Series]] = defaultdict(list)
    for series in all_series:
        by_metric[series.name].append(series)
    nodes: dict[tuple[str, tuple[str, str]], list[Series]] = {}
    left_out: dict[str, None] = {}
    for name, exporter in mapping.exporters.items():
        found: dict[tuple[str, str], list[Series]] = defaultdict(list)
        for series in (s for metric in sorted(exporter.metrics) for s in by_metric[metric]):
            value = series.labels.get(exporter.node, "")
            if not value or not matches(series.labels, exporter.where):
                continue
            place = _node_of(value, mapping.nodes)
            if place is not None:
                found[place].append(series)
            elif series.name in exporter.measured:
                left_out[value] = None
        nodes |= {(name, place): own for place, some in found.items() if (own := _own(exporter, some))}
    shown = ", ".join(list(left_out)[:10]) + ", ..." * (len(left_out) > 10)
    if not nodes and not left_out:
        raise DataError(f"{source}: no series of the mapping's rules that has the labels which its exporters ask for")
    if not nodes:
        raise DataError(f"{source}: which node of which tier is {shown}? give --node NODE=INSTANCE:TIER, or a mapping")
    if left_out:
        notices.append(f"{source}: left out, since no node is named for them: {shown}")
    tiers: dict[str, str] = {}
    for _, (node, tier) in nodes:
        if tiers.setdefault(node, tier) != tier:
            raise DataError(f"{source}: node {node} has two tiers: {tiers[node]} and {tier}")
    return nodes


def _own(exporter: Exporter, series: list[Series]) -> list[Series]:
    """The series of a node without those of its other exporters: each of them has a process_start_time_seconds, too.
    What tells a restart may come from another target only if the measured ones do not have it, and one does."""
    measured = {target(s) for s in series if s.name in exporter.measured}
    if not measured:
        return []
    targets: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for s in series:
        targets[s.name].add(target(s))
    own = {name: (of & measured) or (of if len(of) == 1 else set()) for name, of in targets.items()}
    return [s for s in series if target(s) in own[s.name]]


def _node_of(value: str, named: list[NodeName]) -> tuple[str, str] | None:
    plain = _PORT.sub("", value)
    for name in named:
        if re.fullmatch(name.match, value) or re.fullmatch(name.match, plain):
            tier = name.tier or _tier_of(name.node)
            if tier is None:
                raise DataError(f"node {name.node} of the mapping: its tier is missing")
            return name.node, tier
    tier = None if named else _tier_of(plain)
    return None if tier is None else (plain, tier)


def _tier_of(node: str) -> str | None:
    tier = re.sub(r"[-_.]?\d*$", "", node)
    return tier if tier in TIERS else None
