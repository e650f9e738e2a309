"""Fits find the truth they were drawn from, their intervals hold, and too few data say so."""

from __future__ import annotations

import numpy as np
import pytest
from ntier_analysis.statistics.scaling import fit, usl

N = np.arange(1, 10)


def test_the_truth_is_found_and_preferred():
    rng = np.random.default_rng(1)
    x = usl(N, 100.0, 0.05, 0.02)
    amdahl, universal, words = fit(N, rng.normal(x, 0.01 * x), 0.01 * x)
    assert universal.value == pytest.approx((100, 0.05, 0.02), rel=0.5)
    assert universal.peak == pytest.approx(np.sqrt(0.95 / 0.02), rel=0.1)
    assert universal.p > 0.01 > amdahl.p
    assert "prefer the Universal" in words


def test_amdahl_data_are_not_called_universal():
    rng = np.random.default_rng(2)
    x = usl(N, 100.0, 0.1, 0.0)
    amdahl, _, words = fit(N, rng.normal(x, 0.01 * x), 0.01 * x)
    assert amdahl.value[1] == pytest.approx(0.1, abs=0.03)
    assert amdahl.peak == float("inf")
    assert "prefer the Universal" not in words


def test_intervals_hold():
    """95 % intervals of sigma over 60 seeds: at least 51 hold (3 s.e. below 57)."""
    x, held = usl(N, 100.0, 0.1, 0.0), 0
    for seed in range(60):
        fitted, _, _ = fit(N, np.random.default_rng(seed).normal(x, 0.02 * x), 0.02 * x, seed)
        held += fitted.low[1] <= 0.1 <= fitted.high[1]
    assert held >= 51


def test_a_plateau_by_another_tier_fits_neither():
    x = np.minimum(100.0 * N, 320.0)
    assert "neither law fits" in fit(N, x, 0.01 * x)[2]


def test_three_points_cannot_tell():
    amdahl, universal, words = fit([1, 2, 3], [100, 180, 240], [2, 2, 2])
    assert "3 points cannot tell" in words
    assert np.isnan(universal.p)
    low, high = amdahl.band([5])
    assert low[0] < amdahl.at([5])[0] < high[0]


def test_two_points_are_refused():
    with pytest.raises(ValueError, match="at least 3"):
        fit([1, 2], [100, 180], [2, 2])
