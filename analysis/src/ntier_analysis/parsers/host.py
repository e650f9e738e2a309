"""What the samplers write: CPU, memory and I/O of each node's control group, CPU and pressure of the host, or of a node
that is a machine of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ntier_analysis.parsers.counters import Clock, clock, deltas, tidy
from ntier_analysis.parsers.csvfile import read_csv

CGROUP_CPU = [
    "usage_user_ns",
    "usage_system_ns",
    "usage_ns",
    "throttled_ns",
    "nr_periods",
    "nr_throttled",
    "quota_us",
    "period_us",
]
CGROUP_MEM_IO = ["memory_bytes", "memory_cache_bytes", "oom_kills", "swap_bytes", "io_read_bytes", "io_write_bytes"]
AWAKE = "awake_ns"
HOST_STAT = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"]
BUSY = ("user", "nice", "system", "irq", "softirq")
SYSTEM = ("system", "irq", "softirq")
TICKS_PER_S = 100  # USER_HZ: what /proc counts in, the same on all of Linux' common platforms
NOMINAL_CPU_S = 0.1
NOMINAL_SLOW_S = 1.0


def cgroup_cpu(path: Path, capacity_cores: float) -> tuple[pd.DataFrame, int]:
    """-> tidy samples of resource `cpu`, and how often a counter ran backwards.

    utilization_pct = used CPU time / (interval x quota) x 100; without a quota, `capacity_cores` takes its place. It is
    not clipped: a value above 100 shows a wrong quota or the scheduler's accounting (docs/validity.md, saturation).
    throttled_pct = throttled periods / periods that the interval spans x 100: in such a period the node used all of its
    quota and wanted more. NaN without a quota, and in an interval in which the quota changed."""
    kinds = dict.fromkeys(CGROUP_CPU, "number") | {"usage_ns": "count", "quota_us": "count", "period_us": "count"}
    raw = read_csv(path, {"t_s": "number"} | kinds)
    at = clock(path, raw["t_s"].to_numpy(), NOMINAL_CPU_S)
    step, backwards = {}, 0
    for name in CGROUP_CPU[:6]:
        step[name], n = deltas(raw[name].to_numpy(), at)
        backwards += n
    quota, period = raw["quota_us"].to_numpy(float), raw["period_us"].to_numpy(float)
    limited = quota > 0
    cores = np.where(limited, quota / np.where(period > 0, period, 1), capacity_cores)
    changed = np.diff(cores) != 0
    used = step["usage_ns"] / 1e9 / at.dt
    with np.errstate(divide="ignore", invalid="ignore"):
        # An interval of dt spans dt/period periods, give or take one at its ends.
        spanned = np.maximum(np.maximum(at.dt * 1e6 / period[1:] - 1, step["nr_periods"]), 1)
        throttled = np.where(limited[1:], 100 * step["nr_throttled"] / spanned, np.nan)
    throttled[changed] = np.nan
    capacity = np.where(changed, np.nan, cores[1:])
    columns = {
        ("cpu", "", "utilization_pct", "pct"): 100 * used / capacity,
        ("cpu", "", "system_pct", "pct"): 100 * step["usage_system_ns"] / 1e9 / at.dt / capacity,
        ("cpu", "", "used_cores", "cores"): used,
        ("cpu", "", "quota_cores", "cores"): np.where(changed | ~limited[1:], np.nan, cores[1:]),
        ("cpu", "", "throttled_pct", "pct"): throttled,
    }
    return tidy(at, columns), backwards


def cgroup_mem_io(path: Path, memory_bytes: int | None, disk_bytes_s: float | None = None) -> tuple[pd.DataFrame, int]:
    """-> tidy samples of `memory` and `disk` of a node, and how often a counter ran backwards.

    Disk utilization_pct = the faster of reading and writing / what the node may read, and as much write, x 100; only of
    a node whose disk is limited. Buffered writes are the kernel's on cgroup v1: neither limited nor counted here."""
    raw = read_csv(path, {"t_s": "number"} | dict.fromkeys(CGROUP_MEM_IO, "number"))
    at = clock(path, raw["t_s"].to_numpy(), NOMINAL_SLOW_S)
    gauges = {
        ("memory", "", "used_bytes", "bytes"): raw["memory_bytes"],
        ("memory", "", "cache_bytes", "bytes"): raw["memory_cache_bytes"],
        ("memory", "", "swap_bytes", "bytes"): raw["swap_bytes"],
        ("memory", "", "oom_kills", "count"): raw["oom_kills"],
    }
    if memory_bytes:
        anonymous = raw["memory_bytes"] - raw["memory_cache_bytes"]
        gauges["memory", "", "used_pct", "pct"] = 100 * anonymous / memory_bytes
    rates, backwards = {}, 0
    for name, metric in (("io_read_bytes", "read_bytes_per_s"), ("io_write_bytes", "write_bytes_per_s")):
        step, n = deltas(raw[name].to_numpy(), at)
        backwards += n
        rates["disk", "", metric, "bytes_per_s"] = step / at.dt
    if disk_bytes_s:
        rates["disk", "", "utilization_pct", "pct"] = 100 * np.maximum(*rates.values()) / disk_bytes_s
    return pd.concat([tidy(at, gauges, gauge=True), tidy(at, rates)], ignore_index=True), backwards


