"""Attempts one behind the other: the nodes get ready while the attempt before is judged, and no users begin before its
outcome is on disk."""

from __future__ import annotations

import threading
import time

import pytest
from ntier_harness import ledger, sweep
from ntier_harness import runner as runner_module
from ntier_harness.errors import Interrupted, WorkError
from ntier_harness.load import Generator
from ntier_harness.runner import Runner


def moments(machine, *words) -> list[int]:
    """Where each of these commands stands among those that were run."""
    return [next(i for i, line in enumerate(machine.runner.ran) if word in line) for word in words]


def test_the_next_load_gets_ready_while_the_last_trial_is_judged(lab, spec):
    s, machine = spec(), lab()
    assert sweep.run(machine, s) == 0
    first = next(i for i, line in enumerate(machine.runner.ran) if line == "ntier-analysis --json")
    drivers = [i for i, line in enumerate(machine.runner.ran) if "run-jmeter" in line and ".u0" in line]
    assert drivers[0] < drivers[1] < first, "the second driver was started before the first trial was judged"


def outcomes_before_users(monkeypatch, machine, s) -> list[dict[str, list[str]]]:
    """What the ledger says at the moment when the users of each trial begin."""
    seen, release = [], Generator.release

    def noted(self, *earliest_s):
        if ".u" in self.run.directory:
            tries = ledger.attempts(machine.paths.raw / s.sweep)
            seen.append({key: [a.outcome for a in list_] for key, list_ in tries.items()})
        return release(self, *earliest_s)

    monkeypatch.setattr(Generator, "release", noted)
    return seen


def test_no_users_begin_before_the_outcome_of_the_last_attempt_is_on_disk(lab, spec, monkeypatch):
    s, machine = spec(), lab(invalid=["host_busy"])
    seen = outcomes_before_users(monkeypatch, machine, s)
    assert sweep.run(machine, s) == 0
    assert seen == [
        {"u01000.r01": ["running"]},
        {"u01000.r01": ["invalid"], "u03000.r01": ["running"]},
        {"u01000.r01": ["invalid", "running"], "u03000.r01": ["valid"]},
    ], "an invalid trial is tried again after the one that was getting ready"


def test_a_search_decides_when_the_outcome_is_known(lab, spec, monkeypatch):
    s, machine = spec(users="1000:3000:1000", search="capacity"), lab()
    seen = outcomes_before_users(monkeypatch, machine, s)
    assert sweep.run(machine, s) == 0
    assert [list(tries) for tries in seen] == [
        ["u01000.r01"], ["u01000.r01", "u02000.r01"], ["u01000.r01", "u02000.r01", "u03000.r01"],
    ]  # fmt: skip
    assert all(outcomes == ["valid"] for tries in seen for outcomes in list(tries.values())[:-1])


def test_what_ends_the_sweep_when_a_trial_is_concluded_ends_the_one_that_got_ready(lab, spec, monkeypatch):
    """A full disk at the seal of the first one: the second one has started its driver by then, and has to wind down."""
    s, machine, seal = spec(), lab(), ledger.seal

    def full(directory, manifest, state):
        if directory.name.startswith("u01000"):
            raise OSError(28, "No space left on device", str(directory))
        seal(directory, manifest, state)

    monkeypatch.setattr(ledger, "seal", full)
    with pytest.raises(WorkError, match="No space left on device"):
        sweep.run(machine, s)
    assert not machine.runner.world.state["spawned"]
    assert not any(n["allowance"] or n.get("collecting") for n in machine.runner.world.state["nodes"].values())
    (second,) = ledger.attempts(machine.paths.raw / s.sweep)["u03000.r01"]
    assert second.outcome == "interrupted"
    monkeypatch.undo()
    assert sweep.run(lab(), s) == 0


def test_programs_are_asked_for_their_versions_once(lab, spec):
    s, machine = spec(users="1000,2000,3000"), lab()
    machine.runner.invalid = ["host_busy"]
    assert sweep.run(machine, s) == 0
    asked = sum(line.endswith("ntier-node versions") for line in machine.runner.ran)
    assert asked == 5 + 3, "all five nodes for the first attempt, then the client, whose driver is another process"
    tries = ledger.attempts(machine.paths.raw / s.sweep)
    assert {a.manifest.versions["db.running.dbd"] for list_ in tries.values() for a in list_} == {"1.0"}


def test_a_request_to_stop_waits_only_for_the_part_that_defers_it():
    runner = Runner()
    inside, done = threading.Event(), threading.Event()

    def work() -> str:
        with runner.stop.deferred():
            inside.set()
            done.wait(10)
            return runner.parallel(lambda _: runner.run(["echo", "judged"]).out.strip(), [1])[0]

    result = runner.beside(work)
    assert inside.wait(10)
    runner.stop.request()
    with pytest.raises(Interrupted):
        runner.sleep(5)
    done.set()
    assert result() == "judged", "nor were the threads that it started interrupted"


def test_what_is_done_beside_raises_where_it_is_waited_for():
    gate = threading.Event()
    result = Runner().beside(lambda: gate.wait(60) and 1 / 0)
    gate.set()  # so `beside` has returned although this was not done
    with pytest.raises(ZeroDivisionError):
        result()


CLOCK = "while read _; do date +%s.%N; done"


def test_facts_and_the_clock_come_over_one_connection():
    lines, offset, trip = Runner().exchange(["sh", "-c", f"echo facts; {CLOCK}"], 3, 1)
    assert lines == ["facts"]
    assert abs(offset) <= trip
    with pytest.raises(WorkError, match="services are ill"):
        Runner().exchange(["sh", "-c", "echo services are ill >&2; exit 1"], 3, 1)


def test_an_exchange_that_hangs_ends_in_time_and_says_so(monkeypatch):
    monkeypatch.setattr(runner_module, "EXCHANGE_S", 0.3)
    with pytest.raises(WorkError, match=r"no answer within 0\.3 s"):
        Runner().exchange(["sh", "-c", "exec sleep 60"], 3)


def test_a_request_to_stop_does_not_wait_for_a_node_that_resets():
    runner = Runner()
    threading.Timer(0.3, runner.stop.request).start()
    began = time.monotonic()
    with pytest.raises(Interrupted):
        runner.exchange(["sh", "-c", "exec sleep 60"], 3, 1)
    assert time.monotonic() - began < 30
