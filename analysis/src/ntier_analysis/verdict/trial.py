"""What limits the throughput of one trial."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from ntier_analysis.statistics.laws import Dependence, asymptote, dependence
from ntier_analysis.statistics.share import Share
from ntier_analysis.verdict.saturation import THRESHOLD, Saturation, aligned

TIERS = ("web", "app", "middleware", "db")
"""From the client inwards: a later one is deeper."""
SOFT = ("pool",)
"""Resources whose exhaustion may be the symptom of a deeper one's saturation."""
LIMITED = 0.05
"""Share of the throughput that waiting costs, from which on a trial counts as limited."""
HIDDEN = 0.10
"""The same share, from which on there must be a cause, seen or hidden."""
FULL = 0.5
"""A resource that is saturated at least half of the run."""
PARTIAL = 0.2
"""A resource that is saturated in a part of the run, from which on it may be a cause."""
MISSING = 0.1
"""Share of missing samples from which on a resource counts as not measured."""
ALTERNATING_LIFT, ALTERNATING_P = 0.5, 0.01
COMPLETE = 0.9
"""One of the two is saturated nearly always. Shifting a periodic series by a period changes nothing, so the permutation
test has no power then."""
COARSE_S = 0.5
IMBALANCE_POINTS = 20.0


@dataclass(frozen=True)
class Load:
    """One trial's load and answer. `response_s` is the mean of the successes, `response_error_s` its standard error
    (NaN if unknown); `pending` interactions had no answer by the end of the run."""

    trial: str
    users: int
    users_real: float
    throughput_per_s: float
    response_s: float
    think_s: float
    start_s: float
    end_s: float
    valid: bool
    invalid_reasons: str = ""
    response_error_s: float = float("nan")
    pending: int = 0
    rates: np.ndarray | None = None
    think_measured_s: float = float("nan")

    def lost(self, base_s: float) -> float:
        """Share of the throughput lost by waiting: 1 - (Z + R0) / (Z + R), R0 = response time at the lowest load.

        By Little's law this is 1 - X / (N / (Z + R0)), but without the noise of the drawn think times."""
        return max(0.0, (self.response_s - base_s) / (self.think_s + self.response_s))


@dataclass(frozen=True)
class Bottleneck:
    tier: str
    resource: str
    nodes: tuple[str, ...]
    saturation: float
    low: float
    high: float
    item: str = ""


@dataclass
class Verdict:
    """`verdict`: none, single, multi, hidden or unknown; `kind`: stable, simultaneous, alternating or ''."""

    verdict: str
    kind: str = ""
    bottlenecks: list[Bottleneck] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)
    lost: float = float("nan")


def judge_trial(load: Load, found: list[Saturation], nodes: dict[str, str], base_s: float) -> Verdict:
    """`found`: saturations of the trial; `nodes`: name -> tier of all nodes that should have been measured; `base_s`:
    response time of the sweep's lowest load, 0 if unknown."""
    if not load.valid:
        reasons = load.invalid_reasons or "not collected"
        rate = f"{load.throughput_per_s:.1f}/s"
        text = f"the trial is invalid ({reasons}): its throughput of {rate} is at best a lower bound"
        return Verdict("unknown", evidence=[text])
    servers = [s for s in found if s.tier in TIERS]
    lost = load.lost(base_s)
    evidence = [_law(load, base_s, lost), *_conflicts(servers)]
    candidates = [s for s in servers if s.share.n and s.share.value >= PARTIAL and s.share.low > 0.0]
    causes, symptoms = _split(candidates)
    evidence += [_said(s) for s in sorted(causes, key=lambda s: -s.share.value)]
    evidence += symptoms
    if lost < LIMITED:
        if causes:
            evidence.append("it saturates, but throughput still follows the law: not (yet) a limit")
        return Verdict("none", evidence=evidence, lost=lost)
    if not causes:
        return _without_cause(load, servers, nodes, lost, evidence)
    return _with_causes(load, causes, servers, nodes, lost, evidence)


def _law(load: Load, base_s: float, lost: float) -> str:
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
        f"{s.share.n_effective:.0f}); mean utilization {s.utilization_mean_pct:.0f} %"
    )


def _conflicts(found: list[Saturation]) -> list[str]:
    return [
        f"{s.name}: {s.utilization_p95_pct:.0f} % utilization in the 95th percentile, more than its capacity: "
        "the quota on record is wrong"
        for s in found
        if s.utilization_mean_pct > 103
    ]


def _depth(tier: str) -> int:
    return TIERS.index(tier)


def _split(candidates: list[Saturation]) -> tuple[list[Saturation], list[str]]:
    """Causes, and a sentence for each full pool that a saturated resource of its own or a deeper tier explains: one
    saturated resource fills all pools above it."""
    causes, symptoms = [], []
    for s in candidates:
        deeper = [
            o
            for o in candidates
            if o is not s
            and o.share.value >= min(FULL, 0.7 * s.share.value)
            and (_depth(o.tier) > _depth(s.tier) or (o.resource not in SOFT and _depth(o.tier) == _depth(s.tier)))
        ]
        if s.resource in SOFT and deeper:
            cause = max(deeper, key=lambda o: (o.resource not in SOFT, _depth(o.tier), o.share.value))
            symptoms.append(f"{s.name} was full in {100 * s.share.value:.0f} % of the run: a symptom of {cause.name}")
        else:
            causes.append(s)
    return causes, symptoms


