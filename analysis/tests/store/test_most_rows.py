"""What is written can be read again: else a sweep could neither be judged nor replaced."""

import good_import as good
import pandas as pd
import pytest
from ntier_analysis.errors import DataError
from ntier_analysis.importing import import_folder
from ntier_analysis.store import tables
from ntier_analysis.store.tables import read_table, write_tables

FIRST = good.files(interactions=False)
FIRST = {name: frame[frame["trial"] == "u00200"] for name, frame in FIRST.items()}
"""300 samples; all three trials have 900."""


def imported(folder, contents, store, **options):
    return import_folder(good.write(folder, contents), store, **options)


def test_an_import_that_passes_the_limit_is_refused_and_the_store_still_reads(tmp_path, monkeypatch):
    store = tmp_path / "store"
    imported(tmp_path / "one", FIRST, store)
    monkeypatch.setattr(tables, "MAX_ROWS", 500)
    with pytest.raises(DataError, match=r"sweep s would have 900 rows of samples, allowed are at most 500; .*--sweep"):
        imported(tmp_path / "all", good.files(interactions=False), store, replace=True)
    assert len(read_table(store, "samples")) == 300
    assert read_table(store, "trials")["trial"].tolist() == ["u00200"]


def test_of_several_sweeps_none_is_written_if_one_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "MAX_ROWS", 500)
    large = good.files(interactions=False)
    both = {name: pd.concat([FIRST[name].assign(sweep="a"), large[name]], ignore_index=True) for name in FIRST}
    with pytest.raises(DataError, match=r"sweep s would have 900 rows"):
        imported(tmp_path / "both", both, tmp_path / "store")
    assert not list((tmp_path / "store").rglob("*.parquet"))


def test_what_reads_as_too_large_is_not_written(tmp_path, monkeypatch):
    """A file of samples has rows of its own beside them: a clock's, and a series' of each metric."""
    imported(tmp_path / "one", FIRST, tmp_path / "store")
    samples = read_table(tmp_path / "store", "samples")
    for most in range(len(samples), len(samples) + 20):
        monkeypatch.setattr(tables, "MAX_ROWS", most)
        try:
            write_tables(tmp_path / "other", "s", {"samples": samples})
        except DataError:
            assert not (tmp_path / "other" / "samples" / "s.parquet").exists()
            continue
        assert len(read_table(tmp_path / "other", "samples", "s")) == len(samples)
        return
    pytest.fail("never written")
