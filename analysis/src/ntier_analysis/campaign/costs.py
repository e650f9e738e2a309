"""What topologies cost per hour, and the cheapest that carries a load within an objective."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pandas as pd

from ntier_analysis.campaign.cells import Cell
from ntier_analysis.errors import DataError


@dataclass(frozen=True)
class Prices:
    """Price per hour of each node type."""

    per_hour: Mapping[str, float]
    currency: str
    source: str

    def of(self, cell: Cell) -> float:
        """Price per hour of all the cell's nodes. Raises DataError for a node type without a price."""
        missing = [t for t in cell.nodes if t not in self.per_hour]
        if missing:
            raise DataError(f"prices: none for node type {missing[0]!r}; there are: {', '.join(self.per_hour)}")
        return sum(n * self.per_hour[t] for t, n in cell.nodes.items())


def read_prices(path: Path | None = None) -> Prices:
    """JSON: {"currency": "EUR", "source": "...", "per_hour": {"normal": 0.1, "low_cost": 0.03}}; without a path the
    example prices. Raises DataError naming what is wrong."""
    name = str(path or "prices.json")
    try:
        text = path.read_text() if path else (files("ntier_analysis.campaign") / "prices.json").read_text()
        document = json.loads(text)
        prices = {str(k): float(v) for k, v in document["per_hour"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f'{name}: expected JSON {{"currency", "source", "per_hour": {{type: number}}}} ({error!r})'
        ) from None
    bad = [k for k, v in prices.items() if not (v >= 0 and math.isfinite(v))]
    if bad:
        raise DataError(f"{name}: price of {bad[0]!r} is {prices[bad[0]]}, allowed is a number >= 0")
    return Prices(prices, str(document.get("currency", "")), str(document.get("source", name)))


def within(cell: Cell, slo_ms: float | None) -> tuple[float, float, float, int] | None:
    """Highest throughput measured within the objective: nominal 1/s with its 95 % interval, and its users. A load
    counts if in all its valid trials the 95th percentile is known and no longer than `slo_ms` (None: any). None if no
    load does."""
    best = None
    for users, rows in cell.loads.groupby("users"):
        if slo_ms is not None and not (rows["p95_ms"] <= slo_ms).all():  # NaN: too few to tell
            continue
        rate, low, high = (float(rows[c].mean()) for c in ("throughput_per_s", "low_per_s", "high_per_s"))
        if best is None or rate > best[0]:
            best = rate, low, high, int(users)
    return best


def cheapest(cells: list[Cell], prices: Prices, throughput_per_s: float, slo_ms: float | None) -> pd.DataFrame:
    """All cells by price. Columns sweep, topology, price_per_hour, users, throughput_per_s, low_per_s, high_per_s,
    answer: yes (the interval lies above the wanted throughput), maybe (holds it), no. Nothing is interpolated: only
    measured loads count."""
    rows = []
    for c in cells:
        found = within(c, slo_ms)
        rate, low, high, users = found or (math.nan, math.nan, math.nan, None)
        rows.append((c.sweep, str(c.topology), prices.of(c), users, rate, low, high, _answer(found, throughput_per_s)))
    columns = ["sweep", "topology", "price_per_hour", "users", "throughput_per_s", "low_per_s", "high_per_s", "answer"]
    return pd.DataFrame(rows, columns=columns).sort_values(
        ["price_per_hour", "throughput_per_s"], ascending=[True, False], ignore_index=True
    )


def _answer(found: tuple[float, float, float, int] | None, wanted: float) -> str:
    if found is None:
        return "no"
    rate, low, high, _ = found
    if math.isnan(low):
        return "maybe" if rate >= wanted else "no"
    return "yes" if low >= wanted else "maybe" if high >= wanted else "no"
