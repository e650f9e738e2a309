"""What a sweep shows over the users: throughput, response times, utilization, pools."""

from __future__ import annotations

import math
from dataclasses import dataclass
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.markers import CARETUPBASE
from matplotlib.ticker import FuncFormatter, LogFormatter

from ntier_analysis.contracts.implied import USERS
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.described import factor_of
from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.load_axis import axis_label
from ntier_analysis.figures.model import draw_model, model_caption
from ntier_analysis.figures.style import (
    COLUMN_IN,
    GOODPUT_COLOR,
    INVALID_COLOR,
    LAW_COLOR,
    PAGE_IN,
    THRESHOLD_PCT,
    THROUGHPUT_COLOR,
    Look,
    styled,
    thousands,
    tier_look,
    tier_order,
    users_ticks,
)
from ntier_analysis.prediction.forecast import Forecast
from ntier_analysis.statistics.share import POOL_FULL
from ntier_analysis.wording import counted, ends, join, share

BAND_FROM = 0.05
"""Nodes below this saturation at every load get no interval band: they would only cover each other near 0."""

SIDES = {"p95": 0.012, "p99": -0.012}
"""By how much the intervals stand beside their load, as a share of the highest load: they would cover each other."""
MOST_POOLS = 10
"""Pools that a figure has room to name."""
POOL_LOOKS = ({}, {"fillstyle": "none"}, {"marker": "+"})
"""Of four pools each, which have four kinds of lines: their tier gives them all one colour and marker."""
SAME_PCT = 1.0
"""Shares that differ by less lie on one another: the width of a line, of an axis of two inches."""
SEVERAL_TIERS = Look("0.35", "x", "-")
"""Of a line that pools of several tiers have in common."""
LEGEND_LETTERS = 52
"""Of one column of a legend, as wide as the figure."""
OPEN_REACH = 1.5
"""An interval that is not bounded above is drawn up to so many times the value, with an arrow."""


@dataclass(frozen=True)
class Plateau:
    """Pooled throughput of the loads beyond the knee, 1/s, with its 95 % interval (None: not known); `at_least`: the
    sweep did not bracket the knee."""

    throughput_per_s: float
    low_per_s: float | None
    high_per_s: float | None
    knee_users: float | None
    at_least: bool = False

    @property
    def has_ends(self) -> bool:
        return self.low_per_s is not None and self.high_per_s is not None

    def all_are_beyond(self, trials: pd.DataFrame) -> bool:
        """Whether the knee lies below all valid loads, so that none shows how throughput grows."""
        return self.knee_users is not None and bool(trials.loc[trials["valid"], "users"].min() >= self.knee_users)


def throughput(
    trials: pd.DataFrame, plateau: Plateau | None, model: Forecast | None = None, verdict: str = ""
) -> Drawing:
    """Throughput and goodput against users with 95 % intervals, the interactive law and the pooled plateau.

    trials: columns of the store's table trials, one sweep. model: drawn beside the measurement, with its band.
    verdict: `none` if nothing limits, so that throughput follows the law up to the highest load."""
    valid = trials[trials["valid"]]
    scale = float(trials["scale"].iloc[0])
    with styled():
        figure = Figure(figsize=(COLUMN_IN, 2.8))
        axes = figure.subplots()
        if plateau is None or not plateau.all_are_beyond(trials):
            _law(axes, trials)
        if model is not None:
            draw_model(axes, model)
        if plateau is not None:
            if plateau.has_ends:
                axes.axhspan(plateau.low_per_s, plateau.high_per_s, color=LAW_COLOR, alpha=0.18, linewidth=0)
            axes.axhline(plateau.throughput_per_s, color=LAW_COLOR, linewidth=0.8, label="pooled plateau")
            if plateau.knee_users:
                _knee(axes, plateau.knee_users, trials["users"].max())
        _with_intervals(axes, valid, "throughput_per_s", THROUGHPUT_COLOR, "o", "throughput")
        if has_goodput(valid):
            _with_intervals(axes, valid, "goodput_per_s", GOODPUT_COLOR, "^", "goodput")
        _invalid_marks(axes, trials, "throughput_per_s")
        axes.set(xlabel=axis_label(), ylabel="interactions/s (measured)", xlim=(0, None))
        axes.set_ylim(0, top_rate(trials))
        users_ticks(axes.xaxis, trials["users"])
        _nominal_axis(axes, scale)
        figure.legend(loc="outside lower center", ncols=3)
    return Drawing(
        "throughput",
        figure,
        _throughput_finding(valid, plateau, bool(np.isfinite(law(trials)[1])), verdict),
        _throughput_caption(trials, plateau) + model_caption(model),
        _loads(trials),
    )


