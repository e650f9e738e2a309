"""O5: is the whole topology used, does the split over the replicas follow the policy, and do both sides count the same?

Three witnesses per replica, counted over the run phase: `chosen` (reads that the policy sent there) and `executed`
(statements that ran over a connection of its pool), both from the middlewares, and `own` (the database's counters)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ntier_analysis.contracts import Outcome
from ntier_analysis.errors import DataError
from ntier_analysis.statistics import distributions as stats
from ntier_analysis.statistics.balance import natural
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.registry import SIGNIFICANT, Finding, check, exact, undecidable

ENOUGH = 20.0
"""Statements that must have been expected at a node before none at all says that it is not used: chance would leave it
idle once in e^20."""
SPLIT_PTS = 2.0
"""Deviation from the equal share that matters, points (as M1)."""
COUNTERS_SHARE = 0.02
PER_CONNECTION, FEW = 3.0, 5.0
"""Statements of the proxy's own when it opens a connection, and a few at the ends of the run."""
NEAR_S = 1.5
"""What was counted up to here from an end of the run may lie inside for one counter and outside for the other: both are
read once a second."""
EQUAL = ("round_robin", "random", "weighted_random")
OWN_COUNTERS = {
    "mysql_status": ("com_select_per_s", "com_insert_per_s", "com_update_per_s", "com_delete_per_s"),
    "postgresql_status": ("xact_commit_per_s", "xact_rollback_per_s"),
}


def _rate(frame: pd.DataFrame, metric: str, run: tuple[float, float]) -> pd.Series:
    """Mean rate per item over the run phase, by the length of the intervals; gaps do not count."""
    here = (frame["metric"] == metric) & (frame["t_s"] >= run[0]) & (frame["t_s"] < run[1])
    rows = frame[here & frame["value"].notna()]
    counted = rows.assign(count=rows["value"] * rows["interval_s"]).groupby("item")[["count", "interval_s"]].sum()
    return counted["count"] / counted["interval_s"]


def _tier(trial: RawTrial, tier: str) -> list[str]:
    return natural(trial.of_tier(tier))


def _balancers(trial: RawTrial) -> list[str]:
    """Nodes that choose a replica for each statement: those before the deepest tier."""
    order = trial.system.order
    return _tier(trial, order[-2]) if len(order) > 1 else []


def split(trial: RawTrial) -> pd.DataFrame:
    """Index: replicas; columns chosen, executed, own (statements in the run phase; NaN = no counter), known (whether a
    middleware has it in its list), connections (opened by the database), edge (statements of the busiest second at an
    end of the run, by the database). Sums over the middleware nodes."""
    start, end = trial.run
    replicas = _tier(trial, trial.system.order[-1])
    table = pd.DataFrame(np.nan, index=replicas, columns=["chosen", "executed", "own", "connections", "edge"])
    table["known"] = False
    for node in _balancers(trial):
        if not trial.path(f"nodes/{node}/middleware_status.csv"):
            continue
        frame, _ = trial.samples_of(node, "middleware_status")
        for column, metric in (("chosen", "choices_per_s"), ("executed", "statements_per_s")):
            counts = (_rate(frame, metric, trial.run) * (end - start)).dropna()
            for replica, count in counts[counts.index.isin(replicas)].items():
                table.loc[replica, column] = np.nansum([table.loc[replica, column], count])
        table["known"] |= table.index.isin(frame["item"])
    for replica in replicas:
        table.loc[replica, ["own", "connections", "edge"]] = _own(trial, replica)
    return table


def _own(trial: RawTrial, database: str) -> tuple[float, float, float]:
    """Statements, new connections and the busiest second at an end of the run, by the database's own counters, less the
    collector's."""
    start, end = trial.run
    for collector, metrics in OWN_COUNTERS.items():
        if trial.path(f"nodes/{database}/{collector}.csv"):
            frame, _ = trial.samples_of(database, collector)
            rates = [float(_rate(frame, metric, trial.run).get("", np.nan)) for metric in metrics]
            if not np.isfinite(rates[0]):
                return np.nan, np.nan, np.nan
            # PostgreSQL's collector asks in the database itself, once a second, in a transaction
            collectors_own = 1.0 if collector == "postgresql_status" else 0.0
            opened = float(_rate(frame, "connections_per_s", trial.run).get("", 0.0))
            whole = max(0.0, np.nansum(rates) - collectors_own) * (end - start)
            return whole, opened * (end - start), _busiest_near(frame, metrics, trial.run)
    return np.nan, np.nan, np.nan


