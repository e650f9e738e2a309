"""`ntier-analysis predict`: a sweep of the store -> its forecast, as text and as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from ntier_analysis.contracts import Topology, TopologyError
from ntier_analysis.contracts.files import check_file, write_text
from ntier_analysis.contracts.implied import TIERS, USERS
from ntier_analysis.contracts.system import LoadModel, System
from ntier_analysis.described import order_of, system_of
from ntier_analysis.errors import DataError
from ntier_analysis.prediction.demands import tier_demands
from ntier_analysis.prediction.forecast import Forecast, WhatIf, beyond, caveats, forecast, new_type, what_if
from ntier_analysis.prediction.jmva import jmva
from ntier_analysis.prediction.model import station
from ntier_analysis.setting import differing
from ntier_analysis.store.tables import read_table, sweeps
from ntier_analysis.verdict.store import verdicts
from ntier_analysis.verdict.tables import as_json
from ntier_analysis.wording import counted, interval, join, number, share

Json = dict[str, Any]


def predicted(store: Path, sweep: str, topo: str | None, cores: list[str], jmt: Path | None) -> Json:
    """The document of `predict --json`. Raises DataError for an unknown sweep, topology or node type, for cores of a
    type that the topology does not need, and if the sweep's loads do not tell the demands."""
    given = dict(_cores(text) for text in cores)
    if given and topo is None:
        raise DataError("--cores is for another topology; give it with --topo")
    if jmt is not None:
        check_file(jmt, "--jmt")
    if sweep not in sweeps(store):
        raise DataError(f"no sweep {sweep!r} in {store}; there are: {', '.join(sweeps(store)) or 'none'}")
    trials = read_table(store, "trials", sweep)
    system = system_of(trials)
    if system.load_model is not LoadModel.CLOSED or system.factor.name != USERS:
        raise DataError(
            f"sweep {sweep}: a prediction needs users who think, over numbers of users; this one is "
            f"{system.load_model.value}, over {system.factor.name}"
        )
    run_cpu = [("resource", "==", "cpu"), ("metric", "==", "used_cores"), ("phase", "==", "run")]
    nodes = read_table(store, "nodes", sweep)
    tiers = tier_demands(
        trials,
        read_table(store, "samples", sweep, filters=run_cpu),
        nodes,
    )
    judged = verdicts(store, [sweep])[0]
    limited = judged.max_throughput is not None and math.isfinite(judged.knee_users)
    # of a lower bound no prediction is so many per cent off
    prediction = forecast(tiers, trials, judged.max_throughput.value if limited and not judged.at_least else None)
    first = trials.iloc[0]
    mix, scale = "" if pd.isna(first["mix"]) else str(first["mix"]), float(first["scale"])
    writes = _writes(store, sweep, system)
    if jmt is not None:
        stations = [station(t, t.idle_cores, t.demand.demand_s) for t in tiers]
        write_text(jmt, jmva(stations, float(first["think_time_s"]), int(trials["users_real"].max())))
    document = _document(prediction, sweep, str(first["topology"]), scale)
    document["measured_max_throughput_per_s"] = judged.max_throughput.value if limited else None
    document["measured_max_at_least"] = bool(limited and judged.at_least)
    told = as_json(judged)
    document["verdict"] = told["verdict"]
    document["verdict_names"] = [f"{b['tier']} {b['resource']}" for b in told["bottlenecks"]]
    document["upper_bound_because"] = beyond(told) or None
    if topo is not None:
        order = order_of(trials)
        wanted = _as_written(topo) if order == TIERS else topo
        measured, names = str(first["topology"]), ",".join(order)
        kind = new_type(measured, wanted, names)
        for unused in (k for k in given if k != kind):
            why = f"{wanted} has no nodes of this type that {measured} lacks"
            raise DataError(f"--cores {unused}={given[unused]:g}: {why}")
        sizes = given if given or kind is None else _known_cores(store, trials, kind, order[-1])
        found = what_if(tiers, measured, wanted, writes, sizes, names)
        document["what_if"] = [_of_what_if(w) for w in found]
    return document | {"caveats": caveats(mix, writes, scale)}


def _writes(store: Path, sweep: str, system: System) -> bool | None:
    """Whether users asked for anything that writes; None if the system does not say what does, or nothing is known of
    what they asked for."""
    if not system.interactions:
        return None
    asked = read_table(store, "interactions", sweep, columns=["interaction"])["interaction"].dropna().unique()
    return bool(system.writing & set(asked)) if len(asked) else None


def _as_written(topo: str) -> str:
    """In the form that sweeps have, of W/A/C/D. Raises DataError."""
    try:
        return str(Topology.parse(topo, dbms_required=False))
    except TopologyError as error:
        raise DataError(str(error)) from None


def _known_cores(store: Path, trials: pd.DataFrame, kind: str, deepest: str) -> dict[str, float]:
    """CPU capacity of a type of node in the deepest tier, by the store's sweeps with the system, target and scale of
    `trials`; empty if they have none. Raises DataError if they have several."""
    known: dict[float, str] = {}
    for sweep in sweeps(store):
        others = read_table(store, "trials", sweep)
        if len(others) and not differing(trials, others, ("system", "target", "scale")):
            rows = read_table(store, "nodes", sweep, columns=["tier", "node_type", "cpu_cores"]).dropna()
            mine = rows[(rows["tier"] == deepest) & (rows["node_type"] == kind)]
            known |= dict.fromkeys(mine["cpu_cores"].astype(float), sweep)
    if len(known) > 1:
        told = join([f"{cores:g} in {sweep}" for cores, sweep in known.items()])
        raise DataError(f"node type {kind}: its nodes have different cores ({told}); give --cores {kind}=CORES")
    return {kind: next(iter(known))} if known else {}


