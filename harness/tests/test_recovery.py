"""Whatever is raised in a trial, it winds down; what a crashed run left is found on the machine, not in a folder."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from ntier_analysis.contracts.manifest import Manifest, State
from ntier_harness import node_commands, plan, settings, sweep
from ntier_harness.node_state import in_force
from ntier_harness.runner import Runner

from .dry import DryRunner
from .test_full_disk import leftovers_of_the_trial

WIND_DOWN = ("end-load", "ntier-node stop", "ntier-node drop", "allowance=")


def test_whatever_is_raised_a_trial_ends_its_load_limits_and_collectors(lab, spec, monkeypatch):
    """Every third call of a trial in turn raises what nobody foresaw."""
    s, machine = spec(users="1000", phases="2/5/1"), lab()
    assert sweep.run(machine, s) == 0
    real, soft, (trial,), warm = DryRunner.run, settings.values(s), plan.order(s), in_force(machine)["warm"]
    calls, at, failures = 0, 0, []

    def run(self, argv, **options):
        nonlocal calls
        calls += not any(word in argv[-1] and not argv[-1].endswith("ms") for word in WIND_DOWN)
        if calls == at:
            calls += 1
            raise json.JSONDecodeError("broken", "{", 1)
        return real(self, argv, **options)

    monkeypatch.setattr(DryRunner, "run", run)
    while calls >= at:
        calls, at = 0, at + 3
        done = sweep.new_attempt(machine, s, soft, trial, at + 1, machine.paths.raw / s.sweep, warm)
        done.measure()
        done.conclude()
        recorded = Manifest.read(done.directory)
        assert not list(leftovers_of_the_trial(machine)), f"call {at}"
        assert recorded.state in (State.FAILED, State.COLLECTED)
        failures.append(recorded.failure)
    assert failures[-1] is None, "the last attempt met nothing"
    assert len(failures) > 8
    assert all("JSONDecodeError: broken" in f for f in failures[:-1]), failures


def test_what_a_crashed_run_left_on_the_nodes_goes_whatever_folder_it_wrote_to(lab, spec, root):
    sweep.run(lab(), spec(users="1000", phases="2/5/1"))
    machine = lab()
    machine.paths = dataclasses.replace(machine.paths, results=root / "elsewhere")
    nodes = machine.runner.world.state["nodes"]
    nodes["db1"] |= {"allowance": "2ms/10ms", "collecting": "/run/ntier/other.u01000.r01"}
    nodes["client1"]["jmeter"]["start_s"] = machine.runner.now()
    assert len(list(leftovers_of_the_trial(machine))) == 3
    sweep.tidy(machine, machine.paths.raw)
    assert not list(leftovers_of_the_trial(machine))


CRASHED = """
import os, sys
from ntier_harness.runner import Runner
print(Runner().spawn(["sleep", "300"]).pid, flush=True)
os.kill(os.getpid(), 9)
"""


def is_running(pid: int) -> bool:
    return "State:\tZ" not in text if (text := status(pid)) else False


def status(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return ""


def test_only_processes_of_a_harness_that_is_no_more_are_ended():
    """Not those of one that lives, nor another terminal's, whatever their arguments say."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    crashed = subprocess.run([sys.executable, "-c", CRASHED], env=environment, stdout=subprocess.PIPE, text=True)
    orphan = int(crashed.stdout)
    living = Runner().spawn(["sleep", "300"])
    terminal = subprocess.Popen(["sh", "-c", "sleep 300; : ssh -oControlPath=/var/lib/ntier/ssh/cm journalctl -f"])
    try:
        assert is_running(orphan)
        assert Runner().end_orphans() >= 1
        assert not is_running(orphan)
        assert living.poll() is None
        assert terminal.poll() is None
    finally:
        for pid in (orphan, terminal.pid):
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)
        terminal.wait()
        living.stop()


def test_a_shell_has_a_connection_of_its_own(lab, spec, monkeypatch):
    """One that it shared with a run would end with it."""
    machine, became = lab(), []
    sweep.run(machine, spec(users="1000", phases="2/5/1"))
    monkeypatch.setattr(os, "execvp", lambda _program, argv: became.extend(argv))
    node_commands.shell(machine, "db1", ["journalctl", "-f"])
    said = subprocess.run(["ssh", "-G", *became[1:]], capture_output=True, text=True, check=True).stdout.splitlines()
    assert "controlmaster false" in said
    assert not any(line.startswith("controlpath /") for line in said), [x for x in said if "control" in x]


def test_processes_of_a_living_harness_are_marked_with_its_start(tmp_path):
    runner, out = Runner(), tmp_path / "out"
    spawned = runner.spawn(["sh", "-c", "echo $NTIER_HARNESS"], out)
    while spawned.poll() is None:
        time.sleep(0.01)
    fields = Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()
    assert out.read_text().strip() == f"{Path('/proc/self/ns/pid').stat().st_ino}.{os.getpid()}.{fields[19]}"


def test_a_program_that_reads_late_gets_all_of_its_input():
    """Longer than the runner looks for a request to stop, and more than a pipe holds."""
    done = Runner().run(["sh", "-c", "sleep 0.5; wc -c"], input=b"x" * 1_000_000, timeout=30)
    assert done.out.strip() == "1000000"