def host_stat(path: Path) -> tuple[pd.DataFrame, int]:
    """/proc/stat of the host -> tidy samples of `cpu`: utilization_pct (user, nice, system, irq, softirq), iowait_pct,
    steal_pct; and how often a counter ran backwards. Neither iowait nor steal is busy: the first is idle time, the
    second was never ours. The kernel's iowait may run backwards by itself; only that is not counted. Nor is it busy for
    those who only keep its CPUs awake (`awake_ns`, nanoseconds): awake_pct, and it counts as idle."""
    columns = {"t_s": "number"} | dict.fromkeys(HOST_STAT, "number")
    raw = read_csv(path, columns, optional={AWAKE: "number"})
    at = clock(path, raw["t_s"].to_numpy(), NOMINAL_CPU_S)
    step, backwards = _stat_steps(raw, at)
    columns = _stat_columns(step)
    if AWAKE in raw:
        used, n = deltas(raw[AWAKE].to_numpy(), at)
        ticks = sum(step.values())
        awake_pct = 100 * used / 1e9 * TICKS_PER_S / np.where(ticks > 0, ticks, np.nan)  # two readings within a tick
        busy = ("cpu", "", "utilization_pct", "pct")
        columns |= {busy: np.maximum(columns[busy] - awake_pct, 0), ("cpu", "", "awake_pct", "pct"): awake_pct}
        backwards += n
    return tidy(at, columns), backwards


def procstat(path: Path) -> tuple[pd.DataFrame, int]:
    """/proc/stat of a node that is a machine of its own, sampled on it -> as `host_stat`, and system_pct, used_cores
    (ticks of 10 ms, so 0.1 s knows them to 0.1 cores), core_max_pct (the busiest core; none where the file does not
    say) and, of `memory`, oom_kills."""
    columns = dict.fromkeys([*HOST_STAT, "oom_kills"], "number")
    raw = read_csv(path, {"t_s": "number"} | columns, optional={"core_max_pct": "number"})
    at = clock(path, raw["t_s"].to_numpy(), NOMINAL_CPU_S)
    step, backwards = _stat_steps(raw, at)
    with np.errstate(divide="ignore", invalid="ignore"):
        columns = _stat_columns(step) | {
            ("cpu", "", "system_pct", "pct"): 100 * sum(step[n] for n in SYSTEM) / sum(step.values()),
            ("cpu", "", "used_cores", "cores"): sum(step[n] for n in BUSY) / TICKS_PER_S / at.dt,
        }
    if "core_max_pct" in raw:
        columns["cpu", "", "core_max_pct", "pct"] = np.where(at.gap, np.nan, raw["core_max_pct"].to_numpy()[1:])
    kills = {("memory", "", "oom_kills", "count"): raw["oom_kills"]}
    return pd.concat([tidy(at, columns), tidy(at, kills, gauge=True)], ignore_index=True), backwards


def _stat_steps(raw: pd.DataFrame, at: Clock) -> tuple[dict[str, np.ndarray], int]:
    step, backwards = {}, 0
    for name in HOST_STAT:
        step[name], n = deltas(raw[name].to_numpy(), at)
        backwards += n if name not in ("iowait", "idle") else 0
        if name in ("iowait", "idle"):
            step[name] = np.where(at.gap, np.nan, np.maximum(np.diff(raw[name].to_numpy()), 0))
    return step, backwards


