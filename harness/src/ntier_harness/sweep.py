"""The main job: nodes, deployment, warm-up, trials in order, then store and report. Resumes from the manifests."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.manifest import Manifest

from ntier_harness import durable, ledger, plan
from ntier_harness.condition import LOADED, in_force, keep, reset, restore
from ntier_harness.deploy import deploy, warm_up
from ntier_harness.errors import Interrupted, RequestError, WorkError
from ntier_harness.lab import Lab, memory_info
from ntier_harness.load import stop_jmeter
from ntier_harness.plan import Trial
from ntier_harness.schedule import Schedule
from ntier_harness.schedule import make as make_schedule
from ntier_harness.soft import soft_resources
from ntier_harness.spec import Spec
from ntier_harness.trial import Attempt, planned

ATTEMPTS = 3  # the first and two more
STARTED_BY_US = ("sampler.py", "sadc", "ssh", "terraform", "tofu", "ansible-playbook")


@contextlib.contextmanager
def locked(lab: Lab) -> Iterator[None]:
    """One harness at a time on a machine. Raises RequestError naming the other one. The kernel releases the lock of a
    process that died, so there are no stale ones."""
    from filelock import FileLock, Timeout

    try:
        for folder in (lab.paths.state, lab.paths.place, lab.paths.logs, lab.paths.ssh):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = FileLock(lab.paths.lock)
        lock.acquire(timeout=0)
    except PermissionError as error:
        lab.target.require_privileges()  # says what is needed
        raise RequestError(f"{error.filename}: no permission") from None
    except Timeout:
        raise RequestError(f"another ntier is at work: {holder(lab)}; wait for it or stop it") from None
    try:
        info = {"pid": os.getpid(), "start_s": lab.runner.now(), "command": lab.command}
        lab.paths.lock.with_suffix(".json").write_text(json.dumps(info))
        yield
    finally:
        lock.release()


def holder(lab: Lab) -> str:
    try:
        info = json.loads(lab.paths.lock.with_suffix(".json").read_text())
        return f"pid {info['pid']}, since {ledger.local_time(info['start_s'])} ({info['command']})"
    except (OSError, ValueError, KeyError):
        return "pid unknown"


def tidy(lab: Lab, raw: Path) -> None:
    """Ends what a crashed harness left: its processes here, its generator and limits on the nodes, its open records."""
    # by paths of this state: an experiment with another state on this machine has another lock, and is none of ours
    ours = [f"{raw}/", f"{lab.paths.ssh}/", f"{lab.paths.place}/"]
    if lab.runner.end_orphans(STARTED_BY_US, ours):
        lab.screen.say("stopped processes that an earlier run left behind")
    marked = ledger.recover(raw, lab.runner.now())
    for name in marked:
        lab.screen.say(f"{name}: recorded as failed: interrupted")
    if marked and lab.paths.nodes.exists():
        with contextlib.suppress(WorkError):
            stop_jmeter(lab.nodes)
        with contextlib.suppress(WorkError):
            lab.target.lift_limits(lab.nodes.all)


def preflight(lab: Lab, spec: Spec, trials: list[Trial]) -> None:
    """What must hold before anything is touched. Raises RequestError or WorkError with what is needed."""
    lab.target.require_privileges()
    raw = lab.paths.raw
    try:
        raw.mkdir(parents=True, exist_ok=True)
        probe = raw / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise WorkError(f"results: {raw} cannot be written ({error.strerror})") from None
    needed = 2 * sum(plan.trial_bytes(spec, t.users) for t in trials) + 100_000_000
    free = shutil.disk_usage(raw).free
    if free < needed:
        raise WorkError(f"results: {needed:,} bytes are needed below {raw}, {free:,} are free")
    available = memory_info()["MemAvailable"]
    if lab.target.own_machines:
        return  # the nodes' memory is not this machine's
    if not lab.paths.nodes.exists() and available < memory_needed(spec):
        raise WorkError(f"memory: the nodes need about {memory_needed(spec):,} bytes, {available:,} are available")


MEMORY_PER_TIER = {"web": 0.15e9, "app": 0.6e9, "middleware": 0.8e9, "db": 0.8e9}  # resident, as measured on small data


def memory_needed(spec: Spec) -> int:
    client = 0.4e9 + spec.real_users(spec.users[-1]) * 200_000
    return round(client + sum(MEMORY_PER_TIER[t] * n for t, n in spec.topology.counts.items()))


def provision(lab: Lab, spec: Spec, soft: dict[str, Any], *, force: bool = False) -> None:
    """Nodes up and deployed; quick when they are."""
    log = lab.paths.logs / "terraform.log"
    log.unlink(missing_ok=True)
    before = lab.paths.nodes.read_text() if lab.paths.nodes.exists() else None
    lab.screen.step("up")
    began = lab.runner.monotonic()
    lab.target.up(spec, log)
    lab.forget_nodes()
    if lab.paths.nodes.read_text() != before:
        lab.screen.say(f"up: {len(lab.nodes.all)} nodes in {lab.runner.monotonic() - began:.0f} s")
    if lab.paths.written.exists():
        lab.screen.step("restore the data that users of an earlier run changed")
        lab.nodes.connect()
        restore(lab, LOADED)
        durable.remove(lab.paths.written)
    lab.screen.step("deploy")
    deploy(lab, soft, force=force)
    if spec.mix.writes:
        keep(lab, LOADED, in_force(lab)["digest"])
        durable.write(lab.paths.written, str(lab.paths.raw / spec.sweep))


def note(lab: Lab, options: dict[str, Any]) -> None:
    """Options that the nodes were made with, for a later `ntier deploy`, perhaps in another folder."""
    given = {k: v for k, v in options.items() if v}
    given |= {"hosts": os.path.abspath(given["hosts"])} if "hosts" in given else {}
    durable.write(lab.paths.noted, json.dumps(given))


def run(lab: Lab, spec: Spec, attempts: int = ATTEMPTS, options: dict[str, Any] | None = None) -> int:
    """The sweep. `options`: what the user gave, noted for `ntier deploy`. Returns the exit code: 0 done, 1 if a trial
    has no valid attempt. Raises Interrupted, WorkError."""
    with locked(lab):
        tidy(lab, lab.paths.raw)
        return carry_out(lab, spec, attempts, options)


def carry_out(lab: Lab, spec: Spec, attempts: int, options: dict[str, Any] | None = None) -> int:
    """What `run` does, for one who holds the lock."""
    sweep_dir, soft = lab.paths.raw / spec.sweep, soft_resources(spec)
    ledger.check_same_experiment(spec, ledger.attempts(sweep_dir), soft)
    schedule = make_schedule(lab, spec, attempts)
    if schedule.next() is not None:
        found = ledger.attempts(sweep_dir)
        known = schedule.trials() if spec.search == "grid" else plan.order(spec)[-spec.most_loads :]
        left = [t for t in known if ledger.next_attempt(t, found, attempts) is not None]
        preflight(lab, spec, left)
        lab.describe()
        lab.screen.say(f"{spec.sweep}: {len(left)} of {schedule.at_most()} trials to run{at_most(spec)}")
        provision(lab, spec, soft)
        if options:
            note(lab, options)
        try:
            run_trials(lab, spec, soft, schedule, sweep_dir, attempts)
        finally:
            lab.screen.close()
            lab.nodes.disconnect()
    finish(lab, spec)
    return conclude(lab, spec, sweep_dir, schedule.trials())


def at_most(spec: Spec) -> str:
    return " at most" if spec.search == "capacity" else ""


def run_trials(lab: Lab, spec: Spec, soft: dict[str, Any], schedule: Schedule, sweep_dir: Path, attempts: int) -> None:
    """Every trial in order, each until it is valid or out of attempts. Nodes that cannot be mended end the sweep."""
    doubt = True
    while (trial := schedule.next()) is not None:
        while (attempt := ledger.next_attempt(trial, ledger.attempts(sweep_dir), attempts)) is not None:
            lab.runner.stop.check()
            began, before_s = lab.runner.monotonic(), lab.runner.now()
            warm = ready(lab, spec, soft, doubt=doubt)
            if warm["t_s"] >= before_s:  # the warm-up belongs to the deployment, not to this trial
                began = lab.runner.monotonic()
            number, of = schedule.trials().index(trial) + 1, schedule.at_most()
            lab.screen.trial(trial, attempt, number, of, (of - number + 1) * plan.trial_duration_s(spec))
            manifest = one_attempt(lab, spec, soft, trial, attempt, sweep_dir, warm)
            lab.screen.close()
            doubt = not manifest.valid
            whole = manifest.phases[-1].end_s is not None and not manifest.failure
            lab.screen.ended(manifest, lab.runner.monotonic() - began - spec.phases.total_s if whole else None)
            lab.runner.stop.check()
            if (manifest.failure or "").startswith(ledger.INTERRUPTED):
                raise Interrupted(manifest.failure)


def ready(lab: Lab, spec: Spec, soft: dict[str, Any], *, doubt: bool = True) -> dict[str, Any]:
    """Deployed, healthy (looked at if in doubt: each trial resets anyhow) and warm; mends once what is not.

    Returns the warm-up's record. Raises WorkError if it cannot be mended."""
    try:
        lab.nodes.connect()
        if doubt:
            reset(lab)
        return warm_up(lab, spec)
    except WorkError as error:
        lab.screen.say(f"mending: {error}")
    lab.nodes.disconnect()
    lab.target.up(spec, lab.paths.logs / "terraform.log")
    lab.forget_nodes()
    lab.nodes.connect()
    restart_services(lab)
    provision(lab, spec, soft, force=True)
    return warm_up(lab, spec)


