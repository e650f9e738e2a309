"""How many requests came to what is measured.

A place in a pool is held for a request of that pool, and a CPU works for the requests of its node. How many of them an
interaction makes changes with the load: a balancer sends them elsewhere, a cache answers more or fewer. So where they
are counted, times and costs are those of a request."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from ntier_analysis.validity.loads import VISITS
from ntier_analysis.verdict.saturation import Saturation


def with_visits(found: list[Saturation], samples: pd.DataFrame, start: float, end: float) -> list[Saturation]:
    """`samples`: rows of one trial, as `saturations` takes them. A pool's requests are those that were counted under
    its name (the middleware's statements of a replica), else those of its node; a CPU's are all of its node."""
    counts = samples[samples["metric"].isin(VISITS) & (samples["t_s"] >= start) & (samples["t_s"] < end)]
    if counts.empty:
        return found
    means = counts.groupby(["node", "metric", "item"], observed=True)["value"].mean().dropna()
    rates = {(str(node), str(metric), str(item)): float(rate) for (node, metric, item), rate in means.items()}
    return [replace(s, visits_per_s=_visits(s, rates)) if s.resource in ("pool", "cpu") else s for s in found]


def _visits(s: Saturation, rates: dict[tuple[str, str, str], float]) -> float:
    for metric in VISITS:
        counted = {item: rate for (node, name, item), rate in rates.items() if (node, name) == (s.node, metric)}
        if counted:
            rate = sum(counted.values()) if s.resource == "cpu" else counted.get(s.item, counted.get("", 0.0))
            return rate if rate > 0 else float("nan")
    return float("nan")
