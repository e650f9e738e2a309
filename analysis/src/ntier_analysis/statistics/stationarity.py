"""Whether a window was steady. Short windows cannot tell: their answer is `undecidable`, never `steady`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ntier_analysis.statistics import distributions as stats
from ntier_analysis.statistics.throughput import BATCHES, batch_rates

LIMIT = 0.05
"""Drift over the window, as a share of the mean, that would matter."""


@dataclass(frozen=True)
class Drift:
    """`drift`: fitted change over the window / mean; `p`: of the rank correlation with time; `outcome`: pass, fail or
    undecidable (fail = beyond the limit, significant at 1 % and beyond 3 s.e.)."""

    drift: float
    standard_error: float
    p: float
    outcome: str


def drift(series: np.ndarray, limit: float = LIMIT) -> Drift:
    """`series`: batch means in order of time. NaN is an error; fewer than 3 are undecidable; constant passes."""
    series = np.asarray(series, dtype=float)
    if not np.isfinite(series).all():
        raise ValueError("the series has values that are not finite")
    if len(series) < 3 or series.mean() == 0:
        return Drift(float("nan"), float("nan"), float("nan"), "undecidable")
    if np.ptp(series) == 0:
        return Drift(0.0, 0.0, 1.0, "pass")
    x = np.linspace(0, 1, len(series))
    fit = stats.linregress(x, series)
    value, error = fit.slope / series.mean(), fit.stderr / series.mean()
    p = float(stats.spearmanr(x, series).pvalue)
    if abs(value) > limit and p < 0.01 and abs(value) > 3 * error:
        outcome = "fail"
    else:
        outcome = "pass" if abs(value) + 2 * error <= limit else "undecidable"
    return Drift(float(value), float(error), p, outcome)


def throughput_drift(times: np.ndarray, start: float, end: float) -> Drift:
    """Drift of the completions per second in [start, end)."""
    if (end - start) / BATCHES < 1:
        return Drift(float("nan"), float("nan"), float("nan"), "undecidable")
    return drift(batch_rates(times, start, end))


def start_excess(times: np.ndarray, start: float, end: float) -> Drift:
    """Rate of the first tenth against the rest, relative; fail = beyond 5 % and 3 s.e."""
    rates = batch_rates(times, start, end)
    rest = rates[1:]
    if rest.mean() == 0:
        return Drift(float("nan"), float("nan"), float("nan"), "undecidable")
    value = float(rates[0] / rest.mean() - 1)
    error = float(rest.std(ddof=1) * np.sqrt(1 + 1 / len(rest)) / rest.mean())
    if abs(value) > LIMIT and abs(value) > 3 * error:
        outcome = "fail"
    else:
        outcome = "pass" if abs(value) <= LIMIT and 2 * error <= LIMIT else "undecidable"
    return Drift(value, error, float("nan"), outcome)
