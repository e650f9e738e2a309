"""A trial that stood still: what stopped, what limits beside the stops, and what only follows from them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np

from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.verdict.causes import EXPLAINS, SOFT, Causes
from ntier_analysis.verdict.context import NO_ROOM_PCT, Context
from ntier_analysis.verdict.coverage import SURE_GAIN, covered, on_clock
from ntier_analysis.verdict.load import COUNTS, Load, depth
from ntier_analysis.verdict.saturation import Key, Saturation, mean_use
from ntier_analysis.verdict.stops import (
    explained,
    full_between,
    held_behind,
    held_through,
    idle_in,
    lie_in,
    share_of_run,
    stopped_part,
    stopped_tier,
    used_between,
    workers,
)
from ntier_analysis.verdict.without import Reliefs, reliefs
from ntier_analysis.wording import counted

FULL_PCT = 97.0
"""Mean utilization from which on a resource limits beside stops that nothing explains. Below, its idle time shows that
it waits for what stops; what it does in the bursts after a stop it could do before."""


class Stops(Enum):
    """What the pauses of a trial tell."""

    NONE = "there are none, or something saturated holds up what waits in them"
    WORK = "a CPU holds up the others by its own work, or may do so"
    SEEN = "a tier stops"
    UNTOLD = "it is not known which tier stops"


@dataclass(frozen=True)
class Standstill:
    """`stopped`: the tiers that perhaps stopped; `causes`: those that remain beside the stops; `texts`: reasons."""

    stops: Stops
    stopped: tuple[str, ...]
    causes: Causes
    texts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Stopped:
    """`spans` (n, 2): when; `tiers`: what did nothing then; `symptoms`: full pools that are known to be none of its
    causes; `sure`: whether something stopped for certain, or a pool of few places may limit."""

    spans: np.ndarray
    tiers: tuple[str, ...]
    symptoms: set[Key]
    sure: bool
    text: str


def standstill(
    load: Load,
    found: list[Saturation],
    seen: Causes,
    context: Context,
    lost: float,
    base_s: float,
    waits: np.ndarray,
) -> Standstill:
    """The meaning of the pauses of a load, of which there are some. `waits`: when users wait."""
    text = f"it stood still in {100 * load.paused:.0f} % of the run ({counted(len(load.pauses), 'time')})"
    pauses, start, order = load.pauses, load.start_s, context.order
    part = stopped_part(load, found, order)
    parted = share_of_run(part, load) >= COUNTS
    working, to_the_end = workers(pauses, found, start, order)
    working = [s for s in working if not (parted and idle_in(part, s, start))]  # that one stopped itself
    held = {s.name: used for s in working if (used := _with_pauses(s, load)) >= 100 * EXPLAINS}
    if load.paused >= EXPLAINS:  # then any CPU is "used" as much, and the pauses alone say so
        held = {}
    if held and lost >= COUNTS:
        holders = [s for s in working if s.name in held]
        used = " and ".join(f"{name} is used {pct:.0f} %" for name, pct in held.items())
        text += f": {' and '.join(held)} worked then while nothing behind did; if the pauses count as use, {used}"
        more = [s for s in holders if s not in seen.named] if to_the_end else []
        return Standstill(Stops.WORK, (), _with_holders(more, load, seen, waits), [text])
    stopped = _stopped(part, load, found, context) if parted else None
    if stopped is None or not stopped.sure:
        if explained(pauses, found, start):
            return Standstill(Stops.NONE, (), seen, [f"{text}: something was saturated then"])
        stopped = _stopped(pauses, load, found, context)
    if stopped is None:
        return Standstill(Stops.UNTOLD, (), seen, [text])
    text += stopped.text
    if (worked := load.paused - share_of_run(stopped.spans, load)) >= COUNTS:
        text += f"; in {100 * worked:.0f} % of the run it worked off what came meanwhile, and nothing was complete yet"
    if not stopped.sure:
        return Standstill(Stops.UNTOLD, stopped.tiers, seen, [text])
    return _beside(stopped, load, found, seen, context, base_s, text)


def _with_holders(holders: list[Saturation], load: Load, seen: Causes, waits: np.ndarray) -> Causes:
    """With CPUs that hold up the others by their work in the pauses. That alone says nothing of the time between them:
    unless they, or replicas of theirs that are named, are saturated then, as users wait, they are not all that limits,
    and may take turns with something else."""
    if not holders:
        return seen
    between = ~lie_in(load.pauses, len(waits), (load.end_s - load.start_s) / len(waits), load.start_s)
    groups = {s.group for s in holders}
    own = [*holders, *(s for s in seen.named if s.group in groups)]
    full = np.fmax.reduce([on_clock(s, len(waits)) for s in own])
    asked = (waits > 0) & ~np.isnan(full)
    share = float(((full == 1.0) | ~between)[asked].mean()) if asked.any() else 0.0
    if share >= EXPLAINS:
        return replace(seen, named=[*seen.named, *holders])
    if seen.named and covered(seen.named, waits) >= EXPLAINS:
        return seen
    text = "{} explains {:.0f} % of the time in which users wait, the pauses included: alone it does not limit"
    unproved = {s.key: text.format(s.name, 100 * share) for s in holders}
    return replace(seen, named=[*seen.named, *holders], unproved=seen.unproved | unproved)


def _stopped(pauses: np.ndarray, load: Load, found: list[Saturation], context: Context) -> Stopped | None:
    """What stopped in the pauses, or a part of each; None if something was saturated then, or nothing tells."""
    start, order = load.start_s, context.order
    tier, behind = stopped_tier(pauses, found, start, order), held_behind(pauses, found, start, order)
    symptoms = {s.key for s in held_through(pauses, found, start)} | context.together
    if behind and (tier is None or order.index(tier) <= order.index(behind[0].tier)):
        pool, tiers = behind
        text = f": {pool.name} was full then, and the tiers behind it did nothing ({', '.join(tiers)})"
        return Stopped(pauses, tiers, symptoms, tier is not None or pool.key in symptoms, text)
    if tier is None:
        return None
    text = f": the {tier} tier did nothing then, and nothing that was measured of it or before it was saturated"
    return Stopped(pauses, (tier,), symptoms, True, text)


def _with_pauses(s: Saturation, load: Load) -> float:
    """Mean utilization of a CPU, %, if the pauses count as use: before a collection, what is in service ends, and a
    part of the servers idles that nobody can use."""
    return 100 * load.paused + (1 - load.paused) * used_between(s, load.pauses, load.start_s)


def _beside(
    stopped: Stopped, load: Load, found: list[Saturation], seen: Causes, context: Context, base_s: float, text: str
) -> Standstill:
    """What limits beside stops that are known."""
    symptoms = stopped.symptoms & set(seen.unproved)
    kept = [s for s in seen.named if s.utilization_mean_pct >= FULL_PCT and s.key not in symptoms]
    more, unsure, told = _full_between_stops(stopped.spans, load, found, base_s)
    leading = [s for s in more if s not in kept]
    above = {s.key for s in kept if s.resource in SOFT and any(_fills(o, s, context) for o in leading)}
    notes = [
        _beside_stops(s, s.key in symptoms | above)
        for s in seen.named
        if (s not in kept or s.key in above) and s.key not in told
    ]
    kept = [s for s in kept if s.key not in above] + leading
    if not kept:
        notes += [
            f"between the stops {s.name} was saturated in {100 * share:.0f} % of the time: it limits then"
            for s, share in full_between(stopped.spans, found, load.start_s)
            if s.key not in told
        ]
        kept = [s for s in found if s.key in unsure]
    causes = replace(seen, named=kept, unproved=seen.unproved | unsure)
    return Standstill(Stops.SEEN, stopped.tiers, causes, [text, *notes, *told.values()])


def _fills(s: Saturation, pool: Saturation, context: Context) -> bool:
    """Whether what is full between the stops fills a pool before it, nearly all of the time."""
    deeper = depth(s.tier, context.order) >= depth(pool.tier, context.order)
    return deeper and s.share.value >= EXPLAINS * pool.share.value


def _full_between_stops(
    spans: np.ndarray, load: Load, found: list[Saturation], base_s: float
) -> tuple[list[Saturation], dict[Key, str], dict[Key, str]]:
    """Of the CPUs that do nothing in the stops, and are saturated and have no room between them: those that limit more
    than the stops; why it is not known of others; and what is said of each."""
    more, unsure, told = [], {}, {}
    if load.model is not LoadModel.CLOSED:
        return more, unsure, told
    for s, _ in full_between(spans, found, load.start_s):
        between = used_between(s, spans, load.start_s)
        if s.resource != "cpu" or not between >= NO_ROOM_PCT or not idle_in(spans, s, load.start_s):
            continue
        ends = [reliefs(load, spans, use / 100, base_s) for use in _ends(s)]
        text = (
            f"between the stops {s.name} is used {between:.0f} %; throughput would grow by {_percent(ends, 'stops')} "
            f"without the stops, and by {_percent(ends, 'more')} with half as much of it again: "
        )
        if max(r.more for r in ends) < COUNTS:
            told[s.key] = text + "it works off what they hold up"
        elif all(r.stops >= r.more for r in ends):
            told[s.key] = text + "it limits then, but less than they do"
        elif all(r.more >= r.stops + SURE_GAIN for r in ends):
            told[s.key] = text + "it limits, and more than they do"
            more.append(s)
        else:
            told[s.key] = text + "which of the two limits more is not known"
            unsure[s.key] = f"{s.name} limits, or the stops do"
    return more, unsure, told


def _ends(s: Saturation) -> tuple[float, float]:
    """The ends of the 95 % interval of a mean use, %; both are the mean if it has none."""
    used = mean_use(s)
    low, high = (used.low, used.high) if np.isfinite(used.low) else (used.value, used.value)
    return max(low, 1.0), min(max(high, 1.0), 100.0)


def _percent(ends: list[Reliefs], name: str) -> str:
    low, high = sorted(round(100 * getattr(r, name)) for r in ends)
    return f"{low:.0f} to {high:.0f} %" if low < high else f"{low:.0f} %"


def _beside_stops(s: Saturation, symptom: bool) -> str:
    if symptom:
        return f"{s.name} is full: a symptom, since the holders of its places wait while the system stands still"
    return (
        f"{s.name} is used {s.utilization_mean_pct:.0f} %: it limits less than the stops, after which all requests "
        "come at once"
    )
