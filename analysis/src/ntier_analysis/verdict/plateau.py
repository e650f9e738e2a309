"""The loads beyond the knee: which they are, their pooled throughput, and whether they bracket the knee."""

from __future__ import annotations

import numpy as np

from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.statistics.laws import MIN_PLATEAU, knee_users, pool
from ntier_analysis.statistics.throughput import of_trials
from ntier_analysis.statistics.values import Interval, above_zero, estimated
from ntier_analysis.verdict.base import Base
from ntier_analysis.verdict.data import SweepVerdict, TrialData
from ntier_analysis.verdict.load import COUNTS, SETTLES
from ntier_analysis.wording import counted

BELOW = 0.8
"""Loads that bracket the knee from below, in knees: nearer ones wait already."""
ON_PLATEAU = 1.1
"""Loads from 1.1 times the knee on: below, a rounded knee still costs some per cent of the maximum."""
FAR = 1.4
"""If there are MIN_PLATEAU loads from 1.4 times the knee on, only those: where what limits does so in turns or bursts,
1.1 to 1.35 knees still give 3 to 8 % less (simulated: bench/detector)."""
LOW_LOADS, LOW_LOADS_SEARCHED = 2, 1
"""Loads below BELOW knees that bracket it. A grid's may miss the knee by a step, so two must follow the law; a search
places its loads around the knee that it measured, and needs the low one for R0 only."""
DIFFER_P = 0.01
"""Chance that trials of one throughput differ as much (analysis of variance), below which they differ."""
LONG_RUN_PCT = 84
"""Share of the intervals of the maximum, from runs of 60 and 180 s, that held the mean of 2,400 s (bench/detector)."""


def limited_levels(valid: list[TrialData], base: Base) -> set[float]:
    """The loads that lose what counts, in the mean of their repetitions: near the line, single runs are on either side
    by chance, and to take the worse ones alone would choose by the outcome."""
    cost: dict[float, list[float]] = {}
    for t in valid:
        cost.setdefault(t.load.level, []).append(t.load.cost(base.of(t.load)))
    return {level for level, costs in cost.items() if np.mean(costs) >= COUNTS}


def plateau_members(limited: list[TrialData], base_s: float) -> list[TrialData]:
    """The loads beyond the knee, each with all its repetitions. (Where loads far beyond it serve less, they make the
    knee smaller, and nearer ones come back: of the sets that take turns the largest.)"""
    if not limited:
        return []
    members, seen = limited, []
    while members not in seen:
        seen.append(members)
        knee = _knee(members, base_s)
        members = [t for t in limited if t.load.users_real >= ON_PLATEAU * knee] or highest(limited)
    members = max(seen[seen.index(members) :], key=len)
    far = [t for t in members if t.load.users_real >= FAR * _knee(members, base_s)]
    return _settled(far if len({t.load.users for t in far}) >= MIN_PLATEAU else members)


def _knee(members: list[TrialData], base_s: float) -> float:
    level = float(np.median([t.load.throughput_per_s for t in members]))
    return knee_users(level, members[0].load.alone_s, base_s)


def _settled(members: list[TrialData]) -> list[TrialData]:
    """Without the loads that have not settled, highest first, as long as MIN_PLATEAU remain."""
    loads = sorted({t.load.users for t in members})
    while len(loads) > MIN_PLATEAU and not all(t.load.settled for t in members if t.load.users == loads[-1]):
        loads.pop()
    return [t for t in members if t.load.users in loads]


def pooled(trials: list[TrialData]) -> tuple[Interval, float]:
    """Pooled throughput; without batch rates (imported data) from the trials' means alone. Means that agree in all
    digits (they were rounded, say) tell no error: then there is no interval."""
    rates = [t.load.rates for t in trials if t.load.rates is not None and len(t.load.rates) > 1]
    if len(rates) == len(trials):
        return pool(rates)
    means = np.array([t.load.throughput_per_s for t in trials])
    if len(means) > 1 and np.ptp(means) == 0:
        return estimated(float(means[0]), float("nan"), 0.0, len(means)), float("nan")
    return above_zero(of_trials(means)), float("nan")


