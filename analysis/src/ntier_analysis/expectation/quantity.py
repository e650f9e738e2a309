"""A number with what is known of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ntier_analysis.statistics.throughput import of_trials
from ntier_analysis.statistics.values import Interval, not_negative, reach_of

UNKNOWN = (None, None)
LEAST_FREEDOM = 1.0
"""Of an interval of which nobody knows from how many trials it is: two at least, or it would have none."""


@dataclass(frozen=True)
class Quantity:
    """A value with its 95 % interval; `low`, `high` None: unknown; equal to the value: exact. `note`: where it comes
    from, or why it is not known; `freedom`: degrees of freedom of the interval, None if unknown; `most`: the largest
    value that there can be, 1 of a share."""

    value: float
    low: float | None
    high: float | None
    note: str = ""
    freedom: float | None = None
    most: float = math.inf

    @property
    def text(self) -> str:
        if math.isnan(self.value):
            return self.note or "unknown"
        exact = self.low == self.high == self.value
        ends = "" if exact else f" [{_short(self.low)}, {_short(self.high)}]"
        return f"{_short(self.value)}{ends}{f', {self.note}' if self.note else ''}"

    def one_of(self, several: int) -> Quantity:
        """With the interval that holds together with those of so many others (Bonferroni). What is symmetric differs
        (means, logarithms of ratios, log odds of shares), so each end is the farthest that one of these gives."""
        if several <= 1 or self.low is None or self.high is None or math.isnan(self.low + self.high):
            return self
        reach = reach_of(several, self.freedom or LEAST_FREEDOM)
        low, high = self.value - reach * (self.value - self.low), self.value + reach * (self.high - self.value)
        if self.value > 0 and math.isfinite(high):
            high = max(high, self.value * (self.high / self.value) ** reach)
        if self.most == 1:
            odds = _odds_ratio(self.value, self.high, reach)
            high = max(high, _with_odds(self.high, odds))
            odds = _odds_ratio(1 - self.value, 1 - self.low, reach)
            low = min(low, 1 - _with_odds(1 - self.low, odds))
        return replace(self, low=max(0.0, low), high=min(self.most, high))


def mean_of_trials(values: np.ndarray, note: str = "") -> Quantity:
    """Mean of one positive value of each trial; the trials are the sample. One alone has no interval."""
    return measured(not_negative(of_trials(values)), note)


def measured(found: Interval, note: str = "") -> Quantity:
    """Of an estimate from several trials. Trials that agree in all digits tell no error, so the interval is unknown."""
    known = math.isfinite(found.low) and (found.high > found.low or found.value == 0)  # none at all, each time
    return Quantity(found.value, *((found.low, found.high) if known else UNKNOWN), note, found.freedom)


def _odds_ratio(share: float, end: float, reach: float) -> float:
    """By how much the odds of the upper end of a share's interval grow where it becomes `reach` times as wide. Wilson's
    interval (Newcombe, Stat. Med. 17, 1998) reaches 2 asinh(z / ...) of the log odds to either side."""
    if not 0 < end < 1:
        return 1.0
    if share <= 0:
        return reach**2
    half = math.log(end / (1 - end) / (share / (1 - share))) / 2
    return math.exp(2 * (math.asinh(reach * math.sinh(half)) - half))


def _with_odds(share: float, times: float) -> float:
    """The share whose odds are so many times as large."""
    return share * times / (1 - share + share * times)


def at_least(quantity: Quantity, reach: float) -> Quantity:
    """With an interval that goes at least so far to both sides. An unknown one stays unknown."""
    value, low, high = quantity.value, quantity.low, quantity.high
    if not reach or low is None or high is None:
        return quantity
    return replace(quantity, low=max(0.0, min(low, value - reach)), high=max(high, value + reach))


def quotient(upper: Quantity, lower: Quantity) -> Quantity:
    """upper / lower of two positive quantities. Their errors are independent; each end of the interval joins the ends
    of both as logarithms. Unknown where an interval is, or reaches 0; a bound that is known on one side only leaves the
    quotient open on one side."""
    note = f"{upper.text} by {lower.text}"
    freedom = min(upper.freedom or LEAST_FREEDOM, lower.freedom or LEAST_FREEDOM)
    ends = (upper.low, upper.high, lower.low, lower.high)
    if not all(end is not None and end > 0 for end in ends) or not lower.value > 0 or not upper.value > 0:
        value = upper.value / lower.value if lower.value else math.nan
        return Quantity(value, *UNKNOWN, note)
    value = upper.value / lower.value
    down = math.hypot(math.log(upper.value / upper.low), math.log(lower.high / lower.value))
    up = math.hypot(math.log(upper.high / upper.value), math.log(lower.value / lower.low))
    return Quantity(value, value * math.exp(-down), value * math.exp(up), note, freedom)


def _short(value: float | None) -> str:
    return "unknown" if value is None or math.isnan(value) else f"{value:.4g}"
