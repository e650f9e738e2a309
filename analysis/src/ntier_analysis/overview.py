"""All sweeps of a store in one table, which of them can be set side by side, and what the store lacks."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ntier_analysis.campaign.costs import ALIKE
from ntier_analysis.contracts import Topology, TopologyError
from ntier_analysis.contracts.implied import USERS
from ntier_analysis.described import factor_of
from ntier_analysis.setting import as_text, setting, with_one_think_time
from ntier_analysis.store.tables import read_table
from ntier_analysis.verdict.store import verdicts
from ntier_analysis.verdict.tables import as_json

SLO_PERCENTILE = "response_time_p95_ms"
NUMBERS = ("max_throughput_per_s", "low", "high", "nominal_per_s", "knee_users", "users_within_slo")
COLUMNS = [
    "sweep", "topology", "dbms", "low_cost", "nodes", "mix", "middleware", "data_profile", "scale", "setting", "valid",
    "verdict", "bottleneck", "max_throughput_per_s", "low", "high", "at_least", "nominal_per_s", "knee_users",
    "users_within_slo", "work",
]  # fmt: skip
SAME = ["mix", "middleware", "scale", "setting"]


def overview(store: Path) -> pd.DataFrame:
    """One row per sweep: sweep, topology, dbms, low_cost, nodes, mix, middleware, scale, data_profile, setting (in
    words, what else must be equal in sweeps that are set side by side), valid (trials), verdict, bottleneck,
    max_throughput_per_s with low, high (measured, 1/s) and at_least, nominal_per_s (divided by the scale), knee_users,
    users_within_slo (highest load of which all valid trials keep 95 % within the objective; NaN without
    one), work (in words, what an interaction and its arrival are: mix, system, data, think time, ...; maxima of equal
    work and scale can be ranked)."""
    judged = [as_json(v) for v in verdicts(store, [])]
    trials, _ = with_one_think_time({v["sweep"]: read_table(store, "trials", v["sweep"]) for v in judged})
    rows = [_row(trials[v["sweep"]], v) for v in judged]
    # columns and numbers also where no sweep has any
    return pd.DataFrame(rows, columns=COLUMNS).astype(dict.fromkeys(NUMBERS, float) | {"at_least": bool})


def _row(trials: pd.DataFrame, verdict: dict) -> dict:
    first = trials.iloc[0] if len(trials) else pd.Series(dtype=object)
    low, high = verdict["max_throughput_interval"]
    scale = 1.0 if pd.isna(first.get("scale")) else float(first["scale"])
    rate = verdict["max_throughput_per_s"]
    return {
        "sweep": verdict["sweep"],
        "topology": verdict["topology"],
        **_parts(verdict["topology"]),
        **{name: first.get(name) for name in ("mix", "middleware", "data_profile")},
        "scale": scale,
        "setting": ", ".join(f"{column} {as_text(values)}" for column, values in setting(trials)),
        "valid": int(trials["valid"].fillna(False).astype(bool).sum()),
        "verdict": verdict["verdict"],
        "bottleneck": " and ".join(f"{b['tier']} {b['resource']}" for b in verdict["bottlenecks"]),
        "max_throughput_per_s": rate,
        "low": low,
        "high": high,
        "at_least": verdict["max_throughput_at_least"],
        "nominal_per_s": None if rate is None else rate / scale,
        "knee_users": verdict["knee_users"],
        "users_within_slo": _within_slo(trials),
        "work": ", ".join(as_text(values) for _, values in setting(trials, ("mix", *ALIKE))),
    }


def _parts(topology: str) -> dict:
    try:
        parsed = Topology.parse(topology, dbms_required=False)
    except TopologyError:
        return {"dbms": "", "low_cost": False, "nodes": None}
    return {"dbms": parsed.dbms, "low_cost": parsed.low_cost, "nodes": parsed.node_count}


def _within_slo(trials: pd.DataFrame) -> float:
    """Goes up from the lowest load and stops at the first that breaks the objective; loads with too few interactions
    for a 95th percentile say nothing. NaN for a sweep over another factor: its values are no numbers of users."""
    if factor_of(trials)[0] != USERS:
        return float("nan")
    valid = trials[trials["valid"].fillna(False).astype(bool)].dropna(subset=["slo_ms"])
    reached = float("nan")
    for users, load in valid.groupby("users"):
        if (load[SLO_PERCENTILE] > load["slo_ms"]).any():
            break
        if load[SLO_PERCENTILE].notna().all():
            reached = float(users)
    return reached


def pairs(frame: pd.DataFrame, differ: str) -> list[tuple[str, str]]:
    """Pairs of sweeps with valid trials that differ only in `dbms` or `low_cost`, MySQL (or the normal nodes) first."""
    matching = []
    frame = frame[frame["valid"] > 0].astype({"topology": str})
    counts = frame["topology"].str.extract(r"^([\d/]+)", expand=False)
    other = "low_cost" if differ == "dbms" else "dbms"
    for _, group in frame.assign(counts=counts).groupby(["counts", other, *SAME], dropna=False):
        ordered = group.sort_values(differ)
        for i, a in enumerate(ordered.itertuples()):
            rest = ordered.iloc[i + 1 :]
            matching += [(a.sweep, b.sweep) for b in rest.itertuples() if getattr(a, differ) != getattr(b, differ)]
    return matching


def lacking(frame: pd.DataFrame) -> list[str]:
    """Gaps of the store, one sentence per question that it cannot answer."""
    sentences = []
    if frame["topology"].nunique() < 2 or frame["nodes"].nunique() < 2:
        sentences.append("Missing for maps and migration over topologies: sweeps of topologies with more nodes.")
    if not pairs(frame, "dbms"):
        sentences.append("Missing for a comparison of DBMS: two sweeps that differ only in the DBMS.")
    if not pairs(frame, "low_cost"):
        sentences.append("Missing for a comparison of node types: two sweeps that differ only in low-cost nodes (`L`).")
    bound = frame.loc[frame["at_least"] & frame["nominal_per_s"].notna(), "sweep"].tolist()
    if bound:
        sentences.append(f"Only lower bounds of the maximum (too few loads beyond the knee): {', '.join(bound)}.")
    return sentences
