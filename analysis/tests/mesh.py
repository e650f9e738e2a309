"""A mesh of topologies of known truth as tables of a store: exact closed networks with noise, not measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import once
import pandas as pd
from ntier_analysis.contracts import Topology
from ntier_analysis.statistics.mva import Station, solve
from ntier_analysis.store.schema import TABLES
from ntier_analysis.store.tables import write_table
from ntier_analysis.verdict.store import judge_again

DEMANDS_S = {"web": 0.0003, "app": 0.0016, "middleware": 0.0011, "db": 0.0019}
"""Core-seconds per interaction: one db limits first (526/s), then one app (625/s), then the middleware (909/s), as the
three regions of the study's Figure 2(a)."""
FACTORS = {"P": 2.0, "M": 1.0}
LOW_COST_CORES = 0.3
RUN_S = 60.0
T0 = 1_790_000_000.0
LOADS = (1000, 2000, 3000, 5000, 6000, 7000, 8000, 9000)


def stations(topology: Topology) -> list[Station]:
    queues = []
    for tier, count in topology.counts.items():
        demand_s = DEMANDS_S[tier] * (FACTORS[topology.dbms] if tier == "db" else 1.0)
        cores = LOW_COST_CORES if tier == "db" and topology.low_cost else 1.0
        queues.append(Station(tier, demand_s / cores, count))
    return queues


def capacity_per_s(topology: str) -> float:
    """The truth: highest throughput."""
    return min(s.capacity_per_s for s in stations(Topology.parse(topology)))


def write_sweep(store: Path, topology: str, *, middleware: str = "shardingsphere", name: str = "", scale: float = 0.2,
                loads: tuple[int, ...] = LOADS, seed: int = 1, reps: int = 1, judged: bool = False) -> str:  # fmt: skip
    """Writes all tables of one sweep; returns its name. Rates of trials vary by 1 %, of batches by 3 %. `judged`: with
    its verdict, which else whoever wants one has to make."""
    parsed = Topology.parse(topology)
    sweep = f"{parsed.slug}.browse_only.{middleware}" + (f".{name}" if name else "")
    asked = (parsed, sweep, middleware, scale, tuple(loads), seed, reps)

    def write(folder: Path) -> None:
        _write(folder, *asked)

    def judge(folder: Path) -> None:
        once.copied("mesh", asked, write, folder)
        judge_again(folder, [sweep])

    if judged:
        once.copied("mesh-judged", asked, judge, store)
    else:
        once.copied("mesh", asked, write, store)
    return sweep


def _write(
    store: Path, parsed: Topology, sweep: str, middleware: str, scale: float, loads: tuple, seed: int, reps: int
) -> None:
    rng = np.random.default_rng([seed, parsed.app, parsed.db, ord(parsed.dbms)])
    frames: dict[str, list[pd.DataFrame]] = {k: [] for k in TABLES}
    nominal = solve(stations(parsed), 7.0, loads)
    for i, rep in ((i, r) for i in range(len(loads)) for r in range(1, reps + 1)):
        start = T0 + 100.0 * len(frames["trials"])
        trial, response_s = f"u{loads[i]:05d}.r{rep:02d}", float(nominal.response_s[i]) / scale
        wanted = float(nominal.throughput_per_s[i]) * scale
        times = np.sort(start + rng.uniform(0, RUN_S, round(wanted * rng.normal(1, 0.01) * RUN_S)))
        rate = len(times) / RUN_S
        frames["trials"].append(_trial(trial, parsed, middleware, loads[i], scale, rep, start, rate, response_s))
        frames["interactions"].append(_interactions(trial, times, response_s))
        for node, tier, kind, cores in _nodes(parsed, scale):
            row = {"node": node, "tier": tier, "node_type": kind, "role": tier, "cpu_cores": cores}
            frames["nodes"].append(pd.DataFrame([{"trial": trial} | row]))
            busy = nominal.utilization[tier][i] * rate / wanted
            frames["samples"].append(_samples(trial, node, tier, cores, busy, start, rng))
    for table in TABLES:
        empty = pd.DataFrame({"sweep": pd.Series(dtype=str)})
        rows = pd.concat(frames[table], ignore_index=True).assign(sweep=sweep) if frames[table] else empty
        write_table(store, table, sweep, rows)


def _interactions(trial: str, times: np.ndarray, response_s: float) -> pd.DataFrame:
    common = {"phase": "run", "interaction": "StoriesOfTheDay", "ok": True, "bytes": 1, "client": "client1"}
    return pd.DataFrame({"trial": trial, "t_s": times, "response_time_ms": 1e3 * response_s} | common)


def _trial(trial, parsed, middleware, users, scale, rep, start, rate, response_s) -> pd.DataFrame:
    row = {
        "trial": trial, "topology": str(parsed), "mix": "browse_only", "middleware": middleware, "users": users,
        "users_real": round(users * scale), "scale": scale, "rep": rep, "valid": True, "invalid_reasons": "",
        "run_start_s": start, "run_end_s": start + RUN_S, "throughput_per_s": rate, "goodput_per_s": rate,
        "response_time_mean_ms": 1e3 * response_s, "response_time_p50_ms": 700 * response_s,
        "response_time_p95_ms": 3e3 * response_s, "throughput_low_per_s": 0.97 * rate,
        "throughput_high_per_s": 1.03 * rate, "errors": 0, "interactions": round(rate * RUN_S), "pending": 0,
        "think_time_s": 7.0, "slo_ms": 1000.0, "state": "collected", "git_commit": "0123abc", "attempt": 1,
        "attempts": 1, "failure": "",
    }  # fmt: skip
    return pd.DataFrame([row])


def _nodes(parsed: Topology, scale: float) -> list[tuple[str, str, str, float]]:
    nodes = []
    for tier, count in parsed.counts.items():
        low = tier == "db" and parsed.low_cost
        kind, cores = ("low_cost", LOW_COST_CORES * scale) if low else ("normal", scale)
        nodes += [(f"{tier}{i + 1}", tier, kind, cores) for i in range(count)]
    return nodes


def _samples(trial: str, node: str, tier: str, cores: float, busy: float, start: float, rng) -> pd.DataFrame:
    """1-s samples that end within the run, as the store labels them: its start counts, its end does not. A node above
    98 % is pegged."""
    t = start + np.arange(RUN_S)
    level = np.clip(100 * busy + rng.normal(0, 3, len(t)), 0, 100) if busy < 0.98 else np.full(len(t), 100.0)
    common = {"trial": trial, "t_s": t, "phase": "run", "node": node, "tier": tier, "resource": "cpu"}
    common |= {"source": "cgroup", "item": "", "interval_s": 1.0}
    share = pd.DataFrame(common | {"metric": "utilization_pct", "value": level, "unit": "pct"})
    return pd.concat([share, pd.DataFrame(common | {"metric": "used_cores", "value": cores * level / 100})])


def write_mesh(
    store: Path, *, databases=(1, 2, 4), apps=(1, 2), kinds=("M", "P", "ML"), skip=("1/2/1/2M",), **options
) -> None:
    """Several maps, the first with a hole."""
    for kind in kinds:
        for app in apps:
            for db in databases:
                if f"1/{app}/1/{db}{kind}" not in skip:
                    write_sweep(store, f"1/{app}/1/{db}{kind}", **options)
