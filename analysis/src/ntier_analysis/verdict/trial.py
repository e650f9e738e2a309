"""What limits the throughput of one trial."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.statistics.laws import asymptote
from ntier_analysis.verdict.causes import EXPLAINS, SOFT, Causes, causes, surges
from ntier_analysis.verdict.context import NO_CONTEXT, NO_ROOM_PCT, Context
from ntier_analysis.verdict.coverage import SURE_GAIN, covered, unseen_turns
from ntier_analysis.verdict.disks import Room
from ntier_analysis.verdict.exact import as_expected
from ntier_analysis.verdict.full_together import UNTOLD, pair_of, plateau_use
from ntier_analysis.verdict.load import COUNTS, Bottleneck, Load, Verdict, is_server
from ntier_analysis.verdict.moves import moves
from ntier_analysis.verdict.outside import crowded, unlisted
from ntier_analysis.verdict.reasoning import law, nobody_waits, not_hidden, untold
from ntier_analysis.verdict.relief import limiting_replicas
from ntier_analysis.verdict.saturation import GRID_S, THRESHOLD, Saturation, mean_use
from ntier_analysis.verdict.standstill import Stops, standstill
from ntier_analysis.wording import counted

HIDDEN = 0.10
"""The same share, from which on there must be a cause, seen or hidden."""
STILL_GROWS = 0.8
"""Growth of the throughput against that of the users (d ln X / d ln N) from which on nothing hidden limits. From 0.8 to
1.1 knees of a hidden limit it is 0.7."""
OUTDONE = 1.25
"""Throughput of a higher load against a load's own, from which on nothing hidden limits at this one: what limits holds
throughput level. At 1.15 a hidden disk is missed whose loads serve 12 to 15/s in runs of 40 s (one of 387 tuning cases
of bench/queueing; no other verdict of these, of 240 selection and of 347 scoring cases differs)."""
MUCH = 0.25
"""Share of the throughput that waiting costs, from which on a load is limited whatever other loads serve: while users
wait, something limits. Where one queue of use U makes users wait, and throughput still grows by d ln X / d ln N = e,
waiting costs (1 - U)(1 - e)/e (open queue): at STILL_GROWS a quarter at most."""
MAY_LIMIT_PCT = 80.0
"""Mean use of a CPU over the plateau, from which on it may be what limits, though it is not full: where some requests
pass others, or come in bursts, those that wait do so in a part of the time. Of 30 simulated sweeps with a hidden limit
whose busiest resource was a CPU none used it 79 to 90 %; one whose CPUs limited at 82 and 77 % was called hidden
(bench/queueing, tuning 300-420 and scoring 2247-2420)."""
MAYBE_FULL = "may have no room"
"""Of a resource, for which nothing is called hidden."""
MISSING = 0.1
"""Share of missing samples from which on a resource counts as not measured."""
COARSE_S = 0.5
"""Interval of samples above which short turns do not show: the evidence says so, and nothing is called hidden that may
be such turns."""
FINER = "sample finer"
"""End of the reason for which nothing is called hidden then (advice.py asks for it)."""
IMBALANCE_POINTS = 20.0
"""Points of mean use below a saturated replica, from which on the evidence calls its tier imbalanced."""
SPINS = 2.0
"""Use of a CPU against what the requests need, from which on something else than they fills it: threads that spin for
a lock, say, of which more CPU makes more. What an interaction costs more at high load than at low (caches, switches
between threads) is less (simulated: bench/queueing, tuning 300-420 and scoring 2247-2700: none of the CPUs that
limit)."""


def judge_trial(
    load: Load, found: list[Saturation], nodes: dict[str, str], base_s: float, context: Context = NO_CONTEXT
) -> Verdict:
    """`found`: saturations of the trial; `nodes`: name -> tier of all nodes that should have been measured; `base_s`:
    response time of the sweep's lowest load, 0 if unknown; `context`: what its other loads tell."""
    if not load.valid:
        reasons = load.invalid_reasons or "not collected"
        rate = f"{load.throughput_per_s:.1f}/s"
        text = f"the trial is invalid ({reasons}): its throughput of {rate} is at best a lower bound"
        return Verdict("unknown", evidence=[text])
    if why := untold(load):
        return Verdict("unknown", evidence=[why])
    servers = [s for s in found if is_server(s.tier)]
    lost = load.lost(base_s)
    evidence = [_law(load, base_s, lost), *_conflicts(servers)]
    waits = load.users_wait(base_s, max(1, round((load.end_s - load.start_s) / GRID_S)))
    seen = causes(load, servers, context, waits, lost)
    evidence += [_said(s) for s in sorted(seen.named, key=lambda s: -s.share.value)]
    evidence += seen.notes
    stops, stopped = Stops.NONE, ()
    if load.paused >= COUNTS:
        still = standstill(load, servers, seen, context, lost, base_s, waits)
        stops, stopped, seen = still.stops, still.stopped, still.causes
        evidence += still.texts
    held_up = load.paused >= COUNTS and bool(seen.named)  # by what saturates then
    if lost < COUNTS and stops is Stops.NONE and not held_up:
        if seen.named:
            evidence.append("it saturates, but throughput still follows the law: not (yet) a limit")
        return Verdict("none", evidence=evidence, lost=lost)
    if not seen.named:
        judged = _without_cause(load, servers, nodes, lost, evidence, context, stops, base_s, waits)
        if judged.verdict == "hidden" and (why := crowded(found, context) or unlisted(context)):
            judged = replace(judged, verdict="unknown", evidence=[*judged.evidence, why])
    else:
        judged = _with_causes(load, seen, servers, nodes, lost, evidence, context, waits)
    return replace(judged, stopped=stopped)


