"""Between the store's tables and the verdict's values, and the JSON of contract 5."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ntier_analysis.contracts import Check, Outcome
from ntier_analysis.contracts.implied import THINK_S, USERS
from ntier_analysis.contracts.layout import counts_of
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.described import by_load, system_of
from ntier_analysis.setting import by_make, is_imported
from ntier_analysis.statistics.throughput import BATCHES, MIN_BATCH_S, batch_rates
from ntier_analysis.validity.loads import VISITS
from ntier_analysis.validity.sweep import STEADY_CHECKS, steadiness, sweep_checks, unused_checks
from ntier_analysis.validity.sweep import table as check_table
from ntier_analysis.verdict.advice import MOST
from ntier_analysis.verdict.data import SweepVerdict, TrialData
from ntier_analysis.verdict.load import COUNTS, NO_PAUSES, TIERS, Bottleneck, Load, Verdict, is_server
from ntier_analysis.verdict.saturation import METRICS, Saturation, saturation_table, saturations
from ntier_analysis.verdict.stops import pauses_behind, pauses_between, pauses_in_use, waited_through
from ntier_analysis.verdict.stored import analysis_version, to_text
from ntier_analysis.verdict.suspects import suspects
from ntier_analysis.verdict.sweep import judge_sweep
from ntier_analysis.verdict.visits import with_visits

SUSPECTS = 5
"""Suspects that are named at most."""
COLD_PCT, COLD_TRIALS = -25.0, 5
"""Throughput of the runs' first tenth against their rest, from which on the system was cold, and how many valid trials
must say so. After a ramp-up of 20 s the first 4 s of warm systems lie 8 to 10 % lower (three measured sweeps):
the users' first thinks are not over."""
NEEDED_METRICS = (*METRICS, *VISITS, "used_cores")


@dataclass(frozen=True)
class Judged:
    """A sweep's verdict, and what it rests on: values and saturations of its trials, checks of the whole sweep."""

    verdict: SweepVerdict
    data: list[TrialData]
    saturations: dict[str, list[Saturation]]
    checks: list[Check]


def sweep_verdict(
    sweep: str,
    trials: pd.DataFrame,
    samples: pd.DataFrame,
    nodes: pd.DataFrame,
    interactions: pd.DataFrame | None = None,
    decisions: pd.DataFrame | None = None,
) -> Judged:
    """Tables of one sweep, all their samples -> its verdict."""
    data, found = trial_data(trials, samples, nodes, interactions)
    topology = str(trials["topology"].iloc[0]) if len(trials) else ""
    chosen = set(decisions["users"].dropna()) if decisions is not None else set()
    searched = bool(chosen) and {t.load.users for t in data if t.load.valid} <= chosen
    judged = judge_sweep(sweep, topology, data, sweep_scale(trials), searched=searched)
    unsettled = [t.load.trial for t in data if not t.load.settled]
    checks = sweep_checks(trials, samples, nodes, interactions, unsettled=unsettled)
    judged = unless_cold(judged, checks, imported=is_imported(trials))
    judged.checks_off = system_of(trials).checks_off if len(trials) else {}
    judged.evidence += unused_checks(judged.checks_off)
    judged.evidence += not_validated(trials)
    if decisions is not None and len(decisions):
        judged.evidence += search_evidence(decisions, {t.load.users for t in data})
    judged.evidence += [*noticed(checks), *suspected(judged, samples, nodes)]
    return Judged(replace(judged, analysis_version=analysis_version()), data, found, checks)


def not_validated(trials: pd.DataFrame) -> list[str]:
    """What nobody checked of imported trials."""
    texts = trials["not_validated"].dropna() if "not_validated" in trials else pd.Series(dtype=str)
    return [f"imported: not validated: {text}" for text in dict.fromkeys(t for t in texts if t)]


def sweep_scale(trials: pd.DataFrame) -> float:
    return float(trials["scale"].iloc[0]) if len(trials) and pd.notna(trials["scale"].iloc[0]) else 1.0


def search_evidence(decisions: pd.DataFrame, measured: set[int]) -> list[str]:
    """The loads that a search spared, the reason why it stopped, and the reason for each load. `measured`: all loads
    with a trial; those that no decision chose come from a grid of the same name."""
    chosen = decisions[decisions["users"].notna()]
    loads, grid = set(chosen["users"]), int(decisions["grid_loads"].iloc[0])
    others = sorted(measured - loads)
    said = f"the loads were searched: {len(loads)}"
    if others:
        said += f", beside {len(others)} that come from a grid ({', '.join(map(str, others))}),"
    if (spared := grid - len(loads | measured)) > 0:
        said += f" instead of the grid's {grid} ({spared} spared)"
    last = decisions.iloc[-1]
    end = f"it stopped because {last['why']}" if pd.isna(last["users"]) else "it has not ended"
    return [f"{said.rstrip(',')}; {end}", *(f"load {int(row.users)}: {row.why}" for row in chosen.itertuples())]


