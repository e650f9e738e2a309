"""Files of a load generator, and of sysstat or Prometheus -> trials in the store."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ntier_analysis.contracts.files import read_text
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.errors import DataError
from ntier_analysis.importing.folder import OF_THE_SWEEP, THINK_DIFFERS, THINK_S
from ntier_analysis.importing.loads import Part, plateaus, read_loads
from ntier_analysis.importing.mapping import NodeName, read_mapping
from ntier_analysis.importing.prometheus import AROUND_S, scraped
from ntier_analysis.importing.sysstat_files import NodeFile, read_node
from ntier_analysis.importing.trials import MEASURED, TARGET, Frames, checked, keep, same, stored
from ntier_analysis.ingest import summary
from ntier_analysis.parsers.gatling import gatling
from ntier_analysis.parsers.generated import steps
from ntier_analysis.parsers.jmeter import jtl
from ntier_analysis.parsers.k6 import k6
from ntier_analysis.parsers.locust import locust
from ntier_analysis.statistics.backlog import backlog
from ntier_analysis.store.schema import TABLES
from ntier_analysis.store.tables import locked
from ntier_analysis.store.validation import validated
from ntier_analysis.validity.imported import NO_SERVERS, W_A_C_D, counts_of
from ntier_analysis.wording import counted

GENERATORS = ("jtl", "k6", "locust", "gatling")
NO_THINK = 0.05
"""Users who think for less than this share of their response time at the lowest load do not think."""
_TOPOLOGY = re.compile(r"\d+(/\d+)*[A-Z]*")


@dataclass(frozen=True)
class Run:
    """One test: its files, its load, and when it counts. `users`: it has one load. Without that, and without `loads`,
    each plateau of the users is a trial (importing/loads.py). `ramp_up_s`, `ramp_down_s`: seconds to leave out at begin
    and end of the test, or of each plateau (None: until all threads had started, after the first one ended)."""

    jtl: tuple[Path, ...] = ()
    k6: tuple[Path, ...] = ()
    locust: tuple[Path, ...] = ()
    gatling: tuple[Path, ...] = ()
    """One file per client; Locust's history and its requests are of one client."""
    sa: tuple[NodeFile, ...] = ()
    prometheus: str = ""
    """URL, or file with a snapshot."""
    mapping: Path | None = None
    node: tuple[NodeName, ...] = ()
    """Names of Prometheus' instances, before those of the mapping."""
    prometheus_offset_s: float = 0.0
    loads: Path | None = None
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
    load_model: str = ""
    """closed, open or work; empty: closed, or work if users turn out not to think."""
    tiers: str = ""
    """Tiers from the client inwards, joined by ','; empty: unknown unless they are web, app, middleware, db."""
    notices: list[str] = field(default_factory=list, compare=False)


def import_runs(runs: list[Run], store: Path, *, replace: bool = False) -> list[str]:
    """Adds the runs to their sweeps, judges these anew, returns notices. `replace`: a trial of the same name with other
    contents is replaced.

    Raises DataError naming file and place; nothing is written then."""
    together: dict[str, Frames] = {}
    read = [tables for run in runs for tables in _trials(run)]
    with locked(store):
        for tables in read:
            name = str(tables["trials"]["sweep"].iloc[0])
            if name not in together:
                together[name] = stored(store, name) or {t: TABLES[t].empty_table().to_pandas() for t in TABLES}
            together[name] = _merged(together[name], tables, store, replace=replace)
        notices = [text for run in runs for text in run.notices]
        return keep(together, dict.fromkeys(together), store, notices, replace=replace)


def read_list(path: Path, common: Run) -> list[Run]:
    """A CSV file with a line per run: jtl (or k6, locust, gatling), sa (several joined by `;`, paths from the file's
    folder) and any of users, topology, sweep, trial, rep, ramp_up_s, ramp_down_s, think_time_s; what is
    left out is as in `common`."""
    kinds = {"users": int, "rep": int} | dict.fromkeys(("ramp_up_s", "ramp_down_s", "think_time_s", "slo_ms"), float)
    allowed = ["jtl", "k6", "locust", "gatling", "sa", "topology", "sweep", "trial", *kinds]
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
        for name, kind in (*((g, lambda t: path.parent / t) for g in GENERATORS),
                           ("sa", lambda t: NodeFile.parse(t, path.parent))):  # fmt: skip
            if name in given:
                given[name] = tuple(kind(part.strip()) for part in given[name].split(";"))
        runs.append(replace(common, notices=[], **given))
    if not runs:
        raise DataError(
            f"{path}: no runs; expected a header with {', '.join(allowed[:2])}, users, ... and a line per run"
        )
    return runs


