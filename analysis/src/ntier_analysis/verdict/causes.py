"""Which saturated resources are causes, and what is said of the others.

A CPU that is used 70 % is saturated in half of the samples of 100 ms: requests come in bursts. It limits nothing: the
users' next requests fill its idle time. So a saturated resource is a cause only if one of these is seen:

* it has no room while users wait: its mean utilization is near 100 % then (utilization law: X could grow to X / U
  before it limits);
* it takes turns with others, or with replicas of its tier: one of them is saturated at every moment in which users
  wait, and each of them alone for a part of it (coverage.py);
* where single interactions, and so the moments in which users wait, are not known: throughput is lower while it is
  saturated than while it is not, by as much as the users lose.

A disk that reads full must be full (disks.py)."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from ntier_analysis.statistics.laws import Dependence, dependence
from ntier_analysis.verdict.context import NO_ROOM_PCT, Context
from ntier_analysis.verdict.coverage import (
    NO_GAPS,
    Turns,
    covered,
    in_turns,
    on_clock,
    pair,
    replicas_in_turns,
    room_pct,
)
from ntier_analysis.verdict.disks import OUTGROWN_PCT, Room
from ntier_analysis.verdict.load import COUNTS, USED_UP_PCT, Load, depth
from ntier_analysis.verdict.places import HELD_LONGER
from ntier_analysis.verdict.saturation import Group, Key, Saturation, aligned, means

SOFT = ("pool",)
"""Resources whose exhaustion may be the symptom of a deeper one's saturation."""
FULL = 0.5
"""A resource that is saturated at least half of the run."""
PARTIAL = 0.2
"""A resource that is saturated in a part of the run, from which on it may be a cause."""
SLOWER = 0.7
"""Throughput while a part-time cause is saturated against that while it is not, at most. Bursts of a resource that
limits nothing give 0.9 to 1.3 (simulated: bench/detector, tuning seeds)."""
MOST_OF_LOSS = 0.5
"""Least share of the waiting's cost that such a cause must cost. If it alone limits, nobody waits while it is not
saturated, and both costs are equal; a lock beside it goes on costing."""
SURGES = 1.7
"""The ratio of SLOWER, from which on it is the users, or the work, that comes in waves: what limits throughout keeps
throughput level. Where a lock, a thread or a disk without a collector limited, throughput was up to 1.6 times as high
while something else was saturated in SURGED of the run or more; where users came in waves for one CPU, 1.9 times
(simulated: bench/queueing, tuning seeds 0-799)."""
SURGED = 0.4
"""Share of the run from which on that is asked: bursts that are seldom are worked off quickly after any stop."""
MIN_SIDE_S = 2.0
"""Seconds that either side of that comparison needs."""
WHOLE, MIN_SECONDS = 0.9, 5
"""A second saturated throughout, and how many of either kind the comparison by seconds needs."""
EXPLAINS = 0.75
"""Share of the time that a cause must be saturated to explain all of it: of the run, where others are full anyway; of
the time in which a pool above it is full; of that in which users wait, beside a disk that may be full, or if it works
in pauses (which count)."""
HOST_CPU: Key = ("host", "cpu", "")
FEW = "these are so few that it may be chance"
RECORD = "record single interactions"
"""Of reasons why nothing is named: what would decide (advice.py)."""
AS_LONG = 1.2
"""A place in a pool that is held at most this many times as long as at low load waits for nothing deeper: the pool
limits. Simulated, 12 seeds each: pools of 2 and 3 that limit 0.87 to 1.24; of 2 and 3 above a lock 1.13 to 2.31, one of
48 below 1.2 (two places, work of random length); larger pools more. A pool of one place reads 1 whatever is below it.
Between this and HELD_LONGER, or where no low load tells, what its holders wait for may limit as well: a pool of 20
above a lock is as full as one that limits."""
ALTERNATING_LIFT, ALTERNATING_P = 0.5, 0.01
"""Joint share of two, against the product of their shares, up to which they take turns and from which on they are
saturated together; and the chance of the permutation test that guards it. Unrelated ones have 1 (simulated:
bench/detector, tuning seeds)."""
COMPLETE = 0.9
"""One of the two is saturated nearly always. Shifting a periodic series by a period changes nothing, so the permutation
test has no power then."""
ALWAYS_LIFT = 0.75
"""One of the two is saturated at every moment (NO_GAPS): then both work off each other's backlog for a while after each
turn, and the overlap is larger. Two resources that have nothing to do with each other and together are saturated that
often have lift 1 (of 71 simulated pairs, hidden and single, none below 0.71, and that one with 0.73 instead of 0.95).
"""
CLEAR_LIFT, MANY_TURNS = 0.25, 20
"""The same for short regular turns, between which samples of 100 ms see neither saturated. Unrelated series of 20 turns
and more in 60 s: lift 1.0, none of 709 below 0.66 (simulated)."""


