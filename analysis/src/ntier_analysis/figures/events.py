"""Events that stop or delay a node for a moment: garbage collection, waits for locks, retransmitted packets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ntier_analysis.figures.style import tier_look, tier_order

MOST_LANES = 8


@dataclass(frozen=True)
class Kind:
    """An event as the samples tell it: a value above 0 of `metric`, on nodes that have no samples of `unless`. `what`
    and `unit` as the figure calls them."""

    what: str
    resource: str
    metric: str
    unit: str
    unless: str = ""


KINDS = (
    Kind("garbage collection", "jvm", "gc_pct", "% of a second"),
    Kind("waits for row locks", "lock", "row_lock_waiting", "at once"),
    Kind("waits for row locks begun", "lock", "innodb_row_lock_waits_per_s", "per s"),
    Kind("waits for locks", "lock", "lock_waiting", "at once"),
    Kind("deadlocks", "lock", "deadlocks_per_s", "per s"),
    Kind("lost segments", "network", "tcp_lost_per_s", "per s"),
    Kind("retransmits", "network", "tcp_retransmits_per_s", "per s", unless="tcp_lost_per_s"),  # also needless ones
    Kind("failed connects", "network", "tcp_failed_connects_per_s", "per s"),
    Kind("temporary files", "disk", "temp_files_per_s", "per s"),
    Kind("swapping in", "memory", "swap_in_per_s", "pages/s"),
)
"""Checkpoints are not among them: no collector sees one (docs/analysis.md)."""
METRICS = sorted({k.metric for k in KINDS})


def events(samples: pd.DataFrame) -> pd.DataFrame:
    """Samples of the store -> the events among them: trial, t_s, node, tier, what, unit, value (above 0)."""
    parts = []
    for kind in KINDS:
        chosen = samples[(samples["resource"] == kind.resource) & (samples["metric"] == kind.metric)]
        told = samples.loc[samples["metric"] == kind.unless, "node"].unique()
        rows = chosen[(chosen["value"] > 0) & ~chosen["node"].isin(told)]
        parts.append(rows[["trial", "t_s", "node", "tier", "value"]].assign(what=kind.what, unit=kind.unit))
    return pd.concat(parts, ignore_index=True)


def lanes(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """(node, what) of the events, those that came in most seconds first, at most `MOST_LANES`; in the order of the
    request's way."""
    counts = rows.groupby(["node", "tier", "what"]).size().sort_values(ascending=False).head(MOST_LANES)
    ordered = sorted(counts.index, key=lambda k: (tier_order(k[1]), len(k[0]), k[0], k[2]))
    return [(node, what) for node, _, what in ordered]


def events_of_none() -> pd.DataFrame:
    columns = ["trial", "t_s", "node", "tier", "value", "what", "unit", "top"]
    return pd.DataFrame({c: pd.Series(dtype=float if c in ("t_s", "value", "top") else str) for c in columns})


def lanes_caption(rows: pd.DataFrame, shown: list[tuple[str, str]]) -> str:
    """Content of the lanes, and the value of the highest bar of each; empty without events."""
    if not shown:
        return ""
    tops = rows.drop_duplicates(["node", "what"]).set_index(["node", "what"])
    said = "; ".join(f"{n} {w} {tops.loc[(n, w), 'top']:.3g} {tops.loc[(n, w), 'unit']}" for n, w in shown)
    more = max(0, rows.groupby(["node", "what"]).ngroups - len(shown))
    others = f" {more} more kinds of events, which came in fewer seconds, are not drawn." if more else ""
    return (
        f" Below each panel: events, by the samples of each second; the height is the square root of the value, "
        f"highest: {said}.{others} Checkpoints are not sampled."
    )


def draw_lanes(axes, marks: pd.DataFrame, shown: list[tuple[str, str]], run_start_s: float) -> None:
    """One lane per node and kind; each event is a bar, its height the square root of its value over the lane's highest.

    marks: events of one trial, with `top` (the highest value of that lane in all trials)."""
    for place, (node, what) in enumerate(reversed(shown)):
        rows = marks[(marks["node"] == node) & (marks["what"] == what)]
        color = tier_look(rows["tier"].iloc[0]).color if len(rows) else "black"
        time_s = rows["t_s"].to_numpy() - run_start_s
        height = 0.8 * np.sqrt(rows["value"].to_numpy() / rows["top"].to_numpy())
        axes.vlines(time_s, place, place + height, color=color, linewidth=0.8)
    axes.set(ylim=(0, len(shown)))
    axes.set_yticks(np.arange(len(shown)) + 0.4, [f"{node} {what}" for node, what in reversed(shown)], fontsize=6)
    axes.tick_params(axis="y", length=0)
    axes.grid(False)
    axes.margins(x=0)
    for place in range(len(shown)):
        axes.axhline(place, color="0.85", linewidth=0.4)
