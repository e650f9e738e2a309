"""The transition table of a mix, checked before anything is touched, as the plug-in checks it on the client."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from pathlib import Path

from ntier_harness.errors import RequestError, unknown
from ntier_harness.files import read_text

HEADER = "from,to,probability"
TARGETS_ONLY = ("Back", "EndOfSession")
SUMS = (0.9, 1.2)  # a published column of a mix sums to 1.138; a sum outside these bounds is a mistake

Table = dict[str, dict[str, float]]
"""State -> target -> probability, in the order of the file; the first state is home."""


def read_table(file: Path, known: Collection[str]) -> Table:
    """`known`: the system's interactions, which are the states that there are. Raises RequestError naming file, line
    and what is allowed."""
    rows = _rows(file)
    for state, targets in rows.items():
        if state not in known:
            raise RequestError(f"{file}: {unknown('state', state, known)}")
        for target in targets:
            if target not in rows and target not in TARGETS_ONLY:
                raise RequestError(f"{file}: state {state!r} leads to {target!r}, which has no row of its own")
        total = math.fsum(targets.values())
        if not SUMS[0] <= total <= SUMS[1]:
            raise RequestError(
                f"{file}: probabilities of state {state!r} sum to {total:.4g}; allowed are {SUMS[0]}..{SUMS[1]}"
            )
    return rows


def _rows(file: Path) -> Table:
    rows: Table = {}
    header = False
    for number, text in enumerate(read_text(file).split("\n"), 1):
        line = text.strip()
        if not line or line.startswith("#"):
            continue
        place = f"{file}:{number}"
        if not header:
            if line != HEADER:
                raise RequestError(f"{place}: expected the header {HEADER}, found {line[:80]!r}")
            header = True
            continue
        cells = line.split(",")
        if len(cells) != 3 or not all(cells):
            raise RequestError(f"{place}: expected {HEADER}, found {line[:80]!r}")
        state, target, probability = cells
        if state in TARGETS_ONLY:
            raise RequestError(f"{place}: {state} is a target only, nothing leads from it")
        if target in rows.setdefault(state, {}):
            raise RequestError(f"{place}: {state!r} to {target!r} is there twice")
        rows[state][target] = _probability(place, probability)
    if not rows:
        raise RequestError(f"{file}: no transitions; expected the header {HEADER} and a line for each")
    return rows


def _probability(place: str, text: str) -> float:
    try:
        value = float(text) if re.fullmatch(r"[0-9.eE+-]+", text) else math.nan
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise RequestError(f"{place}: probability is {text[:40]!r}; allowed is a number in 0..1")
    return value
