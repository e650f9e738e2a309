"""The page's interactive figures, as Plotly's JSON: the same frames as the static ones, which print uses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from ntier_analysis.density import GRID_PCT
from ntier_analysis.figures.densities import invalid_users
from ntier_analysis.figures.load_axis import axis_label, hover, in_its_words
from ntier_analysis.figures.loads import BAND_FROM, OPEN_REACH, Plateau, has_goodput, law, nodes_in_order, top_rate
from ntier_analysis.figures.model import MODEL_COLOR
from ntier_analysis.figures.style import (
    GOODPUT_COLOR,
    INVALID_COLOR,
    LAW_COLOR,
    THRESHOLD_PCT,
    THROUGHPUT_COLOR,
    TIERS,
    tier_look,
    tier_order,
)
from ntier_analysis.prediction.forecast import Forecast

Json = dict[str, Any]

SYMBOLS = {"o": "circle", "^": "triangle-up", "D": "diamond", "s": "square", "x": "x-thin-open", "+": "cross-thin-open"}
CYCLE = ("solid", "dash", "dot", "dashdot")
DASHES = {":": "dot", "--": "dash", "-.": "dashdot", "-": "solid"}


def throughput(trials: pd.DataFrame, plateau: Plateau | None, model: Forecast | None = None) -> Json:
    """Throughput and goodput, measured, with the law, the plateau and the model's curve."""
    valid = trials[trials["valid"]].sort_values("users")
    share, think_s, response_s = law(trials)
    end = float(trials["users"].max())
    below = plateau is not None and plateau.all_are_beyond(trials)
    traces = [
        *([] if below else _law_line(end, share, think_s, response_s)),
        _line(valid["users"], valid["throughput_per_s"], "throughput", THROUGHPUT_COLOR)
        | {
            "error_y": _errors(
                valid, "throughput_per_s", "throughput_low_per_s", "throughput_high_per_s", THROUGHPUT_COLOR
            )
        }
        | {"customdata": _round(valid["throughput_per_s"] / valid["scale"])}
        | {"hovertemplate": f"{hover('x')}: %{{y}}/s measured, nominal %{{customdata}}/s<extra>throughput</extra>"},
    ]
    if has_goodput(valid):
        traces.append(_line(valid["users"], valid["goodput_per_s"], "goodput", GOODPUT_COLOR, symbol="triangle-up"))
    if model is not None:
        curve = model.curve
        traces += _band(curve["users"], curve["low_per_s"], curve["high_per_s"], MODEL_COLOR)
        traces.append(
            _line(curve["users"], curve["throughput_per_s"], "closed model", MODEL_COLOR, dash="dashdot", mode="lines")
        )
    traces += _invalid(trials, "throughput_per_s")
    layout = _layout(axis_label(), "interactions/s (measured)", y={"range": [0, top_rate(trials)]})
    if plateau is not None:
        layout["shapes"] = [
            {"type": "line", "yref": "paper", "x0": plateau.knee_users, "x1": plateau.knee_users, "y0": 0, "y1": 1,
             "line": {"color": LAW_COLOR, "dash": "dot", "width": 1}},
        ]  # fmt: skip
        if plateau.has_ends:
            layout["shapes"].append(
                {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": plateau.low_per_s, "y1": plateau.high_per_s,
                 "fillcolor": LAW_COLOR, "opacity": 0.2, "line": {"width": 0}}
            )  # fmt: skip
        layout["annotations"] = [
            {"text": "knee", "x": plateau.knee_users, "y": 1, "yref": "paper", "xanchor": "right", "yanchor": "top",
             "showarrow": False, "font": {"size": 11, "color": LAW_COLOR}},
        ]  # fmt: skip
    return {"data": traces, "layout": layout}


