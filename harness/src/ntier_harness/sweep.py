"""The main job: nodes, deployment, warm-up, trials in order, then store and report. Resumes from the manifests."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.manifest import Manifest
from ntier_analysis.contracts.nodes import Node
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.wording import counted

from ntier_harness import durable, ledger, plan, preflight, settings, stolen, versions
from ntier_harness.deploy import TooFew, deploy, keep_loaded, warm_up
from ntier_harness.errors import NO_NODES, BudgetReached, Interrupted, RequestError, WorkError
from ntier_harness.lab import Lab
from ntier_harness.node_state import in_force, reset
from ntier_harness.plan import Trial
from ntier_harness.schedule import Schedule, to_come
from ntier_harness.schedule import make as make_schedule
from ntier_harness.screen import outcome
from ntier_harness.spec import Spec
from ntier_harness.standby import ANALYSIS
from ntier_harness.trial import Attempt, planned

ATTEMPTS = 3  # the first and two more


@contextlib.contextmanager
def locked(lab: Lab) -> Iterator[None]:
    """One harness at a time on a machine. Raises RequestError naming the other one, and WorkError for what goes wrong
    with our own files inside. The kernel releases the lock of a process that died, so there are no stale ones."""
    from filelock import FileLock, Timeout

    with durable.errors_named():
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
            release_results(lab)
            lock.release()


def claim_results(lab: Lab) -> None:
    """Before work whose results go there. Raises RequestError if another harness, with another state, works there."""
    make_place(lab.paths.results)
    if not hold_results(lab):
        raise RequestError(
            f"another ntier is at work: it has another NTIER_STATE, and its results go to {lab.paths.results} too; "
            "wait for it or stop it, or give another folder with --results"
        )


def hold_results(lab: Lab) -> bool:
    """Keeps the folder of results, if there is one, for this harness alone, until `locked` ends. The lock is of the
    folder itself, so that no file is in it that is no result. Returns False if another harness has it."""
    if lab.held is not None or not os.path.isdir(lab.paths.results):
        return True
    try:
        held = os.open(lab.paths.results, os.O_RDONLY)
    except PermissionError:  # `preflight` says it
        return True
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        return False
    except OSError:  # not every file system locks folders (NFS)
        pass
    lab.held = held
    return True


def release_results(lab: Lab) -> None:
    if lab.held is not None:
        os.close(lab.held)
        lab.held = None


def holder(lab: Lab) -> str:
    try:
        info = json.loads(lab.paths.lock.with_suffix(".json").read_text())
        return f"pid {info['pid']}, since {ledger.local_time(info['start_s'])} ({info['command']})"
    except (OSError, ValueError, KeyError):
        return "pid unknown"


def tidy(lab: Lab, raw: Path) -> None:
    """Ends what a crashed harness left, whichever folder its results went to: processes here, generators, collectors
    and limits on the nodes. Closes its open records in `raw`, unless another harness works there."""
    if lab.runner.end_orphans():
        lab.screen.say("stopped processes that an earlier run left behind")
    for name in ledger.recover(raw, lab.runner.now()) if hold_results(lab) else []:
        lab.screen.say(f"{name}: recorded as failed: interrupted")
    if not lab.paths.nodes.exists():
        return

    def end_all(node: Node) -> None:
        if lab.target.present(node):
            lab.nodes.call(node, "ntier-node end-all", check=False, timeout=20)

    with contextlib.suppress(WorkError):
        lab.runner.parallel(end_all, lab.nodes.all)
    with contextlib.suppress(WorkError):
        lab.target.lift_limits(lab.nodes.all)


def provision(lab: Lab, spec: Spec, soft_resources: dict[str, Any], *, force: bool = False) -> None:
    """Brings up and deploys the nodes; quick if that is done already."""
    log = lab.paths.logs / "terraform.log"
    log.unlink(missing_ok=True)
    before = lab.paths.nodes.read_text() if lab.paths.nodes.exists() else None
    lab.screen.step("up")
    began = lab.runner.monotonic()
    try:
        lab.target.up(spec, log)
    except (WorkError, RequestError) as error:
        error.add_note(NO_NODES)
        raise
    lab.forget_nodes()
    if lab.paths.nodes.read_text() != before:
        lab.screen.say(f"up: {counted(len(lab.nodes.all), 'node')} in {lab.runner.monotonic() - began:.0f} s")
        for said in lab.target.remarks():
            lab.screen.warn(said)
    lab.screen.step("deploy")
    deploy(lab, spec, soft_resources, force=force)
    if spec.restores:
        keep_loaded(lab, spec, in_force(lab)["digest"])


def note(lab: Lab, options: dict[str, Any]) -> None:
    """Notes the options that the nodes were made with, for a later `ntier deploy`, perhaps in another folder."""
    given = {k: v for k, v in options.items() if v}
    given |= {k: os.path.abspath(given[k]) for k in ("hosts", "machines") if k in given}
    durable.write(lab.paths.noted, json.dumps(given))


def run(lab: Lab, spec: Spec, attempts: int = ATTEMPTS, options: dict[str, Any] | None = None) -> int:
    """The sweep. `options`: what the user gave, noted for `ntier deploy`. Returns the exit code: 0 done, 1 if a trial
    has no valid attempt. Raises Interrupted, WorkError."""
    with locked(lab):
        claim_results(lab)
        tidy(lab, lab.paths.raw)
        with paid_for(lab, spec.sweep):
            return carry_out(lab, spec, attempts, options)


@contextlib.contextmanager
def paid_for(lab: Lab, work: str) -> Iterator[None]:
    """Machines that are rented inside, for this sweep or campaign, are given back at its end, and at the end of its
    budget. After an error or an interruption they stay, since the same command goes on with them; that they cost money
    is said then."""
    lab.target.begin(work)
    try:
        yield
    except Interrupted:
        if not lab.target.over():
            raise
        return_machines(lab)
        raise BudgetReached("budget: it is used up; the machines were given back") from None
    except BudgetReached:
        return_machines(lab)
        raise
    except Exception:  # what failed at the moment when the budget ended
        if lab.target.over():
            return_machines(lab)
        raise
    else:
        return_machines(lab)
    finally:
        if said := lab.target.still_rented():
            lab.screen.warn(said)


def return_machines(lab: Lab) -> None:
    if lab.target.give_back():
        lab.screen.say("giving the machines back")
        # a budget that is used up has asked everything to stop, but not this
        with lab.runner.stop.deferred() if lab.target.over() else contextlib.nullcontext():
            lab.target.down(lab.paths.logs / "terraform.log")
        lab.forget_nodes()
        lab.screen.say("the provider says that nothing is left of them")


def carry_out(
    lab: Lab, spec: Spec, attempts: int, options: dict[str, Any] | None = None, *, brief: bool = False
) -> int:
    """What `run` does, for a caller that holds the lock. `brief`: prints only the verdict's sentence of the result."""
    sweep_dir, soft_resources = lab.paths.raw / spec.sweep, settings.values(spec)
    lab.live.begin(spec)
    preflight.check(lab, spec, attempts)
    schedule = make_schedule(lab, spec, attempts)
    if schedule.next() is not None:
        lab.target.require_privileges()
        lab.target.require_answer()
        make_place(lab.paths.raw)
        lab.describe()
        left = to_come(lab, spec, attempts)
        most = " at most" if spec.search == "capacity" else ""
        lab.screen.say(f"{spec.sweep}: {len(left)} of {counted(schedule.at_most(), 'trial')} to run{most}")
        try:
            provision(lab, spec, soft_resources)
            if options:
                note(lab, options)
            versions.check_same(lab, ledger.attempts(sweep_dir), spec.sweep)
            run_trials(lab, spec, soft_resources, schedule, sweep_dir, attempts)
        except BudgetReached as error:
            lab.screen.warn(str(error))
            if lab.paths.nodes.exists():
                lab.nodes.disconnect()
            return_machines(lab)
            if not ledger.attempts(sweep_dir):
                raise
        finally:
            lab.screen.close()
            if lab.paths.nodes.exists():  # they may have been given back
                lab.nodes.disconnect()
    if not brief:  # a report needs no machines, and if it fails they would stay; a campaign goes on with them
        return_machines(lab)
    said = finish(lab, spec)
    return conclude(lab, spec, sweep_dir, schedule.trials(), said.splitlines()[0] if brief and said else said)


