"""What limits a topology, over a range of users: plateau, knee, bottlenecks and their migration."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.statistics.laws import asymptote
from ntier_analysis.verdict.advice import advice
from ntier_analysis.verdict.agreement import combine, migrations, stops_elsewhere
from ntier_analysis.verdict.arrivals import measure_capacity, unlimited
from ntier_analysis.verdict.base import Base, base_response, growths, outdone
from ntier_analysis.verdict.conditions import judge_values
from ntier_analysis.verdict.context import Context, of_loads
from ntier_analysis.verdict.data import SweepVerdict, TrialData
from ntier_analysis.verdict.demands import first_to_saturate
from ntier_analysis.verdict.doubts import doubt
from ntier_analysis.verdict.load import TIERS, Load, Verdict
from ntier_analysis.verdict.losses import checked, unaccounted, untold_top
from ntier_analysis.verdict.lowest import full_throughout, unproved
from ntier_analysis.verdict.outside import crowded
from ntier_analysis.verdict.plateau import (
    LOW_LOADS,
    LOW_LOADS_SEARCHED,
    highest,
    limited_levels,
    measure_plateau,
    plateau_members,
    pooled,
)
from ntier_analysis.verdict.reasoning import reasoning, untold
from ntier_analysis.verdict.saturation import Saturation
from ntier_analysis.verdict.trial import judge_trial
from ntier_analysis.wording import join, some_are


def judge_sweep(
    sweep: str, topology: str, trials: list[TrialData], scale: float = 1.0, *, searched: bool = False
) -> SweepVerdict:
    """Only valid trials count; invalid ones are listed. `searched`: the loads were chosen by a search, not a grid."""
    ordered = sorted(trials, key=lambda t: (_place(t.load), t.load.trial))
    valid = [t for t in ordered if t.load.valid and np.isfinite(t.load.response_s) and t.load.throughput_per_s > 0]
    how = reasoning(valid)
    if how.one_by_one and len({t.load.level for t in valid}) > 1:
        result = judge_values(sweep, topology, ordered, valid, lambda some: judge_sweep(sweep, topology, some, scale))
    else:
        result = _judge_loads(sweep, topology, ordered, valid, scale, searched=searched)
    if ordered:
        first = (valid or ordered)[0].load
        result.load_model, result.factor, result.factor_unit = first.model.value, first.factor, first.unit
    if valid:
        result.reasoning = how.said
        if how.model is not LoadModel.CLOSED or not first.by_users:
            result.evidence.insert(0, how.said)
    return result


def _place(load: Load) -> float:
    """In the order of loads: by how much is asked, else by the factor's value. (NaN has no order.)"""
    place = load.amount if load.model is LoadModel.OPEN or load.by_users else load.level
    return place if np.isfinite(place) else -1.0


def _judge_loads(
    sweep: str, topology: str, ordered: list[TrialData], valid: list[TrialData], scale: float, *, searched: bool
) -> SweepVerdict:
    """Loads that differ in how much is asked."""
    open_load = bool(valid) and valid[0].load.model is LoadModel.OPEN
    base = Base(0.0, True) if open_load else base_response(valid)
    base_s = base.response_s
    beyond = limited_levels(valid, base)
    limited = [t for t in valid if t.load.level in beyond and not untold(t.load)]
    members = limited if open_load else plateau_members(limited, base_s)
    context = replace(
        of_loads(_seen(t for t in valid if t.load.level not in beyond), _seen(members)),
        order=ordered[0].order if ordered else TIERS,
        levels_off=base.compared,
        growth={} if open_load else growths(valid),
        outdone={} if open_load else outdone(valid),
        cores=valid[0].capacity_cores if valid else {},
        nodes_told=all(t.nodes_told for t in valid),
    )
    judged = [(t.load, _judged(t, base, context)) for t in ordered]
    result = SweepVerdict(sweep, topology, "unknown", trials=judged)
    low_loads = LOW_LOADS_SEARCHED if searched else LOW_LOADS
    invalid = [load for load, _ in judged if not load.valid]
    if invalid:
        names = "; ".join(f"{load.trial} ({load.invalid_reasons or 'not collected'})" for load in invalid)
        result.evidence.append(f"{some_are(len(invalid), len(judged), 'trial')} invalid and not counted: {names}")
    if not valid:
        result.evidence.append("there is no valid trial")
        result.next = advice(result, valid, [], context, low_loads)
        return result
    verdicts = {load.trial: verdict for load, verdict in judged}
    result.evidence += _cold(base, valid)
    if not limited and open_load:
        unlimited(result, valid)
    elif not limited:
        _unlimited(result, valid, base_s)
    elif open_load:
        members = measure_capacity(result, valid, limited)
        combine(result, [verdicts[t.load.trial] for t in members])
    else:
        members = measure_plateau(result, valid, members, base_s, scale, low_loads)
        settled = [t for t in members if t.load.accounted and verdicts[t.load.trial].verdict != "none"]
        others = [verdicts[t.load.trial] for t in valid if t.load.accounted]
        combine(result, [verdicts[t.load.trial] for t in settled or members], None if settled else others)
        stops_elsewhere(result)
        result.evidence += full_throughout(result, valid)
        proved = not unproved(result, valid)
        if why := doubt(result, [(t.load, verdicts[t.load.trial]) for t in members], base_s, context, proved=proved):
            result.verdict, result.kind, result.bottlenecks = "unknown", "", []
            result.evidence.append(why)
        _outside(result, members, context)
    if result.verdict == "none":
        result.at_least = True  # although some waiting may cost so much that the loads look like a plateau
        _up_to_the_highest_told(result, ordered, [t.load for t in valid if not untold(t.load)][-1])
        if why := untold_top(result, base):
            result.verdict = "unknown"
            result.evidence.append(why)
    if limited:
        result.migration = migrations([(t, verdicts[t.load.trial]) for t in limited])
    result.evidence += first_to_saturate(valid, [t for t in valid if t.load.level not in beyond])
    result.next = advice(result, valid, members, context, low_loads)
    return result


