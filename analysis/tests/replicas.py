"""A synthetic trial with several replicas, whose counters say what a test wants them to say."""

from __future__ import annotations

import heapq
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
from ntier_analysis.contracts import Manifest

DBS = ["db1", "db2", "db3"]
MYSQL = "t_s,Com_select,Com_insert,Com_update,Com_delete,Connections,Threads_running"


def spread(
    folder: Path,
    executed: list[float],
    *,
    policy: str = "round_robin",
    tie: str = "first",
    own: list[float] | None = None,
    busy_s: list[float] | None = None,
    listed: int | None = None,
) -> None:
    """Makes the trial one of `len(executed)` replicas that executed so many statements per second. own: by the
    databases' own counters. busy_s: of every 10 s, how long each had a pending statement. listed: how many replicas
    the middleware knows."""
    manifest = Manifest.read(folder)
    first = next(n for n in manifest.nodes if n.name == "db1")
    more = [first.model_copy(update={"name": f"db{i + 1}", "index": i + 1}) for i in range(1, len(executed))]
    soft = manifest.soft_resources | {"middleware_policy": policy, "middleware_tie": tie}
    collectors = manifest.collectors | {n.name: manifest.collectors["db1"] for n in more}
    offsets = manifest.clock_offsets_s | {n.name: manifest.clock_offsets_s["db1"] for n in more}
    readback = manifest.quota_readback + [
        r | {"node": n.name} for n in more for r in manifest.quota_readback if r["node"] == "db1"
    ]
    changes = {"soft_resources": soft, "collectors": collectors, "clock_offsets_s": offsets, "quota_readback": readback}
    changes |= {"nodes": [*manifest.nodes, *more], "topology": f"1/1/1/{len(executed)}M"}
    manifest.model_copy(update=changes).write(folder)
    for node in more:
        shutil.copytree(folder / "nodes/db1", folder / "nodes" / node.name)
    start_s = manifest.phases[0].start_s - 2.0
    seconds = np.arange(0, manifest.phases[-1].end_s - start_s + 1)
    _status(folder, start_s, seconds, executed[:listed], busy_s or [9.0] * len(executed))
    for i, rate in enumerate(own or executed):
        rows = [f"{start_s + s:.3f},{round(rate * s)},0,0,0,30,1" for s in seconds]
        (folder / f"nodes/db{i + 1}/mysql_status.csv").write_text("\n".join([MYSQL, *rows]) + "\n")


def _status(folder: Path, start_s: float, seconds: np.ndarray, executed: list[float], busy_s: list[float]) -> None:
    lines = ["t_s,replica,pending,awaiting,pool_size,executed_total,chosen_total"]
    for s in seconds:
        for i, rate in enumerate(executed):
            pending = 1 if s % 10 < busy_s[i] else 0
            lines.append(f"{start_s + s:.3f},db{i + 1},{pending},0,90,{round(rate * s)},{round(rate * s)}")
    (folder / "nodes/middleware1/middleware_status.csv").write_text("\n".join(lines) + "\n")


def give_trace(folder: Path, trace: pd.DataFrame) -> None:
    """Puts a trace beside the middleware's logs."""
    logs = folder / "nodes/middleware1/logs"
    logs.mkdir(parents=True, exist_ok=True)
    trace.to_csv(logs / "middleware_trace.csv", index=False)


def simulate(
    policy: str, n: int = 4000, load: float = 2.0, delay_s: float = 0.0, seed: int = 1, start_s: float = 1000.0
) -> pd.DataFrame:
    """Poisson arrivals at three replicas with exponential service of 10 ms; `load`: mean number in service. The policy
    counts a statement `delay_s` after it was chosen."""
    rng = np.random.default_rng(seed)
    at = np.cumsum(rng.exponential(0.010 / load, n))
    pending, events, rows, turn = [0, 0, 0], [], [], 0
    for number, now in enumerate(at):
        while events and events[0][0] <= now:
            _, step, replica = heapq.heappop(events)
            pending[replica] += step
        if policy == "least_pending":
            replica = int(np.argmin(pending))
            # the scan ends at an idle replica
            upto = replica + 1 if pending[replica] == 0 else 3
            seen = "|".join(str(p) if i < upto else "" for i, p in enumerate(pending))
        else:
            replica, seen = (turn % 3 if policy == "round_robin" else int(rng.integers(3))), "||"
            turn += 1
        end = now + delay_s + rng.exponential(0.010)
        heapq.heappush(events, (now + delay_s, 1, replica))
        heapq.heappush(events, (end, -1, replica))
        times = (round(t * 1e9) for t in (start_s + now, start_s + now + delay_s, start_s + end))
        rows.append((number, *times, DBS[replica], seen))
    return pd.DataFrame(rows, columns=["number", "choice_ns", "begin_ns", "end_ns", "replica", "seen"])
