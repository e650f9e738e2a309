"""CPU demand of each node and of each tier, by the utilization law over the loads that do not saturate it. The one
place from the store's tables to a demand: `demands`, the report, `compare` and `predict` read it here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ntier_analysis.contracts import implied
from ntier_analysis.contracts.system import NOT_TIERS, Replicas, System
from ntier_analysis.described import loads, ordered, servers_of, system_of
from ntier_analysis.errors import DataError
from ntier_analysis.statistics.laws import UNSATURATED_PCT, apart, demand_of, unsaturated
from ntier_analysis.statistics.values import Demand
from ntier_analysis.wording import counted


@dataclass(frozen=True)
class TierDemand:
    """CPU of one tier. `demand`: of all its nodes together (idle cores too); `nodes` of `cores` each; `trials`: behind
    the fit."""

    tier: str
    nodes: int
    cores: float
    demand: Demand
    trials: tuple[str, ...]
    replicas: Replicas = Replicas.BALANCED
    """How its nodes share the work. If all write, the sender of reads knows what is pending at each."""

    @property
    def idle_cores(self) -> float:
        """Idle floor of one node."""
        return self.demand.idle_cores / self.nodes

    def draws(self, count: int, seed: int = 1) -> np.ndarray:
        """(count, 2) of idle cores of one node and demand of all; NaN where fewer than three loads tell no error."""
        values = self.demand.draws(count, np.random.default_rng(seed))
        return np.column_stack([values[:, 0] / self.nodes, values[:, 1]])


@dataclass(frozen=True)
class _Use:
    """Throughput (1/s) of the valid trials, their loads (users, or the factor's values), and cores in use, (trials,
    nodes); `cores`: node -> capacity, of those whose capacity is known; `servers`: tier -> nodes that it has, measured
    or not."""

    rates: pd.Series
    levels: pd.Series
    used: pd.DataFrame
    cores: pd.Series
    tiers: pd.Series
    servers: dict[str, int]
    system: System

    @property
    def order(self) -> list[str]:
        return ordered(self.servers, self.system.order)

    def unmeasured(self, tier: str) -> int:
        """Nodes of the tier without a capacity, or without a sample in any valid trial."""
        names = self.cores.index[self.tiers == tier]
        return self.servers[tier] - int(self.used.reindex(columns=names).notna().any().sum())


def _use(trials: pd.DataFrame, used_cores: pd.DataFrame, nodes: pd.DataFrame) -> _Use:
    """Columns of the store's tables; used_cores: samples of that metric in the run phase."""
    known = nodes.dropna(subset=["cpu_cores"])
    limits = known[~known["tier"].isin(NOT_TIERS)].drop_duplicates("node").set_index("node")
    valid = trials[trials["valid"].fillna(False).astype(bool)].set_index("trial")["throughput_per_s"].dropna()
    levels = loads(trials).set_axis(trials["trial"]).reindex(valid.index) if len(trials) else valid
    used = used_cores.groupby(["trial", "node"])["value"].mean().unstack().reindex(index=valid.index)
    system = system_of(trials) if len(trials) else implied.system(0)  # without a trial it is neither known nor needed
    return _Use(valid, levels, used, limits["cpu_cores"], limits["tier"], servers_of(trials, nodes), system)


def node_demands(trials: pd.DataFrame, used_cores: pd.DataFrame, nodes: pd.DataFrame) -> dict[str, Demand | str]:
    """The demand of each server node, or why its loads give none, in the order of the table."""
    use = _use(trials, used_cores, nodes)
    servers = nodes.loc[~nodes["tier"].isin(NOT_TIERS), "node"].drop_duplicates()
    return {str(node): _of_node(use, node) for node in servers}


