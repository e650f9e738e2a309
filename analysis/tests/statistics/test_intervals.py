"""Intervals hold where the truth is known (seeded)."""

import numpy as np
import pytest
from ntier_analysis.statistics import laws
from ntier_analysis.statistics.share import saturation_share, wilson
from ntier_analysis.statistics.stationarity import drift, start_excess, throughput_drift
from ntier_analysis.statistics.throughput import at_load, batch_rates, dispersion, percentile, required_n, throughput
from scipy import stats
from statsmodels.stats.proportion import proportion_confint


def batch_arrivals(rng, rate, seconds, size):
    """Compound Poisson: mean `rate` per s, dispersion = mean squared size / mean size."""
    n = rng.poisson(rate / size * seconds)
    return np.repeat(np.sort(rng.uniform(0, seconds, n)), rng.poisson(size, n))


@pytest.mark.parametrize("size", [1, 4])
def test_throughput_interval_covers(size):
    rng = np.random.default_rng(1)
    hits = [(rate := throughput(batch_arrivals(rng, 40, 60, size), 0, 60)).low <= 40 <= rate.high for _ in range(400)]
    assert 0.92 <= np.mean(hits) <= 0.98


def test_poisson_interval_would_not_hold_for_variable_demands():
    """Why batch means: the simple interval covers about two thirds."""
    rng = np.random.default_rng(2)
    counts = [len(batch_arrivals(rng, 40, 60, 4)) for _ in range(300)]
    hits = [abs(c / 60 - 40) <= 1.96 * np.sqrt(c) / 60 for c in counts]
    assert np.mean(hits) < 0.75


def test_throughput_of_a_short_window_has_no_interval():
    assert np.isnan(throughput(np.arange(0, 5, 0.1), 0, 5).low)


def test_dispersion():
    rng = np.random.default_rng(3)
    assert dispersion(np.arange(0, 600, 0.025), 0, 600) < 0.05
    assert dispersion(batch_arrivals(rng, 40, 600, 1), 0, 600) == pytest.approx(2, rel=0.25)  # size ~ Poisson(1)


def test_percentile_needs_ten_values_beyond():
    assert (required_n(0.95), required_n(0.99)) == (200, 1000)
    assert np.isnan(percentile(np.arange(200.0), 0.99))
    assert percentile(np.arange(1000.0), 0.99) == pytest.approx(989, abs=1)


def busy_line(rng, load, seconds, service=0.05, dt=0.1):
    """100 ms saturation of a station: 1 where it was busy throughout. Time unit s, exponential service and arrivals."""
    n = int(load / service * seconds * 1.3) + 50
    arrivals = np.cumsum(rng.exponential(service / load, n))
    services = rng.exponential(service, n)
    done = np.empty(n)
    last = 0.0
    for i in range(n):
        last = max(last, arrivals[i]) + services[i]
        done[i] = last
    begin = done - services
    edges = np.arange(0, seconds + dt / 2, dt)
    level = np.concatenate([[0], np.cumsum(services)])
    index = np.searchsorted(done, edges)
    busy = level[index] + np.clip(edges - begin[np.minimum(index, n - 1)], 0, None)
    return (np.diff(busy) >= 0.95 * dt).astype(float)


@pytest.mark.parametrize("load", [0.5, 0.85])
def test_share_interval_covers_where_independent_samples_would_not(load):
    rng = np.random.default_rng(4)
    runs = [busy_line(rng, load, 60) for _ in range(200)]
    truth = float(np.mean([r.mean() for r in runs]))
    shares = [saturation_share(r, 0.1) for r in runs]
    assert np.mean([s.low <= truth <= s.high for s in shares]) >= 0.9
    naive = [wilson(r.mean(), len(r), 1.96) for r in runs]
    assert np.mean([low <= truth <= high for low, high in naive]) < 0.8


def test_t22_constant_series():
    pegged, idle = saturation_share(np.ones(600), 0.1), saturation_share(np.zeros(600), 0.1)
    assert (pegged.value, pegged.high) == (1.0, 1.0)
    assert 0.9 < pegged.low < 1.0
    assert (idle.value, idle.low) == (0.0, 0.0)
    assert pegged.n_effective == 60  # 1 s of correlation: 600 samples are worth 60
    assert "comes seldom may be missed" in pegged.note  # half of all runs see nothing of 0.1 that lasts 10 s each time