# ---- one test ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Load:
    """What the load generator's files say: all requests with their client, by completion (None: only sums), active
    users (0 rows: not told)."""

    done: pd.DataFrame | None
    users: pd.DataFrame
    totals: pd.DataFrame | None
    think_s: float
    unknown: tuple[str, ...]
    name: str
    """The first file, for messages."""


def _trials(run: Run) -> list[dict[str, pd.DataFrame]]:
    """Tables of each trial of the test."""
    _demand(run)
    load = _load(run)
    parts = _parts(run, load)
    samples, nodes, hidden = _samples(run, parts)
    _check_order(run, nodes["tier"].tolist())
    rows = [_row(run, load, part) for part in parts]
    given = run.think_time_s is not None or run.load_model in (LoadModel.OPEN, LoadModel.WORK)
    model, think_s, notes = _think(run, load, rows)
    trials, names = [], set()
    for part, row in zip(parts, rows, strict=True):
        rep = run.rep if part.rep is None else part.rep
        while (name := part.trial or run.trial or f"u{part.users:05d}.r{rep:02d}") in names:
            if part.trial or run.trial:
                raise DataError(f"{load.name}: trial {name} is there twice")
            rep += 1
        names.add(name)
        row |= {"rep": rep, "think_time_s": think_s, "load_model": model}
        tables = _of_part(run, load, part, row, name, samples if len(parts) == 1 else _near(samples, part), nodes)
        single = load.done is not None
        unknown = (*load.unknown, *hidden, *notes)
        trials.append(checked(tables, single=single, think_time_given=given or bool(notes), unknown=unknown))
    return trials


