"""A sweep on real nodes that can be watched and disturbed. Needs root and built images; nodes are made when missing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ntier_analysis.contracts.manifest import Manifest, Outcome
from ntier_harness import ledger
from testnode import SCALE

from .. import promises

NTIER = str(Path(sys.executable).with_name("ntier"))
PHASES = "3/10/1"  # s; long enough that a fault fits into the run phase, short enough for a dozen of them
DEADLINE_S = 1800  # also on a machine that a hypervisor robs: each attempt then waits some minutes
INCUS = ["incus", "--project", "ntier"]
# Checks (docs/validity.md) by which a trial is refused where a hypervisor takes CPU time, or where the host or its
# client has too little of it.
OF_THE_MACHINE = {"H1", "H1.mean", "H2", "H2.p99", "G3", "G3.thread"}
ROBBED = OF_THE_MACHINE - {"G3", "G3.thread"}
LATE = {"G1", "G2", "G2.p99", "G3.gc", "C1", "C1.gap", "C2", "C4", "C4.drift", "H3"}  # so only where it was robbed


class RealSweep:
    """One `ntier sweep` of one load, in a process of its own, with its folder of results. `system`: topology, mix and
    middleware, as they stand in the sweep's name; `more`: options."""

    def __init__(
        self, results: Path, name: str, system: str = "1-1-1-1M.browse_only.shardingsphere", more: tuple[str, ...] = ()
    ) -> None:
        self.results = results
        topology, mix, _ = system.split(".")
        self.argv = [NTIER, "sweep", "--topo", topology.replace("-", "/"), "--mix", mix, "--users", "500",
                     "--phases", PHASES, "--name", name, "--attempts", "2", "--results", str(results),
                     *SCALE, *more]  # fmt: skip
        self.sweep = f"{system}.{name}"
        self.raw = results / "raw"
        self.process: subprocess.Popen[bytes] | None = None
        self.faults: list[float] = []
        self.log = results / f"{name}.out"

    def start(self) -> None:
        self.results.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(self.argv, stdout=out, stderr=out, start_new_session=True)

    def wait(self, deadline_s: float = DEADLINE_S) -> int:
        assert self.process is not None
        return self.process.wait(deadline_s)

    def run(self) -> int:
        self.start()
        return self.wait()

    def attempts(self) -> list[ledger.Attempt]:
        return ledger.attempts(self.raw / self.sweep).get("u00500.r01", [])

    def manifest(self) -> Manifest | None:
        newest = self.attempts()
        return newest[-1].manifest if newest else None

    def await_step(self, step: str, seconds_in: float = 3.0) -> None:
        """Returns when the running attempt has been in `step` for some seconds."""
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            assert self.process is not None
            assert self.process.poll() is None, f"the sweep ended early: {self.log.read_text()[-2000:]}"
            m = self.manifest()
            if m and m.state == "running" and m.steps and m.steps[-1]["step"] == step:
                began = m.phase(step).start_s if step in ("ramp_up", "run", "ramp_down") else m.steps[-1]["t_s"]
                time.sleep(max(0.0, began + seconds_in - time.time()))
                return
            time.sleep(0.1)
        raise AssertionError(f"step {step} was not reached")

    def fault(self, action: Callable[[], object]) -> None:
        self.faults.append(time.time())
        action()

    def interrupt(self) -> float:
        """Ctrl-C as a terminal sends it; returns the seconds until the process ended."""
        assert self.process is not None
        began = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        self.process.wait(180)
        return time.monotonic() - began

    def check(self, code: int, promised: tuple[int, ...]) -> None:
        """Promises I1, I3, I4, I7 and I8 now; raises AssertionError with the violations."""
        verdict = promises.Verdict()
        promises.check_exit(verdict, code, promised)
        promises.check_records(verdict, self.raw)
        promises.check_faults(verdict, self.raw, self.faults)
        promises.check_leftovers(verdict, leftovers(self.raw))
        assert not verdict.violations, "\n".join([*verdict.violations, self.log.read_text()[-3000:]])


def sound(m: Manifest | None) -> bool:
    """Whether the trial is valid, or refused for nothing but this machine."""
    if m is None or m.validity is None:
        return False
    missed = {c.id for c in m.validity.checks if c.required and c.outcome is not Outcome.PASS}
    return missed <= (OF_THE_MACHINE | LATE if missed & ROBBED else OF_THE_MACHINE)


def last_attempts(results: Path) -> list[ledger.Attempt]:
    sweeps = (results / "raw").iterdir() if (results / "raw").exists() else ()
    return [tries[-1] for sweep in sweeps for tries in ledger.attempts(sweep).values()]


def check_sound(run: Callable[[int], subprocess.CompletedProcess[str]], results: Path) -> bool:
    """Asserts that the sweep that `run(attempts)` makes does all that this machine lets it do; returns whether each of
    its trials is valid. Some machines are robbed for hours, or too slow for a load: then no attempt is valid, and what
    follows from valid trials cannot be asked. So a trial that the machine spoilt is not made again, before which the
    sweep would wait for minutes; one that is refused for anything else is, once."""
    done = run(1)
    if not all(sound(a.manifest) for a in last_attempts(results)):
        done = run(2)
    last = last_attempts(results)
    assert last, done.stderr[-3000:]
    valid = all(a.outcome == "valid" for a in last)
    told = done.stdout[-3000:] + done.stderr[-3000:]
    assert (done.returncode == 0) == valid, told
    assert all(sound(a.manifest) for a in last), told
    return valid


def leftovers(raw: Path) -> Iterator[str]:
    """Processes of a sweep on this machine, generators and collectors in the nodes, limits in force."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            argv = (folder / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if any(Path(a).name in ("sampler.py", "sadc") for a in argv[:4]) and any(str(raw) in a for a in argv):
            yield " ".join(argv)
    for name in nodes():
        config = json.loads(incus("query", f"/1.0/instances/{name}?project=ntier"))["config"]
        if config.get("limits.cpu.allowance"):
            yield f"{name}: limits.cpu.allowance={config['limits.cpu.allowance']}"
        done = subprocess.run(
            [*INCUS, "exec", name, "--", "pgrep", "-fa", "ApacheJMeter|/sadc "], capture_output=True, text=True
        )
        yield from (f"{name}: {line}" for line in done.stdout.splitlines())


def incus(*arguments: str) -> str:
    return subprocess.run(["incus", *arguments], check=True, capture_output=True, text=True, timeout=60).stdout


def nodes() -> list[str]:
    listed = json.loads(incus("--project", "ntier", "list", "--format", "json"))
    return [i["name"] for i in listed if not i["name"].startswith("build-") and i["status"] == "Running"]


def on_node(name: str, command: str) -> str:
    done = subprocess.run([*INCUS, "exec", name, "--", "sh", "-c", command], capture_output=True, text=True, timeout=60)
    return done.stdout


@pytest.fixture(scope="session")
def deployed(deployments: None) -> None:
    """1/1/1/1M up and deployed."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    for command in ("up", "deploy"):
        done = subprocess.run(
            [NTIER, command, "--topo", "1/1/1/1M", *SCALE], capture_output=True, text=True, timeout=DEADLINE_S
        )
        assert done.returncode == 0, done.stderr


@pytest.fixture
def real_sweep(deployed: None, tmp_path: Path) -> Callable[[str], RealSweep]:
    return lambda name: RealSweep(tmp_path / "results", name)
