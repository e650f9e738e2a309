"""S: checks that a system brings along, as data in its manifest: what the counters of its tiers must say."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ntier_analysis.contracts import Outcome
from ntier_analysis.contracts.system import Expectation
from ntier_analysis.errors import DataError
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.registry import Finding, undecidable

SUMS = ("total", "per_interaction")
COVERS = 0.9
"""Share of the run that readings must cover to be summed: what a counter did in the rest is not known."""


def finding(trial: RawTrial, wanted: Expectation) -> Finding:
    """Counters are read once a second: a total is known to one second's worth of events, and a number per interaction
    to two (the interactions of a second count as well). Undecidable within that, or if a node of the tier lacks the
    metric."""
    seen = {name: _readings(trial, name, wanted.metric) for name in trial.of_tier(wanted.tier)}
    if lacking := [name for name, readings in seen.items() if readings.empty]:
        return undecidable(f"{wanted.metric} was not collected on {', '.join(lacking)}{_known(trial, lacking[0])}")
    readings = pd.concat(seen.values())
    if wanted.function in SUMS and (gaps := [name for name, rows in seen.items() if _covered(trial, rows) < COVERS]):
        return undecidable(f"{wanted.metric} of {', '.join(gaps)} is known for less than {COVERS:.0%} of the run")
    value, reach, n = _value(trial, wanted, readings)
    if not np.isfinite(value):
        return undecidable("no interaction was completed in the run", n=0)
    ends = f" [{value - reach:.4g}, {value + reach:.4g}]" if reach else ""
    text = f"expected {wanted}, seen {value:.4g}{ends}"
    return Finding(_outcome(wanted, value, reach), value, wanted.bound, "", n, None, text)


def _covered(trial: RawTrial, readings: pd.DataFrame) -> float:
    """Share of the run that the readings are of, give or take one at its ends."""
    start, end = trial.run
    intervals = readings.drop_duplicates("t_s")["interval_s"]
    return float(intervals.sum() + intervals.max()) / (end - start)


def _value(trial: RawTrial, wanted: Expectation, readings: pd.DataFrame) -> tuple[float, float, int]:
    """Value, how far off it may be, and of how many readings or interactions."""
    if wanted.function in ("highest", "lowest"):
        values = readings["value"]
        return float(values.max() if wanted.function == "highest" else values.min()), 0.0, len(values)
    start, end = trial.run
    total = float((readings["value"] * readings["interval_s"]).sum())
    if wanted.function == "total":
        return total, total / (end - start), len(readings)
    n = len(trial.run_interactions)
    value = total / n if n else float("nan")
    return value, 2 * value / (end - start), n


def _outcome(wanted: Expectation, value: float, reach: float) -> Outcome:
    low, high, bound = value - reach, value + reach, wanted.bound
    holds, fails = {
        "==": (low <= bound <= high, not low <= bound <= high),
        "<=": (value <= bound, low > bound),
        "<": (value < bound, low >= bound),
        ">=": (value >= bound, high < bound),
        ">": (value > bound, high <= bound),
    }[wanted.operator]
    return Outcome.PASS if holds else Outcome.FAIL if fails else Outcome.UNDECIDABLE


def _readings(trial: RawTrial, node: str, metric: str) -> pd.DataFrame:
    """`value, interval_s` in the run phase, of all items (replicas, disks) that have the metric. Raises DataError if
    it means several things."""
    start, end = trial.run
    found = {}
    for collector in (collector for at, collector in trial.collectors() if at == node):
        frame, _ = trial.samples_of(node, collector)
        for resource, rows in frame[frame["metric"] == metric].dropna(subset="value").groupby("resource"):
            found[f"{resource} of {collector}"] = rows.loc[(rows["t_s"] >= start) & (rows["t_s"] < end)]
    if len(found) > 1:
        raise DataError(f"{metric} of {node} could be any of: {', '.join(sorted(found))}")
    return next(iter(found.values()), pd.DataFrame(columns=["value", "interval_s"]))


def _known(trial: RawTrial, node: str) -> str:
    """What there is instead."""
    names = {m for at, c in trial.collectors() if at == node for m in trial.samples_of(node, c)[0]["metric"].unique()}
    return f"; collected were {', '.join(sorted(names))}" if names else ""
