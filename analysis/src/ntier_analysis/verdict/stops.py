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
mean.

No interaction need be complete for a while after a stop: what came meanwhile is worked off first. So a pause is the
stop's only as far as the innermost tier does nothing in it; what it does afterwards is a consequence (without.py says
whether it would limit without the stops)."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.statistics.share import wilson
from ntier_analysis.verdict.load import COUNTS, NO_PAUSES, TIERS, Load, depth
from ntier_analysis.verdict.saturation import Key, Saturation

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
FEW_HOLDERS = 4
"""Holders from which on the order of the answers tells that too (together). Of two, each waiting on its own, the one
that came last returns first in half of the pauses or more."""
IN_ORDER, Z_95 = 0.65, 1.96
"""Share of the pauses that end in order, above which the lower end of its 95 % interval must be (8 of 8, 16 of 18).
Simulated (bench/holders.py): if 4 to 9 holders wait each on its own, for times of five distributions, 0 to 0.46 of the
pauses end in order, and none of 569 sweeps was taken for a stop [0, 0.007]. Below a lock (traps/test_symptoms.py) all
pauses end in order."""
MOST_OF_PAUSES = 0.5
"""Share of the pauses that someone must wait through."""
WAITED = 0.5
"""Mean response time against the mean wait of those who come at any time and wait for the end of a pause, at least. Of
X per second, X d come in a pause of d seconds and wait d / 2 in the mean; but no more than all users wait, for d at
most. Half of it leaves room for those who, waiting already, do not come."""
MOST_OF_REST = 0.75
"""Share of the time between the pauses in which a resource must be saturated to be said to limit then."""


def pauses_between(done_s: np.ndarray, start: float, end: float, spans: np.ndarray | None = None) -> np.ndarray:
    """(n, 2) beginnings and ends, s, of the pauses between completions. `spans` (n, 2): beginning and end of every
    interaction, if known; then only pauses in which someone waits count: users may all think at once."""
    inside = np.sort(done_s[(done_s >= start) & (done_s < end)])
    if not len(inside):
        return NO_PAUSES
    edges = np.concatenate([[start], inside, [end]])
    long = np.diff(edges) >= shortest_pause(len(inside) / (end - start))
    pauses = np.column_stack([edges[:-1][long], edges[1:][long]])
    if spans is None:
        return pauses
    middle = pauses.mean(axis=1)
    begun, ended = np.sort(spans[:, 0]), np.sort(spans[:, 1])
    return pauses[np.searchsorted(begun, middle) > np.searchsorted(ended, middle)]


def shortest_pause(load_per_s: float) -> float:
    """Seconds of nothing that are a pause."""
    return max(PAUSE_S, PAUSE_N / load_per_s)


def shows_pauses(load: Load, length_s: float) -> bool:
    """Whether a load completes so many interactions that it would show pauses as long as that."""
    return load.throughput_per_s > 0 and shortest_pause(load.throughput_per_s) <= length_s


def pauses_in_use(
    found: list[Saturation], load_per_s: float, start: float, order: tuple[str, ...], *, behind: bool = False
) -> np.ndarray:
    """The same by what tiers use: (n, 2) spans in which the innermost tier that works did nothing, though so many
    interactions, and visits of it, were to be expected that this is no chance. `load_per_s`: 0 if none ended, and
    nothing is to be expected. `behind`: the tier may get a part of the interactions only."""
    if not load_per_s > 0:
        return NO_PAUSES
    spans, interval = _idle_spans(found, start, order)
    lengths = np.diff(spans, axis=1)[:, 0]
    usual = _usual(lengths)
    if behind and not usual:
        return NO_PAUSES  # how often the tier is visited is not known
    long = lengths - interval >= max(shortest_pause(load_per_s), PAUSE_N * usual) - SLACK_S
    waits = _someone_sends(spans[long], found, start, order) or held_through(spans[long], found, start)
    return spans[long] if waits else NO_PAUSES


