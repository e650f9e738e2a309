"""What it costs to ingest and judge as many points as the study had, and how the cost grows.

    python analysis/bench/billions.py WORK --sweeps 1,8,68 [--seed day.sa ...] [--jobs 2 | --cluster local:2]

A sweep has 13 loads of 10 nodes, each measured for 720 s: 130 node-runs. The raw files of 68 sweeps have 3.3 billion
points (numbers that `sadf -A` prints); 243 sweeps are the study's 31,590 node-runs. Raw files are made from real ones
(noderuns.py), ingested, judged, turned into densities, and removed, sweep by sweep; so disk for two sweeps and the
store is enough. The sizes are stages of one run into one store, WORK/store: what the first N sweeps took. What a
sweep took is a line of WORK/sweeps.jsonl: a run that was stopped goes on where it was. Making the raw files is
counted apart. CPU time is user and system of the process that does the sweep. With --kill N a process that does
sweeps is killed (SIGKILL) once N are done; what is then in the store must be what is there without it."""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from noderuns import Seed
from ntier_analysis.contracts import Check, Host, Manifest, Node, Outcome, Phase, State, Validity
from ntier_analysis.jobs import spread
from ntier_analysis.many import density, ingest, judge
from ntier_analysis.places import Place
from ntier_analysis.store.schema import TABLES
from ntier_analysis.store.series import VALUES_KEY
from ntier_analysis.sysstat import read

DATA = Path(__file__).parents[1] / "tests/importing/data"
SEEDS = [DATA / "db1-12.7.5.sa.zst", DATA / "host-12.6.1.sa.zst"]
LOADS = range(1000, 14000, 1000)
TIERS = {"web": 2, "app": 3, "middleware": 1, "db": 4}
RUN_S, LEAD_S = 720, 5
HEAD = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,failureMessage,bytes,Latency,Connect"


def name_of(number: int) -> str:
    return f"2-3-1-4M.browse_only.made{number:03}"


def make_sweep(raw: Path, number: int, seeds: list[Path]) -> int:
    """Writes a sweep; returns the bytes of its sysstat files."""
    rng = np.random.default_rng(number)
    real = [Seed(path) for path in seeds]
    folder, written = raw / name_of(number), 0
    for i, users in enumerate(LOADS):
        trial = folder / f"u{users:05}.r01"
        start = 1_700_000_000 + 10_000 * (13 * number + i)
        nodes = [(f"{tier}{n + 1}", tier) for tier, count in TIERS.items() for n in range(count)]
        for j, (node, tier) in enumerate(nodes):
            (trial / "nodes" / node).mkdir(parents=True)
            demand = {"web": 0.3, "app": 0.7, "middleware": 0.5, "db": 1.1}[tier]
            busy = min(0.98, demand * users / 13000 + rng.uniform(0, 0.03))
            content = real[j % len(real)].make(rng, RUN_S + 2 * LEAD_S, start - LEAD_S, busy)
            written += (trial / "nodes" / node / "sysstat.sa").write_bytes(content)
        _client(trial / "clients/client1", start, rng)
        _manifest(name_of(number), trial.name, users, nodes, start).write(trial)
    return written


def _client(folder: Path, start: int, rng: np.random.Generator) -> None:
    """Ten interactions per second, without think times and users' lives."""
    folder.mkdir(parents=True)
    at = np.sort(rng.uniform(start, start + RUN_S, 10 * RUN_S))
    rows = [f"{1000 * t:.0f},20,StoriesOfTheDay,200,OK,Users 1-{i % 70 + 1},true,,5000,20,0" for i, t in enumerate(at)]
    (folder / "interactions.jtl.csv").write_text("\n".join([HEAD, *rows]) + "\n")
    lives = [f"{u},{1000 * (start - LEAD_S)},{1000 * (start + RUN_S + LEAD_S)}" for u in range(70)]
    (folder / "users.csv").write_text("\n".join(["user,t_start_ms,t_end_ms", *lives]) + "\n")
    thinks = [f"{1000 * t:.0f},{i % 70},StoriesOfTheDay,7000,7000" for i, t in enumerate(at)]
    (folder / "thinks.csv").write_text("\n".join(["t_start_ms,user,state,drawn_ms,actual_ms", *thinks]) + "\n")


def _manifest(sweep: str, trial: str, users: int, nodes: list[tuple[str, str]], start: int) -> Manifest:
    ends = {"ramp_up": (start - LEAD_S, start), "run": (start, start + RUN_S),
            "ramp_down": (start + RUN_S, start + RUN_S + LEAD_S)}  # fmt: skip
    made = Check(id="made", title="Made up", required=True, outcome=Outcome.PASS)
    return Manifest(
        ntier_version="0", sweep=sweep, trial=trial, topology="2/3/1/4M", target="hosts", mix="browse_only",
        middleware="shardingsphere", data_profile="made", users=users, users_real=users, scale=1, rep=1, seed=1,
        nodes=[Node(name=n, tier=t, index=int(n.removeprefix(t)), node_type="normal", address="198.18.0.1", role=t)
               for n, t in nodes],
        phases=[Phase(name=p, planned_s=b - a, start_s=a, end_s=b) for p, (a, b) in ends.items()],
        host=Host(cores=2, memory_bytes=2**34, kernel="made", os="made", cgroup_version=2),
        state=State.COLLECTED, collectors={n: ["sysstat"] for n, _ in nodes},
        validity=Validity(valid=True, checks=[made]),
    )  # fmt: skip