def measure_plateau(
    result: SweepVerdict, valid: list[TrialData], members: list[TrialData], base_s: float, scale: float, low_loads: int
) -> list[TrialData]:
    """Pools the loads beyond the knee, and says whether the knee is bracketed. Returns those that count."""
    alone_s = members[0].load.alone_s
    members, unaccounted = _accounted(_without_unfinished(members))
    found, p = pooled(members)
    retrograde = None
    while len(members) > MIN_PLATEAU and levels(members) > 1 and surely_differ(p) and falls(members):
        retrograde, members = members[-1].load, without_highest(members)
        found, p = pooled(members)
    result.plateau_users = tuple(t.load.users for t in members)
    result.max_throughput, result.at_least = found, len(set(result.plateau_users)) < MIN_PLATEAU
    accounted = members[0].load.model is not LoadModel.CLOSED or any(t.load.accounted for t in members)
    result.at_least |= not accounted
    if base_s > 0 or alone_s > 0:  # else nothing tells where it is
        result.knee_users = knee_users(found.value, alone_s, base_s) / scale
        # The lowest load waits a little itself: of its response time, an open queue would leave 1 - U without waiting.
        least_s = base_s * max(0.0, 1 - valid[0].load.throughput_per_s / found.value)
        most_s = base_s if base_s > 0 else valid[0].load.response_s  # R0 is not known, and no more than that
        result.knee_interval = (
            knee_users(found.low, alone_s, least_s) / scale,
            knee_users(found.high, alone_s, most_s) / scale,
        )
    _describe(result, valid, members, p)
    if unaccounted:
        result.evidence.append(_left_out(unaccounted))
    if not accounted:
        result.evidence.append(_lower_bound(members))
    _bracket(result, valid, scale, low_loads, r0=base_s > 0)
    if retrograde is not None:
        result.evidence.append(f"retrograde: from {retrograde.named} on throughput falls by more than {COUNTS:.0%}")
    return members


def _without_unfinished(members: list[TrialData]) -> list[TrialData]:
    """Also where fewer than MIN_PLATEAU loads remain: what a load that has not settled serves in its run is a lower
    bound, so it cannot lower the maximum. A database that collapsed gave 16, 4 and 1/s at 2, 8 and 24 times its
    knee."""
    while levels(members) > 1 and not members[-1].load.settled and surely_differ(pooled(members)[1]) and falls(members):
        members = without_highest(members)
    return members


def _accounted(members: list[TrialData]) -> tuple[list[TrialData], list[TrialData]]:
    """Those that count for the maximum, and those that do not: beside trials whose answers account for the users, one
    whose answers do not, and that serves less by what counts and no chance makes. What it serves is a lower bound
    (perhaps not all users were there throughout), which cannot lower the maximum."""
    told = [t for t in members if t.load.model is not LoadModel.CLOSED or t.load.accounted]
    if not told or len(told) == len(members) or not surely_differ(pooled(members)[1]):
        return members, []
    least = (1 - COUNTS) * np.mean([t.load.throughput_per_s for t in told])
    kept = [t for t in members if t in told or t.load.throughput_per_s >= least]
    return kept, [t for t in members if t not in kept]


def surely_differ(p: float) -> bool:
    """Whether it is no chance that trials differ. (Of sums alone nobody knows: then the size of a fall must do.)"""
    return not p >= DIFFER_P


def levels(members: list[TrialData]) -> int:
    """How many different loads."""
    return len({t.load.level for t in members})


def highest(members: list[TrialData]) -> list[TrialData]:
    """All repetitions of the highest load."""
    return [t for t in members if t.load.level == members[-1].load.level]


def without_highest(members: list[TrialData]) -> list[TrialData]:
    """Without all repetitions of the highest load."""
    return [t for t in members if t.load.level != members[-1].load.level]


def falls(members: list[TrialData]) -> bool:
    """Whether the highest load makes less than the others, each the mean of all its repetitions: to leave out the worse
    ones alone would choose by the outcome."""
    rest = [t.load.throughput_per_s for t in without_highest(members)]
    most = [t.load.throughput_per_s for t in highest(members)]
    return bool(rest) and bool(np.mean(most) < (1 - COUNTS) * np.mean(rest))