def _idle_spans(found: list[Saturation], start: float, order: tuple[str, ...]) -> tuple[np.ndarray, float]:
    """(n, 2) beginnings and ends, s, of the spans in which the innermost tier that works does nothing, and the longest
    interval of its samples, s. None if a disk of it is busy: its CPU may idle while all wait for the disk."""
    for tier in reversed(order):
        use, interval = _use(found, tier)
        if len(use) and mean_of(use) >= MIN_USE_PCT:
            if any(s.tier == tier and s.resource == "disk" and s.utilization_mean_pct >= BUSY_PCT for s in found):
                break
            idle = np.nan_to_num(use, nan=100.0) <= IDLE * mean_of(use)
            edges = np.flatnonzero(np.diff(np.concatenate([[0], idle.astype(int), [0]])))
            coarsest = max(s.interval_s for s in found if s.tier == tier and s.resource == "cpu" and len(s.values))
            return start + interval * edges.reshape(-1, 2), coarsest
    return NO_PAUSES, np.inf


def stopped_part(load: Load, found: list[Saturation], order: tuple[str, ...]) -> np.ndarray:
    """(n, 2) beginnings and ends, s, of what is the stops' of a load's pauses: the spans in which the innermost tier
    that works does nothing for as long as a pause lasts."""
    if not load.throughput_per_s > 0:
        return NO_PAUSES
    spans, _ = _idle_spans(found, load.start_s, order)
    begin = np.maximum(load.pauses[:, None, 0], spans[None, :, 0]).ravel()
    end = np.minimum(load.pauses[:, None, 1], spans[None, :, 1]).ravel()
    long = end - begin >= shortest_pause(load.throughput_per_s) - SLACK_S
    return np.column_stack([begin[long], end[long]])


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


def waited_through(pauses: np.ndarray, found: list[Saturation], load: Load, order: tuple[str, ...]) -> bool:
    """Whether users wait for the end of pauses (n, 2) that only the use of a tier shows: one that works in batches is
    idle between them, and holds up nobody. With single interactions: in most pauses one that was begun in the first
    half ends with the pause (to within a sample) or after it. Else by Little's law: interactions take long enough in
    the mean."""
    lengths = np.diff(pauses, axis=1)[:, 0]
    if load.spans is None:
        all_users = np.inf if load.model is LoadModel.OPEN else load.users_real
        waiting = lengths * np.minimum(load.throughput_per_s * lengths / 2, all_users)
        return load.response_s >= WAITED * float(waiting.sum()) / (load.throughput_per_s * (load.end_s - load.start_s))
    begun, ended = load.spans.T
    _, interval_s = _idle_spans(found, load.start_s, order)
    first = (begun >= pauses[:, :1]) & (begun <= pauses.mean(axis=1)[:, None])
    through = (first & (ended >= pauses[:, 1:] - interval_s)).any(axis=1)
    return bool(through.mean() > MOST_OF_PAUSES)


def _someone_sends(pauses: np.ndarray, found: list[Saturation], start: float, order: tuple[str, ...]) -> bool:
    """Whether the first tier that works goes on in the pauses: else the users may all think at once."""
    for tier in order:
        use, interval = _use(found, tier)
        if len(use) and mean_of(use) >= MIN_USE_PCT:
            return _idle_share(use, lie_in(pauses, len(use), interval, start)) > IDLE
    return False


def _idle_share(use: np.ndarray, inside: np.ndarray) -> float:
    """Mean use in the pauses against that in the rest; NaN if there is none of either."""
    if not inside.any() or inside.all():
        return float("nan")
    return mean_of(use[inside]) / max(mean_of(use[~inside]), 1e-9)


