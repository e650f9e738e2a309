"""Share of samples at or above a threshold, with an interval that holds for correlated samples.

Treating 100 ms samples as independent gives 95 % intervals that hold 35-60 % of the time near the knee; plain batch
means fail when the share nears 0 or 1. Wilson's interval on an effective sample size holds 92-98 %."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from ntier_analysis.statistics.throughput import BATCHES, variance_of_mean

CORRELATION_S = 1.0
"""Floor of the correlation time at extreme shares (below 0.05, above 0.8): correlation times seen near the knee are
1.0-1.5 s, and few changes leave nothing to measure them by."""
T_95 = float(stats.t.ppf(0.975, BATCHES - 1))


@dataclass(frozen=True)
class Share:
    """Share 0..1 with its 95 % interval; `n` samples used, `missing` without a value, worth `n_effective`."""

    value: float
    low: float
    high: float
    n: int
    missing: int
    n_effective: float

    def overlaps(self, other: Share) -> bool:
        return self.low <= other.high and other.low <= self.high


def saturation_share(saturated: np.ndarray, interval_s: float) -> Share:
    """`saturated`: (n,) of 1.0, 0.0 or NaN (no value) in order of time, one per `interval_s`.

    NaNs are counted as missing and carry no information; all NaN or fewer than 10 values -> interval 0..1."""
    known = ~np.isnan(saturated)
    values, n = saturated[known], int(known.sum())
    missing = len(saturated) - n
    if n == 0:
        return Share(float("nan"), 0.0, 1.0, 0, missing, 0.0)
    share = float(values.mean())
    if n < BATCHES:
        return Share(share, 0.0, 1.0, n, missing, 0.0)
    effective = effective_n(values, share, interval_s)
    low, high = wilson(share, effective, T_95)
    return Share(share, low, high, n, missing, effective)


def effective_n(values: np.ndarray, share: float, interval_s: float) -> float:
    """How many independent samples the `n` correlated ones are worth."""
    n = len(values)
    floor = max(1.0, CORRELATION_S / interval_s)
    variance = variance_of_mean(np.array([part.mean() for part in np.array_split(values, BATCHES)]))
    by_batches = share * (1 - share) / variance if variance > 0 else np.inf
    if 0.05 <= share <= 0.8:
        floor = max(1.0, integrated_correlation(values))
    return float(np.clip(by_batches, 2.0, max(n / floor, 2.0)))


def integrated_correlation(values: np.ndarray) -> float:
    """Integrated autocorrelation time in samples: 1 + 2 sum of the correlations up to the first that is <= 0."""
    centred = values - values.mean()
    variance = float(centred @ centred)
    if variance == 0:
        return 1.0
    size = 1 << (2 * len(values) - 1).bit_length()
    spectrum = np.fft.rfft(centred, size)
    correlation = np.fft.irfft(spectrum * np.conj(spectrum), size)[: len(values) // 2] / variance
    negative = np.flatnonzero(correlation <= 0)
    last = int(negative[0]) if negative.size else len(correlation)
    return float(1 + 2 * correlation[1:last].sum())


def wilson(share: float, n: float, z: float) -> tuple[float, float]:
    """Wilson's score interval of a proportion."""
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # At 0 and 1 the formula is exact but for rounding.
    low = 0.0 if share == 0 else max(0.0, float(centre - reach))
    return low, 1.0 if share == 1 else min(1.0, float(centre + reach))
