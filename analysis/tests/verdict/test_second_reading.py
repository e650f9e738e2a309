"""Faults that a second reading of the rules showed, each by its principle: who waits through a stop, whom answers
account for, how long a place is held, what is full outside of the system, what fills a CPU, what a low load acquits."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from ntier_analysis.contracts.system import LoadModel, Replicas
from ntier_analysis.statistics.throughput import Interval
from ntier_analysis.verdict.base import base_response
from ntier_analysis.verdict.context import of_loads
from ntier_analysis.verdict.coverage import room_pct
from ntier_analysis.verdict.data import SweepVerdict
from ntier_analysis.verdict.load import Bottleneck
from ntier_analysis.verdict.places import held_longer
from ntier_analysis.verdict.replicas import with_replicas
from ntier_analysis.verdict.saturation import saturations
from ntier_analysis.verdict.stops import pauses_in_use, stopped_tier
from ntier_analysis.verdict.sweep import judge_sweep
from ntier_analysis.verdict.tables import stood_still
from ntier_analysis.verdict.trial import judge_trial
from ntier_analysis.verdict.visits import with_visits

from . import test_rules
from .test_foreign_data import said
from .test_principles import CELLS, NODES, RUN_S, limited, named, resource, trial
from .test_stops import PAUSES, STILL, tiers, used, visited

ALL = np.ones(CELLS)
SECONDS = np.arange(60)


def swept(*trials):
    return judge_sweep("s", "1/1/1/1M", list(trials))


def beyond(*hot, at=20.0, users=(200, 250, 300), nodes=NODES):
    """Loads that complete so much."""
    return [trial(n, at, n / at - 7, *hot, nodes=nodes) for n in users]


# ---- a stop has someone who waits through it -----------------------------------------------------------------------

ORDER = ("web", "app", "db")
BATCH = SECONDS % 10 >= 8


def each_second(node, values):
    return replace(resource(node, mean=float(np.mean(values))), interval_s=1.0, values=values, indicator=np.zeros(60))


def batches():
    """The database works for 2 s of 10; the tiers before it all the time."""
    steady = [each_second(n, np.full(60, 30.0)) for n in ("web1", "app1")]
    return [*steady, each_second("db1", np.where(BATCH, 40.0, 0.3))]


def in_batches(users, response_s):
    nodes = {"web1": "web", "app1": "app", "db1": "db"}
    t = trial(users, users / (7 + response_s), response_s, *batches(), nodes=nodes)
    return replace(t, load=stood_still(t.load, t.saturations, ORDER), order=ORDER)


def test_a_deepest_tier_that_works_in_batches_has_not_stopped_if_nobody_waits_for_it():
    """Who waited for the end of 8 s would do so for 3.2 s in the mean of all; answers take 60 ms."""
    found = swept(*(in_batches(n, 0.06) for n in (100, 300, 500)))
    assert (found.verdict, named(found)) == ("none", [])
    assert len(pauses_in_use(batches(), 14.0, 0.0, ORDER)) == 6
    waits = in_batches(300, 2.0)
    assert waits.load.paused == pytest.approx(0.8)
    few = replace(trial(8, 80.0, 0.1).load, model=LoadModel.WORK, think_s=0.0)  # 8 workers wait for 48 s in all: 80 ms
    assert stood_still(few, batches(), ORDER).paused == pytest.approx(0.8)
    assert stood_still(replace(few, response_s=0.03), batches(), ORDER).paused == 0.0


@pytest.mark.parametrize(("ends_s", "stopped"), [(0.05, False), (4.1, True)])
def test_a_tier_behind_a_cache_has_stopped_only_if_someone_waits_for_its_end(ends_s, stopped):
    """One of ten interactions that are begun in the pauses needs the database; the cache answers the others."""
    begun = np.arange(0.0, 60.0, 0.07)
    still = ((begun[:, None] >= PAUSES[:, 0]) & (begun[:, None] < PAUSES[:, 1])).any(axis=1)
    spans = np.column_stack([begun, begun + np.where(still & (np.arange(len(begun)) % 10 == 0), ends_s, 0.05)])
    spans = spans[np.argsort(spans[:, 1])]
    found = [used("web1", 30, 20), used("cache1", 40, 25), visited(1, 5.0, True)]
    load = replace(trial(100, 14.0, 0.1).load, spans=spans, done_s=spans[:, 1])
    assert (len(stood_still(load, found, ("web", "cache", "db")).pauses) > 0) == stopped
    untold = replace(load, spans=None)  # how many visit the database their mean does not tell
    assert len(stood_still(untold, found, ("web", "cache", "db")).pauses)


def test_pauses_that_fill_the_run_convict_no_cpu_that_idles():
    """The application is used 30 % throughout; if pauses of 80 % count as use, any CPU is full."""
    begin = np.arange(0.0, 60.0, 10.0)
    pauses = np.column_stack([begin, begin + 8.0])
    load = replace(test_rules.load(response_s=4.0), pauses=pauses)
    steady = [resource(n, mean=30.0) for n in ("web1", "app1", "middleware1")]
    db = replace(resource("db1", mean=8.0), values=np.where(np.arange(CELLS) % 100 >= 80, 40.0, 0.0))
    v = judge_trial(load, [*steady, db], NODES, 0.05)
    assert (v.verdict, v.bottlenecks, v.stopped) == ("hidden", [], ("db",))


def test_nodes_of_one_tier_that_were_sampled_at_different_intervals_are_seen_on_one_clock():
    still = STILL.reshape(60, 10).all(axis=1)
    slow = replace(used("db2", 60, 0), interval_s=1.0, values=np.where(still, 0.0, 60.0), indicator=np.zeros(60))
    assert stopped_tier(PAUSES, tiers(used("db1", 60, 0), slow), 0.0) == "db"
    assert stopped_tier(PAUSES, [*tiers(slow), used("db1", 60, 0)], 0.0) == "db"
    found = pauses_in_use(tiers(used("db1", 60, 0), slow), 20.0, 0.0, ("web", "app", "middleware", "db"))
    assert found == pytest.approx(PAUSES)


# ---- nothing limits ------------------------------------------------------------------------------------------------


def test_nothing_limits_only_if_the_answers_account_for_the_users():
    """800 users complete 77/s, where 113/s are expected, and those who are answered are answered at once."""
    found = swept(*(trial(n, x, 0.1) for n, x in ((100, 14.1), (200, 28.0), (400, 45.0), (800, 77.0))))
    assert (found.verdict, found.at_least) == ("unknown", True)
    assert said(found, "the answers account for 6")
    assert found.next[0].startswith("run the loads beyond the knee longer")
    assert swept(*(trial(n, n / 7.1, 0.1) for n in (100, 200, 400, 800))).verdict == "none"


def test_few_interactions_that_are_fewer_by_chance_still_follow_the_law():
    """60 of the 71 that were to be expected in a minute."""
    assert swept(*(trial(n, 0.845 * n / 7.1, 0.1) for n in (2, 4, 8))).verdict == "none"


def test_a_cold_lowest_load_is_no_base():
    """100 users are answered in 0.8 s, 200 in 0.12. At 640 an answer takes 1 s, and the CPU is full."""
    full = resource("app1", ALL, 99)
    found = swept(
        trial(100, 100 / 7.8, 0.8), trial(200, 200 / 7.12, 0.12), trial(400, 400 / 7.15, 0.15),
        trial(640, 80.0, 1.0, full),
    )  # fmt: skip
    assert (found.verdict, named(found)) == ("single", [("app", "cpu")])
    assert [v.verdict for _, v in found.trials] == ["none", "none", "none", "single"]
    assert said(found, "100 users were answered in 800 ms, more of them in 120 ms")


def test_what_chance_makes_of_a_response_time_makes_no_load_cold():
    few = [trial(n, n / (0.2 + r), r, think_s=0.2) for n, r in ((1, 0.30), (2, 0.27))]
    base = base_response([replace(t, load=replace(t.load, end_s=10.0)) for t in few])
    assert (base.response_s, base.cold) == (0.30, {})


def test_the_answers_of_a_load_that_leaves_most_without_one_are_no_base():
    """At 3,000 users only those are answered who are so at once."""
    loads = [trial(100, 14.0, 0.5), trial(200, 28.0, 0.5), trial(3000, 30.0, 0.05)]
    assert base_response(loads).response_s == 0.5


# ---- how long a place in a pool is held ----------------------------------------------------------------------------

TWO = NODES | {"db2": "db"}


def connections(item, mean, visits=float("nan"), node="middleware1"):
    seen = resource(node, ALL if mean >= 95 else None, mean, "pool", visits_per_s=visits)
    return replace(seen, item=item)


def balanced_otherwise(counted, low=(1.0, 0.0), high=(0.5, 0.5), times=2.34):
    """Of ties the first replica gets all requests at low load, and a half beyond the knee, where a place is held 2.34
    times as long as there: 1.17 times, by the interactions of the whole system."""
    some = []
    for n, x in ((30, 30 / 7.02), (60, 60 / 7.02), (200, 20.0), (250, 20.0), (300, 20.0)):
        shares, held = (high, times) if x == 20.0 else (low, 1.0)
        base = 100 / (20.0 * times * high[0])
        pools = [
            connections(item, min(100.0, base * held * x * share + 0.01), x * share if counted else float("nan"))
            for item, share in zip(("db1", "db2"), shares, strict=True)
        ]
        some.append(trial(n, x, max(0.02, n / x - 7), *pools, nodes=TWO))
    return swept(*some)


def test_a_place_is_held_for_a_request_of_its_pool_not_for_one_of_the_whole_system():
    assert balanced_otherwise(counted=True).verdict == "hidden"
    untold = balanced_otherwise(counted=False)
    assert (untold.verdict, named(untold)) == ("unknown", [])
    assert said(untold, "a place in it is held 1.2 to 2.4 times as long as at low load")


def test_a_pool_that_gets_more_of_the_requests_limits_if_they_hold_their_places_as_long():
    """By the interactions of the whole system a place is held twice as long."""
    more = balanced_otherwise(counted=True, low=(0.5, 0.5), high=(1.0, 0.0), times=1.0)
    assert (more.verdict, named(more)) == ("single", [("middleware", "pool")])


def test_alike_pools_that_were_not_measured_at_every_load_tell_nothing():
    low = trial(30, 30 / 7.02, 0.02, connections("db1", 20.0), nodes=TWO)
    high = trial(200, 20.0, 3.0, connections("db1", 100.0), connections("db2", 100.0), nodes=TWO)
    held = held_longer([(low.load, low.saturations)], [(high.load, high.saturations)])
    assert np.isnan(held["middleware1", "pool", "db1"].most)
    assert ("middleware1", "pool", "db2") not in held


def test_requests_are_counted_under_a_pools_name_or_for_its_node():
    counts = [("middleware1", "statements_per_s", "db1", 7.0), ("web1", "requests_per_s", "", 5.0)]
    rows = pd.DataFrame(
        [{"t_s": float(t), "node": n, "metric": m, "item": i, "value": v} for n, m, i, v in counts for t in range(3)]
    )
    some = [connections("db1", 50.0), connections("db2", 50.0), connections("workers", 50.0, node="web1"),
            resource("middleware1"), resource("app1"), resource("web1", name="disk")]  # fmt: skip
    visits = [s.visits_per_s for s in with_visits(some, rows, 0.0, 60.0)]
    assert visits == pytest.approx([7.0, np.nan, 5.0, 7.0, np.nan, np.nan], nan_ok=True)
    assert with_visits(some, rows, 70.0, 80.0) is some


def leaking(*at_low, lowest=20.0):
    """A pool of 10 places, 2 of which are leaked, above a lock that completes 40/s."""
    low = [
        trial(n, n / 7.02, 0.02, replace(pool, values=np.where(np.arange(CELLS) % 10 == 0, lowest, pool.values)))
        for n, pct in at_low
        for pool in [resource("app1", mean=pct, name="pool")]
    ]
    return swept(*low, *beyond(resource("app1", ALL, 100, "pool"), at=40.0, users=(400, 500, 600)))


@pytest.mark.parametrize("at_low", [((35, 21.0), (70, 22.0)), ((70, 22.0),)])
def test_places_that_are_taken_whatever_is_asked_for_are_no_work(at_low):
    """2.1 places are taken at 5/s, 2.2 at 10/s and 10 at 40/s: held 1.1 times as long as at low load, or ten times."""
    found = leaking(*at_low)
    assert (found.verdict, named(found)) == ("unknown", [])


def test_a_pool_of_which_all_that_is_taken_at_low_load_is_taken_always_tells_nothing():
    found = leaking((35, 22.0), (70, 22.0), lowest=22.0)
    assert (found.verdict, named(found)) == ("unknown", [])
    assert said(found, "its use at low load does not tell how long a place is held")


def test_a_pool_used_in_proportion_to_the_throughput_limits_though_some_places_are_always_taken_by_requests():
    found = leaking((35, 12.5), (70, 25.0), lowest=10.0)
    assert (found.verdict, named(found)) == ("single", [("app", "pool")])


@pytest.mark.parametrize(("used_pct", "verdict"), [(98, "single"), (92, "unknown")])
def test_a_pool_of_which_nothing_is_known_joins_no_cause_without_room(used_pct, verdict):
    """All places of the database's pool are open, and no low load tells why."""
    cpu = replace(resource("app1", ALL, used_pct), values=np.full(CELLS, float(used_pct)))
    found = limited(cpu, resource("db1", ALL, 100, "pool"))
    assert (found.verdict, named(found)) == (verdict, [("app", "cpu")] if verdict == "single" else [])