def stopped_tier(
    pauses: np.ndarray, found: list[Saturation], start: float, order: tuple[str, ...] = TIERS
) -> str | None:
    """The tier that stopped in the pauses; None if that cannot be told, or something saturated explains them."""
    for tier in order:
        use, interval = _use(found, tier)
        if not len(use) or mean_of(use) < MIN_USE_PCT:
            continue
        share = _idle_share(use, lie_in(pauses, len(use), interval, start))
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
        if not len(use) or mean_of(use) < MIN_USE_PCT:
            continue
        if _against_rest(use, late, pauses, interval, start) >= ACTIVE:
            here = [s for s in cpus if s.tier == tier and _idle(s, pauses, start) < EXPLAINED]
            rising = [s for s in here if _used(s, late, start) >= _used(s, early, start)]
            return here, any(_idle(s, pauses, start) <= IDLE for s in rising)
    return [], False


def _idle(s: Saturation, pauses: np.ndarray, start: float) -> float:
    """Share of the pauses in which a CPU does nothing, against its use between them; NaN if it is not known."""
    values = s.values[lie_in(pauses, len(s.values), s.interval_s, start)]
    known = values[~np.isnan(values)]
    return float((known <= IDLE * used_between(s, pauses, start)).mean()) if len(known) else float("nan")


def _against_rest(use: np.ndarray, part: np.ndarray, pauses: np.ndarray, interval: float, start: float) -> float:
    """Mean use in a `part` (n, 2) of the pauses against that between them; NaN if there is none of either."""
    inside, between = lie_in(part, len(use), interval, start), ~lie_in(pauses, len(use), interval, start)
    if not inside.any() or not between.any():
        return float("nan")
    return mean_of(use[inside]) / max(mean_of(use[between]), 1e-9)


def _collects(s: Saturation, pauses: np.ndarray, start: float) -> float:
    """Share of the pauses in which collections stop a program; NaN if it is not known."""
    interval = s.interval_s * len(s.values) / max(len(s.collections), 1)
    inside = s.collections[lie_in(pauses, len(s.collections), interval, start)]
    return mean_of(inside) / 100


def used_between(s: Saturation, pauses: np.ndarray, start: float) -> float:
    """Mean utilization between the pauses, %; NaN if it is not known."""
    return mean_of(s.values[~lie_in(pauses, len(s.values), s.interval_s, start)])


def full_pools(pauses: np.ndarray, found: list[Saturation], start: float) -> list[Saturation]:
    """The pools all of whose places were taken in most of the pauses."""
    return [s for s in found if s.resource == "pool" and _saturated(s, pauses, start) >= EXPLAINED]


def held_through(pauses: np.ndarray, found: list[Saturation], start: float) -> list[Saturation]:
    """Those of them with so many places that chance does not hold all of them through the pauses."""
    full = full_pools(pauses, found, start)
    return [s for s in full if _used(s, pauses, start) / 100 * s.places >= MANY_HOLDERS]


def ends_in_order(pauses: np.ndarray, found: list[Saturation], load: Load) -> dict[Key, tuple[int, int]]:
    """Pools that are full in the pauses -> of how many pauses it is known who ends them, and how many end in order.

    If holders wait each on its own, a pause ends when the first of them returns, whom many have overtaken that passed
    through the other places before the pause. If all wait for one thing, whoever ends the pause came as late as those
    who ended before it: not more have overtaken him than there are places. A pause at an end of the run tells neither
    its beginning nor its end."""
    counts: dict[Key, tuple[int, int]] = {}
    if load.spans is None:
        return counts
    spans = load.spans[np.argsort(load.spans[:, 1])]
    inner = pauses[(pauses[:, 0] > load.start_s) & (pauses[:, 1] < load.end_s)]
    first = np.searchsorted(spans[:, 1], inner[:, 1])
    first = first[first < len(spans)]
    overtaken = np.array([(spans[:i, 0] > spans[i, 0]).sum() for i in first])
    for s in full_pools(pauses, found, load.start_s):
        holders = _used(s, pauses, load.start_s) / 100 * s.places
        if holders >= FEW_HOLDERS:
            counts[s.key] = len(overtaken), int((overtaken <= holders).sum())
    return counts


