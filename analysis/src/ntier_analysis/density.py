"""Densities of utilization: a Gaussian kernel on [0, 100] %, reflected at both ends, at a stated bandwidth.

For display only. A share above a threshold comes from the samples themselves, never from a curve: an automatic
bandwidth smears a saturated resource, and without reflection mass leaks beyond 100 % (docs/decisions/density.md).

Method: reflection at 0 and 100 is what a cosine series does, f(x) = (1 + 2 sum_k c_k exp(-(pi k h / 100)^2 / 2)
cos(pi k x / 100)) / 100 with c_k = mean of cos(pi k x_i / 100) and bandwidth h. The c_k come from the samples spread
over a regular grid by cubic Lagrange weights (error of the fourth order in cell / bandwidth) and one discrete cosine
transform; a second one evaluates the series on `GRID_PCT`. Both are of type I rather than II, because its nodes include
0 and 100, where the constant samples of an idle or pegged resource lie: those come out exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.fft import dct

Array = npt.NDArray[np.float64]

UPPER_PCT = 100.0
GRID_PCT: Array = np.linspace(0.0, UPPER_PCT, 401)
"""Where densities are evaluated: 0, 0.25, ..., 100 %."""
MIN_BANDWIDTH_PCT = 0.5
"""Narrower kernels are not resolved by `GRID_PCT` (two cells per bandwidth)."""
_CELLS_PER_BANDWIDTH = 8
"""Cubic weights err by at most 9/128 (cell / bandwidth)^4 of the peak: 1.7e-5 at eight cells."""


def density(samples: npt.ArrayLike, bandwidth_pct: float) -> Array:
    """Density of one series of utilizations on `GRID_PCT`.

    samples: shape (n,), percent, each in [0, 100]. Returns shape (401,), share per percentage point; its trapezoidal
    integral over the grid is 1. Raises ValueError for an empty series, NaN, or values outside [0, 100]."""
    return densities([np.asarray(samples)], bandwidth_pct)[0]


def densities(series: Sequence[npt.ArrayLike] | Array, bandwidth_pct: float) -> Array:
    """Densities of many series at one bandwidth, shape (len(series), 401); see `density`.

    series: shape (s, n), or s arrays of any lengths. The error names the series by its position."""
    if not MIN_BANDWIDTH_PCT <= bandwidth_pct <= UPPER_PCT:
        raise ValueError(f"bandwidth {bandwidth_pct} %: allowed are {MIN_BANDWIDTH_PCT}..{UPPER_PCT} percentage points")
    values, offsets = _flatten(series)
    if len(offsets) == 1:
        return np.empty((0, len(GRID_PCT)))
    empty = np.flatnonzero(np.diff(offsets) == 0)
    if len(empty):
        raise ValueError(f"series {empty[0]}: no samples")
    # bandwidths need 8 cells each, and no fewer cells than the grid has
    cells = max(512, 1 << int(np.ceil(np.log2(_CELLS_PER_BANDWIDTH * UPPER_PCT / bandwidth_pct))))
    weights, bad = _compiled()(values, offsets, cells)
    if bad >= 0:
        raise _out_of_range(values, offsets, bad)
    order = np.arange(len(GRID_PCT))
    damping = np.exp(-0.5 * (np.pi * order * bandwidth_pct / UPPER_PCT) ** 2)
    weights[:, [0, -1]] *= 2.0  # a type-I DCT counts its end points once, the inner ones twice
    coefficients = 0.5 * dct(weights, type=1, axis=-1)[:, : len(GRID_PCT)] * damping
    coefficients[:, -1] *= 0.0  # below 1e-8 by MIN_BANDWIDTH_PCT; the inverse would count it once, not twice
    return np.maximum(dct(coefficients, type=1, axis=-1) / UPPER_PCT, 0.0)


def reflected_sum(samples: npt.ArrayLike, bandwidth_pct: float, at_pct: npt.ArrayLike = GRID_PCT) -> Array:
    """The same density by direct summation over samples and mirror images: exact, slow, for comparison.

    Returns the shape of `at_pct`, share per percentage point."""
    x = np.asarray(samples, dtype=np.float64)
    at = np.asarray(at_pct, dtype=np.float64)[:, None]
    periods = int(np.ceil(10 * bandwidth_pct / (2 * UPPER_PCT))) + 1  # images beyond ten bandwidths add nothing
    total = np.zeros(len(at))
    for shift in 2 * UPPER_PCT * np.arange(-periods, periods + 1):
        for image in (x + shift, shift - x):
            total += np.exp(-0.5 * ((at - image) / bandwidth_pct) ** 2).sum(axis=1)
    return total / (len(x) * bandwidth_pct * np.sqrt(2 * np.pi))


def _flatten(series: Sequence[npt.ArrayLike] | Array) -> tuple[Array, npt.NDArray[np.int64]]:
    """All values one after another and where each series begins (one more entry than series)."""
    if isinstance(series, np.ndarray) and series.ndim == 2:
        return np.ascontiguousarray(series, dtype=np.float64).ravel(), np.arange(len(series) + 1) * series.shape[1]
    arrays = [np.asarray(s, dtype=np.float64) for s in series]
    for position, array in enumerate(arrays):
        if array.ndim != 1:
            raise ValueError(f"series {position}: expected one dimension, got shape {array.shape}")
    offsets = np.concatenate([[0], np.cumsum([len(a) for a in arrays], dtype=np.int64)])
    if len(arrays) == 1:
        return np.ascontiguousarray(arrays[0]), offsets  # no copy: half of the time at a million samples
    return (np.concatenate(arrays) if arrays else np.empty(0)), offsets


def _out_of_range(values: Array, offsets: npt.NDArray[np.int64], index: int) -> ValueError:
    position = int(np.searchsorted(offsets, index, side="right")) - 1
    return ValueError(
        f"series {position}, sample {index - offsets[position]}: {values[index]}; expected a utilization in 0..100 %"
    )


@cache
def _compiled():
    """Compiled on first use, since numba takes half a second to import; 20 times NumPy's bincount. Without numba (extra
    `fast`), or where it finds no folder for its compiled code, the same loop runs as it is: 0.15 s for a report, 1.3 s
    for a million samples."""
    try:
        import numba

        return numba.njit(cache=True, fastmath={"contract", "reassoc"})(_spread)
    except (ImportError, RuntimeError):
        return _spread


def _spread(values: Array, offsets: npt.NDArray[np.int64], cells: int) -> tuple[Array, int]:
    """Each series' samples spread over the nodes 0..cells by cubic Lagrange weights that sum to 1.

    Returns shape (series, cells + 1), nodes beyond an end folded back on their mirror image, and the index of the
    first value that is NaN or outside [0, 100], else -1. The weights are polynomials in a sample's place t within its
    cell, so that the sums of 1, t, t^2, t^3 per cell suffice: one vector addition per sample."""
    out = np.zeros((len(offsets) - 1, cells + 1))
    moments = np.empty((cells + 1, 4))
    for s in range(len(offsets) - 1):
        moments[:] = 0.0
        for i in range(offsets[s], offsets[s + 1]):
            if not (values[i] >= 0.0 and values[i] <= 100.0):
                return out, i
            position = values[i] * (cells / 100.0)
            j = int(position)
            t = position - j
            moments[j, 0] += 1.0
            moments[j, 1] += t
            moments[j, 2] += t * t
            moments[j, 3] += t * t * t
        share = 1.0 / (offsets[s + 1] - offsets[s])
        for j in range(cells + 1):
            n, t1, t2, t3 = moments[j]
            nodes = (
                -t1 / 3 + t2 / 2 - t3 / 6,  # t (1 - t) (t - 2) / 6 at node j - 1
                n - t1 / 2 - t2 + t3 / 2,
                t1 + t2 / 2 - t3 / 2,
                (t3 - t1) / 6,
            )
            for k in range(4):
                node = abs(j + k - 1)
                out[s, node if node <= cells else 2 * cells - node] += share * nodes[k]
    return out, -1
