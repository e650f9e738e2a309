"""Locust's tables: the history of its sums (`--csv NAME` writes NAME_stats_history.csv), or one line per request, which
people write by a listener of `events.request`. NAME_stats.csv is one sum without times, and refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ntier_analysis.errors import DataError
from ntier_analysis.parsers.csvfile import header_line, line_of, names_of, read_csv
from ntier_analysis.parsers.generated import (
    TIMES,
    Generated,
    by_completion,
    in_whole_seconds,
    seconds_of,
    spread,
    steps,
)

COUNT, FAILED, MEAN = "Total Request Count", "Total Failure Count", "Total Average Response Time"
ALL = "Aggregated"
HISTORY = {"Timestamp": "count", "User Count": "whole", "Name": "text", COUNT: "whole", FAILED: "whole", MEAN: "number"}
REQUESTS = "name, response_time (ms) and one of start_time (its beginning) or timestamp (its completion)"
HISTORY_S = 1.0
"""How often Locust writes a line of its history, unless its CSV_STATS_INTERVAL_SEC says otherwise."""
BETWEEN, REPEATED = 1.5, 0.1
"""Sums of a line are repeated from so many lines' time without a change on; the share of changes after such a time,
beyond that of requests at random, from which on the sums do not change when requests end."""
_GOOD = ("", "none", "null", "false", "0")
_TRUE, _FALSE = ("true", "1", "yes", "success"), ("false", "0", "no", "failure")


def locust(path: Path) -> Generated:
    """Raises DataError naming file, line and column."""
    header = header_line(path)
    names = set(names_of(header))
    if {"Timestamp", "User Count"} <= names:
        return _history(path)
    if {"Type", "Name", "Request Count"} <= names:
        raise DataError(
            f"{path}: sums of the whole test, without times; expected its *_stats_history.csv, or a table with "
            f"a line per request: {REQUESTS}"
        )
    return _requests(path, header)


def _history(path: Path) -> Generated:
    raw = read_csv(path, HISTORY, strict=True)
    rows = np.flatnonzero((raw["Name"] == ALL).to_numpy())
    frame = raw.iloc[rows].reset_index(drop=True)
    if len(frame) < 2:
        raise DataError(f"{path}: {len(frame)} lines of {ALL!r}, expected one for each second")
    columns = {c: frame[c].to_numpy(float, na_value=np.nan) for c in ("Timestamp", "User Count", COUNT, FAILED)}
    columns[MEAN] = np.where(columns[COUNT] == 0, 0.0, frame[MEAN].to_numpy(float))

    def refuse(wrong: np.ndarray, name: str, expected: str) -> None:
        if wrong.any():
            row = int(wrong.argmax())
            raise DataError(
                f"{path}:{line_of(path, int(rows[row]))}: {name} is {columns[name][row]:.15g}, expected {expected}"
            )

    for name in columns:
        refuse(~(np.isfinite(columns[name]) & (columns[name] >= 0)), name, "a number >= 0")
    refuse(~((columns["Timestamp"] > 1e8) & (columns["Timestamp"] < 1e11)), "Timestamp", "seconds since 1970")
    refuse(np.diff(columns["Timestamp"], prepend=-1) < 0, "Timestamp", "a time not before the line above")
    for name in (COUNT, FAILED):  # --reset-stats begins anew when all users are there
        refuse(
            np.diff(columns[name], prepend=0) < 0,
            name,
            "no less than in the line above (one test, without --reset-stats)",
        )
    refuse(columns[FAILED] > columns[COUNT], FAILED, f"at most {COUNT}")
    totals = pd.DataFrame(
        {
            "t_s": columns["Timestamp"],
            "done": columns[COUNT],
            "failed": columns[FAILED],
            "time_ms": columns[COUNT] * columns[MEAN],
        }
    ).drop_duplicates("t_s", keep="last", ignore_index=True)
    notes = [
        "percentiles and stops of the system: Locust's history has sums only",
        "the response time of successes alone: Locust's mean has failed requests in it",
    ]
    told, when = _when_told(totals["t_s"].to_numpy(), totals["done"].to_numpy())
    notes += when
    users = steps(columns["Timestamp"], columns["User Count"])
    known = users["t_s"] <= totals["t_s"].iloc[told[-1]]
    return Generated(None, users[known], totals.iloc[told].reset_index(drop=True), notes=tuple(notes))


def _when_told(t_s: np.ndarray, done: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Lines between which sums may be interpolated, and what is not known of the time between. Workers of a distributed
    test report every 3 s (Locust's WORKER_REPORT_INTERVAL): until then a line repeats the sums of the one above, as if
    nothing had been done. Where they stay for longer than two reports nothing was. Workers that report in different
    seconds cannot be told apart: their sums are left as they are."""
    line_s = float(np.median(np.diff(t_s)))
    notes = [f"when within {line_s:g} s requests ended (a line of the history each {line_s:g} s)"]
    notes = notes if line_s > HISTORY_S else []
    lines, new = np.arange(len(t_s)), np.flatnonzero(np.diff(done) > 0) + 1
    if len(new) < 3:
        return lines, notes
    gaps = np.diff(t_s[new])
    per_line = (done[new[-1]] - done[new[0]]) / (t_s[new[-1]] - t_s[new[0]]) * line_s
    repeated = float((gaps > BETWEEN * line_s).mean())
    if repeated <= np.exp(-per_line) + REPEATED:  # rare requests leave lines without any, too
        return lines, notes
    every_s = float(np.median(gaps))
    if every_s <= BETWEEN * line_s:
        return lines, [
            f"when requests ended, within some seconds ({100 * repeated:.0f} % of the changes of the sums come after "
            "lines without one: perhaps Locust's workers report in different seconds)"
        ]
    told = f"when within {every_s:g} s requests ended (the sums change so often: perhaps Locust's workers report them)"
    before, last = np.append(0, new[:-1]), len(t_s) - 1
    long = t_s[new] - t_s[before] > 2 * every_s
    begins = np.searchsorted(t_s, t_s[new[long]] - every_s, side="right") - 1
    ends = [last] if t_s[last] - t_s[new[-1]] > 2 * every_s else []  # else more was done since than is told
    return np.unique([0, *begins, *new, *ends]), [told]


