"""The worst cells of bench/interval_coverage.py, fast: intervals hold the truth about as often as they say."""

import interval_coverage
import numpy as np
import pytest

pytestmark = pytest.mark.whole

RUNS = 300
LEAST, MOST = 0.91, 0.985
"""95 % in 300 runs: three standard errors of 1.3 points; the goal is 93 to 97 %."""


def share(intervals, truth):
    return np.mean([i.low <= truth <= i.high for i in intervals])


@pytest.mark.parametrize("trials", [3, 8])
@pytest.mark.parametrize("between", [0.0, 0.05, 0.10])
def test_a_maximum_of_several_trials_holds_whatever_they_differ_by(trials, between):
    most = MOST if between else 1.0  # trials that do not differ: the wider of two intervals, each of which would do
    assert LEAST <= share(interval_coverage.maxima(trials, between, RUNS), 100.0) <= most


def test_a_maximum_of_one_trial_lacks_what_differs_between_trials():
    """Why a plateau needs three: nothing within a trial tells."""
    assert LEAST <= share(interval_coverage.maxima(1, 0.0, RUNS), 100.0) <= MOST
    assert share(interval_coverage.maxima(1, 0.05, RUNS), 100.0) < 0.75


@pytest.mark.parametrize("between", [0.0, 0.05])
def test_a_ratio_holds(between):
    assert LEAST <= share(interval_coverage.ratios(3, between, RUNS), 1.2) <= 1.0  # Welch is cautious with 3 a side


@pytest.mark.parametrize(("loads", "noise"), [(3, 0.02), (4, 0.05), (10, 0.01)])
def test_a_demand_holds_however_far_the_loads_are_from_the_law(loads, noise):
    assert LEAST <= share(interval_coverage.demands(loads, noise, RUNS), 0.002) <= MOST


@pytest.mark.parametrize(("loads", "repetitions"), [(3, 5), (4, 3), (6, 3)])
def test_a_demand_holds_if_loads_are_repeated(loads, repetitions):
    assert LEAST <= share(interval_coverage.demands(loads, 0.03, RUNS, repetitions), 0.002) <= MOST


@pytest.mark.parametrize("interval_s", [0.1, 1.0])
@pytest.mark.parametrize("truth", [0.3, 0.8])
def test_a_saturation_with_enough_changes_holds(interval_s, truth):
    intervals = [s for s in interval_coverage.shares(truth, 1.0, 60.0, interval_s, 150) if s.enough_changes]
    assert len(intervals) > 120
    assert share(intervals, truth) >= LEAST


def test_a_state_that_lasts_as_long_as_the_run_is_said_not_to_be_known():
    """Such an interval cannot hold: it must be wide, and the note must say so."""
    intervals = interval_coverage.shares(0.5, 10.0, 60.0, 1.0, 100)
    few = [s for s in intervals if not s.enough_changes]
    assert len(few) > 80
    assert all(s.note for s in few)
    assert np.median([s.high - s.low for s in few]) > 0.5