def _describe(result: SweepVerdict, valid: list[TrialData], members: list[TrialData], p: float) -> None:
    found = result.max_throughput
    assert found is not None
    names = ", ".join(dict.fromkeys(str(t.load.users) for t in members))
    width = f" (95 % interval {found.low:.1f} to {found.high:.1f})" if np.isfinite(found.low) else ""
    result.evidence.append(
        f"maximum throughput {'at least ' if result.at_least else ''}{found.value:.1f}/s{width}: mean of "
        f"{counted(len(members), 'trial')} beyond the knee ({names} {_who(valid)})"
    )
    if not width and len(members) > 1:
        result.evidence.append(_no_interval([t.load.throughput_per_s for t in members]))
    if width and members[0].load.model is LoadModel.CLOSED:
        result.evidence.append(_holds(members))
    unsettled = sorted({t.load.users for t in valid if not t.load.settled})
    if unsettled:
        kept = ", ".join(str(n) for n in unsettled if n in result.plateau_users)
        result.evidence.append(
            f"the run is too short for {', '.join(map(str, unsettled))} {_who(valid)}, where an answer takes "
            f"{SETTLES:.0%} of it or more (N/X - Z): "
            + (f"{kept} count nevertheless, since there are too few other loads" if kept else "they do not count")
        )
    if np.isfinite(p) and p < DIFFER_P:
        result.evidence.append(f"these trials differ by more than chance (p = {p:.2g}), so the interval is wider")


def _bracket(result: SweepVerdict, valid: list[TrialData], scale: float, low_loads: int, *, r0: bool) -> None:
    """Whether loads lie on both sides of the knee. `r0`: whether the loads tell the response time without waiting."""
    if not np.isfinite(result.knee_users):
        result.knee_bracketed = False
        result.evidence.append(
            f"where the knee is, is not known: {valid[0].load.named} are limited already, so no load tells R0"
        )
        return
    knee = result.knee_users * scale
    users = np.array(sorted({t.load.users_real for t in valid}))
    below, above = users[users <= BELOW * knee], users[users > knee]
    near = (users[users > knee].min() - users[users <= knee].max()) if len(above) and (users <= knee).any() else np.inf
    law = ("N/(Z+R0)" if valid[0].load.alone_s else "N/R0") + " meets the maximum"
    law, or_more = (law, "") if r0 else (f"{law}; no load tells R0", " or more")
    result.knee_bracketed = len(below) >= low_loads and len(above) >= MIN_PLATEAU
    result.evidence.append(
        f"knee at {result.knee_users:.0f} {_who(valid)}{or_more} ({law}): "
        f"{counted(len(below), 'load')} below 0.8 of it, {len(above)} above"
        + (f", the nearest {near / scale:.0f} {_who(valid)} apart" if np.isfinite(near) else "")
    )
    if not result.knee_bracketed:
        result.evidence.append(f"the knee is not bracketed: {low_loads} below and {MIN_PLATEAU} above it are needed")


def _lower_bound(members: list[TrialData]) -> str:
    """Why the maximum is a lower bound: what was served is known, and not what was asked for."""
    known = 1 - float(np.mean([t.load.unmet for t in members]))
    return (
        f"beyond the knee the answers account for {100 * known:.0f} % of the users (N/(Z+R)): requests pile up, or not "
        "all users were there throughout (the load generator may have stopped early); the maximum is at least this"
    )


def _left_out(unaccounted: list[TrialData]) -> str:
    """What does not count for the maximum beside trials whose answers account for the users."""
    some = ", ".join(f"{t.load.trial} ({100 * (1 - t.load.unmet):.0f} %)" for t in unaccounted)
    return (
        f"{some} not counted for the maximum: the answers account for so many of the users only (N/(Z+R)), as if not "
        "all were there throughout, and less is served than in the others"
    )


def _no_interval(rates: list[float]) -> str:
    return (
        f"these {len(rates)} trials differ too much to bound the maximum ({min(rates):.3g} to {max(rates):.3g}/s): a "
        "95 % interval would begin at 0"
    )


def _holds(members: list[TrialData]) -> str:
    """The limits of the maximum's interval, if it does not cover everything in 95 % (docs/detector.md, Intervals)."""
    run_s = float(np.mean([t.load.end_s - t.load.start_s for t in members]))
    text = (
        f"that interval is about runs as long as these ({run_s:.0f} s): beyond its knee a system takes minutes to "
        f"settle, and the mean of 40 minutes lay in {LONG_RUN_PCT} % of such intervals (simulated)"
    )
    return text if len(members) > 1 else f"{text}; it comes from one trial, so it leaves out how much trials differ"


def _who(valid: list[TrialData]) -> str:
    return valid[0].load.who