def test_a_full_pool_beside_a_full_cpu_has_no_room_though_few_of_its_places_are_taken():
    """It is the sum of several, in one of which requests wait; its places are held as briefly as at low load."""
    pool = resource("app1", mean=85.0, name="pool")
    low = [trial(n, n / 7.02, 0.02, replace(pool, utilization_mean_pct=85.0 * n / 140.4)) for n in (30, 60)]
    full = replace(resource("app1", ALL, 100, "pool"), utilization_mean_pct=85.0)
    found = swept(*low, *beyond(full, resource("web1", ALL, 99)))
    assert (found.verdict, named(found)) == ("multi", [("app", "pool"), ("web", "cpu")])


# ---- what is full outside of the system ----------------------------------------------------------------------------


def outside(name="network", node="client1", tier="client", mean=99.0, **given):
    return resource(node, ALL, mean, name, tier=tier, **given)


def test_nothing_is_hidden_while_the_generators_network_is_full():
    found = limited(outside())
    assert (found.verdict, named(found), found.at_least) == ("unknown", [], True)
    assert said(found, "client1 network is used 99 %, and that is not the system's own")
    assert found.next[0] == "give client1 network more room: what the system can do does not show"
    assert limited(outside(mean=85.0)).verdict == "hidden"
    named_still = limited(outside(), resource("db1", ALL, 100))
    assert (named_still.verdict, named(named_still), named_still.at_least) == ("single", [("db", "cpu")], False)


