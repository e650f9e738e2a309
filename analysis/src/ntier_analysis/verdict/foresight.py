"""Expected width of the interval of a sweep's maximum, foreseen from trials that the store holds."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from ntier_analysis.errors import DataError
from ntier_analysis.statistics.foresight import Spread, half_width, spread
from ntier_analysis.statistics.throughput import BATCHES
from ntier_analysis.statistics.values import CONFIDENCE
from ntier_analysis.store.tables import read_table, read_values, sweeps
from ntier_analysis.verdict.plateau import ON_PLATEAU
from ntier_analysis.verdict.store import verdicts

COLUMNS = ["users", "valid", "run_start_s", "run_end_s", "throughput_per_s", "throughput_low_per_s",
           "throughput_high_per_s"]  # fmt: skip


@dataclass(frozen=True)
class Foresight:
    """`source`: the sweep whose trials beyond the knee were taken; from `plateau_users` on loads are beyond it."""

    source: str
    seen: Spread
    plateau_users: float


def foresight(store: Path, sweep: str, topology: str, scale: float) -> Foresight | None:
    """From the sweep itself, else from another of the same topology and scale; None if none has two valid trials
    beyond the knee."""
    if os.path.lexists(store) and not store.is_dir():
        raise DataError(f"{store}: is no folder, so no store")
    if not (store / "trials").is_dir():
        return None
    there = sweeps(store)
    others = [name for name in there if name != sweep and _alike(store, name, topology, scale)]
    for name in [sweep] * (sweep in there) + others:
        if found := _of(store, name):
            return found
    return None


def _alike(store: Path, name: str, topology: str, scale: float) -> bool:
    values, _ = read_values(store, "trials", name, ["topology", "scale"])
    return set(values["topology"]) == {topology} and all(np.isclose(s, scale) for s in values["scale"] if s is not None)


def _of(store: Path, name: str) -> Foresight | None:
    (judged,) = verdicts(store, [name])
    trials = read_table(store, "trials", name, columns=COLUMNS)
    counted = trials[trials["users"].isin(judged.plateau_users) & trials["valid"].fillna(True).astype(bool)]
    counted = counted.dropna(subset=["throughput_per_s", "throughput_low_per_s", "throughput_high_per_s"])
    if len(counted) < 2 or not np.isfinite(judged.knee_users):
        return None
    wide = (counted["throughput_high_per_s"] - counted["throughput_low_per_s"]) / 2
    errors = wide / stats.t.ppf(0.5 + CONFIDENCE / 2, BATCHES - 1)
    run_s = float((counted["run_end_s"] - counted["run_start_s"]).mean())
    seen = spread(counted["throughput_per_s"].to_numpy(), errors.to_numpy(), run_s)
    return Foresight(name, seen, ON_PLATEAU * judged.knee_users)


def as_json(found: Foresight | None, run_s: float, most: int) -> dict:
    """`half_widths`: [expected, least, most] relative to the maximum, for 2 to `most` trials beyond the knee."""
    if found is None:
        return {"source": None}
    return {
        "source": found.source,
        "trials_n": found.seen.n,
        "throughput_per_s": found.seen.throughput_per_s,
        "total": found.seen.total,
        "within": found.seen.within,
        "run_s": found.seen.run_s,
        "plateau_users": found.plateau_users,
        "half_widths": {n: half_width(found.seen, n, run_s) for n in range(2, most + 1)},
    }
