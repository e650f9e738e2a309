"""What is known of interactions that carried a W3C trace context: the client's list of them, spans of servers, and the
statements that a database logged with the comment of sqlcommenter's form."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pandas as pd

from ntier_analysis.contracts.files import lines
from ntier_analysis.errors import DataError
from ntier_analysis.parsers.csvfile import line_of, read_csv

TRACED = {"t_start_ms": "count", "user": "count", "trace_id": "text"}
SPANS = {
    "trace_id": "text",
    "span_id": "text",
    "parent_id": "text",
    "kind": "text",
    "name": "text",
    "start_us": "count",
    "duration_us": "count",
}
KINDS = ("server", "internal", "client")
"""As OpenTelemetry has them: the request that was served, a wait inside of it, a call to the tier behind."""
IDS = {"trace_id": r"[0-9a-f]{32}", "span_id": r"[0-9a-f]{16}", "parent_id": r"[0-9a-f]{16}"}

CONTEXT = re.compile(rb"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_COMMENT = re.compile(rb"/\*[^*]*traceparent='00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}'[^*]*\*/")
_MYSQL_TIME = re.compile(rb"^# Time: (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+)Z$")
_MYSQL_QUERY = re.compile(rb"^# Query_time: (\d+\.\d+) ")
_POSTGRESQL = re.compile(rb"^(\d+\.\d+) \[\d+\] LOG:  duration: (\d+\.\d+) ms  ")
_STATEMENT = ["trace_id", "parent_id", "start_s", "end_s"]


def traced(path: Path) -> pd.DataFrame:
    """`traces.csv` of a client -> `start_ms, user, trace_id`, a row per interaction with a context; start (epoch) and
    user (through all clients) are those of its line in the JTL. Raises DataError naming the line."""
    frame = read_csv(path, TRACED).rename(columns={"t_start_ms": "start_ms"})
    _check_ids(path, frame, ["trace_id"])
    return frame


def spans(path: Path) -> pd.DataFrame:
    """`spans.csv` of a server -> `trace_id, span_id, parent_id, kind, name, start_s, end_s` (epoch s). Raises DataError
    naming the line."""
    frame = read_csv(path, SPANS)
    _check_ids(path, frame, list(IDS))
    wrong = ~frame["kind"].isin(KINDS) | (frame["duration_us"] < 0)
    if wrong.any():
        row = int(wrong.to_numpy().argmax())
        said = f"kind {frame['kind'][row]!r}, duration_us {frame['duration_us'][row]}"
        raise DataError(f"{path}:{line_of(path, row)}: {said}; allowed are {', '.join(KINDS)}, and 0 or more")
    start = frame["start_us"] / 1e6
    frame = frame.assign(start_s=start, end_s=start + frame["duration_us"] / 1e6)
    return frame.drop(columns=["start_us", "duration_us"])


def mysql_statements(path: Path) -> pd.DataFrame:
    """MySQL's slow query log, with times in UTC -> `trace_id, parent_id, start_s, end_s` of its statements with a
    comment. `# Time` is the end; `Query_time` counts from the start. `attrs`: `others`, how many have no comment;
    `steps`, into how many a statement is cut that are logged apart."""
    rows, others = [], 0
    end_s, lasted_s, text = None, 0.0, b""

    def close() -> None:
        nonlocal others
        if end_s is None or not text:
            return
        row = _row(text, end_s - lasted_s, end_s)
        others += row is None
        rows.extend([row] if row else [])

    for number, line in enumerate(lines(path), start=1):
        if time := _MYSQL_TIME.match(line):
            close()
            end_s, lasted_s, text = datetime.fromisoformat(time[1].decode() + "+00:00").timestamp(), 0.0, b""
        elif line.startswith(b"# Time:"):
            raise DataError(
                f"{path}:{number}: time is {line[8:48]!r}, expected UTC with fractions (log_timestamps=UTC)"
            )
        elif query := _MYSQL_QUERY.match(line):
            lasted_s = float(query[1])
        elif not line.startswith((b"# User@Host:", b"SET timestamp=", b"use ")):
            text += line + b"\n"
    close()
    return _statements(rows, others, 1)


def postgresql_statements(path: Path) -> pd.DataFrame:
    """PostgreSQL's log with `log_line_prefix = '%n [%p] '` -> as `mysql_statements`. A statement of the extended
    protocol may have a line each for parse, bind and execute; the line is written at the end."""
    rows, others = [], 0
    end_s, lasted_s, text = None, 0.0, b""

    def close() -> None:
        nonlocal others
        if end_s is None:
            return
        row = _row(text, end_s - lasted_s, end_s)
        others += row is None
        rows.extend([row] if row else [])

    for line in lines(path):
        if line.startswith(b"\t"):  # goes on with the one before
            text += line + b"\n"
            continue
        close()
        match = _POSTGRESQL.match(line)
        end_s, lasted_s, text = (float(match[1]), float(match[2]) / 1000, line) if match else (None, 0.0, b"")
    close()
    return _statements(rows, others, 3)


def _row(text: bytes, start_s: float, end_s: float) -> tuple[str, str, float, float] | None:
    """The last comment counts: it is appended, and what is before it may be a user's text."""
    found = _COMMENT.findall(text)
    return (found[-1][0].decode(), found[-1][1].decode(), start_s, end_s) if found else None


def _statements(rows: list[tuple[str, str, float, float]], others: int, steps: int) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=_STATEMENT).astype({"trace_id": "str", "parent_id": "str"})
    frame.attrs |= {"others": others, "steps": steps}
    return frame


def _check_ids(path: Path, frame: pd.DataFrame, names: list[str]) -> None:
    for name in names:
        wrong = ~frame[name].fillna("").str.fullmatch(IDS[name])
        if wrong.any():
            row = int(wrong.to_numpy().argmax())
            digits = 32 if name == "trace_id" else 16
            raise DataError(
                f"{path}:{line_of(path, row)}: {name} is {frame[name][row]!r}, expected {digits} hexadecimal digits"
            )
