"""The search for the capacity: what it decides, on networks of known truth. The coverage of its interval over 1,000
random networks is in bench/capacity_search.py."""

from dataclasses import replace
from functools import cache

import closed_network
import numpy as np
import pytest
from closed_network import THINK_S, Network
from ntier_analysis.verdict.demands import passing_on
from ntier_analysis.verdict.search import Goal, half_width, next_step
from ntier_analysis.verdict.sweep import judge_sweep

trial = cache(closed_network.trial)
"""Most searches look at the same network, and many at the same loads of it."""
SCALE = 0.2
GOAL = Goal(tuple(range(1000, 13001, 1000)))
DB = Network((0.0004, 0.0006, 0.0011, 0.0017), cv2=3.0)  # 115/s: the knee is at 4,035 users


def search(network, goal=GOAL, seed=1, idle=True, spoil=()):
    """Runs a search to its end -> (verdict, users in order, last step). `spoil`: loads whose trials are invalid."""
    trials, users = [], []
    while True:
        step = next_step(trials, goal, SCALE, network.idle_cores() if idle else None)
        if step.users is None:
            return judge_sweep("", "", trials, SCALE, searched=True), users, step
        assert goal.lowest <= step.users <= goal.highest
        assert step.users not in users, "no load is run twice"
        made = trial(network, step.users, seed, SCALE)
        if step.users in spoil:
            made = replace(made, load=replace(made.load, valid=False))
        trials.append(made)
        users.append(step.users)


def knee(network):
    return network.maximum * THINK_S / SCALE


def test_four_trials_tell_the_maximum():
    found, users, last = search(DB)
    assert last.reason == "precise"
    assert len(users) == 4
    assert users[0] == 1000
    assert min(users[1:]) > 1.1 * knee(DB)
    assert found.max_throughput.low <= DB.maximum <= found.max_throughput.high
    assert half_width(found) <= GOAL.precision
    assert not found.at_least
    assert found.knee_bracketed
    assert found.knee_users == pytest.approx(knee(DB), rel=0.06)


def test_the_same_trials_give_the_same_decision_in_any_order():
    trials = [trial(DB, u, 1, SCALE) for u in (1000, 5000, 8000)]
    steps = {next_step(list(order), GOAL, SCALE) for order in (trials, trials[::-1])}
    assert len(steps) == 1


@pytest.mark.parametrize("tier", range(4))
@pytest.mark.parametrize("nodes", [(1, 1, 1, 1), (1, 2, 1, 9), (1, 3, 1, 4)])
def test_any_tier_may_be_the_bottleneck(tier, nodes):
    maximum = 140.0
    shares = [0.6] * 4
    shares[tier] = 1.0
    network = Network(tuple(s * n * 0.196 / maximum for s, n in zip(shares, nodes, strict=True)), nodes)
    found, users, _ = search(network, seed=tier + sum(nodes))
    assert len(users) <= 5
    assert found.max_throughput.value == pytest.approx(maximum, rel=0.06)


def test_nothing_limits_in_the_range():
    found, users, last = search(Network((0.0002, 0.0003, 0.0002, 0.0003)))
    assert (last.reason, users) == ("unlimited", [1000, 13000])
    assert (found.verdict, found.at_least) == ("none", True)


def test_a_knee_close_to_the_end_of_the_range_gives_at_least():
    network = Network((0.0002, 0.0003, 0.0002, 0.196 / 350))  # knee at 12,250
    found, users, last = search(network)
    assert last.reason in ("no room", "unlimited")
    assert max(users) == 13000
    assert found.at_least


def test_a_range_that_begins_beyond_the_knee():
    found, users, _ = search(Network((0.0002, 0.0003, 0.0002, 0.196 / 15)))  # knee at 525 users
    assert min(users) == 1000
    assert found.max_throughput.value == pytest.approx(15, rel=0.12)
    assert not found.knee_bracketed


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("maximum", [15, 8, 4])
def test_a_range_that_begins_beyond_the_knee_is_not_searched_to_its_end(maximum, seed):
    """The law knows only the CPUs with room, which promise 40 times the throughput; and a run far beyond the knee (at
    525, 280 and 140 users) does not settle; the answers of the last one look as if nothing limited."""
    _, users, _ = search(Network((0.0002, 0.0003, 0.0002, 0.196 / maximum)), seed=seed)
    assert len(users) > 2
    assert max(users) <= 2500


