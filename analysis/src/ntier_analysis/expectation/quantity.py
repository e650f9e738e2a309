"""A number with what is known of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
        exact = self.low == self.high == self.value
        ends = "" if exact else f" [{_short(self.low)}, {_short(self.high)}]"
        return f"{_short(self.value)}{ends}{f', {self.note}' if self.note else ''}"


def _short(value: float | None) -> str:
    return "unknown" if value is None or math.isnan(value) else f"{value:.4g}"
