"""Percentiles with intervals, and requests in progress in short windows."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from ntier_analysis.statistics.in_progress import MIN_WINDOWS, main_sequence, windows
from ntier_analysis.statistics.percentiles import percentile_interval

DEMANDS_S = (0.003, 0.006, 0.010)
THINK_S = 7.0
"""Three stations in a row; the knee is at 7.02 / 0.010 = 702 users."""


def closed_network(users: int, run_s: float, seed: int, warm_s: float = 60.0) -> tuple[np.ndarray, np.ndarray]:
    """Completion and response time (s) of the interactions of users who think and pass FIFO stations."""
    rng = np.random.default_rng([seed, users])
    expected = (
        int(1.3 * (warm_s + run_s) * min(users / THINK_S, 1 / max(DEMANDS_S)) * (len(DEMANDS_S) + 1)) + 10 * users
    )
    draws = iter(rng.exponential(1.0, expected).tolist())
    free_at = [0.0] * len(DEMANDS_S)
    events = [(THINK_S * next(draws), user, 0, 0.0) for user in range(users)]
    heapq.heapify(events)
    done = []
    while events[0][0] < warm_s + run_s:
        now, user, stage, begun = events[0]
        if stage == len(DEMANDS_S):
            if now >= warm_s:
                done.append((now - warm_s, now - begun))
            heapq.heapreplace(events, (now + THINK_S * next(draws), user, 0, 0.0))
            continue
        leave = max(now, free_at[stage]) + DEMANDS_S[stage] * next(draws)
        free_at[stage] = leave
        heapq.heapreplace(events, (leave, user, stage + 1, begun if stage else now))
    times, responses = np.array(done).T
    return times, responses


@pytest.mark.parametrize("share", [0.5, 0.9, 0.95, 0.99])
def test_the_value_is_numpys_percentile_of_what_was_completed_in_the_window(share):
    times, responses = closed_network(300, 60.0, seed=1)
    interval = percentile_interval(responses, times, share, 10.0, 50.0)
    inside = responses[(times >= 10.0) & (times < 50.0)]
    assert interval.n == len(inside)
    assert interval.value == np.percentile(inside, 100 * share)
    assert interval.low <= interval.value <= interval.high


def test_the_order_of_the_values_does_not_matter():
    times, responses = closed_network(300, 60.0, seed=2)
    order = np.random.default_rng(0).permutation(len(times))
    straight = percentile_interval(responses, times, 0.95, 0.0, 60.0)
    assert percentile_interval(responses[order], times[order], 0.95, 0.0, 60.0) == straight


@pytest.mark.parametrize(("share", "needed"), [(0.5, 20), (0.9, 100), (0.95, 200), (0.99, 1000)])
def test_a_percentile_takes_ten_values_beyond_it(share, needed):
    times = np.linspace(0, 10, needed, endpoint=False)
    values = np.random.default_rng(3).exponential(1.0, needed)
    assert percentile_interval(values, times, share, 0.0, 10.0).enough
    few = percentile_interval(values[1:], times[1:], share, 0.0, 10.0)
    assert (few.enough, few.needed, few.n) == (False, needed, needed - 1)
    assert np.isnan([few.value, few.low, few.high]).all()


def test_equal_values_have_an_interval_of_no_width():
    times = np.linspace(0, 10, 2000, endpoint=False)
    interval = percentile_interval(np.full(2000, 4.0), times, 0.95, 0.0, 10.0)
    assert (interval.value, interval.low, interval.high) == (4.0, 4.0, 4.0)


def test_correlated_values_count_for_less_than_independent_ones():
    rng = np.random.default_rng(4)
    times = np.linspace(0, 100, 5000, endpoint=False)
    alone = rng.exponential(1.0, 5000)
    together = np.repeat(rng.exponential(1.0, 100), 50)
    free, tied = (percentile_interval(v, times, 0.9, 0.0, 100.0) for v in (alone, together))
    assert free.n_effective > 10 * tied.n_effective
    assert tied.high - tied.low > 2 * (free.high - free.low)


def test_too_few_independent_values_beyond_leave_the_upper_end_open():
    """A run that holds one busy period does not say how long the next one gets."""
    times = np.linspace(0, 40, 4000, endpoint=False)
    values = np.where((times > 20) & (times < 24), 9.0, 1.0) + np.random.default_rng(5).random(4000)
    assert np.isinf(percentile_interval(values, times, 0.95, 0.0, 40.0).high)


@pytest.mark.parametrize("share", [0.0, 1.0, 95.0])
def test_a_share_out_of_range_is_an_error(share):
    with pytest.raises(ValueError, match="above 0 and below 1"):
        percentile_interval([1.0], [0.5], share, 0.0, 1.0)


def test_intervals_hold_as_often_as_they_say_below_the_knee():
    """Half of the capacity, 60 s. Nearer to the knee and with fewer seconds see `percentile_interval`."""
    truth = np.percentile(closed_network(350, 4000.0, seed=99)[1], 95)
    held = [
        interval.low <= truth <= interval.high
        for seed in range(120)
        for times, responses in [closed_network(350, 60.0, seed)]
        for interval in [percentile_interval(responses, times, 0.95, 0.0, 60.0)]
    ]
    assert 0.90 <= np.mean(held) <= 0.99  # 0.95 +- 2.5 standard errors of 120 runs


def test_windows_count_every_completion_once_and_time_in_progress_exactly():
    rng = np.random.default_rng(6)
    begin = rng.uniform(-5, 15, 400)
    end = begin + rng.exponential(0.8, 400)
    load, rate = windows(begin, end, 0.0, 10.0, 0.1)
    assert len(load) == len(rate) == 100
    assert rate.sum() * 0.1 == pytest.approx(((end >= 0) & (end < 10)).sum())
    overlap = np.clip(end, 0, 10) - np.clip(begin, 0, 10)
    assert load.sum() * 0.1 == pytest.approx(overlap.sum())
    one = np.clip(end, 3.0, 3.1) - np.clip(begin, 3.0, 3.1)
    assert load[30] == pytest.approx(one.sum() / 0.1)


def test_a_window_longer_than_the_run_is_an_error():
    with pytest.raises(ValueError, match="holds none"):
        windows([0.0], [1.0], 0.0, 1.0, 2.0)


def test_the_main_sequence_bends_where_the_server_is_full():
    """c servers of rate mu: throughput is mu x load up to c, then stays at mu x c."""
    rng = np.random.default_rng(7)
    load = rng.uniform(0, 100, 5000)
    rate = 3.0 * np.minimum(load, 20.0) + rng.normal(0, 5, 5000)
    x, y, n = main_sequence(load, rate)
    assert n.sum() == 5000
    assert n.min() >= MIN_WINDOWS
    assert np.all(np.diff(x) > 0)
    # of the inner points; the one at the bend mixes both sides
    straight = np.abs(x - 20) > 5
    assert y[straight] == pytest.approx(3.0 * np.minimum(x[straight], 20.0), abs=2.0)


def test_at_a_full_pool_completions_are_not_taken_for_load():
    """All of 60 workers are taken: each completion frees one for 20 ms. The more is completed in a window, the fewer
    are in progress on average, at one and the same load."""
    rng = np.random.default_rng(8)
    done = rng.poisson(5.0, 400)
    load, rate = (rng.uniform(1, 20, 200), 60 - 0.2 * done), (np.full(200, 30.0), 10.0 * done)
    x, y, n = main_sequence(np.concatenate(load), np.concatenate(rate))
    assert (x > 20).sum() == 1
    assert y[-1] == pytest.approx(50.0, abs=3.0)
    assert n[-1] == 400


def test_the_main_sequence_leaves_out_windows_without_a_value():
    x, y, n = main_sequence([1.0, np.nan, 2.0, 3.0] * 5, [1.0, 5.0, np.nan, 3.0] * 5)
    assert n.sum() == 10
    assert np.isfinite([x, y]).all()
    assert all(len(v) == 0 for v in main_sequence([], []))
