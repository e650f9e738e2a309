"""Measurements of another system -> store (`trials.csv`, `samples.csv`, maybe `interactions.csv`)."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from ntier_analysis.contracts import implied
from ntier_analysis.contracts.implied import TIERS
from ntier_analysis.contracts.layout import counts_of, listed_in
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.described import repetitions
from ntier_analysis.errors import DataError
from ntier_analysis.importing.trials import TARGET, checked, keep, stored, unmeasured
from ntier_analysis.ingest import summary
from ntier_analysis.parsers.csvfile import line_of, read_csv
from ntier_analysis.parsers.generated import in_whole_seconds, spread
from ntier_analysis.setting import THINK_DIFFERS
from ntier_analysis.store.schema import TABLES, kinds
from ntier_analysis.store.tables import locked
from ntier_analysis.store.validation import ROUNDING, Place, validated
from ntier_analysis.validity.imported import NO_SERVERS
from ntier_analysis.wording import counted

REQUIRED = {
    "trials": [
        "sweep",
        "trial",
        "topology",
        "users",
        "throughput_per_s",
        "response_time_mean_ms",
        "run_start_s",
        "run_end_s",
    ],
    "samples": ["sweep", "trial", "t_s", "node", "tier", "resource", "metric", "value"],
    "interactions": ["sweep", "trial", "t_s", "interaction", "response_time_ms"],
}
FILLED = ["users", "throughput_per_s", "run_start_s", "run_end_s"]
"""What a trial that counts must tell."""
OF_THE_SWEEP = [
    "topology",
    "mix",
    "middleware",
    "scale",
    "think_time_s",
    "tiers",
    "load_model",
    "factor",
    "factor_unit",
]
"""What all trials of a sweep have in common."""
LABELS = [field.name for field in TABLES["trials"] if pa.types.is_dictionary(field.type)]
UNITS = {"utilization_pct": "pct", "throttled_pct": "pct", "used_cores": "cores"}
PERCENTILES = [f"response_time_p{p}_ms" for p in (50, 95, 99)]
OF_THROUGHPUT = ["throughput_low_per_s", "throughput_high_per_s", "goodput_per_s"]
_UNIT = re.compile(r"(?:^|_)(pct|bytes|per_s|ms|s|count|cores)$")
THINK_S = implied.THINK_S
"""Where a file says none; the law says when it is wrong."""

Frames = dict[str, pd.DataFrame]


def import_folder(folder: Path, store: Path, *, replace: bool = False) -> list[str]:
    """Reads the CSV files, writes the tables of each sweep in them, returns notices. `replace`: also if the store has
    a sweep of that name with other contents.

    Raises DataError naming file, line and column; nothing is written then."""
    notices: list[str] = []
    trials = _read(folder / "trials.csv", "trials", notices)
    samples = _read(folder / "samples.csv", "samples", notices)
    path = folder / "interactions.csv"
    interactions = _read(path, "interactions", notices) if os.path.lexists(path) else None
    sweeps = prepared(trials, samples, interactions, folder, notices)
    with locked(store):
        return keep(sweeps, {name: stored(store, name) for name in sweeps}, store, notices, replace=replace)


def prepared(
    trials: pd.DataFrame,
    samples: pd.DataFrame,
    interactions: pd.DataFrame | None,
    folder: Path | None = None,
    notices: list[str] | None = None,
) -> dict[str, Frames]:
    """Contents of the three files -> tables of each sweep with their checks, without verdicts. `folder`: where the
    contents are from, for messages.

    Raises DataError as import_folder does."""

    def place(table: str) -> Place:
        path = None if folder is None else folder / f"{table}.csv"
        return lambda row: f"{table}.csv: row {row + 1}" if path is None else f"{path}:{line_of(path, row)}"

    given = "think_time_s" in trials and bool(trials["think_time_s"].notna().all())
    trials = _trials(trials.copy(), place("trials"))
    samples = _samples(samples.copy(), trials, place("samples"))
    if interactions is not None:
        interactions, cut = _interactions(interactions.copy(), trials, place("interactions"))
        if cut and notices is not None:
            notices.append(
                f"interactions.csv: times of {counted(cut, 'trial')} are whole seconds, so they were spread evenly "
                "over their second; milliseconds would show stops"
            )
    sweeps = {}
    for sweep, rows in trials.groupby("sweep", sort=True):
        tables = _tables(str(sweep), rows, samples, interactions, notices if notices is not None else [])
        sweeps[str(sweep)] = checked(tables, interactions is not None, think_time_given=given)
    return sweeps


def _read(path: Path, table: str, notices: list[str]) -> pd.DataFrame:
    """The table's columns of a CSV file; others are named in a notice."""
    of = kinds(table)
    needed = {c: of[c] for c in REQUIRED[table]}
    frame = read_csv(path, needed, optional={c: k for c, k in of.items() if c not in needed}, strict=True)
    if frame.empty:
        raise DataError(f"{path}: a header and no rows")
    if ignored := frame.attrs["left_out"]:
        notices.append(f"{path.name}: ignored column{'s' * (len(ignored) > 1)} {', '.join(ignored)[:500]}")
    frame.attrs.clear()  # pandas copies them deeply into each result: a tenth of an import
    for column in (c for c in frame if of[c] == "text"):
        frame[column] = frame[column].str.strip()
    return frame


