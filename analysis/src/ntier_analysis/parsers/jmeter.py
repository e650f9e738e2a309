"""JTL files as JMeter users have them: CSV with a header, columns in any order, any delimiter.

Ours have more (parsers/client.py); these may lack all but four columns."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd

from ntier_analysis.errors import DataError
from ntier_analysis.parsers.csvfile import header_line, line_of, read_csv

NEEDED = {"timeStamp": "count", "elapsed": "count", "label": "text", "success": "text"}
OPTIONAL = {
    "responseMessage": "text",
    "bytes": "number",
    "allThreads": "number",
    "Hostname": "text",
    "IdleTime": "number",
    "SampleCount": "number",
}
MS = (1e11, 1e14)
"""1973 to 5138 in milliseconds; seconds are less, microseconds are more."""
DATES = {
    "timeStamp": ": milliseconds since 1970, which JMeter writes with -Jjmeter.save.saveservice.timestamp_format=ms"
}
"""For a file with dates, as jmeter.properties suggests them."""
SUMS = "of servers that send sums (mode=Statistical) nobody knows the single requests; run with mode=StrippedBatch"
_TRANSACTION = "Number of samples in transaction"
"""How JMeter begins the response message of a transaction controller's sample."""
_NUMBERED = re.compile(r"((?:-\d+)+)$")
"""How JMeter from 5.0 on names the parts of a sample: Home-0, Home-1; those of a part Home-0-0."""
SHARED = 0.05
"""Samples that begin within another one of their thread and end after it, for each sample that lies within one: if
there are more, several threads have that name. A thread does one thing after the other."""


def jtl(path: Path, *, stamp: str = "start") -> pd.DataFrame:
    """-> `start_s, t_s` (completion), `interaction, response_time_ms, ok, bytes, threads, host, transaction, part`, by
    completion.

    `stamp`: whether timeStamp is the `start` or the `end` of a sample (sampleresult.timestamp.start). `threads`:
    active threads of that JMeter (NaN if not recorded); `host`: where it ran (empty if not recorded); `transaction`:
    the sample sums up others, and is in no such sample; `part`: it lies within another sample of its thread, as a
    redirect or an embedded file does. attrs `threads_told`: whether the file tells threads apart; else parts show only
    by their names. Raises DataError naming file, line and column, also for XML and for a file
    without header."""
    delimiter = _delimiter(path, header_line(path))
    raw = read_csv(path, NEEDED, optional=OPTIONAL, delimiter=delimiter, strict=True, hints=DATES)
    success = raw["success"].str.lower()
    count = raw.get("SampleCount", pd.Series(1.0, index=raw.index)).fillna(1)
    for wrong, name, expected in (
        (count > 1, "SampleCount", f"1: {SUMS}"),
        (~success.isin(["true", "false"]), "success", "true or false"),
        (raw["elapsed"] < 0, "elapsed", ">= 0"),
        (~raw["timeStamp"].between(*MS), "timeStamp", "milliseconds since 1970 (13 digits); are these seconds?"),
    ):
        if wrong.any():
            row = int(wrong.to_numpy().argmax())
            raise DataError(f"{path}:{line_of(path, row, delimiter)}: {name} is {raw[name][row]}, expected {expected}")
    idle = raw["IdleTime"].fillna(0) if "IdleTime" in raw else 0  # timers in a transaction, not in its elapsed
    seconds = (raw["elapsed"] + idle) / 1000
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
    frame["part"] = False
    threads = _threads(frame["host"], path, delimiter)
    if threads is None:
        frame["part"], told = _parts_by_name(frame), False
    else:
        sums = _nested(frame[frame["transaction"]], threads)
        if _one_after_the_other(sums):
            frame.loc[sums.index[sums["inside"]], "transaction"] = False
        found = _nested(frame, threads)
        across, own = found["across"].sum(), _one_after_the_other(found)
        frame["part"] = found["inside"] & ~found["beside"] if own else _parts_by_name(frame)
        told = own or across <= SHARED * len(frame)  # some overlap by the clock's milliseconds
    frame.attrs["threads_told"] = told
    return frame.sort_values("t_s", kind="stable", ignore_index=True)