def judge(
    sweep: str,
    trials: pd.DataFrame,
    samples: pd.DataFrame,
    nodes: pd.DataFrame,
    interactions: pd.DataFrame | None = None,
    decisions: pd.DataFrame | None = None,
) -> dict[str, pd.DataFrame]:
    """Tables of one sweep, all their samples -> tables `verdicts`, `saturation` and `sweep_checks`."""
    judged = sweep_verdict(sweep, trials, samples, nodes, interactions, decisions)
    users = {t.load.trial: t.load.users for t in judged.data}
    seen = {name: some for name, some in judged.saturations.items() if some}
    tables = [saturation_table(some).assign(sweep=sweep, trial=n, users=users[n]) for n, some in seen.items()]
    saturation = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame({"sweep": pd.Series(dtype=str)})
    return {
        "verdicts": verdict_table(judged.verdict),
        "saturation": saturation,
        "sweep_checks": check_table(sweep, judged.checks),
    }


def unless_cold(judged: SweepVerdict, checks: list[Check], *, imported: bool = False) -> SweepVerdict:
    """A resource that is short while the system warms up limits nothing later, measured or not. So no bottleneck is
    named, and none is called hidden, if the runs begin with a quarter less throughput than they go on with. Loads that
    do not settle in the run say nothing of that: an answer takes most of it, so that few come at first."""
    begun = next(c for c in checks if c.id == "S2.sweep")
    valid = sum(load.valid for load, _ in judged.trials)
    cold = begun.outcome is Outcome.FAIL and (begun.value or 0.0) <= COLD_PCT and valid >= COLD_TRIALS
    if not cold or not (judged.bottlenecks or judged.verdict == "hidden"):
        return judged
    warmer = f"give the system more time to warm up{by_make('PHASES=standard', imported)}, and repeat the sweep"
    # of what was asked for, nothing that tests what is no longer named (one more node, a larger pool)
    more = [text for text in judged.next if text.startswith(("add ", "sample "))]
    return replace(judged, verdict="unknown", kind="", bottlenecks=[], migration=[], next=[warmer, *more][:MOST])


def noticed(checks: list[Check]) -> list[str]:
    """Sentences on the checks of the whole sweep that failed, and whether its runs were steady."""
    failed = [c for c in checks if c.outcome is Outcome.FAIL and c.id not in STEADY_CHECKS]
    return [steadiness(checks), *(f"check {c.id} fails ({c.title}): {c.detail}" for c in failed)]


def suspected(judged: SweepVerdict, samples: pd.DataFrame, nodes: pd.DataFrame) -> list[str]:
    """Under a verdict that names nothing: what else was collected at the highest valid load and could hold up users."""
    valid = [load for load, _ in judged.trials if load.valid]
    if judged.verdict not in ("hidden", "unknown") or not valid:
        return []
    lowest, highest = valid[0].trial, valid[-1].trial
    run = dict(iter(samples[samples["phase"] == "run"].groupby("trial", sort=False)))
    if highest not in run:
        return []
    before = run.get(lowest) if lowest != highest else None
    servers = nodes[(nodes["trial"] == highest) & nodes["tier"].map(is_server)]
    found = suspects(run[highest], before, servers)
    return [f"suspect at {valid[-1].named}: {s.text}" for s in found[:SUSPECTS]]


def trial_data(
    trials: pd.DataFrame, samples: pd.DataFrame, nodes: pd.DataFrame, interactions: pd.DataFrame | None
) -> tuple[list[TrialData], dict[str, list[Saturation]]]:
    """Tables of one sweep -> its trials' values, ordered by load, and the saturations by trial."""
    wanted = samples["metric"].isin(NEEDED_METRICS)
    by_trial = {str(k): v for k, v in samples[wanted].groupby("trial", sort=False)}
    done = {str(k): v for k, v in interactions.groupby("trial", sort=False)} if interactions is not None else {}
    at_most = {t.name: t.most for t in system_of(trials).tiers if t.most is not None} if len(trials) else {}
    elsewhere = is_imported(trials)
    data, found = [], {}
    for _, row in by_load(trials).iterrows():
        name = str(row["trial"])
        load = _load(row, done.get(name))
        rows = by_trial.get(name)
        measured = rows is not None and math.isfinite(load.start_s)
        own = nodes[nodes["trial"] == name]
        found[name] = _without_threads_of_small_nodes(_saturations(rows, load), _cores(own)) if measured else []
        order = _order(row)
        load = stood_still(load, found[name], order) if measured else load
        trial = _data(load, found[name], rows if measured else None, own, order)
        counts = Counter(trial.nodes.values())
        complete = frozenset(tier for tier, most in at_most.items() if counts[tier] >= most)
        told = not elsewhere or _lists_servers(row, own)
        data.append(replace(trial, complete=complete, imported=elsewhere, nodes_told=told))
    return data, found


