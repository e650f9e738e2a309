"""Expected width of the interval of a sweep's maximum, foreseen from trials that the store holds."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ntier_analysis.errors import DataError
from ntier_analysis.statistics import distributions as stats
from ntier_analysis.statistics.foresight import Spread, half_width, spread
from ntier_analysis.statistics.throughput import BATCHES
from ntier_analysis.statistics.values import CONFIDENCE
from ntier_analysis.store.tables import read_table, read_values, sweeps
from ntier_analysis.verdict.load import SETTLES
from ntier_analysis.verdict.store import own_verdict

COLUMNS = ["users", "users_real", "think_time_s", "valid", "run_start_s", "run_end_s", "throughput_per_s",
           "throughput_low_per_s", "throughput_high_per_s"]  # fmt: skip


@dataclass(frozen=True)
class Foresight:
    """`source`: the sweep whose trials beyond the knee were taken. `plateau_users`: its lowest and its highest load
    that counted for the maximum; `left_out`: whether higher ones did not. `per_user`: real users of a nominal one."""

    source: str
    seen: Spread
    plateau_users: tuple[int, int]
    left_out: bool
    think_s: float
    per_user: float

    def counts_up_to(self, run_s: float) -> float:
        """The highest load that counts in runs of this length: none that is above one that did not, or that does not
        settle by Little's law (N/X - Z)."""
        if self.left_out:
            return self.plateau_users[1]
        settles = self.seen.throughput_per_s * (self.think_s + SETTLES * run_s) / self.per_user
        return max(self.plateau_users[1], settles)


def foresight(store: Path, sweep: str, topology: str, scale: float) -> Foresight | None:
    """From the sweep itself, else from another of the same topology and scale; None if none has two valid trials
    beyond the knee. Raises DataError if there is no store."""
    there = sweeps(store)
    if sweep in there and (found := _of(store, sweep)):
        return found
    for name in there:
        with contextlib.suppress(DataError):  # a file of another sweep that cannot be read is no matter of this one
            if name != sweep and _alike(store, name, topology, scale) and (found := _of(store, name)):
                return found
    return None


def _alike(store: Path, name: str, topology: str, scale: float) -> bool:
    values, _ = read_values(store, "trials", name, ["topology", "scale"])
    return set(values["topology"]) == {topology} and all(np.isclose(s, scale) for s in values["scale"] if s is not None)


def _of(store: Path, name: str) -> Foresight | None:
    judged = own_verdict(store, name)
    trials = read_table(store, "trials", name, columns=COLUMNS)
    trials = trials[trials["valid"].fillna(False).astype(bool)]
    counted = trials[trials["users"].isin(judged.plateau_users)]
    counted = counted.dropna(subset=["throughput_per_s", "throughput_low_per_s", "throughput_high_per_s"])
    if len(counted) < 2 or not np.isfinite(judged.knee_users):
        return None
    wide = counted["throughput_high_per_s"] - counted["throughput_per_s"]  # the lower end may have been cut off at 0
    errors = wide / stats.t.ppf(0.5 + CONFIDENCE / 2, BATCHES - 1)
    run_s = float((counted["run_end_s"] - counted["run_start_s"]).mean())
    seen = spread(counted["throughput_per_s"].to_numpy(), errors.to_numpy(), run_s)
    lowest, highest = min(judged.plateau_users), max(judged.plateau_users)
    think_s, per_user = counted["think_time_s"].astype(float).mean(), (counted["users_real"] / counted["users"]).mean()
    left_out = bool((trials["users"] > highest).any())
    return Foresight(name, seen, (lowest, highest), left_out, float(np.nan_to_num(think_s)), float(per_user))


def as_json(found: Foresight | None, run_s: float, most: int) -> dict:
    """`plateau_users`: the lowest and the highest load that will count in runs of `run_s`. `half_widths`: [expected,
    least, most] relative to the maximum, for 2 to `most` trials beyond the knee."""
    if found is None:
        return {"source": None}
    return {
        "source": found.source,
        "trials_n": found.seen.n,
        "throughput_per_s": found.seen.throughput_per_s,
        "total": found.seen.total,
        "within": found.seen.within,
        "run_s": found.seen.run_s,
        "plateau_users": [found.plateau_users[0], round(found.counts_up_to(run_s))],
        "half_widths": {n: half_width(found.seen, n, run_s) for n in range(2, most + 1)},
    }
