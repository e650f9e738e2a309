"""Counters and pools of the services: databases, Apache, Tomcat, the middleware (1 s, written on their node)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from ntier_analysis.errors import DataError
from ntier_analysis.parsers.counters import TIDY, clock, deltas, per_second, tidy
from ntier_analysis.parsers.csvfile import read_csv

NOMINAL_S = 1.0

MYSQL_GAUGES = {
    "threads_running": ("queue", "threads_running", "count"),
    "threads_connected": ("pool", "connections", "count"),
    "threads_cached": ("pool", "threads_cached", "count"),
    "innodb_row_lock_current_waits": ("lock", "row_lock_waiting", "count"),
    "innodb_buffer_pool_pages_dirty": ("memory", "buffer_pool_dirty_pages", "count"),
    "innodb_buffer_pool_pages_free": ("memory", "buffer_pool_free_pages", "count"),
    "innodb_buffer_pool_pages_data": ("memory", "buffer_pool_data_pages", "count"),
    "innodb_buffer_pool_pages_total": ("memory", "buffer_pool_total_pages", "count"),
    "ndb_number_of_ready_data_nodes": ("query", "ready_data_nodes", "count"),
}
"""Status variables that are readings; every other one is a cumulative counter."""
LIMIT = "max_connections"
"""A setting: a reading that never changes; what `connections` may reach."""

POSTGRESQL_GAUGES = {
    "active": ("queue", "threads_running", "count"),
    "connections": ("pool", "connections", "count"),
    "idle_in_transaction": ("pool", "idle_in_transaction", "count"),
    # not MySQL's row_lock_waiting: waits for locks of relations and for their extension count too
    "lock_waits": ("lock", "lock_waiting", "count"),
}
"""Columns that are readings, by MySQL's name where the meaning is the same; every other one is a cumulative counter."""


def mysql_status(path: Path) -> tuple[pd.DataFrame, int]:
    """SHOW GLOBAL STATUS, one column per variable -> tidy samples (`questions_per_s` and so on, resources query, lock,
    memory, queue, pool), and how often a counter ran backwards (a restart)."""

    def counter(name: str) -> tuple[str, str]:
        return "lock" if "lock" in name else "memory" if "buffer_pool" in name else "query", "per_s"

    return _database(path, MYSQL_GAUGES, counter)


def postgresql_status(path: Path) -> tuple[pd.DataFrame, int]:
    """pg_stat_database and counts of pg_stat_activity -> tidy samples (`xact_commit_per_s` and so on, resources query,
    memory, disk, lock, queue, pool), and how often a counter ran backwards. A server process reports what it counted
    when it falls idle, at most once a second: the counters of single seconds are uneven."""

    def counter(name: str) -> tuple[str, str]:
        resource = {"deadlocks": "lock", "blks": "memory", "temp": "disk"}.get(name.split("_")[0], "query")
        return resource, "bytes_per_s" if name.endswith("_bytes") else "per_s"

    return _database(path, POSTGRESQL_GAUGES, counter)


def _database(
    path: Path, readings: dict[str, tuple[str, str, str]], counter: Callable[[str], tuple[str, str]]
) -> tuple[pd.DataFrame, int]:
    """`readings`: column in lower case -> resource, metric, unit; `counter`: the same of any other column -> resource,
    unit of its rate."""
    raw = _last_of_moment(read_csv(path, {"t_s": "number"}, others="number"))
    at = clock(path, raw["t_s"].to_numpy(), NOMINAL_S)
    gauges, rates, backwards = {}, {}, 0
    for column in raw.columns.drop("t_s"):
        name = column.lower()
        if name == LIMIT:
            gauges["pool", "", LIMIT, "count"] = raw[column]
            continue
        if name in readings:
            resource, metric, unit = readings[name]
            gauges[resource, "", metric, unit] = raw[column]
            continue
        step, n = deltas(raw[column].to_numpy(), at)
        backwards += n
        resource, unit = counter(name)
        rates[resource, "", f"{name}_per_s", unit] = per_second(step, at)
    return pd.concat([tidy(at, gauges, gauge=True), tidy(at, rates)], ignore_index=True), backwards


