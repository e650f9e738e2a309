"""Columns that must be equal in two sweeps so that they differ in a single thing. Comparisons, maps and tests of a
verdict by other sweeps all read this list."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pandas as pd

from ntier_analysis.contracts.implied import NAME, USERS
from ntier_analysis.contracts.system import LoadModel

MUST_EQUAL = {
    "system": "another system does other work for an interaction",
    "scale": "response times and throughput of different scale models are not comparable",
    "data_profile": "the data differ in size",
    "mix": "the mixes of interactions differ",
    "think_time_s": "the users' think times differ",
    "middleware": "another program stands before the databases",
    "policy": "reads are balanced differently",
    "tie": "ties between replicas are broken differently",
    "settings": "other settings were asked for",
    "target": "the nodes ran in different places",
    "load_model": "work arrives in another way",
    "factor": "another variable is swept",
}
"""Column of the table trials -> why sweeps that differ in it do not show what one node more, or another topology, does.
The DBMS and the nodes' type are in the topology. Columns that a store lacks or left empty count as unknown."""


IMPORTED = "imported"
"""Target of trials that were measured elsewhere."""
THINK_DIFFERS = 0.1
"""Share by which the think times of imported tests may differ, since they may be measured: a thousand thinks tell their
mean to some per cent."""

IMPLIED = {"system": NAME, "load_model": LoadModel.CLOSED.value, "factor": USERS, "settings": "{}"}
"""Meaning of an empty value in a store that is older than the column, and of an import."""


def setting(trials: pd.DataFrame, columns: Iterable[str] = MUST_EQUAL) -> tuple[tuple[str, tuple], ...]:
    """(column, its different values, sorted) of one sweep; no value: unknown."""
    return tuple((c, _values(trials[c], c) if c in trials else told((), c)) for c in columns)


def told(values: tuple, column: str) -> tuple:
    """The values, or, where there are none, what that means."""
    return values or ((IMPLIED[column],) if column in IMPLIED else ())


def _values(column: pd.Series, name: str) -> tuple:
    return told(tuple(sorted({plain(v, name) for v in column.dropna().tolist()})), name)


def plain(value: Any, column: str) -> Any:
    """What must be equal of a cell: of a system its name, since its titles and texts may change. A text that is no
    system stands for itself."""
    if column != "system":
        return value
    try:
        return json.loads(value)["name"]
    except (ValueError, TypeError, KeyError):
        return value


def differing(a: pd.DataFrame, b: pd.DataFrame, columns: Iterable[str] = MUST_EQUAL) -> dict[str, tuple[str, str]]:
    """Columns in which two sweeps differ -> what both have, as text."""
    pairs = zip(setting(a, columns), setting(b, columns), strict=True)
    return {c: (as_text(x), as_text(y)) for (c, x), (_, y) in pairs if x != y}


def as_one(low: float, high: float) -> bool:
    """Whether two think times of imports differ by no more than measured means do."""
    return high <= (1 + THINK_DIFFERS) * low


def think_times_as_one(a: pd.DataFrame, b: pd.DataFrame) -> bool:
    """Whether the think times of two imports differ by no more than measured means do."""
    known = pd.concat([f["think_time_s"] for f in (a, b) if "think_time_s" in f]).dropna().astype(float)
    return is_imported(a) and is_imported(b) and len(known) > 0 and as_one(known.min(), known.max())


def with_one_think_time(sweeps: dict[str, pd.DataFrame]) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Tables `trials` by name, in which imports whose think times differ by no more than measured means do have one
    (the smallest of them); and what was taken as one, a sentence for each."""
    imported = [f["think_time_s"].astype(float) for f in sweeps.values() if is_imported(f) and "think_time_s" in f]
    groups: list[list[float]] = []
    for value in sorted({v for column in imported for v in column.dropna()}):
        if groups and as_one(groups[-1][0], value):
            groups[-1].append(value)
        else:
            groups.append([value])
    one = {value: group[0] for group in groups for value in group}
    found = {
        name: f.assign(think_time_s=f["think_time_s"].astype(float).replace(one)) if is_imported(f) else f
        for name, f in sweeps.items()
    }
    several = [group for group in groups if len(group) > 1]
    told = [f"think_time_s is {group[0]:g} to {group[-1]:g}, measured, and taken as one" for group in several]
    return found, told


def is_imported(trials: pd.DataFrame) -> bool:
    return "target" in trials and len(trials) > 0 and bool((trials["target"] == IMPORTED).all())


def by_make(how: str, imported: bool) -> str:
    """` (REPS=3)`, behind advice to measure; nothing of imports: who measured elsewhere has no variables of make."""
    return "" if imported else f" ({how})"


def as_text(values: Iterable) -> str:
    short = [v[:7] if isinstance(v, str) and len(v) == 40 else f"{v:g}" if isinstance(v, float) else v for v in values]
    return ", ".join(map(str, short)) or "unknown"
