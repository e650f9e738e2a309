"""Cumulative counters -> rates, for all collectors alike."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ntier_analysis.errors import DataError
from ntier_analysis.labels import repeated

GAP = 2.5
"""An interval longer than this many nominal ones is a gap: its value is NaN, it is neither 0 nor the last value held.
One lost reading makes no gap, two do: halfway between them, so that no jitter decides."""

SHORT = 0.2
"""An interval shorter than this many nominal ones ends a late reading: what happened in it is not known apart from the
one before (a full database answered two questions within 1 ms: 112 statements "in 1 ms")."""


@dataclass(frozen=True)
class Clock:
    """Times of the readings: `t` (n,), `dt` (n - 1,) their distances in s, `gap` (n - 1,) which of them are gaps."""

    t: np.ndarray
    dt: np.ndarray
    gap: np.ndarray
    nominal_s: float


def clock(path: Path, t: np.ndarray, nominal_s: float) -> Clock:
    """Refuses duplicate and unordered times (DataError naming the line): a file that was written twice over, or
    altered, must never be counted twice."""
    dt = np.diff(t)
    bad = np.flatnonzero(~(dt > 0))
    if bad.size:
        line = int(bad[0]) + 3
        kind = "is repeated" if dt[bad[0]] == 0 else "goes back"
        raise DataError(f"{path}:{line}: time {t[bad[0] + 1]!r} {kind} (times must increase)")
    return Clock(t, dt, dt > GAP * nominal_s, nominal_s)


def deltas(counter: np.ndarray, at: Clock) -> tuple[np.ndarray, int]:
    """Differences of a cumulative counter, NaN in gaps and where it ran backwards; and how often it ran backwards."""
    delta = np.diff(counter.astype(float))
    backwards = delta < 0
    delta[at.gap | backwards] = np.nan
    return delta, int(backwards.sum())


def per_second(delta: np.ndarray, at: Clock) -> np.ndarray:
    """Differences -> rates. Intervals that are too short share the rate of the one before and themselves together."""
    long_enough = at.dt >= SHORT * at.nominal_s
    long_enough[:1] = True  # there is none before the first
    starts = np.flatnonzero(long_enough)
    rates = np.add.reduceat(delta, starts) / np.add.reduceat(at.dt, starts)
    return np.repeat(rates, np.diff(starts, append=len(delta)))


def tidy(at: Clock, columns: dict[tuple[str, str, str, str], np.ndarray], *, gauge: bool = False) -> pd.DataFrame:
    """{(resource, item, metric, unit): values} -> long frame `t_s, resource, item, metric, value, unit, interval_s`.

    Rates have one value per interval (n - 1), gauges one per reading (n)."""
    t = at.t if gauge else at.t[1:]
    interval = np.full(len(t), np.nan) if gauge else at.dt
    return long_form([(key, t, np.asarray(values, dtype=float), interval) for key, values in columns.items()])


def long_form(series: list[tuple[tuple[str, str, str, str], np.ndarray, np.ndarray, np.ndarray]]) -> pd.DataFrame:
    """[((resource, item, metric, unit), t, value, interval)] -> long frame with the columns of `TIDY`."""
    if not series:  # typed: a column of no type would take the type away from what it is joined to
        return pd.DataFrame({name: pd.Series(dtype="float" if name in NUMBERS else "str") for name in TIDY})
    sizes = [len(t) for _, t, _, _ in series]
    names = {name: repeated([s[0][i] for s in series], sizes) for i, name in enumerate(LABELS)}
    numbers = {name: np.concatenate([s[i] for s in series]) for i, name in enumerate(NUMBERS, start=1)}
    return pd.DataFrame(names | numbers)[TIDY]


LABELS = ("resource", "item", "metric", "unit")
NUMBERS = ("t_s", "value", "interval_s")
TIDY = ["t_s", "resource", "item", "metric", "value", "unit", "interval_s"]
