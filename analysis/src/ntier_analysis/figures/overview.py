"""What the sweeps of a store reach, side by side."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.markers import CARETRIGHTBASE

from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.load_axis import axis_label
from ntier_analysis.figures.style import OTHER, PAGE_IN, styled, tier_look
from ntier_analysis.wording import counted, interval, number, resource

ALIKE = ["work", "scale"]
"""Sweeps that agree in these are ranked. Nominal maxima of two scales are equal only as far as CPU per interaction does
not depend on the scale, which small quotas make it do."""
MOST = 100
"""Sweeps that a figure has room for."""


def maxima(frame: pd.DataFrame) -> Drawing:
    """Maximum throughput (nominal) of each sweep with its interval, coloured by the tier that limits.

    frame: columns of overview.overview."""
    rows = frame.dropna(subset=["nominal_per_s"]).sort_values("nominal_per_s", ignore_index=True)
    every, rows = rows, rows.tail(MOST).reset_index(drop=True)
    scales = sorted(set(every["scale"]))
    with styled():
        figure = Figure(figsize=(PAGE_IN, 0.9 + 0.32 * max(len(rows), 1)))
        axes = figure.subplots()
        for place, row in rows.iterrows():
            tier = row["bottleneck"].split(" ")[0]
            look = tier_look(tier) if tier else OTHER
            axes.barh(place, row["nominal_per_s"], color=look.color, height=0.6)
            end = row["nominal_per_s"]
            if pd.notna(row["low"]):
                below = end - row["low"] / row["scale"]
                end = end if row["at_least"] else row["high"] / row["scale"]
                reach = [[below], [end - row["nominal_per_s"]]]
                look = {"marker": CARETRIGHTBASE if row["at_least"] else "", "markersize": 4, "elinewidth": 0.8}
                axes.errorbar(row["nominal_per_s"], place, xerr=reach, color="black", linestyle="none", **look)
            limits = " ".join(map(resource, row["bottleneck"].split(" ")))
            label = (limits or row["verdict"]) + (", at least" if row["at_least"] else "")
            axes.annotate(label, (end, place), xytext=(5, 0), textcoords="offset points", va="center", fontsize=6.5)
        axes.set_yticks(range(len(rows)), _names(rows, scales))
        axes.set(xlabel="maximum throughput [interactions/s, nominal]", xlim=(0, 1.25 * axes.get_xlim()[1]))
    finding = "No sweep has a maximum throughput." if frame["valid"].any() else "No sweep has a valid trial."
    if len(every):
        tops = [_highest(kind) for _, kind in every.groupby(ALIKE, sort=False)]
        different = {"kinds of work": every["work"].nunique(), "scales": len(scales)}
        kinds = [f"{n} {what}" for what, n in different.items() if n > 1]
        ranked = f" of {' and '.join(kinds)}, which are not ranked among each other" if kinds else ""
        bounds = _bounds(int(every["at_least"].sum()))
        finding = f"Highest measured maximum{ranked}: {'; '.join(tops)}.{bounds}"
    caption = (
        "Pooled plateau of each sweep with its 95 % interval, divided by the scale; arrow: a lower bound, whose "
        "interval has no upper end; colour: the tier that limits."
    )
    if len(scales) > 1:
        caption += (
            " Sweeps of different scales have theirs beside the name: nominal maxima compare them only as far as CPU "
            "per interaction does not depend on the scale (`ntier-analysis demands`)."
        )
    return Drawing("maxima", figure, finding, caption + _left_out(rows, every), every)


def _names(rows: pd.DataFrame, scales: list[float]) -> list[str]:
    """With the scale of each, where it differs."""
    if len(scales) < 2:
        return rows["sweep"].tolist()
    return [f"{name} (scale {scale:g})" for name, scale in zip(rows["sweep"], rows["scale"], strict=True)]


def _left_out(rows: pd.DataFrame, every: pd.DataFrame) -> str:
    left = len(every) - len(rows)
    return f" Drawn are the {len(rows)} highest; {counted(left, 'other')} are in the table." if left else ""


def _highest(rows: pd.DataFrame) -> str:
    """Of sweeps of equal work and scale, the one with the largest maximum, and how many may reach as much."""
    others, top = rows.iloc[:-1], rows.iloc[-1]
    ends_at = (others["high"] / others["scale"]).mask(others["at_least"], math.inf)
    begins = top["low"] / top["scale"]
    rivals = int((~(ends_at < begins)).sum())  # an unknown end may lie anywhere
    beside = f", and {counted(rivals, 'other')} may reach as much" if rivals else ""
    return f"{top['sweep']} with {_maximum(top)} interactions/s (nominal){beside}"


def _bounds(n: int) -> str:
    return f" Of {counted(n, 'sweep')} only a lower bound is known." if n else ""


def _maximum(row: pd.Series) -> str:
    """`577 [570, 584]`, `at least 577 [570, ∞)`."""
    least, value, low = "at least " * bool(row["at_least"]), row["nominal_per_s"], row["low"] / row["scale"]
    if pd.isna(low):
        return f"{least}{number(value)}"
    return f"{least}{interval(value, low, math.inf if row['at_least'] else row['high'] / row['scale'])}"


def reach(frame: pd.DataFrame) -> Drawing:
    """For each sweep the users at the knee (hollow: a lower bound), and the highest load that keeps the objective of
    the response time.

    frame: as of `maxima`."""
    known = frame.dropna(subset=["knee_users", "users_within_slo"], how="all")
    every = known.sort_values("nominal_per_s", ignore_index=True)
    rows = every.tail(MOST).reset_index(drop=True)
    with styled():
        figure = Figure(figsize=(PAGE_IN, 1.1 + 0.32 * max(len(rows), 1)))
        axes = figure.subplots()
        places = range(len(rows))
        knees = rows["knee_users"].astype(float)
        axes.plot(knees.mask(rows["at_least"]), places, "ko", label="knee")
        if (rows["at_least"] & knees.notna()).any():
            hollow = {"label": "knee, at least", "markerfacecolor": "none"}
            axes.plot(knees.where(rows["at_least"]), places, "ko", **hollow)
        objective = "95 % within the objective"
        axes.plot(rows["users_within_slo"].astype(float), places, "|", color="#d55e00", markersize=14, label=objective)
        axes.set_yticks(places, rows["sweep"])
        axes.set(xlabel=axis_label(), xlim=(0, None), ylim=(-0.6, max(len(rows), 1) - 0.4))
        figure.legend(loc="outside lower center", ncols=3)
    known = every.dropna(subset=["knee_users", "users_within_slo"])
    both = known[~known["at_least"]]
    finding = "No sweep has both a knee and an objective."
    if len(known) and both.empty:
        finding = f"Of the knees of {counted(len(known), 'sweep')} only lower bounds are known."
    if len(both):
        share = (both["users_within_slo"] / both["knee_users"].astype(float)).median()
        finding = (
            f"The objective is kept up to {100 * share:.0f} % of the knee's users "
            f"(median over {counted(len(both), 'sweep')})."
        )
    caption = (
        "Bar: highest measured load at which 95 % of the interactions keep the objective. Dot: the knee, where "
        "N/(Z+R0) reaches the maximum throughput; hollow: a lower bound, which the median leaves out."
    )
    return Drawing("reach", figure, finding, caption + _left_out(rows, every), every)
