"""H: did every node get the capacity that it was promised?"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from ntier_analysis.contracts import Outcome
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.registry import Finding, check, exact, not_applicable, undecidable

HOST_P95_PCT, HOST_MEAN_PCT = 90.0, 80.0
STEAL_MEAN_PCT, STEAL_P99_PCT = 1.0, 5.0
PRESSURE_PCT = 10.0
QUOTA_BAND_PCT = 3.0
SMALL_CORES, SMALL_BAND_PCT = 0.1, 6.0
QUOTA_WINDOW_S = 10.0
PEGGED_PCT = 99.0
HOST_FREE_PCT = 5.0
SPEED_PCT = 20.0
CANARY_S, MIN_CANARIES = 4.0, 5
NO_HOST = "each node is a machine of its own, no host carries them"
NO_QUOTA = "no node has a quota"


def in_run(trial: RawTrial, node: str, collector: str, metric: str) -> pd.DataFrame:
    """`t_s, value, interval_s` of one metric in the run phase, gaps left out."""
    frame, _ = trial.samples_of(node, collector)
    start, end = trial.run
    columns = {name: frame[name].to_numpy() for name in ("t_s", "value", "interval_s")}  # pandas takes 7 times as long
    t_s, known = columns["t_s"], ~np.isnan(columns["value"])
    rows = np.flatnonzero((frame["metric"] == metric).to_numpy(dtype=bool) & (t_s >= start) & (t_s < end) & known)
    return pd.DataFrame({name: values[rows] for name, values in columns.items()}, index=frame.index[rows])


def seconds(trial: RawTrial, node: str, collector: str, metric: str) -> np.ndarray:
    """1-s means of a metric in the run phase."""
    frame = in_run(trial, node, collector, metric)
    return frame.groupby(np.floor(frame["t_s"] - trial.run[0]))["value"].mean().to_numpy()


@check("H1", "Host CPU, 95th percentile of 1-s means", "host_saturated")
def host_busy(trial: RawTrial) -> Finding:
    if trial.own_machines:
        return not_applicable(NO_HOST)
    busy = seconds(trial, "host", "host_stat", "utilization_pct")
    p95 = float(np.percentile(busy, 95)) if len(busy) else float("nan")
    return exact(p95, HOST_P95_PCT, "pct", f"the host was {p95:.0f} % busy or more in 5 % of the seconds", len(busy))


@check("H1.mean", "Host CPU, mean", "host_saturated")
def host_busy_mean(trial: RawTrial) -> Finding:
    if trial.own_machines:
        return not_applicable(NO_HOST)
    busy = seconds(trial, "host", "host_stat", "utilization_pct")
    mean = float(busy.mean()) if len(busy) else float("nan")
    return exact(mean, HOST_MEAN_PCT, "pct", f"the host was {mean:.0f} % busy on average", len(busy))


def _stolen(trial: RawTrial) -> dict[str, np.ndarray]:
    """1-s means of steal of the host, or of each node that is a machine of its own."""
    machines = [(name, "procstat") for name in trial.nodes] if trial.own_machines else [("host", "host_stat")]
    return {name: seconds(trial, name, collector, "steal_pct") for name, collector in machines}


def _worst(values: dict[str, np.ndarray], of) -> tuple[float, str, int]:
    """The largest of a statistic over machines (NaN if one has no samples), whose it is, and samples in all."""
    of_each = {name: float(of(v)) if len(v) else float("nan") for name, v in values.items()}
    name = max(of_each, key=lambda n: (np.isnan(of_each[n]), of_each[n]))
    return of_each[name], name, sum(len(v) for v in values.values())


@check("H2", "CPU stolen by a hypervisor, mean", "host_robbed")
def steal(trial: RawTrial) -> Finding:
    mean, name, n = _worst(_stolen(trial), np.mean)
    return exact(mean, STEAL_MEAN_PCT, "pct", f"{mean:.2f} % of the CPU time of {name} was stolen", n)


@check("H2.p99", "CPU stolen by a hypervisor, 99th percentile of 1-s means", "host_robbed")
def steal_tail(trial: RawTrial) -> Finding:
    p99, name, n = _worst(_stolen(trial), lambda v: np.percentile(v, 99))
    return exact(p99, STEAL_P99_PCT, "pct", f"{p99:.2f} % stolen from {name} in the worst seconds", n)


@check("H2.pressure", "Host CPU pressure, mean", "host_pressure", required=False)
def pressure(trial: RawTrial) -> Finding:
    """Not required, and undecidable where a node has a quota: the kernel counts tasks that a quota has stopped as
    waiting (measured: 79-98 % on an idle host beside one pegged node). So it does with those that only keep the CPUs
    awake. H1 and H3 guard the promise there."""
    if trial.own_machines:
        return not_applicable(f"{NO_HOST}; a node's own pressure comes from its load")
    stall = in_run(trial, "host", "pressure", "pressure_pct")
    frame, _ = trial.samples_of("host", "pressure")
    frame = frame[(frame["resource"] == "cpu") & frame.index.isin(stall.index)]
    mean = float(frame["value"].mean()) if len(frame) else float("nan")
    text = f"some task waited for a CPU in {mean:.0f} % of the time"
    waiting = ["tasks stopped by a quota"] if any(n.cpu_cores for n in trial.manifest.nodes) else []
    if in_run(trial, "host", "host_stat", "awake_pct")["value"].any():
        waiting.append("what keeps the CPUs awake")
    if waiting:
        text += f"; {' and '.join(waiting)} count as waiting, so this does not tell whether the host was short of CPU"
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
    windows = pd.DataFrame(
        {
            "used_pct": groups["weighted"].sum() / groups["interval_s"].sum(),
            "throttled_pct": groups["throttled"].mean(),
            "length_s": groups["interval_s"].sum(),
        }
    )
    return windows[windows["length_s"] > QUOTA_WINDOW_S / 2]


@check("H3", "Nodes that needed their whole CPU quota got all of it", "quota_not_kept")
def quota_kept(trial: RawTrial) -> Finding:
    """Over 10 s: within 3 % of the quota where all periods are throttled (nodes below a tenth of a core: from 94 % on);
    nowhere more than 3 % above it."""
    if not any(n.cpu_cores for n in trial.nodes.values()):
        return not_applicable(NO_QUOTA)
    worst, where, windows = 0.0, "", 0
    for name, node in trial.nodes.items():
        if not node.cpu_cores:
            continue
        slack = QUOTA_BAND_PCT / SMALL_BAND_PCT if node.cpu_cores < SMALL_CORES else 1.0
        for index, row in quota_windows(trial, name).iterrows():
            pegged = row["throttled_pct"] >= PEGGED_PCT
            windows += int(pegged)
            below = (100 - row["used_pct"]) * slack if pegged else 0.0
            off = max(below, row["used_pct"] - 100)
            if off > worst:
                worst, where = off, f"{name} got {row['used_pct']:.1f} % of its quota from second {10 * index:.0f} on"
    text = where or ("no node needed its whole quota" if windows == 0 else "all within the band")
    return exact(worst, QUOTA_BAND_PCT, "pct", text, windows)


@check("H4", "Quota in force during the run", "quota_differs")
def quota_in_force(trial: RawTrial) -> Finding:
    """As the sampler read it ten times a second, and as read back at ramp-up, run and end."""
    if trial.own_machines:
        return not_applicable(NO_QUOTA)
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
    """A control group counts its own kills and swapping; on a machine of its own, the kernel tells kills and sysstat
    tells swapping."""
    events, untold, counters = [], [], "procstat" if trial.own_machines else "cgroup_mem_io"
    for name in trial.nodes:
        kills = in_run(trial, name, counters, "oom_kills")["value"].dropna()
        untold += [] if len(kills) else [name]
        if len(kills) and kills.max() > kills.min():
            events.append(f"{name}: {kills.max() - kills.min():.0f} processes killed, out of memory")
        swap = in_run(trial, name, counters, "swap_bytes")["value"]
        if len(swap) and swap.max() > swap.min():
            events.append(f"{name}: swapped {swap.max() - swap.min():.0f} bytes")
    for name in trial.nodes if trial.own_machines else ["host"]:
        swapped = sum(in_run(trial, name, "sysstat", f"swap_{way}_per_s")["value"].sum() for way in ("in", "out"))
        if swapped:
            events.append(f"{name}: swapped {swapped:.0f} pages")
    if untold and not events:
        return undecidable(f"kills for lack of memory were not counted on {', '.join(untold)}", required=False)
    return exact(float(len(events)), 0.0, "events", "; ".join(events) or "none", len(trial.nodes))


@check("H5.free", "Memory in use", "memory")
def host_memory(trial: RawTrial) -> Finding:
    """Free memory of the host, or of the fullest node that is a machine of its own."""
    whole = {name: node.memory_bytes for name, node in trial.nodes.items()}
    if not trial.own_machines:
        whole = {"host": trial.manifest.host.memory_bytes if trial.manifest.host else None}
    used: dict[str, tuple[float, float, int]] = {}
    for name, memory_bytes in whole.items():
        free = in_run(trial, name, "sysstat", "available_bytes")["value"]
        if not memory_bytes or free.empty:
            return undecidable(f"no reading of the memory of {name}")
        used[name] = 100 * (1 - float(free.min()) / memory_bytes), float(free.min()), len(free)
    name = max(used, key=lambda n: used[n][0])
    pct, free_bytes, n = used[name]
    return exact(pct, 100 - HOST_FREE_PCT, "pct", f"{free_bytes / 2**30:.1f} GiB available on {name} at the least", n)


@check("H6", "Speed of the machine: the canary's slowest seconds against its fastest", "host_speed", required=False)
def speed(trial: RawTrial) -> Finding:
    """Ninth decile against first decile of means over CANARY_S, of the canary that varies more; of the host, or of the
    worst node that is a machine of its own. By so much the same work cost more CPU time at some moments than at
    others."""
    machines = list(trial.nodes) if trial.own_machines else ["host"]
    probed = [name for name in machines if trial.path(f"nodes/{name}/canary.csv")]
    if not probed:
        return not_applicable("no canary was run")
    spreads: dict[str, float] = {}
    texts: dict[str, list[str]] = {name: [] for name in probed}
    n = 0
    for machine, work in itertools.product(probed, ("loop", "pages")):
        seen = in_run(trial, machine, "canary", f"canary_{work}_us")
        means = seen.groupby((seen["t_s"] - trial.run[0]) // CANARY_S)["value"].mean()
        if len(means) < MIN_CANARIES:
            return not_applicable(f"{len(means)} means over {CANARY_S:g} s are too few")
        low, high = np.percentile(means, [10, 90])
        spreads[machine] = max(spreads.get(machine, 0.0), 100 * (high / low - 1))
        texts[machine].append(f"{work} {low:.0f} to {high:.0f} us")
        n += len(seen) if work == "loop" else 0
    worst = max(spreads, key=spreads.__getitem__)
    place = f" on {worst}" if trial.own_machines else ""
    text = f"the same work{place} took {', '.join(texts[worst])} of CPU time"
    return exact(spreads[worst], SPEED_PCT, "pct", text, n)
