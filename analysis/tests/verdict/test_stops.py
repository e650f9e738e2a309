"""Pauses between completions: which tier stopped, and what explains it."""

from dataclasses import replace

import numpy as np
import pytest
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.verdict.causes import Causes
from ntier_analysis.verdict.context import Context, of_loads
from ntier_analysis.verdict.disks import Disk, Room
from ntier_analysis.verdict.exact import possible
from ntier_analysis.verdict.load import TIERS
from ntier_analysis.verdict.standstill import _with_holders
from ntier_analysis.verdict.stops import (
    ends_in_order,
    full_pools,
    held_behind,
    pauses_behind,
    pauses_between,
    pauses_in_use,
    shows_pauses,
    stopped_part,
    stopped_tier,
    together,
    workers,
)
from ntier_analysis.verdict.trial import judge_trial
from ntier_analysis.verdict.without import reliefs

from .test_rules import NODES, load, saturation

PAUSES = np.array([[10.0, 14.0], [30.0, 33.0], [50.0, 54.0]])
T = (np.arange(600) + 0.5) / 10
STILL = ((T[:, None] >= PAUSES[:, 0]) & (T[:, None] < PAUSES[:, 1])).any(axis=1)


def used(node, pct, in_pauses, saturated=False, resource="cpu"):
    """A resource that is used `pct` outside the pauses and `in_pauses` within; `saturated`: within."""
    seen = saturation(node, 0.0, resource=resource, mean=pct)
    marks = (STILL & saturated).astype(float)
    return replace(seen, values=np.where(STILL, in_pauses, pct).astype(float), indicator=marks)


def tiers(db, *more):
    return [used("web1", 30, 20), used("app1", 40, 25), used("middleware1", 50, 30), db, *more]


def test_pauses_are_gaps_in_which_ten_completions_were_to_be_expected():
    done = np.concatenate([np.arange(0, 20, 0.05), np.arange(24, 60, 0.05)])
    assert pauses_between(done, 0.0, 60.0) == pytest.approx(np.array([[19.95, 24.0]]))
    slow = np.arange(0.5, 60.0, 2.0)  # one every 2 s: gaps of 2 s are no pauses
    assert len(pauses_between(slow, 0.0, 60.0)) == 0
    assert len(pauses_between(np.array([]), 0.0, 60.0)) == 0


@pytest.mark.parametrize(("begun", "pauses"), [(22.0, 0), (19.99, 1)])
def test_while_all_users_think_nothing_stands_still(begun, pauses):
    """Four seconds without an answer, in which nobody waits, or one who was there before."""
    done = np.concatenate([np.arange(0, 20, 0.05), np.arange(24, 60, 0.05)])
    spans = np.column_stack([done - 0.01, done])
    spans[np.searchsorted(done, 24.0), 0] = begun if pauses else 23.9
    assert len(pauses_between(done, 0.0, 60.0, spans)) == pauses


def test_the_tier_that_does_nothing_while_the_one_before_it_sends_has_stopped():
    assert stopped_tier(PAUSES, tiers(used("db1", 60, 0)), 0.0) == "db"


def test_a_tier_that_gets_nothing_has_not_stopped():
    """A competitor takes the application's CPU, which passes nothing on: the database is idle, not stopped."""
    found = [
        used("web1", 30, 20),
        used("app1", 40, 100, saturated=True),
        used("middleware1", 50, 0),
        used("db1", 60, 0),
    ]
    assert stopped_tier(PAUSES, found, 0.0) is None


def test_a_saturated_disk_explains_an_idle_cpu():
    assert stopped_tier(PAUSES, tiers(used("db1", 60, 0), used("db1", 30, 100, True, "disk")), 0.0) is None


@pytest.mark.parametrize(("mean", "verdict"), [(94.0, "hidden"), (99.0, "single")])
def test_stops_limit_rather_than_a_cpu_that_has_room_beside_them(mean, verdict):
    web = saturation("web1", 0.9, mean=mean)
    web = replace(web, values=np.where(STILL, 80.0, mean), indicator=np.where(STILL, 0.0, web.indicator))
    found = [web, *tiers(used("db1", 60, 0))[1:]]
    v = judge_trial(load(pauses=PAUSES), found, NODES, 0.05)
    assert v.verdict == verdict
    assert any(text.startswith("it stood still in 18 % of the run (3 times): the db tier") for text in v.evidence)
    assert any("it limits less than the stops" in text for text in v.evidence) == (verdict == "hidden")


