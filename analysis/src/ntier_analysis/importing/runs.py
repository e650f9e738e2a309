"""Files of a load generator, and of sysstat or Prometheus -> trials in the store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.errors import DataError
from ntier_analysis.importing.folder import OF_THE_SWEEP
from ntier_analysis.importing.generator import Load, load_of, parts_of, think_of
from ntier_analysis.importing.loads import Part
from ntier_analysis.importing.nodes import samples_of
from ntier_analysis.importing.prometheus import AROUND_S
from ntier_analysis.importing.run import Run, check_order, check_request, order
from ntier_analysis.importing.trials import MEASURED, TARGET, Frames, checked, keep, same, stored
from ntier_analysis.ingest import summary
from ntier_analysis.parsers.generated import mean_of_steps
from ntier_analysis.setting import THINK_DIFFERS
from ntier_analysis.statistics.backlog import backlog
from ntier_analysis.store.schema import TABLES
from ntier_analysis.store.tables import locked
from ntier_analysis.store.validation import validated
from ntier_analysis.validity.imported import LAW
from ntier_analysis.wording import clock, counted, moment

RARE = 5
"""So many mean distances between two requests are no pause by chance (1 in 150)."""


def import_runs(runs: list[Run], store: Path, *, replace: bool = False) -> list[str]:
    """Adds the runs to their sweeps, judges these anew, returns notices. `replace`: a trial of the same name with other
    contents is replaced.

    Raises DataError naming file and place; nothing is written then."""
    read: dict[str, list[Frames]] = {}
    for run in runs:
        for tables in _trials(run):
            read.setdefault(str(tables["trials"]["sweep"].iloc[0]), []).append(tables)
    with locked(store):
        together = {}
        for name, trials in read.items():
            before = stored(store, name) or {t: TABLES[t].empty_table().to_pandas() for t in TABLES}
            together[name] = _merged(name, before, trials, store, replace=replace)
        notices = [text for run in runs for text in run.notices]
        return keep(together, dict.fromkeys(together), store, notices, replace=replace)


# ---- one test ------------------------------------------------------------------------------------------------------


def _trials(run: Run) -> list[dict[str, pd.DataFrame]]:
    """Tables of each trial of the test."""
    check_request(run)
    load = load_of(run)
    parts = parts_of(run, load)
    if run.loads is not None or run.users:
        for part in parts:
            _compare_told(run, load, part)
    samples, nodes, hidden = samples_of(run, parts)
    check_order(run, nodes["tier"].tolist())
    rows = [_row(run, load, part) for part in parts]
    given = run.think_time_s is not None or run.load_model in (LoadModel.OPEN, LoadModel.WORK)
    model, think_s, notes = think_of(run, load, rows)
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


def _compare_told(run: Run, load: Load, part: Part) -> None:
    """What the user says of a load, with what the file says of it. Raises DataError for a load of whose time the file
    has no request for long: throughput would be too low."""
    where, length = f"{moment(part.start_s)} to {clock(part.end_s)}", part.end_s - part.start_s
    if load.done is not None:
        first, last = float(load.done["start_s"].min()), float(load.done["t_s"].max())
        empty_s = max(first - part.start_s, 0.0) + max(part.end_s - last, 0.0)
        between_s = length / max(1, int(load.done["t_s"].between(part.start_s, part.end_s).sum()))
        if empty_s > max(LAW * length, RARE * between_s):
            raise DataError(
                f"{load.name}: has requests from {moment(first)} to {clock(last)}, the load of {part.users} is from "
                f"{where}"
            )
    if len(load.users) and run.load_model != LoadModel.OPEN:
        users = mean_of_steps(load.users, part.start_s, part.end_s)
        if abs(users - part.users) > LAW * part.users:
            run.notices.append(
                f"{load.name}: {counted(part.users, 'user')} told from {where}, but it has {users:.0f} on average then"
            )


def _of_part(
    run: Run, load: Load, part: Part, row: dict, name: str, samples: pd.DataFrame, nodes: pd.DataFrame
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


def _row(run: Run, load: Load, part: Part) -> dict:
    """Columns of the trial, but for those of its think time."""
    start, end = part.start_s, part.end_s
    begin = start if load.done is None or "several" in load.done.attrs else float(load.done["start_s"].min())
    row = {
        "topology": run.topology, "users": part.users, "users_real": part.users, "scale": 1.0, "valid": True,
        "invalid_reasons": "", "state": "collected", "target": TARGET, "run_start_s": start, "run_end_s": end,
        "ramp_up_start_s": min(begin, start), "slo_ms": run.slo_ms, "tiers": ",".join(order(run)) or None,
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
        raise DataError(f"{load.name}: no request ended in the run phase {moment(start)} to {moment(end)}")
    return row


def _sums(load: Load, start: float, end: float) -> dict:
    """Differences of sums that are counted from the beginning."""
    assert load.totals is not None
    t = load.totals["t_s"].to_numpy()
    if start < t[0] or end > t[-1]:
        raise DataError(
            f"{load.name}: has {moment(t[0])} to {moment(t[-1])}, the run phase is {moment(start)} to {moment(end)}"
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


def _phase(t: np.ndarray, first: float, start: float, end: float) -> np.ndarray:
    return np.select([(t >= start) & (t < end), (t >= first) & (t < start)], ["run", "ramp_up"], "outside")


# ---- with what is there --------------------------------------------------------------------------------------------


def _merged(sweep: str, before: Frames, trials: list[Frames], store: Path, *, replace: bool) -> Frames:
    """The sweep with these trials, in the order in which they came. Raises DataError if it has a trial of such a name
    with other contents, or one differs in what all trials of a sweep have in common."""
    brought = _by_name(sweep, before, trials, store, replace=replace)
    merged = dict(before)
    for name in dict.fromkeys(name for tables in brought.values() for name in tables):
        new = {trial: tables[name] for trial, tables in brought.items() if "trial" in tables.get(name, ())}
        kept = before[name][~before[name]["trial"].isin([*new])]
        rows = [frame for frame in (kept, *new.values()) if len(frame)]
        merged[name] = pd.concat(rows, ignore_index=True) if len(rows) > 1 else rows[0] if rows else kept
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


def _by_name(sweep: str, before: Frames, trials: list[Frames], store: Path, *, replace: bool) -> dict[str, Frames]:
    """Each trial's tables; of two of one name the later ones."""
    names = [str(tables["trials"]["trial"].iloc[0]) for tables in trials]
    again = before["trials"]["trial"].isin(names).any()
    parts = {name: dict(iter(before[name].groupby("trial"))) if again else {} for name in MEASURED}
    brought: dict[str, Frames] = {}
    for trial, tables in zip(names, trials, strict=True):
        old = brought.pop(trial, None)
        if old is None and trial in parts["trials"]:
            old = {name: parts[name].get(trial, before[name].iloc[:0]) for name in MEASURED}
        if old is not None and not replace and not same(old, tables):
            raise DataError(
                f"{store}: trial {trial} of sweep {sweep} is already stored with other contents; --replace replaces "
                "them, --rep adds a repetition"
            )
        brought[trial] = tables
    return brought


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