def first_replica_first(t):
    """The same trial behind a balancer that fills one database after the other."""
    names = [n for n, tier in t.nodes.items() if tier == "db"]
    left, cores = sum(t.used_cores[n] for n in names), {}
    for place, name in enumerate(names):
        idle = 0.004 * (len(names) - 1 - place)
        cores[name] = min(0.98 * t.capacity_cores[name], left - idle)
        left -= cores[name]
    return replace(t, used_cores=t.used_cores | cores)


@pytest.mark.parametrize("idle", [True, False])
def test_a_full_replica_that_passes_work_on_is_not_the_tiers_end(idle):
    """Loads went up by a third each, six of them, since the first of four databases was full at each."""
    network = Network((0.0005, 0.0008, 0.0012, 4 * 0.196 / 110), nodes=(1, 1, 1, 4))
    low = first_replica_first(trial(network, 1500, 1, SCALE))
    assert low.used_cores["db1"] > 0.9 * 0.2
    assert low.used_cores["db4"] < 0.02
    step = next_step([low], GOAL, SCALE, network.idle_cores() if idle else None)
    assert step.reason == "beyond the knee"
    if idle:
        assert step.users == pytest.approx(1.4 * knee(network), rel=0.1)
        assert "db saturates first" in step.why
    two = [low, first_replica_first(trial(network, 2000, 1, SCALE))]
    assert next_step(two, GOAL, SCALE).users == pytest.approx(1.4 * knee(network), rel=0.15)
    full = [replace(t, used_cores=t.used_cores | dict.fromkeys(("db2", "db3", "db4"), 0.199)) for t in two]
    assert "is full at every load" in next_step(full, GOAL, SCALE).why


def test_a_replica_that_fills_up_later_passes_work_on_too():
    """At the lowest load the first of nine databases had room, and loads went up by a third each until the sixth."""
    network = Network((0.0005, 0.0008, 0.196 / 90, 9 * 0.196 / 130), nodes=(1, 1, 1, 9))
    loads = [first_replica_first(trial(network, users, 1, SCALE)) for users in (300, 800, 1200)]
    assert loads[0].used_cores["db1"] < 0.9 * 0.2 < loads[1].used_cores["db1"]
    step = next_step(loads, GOAL, SCALE, network.idle_cores())
    assert step.users == pytest.approx(1.4 * knee(network), rel=0.15)
    assert "middleware1 saturates first" in step.why
    (law,) = [e for e in judge_sweep("", "", loads, SCALE).evidence if e.startswith("utilization law")]
    assert law.startswith("utilization law: middleware1 needs "), law
    assert " of all CPUs to saturate, at " in law
    slow = Network((0.0005, 0.0008, 0.196 / 200, 9 * 0.196 / 130), nodes=(1, 1, 1, 9))
    law = judge_sweep("", "", [first_replica_first(trial(slow, users, 1, SCALE)) for users in (300, 800, 1200)], SCALE)
    assert any(e.startswith("utilization law: all of db together needs ") for e in law.evidence), law.evidence


def test_a_replica_that_always_gets_more_than_its_share_is_its_tiers_end():
    """Nobody takes over what is too much for it: 93 % full, and answers do not show it yet."""
    network = Network((0.0005, 0.0008, 0.0012, 4 * 0.196 / 110), nodes=(1, 1, 1, 4))

    def uneven(t):
        """The first of four gets two fifths of the work."""
        names = [n for n, tier in t.nodes.items() if tier == "db"]
        work = sum(t.used_cores[n] - 0.004 for n in names)
        return replace(t, used_cores=t.used_cores | {n: 0.004 + work * (0.4 if n == "db1" else 0.2) for n in names})

    loads = [uneven(trial(network, users, 1, SCALE)) for users in (1200, 1700, 2380)]
    assert loads[1].used_cores["db1"] < 0.9 * 0.2 < loads[2].used_cores["db1"] < 0.2
    assert passing_on(loads, loads) == []
    (law,) = [e for e in judge_sweep("", "", loads, SCALE).evidence if e.startswith("utilization law")]
    assert law.startswith("utilization law: db1 needs "), law


