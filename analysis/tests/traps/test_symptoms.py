"""Traps in which something else than the limit saturates, or the limit does not: docs/wrong-bottlenecks.md."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from detector.kernel import CELL_S
from detector.network import TIERS, simulate
from detector.observe import start, trial_name
from detector.plan import View, turns
from networks import LOADS, case_of, frames, judged, judged_frames, named, plan, said, throughput, whole_evidence

pytestmark = pytest.mark.whole

DB, APP, WEB, DISK, LOCK = ("db", "cpu"), ("app", "cpu"), ("web", "cpu"), ("db", "disk"), ("db", "lock")
HELPS, NOTHING = 1.1, 1.05
"""Of the throughput with half as much capacity again; a limit that is relieved gives up to 1.5."""


def gain(network, *keys, users=250):
    """Throughput with these relieved / without."""
    return throughput(network.relieved(set(keys), 1.5), users) / throughput(network, users)


def test_t4_pools_full_above_a_saturated_database_are_symptoms():
    network = plan({DB: 1.0}, connections=12, threads=20, workers=40).build()
    assert gain(network, DB) > HELPS
    assert gain(network, ("app", "pool:connections"), ("app", "pool:threads"), ("web", "pool:workers")) < NOTHING
    verdict = judged(network)
    assert (verdict.verdict, named(verdict)) == ("single", [("db", "cpu", ("db1",))])
    assert said(verdict, "app1 pool (connections) was full")
    assert said(verdict, "a symptom of db1 cpu")


def test_t4_small_pool_limits_while_the_database_idles_and_raising_it_helps():
    network = plan({}, connections=3, inner_latency_s=0.14).build()
    verdict = judged(network)
    assert (verdict.verdict, named(verdict)) == ("single", [("app", "pool", ("app1",))])
    assert throughput(network.relieved({("app", "pool:connections")}, 1.5)) > 1.15 * throughput(network)


def test_t4_pools_full_above_a_lock_that_nobody_sees_are_symptoms_too():
    """A place is held many times as long as at low load: whoever holds it waits for something deeper."""
    network = plan({}, lock_s=1 / 20, connections=12, threads=25).build()
    verdict = judged(network)
    assert (verdict.verdict, verdict.bottlenecks) == ("hidden", [])
    assert said(verdict, "times as long as at low load")
    assert throughput(network.relieved({("app", "pool:connections")}, 1.5)) < 1.05 * throughput(network)


def test_t9_the_hot_replica_is_named_and_the_balancer_with_it():
    balanced = {"db": ("random", (5.0, 1.0, 1.0))}
    network = plan({DB: 0.47}, nodes={"db": 3}, policies=balanced).build()
    assert throughput(replace(network, policies={})) > HELPS * throughput(network)
    verdict = judged(network)
    assert named(verdict) == [("db", "cpu", ("db1",))]
    assert said(verdict, "imbalance: db1 saturates while db2")


def test_t10_host_and_client_that_are_full_leave_no_verdict():
    """The host gives each node half: all of them saturate together, and none of them limits."""
    network = plan({DB: 1.0, APP: 0.95}, options={(t, "cpu"): {"competitor": 0.5, "switches": (0.0,)} for t in TIERS})
    freed = plan({DB: 1.0, APP: 0.95}).build()
    assert throughput(freed) > 1.5 * throughput(network.build())
    trials, samples, interactions = frames(network.build())
    one = samples[
        (samples["node"] == "db1") & (samples["metric"] == "utilization_pct") & (samples["resource"] == "cpu")
    ]
    for node, tier, reason in (("host", "host", "host_saturated"), ("client1", "client", "generator_cpu")):
        full = pd.concat([samples, one.assign(node=node, tier=tier, value=100.0)], ignore_index=True)
        verdict = judged_frames(trials, full, interactions)
        assert (verdict.verdict, verdict.bottlenecks) == ("unknown", [])
        assert all(load.invalid_reasons == reason and v.verdict == "unknown" for load, v in verdict.trials)
    blind = judged_frames(trials, samples, interactions)
    assert any("not validated" in text and "the host's CPU" in text for text in blind.evidence)


def test_t14_disk_that_serves_many_at_a_time_reads_100_pct_and_limits_nothing():
    wide = plan({DISK: 8.0, DB: 1.0}, wide_disk=True).build()
    assert gain(wide, DISK) < NOTHING
    assert judged(wide, (40, 60, 80)).verdict == "none"
    verdict = judged(wide)
    assert (verdict.verdict, named(verdict)) == ("single", [("db", "cpu", ("db1",))])


@pytest.mark.parametrize("queues", [True, False])
@pytest.mark.parametrize("users", [LOADS, LOADS[3:]])
def test_t14_wide_disk_at_95_pct_beside_a_lock_is_never_named(queues, users):
    """A disk of 32 places, each of 20 used, reads 100 %, and nothing else does."""
    wide = {"connections": 2000, "threads": 2000, "workers": 2000, "wide_disk": True}
    network = plan({DISK: 20.0}, lock_s=1 / 20, **wide).build()
    assert gain(network, DISK) < NOTHING
    assert gain(network, LOCK) > HELPS
    verdict = judged(network, users, view=View(queues=queues))
    assert verdict.bottlenecks == []
    assert verdict.verdict == ("hidden" if queues and users == LOADS else "unknown")
    if not queues:
        assert any("sample queue and waiting time of the disk of db1" in text for text in verdict.next)


def test_t14_disk_of_one_place_that_is_full_is_named():
    network = plan({DISK: 1.0}).build()
    assert gain(network, DISK) > HELPS
    assert named(judged(network)) == [("db", "disk", ("db1",))]


def test_t15_saturated_network_is_named_and_without_its_collector_nothing_else_is():
    network = {("web", "network"): 1.0, APP: 0.7}
    assert gain(plan(network).build(), ("web", "network")) > HELPS
    assert gain(plan(network).build(), APP) < NOTHING
    assert named(judged(plan(network).build())) == [("web", "network", ("web1",))]
    unseen = judged(plan(network, options={("web", "network"): {"measured": False}}).build())
    assert (unseen.verdict, unseen.bottlenecks) == ("hidden", [])
    assert said(unseen, "bursts, not a limit") or said(unseen, "no measured resource saturates")


def lock_samples(network, users, **given):
    """What the database counts of its locks: ms of waiting per second, of all statements that wait."""
    row = next(i for i, s in enumerate(network.stations) if s.key == LOCK)
    parts = []
    for i, n in enumerate(users):
        run = simulate(network, n, 20.0, 60.0, 1 + i, 37.0 * i)
        at = np.arange(run.ramp_s, run.end_s)
        waiting = np.maximum(run.record.jobs[row][(at / CELL_S).astype(int)] - 1, 0)
        rows = {"t_s": start(i) + at, "trial": trial_name(case_of(network), i), "value": 1000.0 * waiting}
        parts.append(pd.DataFrame(rows).assign(**given))
    return pd.concat(parts, ignore_index=True)


def test_t16_lock_in_the_database_with_its_cpu_at_30_pct_is_hidden_and_suspected():
    network = plan({DB: 0.3}, lock_s=1 / 20, connections=2000, threads=2000, workers=2000).build()
    assert gain(network, LOCK) > HELPS
    assert gain(network, DB, APP, WEB, DISK) < NOTHING
    trials, samples, interactions = frames(network)
    verdict = judged_frames(trials, samples, interactions)
    assert (verdict.verdict, verdict.bottlenecks) == ("hidden", [])
    given = {"sweep": "trap", "node": "db1", "tier": "db", "resource": "lock", "item": ""}
    waits = lock_samples(network, LOADS, metric="innodb_row_lock_time_per_s", **given)
    suspects = [t for t in whole_evidence(trials, pd.concat([samples, waits]), interactions) if t.startswith("suspect")]
    assert "statements wait for row locks on db1" in suspects[0]
    healthy = whole_evidence(trials, pd.concat([samples, waits.assign(value=0.0)]), interactions)
    assert not any("row locks" in t for t in healthy)


def places_taken(samples, **sizes):
    """What programs tell of their pools beside the share: the number of places that are taken."""
    share = samples[(samples["resource"] == "pool") & (samples["metric"] == "utilization_pct")]
    value = share["value"] * share["item"].map(sizes) / 100
    return pd.concat([samples, share.assign(metric="active", value=value)], ignore_index=True)


def test_t16_locked_tables_fill_the_pools_above_and_are_hidden_not_a_pool():
    """Tables are locked for 3 s of 6 s: all places of the pools are held meanwhile, so that no tier sends anything.
    More places bring nothing. Without their number the pool may be one of two places, and the verdict is unknown; both
    times the advice leads to the lock."""
    sizes, users = {"connections": 13, "threads": 15, "workers": 14}, (30, 110, 150, 190)
    made = plan({DB: 1.0, APP: 0.5, ("middleware", "cpu"): 0.7}, **sizes)
    (times,) = turns(made, 3.0, (0.5,), True)
    made.options[DB] = {"stalls": True, "switches": times}
    network = made.build()
    moving = replace(network, stations=tuple(replace(s, switches=()) if s.stalls else s for s in network.stations))
    assert throughput(moving, 190) > 1.5 * throughput(network, 190)
    larger = replace(network, pools=tuple(replace(p, size=4 * p.size) for p in network.pools))
    assert throughput(larger, 190) < NOTHING * throughput(network, 190)
    trials, samples, interactions = frames(network, users, 40.0)
    found = judged_frames(trials, places_taken(samples, **sizes), interactions)
    assert (found.verdict, found.bottlenecks) == ("hidden", [])
    assert said(found, "is full: a symptom, since the holders of its places wait while the system stands still")
    assert said(found, "between the stops db1 cpu was saturated")
    assert "locks of tables" in found.next[0]
    untold = judged_frames(trials, samples, interactions)
    assert untold.verdict == "unknown"
    assert "locks of tables" in untold.next[0]


def every(period_s, *parts):
    """Switch times: on from the first to the second of each of the `parts`, s, in every period."""
    begin = np.arange(0.0, 4000.0, period_s)
    return [tuple((begin[:, None] + part).ravel()) for part in parts]


def stations(network, **changes):
    """The same with changed stations: resource of the database -> changes."""
    own = [s.resource if s.tier == "db" else "" for s in network.stations]
    found = (replace(s, **changes[r]) if r in changes else s for s, r in zip(network.stations, own, strict=True))
    return replace(network, stations=tuple(found))


PLACES = {"connections": 8, "threads": 15, "workers": 14}


def locked_tables():
    """Of 6.5 s the tables are locked for 3; what locks them takes the database's CPU for 1 s more, so that nothing is
    complete before. Few places, as a system of a fifth of the scale has them."""
    made = plan({DB: 0.35, APP: 0.2, ("middleware", "cpu"): 0.25, WEB: 0.1}, lock_s=0.001, **PLACES)
    lock, other = every(6.5, (0.0, 3.0), (3.0, 4.0))
    return stations(made.build(), lock={"stalls": True, "switches": lock}, cpu={"competitor": 0.97, "switches": other})


def test_t16_locked_tables_are_hidden_though_the_database_works_in_a_part_of_each_pause():
    """As on real nodes: nothing is complete in more than half of the run, but the database does nothing in four fifths
    of these pauses only. Between the stops its CPU is full; without them throughput grows more than with more CPU."""
    network, users = locked_tables(), (100, 450, 550, 650)
    still = stations(network, lock={"switches": ()}, cpu={"switches": ()})
    larger = replace(network, pools=tuple(replace(p, size=round(1.5 * p.size)) for p in network.pools))
    rate = throughput(network, 550)
    assert throughput(still, 550) > 2 * rate
    assert HELPS * rate < throughput(network.relieved({DB}, 1.5), 550) < 1.5 * rate
    assert throughput(larger, 550) < NOTHING * rate
    trials, samples, interactions = frames(network, users, 40.0)
    found = judged_frames(trials, places_taken(samples, **PLACES), interactions)
    assert (found.verdict, found.bottlenecks) == ("hidden", [])
    assert all(v.verdict == "hidden" and v.stopped for _, v in found.trials[1:])
    assert said(found, "of the run it worked off what came meanwhile, and nothing was complete yet")
    assert any("it limits then, but less than they do" in text for _, v in found.trials for text in v.evidence)
    assert "locks of tables" in found.next[0]
    # without the number of places, or the order of the answers, the pool may limit
    done = interactions.assign(response_time_ms=interactions["response_time_ms"].sample(frac=1, random_state=1).values)
    assert judged_frames(trials, samples, interactions).verdict == "unknown"
    assert judged_frames(trials, places_taken(samples, **PLACES), done).verdict == "unknown"


def stops_for(share):
    """A database that stands still for 1 s, again and again, in a share of the time."""
    made = plan({DB: 1.0, APP: 0.3})
    (times,) = every(1.0 / share, (0.0, 1.0))
    return stations(made.build(), cpu={"stalls": True, "switches": times})


def test_a_cpu_that_limits_more_than_its_stops_is_named_beside_them():
    """It stands still in 8 % of the run, and is full in the rest: `hidden` would lead to the smaller part."""
    network, users = stops_for(0.08), (40, 80, 110, 250, 300, 350)
    moving, rate = stations(network, cpu={"switches": ()}), throughput(network, 300)
    assert NOTHING * rate < throughput(moving, 300) < HELPS * rate
    assert throughput(network.relieved({DB}, 1.5), 300) > 1.3 * rate
    verdict = judged(network, users)
    assert (verdict.verdict, named(verdict)) == ("single", [("db", "cpu", ("db1",))])
    assert said(verdict, "it stood still in ")
    assert said(verdict, "it limits, and more than they do")
    assert verdict.trials[-1][1].stopped


def test_t17_spare_cpu_that_something_else_uses_up_is_no_limit():
    options = {WEB: {"competitor": 0.4, "switches": (0.0,)}}
    network = plan({DB: 1.0, WEB: 0.15}, options=options).build()
    assert gain(network, WEB) < NOTHING
    assert judged(network, (40, 60, 80)).verdict == "none"
    assert named(judged(network)) == [("db", "cpu", ("db1",))]


@pytest.mark.parametrize("busy", [0.6, 0.75])
def test_bursts_of_a_resource_with_room_are_no_second_bottleneck(busy):
    """Used 75 %, a CPU is saturated in half of the samples of 100 ms."""
    network = plan({DB: 1.0, APP: busy}).build()
    assert gain(network, APP) < NOTHING
    verdict = judged(network)
    assert (verdict.verdict, named(verdict)) == ("single", [("db", "cpu", ("db1",))])


def test_t24_second_database_without_statements_is_not_called_saturated():
    network = plan({DB: 0.5}, nodes={"db": 2}, policies={"db": ("random", (1.0, 1e-9))}).build()
    assert throughput(replace(network, policies={}), 400) > 1.5 * throughput(network, 400)
    verdict = judged(network)
    assert named(verdict) == [("db", "cpu", ("db1",))]
    assert said(verdict, "imbalance: db1 saturates while db2 0 % has room")


def test_t25_two_equal_stations_in_series_are_simultaneous_never_alternating():
    network = plan({DB: 1.0, APP: 1.0}).build()
    assert max(gain(network, DB), gain(network, APP)) < HELPS < gain(network, DB, APP)
    for seed in (1, 2, 3):
        verdict = judged(network, seed=seed)
        assert (verdict.verdict, verdict.kind) == ("multi", "simultaneous"), verdict.evidence
        assert all(v.kind != "alternating" for _, v in verdict.trials)


def in_turn(mean_s: float):
    """Competitors on the app's and the database's CPU, one after the other; nobody looks at the pools."""
    made = plan({DB: 0.4, APP: 0.4}, workers=2, latency_s=0.002)
    for key, times in zip((APP, DB), turns(made, mean_s, (0.5, 0.5), True), strict=True):
        made.options[key] = {"competitor": 0.9, "switches": times}
    network = made.build()
    return replace(network, pools=tuple(replace(p, measured=False) for p in network.pools))


def test_t6_quick_turns_are_seen_at_10_hz_and_at_1_hz_at_least_not_misjudged():
    """Turns of 0.5 s are seen at every load. Of 0.4 s, samples of 0.1 s have so many edges that one load of three tells
    nothing: the sweep's verdict is unknown then, and says what the others name."""
    network, users = in_turn(0.5), (15, 25, 90, 110, 130)
    assert gain(network, DB, APP, users=130) > HELPS
    fine = judged(network, users)
    assert (fine.verdict, fine.kind) == ("multi", "alternating")
    coarse = judged(network, users, view=View(interval_s=1.0))
    assert coarse.verdict == "unknown", "the two are used all of the time together"
    assert said(coarse, "sample finer")
    quicker = judged(in_turn(0.4), users)
    assert quicker.verdict == "unknown"
    assert said(quicker, "most name app cpu (2 of 3) and db cpu (2 of 3)")


