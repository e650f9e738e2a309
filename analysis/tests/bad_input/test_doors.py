# ruff: noqa: E501, PT017 (tables: a line per case; most cases may be taken or refused)
"""Every door of `ntier-analysis`, with all kinds of bad input: exit code 2 and one clear line, soon, in little memory.

What the kinds are, and how to run more of the random ones: setup/doors.py."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import doors
import good_import
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from ntier_analysis import cli
from ntier_analysis.contracts.files import GIB, lines, replacing
from ntier_analysis.errors import DataError
from ntier_analysis.importing import import_folder
from ntier_analysis.store.tables import MAX_ROWS, locked
from ntier_analysis.trial import RawTrial
from synthetic import T0, Spec, Truth, sysstat_json, write_trial

pytestmark = pytest.mark.whole

PEAK_BYTES = {"zst": 0.75 * GIB, "json": 2.5 * GIB}
"""No refusal takes more memory: 0.4 GB were seen for tables, of which the program itself takes 0.25, and 2.3 GB for 60
MiB of JSON, which become 20 million objects."""
RUN = ("--topology", "1/1/1/1M", "--ramp-up", 1, "--ramp-down", 1, "--users", 30)


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One good file for each door."""
    folder = tmp_path_factory.mktemp("good")
    contents = good_import.files()
    contents["interactions"] = contents["interactions"].groupby("trial").head(40)
    good_import.write(folder / "in", contents)
    rows = [f"{1_790_000_000_000 + 100 * i},{40 + i % 7},Home,200,true,512,30" for i in range(300)]
    (folder / "run.jtl").write_text(
        "\n".join(["timeStamp,elapsed,label,responseCode,success,bytes,allThreads", *rows, ""])
    )
    (folder / "db1.json").write_text(sysstat_json(T0 + np.arange(30.0), np.full(30, 40.0), "db1"))
    (folder / "runs.csv").write_text("jtl,sa,users,trial\nrun.jtl,db1=db1.json,30,one\n")
    (folder / "prices.json").write_text(
        '{"currency": "EUR", "source": "x", "per_hour": {"normal": 0.1, "low_cost": 0.03}}'
    )
    (folder / "expected.yaml").write_text(
        's:\n  - "max_throughput >= 10"\nt: {verdict: single, knee_users: [1, 5000]}\n'
    )
    for name, content in load_generators().items():
        (folder / name).write_text(content)
    import_folder(folder / "in", folder / "store")
    other = {name: frame.assign(sweep="t") for name, frame in contents.items()}
    other["trials"] = other["trials"].assign(topology="1/1/1/2M")
    import_folder(good_import.write(folder / "other", other), folder / "store")
    return folder


def load_generators() -> dict[str, str]:
    """Files of load generators and of Prometheus: 30 users for 30 s, each beside the others."""
    t0, seconds = 1_790_000_000, range(31)
    k6 = ["metric_name,timestamp,metric_value,error_code,expected_response,name,status"]
    k6 += [f"vus,{t0 + s},30,,,," for s in seconds]
    k6 += [f"http_req_duration,{t0 + i // 10},{40 + i % 7},,true,Home,200" for i in range(300)]
    points = [{"metric": "vus", "value": 30, "time": f"2026-09-21T14:13:{20 + s}Z"} for s in range(30)]
    points += [
        {"metric": "http_req_duration", "value": 40, "time": f"2026-09-21T14:13:{20 + i // 10}.{i % 10}Z"}
        for i in range(300)
    ]
    lines = [
        {
            "type": "Point",
            "metric": p["metric"],
            "data": {"time": p["time"], "value": p["value"], "tags": {"name": "Home", "status": "200"}},
        }
        for p in points
    ]
    locust = ["Timestamp,User Count,Type,Name,Total Request Count,Total Failure Count,Total Average Response Time"]
    locust += [f"{t0 + s},30,,Aggregated,{10 * s},0,40.5" for s in seconds]
    gatling = [f"RUN\tSteps\tsteps\t{t0}000\t \t3.10.5", *[f"USER\tReader\tSTART\t{t0}000"] * 30]
    gatling += [f"REQUEST\t\tHome\t{1000 * t0 + 100 * i}\t{1000 * t0 + 100 * i + 40}\tOK\t " for i in range(300)]
    gatling += [f"USER\tReader\tEND\t{t0 + 30}000"] * 30
    series = {mode: [(t0 + s, 100 + share * s) for s in seconds] for mode, share in (("user", 0.4), ("idle", 0.6))}
    dump = [
        f'node_cpu_seconds_total{{cpu="0",instance="db1:9100",mode="{m}"}} {v} {t}'
        for m, points in series.items()
        for t, v in points
    ]
    labels = {"__name__": "node_cpu_seconds_total", "cpu": "0", "instance": "db1:9100"}
    result = [
        {"metric": labels | {"mode": m}, "values": [[t, str(v)] for t, v in points]} for m, points in series.items()
    ]
    return {
        "k6.csv": "\n".join([*k6, ""]),
        "k6.json": "\n".join([*map(json.dumps, lines), ""]),
        "history.csv": "\n".join([*locust, ""]),
        "requests.csv": "\n".join(
            ["timestamp,name,response_time", *(f"{t0 + i // 10},Home,40" for i in range(300)), ""]
        ),
        "simulation.log": "\n".join([*gatling, ""]),
        "dump.txt": "\n".join([*dump, "# EOF", ""]),
        "answers.json": json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}),
        "map.yaml": "match: {instance: db1.*}\nnodes:\n  - {node: db1, match: db1, tier: db}\n",
        "loads.csv": "start,end,users,trial\n1,25,30,one\n",
    }