def make_place(folder: Path) -> None:
    """Raises RequestError for what only an attempt to write shows: a name that is too long, a folder that must not
    change."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"results: {folder} cannot be made ({error.strerror})") from None


@dataclass
class Line:
    """Attempts one behind the other. While the files of one are put in order and judged, the nodes get ready for the
    next one; its users begin when the outcome is known."""

    lab: Lab
    patient: bool = True
    """Whether it waits for a better time: without further attempts nobody asked to try again."""
    doubt: bool = True
    """Whether the system may be ill: nothing is known of it yet, or an attempt since the last look was not valid."""
    last: Manifest | None = None
    _key: str = ""
    _outcome: Callable[[bool], None] | None = None

    def next(self, schedule: Schedule) -> Trial | None:
        """The next trial. Waits for the outcome of the last one where it depends on that."""
        trial = schedule.ahead(self._key) if self._outcome else None
        if trial is None:
            self.settle()
            trial = schedule.next()
        return trial

    def await_cpu(self) -> None:
        """After an attempt that a hypervisor disturbed, waits until it takes less; once."""
        last, self.last = self.last, None
        if self.patient:
            stolen.await_cpu(self.lab, last)

    def judge(self, made: Attempt, began: float) -> None:
        """Concludes an attempt that has what it needs of the nodes, beside what comes next; at once if it failed.
        `began`: by the monotonic clock."""
        runner, screen, label = self.lab.runner, self.lab.screen, self.lab.screen.label
        concluded, home = runner.beside(made.conclude), runner.monotonic()

        def say(beside: bool) -> None:
            manifest = concluded()
            self.lab.live.judged(outcome(manifest))
            took = (home if beside else runner.monotonic()) - began
            self.last, self.doubt = manifest, self.doubt or not manifest.valid
            screen.close()
            screen.ended(manifest, overhead_s(manifest, took, made.spec.phases.total_s), label)
            if made.ends_sweep:
                raise made.ends_sweep

        self._key, self._outcome = made.trial.key, say
        if made.problems.first:
            self.settle()

    def settle(self, *, beside: bool = False) -> None:
        """Waits for the outcome of the last attempt, and says it. `beside`: the next one has begun, to which the
        waiting counts. Raises what ends the sweep."""
        say, self._outcome = self._outcome, None
        if say:
            say(beside)

    def settle_before(self, made: Attempt) -> None:
        """The same, when `made` is ready for its users. What ends the sweep ends that attempt first."""
        try:
            self.settle(beside=True)
            self.await_cpu()
        except Exception as error:
            made.ends_sweep = error
            raise


def overhead_s(manifest: Manifest, took_s: float, planned_s: float) -> float | None:
    """What a trial took in addition to its phases, s; None if they did not all end. Work that is done ends the run
    before its time."""
    first, last = manifest.phases[0], manifest.phases[-1]
    if manifest.failure or first.start_s is None or last.end_s is None:
        return None
    return took_s - min(planned_s, last.end_s - first.start_s)


def run_trials(
    lab: Lab, spec: Spec, soft_resources: dict[str, Any], schedule: Schedule, sweep_dir: Path, attempts: int
) -> None:
    """Runs every trial in order, each until it is valid or out of attempts. Nodes that cannot be mended end the
    sweep."""
    line = Line(lab, patient=attempts > 1)
    lab.runner.analysis.start()  # now, while nothing is measured
    lab.screen.who = "users" if spec.system.definition.load.model is LoadModel.CLOSED else "workers"
    try:
        while (trial := line.next(schedule)) is not None:
            before = ledger.attempts(sweep_dir)
            number, took = ledger.next_attempt(trial, before, attempts), ledger.took_s(before)
            each_s = statistics.fmean(took) if took else plan.trial_duration_s(spec)
            lab.runner.stop.check()
            line.await_cpu()
            lab.target.afford(plan.trial_duration_s(spec))
            began, before_s = lab.runner.monotonic(), lab.runner.now()
            doubt, line.doubt = line.doubt, False
            warm = ready(lab, spec, soft_resources, doubt=doubt)
            if warm and warm["t_s"] >= before_s:  # the warm-up belongs to the deployment, not to this trial
                began = lab.runner.monotonic()
            place, of = schedule.trials().index(trial) + 1, schedule.at_most()
            most = plan.ends_early(spec, measured=bool(took))
            left = len(to_come(lab, spec, attempts))
            lab.screen.trial(trial, number, place, of, left * each_s, at_most=most)
            lab.live.trial(trial, number, place, of, spec.real_users(trial.users))
            made = new_attempt(lab, spec, soft_resources, trial, number, sweep_dir, warm)
            made.before_users = partial(line.settle_before, made)
            made.measure()
            lab.live.trial_ended()
            line.judge(made, began)
            lab.runner.stop.check()
    finally:
        with lab.runner.stop.deferred():
            line.settle()


def ready(lab: Lab, spec: Spec, soft_resources: dict[str, Any], *, doubt: bool = True) -> dict[str, Any]:
    """Makes sure that the system is deployed, healthy (checked only if in `doubt`, since each trial resets it) and
    warm; tries once to mend what is not. Returns the warm-up's record. Raises WorkError if it cannot be mended."""
    try:
        lab.nodes.connect()
        if doubt:
            reset(lab)
        return warm_up(lab, spec)
    except TooFew:
        raise
    except WorkError as error:
        lab.screen.say(f"mending: {error}")
    lab.nodes.disconnect()
    lab.target.up(spec, lab.paths.logs / "terraform.log")
    lab.forget_nodes()
    lab.nodes.connect()
    if spec.system.definition.deploys:  # else its services are somebody else's
        restart_services(lab, spec)
    provision(lab, spec, soft_resources, force=True)
    return warm_up(lab, spec)