def _band(x, low, high, color: str) -> list[Json]:
    """Between two lines that are not drawn."""
    edges = [_line(x, y, "", color, mode="lines") | {"showlegend": False, "hoverinfo": "skip"} for y in (low, high)]
    for edge in edges:
        edge["line"] = {"width": 0}
    return [edges[0], edges[1] | {"fill": "tonexty", "fillcolor": f"{color}26"}]


def _law_line(end: float, share: float, think_s: float, response_s: float) -> list[Json]:
    if not think_s >= 0:
        return []
    bound = end * share / (think_s + response_s)
    return [_line([0, end], [0, bound], "N / (Z + R)", LAW_COLOR, dash="dash", mode="lines")]


def response_time(trials: pd.DataFrame, tails: pd.DataFrame | None = None) -> Json:
    """`tails`: 95 % intervals of p95 and p99 (figures.percentiles.of_trials)."""
    valid = trials[trials["valid"]].sort_values("users")
    colors = {"p99": "#08306b", "p95": "#2171b5", "mean": "#000000", "p50": "#6baed6"}
    traces = [
        _line(rows["users"], rows[f"response_time_{name}_ms"], name, color, dash="dash" if name == "mean" else "solid")
        for name, color in colors.items()
        if len(rows := valid.dropna(subset=[f"response_time_{name}_ms"]))
    ]
    for trace in traces if tails is not None else []:
        rows = (
            tails[tails["valid"] & (tails["percentile"] == trace["name"])].dropna(subset="value_ms").set_index("trial")
        )
        shown = valid.loc[valid[f"response_time_{trace['name']}_ms"].notna(), "trial"]
        if set(shown) <= set(rows.index):
            rows = rows.loc[shown]
            trace["error_y"] = _errors(_bounded(rows), "value_ms", "low_ms", "high_ms", colors[trace["name"]])
    slo_ms = trials["slo_ms"].dropna()
    if len(slo_ms) and len(valid):
        ends = [0, float(valid["users"].max())]
        line = {"color": LAW_COLOR, "dash": "dot", "width": 1}
        traces.append({"type": "scatter", "mode": "lines", "x": ends, "y": [float(slo_ms.iloc[0])] * 2, "line": line,
                       "name": f"objective {slo_ms.iloc[0] / 1000:g} s", "hoverinfo": "skip"})  # fmt: skip
    layout = _layout(axis_label(), "response time [ms]", y={"type": "log", "rangemode": "normal", "dtick": 1})
    return {"data": traces + _invalid(trials, "response_time_mean_ms"), "layout": layout}


def _bounded(tails: pd.DataFrame) -> pd.DataFrame:
    """An upper end that the run is too short to bound is drawn as in the static figure."""
    return tails.assign(high_ms=tails["high_ms"].clip(upper=OPEN_REACH * tails["value_ms"]))


def utilization(saturation: pd.DataFrame) -> Json:
    """Mean utilization on the left, saturation on the right."""
    valid = saturation[saturation["valid"]].sort_values("users")
    traces = []
    for node, tier in nodes_in_order(saturation):
        rows, look = valid[valid["node"] == node], tier_look(tier)
        style = {"color": look.color, "dash": DASHES.get(look.line, "dot"), "symbol": SYMBOLS.get(look.marker, "star")}
        group = {"legendgroup": node}
        traces.append(_line(rows["users"], rows["utilization_mean_pct"], node, **style) | group)
        right = group | {"xaxis": "x2", "yaxis": "y2", "showlegend": False}
        if rows["saturation"].max() >= BAND_FROM:
            right["error_y"] = _errors(rows, "saturation", "saturation_low", "saturation_high", look.color)
        traces.append(_line(rows["users"], rows["saturation"], node, **style) | right)
    traces += _invalid(saturation, "utilization_mean_pct", "node")
    right = {"xaxis": "x2", "yaxis": "y2", "showlegend": False}
    traces += [trace | right for trace in _invalid(saturation, "saturation", "node")]
    layout = _layout(axis_label(), "mean CPU utilization [%]", y={"range": [0, 103]})
    layout["xaxis"]["domain"] = [0, 0.45]
    layout["xaxis2"] = layout["xaxis"] | {"domain": [0.55, 1], "anchor": "y2"}
    layout["yaxis2"] = layout["yaxis"] | {"anchor": "x2", "range": [-0.03, 1.05]}
    layout["yaxis2"]["title"] = {"text": f"saturation (share ≥ {THRESHOLD_PCT:g} %)"}
    return {"data": traces, "layout": layout}