@dataclass(frozen=True)
class Door:
    """A file that a command reads; `{at}` in its arguments is the folder. `others`: exit codes beside 0 and 2."""

    file: str
    arguments: tuple
    others: tuple[int, ...] = ()

    def call(self, at: Path) -> doors.Done:
        return doors.call(cli.main, *(str(a).format(at=at) for a in self.arguments))


FOLDER = ("import", "{at}/in", "--store", "{at}/new")
FILES = ("import", "--jtl", "{at}/run.jtl", "--sa", "db1={at}/db1.json", *RUN, "--store", "{at}/new")
DUMP = ("--prometheus", "{at}/dump.txt", "--topology", "1/1/1/1M", "--store", "{at}/new")
DOORS = {
    "trials": Door("in/trials.csv", FOLDER),
    "samples": Door("in/samples.csv", FOLDER),
    "interactions": Door("in/interactions.csv", FOLDER),
    "jtl": Door("run.jtl", FILES),
    "sysstat": Door("db1.json", FILES),
    "runs": Door("runs.csv", ("import", "--runs", "{at}/runs.csv", *RUN, "--store", "{at}/new")),
    "k6": Door("k6.csv", ("import", "--k6", "{at}/k6.csv", *DUMP)),
    "k6 json": Door("k6.json", ("import", "--k6", "{at}/k6.json", *DUMP)),
    "locust": Door("history.csv", ("import", "--locust", "{at}/history.csv", *DUMP)),
    "requests": Door("requests.csv", ("import", "--locust", "{at}/requests.csv", "--users", 30, *DUMP)),
    "gatling": Door("simulation.log", ("import", "--gatling", "{at}/simulation.log", *DUMP)),
    "dump": Door("dump.txt", ("import", "--k6", "{at}/k6.csv", *DUMP)),
    "answers": Door("answers.json", ("import", "--k6", "{at}/k6.csv", "--prometheus", "{at}/answers.json", *DUMP[2:])),
    "mapping": Door("map.yaml", ("import", "--k6", "{at}/k6.csv", "--mapping", "{at}/map.yaml", *DUMP)),
    "loads": Door("loads.csv", ("import", "--k6", "{at}/k6.csv", "--loads", "{at}/loads.csv", *DUMP)),
    "prices": Door("prices.json", ("cheapest", "--throughput", 50, "--prices", "{at}/prices.json", "--store", "{at}/store"), (3,)),
    "expected": Door("expected.yaml", ("check", "{at}/store", "{at}/expected.yaml"), (3,)),
}  # fmt: skip
TABLES = ("trials", "samples", "interactions", "jtl", "runs", "k6", "locust", "requests", "loads")
JSONS = ("sysstat", "prices", "answers")
LINES = ("k6 json", "gatling", "dump", "mapping")
"""Texts of other forms: only their bytes are spoilt."""
PEOPLE = ("prices", "expected", "mapping")