def test_without_a_known_idle_floor():
    found, users, _ = search(DB, idle=False)
    assert len(users) <= 5
    assert found.max_throughput.value == pytest.approx(DB.maximum, rel=0.05)


def test_a_hidden_limit_below_what_the_law_promises_is_looked_at_from_above():
    network = replace(DB, lock_s=1 / 80)  # the law promises 115/s
    found, users, last = search(network)
    assert last.reason == "precise"
    assert max(users) >= 1.3 * knee(DB)
    assert found.max_throughput.value == pytest.approx(80, rel=0.05)


def test_throughput_that_falls_is_said():
    network = replace(DB, falls=0.02)
    found, users, _ = search(network)
    grid = judge_sweep("", "", [trial(network, u, 7, SCALE) for u in GOAL.grid], SCALE)
    assert len(users) <= GOAL.most
    assert found.max_throughput.low <= grid.max_throughput.high
    assert grid.max_throughput.low <= found.max_throughput.high


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_load_that_cannot_be_measured_is_replaced(position):
    _, users, _ = search(DB)
    found, again, _ = search(DB, spoil={users[position]})
    assert again[: position + 1] == users[: position + 1]
    assert len(again) <= GOAL.most
    assert found.max_throughput.value == pytest.approx(DB.maximum, rel=0.05)


def test_the_most_loads_end_a_search_that_stays_imprecise():
    goal = replace(GOAL, precision=0.005)
    found, users, last = search(DB, goal)
    assert (last.reason, len(users)) == ("budget", 6)
    assert half_width(found) > goal.precision


def test_a_search_with_few_loads_beyond_the_knee_goes_on():
    """Else its maximum is a lower bound only. One that has three stops, however wide the interval."""
    goal = replace(GOAL, precision=0.005, most=4)
    further = replace(goal, most_if_few=6)
    _, users, last = search(DB, further)
    assert (last.reason, users) == ("budget", search(DB, goal)[1])
    spoil = {users[2]}
    short, four, _ = search(DB, goal, spoil=spoil)
    assert (len(four), short.at_least) == (4, True)
    found, five, last = search(DB, further, spoil=spoil)
    assert (last.reason, five[:4], len(five), found.at_least) == ("budget", four, 5, False)
    assert found.max_throughput.low <= DB.maximum <= found.max_throughput.high
    _, six, last = search(DB, further, spoil=range(13001))
    assert (last.reason, len(six)) == ("budget", 6)


def test_a_finished_grid_leaves_nothing_to_do():
    trials = [trial(DB, u, 3, SCALE) for u in GOAL.grid]
    assert next_step(trials, GOAL, SCALE).reason == "precise"


def test_nothing_is_decided_by_loads_that_are_all_invalid():
    trials = [replace(t, load=replace(t.load, valid=False)) for t in (trial(DB, u, 3, SCALE) for u in (1000, 1050))]
    assert next_step(trials, GOAL, SCALE).users == 1300
    assert next_step(trials, replace(GOAL, most=2), SCALE).users is None


def test_no_load_is_tried_beside_one_that_gave_no_valid_trial():
    _, users, last = search(DB, spoil=range(13001))
    assert users == [1000, 1300, 1700, 2200, 2850, 3700]
    assert last.reason == "budget"
    narrow = Goal.over((1000, 1500), 0.05, 6)
    _, users, last = search(DB, narrow, spoil=range(13001))
    assert (users, last.reason) == ([1000, 1300, 1500], "no room")


def refused(*reasons_of_loads):
    """Trials of these users, none of them valid, with the reasons."""
    made = ((trial(DB, users, 1, SCALE), reasons) for users, reasons in reasons_of_loads)
    return [replace(t, load=replace(t.load, valid=False, invalid_reasons=reasons)) for t, reasons in made]


