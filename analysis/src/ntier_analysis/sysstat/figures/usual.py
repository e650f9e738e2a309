"""Counters and levels -> the figures that sysstat shows, by its definitions.

All divide first and multiply by 100 then, as sysstat does, so that the last printed digit is the same. A counter that
ran backwards by more than a wrap can explain has no value (NaN), unless sysstat says what it then is. `readings.steps`
and `readings.rates` are the quick way for counters that only grow; where they give None, the general one follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ntier_analysis.sysstat.items import Readings, Rows

Values = dict[str, np.ndarray]


@dataclass(frozen=True)
class Columns:
    """`values`: {name: (rows,)}. `rows()` -> (rows,) number of the record, (rows,) of the item's name in `names`.
    `each`: rows of every record but the first, if they are as many in all, in the order of the file; else 0."""

    values: Values
    rows: Callable[[], tuple[np.ndarray, np.ndarray]]
    names: list[str]
    notes: dict[str, list[str]] = field(default_factory=dict)
    each: int = 0


def columns(readings: Readings, rows: Rows, values: Values) -> Columns:
    keys = readings.keys
    each = readings.even if isinstance(rows, slice) else 0
    return Columns(values, lambda: (readings.record[rows], keys.codes[rows]), keys.names, keys.notes, each)


def rates(readings: Readings) -> Columns:
    """Every field is a counter: per second."""
    rows, before = readings.pairs()
    return columns(readings, rows, rates_of(readings, rows, before))


def new_rates(readings: Readings) -> Columns:
    """The same; an item that is new began at zero."""
    rows, before = readings.pairs_or_new()
    return columns(readings, rows, rates_of(readings, rows, before))


def serial(readings: Readings) -> Columns:
    """Per second."""
    rows, before = readings.pairs()
    values = rates_of(readings, rows, before)
    del values["line"]
    return columns(readings, rows, values)


def rates_of(readings: Readings, rows: Rows, before: Rows) -> Values:
    found = quick(readings, readings.rates)
    if found:
        return found
    interval, values = readings.interval_cs(rows), {}
    for names, block in readings.blocks:
        rates = per_second(difference(block[rows], at(block, before)).T, interval)
        values.update(zip(names, rates, strict=True))
    return values


def quick(readings: Readings, compute: Callable[[int], np.ndarray | None]) -> Values | None:
    """The figures of all kinds of numbers; None if the quick way does not serve for one."""
    values: Values = {}
    for kind, (names, _) in enumerate(readings.views or []):
        figures = compute(kind)
        if figures is None:
            return None
        values.update(zip(names, figures, strict=True))
    return values or None


def rates_or_zero(readings: Readings) -> Columns:
    """Per second; a counter that ran backwards stands still: devices went, and their share of the sum with them."""
    rows, before = readings.pairs()
    found = quick(readings, readings.rates)
    if found:
        return columns(readings, rows, found)
    ((names, block),) = readings.blocks
    later, earlier = block[rows], block[before]
    delta = np.where(later < earlier, 0, later - earlier)
    rates = per_second(delta.T, readings.interval_cs(rows))
    return columns(readings, rows, dict(zip(names, rates, strict=True)))


def levels(readings: Readings) -> Columns:
    """Every field is a level."""
    rows = readings.ends
    return columns(readings, rows, levels_of(readings, rows))


def levels_of(readings: Readings, rows: Rows, kind: int | None = None) -> Values:
    """Of all kinds of numbers, or of one."""
    of = slice(kind, None if kind is None else kind + 1)
    if readings.views and isinstance(rows, slice):
        return {
            name: x for names, view in readings.views[of] for name, x in zip(names, readings.levels(view), strict=True)
        }
    return {
        name: values
        for names, block in readings.blocks[of]
        for name, values in zip(names, block[rows].astype(float).T, strict=True)
    }


def at(block: np.ndarray, rows: Rows) -> np.ndarray:
    """Rows of the block, zeros for row -1."""
    values = block[rows]
    if isinstance(rows, np.ndarray):
        values[rows < 0] = 0
    return values


def difference(later: np.ndarray, earlier: np.ndarray) -> np.ndarray:
    """later - earlier of unsigned counters of 32 or 64 bits, modulo their size; NaN for more than half of it."""
    delta = (later - earlier).view(f"i{later.itemsize}")
    values = delta.astype(float)
    if delta.size and delta.min() < 0:
        values[delta < 0] = np.nan
    return values


def per_second(delta: np.ndarray, interval_cs: np.ndarray) -> np.ndarray:
    """(..., rows) differences -> per second."""
    rates = delta / interval_cs
    rates *= 100
    return rates


def percent(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """100 part / whole, 0 where the whole is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole == 0, 0.0, part / whole * 100)


def remainder(whole: np.ndarray, part: np.ndarray) -> np.ndarray:
    """What is left of the whole; NaN where the part is larger."""
    return np.where(whole >= part, whole - part, np.nan)
