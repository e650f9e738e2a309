"""Traps in which something else than the limit saturates, or the limit does not: docs/wrong-bottlenecks.md."""

from dataclasses import replace

import pytest
from detector.network import TIERS
from detector.plan import View, turns
from networks import judged, named, plan, said, throughput

DB, APP, WEB = ("db", "cpu"), ("app", "cpu"), ("web", "cpu")


def test_t4_pools_full_above_a_saturated_database_are_symptoms():
    network = plan({DB: 1.0}, connections=12, threads=20, workers=40).build()
    found = judged(network)
    assert (found.verdict, named(found)) == ("single", [("db", "cpu", ("db1",))])
    assert said(found, "app1 pool (connections) was full")
    assert said(found, "a symptom of db1 cpu")


def test_t4_small_pool_limits_while_the_database_idles_and_raising_it_helps():
    network = plan({}, connections=3, inner_latency_s=0.14).build()
    found = judged(network)
    assert (found.verdict, named(found)) == ("single", [("app", "pool", ("app1",))])
    assert throughput(network.relieved({("app", "pool:connections")}, 1.5)) > 1.15 * throughput(network)


def test_t4_pools_full_above_a_lock_that_nobody_sees_are_symptoms_too():
    """A place is held many times as long as at low load: whoever holds it waits for something deeper."""
    network = plan({}, lock_s=1 / 20, connections=12, threads=25).build()
    found = judged(network)
    assert (found.verdict, found.bottlenecks) == ("hidden", [])
    assert said(found, "times as long as at low load")
    assert throughput(network.relieved({("app", "pool:connections")}, 1.5)) < 1.05 * throughput(network)


def test_t9_the_hot_replica_is_named_and_the_balancer_with_it():
    balanced = {"db": ("random", (5.0, 1.0, 1.0))}
    found = judged(plan({DB: 0.47}, nodes={"db": 3}, policies=balanced).build())
    assert named(found) == [("db", "cpu", ("db1",))]
    assert said(found, "imbalance: db1 saturates while db2")


def test_t14_disk_that_serves_many_at_a_time_reads_100_pct_and_limits_nothing():
    wide = plan({("db", "disk"): 8.0, DB: 1.0}, wide_disk=True).build()
    assert judged(wide, (40, 60, 80)).verdict == "none"
    found = judged(wide)
    assert (found.verdict, named(found)) == ("single", [("db", "cpu", ("db1",))])
    assert said(found, "db1 disk is full already at loads that lose nothing")


def test_t15_saturated_network_is_named_and_without_its_collector_nothing_else_is():
    network = {("web", "network"): 1.0, APP: 0.7}
    assert named(judged(plan(network).build())) == [("web", "network", ("web1",))]
    unseen = judged(plan(network, options={("web", "network"): {"measured": False}}).build())
    assert (unseen.verdict, unseen.bottlenecks) == ("hidden", [])
    assert said(unseen, "bursts, not a limit") or said(unseen, "no measured resource saturates")


def test_t16_lock_in_the_database_with_its_cpu_at_30_pct_is_hidden():
    found = judged(plan({DB: 0.3}, lock_s=1 / 20, connections=2000, threads=2000, workers=2000).build())
    assert (found.verdict, found.bottlenecks) == ("hidden", [])


def test_t17_spare_cpu_that_something_else_uses_up_is_no_limit():
    options = {WEB: {"competitor": 0.4, "switches": (0.0,)}}
    network = plan({DB: 1.0, WEB: 0.15}, options=options).build()
    assert judged(network, (40, 60, 80)).verdict == "none"
    assert named(judged(network)) == [("db", "cpu", ("db1",))]


@pytest.mark.parametrize("busy", [0.6, 0.75])
def test_bursts_of_a_resource_with_room_are_no_second_bottleneck(busy):
    """Used 75 %, a CPU is saturated in half of the samples of 100 ms."""
    found = judged(plan({DB: 1.0, APP: busy}).build())
    assert (found.verdict, named(found)) == ("single", [("db", "cpu", ("db1",))])


def test_t24_second_database_without_statements_is_not_called_saturated():
    found = judged(plan({DB: 0.5}, nodes={"db": 2}, policies={"db": ("random", (1.0, 1e-9))}).build())
    assert named(found) == [("db", "cpu", ("db1",))]
    assert said(found, "imbalance: db1 saturates while db2 0 % has room")


def test_t25_two_equal_stations_in_series_are_simultaneous_never_alternating():
    for seed in (1, 2, 3):
        found = judged(plan({DB: 1.0, APP: 1.0}).build(), seed=seed)
        assert (found.verdict, found.kind) == ("multi", "simultaneous"), found.evidence
        assert all(v.kind != "alternating" for _, v in found.trials)


def in_turn(mean_s: float):
    """Competitors on the app's and the database's CPU, one after the other; nobody looks at the pools."""
    made = plan({DB: 0.4, APP: 0.4}, workers=2, latency_s=0.002)
    for key, times in zip((APP, DB), turns(made, mean_s, (0.5, 0.5), True), strict=True):
        made.options[key] = {"competitor": 0.9, "switches": times}
    network = made.build()
    return replace(network, pools=tuple(replace(p, measured=False) for p in network.pools))


def test_t6_quick_turns_are_seen_at_10_hz_and_at_1_hz_at_least_not_misjudged():
    network, users = in_turn(0.4), (15, 25, 90, 110, 130)
    fine = judged(network, users)
    assert (fine.verdict, fine.kind) == ("multi", "alternating")
    coarse = judged(network, users, view=View(interval_s=1.0))
    assert coarse.verdict == "hidden"
    assert said(coarse, "sample finer")


def test_t27_database_that_stands_still_now_and_then_is_hidden_not_none():
    """5 s in 20 at every load: the response time at the lowest load is no better, so that throughput follows N/(Z+R0);
    no CPU is used much."""
    made = plan({(tier, "cpu"): 0.05 for tier in TIERS}, connections=2000, threads=2000, workers=2000)
    (times,) = turns(made, 5.0, (0.25,), True)
    made.options[DB] = {"stalls": True, "switches": times}
    found = judged(made.build(), (100, 200, 300))
    assert found.verdict == "hidden"
    assert said(found, "it stood still in")
    assert said(found, "the db tier did nothing then")
