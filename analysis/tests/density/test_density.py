"""Properties of the densities, and their distance from the exact reflected sum."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ntier_analysis.density import GRID_PCT, MIN_BANDWIDTH_PCT, _compiled, densities, density, reflected_sum
from numba.core import caching

percents = st.floats(0.0, 100.0, allow_nan=False, width=64)
samples = st.lists(percents, min_size=1, max_size=80)
bandwidths = st.floats(MIN_BANDWIDTH_PCT, 30.0)


def saturated(n: int, seed: int = 1) -> np.ndarray:
    """Half of the time within a few points of 100 %, else near 78 %, as a CPU past its knee."""
    rng = np.random.default_rng(seed)
    busy = 100 - rng.exponential(1.5, n)
    return np.clip(np.where(rng.random(n) < 0.55, busy, rng.normal(78, 6, n)), 0, 100)


def error_of_peak(samples, bandwidth_pct: float) -> float:
    exact = reflected_sum(samples, bandwidth_pct)
    return float(np.abs(density(samples, bandwidth_pct) - exact).max() / exact.max())


@given(samples, bandwidths)
@settings(max_examples=200, deadline=None)
def test_within_1e_4_of_the_peak_of_the_exact_sum(values, bandwidth_pct):
    assert error_of_peak(values, bandwidth_pct) <= 1e-4


@given(samples, bandwidths)
@settings(max_examples=200, deadline=None)
def test_area_is_one_and_nothing_negative(values, bandwidth_pct):
    curve = density(values, bandwidth_pct)
    assert np.trapezoid(curve, GRID_PCT) == pytest.approx(1.0, abs=1e-4)
    assert curve.min() >= 0.0


@given(samples, bandwidths)
@settings(max_examples=100, deadline=None)
def test_mirrored_samples_give_the_mirrored_curve(values, bandwidth_pct):
    mirrored = density([100.0 - v for v in values], bandwidth_pct)
    np.testing.assert_allclose(mirrored, density(values, bandwidth_pct)[::-1], atol=1e-4 * mirrored.max())


@pytest.mark.parametrize("level", [0.0, 100.0])
@pytest.mark.parametrize("bandwidth_pct", [0.5, 1.0, 2.0, 5.6])
def test_constant_at_an_end_is_a_doubled_half_gaussian(level, bandwidth_pct):
    curve = density(np.full(720, level), bandwidth_pct)
    assert curve[-1 if level else 0] == pytest.approx(2 / (bandwidth_pct * np.sqrt(2 * np.pi)), rel=1e-6)
    assert GRID_PCT[curve.argmax()] == level
    assert error_of_peak(np.full(720, level), bandwidth_pct) <= 1e-6


def test_two_points_keep_their_shares():
    values = np.r_[np.full(30, 20.0), np.full(70, 97.0)]
    curve = density(values, 1.0)
    low = GRID_PCT < 60
    assert np.trapezoid(curve[low], GRID_PCT[low]) == pytest.approx(0.3, abs=1e-4)
    assert error_of_peak(values, 1.0) <= 1e-4


def test_reflection_keeps_the_mass_that_a_plain_kernel_loses():
    values = saturated(720)
    scale = 1.0
    plain = np.exp(-0.5 * ((GRID_PCT[:, None] - values) / scale) ** 2).mean(axis=1) / (scale * np.sqrt(2 * np.pi))
    assert np.trapezoid(plain, GRID_PCT) < 0.9
    assert np.trapezoid(density(values, scale), GRID_PCT) == pytest.approx(1.0, abs=1e-6)
    assert density(values, scale)[-1] == pytest.approx(2 * plain[-1], rel=1e-3)


def test_a_curve_is_not_a_saturation():
    """Half of the samples near 97 %: a wide kernel shows much less above 95 % than there is, which is why shares are
    counted and never integrated from the curve."""
    rng = np.random.default_rng(3)
    values = np.clip(np.r_[rng.normal(20, 2, 360), rng.normal(97, 0.8, 360)], 0, 100)
    above = GRID_PCT >= 95
    counted = (values >= 95).mean()
    assert counted > 0.48
    assert np.trapezoid(density(values, 25.0)[above], GRID_PCT[above]) < counted / 2


def test_many_series_of_different_lengths_equal_each_alone():
    series = [saturated(n, seed=n) for n in (1, 7, 400, 1800)]
    together = densities(series, 2.0)
    for row, values in zip(together, series, strict=True):
        np.testing.assert_array_equal(row, density(values, 2.0))
    np.testing.assert_array_equal(densities(np.stack([series[2]] * 3), 2.0)[2], together[2])
    assert densities([], 2.0).shape == (0, len(GRID_PCT))


def test_large_series_stay_accurate():
    assert error_of_peak(saturated(20_000), 1.0) <= 1e-4


@pytest.mark.parametrize("bad", [np.nan, -0.01, 100.01, np.inf, -np.inf])
def test_a_value_that_is_no_percentage_is_named(bad):
    with pytest.raises(ValueError, match=r"series 1, sample 2: .*0\.\.100"):
        densities([[1.0], [2.0, 3.0, bad, 4.0]], 2.0)


@pytest.mark.parametrize("bandwidth_pct", [0.0, -1.0, 0.49, 101.0, np.nan])
def test_bandwidth_out_of_range(bandwidth_pct):
    with pytest.raises(ValueError, match=r"allowed are 0\.5\.\.100"):
        density([50.0], bandwidth_pct)


def test_empty_series_and_wrong_shape():
    with pytest.raises(ValueError, match="series 1: no samples"):
        densities([[1.0], []], 2.0)
    with pytest.raises(ValueError, match="series 0: expected one dimension"):
        densities([np.zeros((2, 2))], 2.0)


@pytest.mark.parametrize("lacks", ["numba", "a folder for its compiled code"])
def test_without_numba_the_curves_are_the_same(monkeypatch, lacks):
    """numba is an extra: the package installs alone, and the user of a read-only installation may have no home."""
    series = [saturated(300, seed) for seed in range(3)]
    compiled = densities(series, 2.0)
    if lacks == "numba":
        monkeypatch.setitem(sys.modules, "numba", None)  # import numba raises ImportError
    else:
        monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    _compiled.cache_clear()
    try:
        assert densities(series, 2.0) == pytest.approx(compiled, rel=1e-9, abs=1e-12)
        with pytest.raises(ValueError, match="series 0, sample 1: nan"):
            densities([[1.0, float("nan")]], 2.0)
    finally:
        _compiled.cache_clear()