@pytest.mark.parametrize(("saturated", "verdict"), [(True, "none"), (False, "unknown")])
def test_pauses_without_a_tier_that_stops_prove_nothing_hidden(saturated, verdict):
    """Few users wait for one long request: the CPU that serves it is saturated meanwhile, and throughput follows the
    law. If nothing is, and every tier goes on, it is not known what held them up."""
    db = used("db1", 60, 100, saturated) if saturated else used("db1", 60, 30)
    v = judge_trial(load(pauses=PAUSES, response_s=0.1), tiers(db), NODES, 0.1)
    assert v.verdict == verdict
    assert any(text.startswith("it stood still in 18 %") for text in v.evidence)


def each_second(node, pct, in_pauses):
    """CPU sampled once a second."""
    still = STILL.reshape(60, 10).all(axis=1)
    seen = saturation(node, 0.0, mean=pct)
    return replace(seen, interval_s=1.0, values=np.where(still, in_pauses, pct).astype(float), indicator=np.zeros(60))


@pytest.mark.parametrize(("web_in_pauses", "seen"), [(20, True), (0, False)])
def test_a_standstill_shows_in_samples_of_a_second_if_someone_still_sends(web_in_pauses, seen):
    """Without single interactions, a tier that does nothing while the first one works on stands still; if all do
    nothing, the users may all think."""
    found = [each_second(n, 40, web_in_pauses) for n in ("web1", "app1")] + [each_second("db1", 60, 0)]
    pauses = pauses_in_use(found, 20.0, 0.0, ("web", "app", "db"))
    assert [tuple(p) for p in pauses] == ([tuple(p) for p in PAUSES] if seen else [])


def visited(seed, per_s, stops):
    """CPU of a database (60 s at 10 Hz) that is visited at random, for a moment each time, and not in the `stops`."""
    visits = np.random.default_rng(seed).random(600) < 1 - np.exp(-per_s / 10)
    seen = saturation("db1", 0.0, mean=20.0)
    return replace(seen, values=np.where(visits & ~(STILL & stops), 60.0, 0.0), indicator=np.zeros(600))


@pytest.mark.parametrize("seed", range(5))
def test_a_stop_behind_a_cache_shows_in_idle_spans_that_are_no_chance(seed):
    """The cache goes on answering, so that there is no pause between completions: what tells is that the database is
    visited five times a second, and then for three seconds not at all. If it is visited seldom, spans as long are
    chance."""
    before = [used("web1", 30, 20), used("cache1", 40, 25)]
    order = ("web", "cache", "db")
    stopped = pauses_behind([*before, visited(seed, 5.0, True)], 15.0, 0.0, order)
    assert len(stopped) == 3
    assert np.abs(stopped - PAUSES).max() < 1.5
    for per_s in (1.0, 5.0):
        assert not len(pauses_behind([*before, visited(seed, per_s, False)], 15.0, 0.0, order))
    seconds = [each_second(n, 40, 20) for n in ("web1", "cache1")] + [each_second("db1", 60, 0)]
    assert not len(pauses_behind(seconds, 15.0, 0.0, order))  # how often it is visited does not show
    full = used("cache1", 40, 100, saturated=True)
    assert not len(pauses_behind([before[0], full, visited(seed, 5.0, True)], 15.0, 0.0, order))


def stopped_below_a_pool(places, in_pauses=0, resource="cpu"):
    """The database stops; the application's connections are all taken throughout, so that nothing is sent before it."""
    pool = saturation("app1", 1.0, resource="pool", item="connections", mean=100.0)
    pool = replace(pool, places=places, values=np.full(600, 100.0))
    db = used("db1", 50, in_pauses) if resource == "cpu" else used("db1", 50, 0)
    more = [used("db1", 60, in_pauses, resource=resource)] if resource != "cpu" else []
    return [pool, used("web1", 30, 5), used("app1", 40, 2), used("middleware1", 50, 0), db, *more]


@pytest.mark.parametrize(("places", "verdict"), [(60.0, "hidden"), (2.0, "unknown"), (float("nan"), "unknown")])
def test_a_pool_stops_nobody_who_has_a_place_in_it(places, verdict):
    """All of 60 holders wait at once: something behind stopped. Two may each wait for a call of its own, and more
    places would help. How many places a pool has must be known."""
    v = judge_trial(load(pauses=PAUSES), stopped_below_a_pool(places), NODES, 0.05)
    assert v.verdict == verdict
    assert v.stopped == ("middleware", "db")
    assert any(
        "app1 pool (connections) was full then, and the tiers behind it did nothing" in text for text in v.evidence
    )


def test_a_pool_whose_places_are_held_as_briefly_as_at_low_load_limits_beside_stops():
    context = Context(held_longer={("app1", "pool", "connections"): 1.0})
    v = judge_trial(load(pauses=PAUSES), stopped_below_a_pool(60.0), NODES, 0.05, context)
    assert (v.verdict, [b.resource for b in v.bottlenecks]) == ("single", ["pool"])