def test_t21_gap_is_no_zero():
    marks = np.ones(600)
    marks[100:200] = np.nan
    share = saturation_share(marks, 0.1)
    assert (share.value, share.n, share.missing) == (1.0, 500, 100)
    nothing = saturation_share(np.full(600, np.nan), 0.1)
    assert np.isnan(nothing.value)
    assert (nothing.low, nothing.high) == (0.0, 1.0)


# ---- steadiness ----------------------------------------------------------------------------------------------------


def test_drift_outcomes():
    rng = np.random.default_rng(5)
    assert drift(np.full(10, 5.0)).outcome == "pass"
    assert drift(100 + np.linspace(0, 30, 10) + rng.normal(0, 1, 10)).outcome == "fail"
    assert drift(100 + rng.normal(0, 0.2, 10)).outcome == "pass"
    assert drift(100 + rng.normal(0, 20, 10)).outcome == "undecidable"
    assert drift(np.array([1.0, 2.0])).outcome == "undecidable"
    with pytest.raises(ValueError, match="finite"):
        drift(np.array([1.0, np.nan, 2.0]))


def test_stationary_runs_are_not_called_drifting():
    rng = np.random.default_rng(6)
    outcomes = [throughput_drift(batch_arrivals(rng, 40, 60, 4), 0, 60).outcome for _ in range(200)]
    assert outcomes.count("fail") <= 2


def test_cold_start_is_seen():
    rng = np.random.default_rng(7)
    times = np.concatenate([batch_arrivals(rng, 5, 18, 1), 18 + batch_arrivals(rng, 60, 162, 1)])
    assert start_excess(times, 0, 180).outcome == "fail"


# ---- laws ----------------------------------------------------------------------------------------------------------


def test_t19_pooled_plateau_covers_and_is_not_biased():
    """The largest of five trials would be 3 % too high."""
    rng = np.random.default_rng(8)
    hits, means, largest = [], [], []
    for _ in range(300):
        rates = [batch_rates(batch_arrivals(rng, 60, 40, 4), 0, 40) for _ in range(5)]
        pooled, _ = laws.pool(rates)
        hits.append(pooled.low <= 60 <= pooled.high)
        means.append(pooled.value)
        largest.append(max(r.mean() for r in rates))
    assert 0.92 <= np.mean(hits) <= 0.98
    assert np.mean(means) == pytest.approx(60, rel=0.005)
    assert np.mean(largest) > 1.03 * 60


def test_pool_widens_when_trials_differ():
    rng = np.random.default_rng(9)
    equal = [rng.normal(60, 2, 10) for _ in range(4)]
    unequal = [rng.normal(m, 2, 10) for m in (50, 58, 62, 70)]
    assert laws.pool(equal)[0].half_width < laws.pool(unequal)[0].half_width / 3
    assert laws.pool(unequal)[1] < 0.001


def test_trials_that_agree_by_chance_are_no_surer_than_their_runs():
    rng = np.random.default_rng(10)
    one = rng.normal(60, 6, 10)
    other = rng.normal(60, 6, 10)
    other += one.mean() - other.mean()
    alone = [laws.pool([rates])[0].half_width for rates in (one, other)]
    assert laws.pool([one, other])[0].half_width > 0.6 * min(
        alone
    )  # 1 / sqrt(2) of one of them, and more degrees of freedom
    low, high = (np.array([60 + sign * half for half in alone]) for sign in (-1, 1))
    assert at_load(np.array([60.0, 60.0]), low, high).half_width > 0.6 * min(alone)


def test_demand_is_recovered():
    x = np.array([10.0, 20, 30, 40])
    fitted = laws.demand(x, 0.005 + 0.0015 * x, 0.02 * (0.005 + 0.0015 * x))
    assert fitted.idle_cores == pytest.approx(0.005)
    assert fitted.demand_s == pytest.approx(0.0015)
    assert fitted.p > 0.9
    with pytest.raises(ValueError, match="two loads"):
        laws.demand(np.array([1.0, 1.0]), np.array([1.0, 1.0]), np.ones(2))


def test_repetitions_of_two_loads_tell_no_error_of_a_demand():
    """A line goes through any two loads, so nothing is left that would show what differs from it."""
    x, noise = np.array([20.0, 20.1, 19.9, 40.0, 40.2, 39.8]), np.array([1.0, 1.01, 0.99, 1.0, 0.99, 1.01])
    used, levels = (0.005 + 0.0015 * x) * noise, np.array([1000, 1000, 1000, 2000, 2000, 2000])
    fitted = laws.demand(x, used, 0.02 * used, levels)
    assert (fitted.n, fitted.loads, fitted.interval.n) == (6, 2, 2)
    assert np.isnan([fitted.p, fitted.demand_error_s, fitted.interval.low, fitted.interval.high]).all()
    assert np.isnan(fitted.draws(3, np.random.default_rng(1))).all()
    assert np.isnan(laws.demand(x[2:4], used[2:4], 0.02 * used[2:4]).demand_error_s)  # 2 % was assumed, not measured
    three = laws.demand(x, used, 0.02 * used, np.array([1, 1, 2, 3, 3, 3]))
    assert (three.loads, three.freedom) == (3, 1)
    assert three.interval.low < 0.0015 < three.interval.high


