"""Search for the capacity: finished trials -> the next load, or stop. Values in, values out, no randomness: the same
trials give the same decision, so an interrupted search goes on by asking again.

The rule, stated before any trial runs (which makes the looks fixed ones):
1. The lowest load gives the response time without waiting (R0) and the CPU demand of every node.
2. The utilization law says which CPU saturates first and so where the knee should be; the next load lies beyond it.
   While nothing limits, the search goes upwards, to the highest load at most.
3. From the first limited load on the measured throughput says where the knee is. Further loads are spread over the
   plateau, first far from those that are there.
   A load that gave no valid trial is not tried again close by; while nothing limits, the search then goes halfway back.
   It ends where the machine beneath the nodes was full at the lowest loads: higher ones ask for more of it.
4. It looks whether to stop only when the plateau has MIN_PLATEAU loads, and after each further one: it stops when the
   half-width of the pooled interval is at most the stated precision, or when `most` loads were tried. With fewer on
   the plateau, where a maximum is a lower bound only, it goes on up to `most_if_few` loads.
Maximum, interval and knee are those of `judge_sweep`: a search and a grid are judged by the same program.
bench/capacity_search.py measures how stopping by the width of the interval changes its coverage."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ntier_analysis.statistics.laws import MIN_PLATEAU, knee_users
from ntier_analysis.verdict.advice import host_full
from ntier_analysis.verdict.base import base_response
from ntier_analysis.verdict.data import SweepVerdict, TrialData
from ntier_analysis.verdict.demands import full_everywhere, limits_of_all, passing_on
from ntier_analysis.verdict.plateau import limited_levels
from ntier_analysis.verdict.sweep import judge_sweep
from ntier_analysis.wording import counted

BEYOND = 1.4
"""First load on the plateau, in predicted knees: one load of 40 s knows the demand to 10-15 %, and the plateau begins
at ON_PLATEAU knees."""
SPREAD = (1.4, 2.0, 1.7, 2.3, 1.85, 1.55, 2.6)
"""Loads on the plateau, in measured knees, in the order in which they are tried: two ends first, so that it is seen
early if throughput falls or still rises."""
LEAST = 1.2
"""Least load on the plateau, in measured knees: above ON_PLATEAU, since the knee moves as it is measured, and since few
users with variable demands lose some per cent of the maximum up to there (bench/capacity_search.py)."""
FARTHEST = 3.5
"""Loads beyond those of SPREAD, in measured knees, at most: with a think time of 7 s an answer takes half of a run of
40 s from 3.9 knees on, and such a load does not settle."""
APART, CLOSE = 0.15, 0.02
"""Least distance of two loads on the plateau, in knees; the second one where the range leaves no more room."""
UPWARDS = 1.3
"""Factor from one load to the next while nothing limits, at least."""
BLIND = 2.0
"""The same if no demand is known."""
ELSEWHERE = 1.3
"""Factor from a lowest load that gave no valid trial to the next one: what made it invalid may well do so beside it."""
HOST_FULL_AT = 2
"""Lowest loads at which the machine beneath was full, from which on none above them is tried: one alone may have met
other work of that machine."""
PROMISED = 1.15
"""The utilization law promises this many times the throughput found: a hidden limit, or one that only seems so."""


@dataclass(frozen=True)
class Goal:
    """What is searched: `grid` are the nominal loads that a full grid would run (lowest and highest bound the search),
    `precision` the half-width of the maximum's 95 % interval relative to it, `most` the number of loads tried at most,
    `most_if_few` the same while fewer than MIN_PLATEAU loads lie beyond the knee (`most` if it is less), `grain`: loads
    are multiples of it."""

    grid: tuple[int, ...]
    precision: float = 0.05
    most: int = 6
    most_if_few: int = 0
    grain: int = 50

    @classmethod
    def over(cls, grid: tuple[int, ...], precision: float, most: int, most_if_few: int = 0) -> Goal:
        """The grain is a twentieth of the range if that is less than 50: a range of few users has loads, too."""
        return cls(grid, precision, most, most_if_few, max(1, min(cls.grain, (grid[-1] - grid[0]) // 20)))

    @property
    def lowest(self) -> int:
        return self.grid[0]

    @property
    def highest(self) -> int:
        return self.grid[-1]


@dataclass(frozen=True)
class Step:
    """The next load in nominal users, or None to stop; why, in a sentence, and in a word."""

    users: int | None
    why: str
    reason: str


def next_step(trials: list[TrialData], goal: Goal, scale: float = 1.0, idle: dict[str, float] | None = None) -> Step:
    """`trials`: those that are finished, i.e. valid or out of attempts (those count as tried, not as measured).
    `idle`: cores that a node uses without load, where known."""
    tried = {t.load.users for t in trials}
    valid = [t for t in trials if t.load.valid and np.isfinite(t.load.response_s) and t.load.throughput_per_s > 0]
    valid.sort(key=lambda t: t.load.users_real)
    judged = judge_sweep("", "", valid, scale)
    if _enough(judged, goal):
        return Step(None, _precise(judged, goal), "precise")
    if not valid and (full := _host_full(trials, goal)):
        return full
    if len(tried) >= (goal.most if _has_plateau(judged) else max(goal.most, goal.most_if_few)):
        return Step(None, f"{counted(len(tried), 'load')} tried, as many as were allowed", "budget")
    if not valid:
        return _first(tried, goal)
    lost = tried - {t.load.users for t in valid}
    if not limited_levels(valid, base_response(valid)):
        return _upwards(valid, lost, goal, scale, idle)
    return _over_plateau(valid, tried, lost, judged, _with_room(trials, valid, goal), scale, idle)


def _with_room(trials: list[TrialData], valid: list[TrialData], goal: Goal) -> Goal:
    """The goal without the loads above one at which the machine beneath was full: more users ask for more of it. A
    load below a valid one met other work."""
    top = max(t.load.users for t in valid)
    full = [t.load.users for t in trials if host_full(t.load) and t.load.users > top]
    return replace(goal, grid=(goal.lowest, min(full) - goal.grain)) if full else goal


def _enough(judged: SweepVerdict, goal: Goal) -> bool:
    return _has_plateau(judged) and half_width(judged) <= goal.precision


def _has_plateau(judged: SweepVerdict) -> bool:
    """Whether there are enough loads beyond the knee for a maximum that is more than a lower bound."""
    return len(set(judged.plateau_users)) >= MIN_PLATEAU


def half_width(judged: SweepVerdict) -> float:
    """Of the maximum's 95 % interval, relative; NaN if there is none."""
    found = judged.max_throughput
    return found.half_width / found.value if found and found.value > 0 else float("nan")


