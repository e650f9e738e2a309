"""Two resources that limit in turns, each from the side of what could be mistaken for it: samples that see neither
saturated between two turns, turns so few that chance would do, and causes for a part of the run."""

from dataclasses import replace

import numpy as np
import pytest
from ntier_analysis.statistics.share import saturation_share
from ntier_analysis.verdict.saturation import THRESHOLDS
from ntier_analysis.verdict.sweep import judge_sweep

from .test_principles import CELLS, NODES, RUN_S, disk, limited, load, named, resource, trial

AT = np.arange(CELLS)
BOTH = [("app", "cpu"), ("db", "cpu")]


def seen(app, db, mean=55):
    return limited(resource("app1", app, mean), resource("db1", db, mean))


def test_short_regular_turns_are_seen_though_samples_between_them_see_neither():
    """Turns of half a second, 60 of each: 100 ms at each end are mixed. Unrelated bursts overlap now and then."""
    found = seen(AT % 10 < 4, (AT % 10 >= 5) & (AT % 10 < 9))
    assert (found.kind, named(found)) == ("alternating", BOTH)
    few = seen(AT % 100 < 40, (AT % 100 >= 50) & (AT % 100 < 90))
    assert (few.verdict, few.kind) == ("hidden", ""), "six long turns with gaps in which nothing is saturated"


def test_irregular_turns_that_never_overlap_are_no_chance_however_few():
    rng = np.random.default_rng(3)
    edges = np.cumsum(rng.uniform(15, 50, 40)).astype(int)
    turn = np.searchsorted(edges, AT, side="right")
    gap = np.isin(AT - np.concatenate([[0], edges])[turn], range(5))  # half a second after each change
    found = seen((turn % 2 == 0) & ~gap, (turn % 2 == 1) & ~gap)
    assert (found.kind, named(found)) == ("alternating", BOTH)


@pytest.mark.parametrize(("each", "kind"), [(93, "alternating"), (86, "")])
def test_three_long_turns_are_turns_if_one_of_the_two_is_nearly_always_saturated(each, kind):
    """Shifting a periodic series by its period changes nothing, so that no test against chance has power."""
    at = AT % 200
    found = seen(at < each, (at >= 100) & (at < 100 + each))
    assert found.kind == kind


def test_bursts_that_have_nothing_in_common_seldom_leave_a_gap_and_prove_nothing():
    """Each is saturated in 78 % of the run: by chance a twentieth is left."""
    rng = np.random.default_rng(0)
    app, db = (rng.random(CELLS) < 0.78 for _ in range(2))
    assert (~app & ~db).mean() < 0.05
    assert named(seen(app, db, 80)) == []


@pytest.mark.parametrize("first", ["app1", "db1"])
def test_the_second_of_two_turns_counts_though_answers_take_so_long_that_it_is_the_end_of_what_is_known(first):
    """Answers of 13 s in a run of a minute: in the last 26 s nobody knows how many wait, but that many do is known."""
    second = "db1" if first == "app1" else "app1"
    turn = AT < 0.6 * CELLS
    hot = resource(first, turn, 75), resource(second, ~turn, 75)
    begun = np.arange(-13.0, RUN_S - 13.0, 0.1)
    spans = np.column_stack([begun, begun + 13.0])
    trials = [trial(n, n / 7.02, 0.02) for n in (20, 40)]
    for n in (200, 220, 240):
        made = trial(n, 10.0, 13.0, *hot)
        trials.append(replace(made, load=replace(load(n, n / 20, 13.0), spans=spans, done_s=spans[:, 1])))
    found = judge_sweep("s", "1/1/1/1M", trials)
    assert (found.kind, named(found)) == ("alternating", BOTH)


THREE = NODES | {"db2": "db", "db3": "db"}