def _law(load: Load, base_s: float, lost: float) -> str:
    if load.model is not LoadModel.CLOSED:
        return law(load, base_s, lost)
    bound = asymptote(load.users_real, load.think_s, base_s)
    residual = 100 * (load.throughput_per_s / asymptote(load.users_real, load.think_s, load.response_s) - 1)
    text = (
        f"throughput {load.throughput_per_s:.1f}/s; unlimited, {load.users_real:g} users would reach {bound:.1f}/s "
        f"(N/(Z+R0), Z {load.think_s:g} s, R0 {1000 * base_s:.0f} ms); mean response time "
        f"{1000 * load.response_s:.0f} ms: waiting costs {100 * lost:.1f} %; N/(Z+R) is met to {residual:+.1f} %"
    )
    if load.pending > 0.05 * load.throughput_per_s * (load.end_s - load.start_s):
        text += f"; {load.pending} interactions were pending at the end: the response time is a lower bound"
    return text


def _said(s: Saturation) -> str:
    how = "throttled by its quota" if s.by_throttling else f"at or above {THRESHOLD:.0f} %"
    return (
        f"{s.name} was {how} in {100 * s.share.value:.0f} % of the run (95 % interval {100 * s.share.low:.0f} to "
        f"{100 * s.share.high:.0f} %, {s.share.n} samples of {1000 * s.interval_s:.0f} ms worth "
        f"{s.share.n_effective:.0f}{f'; {s.share.note}' if s.share.note else ''}); "
        f"mean utilization {s.utilization_mean_pct:.0f} %"
    )


def _conflicts(found: list[Saturation]) -> list[str]:
    return [
        f"{s.name}: {s.utilization_p95_pct:.0f} % utilization in the 95th percentile, more than its capacity: "
        "the quota on record is wrong"
        for s in found
        if s.utilization_mean_pct > 103
    ]


def unmeasured(found: list[Saturation], nodes: dict[str, str]) -> list[str]:
    """Server nodes whose CPU was not measured, or with too many gaps."""
    good = {
        s.node
        for s in found
        if s.resource == "cpu" and s.share.n and s.share.missing <= MISSING * (s.share.n + s.share.missing)
    }
    return sorted(n for n, tier in nodes.items() if is_server(tier) and n not in good)


