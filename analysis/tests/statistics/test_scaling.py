"""Fits find the truth they were drawn from, their intervals hold, and too few data say so."""

from __future__ import annotations

import numpy as np
import pytest
from ntier_analysis.statistics.scaling import fit, usl
from ntier_analysis.statistics.throughput import of_trials
from scipy.optimize import nnls

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
        fitted, _, _ = fit(N, np.random.default_rng(seed).normal(x, 0.02 * x), 0.02 * x, seed=seed)
        held += fitted.low[1] <= 0.1 <= fitted.high[1]
    assert held >= 51


def test_a_plateau_by_another_tier_fits_neither():
    x = np.minimum(100.0 * N, 320.0)
    assert "neither law fits" in fit(N, x, 0.01 * x)[2]


def of_runs(x: np.ndarray, noise: float, seed: int) -> tuple:
    """Each point from three runs, so that its error has two degrees of freedom."""
    runs = np.random.default_rng(seed).normal(x, noise * x, (3, len(x)))
    points = [of_trials(r) for r in runs.T]
    parts = ([getattr(p, k) for p in points] for k in ("value", "standard_error", "freedom"))
    return fit(N, *parts)


def test_errors_from_three_runs_are_no_known_errors():
    """With the errors taken as known, 22 of the 100 fitted no law, and 68 intervals held sigma."""
    x, neither, held = usl(N, 100.0, 0.1, 0.0), 0, 0
    for seed in range(100):
        fitted, _, words = of_runs(x, 0.1, seed)
        neither += "neither law fits" in words
        held += fitted.low[1] <= 0.1 <= fitted.high[1]
    assert neither <= 5
    assert held >= 90
    plateau = np.minimum(100.0 * N, 320.0)  # what fits no law is still seen
    assert sum("neither law fits" in of_runs(plateau, 0.01, seed)[2] for seed in range(20)) >= 18


def test_many_degrees_of_freedom_are_known_errors():
    """The simulated p comes to that of the chi-square table, and the solution is that of an independent solver."""
    x = usl(N, 100.0, 0.1, 0.0) * (1 + 0.02 * (-1.0) ** N)
    for known, many in zip(fit(N, x, 0.02 * x)[:2], fit(N, x, 0.02 * x, 1e6)[:2], strict=True):
        assert many.p == pytest.approx(known.p, abs=0.04)  # 2,000 runs: 3 s.e. = 0.034
        columns = np.column_stack([np.ones(len(N)), N - 1, N * (N - 1)][: 2 if known.name == "Amdahl" else 3])
        weight = x / (0.02 * N)
        solved = np.pad(nnls(columns * weight[:, None], N / x * weight)[0], (0, 1))
        assert known.value == pytest.approx((1 / solved[0], solved[1] / solved[0], solved[2] / solved[0]), abs=1e-9)


def test_three_points_cannot_tell():
    amdahl, universal, words = fit([1, 2, 3], [100, 180, 240], [2, 2, 2])
    assert "3 points cannot tell" in words
    assert np.isnan(universal.p)
    low, high = amdahl.band([5])
    assert low[0] < amdahl.at([5])[0] < high[0]


def test_two_points_are_refused():
    with pytest.raises(ValueError, match="at least 3"):
        fit([1, 2], [100, 180], [2, 2])
