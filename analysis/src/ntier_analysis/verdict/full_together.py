"""Two resources that are both named: whether both limit, and in turns or together, or one has room beside the other.

Relieving the one that is used more gains no more than the other has room for (utilization law)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.verdict.causes import ALTERNATING_LIFT, FULL, SOFT, relation
from ntier_analysis.verdict.context import NO_ROOM_PCT, Context
from ntier_analysis.verdict.coverage import NO_GAPS, SURE_GAIN
from ntier_analysis.verdict.disks import OUTGROWN_PCT
from ntier_analysis.verdict.load import COUNTS, Load, depth
from ntier_analysis.verdict.saturation import Group, Saturation

UNTOLD = "untold"
"""Of two that are full, whether one has room is not known."""


@dataclass(frozen=True)
class Pair:
    """`kind`: `simultaneous`, `alternating`, UNTOLD or ''; `roomy`: the one that has room beside the other."""

    kind: str = ""
    text: str = ""
    roomy: Group | None = None


@dataclass(frozen=True)
class _Used:
    """Mean use of two that are full together, %. `low`: the one that is used less; `by_completed`: its use is only what
    the completed requests need. `untold`: works for all that arrive, and what the completed ones need of it is not
    known. `grown`: what these need fills neither, so work costs more than at low loads, at one of them or at both."""

    low: Saturation
    high: Saturation
    low_pct: float
    high_pct: float
    by_completed: bool
    untold: Saturation | None
    grown: bool

    @property
    def gain(self) -> float:
        """Relieving the fuller one alone gains no more than this (utilization law)."""
        return self.high_pct / self.low_pct - 1 if self.low_pct > 0 else float("inf")

    @property
    def text(self) -> str:
        text = f"{self.high.name} is used {self.high_pct:.0f} %, {self.low.name} {self.low_pct:.0f} %"
        return text + (" by what is completed" if self.by_completed else "")


def pair_of(a: list[Saturation], b: list[Saturation], load: Load, context: Context, turns: frozenset[Group]) -> Pair:
    first, second = _top(a), _top(b)
    found = relation(first, second, load)
    if np.isnan(found.lift):
        return _in_too_few_samples(first, second)
    text = (
        f"{first.name} and {second.name}: saturated together in {100 * found.joint:.0f} %, at least one in "
        f"{100 * found.union:.0f} % of the run; lift {found.lift:.2f}"
    )
    if {first.group, second.group} <= turns:
        return Pair("alternating", text)
    smaller = min(first.share.value, second.share.value)
    together = found.lift > ALTERNATING_LIFT and found.joint >= smaller / 2 and smaller >= FULL
    return _full_together(a, b, load, context, text) if together else Pair("", text)


def _top(group: list[Saturation]) -> Saturation:
    return max(group, key=lambda s: s.share.value)


def _in_too_few_samples(first: Saturation, second: Saturation) -> Pair:
    if min(first.share.value, second.share.value) < FULL:
        return Pair()
    text = f"{first.name} and {second.name} are both full, in too few samples to tell whether both limit"
    return Pair(UNTOLD, text)


def _full_together(a: list[Saturation], b: list[Saturation], load: Load, context: Context, text: str) -> Pair:
    """Whether both limit, or one has room. `text`: how often both are saturated."""
    used = _used(a, b, load, context)
    text += f"; {used.text}"
    if used.grown:
        return Pair(UNTOLD, f"{text}, which fills neither: work costs more at this load, and where is not known")
    piled, of_low = _piled_before(used, load, context), a if used.low is _top(a) else b
    if (1 + used.gain) * (1 + piled) - 1 <= COUNTS:
        if used.untold:
            text += f": no low load tells what is completed needs of {used.untold.name}, so it may have room"
            return Pair(UNTOLD, text)
        most = _most_gain(used, of_low, context)
        if (1 + most) * (1 + piled) - 1 > SURE_GAIN:
            text += f": more of {used.high.name} alone could bring {100 * most:.1f} % by the interval of that use"
            return Pair(UNTOLD, f"{text}, so {used.low.name} may have room")
        return Pair("simultaneous", text)
    least = _least_gain(used, of_low, context)
    sure = OUTGROWN_PCT / 100 - 1 if used.by_completed else SURE_GAIN
    if min(used.gain, least) < sure:  # short runs show two that limit alike used 99 and 93 %
        return Pair(UNTOLD, f"{text}: {_may_bring(used, piled, least)}, so both may limit")
    return Pair("", f"{text}: {used.low.name} has room", used.low.group)


def _used(a: list[Saturation], b: list[Saturation], load: Load, context: Context) -> _Used:
    first, second = _top(a), _top(b)
    use = {first.key: plateau_use(a, context), second.key: plateau_use(b, context)}
    for s, other in ((first, second), (second, first)):
        if s.resource in SOFT and other.resource not in SOFT:
            use[s.key] = 100.0  # places are taken, not used: no law of utilization says what room a full pool has
    ahead, untold = {}, None
    for s, group, other in ((first, a, second), (second, b, first)):
        if _works_for_all(s, other, load, context):
            needed = _needed(group, context)
            if np.isinf(needed):
                untold = s
            elif needed < use[s.key]:
                ahead[s.key] = needed
    use |= ahead
    low, high = sorted((first, second), key=lambda s: use[s.key])
    grown = high.key in ahead and use[high.key] * OUTGROWN_PCT / 100 < 100
    return _Used(low, high, use[low.key], use[high.key], low.key in ahead, untold, grown)


def _piled_before(used: _Used, load: Load, context: Context) -> float:
    """What lies before the fuller one, and keeps up, works for requests that pile up behind it, too: so much more room
    it has."""
    before = depth(used.low.tier, context.order) < depth(used.high.tier, context.order)
    return load.piled_up if before and used.low.share.value < NO_GAPS else 0.0


def _least_gain(used: _Used, of_low: list[Saturation], context: Context) -> float:
    """By the upper end of the interval of the use of the one that is used less."""
    most = max((context.most_pct.get(s.key, 0.0) for s in of_low), default=0.0)
    most = min(most, used.low_pct) if used.by_completed else most
    return used.high_pct / min(most, used.high_pct) - 1 if most > 0 else used.gain


def _most_gain(used: _Used, of_low: list[Saturation], context: Context) -> float:
    """By the lower end of the same interval: that of short runs may leave room. What a pool is used says nothing."""
    if used.by_completed or used.low.resource in SOFT:
        return used.gain
    known = [s for s in of_low if s.key in context.least_pct]
    below = float(np.mean([context.used_pct[s.key] - context.least_pct[s.key] for s in known])) if known else 0.0
    least = used.low_pct - max(0.0, below)
    return used.high_pct / least - 1 if least > 0 else float("inf")


def _may_bring(used: _Used, piled: float, least: float) -> str:
    text = f"more of {used.high.name} alone could bring {100 * used.gain:.1f} %"
    if piled > 0:
        text += f", or {100 * piled:.1f} % more when requests no longer pile up"
    if least < used.gain:
        text += f", or {100 * max(0.0, least):.1f} % by the interval of the use of {used.low.name}"
    return text


def _works_for_all(s: Saturation, other: Saturation, load: Load, context: Context) -> bool:
    """Whether the first may work for all that arrive, which go on whatever the second completes. It does not if it lies
    behind. Of two of one tier (CPU and disk of a node), or of tiers without an order, it is not known which one does:
    what lies behind is used only as much as what is completed needs."""
    behind = depth(s.tier, context.order) > depth(other.tier, context.order)
    return not behind and load.model is LoadModel.OPEN and s.resource not in SOFT


def _needed(group: list[Saturation], context: Context) -> float:
    """Mean use of resources that what is completed needs, %; infinite if it is not known of all of them."""
    return float(np.mean([context.needed_pct.get(s.key, np.inf) for s in group]))


def plateau_use(group: list[Saturation], context: Context) -> float:
    """Over the plateau, of the nodes that are named: the other replicas may have room."""
    used = [context.used_pct.get(s.key, s.utilization_mean_pct) for s in group]
    throttled = [s.full_pct if s.by_throttling and u < NO_ROOM_PCT else u for u, s in zip(used, group, strict=True)]
    return float(np.mean([max(pair) for pair in zip(used, throttled, strict=True)]))
