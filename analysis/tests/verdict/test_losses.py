"""While users wait, something limits: a load at which they lose much is never `none`, however little of it the response
times, the other loads and the think time show."""

from dataclasses import replace

import numpy as np
import pytest
from ntier_analysis.statistics.mva import Station, solve
from ntier_analysis.verdict.agreement import combine
from ntier_analysis.verdict.data import SweepVerdict
from ntier_analysis.verdict.load import Bottleneck, Verdict
from ntier_analysis.verdict.sweep import judge_sweep

from .test_principles import CELLS, named, resource, trial

FULL = resource("db1", np.ones(CELLS), 100)
LOW = [trial(n, n / 7.02, 0.02) for n in (30, 60)]


def swept(*trials):
    return judge_sweep("s", "1/1/1/1M", list(trials))


def at(users, throughput, *hot):
    """A load of this throughput whose answers account for the users."""
    return trial(users, throughput, users / throughput - 7, *hot)


def answered(users, response_s, think_s, **given):
    return trial(users, users / (think_s + response_s), response_s, think_s=think_s, **given)


def of_loads(found):
    return {load.users: v.verdict for load, v in found.trials}


# ---- loads that lose much, and others that serve more ----------------------------------------------------------------


@pytest.mark.parametrize("throughput", [9.0, 12.0, 15.0])
def test_a_load_that_loses_much_is_not_unlimited_because_a_higher_one_serves_more(throughput):
    """200 users could complete 28/s, and nothing that was measured is used more than 20 % there. So what is full at
    higher loads is not all that holds up users."""
    found = swept(*LOW, at(200, throughput), at(250, 20.0, FULL), at(300, 20.0, FULL))
    assert of_loads(found)[200] == "unknown"
    assert found.verdict == "unknown"


def test_a_load_that_loses_much_is_not_unlimited_because_throughput_grows_from_one_that_loses_as_much():
    found = swept(*LOW, at(100, 8.0), at(200, 16.0))
    assert [of_loads(found)[n] for n in (100, 200)] == ["unknown", "unknown"]


def test_what_a_cpu_is_used_at_loads_that_serve_more_does_not_explain_one_that_loses_much():
    """The database is used 93 % in the mean of the three loads, and 80 % where the users lose 42 %."""
    part = resource("db1", mean=79.0)
    found = swept(*LOW, at(200, 15.7, part), at(250, 20.0, FULL), at(300, 20.0, FULL))
    held = {load.users: v.held_up for load, v in found.trials}
    assert held == {30: False, 60: False, 200: True, 250: False, 300: False}
    assert found.verdict == "unknown"


def test_near_the_knee_a_load_from_which_others_grow_is_not_limited_yet():
    """By the exact model of the database alone, from 0.5 knees on."""
    users = (20, 70, 105, 200, 250, 300)
    model = [solve([Station("db", 0.05)], 7.0, n) for n in users]
    loads = []
    for n, m in zip(users, model, strict=True):
        x = float(m.throughput_per_s[0])
        used = 100 * 0.05 * x
        hot = FULL if used > 99 else resource("db1", np.arange(CELLS) % 100 < used - 10, used)
        loads.append(trial(n, x, n / x - 7.0, hot))
    found = swept(*loads)
    assert (found.verdict, named(found)) == ("single", [("db", "cpu")])
    assert {of_loads(found)[n] for n in (20, 70, 105)} == {"none"}


PART = [Bottleneck("db", "cpu", ("db1",), 0.9, 0.8, 1.0)]
NAMED, HIDDEN, HELD, SILENT, NONE = (
    Verdict("single", "stable", PART), Verdict("hidden"), Verdict("unknown", held_up=True), Verdict("unknown"),
    Verdict("none"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ((NAMED, NAMED, HELD), "unknown"),
        ((NAMED, NAMED, SILENT), "single"),
        ((NAMED, NAMED, NONE), "single"),
        ((*[NAMED] * 9, HELD), "single"),
        ((HIDDEN, HELD, HELD), "hidden"),
        ((HIDDEN, SILENT, SILENT), "unknown"),
        ((HIDDEN, HELD, NAMED), "unknown"),
        ((HELD, HELD), "unknown"),
        ((HELD,), "unknown"),
    ],
)
def test_a_load_whose_users_something_unmeasured_held_up_speaks_against_a_name_and_for_something_hidden(said, verdict):
    result = SweepVerdict("s", "1/1/1/1M", "unknown")
    combine(result, list(said))
    assert result.verdict == verdict


