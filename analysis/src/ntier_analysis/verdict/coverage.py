"""While users wait, something limits at every moment.

So a resource limits if it has no room as long as users wait. If none is that busy, several may take turns: then one of
them is saturated at every moment in which users wait, and what each covers alone is not covered by the others. What
nothing covers is unexplained."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ntier_analysis.statistics import distributions as stats
from ntier_analysis.verdict.load import COUNTS
from ntier_analysis.verdict.saturation import THRESHOLD, Group, Saturation, means

NO_GAPS = 0.95
"""Share of the time in which users wait that the resources of a set cover together: with samples of 100 ms, turns have
edges that neither covers."""
NOT_BY_CHANCE = 0.5
"""Time that the set leaves uncovered, against that which unrelated resources with the same shares would leave. Users
who wait are at one of the stations that limit, so if one is idle another is not; bursts of resources that limit
nothing know nothing of each other (1.0)."""
CHANCE = 0.02
"""Chance that as many samples of unrelated resources leave so small a gap, above which a set is not sure. Two that
are saturated in 0.7 and 0.8 of the time leave none in twelve samples in half of the cases. It is for samples that are
few: those of 100 ms are many, and resemble their neighbours."""
SURE_GAIN = 0.08
"""Gain of throughput that counts for certain, where COUNTS may or may not: each resource of a set must be able to bring
as much. In 24 pairs that truly took turns, the weaker resource could bring 9 to 25 % at most of the loads; in the four
that did not, 5 to 7 % (simulated: bench/queueing)."""
MORE = 0.5
"""A relief: half as much capacity again. While the resource is saturated, it brings no more than that."""
LARGEST = 3
"""Resources in a set."""


def on_clock(s: Saturation, cells: int) -> np.ndarray:
    """Its indicator (cells,) of 1.0, 0.0 or NaN, each sample repeated over its interval."""
    if not len(s.indicator):
        return np.full(cells, np.nan)
    return s.indicator[(np.arange(cells) * len(s.indicator)) // cells]


def room_pct(s: Saturation, waits: np.ndarray) -> float:
    """Mean utilization, %, while users wait; over the run if they never do. What was throttled wanted all
    (Saturation.wanted_pct)."""
    values = s.wanted_pct
    if not len(values):
        return s.utilization_mean_pct
    inside = waits[(np.arange(len(values)) * len(waits)) // len(values)] > 0
    chosen = values[inside & ~np.isnan(values)]
    return float(chosen.mean()) if len(chosen) else s.full_pct if s.by_throttling else s.utilization_mean_pct


def covered(some: list[Saturation], waits: np.ndarray) -> float:
    """Share of the time in which users wait that has one of these saturated; NaN if nobody waits."""
    on = [on_clock(s, len(waits)) for s in some]
    seen = np.fmax.reduce(on) if on else np.zeros(len(waits))
    inside = (waits > 0) & ~np.isnan(seen)
    return float(seen[inside].mean()) if inside.any() else float("nan")


@dataclass(frozen=True)
class Turns:
    """`groups`: of each (tier, resource) that takes turns, what is saturated; `gain`: the most that more of any one of
    them could bring, of the one that could bring least; `chance`: so few samples leave so small a gap by chance."""

    groups: list[list[Saturation]]
    gain: float
    chance: bool = False

    @property
    def sure(self) -> bool:
        return self.gain >= SURE_GAIN and not self.chance


def in_turns(candidates: list[Saturation], waits: np.ndarray) -> list[Turns]:
    """The smallest set of (tier, resource) that leaves no gap while users wait, and in which each could bring a gain.
    If there are several, a sure one is preferred, then the one with the smallest gap. Empty if there is none."""
    groups: dict[Group, list[Saturation]] = {}
    for s in candidates:
        groups.setdefault(s.group, []).append(s)
    marks = {g: np.fmax.reduce([on_clock(s, len(waits)) for s in some]) for g, some in groups.items()}
    use = {g: mean_known([_use(s, len(waits)) for s in some]) for g, some in groups.items()}
    for size in range(2, LARGEST + 1):
        fitting = []
        for chosen in combinations(sorted(groups), size):
            seen = _known([marks[g] for g in chosen], [use[g] for g in chosen], waits)
            samples = fewest_samples([s for g in chosen for s in groups[g]], seen[0].shape[1] / len(waits))
            gap, gain = _gap(seen[0]), least_gain(*seen)
            if np.isfinite(gap) and gain >= COUNTS:
                found = Turns([groups[g] for g in chosen], gain, by_chance(seen[0], samples))
                fitting.append((not found.sure, gap, chosen, found))
        if fitting:
            return [min(fitting, key=lambda one: one[:3])[-1]]
    return []


def replicas_in_turns(candidates: list[Saturation], waits: np.ndarray) -> list[list[Saturation]]:
    """The tiers whose replicas limit one after the other: together they leave no gap while users wait, as no chance
    would, and each of them is saturated alone for as long as counts. More of the tier then brings something at every
    moment, though each replica has room on average."""
    groups: dict[Group, list[Saturation]] = {}
    for s in candidates:
        groups.setdefault(s.group, []).append(s)
    found = []
    for some in groups.values():
        marks = np.array([on_clock(s, len(waits)) for s in some])
        marks = marks[:, (waits > 0) & ~np.isnan(marks.sum(axis=0))]
        samples = fewest_samples(some, marks.shape[1] / len(waits))
        alone = ((marks == 1) & (marks.sum(axis=0) == 1)).mean(axis=1) if marks.size else np.zeros(1)
        told = np.isfinite(_gap(marks)) and not by_chance(marks, samples)
        if len(some) > 1 and told and alone.min() >= COUNTS:
            found.append(some)
    return found


def pair(a: Saturation, b: Saturation, waits: np.ndarray, *, complete: bool) -> Turns:
    """Two that are known to take turns, with what more of them could bring. `complete`: by the small gap that they
    leave, which may be chance; else by how seldom they are saturated together."""
    marks, use = zip(*((on_clock(s, len(waits)), _use(s, len(waits))) for s in (a, b)), strict=True)
    seen = _known(list(marks), list(use), waits)
    chance = complete and by_chance(seen[0], fewest_samples([a, b], seen[0].shape[1] / len(waits)))
    return Turns([[a], [b]], least_gain(*seen), chance)


def _known(marks: list[np.ndarray], use: list[np.ndarray], waits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both (resources, cells), of the time in which users wait."""
    known = (waits > 0) & ~np.isnan(np.sum(marks, axis=0)) & ~np.isnan(np.sum(use, axis=0))
    return np.array(marks)[:, known], np.array(use)[:, known]