def test_a_search_ends_where_the_machine_beneath_is_full_at_the_lowest_loads():
    """It went on with 1.3 times as many users each, which ask for more of the machine."""
    assert next_step(refused((1000, "host_saturated")), GOAL, SCALE).users == 1300, "other work may have passed"
    full = refused((1000, "host_saturated"), (1300, "late, host_saturated"))
    last = next_step(full, GOAL, SCALE)
    assert (last.users, last.reason) == (None, "host full")
    assert "full at 1000 and 1300 users already, the lowest loads; measure on a larger machine" in last.why
    assert "--attempts" in last.why, "a load without attempts left is not repeated"
    # mended, and repeated with more attempts: the search goes on
    assert next_step([trial(DB, 1000, 1, SCALE), full[1]], GOAL, SCALE).users is not None


@pytest.mark.parametrize(
    "trials",
    [
        refused((1000, "host_saturated"), (1300, "late")),
        refused((1000, "host_saturated"), (1300, "host_saturated"), (1300, "late")),
        refused((5000, "host_saturated"), (9000, "host_saturated")),
        refused((1000, "late"), (1300, "host_saturated"), (1700, "host_saturated")),
    ],
)
def test_a_search_goes_on_where_the_lowest_loads_were_refused_for_something_else(trials):
    """Also where a grid tried higher loads alone."""
    assert next_step(trials, GOAL, SCALE).users is not None


def test_loads_that_are_too_high_to_be_measured_are_approached_from_below():
    """Six loads went to one spot, 50 users apart."""
    found, users, last = search(DB, spoil=range(4000, 13001))
    assert last.reason == "no room"
    assert "gave no valid trial" in last.why
    assert users[1] > knee(DB)
    assert users[2] == pytest.approx(np.sqrt(1000 * users[1]), abs=25)
    assert max(u for u in users if u < 4000) > 3000
    assert min(b / a for a, b in zip(sorted(users), sorted(users)[1:], strict=False)) > 1.1
    assert found.at_least


def next_users(*full_at):
    """After two loads on the plateau, and these at which the machine beneath was full."""
    measured = [trial(DB, users, 1, SCALE) for users in (1000, 5600, 6200)]
    return next_step([*measured, *refused(*((users, "host_saturated") for users in full_at))], GOAL, SCALE).users


def test_no_load_above_one_at_which_the_machine_beneath_was_full_is_tried_on_the_plateau():
    """It went up at once: each of its attempts was refused for the same."""
    assert next_users() > 8000
    assert knee(DB) < next_users(7000) < 7000
    assert next_users(3000) == next_users(), "below a load that was measured: other work may have filled the machine"


def test_a_spot_on_the_plateau_that_cannot_be_measured_is_left_alone():
    _, before, _ = search(DB)
    spot = before[2]
    _, users, _ = search(DB, spoil=range(spot - 300, spot + 301))
    assert sum(abs(u - spot) <= 300 for u in users) == 1


def test_the_network_of_the_tests_obeys_exact_theory():
    """Against mean-value analysis of one exponential station: the simulator must not be wrong with the search."""
    network = Network((0.0, 0.0, 0.0, 0.002), idle=0.0)
    users = 100
    service, wait, rate = 0.01, 0.0, 0.0
    for n in range(1, users + 1):
        wait = service * (1 + rate * wait)
        rate = n / (THINK_S + wait)
    measured = [trial(network, users, s, 1.0, (60.0, 400.0)).load.throughput_per_s for s in range(5)]
    assert np.mean(measured) == pytest.approx(rate, rel=0.02)


def test_a_range_of_few_users_is_searched_to_its_end():
    grid = tuple(range(10, 51, 10))
    _, users, _ = search(Network((0.0002, 0.0003, 0.0002, 0.0003)), Goal.over(grid, 0.05, 6))
    assert max(users) == 50


def test_the_grain_is_fifty_users_of_a_wide_range():
    assert Goal.over(GOAL.grid, GOAL.precision, GOAL.most) == GOAL
    assert Goal.over((7,), 0.05, 6).grain == 1
