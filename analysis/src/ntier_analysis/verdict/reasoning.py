"""Which reasoning a load allows. Users who think: N / (Z + R) says what would be reached if nothing limited. Arrivals
at a rate: arrivals that are not served pile up. A fixed amount of work: the workers never think, so throughput follows
N / R, and a throughput that grows with their number is not limited.

If the factor changes something other than the amount of load (a size, a pause in the system), the loads are different
conditions, and each is judged by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.verdict.causes import SOFT
from ntier_analysis.verdict.data import TrialData
from ntier_analysis.verdict.load import COUNTS, Load
from ntier_analysis.verdict.saturation import Saturation

SURE = 2.0
"""Standard errors that the growth of a backlog must be from 0 to count."""
MAY_GROW = 3 * COUNTS
"""Share of what is offered by which a backlog must surely not grow (SURE standard errors above what it grew by) for all
to be completed. At COUNTS few served rates would be known to be: the level of a backlog that does not grow goes up and
down, and the error, which takes its steps for independent, is too large for it."""
PROPORTIONAL, CHANCE = 0.05, 3.0
"""Share by which offered rates may miss k x factor, or k / factor, for the factor to be what sets them; and standard
errors of a Poisson number beside."""
ALL_BUSY = 0.9
"""Share of the workers of an open load's driver that wait for an answer, from which on they may hold back arrivals."""
LEVEL, IDLE_PCT = 0.3, 50.0
"""If workers without think time use the busiest station by U, throughput grows with their number by d ln X / d ln N of
1 - U or more (balanced stations, exact). So if it grows by less than 0.3 and no measured station is used by half,
something that is not measured limits."""


@dataclass(frozen=True)
class Reasoning:
    """`said`: the sentence of the report. `one_by_one`: each value of the factor is judged by itself."""

    model: LoadModel
    one_by_one: bool
    said: str


_SAID = {
    LoadModel.CLOSED: "users who think: throughput is compared with N/(Z+R)",
    LoadModel.OPEN: "arrivals at a rate: completions are compared with the offered rate, and a trial is saturated if "
    "its backlog grows; think time plays no part",
    LoadModel.WORK: "a fixed amount of work: throughput is compared with N/(Z+R), where Z is what its workers pause by "
    "themselves; the result is the time to completion",
}


def reasoning(valid: list[TrialData]) -> Reasoning:
    """Of the valid trials of a sweep; without one, users who think."""
    if not valid:
        return Reasoning(LoadModel.CLOSED, False, _SAID[LoadModel.CLOSED])
    first = valid[0].load
    one_by_one = not (first.by_users if first.model is not LoadModel.OPEN else _sets_the_rate(valid))
    text = f"reasoning: {_SAID[first.model]}"
    if one_by_one:
        text += f"; {first.factor} changes something other than the amount of load, so each value is judged by itself"
    elif first.model is LoadModel.OPEN and _falls([t.load for t in valid]):
        text += f"; smaller values of {first.factor} mean more load"
    return Reasoning(first.model, one_by_one, text)


def _levels(loads: list[Load]) -> tuple[np.ndarray, np.ndarray]:
    """Values of the factor and mean offered rate of each."""
    values = sorted({t.level for t in loads})
    return np.array(values), np.array([np.mean([t.offered_per_s for t in loads if t.level == v]) for v in values])


def _sets_the_rate(valid: list[TrialData]) -> bool:
    """Whether the offered rate goes with the factor or its inverse; a single value cannot tell, and need not; of
    rates that are not known nothing can be told anyway."""
    value, offered = _levels([t.load for t in valid])
    if len(value) < 2 or not np.isfinite(offered).all():
        return True
    if not (value > 0).all() or not (offered > 0).all():
        return False
    run_s = np.mean([t.load.end_s - t.load.start_s for t in valid])
    most = PROPORTIONAL + CHANCE / np.sqrt(offered * run_s)
    return any((np.abs(offered / (offered.sum() / x.sum() * x) - 1) <= most).all() for x in (value, 1 / value))


def _falls(loads: list[Load]) -> bool:
    value, offered = _levels(loads)
    return len(value) > 1 and bool(offered[-1] < offered[0])


