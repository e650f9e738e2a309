"""Whatever one cell of a good import is changed to: an error, a trial that does not count, or a plausible value."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import good_import as good
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ntier_analysis.errors import DataError
from ntier_analysis.importing import import_folder
from ntier_analysis.store.tables import read_table
from ntier_analysis.verdict.store import verdicts

BASE = good.files(interactions=False)
CELLS = [(name, column) for name, frame in BASE.items() for column in frame.columns]
TEXTS = [
    "",
    "nan",
    "-1",
    "-0.001",
    "inf",
    "-inf",
    "1e300",
    "0",
    "many",
    "1,5",
    "=1+1",
    "\x00",
    "🦆",
    "true",
    "db1",
    "cpu",
]
FACTORS = [-1.0, 0.0, 1 / 3600, 1e-3, 1 / 60, 0.01, 0.1, 0.5, 2.0, 10.0, 60.0, 100.0, 1e3, 3600.0, 1e6]
IMPOSSIBLE = (-1.0, 1e3, 3600.0, 1e6)
"""By these no value of the good import becomes one that could be true."""
values = st.one_of(st.sampled_from(FACTORS), st.sampled_from(TEXTS), st.text(max_size=8))


def outcome(contents: good.Files) -> tuple[str, list[str]]:
    """The sweep's verdict and the valid trials; 'error' if it was refused, and then nothing may be written."""
    with tempfile.TemporaryDirectory() as name:
        store = Path(name) / "store"
        try:
            import_folder(good.write(Path(name) / "files", contents), store)
        except DataError:
            assert not store.exists()
            return "error", []
        trials = read_table(store, "trials")
        (verdict,) = verdicts(store, list(trials["sweep"].unique()))
        said = " ".join([verdict.verdict, *(f"{b.tier} {b.resource}" for b in verdict.bottlenecks)])
        return said, trials.loc[trials["valid"], "trial"].tolist()


@cache
def good_outcome() -> tuple[str, list[str]]:
    """Of the import as it is. Not when this file is imported: each process of the tests imports it, and one runs it."""
    return outcome(BASE)


@pytest.mark.long
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.sampled_from(CELLS), st.integers(0, 10**6), values)
def test_no_cell_brings_a_wrong_verdict(place, number, value):
    name, column = place
    contents = {k: frame.copy() for k, frame in BASE.items()}
    frame = contents[name]
    row = number % len(frame)
    before = frame[column].iloc[row]
    is_number = not isinstance(before, str)
    if isinstance(value, float) and not is_number:
        value = f"{before}{value}"
    after = before * value if isinstance(value, float) else value
    cells = frame[column].astype(object)
    cells.iloc[row] = after
    frame[column] = cells
    verdict, valid = outcome(contents)
    if verdict == "error" or (verdict, valid) == good_outcome():
        return
    good_verdict, good_trials = good_outcome()
    lost = set(good_trials) - set(valid)
    plausible = is_number and isinstance(value, float) and value not in IMPOSSIBLE
    assert lost or plausible or verdict == good_verdict, (place, row, before, after, verdict)
