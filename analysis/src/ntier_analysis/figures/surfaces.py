"""Maximum throughput over topologies: the study's Figure 3, a flat version that reads better, and scale-out laws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ntier_analysis.campaign.cells import Cell
from ntier_analysis.campaign.compare import ScaleOut
from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.style import COLUMN_IN, DENSITY_MAP, LAW_COLOR, styled
from ntier_analysis.statistics.scaling import Curve
from ntier_analysis.wording import counted

COLORS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":")
"""Of the rows of a map, or of maps. There is one colour (Okabe-Ito) less than markers, so that two rows of one marker
have different colours: only the 57th looks like the first."""


def row_look(position: int) -> tuple[str, str, str]:
    """Colour, marker and line; the first eight are told apart without colour too."""
    color, marker, line = (looks[position % len(looks)] for looks in (COLORS, MARKERS, LINES))
    return color, marker, line


def _face(cell: Cell, color: str) -> str:
    """Of a marker: hollow if the maximum is a lower bound."""
    return "white" if cell.at_least else color


def throughput_surface(cells: list[Cell], label: str, slug: str) -> Drawing:
    """Nominal maximum throughput (z) over databases (x) and application servers (y). A patch is drawn only between four
    neighbours that were all measured; every measured topology is a point on its stem; hollow: lower bounds."""
    there = {c.place: c for c in cells if math.isfinite(c.max_per_s)}
    xs, ys = (sorted({p[k] for p in there}) for k in (0, 1))
    top = max((c.max_per_s for c in there.values()), default=1.0)
    with styled():
        figure = Figure(figsize=(COLUMN_IN, 2.7), layout="none")
        axes = figure.add_axes((-0.06, -0.02, 1.04, 1.12), projection="3d", computed_zorder=False)
        look = {"cmap": DENSITY_MAP, "vmin": 0, "vmax": top, "alpha": 0.85, "linewidth": 0.3, "edgecolor": "white"}
        for (x0, x1), (y0, y1) in ((p, q) for p in itertools.pairwise(xs) for q in itertools.pairwise(ys)):
            corners = [[there.get((x, y)) for x in (x0, x1)] for y in (y0, y1)]
            if all(all(r) for r in corners):
                z = np.array([[c.max_per_s for c in r] for r in corners])
                axes.plot_surface(*np.meshgrid((x0, x1), (y0, y1)), z, rcount=2, ccount=2, **look)
        for (x, y), c in there.items():
            axes.plot([x, x], [y, y], [0, c.max_per_s], color="#999999", linewidth=0.4)
        _along_rows(axes, there, xs, ys)
        for (x, y), c in there.items():  # over the lines, so that hollow ones are seen to be
            face = _face(c, "black")
            axes.plot([x], [y], [c.max_per_s], marker="o", markersize=3, color="black", markerfacecolor=face)
        axes.set(zlim=(0, 1.05 * top), xticks=xs, yticks=ys)
        axes.set_xlabel(_databases(cells), labelpad=-6)
        axes.set_ylabel("application servers", labelpad=-6)
        axes.set_zlabel("max. throughput [1/s, nominal]", labelpad=-2)
        for axis, pad in (("x", -4), ("y", -4), ("z", -1)):
            axes.tick_params(axis=axis, pad=pad)
        axes.view_init(elev=26, azim=-60)
        axes.set_box_aspect((1.3, 1.0, 0.85), zoom=0.9)
    caption = (
        f"Nominal maximum throughput, {label}; points: measured (n = {counted(len(there), 'topology')}), hollow: a "
        f"lower bound; the surface is drawn only between four measured neighbours; scale {_scales(cells)}."
    )
    return Drawing(f"throughput-surface-{slug}", figure, _finding(list(there.values()), label), caption, _table(cells))


def _along_rows(axes, there: dict[tuple[int, int], Cell], xs: list[int], ys: list[int]) -> None:
    """Lines between neighbours, so that a single row or column is seen as well."""
    steps = [((x0, y), (x1, y)) for y in ys for x0, x1 in itertools.pairwise(xs)]
    steps += [((x, y0), (x, y1)) for x in xs for y0, y1 in itertools.pairwise(ys)]
    for a, b in steps:
        if a in there and b in there:
            axes.plot(*zip(a, b, strict=True), [there[a].max_per_s, there[b].max_per_s], color="black", linewidth=0.6)


def throughput_lines(cells: list[Cell], label: str, slug: str) -> Drawing:
    """The same flat: one line per number of application servers, 95 % intervals; hollow: lower bounds."""
    with styled():
        figure = Figure(figsize=(COLUMN_IN, 2.8))
        axes = figure.subplots()
        columns = sorted({c.x for c in cells})
        for position, app in enumerate(sorted({c.y for c in cells})):
            color, marker, line = row_look(position)
            row = sorted((c for c in cells if c.y == app and math.isfinite(c.max_per_s)), key=lambda c: c.x)
            x, y = np.array([c.x for c in row]) + 0.04 * position, np.array([c.max_per_s for c in row])
            above = [0.0 if c.at_least else c.high_per_s - c.max_per_s for c in row]
            ends = np.array([[c.max_per_s - c.low_per_s for c in row], above])
            axes.errorbar(x, y, np.nan_to_num(np.maximum(ends, 0)), color=color, fmt="none", linewidth=0.8)
            for c, at in zip(row, x, strict=True):
                look = {"marker": marker, "color": color, "markerfacecolor": _face(c, color)}
                axes.plot(at, c.max_per_s, linestyle="none", **look)
            for i, j in itertools.pairwise(range(len(row))):
                if columns.index(row[j].x) == columns.index(row[i].x) + 1:  # no line over a place not measured
                    axes.plot(x[[i, j]], y[[i, j]], color=color, linestyle=line)
            axes.plot([], [], color=color, marker=marker, linestyle=line, label=f"{app} app")
        axes.set(xlabel=_databases(cells), ylabel="maximum throughput [1/s, nominal]", ylim=(0, None))
        axes.set_ylim(0, 1.05 * axes.get_ylim()[1])
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        figure.legend(loc="outside lower center", ncols=4)
    caption = (
        f"Nominal maximum throughput with 95 % intervals, {label}; n = {counted(len(cells), 'topology')}; hollow: a "
        f"lower bound (no or a short plateau), whose interval has no upper end; lines guide the eye between "
        f"neighbours; scale {_scales(cells)}."
    )
    known = [c for c in cells if math.isfinite(c.max_per_s)]
    return Drawing(f"throughput-lines-{slug}", figure, _finding(known, label), caption, _table(cells))


def scaling(rows: list[ScaleOut], label: str, slug: str) -> Drawing:
    """Amdahl's law and the Universal Scalability Law through each row of a map, with the latter's 95 % band."""
    with styled():
        figure = Figure(figsize=(COLUMN_IN, 2.8))
        axes = figure.subplots()
        for position, row in enumerate(rows):
            color, marker, _ = row_look(position)
            x = np.array([c.x for c in row.cells])
            fine = np.linspace(min(1, x.min()), 1.15 * x.max(), 80)
            low, high = row.usl.band(fine)
            axes.fill_between(fine, low, high, color=color, alpha=0.15, linewidth=0)
            axes.plot(fine, row.usl.at(fine), color=color, linewidth=1.0, label=f"{row.app} app")
            axes.plot(fine, row.amdahl.at(fine), color=color, linewidth=0.8, linestyle=":")
            y = np.array([c.estimate.value for c in row.cells])
            ends = [y - [c.estimate.low for c in row.cells], [c.estimate.high for c in row.cells] - y]
            axes.errorbar(x, y, ends, color=color, fmt=marker, linewidth=0.8)
        axes.set(xlabel=_databases(rows[0].cells), ylabel="maximum throughput [1/s, nominal]", xlim=(0, None))
        axes.set_ylim(0, 1.05 * axes.get_ylim()[1])
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        figure.legend(loc="outside lower center", ncols=4)
    caption = (
        f"Scale-out, {label}: Universal Scalability Law (line, band: 95 %) and Amdahl's law (dotted) through the "
        f"maxima that are no lower bounds, with 95 % intervals, n = {', '.join(str(len(r.cells)) for r in rows)} "
        f"numbers of replicas per row; scale {_scales(rows[0].cells)}. These laws do not describe a limit in another "
        "tier: then neither fits."
    )
    finding = "; ".join(f"{counted(r.app, 'application server')}: {r.words}" for r in rows)
    return Drawing(f"scaling-{slug}", figure, f"Scale-out, {label}: {finding}.", caption, fits(rows))


def fits(rows: list[ScaleOut]) -> pd.DataFrame:
    """Parameters of both laws per row."""
    return pd.DataFrame([_fit(r, c) for r in rows for c in (r.amdahl, r.usl)])


def _fit(row: ScaleOut, curve: Curve) -> dict:
    fit = {"application_servers": row.app, "law": curve.name, "n": len(row.cells), "p_fits": curve.p}
    fit |= {"aicc": curve.aicc, "peak_replicas": curve.peak}
    for position, name in enumerate(("lambda_per_s", "sigma", "kappa")):
        ends = {"": curve.value, "_low": curve.low, "_high": curve.high}
        fit |= {name + end: values[position] for end, values in ends.items()}
    return fit


def costs(priced: pd.DataFrame, frontier: pd.DataFrame, currency: str, source: str, mix: str) -> Drawing:
    """Price per hour against nominal maximum throughput, one marker per map; the line joins what nothing cheaper beats.

    priced: columns sweep, topology, map, price_per_hour, max_per_s, low_per_s, high_per_s, at_least."""
    with styled():
        figure = Figure(figsize=(COLUMN_IN, 2.6 + 0.1 * priced["map"].nunique()))  # with room for the legend
        axes = figure.subplots()
        axes.step(frontier["max_per_s"], frontier["price_per_hour"], where="pre", color=LAW_COLOR, linewidth=0.9)
        for position, (label, rows) in enumerate(priced.groupby("map", sort=False)):
            color, marker, _ = row_look(position)
            ends = [
                (rows["max_per_s"] - rows["low_per_s"]).clip(lower=0).fillna(0),
                (rows["high_per_s"] - rows["max_per_s"]).clip(lower=0).fillna(0).mask(rows["at_least"], 0),
            ]
            axes.errorbar(
                rows["max_per_s"],
                rows["price_per_hour"],
                xerr=ends,
                color=color,
                fmt=marker,
                linewidth=0.7,
                label=label,
            )
        for r in frontier.itertuples():
            axes.annotate(
                r.topology, (r.max_per_s, r.price_per_hour), fontsize=5.5, xytext=(3, -7), textcoords="offset points"
            )
        axes.set(
            xlabel="maximum throughput [1/s, nominal]",
            ylabel=f"price per hour [{currency}]",
            xlim=(0, None),
            ylim=(0, None),
        )
        axes.set(xlim=(0, 1.15 * axes.get_xlim()[1]), ylim=(0, 1.1 * axes.get_ylim()[1]))
        figure.legend(loc="outside lower center", fontsize=5.5, ncols=1)
    best = frontier.sort_values("max_per_s").iloc[-1]
    bounds = int((priced["at_least"] & priced["max_per_s"].notna()).sum())
    finding = (
        f"The highest measured maximum is that of {best['topology']}, {'at least ' if best['at_least'] else ''}"
        f"{best['max_per_s']:.0f}/s at {best['price_per_hour']:.2f} {currency} per hour. For {len(frontier)} of "
        f"{counted(len(priced), 'topology')} no other measured more at the same price or less; the intervals say how "
        "sure that order is."
    )
    if bounds:
        finding += f" Of {counted(bounds, 'topology')} only a lower bound is known: with more, the order may change."
    caption = (
        f"Price of all nodes per hour against nominal maximum throughput (95 % intervals; without an upper end: a "
        f"lower bound), n = {len(priced)} topologies; line: the topologies that no other one beats at the same price "
        f"or less. Prices: {source}. Nominal: measured / scale."
    )
    return Drawing(f"costs-{mix}", figure, finding, caption, priced)


def frontier(priced: pd.DataFrame) -> pd.DataFrame:
    """Rows that no other of at most their price beats, by price."""
    ordered = priced.dropna(subset=["max_per_s"]).sort_values(["price_per_hour", "max_per_s"], ascending=[True, False])
    best = ordered["max_per_s"].cummax().shift(fill_value=-math.inf)
    return ordered[ordered["max_per_s"] > best]


def _databases(cells: list[Cell]) -> str:
    return "SQL nodes" if cells[0].topology.dbms == "C" else "database servers"


def _scales(cells: list[Cell]) -> str:
    return ", ".join(f"{s:g}" for s in sorted({c.scale for c in cells}))


def _finding(cells: list[Cell], label: str) -> str:
    if not cells:
        return f"No maximum throughput is known, {label}."
    low, high = (f(cells, key=lambda c: c.max_per_s) for f in (min, max))
    ends = " to ".join(f"{'≥ ' if c.at_least else ''}{c.max_per_s:.0f}/s ({c.topology})" for c in (low, high))
    bounds = sum(c.at_least for c in cells)
    more = f" Of {bounds} of {counted(len(cells), 'topology')} only a lower bound is known." if bounds else ""
    return f"Maximum throughput, {label}: {ends}.{more}"


def _table(cells: list[Cell]) -> pd.DataFrame:
    rows = [(str(c.topology), c.x, c.y, c.max_per_s, c.low_per_s, c.high_per_s, c.at_least, c.scale) for c in cells]
    columns = [
        "topology",
        "databases",
        "application_servers",
        "max_per_s",
        "low_per_s",
        "high_per_s",
        "at_least",
        "scale",
    ]
    return pd.DataFrame(rows, columns=columns)
