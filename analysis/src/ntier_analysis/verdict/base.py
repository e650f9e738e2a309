"""The response time without waiting, R0, and whether the loads of a sweep tell it.

Every load waits a little, so R0 is that of the lowest load, if that load is not limited itself, and was not cold.
Whether it is limited, the
other loads say: where something limits, more users complete no more. A resource without room at the lowest load limits
nothing only if throughput has outgrown it (context.py)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from ntier_analysis.verdict.causes import SOFT
from ntier_analysis.verdict.context import NO_ROOM_PCT
from ntier_analysis.verdict.data import TrialData
from ntier_analysis.verdict.disks import LOW_ENOUGH
from ntier_analysis.verdict.load import COUNTS, Load, is_server

MORE_USERS = 1.15
"""Loads that tell differ in users by this factor at least: with less, the growth drowns in the noise of the response
time (1 % of Z + R is then 0.07 of growth)."""
COLD = 1.5
"""Response time of the lowest load against that of a higher one, from which on it was cold. Runs of a minute in which
answers are long differ by a fifth, and by half if the system stands still in them (simulated: bench/queueing, tuning
399, scoring 2628)."""
NO_CHANCE = 3.0
"""Standard errors by which two mean response times must differ to be two."""
LEVEL = 0.3
"""Growth of the throughput against that of the users (d ln X / d ln N), at or below which the lower of two loads is
limited already. Where nothing limits it is about 1; from a load at 0.7 knees to one at 2 knees, 0.34."""


@dataclass(frozen=True)
class Base:
    """`response_s`: mean response time without waiting, 0 if the loads do not tell it; `compared`: there are loads of
    different size, which tell waiting from service; `cold`: loads that answered more slowly than one of more users ->
    their mean response time. More users never wait less, so these did not wait; `quickest_s`: mean response time of the
    load that answered most quickly, if it is no chance that this is less than at the lowest one; `growth`: by how much
    throughput grows from the load of R0 to a higher one, at most (d ln X / d ln N); infinite where that load was
    quicker than a lower one. Either is NaN where nothing tells it."""

    response_s: float
    compared: bool
    cold: dict[float, float] = field(default_factory=dict)
    quickest_s: float = float("nan")
    growth: float = float("nan")

    def of(self, load: Load) -> float:
        """Response time without waiting at a load: at one that was cold, its own."""
        return max(self.response_s, self.cold.get(load.level, 0.0))


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
        growth = max(_growth(lowest, response_s, load) for load in more)
        return Base(0.0, True) if level or held else _least(valid, response_s, growth)
    small = response_s < COUNTS * (lowest.alone_s + response_s)
    return Base(response_s if small and not any(_full(t) for t in alike) else 0.0, False)


def _least(valid: list[TrialData], response_s: float, growth: float) -> Base:
    """`response_s`, `growth`: of the lowest load. Its response time is R0, unless that of a higher one is less, by what
    counts and no chance makes: programs were not compiled yet, or caches were empty."""
    lowest = valid[0].load.level
    levels: dict[float, list[Load]] = {}
    for t in valid:
        levels.setdefault(t.load.level, []).append(t.load)
    mean = {level: float(np.mean([load.response_s for load in some])) for level, some in levels.items()}
    error = {level: _error(some) for level, some in levels.items()}
    # of one that left users without an answer, the quickest answers alone are known
    told = [level for level, some in levels.items() if all(load.accounted and load.settled for load in some)]
    best = min(told, key=lambda level: mean[level], default=lowest)
    cold, quickest_s = {}, float("nan")
    for level, some in levels.items():
        more = mean[level] - mean[best]
        costs = more / (some[0].alone_s + mean[level])
        fewer = some[0].users_real < levels[best][0].users_real
        clear = more > NO_CHANCE * math.hypot(error[level], error[best])
        if fewer and clear and costs >= COUNTS and mean[level] >= COLD * mean[best]:
            cold[level] = mean[level]
        if clear and level == lowest:
            quickest_s = mean[best]
    if lowest in cold:
        return Base(mean[best], True, cold, quickest_s, growth=math.inf)
    return Base(response_s, True, quickest_s=quickest_s, growth=growth)


def _error(some: list[Load]) -> float:
    """Standard error of the mean response time of the repetitions of a load: by what each tells of itself (of sums
    alone, as if answers were exponential), or by what they differ by, whichever is larger."""
    errors = []
    for load in some:
        times = np.diff(load.spans, axis=1) if load.spans is not None and len(load.spans) > 1 else None
        n = len(times) if times is not None else max(1.0, load.throughput_per_s * (load.end_s - load.start_s))
        errors.append((load.response_s if times is None else float(times.std(ddof=1))) / math.sqrt(n))
    between = float(np.std([load.response_s for load in some], ddof=1)) if len(some) > 1 else 0.0
    return max(math.hypot(*errors) / len(errors), between / math.sqrt(len(some)))


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
    before = low.users_real / (low.alone_s + low_response_s)
    after = high.users_real / (high.alone_s + high.response_s)
    return math.log(after / before) / math.log(high.users_real / low.users_real)


def _full(t: TrialData, *but: str) -> bool:
    """Whether a resource has no room at this load (a pool is none: it may be full of what waits elsewhere). `but`:
    resources not to ask, as a disk that reads full and may have room."""
    return any(
        is_server(s.tier) and s.resource not in (*SOFT, *but) and s.utilization_mean_pct >= NO_ROOM_PCT
        for s in t.saturations
    )
