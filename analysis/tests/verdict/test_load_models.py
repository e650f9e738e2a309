"""Loads of users who never think, arrivals at a rate, and sweeps over something else than users: which reasoning holds,
and when a verdict must not be given."""

from dataclasses import replace

import numpy as np
import pytest
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.verdict.context import Context
from ntier_analysis.verdict.data import TrialData
from ntier_analysis.verdict.disks import Disk, Room
from ntier_analysis.verdict.reasoning import untold
from ntier_analysis.verdict.sweep import judge_sweep
from ntier_analysis.verdict.trial import judge_trial

from .test_principles import CELLS, NODES, load, named, resource, trial

FULL = resource("db1", np.ones(CELLS), 100)
ALL = np.ones(CELLS)
CALM = [resource(n) for n in NODES]
CAPACITY = 25.0


def hot(*more):
    return [*(s for s in CALM if s.node not in {m.node for m in more}), *more]


# ---- arrivals at a rate --------------------------------------------------------------------------------------------


def arrivals(offered, *more, served=None, error=0.1, pending=3, workers=500.0, **given):
    """A load that offers so many interactions per second to a system that completes CAPACITY at most."""
    served = min(offered, CAPACITY) if served is None else served
    made = load(round(workers), served, 0.1)
    more = more or (FULL if offered > CAPACITY else resource("db1", mean=100 * offered / CAPACITY),)
    at = replace(
        made, trial=f"o{offered:05.1f}", model=LoadModel.OPEN, think_s=0.0, pending=pending, growth_error_per_s=error,
        **{"factor": "arrivals_per_s", "unit": "/s", "value": offered, "offered_per_s": offered,
           "growth_per_s": offered - served, **given},
    )  # fmt: skip
    return TrialData(at, hot(*more), NODES)


def swept(trials):
    return judge_sweep("s", "1/1/1/1M", trials)


def test_arrivals_that_pile_up_show_the_capacity_and_what_limits():
    found = swept([arrivals(10.0), arrivals(20.0), arrivals(30.0), arrivals(35.0), arrivals(40.0)])
    assert (found.verdict, named(found)) == ("single", [("db", "cpu")])
    assert found.max_throughput.value == pytest.approx(CAPACITY, rel=0.02)
    assert (found.at_least, found.knee_bracketed) == (False, True)
    assert [v.verdict for _, v in found.trials] == ["none", "none", "single", "single", "single"]
    few = swept([arrivals(30.0), arrivals(35.0)])
    assert (few.at_least, few.knee_bracketed) == (True, False), "nothing was served fully, and two rates are no plateau"


def test_arrivals_that_are_all_served_limit_nothing():
    found = swept([arrivals(10.0), arrivals(20.0, FULL)])
    assert (found.verdict, found.at_least) == ("none", True)
    assert found.max_throughput.value == pytest.approx(20.0, rel=0.02)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"error": 4.0}, "whether the backlog grows is not known"),
        ({"growth_per_s": float("nan")}, "the heartbeat does not say"),
        ({"offered_per_s": float("nan")}, "the heartbeat does not say"),
        ({"growth_per_s": 0.2, "pending": 470}, "they may have held back arrivals"),
    ],
)
def test_a_backlog_that_is_not_known_is_no_verdict(given, why):
    """It grew by 5/s with a standard error of 4; or nobody counted; or the driver's workers were all busy."""
    found = swept([arrivals(30.0, **given)])
    assert (found.verdict, found.bottlenecks) == ("unknown", [])
    assert any(why in text for _, v in found.trials for text in v.evidence)
    sure = swept([arrivals(10.0), arrivals(30.0)])
    assert sure.verdict == "single"


@pytest.mark.parametrize(("pending", "workers"), [(440, 500.0), (501, 500.0), (1, 1.0)])
def test_a_driver_with_workers_left_has_held_nothing_back(pending, workers):
    """440 of 500 wait; more wait than the driver says it has; a driver of one worker always has one under way."""
    found = swept([arrivals(10.0), arrivals(20.0, pending=pending, workers=workers)])
    assert found.verdict == "none"