@dataclass(frozen=True)
class Causes:
    """`named`: saturations that limit; `in_turn`: their (tier, resource) that do so in turns; `unproved`: why it is not
    known of a named resource whether it limits; `perhaps`: (tier, resource) that take turns, unless one of them limits
    alone; `notes`: sentences on what saturates and is none."""

    named: list[Saturation]
    notes: list[str] = field(default_factory=list)
    in_turn: frozenset[Group] = frozenset()
    unproved: dict[Key, str] = field(default_factory=dict)
    perhaps: frozenset[Group] = frozenset()


def causes(load: Load, found: list[Saturation], context: Context, waits: np.ndarray, lost: float) -> Causes:
    """`found`: saturations of the servers; `waits`: when users wait; `lost`: share of the throughput that it costs."""
    candidates = [s for s in found if s.share.n and s.share.value >= PARTIAL and s.share.low > 0.0]
    hard = [s for s in candidates if s.resource not in SOFT]
    pairs = [(a, b, relation(a, b, load)) for a, b in combinations(hard, 2)]
    found_turns = [pair(a, b, waits, complete=r.union >= COMPLETE) for a, b, r in pairs if in_turn(a, b, r)]
    found_turns = [t for t in found_turns if t.gain >= COUNTS]
    turns = _keys(found_turns)
    solid, with_room = _without_roomy(hard, turns, context)
    full = {s.key for s in solid if room_pct(s, waits) >= NO_ROOM_PCT}
    alone = any(covered([s], waits) >= NO_GAPS for s in solid if s.key in full)
    tiers = [] if alone else replicas_in_turns([s for s in solid if s.key not in full], waits)
    found_turns += [] if alone or tiers else in_turns(solid, waits)
    turns = _keys(found_turns)
    hard, notes, partly = _hard(solid, full | turns | {s.key for some in tiers for s in some}, found, load, lost)
    notes += [_replicas_text(some) for some in tiers]
    hard, left, anyway = _without_full_anyway(hard, context)
    partly |= anyway
    pools, symptoms = _pools([s for s in candidates if s.resource in SOFT], hard, context)
    unknown = [s for s in hard if s.key not in turns and _room(s, context) is Room.UNKNOWN]
    unproved = partly | {
        s.key: f"{s.name} reads full, but {context.disks[s.key].why}: it may have room" for s in unknown
    }
    # what has no room limits, whatever is not known of a pool beside it
    limits = any(s.key in turns or _in_tiers(s, tiers) or room_pct(s, waits) >= USED_UP_PCT for s in hard)
    doubtful = {s.key: text for s in pools if (text := _unproved_pool(s, context))}
    if limits:
        symptoms += [f"{text} (not named beside what has no room)" for text in doubtful.values()]
        pools = [s for s in pools if s.key not in doubtful]
    else:
        unproved |= doubtful
    sure = _keys([t for t in found_turns if t.sure])
    unsure = {key: _unproved_turns(t) for t in found_turns for key in _keys([t]) - sure - full}
    in_turn_groups = frozenset(group[0].group for t in found_turns for group in t.groups)
    # nothing else is named, and nothing else is doubtful
    only = {s.group for s in hard + pools} == in_turn_groups and not unproved and not sure
    perhaps = in_turn_groups if only else frozenset()
    return Causes(hard + pools, [*with_room, *left, *symptoms, *notes], in_turn_groups, unproved | unsure, perhaps)


