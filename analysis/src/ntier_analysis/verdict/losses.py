"""What users may lose at loads of which the response times say that nothing limits.

Waiting is told from service by R0, the response time at the lowest load. If that load was slow itself, or cannot tell,
it hides what is lost; so do answers that never came, and a think time that is not the users'. None of that proves a
limit; but while users may lose much, `none` is no answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.verdict.base import NO_CHANCE, Base
from ntier_analysis.verdict.data import SweepVerdict
from ntier_analysis.verdict.load import COUNTS, Load, Verdict
from ntier_analysis.verdict.reasoning import untold
from ntier_analysis.verdict.trial import HIDDEN, STILL_GROWS

BEYOND = 1.0
"""Share by which completions are more than N/(Z+R), from which on the think time or the number of users is wrong. In
runs of 40 s that are four think times long users who come in waves completed 0.47 more (simulated: bench/queueing,
tuning seeds 0-69)."""


def behind(load: Load, lost: float, base_s: float) -> float:
    """Share of the throughput that waiting costs: `lost`, by the response times; by the completions where these are
    less, since those who still wait at the end have no response time."""
    return max(lost, 1 - load.throughput_per_s * (load.alone_s + base_s) / load.users_real)


def unaccounted(loads: list[Load], base_s: float) -> str:
    """Why a load (its repetitions) may be limited although its answers are quick; '' if it is not."""
    first = loads[0]
    if first.model is not LoadModel.CLOSED:
        return ""
    lost = float(np.mean([behind(load, 0.0, base_s) for load in loads]))
    if not lost >= max(HIDDEN, _chance(loads)):
        return ""
    known = 1 - float(np.mean([load.unmet for load in loads]))
    return (
        f"answers are as quick as at low load, but {first.named} complete {100 * lost:.0f} % less than N/(Z+R0): the "
        f"answers account for {100 * known:.0f} % of the users (N/(Z+R)), and what holds up the others is not known"
    )


def checked(load: Load, said: Verdict, base: Base, judge: Callable[[float], Verdict]) -> Verdict:
    """A verdict `none` of a valid load, or `unknown` if users may lose much there. `judge`: the verdict of this load,
    by another R0."""
    if said.verdict != "none" or load.model is not LoadModel.CLOSED:
        return said
    missing = load.unmet >= max(COUNTS, _chance([load]))
    why = (
        _think_time(load)
        or (unaccounted([load], base.of(load)) if missing else "")
        or _stands_still(load)
        or _slow_base(load, base, judge)
    )
    return replace(said, verdict="unknown", evidence=[*said.evidence, why]) if why else said


def untold_top(result: SweepVerdict, base: Base) -> str:
    """Why `none` is not known of the highest valid load: half of its repetitions or more say something else, or no load
    tells R0; '' if it is."""
    told = [(load, v) for load, v in result.trials if load.valid and not untold(load)]
    top = [(load, v) for load, v in told if load.level == told[-1][0].level]
    others = [v for _, v in top if v.verdict != "none"]
    if 2 * len(others) < len(top):
        return _no_base(top[0][0], base)
    return f"whether something limits at {top[0][0].named} is not known: {others[0].evidence[-1]}"


def _chance(loads: list[Load]) -> float:
    """By how much of it the number of completions may miss what is expected."""
    done = sum(load.throughput_per_s * (load.end_s - load.start_s) for load in loads)
    return NO_CHANCE / math.sqrt(done)


def _think_time(load: Load) -> str:
    """By Little's law users who complete more than N/(Z+R) think for less than Z, or are more than N."""
    if not -load.unmet >= max(BEYOND, _chance([load])):
        return ""
    return (
        f"{load.named} complete {-100 * load.unmet:.0f} % more than N/(Z+R), which cannot be: the think time or the "
        "number of users is another one, so what waiting costs is not known"
    )


def _stands_still(load: Load) -> str:
    """Pauses cost no more than waiting for all of each answer would."""
    most = min(load.paused, load.lost(0.0))
    if most < HIDDEN:
        return ""
    return (
        f"it stood still in {100 * load.paused:.0f} % of the run, as perhaps at the lowest load, too: that may cost "
        f"{100 * most:.0f} % of the throughput, and no load tells what it does cost"
    )


def _slow_base(load: Load, base: Base, judge: Callable[[float], Verdict]) -> str:
    """Users never wait less at a higher load: by the quickest load's response time this one may be limited."""
    quicker = base.quickest_s < base.of(load) and load.lost(base.quickest_s) >= HIDDEN
    if not quicker or judge(base.quickest_s).verdict == "none":
        return ""
    return (
        f"another load was answered in {1000 * base.quickest_s:.0f} ms, and against that waiting costs "
        f"{100 * load.lost(base.quickest_s):.1f} %: what slowed these answers is not known"
    )


def _no_base(load: Load, base: Base) -> str:
    """Where throughput stays behind the users from the lowest load on, that load may wait itself: R0 is then at most
    its response time."""
    if load.model is not LoadModel.CLOSED or not base.growth < STILL_GROWS or load.lost(0.0) < HIDDEN:
        return ""
    return (
        f"from the lowest load on throughput grows less than the users do (d ln X / d ln N {base.growth:.2f} at most): "
        "that load may wait itself, so what waiting costs is not known"
    )
