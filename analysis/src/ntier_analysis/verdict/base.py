"""The response time without waiting, R0, and whether the loads of a sweep tell it.

Every load waits a little, so R0 is that of the lowest load, if that load is not limited itself. Whether it is, the
other loads say: where something limits, more users complete no more. A resource without room at the lowest load limits
nothing only if throughput has outgrown it (context.py)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ntier_analysis.verdict.causes import SOFT
from ntier_analysis.verdict.context import NO_ROOM_PCT
from ntier_analysis.verdict.data import TrialData
from ntier_analysis.verdict.disks import LOW_ENOUGH
from ntier_analysis.verdict.load import COUNTS, Load, is_server

MORE_USERS = 1.15
"""Loads that tell differ in users by this factor at least: with less, the growth drowns in the noise of the response
time (1 % of Z + R is then 0.07 of growth)."""
LEVEL = 0.3
"""Growth of the throughput against that of the users (d ln X / d ln N), at or below which the lower of two loads is
limited already. Where nothing limits it is about 1; from a load at 0.7 knees to one at 2 knees, 0.34."""


@dataclass(frozen=True)
class Base:
    """`response_s`: mean response time without waiting, 0 if the loads do not tell it; `compared`: there are loads of
    different size, which tell waiting from service."""

    response_s: float
    compared: bool


def base_response(valid: list[TrialData]) -> Base:
    """From valid trials in order of users."""
    if not valid:
        return Base(0.0, False)
    lowest = valid[0].load
    alike = [t for t in valid if t.load.users == lowest.users]
    response_s = float(np.mean([t.load.response_s for t in alike]))
    more = [t.load for t in valid if t.load.users_real >= MORE_USERS * lowest.users_real]
    if more:
        level = _growth(lowest, response_s, more[0]) <= LEVEL
        most = max(t.load.throughput_per_s for t in valid)
        # Growth between loads that differ little may be chance: what is full must have been outgrown.
        held = lowest.throughput_per_s > LOW_ENOUGH * most and any(_full(t, "disk") for t in alike)
        return Base(0.0 if level or held else response_s, True)
    small = response_s < COUNTS * (lowest.think_s + response_s)
    return Base(response_s if small and not any(_full(t) for t in alike) else 0.0, False)


def growths(valid: list[TrialData]) -> dict[str, float]:
    """Trial -> d ln X / d ln N from the next lower load that tells; without one it is left out."""
    found = {}
    for t in valid:
        lower = [o.load for o in valid if MORE_USERS * o.load.users_real <= t.load.users_real]
        if lower:
            found[t.load.trial] = _growth(lower[-1], lower[-1].response_s, t.load)
    return found


def outdone(valid: list[TrialData]) -> dict[str, float]:
    """Trial -> throughput of the higher load that serves most, in times of its own; without a higher one it is left
    out."""
    found = {}
    for t in valid:
        higher = [o.load.throughput_per_s for o in valid if o.load.users_real > t.load.users_real]
        if higher:
            found[t.load.trial] = max(higher) / t.load.throughput_per_s
    return found


def _growth(low: Load, low_response_s: float, high: Load) -> float:
    """d ln X / d ln N between two loads. By Little's law X = N / (Z + R), which has less noise than counts."""
    before = low.users_real / (low.think_s + low_response_s)
    after = high.users_real / (high.think_s + high.response_s)
    return math.log(after / before) / math.log(high.users_real / low.users_real)


def _full(t: TrialData, *but: str) -> bool:
    """Whether a resource has no room at this load (a pool is none: it may be full of what waits elsewhere). `but`:
    resources not to ask, as a disk that reads full and may have room."""
    return any(
        is_server(s.tier) and s.resource not in (*SOFT, *but) and s.utilization_mean_pct >= NO_ROOM_PCT
        for s in t.saturations
    )
