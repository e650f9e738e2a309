"""Trials from above: what is asked for, in which order, what the driver is told, what is recorded and resumed."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from ntier_analysis.contracts.system import LoadModel
from ntier_harness import ledger, plan, plan_view, sweep
from ntier_harness.catalog import Phases
from ntier_harness.drivers import Command, Entry, Run, leaving, split, told
from ntier_harness.drivers.jmeter import JMeter
from ntier_harness.errors import RequestError
from ntier_harness.request import _parse_above
from ntier_harness.screen import duration
from ntier_harness.systems.definition import Driver


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"above": "1000"}, "above: 1000 is not above any load; the lowest is 1000 users"),
        ({"above": "many"}, "above: 'many' is not a whole number; allowed are 1..100000"),
        ({"above": "90000"}, "above: 90000 at scale 0.2 are 18000 real users; at most 15000"),
        ({"above": "3001"}, "above: 3001 and 3000 users at scale 0.2 differ by 0 real users"),
        ({"above": "8000", "phases": "3/10/1"}, "which is 3 s long; give --phases with 4 s or more"),
        ({"above": "8000", "search": "capacity"}, "above: a search (capacity) measures each load once"),
    ],
)
def test_what_cannot_be_done_is_one_clear_error(spec, options, says):
    with pytest.raises(RequestError) as error:
        spec(**options)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("driver", "says"),
    [
        (Driver(kind="command", command=["x"]), "above: the driver of system rubbos does not let users leave"),
        (Driver(kind="jmeter", plan="x.jmx", own_thread_group=True), "does not let users leave before the end"),
        (Driver(kind="command", command=["x"], users_leave=True), ""),
        (Driver(kind="jmeter", plan="x.jmx"), ""),
    ],
)
def test_only_a_driver_that_lets_users_leave_is_asked_to(spec, driver, says):
    system = spec().system
    load = system.definition.load.model_copy(update={"driver": driver})
    system = replace(system, definition=system.definition.model_copy(update={"load": load}))
    if not says:
        assert _parse_above("8000", system) == 8000
        return
    with pytest.raises(RequestError, match=says):
        _parse_above("8000", system)


def test_a_load_that_arrives_at_a_rate_has_no_users_who_leave(spec):
    system = spec().system
    load = system.definition.load.model_copy(update={"model": LoadModel.OPEN})
    system = replace(system, definition=system.definition.model_copy(update={"load": load}))
    with pytest.raises(RequestError, match="users leave only where users think; the load of system rubbos is open"):
        _parse_above("8000", system)


def test_each_load_below_is_measured_twice_in_turns(spec):
    s = spec(users="1000,2000,4000,8000,9000", above="8000", reps="2")
    trials = plan.order(s)
    usual = [t for t in trials if t.above is None]
    assert usual == plan.order(spec(users="1000,2000,4000,8000,9000", reps="2")), "as without --above"
    from_above = [t for t in trials if t.above]
    assert {(t.users, t.rep) for t in from_above} == {(n, r) for n in (1000, 2000, 4000) for r in (1, 2)}
    assert from_above[0].key == "u01000.above08000.r01"
    places = {t.key: i for i, t in enumerate(trials)}
    for t in from_above:
        partner = replace(t, above=None)
        assert abs(places[partner.key] - places[t.key]) == 1, "one behind the other"
        assert partner.seed == t.seed, "with the same walks"
    first = [places[t.key] < places[replace(t, above=None).key] for t in from_above]
    assert 0 < sum(first) < len(first)
    by_load = {n: [f for f, t in zip(first, from_above, strict=True) if t.users == n] for n in (1000, 2000, 4000)}
    assert all(block_1 != block_2 for block_1, block_2 in by_load.values())


def run_of(leavers: int, ramp_up_s: float = 20) -> Run:
    return Run("/run/x", 400, Phases("short", ramp_up_s, 40, 5), 7, Entry("web", 80), think_time_s=7, leavers=leavers)


def test_the_driver_is_told_who_leaves_and_when():
    parts = [told(run_of(1201), share, []) for share in split(400, 2)]
    assert [p["leaving"] for p in parts] == [
        {"workers": 601, "first_worker": 400, "leave_s": 10.0},
        {"workers": 600, "first_worker": 1001, "leave_s": 10.0},
    ]
    numbers = [
        range(p["leaving"]["first_worker"], p["leaving"]["first_worker"] + p["leaving"]["workers"]) for p in parts
    ]
    assert all(a.stop == b.start for a, b in pairwise(numbers)), "no number twice, none left out"
    assert [p["workers"] for p in parts] == [200, 200]
    assert "leaving" not in told(run_of(0), split(400, 1)[0], [])
    assert leaving(run_of(0), split(400, 1)[0]) is None


def test_memory_is_planned_for_all_who_come():
    share = split(400, 1)[0]
    heaps = [int(JMeter("x.jmx").configuration(run_of(n), share)["jmeter"]["heap"][:-1]) for n in (0, 10_000)]
    assert heaps[1] - heaps[0] == pytest.approx(10_000 * 0.2 / 1.048576, rel=0.01)
    assert Command(("x",)).configuration(run_of(5), share) == {"parameters": {}}


def test_a_sweep_records_both_kinds_and_goes_on_with_them(lab, spec):
    s = spec(users="1000,3000", above="8000")
    assert sweep.run(lab(), spec(users="1000")) == 0, "the usual ones may be there already"
    machine = lab()
    assert sweep.run(machine, s) == 0
    assert sum("run-jmeter" in c for c in machine.runner.ran) == 3
    found = ledger.attempts(machine.paths.raw / s.sweep)
    manifests = {k: v[-1].manifest for k, v in found.items()}
    assert {k: (m.users, m.above, m.users_real, m.above_real, m.leavers) for k, m in manifests.items()} == {
        "u01000.r01": (1000, None, 200, None, 0),
        "u01000.above08000.r01": (1000, 8000, 200, 1600, 1400),
        "u03000.r01": (3000, None, 600, None, 0),
        "u03000.above08000.r01": (3000, 8000, 600, 1600, 1000),
    }
    requests = {k: json.loads((v[-1].directory / "config/driver.json").read_text()) for k, v in found.items()}
    assert requests["u01000.above08000.r01"]["leaving"] == {"workers": 1400, "first_worker": 200, "leave_s": 5.0}
    assert "leaving" not in requests["u01000.r01"]
    assert [p.planned_s for p in manifests["u01000.above08000.r01"].phases] == [10, 20, 2], "the same phases"
    again = lab()
    assert sweep.run(again, s) == 0
    assert not any("run-jmeter" in c for c in again.runner.ran)


def test_an_invalid_one_is_tried_again_by_itself(lab, spec):
    s, machine = spec(users="1000", above="8000"), lab(invalid=["", "users_stayed"])
    assert sweep.run(machine, s) == 0
    outcomes = {k: [a.outcome for a in v] for k, v in ledger.attempts(machine.paths.raw / s.sweep).items()}
    assert outcomes == {"u01000.r01": ["valid"], "u01000.above08000.r01": ["invalid", "valid"]}


def test_the_plan_shows_the_minutes(lab, spec):
    machine, s = lab(), spec(users="1000,3000,9000", above="8000", reps="2")
    data = plan_view.plan_data(machine, s)
    assert data["above"] == {"users": 8000, "trials": 4, "duration_s": 4 * plan.trial_duration_s(s)}
    assert data["duration_s"] == plan.sweep_duration_s(s, 10, deployed=False)
    text = plan_view.plan_text(data)
    assert "u01000.above08000.r01" in text
    assert (
        "Each load below 8000 users is measured twice in turns: after a reset, and after 8000 users were there" in text
    )
    assert f"That is 4 trials more, of which those to run take {duration(data['above']['duration_s'])}." in text
    assert plan_view.plan_data(machine, spec())["above"] is None
