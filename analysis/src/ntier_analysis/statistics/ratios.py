"""Ratio of two measurements with its interval, and whether they are the same: shown by a test of equivalence, never by
a test that found no difference."""

from __future__ import annotations

import math

import numpy as np

from ntier_analysis.statistics import distributions as stats
from ntier_analysis.statistics.throughput import BATCHES
from ntier_analysis.statistics.values import NAN, Interval, Ratio, estimated, same_within

NO_WIDTH = 1e-9
"""An interval of a logarithm that is no wider comes of equal values."""


def paired(a: np.ndarray, b: np.ndarray) -> Ratio:
    """Geometric mean of b[i] / a[i]: t on the differences of the logarithms. Needs two pairs."""
    x, y = _logs(a), _logs(b)
    if np.ptp(y - x) <= NO_WIDTH:
        return _without_variance(float((y - x).mean()), len(x))
    return _of_test(stats.ttest_rel(y, x), float((y - x).mean()), len(x))


def unpaired(a: np.ndarray, b: np.ndarray) -> Ratio:
    """Ratio of the geometric means, Welch's t on the logarithms. Needs two values on each side."""
    x, y = _logs(a), _logs(b)
    if max(np.ptp(x), np.ptp(y)) <= NO_WIDTH:
        return _without_variance(float(y.mean() - x.mean()), len(x) + len(y))
    return _of_test(stats.ttest_ind(y, x, equal_var=False), float(y.mean() - x.mean()), len(x) + len(y))


def _logs(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, float)
    if len(values) < 2 or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError("a ratio needs at least 2 positive values on each side")
    return np.log(values)


def _of_test(test, mean: float, n: int) -> Ratio:
    """From SciPy's test of the logarithms."""
    wide, narrow = test.confidence_interval(0.95), test.confidence_interval(0.90)
    ends = [math.exp(v) for v in (wide.low, wide.high, narrow.low, narrow.high)]
    freedom = float(test.df)
    return Ratio(math.exp(mean), *ends, n, (wide.high - mean) / float(stats.t.ppf(0.975, freedom)), freedom)


def _without_variance(mean: float, n: int) -> Ratio:
    """Values that never vary tell no error, unless both sides are the same: then the ratio is 1."""
    return Ratio(1.0, 1.0, 1.0, 1.0, 1.0, n, 0.0, n - 1.0) if abs(mean) <= NO_WIDTH else _unknown(mean, n)


def _unknown(mean: float, n: int) -> Ratio:
    return Ratio(math.exp(mean), *[NAN] * 4, n)


def _with_error(mean: float, error: float, freedom: float, n: int) -> Ratio:
    """`mean`, `error`: of the logarithm."""
    reach, reach_90 = (float(stats.t.ppf(q, freedom)) * error for q in (0.975, 0.95))
    return Ratio(*(math.exp(mean + d) for d in (0, -reach, reach, -reach_90, reach_90)), n, error, freedom)


def of_batches(values: np.ndarray, errors: np.ndarray) -> Interval:
    """Geometric mean of trials, with the error that the BATCHES batches of each trial tell; unknown if one lacks it.
    `values`, `errors`: (n,) in one unit."""
    mean, n = float(np.exp(np.log(values).mean())), len(values)
    error = mean * float(np.sqrt(np.square(errors / values).sum())) / n
    return estimated(mean, error, (BATCHES - 1) * n, BATCHES * n)


def never_narrower(ratio: Ratio, own: Ratio) -> Ratio:
    """The ratio with the wider interval of the two. `own`: of the same trials by their own errors, since repetitions
    can agree by chance far better than each is known. Unknown where neither tells an error."""
    mean = math.log(ratio.value)
    if not _width(ratio) > NO_WIDTH and not _width(own) > NO_WIDTH:
        return _unknown(mean, ratio.n)
    return ratio if _width(ratio) >= _width(own) else _with_error(mean, own.log_error, own.freedom, ratio.n)


def _width(ratio: Ratio) -> float:
    return math.log(ratio.high / ratio.low) if math.isfinite(ratio.high) and ratio.low > 0 else -1.0


def at_least(ratio: Ratio, reach: float) -> Ratio:
    """With intervals that go at least so far (logarithm) to both sides. An unknown one stays unknown."""
    if not reach or not math.isfinite(ratio.low):
        return ratio
    down, up = ratio.value * math.exp(-reach), ratio.value * math.exp(reach)
    error = max(ratio.log_error, reach / float(stats.t.ppf(0.975, ratio.freedom)))
    return Ratio(
        ratio.value,
        min(ratio.low, down),
        max(ratio.high, up),
        min(ratio.low_90, down),
        max(ratio.high_90, up),
        ratio.n,
        error,
        ratio.freedom,
    )


def of_intervals(a: Interval, b: Interval) -> Ratio:
    """b / a of two independent estimates, by the delta method: relative errors add in squares, degrees of freedom by
    Welch and Satterthwaite. Raises ValueError if one is not positive."""
    if not (a.value > 0 and b.value > 0):
        raise ValueError("a ratio needs positive values")
    mean, n = math.log(b.value / a.value), a.n + b.n
    parts = np.array([(e.standard_error / e.value) ** 2 for e in (a, b)])
    if not (np.isfinite(parts).all() and min(a.freedom, b.freedom) > 0):
        return _unknown(mean, n)
    total = float(parts.sum())
    spread = float((parts**2 / np.array([a.freedom, b.freedom])).sum())
    freedom = total**2 / spread if spread > 0 else math.inf
    return _with_error(mean, math.sqrt(total), freedom, n)


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