def test_a_rate_at_which_less_is_served_is_a_finding_not_the_capacity():
    found = swept([arrivals(10.0), arrivals(30.0), arrivals(35.0), arrivals(40.0, served=15.0)])
    assert found.max_throughput.value == pytest.approx(CAPACITY, rel=0.02)
    assert any("retrograde" in text for text in found.evidence)
    level = swept([arrivals(10.0), arrivals(30.0), arrivals(35.0), arrivals(40.0, served=24.5)])
    assert not any("retrograde" in text for text in level.evidence)


def test_arrivals_that_pile_up_with_nothing_saturated_are_hidden_however_few_workers_ask():
    """How many users wait is no property of arrivals, so no model of users explains it."""
    found = swept([arrivals(10.0), arrivals(30.0, resource("db1", mean=85.0), workers=1.0)])
    assert (found.verdict, named(found)) == ("hidden", [])


def before(x, app=4.1, db=1.0):
    """A low rate; the application needs 41 ms of each interaction: it could complete 24.4/s."""
    return arrivals(x, resource("app1", mean=app * x), resource("db1", mean=db * x))


@pytest.mark.parametrize(("offered", "served", "verdict"), [(24.0, 20.0, "unknown"), (30.0, 24.0, "single")])
def test_of_arrivals_a_full_cpu_may_work_for_what_piles_up_behind_it(offered, served, verdict):
    """It is used 98 %. If a lock behind it completes 20/s, these need 82 %, and more of it brings nothing."""
    app = resource("app1", np.arange(CELLS) % 50 < 48, 98)
    found = swept([before(5.0), before(10.0), *(arrivals(offered + i, app, served=served) for i in (0.0, 0.1, 0.2))])
    assert (found.verdict, named(found)) == (verdict, [("app", "cpu")] if verdict == "single" else [])


@pytest.mark.parametrize(
    ("offered", "share", "low", "verdict"),
    [
        (24.0, 0.9, 4.1, [("db", "cpu")]),
        (30.0, 1.0, 4.1, [("db", "cpu")]),
        (30.0, 1.0, 4.5, []),
        (30.0, 1.0, 4.8, [("app", "cpu"), ("db", "cpu")]),
    ],
)
def test_of_arrivals_what_lies_before_a_full_resource_works_for_all_that_come(offered, share, low, verdict):
    """The database completes 20/s, for which the application needs 82, 90 or 96 %, though it is used all of its time.
    At 90 % it is not known: work may cost so much more at high load."""
    app = resource("app1", np.arange(CELLS) % 50 < 50 * share, 98 if share < 1 else 100)
    beyond = [arrivals(offered + i, app, FULL, served=20.0) for i in (0.0, 0.1, 0.2)]
    found = swept([before(5.0, low, 5.0), before(10.0, low, 5.0), *beyond])
    assert named(found) == verdict
    assert swept(beyond).verdict == "unknown", "no lower load tells what is completed needs"


def disk_of(mean, marks=None):
    """A disk that serves one at a time, by a known limit."""
    return replace(resource("db1", marks, mean, "disk"), source="cgroup")


def both(offered, cpu, disk, **given):
    """CPU and disk of the database, in proportion to what comes until they are full."""
    made = [
        (disk_of if name == "disk" else lambda pct, m: resource("db1", m, pct))(
            min(100, pct), ALL if pct >= 100 else None
        )
        for name, pct in (("cpu", cpu * offered), ("disk", disk * offered))
    ]
    return arrivals(offered, *made, **given)


