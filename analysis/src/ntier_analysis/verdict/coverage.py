"""While users wait, something limits at every moment.

So a resource limits if it has no room as long as users wait. If none is that busy, several may take turns: then one of
them is saturated at every moment in which users wait, and what each covers alone is not covered by the others. What
nothing covers is unexplained."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ntier_analysis.verdict.saturation import Group, Saturation

NO_GAPS = 0.95
"""Share of the time in which users wait that the resources of a set cover together: with samples of 100 ms, turns have
edges that neither covers."""
NOT_BY_CHANCE = 0.5
"""Time that the set leaves uncovered, against that which unrelated resources with the same shares would leave. Users
who wait are at one of the stations that limit, so if one is idle another is not; bursts of resources that limit
nothing know nothing of each other (1.0)."""
ALONE = 0.1
"""Share of that time which each covers alone. With half as much capacity again a resource gains at most half of it:
below a tenth no gain of 5 % can come of it."""
LARGEST = 3
"""Resources in a set."""


def on_clock(s: Saturation, cells: int) -> np.ndarray:
    """Its indicator (cells,) of 1.0, 0.0 or NaN, each sample repeated over its interval."""
    if not len(s.indicator):
        return np.full(cells, np.nan)
    return s.indicator[(np.arange(cells) * len(s.indicator)) // cells]


def room_pct(s: Saturation, waits: np.ndarray) -> float:
    """Mean utilization, %, while users wait; over the run if they never do."""
    if not len(s.values):
        return s.utilization_mean_pct
    inside = waits[(np.arange(len(s.values)) * len(waits)) // len(s.values)] > 0
    chosen = s.values[inside & ~np.isnan(s.values)]
    return float(chosen.mean()) if len(chosen) else s.utilization_mean_pct


def covered(some: list[Saturation], waits: np.ndarray) -> float:
    """Share of the time in which users wait that has one of these saturated; NaN if nobody waits."""
    on = [on_clock(s, len(waits)) for s in some]
    seen = np.fmax.reduce(on) if on else np.zeros(len(waits))
    inside = (waits > 0) & ~np.isnan(seen)
    return float(seen[inside].mean()) if inside.any() else float("nan")


def in_turns(candidates: list[Saturation], waits: np.ndarray) -> list[list[Saturation]]:
    """The smallest set of (tier, resource) that leaves no gap while users wait, each of which covers some of it alone;
    of several the one with the smallest gap. Empty if there is none."""
    groups: dict[Group, list[Saturation]] = {}
    for s in candidates:
        groups.setdefault(s.group, []).append(s)
    on = {g: np.fmax.reduce([on_clock(s, len(waits)) for s in some]) for g, some in groups.items()}
    for size in range(2, LARGEST + 1):
        sets = [(_gap([on[g] for g in chosen], waits), chosen) for chosen in combinations(sorted(groups), size)]
        fitting = [(gap, chosen) for gap, chosen in sets if np.isfinite(gap)]
        if fitting:
            return [groups[g] for g in min(fitting)[1]]
    return []


def _gap(on: list[np.ndarray], waits: np.ndarray) -> float:
    """What these leave uncovered; NaN if that is too much, or by chance, or one of them covers nothing alone."""
    known = (waits > 0) & ~np.isnan(np.sum(on, axis=0))
    if not known.any():
        return float("nan")
    marks = np.array([o[known] for o in on])
    gap = float((marks.sum(axis=0) == 0).mean())
    chance = float(np.prod(1 - marks.mean(axis=1)))
    alone = ((marks == 1) & (marks.sum(axis=0) == 1)).mean(axis=1)
    fits = gap <= 1 - NO_GAPS and gap <= NOT_BY_CHANCE * chance and alone.min() >= ALONE
    return gap if fits else float("nan")