def restart_services(lab: Lab) -> None:
    """All services, the tier that others need first: what waits for a peer that vanished would wait on."""
    command = "systemctl restart $(sed 's/#.*//' /etc/ntier/services.d/*)"
    for tier in ("db", "middleware", "app", "web"):
        lab.runner.parallel(lambda n: lab.nodes.call(n, command, check=False, timeout=180), lab.nodes.tier(tier))


def one_attempt(lab: Lab, spec: Spec, soft: dict[str, Any], trial: Trial, attempt: int, sweep_dir: Path,
                warm: dict[str, Any]) -> Manifest:  # fmt: skip
    trial = trial.drawn_anew(len(ledger.counted(ledger.attempts(sweep_dir).get(trial.key, []))))
    manifest = planned(lab, spec, trial, attempt, soft)
    directory = ledger.create(sweep_dir, trial.attempt_key(attempt), manifest)
    return Attempt(lab, spec, trial, manifest, directory, warm).run()


def finish(lab: Lab, spec: Spec) -> None:
    """Store and report, by the analysis program."""
    program = str(Path(sys.executable).with_name("ntier-analysis"))
    store, reports = lab.paths.results / "store", lab.paths.results / "reports"
    for arguments in (
        ["ingest", "--raw", str(lab.paths.raw), "--store", str(store), spec.sweep],
        ["report", "--store", str(store), "--out", str(reports), spec.sweep],
    ):
        lab.screen.step(arguments[0])
        durable.step(arguments[0])
        lab.runner.run([program, *arguments], timeout=900)
    lab.screen.close()