def _judged(t: TrialData, base: Base, context: Context) -> Verdict:
    """By R0; `none` only if users do not lose much by anything else that is known."""

    def by(base_s: float) -> Verdict:
        return judge_trial(t.load, t.saturations, t.nodes, base_s, context)

    return checked(t.load, by(base.of(t.load)), base, by)


def _cold(base: Base, valid: list[TrialData]) -> list[str]:
    """Of loads that answered more slowly than higher ones."""
    names = {t.load.level: t.load.named for t in valid}
    return [
        f"{names[level]} were answered in {1000 * slow:.0f} ms, more of them in {1000 * base.response_s:.0f} ms, "
        "and more users never wait less: something else made the system slow (it was cold, say), and R0 is not taken "
        "from that load"
        for level, slow in base.cold.items()
    ]


def _outside(result: SweepVerdict, members: list[TrialData], context: Context) -> None:
    """Where nothing is named, and something full outside of the system may have held up the users."""
    why = next((text for t in reversed(members) if (text := crowded(t.saturations, context))), "")
    if result.verdict == "unknown" and why:
        result.at_least = True
        result.evidence.append(f"{why}; the maximum is at least what was measured")


def _up_to_the_highest_told(result: SweepVerdict, ordered: list[TrialData], top: Load) -> None:
    """`none` speaks of all loads that were asked for: it needs a valid trial of the highest that can be judged."""
    above = [t.load for t in ordered if _place(t.load) > _place(top)]
    if not above:
        return
    result.verdict = "unknown"
    names = join(list(dict.fromkeys(load.named for load in above)))
    why = next((text for load in above if load.valid and (text := untold(load))), "no trial there is valid")
    result.evidence.append(f"whether something limits at {names} is not known: {why}")


def _seen(some: Iterable[TrialData]) -> list[tuple[Load, list[Saturation]]]:
    return [(t.load, t.saturations) for t in some]


def _unlimited(result: SweepVerdict, valid: list[TrialData], base_s: float) -> None:
    top = valid[-1].load
    told = [t for t in valid if not untold(t.load)]
    if not told:
        result.evidence.append(untold(top))
        return
    result.verdict = "none"
    result.max_throughput = pooled(highest(valid))[0]
    if top.model is LoadModel.WORK:  # by Little's law the same; how many workers pause is not always told
        law = "N/(Z+R0)" if top.paused_s else "N/R0"
        bound = top.throughput_per_s / (1 - top.lost(base_s))
    else:
        law, bound = "N/(Z+R0)", asymptote(top.users_real, top.think_s, base_s)
    result.evidence.append(
        f"throughput follows {law} up to the highest valid load ({top.named}: {top.throughput_per_s:.1f}/s of "
        f"{bound:.1f}/s): nothing limits yet, the maximum is at least this"
    )
    if why := unaccounted([t.load for t in told if t.load.level == told[-1].load.level], base_s):
        result.verdict = "unknown"
        result.evidence[-1] = why
