"""Figures over topologies: the bottleneck map (the study's Figure 2) and maps of ratios."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle

from ntier_analysis.campaign.cells import Cell
from ntier_analysis.campaign.compare import Groups, RatioMap
from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.style import COLUMN_IN, PAGE_IN, styled, tier_order
from ntier_analysis.statistics.groups import MARGIN, Pair
from ntier_analysis.wording import counted, ends, join

TINTS = ("#eef7fc", "#b9e5d3", "#9ec1e6", "#d6743c")
"""Of the tiers in their order: tints of their colours that also differ in grey (246, 214, 187, 139 of 255), black text
readable on all. The name of the tier is written in every cell."""
NO_LIMIT = "#ffffff"
SIDES = {"at least": "≥ ", "at most": "≤ ", "": ""}
SYMBOLS = {"same": "=", "higher": "▲", "lower": "▼", "undecided": "?"}
RATIO_COLORS = "PuOr"
"""Diverging, distinguishable for colour-blind readers; the number and a symbol say the same without colour."""
MOST = 4.0
"""Ratios beyond 4 and 1/4 have the strongest colour."""


def tint(tier: str) -> str:
    return TINTS[tier_order(tier)] if tier_order(tier) < len(TINTS) else "#dddddd"


class Grid:
    """Places of a map: the numbers of databases and app servers that occur, as evenly spaced columns and rows."""

    def __init__(self, places: list[tuple[int, int]], databases: str = "database servers") -> None:
        self.xs, self.ys = (sorted({p[k] for p in places}) for k in (0, 1))
        self.x_label = databases

    def __iter__(self) -> Iterator[tuple[int, int, int, int]]:
        """x, y, column, row of each place."""
        return ((x, y, i, j) for j, y in enumerate(self.ys) for i, x in enumerate(self.xs))

    def figure(self) -> Figure:
        """A column wide up to four places, else a page; rows high enough for three lines of text."""
        width = COLUMN_IN if len(self.xs) <= 4 else PAGE_IN
        return Figure(figsize=(width, 0.75 + 0.52 * len(self.ys)))

    def finish(self, axes) -> None:
        axes.set(xlim=(0, len(self.xs)), ylim=(0, len(self.ys)), xlabel=self.x_label, ylabel="application servers")
        axes.set_xticks(np.arange(len(self.xs)) + 0.5, [str(x) for x in self.xs])
        axes.set_yticks(np.arange(len(self.ys)) + 0.5, [str(y) for y in self.ys])
        axes.tick_params(length=0)
        axes.grid(False)
        for spine in axes.spines.values():
            spine.set_visible(True)

    def wrapped(self, label: str) -> str:
        """A title in lines that fit the figure's width."""
        return textwrap.fill(label, 58 if len(self.xs) <= 4 else 130)

    def missing(self, axes, column: int, row: int, words: str = "not\nmeasured") -> None:
        """A place that was not measured is marked as such, never filled in."""
        axes.add_patch(
            Rectangle((column, row), 1, 1, facecolor="white", edgecolor="#cccccc", hatch="..", linewidth=0.4)
        )
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        axes.text(column + 0.5, row + 0.5, words, ha="center", va="center", fontsize=5.5, color="#555555", bbox=box)


def bottleneck_map(cells: list[Cell], groups: Groups, label: str, slug: str) -> Drawing:
    """Databases x application servers: what limits, at which nominal throughput with its 95 % interval, and the letters
    of the groups of equal throughput. Thick lines separate places with different bottlenecks."""
    grid = Grid([c.place for c in cells], _databases(cells))
    there = {c.place: c for c in cells}
    with styled():
        figure = grid.figure()
        axes = figure.subplots()
        for x, y, column, row in grid:
            if (x, y) in there:
                _cell(axes, there[x, y], groups.letters.get(there[x, y].sweep, ""), column, row)
            else:
                grid.missing(axes, column, row)
        _borders(axes, grid, there)
        grid.finish(axes)
        axes.set_title(grid.wrapped(label), fontsize=7, loc="left")
    return Drawing(
        f"bottleneck-map-{slug}", figure, _finding(cells, label), _caption(cells, groups, label), _table(cells, groups)
    )


