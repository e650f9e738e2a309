"""One attempt of one trial: manifest, reset, collectors, load, limits, phases, collecting, validity, seal."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.manifest import Host, Manifest, Phase, State, Validity
from ntier_analysis.contracts.nodes import Node
from ntier_analysis.contracts.system import Factor, Interaction, System, Tier

import ntier_harness
from ntier_harness import collect, durable, ledger, versions
from ntier_harness.drivers import REMOTE, of_system
from ntier_harness.errors import Interrupted, WorkError
from ntier_harness.lab import Lab
from ntier_harness.load import Generator, compare_clocks
from ntier_harness.node_state import WARM, check_restored, data, replicas, reset, restore
from ntier_harness.plan import Trial, disk_bytes
from ntier_harness.spec import CLIENT, USERS, Spec
from ntier_harness.standby import ANALYSIS
from ntier_harness.targets import Observation
from ntier_harness.watch import Watch

EXIT_WAIT_S = 20.0
"""A driver ends by itself at the end of the ramp-down. It shares the CPU with the servers, whose limits are
lifted meanwhile: JMeter needed 6 to 7 s for 1,600 users beside nine databases that worked off what had been asked."""
REST_S = 1.0  # before the first user nobody asks the servers anything: IDLE_S of the analysis, for their idle use
COLLECT_S, VALIDATE_S = 60.0, 120.0
SLOWEST_BYTES_S = 200_000
"""What a long trial wrote is brought home, and judged, at this speed at least: the limits above grow with it."""
PHASES = ("ramp_up", "run", "ramp_down")


def planned(lab: Lab, spec: Spec, trial: Trial, attempt: int, soft_resources: dict[str, Any]) -> Manifest:
    """The manifest as it stands before anything is touched."""
    seconds = (spec.phases.ramp_up_s, spec.phases.run_s, spec.phases.ramp_down_s)
    return Manifest(
        ntier_version=ntier_harness.__version__,
        sweep=spec.sweep,
        trial=trial.key,
        attempt=attempt,
        topology=str(spec.topology),
        nodes=lab.nodes.all,
        target=spec.target,
        system=described(spec, trial),
        mix=spec.mix.name,
        middleware=spec.middleware,
        data_profile=spec.data_profile,
        users=trial.users,
        users_real=spec.real_users(trial.users),
        above=trial.above,
        above_real=None if trial.above is None else spec.real_users(trial.above),
        scale=spec.scale,
        rep=trial.rep,
        seed=spec.seed,
        seeds=dict.fromkeys((c.name for c in lab.nodes.clients), trial.seed),
        think_time_s=spec.mix.think_time_s,
        slo_ms=spec.mix.slo_ms,
        phases=[Phase(name=n, planned_s=s) for n, s in zip(PHASES, seconds, strict=True)],
        soft_resources=soft_resources,
        settings=spec.settings,
        versions=dict(lab.versions),
        host=host_in_a_trial(lab),
        rent=lab.target.rent(),
        git_commit=lab.commit,
        git_clean=lab.clean,
        command=lab.command,
    )


def host_in_a_trial(lab: Lab) -> Host | None:
    """This machine's facts, and whether its CPUs are kept awake."""
    known = {"kept_awake": lab.target.stays_awake()}
    return lab.host and lab.host.model_copy(update={"facts": lab.host.facts | known})


def varied(spec: Spec, trial: Trial) -> Factor:
    """The sweep's factor with this trial's value."""
    load = spec.system.definition.load
    if trial.value is not None:
        parameter = load.parameters[trial.factor]
        return Factor(name=trial.factor, title=parameter.title, unit=parameter.unit, value=trial.value)
    users = load.factor if load.factor.name == USERS else None
    title, unit = (users.title, users.unit) if users else ("Users", USERS)
    return Factor(name=USERS, title=title, unit=unit, value=trial.users)


def described(spec: Spec, trial: Trial) -> System:
    """What the analysis is told of the system."""
    d = spec.system.definition
    counts = {t: n for t, n in spec.topology.counts.items() if t not in spec.topology.beside}
    tiers = [spec.tier(t) for t in counts]
    return System(
        name=d.name,
        title=d.title,
        source=d.source,
        tiers=[Tier(name=t.name, title=t.title, replicas=t.replicas, most=t.counts[1]) for t in tiers],
        load_model=d.load.model,
        factor=varied(spec, trial),
        scaled=d.load.factor.scales,
        interactions=[Interaction(name=n, writes=i.writes, slo_ms=i.slo_ms) for n, i in d.interactions.items()],
        restores=d.data is not None and d.data.restores,
        checks_off=d.checks.off,
        checks_own={n: check for n, check in d.checks.own.items() if check.wanted.tier in counts},
    )  # fmt: skip


