"""Which replica executed how much, over the time of a trial; policies side by side."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.style import DENSITY_MAP, INVALID_COLOR, LAW_COLOR, PAGE_IN, styled, users_ticks
from ntier_analysis.statistics.balance import natural

MEAN_S = 3
"""Width of the moving mean of the statements per second, seconds: single seconds hide the shares."""
HATCHES = ("", "////", "....", r"\\\\", "xxxx", "||||", "----", "++", "oo")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "h")


def looks(replicas: list[str]) -> dict[str, dict]:
    """From dark to light in the list's order, and a hatch and marker each: they differ without colour too."""
    ramp = mpl.colormaps[DENSITY_MAP](np.linspace(0.12, 0.95, max(len(replicas), 2)))
    return {
        name: {
            "color": mpl.colors.to_hex(ramp[i]),
            "hatch": HATCHES[i % len(HATCHES)],
            "marker": MARKERS[i % len(MARKERS)],
        }
        for i, name in enumerate(replicas)
    }


def over_time(rates: pd.DataFrame, trial) -> pd.DataFrame:
    """Rates of one trial -> frame `t_s` (from the start of the run), one column per replica, statements per s summed
    over the middlewares, as a moving mean over MEAN_S s. trial: a row of the store's table trials."""
    second = (rates["t_s"] - trial.run_start_s).round()
    begin = 0 if pd.isna(trial.ramp_up_start_s) else trial.ramp_up_start_s - trial.run_start_s
    end = (trial.run_end_s if pd.isna(trial.ramp_down_end_s) else trial.ramp_down_end_s) - trial.run_start_s
    wide = rates.assign(second=second).pivot_table(index="second", columns="item", values="value", aggfunc="sum")
    inside = wide[(wide.index >= begin) & (wide.index <= end)].reindex(columns=natural(rates["item"]))
    return inside.rolling(MEAN_S, center=True, min_periods=1).mean().rename_axis("t_s").reset_index()


def statements(rates: pd.DataFrame, trials: pd.DataFrame) -> Drawing:
    """Statements per second of each replica, stacked, one panel per trial.

    rates: trial, t_s, item (replica), value. trials: rows of the store's table trials that are to be drawn."""
    replicas = natural(rates["item"])
    look, frames = looks(replicas), []
    with styled():
        figure = Figure(figsize=(PAGE_IN, 0.7 + 1.25 * len(trials)))
        panels = figure.subplots(len(trials), 1, squeeze=False, sharex=True)[:, 0]
        for axes, trial in zip(panels, trials.itertuples(), strict=True):
            frame = over_time(rates[rates["trial"] == trial.trial], trial)
            _stack(axes, frame, trial, look)
            _title(axes, trial, f"{trial.users:,} users")
            frames.append(
                frame.melt("t_s", var_name="replica", value_name="statements_per_s").assign(trial=trial.trial)
            )
        panels[-1].set_xlabel("seconds since the start of the run phase")
        figure.supylabel("statements/s", fontsize=8)
        _legend(figure, panels[0])
    data = pd.concat(frames, ignore_index=True)
    shown = ", ".join(f"{u:,}" for u in trials["users"])
    caption = (
        f"Statements per second that each replica executed, by the middleware's counters, {MEAN_S}-s moving mean "
        f"(n = {len(data):,} values); only the run phase (between the lines) is analysed; "
        f"scale {trials['scale'].iloc[0]:g}."
    )
    finding = f"Statements per replica over the time of the trials at {shown} users."
    return Drawing("statements-per-replica", figure, finding, caption, data)


def _stack(axes, frame: pd.DataFrame, trial, look: dict[str, dict]) -> None:
    names = [n for n in frame.columns if n != "t_s"]
    areas = axes.stackplot(
        frame["t_s"], frame[names].fillna(0).T.to_numpy(), labels=names, linewidth=0.4, edgecolor="white"
    )
    for name, area in zip(names, areas, strict=True):
        area.set(facecolor=look[name]["color"], hatch=look[name]["hatch"])
    for x in (0, trial.run_end_s - trial.run_start_s):
        axes.axvline(x, color=LAW_COLOR, linewidth=0.8, linestyle=":")
    axes.set(ylim=(0, None))
    axes.margins(x=0)