def together(trials: list[tuple[Load, list[Saturation]]]) -> frozenset[Key]:
    """Pools whose holders wait for one thing in the pauses, by the order in which interactions end."""
    pauses, ordered = Counter[Key](), Counter[Key]()
    for load, found in trials:
        if load.paused >= COUNTS:
            for key, (n, in_order) in ends_in_order(load.pauses, found, load).items():
                pauses[key] += n
                ordered[key] += in_order
    return frozenset(key for key, n in pauses.items() if n and wilson(ordered[key] / n, n, Z_95)[0] > IN_ORDER)


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
        if len(use) and mean_of(use) >= MIN_USE_PCT:
            shares[tier] = _idle_share(use, lie_in(pauses, len(use), interval, start))
    devices = [s for s in found if s.tier in behind and s.resource not in ("pool", "cpu") and len(s.values)]
    if any(_used(s, pauses, start) >= BUSY_PCT for s in devices):
        return None
    return (deepest, tuple(shares)) if shares and all(share <= IDLE for share in shares.values()) else None


def _used(s: Saturation, pauses: np.ndarray, start: float) -> float:
    """Mean utilization in the pauses, %; NaN if it is not known."""
    return mean_of(s.values[lie_in(pauses, len(s.values), s.interval_s, start)])


def _saturated(s: Saturation, pauses: np.ndarray, start: float, *, within: bool = True) -> float:
    """Share of the pauses (or of the rest) in which a resource was saturated; NaN if it is not known."""
    marks = s.indicator[lie_in(pauses, len(s.indicator), s.interval_s, start) == within]
    return mean_of(marks)


def full_between(pauses: np.ndarray, found: list[Saturation], start: float) -> list[tuple[Saturation, float]]:
    """Hardware that is saturated in MOST_OF_REST of the time between the pauses or more, and that share."""
    shares = [(s, _saturated(s, pauses, start, within=False)) for s in found if s.resource != "pool"]
    return [(s, share) for s, share in shares if share >= MOST_OF_REST]


def idle_in(pauses: np.ndarray, s: Saturation, start: float) -> bool:
    """Whether a CPU does nothing in the pauses, against its use between them."""
    return _used(s, pauses, start) <= IDLE * used_between(s, pauses, start)


def share_of_run(spans: np.ndarray, load: Load) -> float:
    return float(np.diff(spans).sum() / (load.end_s - load.start_s))


def mean_of(values: np.ndarray) -> float:
    """Of those that are known; NaN where none is (np.nanmean would warn)."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _use(found: list[Saturation], tier: str) -> tuple[np.ndarray, float]:
    """Mean CPU use (n,) of a tier's nodes in %, and its interval, s: that of the finest samples, on whose clock each of
    the others is repeated over its own."""
    cpus = [s for s in found if s.tier == tier and s.resource == "cpu" and len(s.values)]
    if not cpus:
        return np.array([]), np.inf
    finest = max(cpus, key=lambda s: len(s.values))
    cells = len(finest.values)
    values = np.array([s.values[(np.arange(cells) * len(s.values)) // cells] for s in cpus])
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0), finest.interval_s


def lie_in(pauses: np.ndarray, n: int, interval: float, start: float) -> np.ndarray:
    """Which of n samples lie within a pause."""
    centres = start + (np.arange(n) + 0.5) * interval
    return ((centres[:, None] >= pauses[:, 0]) & (centres[:, None] < pauses[:, 1])).any(axis=1)


def explained(pauses: np.ndarray, found: list[Saturation], start: float) -> bool:
    """Whether a resource (a pool is none: it fills up above what stops) was saturated meanwhile: then that one held up
    what stood still."""
    return any(s.resource != "pool" and _saturated(s, pauses, start) >= EXPLAINED for s in found)
