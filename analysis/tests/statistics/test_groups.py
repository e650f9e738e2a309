"""Letters against published displays, the error rate of the equivalence test, and that nothing is forced."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from ntier_analysis.statistics.families import holm
from ntier_analysis.statistics.groups import compare_all, compare_pairs, letters, opened
from ntier_analysis.statistics.ratios import of_intervals
from ntier_analysis.statistics.throughput import of_trials
from ntier_analysis.statistics.values import Interval, estimated
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_ind


def same(*pairs: str) -> set[frozenset[str]]:
    return {frozenset(p) for p in pairs}


@pytest.mark.parametrize(
    ("names", "equal", "shown"),
    [
        ("ABC", same("AB", "BC"), {"A": "a", "B": "ab", "C": "b"}),  # not transitive: B belongs to both
        ("ABC", same("AB", "BC", "AC"), {"A": "a", "B": "a", "C": "a"}),
        ("ABC", set(), {"A": "a", "B": "b", "C": "c"}),
        # R's multcompView, help of multcompLetters: letters a, b, c with "ab" in the middle
        ("ABCD", same("AB", "BC", "CD"), {"A": "a", "B": "ab", "C": "bc", "D": "c"}),
    ],
)
def test_letters(names, equal, shown):
    assert letters(list(names), equal) == shown


def test_two_share_a_letter_exactly_if_they_are_the_same():
    rng = np.random.default_rng(5)
    for _ in range(50):
        names = [f"n{i}" for i in range(9)]
        equal = {frozenset(p) for p in itertools.combinations(names, 2) if rng.random() < 0.5}
        groups = letters(names, equal)
        for pair in itertools.combinations(names, 2):
            assert bool(set(groups[pair[0]]) & set(groups[pair[1]])) == (frozenset(pair) in equal)


def test_more_groups_than_letters():
    names = [f"n{i}" for i in range(30)]
    assert len(set(letters(names, set()).values())) == 30


def estimate(values: np.ndarray) -> Interval:
    return of_trials(values)


def test_a_family_is_corrected_for_its_size():
    """The same two estimates look less different among many pairs (Holm)."""
    rng = np.random.default_rng(3)
    estimates = {n: of_trials(rng.normal(v, 2.0, 5)) for n, v in {"a": 100.0, "b": 106.0}.items()}
    alone = compare_all(estimates)[0]
    others = {f"n{i}": of_trials(rng.normal(100.0, 2.0, 5)) for i in range(5)}
    among = next(p for p in compare_all(estimates | others) if (p.a, p.b) == ("a", "b"))
    assert among.ratio == alone.ratio
    assert alone.p_different < among.p_different <= 21 * alone.p_different


def test_equivalence_as_statsmodels():
    """The error of the logarithm comes from the delta method, which is exact for small spreads."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(100, 1, 8), rng.normal(104, 1.2, 8)
    pair = compare_all({"a": estimate(a), "b": estimate(b)})[0]
    expected = ttost_ind(np.log(a), np.log(b), -np.log(1.05), np.log(1.05), usevar="unequal")[0]
    assert pair.p_same == pytest.approx(expected, rel=0.05)


def test_error_rates():
    """Truths 5 % apart are called the same, and equal ones different, in at most 5 % of the families (3 s.e. = 2.9)."""
    rng = np.random.default_rng(2)
    wrong_same = wrong_different = right = 0
    for _ in range(500):
        truth = {"a": 100.0, "b": 100 * 1.0501, "c": 100.0}
        estimates = {n: estimate(rng.normal(v, 2.0, 5)) for n, v in truth.items()}
        relation = {p.a + p.b: p.relation for p in compare_all(estimates)}
        wrong_same += "same" in (relation["ab"], relation["bc"])
        wrong_different += relation["ac"] in ("higher", "lower")
        right += relation["ac"] == "same"
    assert wrong_same <= 40
    assert wrong_different <= 40
    assert right > 100


def test_few_noisy_values_stay_undecided():
    estimates = {"a": estimated(100, 5, 2, 3), "b": estimated(103, 5, 2, 3)}
    pair = compare_pairs(estimates, [("a", "b")])[0]
    assert pair.relation == "undecided"
    assert pair.ratio.low < 1 < pair.ratio.high


def test_what_has_no_error_is_undecided():
    pair = compare_all({"a": of_trials(np.array([100.0])), "b": estimated(100, 1, 4, 5)})[0]
    assert np.isnan(pair.ratio.low)
    assert pair.relation == "undecided"


@pytest.mark.parametrize(
    ("bounds", "relations", "sides"),
    [
        ("", ("higher", "lower", "same"), ("", "", "")),
        ("a", ("higher", "lower", "undecided"), ("at least", "at most", "at least")),
        ("b", ("undecided", "undecided", "same"), ("at most", "at least", "")),
        ("ab", ("undecided", "undecided", "undecided"), ("unknown", "unknown", "at least")),
    ],
)
def test_a_lower_bound_decides_on_its_own_side_only(bounds, relations, sides):
    estimates = {"a": estimated(120, 0.5, 9, 10), "b": estimated(100, 0.5, 9, 10), "c": estimated(120, 0.5, 9, 10)}
    pairs = compare_pairs(estimates, [("a", "b"), ("b", "a"), ("a", "c")], bounds=set(bounds))
    assert tuple(p.relation for p in pairs) == relations
    assert tuple(p.side for p in pairs) == sides
    if bounds == "ab":
        assert (pairs[0].ratio.low, pairs[0].ratio.high, pairs[0].p_different) == (0, np.inf, 1)


@pytest.mark.parametrize("p", [[], [0.04], [0.01, 0.04, 0.03, 0.005], [0.5, 0.5, 0.001], [0.9, 0.8, 1.0, 0.02, 0.02]])
def test_holm_is_that_of_statsmodels(p):
    assert holm(p).tolist() == pytest.approx(multipletests(p, method="holm")[1].tolist() if p else [])


def test_a_bound_of_unknown_error_opens_nothing():
    unknown = of_intervals(estimated(1.0, 0.1, 9, 10), estimated(2.0, float("nan"), 0, 1))
    assert all(math.isnan(end) for end in (opened(unknown, True, True).low, opened(unknown, True, True).high))
    known = of_intervals(estimated(1.0, 0.1, 9, 10), estimated(2.0, 0.1, 9, 10))
    assert (opened(known, True, False).high, opened(known, False, True).low) == (math.inf, 0.0)
