"""Tables of a sweep -> what its checks look at: throughput, CPU in use, visits, canaries, drifts, per trial."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ntier_analysis.contracts import implied
from ntier_analysis.contracts.system import NOT_TIERS, LoadModel
from ntier_analysis.described import system_of
from ntier_analysis.described import values as factor_values
from ntier_analysis.statistics import distributions as stats
from ntier_analysis.statistics import stationarity
from ntier_analysis.statistics.throughput import BATCHES, variance_of_mean
from ntier_analysis.validity.lines import Points

VISITS = ("requests_per_s", "statements_per_s", "questions_per_s")
"""Counters of work, each looked at in the first tier that has it. PostgreSQL's transactions are left out: its pool
checks idle connections by transactions, fewer per interaction the higher the load (check O5.counters)."""
MIN_SETTLED = 2
"""Trials that drifts are pooled of, at least."""
CANARIES = {"loop": "canary_loop_us", "memory": "canary_pages_us"}
_NEEDED = {"used_cores", "utilization_pct", *VISITS, *CANARIES.values()}


@dataclass(frozen=True)
class Loads:
    """`all`: trials (index: their names) with `valid`, `x_error`, `response_s`, `completed_per_s`; `valid`: those that
    count. `used`: CPU of each server in cores (`capacity` beside it), or as a share where its cores are unknown.
    `comparable`: the loads differ in how much is asked only, so that the same laws hold for all. `visits`: requests or
    statements of a tier per s. `drifts`, `starts`: of S1 and S2 in percent, per valid trial."""

    all: pd.DataFrame
    valid: pd.DataFrame
    used: dict[str, Points]
    capacity: dict[str, float]
    visits: dict[str, Points]
    canaries: dict[str, np.ndarray]
    drifts: np.ndarray
    starts: np.ndarray
    model: LoadModel = LoadModel.CLOSED
    comparable: bool = True

    @property
    def measured_thinks(self) -> bool:
        return bool(np.isfinite(self.valid["think_measured_s"]).all())

    def little(self, trial: str) -> tuple[float, float]:
        """X (Z + R) / N and its standard error. Users who were not answered by the end of the run make it smaller.

        What completes in the run counts whole, and what had not ended not at all. So the share errs by the ages of the
        users' cycles at both ends of the run (as a renewal process has them: standard deviation Z + R each), and, where
        think times were not measured, by as many exponential thinks as there were interactions."""
        row = self.valid.loc[trial]
        measured = np.isfinite(row["think_measured_s"])
        think_s = float(row["think_measured_s"] if measured else row["think_time_s"])  # an absurd one makes infinity
        rate = float(row["completed_per_s"])
        cycle_s, run_s = think_s + float(row["response_s"]), row["run_end_s"] - row["run_start_s"]
        share = rate * cycle_s / row["users_real"]
        ends = np.sqrt(2 / row["users_real"]) * cycle_s / run_s
        drawn = 0.0 if measured else rate * think_s / row["users_real"] / np.sqrt(max(rate * run_s, 1.0))
        return share, float(np.hypot(ends, drawn))


def loads_of(
    trials: pd.DataFrame,
    samples: pd.DataFrame,
    nodes: pd.DataFrame,
    interactions: pd.DataFrame | None,
    checks: pd.DataFrame | None,
    unsettled: Collection[str] = (),
) -> Loads:
    every = _trials(trials)
    wanted = every["valid"] & np.isfinite(every["throughput_per_s"]) & (every["throughput_per_s"] > 0)
    valid = every[wanted]
    inside = _in_run(samples, valid)
    used, capacity = _used(inside, nodes, valid)
    settled = valid[~valid.index.isin(list(unsettled))]
    drifts, starts = _drifts(settled if len(settled) >= MIN_SETTLED else valid, interactions, checks)
    system = system_of(trials) if len(trials) else implied.system(1)
    visits = _visits(inside, valid, system.order)
    comparable = system.load_model is LoadModel.OPEN or system.factor.name == implied.USERS
    return Loads(
        every, valid, used, capacity, visits, _canaries(inside, valid), drifts, starts, system.load_model, comparable
    )


def _number(frame: pd.DataFrame, name: str, otherwise: float = float("nan")) -> pd.Series:
    if name not in frame:
        return pd.Series(otherwise, index=frame.index)
    return pd.to_numeric(frame[name], errors="coerce").astype(float).fillna(otherwise)


def _trials(trials: pd.DataFrame) -> pd.DataFrame:
    frame = pd.DataFrame(index=pd.Index(trials["trial"].astype(str), name="trial"))
    trials = trials.set_index(frame.index)
    for name in ("throughput_per_s", "run_start_s", "run_end_s", "think_measured_s"):
        frame[name] = _number(trials, name)
    frame["users"] = _number(trials, "users").astype(int)
    frame["users_real"] = _number(trials, "users_real").fillna(frame["users"] * _number(trials, "scale", 1.0))
    frame["think_time_s"] = _number(trials, "think_time_s", implied.THINK_S)
    frame["level"] = factor_values(trials)
    model = trials["load_model"] if "load_model" in trials else pd.Series(None, index=frame.index, dtype=object)
    # what workers pause is what is left of N/X, so it checks nothing
    frame.loc[(model == LoadModel.WORK).to_numpy(), ["think_time_s", "think_measured_s"]] = 0.0, np.nan
    offered = _number(trials, "offered_per_s")
    frame["asked"] = offered.where((model == LoadModel.OPEN).to_numpy(), frame["users_real"].astype(float))
    frame["response_s"] = _number(trials, "response_time_mean_ms") / 1000
    length = frame["run_end_s"] - frame["run_start_s"]
    frame["completed_per_s"] = frame["throughput_per_s"] + _number(trials, "errors", 0.0) / length
    valid = trials["valid"] if "valid" in trials else pd.Series(True, index=frame.index)
    frame["valid"] = valid.astype("boolean").fillna(True).astype(bool)
    if "attempts" in trials:
        frame["attempts"] = _number(trials, "attempts")
    width = _number(trials, "throughput_high_per_s") - _number(trials, "throughput_low_per_s")
    chance = np.sqrt(frame["throughput_per_s"] * _number(trials, "idc", 1.0).clip(lower=0) / length)
    # without batches (imports): as many completions as a Poisson process
    frame["x_error"] = (width / 2 / stats.t.ppf(0.975, BATCHES - 1)).where(width > 0).fillna(chance)
    return frame


def _in_run(samples: pd.DataFrame, valid: pd.DataFrame) -> pd.DataFrame:
    """Samples that the checks need, in the run phase of their trial, with `batch` 0..9."""
    rows = samples[samples["metric"].isin(_NEEDED)]
    rows = rows.assign(
        trial=rows["trial"].astype(str), node=rows["node"].astype(str), metric=rows["metric"].astype(str)
    )
    for name in ("item", "source"):
        rows[name] = rows[name].astype(str).replace("nan", "") if name in rows else ""
    begin, end = (rows["trial"].map(valid[name]).astype(float) for name in ("run_start_s", "run_end_s"))
    batch = np.floor((rows["t_s"] - begin) / (end - begin) * BATCHES)
    # t_s is the end of an interval: what ends at the run's end belongs to it
    rows = rows.assign(batch=batch)[(rows["t_s"] >= begin) & (rows["t_s"] <= end)]
    return rows.assign(batch=rows["batch"].clip(upper=BATCHES - 1)).dropna(subset="value")


def _points(rows: pd.DataFrame, valid: pd.DataFrame) -> Points:
    """`rows`: trial, batch, value. Mean of the batches, and the error of that mean."""
    names, y, y_error = [], [], []
    for trial, values in rows.groupby("trial")["value"]:
        if len(values) > 1 and np.isfinite(values).all():
            names.append(str(trial))
            y.append(float(values.mean()))
            y_error.append(float(np.sqrt(variance_of_mean(values.to_numpy()))))
    x = valid.loc[names]
    return Points(
        tuple(names), x["throughput_per_s"].to_numpy(), x["x_error"].to_numpy(), np.array(y), np.array(y_error)
    )


def _used(rows: pd.DataFrame, nodes: pd.DataFrame, valid: pd.DataFrame) -> tuple[dict[str, Points], dict[str, float]]:
    limits = nodes.dropna(subset=["cpu_cores"]).drop_duplicates("node").set_index("node")["cpu_cores"]
    cpu = rows[(rows["resource"] == "cpu") & ~rows["tier"].isin(NOT_TIERS)]
    used, capacity = {}, {}
    for node, part in cpu.groupby("node"):
        cores = part[part["metric"] == "used_cores"]
        known = len(cores) > 0 and node in limits.index
        shown = cores if known else part[(part["metric"] == "utilization_pct") & (part["item"] == "")]
        if shown.empty:
            continue
        shown = shown[shown["source"] == shown["source"].value_counts().index[0]]
        batches = shown.groupby(["trial", "batch"])["value"].mean().reset_index()
        points = _points(batches if known else batches.assign(value=batches["value"] / 100), valid)
        if len(points.x):
            used[str(node)], capacity[str(node)] = points, float(limits[node]) if known else 1.0
    return used, capacity


def _visits(rows: pd.DataFrame, valid: pd.DataFrame, order: tuple[str, ...]) -> dict[str, Points]:
    """Of a tier: sum over its nodes and items. Per completed interaction, so x is all that was completed."""
    completed = valid.assign(throughput_per_s=valid["completed_per_s"])
    visits = {}
    for metric in VISITS:
        counted = rows[rows["metric"] == metric]
        there = set(counted["tier"].astype(str))
        tier = next((t for t in order if t in there), None)
        if tier is None:
            continue
        part = counted[counted["tier"] == tier]
        each = part.groupby(["trial", "batch", "node", "item"])["value"].mean()
        points = _points(each.groupby(["trial", "batch"]).sum().reset_index(), completed)
        if len(points.x):
            visits[tier] = points
    return visits


def _canaries(rows: pd.DataFrame, valid: pd.DataFrame) -> dict[str, np.ndarray]:
    """Of the host: median of each trial, in the order of execution. On machines of their own a node's load changes from
    trial to trial, and with it what its neighbour on the same core gets."""
    rows = rows[rows["node"] == "host"]
    canaries = {}
    for name, metric in CANARIES.items():
        medians = rows[rows["metric"] == metric].groupby("trial")["value"].median()
        ordered = medians.reindex(valid.sort_values("run_start_s").index).dropna()
        if len(ordered):
            canaries[name] = ordered.to_numpy()
    return canaries


def _drifts(
    valid: pd.DataFrame, interactions: pd.DataFrame | None, checks: pd.DataFrame | None
) -> tuple[np.ndarray, np.ndarray]:
    """From single interactions, else as the trials' own checks found them."""
    if interactions is None or interactions.empty:
        if checks is None or checks.empty:
            return np.array([]), np.array([])
        own = checks[checks["trial"].astype(str).isin(valid.index)]
        first, second = (own.loc[own["id"] == i, "value"].dropna().to_numpy(float) for i in ("S1", "S2"))
        return first, second
    good = interactions[interactions["ok"].astype("boolean").fillna(True)] if "ok" in interactions else interactions
    done = {str(trial): times.to_numpy() for trial, times in good.groupby("trial", observed=True)["t_s"]}
    drifts, starts = [], []
    for trial, row in valid.iterrows():
        begin, end = row["run_start_s"], row["run_end_s"]
        if trial in done and end - begin >= BATCHES:
            drifts.append(100 * stationarity.throughput_drift(done[trial], begin, end).drift)
            starts.append(100 * stationarity.start_excess(done[trial], begin, end).drift)
    first, second = np.array(drifts), np.array(starts)
    return first[np.isfinite(first)], second[np.isfinite(second)]
