"""Every command that reads a store says the same of one on an S3-compatible server as of one on a disk."""

from __future__ import annotations

import shutil
from pathlib import Path

import good_import
import pytest
from ntier_analysis import Store, cli
from ntier_analysis.demo import unpack
from ntier_analysis.errors import DataError
from ntier_analysis.ingest import ingest_sweep
from ntier_analysis.places import Place, as_given
from ntier_analysis.store.tables import sweeps
from pictures import no_drawn_pictures
from typer.main import get_command
from typer.testing import CliRunner

SWEEPS = ["1-1-1-1M.browse_only.shardingsphere"]
"""Of the raw results."""
SMALL = "1-1-1-1P.browse_only.shardingsphere.xd86811"
"""The demo's sweep of the fewest loads."""
LARGE = "1-1-1-1M"
CLAIM = f"""
claim:
  says: it is quick
  place: '1'
  paper: '80 per second'
  sweep: {SMALL}
  expect: max_throughput >= 1
"""
READING = {
    "verdict": (SMALL,), "search": (SMALL, "--users", "1000,2000"), "demands": (SMALL,), "chains": (SMALL,),
    "foresee": (SMALL, "--topology", "1/1/1/1P", "--scale", "0.1", "--run-s", "60"), "map": ("--out", "{out}/map"),
    "cheapest": ("--throughput", "10"), "predict": (SMALL,), "compare": (SMALL, "{other}", "--anyway"),
    "sql": ("SELECT sweep, count(*) AS n, sum(value) AS sum FROM samples GROUP BY ALL ORDER BY ALL",), "info": (),
    "check": ("--sweep", SMALL, "--expect", "max_throughput >= 1"), "claims": ("{claims}",),
    "export": (SMALL, "--json"), "report": (SMALL, "--out", "{out}/report"), "policies": (SMALL, "{other}"),
    "figure": (SMALL, "--kind", "load-throughput", "--out", "{out}/loads.svg"),
}  # fmt: skip
APART = {"slow", "import", "migrate"}  # below
OF_JOBS = {"ingest", "judge", "densities"}  # test_places.py
NOTHING_TO_SAY = {"policies", "cheapest"}
"""The demo's sweeps have one database each, and one trial of each load, which is not sure."""


@pytest.fixture(autouse=True)
def server(bucket, monkeypatch):
    """How the bucket is reached."""
    client, settings = bucket
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return client


@pytest.fixture(scope="module")
def put(bucket):
    """Copies a folder to the bucket -> its URL."""
    client, _ = bucket

    def copy(folder: Path, to: str) -> str:
        for path in (p for p in folder.rglob("*") if p.is_file()):
            client.upload_file(str(path), "bucket", f"{to}/{path.relative_to(folder)}")
        return f"s3://bucket/{to}"

    return copy


def said(name: str, *words: object) -> tuple:
    """What a command does: exit code, text, error."""
    path = ["store", name] if name in ("info", "migrate") else [name]
    done = CliRunner().invoke(cli.app, [*path, *map(str, words)])
    if done.exception is not None and not isinstance(done.exception, (SystemExit, DataError)):
        raise done.exception
    error = as_given(done.exception) if isinstance(done.exception, DataError) else ""
    return done.exit_code, done.stdout, error


def contents(folder: Path) -> dict:
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*.parquet")}


def test_none_is_left_out():
    commands = dict(get_command(cli.app).commands)
    commands |= commands.pop("store").commands
    with_store = {n for n, c in commands.items() if any("--store" in p.opts for p in c.params)}
    assert with_store == READING.keys() | APART | OF_JOBS


@pytest.fixture(scope="module")
def both(demo, put, tmp_path_factory):
    """(store, URL) of two measured sweeps, with their manifests beside them."""
    here = tmp_path_factory.mktemp("both") / "here"
    shutil.copytree(demo.parent, here, ignore=shutil.ignore_patterns(f"{LARGE}*"))
    return here / "store", f"{put(here, 'demo')}/store"


def other_than(name: str, store: Path) -> str:
    return next(n for n in sweeps(store) if n != name)


