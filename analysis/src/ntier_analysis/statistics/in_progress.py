"""Requests in progress and completions in short windows, from when requests begin and end."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

MIN_WINDOWS = 5
"""Windows that a point of the main sequence stands for at least."""
ALIKE = 0.05
"""Relative difference of two mean loads below which they are the same. If all of 60 workers are taken, each completion
frees one for a moment: windows with 59.5 and 59.9 in progress differ by their completions, not by their load."""
JUMP = 1.5
"""Ratio of neighbouring loads from which on they are never in one group: no window lies between."""


def windows(
    begin_s: npt.ArrayLike, end_s: npt.ArrayLike, start_s: float, stop_s: float, width_s: float
) -> tuple[Array, Array]:
    """-> mean number in progress and completions per second of each whole window of `width_s` in [start_s, stop_s).

    The mean is over time: a request counts for the part of the window in which it was there. Requests that are not
    among the given ones (cut off at the end of a log) are missing in it."""
    begin, end = np.sort(np.asarray(begin_s, dtype=float)), np.sort(np.asarray(end_s, dtype=float))
    count = int(np.floor((stop_s - start_s) / width_s + 1e-9))
    if count < 1:
        raise ValueError(f"window of {width_s} s: {start_s}..{stop_s} holds none")
    edges = start_s + width_s * np.arange(count + 1)
    # the integral of (arrivals - departures) over a window
    there = np.diff(_integral(begin, edges) - _integral(end, edges)) / width_s
    done = np.diff(np.searchsorted(end, edges)) / width_s
    return np.maximum(there, 0.0), done.astype(float)


def _integral(events: Array, at: Array) -> Array:
    """Integral up to each time of the number of events so far: the sum of (time - event) over the earlier ones."""
    origin = at[0]
    sums = np.concatenate([[0.0], np.cumsum(events - origin)])
    so_far = np.searchsorted(events, at)
    return so_far * (at - origin) - sums[so_far]


def main_sequence(load: npt.ArrayLike, rate: npt.ArrayLike, points: int = 25) -> tuple[Array, Array, Array]:
    """Mean rate over windows of like load (Wang et al., ICDCS 2013): mean load, mean rate and number of windows of each
    of at most `points` groups.

    The groups are of like size, not of like width as in the paper: over several loads of a closed system the numbers
    in progress span three orders of magnitude. Equal loads are never in two groups.
    Windows without a value are left out."""
    x, y = np.asarray(load, dtype=float), np.asarray(rate, dtype=float)
    known = np.isfinite(x) & np.isfinite(y)
    order = np.argsort(x[known], kind="stable")
    x, y = x[known][order], y[known][order]
    size = max(MIN_WINDOWS, -(-len(x) // points))
    group = np.searchsorted(x, x) // size  # by how many windows have less in progress
    jump = np.concatenate([[False], x[1:] > JUMP * np.maximum(x[:-1], 1.0)])[: len(x)]
    first = np.flatnonzero((np.diff(group, prepend=-1) > 0) | jump)
    n = np.diff(np.append(first, len(x)))
    enough = (n >= MIN_WINDOWS) | (first == 0)  # smaller groups join the one before
    first = _apart(x, first[enough])
    n = np.diff(np.append(first, len(x))).astype(float)
    if not len(first):
        return np.array([]), np.array([]), np.array([])
    return np.add.reduceat(x, first) / n, np.add.reduceat(y, first) / n, n


def _apart(x: Array, first: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Beginnings of the groups of sorted loads, without those whose mean is that of the group before."""
    kept: list[int] = []
    for begin, end in zip(first, [*first[1:], len(x)][: len(first)], strict=True):
        if not kept or x[begin:end].mean() > (1 + ALIKE) * x[kept[-1] : begin].mean():
            kept.append(int(begin))
    return np.array(kept, dtype=np.intp)