# ---- trials --------------------------------------------------------------------------------------------------------


def _trials(frame: pd.DataFrame, place: Place) -> pd.DataFrame:
    numbered = "rep" in frame and bool(frame["rep"].notna().all())
    defaults = {"scale": 1.0, "think_time_s": THINK_S, "rep": 1, "valid": True, "invalid_reasons": "",
                "state": "collected", "target": TARGET, "tiers": None}  # fmt: skip
    for name, value in defaults.items():
        column = frame[name].replace("", None) if name in frame else pd.Series(None, index=frame.index, dtype=object)
        frame[name] = column if value is None else column.astype(object).where(column.notna(), value)
    for name in frame.columns.intersection(LABELS):
        frame[name] = frame[name].replace("", None)
    frame["tiers"] = [",".join(listed_in(t)) or None if isinstance(t, str) else None for t in frame["tiers"]]
    frame = frame.astype({"scale": float, "think_time_s": float, "rep": "Int64", "valid": bool})
    frame["valid"] &= frame["state"] == "collected"
    if "load_model" in frame:
        frame.loc[frame["load_model"].isin([LoadModel.OPEN, LoadModel.WORK]), "think_time_s"] = np.nan
    validated("trials", frame, place, unique=True)
    for column in FILLED:
        empty = frame[column].isna() & (frame["valid"] | (column == "users"))
        _refuse(empty, place, lambda row, c=column: f"{c} is empty")
    users = (frame["users"] * frame["scale"]).round().clip(lower=1).astype("Int64")
    if "users_real" not in frame:
        frame["users_real"] = users
    frame["users_real"] = frame["users_real"].fillna(users)
    _refuse(
        (frame["users_real"] - users).abs() > 1,
        place,
        lambda row: f"users_real is {frame['users_real'].iloc[row]}, expected users x scale = {users.iloc[row]}",
    )
    for column in [c for c in OF_THE_SWEEP if c in frame]:
        texts = frame[column].astype(object).fillna("").astype(str)
        first = texts.groupby(frame["sweep"]).transform("first")
        differs = texts != first
        if column == "think_time_s":  # a measured mean differs a little from trial to trial
            base = frame[column].groupby(frame["sweep"]).transform("first")
            differs = (frame[column] - base).abs() > THINK_DIFFERS * base
        _refuse(
            differs,
            place,
            lambda row, c=column, t=texts, f=first: (
                f"{c} is {t.iloc[row]!r}, expected {f.iloc[row]!r} as in the "
                "sweep's other trials; another one is another sweep"
            ),
        )
    if not numbered:
        frame["rep"] = pd.concat([repetitions(rows) for _, rows in frame.groupby("sweep", sort=False)])
    return frame


def _refuse(wrong: pd.Series, place: Place, message) -> None:
    """message: number of a row -> what is wrong there."""
    wrong = wrong.fillna(True).to_numpy(dtype=bool)
    if wrong.any():
        row = int(wrong.argmax())
        raise DataError(f"{place(row)}: {message(row)}")