@pytest.mark.parametrize("works", [{"in_pauses": 40}, {"in_pauses": 60, "resource": "disk"}])
def test_holders_of_a_pool_that_something_deeper_works_for_are_not_stopped(works):
    assert held_behind(PAUSES, stopped_below_a_pool(60.0), 0.0) is not None
    assert held_behind(PAUSES, stopped_below_a_pool(60.0, **works), 0.0) is None


@pytest.mark.parametrize(("share", "said"), [(0.9, True), (0.5, False)])
def test_what_is_full_between_the_stops_is_told(share, said):
    """A database that works off for 6 s what a lock held up for 4 limits in that time."""
    pool, *rest, db = stopped_below_a_pool(60.0)
    marks = (~STILL & (np.arange(600) % 10 < 10 * share)).astype(float)
    v = judge_trial(load(pauses=PAUSES), [pool, *rest, replace(db, indicator=marks)], NODES, 0.05)
    assert v.verdict == "hidden"
    assert any(text.startswith("between the stops db1 cpu was saturated in 90 %") for text in v.evidence) == said


def test_a_full_pool_shows_that_someone_waits_where_no_tier_sends():
    found = [each_second(n, 40, 0) for n in ("web1", "app1")] + [each_second("db1", 60, 0)]
    pool = replace(saturation("app1", 1.0, resource="pool", mean=100.0), places=60.0, values=np.full(600, 100.0))
    assert not len(pauses_in_use([each_second("web1", 1, 1), *found[1:]], 20.0, 0.0, ("web", "app", "db")))
    assert not len(pauses_in_use(found, 20.0, 0.0, ("web", "app", "db")))
    assert len(pauses_in_use([*found, pool], 20.0, 0.0, ("web", "app", "db"))) == len(PAUSES)


# ---- what holds up the others by its own work ----------------------------------------------------------------------

LATE = ((T[:, None] >= PAUSES.mean(axis=1)) & (T[:, None] < PAUSES[:, 1])).any(axis=1)


def collects(between, first, second, mean=80.0, bursts=True):
    """The application stops all others: two of its four cores end what they serve in the first half of each pause, and
    collect in the second. The database gets nothing meanwhile. `bursts`: between the pauses it is full at times; else
    never."""
    full = (np.arange(600) % 20 < 20 * (between - 40) / 60 - 1e-9) & ~STILL & bursts
    share = full[~STILL].mean()
    rest = np.where(full, 100.0, (between - 100 * share) / (1 - share))
    values = np.where(LATE, second, np.where(STILL, first, rest)).astype(float)
    app = replace(saturation("app1", 0.0, mean=mean), values=values, indicator=full.astype(float))
    return [used("web1", 30, 20), app, used("middleware1", 50, 5), used("db1", 60, 0)]


@pytest.mark.parametrize(
    ("between", "first", "second", "verdict"),
    [(85.0, 40.0, 100.0, "single"), (85.0, 70.0, 30.0, "unknown"), (60.0, 40.0, 60.0, "hidden")],
)
def test_a_cpu_that_works_to_the_end_of_the_pauses_holds_up_the_others(between, first, second, verdict):
    """Pauses are 18 % of the run. If they count as use, it is used 88 %: it limits if it does not do less and less. At
    67 % it has room even so, and only sends."""
    v = judge_trial(load(pauses=PAUSES), collects(between, first, second), NODES, 0.05)
    assert (v.verdict, [(b.tier, b.nodes) for b in v.bottlenecks]) == (
        verdict,
        [("app", ("app1",))] if verdict == "single" else [],
    )
    said = "app1 cpu worked then while nothing behind did; if the pauses count as use, app1 cpu is used 88 %"
    assert any(said in text for text in v.evidence) == (verdict != "hidden")
    assert v.stopped == (("middleware",) if verdict == "hidden" else ())


def test_a_cpu_that_holds_up_the_others_in_the_pauses_limits_only_if_it_is_full_between_them_too():
    """It works to the end of the pauses, which are 18 % of the run. In the rest it is used 85 %, and never full, though
    users wait: something else limits then, and may take turns with it. One that has no room is named without it."""
    v = judge_trial(load(pauses=PAUSES), collects(85.0, 40.0, 100.0, bursts=False), NODES, 0.05)
    assert (v.verdict, v.bottlenecks) == ("unknown", [])
    assert any("app1 cpu explains 18 % of the time in which users wait, the pauses" in text for text in v.evidence)
    full = replace(saturation("web1", 1.0, mean=99.0), values=np.full(600, 99.0))
    beside = judge_trial(load(pauses=PAUSES), [full, *collects(85.0, 40.0, 100.0, bursts=False)[1:]], NODES, 0.05)
    assert (beside.verdict, [b.nodes for b in beside.bottlenecks]) == ("single", [("web1",)])


