"""Operational laws of a closed system: demands, bounds, knee, plateau, and what two saturations have to do with each
other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from ntier_analysis.statistics.throughput import Interval, variance_of_mean

MIN_PLATEAU = 3
"""Trials that a plateau needs; its maximum throughput is their pooled mean, never the largest one (the largest of 5
with 3 % noise lies 3.5 % too high)."""

APART = 1.1
"""Two loads whose throughputs differ by a tenth tell a demand to about 30 % (2 % of error in the CPU that is used)."""


@dataclass(frozen=True)
class Plateau:
    """Pooled throughput of the trials `members` (indices); `equal`: their differences are within noise."""

    throughput: Interval
    members: tuple[int, ...]
    equal: bool
    p: float


def pool(rates: list[np.ndarray]) -> tuple[Interval, float]:
    """Pools the batch rates of several trials -> interval and p of the test that all means are equal.

    Random effects: the variance is that between batches plus what the trials differ beyond it (DerSimonian-Laird)."""
    means = np.array([r.mean() for r in rates])
    errors = np.array([variance_of_mean(r) for r in rates])
    if len(means) == 1:
        reach = float(stats.t.ppf(0.975, len(rates[0]) - 1)) * float(np.sqrt(errors[0]))
        value = float(means[0])
        return Interval(value, value - reach, value + reach, float(np.sqrt(errors[0])), 1), 1.0
    errors = np.maximum(errors, 1e-12)
    freedom = sum(len(r) - 1 for r in rates)
    within = sum(r.var(ddof=1) * (len(r) - 1) for r in rates) / freedom
    sizes = np.array([len(r) for r in rates])
    f = float((sizes * (means - np.average(means, weights=sizes)) ** 2).sum() / (len(means) - 1) / max(within, 1e-12))
    p = float(stats.f.sf(f, len(means) - 1, freedom))
    between = max(0.0, float(means.var(ddof=1) - errors.mean()))
    value = float(means.mean())
    error = float(np.sqrt((between + errors.mean()) / len(means)))
    # With a share of between-trial variance the trials, not the batches, are the sample.
    df = freedom if between == 0 else max(len(means) - 1, 1)
    weight = between / (between + errors.mean())
    t = (1 - weight) * stats.t.ppf(0.975, freedom) + weight * stats.t.ppf(0.975, df)
    return Interval(value, value - float(t) * error, value + float(t) * error, error, len(means)), p


def asymptote(users: float, think_s: float, response_s: float) -> float:
    """Throughput of N users whom nothing limits: N / (Z + R)."""
    return users / (think_s + response_s)


def knee_users(max_throughput: float, think_s: float, response_s: float) -> float:
    """Users at which both bounds meet, N / (Z + R0) = X_max."""
    return max_throughput * (think_s + response_s)


@dataclass(frozen=True)
class Demand:
    """U = idle + demand x X: idle floor in cores, demand in core-seconds per interaction, with standard errors.

    `p` of the chi-square test that one demand fits all loads; NaN with fewer than 3 loads."""

    idle_cores: float
    demand_s: float
    demand_error_s: float
    p: float
    n: int


def apart(throughput: np.ndarray) -> bool:
    """Whether loads tell how use grows with throughput. Repetitions of one load differ by chance: the slope between
    them is noise (a database's 10.5 ms where 2.1 were true, from three trials at 28.4 to 28.9/s)."""
    x = np.asarray(throughput, float)
    return len(x) > 1 and bool(x.max() > APART * x.min())


def demand(throughput: np.ndarray, used_cores: np.ndarray, errors: np.ndarray) -> Demand:
    """Weighted least squares over loads below saturation. Raises ValueError if they are not `apart`."""
    x, y = np.asarray(throughput, float), np.asarray(used_cores, float)
    if not apart(x):
        raise ValueError("a demand needs two loads that differ by a tenth")
    floor = np.maximum(np.asarray(errors, float), 1e-6)
    design = np.column_stack([np.ones_like(x), x]) / floor[:, None]
    solution, *_ = np.linalg.lstsq(design, y / floor, rcond=None)
    covariance = np.linalg.pinv(design.T @ design)
    chi2 = float((((y - solution[0] - solution[1] * x) / floor) ** 2).sum())
    p = float(stats.chi2.sf(chi2, len(x) - 2)) if len(x) > 2 else float("nan")
    scale = max(1.0, chi2 / (len(x) - 2)) if len(x) > 2 else 1.0
    return Demand(float(solution[0]), float(solution[1]), float(np.sqrt(covariance[1, 1] * scale)), p, len(x))


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
