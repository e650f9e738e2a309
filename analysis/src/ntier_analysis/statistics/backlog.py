"""Open load: what was offered, and whether what is under way grows. A system that cannot serve what is offered has a
backlog that grows by the difference, whatever the response times are so far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ntier_analysis.statistics.throughput import BATCHES


@dataclass(frozen=True)
class Backlog:
    """Interactions begun per second of the run; by how many more are under way with each second, and the standard
    error of that; how many are under way at its end. NaN: not known."""

    offered_per_s: float = float("nan")
    growth_per_s: float = float("nan")
    error_per_s: float = float("nan")
    at_end: float = float("nan")


def backlog(t: np.ndarray, begun: np.ndarray, inside: np.ndarray, start: float, end: float) -> Backlog:
    """(n,) readings at times `t`: `begun` since the start of the load, `inside` at that moment. The error comes from
    the scatter of the growth in equal parts of the run. The growths are nearly independent of each other, since the
    arrivals of the parts are."""
    known = np.isfinite(begun) & np.isfinite(inside)
    t, begun, inside = t[known], begun[known], inside[known]
    if len(t) < BATCHES or t[0] > start + (end - start) / BATCHES or t[-1] < end - (end - start) / BATCHES:
        return Backlog()
    length = end - start
    edges = np.linspace(start, end, BATCHES + 1)
    offered = float(np.diff(np.interp([start, end], t, begun))[0]) / length
    levels = np.interp(edges, t, inside)
    steps = np.diff(levels)
    error = float(steps.std(ddof=1) * np.sqrt(BATCHES)) / length
    return Backlog(offered, float(levels[-1] - levels[0]) / length, error, float(levels[-1]))
