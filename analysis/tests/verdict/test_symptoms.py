"""What is full and does not limit: pools above a limit, resources that something else fills, disks with room. Each from
the trap's side: the limit is known, and something else reads full beside it."""

from dataclasses import replace

import numpy as np
import pytest
from ntier_analysis.verdict.agreement import combine, stops_elsewhere
from ntier_analysis.verdict.data import SweepVerdict
from ntier_analysis.verdict.load import Bottleneck, Verdict
from ntier_analysis.verdict.lowest import unproved
from ntier_analysis.verdict.sweep import judge_sweep

from .test_principles import CELLS, disk, limited, load, named, resource, trial

ALL = np.ones(CELLS)
AT_LOW = 32.0
"""Use of a pool at the two low loads, of which a place is then held as long as on the plateau where it is full."""


def pool(node="app1", mean=100.0, **given):
    return resource(node, ALL if mean >= 95 else None, mean, "pool", **given)


# ---- pools ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at_low", "verdict"), [(AT_LOW, "single"), (AT_LOW / 1.3, "unknown"), (AT_LOW / 2, "hidden"), (None, "unknown")]
)
def test_a_full_pool_limits_if_its_places_are_held_as_briefly_as_at_low_load(at_low, verdict):
    """Held 1, 1.3 and 2 times as long; or nobody knows how long at low load."""
    found = limited(pool(), low=() if at_low is None else (pool(mean=at_low),))
    assert (found.verdict, named(found)) == (verdict, [("app", "pool")] if verdict == "single" else [])
    if verdict == "unknown":
        assert found.next[0].startswith("raise the pool of app by a step")


@pytest.mark.parametrize("node", ["app1", "middleware1", "db1"])
def test_a_full_pool_is_a_symptom_of_what_is_saturated_in_its_tier_or_deeper(node):
    found = limited(pool(), resource(node, ALL, 100), low=(pool(mean=AT_LOW),))
    assert (found.verdict, named(found)) == ("single", [(node[:-1], "cpu")])


def test_a_full_pool_is_no_symptom_of_what_lies_before_it():
    found = limited(pool(), resource("web1", ALL, 100), low=(pool(mean=AT_LOW),))
    assert ("app", "pool") in named(found)


def test_of_two_full_pools_the_deeper_one_fills_the_other():
    found = limited(pool("web1"), pool("app1"), low=(pool("web1", AT_LOW), pool("app1", AT_LOW)))
    assert named(found) == [("app", "pool")]


def test_two_full_pools_of_one_tier_are_no_symptoms_of_each_other():
    both = [replace(pool(), item=item) for item in ("threads", "connections")]
    found = limited(*both, low=[replace(pool(mean=AT_LOW), item=s.item) for s in both])
    assert [(b.tier, b.resource, b.item) for b in found.bottlenecks] == [("app", "pool", "connections, threads")]


def test_hardware_fills_a_pool_of_another_tier_if_their_order_is_not_known():
    nodes = {"a": "front", "b": "back"}
    some = (pool("a", tier="front"), resource("b", ALL, 100, tier="back"))
    found = limited(*some, low=(pool("a", AT_LOW, tier="front"),), nodes=nodes)
    assert named(found) == [("back", "cpu")]


def test_a_pool_is_full_above_three_that_take_turns_though_none_is_saturated_as_long():
    at = np.arange(CELLS) % 90
    three = [
        resource(n, (at >= 30 * i) & (at < 30 * (i + 1)), 45) for i, n in enumerate(("app1", "middleware1", "db1"))
    ]
    found = limited(*three, pool("web1"), low=(pool("web1", AT_LOW),))
    assert (found.verdict, found.kind) == ("multi", "alternating")
    assert named(found) == [("app", "cpu"), ("db", "cpu"), ("middleware", "cpu")]


