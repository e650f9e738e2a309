"""The figures: figure 26, the rates over time of figures 1 to 25, and the laws over twelve sleeps."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import laws
import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from runs import (
    NO_RUN,
    NOT_MEASURED,
    SYSTEM,
    Cells,
    Row,
    by_cell,
    half_width,
    mean,
    measured,
    rows,
    run_of,
    runs_with_rates,
)

CURVES = ((1, "base"), (2, "acid"), (2, "base"), (4, "acid"), (4, "base"))
SLEEPS = (2.0, 1.5, 1.0, 0.5, 0.1)
COLORS = {1: "C0", 2: "C1", 4: "C2"}
"""By nodes; all other numbers of nodes share one."""
BESIDE_S = 0.007  # between curves, so that equal ones can be seen


def draw(folder: Path) -> None:
    """In a context, or all that this process draws later would get this study's salt, and other bytes."""
    with mpl.rc_context({"svg.hashsalt": SYSTEM}):
        draw_queries().savefig(folder / "queries.svg", metadata={"Date": None})
        if runs_with_rates():
            draw_rates().savefig(folder / "rates.svg", metadata={"Date": None})
        if with_law():
            draw_laws().savefig(folder / "laws.svg", metadata={"Date": None})


def draw_queries() -> Figure:
    """Figure 26: queries per second over the thesis' sleeps, means; small dots are single runs, bars 95 % intervals of
    the means of three runs or more (of two, a bar would say nothing: 12.7 standard errors). Curves stand beside each
    other, as many are equal; a mode that was measured at two sleeps has no line, since the curve is none."""
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    sides = figure.subplots(1, 2, sharey=True)
    shown = (("thesis", by_cell(rows("thesis.csv"))), ("here", measured()))
    for axes, (title, cells) in zip(sides, shown, strict=True):
        for number, ((nodes, mode), sleeps) in enumerate(sorted(cells.items())):
            at = sorted(set(sleeps) & set(SLEEPS))
            if mode == "selects":
                flat = np.mean([mean(cell, "queries_per_s") for cell in sleeps.values()])
                axes.axhline(float(flat), color="0.5", label="selects alone")
                continue
            rates = [[float(row["queries_per_s"]) for row in sleeps[s]] for s in at]
            bars = [half_width(values) if len(values) > 2 else math.nan for values in rates]
            beside = [s + BESIDE_S * (number - len(cells) / 2) for s in at]
            look = style(nodes, mode) | ({"linestyle": "none"} if len(at) < 3 else {})
            axes.errorbar(beside, list(map(np.mean, rates)), bars, label=label(nodes, mode), capsize=2, **look)
            single = [
                (s, value) for s, values in zip(beside, rates, strict=True) for value in values if len(values) > 1
            ]
            axes.scatter(*np.array(single).reshape(-1, 2).T, s=6, color=look["color"], alpha=0.6)
        axes.set(title=title, xlabel="sleep between alters, s", xlim=(0, 2.1))
        if cells:
            axes.legend(fontsize="small")
        else:
            axes.text(0.5, 0.5, NO_RUN, transform=axes.transAxes, ha="center")
    each = (cell for _, cells in shown for sleeps in cells.values() for s, cell in sleeps.items() if s in SLEEPS)
    means = [mean(cell, "queries_per_s") for cell in each]
    sides[0].set(ylabel="queries/s", ylim=(0, 1.3 * max(means, default=1.0)))  # a wide interval may leave the figure
    return figure


def style(nodes: int, mode: str) -> dict[str, Any]:
    marks = {"base": ("o", "-"), "acid": ("x", "--"), "logical": ("s", ":"), "quorum": ("^", "-.")}
    return {"marker": marks[mode][0], "linestyle": marks[mode][1], "color": COLORS.get(nodes, "C3")}


def label(nodes: int, mode: str) -> str:
    return "1 node" if nodes == 1 else f"{nodes} nodes, {mode.upper() if mode in ('acid', 'base') else mode}"


def with_law() -> Cells:
    """What was measured at more sleeps than the thesis'."""
    return {key: sleeps for key, sleeps in sorted(measured().items()) if len(sleeps) > len(SLEEPS)}


def draw_laws() -> Figure:
    """Runs (dots), and both laws as fitted to them."""
    found = with_law()
    figure = Figure(figsize=(4.5 * len(found), 4), layout="constrained")
    sides = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    for axes, ((nodes, mode), sleeps) in zip(sides, found.items(), strict=True):
        at, rate = laws.points(sleeps)
        fine = np.geomspace(min(at), max(at), 200)
        for law, name, look in ((laws.one_time, "one time", ":"), (laws.queue, "a queue", "-")):
            axes.plot(fine, law(fine, *laws.fit(law, at, rate).best), look, color="0.3", label=name)
        axes.scatter(at, rate, s=14, color=style(nodes, mode)["color"], alpha=0.6, label="runs", zorder=3)
        axes.set(title=label(nodes, mode), xlabel="sleep between alters, s", xscale="log", yscale="log")
        axes.set_xticks(at := (0.005, 0.02, 0.1, 0.5, 2.0), map(str, at))
        axes.grid(color="0.9")
        axes.minorticks_off()
        axes.legend(fontsize="small")
    sides[0].set_yticks(at := (250, 500, 1000, 2000, 4000), map(str, at))
    sides[0].set(ylabel="statements of alters per second", ylim=(200, 5000))
    return figure


def draw_rates() -> Figure:
    """Figures 1 to 25: selects and alters per second in each run."""
    figure = Figure(figsize=(11, 9), layout="constrained")
    axes = figure.subplots(len(SLEEPS), len(CURVES), sharex=True, sharey=True)
    found = by_cell(runs_with_rates())
    for i, sleep in enumerate(SLEEPS):
        for j, (nodes, mode) in enumerate(CURVES):
            runs = found.get((nodes, mode), {}).get(sleep, [])
            draw_run(axes[i][j], min(runs, key=run_of) if runs else None)
            if not i:
                axes[i][j].set_title(label(nodes, mode), fontsize="medium")
        axes[i][0].set_ylabel(f"sleep {sleep:g} s\nper second")
    for axis in axes[-1]:
        axis.set_xlabel("seconds of the run")
    handles, names = axes[0][0].get_legend_handles_labels()
    for axis in axes.flat:
        handles, names = axis.get_legend_handles_labels() if not handles else (handles, names)
    if handles:
        figure.legend(handles, names, loc="outside upper right", ncols=2)
    return figure


def draw_run(axes: Axes, run: Row | None) -> None:
    """Pale each second, strong the mean of five."""
    if run is None:
        axes.text(0.5, 0.5, NOT_MEASURED, transform=axes.transAxes, ha="center", fontsize="small", color="0.4")
        return
    for name, colour in (("selects", "C0"), ("alters", "C3")):
        each = np.array([int(n) for n in run[name].split()])
        axes.plot(np.arange(len(each)) + 0.5, each, color=colour, alpha=0.3, linewidth=0.7)
        fives = each[: len(each) // 5 * 5].reshape(-1, 5).mean(axis=1)
        axes.plot(5 * np.arange(len(fives)) + 2.5, fives, color=colour, label=name)
