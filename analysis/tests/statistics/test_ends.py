"""Where statistics end: two trials, runs that are too short, ratios below 1, three points for a law of two numbers."""

import numpy as np
import pytest
from ntier_analysis.statistics.laws import dependence
from ntier_analysis.statistics.scaling import fit
from ntier_analysis.statistics.share import pooled
from ntier_analysis.statistics.stationarity import drift, start_excess
from ntier_analysis.statistics.values import Ratio


def test_the_saturation_of_two_runs_has_the_ends_of_both_unless_these_lie_apart():
    mean, low, high = pooled(np.array([0.5, 0.9]), np.array([0.25, 0.65]), np.array([0.75, 0.95]))
    assert (mean, low, high) == pytest.approx((0.7, 0.25, 0.95))
    mean, low, high = pooled(np.array([0.5, 0.9]), np.array([0.45, 0.85]), np.array([0.55, 0.95]))
    assert (mean, low, high) == pytest.approx((0.7, 0.0, 1.0))


def test_a_run_that_is_too_short_to_shift_tells_no_dependence():
    assert np.isnan(dependence(np.ones(50), np.ones(50), 0.1).lift)
    assert dependence(np.ones(100), np.ones(100), 0.1).lift == 1.0


def test_steadiness_fails_only_beyond_the_limit_and_beyond_chance():
    rise = np.linspace(0, 1, 10)
    assert drift(100 + 3 * rise).outcome == "pass", "significant, and too little to matter"
    assert drift(np.r_[100 + 0.1 * rise[:9], 200.0]).outcome == "undecidable", "in order, but one value alone"
    counts = np.r_[100, np.tile([80, 120], 4), 100]
    times = np.concatenate([np.linspace(i, i + 1, n, endpoint=False) for i, n in enumerate(counts)])
    assert start_excess(times, 0.0, 10.0).outcome == "undecidable", "no excess, in rates that differ by 20 %"


def test_a_ratio_below_1_is_different_too():
    assert Ratio(0.8, 0.75, 0.85, 0.76, 0.84, 9).outcome(0.05) == "different"


def test_three_points_that_do_not_fit_amdahl_cannot_test_the_other_law():
    assert "3 points cannot test the Universal" in fit([1, 2, 3], [100, 110, 300], [1, 1, 1])[2]
