"""The strongest witness of a bottleneck: what throughput gained when a node was added to a tier."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from ntier_analysis.contracts.topology import TIERS, Topology, TopologyError
from ntier_analysis.statistics.ratios import of_intervals
from ntier_analysis.verdict.data import SweepVerdict

GAIN = 0.05
"""Gain of the maximum throughput that counts as one."""


def with_replicas(found: list[SweepVerdict], setting: dict[str, tuple]) -> list[SweepVerdict]:
    """Adds a sentence to each sweep for every other one with one node more and the same `setting` (whatever else must
    be equal: mix, middleware, scale)."""
    texts = {v.sweep: [] for v in found}
    for small, large in permutations(found, 2):
        if setting.get(small.sweep) == setting.get(large.sweep):
            tier = added(small.topology, large.topology)
            if tier and (text := gain(small, large, tier)):
                texts[small.sweep].append(text)
    return [replace(v, evidence=[*v.evidence, *texts[v.sweep]]) for v in found]


def added(small: str, large: str) -> str | None:
    """The only tier that has more nodes in `large`, all else being equal; None otherwise."""
    try:
        a, b = Topology.parse(small, dbms_required=False), Topology.parse(large, dbms_required=False)
    except TopologyError:
        return None
    more = [t for t in TIERS if b.counts[t] > a.counts[t]]
    same = (a.dbms, a.low_cost) == (b.dbms, b.low_cost) and all(
        b.counts[t] == a.counts[t] for t in TIERS if t not in more
    )
    return more[0] if same and len(more) == 1 else None


def gain(small: SweepVerdict, large: SweepVerdict, tier: str) -> str:
    """A sentence on the ratio of the maxima, with its 95 % interval, and whether it fits the verdict of `small`.

    The maximum of `large` may be "at least": the gain is then too. A gain of one that is "at least" says nothing."""
    before, after = small.max_throughput, large.max_throughput
    if before is None or after is None or small.at_least or before.value <= 0 or after.value <= 0:
        return ""
    found = of_intervals(before, after)
    ratio, low, high = found.value, found.low, found.high
    at_least = "at least " if large.at_least else ""
    text = (
        f"with more {tier} nodes ({large.topology}) the maximum is {at_least}{ratio:.2f} [{low:.2f}, {high:.2f}] times "
        f"this one"
    )
    named = {b.tier for b in small.bottlenecks}
    if low > 1 + GAIN:
        return f"{text}: {'confirms' if tier in named else 'contradicts'} the verdict"
    if high < 1 + GAIN and not large.at_least:
        return f"{text}: {'contradicts' if tier in named and small.verdict == 'single' else 'agrees with'} the verdict"
    return f"{text}: undecided"
