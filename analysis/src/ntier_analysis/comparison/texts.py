"""A comparison as text for a person, and as JSON."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ntier_analysis.comparison.sweeps import NO_CAPACITY, Comparison, Row
from ntier_analysis.report.words import count, number, verdict_sentence
from ntier_analysis.verdict.tables import as_json as verdict_json

WHERE = {"beyond the knees": "at equal loads beyond both knees", "all loads": "over all loads"}


def outcome_text(row: Row, margin: float) -> str:
    return f"same within {100 * margin:g} %" if row.outcome == "same" else row.outcome


def comparison_text(comparison: Comparison, *, loads: bool = True) -> str:
    lines = [
        f"{letter}  {side.label}: {_sentence(side)}" for letter, side in (("A", comparison.a), ("B", comparison.b))
    ]
    rows = [r for r in comparison.rows if loads or r.scope != "load"]
    table = [["", "", "A", "B", "B/A", "95 % interval", "", "from"]]
    table += [_cells(r, comparison) for r in rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    right = {2, 3, 4}
    for row in table:
        cells = [c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    lines += [f"! {text}" for text in comparison.warnings]
    lines.append(conclusion(comparison))
    return "\n".join(lines)


def conclusion(comparison: Comparison) -> str:
    """One sentence: what the comparison says."""
    row = comparison.primary
    if row is None:
        return f"undecided: {_why_not(comparison)}"
    what = "maximum throughput" if row.scope == "maximum" else f"throughput {WHERE[row.scope]}"
    if row.ratio is None:
        return f"undecided: {what}: {row.basis}"
    said = f"{what}: B is {row.ratio.text} of A: {outcome_text(row, comparison.margin)}"
    even = next((r for r in comparison.rows if r.metric == "cpu_ms_per_s" and r.ratio is not None), None)
    if row.outcome != "undecided" or even is None or comparison.at_least:
        return said
    by, outcome = even.tier.replace("+", " and "), outcome_text(even, comparison.margin)
    return f"{said}; at equal speed of the machine (measured by the CPU of {by}) {even.ratio.text}: {outcome}"


def _why_not(comparison: Comparison) -> str:
    """Why no single ratio speaks for the whole sweeps."""
    if not any(r.scope == "load" for r in comparison.rows):
        return "nothing was measured that both sweeps have in common"
    if comparison.open_load:
        return NO_CAPACITY
    if comparison.by_users:
        return "one load alone was measured in both sweeps, and they have no maxima to compare"
    return f"each value of {comparison.axis.factor} has ratios of its own, and a mean over them would say nothing"


def _sentence(side) -> str:
    scale = side.trials["scale"].iloc[0]
    return verdict_sentence(verdict_json(side.verdict), 1.0 if pd.isna(scale) else float(scale))


def _where(row: Row, comparison: Comparison) -> str:
    """`3,000 users`, `sleep_s 0.5 s`, `all loads`."""
    if row.users is None:
        return row.scope
    return comparison.axis.at(count(row.users))


def _cells(row: Row, comparison: Comparison) -> list[str]:
    r = row.ratio
    known = r is not None and np.isfinite(r.low)
    interval = f"[{r.low:.3f}, {r.high:.3f}]" if known else "unknown"
    ratio = f"{r.value:.3f}" if r is not None else "–"
    ends = [number(row.a), number(row.b), ratio, interval]
    return [_where(row, comparison), row.name, *ends, outcome_text(row, comparison.margin), row.basis]


def as_json(comparison: Comparison) -> dict[str, Any]:
    """`users` of a row is a value of `factor`, which is null if the sweeps vary different things. An end of an interval
    is null if it is not known, or if there is none: of a lower bound that may be any higher."""
    name, unit = comparison.factor or (None, None)
    return {
        "a": comparison.a.label,
        "b": comparison.b.label,
        "margin": comparison.margin,
        "factor": {"name": name, "unit": unit} if name else None,
        "outcome": comparison.outcome,
        "warnings": comparison.warnings,
        "verdicts": [verdict_json(comparison.a.verdict), verdict_json(comparison.b.verdict)],
        "rows": table(comparison).replace({np.nan: None, np.inf: None}).to_dict("records"),
    }


def table(comparison: Comparison) -> pd.DataFrame:
    """One row per ratio: scope, users (or the factor's value), metric, tier, a, b, ratio, low, high, low_90, high_90,
    n, outcome, basis."""
    rows = []
    for r in comparison.rows:
        ratio = r.ratio
        ends = [getattr(ratio, k, None) for k in ("value", "low", "high", "low_90", "high_90", "n")]
        rows.append((r.scope, r.users, r.metric, r.tier, r.a, r.b, *ends, r.outcome, r.basis))
    ends = ["ratio", "low", "high", "low_90", "high_90", "n"]
    names = ["scope", "users", "metric", "tier", "a", "b", *ends, "outcome", "basis"]
    return pd.DataFrame(rows, columns=names).astype(object)
