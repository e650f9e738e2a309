"""What was measured at one load: `p95(4000) <= 2000`, or of one interaction there: `p95(4000 Search) <= 2000`. The load
is a value of what the sweep varies: users, or another factor."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from ntier_analysis.described import objectives_of
from ntier_analysis.errors import DataError
from ntier_analysis.expectation.quantity import UNKNOWN, Quantity, at_least, measured
from ntier_analysis.objectives import in_time
from ntier_analysis.statistics import distributions as stats
from ntier_analysis.statistics.percentiles import percentile_interval, resolution_ms
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
    if name == "throughput":
        ends = rows[["throughput_low_per_s", "throughput_high_per_s"]].astype(float)
        if len(values) > 1:
            return _of_repetitions(values.to_numpy(), *ends.to_numpy().T)
        known = (None if pd.isna(e) else float(e) for e in ends.iloc[0])
        return Quantity(float(values.iloc[0]), *known, freedom=BATCHES - 1)
    done = interactions()
    return _of_trials(name, values.to_numpy(), rows, done[done["ok"].astype(bool)])


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
    values = np.array([_value(name, row, mine[mine["trial"] == row["trial"]]) for _, row in rows.iterrows()])
    if np.isnan(values).any():
        return Quantity(
            math.nan, *UNKNOWN, f"too few {label} in {np.isnan(values).sum()} of {counted(len(rows), 'trial')}"
        )
    return _of_trials(name, values, rows, mine)


def _value(name: str, trial: pd.Series, done: pd.DataFrame) -> float:
    start, end = trial["run_start_s"], trial["run_end_s"]
    response = done.loc[done["t_s"].between(start, end, inclusive="left"), "response_time_ms"].to_numpy(dtype=float)
    if name == "throughput":
        return len(response) / float(end - start)
    if name in _PERCENTILES:
        return percentile(response, _PERCENTILES[name])
    return float(response.mean()) if len(response) else math.nan


def _of_trials(name: str, values: np.ndarray, rows: pd.DataFrame, done: pd.DataFrame) -> Quantity:
    """One value of each trial (rows), with the interval that each has by itself. `done`: their answers."""
    by_trial = [done[done["trial"] == trial] for trial in rows["trial"]]
    ends = [_within(name, row, part) for (_, row), part in zip(rows.iterrows(), by_trial, strict=True)]
    if len(values) > 1:
        low, high = np.array(ends, dtype=float).T
        found = _of_repetitions(values, low, high)
    else:
        (low, high), told = ends[0], "one trial"
        found = Quantity(float(values[0]), low, high, told if low is not None else f"{told}, no interval", BATCHES - 1)
    rounded = resolution_ms(pd.concat(by_trial)["response_time_ms"]) if name in _PERCENTILES else 0.0
    if rounded and found.low is None and len(values) > 1 and np.ptp(values) == 0:
        found = replace(found, low=found.value, high=found.value)  # equal to what they are rounded to, no better
    return at_least(found, rounded)


def _of_repetitions(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> Quantity:
    """Two runs that agree by chance are known no better than each. `low`, `high`: ends of each run's own interval, NaN
    where it has none."""
    return measured(of_load(values, low, high), f"{len(values)} repetitions")


def _why(name: str) -> str:
    return "too few interactions" if name in _PERCENTILES else "not measured"


def _within(name: str, trial: pd.Series, done: pd.DataFrame) -> tuple[float | None, float | None]:
    """95 % interval from ten equal parts of the run; unknown if these are shorter than a second, or, but for a
    throughput, one is empty."""
    edges = np.linspace(trial["run_start_s"], trial["run_end_s"], BATCHES + 1)
    if not np.diff(edges)[0] >= MIN_BATCH_S:
        return UNKNOWN
    part = np.searchsorted(edges, done["t_s"].to_numpy(), side="right") - 1
    response = done["response_time_ms"].to_numpy(dtype=float)
    parts = [response[part == k] for k in range(BATCHES)]
    if name == "throughput":
        return _of_counts(np.array([len(p) for p in parts]), edges[1] - edges[0])
    if not all(map(len, parts)):
        return UNKNOWN
    if name in _PERCENTILES:
        found = percentile_interval(response, done["t_s"].to_numpy(), _PERCENTILES[name], edges[0], edges[-1])
        return UNKNOWN if math.isnan(found.low) else (found.low, found.high)
    if name == "response_time":
        return _ratio(np.array([p.sum() for p in parts]), np.array([float(len(p)) for p in parts]))
    met = in_time(done, trial["slo_ms"], objectives_of(trial))
    good = np.array([met[part == k].sum() for k in range(BATCHES)]) / np.diff(edges)
    interval = of_batches(good, len(response))
    return max(0.0, interval.low), interval.high


def _of_counts(counts: np.ndarray, batch_s: float) -> tuple[float, float]:
    """Of a rate, however few there were: by the batches, and never narrower than the exact interval of a Poisson count
    (Garwood 1936). By the batches alone the upper end of eight is too low in 7 to 10 % of runs, that of none in all.
    Where the lower end would be below 0, it is as far as the upper one as a logarithm: what was seen has a rate."""
    n = int(counts.sum())
    interval = of_batches(counts / batch_s, n)
    low = interval.low if interval.low > 0 or not n else interval.value * math.exp(1 - interval.high / interval.value)
    run_s = len(counts) * batch_s
    least = stats.chi2.ppf(0.025, 2 * n) / 2 / run_s if n else 0.0
    most = stats.chi2.ppf(0.975, 2 * n + 2) / 2 / run_s
    return float(min(low, least)), float(max(interval.high, most))


def _ratio(sums: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Error of the mean over all interactions by the ratio estimator, since the parts differ in size."""
    mean = sums.sum() / counts.sum()
    error = np.sqrt(((sums - mean * counts) ** 2).sum() / (BATCHES * (BATCHES - 1))) / counts.mean()
    reach = float(stats.t.ppf(0.975, BATCHES - 1) * error)
    return float(mean - reach), float(mean + reach)