def _without_cause(
    load: Load,
    found: list[Saturation],
    nodes: dict[str, str],
    lost: float,
    evidence: list[str],
    context: Context,
    stops: Stops,
    base_s: float,
    waits: np.ndarray,
) -> Verdict:
    missing = unmeasured(found, nodes)
    if missing:
        evidence.append(f"no cause seen, and no (complete) CPU samples of {', '.join(missing)}")
        return Verdict("unknown", evidence=evidence, lost=lost)
    busiest = sorted((s for s in found if s.share.n), key=lambda s: -s.utilization_mean_pct)[:3]
    seen = ", ".join(f"{s.name} {s.utilization_mean_pct:.0f} %" for s in busiest)
    evidence.append(f"no measured resource saturates; the busiest are {seen}")
    perhaps = _perhaps_full(found, context)
    if perhaps:
        evidence += [f"{s.name}: {Room.PERHAPS.value}; sample its queue" for s in perhaps]
        return Verdict("unknown", evidence=evidence, lost=lost)
    coarse = [s for s in found if s.resource == "cpu" and s.interval_s > COARSE_S]
    if coarse:
        how = f"every {coarse[0].interval_s:.1f} s only"
        evidence.append(f"{coarse[0].name} was sampled {how}: sample finer to see short turns")
    # workers who never think all wait at times, for whatever a unit of work consists of: that is no stop
    stopped = stops is Stops.SEEN or (stops is Stops.UNTOLD and lost >= HIDDEN)
    if stopped and load.model is not LoadModel.WORK:
        return Verdict("hidden", evidence=evidence, lost=lost)
    if not context.levels_off:
        evidence.append("no other load shows whether this response time is service or waiting")
        return Verdict("unknown", evidence=evidence, lost=lost)
    roomy = {key for key, disk in context.disks.items() if disk.room is Room.SOME}
    if why := not_hidden(load, [s for s in found if s.key not in roomy], context.growth.get(load.trial)):
        return Verdict("unknown", evidence=[*evidence, why], lost=lost)
    # a backlog that surely grows is a limit, however slowly it does
    little = COUNTS if load.model is LoadModel.OPEN else HIDDEN
    not_yet = "waiting costs little" if lost < little else _still_more(load, context)
    if not_yet and lost < MUCH:
        evidence.append(f"{not_yet}: not a limit yet")
        return Verdict("unknown" if stops is Stops.UNTOLD else "none", evidence=evidence, lost=lost)
    if stops is Stops.WORK:
        evidence.append("it holds up the others in the pauses, or passes on requests to what does: that is not known")
        return Verdict("unknown", evidence=evidence, lost=lost)
    if as_expected(load, [s for s in found if not _has_room(s, context)], base_s):
        evidence.append("the measured use explains the waiting (exact MVA): nothing hidden shows yet")
        return Verdict("unknown", evidence=evidence, lost=lost)
    if text := surges(load, found):
        return Verdict("unknown", evidence=[*evidence, text], lost=lost)
    hard = [s for s in found if s.resource not in SOFT and not _has_room(s, context)]
    # what a resource is used at loads that serve more says nothing of its use here
    own = replace(context, used_pct={}, most_pct={}) if not_yet else context
    full = [s for s in hard if _may_be_full(s, load, own)]
    if full:
        evidence += [f"{s.name} {MAYBE_FULL}: {_use_text(s, load, own)}" for s in full]
        return Verdict("unknown", evidence=evidence, lost=lost)
    if text := _unseen_turns(hard, waits):
        return Verdict("unknown", evidence=[*evidence, text], lost=lost)
    if not_yet:
        evidence.append(f"{not_yet}, but here something that was not measured held up the users")
        return Verdict("unknown", evidence=evidence, lost=lost, held_up=True)
    return Verdict("hidden", evidence=evidence, lost=lost)


def _still_more(load: Load, context: Context) -> str:
    """Why no limit of all loads seems to hold up this one; '' if one may."""
    if (growth := context.growth.get(load.trial, 0.0)) >= STILL_GROWS:
        return f"throughput still grows as the users do (d ln X / d ln N {growth:.2f})"
    if (more := context.outdone.get(load.trial, 1.0)) >= OUTDONE and load.model is LoadModel.CLOSED:
        return f"a higher load serves {more:.2f} times as much"
    return ""


def _unseen_turns(hard: list[Saturation], waits: np.ndarray) -> str:
    """Which two of these may take turns that their samples are too coarse to show; '' if no two may."""
    found = unseen_turns(hard, waits, COARSE_S)
    if not found:
        return ""
    names, used = " and ".join(s.name for s in found), sum(s.utilization_mean_pct for s in found)
    every = max(s.interval_s for s in found)
    return (
        f"{names} are used {used:.0f} % together, sampled every {every:.1f} s: they may take turns shorter than that, "
        f"and limit; {FINER}"
    )


def _may_be_full(s: Saturation, load: Load, context: Context) -> bool:
    """Whether a resource that was not seen full may be. Collections may stop it while a part of its CPU idles."""
    own = mean_use(s).value
    used = context.used_pct.get(s.key, own)
    if load.throughput_per_s > (1 + COUNTS) * context.level:  # it serves more than the plateau, and so uses more
        used = max(used, own)
    return may_limit(s, used, load) or _most_used(s, load, context) + s.collected_pct >= NO_ROOM_PCT


def may_limit(s: Saturation, used_pct: float, load: Load) -> bool:
    """Whether a CPU of this mean use over the plateau may be what limits, though it is not full."""
    return s.resource == "cpu" and load.model is LoadModel.CLOSED and used_pct >= MAY_LIMIT_PCT