def apache_status(path: Path) -> tuple[pd.DataFrame, int]:
    """-> tidy samples: pool `workers` with utilization_pct = busy / limit, requests per s. The limit is the column
    max_workers if the file has it, else busy + idle (the workers that exist just then)."""
    columns = dict.fromkeys(["t_s", "busy_workers", "idle_workers", "total_accesses"], "number")
    raw = _last_of_moment(read_csv(path, columns, others="number"))
    at = clock(path, raw["t_s"].to_numpy(), NOMINAL_S)
    limit = raw["max_workers"] if "max_workers" in raw else raw["busy_workers"] + raw["idle_workers"]
    gauges = _pool("workers", raw["busy_workers"], limit)
    step, backwards = deltas(raw["total_accesses"].to_numpy(), at)
    rates = {("query", "", "requests_per_s", "per_s"): per_second(step, at)}
    return pd.concat([tidy(at, gauges, gauge=True), tidy(at, rates)], ignore_index=True), backwards


def tomcat_status(path: Path) -> tuple[pd.DataFrame, int]:
    """-> tidy samples: pools `threads` and `connections` (utilization_pct, active, waiting), garbage collection and
    compilation as share of the interval, collections per s."""
    columns = [
        "t_s",
        "busy_threads",
        "max_threads",
        "pool_active",
        "pool_waiting",
        "pool_size",
        "gc_count",
        "gc_ms",
        "jit_ms",
    ]
    raw = _last_of_moment(read_csv(path, dict.fromkeys(columns, "number")))
    at = clock(path, raw["t_s"].to_numpy(), NOMINAL_S)
    gauges = _pool("threads", raw["busy_threads"], raw["max_threads"])
    gauges |= _pool("connections", raw["pool_active"], raw["pool_size"])
    gauges["pool", "connections", "waiting", "count"] = raw["pool_waiting"]
    rates, backwards = {}, 0
    for name, metric in (("gc_ms", "gc_pct"), ("jit_ms", "jit_pct")):
        step, n = deltas(raw[name].to_numpy(), at)
        backwards += n
        rates["jvm", "", metric, "pct"] = per_second(step, at) / 10
    step, n = deltas(raw["gc_count"].to_numpy(), at)
    rates["jvm", "", "gc_per_s", "per_s"] = per_second(step, at)
    backwards += n
    return pd.concat([tidy(at, gauges, gauge=True), tidy(at, rates)], ignore_index=True), backwards


def middleware_status(path: Path) -> tuple[pd.DataFrame, int]:
    """One line per second and replica -> tidy samples per replica (item): pool utilization_pct = connections in use /
    pool size, pending statements, awaiting a connection, statements per s, choices per s (of the replica for a read or,
    by the middleware's granularity, for a connection). What the middleware cannot tell (an empty column) has no
    samples."""
    columns = dict.fromkeys(["t_s", "pending", "awaiting", "executed_total", "pool_size"], "number")
    raw = read_csv(path, {"replica": "text"} | columns, optional={"chosen_total": "number"})
    parts, backwards = [], 0
    for replica, rows in raw.groupby("replica", sort=True):
        rows = _last_of_moment(rows)
        at = clock(path, rows["t_s"].to_numpy(), NOMINAL_S)
        used = np.minimum(rows["pending"] - rows["awaiting"].fillna(0), rows["pool_size"].fillna(np.inf))
        gauges = _pool(str(replica), used, rows["pool_size"])
        gauges["pool", str(replica), "pending", "count"] = rows["pending"]
        gauges["pool", str(replica), "waiting", "count"] = rows["awaiting"]
        parts.append(tidy(at, {k: v for k, v in gauges.items() if v.notna().any()}, gauge=True))
        rates = {}
        for counter, metric in (("executed_total", "statements_per_s"), ("chosen_total", "choices_per_s")):
            if counter in rows and rows[counter].notna().any():
                step, n = deltas(rows[counter].to_numpy(), at)
                backwards += n
                rates["query", str(replica), metric, "per_s"] = per_second(step, at)
        parts.append(tidy(at, rates))
    return (pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=TIDY)), backwards


NDB_GAUGES = {"locks_waiting": ("lock", "row_lock_waiting", "count")}
NDB_NOMINAL_S = 7.0
"""A column is asked for every so often (ansible/roles/ndbmtd: one of seven tables each second)."""