def response_time(trials: pd.DataFrame, tails: pd.DataFrame | None = None) -> Drawing:
    """Percentiles of the response time against users, logarithmic; missing where a percentile has too few samples.

    tails: 95 % intervals of p95 and p99, one per trial (figures.percentiles.of_trials)."""
    valid = trials[trials["valid"]]
    looks = {"p99": ("#08306b", "v"), "p95": ("#2171b5", "s"), "mean": ("black", "o"), "p50": ("#6baed6", "^")}
    with styled():
        figure = Figure(figsize=(COLUMN_IN, 2.5))
        axes = figure.subplots()
        for name, (color, marker) in looks.items():
            means = valid.groupby("users")[f"response_time_{name}_ms"].mean().dropna()
            if len(means):
                line = "--" if name == "mean" else "-"
                axes.plot(means.index, means, color=color, marker=marker, linestyle=line, label=name)
            if tails is not None and name in SIDES:
                _tail_intervals(axes, tails[tails["valid"] & (tails["percentile"] == name)], color, SIDES[name])
        slo_ms = trials["slo_ms"].dropna()
        if len(slo_ms):
            label = f"objective {slo_ms.iloc[0] / 1000:g} s"
            axes.axhline(slo_ms.iloc[0], color=LAW_COLOR, linewidth=0.8, linestyle=":", label=label)
        _invalid_marks(axes, trials, "response_time_mean_ms")
        axes.set(xlabel=axis_label(), ylabel="response time [ms]", yscale="log", xlim=(0, None))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda ms, _: f"{ms:,.10g}"))
        axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.4)))  # for less than a decade
        users_ticks(axes.xaxis, trials["users"])
        if axes.get_legend_handles_labels()[0]:
            figure.legend(loc="outside lower center", ncols=3)
    counts = trials["interactions"]
    models = set(trials.get("load_model", pd.Series(dtype=str)).dropna())
    closed = ", closed loop" if models <= {LoadModel.CLOSED.value} else ""
    caption = (
        f"Response time of successful interactions as the client sees it{closed}; n = {_span(counts)} per trial. "
        f"Percentiles with too few samples are not shown. {_scale_text(trials['scale'].iloc[0])}"
        + _tail_text(tails)
        + _invalid_text(trials)
    )
    return Drawing("response-time", figure, _response_finding(valid), caption, _loads(trials))


def _scale_text(scale: float) -> str:
    if scale < 1:
        return f"At scale {scale:g} response times below saturation are longer than at scale 1."
    return f"Scale {scale:g}."


def _tail_intervals(axes, tails: pd.DataFrame, color: str, side: float) -> None:
    """One bar per trial beside its load; those of a repeated load lie over each other. An open upper end has an arrow.

    side: by how much, as a share of the highest load."""
    known = tails.dropna(subset=["low_ms", "high_ms"])
    top = known["high_ms"].where(np.isfinite(known["high_ms"]), OPEN_REACH * known["value_ms"])
    at = known["users"] + side * known["users"].max()
    axes.vlines(at, known["low_ms"], top, color=color, linewidth=1.0)
    bounded = np.isfinite(known["high_ms"])
    axes.plot(at[~bounded], top[~bounded], linestyle="none", marker=CARETUPBASE, color=color, markersize=3)
    ends = {"linestyle": "none", "marker": "_", "color": color, "markersize": 3}
    axes.plot(at, known["low_ms"], **ends)
    axes.plot(at[bounded], top[bounded], **ends)


