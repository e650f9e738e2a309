"""A trial that another system measured, and the list of what is checked of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from ntier_analysis.contracts import Check, Outcome
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.validity.registry import Finding
from ntier_analysis.verdict.saturation import preference

CLIENTS, HOSTS = ("client", "controller"), ("host",)
NO_SERVERS = CLIENTS + HOSTS
SECOND_S = 1.0
"""Means of one second are what a CPU is judged by."""
SCRAPE = "scrape_s"
"""Metric that tells how long the scrape took in which a node's counters were read, s: when in it is unknown."""


@dataclass(frozen=True)
class Imported:
    """One trial: its row, its samples and nodes, its interactions (None without), and `like_shares` of its sweep."""

    row: pd.Series
    samples: pd.DataFrame
    nodes: pd.DataFrame
    interactions: pd.DataFrame | None
    shares: dict[str, float]

    @property
    def model(self) -> LoadModel:
        told = self.row.get("load_model")
        return LoadModel(told) if told is not None and pd.notna(told) else LoadModel.CLOSED

    def number(self, name: str) -> float:
        value = self.row.get(name)
        return float("nan") if value is None or pd.isna(value) else float(value)

    @property
    def run(self) -> tuple[float, float]:
        return self.number("run_start_s"), self.number("run_end_s")

    @property
    def run_s(self) -> float:
        return self.run[1] - self.run[0]

    @cached_property
    def utilization(self) -> dict[tuple[str, str, str, str], pd.DataFrame]:
        """(node, resource, item, source) -> t_s, value in order of time, all phases."""
        rows = self.samples[self.samples["metric"] == "utilization_pct"].sort_values("t_s")
        keys = [rows[name] for name in ("node", "resource", "item", "source")]
        return dict(iter(rows[["t_s", "value"]].groupby(keys)))

    @cached_property
    def inside(self) -> dict[tuple[str, str, str, str], tuple[np.ndarray, np.ndarray]]:
        """Times and values of `utilization` in the run, without gaps: each check looks at them, some in a loop."""
        start, end = self.run
        found = {}
        for key, part in self.utilization.items():
            t, value = part["t_s"].to_numpy(float), part["value"].to_numpy(float)
            rows = (t >= start) & (t < end) & ~np.isnan(value)
            found[key] = t[rows], value[rows]
        return found

    @cached_property
    def counted(self) -> dict[tuple[str, str, str, str], pd.DataFrame]:
        """The same without the sources that the verdict does not look at: of each resource one is left."""
        times = {key: t for key, (t, _) in self.inside.items()}
        order = sorted(times, key=lambda key: (not len(times[key]), preference(key[3], times[key])), reverse=True)
        best = {key[:3]: key for key in order}
        return {key: part for key, part in self.utilization.items() if best[key[:3]] == key}

    @cached_property
    def scrapes(self) -> dict[tuple[str, str], pd.Series]:
        """(node, source) -> how long its scrapes took, s, by time; empty where nobody told it."""
        rows = self.samples[self.samples["metric"] == SCRAPE]
        return {key: part.groupby("t_s")["value"].max() for key, part in rows.groupby(["node", "source"])}

    def in_run(self, part: pd.DataFrame) -> pd.DataFrame:
        """Without gaps."""
        return part[(part["t_s"] >= self.run[0]) & (part["t_s"] < self.run[1])].dropna(subset="value")

    def cpu_of(self, tiers: tuple[str, ...]) -> dict[str, np.ndarray]:
        """1-s means (or samples, if these are longer) of the CPUs of the tiers' nodes in the run."""
        names = set(self.nodes.loc[self.nodes["tier"].isin(tiers), "node"])
        busy = {}
        for key in self.counted:
            if key[0] in names and key[1] == "cpu":
                busy[key[0]] = means_of(*self.inside[key], self.run[0], SECOND_S)
        return {node: values for node, values in busy.items() if len(values)}

    @cached_property
    def completed(self) -> pd.DataFrame | None:
        """Interactions that were completed in the run."""
        done = self.interactions
        return None if done is None else done[(done["t_s"] >= self.run[0]) & (done["t_s"] < self.run[1])]


def means_of(t_s: np.ndarray, value: np.ndarray, start: float, window_s: float) -> np.ndarray:
    """Of each window of the length, in order of time; windows without a sample are left out."""
    windows = np.floor((t_s - start) / window_s)
    if (np.diff(windows) > 0).all():  # a sample in each: to group them takes twenty times as long
        return value
    return pd.Series(value).groupby(windows).mean().to_numpy(dtype=float)


REGISTERED: list[tuple[str, str, str, Callable[[Imported], Finding]]] = []


def check(id_: str, title: str, reason: str):
    """Registers a check; modules register theirs as they are imported, in the order of the page of checks."""

    def register(function: Callable[[Imported], Finding]) -> Callable[[Imported], Finding]:
        REGISTERED.append((id_, title, reason, function))
        return function

    return register


def checks(trial: Imported) -> list[Check]:
    """All checks; each must pass unless it says otherwise."""
    return [_outcome(trial, *entry) for entry in REGISTERED]


def _outcome(trial: Imported, id_: str, title: str, reason: str, function: Callable[[Imported], Finding]) -> Check:
    finding = function(trial)
    return Check(
        id=id_,
        title=title,
        required=True if finding.required is None else finding.required,
        outcome=finding.outcome,
        value=None if finding.value is None or not np.isfinite(finding.value) else float(finding.value),
        limit=finding.limit,
        unit=finding.unit,
        n=finding.n,
        standard_error=None if finding.standard_error is None else float(finding.standard_error),
        reason="" if finding.outcome is Outcome.PASS else reason,
        detail=finding.detail,
    )


def at_least(value: float, limit: float, unit: str, detail: str, n: int | None = None) -> Finding:
    return Finding(Outcome.PASS if value >= limit else Outcome.FAIL, value, limit, unit, n, None, detail)