def restart_services(lab: Lab, spec: Spec) -> None:
    """Restarts all services, beginning with the tier that others need: a service that waits for a vanished peer would
    go on waiting."""
    command = "systemctl restart $(sed 's/#.*//' /etc/ntier/services.d/*)"
    for tier in reversed(spec.topology.counts):
        lab.runner.parallel(lambda n: lab.nodes.call(n, command, check=False, timeout=180), lab.nodes.tier(tier))


def new_attempt(lab: Lab, spec: Spec, soft_resources: dict[str, Any], trial: Trial, attempt: int, sweep_dir: Path,
                warm: dict[str, Any]) -> Attempt:  # fmt: skip
    """An attempt whose record is on disk; nothing has been touched yet."""
    trial = trial.drawn_anew(len(ledger.counted(ledger.attempts(sweep_dir).get(trial.key, []))))
    manifest = planned(lab, spec, trial, attempt, soft_resources)
    directory = ledger.create(sweep_dir, trial.attempt_key(attempt), manifest)
    return Attempt(lab, spec, trial, manifest, directory, warm)


def finish(lab: Lab, spec: Spec) -> str:
    """Store and report, by the analysis program; returns what it says of the sweep."""
    store, reports = lab.paths.results / "store", lab.paths.results / "reports"
    for arguments in (
        ["ingest", "--raw", str(lab.paths.raw), "--store", str(store), spec.sweep],
        ["report", "--store", str(store), "--out", str(reports), spec.sweep],
    ):
        lab.screen.step(arguments[0])
        durable.step(arguments[0])
        done = lab.runner.run([ANALYSIS, *arguments], timeout=900)
    lab.screen.close()
    return done.out.rstrip()


