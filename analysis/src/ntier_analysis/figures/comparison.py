"""Two sweeps side by side: ratio over the users."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.load_axis import axis_label
from ntier_analysis.figures.style import (
    LAW_COLOR,
    PAGE_IN,
    THROUGHPUT_COLOR,
    styled,
    tier_look,
    tier_order,
    users_ticks,
)
from ntier_analysis.statistics.values import same_within

PANELS = {"throughput_per_s": "throughput", "response_time_mean_ms": "mean response time"}
BESIDE = 0.02  # of the axis: tiers at one load lie beside each other, not over each other


def ratios(table: pd.DataFrame, a: str, b: str, margin: float, finding: str) -> Drawing:
    """`table`: columns of comparison.texts.table; only the rows of single loads are drawn."""
    loads = table[(table["scope"] == "load") & table["ratio"].notna()]
    numeric = ["users", "ratio", "low", "high"]
    loads = loads.assign(**{c: pd.to_numeric(loads[c]) for c in numeric})
    with styled():
        figure = Figure(figsize=(PAGE_IN, 2.4))
        panels = figure.subplots(1, 3, sharex=True)
        for axes, (metric, label) in zip(panels, PANELS.items(), strict=False):
            _points(axes, loads[loads["metric"] == metric], THROUGHPUT_COLOR, "o", "")
            axes.set_title(label)
        cpu = loads[loads["metric"] == "cpu_ms"]
        tiers = sorted(cpu["tier"].unique(), key=tier_order)
        for i, tier in enumerate(tiers):
            look, rows = tier_look(tier), cpu[cpu["tier"] == tier]
            aside = BESIDE * (i - (len(tiers) - 1) / 2) * loads["users"].max()
            _points(panels[2], rows.assign(users=rows["users"] + aside), look.color, look.marker, tier)
        panels[2].set_title("CPU per interaction")
        if len(cpu):
            figure.legend(loc="outside right center")
        for axes in panels:
            axes.axhspan(*same_within(margin), color=LAW_COLOR, alpha=0.18, linewidth=0)
            axes.axhline(1, color=LAW_COLOR, linewidth=0.8)
            axes.set(xlabel=axis_label(), yscale="log")
            low, high = axes.get_ylim()
            few = MaxNLocator(9, steps=[1, 2, 5, 10]) if high < 4 * low else LogLocator(subs=(1, 2, 5))
            axes.yaxis.set_major_locator(few)
            axes.yaxis.set_minor_locator(NullLocator())
            axes.yaxis.set_major_formatter("{x:.3g}")
            if len(loads):
                users_ticks(axes.xaxis, loads["users"])
        panels[0].set_ylabel("B / A")
    caption = (
        f"Ratio of {b} (B) to {a} (A) at equal load with 95 % intervals; the band: neither is more than "
        f"{100 * margin:g} % above the other. "
        "Intervals from batches of one trial lack the variance between runs."
    )
    drawn = [*PANELS, "cpu_ms"]
    if ((table["scope"] == "load") & table["ratio"].isna() & table["metric"].isin(drawn)).any():
        caption += " Loads at which one side has a 0 have no ratio and are not drawn."
    return Drawing("comparison", figure, finding, caption, loads)


def _points(axes, rows: pd.DataFrame, color: str, marker: str, label: str) -> None:
    ends = np.abs(rows[["low", "high"]].to_numpy(float).T - rows["ratio"].to_numpy(float))
    ends = np.where(np.isfinite(ends), ends, 0.0)
    axes.errorbar(
        rows["users"], rows["ratio"], yerr=ends, color=color, marker=marker, linestyle="none", capsize=2,
        elinewidth=0.8, label=label or None,
    )  # fmt: skip
