"""C6, O2, S3, S4, H7: do counts and times fit together, was the system warm, and did nothing else happen to it?"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from ntier_analysis.contracts import Outcome
from ntier_analysis.contracts.files import lines
from ntier_analysis.statistics import stationarity
from ntier_analysis.statistics.throughput import BATCHES
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.host import in_run
from ntier_analysis.validity.registry import SIGNIFICANT, Finding, check, exact, sampled, undecidable
from ntier_analysis.validity.replicas import split

STATEMENTS_PCT = 2.0
LITTLE_PCT = 5.0
MIN_N = 100
MOST_UNDER_WAY = 0.5
"""Of the pages that were completed in a run. If more are under way, most of what was executed in the run belongs to
pages that began before it or end after it."""
JIT_PCT = 1.0
MISS_SHARE = 0.01
"""Misses below one in a hundred interactions cannot move a mean response time: own, not judged."""
MISSES = {"mysql_status": "innodb_buffer_pool_reads_per_s", "postgresql_status": "blks_read_per_s"}


# ---- counts and times ----------------------------------------------------------------------------------------------


@check("C6", "Statements executed against those that the pages took", "statements_differ", required=False)
def statements(trial: RawTrial) -> Finding:
    """Each page says how many statements it took; the client adds them up (`statements` of progress.csv). The
    middleware's own counters are the other witness. Of pages under way it has counted what the client has not: as many
    as became more or fewer over the run may be the difference, and those that users took along who left before it."""
    start, end = trial.run
    inside = trial.progress[trial.progress["t_s"].between(start, end)]
    beats = inside.groupby("client")[["t_s", "completed", "in_flight", "statements"]].agg(
        lambda v: v.iloc[-1] - v.iloc[0]
    )
    rates = beats["statements"] / beats["t_s"].where(beats["t_s"] > 0)  # the first beat is up to a second late
    said = float(rates.sum(min_count=1)) * (end - start)
    if not np.isfinite(said) or said == 0:
        return undecidable("not collected: the client does not add up the statements that pages say they took")
    executed = _executed(trial.remember(split))
    if not np.isfinite(executed):
        return undecidable(
            "not collected: no node counts the statements that it hands on, or none separately those that went to one "
            "replica only"
        )
    text = f"{executed:.0f} executed by the middleware, {said:.0f} by the pages"
    waiting, completed = inside.groupby("client")["in_flight"].max().sum(), beats["completed"].sum()
    if waiting > MOST_UNDER_WAY * completed:
        return undecidable(f"{text}; {waiting:.0f} pages were under way at once beside {completed:.0f} completed ones")
    unsure = abs(beats["in_flight"].sum()) + trial.taken_along
    under_way = unsure * beats["statements"].sum() / max(beats["completed"].sum(), 1)
    edges = 2 * said / (end - start)  # the counters are read at other moments of a second, at either end
    off, error = 100 * (executed / said - 1), 100 * (under_way / SIGNIFICANT + np.sqrt(said + edges)) / said
    return sampled(off, STATEMENTS_PCT, error, "pct", text, round(said))


def _executed(counts: pd.DataFrame) -> float:
    """Statements that the middleware was sent: reads go to one replica (chosen), what else it executed to all."""
    if len(counts) < 2:
        return float(counts["executed"].sum(min_count=1))
    chosen = counts["chosen"].sum(skipna=False)
    return float(chosen + (counts["executed"].sum(skipna=False) - chosen) / len(counts))


@check(
    "O2",
    "Little's law by the first tier's access log: requests in service against rate x time",
    "little",
    required=False,
)
def little(trial: RawTrial) -> Finding:
    """Per web node. The two differ by what requests had been in service before the run and what they were served of at
    its end, whose error is that of a Poisson number of them."""
    start, end = trial.run
    worst: tuple[float, float, float, str, int] = (-1.0, 0.0, 0.0, "", 0)
    for name, log in trial.web_logs.items():
        inside = log[(log["t_s"] >= start) & (log["start_s"] < end)]
        if len(inside) < MIN_N:
            return undecidable(f"{name} logged {len(inside)} requests, {MIN_N} are needed", n=len(inside))
        off, error, text = _little(inside["start_s"].to_numpy(), inside["t_s"].to_numpy(), start, end)
        if abs(off) > worst[0]:
            worst = (abs(off), off, error, f"{name}: {text}", len(inside))
    if worst[0] < 0:
        return undecidable("not collected: the first tier keeps no access log")
    return sampled(worst[1], LITTLE_PCT, worst[2], "pct", worst[3], worst[4])


def _little(begin: np.ndarray, end: np.ndarray, start: float, stop: float) -> tuple[float, float, str]:
    """Difference in percent of the requests in service, its standard error, a text."""
    length = stop - start
    in_service = float((np.minimum(end, stop) - np.maximum(begin, start)).sum()) / length
    done = (end >= start) & (end < stop)
    product = float((end - begin)[done].sum()) / length
    before = (start - begin)[begin < start]
    left = (stop - begin)[end >= stop]
    error = float(np.sqrt((before**2).sum() + (left**2).sum())) / length
    mean_ms = 1000 * product * length / max(done.sum(), 1)
    text = f"{in_service:.2f} in service, {done.sum() / length:.1f}/s x {mean_ms:.1f} ms"
    return 100 * (product / in_service - 1), 100 * error / in_service, text


# ---- warmth --------------------------------------------------------------------------------------------------------


def _batches(trial: RawTrial, node: str, collector: str, metric: str) -> np.ndarray:
    """Means of BATCHES equal parts of the run; parts without a sample are left out."""
    seen, (start, end) = in_run(trial, node, collector, metric), trial.run
    part = np.minimum((seen["t_s"] - start) // ((end - start) / BATCHES), BATCHES - 1)
    return seen.groupby(part)["value"].mean().to_numpy()


@check("S3", "Compilation by JVMs during the run, share of their node's CPU", "not_warm", required=False)
def compiled(trial: RawTrial) -> Finding:
    """Of the worst node: time of the JVM's compiler / (run x cores). The compiler's time is elapsed time, so a node
    that its quota stops reads high. The middleware's JVM tells none."""
    by_node: list[tuple[float, float, str, int]] = []
    for name, node in trial.nodes.items():
        if not trial.path(f"nodes/{name}/tomcat_status.csv"):
            continue
        cores = trial.capacity_cores(name) if node.cpu_cores or not trial.own_machines else float(node.cores or 1)
        shares = _batches(trial, name, "tomcat_status", "jit_pct") / cores
        if len(shares) > 1:
            error = float(shares.std(ddof=1) / np.sqrt(len(shares)))
            by_node.append((float(shares.mean()), error, name, len(shares)))
    if not by_node:
        return undecidable("not collected: no node reports the time of its compiler")
    share, error, name, n = max(by_node)
    return sampled(share, JIT_PCT, error, "pct", f"{name} compiled for {share:.2f} % of its CPU capacity at most", n)