@pytest.mark.parametrize(
    ("cpu", "disk", "verdict"),
    [
        (3.5, 5.0, [("db", "disk")]),
        (5.0, 3.5, [("db", "cpu")]),
        (4.4, 5.0, []),
        (5.0, 4.4, []),
        (5.0, 5.0, [("db", "cpu"), ("db", "disk")]),
    ],
)
def test_of_arrivals_cpu_and_disk_of_a_node_either_may_work_for_all_that_come(cpu, disk, verdict):
    """20/s are completed, so what needs 5 % of each per second limits. The other one is as full, if it comes first: of
    the 30/s and more that arrive it would need 105 % (or 132). The completed ones need 70 or 88 % of it, by low rates.
    Work may cost a fifth more at high load, so at 88 % it is not known."""
    beyond = [both(30.0 + i, cpu, disk, served=20.0) for i in (0.0, 0.1, 0.2)]
    found = swept([both(5.0, cpu, disk), both(10.0, cpu, disk), *beyond])
    assert named(found) == verdict
    assert swept(beyond).verdict == "unknown", "no lower load tells what is completed needs"


def test_of_arrivals_two_that_low_rates_fill_neither_have_become_dearer_and_which_is_not_known():
    """The completed ones need 70 % of the CPU and 5 % of the disk, by low rates at which the cache held all."""
    beyond = [arrivals(30.0 + i, FULL, disk_of(100, ALL), served=20.0) for i in (0.0, 0.1, 0.2)]
    found = swept([both(5.0, 3.5, 0.25), both(10.0, 3.5, 0.25), *beyond])
    assert (found.verdict, named(found)) == ("unknown", [])


def test_of_arrivals_a_network_has_a_need_by_low_rates_as_a_disk_has():
    """The completed ones need all of both."""
    low = [arrivals(x, resource("db1", mean=5 * x), resource("db1", mean=5 * x, name="network")) for x in (5.0, 10.0)]
    full = FULL, resource("db1", ALL, 100, "network")
    found = swept([*low, *(arrivals(30.0 + i, *full, served=20.0) for i in (0.0, 0.1, 0.2))])
    assert named(found) == [("db", "cpu"), ("db", "network")]


@pytest.mark.parametrize("kept_up", ["app1", "db1"])
def test_of_arrivals_in_tiers_without_an_order_either_may_come_first(kept_up):
    """One of two CPUs is full with all that comes; the other one limits."""
    needs = {"app1": 5.0, "db1": 5.0, kept_up: 3.5}
    low = [arrivals(x, *(resource(n, mean=pct * x) for n, pct in needs.items())) for x in (5.0, 10.0)]
    beyond = [arrivals(30.0 + i, *(resource(n, ALL, 100) for n in needs), served=20.0) for i in (0.0, 0.1, 0.2)]
    found = swept([replace(t, order=()) for t in (*low, *beyond)])
    assert [b.nodes for b in found.bottlenecks] == [tuple(set(needs) - {kept_up})]


def turning(offered, first=0.55, served=None):
    """CPU and disk of the database, one of which is full at each moment beyond the limit, in turns of some seconds,
    since its connections keep a fixed number of requests in it."""
    if offered <= 15.0:
        return both(offered, 3.0, 3.0)
    on = np.arange(CELLS) % 100 < 100 * first
    pool = replace(resource("app1", ALL, 100, "pool"), item="connections")
    return arrivals(offered, resource("db1", on, 68), disk_of(62, ~on), pool, resource("app1"), served=served or 20.0)


def test_of_arrivals_cpu_and_disk_of_a_database_limit_in_turns():
    """The pool before it is full, and a place in it is held longer, which is a symptom."""
    found = swept([turning(5.0), turning(10.0), turning(30.0), turning(35.0), turning(40.0)])
    assert (found.verdict, found.kind, named(found)) == ("multi", "alternating", [("db", "cpu"), ("db", "disk")])
    assert found.max_throughput.value == pytest.approx(20.0, rel=0.02)


def test_of_arrivals_that_are_all_served_cpu_and_disk_in_turns_do_not_limit():
    """They are as busy at 24/s, of which everything is completed."""
    found = swept([turning(5.0), turning(10.0), turning(24.0, served=24.0)])
    assert found.verdict == "none"