def reported(lab: Lab, sweep: str) -> dict[str, Any]:
    """The sweep's newest report as data (docs/analysis.md: `report.json`); empty if there is none."""
    folder = lab.paths.results / "reports" / sweep
    try:
        return json.loads((folder / "report.json").read_text()) | {"report": str(folder / "report.html")}
    except (OSError, ValueError):
        return {}


def conclude(lab: Lab, spec: Spec, sweep_dir: Path, trials: list[Trial], said: str) -> int:
    """The result, and which trials have none. Returns the exit code."""
    tries = ledger.attempts(sweep_dir)
    missing = {t.key: _why(tries.get(t.key, [])) for t in trials if not _valid(tries.get(t.key, []))}
    lab.screen.result(said, reported(lab, spec.sweep))
    lab.screen.event("sweep_end", sweep=spec.sweep, trials=len(trials), without_valid_attempt=sorted(missing))
    if missing:
        texts = "; ".join(f"{key} ({why})" for key, why in sorted(missing.items()))
        more = _more_attempts(max(len(ledger.counted(tries.get(key, []))) for key in missing))
        lab.screen.warn(f"no valid attempt in {len(missing)} of {counted(len(trials), 'trial')}: {texts}{more}")
    return 1 if missing else 0


def _more_attempts(made: int) -> str:
    """How to go on: the same command finds nothing left to do once a trial is out of attempts."""
    if not 0 < made < plan.ATTEMPTS_MOST:
        return f"; more than {plan.ATTEMPTS_MOST} attempts are not made" if made else ""
    next_ = min(made + 2, plan.ATTEMPTS_MOST)
    number = "two" if next_ == made + 2 else "one"
    return f"; {number} more: ATTEMPTS={next_}, in the file of a campaign `attempts: {next_}`"


def _valid(attempts: list[ledger.Attempt]) -> bool:
    return any(a.outcome == "valid" for a in attempts)


def _why(attempts: list[ledger.Attempt]) -> str:
    """`3 attempts, the last one invalid: host_busy`."""
    if not attempts:
        return "not run"
    last = attempts[-1]
    m = last.manifest
    why = last.problem if m is None else m.failure or ", ".join(m.validity.reasons if m.validity else [])
    return f"{len(attempts)} attempt{'s' * (len(attempts) > 1)}, the last one {last.outcome}: {why}"
