"""The utilization law over the loads of a sweep: what an interaction costs each node, and which should limit first."""

from __future__ import annotations

import numpy as np

from ntier_analysis.statistics.laws import UNSATURATED_PCT, apart, demand_of
from ntier_analysis.statistics.values import Demand
from ntier_analysis.verdict.data import TrialData
from ntier_analysis.verdict.load import is_server

ROUNDING_S = 1e-9
"""CPU time per interaction, s (or share of a CPU), below which a fitted slope is rounding: no counter tells less."""
BEYOND_ITS_OWN = 1.15
"""Throughput over what a replica carries by itself, from which on others must have taken work over: one load of 40 s
knows a demand to 10-15 %."""


def law_limits(valid: list[TrialData], idle_cores: dict[str, float] | None = None) -> list[tuple[float, str, Demand]]:
    """Utilization law: (throughput at which it saturates, node, fit) of every server's CPU, lowest first, from loads
    below its saturation. A single load gives a demand only of nodes whose idle floor is known (`idle_cores`)."""
    names = [n for n, tier in valid[0].nodes.items() if is_server(tier)]
    limits = []
    for name in names:
        capacity = valid[0].capacity_cores.get(name, 1.0)
        fit = _fit(_unsaturated(valid, name), capacity, (idle_cores or {}).get(name))
        if fit is not None and _costs(fit):
            limits.append(((capacity - fit.idle_cores) / fit.demand_s, name, fit))
    return sorted(limits, key=lambda found: found[0])


def tier_limits(
    valid: list[TrialData], tiers: list[str], idle_cores: dict[str, float] | None = None
) -> list[tuple[float, str, Demand]]:
    """The same of all CPUs of a tier together: (throughput at which they are full, tier, fit), lowest first."""
    limits = []
    for tier in tiers:
        names = _replicas(valid, tier)
        if 0 < sum(n in valid[0].capacity_cores for n in names) < len(names):
            continue  # cores of some and shares of others have no sum
        idle = [(idle_cores or {}).get(n) for n in names]
        capacity = sum(valid[0].capacity_cores.get(n, 1.0) for n in names)
        known = None if None in idle else float(sum(filter(None, idle)))
        fit = _fit(_unsaturated(valid, *names), capacity, known)
        if fit is not None and _costs(fit):
            limits.append(((capacity - fit.idle_cores) / fit.demand_s, tier, fit))
    return sorted(limits, key=lambda found: found[0])


def limits_of_all(
    valid: list[TrialData], shared: list[str], idle_cores: dict[str, float] | None = None
) -> list[tuple[float, str, Demand]]:
    """Of the tiers `shared`, whose replicas pass work on to each other, and of each node of the others: (throughput,
    tier or node, fit), lowest first."""
    alone = [found for found in law_limits(valid, idle_cores) if valid[0].nodes[found[1]] not in shared]
    return sorted(alone + tier_limits(valid, shared, idle_cores), key=lambda found: found[0])


def full_everywhere(valid: list[TrialData]) -> list[str]:
    """Servers whose CPU is saturated at every load that was measured: the law knows nothing of them."""
    servers = [n for n, tier in valid[0].nodes.items() if is_server(tier)]
    return [n for n in servers if any(cpu_used(t, n) is not None for t in valid) and not _unsaturated(valid, n)]


def passing_on(valid: list[TrialData], free: list[TrialData]) -> list[str]:
    """Tiers of which some CPU is full at every load, or at one at which nothing limits (`free`) and more is served than
    that CPU could carry, and all of them together at none of these. A balancer that counts what is pending fills one
    replica after the other; while answers show nothing of it, the next one takes what is too much for the first."""
    found = []
    for loads, full in ((valid, full_everywhere(valid)), (free, _outdone(valid, free))):
        tiers = dict.fromkeys(valid[0].nodes[n] for n in full)
        found += [t for t in tiers if len(_unsaturated(loads, *_replicas(valid, t))) == len(loads)]
    return list(dict.fromkeys(found))