def _precise(judged: SweepVerdict, goal: Goal) -> str:
    loads = len(set(judged.plateau_users))
    return (
        f"the maximum is known to +-{100 * half_width(judged):.1f} % from {counted(loads, 'load')} beyond the knee; "
        f"+-{100 * goal.precision:g} % were asked for"
    )


def _host_full(trials: list[TrialData], goal: Goal) -> Step | None:
    """Stops if the machine beneath was full in all trials of the lowest loads, none of which is valid."""
    lowest = sorted({t.load.users for t in trials})[:HOST_FULL_AT]
    full = all(host_full(t.load) for t in trials if t.load.users in lowest)
    if len(lowest) < HOST_FULL_AT or lowest[0] > goal.lowest or not full:
        return None
    at = " and ".join(map(str, lowest))
    text = (
        f"the machine beneath the nodes was full at {at} users already, the lowest loads; measure on a larger machine, "
        "at a smaller scale, or end what else runs there; the same sweep repeats these loads with more --attempts only"
    )
    return Step(None, text, "host full")


def _first(tried: set[int], goal: Goal) -> Step:
    """The lowest load, or, if that cannot be measured, the next one above it."""
    steps = range(math.ceil(math.log(goal.highest / goal.lowest, ELSEWHERE)) + 1)
    users = next((u for i in steps if (u := _grain(goal.lowest * ELSEWHERE**i, goal)) not in tried), None)
    if users is None:
        return Step(None, "no load of the range gave a valid trial", "no room")
    text = "a low load tells the response time without waiting and what an interaction costs each node"
    return Step(users, text, "low")


def _law_knee(valid: list[TrialData], scale: float, idle: dict[str, float] | None) -> tuple[float, str]:
    """Nominal users at which the utilization law expects the first CPU to saturate, and which one; NaN if unknown. Of
    replicas that pass work on to each other it is all of them together."""
    shared = passing_on(valid, _free(valid))
    limits = limits_of_all(valid, shared, idle)
    # of a tier without a law nobody knows that it is not the first
    if not limits or not set(shared) <= {name for _, name, _ in limits}:
        return float("nan"), ""
    limit, name, _ = limits[0]
    return knee_users(limit, valid[0].load.alone_s, base_response(valid).response_s) / scale, name