def ndb_status(path: Path) -> tuple[pd.DataFrame, int]:
    """ndbinfo's sums over one data node -> tidy samples (resources memory, lock, network, query): columns that end with
    _total as rates per s, the others as readings; and how often a counter ran backwards. An empty field was not asked
    for in that second."""
    raw = read_csv(path, {"t_s": "number"}, others="number")
    clock(path, _last_of_moment(raw)["t_s"].to_numpy(), NOMINAL_S)
    parts, backwards = [], 0
    for name in raw.columns.drop("t_s"):
        rows = _last_of_moment(raw[raw[name].notna()])
        at = clock(path, rows["t_s"].to_numpy(), NDB_NOMINAL_S)
        unit = "bytes" if name.removesuffix("_total").endswith("_bytes") else "count"
        if not name.endswith("_total"):
            resource, metric, unit = NDB_GAUGES.get(name, (_of_ndb(name), name, unit))
            parts.append(tidy(at, {(resource, "", metric, unit): rows[name]}, gauge=True))
            continue
        step, n = deltas(rows[name].to_numpy(), at)
        backwards += n
        per_s = "bytes_per_s" if unit == "bytes" else "per_s"
        parts.append(
            tidy(at, {(_of_ndb(name), "", f"{name.removesuffix('_total')}_per_s", per_s): per_second(step, at)})
        )
    return (pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=TIDY)), backwards


def _of_ndb(name: str) -> str:
    if name.startswith("lock"):
        return "lock"
    if name.startswith(("sent", "received", "overload", "slowdown")):
        return "network"
    return "query" if name.startswith(("reads", "table_scans", "index_scans", "pushed")) else "memory"


def ndb_threads(path: Path) -> tuple[pd.DataFrame, int]:
    """CPU time of each thread of a data node, a line per thread and second -> tidy samples (thread, item = its name):
    utilization_pct, the share of one core that it used between two readings; and how often a counter ran backwards."""
    raw = read_csv(path, {"t_s": "number", "thread": "text", "at_ms": "number", "cpu_us": "number"})
    parts, backwards = [], 0
    for thread, rows in raw.groupby("thread", sort=True):
        rows = _last_of_moment(rows)
        at = clock(path, rows["t_s"].to_numpy(), NOMINAL_S)
        used, n = deltas(rows["cpu_us"].to_numpy(), at)
        passed, m = deltas(rows["at_ms"].to_numpy(), at)
        backwards += n + m
        share = np.divide(used, 10 * passed, out=np.full(len(used), np.nan), where=passed > 0)  # us / ms -> %
        parts.append(tidy(at, {("thread", str(thread), "utilization_pct", "pct"): share}))
    return (pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=TIDY)), backwards


COLUMN = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")


def own_status(path: Path) -> tuple[pd.DataFrame, int]:
    """What a system's own collector wrote. The ends of the columns' names say what they are: `P_used` of `P_limit` with
    `P_waiting` is the pool P, `C_total` counts since the start of the service, any other column is a reading. Returns
    tidy samples, and how often a counter ran backwards. Raises DataError if a column's name is not a word."""
    raw = _last_of_moment(read_csv(path, {"t_s": "number"}, others="number"))
    at = clock(path, raw["t_s"].to_numpy(), NOMINAL_S)
    columns = list(raw.columns.drop("t_s"))
    if strange := next((name for name in columns if not COLUMN.fullmatch(name)), None):
        raise DataError(f"{path}:1: column {strange!r}, expected letters, digits and _, 63 at most")
    pools = [name.removesuffix("_used") for name in columns if name.endswith("_used")]
    pools = [name for name in pools if name and f"{name}_limit" in columns]
    gauges, rates, backwards = {}, {}, 0
    for name in pools:
        gauges |= _pool(name, raw[f"{name}_used"], raw[f"{name}_limit"])
        if f"{name}_waiting" in columns:
            gauges["pool", name, "waiting", "count"] = raw[f"{name}_waiting"]
    told = {f"{name}_{end}" for name in pools for end in ("used", "limit", "waiting")}
    for name in (name for name in columns if name not in told):
        if name.endswith("_total"):
            step, n = deltas(raw[name].to_numpy(), at)
            backwards += n
            rates["query", "", f"{name.removesuffix('_total')}_per_s", "per_s"] = per_second(step, at)
        else:
            gauges["queue", "", name, "count"] = raw[name]
    return pd.concat([tidy(at, gauges, gauge=True), tidy(at, rates)], ignore_index=True), backwards


def _last_of_moment(raw: pd.DataFrame) -> pd.DataFrame:
    """Of readings that follow each other with one stamp the last: a collector that was held up makes up for it at once,
    and may write twice within the millisecond of its stamps. (A file that was written twice over goes back.)"""
    return raw[raw["t_s"] != raw["t_s"].shift(-1)]


def _pool(item: str, used: pd.Series, limit: pd.Series) -> dict:
    share = 100 * used / limit.where(limit > 0)
    return {("pool", item, "utilization_pct", "pct"): share, ("pool", item, "active", "count"): used}
