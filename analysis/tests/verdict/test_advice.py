"""What a verdict asks for next is what would decide: nothing that was measured already, and nothing that tests what is
not named."""

from dataclasses import replace

import numpy as np
import pytest
from ntier_analysis.contracts import Check, Outcome
from ntier_analysis.verdict.advice import Add
from ntier_analysis.verdict.sweep import judge_sweep
from ntier_analysis.verdict.tables import unless_cold

from .test_doubts import stops, sweep, waves
from .test_principles import CELLS, RUN_S, disk, limited, resource, trial
from .test_strangers import EVEN, scraped

ALL = np.ones(CELLS)
QUEUE = "sample queue and waiting time of the disk"
LOW_LOAD = "add a load of"
ENDS = np.arange(0.05, RUN_S, 0.05)
WAITS = np.column_stack([ENDS - 3.0, ENDS])
"""Begin and end of single interactions: at each moment, users wait."""
TEN_TIMES = "sample the CPUs ten times a second"


def asked(found, start):
    return [text for text in found.next if text.startswith(start)]


def beyond(*hot):
    """Three loads beyond the knee, and no other."""
    return judge_sweep("s", "1/1/1/1M", [trial(n, 20.0, n / 20 - 7, *hot) for n in (200, 250, 300)])


def test_where_a_disks_queue_was_sampled_a_load_at_which_few_wait_is_asked_for_instead():
    blind, seen = beyond(disk(100)), beyond(disk(100, 50.0, 100.0))
    assert (blind.verdict, seen.verdict) == ("unknown", "unknown")
    assert (len(asked(blind, QUEUE)), len(asked(seen, QUEUE))) == (1, 0)
    for found in (blind, seen):
        (low,) = asked(found, LOW_LOAD)
        assert "how long a request takes at the disk of db1 if few wait" in low
        assert int(low.split()[4]) <= 0.6 * 140, "users: at most 0.6 of the throughput of 140"


def test_a_queue_that_leaves_a_disk_in_doubt_is_not_asked_for_again():
    """A request takes five times as long as at low load, but most of the users wait elsewhere: another trial would show
    the same."""
    found = limited(disk(100, 2.0, 50.0), low=(disk(60, 1.0, 10.0),))
    assert found.verdict == "unknown"
    assert any("it may have room" in text for text in found.trials[-1][1].evidence)
    assert asked(found, "record single interactions")
    assert not asked(found, QUEUE)
    assert not asked(found, LOW_LOAD), "there are two"
    low = [trial(n, n / 7.02, 0.02, disk(60, 1.0, 10.0)) for n in (30, 60)]
    high = [trial(n, 20.0, n / 20 - 7, disk(100, 2.0, 50.0)) for n in (200, 250, 300)]
    told = [replace(t, load=replace(t.load, spans=WAITS, done_s=WAITS[:, 1])) for t in high]
    assert judge_sweep("s", "1/1/1/1M", [*low, *told]).next == [
        "repeat with one more db node: throughput grows if its disk limits"
    ]


def test_finer_samples_are_asked_for_where_turns_may_be_too_short_for_these():
    found = limited(scraped("db1", 54 + np.resize(EVEN, 60)), scraped("app1", 52 - np.resize(EVEN, 60)))
    assert found.verdict == "unknown"
    assert asked(found, TEN_TIMES)


def test_longer_runs_are_asked_for_where_so_few_samples_leave_turns_to_chance():
    """Twelve samples: the two are saturated in seven and nine, and in eleven of them one is."""
    few = (np.arange(12) < 7, np.arange(12) >= 4)
    found = limited(*(scraped(n, np.where(on, 100.0, 20.0)) for n, on in zip(("app1", "db1"), few, strict=True)))
    assert found.verdict == "unknown"
    assert any("so few that it may be chance" in text for text in found.trials[-1][1].evidence)
    assert asked(found, TEN_TIMES)
    assert asked(found, "run the loads beyond the knee longer")


