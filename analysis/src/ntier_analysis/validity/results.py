"""S, O: the steadiness and the use of the nodes. None of them is required; each is listed."""

from __future__ import annotations

import numpy as np

from ntier_analysis.contracts import Outcome
from ntier_analysis.statistics import stationarity
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.registry import Finding, check, exact


def _drift_finding(found: stationarity.Drift, n: int, what: str) -> Finding:
    text = f"{what} {100 * found.drift:+.1f} % (s.e. {100 * found.standard_error:.1f})"
    if found.outcome == "undecidable":
        text += ": the run is too short to tell"
    value = None if np.isnan(found.drift) else 100 * found.drift
    error = None if np.isnan(found.standard_error) else 100 * found.standard_error
    return Finding(Outcome(found.outcome), value, 100 * stationarity.LIMIT, "pct", n, error, text)


@check("S1", "Throughput drift over the run", "not_steady", required=False)
def steady(trial: RawTrial) -> Finding:
    times = trial.interactions["t_s"].to_numpy()
    return _drift_finding(stationarity.throughput_drift(times, *trial.run), len(trial.run_interactions), "drift")


@check("S2", "Throughput of the first tenth against the rest", "not_steady", required=False)
def start(trial: RawTrial) -> Finding:
    times = trial.interactions["t_s"].to_numpy()
    return _drift_finding(stationarity.start_excess(times, *trial.run), len(trial.run_interactions), "first tenth")


@check("O5", "Replicas that got no work", "topology_not_used", required=False)
def balanced(trial: RawTrial) -> Finding:
    """App nodes by the web server's log; replicas of the database by the middleware's counters."""
    start_s, end_s = trial.run
    idle, shares = [], []
    logs = list(trial.web_logs.values())
    apps = [n for n, node in trial.nodes.items() if node.tier == "app"]
    counts = {
        name: sum(
            int(((log["app_node"] == name) & (log["t_s"] >= start_s) & (log["t_s"] < end_s)).sum()) for log in logs
        )
        for name in apps
    }
    idle += [name for name, count in counts.items() if count == 0]
    shares += [f"{name} {count}" for name, count in counts.items()]
    for name, node in trial.nodes.items():
        if node.tier == "middleware" and trial.path(f"nodes/{name}/middleware_status.csv"):
            frame, _ = trial.samples_of(name, "middleware_status")
            # a middleware that sees no statements counts the connections that it holds at each replica
            seen = "statements_per_s" if (frame["metric"] == "statements_per_s").any() else "active"
            values = frame[(frame["metric"] == seen) & frame["t_s"].between(start_s, end_s)]
            for replica, mean in values.groupby("item")["value"].mean().items():
                shares.append(f"{replica} {mean:.1f}{'/s' if seen == 'statements_per_s' else ' connections'}")
                idle += [str(replica)] if mean == 0 else []
    return exact(float(len(idle)), 0.0, "nodes", ", ".join(shares), len(shares))
