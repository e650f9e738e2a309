"""What the file of a load generator says, whichever generator wrote it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

_UNITS = {10: 1.0, 13: 1e3, 16: 1e6, 19: 1e9}
"""Digits of a time of our days -> its units in a second."""
TIMES = "seconds, milli-, micro- or nanoseconds since 1970 (10, 13, 16 or 19 digits), or RFC 3339 with its zone"


@dataclass(frozen=True)
class Generated:
    """`requests`: `start_s, t_s` (completion), `interaction, response_time_ms, ok, bytes` of each, by completion; None
    if the file only has sums. `users`: `t_s, users`: so many were active from `t_s` on; empty if the file does not say.
    `totals`: only without requests: `t_s, done, failed, time_ms`, counted from the beginning. `think_s`: mean think
    time for each request, if the file tells it. `notes`: what the file does not say, for the reader of the report.
    `idle`: share of the users' time in which they had nothing to do, if the file tells it."""

    requests: pd.DataFrame | None
    users: pd.DataFrame
    totals: pd.DataFrame | None = None
    think_s: float = float("nan")
    notes: tuple[str, ...] = field(default=())
    idle: float = 0.0


def by_completion(
    t_s: np.ndarray, response_ms: np.ndarray, names: object, ok: np.ndarray, bytes_: object = float("nan")
) -> pd.DataFrame:
    """Requests from the times of their completion."""
    frame = pd.DataFrame(
        {
            "start_s": t_s - response_ms / 1000,
            "t_s": t_s,
            "interaction": names,
            "response_time_ms": response_ms,
            "ok": ok,
            "bytes": bytes_,
        }
    )
    return frame.sort_values("t_s", kind="stable", ignore_index=True)


def steps(t_s: object, users: object) -> pd.DataFrame:
    """Active users in order of time; of several values of one moment the last."""
    frame = pd.DataFrame({"t_s": t_s, "users": users}, dtype=float).sort_values("t_s", kind="stable")
    return frame.drop_duplicates("t_s", keep="last").reset_index(drop=True)


def mean_of_steps(users: pd.DataFrame, start_s: float, end_s: float) -> float:
    """Mean of `steps` from start_s to end_s; 0 before the first."""
    t, n = users["t_s"].to_numpy(float), np.append(0.0, users["users"].to_numpy(float))
    edges = np.concatenate([[start_s], t[(t > start_s) & (t < end_s)], [end_s]])
    return float(np.average(n[np.searchsorted(t, edges[:-1], side="right")], weights=np.diff(edges)))


def spread(t_s: np.ndarray) -> np.ndarray:
    """Times in whole seconds -> evenly over their second, in the order of the file: a second in which all is done at
    its first instant would look like a pause."""
    order = pd.Series(t_s)
    position = order.groupby(order).cumcount().to_numpy(float)
    count = order.groupby(order).transform("size").to_numpy(float)
    return t_s + (position + 0.5) / count


def in_whole_seconds(t_s: np.ndarray) -> bool:
    """Whether these times were cut to whole seconds: more than two in a second, and none between two."""
    return len(t_s) > 2 * len(np.unique(t_s)) and bool((t_s == np.floor(t_s)).all())


def seconds_of(texts: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Times as load generators write them -> s since 1970, and which could not be read (n,)."""
    texts = texts.astype(str)
    whole = texts.str.fullmatch(r"\d{10}(?:\d{3}){0,3}")
    t = np.full(len(texts), np.nan)
    for digits, units in _UNITS.items():
        chosen = (whole & (texts.str.len() == digits)).to_numpy()
        t[chosen] = texts[chosen].astype("int64").to_numpy() / units
    fraction = texts.str.fullmatch(r"\d{10}\.\d+").to_numpy()
    t[fraction] = texts[fraction].astype(float).to_numpy()
    zoned = texts.str.fullmatch(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)").to_numpy()
    if zoned.any():
        read = pd.to_datetime(texts[zoned], utc=True, format="ISO8601", errors="coerce")
        since = (read - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
        t[zoned] = since.to_numpy(float)
    return t, ~(np.isfinite(t) & (t >= 0) & (t < 1e11))
