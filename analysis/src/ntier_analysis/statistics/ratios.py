"""Ratio of two measurements with its interval, and whether they are the same: by equivalence, never by a test that
merely found nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Estimate:
    """A positive quantity with its standard error and degrees of freedom."""

    value: float
    standard_error: float
    freedom: float


@dataclass(frozen=True)
class Ratio:
    """b / a with 95 % interval (`low`, `high`) and 90 % interval (for the test of equivalence); `n` samples."""

    value: float
    low: float
    high: float
    low_90: float
    high_90: float
    n: int

    def outcome(self, margin: float) -> str:
        """`same`: the 90 % interval lies within 1 +- margin (two one-sided tests at 5 %); `different`: the 95 %
        interval excludes 1; else `undecided`. What is the same and yet differs by a little is `same`."""
        if not np.isfinite(self.low):
            return "undecided"
        if self.low_90 >= 1 - margin and self.high_90 <= 1 + margin:
            return "same"
        return "different" if self.low > 1 or self.high < 1 else "undecided"


def of_log(mean: float, error: float, freedom: float, n: int) -> Ratio:
    """From the mean of the logarithm and its standard error, by Student's t."""
    reach, reach_90 = (float(stats.t.ppf(q, freedom)) * error for q in (0.975, 0.95))
    ends = (np.exp(mean + d) for d in (0, -reach, reach, -reach_90, reach_90))
    return Ratio(*(float(e) for e in ends), n)


def _logs(values: np.ndarray, least: int) -> np.ndarray:
    values = np.asarray(values, float)
    if len(values) < least or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(f"a ratio needs at least {least} positive values on each side")
    return np.log(values)


def paired(a: np.ndarray, b: np.ndarray) -> Ratio:
    """Geometric mean of b[i] / a[i]: t on the differences of the logarithms. Needs two pairs."""
    differences = _logs(b, 2) - _logs(a, 2)
    n = len(differences)
    return of_log(float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(n)), n - 1, n)


def unpaired(a: np.ndarray, b: np.ndarray) -> Ratio:
    """Ratio of the geometric means, Welch's t on the logarithms. Needs two values on each side."""
    x, y = _logs(a, 2), _logs(b, 2)
    parts = np.array([x.var(ddof=1) / len(x), y.var(ddof=1) / len(y)])
    freedom = _welch(parts, np.array([len(x) - 1, len(y) - 1]))
    return of_log(float(y.mean() - x.mean()), float(np.sqrt(parts.sum())), freedom, len(x) + len(y))


def of_estimates(a: Estimate, b: Estimate, n: int) -> Ratio:
    """Ratio of two independent estimates: relative errors add in squares (delta method)."""
    if not (a.value > 0 and b.value > 0):
        raise ValueError("a ratio needs positive values")
    mean = float(np.log(b.value / a.value))
    parts = np.array([(e.standard_error / e.value) ** 2 for e in (a, b)])
    if not np.isfinite(parts).all():
        nothing = [float("nan")] * 4
        return Ratio(float(np.exp(mean)), *nothing, n)
    return of_log(mean, float(np.sqrt(parts.sum())), _welch(parts, np.array([a.freedom, b.freedom])), n)


def _welch(variances: np.ndarray, freedom: np.ndarray) -> float:
    """Degrees of freedom of a sum of two estimated variances (Welch-Satterthwaite)."""
    total = variances.sum()
    return float(total**2 / (variances**2 / freedom).sum()) if total > 0 else float(freedom.sum())
