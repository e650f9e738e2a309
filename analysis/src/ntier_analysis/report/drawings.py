"""The figures of one sweep, static and interactive side by side."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ntier_analysis.figures import densities, loads, replicas, timeline
from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.style import tier_order
from ntier_analysis.report import interactive
from ntier_analysis.report.data import SweepData

DENSITY_INTERVAL_S = 1.0
"""Densities are drawn from means of one second, the paper's sampling interval: shorter samples of a node with a CPU
quota scatter far beyond 100 %, since the kernel hands the quota out in slices."""


@dataclass(frozen=True)
class Pair:
    """A figure and its interactive twin (None: only static); `wide` spans the page."""

    drawing: Drawing
    plot: dict | None
    wide: bool = False


def load_figures(data: SweepData) -> list[Pair]:
    """Throughput, response time, utilization, pools and the course of three trials."""
    trials, plateau = data.trials, data.plateau
    if trials["throughput_per_s"].isna().all():  # nothing was measured yet
        return []
    cpu = data.saturation[data.saturation["resource"] == "cpu"]
    model = None if isinstance(data.forecast, str) else data.forecast
    found = [
        Pair(loads.throughput(trials, plateau, model), interactive.throughput(trials, plateau, model)),
        Pair(loads.response_time(trials), interactive.response_time(trials)),
    ]
    if len(cpu):
        found.append(Pair(loads.utilization(cpu, data.scale), interactive.utilization(cpu), wide=True))
    chosen = telling_trials(trials[trials["trial"].isin(data.interactions["trial"])], data.verdict["knee_users"])
    if len(chosen):
        course = timeline.timeline(data.interactions, chosen)
        found.append(Pair(course, interactive.timeline(course.data), wide=True))
    measured = chosen[chosen["trial"].isin(data.statements["trial"])]
    if data.statements["item"].nunique() > 1 and len(measured):
        found.append(Pair(replicas.statements(data.statements, measured), None, wide=True))
    pools = data.saturation[data.saturation["resource"] == "pool"]
    if pools["valid"].any():
        found.append(Pair(loads.pools(pools, data.scale), interactive.pools(pools), wide=True))
    return found


def density_figures(data: SweepData) -> list[Pair]:
    """For the node that limits (else the most saturated one) the surface and the map; the map for every other node."""
    cpu = data.saturation[(data.saturation["resource"] == "cpu") & (data.saturation["tier"] != "host")]
    if cpu.empty:
        return []
    nodes = loads.nodes_in_order(cpu)
    first = _telling_node(data, cpu)
    nodes.sort(key=lambda n: n[0] != first)
    found = []
    for node, tier in nodes:
        shares = cpu[cpu["node"] == node]
        samples = data.cpu[data.cpu["node"] == node]
        curves = densities.node_densities(densities.averaged(samples, DENSITY_INTERVAL_S))
        if curves.empty:
            continue
        labels = {"node": node, "resource": "cpu"}
        if node == first:
            found.append(Pair(densities.density_surface(curves, shares, scale=data.scale, **labels), None))
        flat = densities.density_map(curves, shares, tier=tier, scale=data.scale, **labels)
        found.append(Pair(flat, interactive.density_map(curves, shares, tier=tier, **labels)))
    return found


def telling_trials(trials: pd.DataFrame, knee_users: float | None) -> pd.DataFrame:
    """Three trials that show how it goes: the lowest load, the one next to the knee (else the middle), the highest."""
    ordered = trials.dropna(subset=["run_start_s", "run_end_s"]).sort_values(["users", "rep"]).drop_duplicates("users")
    if ordered.empty:
        return ordered
    middle = knee_users if knee_users else ordered["users"].median()
    near = (ordered["users"] - middle).abs().to_numpy().argmin()
    return ordered.iloc[sorted({0, int(near), len(ordered) - 1})]


def _telling_node(data: SweepData, cpu: pd.DataFrame) -> str:
    named = [n for b in data.verdict["bottlenecks"] if b["resource"] == "cpu" for n in b["nodes"]]
    system = cpu[cpu["tier"].map(tier_order) < tier_order("client")]
    ranked = (system if len(system) else cpu).groupby("node")["saturation"].mean().sort_values(ascending=False)
    return next((n for n in named if n in ranked.index), str(ranked.index[0]))
