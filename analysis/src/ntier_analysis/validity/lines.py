"""Straight lines through loads, with errors in both directions: what the checks of a sweep share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ntier_analysis.statistics.laws import apart

MIN_OTHERS = 3
"""Loads that a line needs before another load is compared with it; a line through two loads always fits."""


@dataclass(frozen=True)
class Points:
    """One quantity over the trials of a sweep: `x` throughput, `y` the quantity, their standard errors; (n,) each."""

    trials: tuple[str, ...]
    x: np.ndarray
    x_error: np.ndarray
    y: np.ndarray
    y_error: np.ndarray

    def keep(self, wanted: np.ndarray) -> Points:
        names = tuple(t for t, kept in zip(self.trials, wanted, strict=True) if kept)
        return Points(names, self.x[wanted], self.x_error[wanted], self.y[wanted], self.y_error[wanted])

    def below(self, limit: float) -> Points:
        return self.keep(self.y < limit)

    def without(self, trial: str) -> Points:
        return self.keep(np.array([t != trial for t in self.trials], dtype=bool))


@dataclass(frozen=True)
class Line:
    """y = intercept + slope x, with the covariance of both."""

    intercept: float
    slope: float
    covariance: np.ndarray


def fit(points: Points) -> Line | None:
    """Weighted least squares; the error of x counts as slope x error in y (two rounds). None if the loads are too few
    or too alike."""
    if len(points.x) < 2 or not apart(points.x):
        return None
    design = np.column_stack([np.ones_like(points.x), points.x])
    slope = float(np.polyfit(points.x, points.y, 1)[0])
    for _ in range(2):
        sigma = np.hypot(points.y_error, slope * points.x_error)
        sigma = np.maximum(sigma, 1e-6 * max(float(np.abs(points.y).max()), 1e-12))
        weighted = design / sigma[:, None]
        covariance = np.linalg.pinv(weighted.T @ weighted)
        intercept, slope = (float(v) for v in covariance @ (weighted.T @ (points.y / sigma)))
    return Line(intercept, slope, covariance)


def left_out(points: Points) -> list[tuple[str, float, float, float]]:
    """(trial, y, what the line through the other trials says, standard error of the difference)."""
    compared = []
    for i, trial in enumerate(points.trials):
        others = points.without(trial)
        line = fit(others) if len(others.x) >= MIN_OTHERS else None
        if line is None:
            continue
        at = np.array([1.0, points.x[i]])
        own = points.y_error[i] ** 2 + (line.slope * points.x_error[i]) ** 2
        error = float(np.sqrt(own + at @ line.covariance @ at))
        compared.append((trial, float(points.y[i]), float(at @ [line.intercept, line.slope]), error))
    return compared
