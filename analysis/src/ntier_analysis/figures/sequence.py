"""Requests in progress against throughput in short windows, per node: where more work no longer gives more output."""

from __future__ import annotations

from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.load_axis import axis_label
from ntier_analysis.figures.style import COLUMN_IN, DENSITY_MAP, PAGE_IN, styled, tier_order, users_ticks
from ntier_analysis.statistics.in_progress import main_sequence
from ntier_analysis.wording import counted

WINDOW_S = 0.1
"""Of the 50 to 100 ms that Wang et al. (ICDCS 2013) use, the longer one: a scaled model completes few in 50 ms."""
ACROSS = 3
LINEAR_BELOW = 1.0
"""Requests in progress: linear below, logarithmic above, since beyond the knee nearly all users are waiting."""
LINEAR_UP_TO = 20.0
"""If no window has more, all of the axis is linear: a logarithmic one would have two ticks."""

TOP_POINTS = 5
"""The highest points whose mean is the top of a curve: a single one is high by chance."""
NEAR_TOP = 0.9
LEAST_DONE = 1.0
"""Completions that a window must hold on average for a line. With fewer, a window without a completion has a whole
number in progress and one with a completion a broken number, and the line goes to and fro between the two."""


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
    columns = 2 if len(ordered) in (2, 4) else min(ACROSS, len(ordered))
    rows = -(-len(ordered) // columns)
    curves = {s.node: _curve(s) for s in ordered}
    with styled():
        width = COLUMN_IN if columns == 1 else PAGE_IN
        figure = Figure(figsize=(width, 0.5 + 2.0 * rows))
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        users = pd.concat([s.windows["users"] for s in ordered])
        shade = ScalarMappable(Normalize(users.min(), users.max()), mpl.colormaps[DENSITY_MAP])
        for axes, source in zip(panels, ordered, strict=False):
            _panel(axes, source, shade, curves[source.node])
        for axes in panels[len(ordered) :]:
            axes.set_axis_off()
        if users.nunique() > 1:
            bar = figure.colorbar(shade, ax=list(panels), aspect=25, pad=0.02)
            bar.set_label(axis_label())
            bar.outline.set_linewidth(0.5)
            users_ticks(bar, users)
        mean = Line2D([], [], color="black", marker="o", markersize=3, label="mean over windows of similar load")
        if any(len(x) for x, _, _ in curves.values()):
            figure.legend(handles=[mean], loc="outside lower center")
    data = pd.concat([s.windows.assign(node=s.node, window_s=s.width_s, source=s.where) for s in ordered])
    said = "; ".join(f"{s.node} ({s.where}, windows of {_length(s.width_s)}, n = {len(s.windows):,})" for s in ordered)
    caption = (
        "Each dot is a window of the run phase: how many requests were in progress in it, and how many were completed "
        "in it per second. The line (the main sequence) is the mean over windows of similar load; each of its points "
        "stands for equally many windows. Where the line bends, further requests only wait. Requests are not weighted "
        f"by their demand. Shown: {said}; scale {scale:g}."
    )
    beyond = sum(int((s.windows["rate"] > _top(s, curves[s.node])).sum()) for s in ordered)
    if beyond:
        caption += f" Not shown: {counted(beyond, 'window')} with a rate beyond the axis."
    bare = [s.node for s in ordered if not len(curves[s.node][0])]
    if bare:
        caption += f" No line for {', '.join(bare)}: a window holds less than one completion on average."
    return Drawing("load-throughput", figure, _finding(ordered, curves), caption, data)


def _curve(source: Source) -> tuple:
    if source.windows["rate"].mean() * source.width_s < LEAST_DONE:
        return main_sequence([], [])
    return main_sequence(source.windows["load"], source.windows["rate"])


def _panel(axes, source: Source, shade: ScalarMappable, curve) -> None:
    rows = source.windows
    axes.scatter(rows["load"], rows["rate"], s=2.5, color=shade.to_rgba(rows["users"]), alpha=0.45, linewidths=0,
                 rasterized=True)  # fmt: skip
    x, y, _ = curve
    axes.plot(x, y, color="white", linewidth=2.8)
    axes.plot(x, y, color="black", marker="o", markersize=2.6, linewidth=1.2)
    axes.set_title(f"{source.node} ({_length(source.width_s)})", loc="left")
    if rows["load"].max() > LINEAR_UP_TO:
        axes.set_xscale("symlog", linthresh=LINEAR_BELOW)
    axes.set(xlabel="requests in progress", ylabel="completions/s", xlim=(0, None), ylim=(0, _top(source, curve)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:,.10g}"))


def _top(source: Source, curve) -> float:
    """Of the axis: single windows far above the others would press the curve to the bottom."""
    return 1.3 * max(float(np.quantile(source.windows["rate"], 0.99)), float(max(curve[1], default=0.0)), 1e-9)


def _length(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:g} s"


def _finding(sources: list[Source], curves: dict) -> str:
    """What the curve of the first panel does: how far it rises, and from where on it does not."""
    first = sources[0]
    x, y, _ = curves[first.node]
    if len(x) < TOP_POINTS:
        return f"Too little was measured to see how the throughput of {first.node} depends on its load."
    top = float(np.mean(np.sort(y)[-TOP_POINTS:]))
    bend = float(x[np.argmax(y >= NEAR_TOP * top)])
    name = f"Throughput of the {first.node}" if first.tier == "all" else f"Throughput of {first.node}"
    if bend >= 0.5 * x[-1]:
        return f"{name} grows with the requests in progress, up to {x[-1]:,.0f} of them."
    return (
        f"{name} reaches 90 % of its maximum ({top:,.0f}/s) with about {bend:,.1f} requests in progress; "
        f"more of them, up to {x[-1]:,.0f}, gain little."
    )
