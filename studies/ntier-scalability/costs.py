"""What an interaction costs each tier beyond the knee, and the throughput at which that would fill the tier: how far
the tiers that do not limit are from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from ntier_analysis.comparison.values import read_side
from ntier_analysis.expectation.quantities import Facts
from ntier_analysis.expectation.quantity import Quantity, mean_of_trials, quotient
from ntier_analysis.expectation.sides import Between

FILE = Path(__file__).resolve().parent / "data" / "costs.csv"
COLUMNS = ("sweep", "users", "rep", "throughput_per_s", "tier", "nodes", "cores", "cpu_ms")
SECOND_MS = 1000.0
ANCHOR = ".anchor-"
Blocks = Callable[[str, str], Quantity | None]
"""Two sweeps -> the factor of 1 that their blocks give a ratio of them, if any."""


def keep(found: Iterable[Facts], wanted: Iterable[str]) -> None:
    """Costs of these sweeps -> costs.csv. What it has of other sweeps that are wanted stays."""
    found = list(found)
    before = read()
    others = before["sweep"].isin(set(wanted) - {facts.sweep for facts in found})
    rows = [*before[others].to_dict("records"), *(row for facts in found for row in _rows(facts))]
    FILE.parent.mkdir(exist_ok=True)
    pd.DataFrame(rows, columns=list(COLUMNS)).sort_values("sweep", kind="stable").to_csv(FILE, index=False)


def _rows(facts: Facts) -> Iterator[dict[str, object]]:
    """One for each trial beyond the knee and each tier with a CPU limit, in the order in which a request meets them.
    `cores`: of one node; `cpu_ms`: of all nodes of the tier, idle load included."""
    values = read_side(facts.sweep, facts.store).values
    values = values[values["users"].isin(facts.beyond_knee) & (values["value"] > 0)]  # of no CPU no bound can be told
    costs = values[values["metric"] == "cpu_ms"].set_index(["users", "rep", "tier"])["value"].to_dict()
    rates = values[values["metric"] == "throughput_per_s"].set_index(["users", "rep"])["value"]
    limits = facts.table("nodes", ["node", "tier", "cpu_cores"]).dropna().drop_duplicates("node")
    for (users, rep), rate in rates.items():
        for tier in facts.order:
            cores = limits.loc[limits["tier"] == tier, "cpu_cores"]
            if len(cores) and (users, rep, tier) in costs:
                yield {"sweep": facts.sweep, "users": users, "rep": rep, "throughput_per_s": round(rate, 4),
                       "tier": tier, "nodes": len(cores), "cores": cores.mean(),
                       "cpu_ms": round(costs[users, rep, tier], 4)}  # fmt: skip


def read() -> pd.DataFrame:
    """Rows of costs.csv."""
    return pd.read_csv(FILE) if FILE.exists() else pd.DataFrame(columns=list(COLUMNS))


def full_at(trials: pd.DataFrame, scale: float) -> pd.DataFrame:
    """Of one sweep, by tier: its mean `cpu_ms`, and `per_s`, the interactions per second (nominal) at which the tier
    would be full."""
    tiers = trials.groupby("tier", sort=False)[["nodes", "cores", "cpu_ms"]].mean()
    return tiers.assign(per_s=tiers["nodes"] * tiers["cores"] * SECOND_MS / tiers["cpu_ms"] / scale)


def front_cores(trials: pd.DataFrame) -> np.ndarray:
    """Cores that the first tier uses, at each trial: a measure of throughput that the machine's speed does not change,
    as long as the tier does the same for each interaction."""
    front = trials[trials["tier"] == trials["tier"].iloc[0]]
    return (front["throughput_per_s"] * front["cpu_ms"] / SECOND_MS).to_numpy()


def _anchors(cores: float) -> dict[str, pd.DataFrame]:
    """Sweep -> its trials. `cores`: of a node, since cells of another scale are other cells."""
    found = read().groupby("sweep", sort=False)
    return {str(name): trials for name, trials in found if ANCHOR in str(name) and (trials["cores"] == cores).all()}


def between_blocks(cores: float) -> Between:
    """What the CPU of the first tier of identical cells differs by from block to block: the component between groups of
    a one-way analysis of variance of its logarithm, with Satterthwaite's degrees of freedom."""
    logs = [np.log(front_cores(trials)) for trials in _anchors(cores).values()]
    sizes = np.array([len(group) for group in logs])
    k, n = len(logs), sizes.sum()
    within = sum(((group - group.mean()) ** 2).sum() for group in logs) / (n - k)
    whole = np.concatenate(logs).mean()
    across = sum(len(group) * (group.mean() - whole) ** 2 for group in logs) / (k - 1)
    excess = max(0.0, across - within)
    freedom = excess**2 / (across**2 / (k - 1) + within**2 / (n - k))
    return Between(math.sqrt(excess / ((n - (sizes**2).sum() / n) / (k - 1))), freedom)