# ---- answers that never came ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "verdict"), [(0.55, "unknown"), (0.95, "none")])
def test_quick_answers_to_a_part_of_the_users_do_not_tell_that_nothing_limits(share, verdict):
    """The others never got one. A higher load, which all are answered at, has its own verdict."""
    found = swept(*LOW, trial(100, share * 100 / 7.02, 0.02), trial(120, 120 / 7.02, 0.02))
    assert of_loads(found)[100] == verdict
    assert found.verdict == "none"


def test_none_speaks_of_the_highest_load_too_where_a_lower_one_lost_a_little():
    """120 users lose 9 %; at 240 half of the users are answered, and quickly."""
    found = swept(*LOW, trial(120, 120 / 7.7, 0.7), trial(240, 17.0, 0.05))
    assert found.verdict == "unknown"
    assert any("240 users is not known" in e for e in found.evidence)
    assert swept(*LOW, trial(120, 120 / 7.7, 0.7), trial(124, 124 / 7.3, 0.3)).verdict == "none"


# ---- a lowest load that does not tell R0 ----------------------------------------------------------------------------


@pytest.mark.parametrize(("users", "verdict"), [((24, 28), "unknown"), ((30, 35), "hidden"), ((4, 8), "none")])
def test_two_loads_at_the_knee_of_something_hidden_do_not_tell_the_response_time_without_waiting(users, verdict):
    """Exact model: users who think 1 s, 0.2 s of service elsewhere, and a lock of 50 ms that nobody measures; its knee
    is at 25 users. Both loads wait for it, or neither does."""
    model = [solve([Station("lock", 0.05)], 1.2, n) for n in users]
    rates = [float(m.throughput_per_s[0]) for m in model]
    found = swept(*(trial(n, x, n / x - 1.0, think_s=1.0) for n, x in zip(users, rates, strict=True)))
    assert found.verdict == verdict


def test_a_lowest_load_that_was_slow_itself_does_not_hide_what_higher_ones_lose():
    """10 users were answered in 1.45 s, 20 in 1.02 s, 40 in 1.5 s: against 20 users, 40 lose a quarter."""
    found = swept(*(answered(n, r, 0.5) for n, r in ((10, 1.45), (20, 1.02), (40, 1.5))))
    assert of_loads(found)[40] == "unknown"
    assert found.verdict == "unknown"
    assert swept(*(answered(n, r, 0.5) for n, r in ((10, 1.12), (20, 1.02), (40, 1.1)))).verdict == "none"


def test_a_load_that_was_slow_is_not_unlimited_because_more_users_were_answered_sooner():
    """Its users lost 60 % by something; from 20 users on nothing limits."""
    found = swept(*(answered(n, r, 0.5) for n, r in ((10, 2.0), (20, 0.5), (40, 0.5))))
    assert of_loads(found) == {10: "unknown", 20: "none", 40: "none"}
    assert found.verdict == "none"


# ---- a think time that is not the users' ----------------------------------------------------------------------------


@pytest.mark.parametrize(("told_s", "verdict"), [(7.0, "unknown"), (0.5, "none")])
def test_a_think_time_that_the_completions_refute_does_not_hide_what_is_lost(told_s, verdict):
    """Users think for 0.5 s. If 7 s are told, an answer that takes 0.4 s longer seems to cost 5 %."""
    answers = ((10, 1.0), (20, 1.0), (40, 1.4 if told_s > 1 else 1.05))
    loads = [answered(n, r, 0.5) for n, r in answers]
    found = swept(*(replace(t, load=replace(t.load, think_s=told_s)) for t in loads))
    assert found.verdict == verdict


# ---- pauses at every load -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("think_s", "verdict"), [(1.0, "unknown"), (30.0, "none")])
def test_a_system_that_stands_still_at_every_load_while_something_is_full_may_lose_much(think_s, verdict):
    """A disk is full for 1.5 s of each 3 s, and nothing is completed then. Users who think 30 s hardly notice."""
    begin = 0.5 + 3.0 * np.arange(19)
    pauses = np.column_stack([begin, begin + 1.5])
    at_s = (np.arange(CELLS) + 0.5) / 10
    inside = ((at_s[:, None] >= pauses[:, 0]) & (at_s[:, None] < pauses[:, 1])).any(axis=1)
    disk = resource("db1", inside, 100 * inside.mean(), "disk")
    loads = [trial(n, n / (think_s + 1.0), 1.0, disk, think_s=think_s) for n in (10, 20, 40)]
    found = swept(*(replace(t, load=replace(t.load, pauses=pauses)) for t in loads))
    assert set(of_loads(found).values()) == {verdict}
