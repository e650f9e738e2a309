"""Verdicts of a whole store."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from ntier_analysis.errors import DataError
from ntier_analysis.setting import setting
from ntier_analysis.store.tables import read_table, sweeps
from ntier_analysis.verdict.data import SweepVerdict
from ntier_analysis.verdict.moves import CHAIN_METRICS, Chain, disk_chains
from ntier_analysis.verdict.replicas import with_replicas
from ntier_analysis.verdict.search import Goal, Step, next_step
from ntier_analysis.verdict.tables import NEEDED_METRICS, sweep_scale, sweep_verdict, trial_data

IDLE_S = 3.0
"""The connections and quota changes that begin a trial are over by then; measured: 0.006 cores on a MySQL node, as much
as the utilization law's intercept over 13 loads."""

_NEEDED = [("metric", "in", list(NEEDED_METRICS)), ("phase", "=", "run")]


def verdicts(store: Path, names: list[str]) -> list[SweepVerdict]:
    """Computed from the tables trials, samples, nodes and interactions; sweeps whose topologies differ by the nodes of
    one tier are witnesses of each other. Raises DataError for an unknown sweep."""
    there = sweeps(store)
    unknown = [n for n in names if n not in there]
    if unknown:
        raise DataError(f"no sweep {unknown[0]!r} in {store}; there are: {', '.join(there) or 'none'}")
    found, alike = [], {}
    for name in names or there:
        trials = read_table(store, "trials", name)
        alike[name] = setting(trials)
        found.append(_verdict(store, name, trials))
    return with_replicas(found, alike)


def _verdict(store: Path, name: str, trials: pd.DataFrame) -> SweepVerdict:
    return sweep_verdict(
        name,
        trials,
        read_table(store, "samples", name, filters=_NEEDED),
        read_table(store, "nodes", name),
        read_table(store, "interactions", name, columns=["trial", "t_s", "ok", "response_time_ms"]),
        decisions(store, name),
    )


def chains(store: Path, name: str) -> dict[str, list[Chain]]:
    """What moves with the disks of the databases in each valid trial of a sweep; trials without such a chain are left
    out."""
    trials = read_table(store, "trials", name).sort_values(["users", "trial"])
    nodes = read_table(store, "nodes", name)
    wanted = [("metric", "in", CHAIN_METRICS), ("phase", "=", "run")]
    by_trial = dict(iter(read_table(store, "samples", name, filters=wanted).groupby("trial")))
    found = {}
    for row in trials[trials["valid"].fillna(True).astype(bool)].itertuples():
        databases = nodes.loc[(nodes["trial"] == row.trial) & (nodes["tier"] == "db"), "node"].unique()
        if row.trial in by_trial:
            found[row.trial] = disk_chains(by_trial[row.trial], sorted(databases), row.run_start_s, row.run_end_s)
    return {trial: linked for trial, linked in found.items() if linked}


def decisions(store: Path, name: str) -> pd.DataFrame | None:
    """What a search decided; None for a store that was written before there were searches."""
    return read_table(store, "decisions", name)


def searched(store: Path, name: str, goal: Goal, without: Iterable[str] = ()) -> Step:
    """The next step of a search from what the store holds of its sweep (perhaps nothing); the trials in `without` are
    not finished."""
    there = store.is_dir() and (store / "trials" / f"{name}.parquet").exists()
    if not there:
        return next_step([], goal)
    skipped = set(without)
    trials = read_table(store, "trials", name)
    trials = trials[~trials["trial"].isin(skipped)]
    if trials.empty:
        return next_step([], goal)
    samples = read_table(store, "samples", name, filters=[("metric", "in", list(NEEDED_METRICS))])
    nodes = read_table(store, "nodes", name)
    done = read_table(store, "interactions", name, columns=["trial", "t_s", "ok", "response_time_ms"])
    data, _ = trial_data(trials, samples[samples["phase"] == "run"], nodes, done)
    return next_step(data, goal, sweep_scale(trials), idle_cores(trials, samples))


def idle_cores(trials: pd.DataFrame, samples: pd.DataFrame) -> dict[str, float]:
    """Cores that each node uses without load: in the last IDLE_S before the ramp-up, when the collectors already run.
    Mean over the trials."""
    use = samples[(samples["metric"] == "used_cores") & (samples["phase"] == "outside")]
    begin = use["trial"].map(trials.set_index("trial")["ramp_up_start_s"]).astype(float)
    before = use[(use["t_s"] <= begin) & (use["t_s"] > begin - IDLE_S)]
    return before.groupby("node")["value"].mean().dropna().to_dict()