def _busiest_near(frame: pd.DataFrame, metrics: tuple[str, ...], run: tuple[float, float]) -> float:
    """Statements in the busiest second within NEAR_S of an end of the run."""
    near = np.minimum((frame["t_s"] - run[0]).abs(), (frame["t_s"] - run[1]).abs()) <= NEAR_S
    per_second = frame[near & frame["metric"].isin(metrics)].groupby("t_s")["value"].sum()
    return float(per_second.max()) if len(per_second) else 0.0


def expected(trial: RawTrial, counts: pd.DataFrame) -> pd.Series:
    """Statements that each replica must have got at least if it is used as the policy says.

    least_pending with tie=first sends a read on only if all replicas before it are busy: reads x the share of the run
    in which they were, by the samples of pending statements (the lower end of its 95 % interval, Wilson's). Measured
    against what was sent on: 0.3 to 1.5 of it (docs/validity.md)."""
    total = np.nansum(counts["executed"] if counts["executed"].notna().any() else counts["own"])
    equal = pd.Series(total / max(len(counts), 1), index=counts.index)
    settings = trial.manifest.soft_resources
    if settings.get("middleware_policy") != "least_pending" or settings.get("middleware_tie") != "first":
        return equal
    parts = [_found_busy(trial, node, list(counts.index)) for node in _balancers(trial)]
    return sum(parts) if parts else equal


def _found_busy(trial: RawTrial, node: str, replicas: list[str]) -> pd.Series:
    frame, _ = trial.samples_of(node, "middleware_status")
    start, end = trial.run
    rows = frame[(frame["metric"] == "pending") & (frame["t_s"] >= start) & (frame["t_s"] < end)]
    pending = rows.pivot_table(index="t_s", columns="item", values="value").reindex(columns=replicas).fillna(0)
    # with one replica the policy is not asked; writes were not sent on, they go to all
    rates = (np.nansum(_rate(frame, m, trial.run)) for m in ("choices_per_s", "statements_per_s"))
    reads = next((rate for rate in rates if rate > 0), 0.0) * (end - start)
    expected = {}
    for i, replica in enumerate(replicas):
        busy = (pending[replicas[:i]] > 0).all(axis=1)
        low = stats.binomtest(int(busy.sum()), len(busy)).proportion_ci(0.95, "wilson").low if len(busy) else 0.0
        expected[replica] = reads * low
    return pd.Series(expected)


def _idle_replicas(trial: RawTrial) -> tuple[list[str], list[str], list[str]]:
    """Replicas that got nothing although they should have; replicas for which too little was expected; a text for
    each."""
    counts = trial.remember(split)
    least, listed = expected(trial, counts), counts["known"].any()
    idle, unsure, texts = [], [], []
    for replica, row in counts.iterrows():
        own_idle = row["own"] <= PER_CONNECTION * np.nan_to_num(row["connections"]) + FEW
        starved = own_idle and row["executed"] > ENOUGH  # the middleware's name leads to another database
        unlisted = listed and not row["known"]
        texts.append(f"{replica} {_count(row['executed'])} (own counter {_count(row['own'])})")
        if not (unlisted or starved or row["executed"] == 0 or (np.isnan(row["executed"]) and own_idle)):
            continue
        certain = unlisted or starved or least[replica] >= ENOUGH
        (idle if certain else unsure).append(str(replica))
        texts[-1] += ", not in the middleware's list" if unlisted else f", at least {least[replica]:.0f} expected"
    return idle, unsure, texts


def _count(value: float) -> str:
    return "unknown" if np.isnan(value) else f"{value:.0f}"


def _idle_servers(trial: RawTrial) -> tuple[list[str], list[str], list[str]]:
    """The same check for the nodes of the first two tiers, by the first tier's logs, and for those that choose a
    replica, by their own counters."""
    start, end = trial.run
    logs = {n: log[(log["t_s"] >= start) & (log["t_s"] < end)] for n, log in trial.web_logs.items()}
    order = trial.system.order
    counts = {order[0]: {name: len(log) for name, log in logs.items()}}
    if logs and len(order) > 1:
        sent = {n: sum(int((log["app_node"] == n).sum()) for log in logs.values()) for n in _tier(trial, order[1])}
        beyond = {n for log in logs.values() for n in log["app_node"].unique()} & trial.nodes.keys() - sent.keys()
        if any(sent.values()) or (trial.must_log and not beyond):  # else the log tells of another tier, or of none
            counts[order[1]] = sent
    asked: dict[str, int] = {}
    for node in _balancers(trial):
        if trial.path(f"nodes/{node}/middleware_status.csv"):
            frame, _ = trial.samples_of(node, "middleware_status")
            rate = _rate(frame, "statements_per_s", trial.run)
            if rate.notna().any():
                asked[node] = round(np.nansum(rate) * (end - start))
    if asked:
        counts[order[-2]] = asked
    idle, unsure, texts = [], [], []
    for tier in counts.values():
        for name, count in tier.items():
            texts.append(f"{name} {count}")
            if count == 0:
                (idle if sum(tier.values()) / len(tier) >= ENOUGH else unsure).append(name)
    return idle, unsure, texts