def _keys(found: list[Turns]) -> set[Key]:
    return {s.key for t in found for group in t.groups for s in group}


def _unproved_turns(found: Turns) -> str:
    names = " and ".join(group[0].name for group in found.groups)
    if found.chance:
        return (
            f"one of {names} is saturated in nearly all samples, but {FEW}: they take turns, or one of them limits "
            "alone"
        )
    return (
        f"one of {names} is saturated at every moment, but more of one of them could bring {100 * found.gain:.0f} % at "
        "most: they take turns, or one of them limits alone"
    )


def _replicas_text(some: list[Saturation]) -> str:
    names = " and ".join(s.name for s in some)
    return f"one of {names} is saturated at every moment: the replicas limit one after the other, and so the tier does"


def _room(s: Saturation, context: Context) -> Room:
    return context.disks[s.key].room if s.key in context.disks else Room.NONE


def _without_roomy(some: list[Saturation], turns: set[Key], context: Context) -> tuple[list[Saturation], list[str]]:
    """Without the disks that read full and have room. One that takes turns with another resource is full: while users
    wait and that one is idle, nothing else limits."""
    roomy = [s for s in some if s.key not in turns and _room(s, context) in (Room.SOME, Room.PERHAPS)]
    notes = [
        f"{s.name} reads {s.utilization_mean_pct:.0f} %, but {disk.room.value}: {disk.why}"
        for s in roomy
        for disk in [context.disks[s.key]]
    ]
    return [s for s in some if s not in roomy], notes


def _hard(
    some: list[Saturation], limiting: set[Key], found: list[Saturation], load: Load, lost: float
) -> tuple[list[Saturation], list[str], dict[Key, str]]:
    """Those that are `limiting`, or that slow the others down; a sentence for each that is no cause; and of those that
    slow the others down by less than is lost, where nothing else limits, why they are not the whole cause."""
    kept, notes, costs = [], [], {}
    for s in some:
        if s.key in limiting:
            kept.append(s)
            continue
        ratio = slower(s, found, load)
        if ratio <= SLOWER and load.spans is None:
            kept.append(s)
            costs[s.key] = s.share.value * (1 - ratio)
            notes.append(f"while {s.name} was saturated, throughput was {100 * ratio:.0f} % of that in the rest")
        else:
            seen = f", and throughput was then {100 * ratio:.0f} % of that in the rest" if np.isfinite(ratio) else ""
            notes.append(
                f"{s.name} was saturated in {100 * s.share.value:.0f} % of the samples, but is used "
                f"{s.utilization_mean_pct:.0f} % on average{seen}: bursts, not a limit"
            )
    if limiting or sum(costs.values()) >= MOST_OF_LOSS * lost:
        return kept, notes, {}
    text = "{} costs {:.0f} % of the throughput, waiting {:.0f} %: something else limits too"
    return kept, notes, {s.key: text.format(s.name, 100 * costs[s.key], 100 * lost) for s in kept}


def relation(a: Saturation, b: Saturation, load: Load) -> Dependence:
    return dependence(*aligned(a, b, load.start_s, load.end_s))


def in_turn(a: Saturation, b: Saturation, found: Dependence) -> bool:
    """By the size of the effect (lift); the permutation test is only a guard: two equal stations in series are slightly
    anti-correlated by nature (53 % of 60 s windows would be significant)."""
    if a.group == b.group or found.union - found.joint < FULL:
        return False
    if found.union >= NO_GAPS and found.lift <= ALWAYS_LIFT:
        return True
    if not found.lift <= ALTERNATING_LIFT:
        return False
    clear = found.lift <= CLEAR_LIFT and min(_turns(a), _turns(b)) >= MANY_TURNS
    return bool(clear or found.p_below < ALTERNATING_P or found.union >= COMPLETE)


def _turns(s: Saturation) -> int:
    """How often it became saturated."""
    return int((np.diff(s.indicator) == 1.0).sum())