def untold(load: Load) -> str:
    """Why the load cannot be judged at all; '' if it can."""
    if not load.throughput_per_s > 0:
        return "nothing is known to have been completed, so no response time is known"
    if load.model is not LoadModel.OPEN and not np.isfinite(load.response_s):
        return "the response time is not known"
    if load.model is LoadModel.CLOSED and not np.isfinite(load.think_s):
        return "the users' think time is not known, so N/(Z+R) is unknown"
    if load.model is not LoadModel.OPEN:
        return ""
    if not (np.isfinite(load.offered_per_s) and np.isfinite(load.growth_per_s)):
        return "the heartbeat does not say how many interactions began (`started`), so the backlog is not known"
    share = load.growth_per_s / load.offered_per_s if load.offered_per_s > 0 else 0.0
    error = load.growth_error_per_s
    if share >= COUNTS and not load.growth_per_s >= SURE * error:
        known = f"s.e. {error:.2f}; run longer" if np.isfinite(error) else "with an error that is not known"
        return f"whether the backlog grows is not known: it grew by {load.growth_per_s:.2f} each second, {known}"
    if share < COUNTS and load.growth_per_s + SURE * error >= MAY_GROW * load.offered_per_s > 0:
        return (
            f"whether the backlog grows is not known: of {load.offered_per_s:.1f}/s offered it grew by "
            f"{load.growth_per_s:.2f} each second, s.e. {error:.2f}; run longer"
        )
    if share < COUNTS and load.users_real > 1 and ALL_BUSY * load.users_real <= load.pending <= load.users_real:
        return (
            f"{load.pending} of the driver's {load.users_real:g} workers waited for an answer at the end: they may "
            "have held back arrivals; give it more workers"
        )
    return ""


def law(load: Load, base_s: float, lost: float) -> str:
    """The sentence on throughput of a load without think time."""
    x, response_ms = load.throughput_per_s, 1000 * load.response_s
    if load.model is LoadModel.OPEN:
        return (
            f"offered {load.offered_per_s:.1f}/s, completed {x:.1f}/s: the backlog grows by {load.growth_per_s:.2f} "
            f"each second (s.e. {load.growth_error_per_s:.2f}), {100 * lost:.1f} % of what is offered; {load.pending} "
            f"were under way at the end; mean response time so far {response_ms:.0f} ms"
        )
    run_s = load.end_s - load.start_s
    text = (
        f"completed in {run_s:.1f} s by {load.users_real:g} workers: {x:.2f}/s, {1 / x:.4g} s per unit; a unit takes a "
        f"worker {response_ms:.0f} ms on average"
    )
    if load.paused_s > COUNTS * response_ms / 1000:
        text += f", and it pauses for {1000 * load.paused_s:.0f} ms by itself: waiting costs {100 * lost:.1f} %"
    elif base_s > 0:
        text += f", {1000 * base_s:.0f} ms with the fewest workers: waiting costs {100 * lost:.1f} %"
    return text


def not_hidden(load: Load, found: list[Saturation], growth: float | None) -> str:
    """Why work that nothing measured limits need not be limited by something hidden; '' if it must be. `found`: all
    that may be a station of the workers (no disk that is known to have room)."""
    if load.model is not LoadModel.WORK:
        return ""
    busiest = max((s.utilization_mean_pct for s in found if s.share.n and s.resource not in SOFT), default=0.0)
    if growth is not None and growth <= LEVEL and busiest <= IDLE_PCT:
        return ""
    return (
        "the workers wait for each other at a measured resource, or for something that is not measured: a sweep with "
        "more workers would tell (if throughput stops growing while nothing is busy, something hidden limits it)"
    )


def nobody_waits(load: Load, named: list[Saturation], cores: dict[str, float]) -> str:
    """Why a busy resource need not hold up work: as many workers as it can serve at once wait for no one; '' if some
    must. (A quota below one core holds up a single worker too.)"""
    if load.model is not LoadModel.WORK:
        return ""
    for s in named:
        nodes = {o.node for o in named if o.group == s.group}
        places = sum(max(1.0, cores.get(n, 1.0)) if s.resource == "cpu" else 1.0 for n in nodes)
        quota = s.resource == "cpu" and any(cores.get(n, 1.0) < 1 for n in nodes)
        if load.users_real <= places and not quota:
            return (
                f"{s.name} is busy, but {load.users_real:g} workers need not wait there: a sweep with more workers "
                "would tell whether more of it helps, or only a faster one"
            )
    return ""
