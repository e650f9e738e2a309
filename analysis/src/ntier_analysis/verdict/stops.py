"""A system that stands still now and then: when, which tier, and whether anything that was measured explains it.

A tier that stops (a lock, a collector, a frozen machine) uses nothing while it stops, so its CPU reads low; requests
that it held up pass in a burst afterwards and saturate other tiers for a while. The tier that stopped is the first one,
from the client inwards, that does nothing although the tier before it goes on sending.

A tier may also hold all up by its own work, as in a garbage collection. It then works while nothing behind it does,
like one that goes on sending. But users who wait send nothing, so what only sends does less and less in a pause. What
holds up the others does not: what it serves ends, then it collects, and then it works off who came meanwhile. If it has
room even if the pauses count as its use, it only sends.

If a pool limits the requests in that tier, the pool fills up, and then the tiers before it do nothing either. A pool
makes requests wait for a place, but never the holders of one: if all places are taken, and nothing deeper does
anything, its holders wait for what stopped.

If a cache answers in its place, interactions are completed all the time. Then the tier's own idle spans show the stop:
idle spans between the visits of many users are exponential, so chance does not explain a span of ten times their
mean."""

from __future__ import annotations

import math

import numpy as np

from ntier_analysis.verdict.load import NO_PAUSES, TIERS, depth
from ntier_analysis.verdict.saturation import Saturation

PAUSE_S, PAUSE_N = 1.0, 10
"""A pause: nothing was completed for a second at least, in which ten interactions were to be expected."""
IDLE, ACTIVE = 0.2, 0.25
"""CPU use in the pauses against that in the rest: a tier that stopped, and one that goes on sending. Users who wait
send nothing (with 7 s between requests, half of them are still sending after 5 s), and what a tier does with answers,
perhaps half of its work, it does not do either."""
BUSY_PCT = 50.0
"""Mean use of a tier's disk from which on its idle CPU tells nothing."""
SLACK_S = 0.05
"""By which samples of a second differ from a second."""
MIN_USE_PCT = 3.0
"""Mean use of a tier from which on a second of nothing is no chance."""
EXPLAINED = 0.5
"""Share of the pauses in which something saturated explains them, or a pool is full."""
MANY_HOLDERS = 10
"""Requests that hold a place in a pool, from which on it is no chance that all of them wait through a pause. If each
waited on its own (for another company's server, say), all would do so in 5 % of the run only if each waited that long
in 0.05 ** (1 / 10) = 74 % of its time; of two, 22 % are enough. Then more places help, and nothing has stopped."""
MOST_OF_REST = 0.75
"""Share of the time between the pauses in which a resource must be saturated to be said to limit then."""


def pauses_between(done_s: np.ndarray, start: float, end: float, spans: np.ndarray | None = None) -> np.ndarray:
    """(n, 2) beginnings and ends, s, of the pauses between completions. `spans` (n, 2): beginning and end of every
    interaction, if known; then only pauses in which someone waits count: users may all think at once."""
    inside = np.sort(done_s[(done_s >= start) & (done_s < end)])
    if not len(inside):
        return NO_PAUSES
    edges = np.concatenate([[start], inside, [end]])
    long = np.diff(edges) >= max(PAUSE_S, PAUSE_N * (end - start) / len(inside))
    pauses = np.column_stack([edges[:-1][long], edges[1:][long]])
    if spans is None:
        return pauses
    middle = pauses.mean(axis=1)
    begun, ended = np.sort(spans[:, 0]), np.sort(spans[:, 1])
    return pauses[np.searchsorted(begun, middle) > np.searchsorted(ended, middle)]


def pauses_in_use(
    found: list[Saturation], load_per_s: float, start: float, order: tuple[str, ...], *, behind: bool = False
) -> np.ndarray:
    """The same by what tiers use: (n, 2) spans in which the innermost tier that works did nothing, though so many
    interactions, and visits of it, were to be expected that this is no chance. `load_per_s`: 0 if none ended, and
    nothing is to be expected. `behind`: the tier may get a part of the interactions only."""
    if not load_per_s > 0:
        return NO_PAUSES
    for tier in reversed(order):
        use, interval = _use(found, tier)
        if len(use) and np.nanmean(use) >= MIN_USE_PCT:
            if any(s.tier == tier and s.resource == "disk" and s.utilization_mean_pct >= BUSY_PCT for s in found):
                return NO_PAUSES  # its CPU may idle while all wait for the disk
            idle = np.nan_to_num(use, nan=100.0) <= IDLE * np.nanmean(use)
            edges = np.flatnonzero(np.diff(np.concatenate([[0], idle.astype(int), [0]])))
            spans = start + interval * edges.reshape(-1, 2)
            lengths = np.diff(spans, axis=1)[:, 0]
            usual = _usual(lengths)
            if behind and not usual:
                return NO_PAUSES  # how often the tier is visited is not known
            long = lengths - interval >= max(PAUSE_S, PAUSE_N / load_per_s, PAUSE_N * usual) - SLACK_S
            waits = _someone_sends(spans[long], found, start, order) or held_through(spans[long], found, start)
            return spans[long] if waits else NO_PAUSES
    return NO_PAUSES


