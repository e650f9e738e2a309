"""Verdicts of a whole store."""

from __future__ import annotations

from pathlib import Path

from ntier_analysis.errors import DataError
from ntier_analysis.store.tables import read_table, sweeps
from ntier_analysis.verdict.sweep import SweepVerdict
from ntier_analysis.verdict.tables import NEEDED_METRICS, sweep_verdict

_NEEDED = [("metric", "in", list(NEEDED_METRICS)), ("phase", "=", "run")]


def verdicts(store: Path, names: list[str]) -> list[SweepVerdict]:
    """Computed from the tables trials, samples, nodes and interactions. Raises DataError for an unknown sweep."""
    there = sweeps(store)
    unknown = [n for n in names if n not in there]
    if unknown:
        raise DataError(f"no sweep {unknown[0]!r} in {store}; there are: {', '.join(there) or 'none'}")
    return [_verdict(store, name) for name in names or there]


def _verdict(store: Path, name: str) -> SweepVerdict:
    return sweep_verdict(
        name,
        read_table(store, "trials", name),
        read_table(store, "samples", name, filters=_NEEDED),
        read_table(store, "nodes", name),
        read_table(store, "interactions", name, columns=["trial", "t_s", "ok"]),
    )