@pytest.mark.parametrize(("queue", "verdict"), [(90.0, "unknown"), (float("nan"), "hidden")])
def test_a_disk_of_the_host_is_full_only_by_its_queue(queue, verdict):
    low = (outside("disk", "host", "host", 30.0, queue=0.1, wait_ms=2.0),)
    found = limited(outside("disk", "host", "host", 99.0, queue=queue, wait_ms=60.0), low=low)
    assert found.verdict == verdict
    assert limited(outside("pool"), low=()).verdict == "hidden"  # perhaps of what waits in the system


# ---- what fills a CPU ----------------------------------------------------------------------------------------------


def spinning(*, collected=0.0, visits=(float("nan"),) * 3, **given):
    """By its use at low load, 60/s need 39 % of the database's CPU; 98 % are used."""
    values = ((100, 9.0, visits[0]), (200, 18.0, visits[1]))
    low = [trial(n, n / 7.02, 0.02, resource("db1", mean=pct, visits_per_s=v), **given) for n, pct, v in values]
    full = resource("db1", ALL, 98, visits_per_s=visits[2], collections=np.full(60, collected))
    return swept(*low, *beyond(full, at=60.0, users=(600, 700, 800), **given))


def test_a_cpu_that_is_used_twice_as_much_as_the_requests_need_is_not_known_to_limit():
    found = spinning()
    assert (found.verdict, named(found)) == ("unknown", [])
    assert said(found, "db1 cpu is used 98 %, and by its use at low loads what is completed needs 3")


