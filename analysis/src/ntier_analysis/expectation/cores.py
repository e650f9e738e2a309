"""CPU that a tier uses beyond the knee: `cores(web)`. Of a tier that does the same for each interaction and does not
limit, the ratio of two sweeps compares their throughputs, and most of the machine's speed has gone from it: a slow
machine serves less, and spends more time on what it serves."""

from __future__ import annotations

import math

import pandas as pd

from ntier_analysis.errors import DataError
from ntier_analysis.expectation.quantity import UNKNOWN, Quantity, mean_of_trials


def cores(
    tier: str | None, used: pd.DataFrame, servers: dict[str, int], limits: bool, where: str, text: str
) -> Quantity:
    """Mean over trials of what all nodes of the tier use together in the run phase; the trials are the sample. `used`:
    trial, tier, node, value of `used_cores`; `servers`: how many nodes each tier has; `limits`: its CPU is a
    bottleneck; `where`: which trials these are. A trial without samples of a node does not count."""
    if tier not in servers:
        raise DataError(f"expectation {text!r}: {tier!r}: expected cores(TIER); tiers are {', '.join(servers)}")
    if limits:
        return Quantity(math.nan, *UNKNOWN, f"the {tier} CPU limits, so it uses what there is")
    nodes = used[used["tier"] == tier].groupby(["trial", "node"])["value"].mean().groupby("trial")
    whole = nodes.sum()[nodes.size() == servers[tier]].to_numpy()
    if not len(whole):
        return Quantity(math.nan, *UNKNOWN, f"the CPU of the {tier} nodes was measured in no trial")
    return mean_of_trials(whole, where)