def test_a_pool_that_is_full_much_longer_than_what_is_below_it_limits():
    """The database holds all up in a third of the run; the pool is full in all of it."""
    third = np.arange(CELLS) % 90 < 30
    held = [replace(resource(n), values=np.where(third, 6.0, 20.0)) for n in ("web1", "app1", "middleware1")]
    found = limited(resource("db1", third, 45), *held, pool(), low=(pool(mean=AT_LOW),))
    assert named(found) == [("app", "pool")]


def near_the_knee(*hot):
    """A load that loses nothing yet at 19 of 20/s."""
    return trial(133, 19.0, 0.02, *hot)


def test_a_load_near_the_knee_does_not_tell_how_long_a_place_is_held_without_waiting():
    """A lock: at 19/s its holders wait already."""
    low = trial(60, 60 / 7.02, 0.02, pool(mean=16.0))
    high = [trial(n, 20.0, n / 20 - 7, pool()) for n in (200, 250, 300)]
    for more in ([], [near_the_knee(pool(mean=90.0))]):
        assert judge_sweep("s", "1/1/1/1M", [low, *more, *high]).verdict == "hidden"


# ---- replicas ------------------------------------------------------------------------------------------------------


TWO = {"web1": "web", "app1": "app", "middleware1": "middleware", "db1": "db", "db2": "db"}


def replicas(second, *more):
    """Two databases, of which the first is saturated; they are used 99 and `second` %."""
    return limited(resource("db1", ALL, 99), resource("db2", mean=second), *more, nodes=TWO)


@pytest.mark.parametrize("beside", [(), (pool(),)])
def test_a_full_pool_above_two_replicas_hides_neither(beside):
    """By the utilization law more of both brings 50 %, of the first alone 18 %; a pool has no such law."""
    assert replicas(84.0, *beside).bottlenecks[0].nodes == ("db1", "db2")


def test_a_replica_that_did_nothing_is_not_named():
    assert replicas(0.0).bottlenecks[0].nodes == ("db1",)


def test_beside_one_that_limits_for_a_part_of_the_time_no_replica_is_named_by_its_mean_use():
    """A competitor takes the first database's CPU in 40 % of the run; the second one always has room."""
    part = np.arange(CELLS) % 100 < 40
    used = {"web1": 20.0, "app1": 20.0, "middleware1": 20.0, "db2": 58.0}
    held = [replace(resource(n, mean=pct), values=np.where(part, pct / 5, pct)) for n, pct in used.items()]
    found = limited(resource("db1", part, 60), *held, nodes=TWO)
    assert (found.verdict, found.bottlenecks[0].nodes) == ("single", ("db1",))


# ---- what something else fills -------------------------------------------------------------------------------------


def test_what_is_full_at_loads_that_lose_nothing_limits_only_if_nothing_else_does():
    """A backup takes the web server's spare CPU: it is full at a fifth of the maximum, too."""
    web = resource("web1", ALL, 100)
    found = limited(web, resource("db1", ALL, 100), low=(web,))
    assert (found.verdict, named(found)) == ("single", [("db", "cpu")])
    assert any("is already full at loads that lose nothing" in text for _, v in found.trials for text in v.evidence)
    now = limited(web, resource("db1", ALL, 100))
    assert named(now) == [("db", "cpu"), ("web", "cpu")], "it is not full at low load: both limit"


@pytest.mark.parametrize(("low_pct", "verdict"), [(25.0, "single"), (70.0, "unknown")])
def test_what_is_full_at_low_load_is_acquitted_only_beside_what_the_requests_fill(low_pct, verdict):
    """The web server is full at any load. A database that is used 70 % at a fifth of the throughput is full of
    something else, too: in proportion the requests would need 200 % of it. So neither is known to limit alone."""
    web = resource("web1", ALL, 100)
    found = limited(web, resource("db1", ALL, 100), low=(web, resource("db1", mean=low_pct)))
    assert (found.verdict, named(found)) == (verdict, [("db", "cpu")] if verdict == "single" else [])


