"""How narrow an interval will be, foreseen: the ranges hold as often as they say."""

import numpy as np
import pytest
from ntier_analysis.statistics.foresight import OFTEN, half_width, spread
from ntier_analysis.statistics.throughput import of_trials

BETWEEN, WITHIN = 0.08, 0.03


def runs(rng, n, between=BETWEEN, within=WITHIN):
    return 100 * (1 + between * rng.standard_normal(n) + within * rng.standard_normal(n))


@pytest.mark.parametrize(("seen", "to_come"), [(3, 3), (3, 9), (6, 4)])
def test_the_half_width_found_is_in_the_range_as_often_as_promised(seen, to_come):
    rng, inside, n = np.random.default_rng(5), 0, 600
    for _ in range(n):
        _, low, high = half_width(spread(runs(rng, seen), np.full(seen, 100 * WITHIN), 40), to_come, 40)
        found = of_trials(runs(rng, to_come), np.full(to_come, 100 * WITHIN), 9 * to_come)
        inside += low <= found.half_width / found.value <= high
    assert inside / n == pytest.approx(OFTEN, abs=0.06)  # 3 standard errors of 600 draws are 0.05


def test_longer_runs_lessen_what_lies_within_them_and_not_what_differs_between_trials():
    noisy = spread(np.array([97.0, 100.0, 103.0]), np.array([3.0, 3.0, 3.0]), 40)
    assert noisy.between() == 0
    assert half_width(noisy, 4, 160)[0] == pytest.approx(half_width(noisy, 4, 40)[0] / 2)
    uneven = spread(np.array([90.0, 100.0, 110.0]), np.array([0.1, 0.1, 0.1]), 40)
    assert half_width(uneven, 4, 4000)[0] == pytest.approx(half_width(uneven, 4, 40)[0], rel=0.001)


def test_more_trials_narrow_it():
    seen = spread(np.array([90.0, 100.0, 110.0]), np.array([1.0, 1.0, 1.0]), 40)
    widths = [half_width(seen, n, 40)[0] for n in range(2, 12)]
    assert widths == sorted(widths, reverse=True)
    assert widths[1] == pytest.approx(4.303 * 0.1 / np.sqrt(3), rel=0.001), "t(2) at 97.5 %"


def test_one_trial_tells_nothing_of_how_trials_differ():
    with pytest.raises(ValueError, match="takes two"):
        spread(np.array([100.0]), np.array([1.0]), 40)
    seen = spread(np.array([90.0, 110.0]), np.array([1.0, 1.0]), 40)
    assert half_width(seen, 1, 40)[0] == np.inf
