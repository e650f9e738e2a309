"""A sweep beside its prediction, and what another topology would reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ntier_analysis.contracts.implied import TIERS
from ntier_analysis.contracts.layout import Layout
from ntier_analysis.contracts.system import Replicas
from ntier_analysis.errors import DataError
from ntier_analysis.prediction.demands import TierDemand
from ntier_analysis.prediction.model import Change, Errors, Prediction, errors, predict
from ntier_analysis.wording import join, resource

LOW_COST = "L"
"""The letter behind a topology whose databases are low-cost nodes."""
CURVE_POINTS = 60


@dataclass(frozen=True)
class Forecast:
    """`at_loads`: predicted at the valid loads; `loads`: columns trial, users, users_real, throughput_per_s,
    throughput_low_per_s, throughput_high_per_s, response_ms, measured_throughput_per_s, measured_response_ms, fitted.
    `curve`: users (nominal), throughput_per_s, low_per_s, high_per_s."""

    tiers: list[TierDemand]
    at_loads: Prediction
    loads: pd.DataFrame
    curve: pd.DataFrame
    errors: Errors


def forecast(tiers: list[TierDemand], trials: pd.DataFrame, plateau_per_s: float | None) -> Forecast:
    """trials: the store's columns of one sweep; plateau_per_s: measured maximum, None if none was reached."""
    valid = trials[trials["valid"].astype(bool)].dropna(subset=["throughput_per_s", "response_time_mean_ms"])
    valid = valid.sort_values(["users", "trial"])
    think_s, scale = float(valid["think_time_s"].iloc[0]), float(valid["scale"].iloc[0])
    prediction = predict(tiers, think_s, valid["users_real"].to_numpy())
    fitted = valid["trial"].map(lambda t: all(t in tier.trials for tier in tiers)).to_numpy(dtype=bool)
    rate, response_s = valid["throughput_per_s"].to_numpy(float), valid["response_time_mean_ms"].to_numpy(float) / 1e3
    loads = valid[["trial", "users", "users_real"]].assign(
        throughput_per_s=prediction.throughput.value,
        throughput_low_per_s=prediction.throughput.low,
        throughput_high_per_s=prediction.throughput.high,
        response_ms=1e3 * prediction.response.value,
        measured_throughput_per_s=rate,
        measured_response_ms=1e3 * response_s,
        fitted=fitted,
    )
    off = errors(prediction, rate, response_s, fitted, float("nan") if plateau_per_s is None else plateau_per_s)
    return Forecast(tiers, prediction, loads, _curve(tiers, think_s, scale, float(trials["users"].max())), off)


def _curve(tiers: list[TierDemand], think_s: float, scale: float, top: float) -> pd.DataFrame:
    real = np.unique(np.maximum(1, np.round(np.linspace(0, top, CURVE_POINTS) * scale))).astype(int)
    throughput = predict(tiers, think_s, real).throughput
    return pd.DataFrame(
        {
            "users": real / scale,
            "throughput_per_s": throughput.value,
            "low_per_s": throughput.low,
            "high_per_s": throughput.high,
        }
    )


@dataclass(frozen=True)
class WhatIf:
    """Another topology: its highest throughput (1/s), as a ratio to that of the measured one as predicted (draws
    paired), and which tier limits. `utilization`: tier -> share of capacity there."""

    topology: str
    max_per_s: float
    low_per_s: float
    high_per_s: float
    ratio: float
    ratio_low: float
    ratio_high: float
    bottleneck: str
    shares: dict[str, float]
    utilization: dict[str, float]
    assumption: str


