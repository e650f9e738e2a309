"""How saturated a resource of a tier was, from the measured table: whether or not a verdict names it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import pandas as pd

from ntier_analysis.contracts.implied import TIERS
from ntier_analysis.errors import DataError
from ntier_analysis.expectation.quantity import UNKNOWN, Quantity
from ntier_analysis.statistics.share import pooled, spread_of
from ntier_analysis.statistics.values import reach_of
from ntier_analysis.verdict.saturation import THRESHOLD
from ntier_analysis.wording import join

RESOURCES = ("cpu", "disk", "network", "memory", "pool", "lock", "queue", "query", "jvm", "thread")
"""Those of the store's schema; an import may bring others."""


BESIDE = ("client", "host")
"""Measured too; no verdict names them."""


def named(words: str, text: str, others: Iterable[str] = (), tiers: tuple[str, ...] = TIERS) -> tuple[str, str]:
    """`db cpu` -> (db, cpu). Raises DataError for another form and for unknown words."""
    tier, resource = (*words.split(), "", "")[:2]
    if len(words.split()) != 2:
        raise DataError(f"expectation {text!r}: {words!r}: expected TIER RESOURCE, for example db cpu")
    for word, allowed in ((tier, tiers), (resource, (*RESOURCES, *sorted({*others} - {*RESOURCES})))):
        if word not in allowed:
            raise DataError(f"expectation {text!r}: {word!r}: allowed are {', '.join(allowed)}")
    return tier, resource


def saturation(
    args: str | None,
    table: pd.DataFrame,
    servers: dict[str, int],
    trials: list[str],
    where: str,
    text: str,
    tiers: tuple[str, ...] = TIERS,
    nodes: Mapping[str, str] | None = None,
) -> Quantity:
    """Of the tier's most saturated node, or of a node by its name: mean share of the run at or above the threshold over
    `trials`, in which a node or a sample that was not measured may have been anything. `table`: the store's, of one
    sweep; `servers`: how many nodes each tier has; `tiers`: that there are; `nodes`: node -> tier."""
    if args is None or len(args.split()) != 2:
        raise DataError(
            f"expectation {text!r}: expected saturation(TIER RESOURCE) or saturation(NODE RESOURCE), for example "
            "saturation(db cpu)"
        )
    place, kind = args.split()
    only = place if place not in tiers and place in (nodes or {}) else ""
    if not only and place not in (*tiers, *BESIDE):
        names = join(list(nodes or {}))
        raise DataError(f"expectation {text!r}: {place!r}: allowed are {', '.join((*tiers, *BESIDE))}; nodes {names}")
    tier, resource = named(
        f"{nodes[only] if nodes and only else place} {kind}", text, set(table.get("resource", [])), (*tiers, *BESIDE)
    )
    if not trials:
        return Quantity(math.nan, *UNKNOWN, "there is no valid trial")
    rows = table[table["trial"].isin(trials) & (table["threshold_pct"] == THRESHOLD)]
    mine = rows[(rows["tier"] == tier) & (rows["resource"] == resource) & (rows["n"] > 0)]
    mine = mine[mine["node"] == only] if only else mine
    if mine.empty:
        there = sorted({f"{t} {r}" for t, r in zip(rows["tier"], rows["resource"], strict=True)})
        return Quantity(math.nan, *UNKNOWN, f"not measured; measured are {', '.join(there) or 'no resources'}")
    found = {name: _pooled(part, trials) for name, part in mine.groupby(["node", "item"])}
    shares = {name: share for name, (share, _) in found.items()}
    (node, item), top = max(shares.items(), key=lambda f: f[1].value)
    # The most saturated one is at least as saturated as any, and at most as the one with the highest upper end. The
    # largest of many lower ends is often too high by chance, so they hold together: of nine equal nodes one is in 20 %.
    low = max(max(0.0, q.value - reach_of(len(found), freedom) * (q.value - q.low)) for q, freedom in found.values())
    high = max(q.high for q in shares.values())
    absent = 0 if only else servers.get(tier, 0) - len({name for name, _ in shares})
    note = f"{node}{f' ({item})' * bool(item)}, {where}"
    freedom = min(freedom for _, freedom in found.values())
    if absent > 0:
        high, note = 1.0, f"{note}; {absent} of {servers[tier]} {tier} nodes not measured"
    return Quantity(top.value, low, high, note, freedom, most=1.0)


def _pooled(rows: pd.DataFrame, trials: list[str]) -> tuple[Quantity, float]:
    """Mean over the trials of one node; the interval covers the single shares' own and what the trials differ by.
    Beside it the degrees of freedom of its lower end: few, where what the trials differ by makes it."""
    missing = (rows["n_missing"] / (rows["n"] + rows["n_missing"])).to_numpy()
    value = rows["saturation"].to_numpy()
    low, high = (rows[f"saturation_{end}"].to_numpy() * (1 - missing) for end in ("low", "high"))
    spread = spread_of(value, low, high + missing)
    mean, low, high = pooled(value, low, high + missing)
    freedom = len(value) - 1 if 0 < mean - low <= spread * (1 + 1e-9) else math.inf
    absent = 1 - len(rows) / len(trials)  # of these trials nothing is known
    return Quantity(mean, low * (1 - absent), high * (1 - absent) + absent), freedom
