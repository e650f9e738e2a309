"""What counts as saturated, from the raw samples of one trial: quotas, pools, sources, gaps, work that is counted
late."""

import numpy as np
import pandas as pd
import pytest
from ntier_analysis.verdict.moves import node_series
from ntier_analysis.verdict.saturation import aligned, excess_moved, mean_use, middles, saturations
from ntier_analysis.verdict.trial import unmeasured

RUN_S = 20.0
T = np.arange(0.05, RUN_S, 0.1)


def rows(metric, value, t=T, resource="cpu", source="cgroup", item="", node="db1", interval_s=np.nan):
    made = pd.DataFrame(
        {"t_s": t, "value": np.broadcast_to(np.asarray(value, float), len(t)), "interval_s": interval_s}
    )
    return made.assign(node=node, tier="db", resource=resource, item=item, metric=metric, source=source)


def one(*frames):
    (found,) = saturations(pd.concat(frames, ignore_index=True), 0.0, RUN_S)
    return found


@pytest.mark.parametrize(("throttled", "share"), [(89.0, 0.0), (90.0, 1.0)])
def test_a_cpu_with_a_quota_is_saturated_if_nine_of_ten_periods_were_throttled(throttled, share):
    """The kernel counts in slices: a pegged node reads 70 to 125 %."""
    slices = np.where(np.arange(len(T)) % 2, 70.0, 125.0)
    found = one(rows("utilization_pct", slices), rows("throttled_pct", throttled))
    assert (found.by_throttling, found.share.value) == (True, share)


def test_a_quota_that_is_used_up_without_being_throttled_is_full():
    """One thread and a quota of one core (Redis, node.js, HAProxy): used 100 %, throttled in no period."""
    found = one(rows("utilization_pct", 99.7), rows("throttled_pct", 0.0))
    assert (found.by_throttling, found.share.value) == (False, 1.0)
    seldom = np.where(np.arange(len(T)) % 5, 0.0, 25.0)
    bites = one(rows("utilization_pct", 99.7), rows("throttled_pct", seldom))
    assert (bites.by_throttling, bites.share.value) == (True, 0.0), "5 % of the periods: the quota decides"


def test_where_the_throttling_was_not_read_the_use_tells():
    throttled = rows("throttled_pct", 0.0, T[:100])
    found = one(rows("utilization_pct", np.where(T > 10, 100.0, 50.0)), throttled)
    assert found.share.value == pytest.approx(0.5, abs=0.01)
    assert not one(rows("utilization_pct", 50.0)).by_throttling


def test_a_pool_is_full_while_someone_waits_however_few_of_its_places_are_taken():
    """It may be the sum of several pools."""
    waiting = rows("waiting", np.where(T > 15, 2.0, 0.0), resource="pool")
    assert one(rows("utilization_pct", 40.0, resource="pool"), waiting).share.value == pytest.approx(0.25, abs=0.01)
    cpu = rows("waiting", 2.0)
    assert one(rows("utilization_pct", 40.0), cpu).share.value == 0.0, "what waits for a CPU is no place of a pool"


@pytest.mark.parametrize(("sources", "trusted"), [(("sar", "procstat"), "procstat"), (("procstat", "cgroup"), "cgroup"),
                                                  (("cgroup", "sar"), "cgroup")])  # fmt: skip
def test_of_several_sources_the_most_trusted_one_counts(sources, trusted):
    """sysstat in a container may read 2 % of a pegged node."""
    use = {source: 99.0 if source == trusted else 2.0 for source in sources}
    found = one(*(rows("utilization_pct", pct, source=source) for source, pct in use.items()))
    assert (found.source, found.share.value) == (trusted, 1.0)


def test_a_disk_of_which_only_the_queue_was_read_has_no_utilization():
    queue = rows("queue", 3.0, resource="disk", item="sda")
    assert [s.resource for s in saturations(pd.concat([rows("utilization_pct", 5.0), queue]), 0.0, RUN_S)] == ["cpu"]


def test_only_the_run_counts():
    t = np.arange(-9.95, 30.0, 0.1)
    found = one(rows("utilization_pct", np.where((t < 0) | (t >= RUN_S), 100.0, 10.0), t))
    assert (found.share.value, found.utilization_mean_pct, found.share.n) == (0.0, 10.0, len(T))


