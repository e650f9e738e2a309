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
    """`steps(counters, most, out)`, `rates(counters, most, interval_cs, out)`, `shares(counters, most, out)`,
    `levels(numbers, out)` and `constant(numbers)`, see there."""

    steps: Callable[..., bool]
    rates: Callable[..., bool]
    shares: Callable[..., bool]
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

        return Loops(*map(numba.njit(cache=True), (_steps, _rates, _shares, _levels, _constant)))
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


def _shares(counters, most, out):  # type: ignore[no-untyped-def]
    """(records, 1 + CPUs, 10) a CPU's counters, of which the first item is not read -> `out` (12, rows) its shares in
    percent, as figures.cpus.shares has them: a row per record of all CPUs, then those of the single ones. False, and
    `out` is worthless, if a counter ran backwards or grew by more than `most`."""
    records, items, fields = counters.shape
    delta = np.zeros((items, fields))
    for r in range(1, records):
        delta[0] = 0
        every = 0.0
        for i in range(1, items):
            for f in range(fields):
                later, earlier = counters[r, i, f], counters[r - 1, i, f]
                step = np.int64(later - earlier)
                if later < earlier or step < 0 or step > most:
                    return False
                delta[i, f] = step
                delta[0, f] += step
        for i in range(items - 1, -1, -1):  # all of them last: its ticks are the sum of theirs
            d = delta[i]
            user, nice, guest, guest_nice = d[0], d[1], d[8], d[9]
            ticks, row = every, r - 1
            if i:
                ticks = d[:8].sum() + max(guest - user, 0.0) + max(guest_nice - nice, 0.0)
                every += ticks
                row = records - 1 + (r - 1) * (items - 1) + i - 1
            if ticks == 0:
                out[:, row] = 0
                out[3, row] = 100 if i else 0
                continue
            out[0, row] = max(user - guest, 0.0) / ticks * 100
            out[1, row] = max(nice - guest_nice, 0.0) / ticks * 100
            for f in range(2, fields):
                out[f, row] = d[f] / ticks * 100
            out[10, row] = user / ticks * 100
            out[11, row] = (d[2] + d[6] + d[7]) / ticks * 100
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