def _cell(axes, cell: Cell, letters: str, column: int, row: int) -> None:
    colors = [tint(t) for t, _ in cell.bottlenecks[:2]] or [NO_LIMIT]
    corner = {"linewidth": 0.4, "edgecolor": "#666666"}
    if len(colors) == 1:
        hatch = "//" if cell.verdict in ("hidden", "unknown") else None
        axes.add_patch(Rectangle((column, row), 1, 1, facecolor=colors[0], hatch=hatch, **corner))
    else:  # two at once: half a cell each
        left, right = (column, row), (column + 1, row + 1)
        for color, third in zip(colors, ((column, row + 1), (column + 1, row)), strict=True):
            axes.add_patch(Polygon([left, third, right], facecolor=color, **corner))
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6} if cell.verdict in ("hidden", "unknown") else None
    middle = {"ha": "center", "va": "center", "bbox": box}
    axes.text(column + 0.5, row + 0.76, cell.limit, fontsize=6 if len(cell.limit) < 15 else 4.8, **middle)
    axes.text(column + 0.5, row + 0.47, rate(cell), fontsize=7.5, fontweight="bold", **middle)
    if math.isfinite(cell.low_per_s):
        axes.text(column + 0.5, row + 0.2, ends(cell.low_per_s, cell.top_per_s, ".0f"), fontsize=5.5, **middle)
    axes.text(
        column + 0.95, row + 0.07, letters, fontsize=6.5, ha="right", va="bottom", fontstyle="italic", fontweight="bold"
    )


def rate(cell: Cell) -> str:
    """`579`, `≥ 479` for a lower bound, `–` if unknown."""
    if not math.isfinite(cell.max_per_s):
        return "–"
    return f"{'≥ ' if cell.at_least else ''}{cell.max_per_s:.0f}"


def _borders(axes, grid: Grid, there: dict[tuple[int, int], Cell]) -> None:
    """Between neighbours with different bottlenecks, both measured."""
    style = {"color": "black", "linewidth": 1.6, "solid_capstyle": "butt"}
    for x, y, i, j in grid:
        for di, dj, line in ((1, 0, ([i + 1] * 2, [j, j + 1])), (0, 1, ([i, i + 1], [j + 1] * 2))):
            if i + di < len(grid.xs) and j + dj < len(grid.ys):
                pair = there.get((x, y)), there.get((grid.xs[i + di], grid.ys[j + dj]))
                if all(pair) and pair[0].limit != pair[1].limit:
                    axes.plot(*line, **style)


def ratio_map(ratio: RatioMap, name: str, label: str) -> Drawing:
    """Maximum throughput of one map as a share of another's, place by place, with 95 % intervals; `=` where both
    are the same within 5 %."""
    grid = Grid(list(ratio.pairs))
    colors = mpl.colormaps[RATIO_COLORS]
    norm = TwoSlopeNorm(0.0, -math.log(MOST), math.log(MOST))
    with styled():
        figure = grid.figure()
        axes = figure.subplots()
        for x, y, column, row in grid:
            pair = ratio.pairs.get((x, y))
            if pair is None or pair.side == "unknown":
                grid.missing(axes, column, row, "not in\nboth" if pair is None else "two lower\nbounds")
                continue
            tint = 0.75 * np.array(colors(norm(np.clip(math.log(pair.ratio.value), norm.vmin, norm.vmax)))[:3]) + 0.25
            axes.add_patch(Rectangle((column, row), 1, 1, facecolor=tint, edgecolor="#666666", linewidth=0.4))
            middle = {"ha": "center", "va": "center", "color": "white" if tint.mean() < 0.45 else "black"}
            axes.text(
                column + 0.5,
                row + 0.62,
                f"{_ratio_text(pair)} {SYMBOLS[pair.relation]}",
                fontsize=7.5,
                fontweight="bold",
                **middle,
            )
            axes.text(column + 0.5, row + 0.27, ends(pair.ratio.low, pair.ratio.high, ".2f"), fontsize=5.5, **middle)
        grid.finish(axes)
        axes.set_title(grid.wrapped(label), fontsize=7, loc="left")
    rows = [
        (x, y, p.ratio.value, p.ratio.low, p.ratio.high, p.p_same, p.p_different, p.relation, p.a, p.b)
        for (x, y), p in ratio.pairs.items()
    ]
    columns = [
        "databases",
        "application_servers",
        "ratio",
        "low",
        "high",
        "p_same",
        "p_different",
        "relation",
        "sweep",
        "reference",
    ]
    caption = (
        f"Maximum throughput, {label}: ratio with 95 % interval (Welch's t on logarithms). = : the same within "
        f"{100 * MARGIN:g} %; ▲▼: different at 5 %, both corrected by Holm over the n = {len(rows)} places; "
        "?: undecided; ≥ or ≤: one of the two maxima is a lower bound, which decides on its side only. "
        f"{_scales(ratio.scales)}"
    )
    return Drawing(name, figure, _ratio_finding(ratio, label), caption, pd.DataFrame(rows, columns=columns))


