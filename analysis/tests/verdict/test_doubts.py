"""What the loads beyond the knee say, and what is not enough for a verdict of the sweep: a limit that shows only by
chance, a stop that was seen once, work that comes in waves, and turns of which one load is not sure."""

from dataclasses import replace

import numpy as np
import pytest
from ntier_analysis.verdict.agreement import combine
from ntier_analysis.verdict.data import SweepVerdict
from ntier_analysis.verdict.load import Bottleneck, Verdict
from ntier_analysis.verdict.sweep import judge_sweep

from .test_principles import CELLS, RUN_S, disk, limited, load, named, resource, trial

ALL = np.ones(CELLS)
AT = np.arange(CELLS)
at_100 = AT % 100
LOW = [trial(n, n / 7.02, 0.02) for n in (30, 60)]


def sweep(*beyond):
    """Two loads that lose nothing, and these."""
    return judge_sweep("s", "1/1/1/1M", [*LOW, *beyond])


# ---- near the knee -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("response_s", "verdict"), [(0.9, "unknown"), (1.8, "single")])
def test_a_disk_is_named_only_if_the_users_are_clearly_ahead_of_the_throughput(response_s, verdict):
    """Throughput is 12 or 20 % behind. The disk serves one at a time by its use at low load."""
    low = [trial(n, n / 7.02, 0.02, disk(n / 7.02 * 5)) for n in (30, 60)]
    top = trial(140, 140 / (7 + response_s), response_s, disk(98))
    found = judge_sweep("s", "1/1/1/1M", [*low, top])
    assert found.verdict == verdict
    if verdict == "unknown":
        assert any("12 % behind the users" in e for e in found.evidence)
        assert found.next[0] == "add a load of 170 users: whether something limits shows there"
        assert found.next[1:] == ["add loads of 210, 250 users"], "170 users again"


@pytest.mark.parametrize(("used", "verdict"), [(100, "single"), (93, "unknown")])
def test_a_cpu_without_any_room_limits_however_little_waiting_costs(used, verdict):
    """By the utilization law throughput can grow by nothing, or by 7 %."""
    top = trial(140, 140 / 7.6, 0.6, resource("db1", at_100 < used, used))
    assert sweep(top).verdict == verdict


def test_the_highest_load_decides_since_waiting_grows_with_the_users():
    """What 200 users lost, and 230 do not, they lost by chance."""
    seldom = disk(98)
    low = [trial(n, n / 7.02, 0.02, disk(n / 7.02 * 4)) for n in (30, 60)]
    chance = [trial(n, n / (7 + r), r, seldom) for n, r in ((200, 1.8), (210, 1.9), (230, 0.8))]
    assert judge_sweep("s", "1/1/1/1M", [*low, *chance]).verdict == "unknown"
    limit = [trial(n, n / (7 + r), r, seldom) for n, r in ((200, 1.8), (210, 1.9), (230, 2.6))]
    assert judge_sweep("s", "1/1/1/1M", [*low, *limit]).verdict == "single"


# ---- a stop at one load --------------------------------------------------------------------------------------------


def stops(users, times):
    """A load at which the database does nothing in so many pauses of 3 s, while the middleware sends."""
    begin = 5.0 + 6.0 * np.arange(times)
    pauses = np.column_stack([begin, begin + 3.0])
    at = (AT + 0.5) * RUN_S / CELLS
    inside = ((at[:, None] >= pauses[:, 0]) & (at[:, None] < pauses[:, 1])).any(axis=1)
    hot = [replace(resource(n, mean=30), values=np.where(inside, p, 30.0)) for n, p in
           (("web1", 20.0), ("app1", 20.0), ("middleware1", 20.0), ("db1", 0.0))]  # fmt: skip
    made = trial(users, users / 7.02, 0.02, *hot)
    return replace(made, load=replace(made.load, pauses=pauses))


