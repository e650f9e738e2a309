"""Single interactions as bars, with the parts of their time."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.style import IN_ORDER, PAGE_IN, styled
from ntier_analysis.statistics.traces import BEHIND_WEB
from ntier_analysis.wording import counted

PARTS = {
    "before": ("until {server} begins with the request", "#dddddd", "...."),
    "within": ("in {server} and all behind it", IN_ORDER[1].color, "////"),
    "server": ("in {server}, and waiting for a thread of {program}", IN_ORDER[0].color, r"\\\\"),
    "wait": ("waiting for a connection", "#f5f5f5", "xx"),
    "program": ("in {program}", IN_ORDER[1].color, ""),
    "between": ("statements: {between}", IN_ORDER[2].color, ""),
    "database": ("statements: {database}", IN_ORDER[3].color, ""),
    "behind": ("statements: {behind}", IN_ORDER[4].color, "////"),
    "after": ("after the page: what it embeds, and the way back", IN_ORDER[0].color, ""),
    "unknown": ("not known which request it was", "white", "xxxx"),
}
"""Label, colour and hatch; `within` where no tier behind the first can be told from another."""


def waterfall(rows: pd.DataFrame, told: str, caption: str, names: dict[str, str]) -> Drawing:
    """rows: the slowest first, with `interaction, user, response_time_ms, before, within, after` and the parts of
    `within` (`statistics.traces.BEHIND_WEB`), ms (NaN: unknown), and `meanwhile`, a few words for the end of the bar.
    told: the finding; names: what the parts are called (`ondemand.followed.called`)."""
    parts = rows[["before", "within", *BEHIND_WEB, "after"]].astype(float)
    parts = parts.assign(unknown=np.where(parts["within"].isna(), rows["response_time_ms"], 0.0))
    parts["within"] = parts["within"].where(parts["program"].isna(), 0.0)
    parts = parts.fillna(0.0)
    with styled():
        figure = Figure(figsize=(PAGE_IN, 1.1 + 0.24 * len(rows)))
        axes = figure.subplots()
        place, begin = np.arange(len(rows)), np.zeros(len(rows))
        for name, (label, color, hatch) in PARTS.items():
            width = parts[name].to_numpy() / 1000
            some = width > 0
            if some.any():
                edge = "0.4" if name == "unknown" else "0.7" if name == "wait" else "white"
                look = {"color": color, "hatch": hatch, "edgecolor": edge, "linewidth": 0.4}
                axes.barh(
                    place[some], width[some], left=begin[some], height=0.75, label=label.format_map(names), **look
                )
            begin = begin + width
        for at, end, text in zip(place, begin, rows["meanwhile"], strict=True):
            axes.annotate(text, (end, at), xytext=(3, 0), textcoords="offset points", va="center", fontsize=6)
        axes.set_yticks(place, [f"{r.interaction}, {r.user}" for r in rows.itertuples()], fontsize=7)
        axes.invert_yaxis()
        axes.set(xlabel="time since the user clicked [s]", xlim=(0, 1.6 * begin.max()))
        axes.grid(False, axis="y")
        figure.legend(loc="outside lower center", ncols=2)
    return Drawing("slowest", figure, told, f"The {counted(len(rows), 'slowest interaction')}. {caption}", rows)
