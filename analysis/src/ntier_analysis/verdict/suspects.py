"""Other collected quantities that could hold up a trial's users, for verdicts that name no cause (`hidden`, `unknown`).

A suspect is beyond a limit whose source stands beside it, or has grown by more than the load explains since the
sweep's lowest load. It is a hint where to look, never a verdict: none of these was shown to limit the throughput.
Values in, values out; docs/validity.md lists them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

MATTERS = 0.05
"""Of the run, or of the requests in service: what costs less is not asked for (as COUNTS of the verdict)."""
GREW = 2.0
"""Times as much as the load explains: own, below that is what unequal mixes and short runs differ by."""
GC_PCT = 100 / 13
"""G1's own goal: 1 / (1 + GCTimeRatio), by default 12 (OpenJDK, g1Arguments.cpp)."""
GC_PAUSE_MS = 200.0
"""G1's goal of a pause, MaxGCPauseMillis, by default 200."""
JIT_PCT = 1.0
"""As check S3."""
RETRANSMIT_S = 0.2
"""A lost segment is waited for at least this long: Linux' TCP_RTO_MIN."""
TURNED_AWAY_S = 1.0
"""A connection that was not accepted is asked for again after this time: RFC 6298, TCP_TIMEOUT_INIT."""
FULL_PCT = 95.0
"""Threshold of saturation."""
FULL_SHARE = 0.2
"""Of the run: what saturates less is no cause to the verdict either."""
SPARE_PCT = 50.0
"""Mean utilization of a node below which a core that is full for a second is no chance: with more work, tasks of many
threads fill one core or another now and then. Own."""
QUEUED = 1.0
"""Tasks per core, operations per disk: beyond it work waits (Gregg's USE method)."""
PRESSURE_PCT = 10.0
"""As check H2.pressure."""

SERVED = ("requests_per_s", "statements_per_s", "questions_per_s", "xact_commit_per_s")
"""Counters that grow as the throughput does; the first that both loads have tells by how much."""


@dataclass(frozen=True)
class Suspect:
    """`value`, `limit`: of `metric` (limit NaN: it only grew); `low_value`: at the lowest load, NaN if unknown;
    `explains`: share of the run, or of the requests in service, that it could hold up, 0..1."""

    node: str
    tier: str
    kind: str
    metric: str
    value: float
    limit: float
    low_value: float
    text: str
    explains: float = 0.0


