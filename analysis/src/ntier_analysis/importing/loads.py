"""Which parts of a load test are its trials: those of a file (`--loads`), or its plateaus."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from ntier_analysis.contracts.files import read_text
from ntier_analysis.errors import DataError
from ntier_analysis.parsers.generated import mean_of_steps, seconds_of
from ntier_analysis.validity.imported import LAW

PLATEAU_S = 10
"""A plateau is at least this long: intervals are made of ten parts of a second and more."""
DEVIATES, DEVIATES_S = 0.02, 2
"""So far, and for so many seconds on end, the number of users may be another one: a user who ends and the next."""
SETTLES, SETTLES_S = 0.1, 10.0
"""Share of a plateau that is left out at its begin, and the most of it: what began under the load before ends then."""

WHEN = ("start", "end")
TOLD = ("throughput_per_s", "response_time_mean_ms", "errors")
"""Columns that a file of loads may have in place of a load generator's file."""
COLUMNS = (*WHEN, "users", "trial", "rep", *TOLD)


@dataclass(frozen=True)
class Part:
    """A trial's part of the time: its run phase [start_s, end_s), the users, and what is told of it."""

    start_s: float
    end_s: float
    users: int
    trial: str = ""
    rep: int | None = None
    told: dict[str, float] = field(default_factory=dict)


def plateaus(users: pd.DataFrame, ramp_up_s: float | None = None, ramp_down_s: float | None = None) -> list[Part]:
    """`users`: t_s, users (steps, see parsers/generated.py) -> the longest parts with one number of users, a second and
    more after each other; those of less than PLATEAU_S are ramps. `ramp_up_s`, `ramp_down_s`: what to leave out at
    begin and end of each."""
    if len(users) < 2:
        return []
    first, level = _by_second(users)
    loads = []
    for begin, end in _constant(level):
        if end - begin < PLATEAU_S:
            continue
        length = end - begin
        lead = min(SETTLES * length, SETTLES_S) if ramp_up_s is None else ramp_up_s
        start_s, end_s = first + begin + lead, first + end - (ramp_down_s or 0.0)
        # 0.6 users on average are no user: arrivals that each stay for a moment
        if end_s > start_s and abs(mean_of_steps(users, start_s, end_s) - level[begin]) <= LAW * level[begin]:
            loads.append(Part(start_s, end_s, int(level[begin])))
    return loads


def _by_second(users: pd.DataFrame) -> tuple[float, np.ndarray]:
    """First whole second, and the mean number of users in each, rounded."""
    t, n = users["t_s"].to_numpy(float), users["users"].to_numpy(float)
    first, last = math.floor(t[0]), math.ceil(t[-1])
    if last - first > 1e6:
        raise DataError(f"the load's times span {(last - first) / 86400:.0f} days; expected one test")
    edges = np.arange(first, max(last, first + 1) + 1, dtype=float)
    until = np.append(t, edges[-1])
    area = np.concatenate([[0.0], np.cumsum(n * np.diff(until))])
    return float(first), np.round(np.diff(np.interp(edges, until, area)))


def _constant(level: np.ndarray) -> list[tuple[int, int]]:
    """[begin, end) of the parts with one number of users, but for short and small deviations."""
    stretches, begin = [], 0
    while begin < len(level):
        last, n = begin, begin + 1
        while n < len(level) and n - last <= DEVIATES_S + 1:
            if level[n] == level[begin]:
                last = n
            elif abs(level[n] - level[begin]) > max(1.0, DEVIATES * level[begin]):
                break
            n += 1
        if level[begin] > 0:
            stretches.append((begin, last + 1))
        begin = last + 1
    return stretches


# ---- the file ------------------------------------------------------------------------------------------------------


def read_loads(path: Path, first_s: float | None) -> list[Part]:
    """A CSV file with a line per trial: start, end (seconds since 1970, or after the first request, `first_s`; or RFC
    3339 with a zone), users, and any of trial, rep, throughput_per_s, response_time_mean_ms, errors.

    Raises DataError naming file, line and column."""
    try:
        reader = csv.DictReader(read_text(path).splitlines(), skipinitialspace=True, strict=True)
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise DataError(f"{path}: not readable as CSV ({error})") from None
    header = [str(name) for name in reader.fieldnames or []]
    for name in ("start", "end", "users"):
        if name not in header:
            raise DataError(f"{path}:1: column {name!r} is missing; allowed are {', '.join(COLUMNS)}")
    odd = next((name for name in header if name not in COLUMNS), None)
    if odd is not None or len(set(header)) < len(header):
        raise DataError(f"{path}:1: column {odd or 'twice'!r}; allowed are {', '.join(COLUMNS)}, each once")
    parts = [_part(row, f"{path}:{line}", first_s) for line, row in rows]
    if not parts:
        raise DataError(f"{path}: no loads; expected a line per trial")
    return parts


def _part(row: dict, place: str, first_s: float | None) -> Part:
    if None in row or None in row.values():
        raise DataError(f"{place}: another number of fields than the header has")
    start_s, end_s = (_moment(row[name], name, place, first_s) for name in WHEN)
    if end_s <= start_s:
        raise DataError(f"{place}: end is {row['end'][:40]!r}, expected more than start, {row['start'][:40]!r}")
    told = {name: _number(row[name], name, place) for name in TOLD if row.get(name, "").strip()}
    users, rep = (_whole(row.get(name) or "", name, place) for name in ("users", "rep"))
    if users is None:
        raise DataError(f"{place}: users is empty, expected a whole number from 1")
    return Part(start_s, end_s, users, (row.get("trial") or "").strip(), rep, told)


def _moment(text: str, name: str, place: str, first_s: float | None) -> float:
    t, wrong = seconds_of(pd.Series([text.strip()]))
    if not wrong[0]:
        return float(t[0])
    after = _number(text, name, place, "seconds since 1970 or after the first request, or RFC 3339 with its zone")
    if after >= 1e8 or first_s is None:
        raise DataError(f"{place}: {name} is {text[:40]!r}, expected seconds since 1970, or RFC 3339 with its zone")
    return first_s + after


def _number(text: str, name: str, place: str, expected: str = "a number >= 0") -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise DataError(f"{place}: {name} is {text[:40]!r}, expected {expected}")
    return value


def _whole(text: str, name: str, place: str) -> int | None:
    if not text.strip():
        return None
    if not (text.strip().isascii() and text.strip().isdigit() and int(text[:12]) > 0 and len(text.strip()) < 10):
        raise DataError(f"{place}: {name} is {text[:40]!r}, expected a whole number from 1")
    return int(text)
