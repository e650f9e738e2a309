"""The load of one trial: JMeter on every client node, started for one common moment, watched by its heartbeat."""

from __future__ import annotations

import csv
import datetime
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.nodes import Node

from ntier_harness.catalog import Mix, Phases
from ntier_harness.errors import WorkError
from ntier_harness.runner import Spawned
from ntier_harness.ssh import Nodes

HEARTBEAT_S = 5.0  # progress.csv has a line each second; longer silence means that the client hangs
LEAD_S = 1.0  # from the moment when all is ready to the common start: telling the clients takes 0.1-0.3 s
READY_POLL_S = 0.1
MAX_BOOT_S = 60.0  # JMeter's JVM needs 3-4 s; on a busy machine several times that
RATE_OVER_S = 5.0  # what progress shows as throughput: the mean of so many seconds
REMOTE = "/run/ntier"
MIXES = "/opt/ntier/workloads/mixes"  # of a client node
HEAP_BYTES_PER_USER = 200_000  # 13,000 users fit in 3.2 GB with the JVM's own 600 MB
HEAP_BASE_BYTES = 256 * 2**20
CONTENT_PAGES = 1000  # pages whose content is checked in a run: five times what the check needs (E2, docs/validity.md)
CONTENT_SHARE_MIN = 0.1  # beyond the knee fewer interactions complete than N/Z; a tenth of them is still enough
TIMEOUT_MS = 120_000  # a request that takes longer is an error; the slowest search seen in the original took 103 s


def situations_file(mix: Mix) -> str:
    """Where the warm-up leaves its users' situations on each client; users of trials start there."""
    return f"{REMOTE}/situations.{mix.name}.csv"


@dataclass(frozen=True)
class Run:
    """One use of the generator: a trial or a warm-up."""

    directory: str
    users: int
    phases: Phases
    mix: Mix
    seed: int
    think_mean_ms: float
    keep_situations: int = 0

    @property
    def start_file(self) -> str:
        """Where each client finds the common start."""
        return f"{self.directory}/start"

    @property
    def situations(self) -> str:
        return situations_file(self.mix)


@dataclass
class Progress:
    """The newest heartbeat of all clients together; `silent_s` since the last new line of the slowest."""

    users: int = 0
    completed: int = 0
    errors: int = 0
    response_time_ms: float = 0.0
    t_s: float = 0.0
    throughput_per_s: float = 0.0


