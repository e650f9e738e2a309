"""The next step of a capacity search from raw trials. No store is needed, and none is written: while a search decides,
nodes wait. A program that stays up (`standby`) reads each trial once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

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
    """The next step of the search whose trials lie in the folder `sweep` (perhaps none yet); those in `without` are not
    finished. A trial that cannot be read counts as none. Raises DataError if nothing is where sweeps should lie."""
    if not sweep.parent.is_dir():
        there = "is no folder" if sweep.parent.exists() else "there is no such folder"
        raise DataError(f"{sweep.parent}: {there}; expected a folder of raw results, with a folder for each sweep")
    skipped = set(without)
    found = attempts(sweep) if sweep.is_dir() else {}
    newest = {name: folders[-1] for name, folders in found.items() if name not in skipped}
    seen = [s for name, folder in newest.items() if (s := _seen(sweep.name, name, folder)) is not None]
    if not seen:
        return next_step([], goal)
    trials = by_load(joined([s.row for s in seen]))
    of = {t.load.trial: t for s in seen for t in s.data}
    data = [of[str(name)] for name in trials["trial"]]
    return next_step(data, goal, sweep_scale(trials), cores_of_idle(pd.concat([s.idle for s in seen])))


_kept: dict[Path, tuple[bytes, Seen | None]] = {}
"""Trial -> its record when it was read, which names the digest of each file, and what was seen."""


def _seen(sweep: str, name: str, folder: Path) -> Seen | None:
    """None of a trial from above, and of one that cannot be read. What could not be read is not kept: it may be there
    the next time."""
    written = record(folder)
    if folder in _kept and _kept[folder][0] == written:
        return _kept[folder][1]
    try:
        found = trial_tables(RawTrial(folder))
    except DataError:
        return None
    seen = _of_tables(sweep, name, found.tables) if "trials" in apart(found.tables) else None
    if not found.problems:
        while len(_kept) >= TRIALS_KEPT:
            del _kept[next(iter(_kept))]
        _kept[folder] = written, seen
    return seen


def _of_tables(sweep: str, name: str, tables: dict[str, pd.DataFrame]) -> Seen:
    whose = {"sweep": sweep, "trial": name}
    trials, samples, nodes, done = (
        tables[t].assign(**whose) if t in tables else TABLES[t].empty_table().to_pandas()
        for t in ("trials", "samples", "nodes", "interactions")
    )
    data, _ = trial_data(trials, samples, nodes, done)
    return Seen(trials, data, idle_use(trials, samples))
