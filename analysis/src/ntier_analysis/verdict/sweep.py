"""What limits a topology, over a range of users: plateau, knee, bottlenecks and their migration."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from ntier_analysis.statistics.laws import (
    MIN_PLATEAU,
    UNSATURATED_PCT,
    apart,
    asymptote,
    demand_of,
    knee_users,
    pool,
)
from ntier_analysis.statistics.throughput import of_trials
from ntier_analysis.statistics.values import Demand, Interval
from ntier_analysis.verdict.context import Group, of_loads
from ntier_analysis.verdict.load import SETTLES, TIERS, Bottleneck, Load, Verdict
from ntier_analysis.verdict.saturation import Saturation
from ntier_analysis.verdict.trial import judge_trial

LOW_RESPONSE = 0.1
"""The lowest load gives R0 if its response time is below this share of the think time; else it is saturated itself."""
BELOW, ABOVE = 0.8, 1.0
ON_PLATEAU = 1.1
"""Loads from 1.1 times the knee on: below, a rounded knee still costs some per cent of the maximum."""
FAR = 1.4
"""If there are MIN_PLATEAU loads from 1.4 times the knee on, only those: where what limits does so in turns or bursts,
1.1 to 1.35 knees still give 3 to 8 % less (simulated: bench/detector)."""
LOW_LOADS, LOW_LOADS_SEARCHED = 2, 1
"""Loads below BELOW knees that bracket it. A grid's may miss the knee by a step, so two must follow the law; a search
places its loads around the knee that it measured, and needs the low one for R0 only."""
DROP = 0.05


@dataclass
class SweepVerdict:
    """`at_least`: the maximum is only a lower bound, since too few loads lie on the plateau."""

    sweep: str
    topology: str
    verdict: str
    kind: str = ""
    bottlenecks: list[Bottleneck] = field(default_factory=list)
    max_throughput: Interval | None = None
    at_least: bool = True
    knee_users: float = float("nan")
    knee_bracketed: bool = False
    plateau_users: tuple[int, ...] = ()
    """Nominal users of the trials whose throughputs are pooled."""
    knee_interval: tuple[float, float] = (float("nan"), float("nan"))
    trials: list[tuple[Load, Verdict]] = field(default_factory=list)
    migration: list[dict] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class TrialData:
    """One trial as the verdict needs it."""

    load: Load
    saturations: list[Saturation]
    nodes: dict[str, str]
    used_cores: dict[str, float] = field(default_factory=dict)
    """Mean CPU use of each node in cores (absolute, not per quota); may be empty."""
    capacity_cores: dict[str, float] = field(default_factory=dict)


def judge_sweep(
    sweep: str, topology: str, trials: list[TrialData], scale: float = 1.0, *, searched: bool = False
) -> SweepVerdict:
    """Only valid trials count; invalid ones are listed. `searched`: the loads were chosen by a search, not a grid."""
    ordered = sorted(trials, key=lambda t: (t.load.users_real, t.load.trial))
    valid = [t for t in ordered if t.load.valid and np.isfinite(t.load.response_s) and t.load.throughput_per_s > 0]
    base_s = base_response(valid)
    limited = [t for t in valid if t.load.limited(base_s)]
    members = _members(limited, base_s)
    free = [t for t in valid if not t.load.limited(base_s)]
    context = of_loads([(t.load, t.saturations) for t in free], [(t.load, t.saturations) for t in members])
    judged = [(t.load, judge_trial(t.load, t.saturations, t.nodes, base_s, context)) for t in ordered]
    result = SweepVerdict(sweep, topology, "unknown", trials=judged)
    invalid = [load for load, _ in judged if not load.valid]
    if invalid:
        names = "; ".join(f"{load.trial} ({load.invalid_reasons or 'not collected'})" for load in invalid)
        result.evidence.append(f"{len(invalid)} of {len(judged)} trials are invalid and do not count: {names}")
    if not valid:
        result.evidence.append("there is no valid trial")
        return result
    if not limited:
        _unlimited(result, valid, base_s)
    else:
        members = _plateau(result, valid, members, base_s, scale, LOW_LOADS_SEARCHED if searched else LOW_LOADS)
        verdicts = {load.trial: verdict for load, verdict in judged}
        _combine(result, [verdicts[t.load.trial] for t in members])
        result.migration = migrations([(t.load, verdicts[t.load.trial]) for t in limited])
    result.evidence += _demands(valid)
    return result


def base_response(valid: list[TrialData]) -> float:
    """Mean response time without waiting, s: that of the lowest load, 0 (unknown) if that load waits itself."""
    if not valid:
        return 0.0
    lowest = min(valid, key=lambda t: t.load.users_real).load
    return lowest.response_s if lowest.response_s <= LOW_RESPONSE * lowest.think_s else 0.0


def _unlimited(result: SweepVerdict, valid: list[TrialData], base_s: float) -> None:
    top = valid[-1].load
    result.verdict = "none"
    result.max_throughput = _interval([valid[-1]])[0]
    bound = asymptote(top.users_real, top.think_s, base_s)
    result.evidence.append(
        f"throughput follows N/(Z+R0) up to the highest load ({top.users} users: {top.throughput_per_s:.1f}/s of "
        f"{bound:.1f}/s): nothing limits yet, the maximum is at least this"
    )


def _interval(trials: list[TrialData]) -> tuple[Interval, float]:
    """Pooled throughput; without batch rates (imported data) from the trials' means alone."""
    rates = [t.load.rates for t in trials if t.load.rates is not None and len(t.load.rates) > 1]
    if len(rates) == len(trials):
        return pool(rates)
    return of_trials(np.array([t.load.throughput_per_s for t in trials])), float("nan")