@dataclass(frozen=True)
class View:
    """Samples of one trial's run phase, by metric."""

    samples: pd.DataFrame
    nodes: pd.DataFrame

    @cached_property
    def _values(self) -> dict[tuple[str, str, str, str], np.ndarray]:
        known = self.samples.dropna(subset="value").sort_values("t_s")
        keys = [known[name].astype(str).replace("nan", "") for name in ("resource", "metric", "node", "item")]
        return {key: part.to_numpy(float) for key, part in known["value"].groupby(keys, sort=True)}

    @cached_property
    def tiers(self) -> dict[str, str]:
        return dict(zip(self.samples["node"].astype(str), self.samples["tier"].astype(str), strict=True))

    def of(self, resource: str, metric: str) -> dict[tuple[str, str], np.ndarray]:
        """(node, item) -> values in the order of time."""
        return {(n, i): v for (r, m, n, i), v in self._values.items() if (r, m) == (resource, metric)}

    def values(self, resource: str, metric: str, node: str, item: str = "") -> np.ndarray:
        return self._values.get((resource, metric, node, item), np.array([]))

    def mean(self, resource: str, metric: str, node: str, item: str = "") -> float:
        found = self.values(resource, metric, node, item)
        return float(found.mean()) if len(found) else float("nan")

    @cached_property
    def containers(self) -> set[str]:
        """Nodes whose sysstat sees the host's queues, disks and swap, not their own."""
        own = ("throttled_pct", "busy_pct")  # by the control group; by a sysstat that is known to be in a container
        return {node for (resource, metric, node, _) in self._values if resource == "cpu" and metric in own}

    def by_second(self, resource: str, metric: str, node: str) -> pd.Series:
        """Second -> the highest value of the node in it (of several disks, say)."""
        seen = self.samples[(self.samples["resource"] == resource) & (self.samples["metric"] == metric)]
        seen = seen[seen["node"].astype(str) == node].dropna(subset="value")
        return seen["value"].groupby(np.floor(seen["t_s"])).max()

    @cached_property
    def busiest_cores(self) -> dict[str, np.ndarray]:
        """Of each node, 1-s means of its busiest core's utilization."""
        seen = self.samples[(self.samples["metric"] == "core_max_pct")].dropna(subset="value")
        means = seen["value"].groupby([seen["node"].astype(str), np.floor(seen["t_s"])]).mean()
        return {str(node): part.to_numpy(float) for node, part in means.groupby(level=0)}

    def cores(self, node: str) -> float:
        """As on record, else what utilization and use tell; NaN if neither does."""
        known = self.nodes.loc[self.nodes["node"] == node, "cpu_cores"].dropna() if len(self.nodes) else pd.Series()
        if len(known):
            return float(known.iloc[0])
        pct, used = (self.mean("cpu", metric, node) for metric in ("utilization_pct", "used_cores"))
        return 100 * used / pct if pct > 0 else float("nan")

    @cached_property
    def in_service(self) -> float:
        """Requests that the web servers, else the applications, have in service by the pools that take a request
        whole: the users who wait; 1 if nothing tells."""
        for item in ("workers", "threads"):
            pools = [v.mean() for (_, i), v in self.of("pool", "active").items() if i == item]
            if pools:
                return max(float(sum(pools)), 1.0)
        return 1.0

    def waiting(self, requests: float) -> float:
        """Share of the requests in service."""
        return float(min(1.0, requests / self.in_service))


def suspects(
    samples: pd.DataFrame, low: pd.DataFrame | None, nodes: pd.DataFrame, max_connections: float | None = None
) -> list[Suspect]:
    """Samples of one trial's run phase, those of the sweep's lowest load, and the table `nodes` -> what could hold up
    users, first what could explain most. `max_connections`: of each database, where its samples do not tell."""
    run = View(samples, nodes)
    before = View(low, nodes) if low is not None and len(low) else None
    pair = Pair(run, before, max_connections)
    found = [suspect for judge in JUDGES for suspect in judge(pair)]
    return sorted(found, key=lambda s: (-s.explains, s.node, s.kind))


@dataclass(frozen=True)
class Pair:
    """A trial and the lowest load of its sweep."""

    run: View
    low: View | None
    max_connections: float | None

    @cached_property
    def growth(self) -> float:
        """Work served against the lowest load's; NaN if unknown."""
        if self.low is None:
            return float("nan")
        for metric in SERVED:
            now, then = (sum(v.mean() for v in view.of("query", metric).values()) for view in (self.run, self.low))
            if now > 0 and then > 0:
                return float(now / then)
        return float("nan")

    def before(self, resource: str, metric: str, node: str, item: str = "") -> float:
        return self.low.mean(resource, metric, node, item) if self.low is not None else float("nan")

    def grew(self, value: float, low: float, *, with_load: bool = True) -> bool:
        """Whether a value is more than GREW times what the load explains. False where that is unknown."""
        expected = low * max(self.growth, 1.0) if with_load else low
        return bool(np.isfinite(expected) and value > GREW * expected)

    def suspect(self, node: str, kind: str, metric: str, value: float, limit: float, low: float, explains: float,
                text: str, *, grows: bool = True, with_load: bool = True) -> list[Suspect]:  # fmt: skip
        """One, if the value is beyond its limit, or (if it `grows`) grew to what matters; else none."""
        beyond = value > limit
        grew = grows and explains >= MATTERS and self.grew(value, low, with_load=with_load)
        if not beyond and not grew:
            return []
        shown = float(limit) if beyond else float("nan")
        tier = self.run.tiers.get(node, "")
        return [Suspect(node, tier, kind, metric, float(value), shown, float(low), text, float(min(1.0, explains)))]


