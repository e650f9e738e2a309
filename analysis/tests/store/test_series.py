"""Samples on the disk: each number as the count it was made from, and the very same numbers back."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ntier_analysis.errors import DataError
from ntier_analysis.parsers.sysstat import sysstat
from ntier_analysis.store import query, series
from ntier_analysis.store.forms import Finder, values
from ntier_analysis.store.info import examine
from ntier_analysis.store.schema import SAMPLES, TABLES
from ntier_analysis.store.tables import read_table, to_table, write_table
from program import PROGRAM

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))  # the maker of node-runs lives with the bench
DATA = Path(__file__).parents[1] / "importing/data"


def back(frame: pd.DataFrame) -> tuple[pa.Table, pa.Table]:
    """As it is written, and as it is read."""
    rows = to_table("samples", frame)
    return rows, series.decoded(series.encoded(rows))


def frame_of(x, interval, t=None) -> pd.DataFrame:
    t = 1_700_000_000.0 + np.arange(len(x)) if t is None else t
    return pd.DataFrame({"sweep": "s", "trial": "u1", "t_s": t, "phase": "run", "node": "db1", "tier": "db",
                         "resource": "cpu", "metric": "some", "value": x, "unit": "pct", "source": "sysstat",
                         "item": "", "interval_s": interval})  # fmt: skip


def same_bits(a: pa.Table, b: pa.Table) -> bool:
    numbers = [n for n in a.column_names if pa.types.is_floating(a.schema.field(n).type)]
    texts = [n for n in a.column_names if n not in numbers]
    equal = all((a[n].to_numpy().view(np.int64) == b[n].to_numpy().view(np.int64)).all() for n in numbers)
    return equal and all(a[n].cast(pa.string()).equals(b[n].cast(pa.string())) for n in texts)


ticks = np.random.default_rng(1).integers(195, 206, 720)
counts = np.random.default_rng(2).integers(0, 100_000, 720).astype(float)
cs = np.random.default_rng(3).integers(99, 103, 720)
few = np.minimum(counts % 190, ticks)
KINDS = {
    "whole": counts,
    "bytes": counts * 4096,
    "decimals": np.round(counts / 977, 2),
    "rate": counts / cs * 100,
    "rate of milliseconds": counts / cs * 100 / 10,
    "rate of kilobytes": counts / cs * 100 / 1024 * 1024,
    "share of ticks": few / ticks * 100,
    "what idle leaves": 100 - few / ticks * 100 - 0.0 - (few // 50) / ticks * 100,
    "mean": counts / np.maximum(few, 1),
    "share of memory": (20_000_000 + 4 * counts) / 24_117_248 * 100,
    "share of a limit": counts / cs * 100 * 800 / 1e9,
    "constant": np.full(720, 1 / 3),
    "with gaps": np.where(counts % 7 == 0, np.nan, counts / cs * 100),
    "none": np.full(720, np.nan),
    "minus zero": np.where(counts % 2 == 0, -0.0, 1.5),
    "noise": np.random.default_rng(4).normal(size=720),
    "large": np.exp(np.random.default_rng(5).uniform(600, 700, 720)),
}
COUNTED = set(KINDS) - {"noise", "minus zero", "large"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_number_comes_back_bit_by_bit(kind):
    rows, read = back(frame_of(KINDS[kind], cs / 100))
    assert same_bits(rows, read)
    assert (Finder().find("m", KINDS[kind], cs / 100) is not None) == (kind in COUNTED)


def test_noise_is_not_taken_for_counts():
    """A form that fits by chance would cost more than the numbers themselves."""
    assert Finder().find("m", KINDS["noise"] * 50 + 500, cs / 100) is None


@pytest.mark.parametrize("kind", ["share of ticks", "what idle leaves", "mean", "share of memory", "share of a limit"])
def test_shares_and_means_are_few_counts(kind):
    """What a float would take 50 bits for."""
    form = Finder().find("m", KINDS[kind], cs / 100)
    rest = np.zeros(720) if form.rest is None else form.rest
    assert len(np.unique(rest)) <= 24
    assert np.abs(form.counts).max() < 2**25


numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=False, width=64),
    st.integers(-(2**60), 2**60).map(float),
    st.integers(-(10**7), 10**7).map(lambda n: n / 100),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=40), st.lists(st.floats(0.01, 100), min_size=1, max_size=40))
def test_any_numbers_come_back_bit_by_bit(x, interval):
    n = min(len(x), len(interval))
    x, interval = np.array(x[:n]), np.array(interval[:n])
    form = Finder().find("m", x, interval)
    if form is None:
        return
    same = values(form, interval).view(np.int64) == x.view(np.int64)
    assert (same | np.isnan(x)).all()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_rows_come_back(data):
    """Series of any lengths, times and phases, with missing labels."""
    n = data.draw(st.integers(0, 30))
    text = st.sampled_from(["a", "b", ""])
    phase = st.sampled_from(["ramp_up", "run", "ramp_down", "outside"])
    column = {"node": st.sampled_from(["db1", "db2"]), "metric": st.sampled_from(["m", "n"]),
              "item": st.one_of(st.none(), text), "unit": st.one_of(st.none(), text), "phase": phase,
              "t_s": st.one_of(st.integers(0, 10**6).map(float), st.floats(0, 1e10)), "value": numbers,
              "interval_s": st.one_of(st.just(np.nan), st.just(1.0), st.floats(0.01, 10))}  # fmt: skip
    drawn = {name: data.draw(st.lists(how, min_size=n, max_size=n)) for name, how in column.items()}
    frame = frame_of(np.array(drawn["value"], float), 1.0, np.array(drawn["t_s"], float))
    frame = frame.assign(**{k: pd.Series(v, dtype=object if k in ("item", "unit") else None) for k, v in drawn.items()})
    frame["metric"] = frame["metric"] + "_pct"
    rows, read = back(frame)
    assert same_bits(rows, read)


# ---- files ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(made_once):
    """Node-runs as rows, in one file, and in a store."""

    def make(folder):
        rows = rows_of_node_runs()
        rows.to_pickle(folder / "rows.pickle")
        pq.write_table(to_table("samples", rows), folder / "plain.parquet", compression="zstd")
        write_table(folder / "store", "samples", "s", rows)
        (folder / "store/trials").mkdir()

    return made_once("node_runs", make)


@pytest.fixture(scope="module")
def node_runs(made):
    return pd.read_pickle(made / "rows.pickle")


def rows_of_node_runs() -> pd.DataFrame:
    """Made from a real file, six minutes each."""
    from noderuns import Seed

    parts = []
    for number in range(6):
        seed, rng = Seed(DATA / "db1-12.7.5.sa.zst"), np.random.default_rng(number)
        content = seed.make(rng, 360, 1_700_000_000 + 1000 * number, busy=0.15 * number)
        part = sysstat(Path("made.sa"), own_machine=True, network_bits_s=1e9, content=content)
        parts.append(part.assign(trial=f"u{number}", node=f"db{number % 2}"))
    return pd.concat(parts).assign(sweep="s", tier="db", phase="run", source="sysstat")


def test_node_runs_take_less_than_a_byte_a_value(node_runs, made):
    """And the same numbers are read again. A row per sample takes more than twice as much, and 4.6 times as much where
    a sweep has 130 node-runs."""
    assert same_bits(to_table("samples", node_runs), to_table("samples", read_table(made / "store", "samples", "s")))
    size = (made / "store/samples/s.parquet").stat().st_size
    assert size < len(node_runs)
    assert size < (made / "plain.parquet").stat().st_size / 2


def of_version_1(frames: dict[str, pd.DataFrame], store: Path) -> None:
    for name, frame in frames.items():
        (store / name).mkdir(parents=True, exist_ok=True)
        table = to_table(name, frame)
        table = table.replace_schema_metadata(table.schema.metadata | {b"ntier_store_schema": b"1"})
        pq.write_table(table, store / name / "s.parquet", compression="zstd")


def test_a_store_of_version_1_is_read_and_migrated(demo, tmp_path):
    """The demo's store is one; SQL says the same of both, and so does each reader."""
    name = "1-1-1-1M.browse_only.shardingsphere"
    before = {table: read_table(demo, table, name).assign(sweep="s") for table in TABLES}
    of_version_1(before, tmp_path)
    before = {table: read_table(tmp_path, table, "s") for table in TABLES}
    asked = "SELECT * FROM samples WHERE trial LIKE 'u0[12]%' OR trial = 'u05000.r01' ORDER BY ALL"
    answer, told = query.run(tmp_path, asked), examine(tmp_path)
    assert told.schema_versions == {1: len(TABLES)}
    migrate = [PROGRAM, "store", "migrate", "--store", tmp_path]
    done = subprocess.run(migrate, capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path}: {len(TABLES)} files of 1 sweep written anew\n"
    now = examine(tmp_path)
    assert now.schema_versions == {2: len(TABLES)}
    assert [t.rows for t in now.tables] == [t.rows for t in told.tables]
    assert now.bytes_per_value < 0.7 * told.bytes_per_value
    for table, frame in before.items():
        pd.testing.assert_frame_equal(read_table(tmp_path, table, "s"), frame)
    pd.testing.assert_frame_equal(query.run(tmp_path, asked), answer)
    assert len(answer)
    assert "0 files" in subprocess.run(migrate, capture_output=True, text=True, check=True).stdout


