"""Which interactions are long, and which take most of the time."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.style import ALERT_COLOR, COLUMN_IN, styled

SHOWN = 10


def by_interaction(done: pd.DataFrame) -> pd.DataFrame:
    """`done`: columns of the store's interactions. -> per interaction of the run phase: n (successes), errors, mean_ms
    and max_ms of the successes, share_of_time (of the sum of all their response times, 0..1), the largest share
    first."""
    run = done[done["phase"] == "run"]
    good = run["response_time_ms"].where(run["ok"].astype(bool))
    groups = good.groupby(run["interaction"])
    frame = groups.agg(n="count", errors="size", mean_ms="mean", max_ms="max", total="sum").reset_index()
    frame["errors"] -= frame["n"]
    frame["share_of_time"] = frame.pop("total") / max(frame["n"].mul(frame["mean_ms"]).sum(), 1e-9)
    return frame.sort_values("share_of_time", ascending=False, ignore_index=True)


def long_interactions(done: pd.DataFrame, trial: str, users: int) -> Drawing:
    """Mean and longest response time of the interactions of one trial that take most of the time."""
    frame = by_interaction(done[done["trial"] == trial]).query("n > 0")
    shown = frame.head(SHOWN)[::-1].reset_index(drop=True)
    with styled():
        figure = Figure(figsize=(COLUMN_IN + 1.2, 2.8))
        axes = figure.subplots()
        axes.barh(range(len(shown)), 100 * shown["share_of_time"], color=ALERT_COLOR, height=0.6)
        for place, row in shown.iterrows():
            label = f"{row['mean_ms']:,.0f} ms, up to {row['max_ms']:,.0f} (n = {row['n']:,})"
            axes.annotate(label, (100 * row["share_of_time"], place), xytext=(3, 0), textcoords="offset points",
                          va="center", fontsize=6.5)  # fmt: skip
        axes.set_yticks(range(len(shown)), shown["interaction"])
        axes.set(
            xlabel="share of all response time [%]",
            xlim=(0, 200 * max(shown["share_of_time"].max() if len(shown) else 0.0, 0.01)),
        )
        axes.set_xticks([tick for tick in axes.get_xticks() if tick <= 100])
    finding = "There are no interactions."
    if len(frame):
        top = frame.iloc[0]
        share, of_n = top["share_of_time"], top["n"] / frame["n"].sum()
        finding = (
            f"{top['interaction']} is {100 * of_n:.1f} % of the interactions and takes {100 * share:.0f} % of all "
            "response time."
        )
    caption = f"Run phase of {trial} ({users:,} users), successes; mean and longest response time beside each bar."
    return Drawing(f"long-interactions-{trial}", figure, finding, caption, frame)
