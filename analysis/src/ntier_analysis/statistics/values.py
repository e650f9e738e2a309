"""The three kinds of result that all of the analysis shares: an estimate with its interval, a ratio, a demand.

All code that shows a quantity shows one of these, so that it has the same value and interval everywhere."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ntier_analysis.statistics import distributions as stats

CONFIDENCE = 0.95
NAN = math.nan


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval (NaN ends: too few data), standard error and sample size. `freedom`: degrees
    of freedom that the standard error was estimated with; infinite where it is known."""

    value: float
    low: float
    high: float
    standard_error: float
    n: int
    freedom: float = math.inf

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


def estimated(value: float, standard_error: float, freedom: float, n: int) -> Interval:
    """Value +- Student's t x standard error; without a degree of freedom the ends are NaN."""
    if not (freedom > 0 and math.isfinite(standard_error)):
        return Interval(value, NAN, NAN, NAN, n, 0.0)
    reach = float(stats.t.ppf(0.5 + CONFIDENCE / 2, freedom)) * standard_error
    return Interval(value, value - reach, value + reach, standard_error, n, freedom)


def lower_end(interval: Interval) -> float:
    """What the value is at least, with 95 % confidence to that one side; never below the interval."""
    reach = float(stats.t.ppf(CONFIDENCE, interval.freedom)) * interval.standard_error
    return max(interval.low, interval.value - reach)


def reach_of(several: int, freedom: float = math.inf) -> float:
    """How many times as wide the interval of one estimate must be for those of so many to hold together (Bonferroni).
    `freedom`: degrees of freedom of its standard error; infinite: by the normal law. Student's t has more in its tails:
    of eight estimates 1.4 times by the normal law, 2.9 times with two degrees of freedom. NaN without any."""
    alpha = (1 - CONFIDENCE) / 2
    return float(stats.t.isf(alpha / max(1, several), freedom) / stats.t.isf(alpha, freedom))


def above_zero(interval: Interval) -> Interval:
    """Of a rate that was seen: an interval that reaches 0 bounds it nowhere, and there is none (two trials that differ
    by a sixth, by Student's t with one degree of freedom)."""
    return estimated(interval.value, NAN, 0.0, interval.n) if interval.low <= 0 else interval


def not_negative(interval: Interval) -> Interval:
    """Of a quantity that cannot be below 0."""
    return replace(interval, low=0.0) if interval.low < 0 else interval


def same_within(margin: float) -> tuple[float, float]:
    """Smallest and largest ratio of two values of which neither is more than `margin` above the other, so that a / b
    and b / a have one answer: 0.05 gives 0.952 to 1.05."""
    return 1 / (1 + margin), 1 + margin


@dataclass(frozen=True)
class Ratio:
    """b / a with 95 % interval (`low`, `high`) and 90 % interval (for the test of equivalence); `n` samples. The
    logarithm has the standard error `log_error` with `freedom` degrees of freedom (NaN: unknown)."""

    value: float
    low: float
    high: float
    low_90: float
    high_90: float
    n: int
    log_error: float = NAN
    freedom: float = NAN

    def outcome(self, margin: float) -> str:
        """`same`: the 90 % interval lies within the margin (two one-sided tests at 5 %, `same_within`); `different`:
        the 95 % interval excludes 1; else `undecided`. What is the same and yet differs by a little is `same`."""
        if not np.isfinite(self.low):
            return "undecided"
        least, most = same_within(margin)
        if least <= self.low_90 and self.high_90 <= most:
            return "same"
        return "different" if self.low > 1 or self.high < 1 else "undecided"

    @property
    def text(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class Demand:
    """U = idle + demand x X of a node or a tier: idle floor in cores, demand in core-seconds per interaction, with
    standard errors and their correlation. `n` trials, of which `repeats` repeat the load of another one.

    `p` of the chi-square test that one demand fits all loads. Errors, correlation and `p` are NaN with fewer than 3
    loads: a line goes through any two, and their repetitions tell only how trials of one load differ."""

    idle_cores: float
    demand_s: float
    demand_error_s: float
    p: float
    n: int
    idle_error_cores: float = NAN
    correlation: float = NAN
    repeats: int = 0

    @property
    def loads(self) -> int:
        """Different loads behind it."""
        return self.n - self.repeats

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the errors; 0: not known."""
        return max(0, self.loads - 2)

    @property
    def interval(self) -> Interval:
        """Of the demand, s; `n`: its loads. It is not negative."""
        return not_negative(estimated(self.demand_s, self.demand_error_s, self.freedom, self.loads))

    def draws(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """(count, 2) of idle cores and demand, by Student's t with the fit's covariance; a demand is not negative. Idle
        cores may be (an interaction costs more at high loads): they are where the line begins, and cut off at 0 the
        draws would lie beside the line. NaN where the fit has no error."""
        if not self.freedom:
            return np.full((count, 2), NAN)
        a, b = rng.standard_normal((2, count)) / np.sqrt(rng.chisquare(self.freedom, count) / self.freedom)
        idle = self.idle_cores + self.idle_error_cores * (
            self.correlation * a + math.sqrt(max(0.0, 1 - self.correlation**2)) * b
        )
        return np.column_stack([idle, np.maximum(self.demand_s + self.demand_error_s * a, 0.0)])