def _low(value: float, pattern: str) -> str:
    """` (2 % at the lowest load)`, or nothing."""
    return f" ({pattern.format(value)} at the lowest load)" if np.isfinite(value) else ""


def collections(pair: Pair) -> list[Suspect]:
    found = []
    for (node, item), shares in pair.run.of("jvm", "gc_pct").items():
        share, low = float(shares.mean()), pair.before("jvm", "gc_pct", node, item)
        text = f"{node} spends {share:.0f} % of the run in garbage collection{_low(low, '{:.0f} %')}"
        found += pair.suspect(node, "garbage collection", "gc_pct", share, GC_PCT, low, share / 100, text)
        pause, then = (_pause_ms(view, node, item) for view in (pair.run, pair.low))
        text = f"a garbage collection stops {node} for {pause:.0f} ms on average{_low(then, '{:.0f} ms')}"
        found += pair.suspect(
            node, "garbage collection pause", "gc_pct / gc_per_s", pause, GC_PAUSE_MS, then, share / 100, text,
            with_load=False,
        )  # fmt: skip
    return found


def _pause_ms(view: View | None, node: str, item: str) -> float:
    """Time of the collections / their number."""
    if view is None:
        return float("nan")
    number = view.mean("jvm", "gc_per_s", node, item)
    return 10 * view.mean("jvm", "gc_pct", node, item) / number if number > 0 else float("nan")


def compilation(pair: Pair) -> list[Suspect]:
    """The JVM tells for how long its compiler was at work, not how much CPU that had: at most all of the time."""
    found = []
    for (node, item), shares in pair.run.of("jvm", "jit_pct").items():
        cores = pair.run.cores(node)
        cores = cores if np.isfinite(cores) and cores > 0 else 1.0
        time_pct = float(shares.mean())
        share, low = time_pct / cores, pair.before("jvm", "jit_pct", node, item) / cores
        text = (
            f"{node} compiles its program in {time_pct:.1f} % of the run, with up to {min(share, 100.0):.0f} % of its "
            f"CPU{_low(min(low, 100.0), 'up to {:.0f} %')}: it may not have been warm"
        )
        found += pair.suspect(
            node, "compilation", "jit_pct", share, JIT_PCT, low, time_pct / 100, text, with_load=False
        )
    return found


def locks(pair: Pair) -> list[Suspect]:
    """Statements that wait for locks, on average: InnoDB's waiting time per second (ms), PostgreSQL's sessions."""
    found = []
    for metric, per_unit, what in (
        ("innodb_row_lock_time_per_s", 1000.0, "row locks"),
        ("lock_waiting", 1.0, "locks"),
    ):
        for (node, item), values in pair.run.of("lock", metric).items():
            waiting = float(values.mean()) / per_unit
            low = pair.before("lock", metric, node, item) / per_unit
            text = f"{waiting:.1f} statements wait for {what} on {node} at each moment{_low(low, '{:.1f}')}"
            limit = MATTERS * pair.run.in_service
            found += pair.suspect(node, "lock waits", metric, waiting, limit, low, pair.run.waiting(waiting), text)
    return found


def statements(pair: Pair) -> list[Suspect]:
    """Statements under way on a database whose CPU and disks have room: they wait inside it, for locks of tables or
    metadata, which no counter shows."""
    found = []
    for node, _ in pair.run.of("queue", "threads_running"):
        waiting, low = (_under_way(view, node) for view in (pair.run, pair.low))
        text = (
            f"{waiting:.1f} statements are under way on {node} on average while its CPU and disks are used less than "
            f"half{_low(low, '{:.1f}')}: they wait for something else, as for locks of tables"
        )
        limit, held = MATTERS * pair.run.in_service, pair.run.waiting(waiting)
        found += pair.suspect(
            node, "statements that wait", "threads_running", waiting, limit, low, held, text, grows=False
        )
    return found


