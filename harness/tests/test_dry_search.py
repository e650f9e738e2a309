"""Sweeps that search for the capacity, on the dry twin: decisions are on disk first, and the same command goes on."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
from ntier_harness import ledger, plan_view, schedule, sweep
from ntier_harness.errors import Interrupted, WorkError
from ntier_harness.runner import Runner

from . import promises
from .dry import DryRunner


def loads(machine, s):
    return sorted(ledger.attempts(machine.paths.raw / s.sweep))


def record(machine, s):
    return json.loads((machine.paths.raw / s.sweep / "search.json").read_text())


def test_only_the_loads_asked_for_are_run(lab, spec):
    s, machine = spec(users="1000:13000:1000", search="capacity"), lab()
    assert sweep.run(machine, s) == 0
    assert loads(machine, s) == ["u01000.r01", "u07000.r01", "u13000.r01"]
    assert [d["users"] for d in record(machine, s)["decisions"]] == [1000, 7000, 13000, None]
    assert record(machine, s)["grid"] == list(range(1000, 13001, 1000))
    stop = "search: stop; 10 of the grid's 13 loads spared, about 6 min 20 s: three loads are valid"
    assert stop in machine.screen.said


def test_a_further_run_changes_nothing_and_asks_nobody(lab, spec):
    s = spec(users="1000:13000:1000", search="capacity")
    sweep.run(lab(), s)
    machine = lab()
    before = promises.digests(machine.paths.results)
    assert sweep.run(machine, s) == 0
    assert promises.digests(machine.paths.results) == before
    assert not any("run-jmeter" in c for c in machine.runner.ran)


def test_an_interrupted_search_goes_on_with_the_load_it_had_chosen(lab, spec):
    s = spec(users="1000:13000:1000", search="capacity")
    machine = lab()
    machine.runner.stop_at_s = machine.runner.now() + 110
    with pytest.raises(Interrupted):
        sweep.run(machine, s)
    decided = [d["users"] for d in record(machine, s)["decisions"]]
    assert decided[-1] is not None
    assert sweep.run(lab(), s) == 0
    assert loads(lab(), s) == ["u01000.r01", "u07000.r01", "u13000.r01"]
    assert [d["users"] for d in record(machine, s)["decisions"]] == [1000, 7000, 13000, None]


@pytest.mark.parametrize(
    ("users", "says"),
    [(1000, "asks for 1000 users, which were tried already; see that"), (0.5, "printed no decision"),
     ([], "printed no decision")],
)  # fmt: skip
def test_a_decision_of_another_version_is_one_clear_error(lab, spec, users, says):
    """As by an analysis that was installed anew while the search ran."""
    s, machine = spec(users="1000,7000", search="capacity"), lab()
    sweep.run(machine, spec(users="1000"))
    machine = lab()
    machine.runner._searched = lambda _argv: {"users": users, "reason": "plateau", "why": "it is new"}
    with pytest.raises(WorkError, match=says):
        sweep.run(machine, s)
    assert loads(machine, s) == ["u01000.r01"]
    assert sweep.run(lab(), s) == 0


def test_a_load_that_cannot_be_measured_is_replaced_and_told(lab, spec):
    s, machine = spec(users="1000:13000:1000", search="capacity"), lab(invalid=["host_busy"] * 3)
    assert sweep.run(machine, s) == 1
    found = ledger.attempts(machine.paths.raw / s.sweep)
    assert [a.outcome for a in found["u01000.r01"]] == ["invalid"] * 3
    assert loads(machine, s) == ["u01000.r01", "u01050.r01", "u07000.r01", "u13000.r01"]


def test_trials_of_a_grid_are_not_run_again(lab, spec):
    sweep.run(lab(), spec(users="1000,7000"))
    machine, s = lab(), spec(users="1000:13000:1000", search="capacity")
    assert sweep.run(machine, s) == 0
    assert sum("run-jmeter" in c for c in machine.runner.ran) == 1
    assert [d["users"] for d in record(machine, s)["decisions"]] == [13000, None]


def test_repetitions_repeat_the_loads_found(lab, spec):
    s, machine = spec(users="1000:13000:1000", search="capacity", reps="2"), lab()
    assert sweep.run(machine, s) == 0
    assert loads(machine, s) == [f"u{u:05d}.r{r:02d}" for u in (1000, 7000, 13000) for r in (1, 2)]


def test_a_torn_record_is_an_error_that_names_it(lab, spec):
    s, machine = spec(users="1000:13000:1000", search="capacity"), lab()
    sweep.run(machine, s)
    (machine.paths.raw / s.sweep / "search.json").write_text("{")
    with pytest.raises(WorkError, match=r"search\.json: not the record of a search"):
        sweep.run(lab(), s)


def test_the_plan_says_how_many_at_most(lab, spec):
    data = plan_view.plan_data(lab(), spec(users="1000:13000:1000", search="capacity"))
    assert data["search"] == {
        "name": "capacity", "precision": 0.05, "precision_given": False, "by_minutes": False,
        "usual": 4, "at_most": 6, "grid": 13,
    }  # fmt: skip
    assert "4 trials at most instead of 13, and up to 6 while fewer" in plan_view.plan_text(data)


def test_a_list_that_is_shorter_than_the_search_is_not_spared(lab, spec):
    s, machine = spec(users="1000,13000", search="capacity", precision="0.05"), lab()
    assert "6 trials at most." in plan_view.plan_text(plan_view.plan_data(machine, s))
    assert sweep.run(machine, s) == 0
    assert "search: stop: three loads are valid" in machine.screen.said


def test_loads_that_a_grid_ran_are_not_spared(lab, spec):
    sweep.run(lab(), spec(users="1000:13000:1000"))
    machine = lab()
    assert sweep.run(machine, spec(users="1000:13000:1000", search="capacity")) == 0
    assert "search: stop: three loads are valid" in machine.screen.said


def test_more_attempts_let_a_search_decide_again(lab, spec, monkeypatch):
    """Its lowest load had no valid trial when it stopped, so another one stood in for it in the budget."""
    s = spec(users="1000:13000:1000", search="capacity")
    assert sweep.run(lab(invalid=["host_busy"] * 3), s) == 1
    most = []

    def one_more(_self, argv):
        most.append(tuple(int(argv[argv.index(o) + 1]) for o in ("--most", "--most-if-few")))
        left = "u09000.r01" not in loads(machine, s)
        return {"users": 9000 if left else None, "reason": "plateau" if left else "precise", "why": "another"}

    monkeypatch.setattr(DryRunner, "_searched", one_more)
    machine = lab()
    assert sweep.run(machine, s, 4) == 0
    assert "u09000.r01" in loads(machine, s)
    assert most == [(5, 7), (5, 7)]
    assert schedule.make(machine, s, 4).stopped()
    before = promises.digests(machine.paths.results)
    assert sweep.run(lab(), s, 4) == 0
    assert promises.digests(machine.paths.results) == before


def test_loads_at_which_the_host_was_full_are_repeated_with_more_attempts_only(lab, spec, monkeypatch):
    """No further repetition of them is run, nor, by the same command, another attempt."""
    s = spec(users="1000:13000:1000", search="capacity", reps=3)
    usual = DryRunner._searched

    def told(self, argv):
        step = usual(self, argv)
        end = step["reason"] != "precise" and step["users"] not in (1000, 7000) and not any_valid()
        return {"users": None, "reason": "host full", "why": "the machine beneath was full"} if end else step

    def any_valid():
        tries = ledger.attempts(machine.paths.raw / s.sweep)
        return any(a.outcome == "valid" for v in tries.values() for a in v)

    monkeypatch.setattr(DryRunner, "_searched", told)
    machine = lab(invalid=["host_saturated"] * 6)
    assert sweep.run(machine, s) == 1
    refused = ["u01000.r01", "u07000.r01"]
    assert loads(machine, s) == refused
    assert schedule.to_come(machine, s, 3) == []
    before = promises.digests(machine.paths.results)
    machine = lab()
    assert sweep.run(machine, s) == 1
    assert promises.digests(machine.paths.results) == before
    assert sweep.run(machine, s, 4) == 0
    assert {f"u{u:05d}.r{r:02d}" for u in (1000, 7000, 13000) for r in (1, 2, 3)} <= set(loads(machine, s))


@pytest.mark.parametrize(
    ("precise_after", "asked", "ran"), [(1, "0.03", 1), (2, "0.03", 2), (9, "0.03", 3), (2, None, 3)]
)
def test_repetitions_of_minutes_end_when_the_precision_is_reached(lab, spec, monkeypatch, precise_after, asked, ran):
    s = spec(users="1000:13000:1000", search="capacity", precision=asked)
    s, machine = replace(s, reps=3, asked_loads=4, reps_by_minutes=True), lab()
    usual = DryRunner._searched

    def told(self, argv):
        step = usual(self, argv)
        begun = max((int(k[-2:]) for k in loads(machine, s)), default=0)
        stops = {"reason": "precise" if begun >= precise_after else "budget"} if step["users"] is None else {}
        return step | stops

    monkeypatch.setattr(DryRunner, "_searched", told)
    assert sweep.run(machine, s) == 0
    assert loads(machine, s) == [f"u{u:05d}.r{r:02d}" for u in (1000, 7000, 13000) for r in range(1, ran + 1)]
    before = promises.digests(machine.paths.results)
    again = lab()
    assert schedule.to_come(again, s, 3) == []
    assert sweep.run(again, s) == 0
    assert promises.digests(machine.paths.results) == before


@pytest.mark.parametrize(
    ("users", "given", "most", "if_few"),
    [
        ("1000:13000:1000", {}, 4, 6),
        ("1000:13000:1000", {"precision": "0.05"}, 6, 6),
        ("500:13000:500", {}, 6, 6),
        ("1000:5000:1000", {}, 4, 6),
        ("1000:5000:4000", {"precision": "0.05"}, 6, 6),
    ],
)
def test_a_search_takes_a_third_of_the_grid_unless_more_is_asked_for_or_needed(spec, users, given, most, if_few):
    made = spec(users=users, search="capacity", **given)
    assert (made.most_loads, made.most_loads_if_few) == (most, if_few)


def test_the_real_analysis_answers_the_question(lab, spec):
    """No twin: the options that are given and the answer that is read are those of the program."""
    machine, s = lab(), spec(users="1000:13000:1000", search="capacity", precision="0.03")
    machine.runner = Runner()
    assert schedule.make(machine, s, 3).next().key == "u01000.r01"
    assert record(machine, s)["decisions"][0]["reason"] == "low"
    assert record(machine, s)["precision"] == 0.03


def test_a_search_whose_trials_were_removed_begins_anew(lab, spec, root):
    """Its store still has them, by which it would have ended: a search looks at the trials alone."""
    s, machine = spec(users="1000:13000:1000", search="capacity"), lab()
    assert sweep.run(machine, s) == 0
    (machine.paths.raw / s.sweep).rename(root / "away")
    assert sweep.run(lab(), s) == 0
    assert loads(machine, s) == ["u01000.r01", "u07000.r01", "u13000.r01"]


def test_a_search_whose_record_alone_is_left_follows_it(lab, spec):
    s, machine = spec(users="1000:13000:1000", search="capacity"), lab()
    assert sweep.run(machine, s) == 0
    for trial in (machine.paths.raw / s.sweep).glob("u*"):
        shutil.rmtree(trial)
    assert not schedule.make(machine, s, 3).stopped()
    assert sweep.run(lab(), s) == 0
    assert loads(machine, s) == ["u01000.r01", "u07000.r01", "u13000.r01"]


def test_a_search_that_ends_alike_for_another_goal_has_ended(lab, spec):
    sweep.run(lab(), spec(users="1000:13000:1000", search="capacity"))
    machine, s = lab(), spec(users="1000:13000:1000", search="capacity", precision="0.03")
    assert sweep.run(machine, s) == 0
    assert schedule.make(machine, s, 3).stopped()
    assert schedule.to_come(machine, s, 3) == []