def _most_used(s: Saturation, load: Load, context: Context) -> float:
    """Mean utilization, %, that is not known to be less, over the loads beyond the knee. A load that serves more than
    they do on average uses it more (utilization law)."""
    used = mean_use(s)
    most = context.most_pct.get(s.key, used.high if np.isfinite(used.high) else used.value)
    return most * max(1.0, load.throughput_per_s / context.level)


def _has_room(s: Saturation, context: Context) -> bool:
    """Whether it is known that its utilization says nothing of its room."""
    wide = s.key in context.disks and context.disks[s.key].room in (Room.SOME, Room.PERHAPS)
    return wide or (context.is_full_anyway(s) and not context.is_waited_for(s))


def _use_text(s: Saturation, load: Load, context: Context) -> str:
    used, most = mean_use(s), _most_used(s, load, context)
    width = f", 95 % interval {used.low:.0f} to {min(used.high, 100.0):.0f} %" if np.isfinite(used.low) else ""
    if np.isfinite(used.low) and most > used.high:  # runs differ by more than each of them shows
        width += f"; over the loads beyond the knee up to {min(most, 100.0):.0f} %"
    stops = f"; garbage collections stop it in {s.collected_pct:.0f} % of the run" if s.collected_pct else ""
    return f"it is used {used.value:.0f} %{width}{stops}"


def _perhaps_full(found: list[Saturation], context: Context) -> list[Saturation]:
    """Disks that read full, serve several at a time, and may be full or not."""
    reads_full = [s for s in found if s.key in context.disks and s.utilization_mean_pct >= NO_ROOM_PCT]
    return [s for s in reads_full if context.disks[s.key].room is Room.PERHAPS]


def _with_causes(
    load: Load,
    seen: Causes,
    found: list[Saturation],
    nodes: dict[str, str],
    lost: float,
    evidence: list[str],
    context: Context,
    waits: np.ndarray,
) -> Verdict:
    named = seen.named
    unproved = [s for s in named if s.key in seen.unproved]
    if unproved:
        evidence += dict.fromkeys(seen.unproved[s.key] for s in unproved)
        perhaps = [_bottleneck(some, []) for group, some in sorted(_grouped(named).items()) if group in seen.perhaps]
        return Verdict("unknown", evidence=evidence, lost=lost, perhaps=perhaps)
    if why := nobody_waits(load, named, context.cores):
        return Verdict("unknown", evidence=[*evidence, why], lost=lost)
    if why := _works_ahead(load, named, context) or _spins(load, named, found, context):
        return Verdict("unknown", evidence=[*evidence, why], lost=lost)
    perhaps = _perhaps_full(found, context)
    if perhaps and covered(named, waits) < EXPLAINS:
        evidence += [f"{s.name}: {Room.PERHAPS.value}; the named resources explain only a part" for s in perhaps]
        return Verdict("unknown", evidence=evidence, lost=lost)
    groups = _grouped(named)
    pairs = {
        (a, b): pair_of(groups[a], groups[b], load, context, seen.in_turn) for a, b in combinations(sorted(groups), 2)
    }
    # what has room beside another does not lead, however often it reads saturated; the fullest never has
    roomy = {pair.roomy for pair in pairs.values()}
    leader = max([g for g in groups if g not in roomy] or groups, key=lambda g: _mean_share(groups[g]))
    evidence += _imbalances(groups, found)
    if leader[1] in SOFT:
        evidence.append(
            f"the {leader[0]} {leader[1]} is full and nothing deeper saturates: raise it by a step to confirm; if "
            "throughput stays, the cause lies deeper and no collector sees it"
        )
    chosen, kind = [leader], "stable"
    for both, pair in pairs.items():
        evidence += [pair.text] if pair.text else []
        if pair.kind == UNTOLD and leader in both:
            return Verdict("unknown", evidence=evidence, lost=lost)
        if pair.kind and leader in both:
            chosen += [g for g in both if g not in chosen]
            kind = pair.kind
    if kind == "alternating":
        evidence += [f"saturation moved from {m.first} to {m.second} {counted(m.times, 'time')}" for m in moves(named)]
    missing = unmeasured(found, nodes)
    if missing:
        evidence.append(
            f"no (complete) CPU samples of {', '.join(missing)}: another bottleneck there would not be seen"
        )
    share = covered(named, waits)
    if np.isfinite(share):
        evidence.append(f"the named resources were saturated in {100 * share:.0f} % of the time in which users waited")
    listed = []
    for g in sorted(chosen, key=lambda g: -_mean_share(groups[g])):
        more = limiting_replicas(groups[g], [s for s in found if not _has_room(s, context)], context)
        evidence += [
            f"{s.name} is used {plateau_use([s], context):.0f} %: more of the other replicas alone would bring less"
            for s in more
        ]
        listed.append(_bottleneck(groups[g], more))
    return Verdict("multi" if len(chosen) > 1 else "single", kind, listed, evidence, lost, explained=share)