@contextmanager
def copied(good: Path, door: Door, content: bytes | None = None) -> Iterator[Path]:
    """A copy without the door's file, or with this content."""
    with TemporaryDirectory(dir=good.parent) as name:
        at = Path(name)
        for entry in good.iterdir():  # what is not spoilt is not copied
            if entry.name == Path(door.file).parts[0] and entry.is_dir():
                shutil.copytree(entry, at / entry.name)
            else:
                (at / entry.name).symlink_to(entry)
        (at / door.file).unlink()
        if content is not None:
            (at / door.file).write_bytes(content)
        yield at


def nothing_left(at: Path) -> None:
    assert not (at / "new").exists(), "a store of a refused import"


# ---- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DOORS)
def test_the_good_file_is_taken_also_with_a_byte_order_mark(good, name):
    door = DOORS[name]
    with copied(good, door, b"\xef\xbb\xbf" + (good / door.file).read_bytes()) as at:
        done = door.call(at)
        assert done.code in (0, *door.others), done


@pytest.mark.parametrize("kind", doors.NO_FILES)
@pytest.mark.parametrize("name", DOORS)
def test_only_a_regular_file_is_read(good, name, kind):
    door = DOORS[name]
    if (name, kind) == ("interactions", "missing"):
        pytest.skip("may be missing")
    with copied(good, door) as at:
        doors.NO_FILES[kind](at / door.file)
        doors.refused(door.call(at), Path(door.file).name)
        nothing_left(at)


WRONG = {(name, kind): make for name in DOORS for kind, make in doors.NO_TEXTS.items()} | {
    (name, kind): make for name in PEOPLE for kind, make in doors.DOCUMENTS.items()
}


@pytest.mark.parametrize(("name", "kind"), WRONG)
def test_what_is_no_such_text_or_document_is_refused(good, name, kind):
    door = DOORS[name]
    with copied(good, door, WRONG[name, kind]((good / door.file).read_bytes())) as at:
        doors.refused(door.call(at), Path(door.file).name)
        nothing_left(at)


