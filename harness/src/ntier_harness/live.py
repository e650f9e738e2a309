"""What a sweep does at this moment, as metrics for Prometheus: `--metrics` (docs/how-to/watch-a-sweep.md)."""

from __future__ import annotations

import contextlib
import math
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ntier_harness.errors import RequestError
from ntier_harness.load import Progress

if TYPE_CHECKING:
    from ntier_analysis.contracts.manifest import Phase
    from prometheus_client import Metric

    from ntier_harness.plan import Trial
    from ntier_harness.spec import Spec
    from ntier_harness.targets import Reading

LOOPBACK = "127.0.0.1"
FULL = 0.95  # share of its CPU from which on a node counts as saturated, as in verdicts (docs/glossary.md)
PHASES = ("ramp_up", "run", "ramp_down")
OUTCOMES = ("valid", "invalid", "failed")


@dataclass
class NodeCpu:
    """CPU of one node in the trial so far. `t_s`, `share`: the newest reading; `samples` of the run phase; `full`:
    those at FULL or above."""

    t_s: float
    share: float
    samples: int = 0
    full: int = 0


@dataclass
class Current:
    """The attempt that runs. `of`: trials that the sweep has at most."""

    trial: Trial
    attempt: int
    number: int
    of: int
    users_real: int
    phase: str = ""
    left_s: float = 0.0
    progress: Progress = field(default_factory=Progress)
    nodes: dict[str, NodeCpu] = field(default_factory=dict)


