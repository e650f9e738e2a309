"""Requests in progress against throughput in short windows, per node: where more work no longer gives more output."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.style import COLUMN_IN, PAGE_IN, styled, tier_look, tier_order
from ntier_analysis.statistics.in_progress import main_sequence

WINDOW_S = 0.1
"""Of the 50 to 100 ms that Wang et al. (ICDCS 2013) use, the longer one: a scaled model completes few in 50 ms."""
ACROSS = 3
SHADES = ("#c7c7c7", "#8f8f8f", "#4a4a4a", "#9ecae1", "#6baed6")
"""Of the loads, from the lowest: the curve over them has the tier's colour."""


@dataclass(frozen=True)
class Source:
    """Windows of one node: `windows` has the columns trial, users, load (in progress), rate (completions/s). `where`
    says in words what was counted and where it is from; `width_s`: length of a window."""

    node: str
    tier: str
    where: str
    width_s: float
    windows: pd.DataFrame


def load_throughput(sources: list[Source], scale: float) -> Drawing:
    """One panel per node, in the order of a request's way; all trials together make the curve."""
    ordered = sorted(sources, key=lambda s: (s.tier != "all", tier_order(s.tier), len(s.node), s.node))
    columns = min(ACROSS, len(ordered))
    rows = -(-len(ordered) // columns)
    curves = {s.node: main_sequence(s.windows["load"], s.windows["rate"]) for s in ordered}
    with styled():
        width = COLUMN_IN if columns == 1 else PAGE_IN
        figure = Figure(figsize=(width, 0.5 + 2.0 * rows))
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        loads = sorted({int(u) for s in ordered for u in s.windows["users"]})
        for axes, source in zip(panels, ordered, strict=False):
            _panel(axes, source, loads, curves[source.node])
        for axes in panels[len(ordered) :]:
            axes.set_axis_off()
        dots = [
            Line2D([], [], color=SHADES[i % len(SHADES)], marker=".", linestyle="none", label=f"{u:,} users")
            for i, u in enumerate(loads)
        ]
        mean = Line2D([], [], color="black", marker="o", markersize=3, label="mean over windows of like load")
        figure.legend(handles=[*dots, mean], loc="outside lower center", ncols=2 if columns == 1 else len(dots) + 1)
    data = pd.concat([s.windows.assign(node=s.node, window_s=s.width_s, source=s.where) for s in ordered])
    said = "; ".join(f"{s.node}: {s.where}, windows of {_length(s.width_s)}, n = {len(s.windows):,}" for s in ordered)
    caption = (
        "Each dot is a window of the run phase: how many requests were in progress in it, and how many were completed "
        "in it per second. The line is the mean over windows of like load (the main sequence; points stand for 5 "
        "windows or more). Where it bends, further requests only wait. Requests are not weighted by their demand. "
        f"{said}. Scale {scale:g}."
    )
    return Drawing("load-throughput", figure, _finding(ordered, curves), caption, data)


def _panel(axes, source: Source, loads: list[int], curve) -> None:
    look = tier_look(source.tier)
    for position, users in enumerate(loads):
        rows = source.windows[source.windows["users"] == users]
        axes.plot(rows["load"], rows["rate"], ".", color=SHADES[position % len(SHADES)], markersize=1.6, alpha=0.55,
                  markeredgewidth=0, rasterized=True)  # fmt: skip
    x, y, _ = curve
    color = "black" if source.tier == "all" else look.color
    axes.plot(x, y, color="white", linewidth=2.6)
    axes.plot(x, y, color=color, marker=look.marker if source.tier != "all" else "o", markersize=3, linewidth=1.3)
    axes.set_title(f"{source.node} ({_length(source.width_s)})", loc="left")
    axes.set(xlabel="requests in progress", ylabel="completions/s", xlim=(0, None), ylim=(0, None))


def _length(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:g} s"


def _finding(sources: list[Source], curves: dict) -> str:
    """What the curve of the first panel does: how far it rises, and from where on it does not."""
    first = sources[0]
    x, y, _ = curves[first.node]
    if len(x) < 3:
        return f"Too few windows to see how the throughput of {first.node} depends on its load."
    top = float(np.max(y))
    bend = float(x[np.argmax(y >= 0.9 * top)])
    if bend >= 0.8 * x[-1]:
        return f"Throughput of {first.node} still grows with the requests in progress, up to {x[-1]:,.0f} of them."
    return (
        f"Throughput of {first.node} reaches 90 % of its highest mean ({top:,.0f}/s) at about {bend:,.0f} requests in "
        f"progress; up to {x[-1]:,.0f} were there."
    )