def _under_way(view: View | None, node: str) -> float:
    """Mean over the run, counted in the seconds in which the hardware has room. What always runs (the collector's own
    statement, daemons) is left out."""
    running = view.by_second("queue", "threads_running", node) if view is not None else pd.Series(dtype=float)
    if view is None or running.empty:
        return float("nan")
    busy = view.by_second("cpu", "utilization_pct", node)
    if node not in view.containers:
        busy = pd.concat([busy, view.by_second("disk", "utilization_pct", node)]).groupby(level=0).max()
    room = busy.reindex(running.index) < SPARE_PCT
    return float(((running - running.min()) * room).mean())


def retransmits(pair: Pair) -> list[Suspect]:
    found, seen = [], set()
    for metric in ("tcp_lost_per_s", "tcp_retransmitted_per_s", "tcp_retransmits_per_s"):
        for (node, item), values in pair.run.of("network", metric).items():
            if node in seen:
                continue
            seen.add(node)
            rate, low = float(values.mean()), pair.before("network", metric, node, item)
            text = f"{node} sends {rate:.1f} TCP segments per second again{_low(low, '{:.1f}')}"
            limit = MATTERS * pair.run.in_service / RETRANSMIT_S
            held = pair.run.waiting(rate * RETRANSMIT_S)
            found += pair.suspect(node, "retransmits", metric, rate, limit, low, held, text)
    return found


def turned_away(pair: Pair) -> list[Suspect]:
    """Connections that a full accept queue, or a database at its limit of connections, did not take: none should be."""
    found = []
    for resource, metric, why in (
        ("network", "tcp_listen_drops_per_s", "its accept queue was full"),
        ("network", "tcp_listen_overflows_per_s", "its accept queue was full"),
        ("query", "connection_errors_max_connections_per_s", "its limit of connections (max_connections) was reached"),
    ):
        for (node, item), values in pair.run.of(resource, metric).items():
            if any(s.node == node and s.text.endswith(why) for s in found):
                continue  # drops count overflows too
            rate, low = float(values.mean()), pair.before(resource, metric, node, item)
            text = f"{node} turned away {rate:.2g} connections per second{_low(low, '{:.2g}')}, since {why}"
            held = pair.run.waiting(rate * TURNED_AWAY_S)
            found += pair.suspect(node, "connections turned away", metric, rate, 0.0, low, held, text, grows=False)
    return found


def connections(pair: Pair) -> list[Suspect]:
    found = []
    for (node, item), values in pair.run.of("pool", "connections").items():
        limit = pair.run.mean("pool", "max_connections", node, item)
        limit = pair.max_connections or float("nan") if not np.isfinite(limit) else limit
        if not limit > 0:
            continue
        share, low = 100 * float(values.max()) / limit, 100 * pair.before("pool", "connections", node, item) / limit
        text = f"{node} has up to {values.max():.0f} of its {limit:.0f} connections open (max_connections)"
        held = float((100 * values / limit >= FULL_PCT).mean())
        found += pair.suspect(node, "connection limit", "connections", share, FULL_PCT, low, held, text, grows=False)
    return found


def run_queue(pair: Pair) -> list[Suspect]:
    found = []
    for (node, item), values in pair.run.of("queue", "runnable").items():
        cores = pair.run.cores(node)
        if node in pair.run.containers or not cores > 0:
            continue
        queue, low = float(values.mean()) / cores, pair.before("queue", "runnable", node, item) / cores
        text = f"{node} has {values.mean():.1f} runnable tasks for {cores:.0f} cores{_low(low * cores, '{:.1f}')}"
        held = float((values > cores).mean())
        found += pair.suspect(node, "run queue", "runnable", queue, QUEUED, low, held, text, grows=False)
    return found


