"""Tests that are looked at together: what holds for all of them at once."""

from __future__ import annotations

import numpy as np


def holm(p: list[float]) -> np.ndarray:
    """Holm's correction (1979): p values that hold for the whole family. The smallest counts n times, the next n - 1
    times, ...; none becomes smaller than one before it."""
    order = np.argsort(p, kind="stable")
    times = np.arange(len(p), 0, -1)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(times * np.asarray(p, dtype=float)[order]), 1.0)
    return corrected