@pytest.mark.parametrize(("response_s", "verdict"), [(0.50, "unknown"), (2.0, "single")])
def test_what_is_full_at_every_load_is_not_named_for_what_service_alone_may_cost(response_s, verdict):
    """Throughput grows by a half, and follows the users. No load tells R0, so all of 0.5 s may be service: whether
    waiting costs anything is not known. Two seconds of nine are more than a queue near the knee costs."""
    web = resource("web1", ALL, 100)
    found = judge_sweep("s", "1/1/1/1M", [
        trial(n, n / (7 + r), r, web) for n, r in ((55, 0.7 * response_s), (71, 0.8 * response_s), (84, response_s))
    ])  # fmt: skip
    assert (found.verdict, named(found)) == (verdict, [("web", "cpu")] if verdict == "single" else [])
    assert found.next[0].startswith("add a load of")


def test_what_is_full_at_loads_that_lose_nothing_is_not_named_alone():
    """It may limit when the users ask for more; but something hidden beside it would look the same."""
    web = resource("web1", ALL, 100)
    found = limited(web, low=(web,))
    assert (found.verdict, named(found)) == ("unknown", [])
    assert found.next[0] == "find out what fills web1 cpu at low load, end it, and repeat"
    assert (limited(web).verdict, named(limited(web))) == ("single", [("web", "cpu")])
    once = [trial(30, 30 / 7.02, 0.02), trial(60, 60 / 7.02, 0.02, web)]
    found = judge_sweep("s", "1/1/1/1M", [*once, *(trial(n, 20.0, n / 20 - 7, web) for n in (200, 250, 300))])
    assert named(found) == [("web", "cpu")], "it is not always full: a job ran at one of the low loads"


def test_of_what_is_full_at_the_lowest_load_too_a_lower_load_is_asked_for():
    full = [trial(n, 20.0, n / 20 - 7, resource("db1", ALL, 100)) for n in (200, 250, 300)]
    found = judge_sweep("s", "1/1/1/1M", full)
    assert (found.verdict, named(found)) == ("single", [("db", "cpu")])
    assert found.next[0].startswith("add a load of 67 users: if the use of db CPU falls with the throughput")
    assert any("db CPU has no room at the lowest load either (200 users)" in text for text in found.evidence)
    below = judge_sweep("s", "1/1/1/1M", [trial(60, 60 / 7.02, 0.02), *full])
    assert not any("at the lowest load" in text for text in [*below.evidence, *below.next])


def test_as_many_loads_below_the_knee_are_asked_for_as_bracket_it():
    """A grid needs two. Only one was asked for, and with that measured none, though the page said that two are."""
    full = [trial(n, 20.0, n / 20 - 7, resource("db1", ALL, 100)) for n in (200, 250, 300)]
    first = judge_sweep("s", "1/1/1/1M", full)
    assert first.next[0].startswith("add a load of 67 users")
    assert any(text.startswith("add loads of ") for text in first.next[1:]), "one more"
    low = [trial(67, 67 / 7.02, 0.02)]
    second = judge_sweep("s", "1/1/1/1M", [*low, *full])
    assert not second.knee_bracketed
    (wanted,) = (text for text in second.next if text.startswith("add loads of "))
    more = int(wanted.split()[3])
    assert more < 0.8 * second.knee_users
    third = judge_sweep("s", "1/1/1/1M", [*low, trial(more, more / 7.02, 0.02), *full])
    assert third.knee_bracketed
    assert not any("add load" in text for text in third.next)


def test_a_load_that_is_to_be_repeated_is_not_asked_for_as_a_new_one():
    top = trial(140, 140 / 8.8, 1.8, resource("db1", ALL, 100))
    low = [trial(n, n / 7.02, 0.02) for n in (30, 60)]

    def asked(refused):
        """Those who are asked for beyond the knee."""
        found = judge_sweep("s", "1/1/1/1M", [*low, top, *refused])
        (wanted,) = (text for text in found.next if text.startswith("add loads of "))
        return found.next[0], [int(n.strip(",")) for n in wanted.split()[3:-1]]

    _, before = asked([])
    bad = trial(before[-1], 20.0, 5.0)
    bad = replace(bad, load=replace(bad.load, valid=False, invalid_reasons="client_saturated"))
    first, after = asked([bad])
    assert first.startswith(f"repeat {bad.load.trial}")
    assert after == before[:-1]


