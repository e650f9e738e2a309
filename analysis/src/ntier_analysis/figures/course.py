"""What chosen nodes do over a stretch of a trial: disk, CPU, running and executed statements under each other."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from ntier_analysis.contracts import implied
from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.load_axis import in_its_words, tiers_in_order
from ntier_analysis.figures.style import INVALID_COLOR, PAGE_IN, THRESHOLD_PCT, styled, tier_look, tier_order
from ntier_analysis.parsers.counters import GAP

Array = npt.NDArray[np.float64]

MOST_NODES = 3
STRETCH_S = 120.0
"""Longest stretch that is chosen by itself: single seconds are still to be seen at the width of a page."""
FEW_S = 3
"""Seconds with a full disk, and without, that a comparison of the two needs."""


@dataclass(frozen=True)
class Measure:
    """One row of panels. `choices`: (resource, metric, source; empty: any) in order of preference; `factor` turns the
    stored unit into that of the label."""

    name: str
    label: str
    choices: tuple[tuple[str, str, str], ...]
    factor: float = 1.0
    summed: bool = False


MEASURES = (
    Measure("disk", "disk [%]", (("disk", "utilization_pct", "cgroup"), ("disk", "utilization_pct", ""))),
    Measure(
        "disk read",
        "read [MB/s]",
        (("disk", "read_bytes_per_s", "cgroup"), ("disk", "read_bytes_per_s", "")),
        factor=1e-6,
    ),
    Measure("CPU", "CPU [%]", (("cpu", "utilization_pct", "cgroup"), ("cpu", "utilization_pct", ""))),
    Measure("running", "running [count]", (("queue", "threads_running", ""), ("pool", "pending", "")), summed=True),
    Measure(
        "executed",
        "executed [1/s]",
        (("query", "statements_per_s", ""), ("query", "questions_per_s", ""), ("query", "xact_commit_per_s", ""),
         ("query", "requests_per_s", "")),
        summed=True,
    ),
    Measure("pool in use", "pool in use [%]", (("pool", "utilization_pct", ""),)),
)  # fmt: skip
"""The disk's share of busy time, or where that is unknown (a container without a limit) what it reads."""
METRICS = sorted({metric for m in MEASURES for _, metric, _ in m.choices})
DISK = tuple(dict.fromkeys(metric for m in MEASURES for resource, metric, _ in m.choices if resource == "disk"))


@dataclass(frozen=True)
class Series:
    """A measure of a node: times (epoch s, end of each interval), values (NaN in a gap), and what was read."""

    measure: Measure
    t_s: Array
    value: Array
    where: str


def of_node(samples: pd.DataFrame, node: str, names: Collection[str] | None = None) -> list[Series]:
    """The series of a node from the samples of one trial, in the order of `MEASURES` (None: all of these). A database's
    statements are also those that another node counts under its name (item)."""
    mine = samples[samples["node"] == node]
    told = samples[(samples["item"] == node) & (samples["node"] != node)]
    measures: list[Series] = []
    for measure in MEASURES:
        if names is not None and measure.name not in names:
            continue
        for resource, metric, source in measure.choices:
            rows = pd.concat([told, mine]) if measure.summed else mine
            rows = rows[(rows["resource"] == resource) & (rows["metric"] == metric)]
            rows = rows[rows["source"] == source] if source else rows
            if rows["value"].notna().any():
                measures.append(_series(measure, rows, metric))
                break
    return measures


def _series(measure: Measure, rows: pd.DataFrame, metric: str) -> Series:
    """Takes the first of several collectors in the alphabet, and the most used of several devices or pools. Statements
    that several middlewares send are added up, second by second."""
    source = sorted(rows["source"].unique())[0]
    rows = rows[rows["source"] == source]
    if measure.summed:
        seconds = rows["t_s"].round()
        parts = rows["node"].nunique() * rows["item"].nunique()
        groups = rows.groupby(seconds)["value"]
        totals = groups.sum(min_count=1).where(groups.count() == parts)  # a second that lacks one is a gap
        return Series(measure, *with_gaps(totals.index.to_numpy(), totals.to_numpy()), f"{metric}, {source}")
    item = rows.groupby("item")["value"].mean().idxmax()
    rows = rows[rows["item"] == item].sort_values("t_s")
    values = measure.factor * rows["value"].to_numpy(dtype=float)
    where = f"{metric}{' of ' + item if item else ''}, {source}"
    return Series(measure, *with_gaps(rows["t_s"].to_numpy(dtype=float), values), where)


def with_gaps(t_s: npt.ArrayLike, values: npt.ArrayLike) -> tuple[Array, Array]:
    """A NaN in every gap (an interval longer than `GAP` usual ones), so that no line is drawn over it."""
    t, v = np.asarray(t_s, dtype=float), np.asarray(values, dtype=float)
    if len(t) < 3:
        return t, v
    steps = np.diff(t)
    wide = np.flatnonzero(steps > GAP * np.median(steps)) + 1
    return np.insert(t, wide, (t[wide - 1] + t[wide]) / 2), np.insert(v, wide, np.nan)