@pytest.mark.parametrize(("other", "proved"), [("app2", True), ("web1", False)])
def test_replicas_of_one_tier_explain_together_what_each_does_not(other, proved):
    """One holds up the others in the pauses, 18 % of the run; another one is saturated in 65 % of the rest. Of another
    tier, it may take turns with the first."""
    rest = ~STILL & (np.arange(600) % 20 < 16)
    seen = Causes([replace(saturation(other, 0.65), indicator=rest.astype(float))])
    holder = replace(saturation("app1", 0.0), indicator=np.zeros(600))
    found = _with_holders([holder], load(pauses=PAUSES), seen, np.ones(600))
    assert ([s.node for s in found.named], bool(found.unproved)) == ([other, "app1"], not proved)


def test_few_users_who_wait_for_one_long_request_are_no_limit():
    web, app, *rest = collects(85.0, 100.0, 100.0)
    app = replace(app, indicator=STILL.astype(float))
    v = judge_trial(load(pauses=PAUSES, response_s=0.1), [web, app, *rest], NODES, 0.1)
    assert v.verdict == "none"


@pytest.mark.parametrize(("pct", "verdict"), [(90.0, "single"), (5.0, "unknown")])
def test_collections_that_one_of_many_cores_makes_are_seen_by_their_own_counter(pct, verdict):
    """A serial collection uses a quarter of four cores. So the CPU reads 25 % in the pauses, as if it only sent."""
    web, app, *rest = collects(93.0, 27.0, 25.0)
    still = STILL.reshape(60, 10).all(axis=1)
    app = replace(app, collections=np.where(still, pct, 1.0))
    v = judge_trial(load(pauses=PAUSES), [web, app, *rest], NODES, 0.05)
    assert v.verdict == verdict


@pytest.mark.parametrize(("pct", "verdict"), [(12.0, "unknown"), (2.0, "hidden")])
def test_nothing_is_hidden_while_use_and_collections_leave_no_room(pct, verdict):
    """Used 79 %, and stopped for 12 % of the run in collections that are too short to stand out."""
    app = replace(saturation("app1", 0.0, mean=79.0), values=np.full(600, 79.0), collections=np.full(60, pct))
    found = [app, *(saturation(n, 0.0, mean=20.0) for n in NODES if n != "app1")]
    v = judge_trial(load(), found, NODES, 0.05)
    assert v.verdict == verdict
    assert any("garbage collections stop it in 12 % of the run" in text for text in v.evidence) == (pct > 10)


@pytest.mark.parametrize("part", [0.6, 0.4])
def test_what_stands_still_for_seconds_of_each_pause_holds_up_nobody_by_its_work(part):
    """The database is locked for a part of each pause, and then works off what waits, at 100 % until the next."""
    last = np.zeros(600, bool)
    for begin, end in PAUSES:
        last |= (begin + part * (end - begin) <= T) & (end > T)
    db = replace(used("db1", 98, 0), values=np.where(last, 100.0, np.where(STILL, 0.0, 98.0)))
    v = judge_trial(load(pauses=PAUSES), [*tiers(db)[:3], replace(db, indicator=last.astype(float))], NODES, 0.05)
    assert v.bottlenecks == []
    assert v.verdict == "hidden"


def test_what_idles_for_a_second_of_one_pause_has_not_stopped_itself():
    """A second is less than counts: it holds up the others by its work."""
    second = (T >= 30.0) & (T < 31.0)
    db = replace(saturation("db1", 0.0, mean=90.0), values=np.where(second, 0.0, np.where(STILL, 70.0, 90.0)))
    found = [*tiers(db)[:3], replace(db, indicator=np.zeros(600))]
    assert len(stopped_part(load(pauses=PAUSES), found, TIERS)) == 1
    v = judge_trial(load(pauses=PAUSES), found, NODES, 0.05)
    assert any("db1 cpu worked then while nothing behind did" in text for text in v.evidence)


def test_of_two_that_work_in_the_pauses_only_the_one_without_room_holds_up_the_others():
    web, app, *rest = collects(85.0, 40.0, 100.0)
    other = replace(app, node="app2", values=np.where(LATE, 40.0, np.where(STILL, 30.0, 20.0)))
    v = judge_trial(load(pauses=PAUSES), [web, app, other, *rest], NODES | {"app2": "app"}, 0.05)
    assert [b.nodes for b in v.bottlenecks] == [("app1",)]


