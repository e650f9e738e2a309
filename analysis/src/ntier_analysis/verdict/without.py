"""What the throughput would be without the stops, and with more of a CPU that they leave full.

Between stops a CPU works off what they held up, so it reads full then whether or not it would limit without them. Two
reliefs tell: without the stops, and with half as much CPU again. Both are computed for users who think, one queue, and
a server that does nothing in the stops. Its capacity is known from the utilization law (throughput / use). The queue is
a mean, without chance. In 28 simulated systems whose CPU is full between stops (bench/stop_reliefs.py), the gains miss
the simulated ones by -0.04 to 0.11 (5th and 95th percentile), and the larger of the two is the larger one in 27."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ntier_analysis.verdict.coverage import MORE
from ntier_analysis.verdict.load import Load
from ntier_analysis.verdict.saturation import GRID_S

ROUNDS, SETTLED = 50, 1e-3
"""The run is repeated until throughput differs by less than this share from one time to the next; at most so often."""


@dataclass(frozen=True)
class Reliefs:
    """Gains of throughput, as shares: `stops`: without them; `more`: with MORE of the CPU, and the stops."""

    stops: float
    more: float


def reliefs(load: Load, stops: np.ndarray, use: float, base_s: float) -> Reliefs:
    """`stops` (n, 2): beginnings and ends, s; `use`: mean use of the CPU over the run, 0..1; `base_s`: response time
    without waiting."""
    at = np.arange(load.start_s, load.end_s, GRID_S) + GRID_S / 2
    works = ~((at[:, None] >= stops[:, 0]) & (at[:, None] < stops[:, 1])).any(axis=1)
    capacity = load.throughput_per_s / use
    cycle_s = load.think_s + base_s
    now = _throughput(load.users_real, cycle_s, capacity, works)
    without = _throughput(load.users_real, cycle_s, capacity, np.ones_like(works))
    more = _throughput(load.users_real, cycle_s, (1 + MORE) * capacity, works)
    return Reliefs(without / now - 1, more / now - 1)


def _throughput(users: float, cycle_s: float, capacity_per_s: float, works: np.ndarray) -> float:
    """Interactions per second of `users` who come back `cycle_s` after they were served, on average. `works` (n,): in
    which cells of GRID_S there is any capacity."""
    waiting, before = max(0.0, users - capacity_per_s * float(works.mean()) * cycle_s), -1.0
    back, most = -math.expm1(-GRID_S / cycle_s), capacity_per_s * GRID_S
    for _ in range(ROUNDS):
        served = 0.0
        for on in works:
            waiting += (users - waiting) * back
            out = min(waiting, most) if on else 0.0
            waiting -= out
            served += out
        if abs(served - before) <= SETTLED * served:
            break
        before = served
    return served / (len(works) * GRID_S)