def test_of_arrivals_turns_that_leave_a_part_of_the_time_open_do_not_limit():
    """In a fifth of the run neither is saturated, and the backlog grows all the time."""
    at = np.arange(CELLS) % 100
    gaps = [
        arrivals(x, resource("db1", at < 40, 55), disk_of(50, (at >= 50) & (at < 90)), served=20.0)
        for x in (30.0, 35.0, 40.0)
    ]
    found = swept([turning(5.0), turning(10.0), *gaps])
    assert (found.verdict, named(found)) == ("hidden", [])


def test_of_arrivals_what_lies_behind_a_full_resource_works_only_for_what_comes_through():
    """The application passes on the 20/s that it completes. They need 82 % of the database by its use at low load; it
    is used all of its time, so they cost more now."""
    app = resource("app1", np.ones(CELLS), 100)
    beyond = [arrivals(30.0 + i, app, FULL, served=20.0) for i in (0.0, 0.1, 0.2)]
    found = swept([before(5.0, 5.0, 4.1), before(10.0, 5.0, 4.1), *beyond])
    assert named(found) == [("app", "cpu"), ("db", "cpu")]


@pytest.mark.parametrize(("error", "verdict"), [(4.0, "unknown"), (1.3, "none")])
def test_a_backlog_that_may_grow_by_much_is_not_known_to_be_none(error, verdict):
    """It grew by 0.2/s of 20. With an error of 4 it may grow by 8.2/s, with 1.3 by 2.8."""
    found = swept([arrivals(10.0), arrivals(20.0, growth_per_s=0.2, error=error)])
    assert found.verdict == verdict


# ---- a factor that is no load --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("values", "joint"), [((1, 2, 3), True), ((6, 3, 2), True), ((1, 1.2, 5), False)])
def test_a_factor_sets_the_rate_if_the_rate_goes_with_it_or_its_inverse(values, joint):
    offered = (10.0, 20.0, 30.0)
    trials = [arrivals(x, factor="pause_s", unit="s", value=float(v)) for v, x in zip(values, offered, strict=True)]
    found = swept(trials)
    assert ("is judged by itself" in found.reasoning) == (not joint)
    assert ("smaller values" in found.reasoning) == (values == (6, 3, 2))


def sized(value, *more, x=20.0, response_s=3.0, level="size"):
    """200 users of a system in which something else than the load has this value."""
    at = replace(load(200, x, response_s), trial=f"{level}{value:g}", factor=level, unit="kB", value=float(value))
    return TrialData(at, hot(*more), NODES)


def free(value):
    return sized(value, x=200 / 7.02, response_s=0.02)


def test_values_of_a_factor_are_judged_one_by_one_and_named_together_if_they_agree():
    """Of each value there is one load: it tells no service from waiting, but what is full is full."""
    app = resource("app1", np.ones(CELLS), 100)
    found = swept([free(1), sized(2, FULL), sized(3, FULL)])
    assert (found.verdict, named(found), found.max_throughput) == ("single", [("db", "cpu")], None)
    assert any(text == "it limits at size 2 kB, size 3 kB" for text in found.evidence)
    other = swept([free(1), sized(2, FULL), sized(3, app)])
    assert (other.verdict, other.bottlenecks) == ("unknown", [])
    assert [(m["from"]["tier"], m["to"]["tier"], m["from_value"], m["to_value"]) for m in other.migration] == [
        ("db", "app", 2.0, 3.0)
    ]
    free_and_full = swept([free(1), sized(2, FULL)])
    nothing = swept([free(1), free(2)])
    assert (nothing.verdict, nothing.bottlenecks) == ("none", [])
    perhaps = swept([free(1), free(2), sized(3)])
    assert perhaps.verdict == "unknown", "nothing limits at two of three values; of the third it is not known"
    assert any("it is not known whether something limits" in text for text in perhaps.evidence)
    silent = swept([sized(1), sized(2), sized(3, FULL)])
    assert silent.verdict == "unknown", "two of three values tell nothing"
    most = swept([sized(1), sized(2, FULL), sized(3, FULL)])
    assert (most.verdict, named(most)) == ("single", [("db", "cpu")]), "one of three values tells nothing"
    every = swept([sized(2, FULL), sized(3, FULL)])
    assert not any(text.startswith("it limits at") for text in [*every.evidence, *nothing.evidence])
    assert nothing.migration == free_and_full.migration == []


