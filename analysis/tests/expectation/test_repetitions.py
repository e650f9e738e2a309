"""How sure quantities are: repetitions that agree by chance, few responses, whole milliseconds, single trials."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from ntier_analysis.demo import SWEEP
from ntier_analysis.expectation import loads
from ntier_analysis.expectation.expressions import evaluate
from ntier_analysis.expectation.quantities import mean_throughput
from ntier_analysis.expectation.quantity import mean_of_trials, quotient
from ntier_analysis.expectation.saturations import saturation


def test_repetitions_that_agree_tell_no_error_unless_there_was_nothing_each_time():
    nothing, five = mean_of_trials(np.zeros(3)), mean_of_trials(np.full(3, 5.0))
    assert (nothing.value, nothing.low, nothing.high) == (0, 0, 0)
    assert (five.value, five.low, five.high) == (5, None, None)


def test_few_trials_of_several_nodes_are_less_sure_than_by_the_normal_law():
    """0.62 +- 0.05 by Student's t of three trials, +- 0.09 so that it holds together with two other nodes'."""
    row = {"tier": "db", "resource": "cpu", "item": "", "threshold_pct": 95.0, "n": 1000, "n_missing": 0}
    shares = {"db1": (0.60, 0.62, 0.64), "db2": (0.1, 0.1, 0.1), "db3": (0.1, 0.1, 0.1)}
    rows = [
        row | {"trial": t, "node": node, "saturation": s, "saturation_low": s - 0.001, "saturation_high": s + 0.001}
        for node, values in shares.items()
        for t, s in zip("abc", values, strict=True)
    ]
    found = saturation("db cpu", pd.DataFrame(rows), {"db": 3}, list("abc"), "", "")
    assert (found.value, found.low) == pytest.approx((0.62, 0.532), abs=0.001)


def repetitions(n_a: int, n_b: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two trials at ten users with so many responses of the interaction Rare."""
    rows = pd.DataFrame({"trial": ["a", "b"], "users": 10, "valid": True, "run_start_s": 0.0, "run_end_s": 40.0})
    done = pd.DataFrame(
        [(t, "Rare", s, 100.0, True) for t, n in (("a", n_a), ("b", n_b)) for s in np.linspace(1, 39, n)],
        columns=["trial", "interaction", "t_s", "response_time_ms", "ok"],
    )
    return rows, done


@pytest.mark.parametrize("n", [(30, 30), (30, 0)])
@pytest.mark.parametrize("name", ["p99", "p95"])
def test_few_responses_tell_no_percentile(name, n):
    rows, done = repetitions(*n)
    found = loads.at_load(name, "10 Rare", rows, lambda: done, "")
    assert (found.low, found.high) == (None, None)
    assert "too few Rare in" in found.note


def test_an_interaction_that_one_repetition_lacks_has_no_mean_response_time():
    rows, done = repetitions(30, 0)
    assert loads.at_load("response_time", "10 Rare", rows, lambda: done, "").low is None
    assert loads.at_load("throughput", "10 Rare", rows, lambda: done, "").value == pytest.approx(30 / 80)


@pytest.mark.parametrize("mean", [1, 3, 8, 19])
@pytest.mark.parametrize("bursts", [None, 4.0])
def test_the_rate_of_an_interaction_has_an_interval_however_rare_it_is(mean, bursts):
    """One part of a run without any left the rate unknown, and with it that all searches together are few (19 of 1,032
    interactions). By the batches alone the upper end is too low in 6 to 37 % of all runs."""
    rng = np.random.default_rng(mean)
    low, high = [], []
    for _ in range(400):
        rates = np.full(10, mean / 10) * (rng.gamma(bursts, 1 / bursts, 10) if bursts else 1)
        times = np.concatenate([4 * k + rng.uniform(0, 4, n) for k, n in enumerate(rng.poisson(rates))])
        done = pd.DataFrame({"t_s": times, "response_time_ms": 100.0})
        ends = loads._within("throughput", pd.Series({"run_start_s": 0.0, "run_end_s": 40.0}), done)
        low.append(ends[0] * 40 > mean)
        high.append(ends[1] * 40 < mean)
        assert (ends[0] > 0) == (len(times) > 0)
    assert np.mean(low) <= 0.04
    assert np.mean(high) <= 0.055


def test_the_upper_end_of_a_percentile_is_open_where_few_values_lie_beyond_it():
    """As the report has it."""
    times = np.linspace(0.01, 39.9, 1200)
    done = pd.DataFrame({"t_s": times, "response_time_ms": np.repeat(np.arange(40.0), 30)})
    trial = pd.Series({"trial": "a", "run_start_s": 0.0, "run_end_s": 40.0, "slo_ms": None})
    low, high = loads._within("p99", trial, done)
    assert low < 39
    assert high == math.inf


def test_two_repetitions_that_agree_by_chance_are_known_no_better_than_each():
    rows = pd.DataFrame({"trial": ["a", "b"], "users": 10, "valid": True, "throughput_per_s": [3.020, 3.024],
                         "throughput_low_per_s": [2.74, 2.744], "throughput_high_per_s": [3.30, 3.304]})  # fmt: skip
    found = loads.at_load("throughput", "10", rows, pd.DataFrame, "")
    assert found.low < 2.9
    assert found.high > 3.15