def pools(saturation: pd.DataFrame) -> Json:
    valid = saturation[saturation["valid"]].sort_values("users")
    groups = sorted(valid.groupby(["tier", "node", "item"]), key=lambda g: (tier_order(g[0][0]), g[0][1:]))
    traces = [
        _line(
            rows["users"],
            100 * rows["saturation"],
            f"{node} {item}".strip(),
            tier_look(tier).color,
            dash=CYCLE[number % len(CYCLE)],
        )
        for number, ((tier, node, item), rows) in enumerate(groups)
    ]
    named = (saturation["node"] + " " + saturation["item"]).str.strip()
    traces += _invalid(saturation.assign(full_pct=100 * saturation["saturation"], pool=named), "full_pct", "pool")
    return {
        "data": traces,
        "layout": _layout(axis_label(), "share of the run when full [%]", y={"range": [-3, 103]}),
    }


def density_map(curves: pd.DataFrame, shares: pd.DataFrame, *, node: str, tier: str, resource: str) -> Json:
    """Heat map with the counted share beside it; colour by the square root of the density."""
    surface = np.stack(curves["density"].to_list())[:, ::4]
    marks = [m for m in (0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0) if m <= surface.max()]
    bad = invalid_users(shares)
    heat = {
        "type": "heatmap", "x": GRID_PCT[::4].tolist(), "y": curves["users"].tolist(), "z": _round(np.sqrt(surface), 3),
        "customdata": _round(surface, 3), "colorscale": "Cividis", "zmin": 0,
        "colorbar": {"title": {"text": "density"}, "tickvals": [math.sqrt(m) for m in marks],
                     "ticktext": [f"{m:g}" for m in marks], "thickness": 10, "x": 1.01},
        "hovertemplate": f"{hover('y')}, %{{x}} %: density %{{customdata}} per point<extra></extra>",
    }  # fmt: skip
    look = tier_look(tier)
    shares = shares.sort_values("users")
    colors = [INVALID_COLOR if u in bad else look.color for u in shares["users"]]
    strip = {
        "type": "scatter", "mode": "markers", "x": _round(shares["saturation"]), "y": shares["users"].tolist(),
        "xaxis": "x2", "marker": {"color": colors, "symbol": ["x" if u in bad else "square" for u in shares["users"]]},
        "error_x": _errors(shares, "saturation", "saturation_low", "saturation_high", look.color), "showlegend": False,
        "hovertemplate": f"{hover('y')}: share %{{x}}<extra>counted from the samples</extra>",
    }  # fmt: skip
    layout = _layout(f"{resource.upper()} utilization of {node} [%]", axis_label(), y={"rangemode": "normal"})
    layout["xaxis"] |= {"domain": [0, 0.72], "range": [0, 100], "showgrid": False}
    layout["xaxis2"] = {
        "domain": [0.77, 1],
        "range": [-0.06, 1.06],
        "tickvals": [0.5, 1],  # a 0 would stand on the 100 of the map beside it on a telephone
        "title": {"text": f"≥ {THRESHOLD_PCT:g} %", "standoff": 8},
    }
    layout["shapes"] = [
        {"type": "line", "x0": THRESHOLD_PCT, "x1": THRESHOLD_PCT, "yref": "paper", "y0": 0, "y1": 1,
         "line": {"color": "white", "width": 1, "dash": "dash"}},
    ]  # fmt: skip
    layout["annotations"] = [
        {
            "x": 50,
            "y": u,
            "text": "INVALID",
            "showarrow": False,
            "font": {"color": "white", "size": 10},
            "bgcolor": "black",
        }
        for u in sorted(bad)
    ]
    return {"data": [heat, strip], "layout": layout}


