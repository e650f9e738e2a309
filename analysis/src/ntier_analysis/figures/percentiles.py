"""Response times of each interaction: median and tail, with intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.markers import CARETRIGHTBASE
from matplotlib.ticker import FuncFormatter

from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.load_axis import in_its_words
from ntier_analysis.figures.loads import OPEN_REACH
from ntier_analysis.figures.style import INVALID_COLOR, LAW_COLOR, PAGE_IN, styled
from ntier_analysis.statistics.percentiles import percentile_interval
from ntier_analysis.statistics.throughput import required_n
from ntier_analysis.wording import counted

SHARES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}
LOOKS = {"p50": ("#6baed6", "^"), "p90": ("#4292c6", "o"), "p95": ("#2171b5", "s"), "p99": ("#08306b", "v")}
"""The colours of the response-time figure: the higher the percentile, the darker."""
WITH_INTERVAL = ("p95", "p99")
MOST = 40
"""Interactions that are drawn: a page. A bulletin board has 24; names that carry numbers may be thousands."""
LABELLED = ((10.0, "2357"), (40.0, "25"))
"""Ratio of the axis' ends up to which ticks between powers of ten have labels, and the first digits of these."""


def by_interaction(done: pd.DataFrame, start_s: float, end_s: float) -> pd.DataFrame:
    """Interactions of one trial (columns of the store's table) -> one row per interaction and percentile of the
    successes that were completed in the run phase: interaction, n, percentile, value_ms, low_ms, high_ms, needed."""
    good = done[done["ok"].astype(bool) & (done["t_s"] >= start_s) & (done["t_s"] < end_s)]
    rows = []
    for name, group in good.groupby("interaction", sort=True):
        values, times = group["response_time_ms"].to_numpy(), group["t_s"].to_numpy()
        for label, share in SHARES.items():
            interval = percentile_interval(values, times, share, start_s, end_s)
            rows.append((name, interval.n, label, interval.value, interval.low, interval.high, interval.needed))
    columns = ["interaction", "n", "percentile", "value_ms", "low_ms", "high_ms", "needed"]
    return pd.DataFrame(rows, columns=columns)


