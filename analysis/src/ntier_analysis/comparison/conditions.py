"""Whether two sweeps were measured under conditions that allow to compare them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ntier_analysis.comparison.values import Side
from ntier_analysis.contracts import Manifest

REFUSED = {
    "scale": "response times and throughput of different scale models are not comparable",
    "data_profile": "the data differ in size",
    "mix": "the mixes of interactions differ",
    "think_time_s": "the users think differently long",
}
WARNED = ("target", "slo_ms", "git_commit")
PHASE_S = 1.0
"""Phases that differ by less are equal: they are planned in whole seconds."""
HOST = ("cores", "memory_bytes", "kernel", "os", "cgroup_version", "cpu_model")


def differences(a: Side, b: Side) -> tuple[list[str], list[str]]:
    """(what forbids a comparison, what a reader must know), one sentence each."""
    refused, warned = [], []
    for column, why in REFUSED.items():
        x, y = _values(a, column), _values(b, column)
        if x and y and x != y:
            refused.append(f"{column} is {_text(x)} and {_text(y)}: {why}")
        elif x != y:
            warned.append(f"{column} is {_text(x)} and {_text(y)}")
    for column in WARNED:
        x, y = _values(a, column), _values(b, column)
        if x != y:
            warned.append(f"{column} is {_text(x)} and {_text(y)}")
    return refused, warned + _phases(a, b) + _hosts(a, b)


def _values(side: Side, column: str) -> list:
    return sorted(side.trials[column].dropna().unique().tolist())


def _text(values: list) -> str:
    short = [v[:7] if isinstance(v, str) and len(v) == 40 else f"{v:g}" if isinstance(v, float) else v for v in values]
    return ", ".join(map(str, short)) or "unknown"


def _phases(a: Side, b: Side) -> list[str]:
    found = []
    for name, first, last in (("ramp-up", "ramp_up_start_s", "run_start_s"), ("run", "run_start_s", "run_end_s")):
        x, y = ((s.trials[last] - s.trials[first]).median() for s in (a, b))
        if pd.notna(x) and pd.notna(y) and abs(x - y) > PHASE_S:
            found.append(f"the {name} phase is {x:.0f} s and {y:.0f} s long")
    return found


def _hosts(a: Side, b: Side) -> list[str]:
    """From the manifests, where the raw results lie beside the stores."""
    x, y = _host(a), _host(b)
    if not x or not y:
        return []
    return [f"the host's {k} is {x.get(k)} and {y.get(k)}" for k in HOST if x.get(k) != y.get(k)]


def _host(side: Side) -> dict:
    folder = side.store.parent / "raw" / side.sweep
    path = next((p.parent for p in sorted(Path(folder).glob("*/manifest.json"))), None)
    try:
        host = Manifest.read(path).host if path else None
    except (OSError, ValueError):
        return {}
    return host.model_dump(exclude={"facts"}) | {"cpu_model": host.facts.get("cpu_model")} if host else {}