def timeline(counts: pd.DataFrame) -> Json:
    """Completions per second, one line per trial."""
    palette = [look.color for look in TIERS.values()]
    traces = [
        _line(
            rows["t_s"] + 0.5,
            rows["completed_per_s"].rolling(5, center=True, min_periods=1).mean(),
            in_its_words(f"{rows['users'].iloc[0]:,} users (5-s mean)") + ("" if rows["valid"].all() else ", INVALID"),
            palette[number % len(palette)] if rows["valid"].all() else INVALID_COLOR,
            dash=CYCLE[number % len(CYCLE)],
            mode="lines",
        )
        for number, (_, rows) in enumerate(counts.groupby("trial", sort=False))
    ]
    layout = _layout("seconds since the run phase began", "interactions/s", y={"rangemode": "tozero"})
    layout["xaxis"]["rangemode"] = "normal"
    run = counts[counts["phase"] == "run"]
    outside = [(counts["t_s"].min(), 0.0), (run["t_s"].max() + 1.0, counts["t_s"].max() + 1.0)]
    layout["shapes"] = [
        {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "x0": float(x0), "x1": float(x1), "layer": "below",
         "fillcolor": "#ececec", "line": {"width": 0}}
        for x0, x1 in outside
    ]  # fmt: skip
    return {"data": traces, "layout": layout}


def _line(
    x, y, name: str, color: str, *, dash: str = "solid", symbol: str = "circle", mode: str = "lines+markers"
) -> Json:
    return {
        "type": "scatter", "mode": mode, "x": _round(x, 6), "y": _round(y), "name": name,
        "line": {"color": color, "dash": dash, "width": 2}, "marker": {"symbol": symbol, "color": color, "size": 7},
    }  # fmt: skip


def _errors(rows: pd.DataFrame, value: str, low: str, high: str, color: str) -> Json:
    return {
        "type": "data", "symmetric": False, "thickness": 1, "width": 3,
        "color": color, "array": _round(rows[high] - rows[value]), "arrayminus": _round(rows[value] - rows[low]),
    }  # fmt: skip


def _invalid(rows: pd.DataFrame, column: str, told: str = "invalid_reasons") -> list[Json]:
    """`told`: the column with what a mark says."""
    bad = rows[~rows["valid"].astype(bool)].dropna(subset=[column])
    if bad.empty:
        return []
    trace = _line(bad["users"], bad[column], "INVALID trial", INVALID_COLOR, symbol="x", mode="markers")
    return [trace | {"text": bad[told].tolist(), "hovertemplate": "INVALID: %{text}<extra></extra>"}]


def _layout(x_title: str, y_title: str, y: Json | None = None) -> Json:
    axis = {"gridcolor": "#e5e5e5", "zeroline": False, "automargin": True, "linecolor": "#444", "ticks": "outside"}
    return {
        "xaxis": axis | {"title": {"text": x_title, "standoff": 8}, "rangemode": "tozero"},
        "yaxis": axis | {"title": {"text": y_title, "standoff": 8}} | (y or {}),
        "margin": {"l": 60, "r": 16, "t": 36, "b": 48},
        "legend": {"orientation": "h", "y": -0.22, "x": 0},
        "hovermode": "closest",
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": "#1b1b1b"},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "height": 400,
    }


def _round(values, digits: int = 5) -> list:
    """Lists of numbers with few significant digits (the page stays small); NaN and infinities become null."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim > 1:
        return [_round(row, digits) for row in array]
    return [float(f"{v:.{digits}g}") if math.isfinite(v) else None for v in array]