def test_single_interactions_are_asked_for_where_work_comes_in_waves_whatever_else_is():
    found = waves(1.9)
    assert found.verdict == "unknown"
    assert asked(found, "record single interactions: they show whether users wait while throughput is high")


@pytest.mark.parametrize(("low", "wanted"), [(120, 1), (60, 0)])
def test_of_a_full_pool_a_load_is_asked_for_at_which_few_wait_if_there_is_none(low, wanted):
    """17 of 20 interactions per second tell nothing of how long a place is held without waiting."""
    pool = replace(resource("app1", ALL, 100, "pool"), item="connections")
    loads = [trial(low, low / 7.02, 0.02), *(trial(n, 20.0, n / 20 - 7, pool) for n in (200, 250, 300))]
    found = judge_sweep("s", "1/1/1/1M", loads)
    assert found.verdict == "unknown"
    lower = [text for text in asked(found, LOW_LOAD) if "how long a place in the full pool is held" in text]
    assert len(lower) == wanted
    assert asked(found, "raise the connections of app by a step")


def test_of_a_disk_that_reads_full_at_low_load_the_requests_may_be_all_there_is():
    cpu = resource("app1", np.arange(CELLS) % 10 < 8, 91)
    found = limited(disk(100, 100.0, 500.0), cpu, low=(disk(92, 2.0, 20.0),))
    assert found.verdict == "unknown"
    assert "if not, repeat with a faster disk: throughput grows if it limits" in " ".join(found.next)


@pytest.mark.parametrize(("times", "wanted"), [(2, 1), (3, 0)])
def test_a_load_at_which_the_system_stood_still_once_or_twice_is_asked_for_again(times, wanted):
    again = asked(sweep(stops(100, times)), "repeat the load of 100 users: whether it stands still again")
    assert len(again) == wanted


def test_a_cold_system_is_not_asked_for_more_of_what_is_no_longer_named():
    loads = [trial(n, 20.0, n / 20 - 7, resource("db1", ALL, 100)) for n in (200, 220, 240, 260, 300)]
    found = judge_sweep("s", "1/1/1/1M", loads)
    assert asked(found, "repeat with one more db node")
    begun = Check(id="S2.sweep", title="", required=False, outcome=Outcome.FAIL, value=-30.0, reason="", detail="")
    judged = unless_cold(found, [begun])
    assert judged.verdict == "unknown"
    assert "more time to warm up" in judged.next[0]
    assert not asked(judged, "repeat with")
    assert asked(judged, "add ")
    assert len(judged.next) <= 3


@pytest.mark.parametrize(("used", "next_"), [((84, 84, 84), "repeat with one more app node"),
                                             ((66, 74, 82), "repeat the loads beyond the knee (REPS=3)")])  # fmt: skip
def test_a_cpu_that_may_limit_however_long_it_is_measured_is_tested_by_more_of_it(used, next_):
    """From a mean of 80 % on nothing is called hidden beside it. Below, only an interval that is too wide forbids it,
    and repetitions make that narrower."""
    cpus = [replace(resource("app1", mean=float(u)), values=np.full(CELLS, float(u))) for u in used]
    high = [trial(n, 20.0, n / 20 - 7, cpu) for n, cpu in zip((200, 250, 300), cpus, strict=True)]
    told = [replace(t, load=replace(t.load, spans=WAITS, done_s=WAITS[:, 1])) for t in high]
    found = judge_sweep("s", "1/1/1/1M", [trial(30, 30 / 7.02, 0.02), trial(60, 60 / 7.02, 0.02), *told])
    assert found.verdict == "unknown"
    assert any("app1 cpu may have no room" in text for _, v in found.trials for text in v.evidence)
    assert asked(found, "repeat ") == asked(found, next_)
    assert len(asked(found, next_)) == 1


def test_one_user_is_one_user():
    assert str(Add(1, "users", "why")) == "add a load of 1 user: why"
