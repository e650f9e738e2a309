"""Measurements of another system -> store (`trials.csv`, `samples.csv`, maybe `interactions.csv`)."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from ntier_analysis.errors import DataError
from ntier_analysis.ingest import summary
from ntier_analysis.store.schema import TABLES
from ntier_analysis.store.tables import write_table
from ntier_analysis.verdict.tables import judge

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
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_UNIT = re.compile(r"(?:^|_)(pct|bytes|per_s|ms|s|count|cores)$")


def import_folder(folder: Path, store: Path) -> list[str]:
    """Reads the CSV files, writes the tables of each sweep in them (replacing sweeps of that name), returns notices.

    Raises DataError naming file, column and line; nothing is written then."""
    notices: list[str] = []
    trials = _read(folder / "trials.csv", "trials", notices)
    samples = _read(folder / "samples.csv", "samples", notices)
    path = folder / "interactions.csv"
    interactions = _read(path, "interactions", notices) if path.exists() else None
    for sweep, tables in prepared(trials, samples, interactions, folder).items():
        tables |= judge(sweep, tables["trials"], tables["samples"], tables["nodes"], _if_any(tables["interactions"]))
        for table, frame in tables.items():
            write_table(store, table, sweep, frame)
        notices.append(f"{sweep}: {len(tables['trials'])} trials, {len(tables['samples'])} samples")
    return notices


def prepared(
    trials: pd.DataFrame, samples: pd.DataFrame, interactions: pd.DataFrame | None, folder: Path = Path()
) -> dict[str, dict[str, pd.DataFrame]]:
    """Contents of the three files -> tables of each sweep, without verdicts. `folder` is for messages.

    Raises DataError as import_folder does."""
    trials = _trials(trials, folder / "trials.csv")
    for name, frame in (("samples", samples), ("interactions", interactions)):
        if frame is not None:
            _known_trials(folder / f"{name}.csv", frame, trials)
    samples = _samples(samples, trials, folder / "samples.csv")
    interactions = _interactions(interactions, trials)
    return {
        str(sweep): _tables(str(sweep), rows, samples, interactions)
        for sweep, rows in trials.groupby("sweep", sort=True)
    }


def _if_any(frame: pd.DataFrame) -> pd.DataFrame | None:
    return None if frame.empty else frame


def _read(path: Path, table: str, notices: list[str]) -> pd.DataFrame:
    """The table's columns of a CSV file; others are named in a notice."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        frame = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False, skipinitialspace=True)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, pd.errors.ParserError) as error:
        raise DataError(f"{path}: not readable as CSV ({error})") from error
    frame.columns = frame.columns.str.strip()
    for column in REQUIRED[table]:
        if column not in frame.columns:
            raise DataError(f"{path}: column {column!r} is missing; found {', '.join(frame.columns)}")
    known = [c for c in frame.columns if c in TABLES[table].names]
    if ignored := [c for c in frame.columns if c not in known]:
        notices.append(f"{path.name}: ignored column{'s' * (len(ignored) > 1)} {', '.join(ignored)}")
    return pd.DataFrame({c: _typed(path, c, frame[c], TABLES[table].field(c).type) for c in known})


_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")


def _typed(path: Path, name: str, column: pd.Series, kind: pa.DataType) -> pd.Series:
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind):
        return column
    if pa.types.is_boolean(kind):
        lower = column.str.lower()
        _all(path, name, column, lower.isin([*_TRUE, *_FALSE]), "true or false")
        return lower.isin(_TRUE)
    number = pd.to_numeric(column.replace("", np.nan), errors="coerce")
    _all(path, name, column, number.notna() | column.isin(["", "NaN", "nan"]), "a number")
    if pa.types.is_integer(kind):
        _all(path, name, column, number.isna() | (number % 1 == 0), "a whole number")
        return number.astype("Int64")
    return number.replace([np.inf, -np.inf], np.nan)


def _all(path: Path, name: str, column: pd.Series, good: pd.Series, expected: str) -> None:
    if not good.all():
        line = int(np.argmin(good.to_numpy()))
        raise DataError(f"{path}:{line + 2}: {name} is {column.iloc[line]!r}, expected {expected}")


