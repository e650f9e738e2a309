"""Verdicts of a whole store."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ntier_analysis.errors import DataError
from ntier_analysis.store.tables import read_table, sweeps
from ntier_analysis.verdict.replicas import with_replicas
from ntier_analysis.verdict.sweep import SweepVerdict
from ntier_analysis.verdict.tables import NEEDED_METRICS, sweep_verdict

_NEEDED = [("metric", "in", list(NEEDED_METRICS)), ("phase", "=", "run")]

SETTING = ("mix", "middleware", "scale", "think_time_s")
"""Columns of `trials` that must be equal for the gain of a node to mean anything."""


def verdicts(store: Path, names: list[str]) -> list[SweepVerdict]:
    """Computed from the tables trials, samples, nodes and interactions; sweeps whose topologies differ by the nodes of
    one tier are witnesses of each other. Raises DataError for an unknown sweep."""
    there = sweeps(store)
    unknown = [n for n in names if n not in there]
    if unknown:
        raise DataError(f"no sweep {unknown[0]!r} in {store}; there are: {', '.join(there) or 'none'}")
    found, setting = [], {}
    for name in names or there:
        trials = read_table(store, "trials", name)
        setting[name] = tuple(tuple(sorted(set(trials[c].dropna().astype(str)))) for c in SETTING)
        found.append(_verdict(store, name, trials))
    return with_replicas(found, setting)


def _verdict(store: Path, name: str, trials: pd.DataFrame) -> SweepVerdict:
    return sweep_verdict(
        name,
        trials,
        read_table(store, "samples", name, filters=_NEEDED),
        read_table(store, "nodes", name),
        read_table(store, "interactions", name, columns=["trial", "t_s", "ok"]),
    )