@dataclass
class Attempt:
    """Runs one attempt; the manifest is saved before every step, so that after a crash it names the interrupted
    step."""

    lab: Lab
    spec: Spec
    trial: Trial
    manifest: Manifest
    directory: Path
    warm: dict[str, Any]
    step: str = ""
    generator: Generator | None = None
    observation: Observation | None = None
    started: list[Node] = field(default_factory=list)
    limited: bool = False
    problems: Problems = field(init=False)
    before_users: Callable[[], None] = lambda: None
    """What must be done before the users of this attempt begin: the one before it is judged beside our start."""
    ends_sweep: Exception | None = None
    """The error that ended this attempt and ends the sweep as well, because it is not the trial's fault."""

    def __post_init__(self) -> None:
        self.problems = Problems(self)

    @property
    def remote(self) -> str:
        return f"{REMOTE}/{self.spec.sweep}.{self.directory.name}"

    def begin(self, step: str, detail: Any = None, *, shown: bool = True) -> None:
        """Ends the step before and begins this one, on disk."""
        if self.step:
            self.manifest.steps.append({"step": self.step, "t_s": self.lab.runner.now(), "event": "end"})
        self.step = step
        if shown:
            self.lab.screen.step(step)
        ledger.note(self.directory, self.manifest, step, "begin", self.lab.runner.now(), detail)

    def measure(self) -> None:
        """All that needs the nodes. Also after an error load, limits and collectors end, and what the nodes have comes
        home."""
        opened = contextlib.ExitStack()
        try:
            with self.problems:
                self.prepare(opened)
                self.start()
                self.phases()
        finally:
            with self.lab.runner.stop.deferred():
                self.wind_down(opened)
        with self.lab.runner.stop.deferred():
            self.bring_home()

    def conclude(self) -> Manifest:
        """What needs no node any more, so that the next attempt can make itself ready meanwhile: files in order,
        validity, seal. The record says how the attempt ended. On a full disk it stays open: the next run records it as
        interrupted."""
        with self.lab.runner.stop.deferred():
            self.put_in_order()
            self.seal()
        return self.manifest

    def reason(self, error: Exception) -> str:
        """Why the attempt failed, for its record. Notes whether the sweep can go on."""
        # A broken pipe: nobody reads --json any more.
        if isinstance(error, Interrupted | BrokenPipeError) or durable.is_disk(error):
            self.ends_sweep = self.ends_sweep or error
            what = "stopped by the user" if isinstance(error, Interrupted) else str(error)
            return f"{ledger.INTERRUPTED}: {what} during {self.step}"
        return str(error) if isinstance(error, WorkError) else f"{self.step}: {type(error).__name__}: {error}"

    # ---- before -------------------------------------------------------------------------------------------------

    def prepare(self, opened: contextlib.ExitStack) -> None:
        """Clients in their stated condition. They come first, since their driver needs longer than the rest to be
        ready; it waits for its users' start. What ends it is in `opened` before it begins."""
        self.manifest.state = State.RUNNING
        self.begin("reset", {"warm_up": self.warm} if self.warm else None)
        nodes = self.lab.nodes
        nodes.connect()
        if self.spec.restores:
            restore(self.lab, self.spec, WARM)
        reset(self.lab, nodes.clients)
        self.prepare_load()
        opened.callback(self.problems.guard, self.lab.runner.stop_spawned)
        opened.callback(self.end_on_nodes)
        self.generator.start()

    def prepare_load(self) -> None:
        """The load generator, and the configuration in force, for the record."""
        run, driver = of_system.run_and_driver(
            self.lab, self.spec, self.remote, self.manifest.users_real, self.spec.phases, self.trial.seed,
            value=self.trial.value, leavers=self.manifest.leavers,
        )  # fmt: skip
        (self.directory / "config").mkdir(exist_ok=True)
        for file, name in ((self.spec.mix.file, ""), (self.spec.mix.author_file, ".authors")):
            if file:
                shutil.copy(file, self.directory / "config" / f"{self.spec.mix.name}{name}.csv")
        (self.directory / "config" / "deployment.json").write_text(json.dumps(self.manifest.soft_resources, indent=1))
        self.generator = Generator(self.lab.nodes, self.lab.target.guard, run, driver, self.directory)

    def facts(self, told: dict[str, tuple[dict[str, Any], float, float]]) -> None:
        """Facts of every node before the users, written to its folder, and its clock's offset; of its programs, the
        versions."""
        self.manifest.versions |= versions.read(self.lab, {name: facts for name, (facts, _, _) in told.items()})
        for node in self.lab.nodes.all:
            self.note_facts(node, "before", *told[node.name])

    def note_facts(self, node: Node, when: str, facts: dict[str, Any], offset_s: float, trip_s: float) -> None:
        (self.folder(node) / f"facts_{when}.json").write_text(json.dumps(facts, indent=1))
        entry = self.manifest.clock_offsets_s.setdefault(node.name, {})
        entry |= {f"offset_{when}": round(offset_s, 7), f"rtt_{when}": round(trip_s, 7)}

    def data(self, when: str) -> None:
        """Rows and digest of each table on each replica, if the mix writes: was all written, everywhere?"""

        def note_data(node: Node) -> None:
            rows = data(self.lab, node)
            (self.folder(node) / f"data_{when}.json").write_text(rows)
            if when == "before":
                check_restored(self.lab, node, rows)

        if self.spec.restores:
            self.lab.runner.parallel(note_data, replicas(self.lab, self.spec))

    def folder(self, node: Node) -> Path:
        path = self.directory / ("clients" if node.tier == CLIENT else "nodes") / node.name
        path.mkdir(parents=True, exist_ok=True)
        return path

    # ---- during -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Servers in their stated condition, collectors and facts while the load generator gets ready; then limits,
        under which it would get ready later; then the first user."""
        self.begin("start")
        told = self.start_collectors()
        self.begin("facts")
        self.facts(told)
        compare_clocks(self.manifest.clock_offsets_s, self.lab.nodes.clients)
        self.data("before")
        rested_s = self.lab.runner.now() + REST_S
        self.before_users()
        self.begin("limits")
        self.generator.watch()
        self.generator.await_ready()
        self.limited = True
        self.lab.target.set_limits(self.manifest.nodes)
        self.read_quota("ramp_up")
        self.generator.release(rested_s)

    def start_collectors(self) -> dict[str, tuple[dict[str, Any], float, float]]:
        """sysstat and status collectors on every node, on servers after their reset, and what looks at them from here.
        -> node -> facts and clock."""
        runner, nodes = self.lab.runner, self.lab.nodes
        self.started = list(nodes.all)
        self.observation = self.lab.target.observe(self.directory, self.remote, nodes)

        def start(node: Node) -> tuple[str, list[str], tuple[dict[str, Any], float, float]]:
            return node.name, *nodes.start_collectors(node, self.remote, reset=node.tier != CLIENT)

        done = runner.parallel(start, nodes.all)
        self.manifest.collectors = {name: collectors for name, collectors, _ in done}
        if self.observation.collectors:
            self.manifest.collectors["host"] = list(self.observation.collectors)
        return {name: told for name, _, told in done}

    def read_quota(self, moment: str) -> None:
        """What the kernel allows each node now; check H4 compares it with what it should be."""
        for node in self.lab.nodes.all:
            try:
                cores = self.lab.target.quota(node)
            except OSError as error:
                raise WorkError(f"node_gone: {node.name} has no control group any more ({error})") from None
            self.manifest.quota_readback.append(
                {"node": node.name, "t_s": self.lab.runner.now(), "moment": moment, "cpu_cores": cores}
            )

    def phases(self) -> None:
        """Watches the load through its phases; ends early, by a WorkError, when the trial cannot count any more."""
        assert self.generator is not None
        assert self.observation is not None
        watch = Watch(self.lab, self.generator, self.observation, self.remote, self.manifest)
        start_s = self.generator.start_s
        assert start_s is not None
        for phase in self.manifest.phases:
            phase.start_s, phase.end_s = start_s, start_s + phase.planned_s
            start_s = phase.end_s
        for phase in self.manifest.phases:
            if self.generator.finished_s is not None:  # the work is done, so the remaining phases are left out
                phase.start_s = phase.end_s = self.generator.finished_s
                continue
            self.begin(phase.name)
            middle = phase.start_s + phase.planned_s / 2
            if phase.name == "run":
                watch.until(middle, phase)
                self.read_quota("run")
            watch.until(phase.end_s, phase)
            if self.generator.finished_s is not None:
                phase.end_s = max(phase.start_s, self.generator.finished_s)
        self.read_quota("end")

    # ---- after --------------------------------------------------------------------------------------------------

    def wind_down(self, opened: contextlib.ExitStack) -> None:
        """Ends load, limits and collectors, each even if another one fails."""
        with self.problems:
            self.begin("stop")
        opened.close()

    def end_on_nodes(self) -> None:
        """The load on one side; limits, and then collectors, which would be slow under them, on the other."""
        self.lab.runner.parallel(lambda end: end(), [self.end_load, self.end_collectors])

    def end_load(self) -> None:
        assert self.generator is not None
        if not self.problems.first:
            self.problems.guard(self.generator.ended_well, EXIT_WAIT_S)
        self.problems.guard(self.generator.end)

    def end_collectors(self) -> None:
        if self.limited:
            self.problems.guard(self.lab.target.lift_limits, self.manifest.nodes)
        self.problems.guard(self.stop_collectors)

    def stop_collectors(self) -> None:
        """Looks for nodes that are gone first, since they may be the reason for trouble of the others' collectors."""
        if self.observation:
            self.observation.stop()
        alive = [n for n in self.started if self.lab.target.present(n)]
        for node in (n for n in self.started if n not in alive):
            self.problems.add(f"node_gone: {node.name} does not run any more")
        self.lab.runner.parallel(lambda n: self.problems.guard(self._stop_node, n), alive)

    def _stop_node(self, node: Node) -> None:
        try:
            self.lab.nodes.call(node, f"ntier-node stop {self.remote}", timeout=30)
        except WorkError as error:
            raise WorkError(f"collect {node.name}: {error}") from None

    def bring_home(self) -> None:
        """Files of every node that answers, and the facts after."""
        with self.problems:
            self.begin("collect")
        self.lab.runner.parallel(lambda n: self.problems.guard(self._bring_home, n), self.started)
        if self.started:
            self.problems.guard(self.data, "after")

    def _bring_home(self, node: Node) -> None:
        if not self.lab.target.present(node):
            raise WorkError(f"node_gone: {node.name} does not run any more")
        then = ""
        limit_s = max(COLLECT_S, disk_bytes(self.spec, [self.trial]) / SLOWEST_BYTES_S)
        with self.problems:
            collect.fetch(self.lab.nodes, node, self.remote, self.folder(node), limit_s)
            then = f"drop {self.remote}"
        self.note_facts(node, "after", *self.lab.nodes.facts_and_clock(node, then))

    def put_in_order(self) -> None:
        """What was collected, as the contract wants it."""
        if self.observation:
            self.problems.guard(self.observation.finish)
        self.problems.guard(self.merge_client_samples)
        self.problems.guard(collect.compress, self.directory)

    def merge_client_samples(self) -> None:
        """A client is a load generator (`clients/`) and a node (`nodes/`): what its collectors wrote, its facts and
        logs join the samples that the host took of it."""
        for client in self.lab.nodes.clients:
            source, into = self.directory / "clients" / client.name, self.directory / "nodes" / client.name
            for name in ("sysstat.sa", "sysstat.json", "procstat.csv", "pressure.csv", "tcp.csv", "canary.csv",
                         "end.json", "logs", "facts_before.json", "facts_after.json"):  # fmt: skip
                if (source / name).exists():
                    into.mkdir(parents=True, exist_ok=True)
                    (source / name).rename(into / name)

    def seal(self) -> None:
        """Validity by the analysis program, then the last write. A failed attempt is sealed without validity."""
        if not self.problems.first:
            with self.problems:
                self.begin("validate", shown=False)
                self.manifest.files = ledger.file_entries(self.directory)
                ledger.save(self.directory, self.manifest)
                limit_s = max(VALIDATE_S, sum(f.bytes for f in self.manifest.files) / SLOWEST_BYTES_S)
                self.manifest.validity = validate(self.lab, self.directory, limit_s)
        self.manifest.failure = failure = self.problems.first
        now = self.lab.runner.now()
        self.manifest.steps.append({"step": self.step, "t_s": now, "event": "error" if failure else "end"})
        try:
            durable.step("seal")
            ledger.seal(self.directory, self.manifest, State.FAILED if failure else State.COLLECTED)
        except OSError as error:
            if not durable.is_disk(error):
                raise
            self.manifest.failure = failure or self.reason(error)
            self.ends_sweep = error


class Problems(contextlib.AbstractContextManager[None]):
    """Collects errors of steps that must all be tried; the first one becomes the attempt's reason."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.first: str | None = None

    def add(self, problem: str) -> None:
        self.first = self.first or problem

    def guard(self, step: Callable[..., Any], *arguments: Any) -> None:
        with self:
            step(*arguments)

    def __exit__(self, _type: Any, error: BaseException | None, _trace: Any) -> bool:
        if isinstance(error, Exception):
            self.add(self.attempt.reason(error))
        return isinstance(error, Exception)


def validate(lab: Lab, directory: Path, limit_s: float) -> Validity:
    """Checks of the analysis on the raw files. Raises WorkError if it does not answer with a table, or within
    `limit_s`."""
    done = lab.runner.ask([ANALYSIS, "validate", str(directory), "--json"], timeout=limit_s)
    try:
        return Validity.model_validate_json(done.out)
    except ValueError as error:
        raise WorkError(f"validate: {ANALYSIS} printed no table of checks: {str(error).splitlines()[0]}") from None