def _tail_text(tails: pd.DataFrame | None) -> str:
    if tails is None or tails["low_ms"].isna().all():
        return ""
    text = (
        " Bars: 95 % intervals of p95 and p99 of each trial, which allow for the correlation of neighbouring responses."
    )
    open_end = " An arrow: the run is too short to give an upper end."
    return text + (open_end if np.isinf(tails["high_ms"]).any() else "")


def utilization(saturation: pd.DataFrame, scale: float) -> Drawing:
    """Mean CPU utilization of each node, and its saturation with 95 % intervals, against users.

    saturation: the store's table at one threshold and resource, with the trials' column valid."""
    valid = saturation[saturation["valid"]]
    nodes = nodes_in_order(saturation)
    with styled():
        figure = Figure(figsize=(PAGE_IN, 2.4))
        left, right = figure.subplots(1, 2, sharex=True)
        tiers = list(dict.fromkeys(tier for _, tier in nodes))
        for node, tier in nodes:
            look, rows = tier_look(tier), valid[valid["node"] == node]
            means = rows.groupby("users")["utilization_mean_pct"].mean()
            style = {"color": look.color, "marker": look.marker, "linestyle": look.line} | _beneath(tiers.index(tier))
            left.plot(means.index, means, label=node, **style)
            shares = rows.groupby("users")[["saturation", "saturation_low", "saturation_high"]].mean()
            right.plot(shares.index, shares["saturation"], **style)
            if shares["saturation"].max() >= BAND_FROM:
                right.fill_between(shares.index, shares["saturation_low"], shares["saturation_high"],
                                   color=look.color, alpha=0.15, linewidth=0)  # fmt: skip
        left.set(xlabel=axis_label(), ylabel="mean CPU utilization [%]", ylim=(0, 103), xlim=(0, None))
        right.set(xlabel=axis_label(), ylabel=f"saturation (share ≥ {THRESHOLD_PCT:g} %)", ylim=(-0.02, 1.03))
        _invalid_marks(left, saturation, "utilization_mean_pct", label=None)
        _invalid_marks(right, saturation, "saturation")
        users_ticks(left.xaxis, saturation["users"])
        figure.legend(loc="outside right center")
    n = saturation["n"]
    caption = (
        f"Mean utilization and saturation of every node's CPU in the run phase, counted from n = {_span(n)} "
        f"samples per node and trial (worth {_span(saturation['n_effective'])} "
        f"independent ones), with 95 % intervals (left out for nodes that stay below {BAND_FROM:g}); scale {scale:g}."
    )
    columns = ["users", "trial", "valid", "node", "tier", "utilization_mean_pct", "saturation", "saturation_low",
               "saturation_high", "n", "n_effective"]  # fmt: skip
    finding = _utilization_finding(valid)
    return Drawing("utilization", figure, finding, caption + _invalid_text(saturation), saturation[columns])


def _beneath(number: int) -> dict[str, float]:
    """Of the tier with this number: it lies beneath those before it, and its marker looks out, since nodes without work
    lie on one another at 0."""
    return {"zorder": 2 - 0.01 * number, "markersize": 3 + 1.2 * number}