def second_means(t_s: Array, values: Array) -> tuple[Array, Array]:
    """Means over whole seconds (times: their middles); seconds that lack more than a tenth of the samples are NaN."""
    known = np.isfinite(values)
    if known.sum() < 2:
        return np.array([]), np.array([])
    per_second = 1 / float(np.median(np.diff(t_s[known])))
    # the end of an interval that ends with a second belongs to that second
    second = np.ceil(t_s[known] - 1e-6).astype(int) - 1
    first = second.min()
    n = np.bincount(second - first)
    total = np.bincount(second - first, weights=values[known])
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.arange(len(n)) + first + 0.5, np.where(n >= 0.9 * per_second, total / n, np.nan)


def stretch_of(series: dict[str, list[Series]], run: tuple[float, float]) -> tuple[float, float]:
    """Seconds of the run, at most `STRETCH_S`: those in which the nodes' disks are used most, else the first."""
    length = run[1] - run[0]
    if length <= STRETCH_S:
        return 0.0, length
    starts = np.arange(0.0, length - STRETCH_S + 1, 10.0)
    disks = [s for measures in series.values() for s in measures if s.measure.name.startswith("disk")]
    use = np.zeros(len(starts))
    for s in disks:
        t = s.t_s - run[0]
        use += [np.nansum(s.value[(t >= a) & (t < a + STRETCH_S)]) for a in starts]
    at = float(starts[int(np.argmax(use))])
    return at, at + STRETCH_S


def course(
    samples: pd.DataFrame, trial, nodes: list[tuple[str, str]], stretch: tuple[float, float] | None = None
) -> Drawing:
    """A column per node, a row per measure, over the seconds of the run phase that `stretch` names.

    samples: of one trial, columns of the store's samples. trial: a row of the store's trials. nodes: (name, tier)."""
    series = _comparable({node: of_node(samples, node) for node, _ in nodes})
    run = (trial.run_start_s, trial.run_end_s)
    begin, end = stretch or stretch_of(series, run)
    rows = [m for m in MEASURES if any(s.measure is m for measures in series.values() for s in measures)]
    with styled():
        figure = Figure(figsize=(PAGE_IN, 0.75 + 0.85 * max(len(rows), 1)))
        grid = figure.subplots(max(len(rows), 1), len(nodes), squeeze=False, sharex=True, sharey="row")
        for column, (node, tier) in zip(grid.T, nodes, strict=True):
            by_measure = {s.measure: s for s in series[node]}
            column[0].set_title(node, loc="left")
            for axes, measure in zip(column, rows, strict=False):
                _panel(axes, by_measure.get(measure), tier, run[0], (begin, end))
            column[-1].set(xlabel="seconds of the run phase", xlim=(begin, end))
        for axes, measure in zip(grid[:, 0], rows, strict=False):
            axes.set_ylabel(measure.label.replace(" [", "\n["))  # a line each, or neighbours touch
            least = 104.0 if measure.label.endswith("[%]") else 0.0
            axes.set_ylim(0, max(least, 1.05 * axes.get_ylim()[1]))
        figure.align_ylabels()
        title = in_its_words(f"{trial.trial}: {trial.users:,} users")
        figure.suptitle(title if trial.valid else f"{title}, INVALID ({trial.invalid_reasons})", fontsize=8, x=0.01,
                        ha="left", color="black" if trial.valid else INVALID_COLOR)  # fmt: skip
    data = _long(series, run[0], (begin, end))
    names = "-".join(node for node, _ in nodes)
    return Drawing(f"course-{trial.trial}-{names}", figure, _finding(series, nodes, run[0], (begin, end)),
                   _caption(series, trial, (begin, end), data), data)  # fmt: skip


def _comparable(series: dict[str, list[Series]]) -> dict[str, list[Series]]:
    """Leaves out what disks read if the share of busy time is known for all disks that read."""
    named = [{s.measure.name for s in measures} for measures in series.values()]
    if any("disk read" in names and "disk" not in names for names in named):
        return series
    return {node: [s for s in measures if s.measure.name != "disk read"] for node, measures in series.items()}


def _panel(axes, series: Series | None, tier: str, run_start_s: float, stretch: tuple[float, float]) -> None:
    if series is None:
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", va="center", color="0.4", fontsize=7)
        return
    t = series.t_s - run_start_s
    inside = (t >= stretch[0]) & (t <= stretch[1])
    t, v = t[inside], series.value[inside]
    color = tier_look(tier).color
    if len(t) > 2 and np.nanmedian(np.diff(t)) < 0.9:
        axes.plot(t, v, color="0.72", linewidth=0.5)
        axes.plot(*second_means(t, v), color=color, linewidth=1.1)
    else:
        axes.plot(t, v, color=color, linewidth=1.0)
    axes.set_ylim(0, None)


