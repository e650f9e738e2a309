"""JTL files as JMeter users have them: CSV with a header, columns in any order, any delimiter.

Ours have more (parsers/client.py); these may lack all but four columns."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from ntier_analysis.errors import DataError
from ntier_analysis.parsers.csvfile import header_line, line_of, read_csv

NEEDED = {"timeStamp": "count", "elapsed": "count", "label": "text", "success": "text"}
OPTIONAL = {"responseMessage": "text", "bytes": "number", "allThreads": "number", "Hostname": "text"}
MS = (1e11, 1e14)
"""1973 to 5138 in milliseconds; seconds are less, microseconds are more."""
_TRANSACTION = "Number of samples in transaction"
"""How JMeter begins the response message of a transaction controller's sample."""


def jtl(path: Path, *, stamp: str = "start") -> pd.DataFrame:
    """-> `start_s, t_s` (completion), `interaction, response_time_ms, ok, bytes, threads, host, transaction`, by
    completion.

    `stamp`: whether timeStamp is the `start` or the `end` of a sample (sampleresult.timestamp.start). `threads`:
    active threads of that JMeter (NaN if not recorded); `host`: where it ran (empty if not recorded); `transaction`:
    the sample sums up others, and is in no such sample. Raises DataError naming file, line and column, also for XML and
    for a file without header."""
    delimiter = _delimiter(path, header_line(path))
    raw = read_csv(path, NEEDED, optional=OPTIONAL, delimiter=delimiter, strict=True)
    success = raw["success"].str.lower()
    for wrong, name, expected in (
        (~success.isin(["true", "false"]), "success", "true or false"),
        (raw["elapsed"] < 0, "elapsed", ">= 0"),
        (~raw["timeStamp"].between(*MS), "timeStamp", "milliseconds since 1970 (13 digits); are these seconds?"),
    ):
        if wrong.any():
            row = int(wrong.to_numpy().argmax())
            raise DataError(f"{path}:{line_of(path, row, delimiter)}: {name} is {raw[name][row]}, expected {expected}")
    seconds = raw["elapsed"] / 1000
    start = raw["timeStamp"] / 1000 - (seconds if stamp == "end" else 0)
    message = raw.get("responseMessage", pd.Series("", index=raw.index)).fillna("")
    frame = pd.DataFrame(
        {
            "start_s": start,
            "t_s": start + seconds,
            "interaction": raw["label"],
            "response_time_ms": raw["elapsed"].astype(float),
            "ok": success == "true",
            "bytes": raw.get("bytes", float("nan")),
            "threads": raw.get("allThreads", float("nan")),
            "host": raw.get("Hostname", pd.Series("", index=raw.index)).fillna("").astype(str),
            "transaction": message.str.startswith(_TRANSACTION),
        }
    )
    if frame["transaction"].any():
        frame["transaction"] &= ~_inside(frame, path, delimiter)
    return frame.sort_values("t_s", kind="stable", ignore_index=True)


def _inside(frame: pd.DataFrame, path: Path, delimiter: str) -> pd.Series:
    """Transactions within another one of their thread: the outer one is what the user did. None, where the file does
    not name threads."""
    try:
        threads = read_csv(path, {"threadName": "text"}, delimiter=delimiter, strict=True)["threadName"]
    except DataError:
        return pd.Series(False, index=frame.index)
    rows = pd.DataFrame({"thread": threads, "start": frame["start_s"].round(3), "end": frame["t_s"].round(3)})
    rows = rows[frame["transaction"]].assign(line=frame.index[frame["transaction"]])
    # of two that take the same time the outer one is written last
    rows = rows.sort_values(["thread", "start", "end", "line"], ascending=[True, True, False, False])
    reach = rows.groupby("thread")["end"].cummax().groupby(rows["thread"]).shift()
    inside = (rows["end"] <= reach) & (rows["start"] < reach)
    return inside.reindex(frame.index, fill_value=False)


def _delimiter(path: Path, header: str) -> str:
    if header.startswith("<"):
        raise DataError(f"{path}: XML; expected a CSV JTL (-Jjmeter.save.saveservice.output_format=csv)")
    header = header.replace('"', "")  # of a name: R, and Python's csv.QUOTE_ALL, write all names so
    match = re.search(r"timeStamp([^A-Za-z])|([^A-Za-z])timeStamp", header)
    if match:
        return match[1] or match[2]
    if re.match(r"\d{10,13}\D", header):
        raise DataError(
            f"{path}:1: no header with the names of the columns; JMeter writes it with "
            "-Jjmeter.save.saveservice.print_field_names=true, or put it there: "
            "timeStamp,elapsed,label,responseCode,responseMessage,threadName,..."
        )
    raise DataError(f"{path}:1: column 'timeStamp' is missing; found {header[:80]}")