class Live:
    """Told by the sweep what happens, and read by the server's thread. Costs next to nothing if nobody reads it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sweep: dict[str, str] = {}
        self.current: Current | None = None
        self.before = Progress()
        """Completed and failed interactions of the attempts that have ended: counters go on from there."""
        self.ended: Counter[str] = Counter()
        """Attempts by outcome, of this use of the command."""

    def begin(self, spec: Spec) -> None:
        with self.lock:
            self.sweep = {"sweep": spec.sweep, "topology": str(spec.topology), "mix": spec.mix.name}

    def trial(self, trial: Trial, attempt: int, number: int, of: int, users_real: int) -> None:
        with self.lock:
            self.current = Current(trial, attempt, number, of, users_real)

    def tick(self, phase: Phase, progress: Progress, readings: Mapping[str, Reading], now_s: float) -> None:
        with self.lock:
            if now := self.current:
                now.phase, now.progress = phase.name, progress
                now.left_s = max(0.0, (phase.end_s or now_s) - now_s)
                for name, reading in readings.items():
                    add(now.nodes, name, reading, phase)

    def trial_ended(self) -> None:
        """It is judged later, perhaps while the next one gets ready."""
        with self.lock:
            if now := self.current:
                self.before.completed += now.progress.completed
                self.before.errors += now.progress.errors
            self.current = None

    def judged(self, outcome: str) -> None:
        with self.lock:
            self.ended[outcome] += 1


def add(nodes: dict[str, NodeCpu], name: str, reading: Reading, phase: Phase) -> None:
    """A reading tells of the time since the one before it. It is a sample of the run phase if that time began in it,
    and counts once, however often it is seen."""
    before = nodes.get(name)
    if before is None:
        nodes[name] = NodeCpu(reading.t_s, reading.share)
    elif reading.t_s > before.t_s:
        if phase.name == "run" and phase.start_s is not None and before.t_s >= phase.start_s:
            before.samples += 1
            before.full += reading.share >= FULL
        before.t_s, before.share = reading.t_s, reading.share


class Collector:
    """`Live` as families of metrics. What is not known has no sample."""

    def __init__(self, live: Live) -> None:
        self.live = live

    def collect(self) -> Iterator[Metric]:
        with self.live.lock:
            families = [*whole_sweep(self.live), *of_trial(self.live.current), *of_nodes(self.live.current)]
        yield from families


def whole_sweep(live: Live) -> Iterator[Metric]:
    from prometheus_client.metrics_core import CounterMetricFamily, InfoMetricFamily, StateSetMetricFamily

    now = live.current
    yield InfoMetricFamily("ntier_sweep", "The sweep that runs.", live.sweep or None)
    attempts = CounterMetricFamily("ntier_attempts", "Attempts that have ended.", labels=["outcome"])
    for outcome in OUTCOMES:
        attempts.add_metric([outcome], live.ended[outcome])
    yield attempts
    yield StateSetMetricFamily(
        "ntier_phase", "Phase of the trial; none between trials.", {p: bool(now and now.phase == p) for p in PHASES}
    )
    done = now.progress if now else Progress()
    for name, text, count in (
        ("completed", "Interactions that users have completed.", live.before.completed + done.completed),
        ("failed", "Interactions that ended with an error.", live.before.errors + done.errors),
    ):
        yield CounterMetricFamily(f"ntier_interactions_{name}", text, count)


def of_trial(now: Current | None) -> Iterator[Metric]:
    """Families without samples between trials, and of what the load generators do not say."""
    from prometheus_client.metrics_core import GaugeMetricFamily, InfoMetricFamily

    yield InfoMetricFamily("ntier_trial", "The trial that runs.", {"trial": now.trial.key} if now else None)
    running = now if now and now.phase else None
    p = running.progress if running else Progress()
    for name, text, value in (
        ("trial_number", "Number of the trial in the sweep's order, from 1 on.", now and now.number),
        ("trials", "Trials of the sweep, at most.", now and now.of),
        ("attempt", "Attempt at this trial, from 1 on.", now and now.attempt),
        ("phase_left_seconds", "Time until the phase ends.", running and running.left_s),
        ("users_nominal", "Users of the trial, before the scale.", now and now.trial.users),
        ("users_real", "Users of the trial, times the scale.", now and now.users_real),
        ("users_running", "Users that have been started and not ended.", running and p.users),
        ("interactions_in_flight", "Interactions whose answer users wait for.", running and p.in_flight),
        ("throughput_per_second", "Interactions per second, mean of 5 s.", running and p.throughput_per_s),
        ("response_time_mean_seconds", "Mean of the last second.", running and p.response_time_ms / 1000),
    ):
        known = value is not None and not math.isnan(value)
        yield GaugeMetricFamily(f"ntier_{name}", text, value if known else None)


def of_nodes(now: Current | None) -> Iterator[Metric]:
    from prometheus_client.metrics_core import GaugeMetricFamily

    share, full, samples = (
        GaugeMetricFamily(f"ntier_node_cpu_{name}", text, labels=["node"])
        for name, text in (
            ("utilization_ratio", "Share of its CPU that the node used last."),
            ("saturation_ratio", f"Share of the run phase's samples so far with utilization {FULL:g} or more."),
            ("samples", "Number of samples of the run phase so far, the base of the saturation."),
        )
    )
    for name, cpu in now.nodes.items() if now else ():
        share.add_metric([name], cpu.share)
        samples.add_metric([name], cpu.samples)
        if cpu.samples:
            full.add_metric([name], cpu.full / cpu.samples)
    yield from (share, full, samples)


def parse(text: str | None) -> tuple[str, int] | None:
    """`9464`, `0.0.0.0:9464`, `[::1]:9464` -> address and port. Raises RequestError."""
    if text is None:
        return None
    address, colon, port = text.rpartition(":")
    address = address.removeprefix("[").removesuffix("]")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536) or (colon and not address):
        raise RequestError(
            f"metrics: {text!r}: expected a port of this machine (9464), or ADDRESS:PORT with a port from 1 to 65535"
        )
    return address or LOOPBACK, int(port)


@contextlib.contextmanager
def served(live: Live, place: tuple[str, int] | None) -> Iterator[None]:
    """Inside, `http://<place>/metrics` answers; with None nothing is opened. Raises RequestError if it cannot."""
    if place is None:
        yield
        return
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry()
    registry.register(Collector(live))
    address, port = place
    try:
        server, thread = start_http_server(port, address, registry)
    except OSError as error:
        raise RequestError(f"metrics: {address} port {port} cannot be served ({error.strerror or error})") from None
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