@check("S3.cache", "Drift over the run of the pages that databases read into their caches", "not_warm", required=False)
def cache(trial: RawTrial) -> Finding:
    start, end = trial.run
    interactions = len(trial.run_interactions)
    worst: Finding | None = None
    for name in trial.nodes:
        for collector, metric in MISSES.items():
            if not trial.path(f"nodes/{name}/{collector}.csv"):
                continue
            misses = _batches(trial, name, collector, metric)
            total = float(misses.mean()) * (end - start) if len(misses) else float("nan")
            finding = _cache_finding(name, misses, total, interactions)
            if worst is None or _rank(finding) > _rank(worst):
                worst = finding
    return worst or undecidable("not collected: no database reports what it read into its cache")


def _cache_finding(name: str, misses: np.ndarray, total: float, interactions: int) -> Finding:
    text = f"{name} read {total:.0f} pages into its cache for {interactions} interactions"
    if np.isfinite(total) and total <= MISS_SHARE * interactions:
        return Finding(Outcome.PASS, 0.0, 100 * stationarity.LIMIT, "pct", interactions, None, text)
    if not len(misses):
        return undecidable(f"not collected: {name} does not report what it read into its cache", n=0)
    if len(misses) < BATCHES:
        return undecidable(f"{name}: {len(misses)} parts of the run have samples, {BATCHES} are needed", n=len(misses))
    drift = stationarity.drift(misses)
    text += f", drift {100 * drift.drift:+.0f} % (s.e. {100 * drift.standard_error:.0f})"
    limit, error = 100 * stationarity.LIMIT, 100 * drift.standard_error
    return Finding(Outcome(drift.outcome), 100 * drift.drift, limit, "pct", len(misses), error, text)