def test_a_pool_that_is_full_at_the_lowest_load_too_needs_no_lower_load():
    """Other rules ask how long its places are held. And without a valid load there is no lowest one."""
    full = [trial(200, 20.0, 3.0, resource("db1", ALL, 100), pool())]
    named_ones = (("db", "cpu", "db1"), ("app", "pool", "app1"))
    both = [Bottleneck(tier, kind, (node,), 1.0, 1.0, 1.0) for tier, kind, node in named_ones]
    result = SweepVerdict("s", "1/1/1/1M", "multi", bottlenecks=both)
    assert [b.resource for b in unproved(result, full)] == ["cpu"]
    assert unproved(result, []) == []


def test_what_is_nearly_full_near_the_knee_is_full_of_the_users_requests():
    two = [resource(n, ALL, 100) for n in ("app1", "db1")]
    near = near_the_knee(resource("app1", mean=80.0), resource("db1", mean=92.0))
    high = [trial(n, 20.0, n / 20 - 7, *two) for n in (200, 250, 300)]
    found = judge_sweep("s", "1/1/1/1M", [trial(60, 60 / 7.02, 0.02), near, *high])
    assert named(found) == [("app", "cpu"), ("db", "cpu")]


@pytest.mark.filterwarnings("error")
def test_a_sweep_in_which_nothing_limits_has_no_plateau_to_compare_with():
    assert judge_sweep("s", "1/1/1/1M", [trial(n, n / 7.02, 0.02) for n in (30, 60)]).verdict == "none"


# ---- disks ---------------------------------------------------------------------------------------------------------


def test_a_disk_whose_use_is_a_share_of_a_limit_in_force_is_full():
    known = replace(disk(100), source="cgroup")
    assert named(limited(known)) == [("db", "disk")]
    assert limited(disk(100)).verdict == "unknown"


def test_a_disk_at_which_requests_take_much_longer_is_full_though_most_users_wait_elsewhere():
    low = (disk(60, 1.0, 10.0),)
    assert named(limited(disk(100, 7.5, 50.0), low=low)) == [("db", "disk")]
    assert named(limited(disk(100, 7.5, 20.0), low=low)) == []


def test_a_disk_at_which_most_users_wait_is_full_though_a_request_takes_only_twice_as_long():
    """It serves many at a time, and as many again queue."""
    assert named(limited(disk(100, 150.0, 20.0), low=(disk(60, 1.0, 10.0),))) == [("db", "disk")]


@pytest.mark.parametrize("wait_ms", [500.0, 20.0])
def test_a_queue_does_not_tell_whose_requests_fill_a_disk_that_reads_full_at_low_load_too(wait_ms):
    """A CPU is full beside it. Beyond the knee as many requests wait for the disk as users do: they may be the users',
    or those of a backup. If none of the requests waits, the CPU limits alone."""
    cpu = resource("app1", np.arange(CELLS) % 10 < 8, 91)
    found = limited(disk(100, 100.0, wait_ms), cpu, low=(disk(92, 2.0, 20.0),))
    waits = wait_ms > 20
    assert (found.verdict, named(found)) == (("unknown", []) if waits else ("single", [("app", "cpu")]))
    said = found.trials[-1][1].evidence
    assert any("whether they are the users' or of what fills it is not known" in text for text in said) == waits
    assert any(text.startswith("find out what fills db1 disk at low load") for text in found.next) == waits


def test_a_disk_that_reads_full_at_low_load_too_does_not_limit_if_the_users_wait_elsewhere():
    """A request takes four times as long as at low load, but 60 to 160 users wait, and three of the requests."""
    found = limited(disk(100, 4.0, 20.0), resource("app1", ALL, 100), low=(disk(92, 1.0, 5.0),))
    assert (found.verdict, named(found)) == ("single", [("app", "cpu")])