def test_jitter_is_no_gap_and_a_gap_is_no_zero():
    """Two samples fall into one cell and none into the next; for 2 s there are none."""
    late = T + 0.06 * (np.arange(len(T)) % 3 == 1)
    assert one(rows("utilization_pct", 100.0, late)).share.missing == 0
    silent = T[(T < 8) | (T > 10)]
    found = one(rows("utilization_pct", 100.0, silent))
    assert found.share.missing == pytest.approx(20, abs=2)
    assert found.share.value == 1.0
    unread = one(rows("utilization_pct", np.where(T < 5, np.nan, 50.0)))
    assert (unread.share.missing, unread.utilization_mean_pct) == (50, 50.0)
    assert (mean_use(unread).low, mean_use(unread).high) == (50.0, 50.0), "of what was read"
    assert np.isnan(mean_use(one(rows("utilization_pct", 50.0, np.arange(1.0, RUN_S, 3.0)))).low), "seven readings"


def test_work_that_was_counted_late_is_moved_as_far_as_there_is_room():
    assert excess_moved(np.array([90.0, 110.0, 100.0])) == pytest.approx([100, 100, 100])
    assert excess_moved(np.array([100.0, 110.0, 85.0])) == pytest.approx([100, 100, 95])
    assert excess_moved(np.array([100.0, 130.0, 100.0])) == pytest.approx([100, 130, 100])
    assert excess_moved(np.array([50.0, 99.0])) == pytest.approx([50, 99])


def test_two_resources_are_compared_on_the_coarser_clock_by_the_majority_of_samples():
    fast = one(rows("utilization_pct", np.where(T % 1 < 0.6, 100.0, 0.0)))
    slow = one(rows("utilization_pct", 100.0, np.arange(0.5, RUN_S, 1.0), resource="disk"))
    a, b, interval_s = aligned(fast, slow, 0.0, RUN_S)
    assert (interval_s, len(a), len(b)) == (1.0, 20, 20)
    assert (a == 1).all()
    less = one(rows("utilization_pct", np.where(T % 1 < 0.4, 100.0, 0.0)))
    assert (aligned(less, slow, 0.0, RUN_S)[0] == 0).all()


def test_places_of_a_pool_come_from_readings_in_which_some_are_taken():
    taken = np.where(T > 10, 6.0, 0.0)
    found = one(rows("utilization_pct", 100 * taken / 20, resource="pool"), rows("active", taken, resource="pool"))
    assert found.places == pytest.approx(20.0)
    idle = one(rows("utilization_pct", 0.0, resource="pool"), rows("active", 0.0, resource="pool"))
    assert np.isnan(idle.places)


def test_the_time_of_a_disks_request_leaves_out_moments_without_any():
    disk = {"resource": "disk", "item": "sda"}
    waits = rows("wait_ms", np.where(T > 10, 8.0, 0.0), **disk)
    found = one(rows("utilization_pct", 30.0, **disk), waits, rows("queue", 2.0, **disk))
    assert (found.wait_ms, found.queue) == (8.0, 2.0)
    none = one(rows("utilization_pct", 0.0, **disk), rows("wait_ms", 0.0, **disk))
    assert np.isnan([none.wait_ms, none.queue]).all()


def test_collections_of_a_program_belong_to_the_cpu_of_its_node_each_for_the_second_before_its_reading():
    seconds = np.arange(1.0, RUN_S + 0.5)
    share = np.where((seconds > 5) & (seconds <= 8), 50.0, 0.0)
    found = one(rows("utilization_pct", 30.0), rows("gc_pct", share, seconds, "jvm", "status", interval_s=1.0))
    assert np.flatnonzero(found.collections == 50.0).tolist() == [5, 6, 7]
    assert found.collected_pct == pytest.approx(7.5)
    assert one(rows("utilization_pct", 30.0)).collected_pct == 0.0
    made = {"t": seconds, "resource": "jvm", "source": "status", "interval_s": 1.0}
    two = [rows("gc_pct", pct, item=item, **made) for pct, item in ((10.0, "a"), (40.0, "b"))]
    assert one(rows("utilization_pct", 30.0), *two).collected_pct == pytest.approx(40.0)