def _threads(hosts: pd.Series, path: Path, delimiter: str) -> pd.Series | None:
    """A number for each thread of each host; None, where the file does not name threads."""
    try:
        names = read_csv(path, {"threadName": "text"}, delimiter=delimiter, strict=True)["threadName"]
    except DataError:
        return None
    return hosts.groupby([hosts, names]).ngroup()


def _one_after_the_other(found: pd.DataFrame) -> bool:
    """Whether each name is one thread's, by `_nested`."""
    return bool(found["across"].sum() <= SHARED * found["inside"].sum())


def _parts_by_name(frame: pd.DataFrame) -> pd.Series:
    """Where threads are not told apart: `Home-0` and its like are parts of `Home` if each lies within one of that name,
    and each `Home-0` begins with one, as JMeter's first part does. (Others of such names do so by chance at most.)"""
    part = pd.Series(False, index=frame.index)
    bases = {label: _NUMBERED.sub("", label) for label in frame["interaction"].unique()}
    numbered = {base for label, base in bases.items() if label == f"{base}-0" and base in bases}
    rows = frame[["host", "interaction", "start_s", "t_s"]].assign(base=frame["interaction"].map(bases))
    for (_, base), some in rows[rows["base"].isin(numbered)].groupby(["host", "base"]):
        of_base = some["interaction"] == base
        outer, inner = some[of_base].sort_values("start_s"), some[~of_base]
        firsts = (1000 * inner.loc[inner["interaction"] == f"{base}-0", "start_s"]).round().value_counts()
        if outer.empty or firsts.empty:
            continue
        begins, ends = (1000 * outer["start_s"]).round(), (1000 * outer["t_s"]).round().cummax().to_numpy()
        last = np.searchsorted(begins, (1000 * inner["start_s"]).round(), side="right") - 1
        within = (last >= 0) & (ends[last] >= (1000 * inner["t_s"]).round())
        begun = np.minimum(firsts, begins.value_counts().reindex(firsts.index, fill_value=0)).sum() / firsts.sum()
        if min(within.mean(), begun) >= 1 - SHARED:
            part[inner.index] = True
    return part


def _nested(samples: pd.DataFrame, threads: pd.Series) -> pd.DataFrame:
    """`inside`: it lies within another sample of its thread; `beside`: but it took no time, and may have been before
    the other one, or is the same line again; `across`: it begins within another one and ends after it."""
    numbers = {label: len(found[1]) for label in samples["interaction"].unique() if (found := _NUMBERED.search(label))}
    rows = pd.DataFrame(
        {
            "thread": threads[samples.index],
            "start": samples["start_s"].round(3),
            "end": samples["t_s"].round(3),
            "label": samples["interaction"],
            "number": samples["interaction"].map(numbers).fillna(0),
            "line": samples.index,
        }
    )
    # of two that take the same time the outer one has no number; of transactions it is written last
    by = {"thread": True, "start": True, "end": False, "number": True, "line": False}
    rows = rows.sort_values([*by], ascending=[*by.values()])
    reach = rows.groupby("thread")["end"].cummax().groupby(rows["thread"]).shift()
    at_once, numbered = rows["end"] == rows["start"], rows["number"] > 0
    within = (rows["start"] < reach) | (at_once & numbered & (rows["start"] == reach))
    ends = rows["end"] <= reach
    before = rows.groupby("thread")[["start", "end", "label"]].shift()
    again = (rows[["start", "end", "label"]] == before).all(axis=1)
    beside = again | (at_once & ~numbered & (rows["start"] == before["start"]))
    return pd.DataFrame({"inside": within & ends, "beside": beside, "across": within & ~ends}).reindex(samples.index)


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
