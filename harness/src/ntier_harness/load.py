"""The load of one trial: a driver on every client node, started for one common moment, watched by its heartbeat. Knows
of drivers no more than their contract (docs/drivers.md)."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path

from ntier_analysis.contracts.nodes import Node
from ntier_analysis.contracts.system import LoadModel

from ntier_harness.drivers import BIN, Driver, Run, Share, split, told
from ntier_harness.drivers.heartbeat import Beat, Broken, Heartbeat
from ntier_harness.errors import WorkError
from ntier_harness.runner import Spawned
from ntier_harness.ssh import Nodes

HEARTBEAT_S = 5.0  # progress.csv has a line each second; longer silence means that the client hangs
LEAD_S = 1.0  # from the moment when several clients are ready to their common start: telling them takes 0.1-0.3 s
OWN_LEAD_S = 0.3  # of one client alone, which sets its start by its own clock, and so is never told too late
READY_POLL_S = 0.1  # also of tail, which would look once a second whether the file is there
MAX_BOOT_S = 60.0  # JMeter's JVM needs 3-4 s; on a busy machine several times that
RATE_OVER_S = 5.0  # what progress shows as throughput: the mean of so many seconds
JVM_CRASH = "A fatal error has been detected by the Java Runtime Environment"
CLOCK_STEP_S = 1.0  # smaller ones move no phase by more than a heartbeat; NTP's slow corrections change both clocks
CLOCKS_APART_S = 0.05  # as check C4 (docs/validity.md): clients start by their own clocks


@dataclass
class Progress:
    """The newest heartbeat of all clients together. `errors`: failed interactions. `in_flight`: None if a driver does
    not know it."""

    users: int = 0
    completed: int = 0
    errors: int = 0
    response_time_ms: float = 0.0
    t_s: float = 0.0
    throughput_per_s: float = 0.0
    in_flight: int | None = None


def merged(beats: list[tuple[Beat, Beat | None]]) -> Progress:
    """From the newest heartbeat of each client and the one before: counts are added up, and the mean response time of
    the last second counts each completed interaction once (NaN if there was none)."""
    if not beats:
        return Progress()
    done = [(new.completed - (old.completed if old else 0), new.response_time_mean_ms) for new, old in beats]
    done = [(n, mean) for n, mean in done if n and not math.isnan(mean)]
    mean = sum(n * mean for n, mean in done) / sum(n for n, _ in done) if done else math.nan
    users, completed, failed = (sum(getattr(new, k) for new, _ in beats) for k in ("users", "completed", "failed"))
    waiting = [new.in_flight for new, _ in beats]
    in_flight = None if None in waiting else sum(waiting)
    return Progress(users, completed, failed, mean, max(new.t_s for new, _ in beats), in_flight=in_flight)


def compare_clocks(offsets: Mapping[str, Mapping[str, float]], clients: list[Node]) -> None:
    """Raises WorkError if the clock of a client differs from another's, or from ours, by more than CLOCKS_APART_S and
    half of the round trips by which it was found. `offsets`: node -> offset_before, rtt_before, s."""
    ours = ("this machine", 0.0, 0.0)
    known = [(c.name, offsets[c.name]["offset_before"], offsets[c.name]["rtt_before"]) for c in clients]
    for (first, a, trip), (second, b, trip_b) in combinations([ours, *known], 2):
        apart = abs(a - b) - (trip + trip_b) / 2
        if apart > CLOCKS_APART_S:
            raise WorkError(
                f"clock: {second} and {first} are {1000 * abs(a - b):.0f} ms apart; users start by the clients' "
                f"clocks, which may differ by {1000 * CLOCKS_APART_S:.0f} ms; synchronize them (chrony)"
            )


def last_words(printed: str) -> str:
    """Of what a driver printed, the last line for a reason, empty if there is none. A JVM that crashes prints a box of
    lines that begin with #; there it is what ended it, as `SIGSEGV (0xb) at pc=...`."""
    lines = [text for line in printed.splitlines() if (text := line.lstrip("# ").strip())]
    crash = [after for before, after in pairwise(lines) if before.startswith(JVM_CRASH)]
    last = crash[-1:] or lines[-1:]
    return f": {last[0][:300]}" if last else ""


