"""What a mutation of a trial's rules, its load, its reasoning or its backlog would change and no other test notices."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.statistics.backlog import backlog
from ntier_analysis.verdict.saturation import excess_moved
from ntier_analysis.verdict.sweep import judge_sweep
from ntier_analysis.verdict.trial import judge_trial

from . import test_rules, test_saturation
from .test_foreign_data import said
from .test_load_models import arrivals, working
from .test_principles import CELLS, NODES, RUN_S, disk, limited, load, named, resource, trial
from .test_symptoms import pool

ALL = np.ones(CELLS)
AT = np.arange(CELLS)


def swept(*trials):
    return judge_sweep("s", "1/1/1/1M", list(trials))


# ---- arrivals at a rate --------------------------------------------------------------------------------------------


def test_a_heartbeat_that_does_not_cover_the_run_tells_no_backlog():
    t = np.arange(0.0, 61.0)
    begun, inside = 20.0 * t, 3.0 + 5.0 * t
    whole = backlog(t, begun, inside, 0.0, 60.0)
    assert (whole.offered_per_s, whole.growth_per_s, whole.at_end) == pytest.approx((20.0, 5.0, 303.0))
    for part in (t <= 40, t >= 20, t % 8 == 4):
        assert np.isnan(backlog(t[part], begun[part], inside[part], 0.0, 60.0).growth_per_s)
    silent = np.where((t > 20) & (t < 30), np.nan, inside)
    told = backlog(t, begun, silent, 0.0, 60.0)
    assert (told.growth_per_s, told.error_per_s) == pytest.approx((5.0, 0.0), abs=1e-9)


def test_a_backlog_grows_though_all_workers_of_the_driver_wait_at_the_end():
    """They do so wherever arrivals pile up: only of a load that seems served it may hide the limit."""
    found = swept(arrivals(10.0), arrivals(30.0, pending=480))
    assert (found.verdict, named(found)) == ("single", [("db", "cpu")])


def test_an_open_load_settles_whatever_it_serves():
    at = arrivals(40.0, served=5.0).load
    assert (at.settled, at.unmet, at.piled_up) == (True, 0.0, 0.0)


# ---- a load --------------------------------------------------------------------------------------------------------


SPANS = np.column_stack([np.linspace(0, 40, 200), np.linspace(5, 60, 200)])
"""73 at most are under way at a time; the last one ends with the run."""


def test_when_users_wait_is_told_by_interactions_of_users_who_think_if_most_of_the_run_is_known():
    at = replace(load(2000, 100.0, 5.0), spans=SPANS)
    assert np.isnan(at.users_wait(0.02, 600)).mean() == pytest.approx(1 / 6, abs=0.01)
    assert (replace(at, response_s=20.0).users_wait(0.02, 600) == 1.0).all(), "two thirds are not known"
    for model in (LoadModel.WORK, LoadModel.OPEN):
        assert (replace(at, model=model, think_s=0.0).users_wait(0.02, 600) == 1.0).all()


@pytest.mark.parametrize("response_s", [5.0, 20.0])
def test_near_the_end_interactions_that_ended_tell_that_users_wait_and_never_that_none_does(response_s):
    """Of 100 users one in twenty waits as long as six are under way (in the last 1.5 s fewer are seen). Those that had
    not ended could only be more."""
    waits = replace(load(100, 5.0, 5.0), response_s=response_s, spans=SPANS).users_wait(0.02, 600)
    at = (np.arange(600) + 0.5) * RUN_S / 600
    assert (waits[(at > 2) & (at < 58)] == 1.0).all()
    assert np.isnan(waits[at > 59]).all()


def test_what_users_thought_is_not_added_to_what_they_were_to_think():
    at = load(100, 12.5, 1.0)
    assert replace(at, think_measured_s=7.0).lost(0.02) == at.lost(0.02)
    assert replace(at, think_measured_s=7.0).unmet == at.unmet


def test_what_completes_nothing_has_not_settled():
    at = replace(load(100, 12.5, 1.0), throughput_per_s=0.0)
    assert (at.settled, at.piled_up) == (False, 0.0)


# ---- nothing limits, or something hidden ---------------------------------------------------------------------------


def test_waiting_that_costs_less_than_a_tenth_needs_no_hidden_cause():
    assert test_rules.judged(test_rules.idle(*NODES), response_s=0.6).verdict == "none"
    full = test_rules.saturation("host", 1.0, tier="host")
    assert test_rules.judged([*test_rules.idle(*NODES), full], response_s=0.6).verdict == "none"


def test_a_server_whose_disk_alone_was_read_was_not_measured():
    found = [*test_rules.idle("web1", "app1", "middleware1"), test_rules.saturation("db1", 0.0, "disk", mean=20.0)]
    v = test_rules.judged(found)
    assert v.verdict == "unknown"
    assert any("no (complete) CPU samples of db1" in text for text in v.evidence)


def test_beside_what_is_named_a_server_that_was_not_measured_is_told():
    v = test_rules.judged([*test_rules.idle("web1", "middleware1"), test_rules.saturation("db1", 1.0, mean=100)])
    assert v.verdict == "single"
    assert any(text.startswith("no (complete) CPU samples of app1: another") for text in v.evidence)


def test_a_network_used_four_fifths_has_room():
    """What lets some requests pass others is a CPU."""
    found = limited(replace(resource("db1", mean=85.0, name="network"), values=np.full(CELLS, 85.0)))
    assert found.verdict == "hidden"


def flat(node, pct):
    return replace(resource(node, mean=pct), values=np.full(CELLS, pct))


def test_what_is_used_up_at_low_loads_too_does_not_hide_a_hidden_limit():
    """Something else uses 92 % of the web server throughout: it is saturated in no sample, and throughput grows."""
    assert limited(flat("web1", 92.0), low=(flat("web1", 92.0),)).verdict == "hidden"
    assert limited(flat("web1", 92.0)).verdict == "unknown"


def test_a_disk_that_does_not_read_full_is_not_perhaps_full():
    """By its use at low load it serves several at a time."""
    assert limited(disk(85), low=(disk(70),)).verdict == "hidden"


def test_a_cpu_that_is_saturated_whenever_the_system_stands_still_limits_though_answers_are_no_slower():
    """A batch job fills the database for 3 s of 10, at every load: R0 is no better."""
    pauses = np.column_stack([np.arange(0.0, 60.0, 10.0), np.arange(3.0, 63.0, 10.0)])
    still = AT % 100 < 30
    found = [replace(resource(n, mean=25), values=np.where(still, 2.0, 30.0)) for n in ("web1", "app1", "middleware1")]
    found.append(resource("db1", still, 50))
    at = replace(load(200, 200 / 7.1, 0.1), pauses=pauses)
    v = judge_trial(at, found, NODES, 0.1)
    assert (v.verdict, [b.tier for b in v.bottlenecks]) == ("single", ["db"])


# ---- what is named beside another ----------------------------------------------------------------------------------


def test_two_that_limit_alike_beside_a_fuller_one_are_not_named_with_it():
    """The web server is used 100 %, two others 91 %: both have room."""
    two = [resource(n, AT % 10 < 9, 91) for n in ("app1", "db1")]
    found = limited(resource("web1", ALL, 100), *two)
    assert (found.verdict, named(found)) == ("single", [("web", "cpu")])


def test_a_trial_of_which_a_pool_is_not_known_to_limit_does_not_speak_of_turns():
    told = [v for at, v in limited(pool(), low=()).trials if at.users >= 200]
    assert [v.verdict for v in told] == ["unknown"] * 3
    assert [v.perhaps for v in told] == [[]] * 3


@pytest.mark.parametrize(("first", "second"), [("db1", "app1"), ("app1", "db1")])
def test_only_what_lies_before_the_fuller_one_works_for_requests_that_pile_up(first, second):
    """`first` is used 100 % and `second` 96 %; the answers leave 30 of 240 users unaccounted for."""
    two = [resource(first, ALL, 100), resource(second, AT % 20 < 18, 96)]
    low = trial(60, 60 / 7.02, 0.02, *(resource(n, mean=42.0) for n in ("app1", "db1")))
    found = swept(low, *(trial(n, 20.0, 3.5, *two) for n in (240, 242, 244)))
    assert found.verdict == ("unknown" if second == "app1" else "multi")


def test_a_disk_of_a_node_with_half_a_core_serves_one_worker_without_a_wait():
    full = replace(resource("db1", ALL, 100, "disk"), source="cgroup")
    found = swept(working(1, 5.0, full, cores=0.5))
    assert found.verdict == "unknown"
    assert said(found, "need not wait there")


# ---- saturation ----------------------------------------------------------------------------------------------------


def test_collections_stop_programs_and_no_disk():
    made = {"t": np.arange(1.0, 20.5), "resource": "jvm", "source": "status", "interval_s": 1.0}
    some = [test_saturation.rows("utilization_pct", 30.0, resource=name) for name in ("cpu", "disk")]
    found = test_saturation.saturations(pd.concat([*some, test_saturation.rows("gc_pct", 40.0, **made)]), 0.0, 20.0)
    assert {s.resource: s.collected_pct for s in found} == pytest.approx({"cpu": 40.0, "disk": 0.0})


def test_work_that_was_counted_late_at_an_end_of_the_run_is_not_moved_to_the_other():
    assert excess_moved(np.array([110.0, 100.0, 90.0])) == pytest.approx([110, 100, 90])
    assert excess_moved(np.array([90.0, 100.0, 110.0])) == pytest.approx([90, 100, 110])