def test_an_invalid_trial_of_a_value_is_listed_and_does_not_count():
    bad = sized(4, FULL)
    bad = replace(bad, load=replace(bad.load, valid=False, invalid_reasons="errors"))
    found = swept([sized(2, FULL), sized(3, FULL), bad])
    assert found.verdict == "single"
    assert any("1 of 3 trials is invalid and not counted: size4 (errors)" in text for text in found.evidence)
    assert len(found.trials) == 3


# ---- a fixed amount of work ----------------------------------------------------------------------------------------


def working(workers, x, *more, cores=1.0, **given):
    """Workers who never think: each unit of work takes N / X."""
    at = replace(load(workers, x, workers / x, 0.0), model=LoadModel.WORK, **given)
    return TrialData(at, hot(*more), NODES, capacity_cores=dict.fromkeys(NODES, cores))


@pytest.mark.parametrize(
    ("workers", "cores", "verdict"), [(1, 1.0, "unknown"), (2, 2.0, "unknown"), (4, 2.0, "single"), (1, 0.5, "single")]
)
def test_a_busy_cpu_limits_work_only_if_a_worker_must_wait_for_it(workers, cores, verdict):
    """As many workers as there are cores wait for nobody; a quota of half a core holds up a single one."""
    found = swept([working(workers, 5.0, FULL, cores=cores)])
    assert (found.verdict, found.load_model) == (verdict, "work")


def pausing(workers, response_s, paused_s=0.1, **given):
    """Workers who pause for 0.1 s after each unit, as clients that sleep between two transactions do."""
    made = working(workers, workers / (paused_s + response_s), **given)
    return replace(made, load=replace(made.load, response_s=response_s, think_measured_s=paused_s))


def test_workers_who_pause_ask_for_less_than_n_by_r():
    """36, 107 and 256 per s by 4, 16 and 64 workers: throughput grows by 0.78 and 0.63 of what they do."""
    found = swept([pausing(n, r) for n, r in ((4, 0.01), (16, 0.05), (64, 0.15))])
    assert found.verdict != "hidden"
    assert found.max_throughput is None or found.max_throughput.value > 200, "256/s were seen"
    level = swept([pausing(n, n / 100 - 0.1) for n in (1, 16, 64)])
    assert level.verdict == "hidden", "100/s by 16 and by 64, used 20 %"


def test_a_maximum_of_workers_whose_pauses_nobody_counted_is_no_lower_bound():
    """Their answers account for half of their time."""
    some = [working(n, 100.0, FULL, cores=0.5) for n in (16, 32, 64)]
    found = swept([replace(t, load=replace(t.load, response_s=t.load.response_s / 2)) for t in some])
    assert (found.verdict, found.at_least) == ("single", False)


def test_a_worker_who_pauses_most_of_the_run_has_settled():
    """A unit takes 20 ms of 40 s."""
    assert pausing(40, 0.02, paused_s=39.98).load.settled


@pytest.mark.parametrize(("used", "verdict"), [(40, "hidden"), (70, "unknown")])
def test_work_is_hidden_only_if_throughput_is_level_and_nothing_is_used_by_half(used, verdict):
    """Workers always wait for each other somewhere: at balanced stations throughput grows by 1 - U or more."""
    found = swept([working(n, 10.0, resource("db1", mean=used)) for n in (4, 16, 64)])
    assert (found.verdict, named(found)) == (verdict, [])
    growing = swept([working(n, float(n) ** 0.5, resource("db1", mean=used)) for n in (4, 16, 64)])
    assert growing.verdict == "unknown"


