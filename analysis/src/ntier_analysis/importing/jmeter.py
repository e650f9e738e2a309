"""JMeter's JTL and sysstat's files of a run -> a trial in the store."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ntier_analysis.contracts.files import read_text
from ntier_analysis.errors import DataError
from ntier_analysis.importing.folder import OF_THE_SWEEP, THINK_S
from ntier_analysis.importing.sysstat_files import NodeFile, read_node
from ntier_analysis.importing.trials import MEASURED, TARGET, Frames, checked, keep, same, stored
from ntier_analysis.ingest import summary
from ntier_analysis.parsers.jmeter import jtl
from ntier_analysis.store.schema import TABLES, validated
from ntier_analysis.store.tables import locked
from ntier_analysis.validity.imported import NO_SERVERS, W_A_C_D, counts_of

_TOPOLOGY = re.compile(r"\d+(/\d+)*[A-Z]*")


@dataclass(frozen=True)
class Run:
    """One run: its files, its load, and when it counts. `ramp_up_s`, `ramp_down_s`: seconds to leave out from the first
    and before the last request (None: until all threads had started, after the first one ended)."""

    jtl: tuple[Path, ...] = ()
    sa: tuple[NodeFile, ...] = ()
    topology: str = ""
    users: int | None = None
    sweep: str = ""
    trial: str = ""
    rep: int = 1
    ramp_up_s: float | None = None
    ramp_down_s: float | None = None
    think_time_s: float | None = None
    slo_ms: float | None = None
    stamp: str = "start"
    containers: bool = False
    tiers: str = ""
    """Tiers from the client inwards, joined by ','; empty: unknown unless they are web, app, middleware, db."""
    notices: list[str] = field(default_factory=list, compare=False)


def import_runs(runs: list[Run], store: Path, *, replace: bool = False) -> list[str]:
    """Adds the runs to their sweeps, judges these anew, returns notices. `replace`: a trial of the same name with other
    contents is replaced.

    Raises DataError naming file and place; nothing is written then."""
    together: dict[str, Frames] = {}
    read = [_tables(run) for run in runs]
    with locked(store):
        for tables in read:
            name = str(tables["trials"]["sweep"].iloc[0])
            if name not in together:
                together[name] = stored(store, name) or {t: TABLES[t].empty_table().to_pandas() for t in TABLES}
            together[name] = _merged(together[name], tables, store, replace=replace)
        notices = [text for run in runs for text in run.notices]
        return keep(together, dict.fromkeys(together), store, notices, replace=replace)


def read_list(path: Path, common: Run) -> list[Run]:
    """A CSV file with a line per run: jtl, sa (several joined by `;`, paths from the file's folder) and any of users,
    topology, sweep, trial, rep, ramp_up_s, ramp_down_s, think_time_s; what is left out is as in `common`."""
    kinds = {"users": int, "rep": int} | dict.fromkeys(("ramp_up_s", "ramp_down_s", "think_time_s", "slo_ms"), float)
    allowed = ["jtl", "sa", "topology", "sweep", "trial", *kinds]
    try:
        rows = list(csv.DictReader(read_text(path).splitlines(), skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise DataError(f"{path}: not readable as CSV ({error})") from None
    runs = []
    for line, row in enumerate(rows, start=2):
        given = {}
        for name, text in row.items():
            if name not in allowed or text is None:
                raise DataError(f"{path}:{line}: column {name!r}; allowed are {', '.join(allowed)}")
            if not text.strip():
                continue
            try:
                given[name] = kinds.get(name, str)(text.strip())
            except ValueError:
                raise DataError(f"{path}:{line}: {name} is {text!r}, expected a number") from None
        for name, kind in (("jtl", lambda t: path.parent / t), ("sa", lambda t: NodeFile.parse(t, path.parent))):
            if name in given:
                given[name] = tuple(kind(part.strip()) for part in given[name].split(";"))
        runs.append(replace(common, notices=[], **given))
    if not runs:
        raise DataError(
            f"{path}: no runs; expected a header with {', '.join(allowed[:2])}, users, ... and a line per run"
        )
    return runs


# ---- one run -------------------------------------------------------------------------------------------------------


def _tables(run: Run) -> dict[str, pd.DataFrame]:
    _demand(run)
    done, threads = _interactions(run)
    users = run.users or threads
    if not users:
        raise DataError(f"{run.jtl[0]}: users are missing, and the JTL has no column allThreads: give --users")
    start, end = _window(run, done)
    sweep = run.sweep or f"{run.topology.replace('/', '-')}.{TARGET}"
    trial = run.trial or f"u{users:05d}.r{run.rep:02d}"
    samples, nodes = _samples(run, start, end)
    row = {
        "topology": run.topology, "users": users, "users_real": users, "scale": 1.0, "rep": run.rep, "valid": True,
        "invalid_reasons": "", "state": "collected", "target": TARGET, "run_start_s": start, "run_end_s": end,
        "ramp_up_start_s": float(done["start_s"].min()), "slo_ms": run.slo_ms,
        "think_time_s": THINK_S if run.think_time_s is None else run.think_time_s,
    }  # fmt: skip
    row |= summary(done, start, end, run.slo_ms)
    if not row["interactions"] + row["errors"]:
        raise DataError(f"{run.jtl[0]}: no request ended in the run phase")
    row["pending"] = int(((done["start_s"] < end) & (done["t_s"] >= end)).sum())
    row["tiers"] = _order(run)
    key = {"sweep": sweep, "trial": trial}
    trials = validated("trials", pd.DataFrame([key | row]), lambda _: f"{run.jtl[0]}: the trial")
    kept = done[["t_s", "interaction", "response_time_ms", "ok", "bytes", "client"]]
    phase = _phase(kept["t_s"].to_numpy(), row["ramp_up_start_s"], start, end)
    tables = {
        "trials": trials,
        "interactions": kept.assign(phase=phase, **key),
        "samples": samples.assign(phase=_phase(samples["t_s"].to_numpy(), row["ramp_up_start_s"], start, end), **key),
        "nodes": nodes.assign(**key),
    }
    return checked(tables, single=True, think_time_given=run.think_time_s is not None)


def _demand(run: Run) -> None:
    if not run.jtl:
        raise DataError("no JTL file: give --jtl FILE")
    if not run.sa:
        raise DataError("no sysstat file: give --sa NODE=FILE[:TIER] for each node")
    of_their_own = any(f.tier not in (*W_A_C_D, *NO_SERVERS) for f in run.sa)
    if not run.topology or not (of_their_own or _TOPOLOGY.fullmatch(run.topology)):
        raise DataError(f"topology {run.topology!r}: expected numbers of nodes per tier, for example 1/2/1/2M")
    names = [file.node for file in run.sa]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice:
        raise DataError(f"node {twice} has two sysstat files")


def _interactions(run: Run) -> tuple[pd.DataFrame, int]:
    """All samples that count as an interaction, and the threads at the same time (0 = not recorded)."""
    parts = []
    for number, path in enumerate(run.jtl, start=1):
        frame = jtl(path, stamp=run.stamp).assign(client=f"client{number}")
        if frame.empty:
            raise DataError(f"{path}: no samples")
        if frame["transaction"].any():
            run.notices.append(
                f"{path}: {int(frame['transaction'].sum())} transactions are the interactions; the "
                f"{int((~frame['transaction']).sum())} samples inside and beside them are left out"
            )
            frame = frame[frame["transaction"]]
        parts.append(frame)
    threads = sum(part["threads"].max() for part in parts)
    frame = pd.concat(parts, ignore_index=True).sort_values("t_s", kind="stable", ignore_index=True)
    frame["bytes"] = frame["bytes"].round().astype("Int64")
    return frame, 0 if pd.isna(threads) else int(threads)


def _window(run: Run, done: pd.DataFrame) -> tuple[float, float]:
    """The run phase: when all clients had all their threads, unless told otherwise."""
    begins, ends = [], []
    for _, part in done.groupby("client"):
        full = part[part["threads"] == part["threads"].max()]
        full = full if len(full) else part
        begins.append(full["start_s"].min() if run.ramp_up_s is None else part["start_s"].min() + run.ramp_up_s)
        ends.append(full["start_s"].max() if run.ramp_down_s is None else part["start_s"].max() - run.ramp_down_s)
    start, end = float(max(begins)), float(min(ends))
    first, last = float(done["start_s"].min()), float(done["t_s"].max())
    if not end > start:
        raise DataError(f"{run.jtl[0]}: nothing is left between ramp-up and ramp-down of {last - first:.0f} s")
    run.notices.append(
        f"{run.jtl[0]}: run phase from {start - first:.0f} s to {end - first:.0f} s after the first request"
        + (" (all threads active; --ramp-up and --ramp-down change it)" if run.ramp_up_s is None else "")
    )
    return start, end


def _samples(run: Run, start: float, end: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    parts, nodes = [], []
    for file in run.sa:
        frame, cores = read_node(file, containers=run.containers)
        inside = frame[(frame["t_s"] >= start) & (frame["t_s"] < end)]
        if inside.empty:
            measured = f"{_time(frame['t_s'].min())} to {_time(frame['t_s'].max())}"
            raise DataError(
                f"{file.path}: {file.node} was measured from {measured}, the run phase is {_time(start)} to "
                f"{_time(end)}: no sample in it; another day, or a wrong clock (--clock-offset {file.node}=SECONDS)?"
            )
        parts.append(frame)
        nodes.append((file.node, file.tier, cores))
    if run.containers:
        run.notices.append("containers: their CPU is not measured by sysstat, so no CPU can be named as bottleneck")
    nodes += _missing(run)
    named = pd.DataFrame(nodes, columns=["node", "tier", "cpu_cores"]).astype({"cpu_cores": float})
    return pd.concat(parts, ignore_index=True), named


def _missing(run: Run) -> list[tuple[str, str, None]]:
    """Nodes of the topology without a file: the verdict must know that they were not measured."""
    counts = counts_of(run.topology)
    if counts is None:
        return []
    names = {f.node for f in run.sa}
    found = []
    for tier, count in counts.items():
        lacking = count - sum(f.tier == tier for f in run.sa)
        free = (name for k in range(1, 1000) if (name := f"{tier}{k}") not in names)
        found += [(next(free), tier, None) for _ in range(lacking)]
    if found:
        run.notices.append(
            f"topology {run.topology} has nodes without a sysstat file: {', '.join(n for n, *_ in found)}"
        )
    return found


def _time(t: float) -> str:
    return f"{pd.Timestamp(t, unit='s'):%Y-%m-%d %H:%M:%S} UTC"


def _order(run: Run) -> str | None:
    """The tiers from the client inwards, if they are known."""
    own = [t for t in dict.fromkeys(f.tier for f in run.sa) if t not in NO_SERVERS]
    listed = [t.strip() for t in run.tiers.split(",") if t.strip()]
    if listed and (len(set(listed)) < len(listed) or not set(own) <= set(listed)):
        raise DataError(f"--tiers is {run.tiers!r}, expected each of {', '.join(own)} once, from the client inwards")
    if not listed and not set(own) <= set(W_A_C_D):
        run.notices.append(f"which of the tiers {', '.join(own)} is deeper is unknown: give --tiers")
    return ",".join(listed) or None


def _phase(t: np.ndarray, first: float, start: float, end: float) -> np.ndarray:
    return np.select([(t >= start) & (t < end), (t >= first) & (t < start)], ["run", "ramp_up"], "outside")


# ---- with what is there --------------------------------------------------------------------------------------------


def _merged(before: Frames, tables: Frames, store: Path, *, replace: bool) -> Frames:
    """The sweep with this trial. Raises DataError if it has a trial of this name with other contents, or differs in
    what all trials of a sweep have in common."""
    sweep, trial = tables["trials"][["sweep", "trial"]].iloc[0]
    old = {name: frame[frame["trial"] == trial] for name, frame in before.items() if name in MEASURED}
    if len(old["trials"]) and not replace and not same(old, tables):
        raise DataError(
            f"{store}: trial {trial} of sweep {sweep} is there with other contents; --replace puts these in their "
            "place, --rep adds a repetition"
        )
    merged = dict(before)
    for name, frame in tables.items():
        if "trial" in frame:
            kept = before[name][before[name]["trial"] != trial]
            merged[name] = pd.concat([kept, frame], ignore_index=True) if len(kept) else frame
    for column in OF_THE_SWEEP:
        values = merged["trials"][column].fillna("").astype(str).unique() if column in merged["trials"] else [""]
        if len(values) > 1:
            raise DataError(f"sweep {sweep}: {column} is {values[-1]!r}, expected {values[0]!r} as in its others; "
                            "give it a name of its own: --sweep")  # fmt: skip
    return merged