def test_t27_database_that_stands_still_now_and_then_is_hidden_not_none():
    """5 s in 20 at every load: the response time at the lowest load is no better, so that throughput follows N/(Z+R0);
    no CPU is used much."""
    made = plan({(tier, "cpu"): 0.05 for tier in TIERS}, connections=2000, threads=2000, workers=2000)
    (times,) = turns(made, 5.0, (0.25,), True)
    made.options[DB] = {"stalls": True, "switches": times}
    network = made.build()
    moving = replace(network, stations=tuple(replace(s, stalls=False) for s in network.stations))
    assert throughput(moving, 300) > HELPS * throughput(network, 300)
    verdict = judged(network, (100, 200, 300))
    assert verdict.verdict == "hidden"
    assert said(verdict, "it stood still in")
    assert said(verdict, "the db tier did nothing then")


def test_t26_what_the_monitor_costs_changes_neither_verdict_nor_maximum_and_more_of_it_is_told():
    """2 % of the application's work is what collectors and logs may cost; a log of every statement may cost as much as
    the work. Then the application does limit, but only while it is watched."""
    without, watched, detailed = (plan({DB: 1.0, APP: 0.75 * cost}).build() for cost in (1.0, 1.02, 1.75))
    assert throughput(watched) == pytest.approx(throughput(without), rel=0.03)
    assert gain(detailed, APP) > HELPS
    assert gain(without, APP) < NOTHING
    plain, seen, loud = (judged(network) for network in (without, watched, detailed))
    assert named(plain) == named(seen) == [("db", "cpu", ("db1",))]
    assert plain.max_throughput.low <= seen.max_throughput.high
    assert seen.max_throughput.low <= plain.max_throughput.high
    assert named(loud) == [("app", "cpu", ("app1",))]
    assert loud.max_throughput.high < plain.max_throughput.low