def conclude(lab: Lab, spec: Spec, sweep_dir: Path, trials: list[Trial]) -> int:
    """Closing table and where the report is. Returns the exit code."""
    rows, missing = [], []
    found = ledger.attempts(sweep_dir)
    for trial in sorted(trials, key=lambda t: (t.users, t.rep)):
        mine = found.get(trial.key, [])
        newest = next((a for a in reversed(mine) if a.outcome == "valid"), mine[-1] if mine else None)
        outcome = newest.outcome if newest else "missing"
        if outcome != "valid":
            missing.append(trial.key)
        m = newest.manifest if newest else None
        why = (
            (m.failure or ", ".join(m.validity.reasons if m.validity else []))
            if m
            else (newest.problem if newest else "")
        )
        rows.append([trial.key, str(spec.real_users(trial.users)), outcome, str(len(mine)), why])
    lab.screen.table(spec.sweep, ["trial", "real users", "outcome", "attempts", "why"], rows)
    report = lab.paths.results / "reports" / spec.sweep / "report.html"
    lab.screen.say(f"report: {report}")
    lab.screen.event("sweep_end", sweep=spec.sweep, trials=len(rows), without_valid_attempt=missing, report=str(report))
    if missing:
        lab.screen.warn(f"{len(missing)} of {len(rows)} trials have no valid attempt: {', '.join(missing)}")
    return 1 if missing else 0
