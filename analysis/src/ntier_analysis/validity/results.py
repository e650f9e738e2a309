"""M, S, O: the mix, the steadiness and the use of the nodes. None of them is required; each is listed."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter

import numpy as np

from ntier_analysis.contracts import Outcome
from ntier_analysis.parsers.csvfile import read_csv
from ntier_analysis.statistics import stationarity
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.registry import Finding, check, exact, undecidable

MIX_POINTS = 2.0
MIX_MIN_SHARE = 0.01
MIX_N = 500
UNVISITED_EXPECTED = 20
STEPS = 200_000
"""Requests of the walk: shares are known to 0.2 points then, a tenth of the limit."""
BLOCKS = 20


def expected_shares(trial: RawTrial) -> dict[str, float]:
    """Share of each interaction in a walk of the mix's table (`config/<mix>.csv`: from,to,probability), page feedback
    left out. Raises DataError if the trial holds no table of its mix."""
    path = trial.required(f"config/{trial.manifest.mix}.csv")
    table = read_csv(path, {"from": "text", "to": "text", "probability": "number"})
    rows = {
        str(state): (list(part["to"]), list(part["probability"].cumsum()))
        for state, part in table.groupby("from", sort=False)
    }
    counts = _walk(rows, home=str(table["from"].iloc[0]))
    return {name: count / STEPS for name, count in counts.items()}


def _walk(rows: dict[str, tuple[list[str], list[float]]], home: str) -> Counter[str]:
    """Visits of `STEPS` requests as RUBBoS walks: Back by the history stack, which a state without Back empties; what a
    row's probabilities lack of 1 is a stay."""
    has_back = {s for s, (targets, _) in rows.items() if "Back" in targets}
    counts: Counter[str] = Counter()
    state, stack = home, []
    for draw in np.random.default_rng(1).random(STEPS).tolist():
        counts[state] += 1
        targets, cumulative = rows[state]
        index = bisect_right(cumulative, draw)
        following = targets[index] if index < len(targets) else state
        if following == "EndOfSession":
            state, stack = home, []
        elif following == "Back":
            state = stack.pop() if stack else home
        else:
            stack = [*stack, state] if following in has_back else []
            state = following
    return counts


def _in_run(trial: RawTrial):
    frame, (start, end) = trial.interactions, trial.run
    return frame[(frame["t_s"] >= start) & (frame["t_s"] < end)]


@check("M1", "Mix: largest deviation of an interaction's share", "mix", required=False)
def mix(trial: RawTrial) -> Finding:
    """Fails beyond 2 points and 3 standard errors (from 20 blocks of time: a user's states are not independent)."""
    run, expected = _in_run(trial), trial.remember(expected_shares)
    if len(run) < MIX_N:
        return undecidable(f"{len(run)} interactions, {MIX_N} are needed", n=len(run))
    worst, outcome, text, error = 0.0, Outcome.PASS, "", None
    blocks = np.array_split(run["interaction"].to_numpy(), BLOCKS)
    for name, share in expected.items():
        if share < MIX_MIN_SHARE:
            continue
        parts = np.array([(block == name).mean() for block in blocks])
        off, se = 100 * (parts.mean() - share), 100 * parts.std(ddof=1) / np.sqrt(BLOCKS)
        if abs(off) > MIX_POINTS:
            this = Outcome.FAIL if abs(off) > 3 * se else Outcome.UNDECIDABLE
            outcome = this if outcome is not Outcome.FAIL else outcome
        if abs(off) > abs(worst):
            worst, error = off, se
            text = f"{name}: {100 * parts.mean():.1f} %, expected {100 * share:.1f} %"
    return Finding(outcome, worst, MIX_POINTS, "points", len(run), error, text)


@check("M2", "Mix: states never visited though 20 visits were expected", "mix", required=False)
def unvisited(trial: RawTrial) -> Finding:
    run, expected = _in_run(trial), trial.remember(expected_shares)
    seen = set(run["interaction"])
    missing = [s for s, share in expected.items() if share * len(run) >= UNVISITED_EXPECTED and s not in seen]
    unknown = sorted(seen - set(expected))
    text = "; ".join(
        [f"never: {', '.join(missing)}"] * bool(missing) + [f"not in the mix: {', '.join(unknown)}"] * bool(unknown)
    )
    return exact(float(len(missing) + len(unknown)), 0.0, "states", text or "all visited", len(run))


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
    return _drift_finding(stationarity.throughput_drift(times, *trial.run), len(_in_run(trial)), "drift")


@check("S2", "Throughput of the first tenth against the rest", "not_steady", required=False)
def start(trial: RawTrial) -> Finding:
    times = trial.interactions["t_s"].to_numpy()
    return _drift_finding(stationarity.start_excess(times, *trial.run), len(_in_run(trial)), "first tenth")


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
            rates = frame[(frame["metric"] == "statements_per_s") & frame["t_s"].between(start_s, end_s)]
            for replica, mean in rates.groupby("item")["value"].mean().items():
                shares.append(f"{replica} {mean:.1f}/s")
                idle += [str(replica)] if mean == 0 else []
    return exact(float(len(idle)), 0.0, "nodes", ", ".join(shares), len(shares))