def _members(limited: list[TrialData], base_s: float) -> list[TrialData]:
    """The loads beyond the knee."""
    members, knee = limited, 0.0
    for _ in range(20 if limited else 0):
        level = float(np.median([t.load.throughput_per_s for t in members]))
        knee = knee_users(level, limited[0].load.think_s, base_s)
        new = [t for t in limited if t.load.users_real >= ON_PLATEAU * knee] or limited[-1:]
        if new == members:
            break
        members = new
    far = [t for t in members if t.load.users_real >= FAR * knee]
    return _settled(far if len({t.load.users for t in far}) >= MIN_PLATEAU else members)


def _settled(members: list[TrialData]) -> list[TrialData]:
    """Without the loads that have not settled, highest first, as long as MIN_PLATEAU remain."""
    loads = sorted({t.load.users for t in members})
    while len(loads) > MIN_PLATEAU and not all(t.load.settled for t in members if t.load.users == loads[-1]):
        loads.pop()
    return [t for t in members if t.load.users in loads]


def _plateau(
    result: SweepVerdict, valid: list[TrialData], members: list[TrialData], base_s: float, scale: float, low_loads: int
) -> list[TrialData]:
    """Pools the loads beyond the knee, and says whether the knee is bracketed. Returns those that count."""
    think_s = members[0].load.think_s
    pooled, p = _interval(members)
    retrograde = None
    while len(members) > MIN_PLATEAU and p < 0.01 and _falls(members):
        retrograde, members = members[-1].load, members[:-1]
        pooled, p = _interval(members)
    result.plateau_users = tuple(t.load.users for t in members)
    result.max_throughput, result.at_least = pooled, len(set(result.plateau_users)) < MIN_PLATEAU
    result.knee_users = knee_users(pooled.value, think_s, base_s) / scale
    # The lowest load waits a little itself: of its response time, an open queue would leave 1 - U without waiting.
    least_s = base_s * max(0.0, 1 - valid[0].load.throughput_per_s / pooled.value)
    result.knee_interval = (
        knee_users(pooled.low, think_s, least_s) / scale,
        knee_users(pooled.high, think_s, base_s) / scale,
    )
    _describe(result, valid, members, p, scale, low_loads)
    if retrograde is not None:
        result.evidence.append(f"retrograde: from {retrograde.users} users on throughput falls by more than {DROP:.0%}")
    return members


def _falls(members: list[TrialData]) -> bool:
    rest = np.mean([t.load.throughput_per_s for t in members[:-1]])
    return bool(members[-1].load.throughput_per_s < (1 - DROP) * rest)


