# ruff: noqa: E501 (tables: a line per case)
"""Every door of `ntier-analysis`, with all kinds of bad input: exit code 2 and one clear line, soon.

What the kinds are, and how to run more of the random ones: setup/doors.py. The store and raw trials are doors, too:
test_bad_stores.py, test_bad_trials.py."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import doors
import pytest
import zstandard
from good_files import DOORS, FILES, FOLDER, Door, copied
from hypothesis import given
from hypothesis import strategies as st
from ntier_analysis import cli
from ntier_analysis.contracts.files import replacing
from ntier_analysis.store.tables import locked

pytestmark = pytest.mark.whole

TABLES = ("trials", "samples", "interactions", "jtl", "runs", "k6", "locust", "requests", "loads")
JSONS = ("sysstat", "prices", "answers")
LINES = ("k6 json", "gatling", "dump", "mapping")
"""Texts of other forms: only their bytes are spoilt."""
PEOPLE = ("prices", "expected", "mapping")


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