def _cores(text: str) -> tuple[str, float]:
    kind, _, number = text.partition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if kind not in ("normal", "low_cost") or not value > 0:
        raise DataError(f"--cores {text}: expected TYPE=CORES with type normal or low_cost, for example low_cost=0.06")
    return kind, value


def _document(forecast: Forecast, sweep: str, topology: str, scale: float) -> Json:
    best, off = forecast.at_loads.maximum, forecast.errors
    return {
        "sweep": sweep,
        "topology": topology,
        "scale": scale,
        "demands": [
            {"tier": t.tier, "nodes": t.nodes, "cores": t.cores, "demand_ms": 1e3 * t.demand.demand_s,
             "interval_ms": [1e3 * t.demand.interval.low, 1e3 * t.demand.interval.high], "idle_cores": t.idle_cores,
             "loads": t.demand.loads}
            for t in forecast.tiers
        ],
        "loads": forecast.loads.to_dict("records"),
        "max_throughput_per_s": best.value,
        "max_throughput_interval": [best.low, best.high],
        "bottleneck": best.tier,
        "bottleneck_shares": best.shares,
        "errors": {k: None if math.isnan(v) else v for k, v in asdict(off).items()},
    }  # fmt: skip


def _of_what_if(w: WhatIf) -> Json:
    return {
        "topology": w.topology,
        "max_throughput_per_s": w.max_per_s,
        "max_throughput_interval": [w.low_per_s, w.high_per_s],
        "ratio": w.ratio,
        "ratio_interval": [w.ratio_low, w.ratio_high],
        "bottleneck": w.bottleneck,
        "bottleneck_shares": w.shares,
        "utilization": w.utilization,
        "assumption": w.assumption or None,
    }


def text(document: Json) -> str:
    """For a person at the terminal."""
    scale = document["scale"]
    lines = [f"{document['sweep']} ({document['topology']}, scale {scale:g}): closed model of the measured demands"]
    for d in document["demands"]:
        demand, loads = interval(d["demand_ms"], *d["interval_ms"]), counted(d["loads"], "load")
        lines.append(
            f"  {d['tier']:10} {d['nodes']} x {counted(d['cores'], 'core')}, {demand} ms of CPU per interaction, "
            f"{d['idle_cores']:.3f} cores idle, {loads}"
        )
    lines.append(f"  {'users':>7} {'X/s':>8} {'predicted [95 %]':>24} {'R ms':>8} {'predicted':>10}")
    for r in document["loads"]:
        rate = interval(*(r[f"throughput{end}_per_s"] for end in ("", "_low", "_high")))
        seen = number(r["measured_throughput_per_s"])
        lines.append(
            f"  {r['users']:7d} {seen:>8} {rate:>24} {r['measured_response_ms']:8.0f} "
            f"{r['response_ms']:10.0f}" + (" (in the fit of every tier)" if r["fitted"] else "")
        )
    lines.append("  " + _maximum_text(document, scale))
    lines.append("  " + _errors_text(document))
    for w in document.get("what_if", []):
        lines.append("  what if: " + _what_if_text(w, scale, bound=bool(document["upper_bound_because"])))
    return "\n".join(lines + [f"  note: {c}" for c in document["caveats"]])


def _rate(value: float, ends: list[float], scale: float) -> str:
    nominal = "" if scale == 1 else f" (nominal {interval(*(v / scale for v in (value, *ends)))})"
    return f"{interval(value, *ends)}/s{nominal}"


def _shares(document: Json) -> str:
    shares = ", ".join(f"{tier} {100 * p:.0f} %" for tier, p in document["bottleneck_shares"].items())
    return f"of the draws: {shares}" if shares else "fewer than three loads give no interval"


def _maximum_text(document: Json, scale: float) -> str:
    value, measured = document["max_throughput_per_s"], document["measured_max_throughput_per_s"]
    least = "at least " if document["measured_max_at_least"] else ""
    beside = "not reached in the measurement" if measured is None else f"measured {least}{number(measured)}/s"
    rate = _rate(value, document["max_throughput_interval"], scale)
    if because := document["upper_bound_because"]:
        full = f"among the CPUs, {document['bottleneck']}'s would be full first ({_shares(document)})"
        return f"maximum at most {rate}, {beside}: {because}; {full}"
    return f"maximum {rate}, {beside}; {document['bottleneck']} limits ({_shares(document)})"


def _errors_text(document: Json) -> str:
    off = document["errors"]
    parts = [f"mean absolute error of the throughput {100 * off['throughput']:.1f} %"]
    for key, words in (("throughput_fitted", "loads of the fit"), ("throughput_beyond", "loads beyond it")):
        if off[key] is not None:
            parts.append(f"{100 * off[key]:.1f} % at the {words}")
    parts.append(f"of the response time {100 * off['response']:.0f} %")
    if off["plateau"] is not None:
        parts.append(f"of the maximum {100 * off['plateau']:+.1f} %")
    return ", ".join(parts)


def _what_if_text(w: Json, scale: float, *, bound: bool) -> str:
    """bound: the rates are upper bounds, whose ratio says nothing."""
    low, high = w["ratio_interval"]
    busy = ", ".join(f"{t} {100 * u:.0f} %" for t, u in sorted(w["utilization"].items(), key=lambda i: -i[1]))
    times = f", {share(w['ratio'], low, high)} times as much; then {w['bottleneck']} limits"
    first = f"; among the CPUs, {w['bottleneck']}'s would be full first"
    return (
        f"{w['topology']} reaches {'at most ' * bound}"
        + _rate(w["max_throughput_per_s"], w["max_throughput_interval"], scale)
        + (f" {w['assumption']}" if w["assumption"] else "")
        + f"{first if bound else times} ({_shares(w)}; CPU there: {busy})"
    )
