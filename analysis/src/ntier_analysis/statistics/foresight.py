"""How narrow the interval of a maximum will be, before its trials are run: from trials that were."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ntier_analysis.statistics import distributions as stats
from ntier_analysis.statistics.values import CONFIDENCE

OFTEN = 0.8
"""Share of the foreseen ranges that hold the half-width that will be found."""


@dataclass(frozen=True)
class Spread:
    """How trials beyond the knee differ. `total`: standard deviation of their throughputs; `within`: what a run of
    `run_s` alone would make of it; both relative to the mean. `n`: trials it was seen in."""

    throughput_per_s: float
    total: float
    within: float
    run_s: float
    n: int

    def between(self) -> float:
        """What differs from trial to trial, however long they run: the machine's speed, for one."""
        return float(np.sqrt(max(0.0, self.total**2 - self.within**2)))


def spread(throughput: np.ndarray, standard_error: np.ndarray, run_s: float) -> Spread:
    """Of trials (k,), k at least 2; `standard_error` of each by its own run; both 1/s."""
    x, errors = np.asarray(throughput, float), np.asarray(standard_error, float)
    if len(x) < 2:
        raise ValueError("how trials differ takes two of them")
    mean = float(x.mean())
    return Spread(mean, float(x.std(ddof=1)) / mean, float(np.sqrt(np.square(errors).mean())) / mean, run_s, len(x))


def half_width(seen: Spread, trials: int, run_s: float) -> tuple[float, float, float]:
    """Half-width of the 95 % interval of the mean of so many trials, as `throughput.of_trials` makes it, relative:
    to be expected, and the range in which it will be in OFTEN of the cases (by F: both standard deviations, that of
    the trials seen and that of those to come, are estimates). A run k times as long has a k-th of the variance within;
    what differs between trials stays."""
    if trials < 2:
        return float("inf"), float("nan"), float("inf")
    within = seen.within * np.sqrt(seen.run_s / run_s)
    deviation = max(float(np.hypot(seen.between(), within)), within)
    middle = float(stats.t.ppf(0.5 + CONFIDENCE / 2, trials - 1) * deviation / np.sqrt(trials))
    ratio = np.sqrt(stats.f.ppf([0.5 - OFTEN / 2, 0.5 + OFTEN / 2], trials - 1, seen.n - 1))
    return middle, middle * float(ratio[0]), middle * float(ratio[1])
