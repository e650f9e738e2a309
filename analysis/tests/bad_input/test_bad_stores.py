# ruff: noqa: E501 (tables: a line per case)
"""Stores that are none, and tables of a store that are spoilt: exit code 2 and one clear line."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import doors
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ntier_analysis import cli
from ntier_analysis.store.tables import MAX_ROWS

pytestmark = pytest.mark.whole

READERS = [
    ("verdict", "{store}"), ("judge", "{store}"), ("demands", "--store", "{store}"), ("chains", "--store", "{store}"),
    ("search", "s", "--users", "200,1000,1400", "--store", "{store}"), ("predict", "s", "--store", "{store}"),
    ("sql", "SELECT count(*) FROM samples", "--store", "{store}"), ("cheapest", "--throughput", "5", "--store", "{store}"),
    ("compare", "s", "t", "--store", "{store}", "--anyway"), ("check", "{store}", "--expect", "max_throughput >= 1"),
    ("foresee", "s", "--topology", "1/1/1/1M", "--scale", "1", "--run-s", "60", "--store", "{store}"),
]  # fmt: skip


def read(store: Path, reader: tuple) -> doors.Done:
    return doors.call(cli.main, *(a.format(store=store) for a in reader))


@pytest.mark.parametrize("kind", ["missing", "folder", "fifo", "device", "dangling"])
@pytest.mark.parametrize("reader", READERS, ids=lambda r: r[0])
def test_what_is_no_store_is_refused(tmp_path, reader, kind):
    doors.NO_FILES[kind](tmp_path / "store")
    doors.refused(read(tmp_path / "store", reader), "store")


@pytest.fixture
def store(good, tmp_path) -> Path:
    return Path(shutil.copytree(good / "store", tmp_path / "store"))


@pytest.mark.parametrize("kind", [*doors.NO_FILES, "empty", "random", "cut", "rows"])
@pytest.mark.parametrize("table", ["trials", "samples"])
def test_a_table_that_is_no_parquet_is_refused(store, table, kind):
    path = store / table / "s.parquet"
    whole = path.read_bytes()
    path.unlink()
    if kind in doors.NO_FILES:
        doors.NO_FILES[kind](path)
    elif kind == "rows":
        pq.write_table(pa.table({"sweep": pa.nulls(MAX_ROWS + 1)}), path)
    else:
        path.write_bytes({"cut": whole[: len(whole) // 2]}.get(kind) or doors.NO_TEXTS.get(kind, bytes)(whole))
    if kind == "missing" and table == "trials":
        doors.refused(doors.call(cli.main, "demands", "s", "--store", store), "there are: t")
        return
    by_sql = [] if kind in ("missing", "rows") else [READERS[6]]  # sees the other sweep; counts without reading
    for reader in (READERS[1], READERS[2], *by_sql):
        doors.refused(read(store, reader))


ODD_NUMBERS = [None, 0, -1, 1, 1e308, float("nan"), float("inf"), 2**62]


@doors.examples(25)
@given(data=st.data())
def test_impossible_values_in_a_store_are_refused_or_judged(good, data):
    with TemporaryDirectory(dir=good.parent) as name:
        store = Path(shutil.copytree(good / "store", Path(name) / "store"))
        table = data.draw(st.sampled_from(["trials", "samples", "nodes", "interactions", "verdicts", "saturation"]))
        path = store / table / "s.parquet"
        path.write_bytes(b"")
        pq.write_table(spoilt_table(pq.read_table(good / "store" / table / "s.parquet"), data), path)
        doors.orderly(read(store, data.draw(st.sampled_from(READERS))), 0, 3)


def spoilt_table(table: pa.Table, data: st.DataObject) -> pa.Table:
    """With one column gone, of another type, or with one or only odd values."""
    index = data.draw(st.integers(0, table.num_columns - 1))
    field, column = table.schema.field(index), table.column(index).to_pylist()
    kind = data.draw(st.sampled_from(["gone", "type", "value", "value", "all", "rows", "twice"]))
    if kind == "gone":
        return table.remove_column(index)
    if kind == "rows":
        return table.slice(0, data.draw(st.integers(0, max(0, table.num_rows - 1))))
    if kind == "twice":
        return pa.concat_tables([table, table])
    if kind == "type":
        return table.set_column(index, field.name, pa.array([str(v) for v in column]))
    odd = data.draw(
        st.sampled_from(
            ODD_NUMBERS if pa.types.is_floating(field.type) or pa.types.is_integer(field.type) else doors.ODD
        )
    )
    row = data.draw(st.integers(0, max(0, table.num_rows - 1)))
    values = [odd if kind == "all" or i == row else v for i, v in enumerate(column)]
    try:
        return table.set_column(index, field, pa.array(values, type=field.type, from_pandas=False))
    except (pa.ArrowException, TypeError, OverflowError):
        return table
