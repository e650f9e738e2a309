"""The capacity of a system under open load: what it completes at rates that it cannot serve."""

from __future__ import annotations

import numpy as np

from ntier_analysis.statistics.laws import MIN_PLATEAU
from ntier_analysis.verdict.data import SweepVerdict, TrialData
from ntier_analysis.verdict.load import COUNTS
from ntier_analysis.verdict.plateau import falls, highest, pooled, surely_differ, without_highest
from ntier_analysis.verdict.reasoning import untold
from ntier_analysis.wording import counted


def unlimited(result: SweepVerdict, valid: list[TrialData]) -> None:
    """The backlog grows at no load."""
    told = [t for t in valid if not untold(t.load)]
    if not told:
        result.evidence.append(f"no load shows whether the backlog grows: {untold(valid[-1].load)}")
        return
    top = told[-1].load
    result.verdict = "none"
    result.max_throughput = pooled(highest(told))[0]
    result.evidence.append(
        f"everything offered is completed up to the highest valid load ({top.named}: {top.offered_per_s:.1f}/s "
        "offered): nothing limits yet, the maximum is at least this"
    )


def measure_capacity(result: SweepVerdict, valid: list[TrialData], limited: list[TrialData]) -> list[TrialData]:
    """Pools the loads whose backlog grows; returns those that count."""
    members, retrograde = list(limited), None
    while falls(members) and surely_differ(pooled(members)[1]):
        retrograde, members = members[-1].load, without_highest(members)
    found, _ = pooled(members)
    result.max_throughput = found
    result.plateau_users = tuple(t.load.users for t in members)
    free = [t for t in valid if t not in limited and not untold(t.load)]
    served = max((t.load.offered_per_s for t in free), default=float("nan"))
    result.at_least = len({t.load.level for t in members}) < MIN_PLATEAU
    result.knee_bracketed = bool(free)
    width = f" (95 % interval {found.low:.1f} to {found.high:.1f})" if np.isfinite(found.low) else ""
    result.evidence.append(
        f"capacity {found.value:.1f}/s{width}: mean of {counted(len(members), 'trial')} whose backlog grows"
        + (f"; {served:.1f}/s offered were still served" if free else "; no load was served fully: add a lower one")
    )
    if retrograde is not None:
        result.evidence.append(f"retrograde: from {retrograde.named} on throughput falls by more than {COUNTS:.0%}")
    return members