@pytest.mark.parametrize("explained", [{"collected": 30.0}, {"visits": (14.0, 28.0, 120.0)}])
def test_collections_and_more_requests_to_the_node_explain_what_a_cpu_is_used_more(explained):
    assert named(spinning(**explained)) == [("db", "cpu")]


def test_a_replica_that_got_the_work_of_the_others_spins_for_nothing():
    """Balanced at low load, all reads go to the first of three beyond the knee."""
    nodes = NODES | {"db2": "db", "db3": "db"}
    low = [trial(n, n / 7.02, 0.02, *(resource(f"db{i}", mean=0.75 * n / 7.02) for i in (1, 2, 3)), nodes=nodes)
           for n in (30, 60)]  # fmt: skip
    hot = [resource("db1", ALL, 98), *(resource(f"db{i}", mean=1.0) for i in (2, 3))]
    found = swept(*low, *beyond(*hot, nodes=nodes, at=43.0, users=(430, 500, 600)))
    assert [b.nodes for b in found.bottlenecks] == [("db1",)]


def test_a_cpu_that_is_throttled_in_every_period_has_no_room():
    """The kernel leaves a part of its quota unused."""
    throttled = replace(resource("db1", ALL, 62), by_throttling=True, values=np.full(CELLS, 62.0))
    assert (room_pct(throttled, ALL), throttled.full_pct) == (100.0, 100.0)
    found = limited(throttled)
    assert (found.verdict, named(found)) == ("single", [("db", "cpu")])
    both = limited(throttled, resource("app1", ALL, 99))
    assert (both.verdict, named(both)) == ("multi", [("app", "cpu"), ("db", "cpu")])
    room = replace(throttled, by_throttling=False, indicator=np.zeros(CELLS))
    assert (room_pct(room, ALL), room.full_pct) == (62.0, 62.0)