def test_what_idles_in_a_part_of_the_pauses_works_in_the_rest():
    """Idle in less than half of them it may hold up the others by its work; in a fifth at most it is sure to."""
    for part, known in ((0.6, ([], False)), (0.4, (["db1"], False)), (0.1, (["db1"], True))):
        last = np.zeros(600, bool)
        for begin, end in PAUSES:
            last |= (begin + part * (end - begin) <= T) & (end > T)
        db = used("db1", 98, 0)
        db = replace(db, values=np.where(last, 100.0, np.where(STILL, 0.0, 98.0)), indicator=last.astype(float))
        working, sure = workers(PAUSES, [*tiers(db)[:3], db], 0.0)
        assert ([s.node for s in working], sure) == known
    web, app, middleware, _ = collects(85.0, 40.0, 100.0)
    assert [s.node for s in workers(PAUSES, [web, app, middleware, used("db1", 1, 1)], 0.0)[0]] == ["app1"]


# ---- what of a pause is the stop's ---------------------------------------------------------------------------------

LOCKED = ((T[:, None] >= PAUSES[:, 0]) & (T[:, None] < PAUSES[:, 0] + 2.0)).any(axis=1)


def works_off(places=60.0):
    """Under a full pool the database does nothing for 2 s of each pause (of 4, 3 and 4 s), and then works at 100 %."""
    web, app = used("web1", 30, 0), used("app1", 40, 0)
    last = STILL & ~LOCKED
    db = replace(
        used("db1", 60, 0), values=np.where(LOCKED, 0.0, np.where(last, 100.0, 60.0)), indicator=last.astype(float)
    )
    pool = saturation("app1", 1.0, resource="pool", item="connections", mean=100.0)
    return [replace(pool, places=places, values=np.full(600, 100.0)), web, app, used("middleware1", 50, 0), db]


def test_only_that_part_of_a_pause_is_the_stops_in_which_the_innermost_tier_does_nothing():
    part = stopped_part(load(pauses=PAUSES), works_off(), TIERS)
    assert part == pytest.approx(np.column_stack([PAUSES[:, 0], PAUSES[:, 0] + 2.0]))
    assert held_behind(PAUSES, works_off(), 0.0) is None
    assert held_behind(part, works_off(), 0.0) is not None
    blip = [replace(s, values=np.where(np.abs(T % 1.0 - 0.55) < 0.05, 50.0, s.values)) for s in works_off()]
    assert not len(stopped_part(load(pauses=PAUSES), blip, TIERS))  # never idle for a second
    assert not len(stopped_part(load(pauses=PAUSES, throughput=4.0), works_off(), TIERS))  # nor for ten interactions
    assert len(stopped_part(load(pauses=PAUSES), [*works_off(), used("db1", 30, 30, resource="disk")], TIERS)) == 3
    assert len(stopped_part(load(pauses=PAUSES), [*works_off(), used("web1", 60, 60, resource="disk")], TIERS)) == 3
    assert not len(stopped_part(load(pauses=PAUSES), [*works_off(), used("db1", 60, 60, resource="disk")], TIERS))


@pytest.mark.parametrize(("places", "known", "verdict"), [(60.0, False, True), (8.0, False, False), (8.0, True, True)])
def test_what_is_worked_off_in_a_pause_is_no_reason_to_doubt_the_stop(places, known, verdict):
    """Of eight holders it must be known that they wait for one thing."""
    context = Context(together=frozenset({("app1", "pool", "connections")} if known else ()))
    v = judge_trial(load(pauses=PAUSES), works_off(places), NODES, 0.05, context)
    assert (v.verdict == "unknown") != verdict
    assert v.stopped == ("middleware", "db")
    assert any("in 8 % of the run it worked off what came meanwhile" in text for text in v.evidence)


@pytest.mark.parametrize(("places", "verdict", "tiers"), [(60.0, "hidden", ("middleware", "db")), (8.0, "unknown", ())])
def test_where_no_tier_is_seen_to_stop_the_holders_of_the_places_tell(places, verdict, tiers):
    """The first tier does a little in the pauses, so that it neither stops nor goes on sending."""
    pool, _, *rest = works_off(places)
    v = judge_trial(load(pauses=PAUSES), [pool, used("web1", 30, 6.6), *rest], NODES, 0.05)
    assert (v.verdict, v.stopped) == (verdict, tiers)


@pytest.mark.parametrize(("places", "verdict"), [(60.0, "hidden"), (8.0, "unknown")])
def test_few_holders_who_wait_while_little_is_lost_prove_no_stop(places, verdict):
    """The pool is full in the pauses only, which cost little: it is no cause."""
    pool, _, *rest = stopped_below_a_pool(places)
    pool = replace(pool, shares=saturation("app1", 0.18, resource="pool").shares, indicator=STILL.astype(float))
    found = [pool, used("web1", 30, 6.6), *rest]
    v = judge_trial(load(pauses=PAUSES, response_s=0.5), found, NODES, 0.05)
    assert v.verdict == verdict, v.evidence


