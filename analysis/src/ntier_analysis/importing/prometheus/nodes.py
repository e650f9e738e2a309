"""Which series are of which node of which tier."""

from __future__ import annotations

import re
from collections import defaultdict

from ntier_analysis.errors import DataError
from ntier_analysis.importing.mapping import Mapping, NodeName
from ntier_analysis.importing.sysstat_files import TIERS, NodeFile
from ntier_analysis.parsers.prometheus import Series

_PORT = re.compile(r":\d+$")


def node_name(text: str) -> NodeName:
    """`NODE=INSTANCE` or `NODE=INSTANCE:TIER`, as of `--sa`. Raises DataError."""
    named = NodeFile.parse(text, kind="instance")
    return NodeName(node=named.node, match=re.escape(str(named.path)), tier=named.tier)


def matches(labels: dict[str, str], wanted: dict[str, str]) -> bool:
    return all(re.fullmatch(pattern, labels.get(name, "")) for name, pattern in wanted.items())


def by_node(
    source: str, all_series: list[Series], mapping: Mapping, notices: list[str]
) -> dict[tuple[str, tuple[str, str]], list[Series]]:
    """(exporter, (node, tier)) -> its series. Instances without a tier are left out and named."""
    by_metric: dict[str, list[Series]] = defaultdict(list)
    for series in all_series:
        by_metric[series.name].append(series)
    nodes: dict[tuple[str, tuple[str, str]], list[Series]] = defaultdict(list)
    left_out: dict[str, None] = {}
    for name, exporter in mapping.exporters.items():
        for series in (s for metric in sorted(exporter.metrics) for s in by_metric[metric]):
            value = series.labels.get(exporter.node, "")
            if not value or not matches(series.labels, exporter.where):
                continue
            place = _node_of(value, mapping.nodes)
            if place is None:
                left_out[value] = None
            else:
                nodes[name, place].append(series)
    shown = ", ".join(list(left_out)[:10]) + ", ..." * (len(left_out) > 10)
    if not nodes:
        raise DataError(f"{source}: which node of which tier is {shown}? give --node NODE=INSTANCE:TIER, or a mapping")
    if left_out:
        notices.append(f"{source}: left out, since no node is named for them: {shown}")
    tiers: dict[str, str] = {}
    for _, (node, tier) in nodes:
        if tiers.setdefault(node, tier) != tier:
            raise DataError(f"{source}: node {node} has two tiers: {tiers[node]} and {tier}")
    return nodes


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