def _of_node(use: _Use, node: str) -> Demand | str:
    if use.rates.empty:
        return "no valid trial"
    if node not in use.cores:
        return "no cores on record"
    used = use.used[node].dropna() if node in use.used else pd.Series(dtype=float)
    if used.empty:
        return "CPU not measured"
    low = used.index[unsaturated(used, use.cores[node])]
    if _apart(use, use.rates[low]):
        return demand_of(use.rates, use.used[node], use.cores[node], use.levels)
    if len(low) == len(used):
        return "one load only" if use.levels[low].nunique() < 2 else "loads less than a tenth apart"
    but = use.levels[low].nunique()
    return f"full at all but {counted(but, 'load')}" if but else "full at every load"


def tier_demands(trials: pd.DataFrame, used_cores: pd.DataFrame, nodes: pd.DataFrame) -> list[TierDemand]:
    """The demands of all tiers, for a model of the whole system. Raises DataError naming a tier without one, also if
    some of its nodes were not measured: a model without them would have no limit there."""
    use = _use(trials, used_cores, nodes)
    tiers = use.order
    if use.cores.empty:
        raise DataError("no node has a CPU capacity on record: there is nothing to predict from")
    if use.rates.empty:
        raise DataError("there is no valid trial to predict from")
    for tier in tiers:
        if lacking := use.unmeasured(tier):
            raise DataError(
                f"tier {tier}: its CPU was not measured on {lacking} of {counted(use.servers[tier], 'node')} (a demand "
                "needs each node's cores, and its samples of the cores in use)"
            )
    rates = {t: _rates(use, t) for t in tiers}
    for tier in sorted(tiers, key=lambda t: len(rates[t])):  # the most saturated tier is the reason why loads are alike
        _check(use, tier, rates[tier])
    return [_tier(use, tier) for tier in tiers]


def known_tier_demands(trials: pd.DataFrame, used_cores: pd.DataFrame, nodes: pd.DataFrame) -> dict[str, TierDemand]:
    """The demands of those tiers whose loads give one, and of which all nodes were measured."""
    use = _use(trials, used_cores, nodes)
    fits = {t: _fit(use, t) for t in use.order if not use.unmeasured(t) and _apart(use, _rates(use, t))}
    return {tier: fit for tier, fit in fits.items() if fit.demand.demand_s > 0}


def _rates(use: _Use, tier: str) -> pd.Series:
    """Throughputs of the trials that do not saturate the tier."""
    return use.rates[unsaturated(_of_tier(use, tier), float(use.cores[use.tiers == tier].sum()))]


def _of_tier(use: _Use, tier: str) -> np.ndarray:
    """Cores in use by all nodes of the tier at each trial; NaN where one of them was not measured."""
    names = use.cores.index[use.tiers == tier]
    return use.used.reindex(columns=names).sum(axis=1, skipna=False).to_numpy(float)


def _apart(use: _Use, rates: pd.Series) -> bool:
    return apart(rates.to_numpy(), use.levels[rates.index].to_numpy())


def _check(use: _Use, tier: str, rates: pd.Series) -> None:
    if not _apart(use, rates):
        raise DataError(
            f"tier {tier}: {counted(use.levels[rates.index].nunique(), 'valid load')} below {UNSATURATED_PCT:.0f} % "
            "utilization, a demand needs 2 whose throughputs differ by a tenth; measure lower loads"
        )


def _tier(use: _Use, tier: str) -> TierDemand:
    fit = _fit(use, tier)
    if fit.demand.demand_s <= 0:
        raise DataError(
            f"tier {tier}: CPU in use does not grow with throughput over {fit.demand.loads} loads "
            f"(demand {1e3 * fit.demand.demand_s:.2f} ms); too few loads, or the application was not warm"
        )
    return fit


def _fit(use: _Use, tier: str) -> TierDemand:
    cores, used = use.cores[use.tiers == tier], _of_tier(use, tier)
    capacity = float(cores.sum())
    replicas = next((t.replicas for t in use.system.tiers if t.name == tier), Replicas.BALANCED)
    behind = tuple(use.rates.index[unsaturated(used, capacity)])
    demand = demand_of(use.rates, used, capacity, use.levels)
    return TierDemand(tier, len(cores), capacity / len(cores), demand, behind, replicas)
