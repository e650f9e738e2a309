"""How many times longer a place in a pool is held beyond the knee than at low load.

Little's law on a pool: places taken = requests x time held, so the time held is utilization / requests x size, and its
growth needs no size. Three things may spoil it, and then the estimates differ:

* requests of the pool that nobody counted: an interaction makes more or fewer of them as a balancer sends them to
  another replica's pool. All alike pools of the tier together have as many as ever;
* places that are held without a request (leaked connections, kept open by a program) are taken at any load. What does
  not fall with the throughput is no work;
* a low load that stands still, too."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from ntier_analysis.statistics.laws import apart
from ntier_analysis.verdict.load import COUNTS, Load
from ntier_analysis.verdict.saturation import Key, Saturation
from ntier_analysis.verdict.stops import shows_pauses

HELD_LONGER = 1.5
"""A place in a pool that is held this many times longer than at low load waits for something deeper: at least a third
of the time is waiting. Half as many places again would give little more."""

MOSTLY, HARDLY = 0.5, 0.01
"""Shares of what is taken in the mean: most of it, and as good as none."""

Trials = list[tuple[Load, list[Saturation]]]


@dataclass(frozen=True)
class Held:
    """How many times longer: the least and the most that the estimates say; `most` NaN: nobody knows."""

    least: float
    most: float


def held_longer(low: Trials, plateau: Trials) -> dict[Key, Held]:
    before, now = _seen(low), _seen(plateau)
    nodes = {s.node for _, found in [*low, *plateau] for s in found}
    found = {}
    for key in now.keys() & before.keys():
        alike = [other for other in now if other != key and _alike(now[key][0][1], now[other][0][1], nodes)]
        if held := _held(key, alike, before, now):
            found[key] = held
    lasting = [length for load, _ in plateau if load.paused >= COUNTS for length in np.diff(load.pauses, axis=1)[:, 0]]
    if lasting and not all(shows_pauses(load, float(np.median(lasting))) for load, _ in low):
        # The low loads may stand still, too: places are held less long without that, and the ratio is larger.
        return {key: held for key, held in found.items() if held.least > HELD_LONGER}
    return found


Readings = dict[Key, list[tuple[Load, Saturation]]]


def _seen(trials: Trials) -> Readings:
    seen: Readings = defaultdict(list)
    for load, found in trials:
        for s in found:
            if s.resource == "pool" and np.isfinite(s.utilization_mean_pct) and load.throughput_per_s > 0:
                seen[s.key].append((load, s))
    return dict(seen)


def _alike(a: Saturation, b: Saturation, nodes: set[str]) -> bool:
    """Whether requests may go to one pool or the other: pools of one name, or of replicas' names, in one tier."""
    return a.group == b.group and (a.item == b.item or {a.item, b.item} <= nodes)


def _held(key: Key, alike: list[Key], before: Readings, now: Readings) -> Held | None:
    low, high = before[key], now[key]
    counted = all(s.visits_per_s > 0 for _, s in [*low, *high])
    points = [[(_rate(load, s, counted), s.utilization_mean_pct) for load, s in some] for some in (low, high)]
    always = _always_taken(points[0], [s for _, s in low])
    ratios = [_ratio(*points, 0.0), _ratio(*points, always)]
    if not ratios[0] > 0:
        return None
    if alike and not counted:
        if all(len(side.get(other, [])) == len(side[key]) for other in alike for side in (before, now)):
            of_tier = [_together([side[k] for k in (key, *alike)]) for side in (before, now)]
            ratios.append(_ratio(*of_tier, 0.0))
        else:
            ratios.append(math.nan)
    known = [r for r in ratios if np.isfinite(r)]
    return Held(min(known), max(known) if len(known) == len(ratios) else math.nan)


def _rate(load: Load, s: Saturation, counted: bool) -> float:
    return s.visits_per_s if counted else load.throughput_per_s


Points = list[tuple[float, float]]
"""(requests per second, places taken)."""


def _ratio(low: Points, high: Points, always: float) -> float:
    """NaN if hardly a place is taken at low load beyond those that `always` are."""
    (before, at_before), (after, at_after) = (
        (max(0.0, sum(taken - always for _, taken in some)), sum(rate for rate, _ in some)) for some in (low, high)
    )
    told = before > HARDLY * sum(taken for _, taken in low)
    return (after / at_after) / (before / at_before) if told else math.nan


def _together(pools: list[list[tuple[Load, Saturation]]]) -> Points:
    """Places taken in all of these pools, against the throughput; by their sizes, where all are known."""
    sized = all(np.isfinite(s.places) for pool in pools for _, s in pool)
    taken = [[s.utilization_mean_pct * (s.places if sized else 1.0) for _, s in pool] for pool in pools]
    rates = [load.throughput_per_s for load, _ in pools[0]]
    return list(zip(rates, np.sum(taken, axis=0).tolist(), strict=True))


def _always_taken(low: Points, seen: list[Saturation]) -> float:
    """Places that are taken at low load whatever is asked for, in % as the pool's utilization: not more than the lowest
    reading, and of loads that are apart, not more than what is taken without any (a line through them). Of one load,
    the lowest reading, if that is most of what is taken: else it may be that of requests."""
    readings = [s.values[~np.isnan(s.values)] for s in seen if len(s.values)]
    lowest = min((float(values.min()) for values in readings if len(values)), default=0.0)
    rate, taken = np.array(low).T
    if not apart(rate):
        return lowest if lowest >= MOSTLY * taken.mean() else 0.0
    slope, without = np.polyfit(rate, taken, 1)
    return float(np.clip(without, 0.0, lowest)) if slope > 0 else min(lowest, float(taken.min()))
