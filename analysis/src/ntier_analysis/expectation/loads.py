"""What was measured at one load: `p95(4000) <= 2000`, or of one interaction there: `p95(4000 Search) <= 2000`. The load
is a value of what the sweep varies: users, or another factor."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy import stats

from ntier_analysis.described import objectives_of
from ntier_analysis.errors import DataError
from ntier_analysis.expectation.quantity import UNKNOWN, Quantity, mean_of_trials
from ntier_analysis.objectives import in_time
from ntier_analysis.statistics.percentiles import percentile_interval
from ntier_analysis.statistics.throughput import BATCHES, MIN_BATCH_S, of_batches, percentile
from ntier_analysis.statistics.throughput import at_load as of_load
from ntier_analysis.wording import counted

AT_LOAD = {
    "throughput": "throughput_per_s",
    "goodput": "goodput_per_s",
    "response_time": "response_time_mean_ms",
    "p50": "response_time_p50_ms",
    "p95": "response_time_p95_ms",
    "p99": "response_time_p99_ms",
    "errors": "errors",
}
"""Name -> column of the table `trials`."""
_PERCENTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
NO_TRIAL = "no valid trial at this load"


class NotMeasured(DataError):
    """No trial of the sweep has this load, valid or not; or nobody asked for this interaction there."""


def at_load(
    name: str, args: str | None, trials: pd.DataFrame, interactions: Callable[[], pd.DataFrame], text: str
) -> Quantity:
    """Of the valid trials at a load: over repetitions if there are several, else within the one. Raises DataError where
    the load was not measured."""
    asked, _, label = (args or "").strip().partition(" ")
    rows = trials_at(name, asked, trials, text)
    if rows.empty:
        return Quantity(math.nan, *UNKNOWN, NO_TRIAL)
    if label:
        return _of_interaction(name, label.strip(), rows, interactions(), text)
    values = rows[AT_LOAD[name]].astype(float)
    if values.isna().any():
        return Quantity(
            math.nan, *UNKNOWN, f"unknown in {values.isna().sum()} of {counted(len(rows), 'trial')}: {_why(name)}"
        )
    if name == "errors":  # counted, in every trial
        most = float(values.max())
        return Quantity(most, most, most, f"the largest of {len(rows)} trials" if len(rows) > 1 else "")
    if len(values) > 1:
        return _of_repetitions(name, values.to_numpy(), rows)
    row = rows.iloc[0]
    if name == "throughput":
        ends = (row["throughput_low_per_s"], row["throughput_high_per_s"])
        return Quantity(float(values.iloc[0]), *(None if pd.isna(e) else float(e) for e in ends))
    done = interactions()
    low, high = _within(name, row, done[(done["trial"] == row["trial"]) & done["ok"].astype(bool)])
    return Quantity(float(values.iloc[0]), low, high, "one trial" if low is not None else "one trial, no interval")


def trials_at(name: str, asked: str, trials: pd.DataFrame, text: str) -> pd.DataFrame:
    """The valid trials at a load. Raises NotMeasured where it was not measured, DataError for a text that is none."""
    level = _levels(trials)
    loads = ", ".join(f"{at:g}" for at in sorted(set(level)))
    message = f"expectation {text!r}: {name} needs a load that was measured: {loads}"
    try:
        here = level == float(asked)
    except ValueError:
        raise DataError(message) from None
    if not here.any():
        raise NotMeasured(message)
    return trials[here & trials["valid"].fillna(False).astype(bool)]


def _levels(trials: pd.DataFrame) -> pd.Series:
    """The factor's value of each trial: users, where it names no other."""
    if "factor_value" not in trials:
        return trials["users"].astype(float)
    return trials["factor_value"].astype(float).fillna(trials["users"].astype(float))


