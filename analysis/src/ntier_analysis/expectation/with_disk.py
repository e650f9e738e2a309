"""What moved with the disk of a database: `with_disk(8000 queue up) >= 1`, or several at the same node, `with_disk(8000
statements down and cpu down) == 0`. It counts trials."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from ntier_analysis.errors import DataError
from ntier_analysis.expectation.loads import NO_TRIAL, trials_at
from ntier_analysis.expectation.quantity import UNKNOWN, Quantity
from ntier_analysis.store.tables import read_table
from ntier_analysis.verdict.moves import SOURCES
from ntier_analysis.verdict.store import chains
from ntier_analysis.wording import counted

DISK = "disk"
MOVES = {"up": 1, "down": -1}


def with_disk(args: str | None, trials: pd.DataFrame, store: Path, sweep: str, deepest: str, text: str) -> Quantity:
    """In how many valid trials at a load all that is named moved so with the disk of one node of the deepest tier
    (`verdict.moves`). A trial whose disks were not measured may be one of them."""
    load, _, words = (args or "").strip().partition(" ")
    rows = trials_at("with_disk", load, trials, text)
    wanted = {_move(part, text) for part in words.split(" and ")}
    if rows.empty:
        return Quantity(math.nan, *UNKNOWN, NO_TRIAL)
    found = chains(store, sweep)
    named = [str(t) for t in rows["trial"]]
    seen = [t for t in named if any(wanted <= {(s.name, s.sign) for s in c.steps} for c in found.get(t, []))]
    n, unknown = len(seen), len(set(named) - set(seen) - _with_disks(store, sweep, deepest))
    note = f"of {counted(len(named), 'trial')}" + (f"; the disks of {unknown} were not measured" if unknown else "")
    return Quantity(n, n, n + unknown, note)


def _move(words: str, text: str) -> tuple[str, int]:
    """`queue up` -> (queue, 1)."""
    name, move = (*words.split(), "", "")[:2]
    allowed = [name for name in SOURCES if name != DISK]
    if len(words.split()) != 2 or name not in allowed or move not in MOVES:
        raise DataError(
            f"expectation {text!r}: {words!r}: expected {', '.join(allowed)} with {' or '.join(MOVES)}, for example "
            "with_disk(8000 queue up)"
        )
    return name, MOVES[move]


def _with_disks(store: Path, sweep: str, deepest: str) -> set[str]:
    """Trials in which a disk of the deepest tier was measured."""
    wanted = [("resource", "=", DISK), ("metric", "in", [m for _, m in SOURCES[DISK]]), ("phase", "=", "run")]
    rows = read_table(store, "samples", sweep, columns=["trial", "tier"], filters=wanted)
    return {str(t) for t in rows.loc[rows["tier"] == deepest, "trial"].unique()}