def _scales(scales: tuple[float, ...]) -> str:
    if len(scales) == 1:
        return f"Nominal maxima, all at scale {scales[0]:g}."
    named = join([f"{s:g}" for s in scales])
    return f"Nominal maxima of scales {named}: a ratio assumes that CPU per interaction does not depend on the scale."


def _ratio_finding(ratio: RatioMap, label: str) -> str:
    closed = [p.ratio.value for p in ratio.pairs.values() if not p.side]
    counts = {r: sum(p.relation == r for p in ratio.pairs.values()) for r in SYMBOLS}
    said = ", ".join(f"{n} {r}" for r, n in counts.items() if n)
    if len(ratio.pairs) == 1:
        return f"{label}: {_ratio_text(*ratio.pairs.values())} ({said})."
    span = f"{min(closed):.2f} to {max(closed):.2f} over {counted(len(closed), 'topology')}" if closed else "no ratio"
    bounds = len(ratio.pairs) - len(closed)
    more = f", and a lower bound on one side or both in {counted(bounds, 'topology')}" if bounds else ""
    return f"{label}: {span}{more} ({said})."


def _ratio_text(pair: Pair) -> str:
    """`1.02`, `≥ 1.02`, `two lower bounds`."""
    return "two lower bounds" if pair.side == "unknown" else f"{SIDES[pair.side]}{pair.ratio.value:.2f}"


def _databases(cells: list[Cell]) -> str:
    return "SQL nodes" if cells[0].topology.dbms == "C" else "database servers"


def _finding(cells: list[Cell], label: str) -> str:
    regions: dict[str, list[Cell]] = {}
    for c in cells:
        regions.setdefault(c.limit, []).append(c)
    said = "; ".join(
        f"{limit} in {len(m)} ({_span(m)}/s)" for limit, m in sorted(regions.items(), key=lambda r: -len(r[1]))
    )
    return f"What limits {counted(len(cells), 'topology')}, {label}: {said}."


def _span(cells: list[Cell]) -> str:
    """`480`, `480 to 600`, `480 to ≥ 600` with a lower bound among them: it may be the highest."""
    known = sorted((c for c in cells if math.isfinite(c.max_per_s)), key=lambda c: c.max_per_s)
    if not known:
        return "–"
    low, high = known[0], f"{'≥ ' if any(c.at_least for c in known) else ''}{known[-1].max_per_s:.0f}"
    return high if round(low.max_per_s) == round(known[-1].max_per_s) else f"{rate(low)} to {high}"


def _caption(cells: list[Cell], groups: Groups, label: str) -> str:
    scales = ", ".join(f"{s:g}" for s in sorted({c.scale for c in cells}))
    trials = [c.valid for c in cells]
    n = f"{min(trials)}" if min(trials) == max(trials) else f"{min(trials)} to {max(trials)}"
    text = (
        f"Bottleneck and maximum throughput (nominal interactions/s with 95 % interval; ≥: a lower bound), {label}; "
        f"n = {n} valid trials per topology; scale {scales}. "
    )
    if groups.letters:
        text += (
            f"Topologies that share a letter are the same within {100 * MARGIN:g} % (two one-sided tests, Holm over "
            f"{len(groups.pairs)} pairs); no common letter: not shown to be the same. "
        )
    return text + "Thick lines: the bottleneck differs. Dotted: not measured."


def _table(cells: list[Cell], groups: Groups) -> pd.DataFrame:
    columns = {
        "sweep": [c.sweep for c in cells],
        "topology": [str(c.topology) for c in cells],
        "databases": [c.x for c in cells],
        "application_servers": [c.y for c in cells],
        "verdict": [c.verdict for c in cells],
        "bottleneck": [c.limit for c in cells],
        "kind": [c.kind for c in cells],
        "saturation": [c.saturation for c in cells],
        "max_per_s": [c.max_per_s for c in cells],
        "low_per_s": [c.low_per_s for c in cells],
        "high_per_s": [c.high_per_s for c in cells],
        "at_least": [c.at_least for c in cells],
        "group": [groups.letters.get(c.sweep, "") for c in cells],
        "pooled_trials": [c.pooled for c in cells],
        "valid_trials": [c.valid for c in cells],
        "trials": [c.trials for c in cells],
        "scale": [c.scale for c in cells],
    }
    return pd.DataFrame(columns)