@pytest.mark.whole
@pytest.mark.parametrize("name", READING)
def test_a_command_says_the_same(both, tmp_path, name):
    store, url = both
    (tmp_path / "claims.yaml").write_text(CLAIM)
    told, outs = [], [tmp_path / "here", tmp_path / "there"]
    for place, out in zip((store, url), outs, strict=True):
        other = other_than(SMALL, store)
        filled = [w.format(other=other, claims=tmp_path / "claims.yaml", out=out) for w in READING[name]]
        with no_drawn_pictures():
            code, text, error = said(name, *filled, "--store", place)
        told.append([code, *(t.replace(str(place), "STORE").replace(str(out), "OUT") for t in (text, error))])
    assert told[0] == told[1]
    assert (told[0][0] != 0) == (name in NOTHING_TO_SAY), told[0]
    written, there = ({p.relative_to(out): p.read_text() for p in out.rglob("*.csv")} for out in outs)
    assert written == there
    assert written or name != "report"


@pytest.mark.whole
def test_stores_of_two_places_are_compared(both):
    store, url = both
    other = other_than(SMALL, store)
    compared = said("compare", f"{url}:{SMALL}", f"{store}:{other}", "--anyway")
    assert compared[0] == 0
    assert url in compared[1]
    assert Store(url).sweeps == Store(store).sweeps


def test_a_verdict_fetches_no_samples(both, monkeypatch):
    asked = []
    fetch = Place.fetch
    monkeypatch.setattr(Place, "fetch", lambda place, name, *rest: asked.append(name) or fetch(place, name, *rest))
    assert said("verdict", both[1], SMALL)[0] == 0
    assert {name.partition("/")[0] for name in asked} == {"trials", "verdicts"}


def test_requests_of_slow_interactions_come_from_raw_results_elsewhere(raw, put, tmp_path):
    assert ingest_sweep(raw / SWEEPS[0], tmp_path / "store").problems == []
    url = put(tmp_path / "store", "slow/store")
    put(raw, "slow/raw")
    here = said("slow", SWEEPS[0], "--store", tmp_path / "store", "--raw", raw)
    assert here[0] == 0
    assert "The slowest of" in here[1]
    assert said("slow", SWEEPS[0], "--store", url) == here, "raw beside the store"
    assert said("slow", SWEEPS[0], "--store", url, "--raw", "s3://bucket/slow/raw") == here
    shutil.copytree(tmp_path / "store", tmp_path / "alone/store")
    alone = said("slow", SWEEPS[0], "--store", put(tmp_path / "alone/store", "alone/store"))
    assert alone[2].startswith(f"s3://bucket/alone/raw/{SWEEPS[0]}: no raw files of ")


def test_what_is_written_lies_there(put, tmp_path):
    folder = good_import.write(tmp_path / "csv", good_import.files())
    url, here = "s3://bucket/import/store", tmp_path / "import/store"
    assert said("import", folder, "--store", url)[:2] == said("import", folder, "--store", here)[:2]
    assert said("verdict", "--store", url) == said("verdict", "--store", here)
    again = said("import", folder, "--store", url)
    assert again == said("import", folder, "--store", here)
    old = unpack(tmp_path / "old")
    for file in (p for p in old.rglob("*.parquet") if p.stem != SMALL):
        file.unlink()
    old_url = put(old, "old/store")
    told = said("migrate", "--store", old_url), said("migrate", "--store", old)
    assert told[0][1] == told[1][1].replace(str(old), old_url)
    assert "0 files" not in told[0][1]
    Place.of("s3://bucket/import").fetch("store", tmp_path / "there/import")
    Place.of("s3://bucket/old").fetch("store", tmp_path / "there/old")
    assert contents(tmp_path / "there/import") == contents(here) != {}
    assert contents(tmp_path / "there/old") == contents(old) != {}


def test_there_is_no_store():
    for name in ("verdict", "info", "report"):
        code, _, error = said(name, "--store", "s3://bucket/nothing")
        assert code != 0
        assert error.startswith("s3://bucket/nothing: not a store")
