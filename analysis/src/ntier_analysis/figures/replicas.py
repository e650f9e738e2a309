"""Which replica executed how much, over the time of a trial; policies side by side."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.load_axis import axis_label, in_its_words, listed
from ntier_analysis.figures.style import DENSITY_MAP, INVALID_COLOR, LAW_COLOR, PAGE_IN, styled, users_ticks
from ntier_analysis.statistics.balance import natural
from ntier_analysis.wording import counted

MEAN_S = 3
"""Width of the moving mean of the statements per second, seconds: single seconds hide the shares."""
HATCHES = ("", "////", "....", r"\\\\", "xxxx", "||||", "----", "++", "oo")
MOST_REGRET = 5
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


def statements(rates: pd.DataFrame, trials: pd.DataFrame, counted_by: str = "the middleware's counters") -> Drawing:
    """Statements per second of each replica, stacked, one panel per trial.

    rates: trial, t_s, item (replica), value. trials: rows of the store's table trials that are to be drawn. counted_by:
    whose counters these are."""
    replicas = natural(rates["item"])
    look, frames = looks(replicas), []
    with styled():
        figure = Figure(figsize=(PAGE_IN, 0.7 + 1.25 * len(trials)))
        panels = figure.subplots(len(trials), 1, squeeze=False, sharex=True)[:, 0]
        for axes, trial in zip(panels, trials.itertuples(), strict=True):
            frame = over_time(rates[rates["trial"] == trial.trial], trial)
            _stack(axes, frame, trial, look)
            _title(axes, trial, in_its_words(f"{trial.users:,} users"))
            frames.append(
                frame.melt("t_s", var_name="replica", value_name="statements_per_s").assign(trial=trial.trial)
            )
        panels[-1].set_xlabel("seconds since the start of the run phase")
        figure.supylabel("statements/s", fontsize=8)
        _legend(figure, panels[0])
    data = pd.concat(frames, ignore_index=True)
    caption = (
        f"Statements per second that each replica executed, by {counted_by}, {MEAN_S}-s moving mean "
        f"(n = {len(data):,} values); only the run phase (between the lines) is analysed; "
        f"scale {trials['scale'].iloc[0]:g}."
    )
    finding = f"Statements per replica over the time of the trials at {listed(trials['users'])} users."
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


def policies(rates: pd.DataFrame, trials: pd.DataFrame, shares: pd.DataFrame, choices: pd.DataFrame) -> Drawing:
    """One column per policy: statements per replica over the time of the highest load that all have, the share of each
    replica over the users with 95 % intervals, and with a trace how many choices had which regret at that load.

    rates: label, trial, t_s, item, value. trials: rows of the table trials with `label` (the policy). shares: label,
    users, valid, item, share, low, high. choices: rows of the table choices with label; may be empty."""
    labels = list(dict.fromkeys(trials["label"]))
    common = set.intersection(*(set(trials.loc[trials["label"] == name, "users"]) for name in labels))
    load = max(common) if common else None
    look, frames, rows = looks(natural(rates["item"])), [], 3 if len(choices) else 2
    with styled():
        figure = Figure(figsize=(PAGE_IN, 0.9 + 1.55 * rows))
        grid = figure.subplots(rows, len(labels), squeeze=False, sharey="row")
        for column, name in zip(grid.T, labels, strict=True):
            mine = trials[trials["label"] == name]
            trial = next(mine[mine["users"] == (load or mine["users"].max())].itertuples())
            frame = over_time(rates[(rates["label"] == name) & (rates["trial"] == trial.trial)], trial)
            _stack(column[0], frame, trial, look)
            column[0].set_xlabel("seconds of the run phase")
            load_text = in_its_words(f"{trial.users:,} users")
            _title(column[0], trial, name.replace(": ", ":\n").replace(" (", "\n(") + f"\n{load_text}")
            _share_lines(column[1], shares[shares["label"] == name], look)
            if rows == 3:
                _regret_bars(column[2], choices[(choices["label"] == name) & (choices["trial"] == trial.trial)])
            long = frame.melt("t_s", var_name="replica", value_name="statements_per_s")
            frames.append(long.assign(policy=name, trial=trial.trial))
        most = max(
            frame.drop(columns=["policy", "trial"]).groupby("t_s")["statements_per_s"].sum().max() for frame in frames
        )
        grid[0, 0].set_ylim(0, 1.05 * most)
        names = ("statements/s", "share of statements", "share of choices")
        for axes, text in zip(grid[:, 0], names, strict=False):
            axes.set_ylabel(text)
        _legend(figure, grid[0, 0])
    data = pd.concat(frames, ignore_index=True)
    return Drawing("policies", figure, _finding(labels, shares), _policies_caption(trials, rows == 3), data)


def _policies_caption(trials: pd.DataFrame, traced: bool) -> str:
    third = (
        " Bottom: the same trials' choices by regret (how many more statements were pending on the chosen replica "
        "than on the least loaded)."
        if traced
        else ""
    )
    return (
        f"Top: statements per second of each replica by the middleware's counters (the database's own where the "
        f"middleware sees connections only), {MEAN_S}-s moving mean, at the "
        f"highest common load; dotted: the run phase. Below: share of each replica in the run phase with 95 % "
        f"intervals from 10 parts of the run, {counted(len(trials), 'trial')}; dashed: equal shares; grey x: "
        f"INVALID.{third} Scale {trials['scale'].iloc[0]:g}."
    )


def _regret_bars(axes, choices: pd.DataFrame) -> None:
    """Share of the choices with regret 0, 1, ... and MOST_REGRET or more."""
    rows = choices[choices["measure"] == "pending"]
    regret = np.minimum(rows["regret"].to_numpy(dtype=int), MOST_REGRET)
    counts = np.bincount(regret, weights=rows["n"], minlength=MOST_REGRET + 1)
    axes.bar(range(MOST_REGRET + 1), counts / max(counts.sum(), 1), color="0.45", edgecolor="black", linewidth=0.5)
    if not counts.sum():
        axes.text(0.5, 0.5, "not traced", ha="center", va="center", transform=axes.transAxes, fontsize=7)
    else:
        axes.annotate(f"{100 * counts[0] / counts.sum():.1f} %", (0, counts[0] / counts.sum()), ha="center",
                      xytext=(0, 1), textcoords="offset points", fontsize=6.5)  # fmt: skip
    axes.set_xticks(range(MOST_REGRET + 1), [*map(str, range(MOST_REGRET)), f"{MOST_REGRET}+"])
    axes.set(xlabel="regret [statements]", ylim=(0, 1.12))


def _share_lines(axes, shares: pd.DataFrame, look: dict[str, dict]) -> None:
    axes.axhline(1 / len(look), color=LAW_COLOR, linewidth=0.7, linestyle="--")
    for name, rows in shares.groupby("item"):
        style, rows = look[name], rows.sort_values("users")
        reach = [rows["share"] - rows["low"], rows["high"] - rows["share"]]
        edge = {"markeredgecolor": "black", "markeredgewidth": 0.4, "elinewidth": 0.8, "capsize": 1.5}
        look_ = {"color": style["color"], "marker": style["marker"], "markersize": 3.5, "linewidth": 1}
        axes.errorbar(rows["users"], rows["share"], reach, **look_, **edge)
        bad = rows[~rows["valid"]]
        axes.plot(bad["users"], bad["share"], color=INVALID_COLOR, marker="x", linestyle="none")
    axes.set(xlabel=axis_label(), ylim=(0, 1.02), xlim=(0, None))
    users_ticks(axes.xaxis, shares["users"])


def _finding(labels: list[str], shares: pd.DataFrame) -> str:
    parts = []
    for name in labels:
        rows = shares[shares["label"] == name]
        last = rows[rows["users"] == rows["users"].max()].drop_duplicates("item")
        low, high = last["share"].min(), last["share"].max()
        parts.append(f"{name} {low:.2f} to {high:.2f}")
    return "Shares of the replicas at the highest load: " + "; ".join(parts) + "."
