"""The maximum at the mean speed that the machine had in its trials.

If CPUs alone limit and the machine is slow, everything costs more CPU time alike: throughput falls, and so much more
CPU time does each interaction cost the tiers that have room. What these use in all, cores at the maximum, then stays
the same. So it is the measure of a trial: used cores / (CPU time of an interaction at the mean speed) is the trial's
throughput at that speed. docs/decisions/speed-of-a-virtual-machine.md has what this presumes, how often the interval
holds, and why the verdict does not give it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from ntier_analysis.statistics.throughput import BATCHES, of_trials, variance_of_mean
from ntier_analysis.statistics.values import Interval
from ntier_analysis.verdict.data import TrialData
from ntier_analysis.verdict.demands import cpu_used
from ntier_analysis.verdict.load import is_server

LEAST_TRIALS = 3
ROOM_PCT = 90.0
"""A tier has room if none of its nodes uses more in any trial; nearer to its limit, its use cannot follow."""
ALIKE = 0.7
"""Least correlation of what an interaction costs two tiers with room, over the trials. They have one machine, so that
they vary alike. A tier that varies like no other has reasons of its own: a JVM that still compiles took 18 to 40 % more
in single trials."""
FOLLOWS = 0.5
"""Most variance between trials that may be left, of the throughput's: else something else differed."""
DIFFER = 0.04
"""Least s.d. between trials: below it there is little to take out, and chance decides whether it seems to be the speed
(bench/reference_speed.py: with 3 % by speed and 2 % by chance 0.88 to 0.93 of the intervals held)."""


@dataclass(frozen=True)
class AtSpeed:
    """`maximum`: interactions/s at the speed at which one costs `cost_s` of CPU time on `tiers`; `differ`, `differed`:
    s.d. between trials, relative, with the machine's speed taken out and before."""

    maximum: Interval
    cost_s: float
    tiers: tuple[str, ...]
    differ: float
    differed: float


def at_mean_speed(members: list[TrialData], limits: set[str]) -> AtSpeed | str:
    """From the trials of the plateau, where CPUs of the tiers `limits` alone limit; else the reason why not."""
    if len(members) < LEAST_TRIALS:
        return f"there are {len(members)} trials beyond the knee, {LEAST_TRIALS} are needed"
    used = _with_room(members, limits)
    if not used:
        return "no tier whose CPU was measured has room in every trial"
    rates = np.array([t.load.throughput_per_s for t in members])
    used = _alike(used, rates)
    if not used:
        return "there are no two tiers with room for which the cost of an interaction varies alike"
    total = np.sum(list(used.values()), axis=0)
    differ, differed = (float(np.std(np.log(v), ddof=1)) for v in (total, rates))
    if differed < DIFFER:
        return f"between trials throughput differs by {100 * differed:.1f} % only"
    if not differ**2 <= FOLLOWS * differed**2:
        return (
            f"between trials throughput differs by {100 * differed:.1f} %, and by {100 * differ:.1f} % at equal cost "
            f"of an interaction on {' and '.join(used)}: it is not the machine's speed that differs"
        )
    cost_s = float(total.sum() / rates.sum())
    interval = _interval(members, total / cost_s, tuple(used))
    return AtSpeed(interval, cost_s, tuple(used), differ, differed)


def _alike(used: dict[str, np.ndarray], rates: np.ndarray) -> dict[str, np.ndarray]:
    """The tiers that vary like another one."""
    costs = {tier: cores / rates for tier, cores in used.items()}
    return {a: used[a] for a in costs if any(a != b and _correlation(costs[a], costs[b]) >= ALIKE for b in costs)}


def _interval(members: list[TrialData], values: np.ndarray, tiers: tuple[str, ...]) -> Interval:
    """The trials are the sample; never narrower than what the runs tell of their own use, or, where only its mean is
    known, of their throughput. (That varies with the machine's speed within a run, so it is the wider of the two.)"""
    batches = [b if (b := _batches(t, tiers)) is not None else t.load.rates for t in members]
    if any(b is None or len(b) < 2 for b in batches):
        return of_trials(values)
    errors = np.array([v * np.sqrt(variance_of_mean(b)) / b.mean() for v, b in zip(values, batches, strict=True)])
    return of_trials(values, errors, sum(len(b) - 1 for b in batches))


def _batches(t: TrialData, tiers: tuple[str, ...]) -> np.ndarray | None:
    """(BATCHES,) cores that these tiers use in equal parts of the run; None if a node's course is not known."""
    total = np.zeros(BATCHES)
    for node in (n for n, tier in t.nodes.items() if tier in tiers):
        course = [s.values for s in t.saturations if (s.node, s.resource) == (node, "cpu") and len(s.values) >= BATCHES]
        if not course:
            return None
        parts = [part[np.isfinite(part)] for part in np.array_split(course[0], BATCHES)]
        if not all(map(len, parts)):
            return None
        total += np.array([part.mean() for part in parts]) / 100 * t.capacity_cores.get(node, 1.0)
    return total


def _with_room(members: list[TrialData], limits: set[str]) -> dict[str, np.ndarray]:
    """Tier -> cores (or shares of its nodes' capacity, where these are not known) that it uses in each trial."""
    tiers = dict.fromkeys(tier for tier in members[0].nodes.values() if is_server(tier) and tier not in limits)
    found = {}
    for tier in tiers:
        rows = [_use(t, tier) for t in members]
        if all(r is not None and r[1] <= ROOM_PCT for r in rows):
            found[tier] = np.array([r[0] for r in rows if r is not None])
    return {tier: cores for tier, cores in found.items() if (cores > 0).all()}


def _use(t: TrialData, tier: str) -> tuple[float, float] | None:
    """Cores used by all nodes of a tier, and the use of the busiest one, %; None if a node's is not known."""
    cores, most = 0.0, 0.0
    for node in (n for n, of in t.nodes.items() if of == tier):
        used = cpu_used(t, node)
        if used is None or not np.isfinite(used):
            return None
        cores += used
        most = max(most, 100 * used / t.capacity_cores.get(node, 1.0))
    return cores, most


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    a, b = np.log(a), np.log(b)
    return float(np.corrcoef(a, b)[0, 1]) if a.std() > 0 and b.std() > 0 else 0.0