def _saturations(rows: pd.DataFrame, load: Load) -> list[Saturation]:
    return with_visits(saturations(rows, load.start_s, load.end_s), rows, load.start_s, load.end_s)


def _without_threads_of_small_nodes(found: list[Saturation], cores: dict[str, float]) -> list[Saturation]:
    """A node of one core or less is full before a thread of it is."""
    return [s for s in found if s.resource != "thread" or cores.get(s.node, math.inf) > 1]


def _cores(nodes: pd.DataFrame) -> dict[str, float]:
    """Of each node whose capacity is known."""
    return {n: float(c) for n, c in zip(nodes["node"], nodes["cpu_cores"], strict=True) if pd.notna(c)}


def stood_still(load: Load, found: list[Saturation], order: tuple[str, ...]) -> Load:
    """With the pauses that the use of the tiers shows, where completions show none, and users wait through them."""
    if load.paused >= COUNTS:
        return load
    idle = pauses_in_use if load.done_s is None else pauses_behind
    paused = idle(found, load.throughput_per_s, load.start_s, order)
    if not len(paused):
        return load
    # how few visit a tier behind a cache, and wait for it, their mean does not tell
    untold = load.done_s is not None and load.spans is None
    return replace(load, pauses=paused) if untold or waited_through(paused, found, load, order) else load


def _lists_servers(row: pd.Series, nodes: pd.DataFrame) -> bool:
    """Whether an import says which servers the system has: by its tiers, or by a topology that counts their nodes."""
    listed = row.get("tiers")
    return bool(pd.notna(listed) and listed) or counts_of(str(row["topology"]), "", nodes["tier"]) is not None


def _order(row: pd.Series) -> tuple[str, ...]:
    """Tiers from the client inwards: as the trial says, else those of a web site."""
    given = row.get("tiers")
    return tuple(str(given).split(",")) if given is not None and pd.notna(given) and given else TIERS


def _data(
    load: Load, found: list[Saturation], rows: pd.DataFrame | None, nodes: pd.DataFrame, order: tuple[str, ...]
) -> TrialData:
    tiers = dict(zip(nodes["node"], nodes["tier"], strict=True))
    if not tiers and rows is not None:
        tiers = dict(zip(rows["node"], rows["tier"], strict=True))
    used: dict[str, float] = {}
    if rows is not None:
        inside = rows[(rows["metric"] == "used_cores") & (rows["t_s"] >= load.start_s) & (rows["t_s"] < load.end_s)]
        used = inside.groupby("node")["value"].mean().dropna().to_dict()
    return TrialData(load, found, tiers, used, _cores(nodes), order)


def _load(row: pd.Series, done: pd.DataFrame | None) -> Load:
    def number(name: str, otherwise: float = float("nan")) -> float:
        value = row.get(name)
        return float(value) if value is not None and pd.notna(value) else otherwise

    start, end = number("run_start_s"), number("run_end_s")
    done_s = done.loc[done["ok"].astype(bool), "t_s"].to_numpy() if done is not None else None
    spans = None
    if done is not None and "response_time_ms" in done:
        ended = done["t_s"].to_numpy(float)
        spans = np.column_stack([ended - done["response_time_ms"].to_numpy(float) / 1000, ended])
    long_enough = done_s is not None and (end - start) / BATCHES >= MIN_BATCH_S
    rates = batch_rates(done_s, start, end) if long_enough else None
    users, model = number("users"), _text(row, "load_model", LoadModel.CLOSED.value)
    told = "load_model" in row and pd.notna(row["load_model"])
    think = number("think_time_s", float("nan") if told else THINK_S)
    valid = row.get("valid", True)
    return Load(
        trial=str(row["trial"]),
        users=int(users),
        users_real=number("users_real", users * number("scale", 1.0)),
        throughput_per_s=number("throughput_per_s"),
        response_s=number("response_time_mean_ms") / 1000,
        think_s=think if model == LoadModel.CLOSED else 0.0,
        start_s=start,
        end_s=end,
        valid=pd.notna(valid) and bool(valid),  # null counts nowhere, as in report and compare
        invalid_reasons=str(row.get("invalid_reasons") or ""),
        pending=int(number("pending", 0)),
        rates=rates,
        think_measured_s=number("think_measured_s"),
        done_s=done_s,
        spans=spans,
        pauses=pauses_between(done_s, start, end, spans) if done_s is not None else NO_PAUSES,
        model=LoadModel(model),
        factor=_text(row, "factor", USERS),
        unit=_text(row, "factor_unit", ""),
        value=number("factor_value"),
        offered_per_s=number("offered_per_s"),
        growth_per_s=number("backlog_growth_per_s"),
        growth_error_per_s=number("backlog_error_per_s"),
    )