def pools(saturation: pd.DataFrame, scale: float) -> Drawing:
    """Share of the run in which each soft resource (threads, connections) is full, against users: the verdict's
    saturation, so that figure and text are of one number. Of more than MOST_POOLS the fullest.

    saturation: the store's table at one threshold, rows of resource pool, with the trials' column valid."""
    valid = saturation[saturation["valid"]]
    shown, others = _fullest(valid)
    with styled():
        figure = Figure(figsize=(COLUMN_IN, 2.6 + 0.1 * len(shown)))  # with room for the legend
        axes = figure.subplots()
        ordered = sorted(shown, key=lambda pool: (tier_order(pool[0]), pool[1:]))
        lines = _as_one_line({pool: _full_pct(valid, pool) for pool in ordered})
        for number, alike in enumerate(lines):
            tiers = {tier for tier, _, _ in alike}
            look = tier_look(tiers.pop()) if len(tiers) == 1 else SEVERAL_TIERS
            style = {"marker": look.marker, "linestyle": ("-", "--", ":", "-.")[number % 4]} | POOL_LOOKS[number // 4]
            shares = _full_pct(valid, alike[0])
            axes.plot(shares.index, shares, color=look.color, label=fill(_names(alike), LEGEND_LETTERS), **style)
        axes.set(xlabel=axis_label(), ylabel="share of the run when full [%]", ylim=(-3, 103), xlim=(0, None))
        drawn = saturation.set_index(["tier", "node", "item"]).drop(others)
        _invalid_marks(axes, drawn.assign(full_pct=100 * drawn["saturation"]), "full_pct")
        users_ticks(axes.xaxis, saturation["users"])
        figure.legend(loc="outside lower center", ncols=2 if len(lines) == len(shown) else 1)
    known = valid.dropna(subset="saturation").sort_values(["saturation", "utilization_mean_pct"])
    finding = "How full the pools were was not measured in a valid trial."
    if len(known):
        top = known.iloc[-1]
        taken = top["utilization_mean_pct"]
        finding = (
            f"Fullest pool: {top['item']} of {top['node']}, full in {100 * top['saturation']:.0f} % of the run at "
            f"{top['users']:,} users{'' if pd.isna(taken) else f' ({taken:.0f} % of its places taken on average)'}. "
            "A full pool above a saturated resource is a symptom, not the cause."
        )
    n = saturation["n"]
    caption = (
        f"Soft resources: share of the samples of the run phase in which the pool was full. {POOL_FULL} n = {_span(n)} "
        f"samples per trial; scale {scale:g}." + _invalid_text(saturation)
    )
    if len(lines) < len(shown):
        caption += f" Pools that are full equally often at each load, to {SAME_PCT:g} %, have one line."
    if others:
        caption += f" In print only the {MOST_POOLS} fullest pools have a line, not {_names(others)}."
    columns = ["users", "trial", "valid", "node", "tier", "item", "saturation", "utilization_mean_pct", "n"]
    return Drawing("pools", figure, finding, caption, saturation[columns])


def _full_pct(rows: pd.DataFrame, pool: tuple) -> pd.Series:
    """By load."""
    _, node, item = pool
    return 100 * rows[(rows["node"] == node) & (rows["item"] == item)].groupby("users")["saturation"].mean()


def _as_one_line(shares: dict[tuple, pd.Series]) -> list[list[tuple]]:
    """Pools by the line that they have in common: one would hide the other, most often at 0 or 100 %."""
    lines: list[list[tuple]] = []
    for pool, own in shares.items():
        same = (line for line in lines if own.index.equals(shares[line[0]].index)
                and np.allclose(own, shares[line[0]], rtol=0, atol=SAME_PCT, equal_nan=True))  # fmt: skip
        line = next(same, None)
        if line is None:
            lines.append([pool])
        else:
            line.append(pool)
    return lines


def _names(pools: list[tuple]) -> str:
    return join([f"{node} {item}".strip() for _, node, item in pools])


def _fullest(valid: pd.DataFrame) -> tuple[list[tuple], list[tuple]]:
    """Pools (tier, node, item) that are drawn, and those for which there is no room: the less full ones."""
    full = valid.groupby(["tier", "node", "item"])[["saturation", "utilization_mean_pct"]].max()
    ranked = list(full.sort_values(list(full), ascending=False).index)
    return ranked[:MOST_POOLS], ranked[MOST_POOLS:]


def law(trials: pd.DataFrame) -> tuple[float, float, float]:
    """Real users per nominal user, think time (s; NaN where the law does not hold: nobody thinks, or the loads differ
    in something else than their users), and response time (s) of the lowest valid load."""
    first = (trials[trials["valid"]] if trials["valid"].any() else trials).sort_values("users").iloc[0]
    if factor_of(trials)[0] != USERS or pd.isna(first["think_time_s"]):
        return float("nan"), float("nan"), first["response_time_mean_ms"] / 1000.0
    return first["users_real"] / first["users"], first["think_time_s"], first["response_time_mean_ms"] / 1000.0


def top_rate(trials: pd.DataFrame) -> float:
    """Upper end of the rate axis: room for the intervals and the law above the plateau."""
    rates = trials[["throughput_per_s", "throughput_high_per_s"]].to_numpy(dtype=float)
    return 1.35 * float(np.nanmax(rates)) if np.isfinite(rates).any() else 1.0


def has_goodput(trials: pd.DataFrame) -> bool:
    """Without an objective the goodput equals the throughput, so it is not drawn."""
    asked = trials["slo_ms"].notna().any() or (trials["goodput_per_s"] < trials["throughput_per_s"]).any()
    return bool(asked and trials["goodput_per_s"].notna().any())


def _law(axes, trials: pd.DataFrame) -> None:
    share, think_s, response_s = law(trials)
    if not np.isfinite(think_s):  # nobody thinks: the law does not apply
        return
    users = np.array([0.0, trials["users"].max()])
    axes.plot(users, users * share / (think_s + response_s), color=LAW_COLOR, linewidth=0.9, linestyle="--",
              label="N / (Z + R)")  # fmt: skip


def _knee(axes, users: float, highest: float) -> None:
    """Its line, named at the top: on the left, where no curve reaches the top, if there is room."""
    axes.axvline(users, color=LAW_COLOR, linewidth=0.6, linestyle=":")
    left = users > 0.2 * highest
    axes.annotate("knee", (users, 1), xycoords=("data", "axes fraction"), xytext=(-2 if left else 2, -2),
                  textcoords="offset points", ha="right" if left else "left", va="top", fontsize=6.5,
                  color=LAW_COLOR)  # fmt: skip


def _with_intervals(axes, trials: pd.DataFrame, column: str, color: str, marker: str, label: str) -> None:
    means = trials.groupby("users")[column].mean()
    axes.plot(means.index, means, color=color, marker=marker, label=label)
    if column == "throughput_per_s":
        low = (trials[column] - trials["throughput_low_per_s"]).clip(lower=0)
        high = (trials["throughput_high_per_s"] - trials[column]).clip(lower=0)
        axes.errorbar(trials["users"], trials[column], [low, high], color=color, fmt="none", linewidth=0.8)


def _invalid_marks(axes, rows: pd.DataFrame, column: str, label: str | None = "INVALID trial") -> None:
    bad = rows[~rows["valid"].astype(bool)].dropna(subset=[column])
    if len(bad):
        axes.plot(bad["users"], bad[column], color=INVALID_COLOR, marker="x", linestyle="none", label=label)


def _nominal_axis(axes, scale: float) -> None:
    if scale != 1.0:
        right = axes.secondary_yaxis("right", functions=(lambda x: x / scale, lambda x: x * scale))
        right.set_ylabel(f"nominal (÷ scale {scale:g})", color=LAW_COLOR)
        right.tick_params(colors=LAW_COLOR)
        right.spines["right"].set_visible(True)


def nodes_in_order(rows: pd.DataFrame) -> list[tuple[str, str]]:
    pairs = rows[["node", "tier"]].drop_duplicates().itertuples(index=False)
    return sorted(pairs, key=lambda p: (tier_order(p.tier), len(p.node), p.node))


def _loads(trials: pd.DataFrame) -> pd.DataFrame:
    columns = ["users", "users_real", "trial", "rep", "valid", "invalid_reasons", "throughput_per_s",
               "throughput_low_per_s", "throughput_high_per_s", "goodput_per_s", "response_time_mean_ms",
               "response_time_p50_ms", "response_time_p95_ms", "response_time_p99_ms", "interactions", "errors",
               "scale"]  # fmt: skip
    return trials[columns].sort_values(["users", "rep"])


def _throughput_finding(valid: pd.DataFrame, plateau: Plateau | None, thinkers: bool, verdict: str) -> str:
    if valid.empty:
        return NOTHING_VALID
    if plateau is None and valid["users"].nunique() == 1:
        rate = _rate(valid["throughput_per_s"].mean())
        return f"One valid load, {valid['users'].iloc[0]:,} users: {rate} interactions/s."
    if not thinkers or (plateau is None and verdict != "none"):
        means = valid.groupby("users")["throughput_per_s"].mean()
        return f"Throughput is {means.min():.3g} to {means.max():.3g} interactions/s, most at {means.idxmax():,} users."
    if plateau is None:
        return f"No plateau was reached: throughput follows N/(Z+R) up to {valid['users'].max():,} users."
    at = f" from about {float(f'{plateau.knee_users:.2g}'):,.0f} users on" if plateau.knee_users else ""
    rate = _rate(plateau.throughput_per_s, plateau.low_per_s, plateau.high_per_s)
    value = f"{'no less than ' if plateau.at_least else ''}{rate} interactions/s"
    if plateau.all_are_beyond(valid):
        return f"All loads lie beyond the knee: throughput is {value}."
    if plateau.at_least:  # too few loads beyond the knee show that it levels off
        return f"Throughput follows N/(Z+R) at first, and its maximum is {value}."
    return f"Throughput follows N/(Z+R), then levels off at {value}{at}."


def _rate(value: float, low: float | None = None, high: float | None = None) -> str:
    """One decimal, and of a slow system two significant digits: `57.0 [55.1, 58.9]`, `0.031 [0.030, 0.032]`."""
    decimals = 1 if not 0 < abs(value) < 1 else 1 - math.floor(math.log10(abs(value)))
    shown = f"{value:.{decimals}f}"
    return shown if low is None or high is None else f"{shown} {ends(low, high, f'.{decimals}f')}"


def _throughput_caption(trials: pd.DataFrame, plateau: Plateau | None) -> str:
    _, think_s, response_s = law(trials)
    n = trials["interactions"]
    band = " grey band: 95 % interval of the plateau, pooled over its trials;" if plateau and plateau.has_ends else ""
    dashed = f" dashed: N/(Z+R) with Z = {think_s:g} s and R = {response_s * 1000:.0f} ms of the lowest valid load;"
    drawn = bool(np.isfinite(think_s)) and not (plateau and plateau.all_are_beyond(trials))
    known = trials["throughput_low_per_s"].notna().any()
    return (
        f"Interactions per second of the run phase{' with 95 % intervals' * bool(known)}, n = {_span(n)} interactions "
        f"per trial, {counted(len(trials), 'trial')};{dashed * drawn}{band} scale {trials['scale'].iloc[0]:g}."
        + _invalid_text(trials)
    )


NOTHING_VALID = "No trial is valid: nothing can be concluded."


def _response_finding(valid: pd.DataFrame) -> str:
    if valid.empty:
        return NOTHING_VALID
    means = valid.groupby("users")["response_time_mean_ms"].mean().dropna().sort_index()
    if means.empty:
        return "The mean response time is not known."
    if len(means) == 1:
        return f"The mean response time is {means.iloc[0]:,.0f} ms."
    first, last = (f"{means.iloc[i]:,.0f} ms at {means.index[i]:,} users" for i in (0, -1))
    return f"The mean response time is {first} and {last}."


def _utilization_finding(valid: pd.DataFrame) -> str:
    if valid.empty:
        return NOTHING_VALID
    known = valid.dropna(subset="saturation")
    if known.empty:
        return "How saturated the CPUs were was not measured in a valid trial."
    at_last = known[known["users"] == known["users"].max()]
    last = at_last.loc[at_last["saturation"].idxmax()]
    others = at_last[at_last["node"] != last["node"]]
    if last["saturation"] == 0:
        return f"At {last['users']:,} users no CPU was seen at {THRESHOLD_PCT:g} % or above."
    text = f"At {last['users']:,} users the highest saturation is that of {last['node']}, {_share(last)}"
    if others.empty:
        return text + "."
    if rivals := others.loc[others["saturation_high"] >= last["saturation_low"], "node"].nunique():
        return f"{text}; {counted(rivals, 'other node')} may have as much."
    second = others.loc[others["saturation"].idxmax()]
    return f"{text}; the next, {second['node']}, has {_share(second)}."


def _share(row: pd.Series) -> str:
    return share(row["saturation"], row["saturation_low"], row["saturation_high"])


def _span(counts: pd.Series) -> str:
    if counts.isna().all():
        return "unknown"
    low, high = counts.min(), counts.max()
    return f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"


def _invalid_text(rows: pd.DataFrame) -> str:
    bad = sorted(set(rows.loc[~rows["valid"].astype(bool), "users"]))
    return f" INVALID trials (x, where measured): {', '.join(thousands(u) for u in bad)} users." if bad else ""