def _long(series: dict[str, list[Series]], run_start_s: float, stretch: tuple[float, float]) -> pd.DataFrame:
    columns = ["node", "measure", "t_s", "value", "source"]
    parts = [
        pd.DataFrame({"t_s": s.t_s - run_start_s, "value": s.value}).assign(
            node=node, measure=s.measure.label, source=s.where
        )
        for node, measures in series.items()
        for s in measures
    ]  # fmt: skip
    if not parts:
        return pd.DataFrame(columns=columns)
    frame = pd.concat(parts, ignore_index=True)[columns]
    return frame[frame["t_s"].between(*stretch)].reset_index(drop=True)


def _finding(
    series: dict[str, list[Series]], nodes: list[tuple[str, str]], start_s: float, stretch: tuple[float, float]
) -> str:
    """Compares, for the first node with a disk, the other measures in seconds with a full disk and without."""
    for node, _ in nodes:
        by_name = {s.measure.name: _per_second(s, start_s, stretch) for s in series[node]}
        disk = by_name.pop("disk", None)
        if disk is None:
            continue
        steps = np.diff(np.sort(disk.index.to_numpy()))
        moments = "seconds" if not len(steps) or np.median(steps) <= 1 else "samples"
        full = disk.index[disk >= THRESHOLD_PCT]
        rest = disk.index[disk < THRESHOLD_PCT]
        if len(full) < FEW_S or len(rest) < FEW_S:
            full_text = f"full (at or above {THRESHOLD_PCT:g} %) in {len(full)} of {len(disk)} {moments}"
            return f"The disk of {node} is {full_text}."
        said = [
            f"{name} {v.reindex(full).mean():,.1f}{unit} instead of {v.reindex(rest).mean():,.1f}{unit}"
            for name, v, unit in ((n, v, " %" if n == "CPU" else "") for n, v in by_name.items())
        ]
        return f"In the {len(full)} of {len(disk)} {moments} in which the disk of {node} is full: " + (
            "; ".join(said) + "." if said else "nothing else was measured."
        )
    means = [
        f"{s.measure.name} {np.nanmean(v):,.1f}{' %' if '%' in s.measure.label else ''}"
        for node, _ in nodes[:1]
        for s in series[node]
        if len(v := _per_second(s, start_s, stretch))
    ]
    return f"{nodes[0][0]} from {stretch[0]:.0f} s to {stretch[1]:.0f} s, means: " + (", ".join(means) or "none") + "."


def _per_second(series: Series, start_s: float, stretch: tuple[float, float]) -> pd.Series:
    t = series.t_s - start_s
    inside = (t > stretch[0]) & (t <= stretch[1]) & np.isfinite(series.value)
    seconds = np.ceil(t[inside] - 1e-6).astype(int)
    return pd.Series(series.value[inside]).groupby(seconds).mean()


def _caption(series: dict[str, list[Series]], trial, stretch: tuple[float, float], data: pd.DataFrame) -> str:
    sources = sorted({f"{s.measure.label.split(' [')[0]}: {s.where}" for measures in series.values() for s in measures})
    return (
        f"Seconds {stretch[0]:.0f} to {stretch[1]:.0f} of the run phase of {trial.trial} ({trial.users:,} users), "
        f"measured values (n = {int(data['value'].notna().sum()):,}): grey each sample, coloured 1-s "
        f"means where there are several a second; where a line is broken, a sample is missing. {'; '.join(sources)}; "
        f"scale {trial.scale:g}."
    )


def telling_nodes(samples: pd.DataFrame, named: list[str]) -> list[tuple[str, str]]:
    """Nodes that a report shows: of the deepest tier the node whose disk is used most, and the first nodes that the
    verdict names; at most two, in the order of a request's way. Empty where neither a disk nor statements were
    measured."""
    tiers = samples.drop_duplicates("node").set_index("node")["tier"]
    databases = samples[samples["tier"] == (tiers_in_order() or implied.TIERS)[-1]]
    if not databases["resource"].isin(["disk", "queue", "query"]).any():
        return []
    disks = databases[databases["resource"] == "disk"].dropna(subset="value")
    metric = next((m for m in DISK if (disks["metric"] == m).any()), "")  # percent and bytes are not averaged
    disks = disks[disks["metric"] == metric]
    chosen = [] if disks.empty else [str(disks.groupby("node")["value"].mean().idxmax())]
    for name in [*named, *sorted(databases["node"].unique())]:
        if len(chosen) < 2 and name in tiers.index and name not in chosen:
            chosen.append(name)
    return sorted(((n, str(tiers[n])) for n in chosen), key=lambda p: (tier_order(p[1]), len(p[0]), p[0]))
