"""The numbers that an expectation may name, each with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ntier_analysis.errors import DataError
from ntier_analysis.statistics.throughput import at_load, of_trials
from ntier_analysis.store.tables import read_table
from ntier_analysis.verdict.store import verdicts
from ntier_analysis.verdict.tables import as_json

AT_LOAD = {
    "throughput": "throughput_per_s",
    "goodput": "goodput_per_s",
    "response_time": "response_time_mean_ms",
    "p50": "response_time_p50_ms",
    "p95": "response_time_p95_ms",
    "p99": "response_time_p99_ms",
    "errors": "errors",
}
"""Names that take a load: `p95(4000) <= 2000` (ms)."""
ALLOWED = ("max_throughput", "knee_users", "saturation(db cpu)", "invalid_trials", *(f"{n}(USERS)" for n in AT_LOAD))
NAMES = tuple(n.partition("(")[0] for n in ALLOWED)


@dataclass(frozen=True)
class Quantity:
    """A value with its 95 % interval; `low`, `high` None: unknown; equal to the value: exact."""

    value: float
    low: float | None
    high: float | None
    note: str = ""

    @property
    def text(self) -> str:
        exact = self.low == self.high == self.value
        ends = "" if exact else f" [{_short(self.low)}, {_short(self.high)}]"
        return f"{_short(self.value)}{ends}{f', {self.note}' if self.note else ''}"


def _short(value: float | None) -> str:
    return "unknown" if value is None or math.isnan(value) else f"{value:.4g}"


@dataclass(frozen=True)
class Facts:
    """One sweep: its verdict (the JSON of contract 5) and its trials."""

    verdict: dict
    trials: pd.DataFrame

    @property
    def named(self) -> str:
        """`single db cpu`, `multi alternating db cpu and app cpu`."""
        kind = self.verdict["kind"] if self.verdict["verdict"] == "multi" else ""
        found = " and ".join(f"{b['tier']} {b['resource']}" for b in self.verdict["bottlenecks"])
        return " ".join(filter(None, [self.verdict["verdict"], kind, found]))


def read_facts(store: Path, sweeps: list[str]) -> dict[str, Facts]:
    """Of the sweeps named, or of all. Raises DataError for an unknown one."""
    found = {v.sweep: as_json(v) for v in verdicts(store, sweeps)}
    return {name: Facts(verdict, read_table(store, "trials", name)) for name, verdict in found.items()}


def quantity(name: str, args: str | None, facts: Facts, text: str) -> Quantity:
    """Raises DataError where the argument is missing or names nothing."""
    verdict = facts.verdict
    if name in AT_LOAD:
        return _at_load(name, args, facts, text)
    if name == "saturation":
        return _saturation(args, verdict, text)
    if args is not None:
        raise DataError(f"expectation {text!r}: {name} takes no argument")
    if name == "invalid_trials":
        n = float((~facts.trials["valid"].fillna(False).astype(bool)).sum())
        return Quantity(n, n, n)
    value = verdict["max_throughput_per_s"]
    if value is None:
        return Quantity(float("nan"), None, None, "there is no valid trial")
    at_least = verdict["max_throughput_at_least"]
    note = "a lower bound: too few loads beyond the knee" if at_least else ""
    if name == "max_throughput":
        return Quantity(value, *_ends(verdict["max_throughput_interval"], at_least), note)
    knee = verdict["knee_users"]
    if knee is None:
        return Quantity(float("nan"), None, None, "no knee was reached")
    return Quantity(knee, *_ends(verdict["knee_interval"], at_least), note)


def _ends(interval: list[float | None], at_least: bool) -> tuple[float | None, float | None]:
    low, high = interval
    return low, math.inf if at_least and low is not None else high


def _saturation(args: str | None, verdict: dict, text: str) -> Quantity:
    wanted = (args or "").split()
    if len(wanted) != 2:
        raise DataError(f"expectation {text!r}: expected saturation(TIER RESOURCE), for example saturation(db cpu)")
    found = [b for b in verdict["bottlenecks"] if [b["tier"], b["resource"]] == wanted]
    if not found:
        return Quantity(0.0, 0.0, 0.0, "not among the bottlenecks")
    return Quantity(found[0]["saturation"], *found[0]["interval"])


def _at_load(name: str, args: str | None, facts: Facts, text: str) -> Quantity:
    loads = sorted(facts.trials["users"].unique().tolist())
    if args is None or not args.strip().isdigit() or int(args) not in loads:
        raise DataError(f"expectation {text!r}: {name} needs a load that was measured: {', '.join(map(str, loads))}")
    trials = facts.trials
    rows = trials[(trials["users"] == int(args)) & trials["valid"].fillna(False).astype(bool)]
    column = AT_LOAD[name]
    values = rows[column].dropna().astype(float)
    if values.empty:
        why = "no valid trial at this load" if rows.empty else "too few interactions"
        return Quantity(float("nan"), None, None, why)
    if name == "throughput":
        ends = (rows.loc[values.index, f"throughput_{end}_per_s"].to_numpy(float) for end in ("low", "high"))
        found = at_load(values.to_numpy(), *ends)
        note = f"{found.n} repetitions" if found.n > 1 else ""
        return Quantity(found.value, *(None if pd.isna(e) else e for e in (found.low, found.high)), note)
    if len(values) > 1 and name != "errors":
        mean = of_trials(values.to_numpy())
        return Quantity(mean.value, mean.low, mean.high, f"{len(values)} repetitions")
    value = float(values.max())
    return Quantity(value, value, value, "" if name == "errors" else "one trial, no interval")