def test_a_tier_that_hardly_works_tells_nothing_of_stops():
    """A database used 1 % is visited so seldom that a second of nothing is chance; so is a middleware."""
    web, app, middleware, db = tiers(used("db1", 1, 1))
    waits = [web, app, replace(middleware, values=np.where(STILL, 0.0, 50.0)), db]
    assert stopped_part(load(pauses=PAUSES), waits, TIERS) == pytest.approx(PAUSES)
    assert stopped_tier(PAUSES, [web, app, used("middleware1", 1, 0), used("db1", 60, 0)], 0.0) == "db"
    assert stopped_tier(PAUSES, [web, app, used("db1", 60, 0)], 0.0) == "db"  # without a middleware's CPU


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("blind", ["web1", "middleware1", "db1"])
def test_a_cpu_that_nobody_read_tells_nothing_of_stops_without_a_warning(blind):
    """All its samples are missing, or those of the pauses."""
    for missing in (np.ones(600, dtype=bool), STILL):
        found = [replace(s, values=np.where(missing, np.nan, s.values)) if s.node == blind else s
                 for s in tiers(used("db1", 60, 0))]  # fmt: skip
        assert stopped_tier(PAUSES, found, 0.0) is None
        pauses_in_use(found, 20.0, 0.0, TIERS)
        stopped_part(load(pauses=PAUSES), found, TIERS)
        workers(PAUSES, found, 0.0)


def test_what_completes_nothing_shows_no_stops():
    nothing = replace(load(pauses=PAUSES), throughput_per_s=0.0)
    assert not len(stopped_part(nothing, works_off(), TIERS))
    assert not shows_pauses(nothing, 60.0)
    assert not len(pauses_in_use(works_off(), 0.0, 0.0, TIERS))


def test_a_pool_is_held_behind_only_if_it_is_full_and_nothing_works_or_is_full_meanwhile():
    pool, *rest = stopped_below_a_pool(60.0)
    half = replace(pool, values=np.full(600, 50.0), indicator=np.zeros(600))
    before = used("web1", 60, 60, resource="disk")
    assert held_behind(PAUSES, [half, *rest], 0.0) is None
    assert held_behind(PAUSES, [pool, *rest, used("web1", 30, 100, True, "network")], 0.0) is None
    assert held_behind(PAUSES, [pool, *rest, before], 0.0) == (pool, ("middleware", "db"))
    assert held_behind(PAUSES, [pool, *rest[:2], used("middleware1", 1, 1), rest[-1]], 0.0) == (pool, ("db",))
    assert held_behind(PAUSES, [pool, *rest[:2]], 0.0) is None  # nothing behind it was measured
    assert full_pools(PAUSES, [used("db1", 60, 100, saturated=True)], 0.0) == []
    own = replace(pool, node="db1", tier="db")
    assert held_behind(PAUSES, [pool, own, *rest], 0.0) == (own, ("db",))
    v = judge_trial(load(pauses=PAUSES), [pool, *rest], NODES, 0.05)
    assert not any(text.startswith("between the stops app1 pool") for text in v.evidence)


# ---- what limits beside the stops ----------------------------------------------------------------------------------


def stops_in(share, users, between=100.0):
    """A database that is full between stops of 2 s, in a share of the run, at as many users; it serves 20/s at most."""
    begin = np.arange(1.0, 59.0, 2.0 / share)
    stops = np.column_stack([begin, begin + 2.0])
    still = ((T[:, None] >= stops[:, 0]) & (T[:, None] < stops[:, 1])).any(axis=1)
    use = np.where(still, 0.0, between)
    db = saturation("db1", float(1 - share), mean=float(use.mean()))
    db = replace(db, values=use, indicator=np.where(still, 0.0, 1.0))
    before = [
        replace(saturation(n, 0.0, mean=30.0), values=np.full(600, 30.0)) for n in ("web1", "app1", "middleware1")
    ]
    rate = float(use.mean()) / 100 * 20.0
    given = replace(load(), pauses=stops, users_real=users, throughput_per_s=rate, response_s=users / rate - 7.0)
    return given, [*before, db]


