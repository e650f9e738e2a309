"""A named resource that has no room at the lowest load either: no load shows that the requests fill it."""

from __future__ import annotations

from ntier_analysis.verdict.causes import SOFT
from ntier_analysis.verdict.context import NO_ROOM_PCT
from ntier_analysis.verdict.data import SweepVerdict, TrialData
from ntier_analysis.verdict.load import Bottleneck
from ntier_analysis.wording import resource


def unproved(result: SweepVerdict, valid: list[TrialData]) -> list[Bottleneck]:
    """What the verdict names and no lower load tells from something that is always full. By the utilization law the
    use of a resource that requests fill falls with the throughput."""
    if not valid:
        return []
    lowest = [s for s in valid[0].saturations if s.utilization_mean_pct >= NO_ROOM_PCT]
    full = {(*s.group, s.node) for s in lowest}
    hard = [b for b in result.bottlenecks if b.resource not in SOFT]
    return [b for b in hard if b.nodes and all((b.tier, b.resource, n) in full for n in b.nodes)]


def full_throughout(result: SweepVerdict, valid: list[TrialData]) -> list[str]:
    return [
        f"{b.tier} {resource(b.resource)} has no room at the lowest load either ({valid[0].load.named}): that requests "
        "fill it, and not something else while something hidden limits, only a lower load can show"
        for b in unproved(result, valid)
    ]