def _of_part(
    run: Run, load: _Load, part: Part, row: dict, name: str, samples: pd.DataFrame, nodes: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    start, end = part.start_s, part.end_s
    key = {"sweep": run.sweep or f"{run.topology.replace('/', '-')}.{TARGET}", "trial": name}
    trials = validated("trials", pd.DataFrame([key | row]), lambda _: f"{load.name}: trial {name}")
    tables = {
        "trials": trials,
        "samples": samples.assign(phase=_phase(samples["t_s"].to_numpy(), row["ramp_up_start_s"], start, end), **key),
        "nodes": nodes.assign(**key),
        "interactions": TABLES["interactions"].empty_table().to_pandas(),
    }
    if load.done is not None:
        done = load.done if "several" not in load.done.attrs else _near(load.done, part)
        kept = done[["t_s", "interaction", "response_time_ms", "ok", "bytes", "client"]]
        phase = _phase(kept["t_s"].to_numpy(), row["ramp_up_start_s"], start, end)
        tables["interactions"] = kept.assign(phase=phase, **key)
    return tables


def _near(frame: pd.DataFrame, part: Part) -> pd.DataFrame:
    t = frame["t_s"]
    return frame[(t >= part.start_s - AROUND_S) & (t < part.end_s + AROUND_S)]


def _row(run: Run, load: _Load, part: Part) -> dict:
    """Columns of the trial, but for those of its think time."""
    start, end = part.start_s, part.end_s
    begin = start if load.done is None or "several" in load.done.attrs else float(load.done["start_s"].min())
    row = {
        "topology": run.topology, "users": part.users, "users_real": part.users, "scale": 1.0, "valid": True,
        "invalid_reasons": "", "state": "collected", "target": TARGET, "run_start_s": start, "run_end_s": end,
        "ramp_up_start_s": min(begin, start), "slo_ms": run.slo_ms, "tiers": _order(run),
    }  # fmt: skip
    if load.done is not None:
        row |= summary(load.done, start, end, run.slo_ms)
        row["pending"] = int(((load.done["start_s"] < end) & (load.done["t_s"] >= end)).sum())
        row |= _arrivals(load.done, start, end) if run.load_model == LoadModel.OPEN else {}
    elif load.totals is not None:
        row |= _sums(load, start, end)
    row |= part.told
    if load.done is None and load.totals is None and not {"throughput_per_s", "response_time_mean_ms"} <= row.keys():
        raise DataError(
            f"{load.name}: without a load generator's file each load needs throughput_per_s and response_time_mean_ms"
        )
    if "interactions" in row and not row["interactions"] + row["errors"]:
        raise DataError(f"{load.name}: no request ended in the run phase {_time(start)} to {_time(end)}")
    return row


def _sums(load: _Load, start: float, end: float) -> dict:
    """Differences of sums that are counted from the beginning."""
    assert load.totals is not None
    t = load.totals["t_s"].to_numpy()
    if start < t[0] or end > t[-1]:
        raise DataError(
            f"{load.name}: has {_time(t[0])} to {_time(t[-1])}, the run phase is {_time(start)} to {_time(end)}"
        )
    done, failed, time_ms = (
        float(np.diff(np.interp([start, end], t, load.totals[c].to_numpy()))[0]) for c in ("done", "failed", "time_ms")
    )
    return {
        "throughput_per_s": (done - failed) / (end - start),
        "response_time_mean_ms": time_ms / done if done > 0 else float("nan"),
        "errors": round(failed),
        "interactions": round(done - failed),
    }


def _arrivals(done: pd.DataFrame, start: float, end: float) -> dict:
    """Open load: what was offered, and by how much more was under way with each second."""
    t = np.arange(start, end + 1e-9, 1.0)
    begun = np.searchsorted(np.sort(done["start_s"].to_numpy()), t, side="right").astype(float)
    ended = np.searchsorted(np.sort(done["t_s"].to_numpy()), t, side="right")
    growth = backlog(t, begun, begun - ended, start, end)
    return {
        "offered_per_s": growth.offered_per_s,
        "backlog_growth_per_s": growth.growth_per_s,
        "backlog_error_per_s": growth.error_per_s,
    }


def _think(run: Run, load: _Load, rows: list[dict]) -> tuple[str | None, float, tuple[str, ...]]:
    """Load model (None: closed, and no other was given), mean think time, and what is assumed there. If neither the
    options nor the file give the think time, it is N/X - R of the lowest load; for a JTL it is the default."""
    if run.load_model in (LoadModel.OPEN, LoadModel.WORK):
        lost = ("requests without an answer: the file lacks them",) if run.load_model == LoadModel.OPEN else ()
        return run.load_model, float("nan"), lost
    model = run.load_model or None
    if run.think_time_s is not None:
        return model, run.think_time_s, ()
    if run.jtl:
        return model, THINK_S, ()
    low = min(rows, key=lambda row: row["users"])
    wait_s = low["response_time_mean_ms"] / 1000
    done_per_s = low["throughput_per_s"] + (low.get("errors") or 0) / (low["run_end_s"] - low["run_start_s"])
    law_s = low["users"] / done_per_s - wait_s if done_per_s > 0 else float("nan")
    measured = np.isfinite(load.think_s)
    think_s = load.think_s if measured else law_s
    if not np.isfinite(think_s):
        return model, THINK_S, ()
    if model is None and think_s < NO_THINK * wait_s:
        run.notices.append(
            f"{load.name}: users do not think (of {low['users']} users, {1000 * think_s:.3g} ms against a response "
            f"time of {1000 * wait_s:.3g} ms): treated as workers (load model work); --load-model and --think-time "
            "set it"
        )
        return LoadModel.WORK, float("nan"), (f"think times (taken as 0: {1000 * think_s:.3g} ms by the file)",)
    think_s = max(think_s, 0.0)
    if measured:
        return model, think_s, (f"the think time ({think_s:.3g} s: what k6's iterations took beside their requests)",)
    told = f"{think_s:.3g} s: N/X - R at the lowest load, {low['users']} users, where the law then fits by itself"
    return model, think_s, (f"the think time ({told})",)


def _demand(run: Run) -> None:
    given = [name for name in GENERATORS if getattr(run, name)]
    if len(given) > 1:
        raise DataError(f"expected files of one load generator, there are --{' and --'.join(given)}")
    if not given and run.loads is None:
        raise DataError(
            "no JTL file: give --jtl FILE (or --k6, --locust, --gatling, or --loads with what was measured)"
        )
    if not run.sa and not run.prometheus:
        raise DataError("no sysstat file: give --sa NODE=FILE[:TIER] for each node (or --prometheus URL or FILE)")
    if run.loads is not None and (run.users or run.trial):
        raise DataError(f"{run.loads}: names users and trials; --users (and trial of --runs) cannot be given with it")
    if run.load_model not in ("", *(m.value for m in LoadModel)):
        raise DataError(f"--load-model is {run.load_model!r}, allowed are closed, open and work")
    of_their_own = any(f.tier not in (*W_A_C_D, *NO_SERVERS) for f in (*run.sa, *run.node)) or run.prometheus
    if not run.topology or not (of_their_own or _TOPOLOGY.fullmatch(run.topology)):
        raise DataError(f"topology {run.topology!r}: expected numbers of nodes per tier, for example 1/2/1/2M")
    names = [file.node for file in run.sa]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice:
        raise DataError(f"node {twice} has two sysstat files")


def _load(run: Run) -> _Load:
    if run.jtl:
        return _of_jmeter(run)
    paths = run.k6 or run.locust or run.gatling
    if not paths:
        return _Load(None, steps([], []), None, float("nan"), (), str(run.loads))
    read = k6 if run.k6 else locust if run.locust else gatling
    files = [(path, read(path)) for path in paths]
    requests = [(path, part) for path, part in files if part.requests is not None]
    sums = [(path, part) for path, part in files if part.requests is None]
    if len(sums) > 1:
        raise DataError(f"{sums[1][0]}: a second history; Locust's master writes one for all its workers")
    users = _summed([part.users for _, part in (sums or requests)])
    told = dict.fromkeys(note for _, part in (requests or sums) for note in part.notes)
    think = float(np.mean([part.think_s for _, part in files]))
    if not requests:
        return _Load(None, users, sums[0][1].totals, think, tuple(told), str(paths[0]))
    parts = [part.requests.assign(client=f"client{n}") for n, (_, part) in enumerate(requests, start=1)]
    done = pd.concat(parts, ignore_index=True).sort_values("t_s", kind="stable", ignore_index=True)
    done["bytes"] = done["bytes"].round().astype("Int64")
    return _Load(done, users, None, think, tuple(told), str(paths[0]))


def _of_jmeter(run: Run) -> _Load:
    """All samples that count as an interaction, and the threads at the same time."""
    parts, threads = [], []
    for number, path in enumerate(run.jtl, start=1):
        frame = jtl(path, stamp=run.stamp).assign(client=f"client{number}")
        if frame.empty:
            raise DataError(f"{path}: no samples")
        threads.append(steps(frame["start_s"], frame["threads"]).dropna())
        if frame["transaction"].any():
            run.notices.append(
                f"{path}: {int(frame['transaction'].sum())} transactions are the interactions; the "
                f"{int((~frame['transaction']).sum())} samples inside and beside them are left out"
            )
            frame = frame[frame["transaction"]]
        parts.append(frame)
    frame = pd.concat(parts, ignore_index=True).sort_values("t_s", kind="stable", ignore_index=True)
    frame["bytes"] = frame["bytes"].round().astype("Int64")
    return _Load(frame, _summed(threads), None, float("nan"), (), str(run.jtl[0]))


def _summed(clients: list[pd.DataFrame]) -> pd.DataFrame:
    """Active users of several clients together."""
    known = [c for c in clients if len(c)]
    if len(known) < 2:
        return known[0] if known else steps([], [])
    changes = pd.concat([c.assign(users=c["users"].diff().fillna(c["users"])) for c in known]).sort_values("t_s")
    return steps(changes["t_s"], changes["users"].cumsum())


def _parts(run: Run, load: _Load) -> list[Part]:
    """The trials: those of the file of loads, the one that is told, or the plateaus."""
    first = None if load.done is None else float(load.done["start_s"].min())
    if run.loads is not None:
        return _marked(load, read_loads(run.loads, first))
    parts = [] if run.users else plateaus(load.users, run.ramp_up_s, run.ramp_down_s)
    if run.jtl and len(parts) < 2:
        return [_of_threads(run, load)]
    if run.users:
        return [_whole(run, load)]
    if not parts:
        told = (
            "its users never stay the same for 10 s" if len(load.users) else "it does not say how many users there were"
        )
        raise DataError(
            f"{load.name}: {told}; say which parts of it are loads: --users N for all of it, or --loads FILE"
        )
    told = "; ".join(f"{counted(p.users, 'user')} {_time(p.start_s)} to {_clock(p.end_s)}" for p in parts)
    run.notices.append(
        f"{load.name}: {counted(len(parts), 'plateau')} of the users: {told} (--loads says otherwise; ramps, plateaus "
        "of less than 10 s and the first tenth of each are left out)"
    )
    return _marked(load, parts)


def _marked(load: _Load, parts: list[Part]) -> list[Part]:
    if load.done is not None and len(parts) > 1:
        load.done.attrs["several"] = True
    return parts


def _whole(run: Run, load: _Load) -> Part:
    """One load that the options tell."""
    frame = load.done if load.done is not None else load.totals
    assert frame is not None
    first = float((frame["start_s"] if load.done is not None else frame["t_s"]).min())
    last = float((frame["start_s"] if load.done is not None else frame["t_s"]).max())
    start, end = first + (run.ramp_up_s or 0.0), last - (run.ramp_down_s or 0.0)
    if not end > start:
        raise DataError(f"{load.name}: nothing is left between ramp-up and ramp-down of {last - first:.0f} s")
    assert run.users is not None
    return Part(start, end, run.users)


def _of_threads(run: Run, load: _Load) -> Part:
    """The run phase of a JTL: when all clients had all their threads, unless told otherwise."""
    done = load.done
    assert done is not None
    threads = sum(part["threads"].max() for _, part in done.groupby("client"))
    users = run.users or (0 if pd.isna(threads) else int(threads))
    if not users:
        raise DataError(f"{run.jtl[0]}: users are missing, and the JTL has no column allThreads: give --users")
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
    return Part(start, end, users)


# ---- the nodes -----------------------------------------------------------------------------------------------------


def _samples(run: Run, loads: list[Part]) -> tuple[pd.DataFrame, pd.DataFrame, tuple[str, ...]]:
    """Samples of all nodes, the nodes, and what the samples hide."""
    parts, nodes, hidden = [], [], ()
    first, last = min(p.start_s for p in loads), max(p.end_s for p in loads)
    for file in run.sa:
        frame, cores = read_node(file, containers=run.containers)
        if not any(((frame["t_s"] >= p.start_s) & (frame["t_s"] < p.end_s)).any() for p in loads):
            measured = f"{_time(frame['t_s'].min())} to {_time(frame['t_s'].max())}"
            raise DataError(
                f"{file.path}: {file.node} was measured from {measured}, the run phase is {_time(first)} to "
                f"{_time(last)}: no sample in it; another day, or a wrong clock (--clock-offset {file.node}=SECONDS)?"
            )
        parts.append(frame)
        nodes.append((file.node, file.tier, cores))
    if run.prometheus:
        mapping = read_mapping(run.mapping)
        mapping = mapping.model_copy(update={"nodes": [*run.node, *mapping.nodes]})
        scrapes = scraped(
            run.prometheus, mapping, first, last, containers=run.containers, offset_s=run.prometheus_offset_s
        )
        t = scrapes.samples["t_s"]
        if not any(((t >= p.start_s) & (t < p.end_s)).any() for p in loads):
            raise DataError(
                f"{run.prometheus}: no sample in the run phase {_time(first)} to {_time(last)}; "
                "another day, or a wrong clock (--clock-offset prometheus=SECONDS)?"
            )
        run.notices.extend(scrapes.notices)
        hidden = scrapes.unknown
        parts.append(scrapes.samples)
        known = {file.node for file in run.sa}
        nodes += [(n, tier, scrapes.cores.get(n)) for n, tier in scrapes.tiers.items() if n not in known]
    if run.containers:
        said = "by sysstat" if run.sa else "by an exporter of machines"
        run.notices.append(f"containers: their CPU is not measured {said}, so no CPU can be named as bottleneck")
    nodes += _missing(run, nodes)
    named = pd.DataFrame(nodes, columns=["node", "tier", "cpu_cores"]).astype({"cpu_cores": float})
    return pd.concat(parts, ignore_index=True), named, hidden


def _missing(run: Run, nodes: list[tuple]) -> list[tuple[str, str, None]]:
    """Nodes of the topology without samples: the verdict must know that they were not measured."""
    counts = counts_of(run.topology)
    if counts is None:
        return []
    names = {node for node, *_ in nodes}
    missing = []
    for tier, count in counts.items():
        lacking = count - sum(of == tier for _, of, _ in nodes)
        free = (name for k in range(1, 1000) if (name := f"{tier}{k}") not in names)
        missing += [(next(free), tier, None) for _ in range(lacking)]
    if missing:
        what = "a sysstat file" if not run.prometheus else "samples"
        run.notices.append(f"topology {run.topology} has nodes without {what}: {', '.join(n for n, *_ in missing)}")
    return missing


def _time(t: float) -> str:
    return f"{pd.Timestamp(t, unit='s'):%Y-%m-%d %H:%M:%S} UTC"


def _clock(t: float) -> str:
    return f"{pd.Timestamp(t, unit='s'):%H:%M:%S}"


def _order(run: Run) -> str | None:
    """The tiers from the client inwards, if they are known."""
    listed = [t.strip() for t in run.tiers.split(",") if t.strip()]
    return ",".join(listed) or None


def _check_order(run: Run, tiers: list[str]) -> None:
    """`tiers`: of all nodes. Raises DataError if the order that is told lacks one."""
    own = [t for t in dict.fromkeys(tiers) if t not in NO_SERVERS]
    listed = [t.strip() for t in run.tiers.split(",") if t.strip()]
    if listed and (len(set(listed)) < len(listed) or not set(own) <= set(listed)):
        raise DataError(f"--tiers is {run.tiers!r}, expected each of {', '.join(own)} once, from the client inwards")
    if not listed and not set(own) <= set(W_A_C_D):
        run.notices.append(f"the order of the tiers {', '.join(own)} is unknown: give --tiers")


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
            f"{store}: trial {trial} of sweep {sweep} is already stored with other contents; --replace replaces them, "
            "--rep adds a repetition"
        )
    merged = dict(before)
    for name, frame in tables.items():
        if "trial" in frame:
            kept = before[name][before[name]["trial"] != trial]
            merged[name] = pd.concat([kept, frame], ignore_index=True) if len(kept) else frame
    _refuse_other_think_time(sweep, merged["trials"])
    for column in (c for c in OF_THE_SWEEP if c != "think_time_s"):
        values = (
            merged["trials"][column].astype(object).fillna("").astype(str).unique()
            if column in merged["trials"]
            else [""]
        )
        if len(values) > 1:
            raise DataError(f"sweep {sweep}: {column} is {values[-1]!r}, expected {values[0]!r} as in its other "
                            "trials; give this one another name with --sweep")  # fmt: skip
    return merged


def _refuse_other_think_time(sweep: str, trials: pd.DataFrame) -> None:
    """A think time that was measured differs a little from test to test."""
    think = trials["think_time_s"].astype(float)
    differs = (think - think.iloc[0]).abs() > THINK_DIFFERS * think.iloc[0]
    if differs.any() or think.isna().nunique() > 1:
        raise DataError(
            f"sweep {sweep}: think_time_s is {str(think[differs | (think.isna() != think.isna().iloc[0])].iloc[0])!r}, "
            f"expected {str(think.iloc[0])!r} as in its other trials; give that with --think-time, or another name "
            "with --sweep"
        )