def _title(axes, trial, text: str) -> None:
    axes.set_title(text + ("" if trial.valid else ": INVALID, " + str(trial.invalid_reasons)), loc="left", fontsize=7,
                   color="black" if trial.valid else INVALID_COLOR)  # fmt: skip


def _legend(figure, axes) -> None:
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 9), handlelength=2.2)


def policies(rates: pd.DataFrame, trials: pd.DataFrame, shares: pd.DataFrame) -> Drawing:
    """One column per policy: statements per replica over the time of the highest load that all have, and below the
    share of each replica over the users with 95 % intervals.

    rates: label, trial, t_s, item, value. trials: rows of the table trials with `label` (the policy). shares: label,
    users, valid, item, share, low, high."""
    labels = list(dict.fromkeys(trials["label"]))
    common = set.intersection(*(set(trials.loc[trials["label"] == name, "users"]) for name in labels))
    replicas = natural(rates["item"])
    look, frames = looks(replicas), []
    with styled():
        figure = Figure(figsize=(PAGE_IN, 4.0))
        upper, lower = figure.subplots(2, len(labels), squeeze=False, sharey="row", height_ratios=(1.1, 1))
        for column, name in enumerate(labels):
            mine = trials[trials["label"] == name]
            trial = next(mine[mine["users"] == (max(common) if common else mine["users"].max())].itertuples())
            frame = over_time(rates[(rates["label"] == name) & (rates["trial"] == trial.trial)], trial)
            _stack(upper[column], frame, trial, look)
            _title(upper[column], trial, f"{name}\n{trial.users:,} users")
            _share_lines(lower[column], shares[shares["label"] == name], look, len(replicas))
            frames.append(
                frame.melt("t_s", var_name="replica", value_name="statements_per_s").assign(
                    policy=name, trial=trial.trial
                )
            )
        upper[0].set_ylabel("statements/s")
        lower[0].set_ylabel("share of the statements")
        for axes in upper:
            axes.set_xlabel("seconds of the run phase")
        _legend(figure, upper[0])
    caption = (
        f"Above: statements per second of each replica by the middleware's counters, {MEAN_S}-s moving mean, at the "
        f"highest common load; dotted: the run phase. Below: share of each replica in the run phase with 95 % "
        f"intervals from 10 parts of the run, {len(trials)} trials; dashed: equal shares; grey x: INVALID; scale "
        f"{trials['scale'].iloc[0]:g}."
    )
    return Drawing("policies", figure, _finding(labels, shares), caption, pd.concat(frames, ignore_index=True))


def _share_lines(axes, shares: pd.DataFrame, look: dict[str, dict], replicas: int) -> None:
    axes.axhline(1 / replicas, color=LAW_COLOR, linewidth=0.7, linestyle="--")
    for name, rows in shares.groupby("item"):
        style, rows = look[name], rows.sort_values("users")
        reach = [rows["share"] - rows["low"], rows["high"] - rows["share"]]
        edge = {"markeredgecolor": "black", "markeredgewidth": 0.4, "elinewidth": 0.8, "capsize": 1.5}
        look_ = {"color": style["color"], "marker": style["marker"], "markersize": 3.5, "linewidth": 1}
        axes.errorbar(rows["users"], rows["share"], reach, **look_, **edge)
        bad = rows[~rows["valid"]]
        axes.plot(bad["users"], bad["share"], color=INVALID_COLOR, marker="x", linestyle="none")
    axes.set(xlabel="users (nominal)", ylim=(0, 1.02), xlim=(0, None))
    users_ticks(axes.xaxis, shares["users"])


def _finding(labels: list[str], shares: pd.DataFrame) -> str:
    parts = []
    for name in labels:
        rows = shares[shares["label"] == name]
        last = rows[rows["users"] == rows["users"].max()].drop_duplicates("item")
        low, high = last["share"].min(), last["share"].max()
        parts.append(f"{name} {low:.2f} to {high:.2f}")
    return "Shares of the replicas at the highest load: " + "; ".join(parts) + "."