def test_replicas_that_are_saturated_one_after_the_other_are_one_tier_that_limits():
    """Each has room on average, but at every moment one of them holds up users: more of the tier would help."""
    two = [resource("db1", AT % 10 < 5, 55), resource("db2", AT % 10 >= 5, 55)]
    found = limited(*two, nodes=NODES | {"db2": "db"})
    assert (found.verdict, found.kind, named(found)) == ("single", "stable", [("db", "cpu")])
    assert found.bottlenecks[0].nodes == ("db1", "db2")
    three = [resource(f"db{i + 1}", i == (AT // 20) % 3, 45) for i in range(3)]
    assert limited(*three, nodes=THREE).bottlenecks[0].nodes == ("db1", "db2", "db3")


def test_replicas_that_leave_a_gap_or_have_nothing_in_common_do_not_limit():
    gaps = [resource("db1", AT % 10 < 4, 45), resource("db2", (AT % 10 >= 5) & (AT % 10 < 9), 45)]
    assert named(limited(*gaps, nodes=NODES | {"db2": "db"})) == []
    rng = np.random.default_rng(0)
    bursts = [resource(n, rng.random(CELLS) < 0.78, 80) for n in ("db1", "db2")]
    assert named(limited(*bursts, nodes=NODES | {"db2": "db"})) == []


def test_a_replica_that_is_never_saturated_alone_takes_no_turn():
    """The second is saturated only while the first is; what the first leaves open, the third covers."""
    first, third = AT % 10 < 5, AT % 10 >= 5
    some = [resource("db1", first, 60), resource("db2", AT % 10 < 3, 45), resource("db3", third, 60)]
    assert limited(*some, nodes=THREE).verdict == "hidden"


def test_beside_one_that_is_full_all_the_time_two_in_turns_do_not_limit():
    at = AT % 100
    app, middleware = resource("app1", at < 50, 55), resource("middleware1", at >= 50, 55)
    assert limited(app, middleware).kind == "alternating"
    found = limited(app, middleware, resource("db1", np.ones(CELLS), 100))
    assert (found.verdict, named(found)) == ("single", [("db", "cpu")])


@pytest.mark.parametrize("low", [(), (disk(70),)])
def test_a_disk_that_takes_turns_is_full_whatever_its_use_at_low_load_says(low):
    """While users wait and the other one is idle, nothing else limits."""
    at = AT % 10
    turns = resource("app1", at < 5, 55), resource("db1", at >= 5, 55, "disk")
    found = limited(*turns, low=low)
    assert (found.kind, named(found)) == ("alternating", [("app", "cpu"), ("db", "disk")])


# ---- a cause for a part of the run, by completions -----------------------------------------------------------------


@pytest.mark.parametrize(("slow", "verdict"), [(5.0, "single"), (20.0, "hidden")])
def test_what_is_saturated_for_a_part_of_the_run_limits_if_completions_are_fewer_then(slow, verdict):
    """A competitor takes the database's CPU in 4 of 10 s, and 5 instead of 30/s are completed; or a lock elsewhere
    keeps all at 20/s throughout."""
    found = part_time(slow)
    assert (found.verdict, named(found)) == (verdict, [("db", "cpu")] if verdict == "single" else [])


def part_time(slow, *, spans=False, period=100):
    """A sweep in which a database is saturated in 0.4 of each period of so many cells, and then serves `slow` per
    second. `spans`: the beginnings of the interactions are known too."""
    part = AT % period < 0.4 * period
    fast = (20.0 - 0.4 * slow) / 0.6
    served = np.cumsum(np.where(part, slow, fast)) * RUN_S / CELLS
    done = np.interp(np.arange(1, int(served[-1])), served, (AT + 1) * RUN_S / CELLS)
    trials = [trial(n, n / 7.02, 0.02) for n in (30, 60)]
    for n in (200, 250, 300):
        response_s = n / 20 - 7
        begun = np.column_stack([done - response_s, done]) if spans else None
        made = trial(n, 20.0, response_s, resource("db1", part, 60))
        trials.append(replace(made, load=replace(load(n, 20.0, response_s), done_s=done, spans=begun)))
    return judge_sweep("s", "1/1/1/1M", trials)


@pytest.mark.parametrize(("slow", "verdict"), [(2.0, "single"), (20.0, "hidden")])
def test_where_no_second_is_saturated_throughout_the_samples_are_compared(slow, verdict):
    assert part_time(slow, period=10).verdict == verdict


def test_what_is_saturated_for_a_part_of_the_time_in_which_users_wait_is_not_the_whole_cause():
    """Single interactions show that users wait all the time: something else limits in the rest of it."""
    assert part_time(5.0).verdict == "single"
    assert part_time(5.0, spans=True).verdict == "hidden"


def test_what_is_saturated_in_a_tenth_of_the_run_is_not_asked():
    tenth = AT % 100 < 10
    held = [replace(resource(n), values=np.where(tenth, 0.0, 20.0)) for n in ("web1", "app1", "middleware1")]
    assert limited(resource("db1", tenth, 50), *held).verdict == "hidden"


def test_eight_samples_that_read_full_neither_name_a_resource_nor_call_the_limit_hidden():
    few = np.ones(8)
    share = dict.fromkeys(THRESHOLDS, saturation_share(few, RUN_S / 8))
    seldom = replace(resource("db1", np.ones(CELLS), 100, "disk"), shares=share, indicator=few, values=100 * few)
    found = limited(replace(seldom, interval_s=RUN_S / 8, source="cgroup"))
    assert (found.verdict, named(found)) == ("unknown", [])