def test_nothing_is_hidden_while_as_many_requests_as_users_wait_for_a_disk():
    """It reads 92 % at low load, and 94 % beyond the knee."""
    assert limited(disk(94, 100.0, 500.0), low=(disk(92, 2.0, 20.0),)).verdict == "unknown"


def test_disks_of_other_tiers_say_nothing_of_a_disk():
    """The application's disk is slow now and was not before, or was slow before (a backup at the lowest loads)."""

    def app(wait_ms, queue):
        return resource("app1", mean=20.0, name="disk", wait_ms=wait_ms, queue=queue)

    low = (disk(60, 1.0, 10.0),)
    assert named(limited(disk(100, 4.0, 10.5), app(100.0, 100.0), low=(*low, app(10.0, 1.0)))) == []
    assert named(limited(disk(100, 100.0, 50.0), app(1.0, 1.0), low=(*low, app(1000.0, 1.0)))) == [("db", "disk")]


def test_a_load_near_the_knee_does_not_tell_how_long_a_disks_request_takes_without_waiting():
    high = [trial(n, 20.0, n / 20 - 7, disk(100, 4.0, 50.0)) for n in (200, 250, 300)]
    near = near_the_knee(disk(96, 3.0, 40.0))
    assert judge_sweep("s", "1/1/1/1M", [trial(60, 60 / 7.02, 0.02), near, *high]).verdict == "unknown"


@pytest.mark.parametrize(("queue", "verdict"), [(60.0, "single"), (7.0, "unknown")])
def test_what_users_wait_longer_than_near_the_knee_they_wait_where_requests_do(queue, verdict):
    """The only lower load is one of 19 of 20/s. From there, a request takes 100 instead of 40 ms, and 60 to 160 users
    more wait: in the disk's queue, or elsewhere. That load waits itself, so it proves no disk to have room."""
    high = [trial(n, 20.0, n / 20 - 7, disk(100, queue * (n - 140) / 60, 100.0)) for n in (200, 250, 300)]
    found = judge_sweep("s", "1/1/1/1M", [near_the_knee(disk(96, 3.0, 40.0)), *high])
    assert found.verdict == verdict


@pytest.mark.parametrize(("used", "verdict"), [(70.0, "single"), (79.0, "unknown"), (88.0, "unknown")])
def test_a_load_of_seven_tenths_proves_a_disk_full_only_if_its_use_is_in_proportion(used, verdict):
    """For 20/s it would be used 100, 113 or 126 %."""
    low = trial(98, 14.0, 0.02, disk(used))
    found = judge_sweep("s", "1/1/1/1M", [low, *(trial(n, 20.0, n / 20 - 7, disk(99)) for n in (200, 250, 300))])
    assert (found.verdict, named(found)) == (verdict, [("db", "disk")] if verdict == "single" else [])


def test_beside_a_disk_that_may_be_full_a_cause_must_explain_most_of_the_waiting():
    """By its use at low load the disk serves several at a time; the CPU is full in 70 or in all of the time."""
    low = (disk(70),)
    assert named(limited(resource("app1", ALL, 100), disk(99), low=low)) == [("app", "cpu")]
    part = resource("app1", np.arange(CELLS) % 100 < 70, 91)
    assert (limited(part, disk(99), low=low).verdict, named(limited(part))) == ("unknown", [("app", "cpu")])


# ---- what the loads say together -----------------------------------------------------------------------------------


def said(verdict, *tiers):
    kind = "stable" if len(tiers) == 1 else "simultaneous"
    return Verdict(verdict, kind, [Bottleneck(t, "cpu", (f"{t}1",), 0.95, 0.9, 1.0) for t in tiers])


@pytest.mark.parametrize(
    ("verdicts", "verdict"),
    [
        ([said("unknown"), said("single", "db")], "single"),
        ([said("single", "db"), said("unknown"), said("unknown")], "unknown"),
        ([said("single", "db"), said("none"), said("none")], "single"),
        ([said("none"), said("none")], "none"),
        ([said("unknown"), said("multi", "app", "db")], "unknown"),
        ([said("unknown"), *[said("multi", "app", "db")] * 2], "multi"),
    ],
)
def test_a_load_that_tells_nothing_is_no_dissent_unless_most_tell_nothing(verdicts, verdict):
    result = SweepVerdict("s", "1/1/1/1M", "unknown")
    combine(result, verdicts)
    assert result.verdict == verdict