# ---- samples and interactions --------------------------------------------------------------------------------------


def _samples(frame: pd.DataFrame, trials: pd.DataFrame, place: Place) -> pd.DataFrame:
    for name, value in (("source", "import"), ("item", "")):
        frame[name] = frame.get(name, value)
    unit = frame["metric"].str.extract(_UNIT, expand=False).fillna("")
    frame["unit_given"] = frame["unit"] == "pct" if "unit" in frame else False
    frame["unit"] = frame["unit"].where(frame["unit"] != "", unit) if "unit" in frame else unit
    frame = _with_phase(frame, trials, place)
    validated("samples", frame.drop(columns="unit_given"), place, unique=True)
    expected = frame["metric"].map(UNITS)
    _refuse(
        expected.notna() & (frame["unit"] != expected),
        place,
        lambda row: f"unit is {frame['unit'].iloc[row]!r}, expected {expected.iloc[row]!r}",
    )
    alike = frame["metric"].str.contains("util", case=False) & ~frame["metric"].isin(UNITS)
    _refuse(
        alike,
        place,
        lambda row: f"metric is {frame['metric'].iloc[row]!r}; a utilization in percent is named utilization_pct",
    )
    nodes = frame[["sweep", "trial", "node", "tier"]].drop_duplicates()
    twice = nodes.duplicated(["sweep", "node"], keep="first") & ~nodes.duplicated(["sweep", "node", "tier"])
    if twice.any():
        row = int(nodes.index[twice][0])
        raise DataError(f"{place(row)}: tier is {frame['tier'].iloc[row]!r}, expected one tier per node; "
                        f"{frame['node'].iloc[row]} has another above")  # fmt: skip
    _refuse_shares(frame, place)
    return frame


def _refuse_shares(frame: pd.DataFrame, place: Place) -> None:
    """No CPU of the sweep ever passes 1: shares of 1, unless the file says that they are percent."""
    cpu = frame[(frame["resource"] == "cpu") & (frame["metric"] == "utilization_pct") & ~frame["unit_given"]]
    largest = cpu.groupby("sweep")["value"].max()
    for sweep, value in largest[(largest > 0) & (largest <= 1)].items():
        row = int(cpu.index[(cpu["sweep"] == sweep) & (cpu["value"] == value)][0])
        raise DataError(
            f"{place(row)}: value is {value:g}, and no utilization_pct of a CPU in sweep {sweep} is larger: looks like "
            "a share of 1: multiply by 100 (if these are percent, add a column unit with pct)"
        )


def _interactions(frame: pd.DataFrame, trials: pd.DataFrame, place: Place) -> tuple[pd.DataFrame, int]:
    """And of how many trials the times were cut to whole seconds."""
    ok = frame["ok"] if "ok" in frame else pd.Series(None, index=frame.index, dtype=object)
    frame["ok"] = ok.astype(object).where(ok.notna(), True).astype(bool)
    frame = validated("interactions", _with_phase(frame, trials, place), place)
    t_s, cut = frame["t_s"].to_numpy(dtype=float).copy(), 0
    for rows in frame.groupby(["sweep", "trial"], sort=False).indices.values():
        if in_whole_seconds(t_s[rows]):
            t_s[rows], cut = spread(t_s[rows]), cut + 1
    return frame.assign(t_s=t_s), cut


def _with_phase(frame: pd.DataFrame, trials: pd.DataFrame, place: Place) -> pd.DataFrame:
    """Phase by the trial's run; what the file says of it must agree."""
    known = trials.set_index(["sweep", "trial"])[["run_start_s", "run_end_s"]].astype(float)
    pairs = pd.MultiIndex.from_frame(frame[["sweep", "trial"]])
    there = pairs.isin(known.index)
    _refuse(
        pd.Series(~there),
        place,
        lambda row: f"trial {frame['trial'].iloc[row]!r} of sweep {frame['sweep'].iloc[row]!r} is not in trials.csv",
    )
    bounds = known.reindex(pairs)
    t = frame["t_s"].to_numpy(dtype=float)
    inside = (t >= bounds["run_start_s"].to_numpy()) & (t < bounds["run_end_s"].to_numpy())
    if "phase" not in frame or (frame["phase"] == "").all():
        frame["phase"] = np.where(inside, "run", "outside")
        return frame
    _refuse(
        pd.Series((frame["phase"] == "run").to_numpy() != inside),
        place,
        lambda row: (
            f"phase is {frame['phase'].iloc[row]!r}, but t_s is {t[row]!r} and the run is "
            f"{bounds['run_start_s'].iloc[row]!r} to {bounds['run_end_s'].iloc[row]!r}"
        ),
    )
    return frame