@pytest.mark.parametrize(("times", "verdict"), [(2, "unknown"), (3, "hidden")])
def test_a_stop_that_one_load_shows_must_come_back(times, verdict):
    """The higher loads show none, and follow the law."""
    found = sweep(stops(100, times))
    assert found.verdict == verdict
    if verdict == "unknown":
        assert any("stood still 2 times, at one load only" in e for e in found.evidence)


def test_a_stop_that_two_loads_show_comes_back():
    assert sweep(stops(100, 2), stops(120, 2)).verdict == "hidden"


# ---- waves ---------------------------------------------------------------------------------------------------------


def waves(faster, *, spans=False, cells=50):
    """A CPU is saturated in so many of each 100 cells, while so many times as many interactions are completed."""
    on = at_100 < cells
    rate = np.where(on, faster, 1.0)
    served = np.cumsum(20.0 * rate / rate.mean()) * RUN_S / CELLS
    done = np.interp(np.arange(1, int(served[-1])), served, (AT + 1) * RUN_S / CELLS)
    loads = []
    for n in (200, 250, 300):
        response_s = n / 20 - 7
        begun = np.column_stack([done - response_s, done]) if spans else None
        made = trial(n, 20.0, response_s, resource("db1", on, 65))
        loads.append(replace(made, load=replace(load(n, 20.0, response_s), done_s=done, spans=begun)))
    return sweep(*loads)


@pytest.mark.parametrize(("faster", "verdict"), [(1.9, "unknown"), (1.4, "hidden")])
def test_what_limits_throughout_does_not_let_twice_as_much_pass_now_and_then(faster, verdict):
    found = waves(faster)
    assert found.verdict == verdict
    assert not named(found)
    if verdict == "unknown":
        assert any("work comes in waves" in e for _, v in found.trials for e in v.evidence)
        assert any("single interactions" in n for n in found.next)


def test_single_interactions_show_when_users_wait_and_seldom_bursts_show_nothing():
    assert waves(1.9, spans=True).verdict == "hidden", "users wait in the other half, too"
    assert waves(1.9, cells=30).verdict == "hidden", "bursts that are worked off after any stop"


# ---- turns of which one load is not sure ---------------------------------------------------------------------------

PAIR = [Bottleneck(t, "cpu", (f"{t}1",), 0.7, 0.6, 0.8) for t in ("app", "db")]
SURE = Verdict("multi", "alternating", PAIR)
UNSURE = Verdict("unknown", perhaps=PAIR)


def together(*verdicts):
    result = SweepVerdict("s", "1/1/1/1M", "unknown")
    combine(result, list(verdicts))
    return result


def test_a_load_that_is_not_sure_of_the_same_turns_says_nothing_else():
    for some in ((SURE, UNSURE), (SURE, UNSURE, UNSURE)):
        found = together(*some)
        assert (found.verdict, found.kind, named(found)) == ("multi", "alternating", [("app", "cpu"), ("db", "cpu")])
        assert f"{len(some) - 1} of them saw the turns" in found.evidence[0]


@pytest.mark.parametrize(
    "others",
    [
        (UNSURE, UNSURE),
        (Verdict("multi", "simultaneous", PAIR), UNSURE, Verdict("single", "stable", PAIR[:1])),
        (SURE, Verdict("unknown", perhaps=[PAIR[0], Bottleneck("web", "cpu", ("web1",), 0.7, 0.6, 0.8)])),
    ],
)
def test_doubt_alone_and_doubt_of_something_else_support_nothing(others):
    assert together(*others).verdict == "unknown"


def test_one_load_that_names_a_resource_does_not_outvote_one_that_sees_it_take_turns_perhaps():
    """The second load tells more than "nothing": the resource limits alone, or it takes turns with another."""
    alone, elsewhere = (Verdict("single", "stable", [b]) for b in (PAIR[0], replace(PAIR[0], tier="web")))
    assert together(alone, UNSURE).verdict == "unknown"
    assert together(alone, alone, UNSURE).verdict == "single"
    assert together(alone, Verdict("unknown")).verdict == "single"
    assert together(elsewhere, UNSURE).verdict == "single"


