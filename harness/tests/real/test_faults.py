"""Faults on real nodes: a trial whose run phase met one is never valid, each attempt is a record, the same command
ends the sweep. A machine that is too busy gives no valid trial; its attempts are invalid, exit code 1 is right."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from ntier_analysis.contracts.manifest import State

from .. import promises
from .conftest import RealSweep, incus, on_node

pytestmark = [pytest.mark.nodes("1/1/1/1M"), pytest.mark.alone]

# The whole matrix takes most of an hour (`make test-faults`); `make test` runs the tests without this mark.
matrix = pytest.mark.faults


def finish(sweep: RealSweep, first: dict[str, int]) -> None:
    """The same command goes on and ends; the disturbed attempts are as they were; a further run changes nothing."""
    code = sweep.run()
    sweep.check(code, (0, 1))
    done = {a.directory.name: a for a in sweep.attempts()}
    assert len(done) > len(first), "no further attempt was made"
    assert any(a.manifest.state is State.COLLECTED for n, a in done.items() if n not in first), sweep.log.read_text()[
        -3000:
    ]
    before = promises.digests(sweep.raw)
    assert sweep.run() == code
    assert promises.digests(sweep.raw) == before


def names(sweep: RealSweep) -> dict[str, int]:
    return {a.directory.name: a.number for a in sweep.attempts()}


def jmeter_pid() -> str:
    """The JVM's, as the client's starter wrote it down; its shell has the same words in its arguments."""
    pid = on_node("client1", "cat /run/ntier/*/jmeter.pid").strip()
    assert on_node("client1", f"cat /proc/{pid}/comm").strip() == "java", pid
    return pid


FAULTS = {
    "db_killed": lambda: on_node("db1", "pkill -9 -x mysqld"),
    "client_killed": lambda: on_node("client1", f"kill -9 {jmeter_pid()}"),
    "db_stopped": lambda: incus("--project", "ntier", "stop", "db1", "--force"),
    "collector_killed": lambda: on_node("db1", "pkill -9 -x sadc"),
    "quota_lost": lambda: incus("--project", "ntier", "config", "unset", "db1", "limits.cpu.allowance"),
    "app_killed": lambda: on_node("app1", "pkill -9 java"),
    "middleware_killed": lambda: on_node("middleware1", "pkill -9 java"),
}


@pytest.mark.parametrize(
    "kind",
    [kind if kind == "collector_killed" else pytest.param(kind, marks=matrix) for kind in FAULTS],
)
def test_fault_in_the_run_phase(real_sweep, kind):
    sweep = real_sweep(kind)
    sweep.start()
    sweep.await_step("run")
    sweep.fault(FAULTS[kind])
    code = sweep.wait()
    sweep.check(code, (0, 1))
    first, *further = sweep.attempts()
    assert first.outcome in ("invalid", "failed")
    assert further, "the trial was not tried again"
    assert any(a.manifest.state is State.COLLECTED for a in further), sweep.log.read_text()[-3000:]


@matrix
def test_client_paused(real_sweep):
    """Five seconds without a generator: its lag makes the trial invalid, or its silence ends it."""
    sweep = real_sweep("client_paused")
    sweep.start()
    sweep.await_step("run")
    pid = jmeter_pid()
    sweep.fault(lambda: on_node("client1", f"kill -STOP {pid}; sleep 5; kill -CONT {pid}"))
    sweep.check(sweep.wait(), (0, 1))
    assert sweep.attempts()[0].outcome in ("invalid", "failed")


@matrix
def test_cpu_stolen_from_the_host(real_sweep):
    sweep = real_sweep("cpu_stolen")
    sweep.start()
    sweep.await_step("run", 1.0)
    sweep.faults.append(time.time())
    hogs = [
        subprocess.Popen(["nice", "-n", "-10", "sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count() or 1)
    ]
    time.sleep(7)
    for hog in hogs:
        hog.kill()
        hog.wait()
    sweep.check(sweep.wait(), (0, 1))
    assert sweep.attempts()[0].outcome == "invalid"


@matrix
@pytest.mark.parametrize("step", ["reset", "ramp_up", "run", "stop"])
def test_kill_9(real_sweep, step):
    sweep = real_sweep(f"kill9_{step}")
    sweep.start()
    sweep.await_step(step, 2.0 if step in ("ramp_up", "run") else 0.0)
    sweep.fault(sweep.process.kill)
    sweep.wait()
    before = names(sweep)
    finish(sweep, before)
    assert sweep.attempts()[0].outcome == "interrupted"


def test_ctrl_c(real_sweep):
    sweep = real_sweep("ctrl_c")
    sweep.start()
    sweep.await_step("run")
    seconds = sweep.interrupt()
    sweep.check(sweep.process.returncode, (130,))
    assert seconds < 120
    first = sweep.attempts()[0]
    assert first.outcome == "interrupted"
    steps = [step["step"] for step in first.manifest.steps if step["event"] == "begin"]
    assert "run" in steps
    assert "ramp_down" not in steps, "a phase began after the signal"
    assert steps.index("stop") == steps.index("run") + 1
    assert (sweep.attempts()[0].directory / "nodes/db1/sysstat.json").exists() or list(
        (sweep.attempts()[0].directory / "nodes/db1").glob("sysstat.json*")
    )
    finish(sweep, names(sweep))


@matrix
def test_ctrl_c_twice_ends_at_once(real_sweep):
    sweep = real_sweep("ctrl_c_twice")
    sweep.start()
    sweep.await_step("run")
    sweep.process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    began = time.monotonic()
    sweep.process.send_signal(signal.SIGINT)
    assert sweep.wait(10) == 130
    assert time.monotonic() - began < 5
    finish(sweep, names(sweep))


@matrix
def test_two_harnesses(real_sweep):
    first, second = real_sweep("first"), real_sweep("second")
    first.start()
    first.await_step("ramp_up", 0.0)
    assert second.run() == 2
    assert f"pid {first.process.pid}" in second.log.read_text()
    assert not second.attempts()
    first.check(first.wait(), (0, 1))


@matrix
def test_limits_are_real_and_only_in_force_during_the_phases(real_sweep):
    sweep = real_sweep("limits")
    sweep.start()
    sweep.await_step("run", 1.0)
    config = incus("--project", "ntier", "config", "get", "db1", "limits.cpu.allowance").strip()
    assert config.endswith("ms")
    sweep.check(sweep.wait(), (0, 1))
    m = sweep.manifest()
    share = next(n.cpu_cores for n in m.nodes if n.name == "db1")
    read = [q["cpu_cores"] for q in m.quota_readback if q["node"] == "db1"]
    assert read == pytest.approx([share] * 3)


@matrix
def test_results_on_a_full_disk(real_sweep, tmp_path):
    """Refused before anything starts, with the bytes that are needed."""
    image, mount = tmp_path / "disk.img", tmp_path / "disk"
    mount.mkdir()
    subprocess.run(["fallocate", "-l", "64MiB", str(image)], check=True)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    if subprocess.run(["mount", "-o", "loop", str(image), str(mount)]).returncode:
        pytest.skip("no loop device")
    try:
        sweep = RealSweep(Path(mount) / "results", "full")
        assert sweep.run() == 2
        said = sweep.log.read_text()
        assert "error: results: " in said, said
        assert "are needed" in said, said
        assert not sweep.attempts()
    finally:
        subprocess.run(["umount", str(mount)], check=True)


@matrix
def test_no_secret_in_results_or_logs(real_sweep):
    state = Path(os.environ.get("NTIER_STATE", "/var/lib/ntier"))
    sweep = real_sweep("secrets")
    sweep.check(sweep.run(), (0, 1))
    secrets = [
        line.split(": ")[1].strip() for line in (state / "local/secrets.yml").read_text().splitlines() if ": " in line
    ]
    assert secrets
    for path in [*sweep.results.rglob("*"), *(state / "logs").rglob("*")]:
        if path.is_file():
            data = subprocess.run(["zstdcat", "-f", str(path)], capture_output=True).stdout
            assert not any(s.encode() in data for s in secrets), path