def values_of(folder: Path) -> int:
    """Numbers in the files of one trial, of all activities."""
    count = 0
    for path in folder.glob("nodes/*/sysstat.sa"):
        tables = read(str(path), path.read_bytes()).tables().values()
        count += sum(len(t.record) * len(t.values) for t in tables if len(t.record) == len(t.item))
    return count


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def one(number: int, *, work: Path, store: Place, seeds: list[Path]) -> dict:
    """Makes, ingests, judges a sweep and computes its densities -> what that took, and what it left."""
    with tempfile.TemporaryDirectory(prefix="raw-", dir=work) as folder:
        raw, name, clock = Place.of(folder), name_of(number), cpu_s()
        raw_bytes = make_sweep(Path(folder), number, seeds)
        values = values_of(Path(folder) / name / "u01000.r01") * len(LOADS)
        took, clock = {"make": cpu_s() - clock}, cpu_s()
        steps = {
            "ingest": partial(ingest, name, raw=raw, store=store, force=True),
            "judge": partial(judge, name, store=store),
            "densities": partial(density, name, store=store, out=Place.of(work / "densities"), bandwidth_pct=2.0),
        }
        results = {}
        for step, do in steps.items():
            results[step] = do()
            took[step], clock = cpu_s() - clock, cpu_s()
    if results["ingest"].problems:
        raise SystemExit(f"{name}: {results['ingest'].problems[0]}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"number": number, "raw_bytes": raw_bytes, "raw_values": values, "densities": results["densities"],
            "cpu_s": took, "peak_bytes": peak, "process": os.getpid(), **left(work / "store", name)}  # fmt: skip


def left(store: Path, sweep: str) -> dict:
    """What the store keeps of a sweep."""
    samples = store / "samples" / f"{sweep}.parquet"
    files = [store / table / f"{sweep}.parquet" for table in TABLES]
    return {"points": int(pq.read_metadata(samples).metadata[VALUES_KEY]), "samples_bytes": samples.stat().st_size,
            "store_bytes": sum(f.stat().st_size for f in files)}  # fmt: skip


def lines_of(work: Path) -> list[dict]:
    there = work / "sweeps.jsonl"
    return [json.loads(line) for line in there.read_text().splitlines()] if there.exists() else []


def run(work: Path, count: int, seeds: list[Path], jobs: int, cluster: str | None, kill: int) -> None:
    done = {line["number"] for line in lines_of(work)}
    numbers = [n for n in range(count) if n not in done]
    do = partial(one, work=work, store=Place.of(work / "store"), seeds=seeds)
    with (work / "sweeps.jsonl").open("a") as file:
        began = time.monotonic()
        for n, result in enumerate(spread(do, numbers, jobs=jobs, cluster=cluster), start=1):
            file.write(json.dumps(result | {"elapsed_s": time.monotonic() - began}) + "\n")
            file.flush()
            print(f"{result['number'] + 1} of {count}: {sum(result['cpu_s'].values()):.0f} s of CPU", flush=True)
            if n == kill and result["process"] != os.getpid():
                os.kill(result["process"], signal.SIGKILL)
                print(f"killed process {result['process']}", flush=True)


def table(lines: list[dict], counts: list[int]) -> pd.DataFrame:
    """A row per size: sums over the first so many sweeps."""
    rows = []
    for count in counts:
        first = [line for line in lines if line["number"] < count]
        if len(first) < count:
            raise SystemExit(f"{len(first)} of {count} sweeps are done")
        summed = {k: sum(x[k] for x in first) for k in ("raw_values", "raw_bytes", "points", "densities",
                                                        "samples_bytes", "store_bytes")}  # fmt: skip
        minutes = {f"{step}_cpu_min": sum(x["cpu_s"][step] for x in first) / 60 for step in first[0]["cpu_s"]}
        rows.append({
            "sweeps": count, "node_runs": count * len(LOADS) * sum(TIERS.values()), **summed, **minutes,
            "peak_bytes_of_a_process": max(x["peak_bytes"] for x in first),
            "bytes_per_value": summed["samples_bytes"] / summed["points"],
        })  # fmt: skip
    return pd.DataFrame(rows)


def figure(rows: pd.DataFrame, path: Path) -> None:
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for step, label in (("ingest", "ingest, with saturations and verdict"), ("judge", "saturations and verdict again"),
                        ("densities", "densities")):  # fmt: skip
        axes.plot(rows["raw_values"], rows[f"{step}_cpu_min"], "o-", label=label)
    first = rows.iloc[0]
    axes.plot(rows["raw_values"], first["ingest_cpu_min"] * rows["raw_values"] / first["raw_values"], ":", color="0.5",
              label="in proportion to the points")  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="points in the raw files", ylabel="CPU minutes")
    axes.legend(frameon=False)
    drawing.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--sweeps", default="1,3,8,26,68", help="sizes, with commas")
    parser.add_argument("--seed", type=Path, nargs="+", default=SEEDS, help="real files of sysstat, of 17 s or more")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cluster")
    parser.add_argument("--kill", type=int, default=0, metavar="N", help="kill a process once N sweeps are done")
    options = parser.parse_args()
    work, counts = options.work.absolute(), sorted(int(n) for n in options.sweeps.split(","))
    work.mkdir(parents=True, exist_ok=True)
    run(work, counts[-1], [p.absolute() for p in options.seed], options.jobs, options.cluster, options.kill)
    rows = table(lines_of(work), counts)
    rows.to_csv(work / "growth.csv", index=False)
    print(rows.T.to_string(header=False))
    figure(rows, work / "growth.png")


if __name__ == "__main__":
    main()