def slower(s: Saturation, found: list[Saturation], load: Load) -> float:
    """Throughput while `s` is saturated / while it is not; NaN if either side is too short to tell.

    Without single interactions, the mean use of those CPUs that seldom saturate stands for the throughput."""
    on, off = s.indicator == 1.0, s.indicator == 0.0
    if min(on.sum(), off.sum()) * s.interval_s < MIN_SIDE_S:
        return float("nan")
    cells = len(s.indicator)
    if load.done_s is not None:
        rate, _ = np.histogram(load.done_s, bins=np.linspace(load.start_s, load.end_s, cells + 1))
    else:
        calm = [o.values for o in found if o.resource == "cpu" and o.node != s.node and o.share.value < PARTIAL]
        calm = [means(v, cells) for v in calm if len(v) >= cells]
        if not calm:
            return float("nan")
        rate = np.mean(calm, axis=0)
    return _ratio(s, rate, on, off)


def surges(load: Load, found: list[Saturation]) -> str:
    """Why something that is saturated now and then may limit then, and nothing hidden; '' if it does not, or if single
    interactions show when users wait."""
    some = [s for s in found if s.resource not in SOFT and s.share.n and s.share.value >= SURGED]
    faster = {s.name: slower(s, found, load) for s in some if load.spans is None}
    name = max(faster, key=lambda n: np.nan_to_num(faster[n]), default="")
    if not name or not faster[name] >= SURGES:
        return ""
    return (
        f"while {name} was saturated, throughput was {100 * faster[name]:.0f} % of that in the rest: work comes in "
        f"waves, and it is not known whether users wait for it then; {RECORD}"
    )


def _ratio(s: Saturation, rate: np.ndarray, on: np.ndarray, off: np.ndarray) -> float:
    """By whole seconds if there are enough: what was held up passes at once when that ends, while the resource is
    still saturated; the median of the seconds that were saturated throughout leaves that out."""
    seconds = max(1, round(len(rate) * s.interval_s))
    if seconds < len(rate):
        full = means(s.indicator, seconds) >= WHOLE
        by_second = means(rate.astype(float), seconds)
        if min(full.sum(), (~full).sum()) >= MIN_SECONDS:
            return _over(float(np.nanmedian(by_second[full])), float(np.nanmean(by_second[~full])))
    return _over(float(np.nanmean(rate[on])), float(np.nanmean(rate[off])))


def _over(value: float, rest: float) -> float:
    return value / rest if rest > 0 else float("inf")


def _without_full_anyway(
    some: list[Saturation], context: Context
) -> tuple[list[Saturation], list[str], dict[Key, str]]:
    """Drops what is full at low load, if another cause, which the requests fill, explains the limit nearly all of the
    time. Where none does, why it is not known whether these limit: what fills them at each load that loses nothing may
    fill them at others. Nor is it known of a disk in whose queue as many requests wait as users do: they may be those
    of what fills it."""
    anyway = [s for s in some if context.is_full_anyway(s)]
    rest = [s for s in some if not context.is_full_anyway(s)]
    at_times = {
        s.key: f"{s.name} is already full at a load that loses nothing, and at another one the requests use so little "
        "of it that they may fill it: whether it limits is not known"
        for s in rest
        if s.group in context.full_at_times and any(o.group != s.group and o.share.value >= EXPLAINS for o in rest)
    }
    text = "{} is already full at loads that lose nothing, and throughput grows beyond them: "
    if not any(s.share.value >= EXPLAINS and _by_requests(s, context) for s in rest):
        doubt = text + "it may limit, or something that is not measured"
        always = {s.key: doubt.format(s.name) for s in anyway if context.is_always_full(s)}
        return some, [], always | at_times
    whose = text + "many requests wait for it, and whether they are the users' or of what fills it is not known"
    queued = {s.key: whose.format(s.name) for s in anyway if context.is_waited_for(s)}
    left = {s.key: text.format(s.name) + "it does not limit" for s in anyway if s.key not in queued}
    return [s for s in some if s.key not in left], list(left.values()), at_times | queued


