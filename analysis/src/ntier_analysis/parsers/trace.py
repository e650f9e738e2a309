"""The middleware's trace: one record per use of a replica's connection (`middleware_trace.csv`, see Trace.java)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ntier_analysis.errors import DataError
from ntier_analysis.parsers.csvfile import read_csv

COLUMNS = {
    "number": "count",
    "choice_ns": "count",
    "begin_ns": "count",
    "end_ns": "count",
    "replica": "text",
    "seen": "text",
}


def middleware_trace(path: Path) -> pd.DataFrame:
    """-> frame `number, choice_ns, begin_ns, end_ns, replica, seen`, ordered by number; times are UTC epoch ns of one
    monotonic clock. choice_ns is 0 where no policy was asked (writes), begin_ns and end_ns where no connection came.

    Raises DataError for a number that occurs twice, and for times that are not in the order choice, begin, end."""
    frame = read_csv(path, COLUMNS).sort_values("number", ignore_index=True)
    twice = frame["number"].duplicated()
    if twice.any():
        raise DataError(f"{path}: record {frame.loc[twice, 'number'].iloc[0]} occurs twice")
    used = frame["begin_ns"] > 0
    wrong = used & ((frame["end_ns"] < frame["begin_ns"]) | (frame["choice_ns"] > frame["begin_ns"]))
    wrong |= ~used & (frame["choice_ns"] == 0)
    if wrong.any():
        raise DataError(f"{path}: record {frame.loc[wrong, 'number'].iloc[0]}: choice, begin and end are not in order")
    return frame


def seen_pending(seen: pd.Series, replicas: int) -> np.ndarray:
    """`3|0|` -> [3, 0, NaN]: pending statements that the policy saw, shape (records, replicas); NaN where it did not
    look. Raises DataError for another number of replicas."""
    texts = seen.fillna("").astype(str)
    parts = texts.str.split("|", expand=True) if len(texts) else pd.DataFrame(columns=range(replicas))
    if parts.shape[1] != replicas:
        raise DataError(f"middleware trace: {parts.shape[1]} numbers seen, but {replicas} replicas")
    return parts.apply(pd.to_numeric, errors="raise").to_numpy(dtype=float)
