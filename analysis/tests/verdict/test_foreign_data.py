"""What strangers' data can look like: pools that are held without work, a replica that something else fills, few
samples, two disks in a node, a disk whose requests have become larger, one bad repetition."""

from dataclasses import replace

import numpy as np
import pytest
from ntier_analysis.contracts import Check, Outcome
from ntier_analysis.statistics.share import saturation_share
from ntier_analysis.verdict.agreement import combine
from ntier_analysis.verdict.data import SweepVerdict
from ntier_analysis.verdict.load import Bottleneck, Verdict
from ntier_analysis.verdict.lowest import full_throughout
from ntier_analysis.verdict.saturation import THRESHOLDS
from ntier_analysis.verdict.sweep import judge_sweep
from ntier_analysis.verdict.tables import unless_cold

from .test_load_models import arrivals
from .test_principles import CELLS, NODES, RUN_S, disk, limited, named, resource, trial

ALL = np.ones(CELLS)


def said(found, text):
    return any(text in line for line in [*found.evidence, *(e for _, v in found.trials for e in v.evidence)])


# ---- what is full whatever the requests do -------------------------------------------------------------------------


def held(mean=100.0):
    """Connections that the application keeps open, all of `max_connections`."""
    return resource("db1", ALL, mean, "pool")


def test_a_pool_that_is_full_at_every_load_limits_nothing():
    """Throughput doubles while it is full. So it is held by something else than work; a lock limits."""
    found = limited(held(), low=(held(),))
    assert (found.verdict, named(found)) == ("hidden", [])
    assert said(found, "db1 pool is full at each load that loses nothing, and throughput grows beyond them")


def test_a_pool_that_is_full_at_every_load_limits_nothing_beside_a_full_cpu():
    found = limited(held(), resource("app1", ALL, 97), low=(held(),))
    assert (found.verdict, named(found)) == ("single", [("app", "cpu")])


def test_a_replica_that_something_else_fills_does_not_make_its_tier_limit():
    """A runaway process holds db3 at all loads; the others are used a fifth, and their tier less than a half."""
    nodes = NODES | {"db2": "db", "db3": "db"}
    runaway = resource("db3", ALL, 100)
    found = limited(runaway, low=(runaway,), nodes=nodes)
    assert (found.verdict, named(found)) == ("unknown", [])
    assert said(found, "db3 cpu is already full at loads that lose nothing")
    others = limited(runaway, resource("db1", ALL, 100), low=(runaway,), nodes=nodes)
    assert [(b.tier, b.nodes) for b in others.bottlenecks] == [("db", ("db1",))]


# ---- few samples ---------------------------------------------------------------------------------------------------


def scraped(node, mean=100.0, samples=16):
    """Sampled every few seconds, always full."""
    marks, step = np.ones(samples), RUN_S / samples
    shares = dict.fromkeys(THRESHOLDS, saturation_share(marks, step))
    return replace(
        resource(node, mean=mean), shares=shares, interval_s=step, indicator=marks, values=np.full(samples, mean)
    )


def test_two_that_are_full_in_few_samples_are_not_one_bottleneck():
    found = limited(scraped("app1"), scraped("db1"))
    assert (found.verdict, named(found)) == ("unknown", [])
    assert said(found, "are both full, in too few samples to tell whether both limit")
    assert named(limited(scraped("db1"))) == [("db", "cpu")]


# ---- disks ---------------------------------------------------------------------------------------------------------


def of(item, *values):
    return replace(disk(*values), item=item)


def test_the_disk_of_the_system_says_nothing_of_that_of_the_data():
    """Requests to the data take 10 instead of 0.5 ms, and 50 of the 60 to 160 users who wait do so there; the system's
    disk is slow, and always was."""
    low = (of("sda", 5, 0.05, 40.0), of("nvme1n1", 10, 0.1, 0.5))
    found = limited(of("sda", 5, 0.05, 40.0), of("nvme1n1", 100, 60.0, 10.0), low=low)
    assert [(b.tier, b.resource, b.item) for b in found.bottlenecks] == [("db", "disk", "nvme1n1")]


def test_a_disk_is_expected_to_be_used_by_its_own_use_at_low_load():
    """Without queues: 60 % at 8.5/s would be 140 % at 20/s, so the disk serves several at a time. With that of the
    other disk, 1 %, in the mean, it would be in proportion."""
    low = (of("sda", 1), of("nvme1n1", 60))
    found = limited(of("sda", 1), of("nvme1n1", 99), low=low)
    assert (found.verdict, named(found)) == ("unknown", [])


@pytest.mark.parametrize("item", ["dm-0", "md127"])
def test_a_device_on_top_of_a_disk_is_not_counted_beside_it(item):
    """A third of the users who wait do so at the disk, and the same third at what stands on it."""
    low = [(of(name, 60, 1.0, 1.0)) for name in ("sda", item)]
    high = [trial(n, 20.0, n / 20 - 7, *(of(name, 100, (n - 140) / 1.8, 2.2) for name in ("sda", item)))
            for n in (200, 250, 300)]  # fmt: skip
    found = judge_sweep("s", "1/1/1/1M", [*(trial(n, n / 7.02, 0.02, *low) for n in (30, 60)), *high])
    assert (found.verdict, named(found)) == ("unknown", [])