def _stat_columns(step: dict[str, np.ndarray]) -> dict[tuple[str, str, str, str], np.ndarray]:
    total = sum(step.values())
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            ("cpu", "", "utilization_pct", "pct"): 100 * sum(step[name] for name in BUSY) / total,
            ("cpu", "", "iowait_pct", "pct"): 100 * step["iowait"] / total,
            ("cpu", "", "steal_pct", "pct"): 100 * step["steal"] / total,
        }


PRESSURE = {"cpu": "cpu", "io": "disk", "memory": "memory"}


def pressure(path: Path) -> tuple[pd.DataFrame, int]:
    """Pressure stall information of the host -> tidy samples `pressure_pct` of cpu, disk and memory: share of the
    interval in which some task waited. Columns `<cpu|io|memory>_some_us`: cumulative microseconds.

    The kernel counts tasks that a quota has stopped as waiting: beside a pegged node with a quota the cpu pressure of
    an otherwise idle host is near 100 % (docs/validity.md, H2)."""
    totals = {f"{name}_some_us": "number" for name in PRESSURE}
    raw = read_csv(path, {"t_s": "number"} | totals)
    at = clock(path, raw["t_s"].to_numpy(), NOMINAL_SLOW_S)
    columns, backwards = {}, 0
    for name, resource in PRESSURE.items():
        step, n = deltas(raw[f"{name}_some_us"].to_numpy(), at)
        backwards += n
        columns[resource, "", "pressure_pct", "pct"] = 100 * step / 1e6 / at.dt
    return tidy(at, columns), backwards


TCP = {
    "out_segs": "tcp_segments_sent_per_s",
    "retrans_segs": "tcp_retransmitted_per_s",
    "attempt_fails": "tcp_failed_attempts_per_s",
    "listen_overflows": "tcp_listen_overflows_per_s",
    "listen_drops": "tcp_listen_drops_per_s",
}
"""Column of tcp.csv -> metric. `retransmitted`, `failed_attempts`: as sysstat's retransmits, failed_connects, which
count the same from another file."""

DUPLICATES = "dsacks"
"""Segments that the receiver said it had twice (D-SACK, RFC 2883): sent again without need. Linux probes for a lost
tail after about 10 ms (RFC 8985): if a quota delays the acknowledgement by more, the segment is sent twice. Between
nodes with quotas nearly all that is sent again is of this kind (measured: 2,518 of 2,540 segments, and no time-out)."""


def tcp(path: Path) -> tuple[pd.DataFrame, int]:
    """A node's counters of TCP (/proc/net/snmp, /proc/net/netstat) -> tidy rates of resource `network`, and how often a
    counter ran backwards. `tcp_lost_per_s`: sent again and not known to the receiver; below 0 where the receiver's word
    comes in a later interval. What the kernel does not count (an empty column) has no samples."""
    raw = read_csv(path, {"t_s": "number"} | dict.fromkeys(TCP, "number"), optional={DUPLICATES: "number"})
    at = clock(path, raw["t_s"].to_numpy(), NOMINAL_SLOW_S)
    rates, backwards = {}, 0
    for column in (*TCP, DUPLICATES):
        if column in raw and raw[column].notna().any():
            step, n = deltas(raw[column].to_numpy(), at)
            backwards += n
            rates[column] = step / at.dt
    columns = {("network", "", metric, "per_s"): rates[column] for column, metric in TCP.items() if column in rates}
    if {"retrans_segs", DUPLICATES} <= rates.keys():
        columns["network", "", "tcp_lost_per_s", "per_s"] = rates["retrans_segs"] - rates[DUPLICATES]
    return tidy(at, columns), backwards


def canary(path: Path) -> pd.DataFrame:
    """CPU time of the same work each second -> tidy samples `canary_loop_us`, `canary_pages_us` of cpu."""
    raw = read_csv(path, {"t_s": "number", "loop_us": "number", "pages_us": "number"})
    at = clock(path, raw["t_s"].to_numpy(), NOMINAL_SLOW_S)
    return tidy(at, {("cpu", "", f"canary_{n}", "us"): raw[n].to_numpy() for n in ("loop_us", "pages_us")}, gauge=True)
