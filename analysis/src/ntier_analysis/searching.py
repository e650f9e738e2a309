"""The next step of a capacity search from raw trials. No store is needed, and none is written: while a search decides,
nodes wait. A program that stays up (`standby`) reads each trial once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from ntier_analysis.described import by_load
from ntier_analysis.errors import DataError
from ntier_analysis.ingest import apart, attempts, record, trial_tables
from ntier_analysis.labels import joined
from ntier_analysis.store.schema import TABLES
from ntier_analysis.trial import RawTrial
from ntier_analysis.verdict.data import TrialData
from ntier_analysis.verdict.search import Goal, Step, next_step
from ntier_analysis.verdict.store import cores_of_idle, idle_use
from ntier_analysis.verdict.tables import sweep_scale, trial_data

TRIALS_KEPT = 64
"""What is kept of a trial is a few MB: when each interaction began and ended."""


@dataclass(frozen=True)
class Seen:
    """A trial's row of the table `trials`, what a search needs of its samples, and the use of its nodes without
    load."""

    row: pd.DataFrame
    data: list[TrialData]
    idle: pd.DataFrame


def next_of_raw(sweep: Path, goal: Goal, without: Iterable[str] = ()) -> Step:
    """The next step of the search whose trials lie in the folder `sweep` (perhaps none); those in `without` are not
    finished. A trial that cannot be read counts as none."""
    skipped = set(without)
    found = attempts(sweep) if sweep.is_dir() else {}
    newest = {name: folders[-1] for name, folders in found.items() if name not in skipped}
    looked_at = (_looked_at(sweep.name, name, folder, record(folder)) for name, folder in newest.items())
    seen = [s for s in looked_at if s is not None]
    if not seen:
        return next_step([], goal)
    trials = by_load(joined([s.row for s in seen]))
    of = {t.load.trial: t for s in seen for t in s.data}
    data = [of[str(name)] for name in trials["trial"]]
    return next_step(data, goal, sweep_scale(trials), cores_of_idle(pd.concat([s.idle for s in seen])))


class Damaged(Exception):
    """`args[0]`: what there is of a trial, a file of which cannot be read."""


def _looked_at(*trial: Any) -> Seen | None:
    """As `_seen`. What could not be read is not kept: it may be there the next time."""
    try:
        return _seen(*trial)
    except Damaged as damaged:
        return damaged.args[0]


@lru_cache(maxsize=TRIALS_KEPT)
def _seen(sweep: str, name: str, folder: Path, _record: bytes) -> Seen | None:
    """None of a trial from above, and of one that cannot be read. The record names the digest of each file, so what is
    kept is of these files. Raises Damaged."""
    try:
        found = trial_tables(RawTrial(folder))
    except DataError:
        raise Damaged(None) from None
    tables = found.tables
    if "trials" not in apart(tables):
        return None
    whose = {"sweep": sweep, "trial": name}
    trials, samples, nodes, done = (
        tables[t].assign(**whose) if t in tables else TABLES[t].empty_table().to_pandas()
        for t in ("trials", "samples", "nodes", "interactions")
    )
    data, _ = trial_data(trials, samples, nodes, done)
    seen = Seen(trials, data, idle_use(trials, samples))
    if found.problems:
        raise Damaged(seen)
    return seen