def test_what_a_load_is_off_the_law_its_repetitions_share():
    """The mean of 3 loads of 5 trials each tells as much as 3 trials."""
    x, off = np.array([20.0, 30.0, 40.0]), np.array([1.0, 1.04, 0.98])
    used, levels = (0.005 + 0.0015 * x) * off, np.repeat([1, 2, 3], 5)
    once = laws.demand(x, used, 0.02 * used)
    five = laws.demand(np.repeat(x, 5), np.repeat(used, 5), 0.02 * np.repeat(used, 5), levels)
    assert (five.n, five.loads, five.freedom) == (15, 3, 1)
    ends = [(d.demand_s, d.interval.low, d.interval.high, d.p) for d in (once, five)]
    assert ends[1] == pytest.approx(ends[0])


def test_repetitions_of_one_load_tell_no_demand():
    x, used = np.array([28.4, 28.8, 28.9]), np.array([0.058, 0.061, 0.063])  # real: 2.1 ms, the slope says 9.6
    with pytest.raises(ValueError, match="that differ"):
        laws.demand(x, used, 0.02 * used)
    assert not laws.apart(np.zeros(2))
    wide, levels = np.array([25.0, 30.0, 28.0]), np.array([1, 1, 1])
    assert not laws.apart(wide, levels), "a fifth apart, by chance"
    with pytest.raises(ValueError, match="that differ"):
        laws.demand(wide, used, 0.02 * used, levels)
    assert laws.apart(np.array([*x, 57.0]))


def alternating(seconds, period, rng):
    """Two indicators at 100 ms that are 1 in turn; the turns have random lengths."""
    turns = rng.exponential(period, int(10 * seconds / period) + 10) + 0.3
    state = (np.searchsorted(np.cumsum(turns), np.arange(0, seconds, 0.1)) % 2).astype(float)
    return state, 1 - state


def test_dependence_tells_in_turn_from_unrelated():
    rng = np.random.default_rng(10)
    a, b = alternating(60, 2.0, rng)
    in_turn = laws.dependence(a, b, 0.1)
    assert in_turn.lift == 0
    assert in_turn.p_below < 0.01
    assert in_turn.union == 1
    false_alarms = 0
    for _ in range(100):
        a, b = busy_line(rng, 0.8, 60), busy_line(rng, 0.8, 60)
        dependence = laws.dependence(a, b, 0.1)
        false_alarms += dependence.p_below < 0.01 and dependence.lift <= 0.5
    assert false_alarms <= 3


def test_t6_averages_hide_a_quick_alternation():
    """0.4 s turns: at 1 s neither ever exceeds 95 %, though one is saturated at every instant."""
    turn = (np.arange(600) // 4 % 2).astype(float)
    seconds = turn.reshape(60, 10).mean(axis=1)
    assert seconds.max() <= 0.6
    dependence = laws.dependence(turn, 1 - turn, 0.1)
    assert (dependence.lift, dependence.union) == (0, 1)


@pytest.mark.parametrize("n", [1, 7.5, 40, 1234.5])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.97, 1.0])
def test_wilson_is_that_of_statsmodels(share, n):
    theirs = proportion_confint(share * n, n, alpha=0.05, method="wilson")
    assert wilson(share, n, stats.norm.ppf(0.975)) == pytest.approx(theirs, abs=1e-12)


def test_wilson_is_the_textbook_interval():
    low, high = wilson(0.5, 100, stats.norm.ppf(0.975))
    assert (low, high) == (pytest.approx(0.4038, abs=1e-4), pytest.approx(0.5962, abs=1e-4))


def test_an_interval_that_was_cut_off_at_0_tells_by_its_upper_end_how_precise_a_trial_is():
    cut = at_load(np.array([0.5, 0.5]), np.zeros(2), np.array([1.3, 1.3]))  # each +- 0.8
    assert cut.high - cut.value == pytest.approx(0.8 / stats.t.ppf(0.975, 9) / np.sqrt(2) * stats.t.ppf(0.975, 18))
