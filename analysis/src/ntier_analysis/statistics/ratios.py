"""Ratio of two measurements with its interval, and whether they are the same: shown by a test of equivalence, never by
a test that found no difference."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from ntier_analysis.statistics.values import NAN, Interval, Ratio, same_within


def paired(a: np.ndarray, b: np.ndarray) -> Ratio:
    """Geometric mean of b[i] / a[i]: t on the differences of the logarithms. Needs two pairs."""
    x, y = _logs(a), _logs(b)
    return _of_test(stats.ttest_rel(y, x), float((y - x).mean()), len(x))


def unpaired(a: np.ndarray, b: np.ndarray) -> Ratio:
    """Ratio of the geometric means, Welch's t on the logarithms. Needs two values on each side."""
    x, y = _logs(a), _logs(b)
    return _of_test(stats.ttest_ind(y, x, equal_var=False), float(y.mean() - x.mean()), len(x) + len(y))


def _logs(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, float)
    if len(values) < 2 or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError("a ratio needs at least 2 positive values on each side")
    return np.log(values)


def _of_test(test, mean: float, n: int) -> Ratio:
    """From SciPy's test of the logarithms."""
    wide, narrow = test.confidence_interval(0.95), test.confidence_interval(0.90)
    freedom = float(test.df) if math.isfinite(test.df) else float(n - 2)  # no variance on either side
    ends = [math.exp(mean if math.isnan(v) else v) for v in (wide.low, wide.high, narrow.low, narrow.high)]
    error = (math.log(ends[1]) - mean) / float(stats.t.ppf(0.975, freedom))
    return Ratio(math.exp(mean), *ends, n, error, freedom)


def of_intervals(a: Interval, b: Interval) -> Ratio:
    """b / a of two independent estimates, by the delta method: relative errors add in squares, degrees of freedom by
    Welch and Satterthwaite. Raises ValueError if one is not positive."""
    if not (a.value > 0 and b.value > 0):
        raise ValueError("a ratio needs positive values")
    mean, n = math.log(b.value / a.value), a.n + b.n
    parts = np.array([(e.standard_error / e.value) ** 2 for e in (a, b)])
    if not (np.isfinite(parts).all() and min(a.freedom, b.freedom) > 0):
        return Ratio(math.exp(mean), *[NAN] * 4, n)
    total = float(parts.sum())
    spread = float((parts**2 / np.array([a.freedom, b.freedom])).sum())
    freedom = total**2 / spread if spread > 0 else math.inf
    error = math.sqrt(total)
    reach, reach_90 = (float(stats.t.ppf(q, freedom)) * error for q in (0.975, 0.95))
    return Ratio(*(math.exp(mean + d) for d in (0, -reach, reach, -reach_90, reach_90)), n, error, freedom)


def p_same(ratio: Ratio, margin: float) -> float:
    """p of equivalence: the larger of the two one-sided tests that the ratio lies within the margin (`same_within`)."""
    error, mean = max(ratio.log_error, 1e-12), math.log(ratio.value)
    least, most = same_within(margin)
    above = stats.t.sf((mean - math.log(least)) / error, ratio.freedom)
    below = stats.t.cdf((mean - math.log(most)) / error, ratio.freedom)
    return float(max(above, below))


def p_different(ratio: Ratio) -> float:
    """Two-sided p of the test that the ratio is 1."""
    return float(2 * stats.t.sf(abs(math.log(ratio.value)) / max(ratio.log_error, 1e-12), ratio.freedom))
