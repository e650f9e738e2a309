"""Throughput over the time of a trial, with its phases."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.events import draw_lanes, events_of_none, lanes, lanes_caption
from ntier_analysis.figures.load_axis import in_its_words, listed
from ntier_analysis.figures.style import ALERT_COLOR, INVALID_COLOR, LAW_COLOR, PAGE_IN, THROUGHPUT_COLOR, styled

MEAN_S = 5
"""Width of the moving mean drawn over the 1-s counts, seconds."""


def timeline(interactions: pd.DataFrame, trials: pd.DataFrame, events: pd.DataFrame | None = None) -> Drawing:
    """Completions per second from the start of ramp-up to the end of ramp-down, one panel per trial; under each the
    events in it.

    interactions: columns trial, t_s, ok. trials: rows of the store's table trials that are to be drawn. events: as
    `figures.events.events`, of any trials."""
    counts = [_counts(interactions[interactions["trial"] == t.trial], t) for t in trials.itertuples()]
    marks = _marks(events, trials)
    shown = lanes(marks)
    heights = [1.0, *([0.14 * len(shown) + 0.1] if shown else [])] * len(trials)
    with styled():
        figure = Figure(figsize=(PAGE_IN, 0.7 + 1.1 * sum(heights)))
        grid = figure.subplots(len(heights), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
        panels = grid[:: 2 if shown else 1]
        for axes, trial, frame in zip(panels, trials.itertuples(), counts, strict=True):
            _panel(axes, trial, frame)
            axes.set_ylabel("interactions/s")
        for axes, trial in zip(grid[1::2] if shown else [], trials.itertuples(), strict=shown != []):
            draw_lanes(axes, marks[marks["trial"] == trial.trial], shown, trial.run_start_s)
        grid[-1].set_xlabel("seconds since the start of the run phase")
        figure.align_ylabels(panels)
        entries = {
            label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=len(entries))
    data = pd.concat(counts, ignore_index=True)
    run = trials.sort_values("users").iloc[-1]
    caption = (
        f"Interactions completed in each second (n = {len(data):,} seconds) and their {MEAN_S}-s moving mean; only the "
        f"run phase (white) is analysed; scale {run.scale:g}.{lanes_caption(marks, shown)}"
    )
    finding = f"Throughput over the time of the trials at {listed(trials['users'])} users."
    return Drawing("timeline", figure, finding, caption, data)


def _marks(events: pd.DataFrame | None, trials: pd.DataFrame) -> pd.DataFrame:
    """The events between ramp-up and ramp-down of these trials, with the highest value of each lane (`top`)."""
    if events is None or events.empty:
        return events_of_none()
    bounds = trials.set_index("trial")
    rows = events[events["trial"].isin(bounds.index)]
    begin = rows["trial"].map(bounds["ramp_up_start_s"].fillna(bounds["run_start_s"]))
    end = rows["trial"].map(bounds["ramp_down_end_s"].fillna(bounds["run_end_s"]))
    rows = rows[(rows["t_s"] >= begin) & (rows["t_s"] < end)]
    return rows.assign(top=rows.groupby(["node", "what"])["value"].transform("max"))


def _counts(rows: pd.DataFrame, trial) -> pd.DataFrame:
    begin_s = trial.run_start_s if pd.isna(trial.ramp_up_start_s) else trial.ramp_up_start_s
    end_s = trial.run_end_s if pd.isna(trial.ramp_down_end_s) else trial.ramp_down_end_s
    start, end = np.floor(begin_s - trial.run_start_s), np.ceil(end_s - trial.run_start_s)
    edges = np.arange(start, end + 1)
    time_s = rows["t_s"].to_numpy() - trial.run_start_s
    ok = rows["ok"].to_numpy(dtype=bool)
    good, _ = np.histogram(time_s[ok], edges)
    bad, _ = np.histogram(time_s[~ok], edges)
    second_s, run_s = edges[:-1], trial.run_end_s - trial.run_start_s
    phase = np.where(second_s < 0, "ramp_up", np.where(second_s < run_s, "run", "ramp_down"))
    labels = {"trial": trial.trial, "users": trial.users, "valid": trial.valid, "phase": phase}
    return pd.DataFrame(labels | {"t_s": second_s, "completed_per_s": good, "errors_per_s": bad})


def _panel(axes, trial, frame: pd.DataFrame) -> None:
    run_s = trial.run_end_s - trial.run_start_s
    axes.axvspan(frame["t_s"].min(), 0, color="0.93", linewidth=0)
    axes.axvspan(run_s, frame["t_s"].max() + 1, color="0.93", linewidth=0)
    middle = frame["t_s"] + 0.5
    axes.step(middle, frame["completed_per_s"], where="mid", color="0.65", linewidth=0.6, label="each second")
    smooth = frame["completed_per_s"].rolling(MEAN_S, center=True, min_periods=MEAN_S).mean()
    axes.plot(middle, smooth, color=THROUGHPUT_COLOR, label=f"{MEAN_S}-s mean")
    axes.plot(
        [0, run_s], [trial.throughput_per_s] * 2, color=LAW_COLOR, linestyle="--", linewidth=0.9, label="run mean"
    )
    bad = frame[frame["errors_per_s"] > 0]
    if len(bad):  # an empty line that is not clipped would break the layout
        axes.plot(bad["t_s"] + 0.5, np.zeros(len(bad)), "v", color=ALERT_COLOR, markersize=3, label="errors",
                  clip_on=False, zorder=5)  # fmt: skip
    title = in_its_words(f"{trial.users:,} users ({trial.users_real:,} real)")
    axes.set_title(title + ("" if trial.valid else ": INVALID, " + str(trial.invalid_reasons)), loc="left",
                   color="black" if trial.valid else INVALID_COLOR)  # fmt: skip
    axes.set(ylim=(0, None))
    axes.margins(x=0)