def of_trials(interactions: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """95th and 99th percentile of each trial's successes: trial, users, valid, percentile, value_ms, low_ms, high_ms,
    n. Percentiles with too few values are NaN."""
    rows = []
    by_trial = dict(iter(interactions.groupby("trial", sort=False)))
    for trial in trials.dropna(subset=["run_start_s", "run_end_s"]).itertuples():
        if trial.trial not in by_trial:
            continue
        done = by_trial[trial.trial]
        good = done[done["ok"].astype(bool)]
        for label in WITH_INTERVAL:
            interval = percentile_interval(good["response_time_ms"].to_numpy(), good["t_s"].to_numpy(), SHARES[label],
                                        trial.run_start_s, trial.run_end_s)  # fmt: skip
            rows.append(
                (trial.trial, trial.users, trial.valid, label, interval.value, interval.low, interval.high, interval.n)
            )
    columns = ["trial", "users", "valid", "percentile", "value_ms", "low_ms", "high_ms", "n"]
    kinds = {"valid": bool, "value_ms": float, "low_ms": float, "high_ms": float}  # also of no rows
    return pd.DataFrame(rows, columns=columns).astype(kinds)


def percentiles(done: pd.DataFrame, trial) -> Drawing:
    """One line per interaction, the slowest 95th percentile on top; the number of values beside it. Of more than MOST
    those that take most time, all responses together; `data` has all.

    done: interactions of one trial. trial: a row of the store's trials."""
    whole = by_interaction(done, trial.run_start_s, trial.run_end_s)
    inside = done[(done["t_s"] >= trial.run_start_s) & (done["t_s"] < trial.run_end_s)]
    drawn, left = _heaviest(inside, whole)
    frame = whole[whole["interaction"].isin(drawn)]
    wide = frame.pivot_table(index="interaction", columns="percentile", values="value_ms", dropna=False)
    wide = wide.reindex(columns=list(SHARES))
    rank = wide["p95"].fillna(wide["p90"]).fillna(wide["p50"]).sort_values(na_position="first")
    order = [*rank.index]
    with styled():
        figure = Figure(figsize=(PAGE_IN, 0.9 + 0.19 * max(len(order), 3)))
        axes = figure.subplots()
        for label, (color, marker) in LOOKS.items():
            rows = frame[frame["percentile"] == label].set_index("interaction").reindex(order)
            place = np.arange(len(order)) + (0.14 if label == "p99" else -0.14 if label == "p95" else 0.0)
            axes.plot(rows["value_ms"], place, marker, color=color, markersize=4, label=label, zorder=3)
            if label in WITH_INTERVAL:
                open_end = np.isinf(rows["high_ms"])
                reach = rows["high_ms"].where(~open_end, OPEN_REACH * rows["value_ms"])
                axes.hlines(place, rows["low_ms"], reach, color=color, linewidth=1.0, zorder=2)
                axes.plot(
                    reach[open_end], place[open_end], marker=CARETRIGHTBASE, color=color, markersize=4, linestyle="none"
                )
        axes.set_yticks(range(len(order)), order)
        axes.set(xlabel="response time [ms]", ylim=(-0.6, len(order) - 0.4))
        _counts(axes, frame, order)
        if frame["value_ms"].notna().any():
            _log_axis(axes)
        else:
            axes.set_xticks([])
        title = in_its_words(f"{trial.trial}: {trial.users:,} users")
        axes.set_title(title if trial.valid else f"{title}, INVALID ({trial.invalid_reasons})", loc="left",
                       color="black" if trial.valid else INVALID_COLOR)  # fmt: skip
        shown = [label for label in LOOKS if frame.loc[frame["percentile"] == label, "value_ms"].notna().any()]
        marks = dict(zip(LOOKS, axes.get_legend_handles_labels()[0], strict=True))
        figure.legend([marks[label] for label in shown], shown, loc="outside lower center", ncols=max(1, len(shown)))
    caption = (
        f"Response time of the successful interactions of {trial.trial} ({trial.users:,} users) in the run phase, as "
        f"the client sees it; the bars are 95 % intervals of the 95th and 99th percentile that allow for the "
        f"correlation of neighbouring responses (an arrow: the run is too short to bound it). A percentile is shown "
        f"if at least ten values lie beyond it: the 95th from n = {required_n(0.95):,}, the 99th from n = "
        f"{required_n(0.99):,}; scale {trial.scale:g}."
    )
    if left:
        caption += f" Drawn are the {len(drawn)} interactions that take most time; {left:,} others are left out."
    return Drawing(f"percentiles-{trial.trial}", figure, _finding(whole), caption, whole.assign(trial=trial.trial))


def _log_axis(axes) -> None:
    axes.set_xscale("log")
    axes.grid(True, axis="x", which="both", linewidth=0.3)
    axes.xaxis.set_major_formatter(FuncFormatter(_milliseconds))
    low, high = axes.get_xlim()
    labelled = next((digits for most, digits in LABELLED if high < most * low), "")
    axes.xaxis.set_minor_formatter(
        FuncFormatter(lambda ms, _: _milliseconds(ms) if f"{ms:e}"[0] in [*labelled] else "")
    )


def _heaviest(done: pd.DataFrame, frame: pd.DataFrame) -> tuple[set[str], int]:
    """Names of the interactions that are drawn, and how many others there are."""
    names = frame["interaction"].unique()
    time_ms = done[done["interaction"].isin(names)].groupby("interaction", observed=True)["response_time_ms"].sum()
    return set(time_ms.nlargest(MOST).index), max(0, len(names) - MOST)


def _milliseconds(ms: float, _=None) -> str:
    return f"{ms:,.10g}"


def _counts(axes, frame: pd.DataFrame, order: list[str]) -> None:
    """n of each interaction at the right, and which percentiles it does not suffice for."""
    style = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center", "fontsize": 6.5}
    for place, name in enumerate(order):
        rows = frame[frame["interaction"] == name]
        small = rows.loc[rows["value_ms"].isna(), "percentile"].tolist()
        text = f"n = {rows['n'].iloc[0]:,}" + (f"; too small for {', '.join(small)}" if small else "")
        axes.annotate(text, (1, place), xytext=(4, 0), color="black" if not small else LAW_COLOR, **style)


def _finding(frame: pd.DataFrame) -> str:
    known = frame[(frame["percentile"] == "p95") & frame["value_ms"].notna()]
    if known.empty:
        return f"A 95th percentile needs {required_n(0.95):,} interactions of a kind; no kind has that many."
    top, low = (known.loc[known["value_ms"].agg(which)] for which in ("idxmax", "idxmin"))
    text = (
        f"The highest 95th percentile is that of {top.interaction}: {top.value_ms:,.0f} "
        f"[{top.low_ms:,.0f}, {'no bound' if np.isinf(top.high_ms) else f'{top.high_ms:,.0f}'}] ms"
    )
    if rivals := int((known["high_ms"] >= top.low_ms).sum()) - 1:
        text += f" ({counted(rivals, 'other')} may be as high)"
    if len(known) > 1:
        text += f", the lowest that of {low.interaction}: {low.value_ms:,.0f} ms"
    few = int(frame[(frame["percentile"] == "p99")]["value_ms"].isna().sum())
    return text + "." + (f" For the 99th, n is too small for {few} of {frame['interaction'].nunique()}." if few else "")