@pytest.mark.parametrize(
    ("share", "users", "verdict", "said"),
    [
        (0.1, 300, "single", "it limits, and more than they do"),
        (0.5, 300, "hidden", "it limits then, but less than they do"),
        (0.3, 300, "unknown", "which of the two limits more is not known"),
        (0.3, 101, "hidden", "it works off what they hold up"),
    ],
)
def test_a_cpu_beside_stops_is_a_cause_if_more_of_it_brings_more_than_no_stops(share, users, verdict, said):
    given, found = stops_in(share, users)
    v = judge_trial(given, found, NODES, 0.05)
    assert v.verdict == verdict, v.evidence
    assert any(said in text for text in v.evidence)
    assert bool(v.bottlenecks) == (verdict == "single")
    assert v.stopped == ("db",)
    assert not any("it limits less than the stops" in text for text in v.evidence)
    assert not any(text.startswith("between the stops db1 cpu was saturated") for text in v.evidence)  # said once


@pytest.mark.parametrize(
    ("share", "pool_at", "verdict"),
    [(0.15, "app1", "single"), (0.15, "db1", "single"), (0.15, "", "unknown"), (0.27, "app1", "unknown")],
)
def test_a_pool_before_a_cpu_that_limits_beside_its_stops_is_a_symptom(share, pool_at, verdict):
    """What is full between the stops fills the pools before it, or of its own tier. If nobody knows the order of the
    tiers, or the stops fill them for a quarter of the run, the pool may limit."""
    given, found = stops_in(share, 300)
    pool = saturation(pool_at or "pooler1", 1.0, resource="pool", item="places", mean=100.0)
    v = judge_trial(given, [*found, replace(pool, places=2.0, values=np.full(600, 100.0))], NODES, 0.05)
    assert (v.verdict, [b.resource for b in v.bottlenecks]) == (verdict, ["cpu"] if verdict == "single" else [])
    assert any(f"{pool.name} is full: a symptom" in text for text in v.evidence) == (verdict == "single")


def test_a_cpu_that_is_full_in_the_stops_as_well_is_no_symptom_of_what_limits_beside_them():
    given, found = stops_in(0.15, 300)
    web = replace(saturation("web1", 1.0, mean=98.0), values=np.full(600, 98.0))
    stops = given.pauses
    web = replace(
        web, indicator=(~((T[:, None] >= stops[:, 0]) & (T[:, None] < stops[:, 1])).any(axis=1)).astype(float)
    )
    v = judge_trial(given, [web, *found[1:]], NODES, 0.05)
    assert any(text.startswith("web1 cpu was at or above") for text in v.evidence)
    assert any("it limits, and more than they do" in text for text in v.evidence)
    assert not any("web1 cpu is full: a symptom" in text for text in v.evidence)


@pytest.mark.parametrize("model", [LoadModel.WORK, LoadModel.OPEN])
def test_where_no_users_think_no_relief_is_computed(model):
    given, found = stops_in(0.1, 300)
    given = replace(given, model=model, think_s=0.0, offered_per_s=30.0, growth_per_s=12.0, growth_error_per_s=0.5)
    v = judge_trial(given, found, NODES, 0.0)
    assert v.stopped == ("db",)
    assert any("between the stops db1 cpu was saturated in 100 % of the time" in text for text in v.evidence)
    assert not any("with half as much of it again" in text for text in v.evidence)


def test_of_a_disk_that_is_full_between_the_stops_no_relief_is_computed():
    given, found = stops_in(0.1, 300)
    db = replace(found[-1], values=0.5 * found[-1].values, indicator=np.zeros(600))
    disk = replace(found[-1], resource="disk", utilization_mean_pct=40.0)
    v = judge_trial(given, [*found[:-1], db, disk], NODES, 0.05)
    assert v.verdict == "hidden"
    assert any(text.startswith("between the stops db1 disk was saturated in 100 %") for text in v.evidence)


def test_a_tier_behind_the_full_pool_that_still_sends_is_not_among_those_that_stopped():
    """The application goes on, and the middleware behind it does nothing: it stopped, whatever the database does."""
    pool, *_, middleware, db = stopped_below_a_pool(60.0)
    v = judge_trial(
        load(pauses=PAUSES), [pool, used("web1", 30, 20), used("app1", 40, 30), middleware, db], NODES, 0.05
    )
    assert v.stopped == ("middleware",)


def test_a_cpu_with_room_between_the_stops_follows_from_them():
    given, found = stops_in(0.1, 300, between=80.0)
    v = judge_trial(given, found, NODES, 0.05)
    assert (v.verdict, v.bottlenecks) == ("hidden", [])
    assert not any("with half as much of it again" in text for text in v.evidence)