@check("O5", "Nodes that got no work", "topology_not_used")
def used(trial: RawTrial) -> Finding:
    """Idle although at least 20 requests or statements were to be expected: fail. Fewer: undecidable, which does not
    invalidate, since least_pending leaves the last replicas idle at low loads."""
    servers, databases = _idle_servers(trial), _idle_replicas(trial)
    idle, unsure, texts = (a + b for a, b in zip(servers, databases, strict=True))
    counts = trial.remember(split)
    if not (servers[2] or counts["known"].any() or counts[["executed", "own"]].notna().any(axis=None) or trial.strict):
        return undecidable("not collected: no node reports how much work it got", n=0, required=False)
    if idle or not unsure:
        text = f"idle: {', '.join(idle)}; " if idle else ""
        return exact(float(len(idle)), 0.0, "nodes", text + ", ".join(texts), len(texts))
    return undecidable(f"too little work to tell whether {', '.join(unsure)} can be used: {', '.join(texts)}",
                       n=len(texts), required=False)  # fmt: skip


@check("O5.split", "Reads per replica against the policy's equal shares", "split_off_policy")
def follows_policy(trial: RawTrial) -> Finding:
    """round_robin and random (by weights, which are alike) promise equal shares; three standard errors, divided among
    the replicas (Bonferroni)."""
    policy, counts = trial.manifest.soft_resources.get("middleware_policy"), trial.remember(split)
    n, k = float(np.nansum(counts["chosen"])), len(counts)
    if k < 2 or policy not in EQUAL:
        return exact(0.0, SPLIT_PTS, "points", f"policy {policy}: no equal shares are promised", k)
    if n == 0:
        return undecidable("the middleware does not count the reads that its policy chose", required=False)
    shares = counts["chosen"].fillna(0) / n
    off = 100 * (shares - 1 / k).abs()
    error = 100 * float(np.sqrt((1 / k) * (1 - 1 / k) / n))
    critical = error * stats.norm.isf(stats.norm.sf(SIGNIFICANT) / k)
    worst = float(off.max())
    outcome = Outcome.PASS if worst <= SPLIT_PTS else Outcome.FAIL if worst > critical else Outcome.UNDECIDABLE
    text = f"policy {policy}: " + ", ".join(f"{name} {100 * share:.1f} %" for name, share in shares.items())
    return Finding(
        outcome, worst, SPLIT_PTS, "points", round(n), error, text, None if outcome is Outcome.FAIL else False
    )


@check("O5.counters", "Statements of each replica by its sender's counters against its own", "counters_disagree")
def counters_agree(trial: RawTrial) -> Finding:
    """Of each replica, in units of what is allowed: 2 %, one second at an end of the run (the two are read at different
    moments; where statements come in bursts, such a second can have a fifth of them), and what the proxy itself asks. A
    check of an idle connection is a transaction to PostgreSQL: there up to twice as many."""
    counts = trial.remember(split).dropna(subset=["executed", "own"])
    if counts.empty:
        return undecidable("no replica is counted on both sides", required=False)
    start, end = trial.run
    worst, where = -np.inf, ""
    for name, row in counts.iterrows():
        moment = max(row["executed"] / (end - start), np.nan_to_num(row["edge"]))
        allowed = row["executed"] * COUNTERS_SHARE + moment + PER_CONNECTION * row["connections"] + FEW
        beyond = row["own"] - row["executed"]
        checks = row["executed"] if trial.path(f"nodes/{name}/postgresql_status.csv") else 0.0
        off = max(-beyond, beyond - checks) / allowed
        if off >= worst:
            worst = off
            where = f"{name}: {row['executed']:.0f} by its sender's counter, {row['own']:.0f} by its own counter"
    if np.isnan(worst):
        raise DataError(f"{trial.folder}: the counters of the replicas are not numbers")
    return exact(max(worst, 0.0), 1.0, "", where, len(counts))
