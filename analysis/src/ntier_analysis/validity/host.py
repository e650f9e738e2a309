"""H: did every node get the capacity that it was promised?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ntier_analysis.contracts import Outcome
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.registry import Finding, check, exact, undecidable

HOST_P95_PCT, HOST_MEAN_PCT = 90.0, 80.0
STEAL_MEAN_PCT, STEAL_P99_PCT = 1.0, 5.0
PRESSURE_PCT = 10.0
QUOTA_BAND_PCT = 3.0
QUOTA_WINDOW_S = 10.0
PEGGED_PCT = 99.0
HOST_FREE_PCT = 5.0


def in_run(trial: RawTrial, node: str, collector: str, metric: str) -> pd.DataFrame:
    """`t_s, value, interval_s` of one metric in the run phase, gaps left out."""
    frame, _ = trial.samples_of(node, collector)
    start, end = trial.run
    inside = (frame["metric"] == metric) & (frame["t_s"] >= start) & (frame["t_s"] < end)
    return frame.loc[inside, ["t_s", "value", "interval_s"]].dropna(subset="value")


def seconds(trial: RawTrial, node: str, collector: str, metric: str) -> np.ndarray:
    """1-s means of a metric in the run phase."""
    frame = in_run(trial, node, collector, metric)
    return frame.groupby(np.floor(frame["t_s"] - trial.run[0]))["value"].mean().to_numpy()


@check("H1", "Host CPU, 95th percentile of 1-s means", "host_saturated")
def host_busy(trial: RawTrial) -> Finding:
    busy = seconds(trial, "host", "host_stat", "utilization_pct")
    p95 = float(np.percentile(busy, 95)) if len(busy) else float("nan")
    return exact(p95, HOST_P95_PCT, "pct", f"the host was {p95:.0f} % busy in its busiest twentieth", len(busy))


@check("H1.mean", "Host CPU, mean", "host_saturated")
def host_busy_mean(trial: RawTrial) -> Finding:
    busy = seconds(trial, "host", "host_stat", "utilization_pct")
    mean = float(busy.mean()) if len(busy) else float("nan")
    return exact(mean, HOST_MEAN_PCT, "pct", f"the host was {mean:.0f} % busy on average", len(busy))


@check("H2", "Host CPU stolen by its hypervisor, mean", "host_robbed")
def steal(trial: RawTrial) -> Finding:
    stolen = seconds(trial, "host", "host_stat", "steal_pct")
    mean = float(stolen.mean()) if len(stolen) else float("nan")
    return exact(mean, STEAL_MEAN_PCT, "pct", f"{mean:.2f} % of the host's CPU time was stolen", len(stolen))


@check("H2.p99", "Host CPU stolen by its hypervisor, 99th percentile of 1-s means", "host_robbed")
def steal_tail(trial: RawTrial) -> Finding:
    stolen = seconds(trial, "host", "host_stat", "steal_pct")
    p99 = float(np.percentile(stolen, 99)) if len(stolen) else float("nan")
    return exact(p99, STEAL_P99_PCT, "pct", f"{p99:.2f} % stolen in the worst seconds", len(stolen))


@check("H2.pressure", "Host CPU pressure, mean", "host_pressure", required=False)
def pressure(trial: RawTrial) -> Finding:
    """Not required, and undecidable where a node has a quota: the kernel counts tasks that a quota has stopped as
    waiting (measured: 79-98 % on an idle host beside one pegged node). H1 and H3 guard the promise there."""
    stall = in_run(trial, "host", "pressure", "pressure_pct")
    frame, _ = trial.samples_of("host", "pressure")
    frame = frame[(frame["resource"] == "cpu") & frame.index.isin(stall.index)]
    mean = float(frame["value"].mean()) if len(frame) else float("nan")
    text = f"some task waited for a CPU in {mean:.0f} % of the time"
    if any(n.cpu_cores for n in trial.manifest.nodes):
        text += "; tasks stopped by a quota count as waiting, so this does not tell whether the host was short of CPU"
        return Finding(Outcome.UNDECIDABLE, mean, PRESSURE_PCT, "pct", len(frame), None, text)
    return exact(mean, PRESSURE_PCT, "pct", text, len(frame))


def quota_windows(trial: RawTrial, node: str) -> pd.DataFrame:
    """Per window of 10 s of the run phase: `used_pct` of the quota, `throttled_pct` of the periods."""
    used = in_run(trial, node, "cgroup_cpu", "utilization_pct")
    throttled = in_run(trial, node, "cgroup_cpu", "throttled_pct").set_index("t_s")["value"]
    used = used.assign(throttled=throttled.reindex(used["t_s"]).to_numpy())
    used["weighted"] = used["value"] * used["interval_s"]
    window = np.floor((used["t_s"] - trial.run[0]) / QUOTA_WINDOW_S)
    groups = used.groupby(window)
    found = pd.DataFrame(
        {
            "used_pct": groups["weighted"].sum() / groups["interval_s"].sum(),
            "throttled_pct": groups["throttled"].mean(),
            "length_s": groups["interval_s"].sum(),
        }
    )
    return found[found["length_s"] > QUOTA_WINDOW_S / 2]


@check("H3", "A node under the pressure of its quota gets that quota", "quota_not_kept")
def quota_kept(trial: RawTrial) -> Finding:
    """Over 10 s: within 3 % of the quota where all periods are throttled; nowhere more than 3 % above it."""
    worst, where, windows = 0.0, "", 0
    for name, node in trial.nodes.items():
        if not node.cpu_cores:
            continue
        for index, row in quota_windows(trial, name).iterrows():
            pegged = row["throttled_pct"] >= PEGGED_PCT
            windows += int(pegged)
            off = abs(row["used_pct"] - 100) if pegged else max(0.0, row["used_pct"] - 100)
            if off > worst:
                worst, where = off, f"{name} got {row['used_pct']:.1f} % of its quota from second {10 * index:.0f} on"
    text = where or ("no node was under the pressure of its quota" if windows == 0 else "all within the band")
    return exact(worst, QUOTA_BAND_PCT, "pct", text, windows)


@check("H4", "Quota in force during the run", "quota_differs")
def quota_in_force(trial: RawTrial) -> Finding:
    """As the sampler read it ten times a second, and as read back at ramp-up, run and end."""
    readings, wrong = 0, []
    for name, node in trial.nodes.items():
        quota = in_run(trial, name, "cgroup_cpu", "quota_cores")["value"].to_numpy()
        readings += len(quota)
        if node.cpu_cores:
            expected = len(in_run(trial, name, "cgroup_cpu", "used_cores"))
            bad = quota[~np.isclose(quota, node.cpu_cores, rtol=1e-3)]
            if len(bad):
                wrong.append(f"{name}: {bad[0]:.3f} cores, promised {node.cpu_cores:g}")
            elif len(quota) < expected:
                wrong.append(f"{name}: no quota in {expected - len(quota)} of {expected} readings")
        elif len(quota):
            wrong.append(f"{name}: {quota[0]:.3f} cores, promised no limit")
    for entry in trial.manifest.quota_readback:
        node = trial.nodes.get(entry.get("node", ""))
        seen = entry.get("cpu_cores")
        if node is not None and not _equal(seen, node.cpu_cores):
            wrong.append(f"{node.name} at {entry.get('moment')}: {seen} cores, promised {node.cpu_cores}")
    if not readings and any(n.cpu_cores for n in trial.manifest.nodes):
        return undecidable("no reading of any quota in the run phase")
    text = "; ".join(wrong[:3]) or "as promised"
    return exact(float(len(wrong)), 0.0, "nodes", text, readings)


def _equal(a: float | None, b: float | None) -> bool:
    return a is b is None or (a is not None and b is not None and bool(np.isclose(a, b, rtol=1e-3)))


@check("H5", "Memory: swapping and out-of-memory kills", "memory")
def memory(trial: RawTrial) -> Finding:
    events = []
    for name in trial.nodes:
        kills = in_run(trial, name, "cgroup_mem_io", "oom_kills")["value"]
        swap = in_run(trial, name, "cgroup_mem_io", "swap_bytes")["value"]
        if len(kills) and kills.max() > kills.min():
            events.append(f"{name}: {kills.max() - kills.min():.0f} processes killed, out of memory")
        if len(swap) and swap.max() > swap.min():
            events.append(f"{name}: swapped {swap.max() - swap.min():.0f} bytes")
    swapped = sum(in_run(trial, "host", "sysstat", f"swap_{way}_per_s")["value"].sum() for way in ("in", "out"))
    if swapped:
        events.append(f"host: swapped {swapped:.0f} pages")
    return exact(float(len(events)), 0.0, "events", "; ".join(events) or "none", len(trial.nodes))


@check("H5.free", "Host memory in use", "memory")
def host_memory(trial: RawTrial) -> Finding:
    free = in_run(trial, "host", "sysstat", "available_bytes")["value"]
    if trial.manifest.host is None or free.empty:
        return undecidable("no reading of the host's memory")
    used = 100 * (1 - float(free.min()) / trial.manifest.host.memory_bytes)
    return exact(used, 100 - HOST_FREE_PCT, "pct", f"{free.min() / 2**30:.1f} GiB available at the least", len(free))