def _usual(lengths: np.ndarray) -> float:
    """Mean idle span, s, between two visits of a tier, of `lengths` (n,) of its idle spans, by their median (that of an
    exponential is ln 2 of its mean), which a few stops do not move; 0 if most are as long as a pause: then samples are
    too far apart to show others, or there are none."""
    median = float(np.median(lengths)) if len(lengths) else PAUSE_S
    return median / math.log(2) if median < PAUSE_S else 0.0


def pauses_behind(
    found: list[Saturation], load_per_s: float, start: float, order: tuple[str, ...] = TIERS
) -> np.ndarray:
    """The same where interactions go on being completed, since something before the tier answers for it: only if a
    tier is seen to stop, and nothing that was saturated explains it."""
    pauses = pauses_in_use(found, load_per_s, start, order, behind=True)
    return pauses if len(pauses) and stopped_tier(pauses, found, start, order) else NO_PAUSES


def _someone_sends(pauses: np.ndarray, found: list[Saturation], start: float, order: tuple[str, ...]) -> bool:
    """Whether the first tier that works goes on in the pauses: else the users may all think at once."""
    for tier in order:
        use, interval = _use(found, tier)
        if len(use) and np.nanmean(use) >= MIN_USE_PCT:
            return _idle_share(use, _inside(pauses, len(use), interval, start)) > IDLE
    return False


def _idle_share(use: np.ndarray, inside: np.ndarray) -> float:
    """Mean use in the pauses against that in the rest; NaN if there is none of either."""
    if not inside.any() or inside.all():
        return float("nan")
    return float(np.nanmean(use[inside]) / max(np.nanmean(use[~inside]), 1e-9))


def stopped_tier(
    pauses: np.ndarray, found: list[Saturation], start: float, order: tuple[str, ...] = TIERS
) -> str | None:
    """The tier that stopped in the pauses; None if that cannot be told, or something saturated explains them."""
    for tier in order:
        use, interval = _use(found, tier)
        if not len(use) or np.nanmean(use) < MIN_USE_PCT:
            continue
        share = _idle_share(use, _inside(pauses, len(use), interval, start))
        if share <= IDLE:
            return None if explained(pauses, found, start) else tier
        if not share >= ACTIVE:
            return None
    return None


def workers(
    pauses: np.ndarray, found: list[Saturation], start: float, order: tuple[str, ...] = TIERS
) -> tuple[list[Saturation], bool]:
    """The CPUs whose own work, or whose collections, may hold up all others in the pauses, and whether they do: what is
    saturated or collects in most of their time. Else those of the innermost tier that works in their second halves (in
    the first, what was passed on ends) and that did not stop itself, being idle for most of the pauses; and whether one
    of these is seldom idle in them, and does as much or more in the second halves as in the first."""
    cpus = [s for s in found if s.resource == "cpu" and len(s.values)]
    full = [s for s in cpus if _saturated(s, pauses, start) >= EXPLAINED and _idle(s, pauses, start) <= IDLE]
    busy = full + [s for s in cpus if s not in full and _collects(s, pauses, start) >= EXPLAINED]
    if busy:
        return busy, True
    middle = pauses.mean(axis=1)
    early, late = np.column_stack([pauses[:, 0], middle]), np.column_stack([middle, pauses[:, 1]])
    for tier in reversed(order):
        use, interval = _use(found, tier)
        if not len(use) or np.nanmean(use) < MIN_USE_PCT:
            continue
        if _against_rest(use, late, pauses, interval, start) >= ACTIVE:
            here = [s for s in cpus if s.tier == tier and _idle(s, pauses, start) < EXPLAINED]
            rising = [s for s in here if _used(s, late, start) >= _used(s, early, start)]
            return here, any(_idle(s, pauses, start) <= IDLE for s in rising)
    return [], False


def _idle(s: Saturation, pauses: np.ndarray, start: float) -> float:
    """Share of the pauses in which a CPU does nothing, against its use between them; NaN if it is not known."""
    values = s.values[_inside(pauses, len(s.values), s.interval_s, start)]
    known = values[~np.isnan(values)]
    return float((known <= IDLE * used_between(s, pauses, start)).mean()) if len(known) else float("nan")


