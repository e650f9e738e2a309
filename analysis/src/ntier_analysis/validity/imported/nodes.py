"""Nodes: samples that are enough, without gaps and in percent of what the node has; the machines beside the system;
whether the nodes are those of the topology."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from ntier_analysis.contracts.layout import counts_of
from ntier_analysis.validity.generator import CLIENT_BUSY_PCT
from ntier_analysis.validity.host import HOST_MEAN_PCT, HOST_P95_PCT, STEAL_MEAN_PCT
from ntier_analysis.validity.imported.trial import (
    CLIENTS,
    HOSTS,
    NO_SERVERS,
    SECOND_S,
    Imported,
    at_least,
    check,
    means_of,
)
from ntier_analysis.validity.registry import Finding, exact, not_applicable, undecidable

HALF = 0.5
"""A share of 1 that never passes a half over WINDOW_S belongs to a node that limits nothing: it is not told from 0.5 %.
Single samples of an idle node may: noise, or a daemon."""
MIN_SAMPLES = 10
"""The least from which an interval of a saturation can be made (10 batch means)."""
MISSING_PCT = 10.0
"""Share of missing samples from which on the verdict counts a CPU as not measured."""
SECOND_PCT = 110.0
"""Over a second a counter of ticks (10 ms) and slices (up to 50 ms, at both ends) may be ahead by a tenth."""
WINDOW_S, CAPACITY_PCT = 10.0, 103.0
"""As H3."""
ROUNDING = 1e-9
"""Relative; more than rounding adds to a mean of equal values."""
DISTINCT = 10
"""Different values that the use of a CPU must have for another one that reads the same throughout to be the same: two
that idle may read 0 and 1 % alike."""


# ---- the samples ---------------------------------------------------------------------------------------------------


@check("I8", "Samples of utilization in the run, of the resource that has fewest", "too_few_samples")
def enough(trial: Imported) -> Finding:
    """Nodes that have no samples at all are told apart: the verdict knows of them."""
    counted = {key: len(trial.inside[key][0]) for key in trial.counted}
    servers = set(trial.nodes.loc[~trial.nodes["tier"].isin(NO_SERVERS), "node"])
    if not any(node in servers and resource == "cpu" for node, resource, _, _ in counted):
        return at_least(0, MIN_SAMPLES, "samples", "no CPU utilization (metric utilization_pct) of any server", 0)
    key = min(counted, key=lambda k: counted[k])
    n, in_all = counted[key], len(trial.utilization[key])
    text = f"{_name(key)} has {n} samples of utilization_pct in the run phase ({in_all} in all)"
    return at_least(counted[key], MIN_SAMPLES, "samples", text, sum(counted.values()))


@check("I9", "Share of the run without samples, of the resource that has most gaps", "gaps")
def covered(trial: Imported) -> Finding:
    missing = {key: _missing_pct(trial, trial.inside[key][0]) for key in trial.counted}
    if not missing:
        return undecidable("no samples of utilization", n=0)
    key = max(missing, key=lambda k: missing[k])
    return exact(
        missing[key], MISSING_PCT, "pct", f"{_name(key)} has none for {missing[key]:.0f} % of the run", len(missing)
    )


def _missing_pct(trial: Imported, inside: np.ndarray) -> float:
    """A sample stands for the median interval before it. `inside`: times of the samples in the run."""
    if len(inside) < 2:
        return 100.0
    interval = float(np.median(np.diff(inside)))
    edges = np.concatenate([[trial.run[0]], inside, [trial.run[1]]])
    gaps = np.diff(edges)
    return 100 * float(np.maximum(gaps - 1.5 * interval, 0.0).sum()) / trial.run_s


@check("I10", "Utilization over 10 s against the capacity", "wrong_capacity")
def capacity(trial: Imported) -> Finding:
    return _above(trial, WINDOW_S, CAPACITY_PCT, "over 10 s")


@check("I10.second", "Utilization over a second against the capacity", "wrong_capacity")
def capacity_second(trial: Imported) -> Finding:
    return _above(trial, SECOND_S, SECOND_PCT, "in a second")


def _above(trial: Imported, window_s: float, limit: float, said: str) -> Finding:
    worst, where, late = 0.0, "", False
    for key, (t_s, value) in trial.inside.items():
        if not len(t_s) or value.max() < worst * (1 - ROUNDING):  # no mean is above the largest sample
            continue
        # windows from the node's first sample in the run, the last one only if it is whole
        begin = float(t_s[0])
        whole = t_s < begin + window_s * max(1, (trial.run_s - 1) // window_s)
        t_s, value = t_s[whole], value[whole]
        means, scrapes = means_of(t_s, value, begin, window_s), trial.scrapes.get((key[0], key[3]))
        if scrapes is not None:
            means = _least(means, t_s, scrapes, begin, window_s)
        if len(means) and means.max() > worst:
            worst, where, late = float(means.max()), _name(key), scrapes is not None
    text = f"{where} was used {'at least ' * late}{worst:.0f} % {said}"
    text += ", whenever in its scrape a counter was read" * late
    if worst > limit:
        text += ", more than it has; is the value in percent of the whole node (not of one core) during the run?"
    return exact(worst, limit, "pct", text, len(trial.utilization))


def _least(means: np.ndarray, t_s: np.ndarray, scrapes: pd.Series, begin: float, window_s: float) -> np.ndarray:
    """What each window was used at least: the counters at its ends were read up to half a scrape before or after their
    times, so the window may be longer than it says."""
    before = scrapes.rolling(2, min_periods=1).mean().reindex(t_s).fillna(0.0).to_numpy()
    window = np.floor((t_s - begin) / window_s)
    longest = pd.Series(before).groupby(window).max().to_numpy()
    length = max(window_s, float(np.median(np.diff(t_s))) if len(t_s) > 1 else window_s)
    return means * length / (length + longest)


@check("I11", "Utilization of each CPU is in percent, not a share of 1", "utilization_unit")
def percent(trial: Imported) -> Finding:
    """Over the whole sweep, where others are in percent."""
    if "unit_given" in trial.samples and trial.samples["unit_given"].any():
        return not_applicable("the file says that the unit is pct")
    odd = {n: v for n, v in trial.shares.items() if n in set(trial.nodes["node"])}
    text = ", ".join(f"{n} never passes {v:g} %" for n, v in sorted(odd.items())) or "none looks like a share"
    if odd:
        text += " in the sweep: looks like a share of 1, multiply by 100 (if it is percent, put unit = pct)"
    return exact(float(len(odd)), 0.0, "nodes", text, len(trial.nodes))


def like_shares(samples: pd.DataFrame) -> dict[str, float]:
    """Node -> its largest CPU utilization, of those that never pass 1 % in a sweep but come near it over WINDOW_S."""
    cpu = samples[(samples["resource"] == "cpu") & (samples["metric"] == "utilization_pct")].dropna(subset="value")
    largest = cpu["value"].groupby(cpu["node"].astype(str)).max()
    small = cpu[cpu["node"].isin(largest.index[largest <= 1.0])]
    keys = [small["trial"].astype(str), small["node"].astype(str), np.floor(small["t_s"] / WINDOW_S).rename("window")]
    windows = small["value"].groupby(keys).agg(["mean", "count"])
    whole = windows[windows["count"] >= windows["count"].groupby(level="node").transform("max") / 2]
    sustained = whole["mean"].groupby(level="node").max()
    return {str(node): float(largest[node]) for node in sustained.index[sustained > HALF]}


def _name(key: tuple[str, str, str, str]) -> str:
    node, resource, item, _ = key
    return f"{node} {resource}" + f" ({item})" * bool(item)


# ---- the machines --------------------------------------------------------------------------------------------------


@check("I12", "CPU of the clients, 95th percentile of 1-s means", "generator_cpu")
def clients(trial: Imported) -> Finding:
    return _busiest(trial, CLIENTS, CLIENT_BUSY_PCT, lambda v: float(np.percentile(v, 95)), "no client was measured")


@check("I13", "Host CPU, 95th percentile of 1-s means", "host_saturated")
def host(trial: Imported) -> Finding:
    return _busiest(trial, HOSTS, HOST_P95_PCT, lambda v: float(np.percentile(v, 95)), "no host was measured")


@check("I13.mean", "Host CPU, mean", "host_saturated")
def host_mean(trial: Imported) -> Finding:
    return _busiest(trial, HOSTS, HOST_MEAN_PCT, lambda v: float(np.mean(v)), "no host was measured")


def _busiest(trial: Imported, tiers: tuple[str, ...], limit: float, of: Callable, otherwise: str) -> Finding:
    values = {node: of(v) for node, v in trial.cpu_of(tiers).items()}
    if not values:
        return undecidable(otherwise, n=0, required=False)
    node = max(values, key=lambda n: values[n])
    return exact(values[node], limit, "pct", f"{node} was {values[node]:.0f} % busy", len(values))


@check("I14", "Nodes that the topology does not have", "topology")
def topology(trial: Imported) -> Finding:
    told = trial.row.get("tiers")
    order = "" if told is None or pd.isna(told) else str(told)
    counts = counts_of(str(trial.row["topology"]), order, trial.nodes["tier"])
    if counts is None:
        return not_applicable("the topology is free text, or of other tiers than the nodes")
    here = trial.nodes.groupby("tier")["node"].nunique()
    more = [f"{here[t]} {t} for {n}" for t, n in counts.items() if here.get(t, 0) > n]
    text = f"{trial.row['topology']}: nodes with samples: {', '.join(more)}" if more else "none"
    return exact(float(len(more)), 0.0, "tiers", text, len(trial.nodes))


@check("I15", "CPU stolen from a server by a hypervisor, mean", "host_robbed")
def stolen(trial: Imported) -> Finding:
    """Its CPU is full before it reads 100 %."""
    servers = set(trial.nodes.loc[~trial.nodes["tier"].isin(NO_SERVERS), "node"])
    rows = trial.samples[(trial.samples["metric"] == "steal_pct") & trial.samples["node"].isin(servers)]
    means = trial.in_run(rows).groupby("node", observed=True)["value"].mean()
    if means.empty:
        return undecidable("not measured", n=0, required=False)
    node, value = str(means.idxmax()), float(means.max())
    return exact(value, STEAL_MEAN_PCT, "pct", f"{value:.2f} % of the CPU time of {node} was stolen", len(means))


@check("I16", "Servers whose CPU reads the same throughout: one machine under two names", "same_machine")
def twice(trial: Imported) -> Finding:
    """It would limit in both tiers at once. Replicas that were given their tier's mean are one tier's."""
    servers = set(trial.nodes.loc[~trial.nodes["tier"].isin(NO_SERVERS), "node"])
    tiers = dict(zip(trial.nodes["node"], trial.nodes["tier"], strict=True))
    first: dict[bytes, str] = {}
    pairs = []
    for key in sorted(trial.counted):
        node, values = key[0], trial.inside[key][1]
        if key[1] == "cpu" and node in servers and len(np.unique(values)) >= DISTINCT:
            other = first.setdefault(values.tobytes(), node)
            pairs += [f"{other} and {node}"] if tiers[other] != tiers[node] else []
    text = f"{', '.join(pairs)}: the same machine? give it one name, in one tier" if pairs else "none"
    return exact(float(len(pairs)), 0.0, "pairs", text, len(first))
