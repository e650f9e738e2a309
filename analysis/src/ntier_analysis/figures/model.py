"""The closed model's curve beside a measurement."""

from __future__ import annotations

import math

from ntier_analysis.prediction.forecast import Forecast

MODEL_COLOR = "#882255"
"""Colour of a model's curve; no tier has it."""


def draw_model(axes, model: Forecast) -> None:
    """Throughput over the users with its 95 % band."""
    curve = model.curve
    axes.fill_between(
        curve["users"], curve["low_per_s"], curve["high_per_s"], color=MODEL_COLOR, alpha=0.15, linewidth=0
    )
    style = {"color": MODEL_COLOR, "linewidth": 0.8, "linestyle": "-."}
    axes.plot(curve["users"], curve["throughput_per_s"], label="closed model", **style)


def model_caption(model: Forecast | None) -> str:
    """What the curve is and how far off it is; empty without a model."""
    if model is None:
        return ""
    off = model.errors
    beyond = (
        "" if math.isnan(off.throughput_beyond) else f", {100 * off.throughput_beyond:.1f} % beyond the fitted loads"
    )
    return (
        " Dash-dotted: exact closed model of the measured CPU demands, band 95 %; it misses the measured throughput by "
        f"{100 * off.throughput:.1f} % on average{beyond}."
    )
