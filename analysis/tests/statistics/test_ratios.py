"""Ratios with intervals, and equivalence."""

from dataclasses import replace

import numpy as np
import pytest
from ntier_analysis.statistics.ratios import (
    at_least,
    never_narrower,
    of_batches,
    of_intervals,
    p_same,
    paired,
    unpaired,
)
from ntier_analysis.statistics.throughput import of_trials
from ntier_analysis.statistics.values import Ratio, estimated

RUNS = 400


def share(outcomes):
    return np.mean(list(outcomes))


@pytest.mark.parametrize("n", [3, 5, 10])
@pytest.mark.parametrize("test", [paired, unpaired])
def test_intervals_hold_the_truth_in_95_of_100(test, n):
    rng = np.random.default_rng(n)
    ratios = [test(rng.lognormal(0, 0.03, n), 1.2 * rng.lognormal(0, 0.05, n)) for _ in range(RUNS)]
    # 400 runs of 95 %: standard error 1.1 points; Welch is a little off at n = 3
    assert 0.91 <= share(r.low <= 1.2 <= r.high for r in ratios) <= 0.99


def test_pairing_removes_what_both_have_in_common():
    rng = np.random.default_rng(1)
    day = rng.lognormal(0, 0.3, 6)  # each pair on another day
    a, b = day * rng.lognormal(0, 0.01, 6), 1.1 * day * rng.lognormal(0, 0.01, 6)
    assert paired(a, b).outcome(0.05) == "different"
    assert unpaired(a, b).outcome(0.05) == "undecided"
    assert paired(a, b).value == pytest.approx(1.1, rel=0.03)


def test_same_is_shown_and_not_assumed():
    rng = np.random.default_rng(2)

    def outcomes(ratio, noise, n):
        return [
            paired(rng.lognormal(0, noise, n), ratio * rng.lognormal(0, noise, n)).outcome(0.05) for _ in range(RUNS)
        ]

    assert share(o == "same" for o in outcomes(1.0, 0.01, 5)) > 0.95
    assert share(o == "same" for o in outcomes(1.05, 0.02, 5)) < 0.08  # at the margin: at most 5 % by construction
    assert share(o == "undecided" for o in outcomes(1.0, 0.2, 3)) > 0.85  # too noisy to tell: not the same
    assert share(o == "different" for o in outcomes(1.0, 0.2, 5)) < 0.08
    assert share(o == "different" for o in outcomes(1.3, 0.03, 5)) > 0.99


def test_estimates_by_the_delta_method():
    rng = np.random.default_rng(3)
    hits = []
    for _ in range(RUNS):
        x, y = 100 + rng.normal(0, 10, 10), 130 + rng.normal(0, 20, 10)
        ratio = of_intervals(of_trials(x), of_trials(y))
        hits.append(ratio.low <= 1.3 <= ratio.high)
    assert 0.91 <= np.mean(hits) <= 0.99


def test_identical_and_unknown_values():
    assert paired(np.array([3.0, 4.0]), np.array([3.0, 4.0])).outcome(0.05) == "same"
    unknown = of_intervals(of_trials(np.ones(1)), estimated(1.0, 0.1, 9, 10))
    assert unknown.outcome(0.05) == "undecided"
    assert unknown.value == 1.0


@pytest.mark.parametrize("test", [paired, unpaired])
def test_values_that_agree_in_all_digits_tell_no_error(test):
    ratio = test(np.full(3, 12.0), np.full(3, 13.0))
    assert (ratio.value, ratio.outcome(0.05)) == (pytest.approx(13 / 12), "undecided")
    assert np.isnan(ratio.low)


def test_two_pairs_that_agree_by_chance_are_known_no_better_than_each():
    a, b = np.array([100.0, 101.0]), np.array([110.0, 111.2])
    narrow = paired(a, b)
    own = of_intervals(of_batches(a, np.full(2, 10.0)), of_batches(b, np.full(2, 10.0)))
    assert narrow.outcome(0.05) == "different"
    wide = never_narrower(narrow, own)
    assert (wide.value, wide.n, wide.outcome(0.05)) == (pytest.approx(narrow.value), 2, "undecided")
    assert never_narrower(narrow, paired(a, b)) == narrow
    exact = paired(a, a)
    assert never_narrower(exact, exact).outcome(0.05) == "undecided", "neither tells an error"


def test_an_interval_is_no_narrower_than_what_values_are_rounded_to():
    ratio = of_intervals(estimated(12.0, 0.01, 9, 10), estimated(13.0, 0.01, 9, 10))
    assert ratio.outcome(0.05) == "different"
    rounded = at_least(ratio, 0.1)
    assert np.log([rounded.high / rounded.value, rounded.value / rounded.low]) == pytest.approx([0.1, 0.1])
    assert rounded.outcome(0.05) == "undecided"
    assert p_same(rounded, 0.1) > p_same(ratio, 0.1)


@pytest.mark.parametrize("bad", [[1.0], [1.0, 0.0], [1.0, float("nan")]])
def test_what_has_no_logarithm_is_refused(bad):
    with pytest.raises(ValueError, match="positive values"):
        paired(np.array(bad), np.ones(len(bad)))


def test_both_directions_have_one_answer():
    """[0.951, 1.000] lies within 1 +- 5 %, and [1.000, 1.0515], its inverse, does not."""
    same = Ratio(0.975, 0.950, 1.001, 0.951, 1.000, 9)
    back = Ratio(1 / 0.975, 1 / 1.001, 1 / 0.950, 1 / 1.000, 1 / 0.951, 9)
    assert same.outcome(0.05) == back.outcome(0.05) == "undecided"
    closer = replace(same, low_90=0.953)
    assert closer.outcome(0.05) == replace(back, high_90=1 / 0.953).outcome(0.05) == "same"
    one, other = (of_intervals(estimated(x, 0.3, 9, 10), estimated(y, 0.3, 9, 10)) for x, y in ((100, 104), (104, 100)))
    assert p_same(one, 0.05) == pytest.approx(p_same(other, 0.05))
