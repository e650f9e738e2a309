"""Percentiles of response times with intervals that hold although neighbouring responses wait in the same queue."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ntier_analysis.statistics import distributions as stats
from ntier_analysis.statistics.share import integrated_correlation
from ntier_analysis.statistics.throughput import BATCHES, required_n

Array = npt.NDArray[np.float64]

T_95 = float(stats.t.ppf(0.975, BATCHES - 1))
"""In place of 1.96: the correlation is estimated from BATCHES batches."""

TELLING_SHARE = 0.95
"""Above it, the correlation is that of this percentile if it is the larger one: beyond the 99th lie so few clusters of
long responses in a short run that their own correlation reads too low (coverage 0.86 instead of 0.91)."""

RESOLUTION_MS = 1.0
"""JMeter writes whole milliseconds: neighbouring percentiles read equal, and no repetition shows what lies between."""

OPEN_BELOW = 5.0
"""Independent values that must lie beyond a percentile for its upper end to be told (the usual rule for counts:
Cochran, Biometrics 10, 1954). With fewer the run holds too few busy periods to say how long the longest responses get:
told nevertheless, the intervals held only 0.22 to 0.96 of the time (p95 and p99, 40 and 180 s, 0.5 to 1.6 knees)."""


@dataclass(frozen=True)
class Percentile:
    """`value` of the percentile `share` (0..1) of `n` values, NaN if fewer than `needed` are there.

    `low`, `high`: 95 % interval, NaN beside a NaN; `high` is infinite if the values cannot bound it (`OPEN_BELOW`).
    `n_effective`: independent values that the interval counts with."""

    share: float
    value: float
    low: float
    high: float
    n: int
    needed: int
    n_effective: float

    @property
    def enough(self) -> bool:
        return self.n >= self.needed


def resolution_ms(values: npt.ArrayLike) -> float:
    """What response times are rounded to: RESOLUTION_MS if all are whole, or there are none to tell; else 0."""
    values = np.asarray(values, dtype=float)
    return RESOLUTION_MS if (values == np.round(values)).all() else 0.0


def percentile_interval(
    values: npt.ArrayLike, times_s: npt.ArrayLike, share: float, start_s: float, end_s: float
) -> Percentile:
    """Percentile of the values that were completed at `times_s` in [start_s, end_s), with a 95 % interval.

    The share of values beyond a percentile is a proportion: its exact interval (Clopper and Pearson 1934), read back
    through the ordered values, is one of the percentile (Woodruff, J. Am. Stat. Assoc. 47, 1952). It counts independent
    values, which are fewer than n: their number comes from the means over ten parts of the run and the correlation from
    value to value. Student's t of ten parts makes up for the error of that number.

    Why no bootstrap: over users it held 0.48 to 0.54 of the time in a closed network at half of its capacity, since all
    users wait in the same queues; over blocks of time 0.76 to 0.88 (95 % wanted). This one holds 0.93 to 1.00 in runs
    of 180 s and 0.87 to 0.99 in runs of 40 s, at 0.5 to 1.6 times the knee: near it responses are correlated for
    longer than 40 s, and such a run cannot tell. Measured: analysis/tests/statistics/test_percentiles.py."""
    if not 0 < share < 1:
        raise ValueError(f"percentile {share}: expected a share above 0 and below 1")
    x, t = np.asarray(values, dtype=float), np.asarray(times_s, dtype=float)
    order = np.argsort(t, kind="stable")
    order = order[(t[order] >= start_s) & (t[order] < end_s)]
    x, t, needed = x[order], t[order], required_n(share)
    if len(x) < needed:
        return Percentile(share, np.nan, np.nan, np.nan, len(x), needed, np.nan)
    value = float(np.percentile(x, 100 * share))
    place = (t - start_s) / (end_s - start_s)
    effective = min(_independent(x, place, s) for s in {share, min(share, TELLING_SHARE)})
    low, high = _interval(effective * (1 - share), effective)
    ends = np.percentile(x, [100 * (1 - high), 100 * (1 - low)])
    upper = float(ends[1]) if effective * (1 - share) >= OPEN_BELOW else np.inf
    return Percentile(share, value, float(ends[0]), upper, len(x), needed, effective)


def _independent(x: Array, place: Array, share: float) -> float:
    """Independent values among the n that tell how many lie beyond the percentile. place: of each within the run, 0..1,
    in order."""
    n = len(x)
    beyond = (x > np.percentile(x, 100 * share)).astype(float)
    if not beyond.any():  # all are equal
        return float(n)
    part = np.minimum((BATCHES * place).astype(int), BATCHES - 1)
    # of each part, by how much those beyond exceed what its number of values would make one expect
    excess = np.bincount(part, weights=beyond - beyond.mean(), minlength=BATCHES)
    variance = float(excess.var(ddof=1)) * BATCHES / n**2
    by_parts = beyond.var() / variance if variance > 0 else np.inf
    return float(max(2.0, min(n, by_parts, n / max(1.0, integrated_correlation(beyond)))))


def _interval(beyond: float, n: float) -> tuple[float, float]:
    """Exact interval of a proportion of `beyond` in `n`, both of which may be fractions."""
    tail = float(stats.norm.sf(T_95))
    low = float(stats.beta.ppf(tail, beyond, n - beyond + 1))
    return low, float(stats.beta.ppf(1 - tail, beyond + 1, max(n - beyond, 1e-9)))
