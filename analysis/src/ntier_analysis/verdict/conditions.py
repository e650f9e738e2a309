"""A sweep over a factor that changes something else than how much is asked: each value is a condition of its own, with
its own throughput and its own limit; what moves from value to value is the bottleneck."""

from __future__ import annotations

from collections.abc import Callable

from ntier_analysis.verdict.agreement import migrations
from ntier_analysis.verdict.data import SweepVerdict, TrialData
from ntier_analysis.wording import some_are

Judge = Callable[[list[TrialData]], SweepVerdict]


def judge_values(
    sweep: str, topology: str, ordered: list[TrialData], valid: list[TrialData], judge: Judge
) -> SweepVerdict:
    """Each value by itself, and what they have in common: the sweep has a verdict only if they agree."""
    values = sorted({t.load.level for t in valid})
    each = [judge([t for t in valid if t.load.level == v]) for v in values]
    result = SweepVerdict(sweep, topology, "unknown")
    verdicts = {load.trial: verdict for one in each for load, verdict in one.trials}
    lacking = judge([t for t in ordered if t.load.trial not in verdicts]) if len(verdicts) < len(ordered) else None
    result.trials = [
        *(pair for one in each for pair in one.trials),
        *(lacking.trials if lacking else []),
    ]
    if lacking:
        names = "; ".join(f"{load.trial} ({load.invalid_reasons or 'not collected'})" for load, _ in lacking.trials)
        result.evidence.append(
            f"{some_are(len(lacking.trials), len(ordered), 'trial')} invalid and not counted: {names}"
        )
    for one in each:
        load, best = one.trials[0][0], one.max_throughput
        named = " and ".join(f"{b.tier} {b.resource}" for b in one.bottlenecks)
        rate = f", {best.value:.4g}/s" if best else ""
        result.evidence.append(f"{load.named}: {one.verdict}{f' ({named})' if named else ''}{rate}")
    _agree(result, each)
    limited = [t for t in valid if verdicts[t.load.trial].bottlenecks]
    result.migration = migrations([(t, verdicts[t.load.trial]) for t in limited])
    limited_or_unknown = [one for one in each if one.verdict != "none"] or each
    result.next = list(dict.fromkeys(text for one in limited_or_unknown for text in one.next))[:3]
    return result


def _agree(result: SweepVerdict, each: list[SweepVerdict]) -> None:
    """What all values that name something name; values at which nothing limits are no contradiction."""
    known = [one for one in each if one.verdict != "unknown"]
    limited = [one for one in known if one.verdict != "none"]
    said = {(one.verdict, tuple(sorted((b.tier, b.resource) for b in one.bottlenecks))) for one in limited or known}
    if len(said) != 1 or 2 * len(known) <= len(each):
        result.evidence.append("the values do not agree on what limits: each has its own verdict")
        return
    if not limited and len(known) < len(each):
        at = ", ".join(one.trials[0][0].named for one in each if one.verdict == "unknown")
        result.evidence.append(f"at {at} it is not known whether something limits; at the others nothing does")
        return
    strongest = max(limited or known, key=lambda one: sum(b.saturation for b in one.bottlenecks))
    result.verdict, result.kind, result.bottlenecks = strongest.verdict, strongest.kind, strongest.bottlenecks
    if limited and len(limited) < len(each):
        at = ", ".join(one.trials[0][0].named for one in limited)
        result.evidence.append(f"it limits at {at}")
