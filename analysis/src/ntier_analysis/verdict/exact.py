"""The throughput that the measured resources would allow if nothing else held up the users.

Waiting at a resource that is used 75 % is normal and hides nothing: the exact model of a closed network says how much
of it there is. Only waiting beyond that has a cause that nobody measured."""

from __future__ import annotations

from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.statistics.mva import Station, solve
from ntier_analysis.verdict.causes import SOFT
from ntier_analysis.verdict.load import COUNTS, Load
from ntier_analysis.verdict.saturation import Saturation


def possible(load: Load, found: list[Saturation], base_s: float) -> float:
    """Throughput per second of these users (exact MVA): each resource `found` is a queue of one server, which an
    interaction needs for U / X (utilization law); what of the unloaded response time `base_s` that leaves is a delay.
    A node of several servers would let through more."""
    rate = load.throughput_per_s
    demands = {
        s.key: min(s.utilization_mean_pct / 100, 1.0) / rate
        for s in found
        if s.resource not in SOFT and s.utilization_mean_pct > 0
    }
    stations = [Station(" ".join(key), demand) for key, demand in demands.items()]
    delay_s = max(0.0, base_s - sum(demands.values()))
    return float(solve(stations, load.alone_s + delay_s, max(1, round(load.users_real))).throughput_per_s[0])


def as_expected(load: Load, found: list[Saturation], base_s: float) -> bool:
    """Whether the throughput is that of the model, to less than what counts as a limit. Of arrivals at a rate
    the model says nothing."""
    if load.model is LoadModel.OPEN:
        return False
    return load.throughput_per_s >= (1 - COUNTS) * possible(load, found, base_s)