def test_a_disk_whose_requests_have_become_larger_is_not_full_for_that():
    """A request takes 0.35 instead of 0.1 ms, and one is there at a time: nobody waits for the disk."""
    found = limited(disk(95, 1.05, 0.35), low=(disk(60, 0.4, 0.1),))
    assert (found.verdict, named(found)) == ("unknown", [])
    assert said(found, "most of the users wait elsewhere, though a request takes 3.5 times as long")


# ---- repetitions ---------------------------------------------------------------------------------------------------


def repeated(users, *rates):
    return [
        replace(t, load=replace(t.load, trial=f"{t.load.trial}.r{n:02d}"))
        for n, x in enumerate(rates, start=1)
        for t in [trial(users, x, users / x - 7, resource("db1", ALL, 100))]
    ]


@pytest.mark.parametrize("last", [(17.5, 20.4, 20.0), (20.4, 20.0, 17.5)])
def test_one_bad_repetition_is_not_left_out(last):
    """Whichever it is: the load as a whole makes 3 % less than the other one."""
    free = [trial(n, n / 7.02, 0.02) for n in (30, 60)]
    found = judge_sweep("s", "1/1/1/1M", [*free, *repeated(200, 20.0, 19.4, 20.3), *repeated(250, *last)])
    assert len(found.plateau_users) == 6
    assert not said(found, "retrograde")


def test_a_load_that_falls_in_all_repetitions_is_left_out_whole():
    free = [trial(n, n / 7.02, 0.02) for n in (30, 60)]
    beyond = [t for users in (200, 220, 240) for t in repeated(users, 20.0, 19.9)]
    found = judge_sweep("s", "1/1/1/1M", [*free, *beyond, *repeated(400, 12.0, 12.5)])
    assert set(found.plateau_users) == {200, 220, 240}
    assert said(found, "retrograde: from 400 users")


# ---- arrivals at a rate --------------------------------------------------------------------------------------------


def test_a_backlog_that_surely_grows_is_a_limit_however_slowly():
    """94 of 100 are completed, by a lock that nothing measures."""
    slow = {"served": 94.0, "error": 0.5}
    found = judge_sweep("s", "1/1/1/1M", [arrivals(50.0, resource("db1")), arrivals(100.0, resource("db1"), **slow)])
    assert (found.verdict, named(found)) == ("hidden", [])


def test_a_growth_whose_error_is_not_known_is_no_growth():
    found = judge_sweep("s", "1/1/1/1M", [arrivals(10.0), arrivals(30.0, error=float("nan"))])
    assert (found.verdict, found.bottlenecks) == ("unknown", [])
    assert said(found, "with an error that is not known")


# ---- replicas that take turns as the one that is named -------------------------------------------------------------


def test_a_tier_whose_nodes_are_named_in_turn_has_them_all():
    each = [
        Verdict("single", "stable", [Bottleneck("db", "cpu", (node,), 0.9, 0.8, 1.0)]) for node in ("db1", "db2", "db3")
    ]
    result = SweepVerdict("s", "1/1/1/3M", "unknown")
    combine(result, each)
    assert result.bottlenecks[0].nodes == ("db1", "db2", "db3")
    result.bottlenecks = [replace(result.bottlenecks[0], nodes=())]
    assert full_throughout(result, [trial(30, 4.3, 0.02)]) == []


def test_a_cpu_that_was_sampled_seldom_is_told_with_its_own_interval():
    some = [resource("web1"), resource("app1"), resource("middleware1"), replace(resource("db1"), interval_s=15.0)]
    found = judge_sweep("s", "1/1/1/1M", [replace(trial(n, 20.0, n / 20 - 7), saturations=some) for n in (200, 300)])
    assert said(found, "db1 cpu was sampled every 15.0 s")


@pytest.mark.parametrize(("pct", "verdict"), [(-30.0, "unknown"), (-10.0, "hidden")])
def test_what_is_hidden_while_the_system_warms_up_need_not_be_later(pct, verdict):
    """The runs' first tenth lies 30 % below their rest."""
    found = judge_sweep("s", "1/1/1/1M", [trial(n, min(20.0, n / 7.02), n / min(20.0, n / 7.02) - 7)
                                          for n in (30, 60, 200, 250, 300)])  # fmt: skip
    assert found.verdict == "hidden"
    begun = Check(id="S2.sweep", title="", required=False, outcome=Outcome.FAIL, value=pct, reason="", detail="")
    judged = unless_cold(found, [begun])
    assert judged.verdict == verdict
    elsewhere = unless_cold(found, [begun], imported=True)  # who has no variables of make
    assert elsewhere.next == [text.replace(" (PHASES=standard)", "") for text in judged.next]
