"""Why what the loads beyond the knee say is not enough for a verdict of the sweep.

Near the knee waiting costs something in any system: queues form before anything is full, and the mean response times of
short runs differ by as much. That something limits shows where throughput stays behind the users clearly."""

from __future__ import annotations

import numpy as np

from ntier_analysis.verdict.context import Context
from ntier_analysis.verdict.data import SweepVerdict
from ntier_analysis.verdict.load import USED_UP_PCT, Load, Verdict
from ntier_analysis.verdict.losses import behind
from ntier_analysis.verdict.trial import HIDDEN
from ntier_analysis.wording import counted

SHOWS = 0.15
"""Share of the throughput that must be lost at the highest load, so that a limit shows. Where less was, and a CPU with
room, a disk or something hidden was named, 5 of 5 systems had no such limit; from 0.15 to 0.25, 9 of 9 had the one that
was named (simulated: bench/queueing, tuning seeds 0-799)."""
REPEATED = 3
"""Pauses at one load, from which on a system stands still now and then, though no other load shows it. With one or two
of them, three of four systems had no such limit (simulated: bench/queueing, tuning and selection seeds)."""


def doubt(
    result: SweepVerdict, said: list[tuple[Load, Verdict]], base_s: float, context: Context, *, proved: bool = True
) -> str:
    """Of a sweep some of whose loads lose something; `said`: the trials beyond the knee; `base_s`: response time of the
    lowest load; `proved`: a lower load shows of all that is named that the requests fill it. '' if there is no
    doubt."""
    if result.verdict == "unknown" or (proved and _full(result, context)):
        return ""
    top = max(load.level for load, _ in said)  # the more users, the more waiting costs
    lag = float(np.mean([behind(load, v.lost, base_s) for load, v in said if load.level == top]))
    if result.verdict == "none" and lag >= HIDDEN:
        return (
            f"throughput still grows, but stays {100 * lag:.0f} % behind the users at the highest load: whether "
            "something limits soon is not known"
        )
    if result.verdict == "none" or lag >= SHOWS:
        return ""
    stops = [load for load, v in result.trials if load.valid and v.stopped]
    if not stops:
        return (
            f"throughput stays {100 * max(0.0, lag):.0f} % behind the users at the highest load: so near the knee "
            "that may be chance in a short run, or a queue as any busy system has one; a higher load would show "
            "whether something limits"
        )
    if len({load.level for load in stops}) > 1 or max(len(load.pauses) for load in stops) >= REPEATED:
        return ""
    times = sum(len(load.pauses) for load in stops)
    return f"it stood still {counted(times, 'time')}, at one load only: whether it does so again is not known"


def _full(result: SweepVerdict, context: Context) -> bool:
    """Whether all that is named has no room whatever the throughput says. (A disk that reads full may have room.)"""
    used = [context.used_pct.get((n, b.resource, b.item), 0.0) for b in result.bottlenecks for n in b.nodes]
    hard = all(b.resource in ("cpu", "network") for b in result.bottlenecks)
    return bool(used) and hard and min(used) >= USED_UP_PCT
