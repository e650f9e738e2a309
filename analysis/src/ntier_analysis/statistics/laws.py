"""Operational laws of a closed system: demands, bounds, knee, plateau, and what two saturations have to do with each
other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ntier_analysis.statistics import distributions as stats
from ntier_analysis.statistics.throughput import of_batches, of_trials
from ntier_analysis.statistics.values import Demand, Interval, above_zero

MIN_PLATEAU = 3
"""Trials that a plateau needs; its maximum throughput is their pooled mean, never the largest one (the largest of 5
with 3 % noise lies 3.5 % too high)."""

APART = 1.1
"""Two loads whose throughputs differ by a tenth tell a demand to about 30 % (2 % of error in the CPU that is used)."""


UNSATURATED_PCT = 90.0
"""Utilization below which a load counts for a demand: beyond, CPU in use no longer grows with throughput."""

CPU_ERROR, LEAST_USE = 0.02, 0.01
"""Relative error of the CPU in use at a load, and the use (share of the capacity) below which it gets no smaller."""


def pool(rates: list[np.ndarray]) -> tuple[Interval, float]:
    """Pools the batch rates of several trials -> interval and p of the test that all means are equal (by analysis of
    variance).

    Of one trial its batches are the sample: what differs between trials is then not in the interval. Of several the
    trials are (`of_trials`), which holds whatever they differ by."""
    each = [of_batches(r, 1) for r in rates]
    if len(rates) == 1:
        return above_zero(each[0]), 1.0
    p = float(stats.f_oneway(*rates).pvalue) if any(np.ptp(r) > 0 for r in rates) else 1.0
    errors = np.array([e.standard_error for e in each])
    return above_zero(of_trials(np.array([e.value for e in each]), errors, sum(e.freedom for e in each))), p


def asymptote(users: float, think_s: float, response_s: float) -> float:
    """Throughput of N users whom nothing limits: N / (Z + R)."""
    return users / (think_s + response_s)


def knee_users(max_throughput: float, think_s: float, response_s: float) -> float:
    """Users at which both bounds meet, N / (Z + R0) = X_max."""
    return max_throughput * (think_s + response_s)


def apart(throughput: np.ndarray, levels: np.ndarray | None = None) -> bool:
    """Whether loads tell how use grows with throughput. Repetitions of one load differ by chance: the slope between
    them is noise (a database's 10.5 ms where 2.1 were true, from three trials at 28.4 to 28.9/s). `levels` as in
    `demand`."""
    (x,) = _by_load(levels, np.asarray(throughput, float))
    return len(x) > 1 and bool(x.max() > APART * x.min())


def _by_load(levels: np.ndarray | None, *values: np.ndarray) -> list[np.ndarray]:
    """Values of trials (n,) -> means of the repetitions of each load; without levels the same."""
    if levels is None:
        return list(values)
    _, of = np.unique(levels, return_inverse=True)
    return [np.bincount(of, weights=v) / np.bincount(of) for v in values]


def demand(
    throughput: np.ndarray, used_cores: np.ndarray, errors: np.ndarray, levels: np.ndarray | None = None
) -> Demand:
    """Weighted least squares over loads below saturation, each the mean of its trials: what a load is off the law, its
    repetitions share. `errors` weigh them, how large they are is estimated from what is left (loads - 2 degrees of
    freedom; none with fewer than 3). `levels`: the load of each trial, by which repetitions are told; without them each
    trial is a load of its own. Raises ValueError if the loads are not `apart`."""
    n, floor = len(throughput), np.maximum(np.asarray(errors, float), 1e-6)
    x, y, floor = _by_load(levels, np.asarray(throughput, float), np.asarray(used_cores, float), floor)
    if not apart(x):
        raise ValueError("a demand needs two loads that differ by a tenth")
    design = np.column_stack([np.ones_like(x), x]) / floor[:, None]
    solution, *_ = np.linalg.lstsq(design, y / floor, rcond=None)
    chi2 = float((((y - solution[0] - solution[1] * x) / floor) ** 2).sum())
    repeats = n - len(x)
    idle, slope = (float(v) for v in solution)
    if len(x) < 3:
        return Demand(idle, slope, float("nan"), float("nan"), n, repeats=repeats)
    freedom = len(x) - 2
    p = float(stats.chi2.sf(chi2, freedom))
    covariance = np.linalg.pinv(design.T @ design) * chi2 / freedom
    idle_error, error = np.sqrt(np.diag(covariance))
    together = covariance[0, 1] / (idle_error * error) if error > 0 else 0.0
    return Demand(idle, slope, float(error), p, n, float(idle_error), float(together), repeats)


def unsaturated(used_cores: np.ndarray, capacity: float) -> np.ndarray:
    """Which loads count for a demand; one that was not measured (NaN) does not."""
    return 100 * np.asarray(used_cores, float) / capacity < UNSATURATED_PCT


def demand_of(
    throughput: np.ndarray, used_cores: np.ndarray, capacity: float, levels: np.ndarray | None = None
) -> Demand:
    """The demand of a node or a tier from the loads that do not saturate it, with the weights that all of the analysis
    uses. `levels` as in `demand`. Raises ValueError as `demand`."""
    x, y = np.asarray(throughput, float), np.asarray(used_cores, float)
    kept = unsaturated(y, capacity)
    of = None if levels is None else np.asarray(levels)[kept]
    return demand(x[kept], y[kept], CPU_ERROR * np.maximum(y[kept], LEAST_USE * capacity), of)


@dataclass(frozen=True)
class Dependence:
    """Two saturations on one clock. `lift` = joint share / product of the shares (1 = unrelated); `p_below`, `p_above`:
    how often a random shift in time gives a lift as low, as high."""

    joint: float
    union: float
    lift: float
    p_below: float
    p_above: float


def dependence(a: np.ndarray, b: np.ndarray, interval_s: float, shifts: int = 200, seed: int = 1) -> Dependence:
    """a, b: (n,) of 1.0, 0.0 or NaN on the same clock. Null by circular shifts of at least 3 s."""
    known = ~(np.isnan(a) | np.isnan(b))
    a, b = a[known], b[known]
    if len(a) < 20:
        return Dependence(*[float("nan")] * 5)
    joint, chance = float((a * b).mean()), float(a.mean() * b.mean())
    union = float(np.maximum(a, b).mean())
    smallest = max(1, round(3 / interval_s))
    if chance == 0 or len(a) <= 2 * smallest:
        return Dependence(joint, union, float("nan"), float("nan"), float("nan"))
    draws = np.random.default_rng(seed).integers(smallest, len(a) - smallest, size=shifts)
    null = np.array([(a * np.roll(b, int(s))).mean() for s in draws])
    below, above = (1 + (null <= joint).sum()) / (shifts + 1), (1 + (null >= joint).sum()) / (shifts + 1)
    return Dependence(joint, union, joint / chance, float(below), float(above))
