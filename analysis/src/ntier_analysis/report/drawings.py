"""The figures of one sweep, static and interactive side by side."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ntier_analysis.figures import (
    course,
    densities,
    events,
    loads,
    percentiles,
    replicas,
    sequence,
    style,
    tiers,
    timeline,
)
from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.style import tier_order
from ntier_analysis.report import interactive, measured
from ntier_analysis.report.data import SweepData

USED_PCT = 50.0
"""The density of another resource than a CPU is drawn where the 95th percentile of its samples reaches this at some
load, or it is saturated at all: below half of the capacity in 19 of 20 samples it is a spike at the left edge."""
MOST_DENSITIES = 8
"""Of other resources in a report, the most used ones; `ntier-analysis figure` draws the rest."""


@dataclass(frozen=True)
class Pair:
    """A figure and its interactive twin (None: only static); `wide` spans the page."""

    drawing: Drawing
    plot: dict | None
    wide: bool = False


LOAD_FIGURES = ("throughput", "response-time", "utilization", "timeline", "statements-per-replica", "pools")
"""Names of those that there may be."""


def load_figures(data: SweepData) -> list[Pair]:
    """Throughput, response time, utilization, pools and the course of three trials."""
    trials, plateau = data.trials, data.plateau
    if trials["throughput_per_s"].isna().all():  # nothing was measured yet
        return []
    cpu = data.saturation[data.saturation["resource"] == "cpu"]
    model = None if isinstance(data.forecast, str) else data.forecast
    tails = percentiles.of_trials(data.interactions, trials)
    pairs = [
        Pair(
            loads.throughput(trials, plateau, model, data.verdict["verdict"]),
            interactive.throughput(trials, plateau, model),
        ),
        Pair(loads.response_time(trials, tails), interactive.response_time(trials, tails)),
    ]
    if len(cpu):
        pairs.append(Pair(loads.utilization(cpu, data.scale), interactive.utilization(cpu), wide=True))
    chosen = telling_trials(
        trials[trials["trial"].isin(data.interactions["trial"].unique())], data.verdict["knee_users"]
    )
    if len(chosen):
        marked = events.events(data.samples[data.samples["trial"].isin(chosen["trial"])])
        over_time = timeline.timeline(data.interactions, chosen, marked)
        # only the static one shows the events
        plot = interactive.timeline(over_time.data) if marked.empty else None
        pairs.append(Pair(over_time, plot, wide=True))
    measured = chosen[chosen["trial"].isin(data.statements["trial"].unique())]
    if data.statements["item"].nunique() > 1 and len(measured):
        pairs.append(Pair(replicas.statements(data.statements, measured, data.statements_by), None, wide=True))
    pools = data.saturation[data.saturation["resource"] == "pool"]
    if pools["valid"].any():
        pairs.append(Pair(loads.pools(pools, data.scale), interactive.pools(pools), wide=True))
    return pairs


def density_figures(data: SweepData) -> list[Pair]:
    """For the node that limits (else the most saturated one) the surface and the map; the map for every other node."""
    cpu = data.saturation[(data.saturation["resource"] == "cpu") & (data.saturation["tier"] != "host")]
    if cpu.empty:
        return []
    nodes = loads.nodes_in_order(cpu)
    first = _telling_node(data, cpu)
    nodes.sort(key=lambda n: n[0] != first)
    pairs = []
    for node, tier in nodes:
        item = str(cpu.loc[cpu["node"] == node, "item"].iloc[0])
        density = measured.density_of(data, node, "cpu", item)
        if density is None:
            continue
        if node == first:
            pairs.append(Pair(density_surface(density, data.scale), None))
        labels = {"node": node, "resource": "cpu", "tier": tier}
        flat = densities.density_map(density.curves, density.shares, scale=data.scale, **labels)
        pairs.append(Pair(flat, interactive.density_map(density.curves, density.shares, **labels)))
    return pairs


def density_surface(density: measured.Density, scale: float) -> Drawing:
    labels = {"node": density.node, "resource": density.resource, "item": density.item}
    return densities.density_surface(density.curves, density.shares, scale=scale, **labels)


def density_map(density: measured.Density, scale: float) -> Drawing:
    labels = {"node": density.node, "resource": density.resource, "item": density.item, "tier": density.tier}
    return densities.density_map(density.curves, density.shares, scale=scale, **labels)


@dataclass(frozen=True)
class Section:
    """Figures that a report folds under a heading; `note`: what they are for, and what is left out."""

    title: str
    note: str
    pairs: list[Pair]


def detail_sections(data: SweepData) -> list[Section]:
    """Figures that go deeper than the verdict needs; only those with data."""
    if data.trials["throughput_per_s"].isna().all():
        return []
    sections = [_percentiles(data), _tiers(data), _courses(data), _sequence(data), _other_densities(data)]
    return [section for section in sections if section is not None and section.pairs]


def knee_trial(data: SweepData, known: pd.Series) -> tuple | None:
    """The trial next to the knee (without one the highest load) among the valid ones, else among all, of those named
    in `known`."""
    trials = data.trials[data.trials["trial"].isin(known.unique())].dropna(subset=["run_start_s", "run_end_s"])
    usable = trials[trials["valid"]] if trials["valid"].any() else trials
    if usable.empty:
        return None
    knee = data.verdict["knee_users"] or usable["users"].max()
    at = (usable["users"] - knee).abs().to_numpy().argmin()
    return next(usable.iloc[[at]].itertuples())


def _percentiles(data: SweepData) -> Section | None:
    trial = knee_trial(data, data.interactions["trial"])
    if trial is None:
        return None
    done = data.interactions[data.interactions["trial"] == trial.trial]
    note = "At the load nearest to the knee, or at the highest load if there is no knee."
    return Section("Response time of each interaction", note, [Pair(percentiles.percentiles(done, trial), None, True)])


def _tiers(data: SweepData) -> Section | None:
    levels = measured.tier_levels(data)
    if levels.empty:
        return None
    note = "Where an interaction spends its time, by the log of the first tier and by what each reports as in use."
    return Section("Time in each tier", note, [Pair(tiers.per_tier(levels, data.trials), None, True)])


def course_samples(data: SweepData, trial: str) -> pd.DataFrame:
    """All samples of a trial that `figures.course` reads; of the CPU those of the trusted collector."""
    mine, cpu = (frame[frame["trial"] == trial] for frame in (data.samples, data.cpu))
    return pd.concat([mine, cpu[mine.columns]], ignore_index=True)


def _courses(data: SweepData) -> Section | None:
    """The course of the trial with the strongest chain from a disk, else of the one next to the knee."""
    linked = [name for name, chains in data.chains.items() if chains]
    trial = knee_trial(data, pd.Series(linked)) or knee_trial(data, data.cpu["trial"])
    if trial is None:
        return None
    samples = course_samples(data, trial.trial)
    nodes = course.telling_nodes(samples, [n for b in data.verdict["bottlenecks"] for n in b["nodes"]])
    if not nodes:
        return None
    note = "Disk, CPU, running and executed statements, second by second: which of them rise and fall together."
    return Section("Course of single nodes", note, [Pair(course.course(samples, trial, nodes), None, True)])


def _sequence(data: SweepData) -> Section | None:
    usable = data.trials[data.trials["valid"]] if data.trials["valid"].any() else data.trials
    sources = measured.load_sources(data, usable.drop_duplicates("users"))
    if not sources:
        return None
    note = (
        "Queues come and go within such short windows. The figure shows the number of requests in progress beyond "
        "which a node completes no more."
    )
    drawing = sequence.load_throughput(sources, data.scale)
    return Section("Load against throughput in short windows", note, [Pair(drawing, None, len(sources) > 1)])


def _other_densities(data: SweepData) -> Section | None:
    """Disks, networks and pools that are used."""
    rows = data.saturation[(data.saturation["resource"] != "cpu") & (data.saturation["tier"] != "host")]
    keys = ["node", "tier", "resource", "item"]
    use = rows.groupby(keys)[["utilization_p95_pct", "saturation"]].max()
    used = use[(use["utilization_p95_pct"] >= USED_PCT) | (use["saturation"] > 0)]
    ranked = used.sort_values(["saturation", "utilization_p95_pct"], ascending=False).index
    pairs, left = [], [style.resource_name(k[2], k[3]) + f" of {k[0]}" for k in ranked[MOST_DENSITIES:]]
    for node, _, resource, item in ranked[:MOST_DENSITIES]:
        density = measured.density_of(data, node, resource, item)
        if density is not None:
            pairs.append(Pair(density_map(density, data.scale), None))
    note = (
        "Resources that are saturated at some time, or whose samples have a 95th percentile of at least "
        f"{USED_PCT:g} % at some load; `ntier-analysis figure` draws the others."
    )
    note += f" Left out to save room: {', '.join(left)}." if left else ""
    return Section("Densities of disks, networks and pools", note, pairs)


def telling_trials(trials: pd.DataFrame, knee_users: float | None) -> pd.DataFrame:
    """Three typical trials: the lowest load, the one next to the knee (else the middle), the highest."""
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