# ---- tables of a sweep ---------------------------------------------------------------------------------------------


def _tables(
    sweep: str, trials: pd.DataFrame, samples: pd.DataFrame, interactions: pd.DataFrame | None, notices: list[str]
) -> Frames:
    tables = {name: schema.empty_table().to_pandas() for name, schema in TABLES.items()}
    tables["trials"] = trials
    tables["samples"] = samples[samples["sweep"] == sweep]
    if interactions is not None:
        tables["interactions"] = interactions[interactions["sweep"] == sweep]
        tables["trials"] = _measured(trials, tables["interactions"])
    tables["nodes"] = _nodes(sweep, tables["trials"], tables["samples"], notices)
    return tables


def _nodes(sweep: str, trials: pd.DataFrame, samples: pd.DataFrame, notices: list[str]) -> pd.DataFrame:
    """Each trial has all nodes of the sweep, those that were not measured too: of them the verdict must know."""
    seen = samples[["node", "tier"]].drop_duplicates("node")
    own = [t for t in dict.fromkeys(seen["tier"]) if t not in NO_SERVERS]
    listed = trials["tiers"].iloc[0]
    order = [] if pd.isna(listed) else str(listed).split(",")
    if order and (len(set(order)) < len(order) or not set(own) <= set(order)):
        lacking = ", ".join(t for t in own if t not in order) or "a tier twice"
        raise DataError(f"trials.csv: tiers is {listed!r} in sweep {sweep}, expected each tier of samples.csv once, "
                        f"from the client inwards; wrong: {lacking}")  # fmt: skip
    if not order and not set(own) <= set(TIERS):
        notices.append(f"{sweep}: the order of the tiers {', '.join(own)} is unknown; add a column tiers to "
                       'trials.csv, from the client inwards: "frontend,backend,db"')  # fmt: skip
    wanted = counts_of(str(trials["topology"].iloc[0]), ",".join(order), own) or dict.fromkeys(order, 1)
    lacking = unmeasured(wanted, seen["tier"].tolist(), set(seen["node"]))
    if lacking:
        notices.append(f"{sweep}: nodes without any sample: {', '.join(n for n, _ in lacking)}")
    nodes = pd.concat([seen, pd.DataFrame(lacking, columns=["node", "tier"])], ignore_index=True)
    return trials[["sweep", "trial"]].merge(nodes, how="cross").assign(cpu_cores=np.nan)


def _measured(trials: pd.DataFrame, done: pd.DataFrame) -> pd.DataFrame:
    """Fills what trials.csv leaves out (percentiles, intervals) from the interactions; what it says stays."""
    trials = trials.copy()
    by_trial = dict(iter(done.groupby("trial")))
    for index, row in trials.iterrows():
        if row["trial"] not in by_trial or pd.isna(row["run_end_s"]):
            continue
        measured = summary(by_trial[row["trial"]], row["run_start_s"], row["run_end_s"], row.get("slo_ms"))
        told = [c for c in PERCENTILES if pd.notna(row.get(c))]
        agrees = abs(measured["throughput_per_s"] - row["throughput_per_s"]) <= ROUNDING * row["throughput_per_s"]
        for name, value in measured.items():
            if (name in PERCENTILES and told) or (name in OF_THROUGHPUT and not agrees):
                continue  # of another throughput, or other percentiles: they would contradict what the file says
            if name not in trials:
                trials[name] = np.nan
            if pd.isna(trials.loc[index, name]):
                trials.loc[index, name] = value
    return trials