def single_core(pair: Pair) -> list[Suspect]:
    """One core that is full for whole seconds while the node is not: a single thread does the work. A thread that moves
    between cores within a sampling interval hides itself."""
    found, share_pct = [], 100 * FULL_SHARE
    before = pair.low.busiest_cores if pair.low is not None else {}
    for node, values in pair.run.busiest_cores.items():
        cores, mean = pair.run.cores(node), pair.run.mean("cpu", "utilization_pct", node)
        if not mean < SPARE_PCT or not cores > 1:
            continue
        full, low = _full_pct(values), _full_pct(before[node]) if node in before else float("nan")
        text = (
            f"one core of {node} is full in {full:.0f} % of the run{_low(low, '{:.0f} %')}, while its {cores:.0f} "
            f"cores are used {mean:.0f} %: a single thread may limit it"
        )
        found += pair.suspect(node, "single core", "core_max_pct", full, share_pct, low, full / 100, text, grows=False)
    return found


def _full_pct(values: np.ndarray) -> float:
    return 100 * float((values >= FULL_PCT).mean())


def swapping(pair: Pair) -> list[Suspect]:
    found = []
    for direction in ("in", "out"):
        metric = f"swap_{direction}_per_s"
        for (node, item), values in pair.run.of("memory", metric).items():
            if node in pair.run.containers:
                continue
            rate, low = float(values.mean()), pair.before("memory", metric, node, item)
            text = f"{node} swaps {rate:.1f} pages per second {direction}{_low(low, '{:.1f}')}"
            found += pair.suspect(
                node, "swapping", metric, rate, 0.0, low, float((values > 0).mean()), text, grows=False
            )
    for (node, _), values in pair.run.of("memory", "swap_bytes").items():
        rise = float(values[-1] - values[0])
        if node in pair.run.containers and rise > 0:
            text = f"{node} swapped {rise / 2**20:.1f} MiB out during the run"
            held = float((np.diff(values) > 0).mean())
            found += pair.suspect(node, "swapping", "swap_bytes", rise, 0.0, float("nan"), held, text, grows=False)
    return found


def disks(pair: Pair) -> list[Suspect]:
    """Operations that wait beyond what they took at the lowest load (Little's law). A disk serves many at a time, so
    a queue alone is none: its operations must take longer too, where the lowest load tells how long they took."""
    found = []
    for (node, item), waits in pair.run.of("disk", "wait_ms").items():
        queue, rate = (pair.run.mean("disk", metric, node, item) for metric in ("queue", "operations_per_s"))
        if node in pair.run.containers or not np.isfinite(queue + rate):
            continue
        low = pair.before("disk", "wait_ms", node, item)
        busy = rate_weighted(waits, pair.run.values("disk", "operations_per_s", node, item))
        beyond = max(0.0, busy - (low if np.isfinite(low) else 0.0)) / 1000 * rate
        slower = not np.isfinite(low) or busy > GREW * low
        if not slower or pair.run.waiting(beyond) < MATTERS:
            continue
        text = (
            f"disk {item} of {node} takes {busy:.1f} ms per operation{_low(low, '{:.1f} ms')}, {queue:.1f} in its queue"
        )
        held = pair.run.waiting(beyond)
        then = pair.before("disk", "queue", node, item)
        found += pair.suspect(node, "disk queue", "queue", queue, QUEUED, then, held, text, grows=False)
    return found


def rate_weighted(values: np.ndarray, rates: np.ndarray) -> float:
    """Mean per operation; the plain mean if the two were not sampled together."""
    if len(values) == len(rates) and rates.sum() > 0:
        return float(np.average(values, weights=rates))
    return float(values.mean())


def pressure(pair: Pair) -> list[Suspect]:
    found = []
    for resource, what in (("disk", "its disks"), ("memory", "memory")):
        for (node, item), values in pair.run.of(resource, "pressure_pct").items():
            share, low = float(values.mean()), pair.before(resource, "pressure_pct", node, item)
            text = f"tasks of {node} wait for {what} in {share:.0f} % of the run{_low(low, '{:.0f} %')}"
            found += pair.suspect(
                node, f"{resource} pressure", "pressure_pct", share, PRESSURE_PCT, low, share / 100, text
            )
    return found


JUDGES: tuple[Callable[[Pair], list[Suspect]], ...] = (
    collections,
    compilation,
    locks,
    statements,
    retransmits,
    turned_away,
    connections,
    run_queue,
    single_core,
    swapping,
    disks,
    pressure,
)