def _rank(finding: Finding) -> tuple[int, float]:
    order = {Outcome.PASS: 0, Outcome.UNDECIDABLE: 1, Outcome.FAIL: 2}
    return order[finding.outcome], abs(finding.value or 0.0)


# ---- other events --------------------------------------------------------------------------------------------------

EVENTS = {
    "checkpoint": re.compile(r"checkpoint (?:starting|complete)|Starting checkpoint", re.IGNORECASE),
    "package timer": re.compile(r"(?:Starting|Started) (?:apt-daily|dpkg-db-backup|man-db|unattended-upgrades)"),
    "log rotation": re.compile(r"(?:Starting|Started) logrotate|logrotate\["),
    "trim or scrub": re.compile(r"(?:Starting|Started) (?:fstrim|e2scrub)"),
    "clean-up": re.compile(r"(?:Starting|Started) systemd-tmpfiles-clean"),
    "sysstat's own timer": re.compile(r"(?:Starting|Started) sysstat-(?:collect|summary|rotate)"),
    "cron job": re.compile(r"CRON\[\d+\]: \(\w+\) CMD"),
    "backup": re.compile(r"\b(?:mysqldump|pg_dump|pg_basebackup|xtrabackup)\b"),
}
"""Once-only work that a node's journal tells of. The timers are those that the role `common` masks."""
_STAMP = re.compile(r"^(\d{9,11}\.\d+) ")


def events(trial: RawTrial) -> tuple[pd.DataFrame, list[str]]:
    """`t_s, node, kind` of the run phase, by the nodes' journals; and the nodes without a journal."""
    (start, end), rows, silent = trial.run, [], []
    for name in trial.nodes:
        path = trial.path(f"nodes/{name}/logs/journal.log")
        if path is None:
            silent.append(name)
            continue
        for line in (text.decode("utf-8", "replace") for text in lines(path)):
            stamp = _STAMP.match(line)
            if stamp and start <= float(stamp[1]) < end:
                rows += [(float(stamp[1]), name, kind) for kind, pattern in EVENTS.items() if pattern.search(line)]
    return pd.DataFrame(rows, columns=["t_s", "node", "kind"]), silent


@check("S4", "Checkpoints, timers, log rotation and backups during the run", "one_time_event", required=False)
def one_time_events(trial: RawTrial) -> Finding:
    rows, silent = events(trial)
    if len(silent) == len(trial.nodes):
        return undecidable("not collected: no node left a journal")
    start = trial.run[0]
    listed = [f"{row.kind} on {row.node} at second {row.t_s - start:.0f}" for row in rows.itertuples()]
    if not listed and silent:
        return undecidable(f"no journal of {', '.join(silent)}; none elsewhere", n=len(trial.nodes) - len(silent))
    return exact(float(len(listed)), 0.0, "events", "; ".join(listed[:5]) or "none", len(trial.nodes) - len(silent))


FREQUENCY_PCT = 3.0


@check("H7", "CPU frequency: 9th against 1st decile over the run", "cpu_frequency", required=False)
def frequency(trial: RawTrial) -> Finding:
    """Clock frequency of the host, or of the node where it varies most. A virtual machine often reports its nominal
    frequency always; then only the canary (H6, H7.sweep) shows a change."""
    machines = list(trial.nodes) if trial.own_machines else ["host"]
    spreads: dict[str, tuple[float, float, int]] = {}
    for name in machines:
        if not trial.sysstat_file(name):
            continue
        mhz = in_run(trial, name, "sysstat", "frequency_mhz")["value"].to_numpy()
        if len(mhz) and np.median(mhz) > 0:
            low, high = np.percentile(mhz, [10, 90])
            spreads[name] = 100 * (high / low - 1) if low > 0 else float("inf"), float(np.median(mhz)), len(mhz)
    if not spreads:
        return undecidable("not collected: sysstat gave no CPU frequency")
    if lacking := [name for name in machines if name not in spreads]:
        return undecidable(f"no CPU frequency of {', '.join(lacking)}")
    name = max(spreads, key=lambda n: spreads[n][0])
    spread, median, n = spreads[name]
    return exact(spread, FREQUENCY_PCT, "pct", f"{name} ran at {median:.0f} MHz (median)", n)