def what_if(
    tiers: list[TierDemand],
    measured: str,
    wanted: str,
    writes: bool | None,
    cores: Mapping[str, float] | None = None,
    order: str = "",
) -> list[WhatIf]:
    """One prediction; two if the mix writes (None: not known) and the number of databases changes, since the demands of
    one sweep do not tell reads from writes: one as if all were reads, one as if all were writes. cores: node type ->
    cores of a node that the sweep does not have; order: the system's tiers, as in `Layout.of`. Raises DataError for
    what the demands cannot tell."""
    changes = _changes(tiers, measured, wanted, dict(cores or {}), order)
    now = predict(tiers, 0.0, [1]).maximum
    assumed = {0.0: ""}
    repeated = [t.tier for t in tiers if t.replicas is Replicas.ALL_WRITE]
    resized = any(t.nodes != changes[t.tier].nodes for t in tiers if t.tier in repeated)
    if writes is not False and resized:
        assumed = {
            0.0: "if the databases only read",
            1.0: "if the databases only write, and each repeats every write",
        }
    answers = []
    for share, words in assumed.items():
        parts = dict(changes)
        parts |= {t: Change(parts[t].nodes, parts[t].cores, share) for t in repeated}
        best = predict(tiers, 0.0, [1], parts).maximum
        ratio = best.draws / now.draws
        low, high = np.percentile(ratio, (2.5, 97.5)) if len(ratio) else (float("nan"), float("nan"))
        answers.append(
            WhatIf(
                wanted,
                best.value,
                best.low,
                best.high,
                best.value / now.value,
                float(low),
                float(high),
                best.tier,
                best.shares,
                best.utilization,
                words,
            )
        )
    return answers


def new_type(measured: str, wanted: str, order: str = "") -> str | None:
    """Type of node that the last tier has in the wanted topology only; None if it stays the same. order: as in
    `what_if`."""
    low_cost = [_layout(topology, order).letters.endswith(LOW_COST) for topology in (measured, wanted)]
    return None if low_cost[0] == low_cost[1] else "low_cost" if low_cost[1] else "normal"


def _changes(
    tiers: list[TierDemand], measured: str, wanted: str, cores: dict[str, float], order: str
) -> dict[str, Change]:
    old, new = _layout(measured, order), _layout(wanted, order)
    if old.letters.removesuffix(LOW_COST) != new.letters.removesuffix(LOW_COST):
        letter = old.letters.removesuffix(LOW_COST) or "(none)"
        raise DataError(
            f"topology {wanted}: demands measured on {measured} say nothing of another DBMS; measure a topology with "
            f"that DBMS, or use the letter {letter}"
        )
    nodes, kind = dict(new.nodes), new_type(measured, wanted, order)
    changes = {}
    for tier in tiers:
        size = tier.cores
        if tier.tier == new.nodes[-1][0] and kind is not None:
            if kind not in cores:
                raise DataError(
                    f"node type {kind}: its CPU capacity is in no sweep of this store with the same system, target and "
                    f"scale; give --cores {kind}=CORES"
                )
            size = cores[kind]
        changes[tier.tier] = Change(nodes[tier.tier], size)
    return changes


def _layout(topology: str, order: str) -> Layout:
    """Raises DataError for what does not say how many nodes each tier has."""
    found = Layout.of(topology, order)
    if not found.nodes or not all(n for _, n in found.nodes):
        names = order.split(",") if order else list(TIERS)
        raise DataError(
            f"topology {topology!r}: expected a number of nodes, 1 or more, for each of {', '.join(names)}, for "
            f"example {'/'.join('1' for _ in names)}"
        )
    return found


def beyond(verdict: dict) -> str:
    """Why the prediction is an upper bound only: what a sweep's verdict (`verdict --json`) says of which a model of
    CPUs knows nothing. Empty if the verdict names CPUs, or nothing limits."""
    if verdict["verdict"] in ("hidden", "unknown"):
        return f"the verdict is {verdict['verdict']}, so something else than a CPU may limit"
    others = [f"{b['tier']} {resource(b['resource'])}" for b in verdict["bottlenecks"] if b["resource"] != "cpu"]
    return f"the verdict names {join(others)}, of which the model knows nothing" if others else ""


def caveats(mix: str, writes: bool | None, scale: float) -> list[str]:
    """What the model leaves out. `writes`: whether the mix does; None: not known."""
    sentences = [
        "the model knows CPUs only, not disks, memory, networks, locks or pools; if one of these limits, the "
        "prediction is too high",
        "the model assumes constant demands, but they change with replicas, scale and caches (from 1 to 9 databases "
        "the middleware's grew by 40 %): the farther the topology, the less reliable the interval",
    ]
    if writes is not False:
        said = f"mix {mix} writes, and" if writes else "whether the mix writes is not known; if it does,"
        sentences.append(f"{said} every replica repeats each write: more databases divide the reads only")
    if scale != 1.0:
        sentences.append(
            "the kernel hands a quota out in slices, so a lone request may run at full speed: measured response times "
            "below saturation are shorter than the model's"
        )
    return sentences