# ---- what low loads acquit -----------------------------------------------------------------------------------------


def acquitted(first, second):
    """The application is used so much at 30 and 60 users; beyond the knee it is full, as the database is."""
    low = [trial(n, n / 7.02, 0.02, resource("app1", mean=pct)) for n, pct in ((30, first), (60, second))]
    return swept(*low, *beyond(resource("app1", ALL, 100), resource("db1", ALL, 100)))


@pytest.mark.parametrize(
    ("first", "second", "verdict", "names"),
    [
        (95.0, 42.0, "unknown", []),
        (84.0, 92.0, "single", [("db", "cpu")]),
        (21.0, 42.0, "multi", [("app", "cpu"), ("db", "cpu")]),
    ],
)
def test_one_odd_low_load_acquits_nothing(first, second, verdict, names):
    """Full at 30 users, since it compiles; at 60 its use is that of requests which fill it beyond the knee. If another
    program fills it, each load says so, though one of them reads 84 %."""
    found = acquitted(first, second)
    assert (found.verdict, named(found)) == (verdict, names)
    assert said(found, "app1 cpu is already full at a load that loses nothing") == (verdict == "unknown")


def test_disks_are_acquitted_by_who_waits_for_them_whatever_their_use_at_low_load_says():
    low = [trial(n, n / 7.02, 0.02, resource("app1", mean=pct, name="disk")) for n, pct in ((30, 25.0), (60, 91.0))]
    context = of_loads([(t.load, t.saturations) for t in low], [(t.load, t.saturations) for t in beyond()])
    assert (context.full_anyway, context.full_at_times) == ({("app", "disk")}, set())


# ---- disks ---------------------------------------------------------------------------------------------------------


def shard(node, mean, queue, wait_ms):
    return resource(node, ALL if mean >= 90 else None, mean, "disk", queue=queue, wait_ms=wait_ms)


