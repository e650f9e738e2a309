"""Demand of each tier with draws of its uncertainty, from a sweep's loads below that tier's saturation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from ntier_analysis.errors import DataError
from ntier_analysis.statistics.laws import apart, demand
from ntier_analysis.statistics.throughput import BATCHES, batch_rates
from ntier_analysis.verdict.demands import UNSATURATED_PCT
from ntier_analysis.verdict.load import TIERS

Array = npt.NDArray[np.float64]

DRAWS = 300
"""Bootstrap draws: the ends of a 95 % interval then vary by some per cent of its width."""


@dataclass(frozen=True)
class TierDemand:
    """CPU of one tier. `demand_s`: core-seconds of all its nodes together per interaction; `idle_cores`, `cores`: of
    one node, idle floor and capacity; `draws`: (DRAWS, 2) of idle_cores and demand_s; `trials`: behind the fit."""

    tier: str
    nodes: int
    cores: float
    idle_cores: float
    demand_s: float
    draws: Array
    trials: tuple[str, ...]

    @property
    def interval_s(self) -> tuple[float, float]:
        """95 % interval of the demand."""
        low, high = np.percentile(self.draws[:, 1], (2.5, 97.5))
        return float(low), float(high)


def tier_demands(
    trials: pd.DataFrame, used_cores: pd.DataFrame, interactions: pd.DataFrame, nodes: pd.DataFrame, seed: int = 1
) -> list[TierDemand]:
    """Utilization law, CPU in use = idle + demand x throughput, per tier over the valid loads below 90 % of it.

    Columns of the store's tables; used_cores: samples of that metric in the run phase. Draws resample the trials and,
    within each, its ten batches (trials alone if there are no interactions). Raises DataError naming a tier whose
    demand cannot be told."""
    limits = nodes.dropna(subset=["cpu_cores"]).drop_duplicates(["node"])
    valid = trials[trials["valid"].astype(bool)].dropna(subset=["throughput_per_s", "run_start_s", "run_end_s"])
    done = {str(k): g for k, g in interactions[interactions["ok"].astype(bool)].groupby("trial")}
    rates = {t.trial: _rates(t, done.get(t.trial)) for t in valid.itertuples()}
    if any(len(r) < BATCHES for r in rates.values()):
        rates = {t: r[:1] * 0 + r.mean() for t, r in rates.items()}
    cores = {tier: part.set_index("node")["cpu_cores"] for tier, part in limits.groupby("tier") if tier in TIERS}
    if not cores:
        raise DataError("no node has a CPU capacity on record: there is nothing to predict from")
    used, below = {}, {}
    for tier, of_tier in cores.items():
        samples = used_cores[used_cores["node"].isin(of_tier.index)]
        used[tier] = {
            t.trial: _used(t, samples[samples["trial"] == t.trial], list(of_tier.index), len(rates[t.trial]))
            for t in valid.itertuples()
        }
        below[tier] = _unsaturated(used[tier], float(of_tier.sum()))
    for tier in sorted(cores, key=lambda t: len(below[t])):  # the one that is saturated most is why loads are alike
        _check(tier, np.array([rates[t].mean() for t in below[tier]]))
    return [
        _fit(tier, cores[tier], below[tier], used[tier], rates, np.random.default_rng(seed))
        for tier in TIERS
        if tier in cores
    ]


def _rates(trial, done: pd.DataFrame | None) -> Array:
    if done is None or trial.run_end_s - trial.run_start_s < BATCHES:
        return np.array([trial.throughput_per_s])
    return batch_rates(done["t_s"].to_numpy(), trial.run_start_s, trial.run_end_s)


def _used(trial, samples: pd.DataFrame, nodes: list[str], batches: int) -> Array:
    """Cores in use by all `nodes` of the tier, mean per batch; NaN where one of them was not measured."""
    edges = np.linspace(trial.run_start_s, trial.run_end_s, batches + 1)
    place = np.searchsorted(edges, samples["t_s"].to_numpy(), side="left") - 1  # t_s ends the sampling interval
    inside = (place >= 0) & (place < batches)
    means = samples[inside].groupby([samples["node"][inside], place[inside]])["value"].mean().unstack()
    return means.reindex(index=nodes, columns=range(batches)).sum(axis=0, skipna=False).to_numpy(dtype=float)


def _unsaturated(used: dict[str, Array], capacity: float) -> list[str]:
    return [t for t, u in used.items() if 100 * u.mean() / capacity < UNSATURATED_PCT]  # NaN compares as not below


def _check(tier: str, rates: Array) -> None:
    if not apart(rates):
        raise DataError(
            f"tier {tier}: {len(rates)} valid loads below {UNSATURATED_PCT:.0f} % utilization, a demand needs 2 whose "
            "throughputs differ by a tenth; measure lower loads"
        )


def _fit(
    tier: str, cores: pd.Series, below: list[str], used: dict[str, Array], rates: dict[str, Array], rng
) -> TierDemand:
    capacity = float(cores.sum())
    idle_cores, demand_s = _line(*(np.array([v[t].mean() for t in below]) for v in (rates, used)), capacity)
    if demand_s <= 0:
        raise DataError(
            f"tier {tier}: CPU in use does not grow with throughput over {len(below)} loads (demand "
            f"{1e3 * demand_s:.2f} ms); too few loads, or the application was not warm"
        )
    draws = _draws(np.array([rates[t] for t in below]), np.array([used[t] for t in below]), capacity, rng)
    draws[:, 0] /= len(cores)
    return TierDemand(tier, len(cores), capacity / len(cores), idle_cores / len(cores), demand_s, draws, tuple(below))


def _line(rates: Array, used: Array, capacity: float) -> tuple[float, float]:
    """Idle cores and core-seconds per interaction, with the weights of the verdict."""
    found = demand(rates, used, 0.02 * np.maximum(used, 0.01 * capacity))
    return found.idle_cores, found.demand_s


def _draws(rates: Array, used: Array, capacity: float, rng: np.random.Generator) -> Array:
    """Bootstrap, (DRAWS, 2) of idle cores and demand: trials with replacement, and batches within each (use and rate
    together). rates, used: (trials, batches).

    Samples that cover less than half of the range of rates are drawn again: their slope says nothing."""
    trials, batches = rates.shape
    x, y = np.empty((0, trials)), np.empty((0, trials))
    needed = 0.5 * np.ptp(rates.mean(axis=1))
    while len(x) < DRAWS:
        pick = rng.integers(trials, size=(2 * DRAWS, trials, 1))
        batch = rng.integers(batches, size=(2 * DRAWS, trials, batches))
        drawn = rates[pick, batch].mean(axis=2)
        kept = (np.ptp(rates.mean(axis=1)[pick[..., 0]], axis=1) >= needed) & (np.ptp(drawn, axis=1) > 0)
        x, y = np.vstack([x, drawn[kept]]), np.vstack([y, used[pick, batch].mean(axis=2)[kept]])
    x, y = x[:DRAWS], y[:DRAWS]
    weight = 1 / np.maximum(y, 0.01 * capacity) ** 2  # as `_line`
    weight /= weight.sum(axis=1, keepdims=True)
    x0, y0 = (weight * x).sum(axis=1), (weight * y).sum(axis=1)
    spread = (weight * (x - x0[:, None]) ** 2).sum(axis=1)
    slope = (weight * (x - x0[:, None]) * (y - y0[:, None])).sum(axis=1) / spread
    slope = np.maximum(slope, 0.0)
    return np.column_stack([y0 - slope * x0, slope])