def _describe(
    result: SweepVerdict, valid: list[TrialData], members: list[TrialData], p: float, scale: float, low_loads: int
) -> None:
    found, knee = result.max_throughput, result.knee_users * scale
    assert found is not None
    names = ", ".join(dict.fromkeys(str(t.load.users) for t in members))
    width = f" (95 % interval {found.low:.1f} to {found.high:.1f})" if np.isfinite(found.low) else ""
    result.evidence.append(
        f"maximum throughput {'at least ' if result.at_least else ''}{found.value:.1f}/s{width}: mean of "
        f"{len(members)} trial{'s' * (len(members) > 1)} beyond the knee ({names} users)"
    )
    unsettled = sorted({t.load.users for t in valid if not t.load.settled})
    if unsettled:
        kept = ", ".join(str(n) for n in unsettled if n in result.plateau_users)
        result.evidence.append(
            f"the run is too short for {', '.join(map(str, unsettled))} users, where an answer takes {SETTLES:.0%} of "
            "it or more (N/X - Z): "
            + (f"{kept} count all the same, for want of others" if kept else "they do not count")
        )
    if np.isfinite(p) and p < 0.01:
        result.evidence.append(f"these differ by more than chance (p = {p:.2g}): the interval is widened by it")
    users = np.array(sorted({t.load.users_real for t in valid}))
    below, above = users[users <= BELOW * knee], users[users > ABOVE * knee]
    near = (users[users > knee].min() - users[users <= knee].max()) if len(above) and (users <= knee).any() else np.inf
    result.knee_bracketed = len(below) >= low_loads and len(above) >= MIN_PLATEAU
    result.evidence.append(
        f"knee at {result.knee_users:.0f} users (N/(Z+R0) meets the maximum): {len(below)} load"
        f"{'s' * (len(below) != 1)} below 0.8 of it, {len(above)} above"
        + (f", the nearest {near / scale:.0f} users apart" if np.isfinite(near) else "")
    )
    if not result.knee_bracketed:
        result.evidence.append(f"the knee is not bracketed: {low_loads} below and {MIN_PLATEAU} above it are needed")


def _combine(result: SweepVerdict, verdicts: list[Verdict]) -> None:
    """The verdict of most of the plateau's trials; without one, what most of them name, alone or beside others.
    Bottlenecks with their mean saturation."""
    voted = Counter((v.verdict, v.kind, _named(v)) for v in verdicts)
    (name, kind, keys), count = voted.most_common(1)[0]
    if 2 * count > len(verdicts) or len(voted) == 1:
        agree = [v for v in verdicts if v.verdict == name and _named(v) == keys]
        result.evidence.append(_agreement(name, count, verdicts))
    else:
        keys, agree = _mostly_named(verdicts)
        result.evidence.append(_disagreement(voted, keys, verdicts))
        if not keys:
            return
        name = "multi" if len(keys) > 1 else "single"
        kind = Counter(v.kind for v in agree if v.verdict == name).most_common(1)[0][0] if len(keys) > 1 else "stable"
    result.verdict, result.kind = name, kind
    result.bottlenecks = sorted((_pooled(key, agree) for key in keys), key=lambda b: -b.saturation)
    for b in result.bottlenecks:
        result.evidence.append(
            f"{b.tier} {b.resource} ({', '.join(b.nodes)}): saturated in {100 * b.saturation:.0f} % of the run, 95 % "
            f"interval {100 * b.low:.0f} to {100 * b.high:.0f} %"
        )


def _times_named(verdicts: list[Verdict]) -> Counter[Group]:
    return Counter(key for v in verdicts for key in _named(v))


def _mostly_named(verdicts: list[Verdict]) -> tuple[tuple[Group, ...], list[Verdict]]:
    """What more than half of the trials name, and the trials that name any of it."""
    keys = tuple(sorted(key for key, n in _times_named(verdicts).items() if 2 * n > len(verdicts)))
    return keys, [v for v in verdicts if set(keys) & set(_named(v))]


def _agreement(name: str, count: int, verdicts: list[Verdict]) -> str:
    text = f"{count} of {len(verdicts)} trials beyond the knee agree: {name}"
    often = ", ".join(f"{' '.join(key)} in {n}" for key, n in _times_named(verdicts).most_common())
    return f"{text} (they name {often})" if count < len(verdicts) and often else text


def _disagreement(voted: Counter, keys: tuple[Group, ...], verdicts: list[Verdict]) -> str:
    seen = "; ".join(f"{n} x {v[0]} {' and '.join(' '.join(k) for k in v[2])}" for v, n in voted.most_common())
    text = f"the trials beyond the knee disagree: {seen}"
    times = _times_named(verdicts)
    most = " and ".join(f"{' '.join(k)} ({times[k]} of {len(verdicts)})" for k in keys)
    return f"{text}; most name {most}" if keys else text


def _named(verdict: Verdict) -> tuple[Group, ...]:
    return tuple(sorted((b.tier, b.resource) for b in verdict.bottlenecks))