def anchors(rows: dict[str, dict[str, str]], scale: float, cores: float, blocks: Blocks) -> str:
    """The same cell, measured with each block: a table of its throughput (nominal) and of the CPU that its first tier
    used, and how far each varies. `rows`: of maxima.csv; `cores`: of a node."""
    found = [
        (name, rows[name]["day"], Quantity(*(float(rows[name][key]) for key in ("max_per_s", "low", "high"))),
         mean_of_trials(front_cores(trials)))
        for name, trials in _anchors(cores).items()
        if name in rows
    ]  # fmt: skip
    if len(found) < 2:
        return "None yet."
    lines = ["| block | day | interactions/s, nominal | CPU of the web server, cores |", "|---|---|--:|--:|"]
    lines += [
        f"| `{name.partition(ANCHOR)[2]}` | {day} | {_ends(rate.value / scale, rate, 1 / scale, 0)} "
        f"| {_ends(used.value, used, 1, 4)} |"
        for name, day, rate, used in sorted(found, key=lambda f: (f[1], f[0]))
    ]
    rates, used = (np.array([f[i].value for f in found]) for i in (2, 3))
    known = {name: q for name, _, _, q in found}
    alone, together = missed(known, lambda *_: None), missed(known, blocks)
    pairs = len(found) * (len(found) - 1) // 2
    differ = [100 * values.std(ddof=1) / values.mean() for values in (rates, used)]
    said = (
        f"{len(found)} anchors: throughput lies between {rates.min() / scale:.0f} and {rates.max() / scale:.0f} "
        f"interactions/s (s.d. {differ[0]:.0f} %), the CPU of the web server between {used.min():.3f} and "
        f"{used.max():.3f} cores (s.d. {differ[1]:.0f} %). The cells are identical, so all {pairs} ratios of two of "
        f"them are 1 in truth. Of their intervals by trials alone, {alone} ({100 * alone / pairs:.0f} %) miss it: from "
        f"block to block the CPU differs by {100 * between_blocks(cores).sd:.1f} % more (s.d.). With this in the "
        f"intervals, as everywhere on this page, {together} of {pairs} miss it. "
        f"The anchors are of scale {scale:g}; between blocks of another scale the same is presumed."
    )
    return f"{said}\n\n" + "\n".join(lines)


def missed(found: dict[str, Quantity], blocks: Blocks) -> int:
    """How many ratios of two of these are not 1 by their intervals."""
    ratios = (_ratio(found[a], found[b], blocks(a, b)) for a, b in combinations(found, 2))
    return sum(r.low is not None and r.high is not None and not r.low <= 1 <= r.high for r in ratios)


def _ratio(upper: Quantity, lower: Quantity, between: Quantity | None) -> Quantity:
    return quotient(upper if between is None else quotient(upper, between), lower)


def _ends(value: float, found: Quantity, times: float, decimals: int) -> str:
    """`450 [290, 611]`."""
    if found.low is None:
        return f"{value:.{decimals}f}"
    return f"{value:.{decimals}f} [{found.low * times:.{decimals}f}, {found.high * times:.{decimals}f}]"


def table(
    places: Iterable[tuple[str, str]],
    measured: dict[str, str],
    scale: Callable[[str], float],
    least: Collection[str] = (),
    blocks: Blocks = lambda *_: None,
) -> str:
    """`places`: what to call a sweep, and its name, in order; throughput is told relative to the first one.
    `measured`: sweep -> its verdict and maximum; `scale`: of a sweep; `least`: those whose maximum is a lower bound.
    The column `trials` has the number of those beyond the knee, which costs and relative throughput are of."""
    kept = dict(iter(read().groupby("sweep", sort=False)))
    shown = [(title, name, kept[name]) for title, name in places if name in kept and name in measured]
    if not shown:
        return "None yet."
    first, base, trials = shown[0]
    tiers = list(dict.fromkeys(trials["tier"]))
    lines = [
        f"| place | trials | {' | '.join(tiers)} | measured | throughput by the CPU of {tiers[0]}, {first} = 1 |",
        f"|---|--:|{'--:|' * len(tiers)}---|---|",
    ]
    for title, name, mine in shown:
        full = full_at(mine, scale(name))
        cells = [_cell(row, row["per_s"] == full["per_s"].min()) for _, row in full.reindex(tiers).iterrows()]
        used, unit = _used(mine, name in least), _used(trials, base in least)
        if scale(name) != scale(base):
            relative = "another scale"
        else:
            relative = "1" if title == first else _relative(_ratio(used, unit, blocks(name, base)))
        beyond = len(mine[["users", "rep"]].drop_duplicates())
        lines.append(f"| {title} | {beyond} | {' | '.join(cells)} | {measured[name]} | {relative} |")
    return "\n".join(lines)


def _cell(row: pd.Series, least: bool) -> str:
    """`3.1 ms: **322**`."""
    bound = f"{row['per_s']:.0f}"
    return f"{row['cpu_ms']:.3g} ms: {f'**{bound}**' if least else bound}"


def _used(trials: pd.DataFrame, least: bool) -> Quantity:
    """Cores of the first tier; open above if the maximum that they stand for is a lower bound."""
    used = mean_of_trials(front_cores(trials))
    return replace(used, high=math.inf) if least and used.low is not None else used


def _relative(ratio: Quantity) -> str:
    """`1.08 [1.02, 1.15]`; with a lower bound on one side `1.10, at least 1.04` or `0.62, at most 0.68`."""
    if ratio.low is None or ratio.high is None:
        return "too few trials"
    if math.isinf(ratio.high):
        return f"{ratio.value:.2f}, at least {ratio.low:.2f}" if ratio.low > 0 else "not known: both are lower bounds"
    if ratio.low == 0:
        return f"{ratio.value:.2f}, at most {ratio.high:.2f}"
    return f"{ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"