@pytest.mark.parametrize("kind", ["cut", "noise", "bomb", "window", "frames"])
@pytest.mark.parametrize("name", ["jtl", "sysstat"])
def test_a_bad_archive_is_refused(good, name, kind):
    door = DOORS[name]
    whole = zstandard.compress((good / door.file).read_bytes())
    content = {
        "cut": whole[: len(whole) // 2],
        "noise": b"\x28\xb5\x2f\xfd" + b"\x7f" * 100,
        "bomb": zstandard.compress(bytes(300 * 2**20)),
        "window": b"\x28\xb5\x2f\xfd\x00\xff" + b"\0" * 20,
        "frames": whole + b"rubbish",
    }[kind]
    packed = Door(door.file + ".zst", tuple(str(a).replace(door.file, door.file + ".zst") for a in door.arguments))
    with copied(good, door) as at:
        (at / packed.file).write_bytes(content)
        doors.refused(packed.call(at), Path(packed.file).name)


@pytest.mark.parametrize("name", TABLES)
@doors.examples(8)
@given(data=st.data())
def test_a_spoilt_table_is_refused_or_taken(good, name, data):
    door = DOORS[name]
    content = (good / door.file).read_bytes()
    with copied(good, door, data.draw(st.one_of(doors.spoilt_csv(content), doors.spoilt_bytes(content)))) as at:
        doors.orderly(door.call(at), 0)


@pytest.mark.parametrize("name", LINES)
@doors.examples(8)
@given(data=st.data())
def test_a_spoilt_text_is_refused_or_taken(good, name, data):
    door = DOORS[name]
    with copied(good, door, data.draw(doors.spoilt_bytes((good / door.file).read_bytes()))) as at:
        doors.orderly(door.call(at), 0)


@pytest.mark.parametrize("name", JSONS)
@doors.examples(12)
@given(data=st.data())
def test_a_spoilt_json_is_refused_or_taken(good, name, data):
    door = DOORS[name]
    content = (good / door.file).read_bytes()
    other = doors.spoilt_document(json.loads(content)).map(lambda spoilt: json.dumps(spoilt).encode())
    with copied(good, door, data.draw(st.one_of(other, doors.spoilt_bytes(content)))) as at:
        doors.orderly(door.call(at), 0, *door.others)


@doors.examples(12)
@given(data=st.data())
def test_spoilt_expectations_are_refused_or_judged(good, data):
    door = DOORS["expected"]
    import yaml

    content = (good / door.file).read_bytes()
    other = doors.spoilt_document(yaml.safe_load(content)).map(lambda spoilt: yaml.safe_dump(spoilt).encode())
    with copied(good, door, data.draw(st.one_of(other, doors.spoilt_bytes(content)))) as at:
        doors.orderly(door.call(at), 0, 3)


# ---- folders to write to -------------------------------------------------------------------------------------------

WRITERS = {
    "import": (*FOLDER[:3], "{to}"),
    "import files": (*FILES[:-1], "{to}"),
    "ingest": ("ingest", "--raw", "{at}/in", "--store", "{to}"),
    "report": ("report", "s", "--store", "{at}/store", "--out", "{to}"),
    "map": ("map", "--store", "{at}/store", "--out", "{to}"),
    "compare": ("compare", "s", "t", "--store", "{at}/store", "--anyway", "--out", "{to}"),
    "policies": ("policies", "s", "t", "--store", "{at}/store", "--out", "{to}"),
    "demo": ("demo", "--out", "{to}"),
    "figure": ("figure", "s", "--kind", "load-throughput", "--store", "{at}/store", "--out", "{to}/a.png"),
    "predict": ("predict", "s", "--store", "{at}/store", "--jmt", "{to}/a.jsimg"),
}


@pytest.mark.parametrize("kind", doors.UNWRITABLE)
@pytest.mark.parametrize("name", WRITERS)
def test_where_nothing_can_be_written_nothing_is_begun(good, tmp_path, name, kind):
    to = doors.UNWRITABLE[kind](tmp_path)
    done = doors.call(cli.main, *(str(a).format(at=good, to=to) for a in WRITERS[name]))
    doors.refused(
        done, "--store" if name.startswith(("import", "ingest")) else "--jmt" if name == "predict" else "--out"
    )
    assert done.out == ""


def test_a_file_in_the_place_of_a_table_is_refused(good, tmp_path):
    (tmp_path / "samples").write_text("")
    doors.refused(doors.call(cli.main, "import", good / "in", "--store", tmp_path), "samples")


def test_two_imports_at_once_both_end_well(good, tmp_path):
    """Each with a repetition of its own: the store has both."""
    program = [sys.executable, "-m", "ntier_analysis.cli"]
    arguments = [str(a).format(at=good) for a in FILES[:-1]]
    both = [subprocess.Popen([*program, *arguments, str(tmp_path), "--rep", str(rep)]) for rep in (1, 2)]
    assert [p.wait(timeout=120) for p in both] == [0, 0]
    done = doors.call(cli.main, "sql", "SELECT trial FROM trials ORDER BY 1", "--csv", "--store", tmp_path)
    assert done.out.split() == ["trial", "u00030.r01", "u00030.r02"]
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_store_that_another_writes_to_is_named(good, tmp_path, monkeypatch):
    monkeypatch.setattr("ntier_analysis.store.tables.LOCK_S", 0.1)
    with locked(tmp_path):
        doors.refused(
            doors.call(cli.main, *FOLDER[:1], good / "in", "--store", tmp_path), str(tmp_path), "another program"
        )


def test_two_writers_of_one_file_do_not_meet(tmp_path):
    path = tmp_path / "a"
    with replacing(path) as one, replacing(path) as two:
        one.write_text("one")
        two.write_text("two")
    assert path.read_text() == "one"
    assert list(tmp_path.iterdir()) == [path]


# ---- the store -----------------------------------------------------------------------------------------------------

READERS = [
    ("verdict", "{store}"), ("judge", "{store}"), ("demands", "--store", "{store}"), ("chains", "--store", "{store}"),
    ("search", "s", "--users", "200,1000,1400", "--store", "{store}"), ("predict", "s", "--store", "{store}"),
    ("sql", "SELECT count(*) FROM samples", "--store", "{store}"), ("cheapest", "--throughput", "5", "--store", "{store}"),
    ("compare", "s", "t", "--store", "{store}", "--anyway"), ("check", "{store}", "--expect", "max_throughput >= 1"),
]  # fmt: skip


def read(store: Path, reader: tuple) -> doors.Done:
    return doors.call(cli.main, *(a.format(store=store) for a in reader))


@pytest.mark.parametrize("kind", ["missing", "folder", "fifo", "device", "dangling"])
@pytest.mark.parametrize("reader", READERS, ids=lambda r: r[0])
def test_what_is_no_store_is_refused(tmp_path, reader, kind):
    if reader[0] == "search" and kind in ("missing", "folder"):
        pytest.skip("a search begins without one")
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


# ---- numbers of the command line -----------------------------------------------------------------------------------

OPTIONS = [
    *[(*FILES, option) for option in ("--users", "--ramp-up", "--ramp-down", "--think-time", "--slo-ms", "--rep")],
    ("cheapest", "--store", "{at}/store", "--throughput"), ("cheapest", "--store", "{at}/store", "--throughput", "5", "--slo-ms"),
    ("compare", "s", "t", "--store", "{at}/store", "--anyway", "--margin"),
    ("search", "s", "--store", "{at}/store", "--users"), ("search", "s", "--store", "{at}/store", "--users", "200,1000", "--precision"),
    ("search", "s", "--store", "{at}/store", "--users", "200,1000", "--most"),
    ("foresee", "s", "--store", "{at}/store", "--topology", "1/1/1/1M", "--scale", "1", "--run-s"),
    ("foresee", "s", "--store", "{at}/store", "--topology", "1/1/1/1M", "--run-s", "60", "--scale"),
    ("predict", "s", "--store", "{at}/store", "--topo"), ("predict", "s", "--store", "{at}/store", "--topo", "1/1/1/1ML", "--cores"),
    ("check", "{at}/store", "--expect"), ("verdict", "{at}/store", "--sweep"),
]  # fmt: skip
NUMBERS = ["0", "-1", "nan", "inf", "1e308", "½", "1" * 5000, "low_cost=inf"]


@pytest.mark.parametrize("arguments", OPTIONS, ids=lambda a: f"{a[0]} {a[-1]}")
def test_an_odd_number_is_refused_or_taken(good, tmp_path, arguments):
    for at in good.iterdir():
        (tmp_path / at.name).symlink_to(at)
    for number in NUMBERS:
        done = doors.call(cli.main, *(str(a).format(at=tmp_path) for a in arguments), number)
        shutil.rmtree(tmp_path / "new", ignore_errors=True)
        if done.code == 2 and not any(line.startswith("error: ") for line in done.err.splitlines()):
            assert "Invalid value" in done.err, done  # of the command line's own parser
        else:
            doors.orderly(done, 0, 3)


@pytest.mark.parametrize("margin", ["200", "0", "nan"])
def test_a_margin_is_refused_in_the_unit_in_which_it_was_given(good, margin):
    """Per cent: of --margin 200 it said that 2 is no share."""
    done = doors.call(cli.main, "compare", "s", "t", "--store", good / "store", "--anyway", "--margin", margin)
    doors.refused(done, f"--margin is {margin}, allowed are per cent between 0 and 100")


@pytest.mark.parametrize("command", [("verdict",), ("judge",), ("densities", "--out", "new")])
def test_a_sweep_in_the_place_of_its_store_is_told_where_the_store_goes(good, tmp_path, monkeypatch, command):
    """Other commands take sweeps only."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results/store").symlink_to(good / "store")
    monkeypatch.chdir(tmp_path)
    done = doors.call(cli.main, *command, "s")
    doors.refused(done, "s: is a sweep of results/store, and no store: name the store before it, results/store s")
    assert not (tmp_path / "new").exists()


# ---- raw trials ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    truth = Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.0012})
    folder = write_trial(tmp_path_factory.mktemp("raw"), Spec(300, truth, phases=(2.0, 6.0, 1.0), seal=False))
    (folder.parent / "search.json").write_text(
        json.dumps({"decisions": [{"users": 300, "reason": "low", "why": "x"}], "grid": [300]})
    )
    return folder


def raw_parts(folder: Path) -> dict[str, Callable[[RawTrial], object]]:
    """File -> what reads it."""
    client = "clients/client1/"
    parts: dict[str, Callable[[RawTrial], object]] = {
        client + "interactions.jtl.csv": lambda t: t.interactions,
        client + "thinks.csv": lambda t: t.thinks,
        client + "users.csv": lambda t: t.users,
        client + "progress.csv": lambda t: t.progress,
        "nodes/web1/logs/access.log": lambda t: t.web_logs,
        "nodes/db1/facts_before.json": lambda t: t.facts("db1", "before"),
    }
    for node, collector in RawTrial(folder).collectors():
        name = "sysstat.json" if collector == "sysstat" else f"{collector}.csv"
        parts[f"nodes/{node}/{name}"] = lambda t, n=node, c=collector: t.samples_of(n, c)
    return parts


@contextmanager
def spoilt_trial(folder: Path, relative: str, content: bytes | Callable[[Path], None]) -> Iterator[RawTrial]:
    """The trial with one other file; what stays is linked."""
    with TemporaryDirectory(dir=folder.parents[2]) as name:
        at = Path(name) / folder.name
        shutil.copytree(folder, at, copy_function=os.link)
        for path in (at / relative, at / f"{relative}.zst"):
            path.unlink(missing_ok=True)
        content(at / relative) if callable(content) else (at / relative).write_bytes(content)
        yield RawTrial(at)


def content_of(folder: Path, relative: str) -> bytes:
    path = folder / relative
    if path.exists():
        return path.read_bytes()
    return zstandard.ZstdDecompressor().stream_reader((folder / f"{relative}.zst").read_bytes()).read()


def test_each_raw_file_is_read_or_refused(trial):
    """All kinds of what is no file or no text, at each file of a trial."""
    cases = 0
    for relative, reader in raw_parts(trial).items():
        good = content_of(trial, relative)
        kinds = {**doors.NO_FILES, **{k: make(good) for k, make in doors.NO_TEXTS.items()}}
        for kind, content in kinds.items():
            cases += 1
            with spoilt_trial(trial, relative, content) as folder, doors.within(doors.LIMIT_S):
                try:
                    reader(folder)
                except DataError as error:
                    assert Path(relative).name in str(error), (relative, kind)
                    assert len(str(error)) < 1000, (relative, kind)
                else:
                    lenient = relative.endswith(".log") or kind in ("comments", "latin1")
                    assert lenient or kind in ("empty", "blank"), (relative, kind)
    assert cases > 300


@doors.examples(60)
@given(data=st.data())
def test_a_spoilt_raw_file_is_read_or_refused(trial, data):
    parts = raw_parts(trial)
    relative = data.draw(st.sampled_from(sorted(parts)))
    good = content_of(trial, relative)
    kinds = [doors.spoilt_bytes(good)]
    if relative.endswith(".csv"):
        kinds.append(doors.spoilt_csv(good))
    if relative.endswith(".json"):
        kinds.append(doors.spoilt_document(json.loads(good)).map(lambda spoilt: json.dumps(spoilt).encode()))
    with spoilt_trial(trial, relative, data.draw(st.one_of(kinds))) as spoilt, doors.within(doors.LIMIT_S):
        try:
            parts[relative](spoilt)
        except DataError as error:
            assert str(trial.name) in str(error)


@pytest.mark.parametrize("kind", [*doors.NO_FILES, *doors.NO_TEXTS])
def test_a_manifest_of_another_kind_is_refused(trial, tmp_path, kind):
    shutil.copytree(trial, tmp_path / "t", copy_function=os.link)
    path = tmp_path / "t" / "manifest.json"
    path.unlink()
    if kind in doors.NO_FILES:
        doors.NO_FILES[kind](path)
    else:
        path.write_bytes(doors.NO_TEXTS[kind]((trial / "manifest.json").read_bytes()))
    doors.refused(doors.call(cli.main, "validate", tmp_path / "t"), "manifest.json")


@pytest.mark.parametrize(
    ("field", "value"),
    [("users", 0), ("users_real", -1), ("scale", 0), ("scale", float("nan")), ("think_time_s", 0), ("rep", 0),
     ("slo_ms", -1), ("mix", "../../etc/passwd"), ("sweep", "a/b"), ("phases.1.end_s", 0.0), ("phases.1.start_s", 1e300),
     ("nodes.0.cpu_cores", 0), ("nodes.0.name", "../x"), ("host.cores", 0), ("collectors", {"../x": ["tcp"]}), ("state", "done"), ("odd", 1)],
)  # fmt: skip
def test_an_impossible_value_in_a_manifest_is_named(trial, tmp_path, field, value):
    document = json.loads((trial / "manifest.json").read_text())
    *path, last = [int(p) if p.isdigit() else p for p in field.split(".")]
    place = document
    for part in path:
        place = place[part]
    place[last] = value
    (tmp_path / "manifest.json").write_text(json.dumps(document))
    doors.refused(
        doors.call(cli.main, "validate", tmp_path), "manifest.json", "" if value != value else field.split(".")[0]
    )


@doors.examples(25)
@given(data=st.data())
def test_a_spoilt_manifest_is_refused_or_taken(trial, data):
    document = json.loads((trial / "manifest.json").read_text())
    with TemporaryDirectory(dir=trial.parents[2]) as name:
        (Path(name) / "manifest.json").write_text(json.dumps(data.draw(doors.spoilt_document(document))))
        doors.orderly(doors.call(cli.main, "validate", name), 0)


@pytest.mark.parametrize(
    "kind", [k for k in (*doors.NO_FILES, *doors.NO_TEXTS) if k not in ("missing", "dangling", "loop")]
)
def test_the_record_of_a_search_of_another_kind_is_refused(trial, tmp_path, kind):
    (tmp_path / "s").mkdir()
    path = tmp_path / "s" / "search.json"
    if kind in doors.NO_FILES:
        doors.NO_FILES[kind](path)
    else:
        path.write_bytes(doors.NO_TEXTS[kind](b'{"decisions": [], "grid": [1, 2, 3, 4, 5, 6]}'))
    doors.refused(doors.call(cli.main, "ingest", "--raw", tmp_path, "--store", tmp_path / "store"), "search.json")


# ---- memory --------------------------------------------------------------------------------------------------------

CHILD = """
import re, sys, doors
from pathlib import Path
from ntier_analysis import cli
for line in Path(sys.argv[1]).read_text().splitlines():
    doors.refused(doors.call(cli.main, *line.split()))
    peak = re.search("VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
    print(line.split()[-1], int(peak[1]) * 1024)
"""


def child(code: str, *arguments: object, limit: str = "") -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(p for p in sys.path if p)
    command = [sys.executable, "-c", limit + code, *map(str, arguments)]
    return subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_no_door_takes_more_memory_than_stated(good, tmp_path):
    """What is small on the disk and large in memory, or is as large as it may be."""
    inside = {
        "zeros.jtl.zst": zstandard.compress(bytes(2**28)),
        "lines.jtl.zst": zstandard.compress(b"timeStamp,elapsed,label,success\n" + b"1790000000000,1,a,maybe\n" * 2_000_000),
        "quote.jtl.zst": zstandard.compress(b'timeStamp,elapsed,label,success\n1790000000000,1,"a\n' + b"1,2,3,4\n" * 2_000_000),
    }  # fmt: skip
    calls = []
    for name, content in inside.items():
        (tmp_path / name).write_bytes(content)
        calls.append(
            f"import --sa db1={good}/db1.json --topology 1/1/1/1M --store {tmp_path}/new --jtl {tmp_path}/{name}"
        )
    (tmp_path / "objects.json").write_bytes(b'{"sysstat": [' + b"{}," * (20 * 2**20) + b"0]}")
    calls.append(
        f"import --jtl {good}/run.jtl --topology 1/1/1/1M --store {tmp_path}/new --sa db1={tmp_path}/objects.json"
    )
    (tmp_path / "calls").write_text("\n".join(calls))
    done = child(CHILD, tmp_path / "calls")
    assert done.returncode == 0, done.stderr[-2000:]
    for line in done.stdout.splitlines():
        name, peak = line.split()
        assert int(peak) < PEAK_BYTES[name.rpartition(".")[2]], done.stdout
    assert len(done.stdout.splitlines()) == len(calls)


LIMITED = """
import resource, sys
from pathlib import Path
from ntier_analysis import cli
from ntier_analysis.validity.registry import registered
registered()
held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
more = int(sys.argv.pop(1)) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (held + more, held + more))
cli.main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_a_limit_of_memory_says_nothing_of_a_trial(trial):
    """The checks are made, or the program says that its memory is short; the trial is not called invalid for it."""
    free, enough, short = (child(LIMITED, more_mib, "validate", trial) for more_mib in (64 * 1024, 1024, 8))
    assert free.returncode == 0, free.stderr[-1000:]
    assert (enough.returncode, enough.stdout) == (0, free.stdout), enough.stderr[-1000:]
    if short.returncode == 1:
        assert short.stderr.strip().splitlines()[-1].startswith("error: not enough memory"), short.stderr[-1000:]
    else:
        assert (short.returncode, short.stdout) == (0, free.stdout), short.stderr[-1000:]


def test_a_line_without_an_end_is_not_held(tmp_path):
    (tmp_path / "a.zst").write_bytes(zstandard.compress(bytes(2**26)))
    with pytest.raises(DataError, match=r"a\.zst:1: a line of more than 1 MiB"):
        list(lines(tmp_path / "a.zst"))
