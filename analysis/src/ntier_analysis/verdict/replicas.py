"""The strongest witness of a bottleneck: what throughput gained when a node was added to a tier."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import permutations

from ntier_analysis.contracts.layout import Layout
from ntier_analysis.contracts.system import Replicas
from ntier_analysis.setting import by_make
from ntier_analysis.statistics.ratios import of_intervals
from ntier_analysis.verdict.causes import SOFT
from ntier_analysis.verdict.data import SweepVerdict
from ntier_analysis.verdict.load import COUNTS, Bottleneck
from ntier_analysis.wording import with_ends

REFUTES = 0.15
"""Gain from a tier that the verdict does not name, from which on it is refuted: the same sweep on another day differs
by up to 10 % on a virtual machine (docs/decisions/speed-of-a-virtual-machine.md). A maximum that is lower by as much
with more nodes says nothing either way: nodes do not take throughput away by themselves, so all else was not equal."""


@dataclass(frozen=True)
class Gain:
    """What throughput gained when nodes were added to `tier`, in a sentence; `contradicts`: the verdict is refuted."""

    tier: str
    text: str
    contradicts: bool


def with_replicas(
    found: list[SweepVerdict],
    setting: dict[str, tuple],
    layouts: dict[str, Layout] | None = None,
    kinds: dict[str, dict[str, Replicas]] | None = None,
    imports: Collection[str] = (),
) -> list[SweepVerdict]:
    """Each sweep with what every other one says of it that has one node more and the same `setting` (whatever else must
    be equal: mix, middleware, scale). `layouts`: their nodes; by the topology's notation where not given. `kinds`:
    what the nodes of each tier do for each other, where that is known. A verdict that a gain refutes becomes `unknown`:
    an experiment on the system itself outweighs what its samples look like."""
    gains: dict[str, list[Gain]] = {v.sweep: [] for v in found}
    for small, large in permutations(found, 2):
        if setting.get(small.sweep) == setting.get(large.sweep):
            here, there = ((layouts or {}).get(v.sweep) or Layout.of(v.topology, "") for v in (small, large))
            tier = added(here, there)
            if not tier:
                continue
            kind = (kinds or {}).get(small.sweep, {}).get(tier)
            if seen := gain(small, large, tier, _unrelieved(small, large, tier, (here, there), kind)):
                gains[small.sweep].append(seen)
    return [_witnessed(v, gains[v.sweep], v.sweep in imports) for v in found]


def _witnessed(verdict: SweepVerdict, gains: list[Gain], imported: bool) -> SweepVerdict:
    evidence = [*verdict.evidence, *(g.text for g in gains)]
    against = [g for g in gains if g.contradicts]
    if not against:
        return replace(verdict, evidence=evidence)
    named = " and ".join(f"{b.tier} {b.resource}" for b in verdict.bottlenecks) or verdict.verdict
    evidence.append(f"the samples alone say {verdict.verdict} ({named}); the added nodes refute it")
    more = f"this topology and the one with more {against[0].tier} nodes"
    ask = f"repeat {more} in turns{by_make('REPS=3', imported)}: their results contradict"
    return replace(verdict, verdict="unknown", kind="", bottlenecks=[], evidence=evidence, next=[ask, *verdict.next])


def added(small: Layout, large: Layout) -> str | None:
    """The only tier that has more nodes in `large`, all else being equal; None otherwise."""
    before, after = dict(small.nodes), dict(large.nodes)
    if not before or before.keys() != after.keys() or small.letters != large.letters:
        return None
    other = [t for t in before if after[t] != before[t]]
    return other[0] if len(other) == 1 and after[other[0]] > before[other[0]] else None


def _unrelieved(
    small: SweepVerdict, large: SweepVerdict, tier: str, layouts: tuple[Layout, Layout], kind: Replicas | None
) -> str:
    """Why the added nodes of a tier took no work off what `small` names, so that no gain was to be expected; '' if it
    is not known that they did not. (Where all nodes of a tier that shares its work are full again, an interaction costs
    more than before: that does contradict.)"""
    before, after = (dict(layout.nodes).get(tier, 0) for layout in layouts)
    some = [b for b in small.bottlenecks if b.tier == tier]
    return next((why for b in some if (why := _not_relieved(b, large, (before, after), kind))), "")


def _not_relieved(b: Bottleneck, large: SweepVerdict, nodes: tuple[int, int], kind: Replicas | None) -> str:
    """The same of one that is named, of a tier with so many nodes before and after."""
    before, after = nodes
    if 0 < len(b.nodes) < before:
        return f"only {' and '.join(b.nodes)} of its nodes limits, and another one need not take its work"
    again = [other for other in large.bottlenecks if (other.tier, other.resource) == (b.tier, b.resource)]
    if not again:
        return ""
    if kind is Replicas.ALL_WRITE and len(again[0].nodes) == after:
        return "each of its nodes does all writes, and all of them are full again"
    if set(again[0].nodes) == set(b.nodes) and len(again[0].nodes) < after:
        return f"{' and '.join(again[0].nodes)} limits again, and the added nodes do not: they took none of its work"
    return ""


def gain(small: SweepVerdict, large: SweepVerdict, tier: str, unrelieved: str = "") -> Gain | None:
    """The ratio of the maxima, with its 95 % interval, and whether it fits the verdict of `small`; None if it says
    nothing. `unrelieved`: why no gain was to be expected.

    The maximum of `large` may be "at least": the gain is then too. A gain of one that is "at least" says nothing."""
    before, after = small.max_throughput, large.max_throughput
    if before is None or after is None or small.at_least or before.value <= 0 or after.value <= 0:
        return None
    found = of_intervals(before, after)
    low, high = found.low, found.high
    at_least = "at least " if large.at_least else ""
    ratio = with_ends(found.value, low, high)
    text = f"with more {tier} nodes ({large.topology}) the maximum is {at_least}{ratio} times this one"
    named = {b.tier for b in small.bottlenecks}
    pools = any(b.resource in SOFT and _is_node_of(tier, b.item) for b in small.bottlenecks)
    if low > 1 + COUNTS:
        if tier in named or pools:
            return Gain(tier, f"{text}: confirms the verdict", False)
        claims = small.verdict in (
            "single",
            "multi",
            "none",
        )  # `hidden` and `unknown` name nothing that it could refute
        refuted = claims and low > 1 + REFUTES
        return Gain(tier, f"{text}: {'contradicts' if refuted else 'does not fit'} the verdict", refuted)
    if found.value < 1 - REFUTES and high < 1 and not large.at_least:
        return Gain(tier, f"{text}: all else was not equal, so it says nothing of the verdict", False)
    if high < 1 + COUNTS and not large.at_least:
        # of those that take turns, more of either alone brings what counts
        refuted = named == {tier} or (tier in named and small.kind == "alternating")
        if refuted and unrelieved:
            return Gain(tier, f"{text}: {unrelieved}, so it says nothing of the verdict", False)
        fits = "does not fit" if pools else "agrees with"
        return Gain(tier, f"{text}: {'contradicts' if refuted else fits} the verdict", refuted)
    return Gain(tier, f"{text}: undecided", False)


def _is_node_of(tier: str, item: str) -> bool:
    """Whether a pool is one of connections to a node of the tier: one more node brings such a pool."""
    return item.startswith(tier) and item[len(tier) :].isdigit()