def test_a_throughput_that_still_grows_is_not_hidden():
    """Users wait for some time, and each of them completes as much as ever; or 11 % less, whose cause is not known."""
    service = [trial(n, n / (7.02 + 0.3 * i), 0.02 + 0.3 * i) for i, n in enumerate((30, 60, 120, 240))]
    assert load(240, 240 / 7.92, 0.92).lost(0.02) > 0.1
    assert judge_sweep("s", "1/1/1/1M", service[:3]).verdict == "none"
    found = judge_sweep("s", "1/1/1/1M", service)
    assert found.verdict == "unknown"
    assert "throughput still grows, but stays 11 % behind the users" in " ".join(found.evidence)


@pytest.mark.parametrize(("settled", "verdict"), [([said("multi", "app", "db")], "multi"),
                                                  ([said("multi", "app", "web"), said("single", "db")], "unknown"),
                                                  ([], "unknown")])  # fmt: skip
def test_two_that_are_full_while_requests_pile_up_limit_if_a_load_that_has_settled_says_so(settled, verdict):
    result = SweepVerdict("s", "1/1/1/1M", "unknown")
    combine(result, [said("multi", "app", "db")], settled)
    assert result.verdict == verdict


def test_a_use_near_the_limit_is_told_by_all_loads_beyond_the_knee_together():
    """Each run of 60 s leaves 55 to 97 %; three of them, of independent swings, do not."""
    rng = np.random.default_rng(4)

    def run(n, swing):
        values = np.repeat(76.0 + swing * rng.standard_normal(10), CELLS // 10)
        values += 76.0 - values.mean()
        return trial(n, 20.0, n / 20 - 7, replace(resource("db1", mean=76.0), values=values))

    low = trial(60, 60 / 7.02, 0.02)
    for swing, verdict in ((24.5, "hidden"), (49.0, "unknown")):
        runs = [run(n, swing) for n in (200, 250, 300)]
        assert judge_sweep("s", "1/1/1/1M", [low, runs[0]]).verdict == "unknown"
        assert judge_sweep("s", "1/1/1/1M", [low, *runs]).verdict == verdict


@pytest.mark.parametrize(("response_s", "verdict"), [(5.0, "multi"), (3.5, "unknown")])
def test_what_lies_before_a_full_resource_works_for_requests_that_pile_up_behind_it_too(response_s, verdict):
    """The application is used 96 % and the database 100 %. If the answers leave 30 of 240 users unaccounted for, 2.5 %
    more interactions went through the application than came back: then it has room."""
    two = [resource("db1", ALL, 100), resource("app1", np.arange(CELLS) % 20 < 18, 96)]
    low = trial(60, 60 / 7.02, 0.02, *(resource(n, mean=42.0) for n in ("app1", "db1")))
    found = judge_sweep("s", "1/1/1/1M", [low, *(trial(n, 20.0, response_s, *two) for n in (240, 242, 244))])
    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("stopped", "verdict"), [((), "none"), ((30,), "unknown"), ((30, 60), "hidden"), ((30, 30), "unknown")]
)
def test_a_stop_that_the_highest_loads_do_not_show_is_no_none(stopped, verdict):
    """Repetitions of one load count once."""
    still = [(load(n, n / 7.02, 0.02), Verdict("hidden", stopped=("db",))) for n in stopped]
    result = SweepVerdict("s", "1/1/1/1M", "none", trials=[*still, (load(90, 12.8, 0.02), Verdict("none"))])
    stops_elsewhere(result)
    assert result.verdict == verdict
    named = SweepVerdict("s", "1/1/1/1M", "single", trials=still)
    stops_elsewhere(named)
    assert named.verdict == "single"
