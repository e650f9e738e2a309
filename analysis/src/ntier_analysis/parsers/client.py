"""What the client writes: interactions (JTL), think times, users' lives, the heartbeat, the driver's own CPU."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd

from ntier_analysis.contracts.files import lines
from ntier_analysis.errors import DataError
from ntier_analysis.parsers.csvfile import read_csv

JTL = {
    "timeStamp": "count",
    "elapsed": "count",
    "label": "text",
    "responseCode": "text",
    "threadName": "text",
    "success": "text",
    "failureMessage": "text",
    "bytes": "count",
    "Latency": "count",
    "Connect": "count",
}


def interactions(path: Path, *, addresses: bool = False) -> pd.DataFrame:
    """JMeter's JTL -> `start_s, t_s` (completion), `page_s` (first byte of the page), `interaction, response_time_ms,
    ok, bytes, connect_ms, code, failure, user`; one row per interaction, in order of completion. Times: epoch s; JMeter
    writes the start (sampleresult.timestamp.start=true). `user` counts from 0 within the client (the end of the
    thread's name; -1 where it has no number). `addresses`: also `url`, the page's path and query, empty where the file
    does not have it. Raises DataError naming the line."""
    raw = read_csv(path, JTL, optional={"URL": "text"} if addresses else None)
    success = raw["success"].str.lower()
    odd = ~success.isin(["true", "false"])
    if odd.any():
        line = int(odd.to_numpy().argmax())
        raise DataError(f"{path}:{line + 2}: success is {raw['success'][line]!r}, expected true or false")
    if (raw["elapsed"] < 0).any():
        line = int((raw["elapsed"] < 0).to_numpy().argmax())
        raise DataError(f"{path}:{line + 2}: elapsed is {raw['elapsed'][line]}, expected >= 0")
    start = raw["timeStamp"].to_numpy() / 1000
    frame = pd.DataFrame(
        {
            "start_s": start,
            "t_s": start + raw["elapsed"].to_numpy() / 1000,
            "interaction": raw["label"],
            "response_time_ms": raw["elapsed"].astype(float),
            "ok": success == "true",
            "bytes": raw["bytes"],
            "page_s": start + raw["Latency"].to_numpy() / 1000,
            "connect_ms": raw["Connect"].astype(float),
            "code": raw["responseCode"],
            "failure": raw["failureMessage"],
            "user": raw["threadName"].str.extract(r"-(\d+)$")[0].fillna(0).astype(int) - 1,
        }
    )
    if addresses:
        urls = raw["URL"] if "URL" in raw else pd.Series("", index=raw.index)
        frame["url"] = urls.fillna("").str.replace(r"^[a-z]+://[^/]*", "", regex=True)
    frame = frame.sort_values("t_s", kind="stable", ignore_index=True)
    frame.attrs["torn_lines"] = raw.attrs["torn_lines"]
    return frame


def thinks(path: Path) -> pd.DataFrame:
    """`start_s, end_s, user, state, drawn_ms, actual_ms`; one row per think, also those that were interrupted."""
    raw = read_csv(
        path, {"t_start_ms": "number", "user": "count", "state": "text", "drawn_ms": "number", "actual_ms": "number"}
    )
    for name in ("drawn_ms", "actual_ms"):
        wrong = ~(raw[name] >= 0)
        if wrong.any():
            line = int(wrong.to_numpy().argmax())
            raise DataError(f"{path}:{line + 2}: {name} is {raw[name][line]}, expected >= 0")
    start = raw["t_start_ms"] / 1000
    return pd.DataFrame(
        {
            "start_s": start,
            "end_s": start + raw["actual_ms"] / 1000,
            "user": raw["user"],
            "state": raw["state"],
            "drawn_ms": raw["drawn_ms"],
            "actual_ms": raw["actual_ms"],
        }
    )


def users(path: Path) -> pd.DataFrame:
    """`user, start_s, end_s, pending_s, author`: the life of each emulated user; pending = how long the interaction
    that was cut off at its end had been waiting (0 = none); author = 1 or 0, NaN where the file does not say. `user`
    counts through all clients, as in `thinks`."""
    columns = {"user": "count", "t_start_ms": "number", "t_end_ms": "number"}
    raw = read_csv(path, columns, optional={"pending_ms": "number", "author": "number"})
    twice = raw["user"].duplicated()
    if twice.any():
        line = int(twice.to_numpy().argmax())
        raise DataError(f"{path}:{line + 2}: user {raw['user'][line]} occurs twice")
    author = raw["author"] if "author" in raw else pd.Series(np.nan, index=raw.index)
    wrong = ~(author.isin([0, 1]) | author.isna())
    if wrong.any():
        line = int(wrong.to_numpy().argmax())
        raise DataError(f"{path}:{line + 2}: author is {author[line]:g}, expected 0 or 1")
    pending = raw["pending_ms"].fillna(0) / 1000 if "pending_ms" in raw else np.zeros(len(raw))
    return pd.DataFrame(
        {
            "user": raw["user"],
            "start_s": raw["t_start_ms"] / 1000,
            "end_s": raw["t_end_ms"] / 1000,
            "pending_s": pending,
            "author": author,
        }
    )


_PAUSE = re.compile(rb"^\[(\d+)ms\]\s*GC\(\d+\) Pause .*?([\d.]+)ms$")


def gc_pauses(path: Path) -> pd.DataFrame:
    """The JVM's log (`-Xlog:gc:file=...:timemillis`) -> `t_s` (end), `pause_ms`: when all users stood still."""
    matches = [match.groups() for line in lines(path) if (match := _PAUSE.match(line))]
    times, pauses = [int(t) / 1000 for t, _ in matches], [float(ms) for _, ms in matches]
    return pd.DataFrame({"t_s": times, "pause_ms": pauses}, dtype=float)


PROGRESS = ("t_s", "users", "completed")
FURTHER = (
    "started",
    "failed",
    "in_flight",
    "errors",
    "response_time_mean_ms",
    "content_checked",
    "content_wrong",
    "retries",
    "statements",
)
"""What a driver may write besides; NaN where its file does not say."""


def progress(path: Path) -> pd.DataFrame:
    """The heartbeat, one row per second: the columns of `PROGRESS` and `FURTHER` (`statements` that the pages say they
    took); counts are cumulative since the start, `users` and `in_flight` of the moment."""
    raw = read_csv(path, dict.fromkeys(PROGRESS, "number"), optional=dict.fromkeys(FURTHER, "number"))
    return raw.assign(**{name: np.nan for name in FURTHER if name not in raw})


def driver_cpu(path: Path) -> pd.DataFrame:
    """What the driver's processes used -> `t_s` (end of the interval), `cores`, `busiest_pct` (of one core, by the
    thread that used most; NaN where its threads were not known yet), `thread` (its name)."""
    return read_csv(path, {"t_s": "number", "cores": "number", "busiest_pct": "number", "thread": "text"})
