"""S: is the run steady? None of these checks is required; each is listed."""

from __future__ import annotations

import numpy as np

from ntier_analysis.contracts import Outcome
from ntier_analysis.statistics import stationarity
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.registry import Finding, check


def _drift_finding(drift: stationarity.Drift, n: int, what: str) -> Finding:
    short = "the run is too short to tell"
    if np.isnan(drift.drift):
        return Finding(Outcome(drift.outcome), None, 100 * stationarity.LIMIT, "pct", n, None, short)
    value, error = 100 * drift.drift, 100 * drift.standard_error
    text = f"{what} {value:+.1f} % (s.e. {error:.1f})" + (f": {short}" if drift.outcome == "undecidable" else "")
    return Finding(Outcome(drift.outcome), value, 100 * stationarity.LIMIT, "pct", n, error, text)


@check("S1", "Throughput drift over the run", "not_steady", required=False)
def steady(trial: RawTrial) -> Finding:
    times = trial.interactions["t_s"].to_numpy()
    return _drift_finding(stationarity.throughput_drift(times, *trial.run), len(trial.run_interactions), "drift")


@check("S2", "Throughput of the first tenth against the rest", "not_steady", required=False)
def start(trial: RawTrial) -> Finding:
    times = trial.interactions["t_s"].to_numpy()
    return _drift_finding(stationarity.start_excess(times, *trial.run), len(trial.run_interactions), "first tenth")