def unmeasured(found: list[Saturation], nodes: dict[str, str]) -> list[str]:
    """Server nodes whose CPU was not measured, or with too many gaps."""
    good = {
        s.node
        for s in found
        if s.resource == "cpu" and s.share.n and s.share.missing <= MISSING * (s.share.n + s.share.missing)
    }
    return sorted(n for n, tier in nodes.items() if tier in TIERS and n not in good)


def _without_cause(
    load: Load, found: list[Saturation], nodes: dict[str, str], lost: float, evidence: list[str]
) -> Verdict:
    missing = unmeasured(found, nodes)
    if missing:
        evidence.append(f"no cause seen, and no (complete) CPU samples of {', '.join(missing)}")
        return Verdict("unknown", evidence=evidence, lost=lost)
    busiest = sorted((s for s in found if s.share.n), key=lambda s: -s.utilization_mean_pct)[:3]
    seen = ", ".join(f"{s.name} {s.utilization_mean_pct:.0f} %" for s in busiest)
    evidence.append(f"no measured resource saturates; the busiest are {seen}")
    coarse = [s.name for s in found if s.resource == "cpu" and s.interval_s > COARSE_S]
    if coarse:
        evidence.append(
            f"{coarse[0]} was sampled every {found[0].interval_s:.1f} s only: sample finer to see short turns"
        )
    if lost < HIDDEN:
        evidence.append("waiting costs little: not a limit yet")
        return Verdict("none", evidence=evidence, lost=lost)
    return Verdict("hidden", evidence=evidence, lost=lost)


def _with_causes(
    load: Load,
    causes: list[Saturation],
    found: list[Saturation],
    nodes: dict[str, str],
    lost: float,
    evidence: list[str],
) -> Verdict:
    groups = _grouped(causes)
    leader = max(groups, key=lambda g: _mean_share(groups[g]))
    evidence += _imbalances(groups, found)
    if leader[1] in SOFT:
        evidence.append(
            f"the {leader[0]} {leader[1]} is full and nothing deeper saturates: raise it by a step to confirm; if "
            "throughput stays, the cause lies deeper and no collector sees it"
        )
    chosen, kind = [leader], "stable"
    for first, second in combinations(sorted(groups), 2):
        relation, text = _relation(groups[first], groups[second], load)
        evidence += [text] if text else []
        if relation and leader in (first, second):
            chosen += [g for g in (first, second) if g not in chosen]
            kind = relation
    missing = unmeasured(found, nodes)
    if missing:
        evidence.append(
            f"no (complete) CPU samples of {', '.join(missing)}: another bottleneck there would not be seen"
        )
    listed = [_bottleneck(groups[g]) for g in sorted(chosen, key=lambda g: -_mean_share(groups[g]))]
    return Verdict("multi" if len(chosen) > 1 else "single", kind, listed, evidence, lost)


def _grouped(causes: list[Saturation]) -> dict[tuple[str, str], list[Saturation]]:
    groups: dict[tuple[str, str], list[Saturation]] = {}
    for s in causes:
        groups.setdefault((s.tier, s.resource), []).append(s)
    return groups


def _mean_share(group: list[Saturation]) -> float:
    return float(np.mean([s.share.value for s in group]))


def _bottleneck(group: list[Saturation]) -> Bottleneck:
    nodes = tuple(sorted({s.node for s in group}))
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


def _relation(a: list[Saturation], b: list[Saturation], load: Load) -> tuple[str, str]:
    """`simultaneous`, `alternating` or '' with a sentence. By the size of the effect (lift), the permutation test is
    only a guard: two equal stations in series are slightly anti-correlated by nature."""
    first, second = (max(g, key=lambda s: s.share.value) for g in (a, b))
    found = dependence(*aligned(first, second, load.start_s, load.end_s))
    if np.isnan(found.lift):
        return "", ""
    text = (
        f"{first.name} and {second.name}: saturated together in {100 * found.joint:.0f} %, at least one in "
        f"{100 * found.union:.0f} % of the run; lift {found.lift:.2f}"
    )
    return _kind(found, first.share, second.share), text


def _kind(found: Dependence, a: Share, b: Share) -> str:
    smaller = min(a.value, b.value)
    in_turn = found.lift <= ALTERNATING_LIFT and found.union - found.joint >= FULL
    if in_turn and (found.p_below < ALTERNATING_P or found.union >= COMPLETE):
        return "alternating"
    if found.lift > ALTERNATING_LIFT and found.joint >= smaller / 2 and smaller >= FULL:
        return "simultaneous"
    return ""


def _imbalances(groups: dict[tuple[str, str], list[Saturation]], found: list[Saturation]) -> list[str]:
    """A tier of which only some nodes saturate while the others have room."""
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
