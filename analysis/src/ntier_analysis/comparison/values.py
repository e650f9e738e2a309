"""What is compared: one value with its standard error per trial and metric."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ntier_analysis.contracts.system import NOT_TIERS, LoadModel
from ntier_analysis.described import loads, objectives_of, repetitions, servers_of
from ntier_analysis.errors import DataError
from ntier_analysis.objectives import in_time
from ntier_analysis.places import opened
from ntier_analysis.prediction.demands import TierDemand, known_tier_demands
from ntier_analysis.statistics.percentiles import T_95, Percentile, percentile_interval, resolution_ms
from ntier_analysis.statistics.throughput import BATCHES, MIN_BATCH_S, variance_of_mean
from ntier_analysis.store.tables import read_table, sweeps
from ntier_analysis.verdict.data import SweepVerdict
from ntier_analysis.verdict.store import verdicts

METRICS = {
    "throughput_per_s": "throughput [1/s]",
    "goodput_per_s": "goodput [1/s]",
    "response_time_mean_ms": "mean response time [ms]",
    "response_time_p95_ms": "95th percentile of the response time [ms]",
    "demand_ms": "CPU demand [ms]",
    "cpu_ms": "CPU per interaction [ms]",
    "cpu_ms_per_s": "throughput x CPU per interaction [ms/s]",
}


@dataclass(frozen=True)
class Side:
    """One of the two sweeps. `trials`: the valid ones, with a column `load` (users, or the factor's value). `values`:
    one row per valid trial and metric with columns metric, tier (of cpu_ms), users, load, rep, start_s, value (0 is
    one: goodput where no answer meets the objective), error (standard error from batches within the trial; NaN if too
    short), resolution (what a percentile is rounded to; else 0). `demands`: tier -> CPU of an interaction, of all the
    tier's nodes, for those tiers whose loads tell one."""

    label: str
    store: Path
    sweep: str
    trials: pd.DataFrame
    verdict: SweepVerdict
    values: pd.DataFrame
    demands: dict[str, TierDemand]

    @property
    def open_load(self) -> bool:
        """Whether work arrives at rates that the system does not set."""
        return self.verdict.load_model == LoadModel.OPEN

    @property
    def reaches_maximum(self) -> bool:
        """Whether the verdict's maximum is one: a plateau beyond a knee, or, under open load, the capacity at rates
        that the system cannot serve. Else it is the throughput of the highest load."""
        return self.verdict.max_throughput is not None and bool(self.verdict.plateau_users)


def locate(text: str, store: Path) -> tuple[Path, str]:
    """`SWEEP` of `store`, or `STORE:SWEEP`. Raises DataError naming what there is."""
    folder, colon, name = text.rpartition(":")
    where = opened(folder) if colon else store
    known = sweeps(where)
    if name not in known:
        raise DataError(f"no sweep {name!r} in {where}; there are: {', '.join(known) or 'none'}")
    return where, name


def has_valid_trial(text: str, store: Path) -> bool:
    """Whether a sweep (as in `locate`) has anything to compare."""
    where, name = locate(text, store)
    return bool(read_table(where, "trials", name, columns=["valid"])["valid"].fillna(False).astype(bool).any())


def read_side(text: str, store: Path) -> Side:
    where, name = locate(text, store)
    trials = read_table(where, "trials", name)
    trials = trials[trials["valid"].fillna(False).astype(bool)]
    trials = trials.assign(load=loads(trials), rep=repetitions(trials)).sort_values(["load", "rep"])
    own = objectives_of(trials.iloc[0]) if len(trials) else {}
    columns = ["trial", "t_s", "ok", "response_time_ms", *(["interaction"] if own else [])]
    done = read_table(where, "interactions", name, columns=columns)
    wanted = [("metric", "==", "used_cores"), ("phase", "==", "run")]
    used = read_table(where, "samples", name, columns=["trial", "t_s", "node", "tier", "value"], filters=wanted)
    nodes = read_table(where, "nodes", name)
    servers = servers_of(trials, nodes)
    rows = [row for t in trials.itertuples() for row in _trial(t, done, used, own, servers)]
    columns = ["metric", "tier", "users", "load", "rep", "start_s", "value", "error", "resolution"]
    values = pd.DataFrame(rows, columns=columns).dropna(subset=["value"])
    verdict = verdicts(where, [name])[0]
    demands = known_tier_demands(trials, used, nodes)
    return Side(text, where, name, trials, verdict, values[values["value"] >= 0], demands)


def _trial(
    trial, done: pd.DataFrame, used: pd.DataFrame, own: dict[str, float], servers: dict[str, int]
) -> list[tuple]:
    """Rows of `Side.values` of one trial."""
    mine = done[(done["trial"] == trial.trial) & done["ok"].astype(bool)]
    edges = np.linspace(trial.run_start_s, trial.run_end_s, BATCHES + 1)
    long_enough = np.diff(edges)[0] >= MIN_BATCH_S
    times, response = mine["t_s"].to_numpy(), mine["response_time_ms"].to_numpy()
    batch = np.searchsorted(edges, times, side="right") - 1
    parts = [response[batch == k] for k in range(BATCHES)] if long_enough else []
    seconds = np.diff(edges)
    counts = np.array([len(p) for p in parts])
    errors = {"throughput_per_s": _error(counts / seconds[: len(counts)])}
    met = in_time(mine, trial.slo_ms, own)
    good = np.array([met[batch == k].sum() for k in range(len(parts))])
    errors["goodput_per_s"] = _error(good / seconds[: len(good)])
    enough = len(parts) == BATCHES and counts.min() > 0
    errors["response_time_mean_ms"] = _error(np.array([p.mean() for p in parts])) if enough else float("nan")
    percentile = percentile_interval(response, times, 0.95, edges[0], edges[-1])
    errors["response_time_p95_ms"] = _percentile_error(percentile)
    key = trial.users, trial.load, trial.rep, trial.run_start_s
    resolution = {"response_time_p95_ms": resolution_ms(response)}
    rows = [(name, "", *key, getattr(trial, name), error, resolution.get(name, 0.0)) for name, error in errors.items()]
    return rows + _cpu(trial, used[used["trial"] == trial.trial], servers, edges, counts, key)


def _cpu(
    trial, used: pd.DataFrame, servers: dict[str, int], edges: np.ndarray, counts: np.ndarray, key: tuple
) -> list[tuple]:
    """CPU milliseconds that an interaction costs each tier, idle load included; none without an interaction, and NaN
    if a node of the tier has no sample. `servers`: tier -> nodes that it has."""
    if not trial.throughput_per_s > 0:
        return []
    used = used[(used["t_s"] >= edges[0]) & (used["t_s"] < edges[-1])]
    rows = []
    for tier, part in used[~used["tier"].isin(NOT_TIERS)].groupby("tier"):
        per_node = part.groupby("node")["value"]
        whole = per_node.ngroups >= servers.get(tier, 0)
        value = 1000 * per_node.mean().sum() / trial.throughput_per_s if whole else float("nan")
        batch = np.searchsorted(edges, part["t_s"].to_numpy(), side="right") - 1
        cores = part.assign(batch=batch).groupby(["batch", "node"])["value"].mean().groupby("batch").sum()
        cores = cores.reindex(range(BATCHES)).to_numpy()
        usable = len(counts) == BATCHES and counts.min() > 0 and np.isfinite(cores).all()
        error = _error(1000 * cores * np.diff(edges) / counts) if usable else float("nan")
        rows.append(("cpu_ms", tier, *key, value, error, 0.0))
    return rows


def _error(batches: np.ndarray) -> float:
    """NaN, too, if no batch has anything: of a trial without single interactions they tell no error of its sums."""
    known = len(batches) == BATCHES and batches.any()
    return float(np.sqrt(variance_of_mean(batches))) if known else float("nan")


def _percentile_error(found: Percentile) -> float:
    """Standard error by the interval that the percentile has everywhere; unknown if that has no upper end."""
    known = np.isfinite(found.high) and found.low > 0
    return found.value * float(np.log(found.high / found.low)) / (2 * T_95) if known else float("nan")
