"""Which loads make the maximum of a sweep, what its knee is known to be, and where its loads end."""

from dataclasses import replace

import numpy as np
import pytest
from ntier_analysis.verdict.search import Goal, next_step
from ntier_analysis.verdict.sweep import judge_sweep

from . import test_rules
from .test_foreign_data import said
from .test_load_models import arrivals, working
from .test_principles import CELLS, limited, resource, trial

FULL = resource("db1", np.ones(CELLS), 100)
LOW = [trial(n, n / 7.02, 0.02) for n in (30, 60)]


def swept(*trials):
    return judge_sweep("s", "1/1/1/1M", list(trials))


def repeated(users, rates, response_s):
    """One load, once with each throughput, by users whose answers take `response_s`."""
    each = [trial(users, x, response_s) for x in rates]
    return [replace(t, load=replace(t.load, trial=f"u{users:05d}.r0{i}")) for i, t in enumerate(each, start=1)]


# ---- which loads count ---------------------------------------------------------------------------------------------


def test_a_load_just_beyond_the_knee_counts_with_all_its_repetitions():
    """None of them lies a tenth beyond the knee, at 56 users."""
    assert swept(trial(20, 20 / 7.05, 0.05), *repeated(60, (8.0, 8.05, 7.9), 0.5)).plateau_users == (60, 60, 60)


@pytest.mark.parametrize("more", [(), (100,)])
def test_of_two_answers_that_take_turns_the_loads_that_count_are_the_most(more):
    """500 users collapse: by their throughput alone the knee is so low that all loads are beyond it, by that of all so
    high that only they are."""
    beyond = [trial(n, 10.0, n / 10 - 7, FULL) for n in (75, 76, *more)]
    found = swept(trial(20, 20 / 7.02, 0.02), *beyond, trial(500, 5.0, 93.0, FULL))
    assert set(found.plateau_users) >= {75, 76, *more}


def noisy(users, x):
    """Ten batches of 80 and 120 %."""
    made = trial(users, x, users / x - 7, FULL)
    return replace(made, load=replace(made.load, throughput_per_s=x, rates=x + 4.0 * np.tile([-1.0, 1.0], 5)))


def test_a_load_between_the_knee_and_a_tenth_beyond_it_is_not_on_the_plateau():
    given = ((300, 4.2, 0.05, None), (750, 9.4, 0.98, "db1"), (900, 10.0, 2.0, "db1"), (1000, 10.0, 3.0, "db1"))
    found = judge_sweep("s", "1/1/1/1M", [test_rules.trial(*each) for each in given], 0.1)
    assert found.plateau_users == (900, 1000)


def test_what_a_load_serves_less_by_chance_is_not_left_out():
    """7 % less, in batches that differ by 20 %."""
    found = swept(*LOW, *(noisy(n, 20.0) for n in (200, 220, 240)), noisy(400, 18.6))
    assert found.plateau_users == (200, 220, 240, 400)
    assert not said(found, "retrograde")
    short = swept(*LOW, noisy(200, 20.0), noisy(800, 18.6))  # the last one does not settle
    assert short.plateau_users == (200, 800)


def test_the_highest_load_falls_by_its_own_throughput():
    """7.5 % less than six others: 1 % less in the mean of all."""
    some = [trial(n, 20.0, n / 20 - 7, FULL) for n in (200, 210, 220, 230, 240, 250)]
    found = swept(*LOW, *some, trial(400, 18.5, 400 / 18.5 - 7, FULL))
    assert max(found.plateau_users) == 250
    assert said(found, "retrograde: from 400 users")


def test_throughput_that_falls_is_a_finding_without_single_interactions_too():
    beyond = [
        trial(n, x, n / x - 7, FULL) for n, x in ((200, 20.0), (220, 20.0), (240, 20.0), (260, 20.0), (400, 14.0))
    ]
    found = swept(*(replace(t, load=replace(t.load, rates=None)) for t in (*LOW, *beyond)))
    assert found.plateau_users == (200, 220, 240, 260)
    assert found.max_throughput.value == pytest.approx(20.0, rel=0.01)
    assert said(found, "retrograde: from 400 users")


def test_a_maximum_of_sums_alone_has_the_interval_of_its_trials_and_of_one_trial_none():
    def sums(*users):
        trials = [*LOW, *(trial(n, 20.0, n / 20 - 7, FULL) for n in users)]
        return swept(*(replace(t, load=replace(t.load, rates=None)) for t in trials))

    one, three = sums(250), sums(200, 250, 300)
    assert np.isnan(one.max_throughput.low)
    assert not said(one, "differ too much"), "one trial differs from none"
    assert three.max_throughput.low < three.max_throughput.value < three.max_throughput.high


# ---- the knee ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("beyond", "bracketed"), [((200, 250), False), ((200, 250, 300), True)])
def test_a_knee_is_bracketed_by_three_loads_above_it(beyond, bracketed):
    found = swept(*LOW, *(trial(n, 20.0, n / 20 - 7, FULL) for n in beyond))
    assert found.knee_bracketed == bracketed