def test_sql_gives_the_numbers_that_are_read(made):
    keys = ["trial", "node", "resource", "metric", "item", "t_s"]
    read = read_table(made / "store", "samples", "s").sort_values(keys, ignore_index=True)
    found = query.run(made / "store", "SELECT * FROM samples").sort_values(keys, ignore_index=True)
    assert set(found.columns) == set(SAMPLES.names)
    pd.testing.assert_frame_equal(found[read.columns], read, check_exact=True, check_dtype=False)


FILTERS = [
    [("metric", "==", "utilization_pct"), ("phase", "==", "run")],
    [("metric", "in", ["busy_pct", "queue"]), ("value", ">", 0.5)],
    [[("resource", "==", "disk")], [("t_s", "<", 1_700_000_010.0), ("node", "!=", "db0")]],
    [("resource", "==", "nothing")],
]


@pytest.mark.parametrize("filters", FILTERS)
def test_filters_leave_the_rows_that_they_leave_of_all(made, filters):
    columns = ["trial", "node", "value"]
    theirs = pq.read_table(made / "plain.parquet", columns=columns, filters=filters).to_pandas()
    ours = read_table(made / "store", "samples", "s", columns=columns, filters=filters)
    pd.testing.assert_frame_equal(ours, theirs, check_dtype=False, check_categorical=False)


SPOILT = {
    "a clock that is not there": lambda t: t.slice(1),
    "a list too short": lambda t: changed(t, "count", lambda v: v and v[:-1]),
    "no counts": lambda t: changed(t, "count", lambda _: None),
    "a phase that is none": lambda t: changed(t, "phase", lambda v: v and [9] * len(v)),
    "no clock": lambda t: changed(t, "clock", lambda _: None),
}


def changed(table: pa.Table, name: str, how) -> pa.Table:
    at = table.schema.get_field_index(name)
    made = pa.array([how(v) for v in table.column(at).to_pylist()], table.schema.field(at).type)
    return table.set_column(at, table.schema.field(at), made)


@pytest.mark.parametrize("kind", SPOILT)
def test_a_spoilt_file_is_an_error_and_no_other_numbers(made, tmp_path, kind):
    path = tmp_path / "samples/s.parquet"
    path.parent.mkdir()
    pq.write_table(SPOILT[kind](pq.read_table(made / "store/samples/s.parquet")), path)
    with pytest.raises(DataError, match=r"s\.parquet: .*rebuild it with: ntier-analysis ingest"):
        read_table(tmp_path, "samples", "s")