def _requests(path: Path, header: str) -> Generated:
    names = names_of(header)
    stamp = [n for n in ("start_time", "timestamp") if n in names]
    if len(stamp) != 1 or not {"name", "response_time"} <= set(names):
        raise DataError(f"{path}:1: neither Locust's history nor a line per request: {REQUESTS}; found {header[:120]}")
    optional = {"success": "text", "exception": "text", "response_length": "number", "user_count": "number"}
    needed = {stamp[0]: "text", "name": "text", "response_time": "number"}
    raw = read_csv(path, needed, optional=optional, strict=True)
    if raw.empty:
        raise DataError(f"{path}: a header and no requests")
    t, wrong = seconds_of(raw[stamp[0]])
    response = raw["response_time"].to_numpy(float)

    def refuse(bad: np.ndarray, name: str, expected: str) -> None:
        if bad.any():
            row = int(bad.argmax())
            raise DataError(f"{path}:{line_of(path, row)}: {name} is {raw[name][row]!r}, expected {expected}")

    refuse(wrong, stamp[0], TIMES)
    refuse(~(np.isfinite(response) & (response >= 0)), "response_time", "milliseconds, a number >= 0")
    refuse((raw["name"].str.strip() == "").to_numpy(), "name", "a name")
    ok = np.ones(len(raw), dtype=bool)
    notes = []
    if "success" in raw:
        said = raw["success"].str.strip().str.lower()
        refuse((~said.isin(_TRUE + _FALSE)).to_numpy(), "success", "true or false")
        ok &= said.isin(_TRUE).to_numpy()
    if "exception" in raw:
        ok &= raw["exception"].str.strip().str.lower().isin(_GOOD).to_numpy()
    if not {"success", "exception"} & set(raw.columns):
        notes.append("which requests failed (the table has neither success nor exception)")
    if in_whole_seconds(t):
        t = spread(t)
        notes.append("when in its second a request began or ended (the times are whole seconds)")
    completed = t + response / 1000 if stamp[0] == "start_time" else t
    size = raw["response_length"] if "response_length" in raw else float("nan")
    frame = by_completion(completed, response, raw["name"].to_numpy(), ok, np.asarray(size, dtype=float))
    users = raw["user_count"].to_numpy(float) if "user_count" in raw else np.array([])
    if "user_count" in raw:
        refuse(~(np.isfinite(users) & (users >= 0)), "user_count", "a number >= 0")
    return Generated(frame, steps(completed if len(users) else [], users), notes=tuple(notes))