def _outdone(valid: list[TrialData], free: list[TrialData]) -> list[str]:
    """Servers whose CPU is full at some of the loads `free`, while throughput there goes beyond what it carries in
    proportion to its use below, or by the law. (A replica that always gets more than its share has no such load.)"""
    if not free:
        return []
    law = {name: limit for limit, name, _ in law_limits(valid)}
    most = max(t.load.throughput_per_s for t in free)
    found = []
    for name in (n for n, tier in valid[0].nodes.items() if is_server(tier)):
        known = [cpu_used(t, name) is not None for t in free]
        room = _unsaturated(valid, name)
        if all(known) and room and len(_unsaturated(free, name)) < len(free):
            capacity = valid[0].capacity_cores.get(name, 1.0)
            carried = max(x * capacity / cores if cores > 0 else np.inf for _, x, cores in room)
            if most > BEYOND_ITS_OWN * max(carried, law.get(name, 0.0)):
                found.append(name)
    return found


def _replicas(valid: list[TrialData], tier: str) -> list[str]:
    return [n for n, of in valid[0].nodes.items() if of == tier]


def _unsaturated(valid: list[TrialData], *names: str) -> list[tuple[float, float, float]]:
    """(load, throughput, cores used) of a node, or of several together, at the trials that do not saturate them."""
    capacity = sum(valid[0].capacity_cores.get(n, 1.0) for n in names)
    used = [(t.load.level, t.load.throughput_per_s, [cpu_used(t, n) for n in names]) for t in valid]
    points = [(level, x, float(sum(filter(None, cores)))) for level, x, cores in used if None not in cores]
    return [(level, x, cores) for level, x, cores in points if 100 * cores / capacity < UNSATURATED_PCT]


def _fit(points: list[tuple[float, float, float]], capacity: float, idle: float | None) -> Demand | None:
    if not points:
        return None
    levels, x, y = (np.array(c) for c in zip(*points, strict=True))
    if apart(x, levels):
        return demand_of(x, y, capacity, levels)
    if idle is not None:
        return Demand(idle, float((y.mean() - idle) / x.mean()), float("nan"), float("nan"), 1)
    return None


def _costs(fit: Demand) -> bool:
    """Whether an interaction needs any of the CPU: what is less than its own standard error, or than rounding, gives no
    limit."""
    error = fit.demand_error_s if np.isfinite(fit.demand_error_s) else 0.0
    return fit.demand_s > max(ROUNDING_S, error)


def _apart(points: list[tuple[float, float, float]]) -> bool:
    return bool(points) and apart(np.array([x for _, x, _ in points]), np.array([level for level, *_ in points]))


def first_to_saturate(valid: list[TrialData], free: list[TrialData]) -> list[str]:
    """Which node should limit, and at which throughput. `free`: the loads at which nothing limits."""
    shared = passing_on(valid, free)
    limits = limits_of_all(valid, shared)
    if not limits:
        return []
    limit, name, fit = limits[0]
    who, members = (f"all of {name} together", _replicas(valid, name)) if name in shared else (name, [name])
    known = members[0] in valid[0].capacity_cores  # an import may not know how many cores a node has
    cpu, unit = ("CPU", "cores") if known else ("its whole CPU", "of its capacity")
    servers = [n for n, tier in valid[0].nodes.items() if is_server(tier)]
    named = {name for _, name, _ in limits}
    of = valid[0].nodes
    unknown = [n for n in servers if (of[n] not in named if of[n] in shared else not _apart(_unsaturated(valid, n)))]
    among = f"of all CPUs but {', '.join(unknown)} (no two such loads a tenth apart)" if unknown else "of all CPUs"
    error = f"s.e. {1000 * fit.demand_error_s:.2f}, " if np.isfinite(fit.demand_error_s) else ""
    idle = round(fit.idle_cores, 3) + 0.0  # no -0.000
    return [
        f"utilization law: {who} needs {1000 * fit.demand_s:.2f} ms of {cpu} per interaction ({error}{fit.loads} "
        f"loads below {UNSATURATED_PCT:.0f} %) and {idle:.3f} {unit} idle; it would be the first {among} to saturate, "
        f"at {limit:.1f}/s"
    ]


def cpu_used(t: TrialData, name: str) -> float | None:
    """CPU that a node uses, in cores; where its capacity is not known (imported data), as a share of that."""
    if name in t.capacity_cores:
        return t.used_cores.get(name)
    pct = [s.utilization_mean_pct for s in t.saturations if s.node == name and s.resource == "cpu"]
    return pct[0] / 100 if pct and np.isfinite(pct[0]) else None
