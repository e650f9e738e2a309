"""How an expectation comes out, by the whole interval of what was measured."""

from __future__ import annotations

import math
import re
from enum import StrEnum

from ntier_analysis.errors import DataError
from ntier_analysis.expectation.quantity import Quantity
from ntier_analysis.statistics.values import same_within

_NUMBER = re.compile(r"([0-9.eE+-]+)\s*(%?)")


class Outcome(StrEnum):
    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"


def number(text: str, bound: str, *, share: bool) -> float:
    """`share`: of a share, 0.9 or 90 %; else only a ratio may be given in per cent. Raises DataError."""
    match = _NUMBER.fullmatch(bound)
    try:
        value = float(match[1]) / (100 if match[2] else 1)
    except (TypeError, ValueError):
        raise DataError(f"expectation {text!r}: {bound!r} is not a number") from None
    if share and not 0 <= value <= 1:
        raise DataError(f"expectation {text!r}: {bound!r} is not a share; allowed are 0 to 1, or 0 % to 100 %")
    if not share and match[2]:
        raise DataError(f"expectation {text!r}: {bound!r}: a percentage is not allowed here; expected a number")
    return value


def margin(text: str, bound: str) -> float:
    """What `within` allows on both sides: 0.05 of `5 %`. Raises DataError."""
    match = _NUMBER.fullmatch(bound)
    value = number(text, bound, share=True) if match else math.nan
    if not 0 < value < 1:
        raise DataError(f"expectation {text!r}: {bound!r} is not a margin; expected for example 5 %")
    return value


def bounded(measured: Quantity, op: str, bound: float) -> Outcome:
    """Of `measured OP bound`, by the whole interval. Raises DataError for an operator that is not allowed there."""
    low, high = measured.low, measured.high
    if low is None or high is None:
        return Outcome.UNDECIDED
    sure = {
        ">=": (low >= bound, high < bound),
        ">": (low > bound, high <= bound),
        "<=": (high <= bound, low > bound),
        "<": (high < bound, low >= bound),
        "==": (low == high == bound, bound < low or bound > high),
        "!=": (bound < low or bound > high, low == high == bound),
    }
    if op not in sure:
        raise DataError(f"operator {op!r} needs ratio(B, A) on its left; allowed here are {', '.join(sure)}")
    holds, fails = sure[op]
    return Outcome.HOLDS if holds else Outcome.FAILS if fails else Outcome.UNDECIDED


def within(ratio: Quantity, margin: float) -> Outcome:
    """Whether the whole interval of a ratio lies within the margin (`same_within`), or none of it."""
    if ratio.low is None or ratio.high is None:
        return Outcome.UNDECIDED
    least, most = same_within(margin)
    if least <= ratio.low and ratio.high <= most:
        return Outcome.HOLDS
    return Outcome.FAILS if ratio.low > most or ratio.high < least else Outcome.UNDECIDED