def _against_rest(use: np.ndarray, part: np.ndarray, pauses: np.ndarray, interval: float, start: float) -> float:
    """Mean use in a `part` (n, 2) of the pauses against that between them; NaN if there is none of either."""
    inside, between = _inside(part, len(use), interval, start), ~_inside(pauses, len(use), interval, start)
    if not inside.any() or not between.any():
        return float("nan")
    return float(np.nanmean(use[inside]) / max(np.nanmean(use[between]), 1e-9))


def _collects(s: Saturation, pauses: np.ndarray, start: float) -> float:
    """Share of the pauses in which collections stop a program; NaN if it is not known."""
    interval = s.interval_s * len(s.values) / max(len(s.collections), 1)
    inside = s.collections[_inside(pauses, len(s.collections), interval, start)]
    known = inside[~np.isnan(inside)]
    return float(known.mean()) / 100 if len(known) else float("nan")


def used_between(s: Saturation, pauses: np.ndarray, start: float) -> float:
    """Mean utilization between the pauses, %; NaN if it is not known."""
    values = s.values[~_inside(pauses, len(s.values), s.interval_s, start)]
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def full_pools(pauses: np.ndarray, found: list[Saturation], start: float) -> list[Saturation]:
    """The pools all of whose places were taken in most of the pauses."""
    return [s for s in found if s.resource == "pool" and _saturated(s, pauses, start) >= EXPLAINED]


def held_through(pauses: np.ndarray, found: list[Saturation], start: float) -> list[Saturation]:
    """Those of them with so many places that chance does not hold all of them through the pauses."""
    full = full_pools(pauses, found, start)
    return [s for s in full if _used(s, pauses, start) / 100 * s.places >= MANY_HOLDERS]


def held_behind(
    pauses: np.ndarray, found: list[Saturation], start: float, order: tuple[str, ...] = TIERS
) -> tuple[Saturation, tuple[str, ...]] | None:
    """The deepest pool that was full in the pauses, and the tiers behind it, if these did nothing then; None if there
    is no such pool, or something works or is saturated meanwhile."""
    pools = [s for s in full_pools(pauses, found, start) if s.tier in order]
    if not pools or explained(pauses, found, start):
        return None
    deepest = max(pools, key=lambda s: depth(s.tier, order))
    behind = order[order.index(deepest.tier) + 1 :] or (deepest.tier,)
    shares = {}
    for tier in behind:
        use, interval = _use(found, tier)
        if len(use) and np.nanmean(use) >= MIN_USE_PCT:
            shares[tier] = _idle_share(use, _inside(pauses, len(use), interval, start))
    devices = [s for s in found if s.tier in behind and s.resource not in ("pool", "cpu") and len(s.values)]
    if any(_used(s, pauses, start) >= BUSY_PCT for s in devices):
        return None
    return (deepest, tuple(shares)) if shares and all(share <= IDLE for share in shares.values()) else None


def _used(s: Saturation, pauses: np.ndarray, start: float) -> float:
    """Mean utilization in the pauses, %; NaN if it is not known."""
    values = s.values[_inside(pauses, len(s.values), s.interval_s, start)]
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _saturated(s: Saturation, pauses: np.ndarray, start: float, *, within: bool = True) -> float:
    """Share of the pauses (or of the rest) in which a resource was saturated; NaN if it is not known."""
    marks = s.indicator[_inside(pauses, len(s.indicator), s.interval_s, start) == within]
    known = marks[~np.isnan(marks)]
    return float(known.mean()) if len(known) else float("nan")


def full_between(pauses: np.ndarray, found: list[Saturation], start: float) -> dict[str, float]:
    """Hardware that is saturated in MOST_OF_REST of the time between the pauses or more -> that share."""
    shares = {s.name: _saturated(s, pauses, start, within=False) for s in found if s.resource != "pool"}
    return {name: share for name, share in shares.items() if share >= MOST_OF_REST}


def _use(found: list[Saturation], tier: str) -> tuple[np.ndarray, float]:
    """Mean CPU use (n,) of a tier's nodes in %, and its interval, s."""
    cpus = [s for s in found if s.tier == tier and s.resource == "cpu" and len(s.values)]
    if not cpus:
        return np.array([]), np.inf
    n = min(len(s.values) for s in cpus)
    values = np.array([s.values[:n] for s in cpus])
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0), cpus[0].interval_s


def _inside(pauses: np.ndarray, n: int, interval: float, start: float) -> np.ndarray:
    """Which of n samples lie within a pause."""
    centres = start + (np.arange(n) + 0.5) * interval
    return ((centres[:, None] >= pauses[:, 0]) & (centres[:, None] < pauses[:, 1])).any(axis=1)


def explained(pauses: np.ndarray, found: list[Saturation], start: float) -> bool:
    """Whether a resource (a pool is none: it fills up above what stops) was saturated meanwhile: then that one held up
    what stood still."""
    return any(s.resource != "pool" and _saturated(s, pauses, start) >= EXPLAINED for s in found)