def test_a_disk_for_which_nobody_waits_is_not_full_since_others_of_its_tier_are():
    low = [trial(n, n / 7.02, 0.02, *(shard(db, 40, 0.4, 4.0) for db in ("db1", "db2")), nodes=TWO) for n in (30, 60)]
    high = [
        trial(n, 20.0, n / 20 - 7, shard("db1", 92, 3.0, 4.2), shard("db2", 99, 0.9 * (n - 140), 40.0), nodes=TWO)
        for n in (200, 250, 300)
    ]
    found = swept(*low, *high)
    assert [(b.tier, b.resource, b.nodes) for b in found.bottlenecks] == [("db", "disk", ("db2",))]
    assert said(found, "0 % at this one")
    even = [
        trial(n, 20.0, n / 20 - 7, *(shard(db, 99, 0.45 * (n - 140), 40.0) for db in ("db1", "db2")), nodes=TWO)
        for n in (200, 250, 300)
    ]
    assert [b.nodes for b in swept(*low, *even).bottlenecks] == [("db1", "db2")]


def read(metric, value, item="sda"):
    return pd.DataFrame({"t_s": SECONDS + 0.5, "value": value}).assign(
        node="db1", tier="db", resource="disk", item=item, metric=metric, source="sysstat"
    )


def test_the_time_of_a_request_to_a_disk_is_the_mean_of_requests_not_of_seconds():
    """For 30 s 20 reads of 1 ms, then one write of 9 ms a second: 1.38 ms."""
    early = SECONDS < 30
    rows = [read("utilization_pct", 30.0), read("wait_ms", np.where(early, 1.0, 9.0))]
    rates = read("operations_per_s", np.where(early, 20.0, 1.0))
    (counted,) = saturations(pd.concat([*rows, rates]), 0.0, RUN_S)
    assert counted.wait_ms == pytest.approx(29 / 21)
    (uncounted,) = saturations(pd.concat(rows), 0.0, RUN_S)
    assert uncounted.wait_ms == pytest.approx(5.0)
    (idle,) = saturations(pd.concat([rows[0], read("wait_ms", 0.0), rates]), 0.0, RUN_S)
    assert np.isnan(idle.wait_ms)
    assert saturations(rates, 0.0, RUN_S) == []


# ---- what an added node refutes ------------------------------------------------------------------------------------


def of(topology, maximum, *nodes, resource="cpu"):
    at = Interval(maximum, 0.98 * maximum, 1.02 * maximum, 0.01 * maximum, 4)
    limit = Bottleneck("db", resource, nodes, 1.0, 0.9, 1.0)
    return SweepVerdict(topology, topology, "single", "stable", [limit], at, False)


def witnessed(small, large, kind=None):
    kinds = {small.sweep: {"db": kind}} if kind else None
    return with_replicas([small, large], {}, None, kinds)[0]


def test_a_gain_that_was_not_to_be_expected_refutes_nothing():
    """Each node does all writes, and all are full again; only a hot one limits; the added one got no work."""
    one, both = of("1/1/1/1M", 100.0, "db1"), of("1/1/1/2M", 101.0, "db1", "db2")
    assert witnessed(one, both, Replicas.ALL_WRITE).verdict == "single"
    hot = of("1/1/1/2M", 100.0, "db2")
    assert witnessed(hot, of("1/1/1/3M", 101.0, "db2")).verdict == "single"
    assert witnessed(one, of("1/1/1/2M", 101.0, "db1")).verdict == "single"
    text = witnessed(one, of("1/1/1/2M", 101.0, "db1")).evidence[-1]
    assert text.endswith("they took none of its work, so it says nothing of the verdict")


def test_a_gain_that_was_to_be_expected_and_did_not_come_refutes():
    """Nodes that share the work are all full again; or something else is full now, so that the named one was
    relieved."""
    one, both = of("1/1/1/1M", 100.0, "db1"), of("1/1/1/2M", 101.0, "db1", "db2")
    for kind in (Replicas.BALANCED, Replicas.PARTITIONED, None):
        assert witnessed(one, both, kind).verdict == "unknown"
    assert witnessed(one, of("1/1/1/2M", 101.0, "db1", "db2", resource="disk"), Replicas.ALL_WRITE).verdict == "unknown"
    other = replace(both, bottlenecks=[Bottleneck("app", "cpu", ("app1",), 1.0, 0.9, 1.0)])
    assert witnessed(one, other, Replicas.ALL_WRITE).verdict == "unknown"
