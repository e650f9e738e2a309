"""Which replica executed how much, over the time of a trial; policies side by side."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ntier_analysis.figures.course import with_gaps
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
    over the middlewares, as a moving mean over MEAN_S s; NaN in a gap, and where a middleware's number is missing.
    trial: a row of the store's table trials."""
    second = (rates["t_s"] - trial.run_start_s).round()
    begin = 0 if pd.isna(trial.ramp_up_start_s) else trial.ramp_up_start_s - trial.run_start_s
    end = (trial.run_end_s if pd.isna(trial.ramp_down_end_s) else trial.ramp_down_end_s) - trial.run_start_s
    parts = rates.groupby([second.rename("t_s"), "item", "node"])["value"].mean().unstack(["item", "node"])
    of_item = parts.T.groupby("item")
    wide = of_item.sum().where(parts.notna().T.groupby("item").all()).T.reindex(columns=natural(rates["item"]))
    inside = wide[(wide.index >= begin) & (wide.index <= end)]
    inside = inside.reindex(with_gaps(inside.index, inside.index)[0])
    smooth = inside.rolling(MEAN_S, center=True, min_periods=1).mean().where(inside.notna())
    return smooth.rename_axis("t_s").reset_index()


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
        f"(n = {data['statements_per_s'].count():,} values); only the run phase (between the lines) is analysed; "
        f"scale {trials['scale'].iloc[0]:g}." + _broken(data)
    )
    finding = f"Statements per replica over the time of the trials at {listed(trials['users'])} users."
    return Drawing("statements-per-replica", figure, finding, caption, data)


def _broken(data: pd.DataFrame) -> str:
    return " Where an area is broken, a sample is missing." if data["statements_per_s"].isna().any() else ""


def _stack(axes, frame: pd.DataFrame, trial, look: dict[str, dict]) -> None:
    names = [n for n in frame.columns if n != "t_s"]
    areas = axes.stackplot(frame["t_s"], frame[names].T.to_numpy(), labels=names, linewidth=0.4, edgecolor="white")
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

    rates: label, trial, node, t_s, item, value; some of each label. trials: rows of the table trials with `label` (the
    policy). shares: label, trial, users, valid, item, share, low, high. choices: rows of the table choices with label;
    may be empty."""
    labels = list(dict.fromkeys(trials["label"]))
    chosen, common = _chosen(trials, rates)
    look, frames, rows = looks(natural(rates["item"])), [], 3 if len(choices) else 2
    with styled():
        figure = Figure(figsize=(PAGE_IN, 0.9 + 1.55 * rows))
        grid = figure.subplots(rows, len(labels), squeeze=False, sharey="row")
        for column, name in zip(grid.T, labels, strict=True):
            trial = chosen[name]
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
    caption = _policies_caption(trials, rows == 3, common) + _broken(data)
    return Drawing("policies", figure, _finding(chosen, common, shares), caption, data)


def _chosen(trials: pd.DataFrame, rates: pd.DataFrame) -> tuple[dict[str, Any], bool]:
    """Of each policy the first trial at the highest load that all have, among the valid ones with rates (of a policy
    that has none, the INVALID ones); and whether there is such a load, else each has its own highest."""
    told = trials.merge(rates[["label", "trial"]].drop_duplicates())
    usable = told[told["valid"] | ~told.groupby("label")["valid"].transform("any")]
    common = set.intersection(*usable.groupby("label")["users"].agg(set))
    highest = usable.groupby("label")["users"].transform("max")
    at = usable[usable["users"] == (max(common) if common else highest)]
    return {t.label: t for t in at.drop_duplicates("label").itertuples()}, bool(common)


def _policies_caption(trials: pd.DataFrame, traced: bool, common: bool) -> str:
    third = (
        " Bottom: the same trials' choices by regret (how many more statements were pending on the chosen replica "
        "than on the least loaded)."
        if traced
        else ""
    )
    return (
        f"Top: statements per second of each replica by the middleware's counters (the database's own where the "
        f"middleware sees connections only), {MEAN_S}-s moving mean, at the highest "
        f"{'common load' if common else 'load of each policy'}; dotted: the run phase. Below: share of each replica in "
        f"the run phase with 95 % intervals from 10 parts of the run, {counted(len(trials), 'trial')}; dashed: equal "
        f"shares; grey x: INVALID.{third} Scale {trials['scale'].iloc[0]:g}."
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
        style, good = look[name], rows[rows["valid"]].sort_values("users")
        reach = [good["share"] - good["low"], good["high"] - good["share"]]
        edge = {"markeredgecolor": "black", "markeredgewidth": 0.4, "elinewidth": 0.8, "capsize": 1.5}
        look_ = {"color": style["color"], "marker": style["marker"], "markersize": 3.5, "linewidth": 1}
        axes.errorbar(good["users"], good["share"], reach, **look_, **edge)
        bad = rows[~rows["valid"]]
        axes.plot(bad["users"], bad["share"], color=INVALID_COLOR, marker="x", linestyle="none")
    axes.set(xlabel=axis_label(), ylim=(0, 1.02), xlim=(0, None))
    users_ticks(axes.xaxis, shares["users"])


def _finding(chosen: dict[str, Any], common: bool, shares: pd.DataFrame) -> str:
    parts = []
    for name, trial in chosen.items():
        there = shares.loc[(shares["label"] == name) & (shares["trial"] == trial.trial), "share"]
        at = "" if common else f" at {trial.users:,} users"
        parts.append(f"{name} {there.min():.2f} to {there.max():.2f}{at}{'' if trial.valid else ' (INVALID trial)'}")
    at = f" at {next(iter(chosen.values())).users:,} users" if common else ""
    return f"Shares of the replicas{at}: {'; '.join(parts)}."
