"""Sweeps on the dry twin that are disturbed: faults in the run phase, interruptions, another harness, torn files."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ntier_analysis.contracts.manifest import State
from ntier_harness import sweep
from ntier_harness.errors import Interrupted, RequestError
from ntier_harness.trial import Attempt

from .promises import trials


def run_bounds(manifest):
    run = manifest.phase("run")
    return run.start_s, run.end_s


FAULTS = [
    ("node_stop", "db1", {}, "node_gone: db1"),
    ("client_kill", "client1", {}, "client_exit 137"),
    ("collector_kill", "db1", {"collector": "mysql_status"}, "collector_dead: mysql_status on db1"),
    ("quota_lost", "db1", {}, None),
    ("service_restart", "app1", {}, None),
    ("clock_set_back", "", {"seconds": -600}, "clock: this machine had its clock set back by 600 s since the load"),
    ("machine_asleep", "", {"seconds": 600}, "clock: this machine slept, or its clock was set ahead, by 600 s since"),
]


@pytest.mark.parametrize(("kind", "node", "more", "failure"), FAULTS, ids=[f[0] for f in FAULTS])
def test_a_fault_in_the_run_phase_is_never_valid_and_the_sweep_goes_on(lab, spec, kind, node, more, failure):
    s, machine = spec(users="1000"), lab()
    sweep.run(machine, s.__class__(**{**s.__dict__, "name": "before"}))
    begin = machine.runner.now() + 8 + 10 + 7
    machine.runner.world.state["faults"] = [{"t_s": begin, "kind": kind, "node": node, **more}]
    assert sweep.run(machine, s) == 0
    first, *rest = trials(machine, s)["u01000.r01"]
    start, end = run_bounds(first.manifest)
    fault = next(f for f in machine.runner.world.state["log"] if f["kind"] == kind)
    assert start <= fault["t_s"] < end, "the fault was meant to be in the run phase"
    assert first.outcome != "valid"
    assert rest[-1].outcome == "valid"
    if failure:
        assert first.manifest.state is State.FAILED
        assert first.manifest.failure.startswith(failure)
        stop_s = next(x["t_s"] for x in first.manifest.steps if x["step"] == "stop")
        assert stop_s - fault["t_s"] - more.get("seconds", 0) <= 9, "a lost trial is cut short"


def test_interrupt_ends_within_15_s_and_the_same_command_goes_on(lab, spec):
    s = spec()
    machine = lab()
    machine.runner.stop_at_s = machine.runner.now() + 80
    with pytest.raises(Interrupted):
        sweep.run(machine, s)
    assert machine.runner.now() - 1_800_000_080 < 15
    stopped = [a for v in trials(machine, s).values() for a in v if a.outcome == "interrupted"]
    assert len(stopped) == 1
    assert stopped[0].manifest.failure.startswith("interrupted: stopped by the user during")
    assert not machine.runner.world.state["spawned"]
    assert sweep.run(lab(), s) == 0


def test_a_reader_that_has_gone_is_an_interruption_and_no_fault_of_the_trial(lab, spec, monkeypatch):
    """As of `ntier sweep --json | head`."""
    s, machine = spec(users="1000"), lab()

    def gone(*_):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(machine.screen, "tick", gone)
    with pytest.raises(BrokenPipeError):
        sweep.run(machine, s)
    (made,) = trials(machine, s)["u01000.r01"]
    assert made.outcome == "interrupted"
    assert made.manifest.failure == "interrupted: [Errno 32] Broken pipe during ramp_up"
    assert not machine.runner.world.state["spawned"]
    assert sweep.run(lab(), s) == 0


def test_interruptions_do_not_use_up_attempts(lab, spec):
    s = spec(users="1000")
    for _ in range(5):
        machine = lab()
        deployed = machine.paths.in_force.exists()
        machine.runner.stop_at_s = machine.runner.now() + (15 if deployed else 65)
        with pytest.raises(Interrupted):
            sweep.run(machine, s)
    machine = lab()
    assert sweep.run(machine, s) == 0
    made = trials(machine, s)["u01000.r01"]
    assert len({a.manifest.seeds["client1"] for a in made}) == 1, "the same walks after an interruption"


def test_two_harnesses(lab, spec):
    first = lab()
    with sweep.locked(first), pytest.raises(RequestError, match=r"another ntier is at work: pid \d+, since"):
        sweep.run(lab(), spec())


def test_a_harness_with_another_state_leaves_the_results_alone_that_one_works_with(lab, spec, monkeypatch):
    s, first, other = spec(users="1000"), lab(), lab()
    other.paths = other.target.paths = replace(other.paths, state=other.paths.root / "other")
    measure, said = Attempt.measure, []

    def meanwhile(attempt):
        with pytest.raises(RequestError, match="another ntier is at work: it has another NTIER_STATE") as error:
            sweep.run(other, spec(users="1000"))
        said.append(str(error.value))
        with sweep.locked(other):
            sweep.tidy(other, other.paths.raw)
        measure(attempt)

    monkeypatch.setattr(Attempt, "measure", meanwhile)
    assert sweep.run(first, s) == 0
    assert len(said) == 1
    assert f"go to {first.paths.results} too" in said[0]
    assert [a.outcome for a in trials(first, s)["u01000.r01"]] == ["valid"]
    assert {p.name for p in first.paths.results.iterdir()} == {"raw", "store", "reports"}
    monkeypatch.undo()
    assert sweep.run(other, s) == 0, "when the first one has ended, its results are there for the other one"


def test_torn_manifest_is_a_failed_attempt(lab, spec):
    s, machine = spec(users="1000"), lab()
    sweep.run(machine, s)
    file = machine.paths.raw / s.sweep / "u01000.r01" / "manifest.json"
    text = file.read_text()
    file.chmod(0o644)
    file.write_text(text[: len(text) // 2])
    assert sweep.run(lab(), s) == 0
    torn, again = trials(machine, s)["u01000.r01"]
    assert (torn.outcome, again.outcome) == ("failed", "valid")
    assert "manifest.json" in torn.problem