def mean_known(rows: list[np.ndarray]) -> np.ndarray:
    """(cells,) of those that are known; NaN where none is (np.nanmean would warn)."""
    known = np.sum(~np.isnan(rows), axis=0)
    return np.where(known > 0, np.nansum(rows, axis=0) / np.maximum(known, 1), np.nan)


def _use(s: Saturation, cells: int) -> np.ndarray:
    """Its utilization (cells,), 0..1, each sample repeated over its interval; where it is saturated, all of it."""
    on = on_clock(s, cells)
    if not len(s.values):
        return on
    values = s.values[(np.arange(cells) * len(s.values)) // cells] / 100
    return np.where(on == 1.0, 1.0, np.minimum(values, 1.0))


def _gap(marks: np.ndarray) -> float:
    """What these leave uncovered; NaN if that is too much, or what chance would leave."""
    if not marks.size:
        return float("nan")
    gap, chance = _uncovered(marks)
    return gap if gap <= 1 - NO_GAPS and gap <= NOT_BY_CHANCE * chance else float("nan")


def _uncovered(marks: np.ndarray) -> tuple[float, float]:
    """Share of the time in which none of these is saturated, and what unrelated ones that are as often would leave."""
    return float((marks.sum(axis=0) == 0).mean()), float(np.prod(1 - marks.mean(axis=1)))


def by_chance(marks: np.ndarray, samples: float) -> bool:
    """Whether so many samples of unrelated resources, saturated as often as these, may leave so small a gap."""
    if not marks.size:
        return True
    gap, chance = _uncovered(marks)
    n = max(1, round(samples))
    return bool(stats.binom.cdf(round(gap * n), n, chance) > CHANCE)


def fewest_samples(some: list[Saturation], share: float) -> float:
    """How many samples each of these has at least in this share of the run."""
    return min((len(s.indicator) for s in some), default=0) * share


def unseen_turns(some: list[Saturation], waits: np.ndarray, coarse_s: float) -> tuple[Saturation, Saturation] | None:
    """Two that may take turns too short for the samples of one of them to show, which are further apart than
    `coarse_s`; None if no two may. One of them would be saturated at every moment in which users wait, so in each
    sample both together are used as much as one that is (one sample may lie at an edge), and each alone for as long as
    counts. One that is sampled more often would show its turns: of it, the time counts in which it is saturated."""
    fitting, asking = [], {}
    for a, b in combinations(some, 2):
        same = a.node == b.node and (a.resource == b.resource or "thread" in (a.resource, b.resource))
        cells = min(len(a.values), len(b.values))
        if same or not cells or max(a.interval_s, b.interval_s) <= coarse_s:
            continue  # (of one node, what passes two disks, or what a thread does, is counted twice)
        if cells not in asking:
            asking[cells] = means(waits, cells) > 0
        use = np.array([means(s.values if s.interval_s > coarse_s else 100 * s.indicator, cells) for s in (a, b)])
        asked = ~np.isnan(use.sum(axis=0)) & asking[cells]
        below = int((use.sum(axis=0)[asked] < THRESHOLD).sum())
        if asked.any() and below <= max(1.0, (1 - NO_GAPS) * asked.sum()):
            mean = use[:, asked].mean(axis=1)
            if min(mean.min(), 100 - mean.max()) >= 100 * COUNTS / MORE:
                fitting.append((float(mean.sum()), a, b))
    return max(fitting, key=lambda found: found[0])[1:] if fitting else None


def least_gain(marks: np.ndarray, use: np.ndarray) -> float:
    """The most that more of any one of these would bring, of the one that would bring least. Both (resources, cells):
    saturated or not, and utilization 0..1, while users wait.

    Throughput would grow only while the one alone is saturated, by MORE at most, and by no more than the others have
    room for then (utilization law: each is used in proportion to throughput)."""
    gains = []
    for i in range(len(marks)):
        alone = (marks[i] == 1) & (marks.sum(axis=0) == 1)
        others = np.delete(use, i, axis=0)
        if not alone.any():
            return 0.0
        room = (1 - others[:, alone].mean(axis=1)) / np.maximum(others.mean(axis=1), 1e-9)
        gains.append(float(alone.mean() * min(MORE, room.min())))
    return min(gains, default=0.0)