@dataclass
class Generator:
    """A driver on the client nodes for one run. It waits until `release`; `start_s`: when the first user starts."""

    nodes: Nodes
    guard: Callable[[str, list[Node]], None]
    """Raises WorkError for an address that is not one of our nodes': load goes nowhere else."""
    run: Run
    driver: Driver
    local_dir: Path
    patience_s: float = HEARTBEAT_S
    watched_s: float = 0.0
    apart_s: float = 0.0
    """The time at `watch`, less that of a clock that nobody sets and that stands still while the machine sleeps."""
    start_s: float | None = None
    finished_s: float | None = None
    """Of fixed work: when the last client was done, by its heartbeat."""
    tails: dict[str, Spawned] = field(default_factory=dict)
    heartbeats: dict[str, Heartbeat] = field(default_factory=dict)
    heard_s: dict[str, float] = field(default_factory=dict)
    recent: list[Progress] = field(default_factory=list)
    codes: dict[str, int | None] = field(default_factory=dict)

    def start(self) -> None:
        """Writes each client's `driver.json` and starts its driver, which then waits for `release`.

        Raises WorkError if a node of the entry is not one of ours or a client does not start."""
        for node in self.nodes.tier(self.run.entry.tier):
            self.guard(node.address, self.nodes.all)
        try:
            shares = split(self.run.workers, len(self.nodes.clients))
        except ValueError as error:
            raise WorkError(f"load: {error}") from None
        self.nodes.runner.parallel(self._start_one, list(zip(self.nodes.clients, shares, strict=True)))

    def _start_one(self, item: tuple[Node, Share]) -> None:
        client, share = item
        settings = told(self.run, share, self.nodes.all) | self.driver.configuration(self.run, share)
        text = json.dumps(settings, indent=1) + "\n"
        file = self.local_dir / "config" / (f"{client.name}.driver.json" if share.client else "driver.json")
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        directory = self.run.directory
        steps = [f"mkdir -p {directory}", self.driver.prepare(self.run), f"cat > {directory}/driver.json"]
        self.nodes.call(client, " && ".join(filter(None, steps)), input=text)
        self.nodes.call(client, shlex.join([f"{BIN}/run-driver", directory, *self.driver.command()]), timeout=30)

    def watch(self) -> None:
        """Follows each client's heartbeat through one connection that stays open."""
        self.watched_s = self.nodes.runner.now()
        self.apart_s = self.watched_s - self.nodes.runner.monotonic()
        for client in self.nodes.clients:
            output = self._output(client.name)
            output.unlink(missing_ok=True)
            folder = self.run.directory
            pid = f"$(cat {folder}/driver.pid)"
            command = f"tail -n +1 -s {READY_POLL_S} --pid={pid} -F {folder}/progress.csv 2>/dev/null"
            self.tails[client.name] = self.nodes.spawn(client, command, output)
            self.heartbeats[client.name] = Heartbeat()
            self.heard_s[client.name] = self.nodes.runner.now()

    def _output(self, client: str) -> Path:
        """Not in the trial's folder: after the harness was killed, the connection may go on writing when the trial is
        sealed."""
        return self.nodes.paths.logs / f"progress.{client}.csv"

    def await_ready(self) -> None:
        """Waits until every client has written its first heartbeat. Raises WorkError if one has not within
        MAX_BOOT_S."""
        runner = self.nodes.runner
        while missing := [name for name, heart in self.heartbeats.items() if heart.latest is None]:
            if runner.now() - self.watched_s > MAX_BOOT_S:
                said = f"{self.driver.title} on {', '.join(missing)} is not ready after {MAX_BOOT_S:.0f} s"
                raise WorkError(f"late_start: {said}{self._last_words(missing[0])}")
            runner.sleep(READY_POLL_S)
            self.poll()

    def release(self, earliest_s: float = 0.0) -> float:
        """When all clients are ready, makes their common start known to them (epoch s), not before `earliest_s`, waits
        for it and returns it. Raises WorkError if one was told too late: its users would come late."""
        self.await_ready()
        runner, clients = self.nodes.runner, self.nodes.clients
        start_s = self._tell_all(clients, earliest_s) if len(clients) > 1 else self._set_own(clients[0], earliest_s)
        while (left := start_s - runner.now()) > 0:
            runner.sleep(min(left, 0.5))
            self.poll()
        self.start_s = start_s
        return start_s

    def _tell_all(self, clients: list[Node], earliest_s: float) -> float:
        """One moment for several clients, far enough ahead that each is told in time."""
        runner, file = self.nodes.runner, self.run.start_file
        start_s = max(earliest_s, runner.now() + LEAD_S)
        command = f"echo {round(start_s * 1000)} > {file}.new && mv {file}.new {file}"
        runner.parallel(lambda client: self.nodes.call(client, command), clients)
        if runner.now() > start_s:
            raise WorkError(f"late_start: the clients got the start {runner.now() - start_s:.1f} s too late")
        return start_s

    def _set_own(self, client: Node, earliest_s: float) -> float:
        """A client that is alone sets it itself, and says when it is."""
        file, earliest = self.run.start_file, round(earliest_s * 1000)
        soon = f"at=$(($(date +%s%3N) + {round(OWN_LEAD_S * 1000)})); [ $at -gt {earliest} ] || at={earliest}"
        told = self.nodes.call(client, f"{soon}; echo $at > {file}.new && mv {file}.new {file} && echo $at")
        if not told.out.strip().isdigit():
            answered = f"answered {told.out.strip()[:200]!r} when told to start; expected a time in ms and nothing else"
            raise WorkError(f"late_start: {client.name} {answered} (does its shell print a banner?)")
        return int(told.out) / 1000

    def poll(self) -> Progress:
        """Reads new heartbeats. Raises WorkError if a client has been silent for HEARTBEAT_S, has ended before its
        time, or breaks the contract, and if this machine's clock was set."""
        now = self.nodes.runner.now()
        self._check_clock(now)
        for name, tail in self.tails.items():
            try:
                if self.heartbeats[name].take(tail.lines(), now):
                    self.heard_s[name] = now
            except Broken as error:
                raise WorkError(f"driver_wrong: {self.driver.title} on {name}: progress.csv: {error}") from None
            if tail.poll() is not None and self.codes.get(name) is None:
                self._ended(name)
            done = self.run.model is LoadModel.WORK and self.codes.get(name) == 0
            if not done and now - self.heard_s[name] > self.patience_s:
                self._silent(name, now - self.heard_s[name])
        beats = [(heart.latest, heart.before) for heart in self.heartbeats.values() if heart.latest]
        progress = merged(beats)
        if self.tails and all(self.codes.get(name) == 0 for name in self.tails):
            self.finished_s = self.finished_s or progress.t_s
        self.recent = [p for p in [*self.recent, progress] if p.t_s >= progress.t_s - RATE_OVER_S]
        first = self.recent[0]
        if progress.t_s > first.t_s:
            progress.throughput_per_s = (progress.completed - first.completed) / (progress.t_s - first.t_s)
        return progress

    def _check_clock(self, now: float) -> None:
        """The phases end by this clock: set back by an hour, it would make the last one an hour longer."""
        step = now - self.nodes.runner.monotonic() - self.apart_s
        if self.tails and abs(step) > CLOCK_STEP_S:
            what = "slept, or its clock was set ahead," if step > 0 else "had its clock set back"
            raise WorkError(f"clock: this machine {what} by {abs(step):.0f} s since the load generator was started")

    def _ended(self, name: str) -> None:
        """The connection ends with the program. A program that ends well may do so a moment before its time; one with a
        fixed amount of work, whenever it is done."""
        code = self.exit_code(self._client(name))
        if code:
            raise WorkError(f"client_exit {code}: {self.driver.title} on {name} ended early{self._last_words(name)}")
        self.codes[name] = code

    def _silent(self, name: str, seconds: float) -> None:
        """A driver that still boots may be silent as long as it lives; `release` limits how long."""
        code = self.exit_code(self._client(name))
        if code is not None:
            raise WorkError(f"client_exit {code}: {self.driver.title} on {name} ended early{self._last_words(name)}")
        if self.heartbeats[name].latest is not None:
            raise WorkError(f"client_silent: no heartbeat from {name} for {seconds:.0f} s")
        self.heard_s[name] = self.nodes.runner.now()

    def _client(self, name: str) -> Node:
        return next(c for c in self.nodes.clients if c.name == name)

    def _last_words(self, name: str) -> str:
        command = f"tail -c 4000 {self.run.directory}/driver.out 2>/dev/null"
        return last_words(self.nodes.call(self._client(name), command, check=False, timeout=15).out)

    def exit_code(self, client: Node) -> int | None:
        """The driver's exit code, None while it runs. If it is gone without a code, it was killed together with the
        shell that watches it: 137."""
        directory = self.run.directory
        code = f"cat {directory}/driver.rc 2>/dev/null"
        gone = f"{{ sleep 1; {code} || echo 137; }}"  # the code is written a moment after the program is gone
        test = f"{code} || grep -qs NTIER_LOAD= /proc/$(cat {directory}/driver.pid)/environ || {gone}"
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

    def ended_well(self, seconds: float) -> None:
        """Waits for the clients' ends. Raises WorkError for one that does not end, or ends with another code than 0."""
        for name, code in self.wait(seconds).items():
            if code is None:
                raise WorkError(
                    f"client_hangs: {self.driver.title} on {name} did not end {seconds:.0f} s after its time"
                )
            if code:
                raise WorkError(f"client_exit {code}: {self.driver.title} on {name}{self._last_words(name)}")

    def end(self) -> None:
        """Ends the drivers that still run, and processes that they left; may be called in any state."""
        for name, tail in self.tails.items():
            tail.stop()
            self._output(name).unlink(missing_ok=True)
        self.nodes.runner.parallel(lambda c: self.nodes.call(c, "ntier-node end-load", timeout=20), self.nodes.clients)
