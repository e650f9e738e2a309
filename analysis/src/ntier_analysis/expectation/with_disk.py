"""What moved with the disk of a database: `with_disk(8000 queue up) >= 1`, or several at the same node, `with_disk(8000
statements down and cpu down) == 0`. It counts trials."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from ntier_analysis.errors import DataError
from ntier_analysis.expectation.loads import NO_TRIAL, trials_at
from ntier_analysis.expectation.quantity import UNKNOWN, Quantity
from ntier_analysis.verdict.moves import DISK, SOURCES, Looked
from ntier_analysis.verdict.store import with_disks
from ntier_analysis.wording import counted

MOVES = {"up": 1, "down": -1}


def with_disk(args: str | None, trials: pd.DataFrame, store: Path, sweep: str, text: str) -> Quantity:
    """In how many valid trials at a load all that is named moved so with the disk of one node of the deepest tier
    (`verdict.moves`). A trial may be one of them unless its samples rule that out at every node: that no link is
    significant does not suffice."""
    load, _, words = (args or "").strip().partition(" ")
    rows = trials_at("with_disk", load, trials, text)
    wanted = {_move(part, text) for part in words.split(" and ")}
    if rows.empty:
        return Quantity(math.nan, *UNKNOWN, NO_TRIAL)
    looked = with_disks(store, sweep)
    moved = [_moved(looked.get(str(trial), []), wanted) for trial in rows["trial"]]
    n, open_ = moved.count(True), moved.count(None)
    note = f"of {counted(len(rows), 'trial')}"
    if open_:
        why = "not everything was measured at each node, or the run is too short to rule it out"
        note += f"; in {open_} more it may have: {why}"
    return Quantity(n, n, n + open_, note)


def _moved(nodes: list[Looked], wanted: set[tuple[str, int]]) -> bool | None:
    """Of one trial; None: not known."""
    found = [node.moved(wanted) for node in nodes]
    return True if True in found else None if not found or None in found else False


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