def _text(row: pd.Series, name: str, otherwise: str) -> str:
    value = row.get(name)
    return str(value) if value is not None and pd.notna(value) and value else otherwise


# ---- out -----------------------------------------------------------------------------------------------------------


def verdict_table(judged: SweepVerdict) -> pd.DataFrame:
    """One row per bottleneck (or one without), for each trial and for the sweep; the first one holds all of it."""
    rows = _rows("sweep", "", None, judged.verdict, judged.kind, judged.bottlenecks, judged.evidence)
    for load, v in judged.trials:
        rows += _rows("trial", load.trial, load.users, v.verdict, v.kind, v.bottlenecks, v.evidence)
    rows[0]["document"] = to_text(judged)
    common = {"sweep": judged.sweep, "analysis_version": judged.analysis_version}
    return pd.DataFrame(rows).assign(**common).astype({"users": "Int64"})


def _rows(
    scope: str, trial: str, users: int | None, verdict: str, kind: str, found: list[Bottleneck], evidence: list[str]
) -> list[dict]:
    common = {"scope": scope, "trial": trial, "users": users, "verdict": verdict, "kind": kind}
    common["evidence"] = "\n".join(evidence)
    if not found:
        return [common]
    return [
        common
        | {
            "tier": b.tier,
            "resource": b.resource,
            "nodes": ", ".join(b.nodes),
            "saturation": b.saturation,
            "saturation_low": b.low,
            "saturation_high": b.high,
        }
        for b in found
    ]


def as_json(judged: SweepVerdict) -> dict[str, Any]:
    """One element of `sweeps` in contract 5; null = unknown. Keys beyond the contract: max_throughput_at_least,
    knee_interval, knee_bracketed, evidence, next, analysis_version, load_model, factor, reasoning, checks_off, and per
    trial factor_value, valid, invalid_reasons, kind,
    lost_share, explained_share, evidence."""
    found = judged.max_throughput
    return {
        "sweep": judged.sweep,
        "topology": judged.topology,
        "max_throughput_per_s": _number(found.value) if found else None,
        "max_throughput_interval": [_number(found.low), _number(found.high)] if found else [None, None],
        "max_throughput_at_least": judged.at_least,
        "knee_users": _number(judged.knee_users),
        "knee_interval": [_number(v) for v in judged.knee_interval],
        "knee_bracketed": judged.knee_bracketed,
        "verdict": judged.verdict,
        "bottlenecks": [_bottleneck(b) for b in judged.bottlenecks],
        "kind": judged.kind or None,
        "trials": [_trial(load, v) for load, v in judged.trials],
        "migration": judged.migration,
        "evidence": judged.evidence,
        "next": judged.next,
        "analysis_version": judged.analysis_version or analysis_version(),
        "load_model": judged.load_model,
        "factor": {"name": judged.factor, "unit": judged.factor_unit},
        "reasoning": judged.reasoning,
        "checks_off": judged.checks_off,
    }


def _trial(load: Load, v: Verdict) -> dict[str, Any]:
    return {
        "trial": load.trial,
        "users": load.users,
        "factor_value": _number(load.level),
        "verdict": v.verdict,
        "kind": v.kind or None,
        "bottlenecks": [_bottleneck(b) for b in v.bottlenecks],
        "valid": load.valid,
        "invalid_reasons": [r for r in load.invalid_reasons.split(", ") if r],
        "throughput_per_s": _number(load.throughput_per_s),
        "lost_share": _number(v.lost),
        "explained_share": _number(v.explained),
        "evidence": v.evidence,
    }


def _bottleneck(b: Bottleneck) -> dict[str, Any]:
    found: dict[str, Any] = {
        "tier": b.tier,
        "resource": b.resource,
        "nodes": list(b.nodes),
        "saturation": _number(b.saturation),
        "interval": [_number(b.low), _number(b.high)],
    }
    return found | ({"item": b.item} if b.item else {})


def _number(value: float) -> float | None:
    return None if value is None or not np.isfinite(value) else round(float(value), 6)