def shares(users: int, clients: int) -> list[int]:
    """Users of each client; they differ by one at most."""
    return [users // clients + (i < users % clients) for i in range(clients)]


def data_properties(folder: Path, nodes: list[Node]) -> dict[str, Any]:
    """What users must know of the data: who may log in, and which day the data take for today. `folder`: of all data;
    written there when they were generated. Without it the plan's defaults hold."""
    images = {n.image for n in nodes if n.tier == "db"}
    files = [folder / str(image) / "data.json" for image in images]
    if len(files) != 1 or not files[0].exists():
        return {}
    data = json.loads(files[0].read_text())
    today = datetime.datetime.fromtimestamp(data["reference_time_s"], datetime.UTC).date()
    return {"ntier.database_users": data["users"], "ntier.database_authors": data["authors"], "ntier.today": today}


def content_share(run: Run) -> float:
    """Share of the pages whose content is checked, so that short runs check enough and long ones not too many."""
    expected = run.users * 1000 / run.think_mean_ms * run.phases.run_s
    return min(1.0, max(CONTENT_SHARE_MIN, CONTENT_PAGES / expected))


def properties(run: Run, webs: list[Node], users: int, first_user: int, seed: int) -> dict[str, Any]:
    """`ntier.properties` of one client: every number of the plan that is not its default."""
    authors, mixes = run.mix.author_file, run.mix.file.parent
    heap = math.ceil((HEAP_BASE_BYTES + users * HEAP_BYTES_PER_USER) / 2**20)
    return {
        "ntier.host": ",".join(web.address for web in webs),
        "ntier.port": 80,
        "ntier.path": "/rubbos",
        "ntier.users": users,
        "ntier.first_user": first_user,
        "ntier.seed": seed,
        "ntier.mix": f"{MIXES}/{run.mix.file.name}",
        "ntier.author_mix": f"{MIXES}/{authors.relative_to(mixes)}" if authors else "",
        "ntier.author_share": f"{run.mix.author_share:g}",
        "ntier.start_file": run.start_file,
        "ntier.ramp_up_s": f"{run.phases.ramp_up_s:g}",
        "ntier.run_s": f"{run.phases.run_s:g}",
        "ntier.ramp_down_s": f"{run.phases.ramp_down_s:g}",
        "ntier.think_mean_ms": f"{run.think_mean_ms:g}",
        "ntier.timeout_ms": TIMEOUT_MS,
        "ntier.content_share": f"{content_share(run):.3f}",
        "ntier.keep_situations": run.keep_situations,
        "ntier.situations": "" if run.keep_situations else f"{run.directory}/situations.csv",
        "ntier.out": run.directory,
        "ntier.jvm_heap": f"{heap}m",
    }


@dataclass
class Generator:
    """JMeter on the client nodes for one run. Users wait until `release`; `start_s`: when the first of them starts."""

    nodes: Nodes
    guard: Callable[[str, list[Node]], None]
    """Refuses an address that is not one of ours: load goes nowhere else."""
    run: Run
    local_dir: Path
    patience_s: float = HEARTBEAT_S
    started_s: float = 0.0
    start_s: float | None = None
    tails: dict[str, Spawned] = field(default_factory=dict)
    latest: dict[str, dict[str, float]] = field(default_factory=dict)
    heard_s: dict[str, float] = field(default_factory=dict)
    recent: list[Progress] = field(default_factory=list)
    codes: dict[str, int | None] = field(default_factory=dict)

    def start(self) -> None:
        """Writes each client's properties and starts its JMeter, which then waits for `release`.

        Raises WorkError if a web node is not one of ours or a client does not start."""
        webs = self.nodes.tier("web")
        for web in webs:
            self.guard(web.address, self.nodes.all)
        split = shares(self.run.users, len(self.nodes.clients))
        data = data_properties(self.nodes.paths.data, self.nodes.all)
        self.started_s = self.nodes.runner.now()

        def one(item: tuple[int, Node]) -> None:
            i, client = item
            values = properties(self.run, webs, split[i], sum(split[:i]), self.run.seed + i) | data
            text = "".join(f"{k}={v}\n" for k, v in values.items())
            file = self.local_dir / "config" / (f"{client.name}.properties" if i else "ntier.properties")
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
            directory = self.run.directory
            situations = "" if self.run.keep_situations else f" && cp {self.run.situations} {directory}/situations.csv"
            prepare = f"mkdir -p {directory}{situations} && cat > {directory}/ntier.properties"
            self.nodes.call(client, prepare, input=text)
            self.nodes.call(client, f"/opt/ntier/bin/run-jmeter {directory}", timeout=30)

        self.nodes.runner.parallel(one, list(enumerate(self.nodes.clients)))

    def watch(self) -> None:
        """Follows each client's heartbeat through one connection that stays open."""
        for client in self.nodes.clients:
            output = self._heartbeats(client.name)
            output.unlink(missing_ok=True)
            folder = self.run.directory
            command = f"tail -n +1 --pid=$(cat {folder}/jmeter.pid) -F {folder}/progress.csv 2>/dev/null"
            self.tails[client.name] = self.nodes.spawn(client, command, output)
            self.heard_s[client.name] = self.nodes.runner.now()

    def _heartbeats(self, client: str) -> Path:
        """Not in the trial's folder: of a killed harness the connection may write on after the trial is sealed."""
        return self.nodes.paths.logs / f"progress.{client}.csv"

    def release(self) -> float:
        """Waits until every client is ready, tells them the common start (epoch s), waits for it and returns it.

        Raises WorkError if a client is not ready within MAX_BOOT_S, or was told too late: its users would come late."""
        runner = self.nodes.runner
        while len(self.latest) < len(self.tails):
            if runner.now() - self.started_s > MAX_BOOT_S:
                missing = ", ".join(name for name in self.tails if name not in self.latest)
                raise WorkError(f"late_start: JMeter on {missing} is not ready after {MAX_BOOT_S:.0f} s")
            runner.sleep(READY_POLL_S)
            self.poll()
        start_s = runner.now() + LEAD_S
        file = self.run.start_file
        command = f"echo {round(start_s * 1000)} > {file}.new && mv {file}.new {file}"
        runner.parallel(lambda client: self.nodes.call(client, command), self.nodes.clients)
        if runner.now() > start_s:
            raise WorkError(f"late_start: the clients knew the start {runner.now() - start_s:.1f} s too late")
        while (left := start_s - runner.now()) > 0:
            runner.sleep(min(left, 0.5))
            self.poll()
        self.start_s = start_s
        return start_s

    def poll(self) -> Progress:
        """Reads new heartbeats. Raises WorkError if a client has been silent for HEARTBEAT_S."""
        now = self.nodes.runner.now()
        for name, tail in self.tails.items():
            lines = [line for line in tail.lines() if line[:1].isdigit()]
            if lines:
                row = next(csv.reader([lines[-1]]))
                keys = ("t_s", "users", "completed", "errors", "response_time_mean_ms")
                self.latest[name] = dict(zip(keys, (float(v or 0) for v in row), strict=False))
                self.heard_s[name] = now
            elif now - self.heard_s[name] > self.patience_s:
                self._silent(name, now - self.heard_s[name])
        progress = self._sum()
        self.recent = [p for p in [*self.recent, progress] if p.t_s >= progress.t_s - RATE_OVER_S]
        first = self.recent[0]
        if progress.t_s > first.t_s:
            progress.throughput_per_s = (progress.completed - first.completed) / (progress.t_s - first.t_s)
        return progress

    def _silent(self, name: str, seconds: float) -> None:
        """A JVM that still starts may be silent as long as it lives; `release` gives up some time."""
        client = next(c for c in self.nodes.clients if c.name == name)
        code = self.exit_code(client)
        if code is not None:
            raise WorkError(f"client_exit {code}: JMeter on {name} ended early")
        if name in self.latest:
            raise WorkError(f"client_silent: no heartbeat from {name} for {seconds:.0f} s")
        self.heard_s[name] = self.nodes.runner.now()

    def _sum(self) -> Progress:
        rows = list(self.latest.values())
        if not rows:
            return Progress()
        completed = sum(r["completed"] for r in rows)
        mean = sum(r["response_time_mean_ms"] for r in rows) / len(rows)  # NaN before the first interaction
        users, errors = (int(sum(r[k] for r in rows)) for k in ("users", "errors"))
        return Progress(users, int(completed), errors, mean, max(r["t_s"] for r in rows))

    def exit_code(self, client: Node) -> int | None:
        """JMeter's exit code, None while it runs. A JVM that is gone, and its code does not come, was killed: 137."""
        directory = self.run.directory
        code = f"cat {directory}/jmeter.rc 2>/dev/null"
        gone = f"{{ sleep 1; {code} || echo 137; }}"  # its shell writes the code a moment after the JVM is gone
        test = f"{code} || grep -qs NTIER_LOAD= /proc/$(cat {directory}/jmeter.pid)/environ || {gone}"
        out = self.nodes.call(client, test, check=False, timeout=15).out.strip()
        return int(out) if out.lstrip("-").isdigit() else None

    def wait(self, seconds: float) -> dict[str, int | None]:
        """Waits for the clients to end by themselves. Exit codes by client, None of one that still runs."""
        end = self.nodes.runner.monotonic() + seconds
        for client in self.nodes.clients:
            while (code := self.exit_code(client)) is None and self.nodes.runner.monotonic() < end:
                self.nodes.runner.sleep(0.3)
            self.codes[client.name] = code
        return self.codes

    def end(self) -> None:
        """Ends what has not ended by itself; may be called whatever happened before."""
        for name, tail in self.tails.items():
            tail.stop()
            self._heartbeats(name).unlink(missing_ok=True)
        running = [c for c in self.nodes.clients if self.codes.get(c.name) is None]
        self.nodes.runner.parallel(lambda c: self.nodes.call(c, "ntier-node end-load", timeout=20), running)