def test_the_interval_of_the_knee_is_that_of_the_maximum_and_of_what_the_lowest_load_waits():
    found = limited(FULL)
    at, low = found.max_throughput, found.trials[0][0].throughput_per_s
    least = at.low * (7 + 0.02 * (1 - low / at.value))
    assert found.knee_interval == pytest.approx((least, at.high * 7.02))
    assert found.knee_users == pytest.approx(at.value * 7.02)


def test_without_r0_the_knee_has_no_upper_end_below_the_lowest_load():
    """5, 7 and 9 users who think for 0.5 s are served 2/s: answers take 2 s and more. By Z alone the knee is at 1 user;
    R0 may be anything up to 2 s."""
    found = swept(*(trial(n, 2.0, n / 2 - 0.5, FULL, think_s=0.5) for n in (5, 7, 9)))
    low, high = found.knee_interval
    assert low <= 1.0 < 4.9 <= high
    assert said(found, "1 users or more (N/(Z+R0) meets the maximum; no load tells R0)")


def test_a_knee_that_no_load_tells_is_not_at_zero_workers():
    """The lowest load is limited already, and workers do nothing else: the knee may be at any number up to 4."""
    loads = [working(n, 10.0) for n in (4, 16, 64)]
    found = swept(*loads)
    assert found.verdict == "hidden"
    assert np.isnan([found.knee_users, *found.knee_interval]).all()
    assert not found.knee_bracketed
    assert said(found, "where the knee is, is not known: 4 workers are limited already")
    assert not any("loads of 0" in text for text in found.next)
    assert next_step(loads, Goal((4, 128), 0.001, 9, grain=1)).users > 4


# ---- the highest load ----------------------------------------------------------------------------------------------


def test_a_load_whose_backlog_is_not_known_is_no_capacity():
    found = swept(arrivals(10.0), arrivals(30.0, error=4.0))
    assert found.verdict == "unknown"
    assert (found.max_throughput.value, found.at_least) == (pytest.approx(10.0, rel=0.02), True)


def test_of_a_factor_that_asks_for_less_as_it_grows_the_smallest_value_is_the_highest_load():
    found = swept(*(arrivals(x, factor="pause_s", unit="s", value=v) for x, v in ((10.0, 6.0), (20.0, 3.0))))
    assert found.verdict == "none"
    assert found.max_throughput.value == pytest.approx(20.0, rel=0.02)


def test_the_completions_of_the_highest_load_are_not_made_up_for_by_those_of_others():
    """500 users complete 15 % less than they should; 100 to 400 all of it."""
    found = swept(*(trial(n, n / 7.1, 0.1) for n in (100, 200, 300, 400)), trial(500, 0.85 * 500 / 7.1, 0.1))
    assert found.verdict == "unknown"


@pytest.mark.parametrize("made", [repeated, None])
def test_the_maximum_where_nothing_limits_is_the_mean_of_the_highest_loads_repetitions(made):
    rates = (16.2, 16.9, 17.1)
    if made:
        low, each = trial(30, 30 / 7.05, 0.05), made(120, rates, 0.05)
    else:
        low, each = arrivals(10.0), [arrivals(17.0, served=x, growth_per_s=0.0) for x in rates]
        each = [replace(t, load=replace(t.load, trial=f"o017.r0{i}")) for i, t in enumerate(each)]
    found = swept(low, *each)
    assert found.verdict == "none"
    assert found.max_throughput.value == pytest.approx(np.mean([t.load.throughput_per_s for t in each]))


def test_a_single_user_is_not_asked_to_be_fewer():
    alone = swept(trial(1, 0.1, 3.0))
    assert "add a load of more users: it tells service from waiting" in alone.next
    assert not any(" 0 users" in text or " of 0," in text for text in alone.next)
    full = swept(trial(1, 0.1, 3.0, FULL), trial(3, 0.1, 23.0, FULL), trial(9, 0.1, 83.0, FULL))
    assert not any(" 0 users" in text or " 0," in text or " 1 users" in text for text in full.next)


@pytest.mark.parametrize("each", [20.0, 28.1])
def test_sums_that_agree_in_all_digits_give_the_maximum_no_interval(each):
    """Rounded, say: their interval had no width."""
    trials = [*LOW, *(trial(n, each, n / each - 7, FULL) for n in (250, 300, 350))]
    sums = [replace(t, load=replace(t.load, rates=None, throughput_per_s=each)) for t in trials[len(LOW) :]]
    found = swept(*LOW, *sums)
    assert found.verdict == "single"
    assert found.max_throughput.value == pytest.approx(each)
    assert not np.isfinite([found.max_throughput.low, found.max_throughput.high]).any()
    assert any("give the maximum no interval" in text for text in found.next)