def _works_ahead(load: Load, named: list[Saturation], context: Context) -> str:
    """Why CPUs that are full need not limit while requests pile up, that is, while answers do not account for the
    users, or a backlog grows: they are used more than what is completed needs (utilization law), by low loads and by
    those beyond the knee at which nothing piles up, where work may be dearer. So they work for requests that pile up,
    perhaps behind something deeper. '' if one of the named is no such CPU."""
    if load.piling < COUNTS:
        return ""
    for s in named:
        used, needed = context.used_pct.get(s.key, 0.0), _completed_needs(s, context)
        if s.resource != "cpu" or used < (1 + SURE_GAIN) * needed:
            return ""
    return (
        f"{s.name} is used {used:.0f} %, and by its use at loads where none pile up what is completed needs "
        f"{needed:.0f} %: it works for requests that pile up, and whether they wait for it or for something behind it "
        "is not known"
    )


def _completed_needs(s: Saturation, context: Context) -> float:
    """Mean use that the plateau's throughput needs, %; 100 if nobody knows."""
    return max(context.needed_pct.get(s.key, 100.0), context.settled_pct.get(s.key, 0.0))


def _spins(load: Load, named: list[Saturation], found: list[Saturation], context: Context) -> str:
    """Why CPUs that are full need not limit: they are used SPINS times as much as what is completed needs, by the
    dearest load that loses nothing (utilization law), and neither collections nor more requests to the node explain it.
    '' if one of the named is no such CPU, or the other nodes of its tier are used as much less (a balancer sent it
    their work)."""
    if load.model is LoadModel.WORK:
        return ""
    for s in named:
        tier = [o for o in found if o.group == s.group]
        if s.resource != "cpu" or not all(_outgrows(some, context) for some in ([s], tier)):
            return ""
    used, needed = context.used_pct[s.key], context.explained_pct[s.key]
    return (
        f"{s.name} is used {used:.0f} %, and by its use at low loads what is completed needs {needed:.0f} %: something "
        "else fills it (threads that spin for a lock, say, or a job), and whether more of it would help is not known"
    )


def _outgrows(some: list[Saturation], context: Context) -> bool:
    """Whether CPUs, together, are used SPINS times as much as the requests need."""
    used = sum(context.used_pct.get(s.key, 0.0) - s.collected_pct for s in some)
    needed = sum(context.explained_pct.get(s.key, 100.0) for s in some)
    return used >= SPINS * needed


def _grouped(named: list[Saturation]) -> dict[tuple[str, str], list[Saturation]]:
    groups: dict[tuple[str, str], list[Saturation]] = {}
    for s in named:
        groups.setdefault((s.tier, s.resource), []).append(s)
    return groups


def _mean_share(group: list[Saturation]) -> float:
    return float(np.mean([s.share.value for s in group]))


def _bottleneck(group: list[Saturation], more: list[Saturation]) -> Bottleneck:
    """`more`: replicas that limit too, without being saturated: they are named, and do not thin out the saturation."""
    nodes = tuple(sorted({s.node for s in [*group, *more]}))
    items = sorted({s.item for s in group if s.item})
    return Bottleneck(
        group[0].tier,
        group[0].resource,
        nodes,
        _mean_share(group),
        float(np.mean([s.share.low for s in group])),
        float(np.mean([s.share.high for s in group])),
        ", ".join(items),
    )


def _imbalances(groups: dict[tuple[str, str], list[Saturation]], found: list[Saturation]) -> list[str]:
    """A tier in which only some nodes saturate while the others have room."""
    texts = []
    for (tier, resource), group in groups.items():
        if resource in SOFT:
            continue
        hot = {s.node for s in group}
        rest = [s for s in found if s.tier == tier and s.resource == resource and s.node not in hot and s.share.n]
        low = [
            s for s in rest if min(g.utilization_mean_pct for g in group) - s.utilization_mean_pct > IMBALANCE_POINTS
        ]
        if low:
            cool = ", ".join(f"{s.node} {s.utilization_mean_pct:.0f} %" for s in low)
            texts.append(f"imbalance: {', '.join(sorted(hot))} saturates while {cool} has room")
    return texts