@pytest.mark.parametrize("n", [1, 3])
def test_percentiles_in_whole_milliseconds_are_known_to_a_millisecond_at_best(n):
    """JMeter writes whole ones: three repetitions of 3 ms are no exact 3 ms."""
    trials = [f"r{k}" for k in range(n)]
    rows = pd.DataFrame({"trial": trials, "users": 10, "valid": True, "run_start_s": 0.0, "run_end_s": 40.0,
                         "slo_ms": None, "response_time_p50_ms": 3.0})  # fmt: skip
    times = np.linspace(0.01, 39.9, 1200)
    done = pd.concat([pd.DataFrame({"trial": t, "t_s": times, "response_time_ms": 3.0, "ok": True}) for t in trials])
    found = loads.at_load("p50", "10", rows, lambda: done, "")
    assert (found.low, found.value, found.high) == (2, 3, 4)
    assert quotient(found, found).low < 0.7
    fine = done.assign(response_time_ms=3.25)
    exact = loads.at_load("p50", "10", rows.assign(response_time_p50_ms=3.25), lambda: fine, "")
    assert n == 1 or exact.low is None, "repetitions that agree in all digits tell no error"


def test_percentiles_of_two_repetitions_are_known_no_better_than_each():
    rng = np.random.default_rng(3)
    times = np.linspace(0.01, 39.9, 1200)
    rows = pd.DataFrame({"trial": ["a", "b"], "users": 10, "valid": True, "run_start_s": 0.0, "run_end_s": 40.0,
                         "slo_ms": None, "response_time_p95_ms": [3000.0, 3001.0]})  # fmt: skip
    done = [{"trial": t, "t_s": times, "response_time_ms": rng.exponential(1000, 1200), "ok": True} for t in "ab"]
    whole = pd.concat([pd.DataFrame(part) for part in done])
    found = loads.at_load("p95", "10", rows, lambda: whole, "")
    assert found.low < 2900
    assert found.high > 3100


def test_trials_that_agree_in_all_digits_tell_no_error(facts):
    alone = {"throughput_low_per_s": np.nan, "throughput_high_per_s": np.nan}
    trials = facts[SWEEP].trials.head(3).assign(throughput_per_s=50.0, **alone)
    assert evaluate("mean_throughput >= 10", replace(facts[SWEEP], trials=trials), facts[SWEEP].store).outcome == (
        "undecided"
    )


def test_an_anchor_whose_trials_agree_by_chance_is_known_no_better_than_each_trial():
    """83.55, 82.63 and 81.73/s, each +- 17 %: by what they differ by alone their mean was +- 2.7 %."""
    half = 14.0
    trials = pd.DataFrame({"valid": True, "throughput_per_s": [83.55, 82.625, 81.725]})
    trials = trials.assign(throughput_low_per_s=trials["throughput_per_s"] - half,
                           throughput_high_per_s=trials["throughput_per_s"] + half)  # fmt: skip
    found = mean_throughput(trials)
    assert (found.value - found.low) / found.value > 0.07
    assert mean_throughput(trials.assign(valid=[True, False, None])).low is None, "one alone"
    apart = mean_throughput(trials.assign(throughput_per_s=[50.0, 80.0, 110.0]))
    assert apart.low == pytest.approx(80 - 4.303 * 30 / np.sqrt(3), abs=0.1)


def test_two_trials_that_differ_decide_nothing_between_them():
    same = {"node": "db1", "tier": "db", "resource": "cpu", "item": "", "threshold_pct": 95.0, "n": 99, "n_missing": 0}
    table = pd.DataFrame({"trial": ["a", "b"], "saturation": [0.1, 0.9]}).assign(**same)
    table = table.assign(saturation_low=table["saturation"] - 0.02, saturation_high=table["saturation"] + 0.02)
    found = saturation("db cpu", table, {"db": 1}, ["a", "b"], "", "")
    assert found.value == pytest.approx(0.5)
    assert found.low <= 0.1
    assert found.high >= 0.9


def test_the_lower_end_of_the_most_saturated_of_nine_is_not_the_luckiest_of_nine():
    rng = np.random.default_rng(1)
    nodes, trials, holds = [f"db{n}" for n in range(1, 10)], ["a", "b", "c"], 0
    for _ in range(200):
        shares = np.clip(0.8 + rng.normal(0, 0.02, (9, 3)), 0, 1)
        pairs = [(n, t, s) for n, own in zip(nodes, shares, strict=True) for t, s in zip(trials, own, strict=True)]
        rows = [(n, t, s, s - 0.04, s + 0.04) for n, t, s in pairs]
        table = pd.DataFrame(rows, columns=["node", "trial", "saturation", "saturation_low", "saturation_high"]).assign(
            tier="db", resource="cpu", item="", threshold_pct=95.0, n=400, n_missing=0
        )
        holds += saturation("db cpu", table, {"db": 9}, trials, "x", "x").low > 0.8
    assert holds <= 10  # of 200; without the correction three times as many