def _free(valid: list[TrialData]) -> list[TrialData]:
    """Those of loads at which nothing limits."""
    limited = limited_levels(valid, base_response(valid))
    return [t for t in valid if t.load.level not in limited]


def _full(valid: list[TrialData]) -> list[str]:
    """Servers of which the law knows nothing, since their CPU is full at every load."""
    shared = passing_on(valid, _free(valid))
    return [name for name in full_everywhere(valid) if valid[0].nodes[name] not in shared]


def _upwards(valid: list[TrialData], lost: set[int], goal: Goal, scale: float, idle: dict[str, float] | None) -> Step:
    """Nothing limits yet. `lost`: loads that gave no valid trial."""
    top = max(t.load.users for t in valid)
    if top >= goal.highest:
        return Step(None, f"nothing limits up to {top} users, the highest load of the range", "unlimited")
    if higher := [u for u in lost if u > top]:
        end = min(higher)
        known, users = (
            f"nothing limits up to {top} users, and {end} gave no valid trial",
            _grain(math.sqrt(top * end), goal),
        )
        if end < UPWARDS * top or not top < users < end:
            return Step(None, known, "no room")
        return Step(users, f"{known}: a load between", "between")
    knee, name = _law_knee(valid, scale, idle)
    if full := _full(valid):
        wanted, text = top, f"the CPU of {' and '.join(full)} is full at every load, although answers do not show it"
    elif np.isfinite(knee):
        wanted, text = BEYOND * knee, f"by the utilization law {name} saturates first, at about {knee:,.0f} users"
    else:
        wanted, text = BLIND * top, "nothing limits yet, and no demand is known"
    users = min(goal.highest, max(_grain(max(wanted, UPWARDS * top), goal), top + goal.grain))
    return Step(users, f"{text}: a load beyond that", "beyond the knee")


def _over_plateau(valid: list[TrialData], tried: set[int], lost: set[int], judged: SweepVerdict, goal: Goal,
                  scale: float, idle: dict[str, float] | None) -> Step:  # fmt: skip
    """The knee is known by a measured throughput: spread the loads beyond it. What the law promises of other CPUs says
    nothing while one is full at every load."""
    found = judged.max_throughput
    knee = judged.knee_users if np.isfinite(judged.knee_users) else min(judged.plateau_users)  # no load tells: at most
    assert found is not None
    promised, name = _law_knee(valid, scale, idle)
    above = promised > PROMISED * knee and not _full(valid)
    upper = _grain(BEYOND * promised, goal) if above else 0
    if upper > max(tried) and _far(upper, lost, APART * knee):
        text = f"throughput is {found.value:.1f}/s, but by the utilization law {name} allows more: look above"
        return Step(upper, text, "above")
    users = _on_plateau(knee, tried, lost, goal)
    if users is None:
        return Step(None, f"the range up to {goal.highest} users leaves no further load beyond the knee", "no room")
    width = half_width(judged)
    known = f", known to +-{100 * width:.0f} %" if np.isfinite(width) else ""
    text = f"the knee is at about {knee:,.0f} users (maximum {found.value:.1f}/s{known}): another load beyond it"
    return Step(users, text, "plateau")


def _on_plateau(knee: float, tried: set[int], lost: set[int], goal: Goal) -> int | None:
    """A load from LEAST knees on, apart from those tried; None if there is no room. Where the range leaves no place of
    SPREAD, those between its end (or FARTHEST) and its beginning."""
    low = LEAST * knee
    first = max(low, goal.lowest)
    last = min(goal.highest, max(FARTHEST * knee, BEYOND * first))
    squeezed = [first + share * (last - first) for share in (1.0, 0.5, 0.0, 0.75, 0.25)]
    for apart, wanted in ((APART, [s * knee for s in SPREAD]), (CLOSE, squeezed)):
        for users in (_grain(w, goal) for w in wanted):
            far = _far(users, tried, max(apart * knee, goal.grain)) and _far(users, lost, APART * knee)
            if low - goal.grain <= users <= goal.highest and far:
                return users
    return None


def _far(users: int, others: set[int], distance: float) -> bool:
    return all(abs(users - u) >= distance for u in others)


def _grain(users: float, goal: Goal) -> int:
    return min(goal.highest, max(goal.lowest, round(users / goal.grain) * goal.grain))