def test_a_low_load_that_stands_still_in_turns_speaks_against_the_only_load_that_names_one_alone():
    """Turns of 20 s: a run of 40 s may show one of them only."""
    alone = Verdict("single", "stable", PAIR[:1])
    low, high, higher = (load(users, 10.0, 1.0) for users in (30, 130, 150))
    result = SweepVerdict("s", "1/1/1/1M", "unknown", trials=[(low, SURE), (high, alone)])
    combine(result, [alone])
    assert result.verdict == "unknown"
    assert "take turns" in result.evidence[-1]
    result = SweepVerdict("s", "1/1/1/1M", "unknown", trials=[(low, SURE), (high, alone), (higher, alone)])
    combine(result, [alone, alone])
    assert result.verdict == "single", "two loads beyond the knee agree"


def test_a_trial_that_is_not_sure_names_what_may_take_turns():
    """The application reads saturated in 86 % of the run and is used 94 %, the database in most of the rest: more of
    the database can bring 6 % at most."""
    app, db = AT % 100 < 86, AT % 100 >= 20
    one = trial(250, 20.0, 5.5, resource("app1", app, 94), resource("db1", db, 84))
    (_, told), *_ = (x for x in sweep(one).trials if x[0].users == 250)
    assert told.verdict == "unknown"
    assert sorted((b.tier, b.resource) for b in told.perhaps) == [("app", "cpu"), ("db", "cpu")]


# ---- two that are full ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("spread", "verdict"), [(1.0, "single"), (12.0, "unknown")])
def test_the_second_of_two_has_room_only_if_its_use_is_known_well_enough(spread, verdict):
    """It is used 91 % while the other is used 100 %; in short runs that mean differs by a point or by several."""
    part = np.repeat(91 + spread * np.array([-1, 1, -1, 1, -1, 1, -1, 1, 0, 0]) / 2, CELLS // 10)
    second = replace(resource("app1", AT % 20 < 17, 91), values=part)
    found = limited(resource("db1", ALL, 100), second)
    assert found.verdict == verdict


# ---- disks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wait_ms", "queue", "verdict"), [(18.0, 30.0, "unknown"), (12.0, 60.0, "single"), (18.0, 4.0, "single")]
)
def test_beside_a_full_cpu_a_disk_may_limit_if_its_requests_take_longer_and_users_wait_for_them(
    wait_ms, queue, verdict
):
    """110 users wait on average; for the disk 12 %, 9 % and 2 % of them. At low load a request takes 10 ms."""
    found = limited(resource("app1", ALL, 100), disk(100, queue, wait_ms), low=(disk(60, 1.0, 10.0),))
    assert found.verdict == verdict
    assert named(found) == ([("app", "cpu")] if verdict == "single" else [])


# ---- none ----------------------------------------------------------------------------------------------------------


def test_a_settled_load_that_loses_nothing_yet_does_not_speak_for_those_whose_requests_pile_up():
    """The lower load beyond the knee still grows; at the higher ones throughput is level, the database is full, and the
    answers do not account for the users."""
    free = [trial(n, n / 7.02, 0.02, resource("db1", 0 * ALL, 5.6 * n / 7.02)) for n in (30, 60)]
    low = trial(140, 17.5, 1.0, resource("db1", AT % 100 < 75, 80))
    high = [trial(n, 17.6, 6.0, resource("db1", ALL, 100)) for n in (300, 320)]
    found = judge_sweep("s", "1/1/1/1M", [*free, low, *high])
    assert [load.accounted for load, _ in found.trials] == [True, True, True, False, False]
    assert (found.verdict, named(found)) == ("single", [("db", "cpu")])


@pytest.mark.parametrize(("response_s", "verdict"), [(0.9, "unknown"), (0.6, "none")])
def test_none_needs_a_highest_load_that_is_not_far_behind_its_users(response_s, verdict):
    """Throughput is 11 or 8 % behind, and has grown by 0.85 of what the users have."""
    assert sweep(trial(140, 140 / (7 + response_s), response_s)).verdict == verdict