def _trials(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    for column in REQUIRED["trials"]:
        empty = frame[column].isna() | (frame[column].astype(str) == "")
        if empty.any():
            raise DataError(f"{path}:{int(empty.to_numpy().argmax()) + 2}: {column} is empty")
    names = frame["sweep"].map(lambda s: bool(_NAME.fullmatch(s)))
    _all(path, "sweep", frame["sweep"], names, "letters, digits, dots and dashes")
    _all(path, "run_end_s", frame["run_end_s"].astype(str), frame["run_end_s"] > frame["run_start_s"], "> run_start_s")
    twice = frame.duplicated(["sweep", "trial"])
    if twice.any():
        line = int(twice.to_numpy().argmax())
        raise DataError(f"{path}:{line + 2}: trial {frame['trial'].iloc[line]!r} occurs twice")
    defaults = {"scale": 1.0, "think_time_s": 7.0, "rep": 1, "valid": True, "invalid_reasons": "", "state": "collected"}
    for name, value in defaults.items():
        frame[name] = frame[name].fillna(value) if name in frame else value
    if "users_real" not in frame:
        frame["users_real"] = (frame["users"] * frame["scale"]).round().astype("Int64")
    return frame


def _known_trials(path: Path, frame: pd.DataFrame, trials: pd.DataFrame) -> None:
    there = set(zip(trials["sweep"], trials["trial"], strict=True))
    known = pd.Series([pair in there for pair in zip(frame["sweep"], frame["trial"], strict=True)])
    if not known.all():
        line = int(np.argmin(known.to_numpy()))
        raise DataError(f"{path}:{line + 2}: trial {frame['trial'].iloc[line]!r} is not in trials.csv")


def _samples(frame: pd.DataFrame, trials: pd.DataFrame, path: Path) -> pd.DataFrame:
    for name, value in (("source", "import"), ("item", "")):
        frame[name] = frame.get(name, value)
    if "unit" not in frame:
        frame["unit"] = frame["metric"].str.extract(_UNIT, expand=False).fillna("")
    keys = ["sweep", "trial", "node", "source", "resource", "item", "metric", "t_s"]
    twice = frame.duplicated(keys)
    if twice.any():
        line = int(twice.to_numpy().argmax())
        raise DataError(f"{path}:{line + 2}: {frame['metric'].iloc[line]} of {frame['node'].iloc[line]} is repeated")
    return _with_phase(frame, trials)


def _interactions(frame: pd.DataFrame | None, trials: pd.DataFrame) -> pd.DataFrame | None:
    if frame is None:
        return None
    frame["ok"] = frame.get("ok", True)
    return _with_phase(frame, trials)


def _with_phase(frame: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """Phase by the trial's run, unless the file says it."""
    if "phase" in frame:
        return frame
    bounds = frame.merge(trials[["sweep", "trial", "run_start_s", "run_end_s"]], on=["sweep", "trial"], how="left")
    inside = (frame["t_s"].to_numpy() >= bounds["run_start_s"]) & (frame["t_s"].to_numpy() < bounds["run_end_s"])
    frame["phase"] = np.where(inside, "run", "outside")
    return frame


def _tables(
    sweep: str, trials: pd.DataFrame, samples: pd.DataFrame, interactions: pd.DataFrame | None
) -> dict[str, pd.DataFrame]:
    tables = {name: schema.empty_table().to_pandas() for name, schema in TABLES.items()}
    tables["trials"] = trials
    tables["samples"] = samples[samples["sweep"] == sweep]
    if interactions is not None:
        tables["interactions"] = interactions[interactions["sweep"] == sweep]
        tables["trials"] = _measured(trials, tables["interactions"])
    tables["nodes"] = tables["samples"][["sweep", "trial", "node", "tier"]].drop_duplicates().assign(cpu_cores=np.nan)
    return tables


def _measured(trials: pd.DataFrame, done: pd.DataFrame) -> pd.DataFrame:
    """Fills what trials.csv leaves out (percentiles, intervals) from the interactions; what it says stays."""
    trials = trials.copy()
    for index, row in trials.iterrows():
        mine = done[done["trial"] == row["trial"]]
        if mine.empty:
            continue
        for name, value in summary(mine, row["run_start_s"], row["run_end_s"], row.get("slo_ms")).items():
            if name not in trials:
                trials[name] = np.nan
            if pd.isna(trials.loc[index, name]):
                trials.loc[index, name] = value
    return trials
