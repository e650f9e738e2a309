"""The inner loops over a file's counters, compiled: one pass from the file's bytes to the figures.

They serve what most files hold: items that neither come nor go, counters that only grow. For anything else, and without
numba (extra `fast`), NumPy computes the same figures, to the last bit."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

WORTH = 200
"""Files from which on a process gains more than it loses by importing numba (half a second)."""


class Loops(NamedTuple):
    """`steps(counters, most, out)`, `rates(counters, most, interval_cs, out)`, `levels(numbers, out)` and
    `constant(numbers)`, see there."""

    steps: Callable[..., bool]
    rates: Callable[..., bool]
    levels: Callable[[np.ndarray, np.ndarray], None]
    constant: Callable[[np.ndarray], bool]


def loops(files: int) -> Loops | None:
    """For the process that has read so many files; None if they are too few, or without numba."""
    return compiled() if files >= WORTH or "numba" in sys.modules else None


@cache
def compiled() -> Loops | None:
    """None without numba, or where it finds no folder that it may write to for the compiled code."""
    try:
        import numba

        return Loops(*map(numba.njit(cache=True), (_steps, _rates, _levels, _constant)))
    except (ImportError, RuntimeError):
        return None


def _steps(counters, most, out):  # type: ignore[no-untyped-def]
    """(records, items, fields) unsigned -> `out` (fields, records - 1, items) what each grew by, float. False, and
    `out` is worthless, if one ran backwards or grew by more than `most`."""
    records, items, fields = counters.shape
    for r in range(1, records):
        for i in range(items):
            for f in range(fields):
                later, earlier = counters[r, i, f], counters[r - 1, i, f]
                step = np.int64(later - earlier)
                if later < earlier or step < 0 or step > most:
                    return False
                out[f, r - 1, i] = step
    return True


def _rates(counters, most, interval_cs, out):  # type: ignore[no-untyped-def]
    """The same per second. `interval_cs` (records,) 1/100 s, float."""
    records, items, fields = counters.shape
    for r in range(1, records):
        interval = interval_cs[r]
        for i in range(items):
            for f in range(fields):
                later, earlier = counters[r, i, f], counters[r - 1, i, f]
                if later == earlier:  # most counters stand still most of the time, and a division takes longest
                    out[f, r - 1, i] = 0
                    continue
                step = np.int64(later - earlier)
                if later < earlier or step < 0 or step > most:
                    return False
                out[f, r - 1, i] = step / interval * 100
    return True


def _levels(numbers, out):  # type: ignore[no-untyped-def]
    """(records, items, fields) -> `out` (fields, records - 1, items), float, without the first record."""
    records, items, fields = numbers.shape
    for r in range(1, records):
        for i in range(items):
            for f in range(fields):
                out[f, r - 1, i] = numbers[r, i, f]


def _constant(numbers):  # type: ignore[no-untyped-def]
    """Whether all records of (records, items, fields) hold the same."""
    records, items, fields = numbers.shape
    for r in range(1, records):
        for i in range(items):
            for f in range(fields):
                if numbers[r, i, f] != numbers[0, i, f]:
                    return False
    return True