def _by_requests(s: Saturation, context: Context) -> bool:
    """Whether the requests may be what fills it: in proportion to what is completed (utilization law), its use at low
    loads asks for no more than there is of it. Else it is full of something else in part, as what is full at low load.
    (A disk's busy time is in no proportion to them.)"""
    return s.resource == "disk" or context.needed_pct.get(s.key, 0.0) <= OUTGROWN_PCT


def _union(some: list[Saturation]) -> float:
    """Share of the run in which one of these is saturated."""
    if not some:
        return 0.0
    cells = max(len(s.indicator) for s in some)
    return float(np.nanmean(np.fmax.reduce([on_clock(s, cells) for s in some])))


def _deeper(a: Saturation, b: Saturation, context: Context) -> bool:
    """Whether `a` lies deeper than `b`. If the order of the tiers is not known, hardware lies deeper than a pool: a
    pool above the bottleneck is full, and hardware above a pool that limits is not."""
    down = depth(a.tier, context.order) - depth(b.tier, context.order)
    return down > 0 or (np.isnan(down) and a.resource not in SOFT and a.tier != b.tier)


def _pools(pools: list[Saturation], hard: list[Saturation], context: Context) -> tuple[list[Saturation], list[str]]:
    """Pools that are causes, and a sentence for each symptom: one saturated resource fills all pools above it."""
    kept, symptoms = [], []
    for s in pools:
        below = [
            o
            for o in [*hard, *(p for p in pools if p.key not in context.node_full_always)]
            if o is not s and (_deeper(o, s, context) or (o.resource not in SOFT and o.tier == s.tier))
        ]
        deeper = [o for o in below if o.share.value >= min(FULL, EXPLAINS * s.share.value)]
        if not deeper and _union([o for o in below if o.resource not in SOFT]) >= EXPLAINS * s.share.value:
            deeper = [o for o in below if o.resource not in SOFT]
        text = f"{s.name} was full in {100 * s.share.value:.0f} % of the run: a symptom"
        longer = context.held_at_least.get(s.key, context.held_longer.get(s.key, 1.0))
        if s.key in context.node_full_always:  # its holders keep their places without work, as a fixed pool below does
            symptoms.append(
                f"{s.name} is full at each load that loses nothing, and throughput grows beyond them: it does not limit"
            )
        elif deeper:
            cause = max(deeper, key=lambda o: (o.resource not in SOFT, _deeper(o, s, context), o.share.value))
            symptoms.append(f"{text} of {cause.name}")
        elif longer > HELD_LONGER * _slowed(context):
            symptoms.append(f"{text}, since a place in it is held {longer:.1f} times as long as at low load")
        else:
            kept.append(s)
    return kept, symptoms


def _slowed(context: Context) -> float:
    """How many times as long work may take since the nodes' common host is used: 1 / (1 - utilization ** 2), the queue
    M/M/2 of a host of two cores (more cores slow less). 1 if the host was not measured. On such a host, used 74 %, the
    only connection of an application was held 2.1 times as long as at low load, with nothing to wait for: it limited.
    """
    used = context.used_pct.get(HOST_CPU, 0.0) / 100
    return 1 / (1 - min(used, 0.99) ** 2)


def _unproved_pool(s: Saturation, context: Context) -> str:
    """Why a full pool may not be what limits; '' if it is known to."""
    longer = context.held_longer.get(s.key)
    if longer is not None and longer <= AS_LONG:
        return ""
    why = (
        _untold_place(s, context)
        if longer is None
        else f"a place in it is held {_times(context.held_at_least.get(s.key, longer), longer)} as long as at low load"
    )
    return f"{s.name} is full, but {why}: it limits, or something that its holders wait for; raise it by a step to see"


def _times(least: float, most: float) -> str:
    low, high = f"{least:.1f}", f"{most:.1f}"
    return f"{high} times" if low == high else f"{low} to {high} times"


def _untold_place(s: Saturation, context: Context) -> str:
    if (least := context.held_at_least.get(s.key)) is None:
        return "no low load shows how long a place is held if nothing waits"
    return f"its use at low load does not tell how long a place is held ({least:.1f} times as long now, or more)"


def _in_tiers(s: Saturation, tiers: list[list[Saturation]]) -> bool:
    return any(s.key == o.key for some in tiers for o in some)
