"""A number with what is known of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ntier_analysis.statistics.throughput import of_trials
from ntier_analysis.statistics.values import Interval, not_negative

UNKNOWN = (None, None)


@dataclass(frozen=True)
class Quantity:
    """A value with its 95 % interval; `low`, `high` None: unknown; equal to the value: exact. `note`: where it comes
    from, or why it is not known."""

    value: float
    low: float | None
    high: float | None
    note: str = ""

    @property
    def text(self) -> str:
        if math.isnan(self.value):
            return self.note or "unknown"
        exact = self.low == self.high == self.value
        ends = "" if exact else f" [{_short(self.low)}, {_short(self.high)}]"
        return f"{_short(self.value)}{ends}{f', {self.note}' if self.note else ''}"


def mean_of_trials(values: np.ndarray, note: str = "") -> Quantity:
    """Mean of one positive value of each trial; the trials are the sample. One alone has no interval."""
    return measured(not_negative(of_trials(values)), note)


def measured(found: Interval, note: str = "") -> Quantity:
    """Of an estimate from several trials. Trials that agree in all digits tell no error, so the interval is unknown."""
    known = math.isfinite(found.low) and (found.high > found.low or found.value == 0)  # none at all, each time
    return Quantity(found.value, *((found.low, found.high) if known else UNKNOWN), note)


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
    ends = (upper.low, upper.high, lower.low, lower.high)
    if not all(end is not None and end > 0 for end in ends) or not lower.value > 0 or not upper.value > 0:
        value = upper.value / lower.value if lower.value else math.nan
        return Quantity(value, *UNKNOWN, note)
    value = upper.value / lower.value
    down = math.hypot(math.log(upper.value / upper.low), math.log(lower.high / lower.value))
    up = math.hypot(math.log(upper.high / upper.value), math.log(lower.value / lower.low))
    return Quantity(value, value * math.exp(-down), value * math.exp(up), note)


def _short(value: float | None) -> str:
    return "unknown" if value is None or math.isnan(value) else f"{value:.4g}"