def _pooled(key: Group, verdicts: list[Verdict]) -> Bottleneck:
    found = [b for v in verdicts for b in v.bottlenecks if (b.tier, b.resource) == key]
    shares = np.array([b.saturation for b in found])
    down = np.sqrt(sum((b.saturation - b.low) ** 2 for b in found)) / len(found)
    up = np.sqrt(sum((b.high - b.saturation) ** 2 for b in found)) / len(found)
    if len(found) > 2:  # what the trials differ among themselves
        spread = float(stats.t.ppf(0.975, len(found) - 1) * shares.std(ddof=1) / np.sqrt(len(found)))
        down, up = max(down, spread), max(up, spread)
    mean = float(shares.mean())
    nodes = Counter(n for b in found for n in b.nodes)
    named = tuple(sorted(n for n, count in nodes.items() if 2 * count > len(found)))
    item = Counter(b.item for b in found).most_common(1)[0][0]
    return Bottleneck(*key, named, mean, max(0.0, mean - down), min(1.0, mean + up), item)


def migrations(limited: list[tuple[Load, Verdict]]) -> list[dict]:
    """Changes of the (leading) bottleneck from one load to the next."""
    found = []
    named = [(load, v.bottlenecks[0]) for load, v in limited if v.bottlenecks]
    for (a, before), (b, after) in itertools.pairwise(named):
        if (before.tier, before.resource) != (after.tier, after.resource) and a.users != b.users:
            found.append(
                {
                    "from_users": a.users,
                    "to_users": b.users,
                    "from": {"tier": before.tier, "resource": before.resource},
                    "to": {"tier": after.tier, "resource": after.resource},
                }
            )
    return found


def law_limits(valid: list[TrialData], idle_cores: dict[str, float] | None = None) -> list[tuple[float, str, Demand]]:
    """Utilization law: (throughput at which it saturates, node, fit) of every server's CPU, lowest first, from loads
    below its saturation. A single load gives a demand only of nodes whose idle floor is known (`idle_cores`)."""
    names = [n for n, tier in valid[0].nodes.items() if tier in TIERS]
    limits = []
    for name in names:
        capacity = valid[0].capacity_cores.get(name, 1.0)
        fit = _fit(_unsaturated(valid, name), capacity, (idle_cores or {}).get(name))
        if fit is not None and fit.demand_s > 0:
            limits.append(((capacity - fit.idle_cores) / fit.demand_s, name, fit))
    return sorted(limits, key=lambda found: found[0])


def _unsaturated(valid: list[TrialData], name: str) -> list[tuple[float, float]]:
    """(throughput, cores used) of a node at the loads that do not saturate it."""
    capacity = valid[0].capacity_cores.get(name, 1.0)
    points = [(t.load.throughput_per_s, used) for t in valid if (used := _used(t, name)) is not None]
    return [(x, used) for x, used in points if 100 * used / capacity < UNSATURATED_PCT]


def _fit(points: list[tuple[float, float]], capacity: float, idle: float | None) -> Demand | None:
    if not points:
        return None
    x, y = (np.array(c) for c in zip(*points, strict=True))
    if apart(x):
        return demand_of(x, y, capacity)
    if idle is not None:
        return Demand(idle, float((y.mean() - idle) / x.mean()), float("nan"), float("nan"), 1)
    return None


def _demands(valid: list[TrialData]) -> list[str]:
    """Which node should limit, and at which throughput."""
    limits = law_limits(valid)
    if not limits:
        return []
    limit, name, fit = limits[0]
    unit = "cores" if name in valid[0].capacity_cores else "of its capacity"
    servers = [n for n, tier in valid[0].nodes.items() if tier in TIERS]
    unknown = [n for n in servers if not apart(np.array([x for x, _ in _unsaturated(valid, n)]))]
    among = f"of all CPUs but {', '.join(unknown)} (no two such loads a tenth apart)" if unknown else "of all CPUs"
    return [
        f"utilization law: {name} needs {1000 * fit.demand_s:.2f} ms of CPU per interaction (s.e. "
        f"{1000 * fit.demand_error_s:.2f}, {fit.n} loads below {UNSATURATED_PCT:.0f} %) and {fit.idle_cores:.3f} {unit}"
        f" idle: {among} it would be the first to saturate, at {limit:.1f}/s"
    ]


def _used(t: TrialData, name: str) -> float | None:
    """CPU that a node uses, in cores; where its capacity is not known (imported data), as a share of that."""
    if name in t.capacity_cores:
        return t.used_cores.get(name)
    pct = [s.utilization_mean_pct for s in t.saturations if s.node == name and s.resource == "cpu"]
    return pct[0] / 100 if pct and np.isfinite(pct[0]) else None