def test_reliefs_beside_stops_are_those_of_users_who_think_before_one_server():
    """Full at all times but for a tenth: without the stops 1 / 0.9, with half as much again 1.5. If few users come, 20
    per s can be served, and 7.1 are asked for: neither relief brings much."""
    stops = np.column_stack([np.arange(0.0, 60.0, 10.0), np.arange(1.0, 61.0, 10.0)])
    full = reliefs(replace(load(), users_real=600, throughput_per_s=18.0), stops, 0.9, 0.0)
    assert (full.stops, full.more) == pytest.approx((1 / 0.9 - 1, 0.5), abs=0.01)
    few = reliefs(replace(load(), users_real=50, throughput_per_s=7.0), stops, 0.35, 0.0)
    assert 0.0 < few.stops < 0.02
    assert 0.0 <= few.more < 0.01


# ---- the order in which holders of places go on --------------------------------------------------------------------


def crossing(together, places=6, rate=20.0):
    """60 s in which `places` are held, and nothing ends in the PAUSES. Either all holders wait for one thing, and go on
    in the order in which they came; or one of them has come 8 s before the pause that its return ends."""
    done = np.array([t for t in np.arange(0.0, 60.0, 1 / rate) if not ((t >= PAUSES[:, 0]) & (t < PAUSES[:, 1])).any()])
    begun = done - np.arange(len(done)) % places / rate - 0.5
    if not together:
        for end in PAUSES[:, 1]:
            begun[np.searchsorted(done, end)] -= 8.0
    return np.column_stack([begun, done])


@pytest.mark.parametrize(("places", "one", "seen"), [(6, True, 3), (6, False, 0), (3, True, None)])
def test_a_pause_ends_in_order_if_its_holders_wait_for_one_thing(places, one, seen):
    spans = crossing(one)
    pool = replace(saturation("app1", 1.0, resource="pool", mean=100.0), places=places, values=np.full(600, 100.0))
    given = load(pauses=PAUSES, spans=spans, done_s=spans[:, 1])
    counts = ends_in_order(given.pauses, [pool], given)
    assert counts == ({} if seen is None else {pool.key: (3, seen)})
    # Three pauses are too few to tell; nine are enough
    assert together([(given, [pool])]) == frozenset()
    assert together([(given, [pool])] * 3) == (frozenset({pool.key}) if seen else frozenset())
    assert ends_in_order(given.pauses, [pool], replace(given, spans=None)) == {}
    assert together([(replace(given, pauses=np.array([[0.0, 4.0]])), [pool])]) == frozenset()
    assert ends_in_order(PAUSES, [pool], replace(given, start_s=10.0, end_s=54.0)).get(pool.key, (1,))[0] == 1


@pytest.mark.parametrize(("low_per_s", "known"), [(10.0, True), (2.0, False)])
def test_a_low_load_that_could_not_show_stops_does_not_tell_how_long_a_place_is_held_without(low_per_s, known):
    """With 2/s, ten interactions take 5 s: pauses of 4 s are none. The places may be held in stops there as well."""
    pool = saturation("app1", 1.0, resource="pool", mean=100.0)
    low = replace(load(), throughput_per_s=low_per_s), [replace(pool, utilization_mean_pct=5.0 * low_per_s)]
    high = replace(load(), throughput_per_s=20.0, pauses=PAUSES), [pool]
    assert of_loads([low], [high]).held_longer == ({pool.key: pytest.approx(1.0)} if known else {})
    longer = low[0], [replace(pool, utilization_mean_pct=2.0 * low_per_s)]
    assert of_loads([longer], [high]).held_longer == {pool.key: pytest.approx(2.5)}  # or more
    unread = low[0], [replace(pool, utilization_mean_pct=float("nan"))]
    assert of_loads([unread, longer], [high]).held_longer == {pool.key: pytest.approx(2.5)}
    once = replace(high[0], pauses=np.array([[10.0, 12.0]])), [pool]  # less than counts
    assert of_loads([low], [once]).held_longer == {pool.key: pytest.approx(1.0)}


def test_a_disk_that_is_full_at_each_low_load_is_judged_by_who_waits_for_it():
    disk, cpu = saturation("db1", 1.0, resource="disk"), saturation("db1", 1.0)
    always = Context(full_always=frozenset({disk.group, cpu.group}), disks={disk.key: Disk(Room.NONE, "")})
    assert (always.is_always_full(cpu), always.is_always_full(disk)) == (True, False)


def test_a_use_that_has_no_interval_is_not_among_the_most_used():
    assert of_loads([], [(load(), [saturation("db1", 0.5)])]).most_pct == {}


def test_what_was_not_measured_and_pools_wait_for_nothing_in_the_model():
    cpu = saturation("db1", 0.0, mean=80.0)
    more = [saturation("db1", 0.0, resource="disk", mean=float("nan")), saturation("app1", 1.0, resource="pool")]
    assert possible(load(), [cpu, *more], 0.05) == possible(load(), [cpu], 0.05)