@pytest.mark.parametrize(("name", "verdict"), [("disk", "unknown"), ("network", "unknown"), ("pool", "hidden")])
def test_work_is_not_hidden_while_any_station_explains_that_its_throughput_levels_off(name, verdict):
    """It grows by 0.25, and the disk is used 78 %: balanced stations used so much grow by 0.22 or more. The places of a
    pool are no station: those who hold them wait elsewhere."""
    loads = ((4, 39), (16, 55), (64, 78))
    trials = [working(n, 10 * (n / 4) ** 0.25, resource("db1", mean=m, name=name), resource("db1")) for n, m in loads]
    assert swept(trials).verdict == verdict


@pytest.mark.parametrize(
    ("room", "verdict"), [(Room.NONE, "unknown"), (Room.PERHAPS, "unknown"), (Room.SOME, "hidden")]
)
def test_a_disk_that_is_known_to_have_room_explains_no_waiting_of_workers(room, verdict):
    at = working(64, 20.0, resource("db1", mean=78, name="disk"), resource("db1"))
    known = Context(disks={("db1", "disk", ""): Disk(room, "")}, growth={at.load.trial: 0.25})
    assert judge_trial(at.load, at.saturations, at.nodes, 0.4, known).verdict == verdict


@pytest.mark.parametrize(
    ("x", "response_s", "more", "verdict"),
    [
        (85.0, 0.004, (), "none"),  # 16 workers pause for 98 % of their time
        (85.0, 0.004, (FULL,), "none"),
        (100.0, 0.060, (FULL,), "single"),
        (100.0, 0.060, (), "unknown"),
    ],
)
def test_workers_who_pause_by_themselves_are_limited_only_if_waiting_costs_something(x, response_s, more, verdict):
    paused_s = 16 / x - response_s
    at = working(16, x, *more, factor="sleep_s", value=1.0, response_s=response_s, think_measured_s=paused_s)
    found = swept([at])
    assert found.verdict == verdict, found.evidence
    assert any(f"pauses for {1000 * paused_s:.0f} ms by itself" in text for text in found.trials[0][1].evidence)
    more_work = "add values of sleep_s that ask for more than sleep_s 1, until throughput no longer grows"
    assert (more_work in found.next) == (verdict == "none")
    other = working(16, 100.0, FULL, factor="sleep_s", value=0.1, response_s=0.06, think_measured_s=0.1)
    assert more_work not in swept([at, other]).next, "one of its values is known to be limited"


def test_workers_who_wait_all_at_once_have_not_been_stopped():
    """Each may be in a long unit of work. Users who think would send others."""
    still = np.array([[10.0, 20.0]])
    idle = (np.arange(CELLS) >= 100) & (np.arange(CELLS) < 200)
    db = replace(resource("db1", mean=50), values=np.where(idle, 0.0, 60.0))
    assert swept([working(4, 10.0, db, pauses=still)]).verdict == "unknown"
    users = trial(200, 20.0, 3.0, db)
    assert swept([replace(users, load=replace(users.load, pauses=still))]).verdict == "hidden"


def test_users_whose_think_time_is_not_known_have_no_verdict():
    found = swept([trial(n, 20.0, 3.0, FULL, think_s=float("nan")) for n in (200, 300)])
    assert (found.verdict, found.bottlenecks) == ("unknown", [])
    assert any("think time is not known" in text for text in found.evidence)


@pytest.mark.parametrize("model", LoadModel)
def test_a_trial_without_an_answer_is_not_limited_by_nothing(model):
    think_s = 7.0 if model is LoadModel.CLOSED else 0.0
    silent = replace(load(500, 1.0, float("nan"), think_s), throughput_per_s=0.0, rates=None, model=model)
    found = judge_trial(silent, CALM, NODES, 0.0)
    assert (found.verdict, found.evidence) == ("unknown", [untold(silent)])
    assert untold(silent).startswith("nothing is known to have been completed")
    if model is not LoadModel.OPEN:
        untimed = judge_trial(replace(silent, throughput_per_s=60.0), CALM, NODES, 0.05)
        assert (untimed.verdict, untimed.evidence) == ("unknown", ["the response time is not known"])