def _of_interaction(name: str, label: str, rows: pd.DataFrame, done: pd.DataFrame, text: str) -> Quantity:
    """Raises DataError for an interaction that was not done, and for a quantity that is not known of one."""
    if name not in ("throughput", "response_time", *_PERCENTILES):
        raise DataError(f"expectation {text!r}: {name} is not measured for a single interaction")
    done = done[done["trial"].isin(rows["trial"])]
    if label not in (known := sorted(set(done["interaction"]))):
        raise NotMeasured(f"expectation {text!r}: interaction {label!r}; there are: {', '.join(known)}")
    mine = done[(done["interaction"] == label) & done["ok"].astype(bool)]
    parts = {row["trial"]: mine[mine["trial"] == row["trial"]] for _, row in rows.iterrows()}
    values = np.array([_value(name, row, parts[row["trial"]]) for _, row in rows.iterrows()])
    if np.isnan(values).any():
        return Quantity(
            math.nan, *UNKNOWN, f"too few {label} in {np.isnan(values).sum()} of {counted(len(rows), 'trial')}"
        )
    if len(values) > 1:
        return mean_of_trials(values, f"{len(values)} repetitions")
    row = rows.iloc[0]
    low, high = _within(name, row, parts[row["trial"]])
    return Quantity(float(values[0]), low, high, "one trial" if low is not None else "one trial, no interval")


def _value(name: str, trial: pd.Series, done: pd.DataFrame) -> float:
    start, end = trial["run_start_s"], trial["run_end_s"]
    response = done.loc[done["t_s"].between(start, end, inclusive="left"), "response_time_ms"].to_numpy(dtype=float)
    if name == "throughput":
        return len(response) / float(end - start)
    if name in _PERCENTILES:
        return percentile(response, _PERCENTILES[name])
    return float(response.mean()) if len(response) else math.nan


def _of_repetitions(name: str, values: np.ndarray, rows: pd.DataFrame) -> Quantity:
    """A throughput is that of `cheapest`: two runs that agree by chance are known no better than each."""
    note = f"{len(values)} repetitions"
    if name != "throughput":
        return mean_of_trials(values, note)
    ends = (rows[column].to_numpy(float) for column in ("throughput_low_per_s", "throughput_high_per_s"))
    found = of_load(values, *ends)
    return Quantity(found.value, found.low, found.high, note)


def _why(name: str) -> str:
    return "too few interactions" if name in _PERCENTILES else "not measured"


def _within(name: str, trial: pd.Series, done: pd.DataFrame) -> tuple[float | None, float | None]:
    """95 % interval from ten equal parts of the run; unknown if these are shorter than a second, or one is empty."""
    edges = np.linspace(trial["run_start_s"], trial["run_end_s"], BATCHES + 1)
    if not np.diff(edges)[0] >= MIN_BATCH_S:
        return UNKNOWN
    part = np.searchsorted(edges, done["t_s"].to_numpy(), side="right") - 1
    response = done["response_time_ms"].to_numpy(dtype=float)
    parts = [response[part == k] for k in range(BATCHES)]
    if not all(map(len, parts)):
        return UNKNOWN
    if name in _PERCENTILES:
        found = percentile_interval(response, done["t_s"].to_numpy(), _PERCENTILES[name], edges[0], edges[-1])
        return UNKNOWN if math.isnan(found.low) else (found.low, found.high)
    if name == "response_time":
        return _ratio(np.array([p.sum() for p in parts]), np.array([float(len(p)) for p in parts]))
    if name == "throughput":
        interval = of_batches(np.array([len(p) for p in parts]) / np.diff(edges), len(response))
        return max(0.0, interval.low), interval.high
    met = in_time(done, trial["slo_ms"], objectives_of(trial))
    good = np.array([met[part == k].sum() for k in range(BATCHES)]) / np.diff(edges)
    interval = of_batches(good, len(response))
    return max(0.0, interval.low), interval.high


def _ratio(sums: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Error of the mean over all interactions by the ratio estimator, since the parts differ in size."""
    mean = sums.sum() / counts.sum()
    error = np.sqrt(((sums - mean * counts) ** 2).sum() / (BATCHES * (BATCHES - 1))) / counts.mean()
    reach = float(stats.t.ppf(0.975, BATCHES - 1) * error)
    return float(mean - reach), float(mean + reach)