# ---- when a sample was ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "interval_s", "middle"), [
    ("cgroup", 0.1, 99.95), ("node_exporter", 15.0, 92.5), ("mysql_status", np.nan, 100.0), ("import", np.nan, 100.0),
    ("sysstat", 1.0, 100.0), ("sysstat", 10.0, 95.5), ("sysstat", np.nan, 100.0),
])  # fmt: skip
def test_a_sample_is_about_the_middle_of_its_interval(source, interval_s, middle):
    """sysstat's stamp is cut to the whole second in which the interval ended."""
    made = rows("utilization_pct", 50.0, np.array([100.0]), source=source, interval_s=interval_s)
    assert middles(made) == pytest.approx([middle])
    assert middles(made.drop(columns="interval_s")) == pytest.approx([100.0])


def test_an_interval_is_of_the_run_if_most_of_it_is():
    """Ten scrapes: the first ended 5 s after the ramp-up, which it is about; the last ended 5 s after the run."""
    ends = np.arange(5.0, 156.0, 15.0)
    busy = rows("utilization_pct", np.where(ends < 10, 0.0, 100.0), ends, source="node_exporter", interval_s=15.0)
    (found,) = saturations(busy, 0.0, 150.0)
    assert (found.share.value, found.share.n, found.utilization_mean_pct) == (1.0, 10, 100.0)


def test_turns_are_seen_whatever_the_sampling_intervals():
    """The CPU, read ten times a second, is full in even seconds; the disk, read once a second, in the odd ones."""
    fast, slow = np.arange(0.1, RUN_S + 0.01, 0.1), np.arange(1.0, RUN_S + 0.5)
    cpu = one(rows("utilization_pct", np.where((fast - 0.05) % 2 < 1, 100.0, 0.0), fast, interval_s=0.1))
    disk = one(rows("utilization_pct", np.where(slow % 2 == 0, 100.0, 0.0), slow, resource="disk", interval_s=1.0))
    a, b, _ = aligned(cpu, disk, 0.0, RUN_S)
    assert (a + b == 1).all()
    assert a.tolist() == [1.0, 0.0] * 10


def test_series_of_a_database_are_in_the_seconds_that_they_are_about():
    """A second's reads that end at 2.4 are mostly of the second before; what runs at 2.4 runs at 2.4."""
    at = np.arange(0.4, RUN_S + 1)
    reads = rows("utilization_pct", np.arange(21.0), at, "disk", "node_exporter", interval_s=1.0)
    running = rows("threads_running", np.arange(21.0), at, "queue", "mysql_status")
    series = node_series(pd.concat([reads, running]), "db1", 0.0, RUN_S)
    assert series["disk"].tolist() == [float(n) for n in range(1, 21)]
    assert series["queue"].tolist() == [float(n) for n in range(20)]


def test_of_two_sources_that_are_trusted_alike_the_finer_one_counts():
    """Not the first of the alphabet: sysstat once a second tells more than a scrape every 15 s."""
    scraped = rows("utilization_pct", 60.0, np.arange(0.0, RUN_S, 5.0), source="node_exporter")
    read = rows("utilization_pct", 99.0, np.arange(0.5, RUN_S, 1.0), source="sysstat")
    assert (one(scraped, read).source, one(read, scraped).interval_s) == ("sysstat", 1.0)


def test_one_reading_is_no_measurement_of_a_run():
    """Nobody knows how many there should have been; or it says that it is of a tenth of a second."""
    for interval_s in (np.nan, 0.1):
        (lone,) = saturations(rows("utilization_pct", 30.0, np.array([10.0]), interval_s=interval_s), 0.0, RUN_S)
        assert unmeasured([lone], {"db1": "db"}) == ["db1"]
    (whole,) = saturations(rows("utilization_pct", 30.0, np.array([19.9]), interval_s=19.9), 0.0, RUN_S)
    assert unmeasured([whole], {"db1": "db"}) == []


@pytest.mark.parametrize("longer", ["a", "b"])
def test_of_two_programs_the_one_that_collects_longer_counts_however_often_it_was_read(longer):
    made = {"resource": "jvm", "source": "status"}
    used = {item: 40.0 if item == longer else 0.0 for item in "ab"}
    often = rows("gc_pct", used["a"], np.arange(1.0, 21.0), item="a", **made)
    seldom = rows("gc_pct", used["b"], np.arange(5.0, 21.0, 5.0), item="b", **made)
    assert one(rows("utilization_pct", 30.0), often, seldom).collected_pct == pytest.approx(40.0)
