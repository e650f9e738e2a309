"""From the tiers' demands to throughput, response time and utilization over the users, and to another topology."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ntier_analysis.contracts.system import Replicas
from ntier_analysis.prediction.demands import TierDemand
from ntier_analysis.statistics.mva import Station, solve

Array = npt.NDArray[np.float64]

DRAWS = 300
"""Of the demands: the ends of a 95 % interval then vary by some per cent of its width."""

ONE_QUEUE = (Replicas.ALL_WRITE,)
"""Tiers whose dispatcher knows what is pending (reads go to the replica with the least pending statements); the others
get their requests in turn. It matters around the knee only."""


@dataclass(frozen=True)
class Band:
    """A point estimate with its 95 % interval; arrays over the users, or single numbers."""

    value: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class Maximum:
    """Highest throughput, 1/s, with its draws; `tier` limits it, `shares`: tier -> share of the draws in which it does;
    `utilization`: of each tier at the maximum, share of its capacity."""

    value: float
    low: float
    high: float
    tier: str
    shares: dict[str, float]
    utilization: dict[str, float]
    draws: Array


@dataclass(frozen=True)
class Prediction:
    """Over `users` (real): throughput (1/s), response time (s) and each tier's utilization (share of its capacity)."""

    users: npt.NDArray[np.int64]
    throughput: Band
    response: Band
    utilization: dict[str, Band]
    maximum: Maximum


@dataclass(frozen=True)
class Change:
    """A tier in the predicted topology: `nodes` of `cores` each. `writes`: share of its demand that every replica does
    (0: all is divided among replicas; 1: each does all of it)."""

    nodes: int
    cores: float
    writes: float = 0.0


def station(tier: TierDemand, idle_cores: float, demand_s: float, change: Change | None = None) -> Station:
    """The tier as a station. One request uses at most one core; the idle load's share of the CPU cannot serve
    requests."""
    nodes, cores, writes = (
        (tier.nodes, tier.cores, 0.0) if change is None else (change.nodes, change.cores, change.writes)
    )
    # of the demand per node, a share `writes` stays with each replica when their number changes
    total_s = demand_s * ((1 - writes) + writes * nodes / tier.nodes)
    free = max(cores - idle_cores, 0.01 * cores)
    speed = min(1.0, free)
    servers = max(free / speed, 1.0)
    if tier.replicas in ONE_QUEUE:
        return Station(tier.tier, total_s / speed, nodes * servers)
    return Station(tier.tier, total_s / speed, servers, nodes)


def predict(
    tiers: Sequence[TierDemand], think_s: float, users: npt.ArrayLike, changes: dict[str, Change] | None = None
) -> Prediction:
    """Exact solution at the point estimates, 95 % intervals from draws of the demands; NaN where fewer than
    three loads tell them, without an error."""
    changes = changes or {}
    loads = np.atleast_1d(np.asarray(users)).astype(np.int64)
    point = [station(t, t.idle_cores, t.demand.demand_s, changes.get(t.tier)) for t in tiers]
    draws = [t.draws(DRAWS, seed) for seed, t in enumerate(tiers)]
    drawn = [
        [station(t, *d[i], changes.get(t.tier)) for t, d in zip(tiers, draws, strict=True)]
        for i in range(DRAWS)
        if all(np.isfinite(d[i]).all() for d in draws)
    ]
    best, others = solve(point, think_s, loads), [solve(d, think_s, loads) for d in drawn]
    return Prediction(
        loads,
        _band(best.throughput_per_s, [o.throughput_per_s for o in others]),
        _band(best.response_s, [o.response_s for o in others]),
        {t.tier: _band(best.utilization[t.tier], [o.utilization[t.tier] for o in others]) for t in tiers},
        _maximum(point, drawn),
    )


def _band(value: Array, draws: list[Array]) -> Band:
    if not draws:  # fewer than three loads tell demands without an error
        return Band(value, np.full_like(value, np.nan), np.full_like(value, np.nan))
    low, high = np.percentile(np.array(draws), (2.5, 97.5), axis=0)
    return Band(value, np.minimum(low, value), np.maximum(high, value))


def _maximum(point: list[Station], drawn: list[list[Station]]) -> Maximum:
    slowest = min(point, key=lambda s: s.capacity_per_s)
    limits = [min(d, key=lambda s: s.capacity_per_s) for d in drawn]
    draws = np.array([s.capacity_per_s for s in limits])
    low, high = np.percentile(draws, (2.5, 97.5)) if len(draws) else (math.nan, math.nan)
    shares = {name: n / len(limits) for name, n in Counter(s.name for s in limits).most_common()}
    busy = {s.name: slowest.capacity_per_s / s.capacity_per_s for s in point}
    return Maximum(slowest.capacity_per_s, float(low), float(high), slowest.name, shares, busy, draws)


@dataclass(frozen=True)
class Errors:
    """Predicted against measured throughput and response time: mean absolute relative errors, 0..1, each load with the
    same weight, however often it was repeated. `fitted`: trials that all demands were fitted to; `beyond`: the others,
    which the model had not seen. `plateau`: predicted maximum / measured maximum - 1 (NaN if none was reached)."""

    throughput: float
    throughput_fitted: float
    throughput_beyond: float
    response: float
    plateau: float


def errors(
    predicted: Prediction, throughput: Array, response_s: Array, fitted: npt.NDArray[np.bool_], plateau: float
) -> Errors:
    """All arrays over the prediction's users."""
    off = np.abs(predicted.throughput.value / throughput - 1)
    slow = np.abs(predicted.response.value / response_s - 1)
    users = predicted.users
    return Errors(
        _mean_of_loads(off, users),
        _mean_of_loads(off[fitted], users[fitted]),
        _mean_of_loads(off[~fitted], users[~fitted]),
        _mean_of_loads(slow, users),
        predicted.maximum.value / plateau - 1,
    )


def _mean_of_loads(values: Array, users: npt.NDArray[np.int64]) -> float:
    """Mean over the loads of the mean over the trials of each."""
    _, load, trials = np.unique(users, return_inverse=True, return_counts=True)
    return float((np.bincount(load, weights=values) / trials).mean()) if len(values) else math.nan
