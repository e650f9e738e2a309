"""Share of samples at or above a threshold, with an interval that holds for correlated samples.

Treating 100 ms samples as independent gives 95 % intervals that hold 35-60 % of the time near the knee; plain batch
means fail when the share nears 0 or 1. Wilson's interval on an effective sample size holds where the run has enough
changes to tell how long a state lasts (bench/interval_coverage.py, docs/detector.md)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ntier_analysis.statistics import distributions as stats
from ntier_analysis.statistics.throughput import BATCHES, variance_of_mean

POOL_FULL = (
    "A pool is full in a sample if a request waits for a place in it, or 95 % of its places or more are taken (a pool "
    "that is the sum of several may have requests waiting and yet many free places)."
)
"""The one definition: `saturation` of a pool, in the verdict, the tables and the figures."""

CORRELATION_S = 1.0
"""Floor of the correlation time where a share is extreme (below 0.05, above 0.8): seen near the knee are 1.0-1.5 s, and
few changes leave nothing to measure it by."""
UNCHANGED_SAMPLES = 5
"""The same for a series without any change, in samples: what is sampled once a second and never changes is worth one
value per 5 s. Pools at 1 Hz stay full or empty for long; a CPU at 10 Hz has its floor from CORRELATION_S."""
FEW_CHANGES = 8
"""Changes between saturated and not below which a run does not tell how long a state lasts: the interval is wide then,
and holds less often than it says (bench/interval_coverage.py)."""
LEAST = 0.3
"""Worth less than one sample: the interval is nearly all from 0 to 1."""
CAUTION = 0.3
"""Quantile of the number of changes that the effective sample size is taken from: the run may have seen many by
chance. It and REACH hold 93-99 % over shares of 0.1 to 0.95 that change every 0.3 to 10 s
(bench/interval_coverage.py)."""
REACH = 2.1
"""Standard errors to either side: more than 1.96, since the effective sample size is estimated, and less than the 2.26
of ten batches, since it is the least of three estimates."""


@dataclass(frozen=True)
class Share:
    """Share 0..1 with its 95 % interval; `n` samples used, `missing` without a value, worth `n_effective`. `changes`:
    how often it went from saturated to not or back."""

    value: float
    low: float
    high: float
    n: int
    missing: int
    n_effective: float
    changes: int = 0

    @property
    def enough_changes(self) -> bool:
        """Whether the run is long enough to tell how long a state lasts (docs/detector.md, Intervals)."""
        return self.changes >= FEW_CHANGES

    @property
    def note(self) -> str:
        """What to say beside the interval; empty if it holds as it says."""
        if self.enough_changes or self.n == 0:
            return ""
        if self.changes:
            return f"{self.changes} changes, too few to tell how long it lasts"
        return "it never changed: what lasts for seconds and comes seldom may be missed, however finely it is sampled"


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
    changes = int(np.count_nonzero(np.diff(values)))
    effective = effective_n(values, share, changes, interval_s)
    return Share(share, *wilson(share, effective, REACH), n, missing, effective, changes)


def effective_n(values: np.ndarray, share: float, changes: int, interval_s: float) -> float:
    """How many independent samples the `n` correlated ones are worth: the least that batches, correlation and the
    number of changes tell. States that last exponential times give share (1 - share) / variance = changes /
    (4 share (1 - share)), since a share of p has variance 2 p^2 (1 - p)^2 / cycles."""
    n = len(values)
    if changes == 0:
        return n / max(1.0, CORRELATION_S / interval_s, UNCHANGED_SAMPLES * min(1.0, interval_s / CORRELATION_S))
    variance = variance_of_mean(np.array([part.mean() for part in np.array_split(values, BATCHES)]))
    by_batches = share * (1 - share) / variance if variance > 0 else np.inf
    by_changes = _few(changes) / (4 * share * (1 - share))
    floor = integrated_correlation(values) if 0.05 <= share <= 0.8 else CORRELATION_S / interval_s
    return float(np.clip(min(by_batches, by_changes, n / max(1.0, floor)), LEAST, n))


def pooled(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[float, float, float]:
    """Mean share of several runs with its ends, of their shares with their own ends (k,). It covers what each run tells
    and what the runs differ by: from three on by Student's t. Of two that nearly always gives 0..1, so they have
    the ends of both, unless these lie apart: then it is known that runs differ by more than each tells."""
    k, mean = len(values), float(values.mean())
    down, up = (float(np.sqrt((ends**2).sum()) / k) for ends in (values - low, high - values))
    if k == 2:
        down, up = max(down, mean - float(low.min())), max(up, float(high.max()) - mean)
    down, up = (max(end, spread_of(values, low, high)) for end in (down, up))
    return mean, max(0.0, mean - down), min(1.0, mean + up)


def spread_of(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """Half-width of the interval of a mean by what the runs differ by, Student's t(k - 1); 0 of one, and of two whose
    own intervals (`low`, `high`) overlap."""
    k = len(values)
    if k < 2 or (k == 2 and low.max() <= high.min()):
        return 0.0
    return float(stats.t.ppf(0.975, k - 1) * values.std(ddof=1) / np.sqrt(k))


@lru_cache(maxsize=4096)
def _few(changes: int) -> float:
    """The number of changes that a run like this one has at least, but for CAUTION."""
    return float(stats.chi2.ppf(CAUTION, 2 * changes) / 2)


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
    """Wilson's score interval (1927) of a proportion, z standard errors to either side; n need not be whole."""
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    # At 0 and 1 the formula is exact but for rounding.
    return 0.0 if share == 0 else float(middle - half), 1.0 if share == 1 else float(middle + half)
