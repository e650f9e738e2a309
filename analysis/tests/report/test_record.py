"""A report is written again exactly if something that it depends on changed."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from ntier_analysis import cli, digests
from ntier_analysis.report import kept_report, record
from typer.testing import CliRunner

pytestmark = pytest.mark.whole


@pytest.fixture
def copied(report, tmp_path) -> tuple[Path, Path]:
    """Store (with the raw trials beside it) and folder of the reports, unchanged."""
    shutil.copytree(report.store, tmp_path / "store")
    shutil.copytree(report.store.parent / "raw", tmp_path / "raw")
    shutil.copytree(report.folder, tmp_path / "reports" / report.sweep)
    return tmp_path / "store", tmp_path / "reports"


def kept(report, copied) -> bool:
    return kept_report(copied[0], report.sweep, copied[1]) is not None


def test_a_report_is_kept_wherever_it_lies(report, copied):
    assert kept_report(*copied[:1], report.sweep, copied[1]) == copied[1] / report.sweep / "report.html"


@pytest.mark.parametrize("what", ["table", "manifest", "page", "figure", "record", "program"])
def test_what_changed_makes_it_new(report, copied, what, monkeypatch):
    store, reports = copied
    folder = reports / report.sweep
    assert kept(report, copied)
    match what:
        case "table":
            next(store.glob(f"samples/{report.sweep}.parquet")).open("ab").write(b" ")
        case "manifest":
            next(store.parent.glob("raw/*/*/manifest.json")).open("a").write(" ")
        case "page":
            (folder / "report.html").write_text("torn")
        case "figure":
            (folder / "figures" / "throughput.pdf").unlink()
        case "record":
            (folder / record.FILE).write_text("{")
        case "program":
            monkeypatch.setattr(record, "of_program", lambda: "another")
    assert not kept(report, copied)


def test_every_file_of_the_program_counts_and_nothing_else(tmp_path):
    a, b = tmp_path / "a.py", tmp_path / "b.j2"
    a.write_text("one")
    b.write_text("two")
    both = digests.of_files([a, b], tmp_path)
    assert both == digests.of_files([a, b], tmp_path)
    a.write_text("onet")
    b.write_text("wo")
    assert digests.of_files([a, b], tmp_path) != both


@pytest.mark.parametrize(
    "name", ["density.cpython-311.pyc", "density.cpython-311.pyc.140234", "density._spread-112.py311.1.nbc"]
)
def test_what_is_compiled_while_a_program_runs_is_not_the_program(name):
    """Python writes its byte code under a temporary name first, numba its machine code on first use: another process
    that does so in the meantime changed the digest."""
    assert not digests.is_source(Path("stats", "__pycache__", name))
    assert digests.is_source(Path("stats", "density.py"))


def test_the_program_keeps_its_digest_while_it_is_compiled():
    cache = Path(digests.__file__).parent / "__pycache__"
    cache.mkdir(exist_ok=True)
    before = digests.of_program.__wrapped__()
    with tempfile.NamedTemporaryFile(dir=cache, prefix="density.cpython-311.pyc."):
        assert digests.of_program.__wrapped__() == before


def test_report_draws_only_what_changed_and_prints_the_same(report, copied, monkeypatch):
    store, reports = copied
    drawn = []

    def write(place: Path, name: str, out: Path) -> Path:
        drawn.append(name)
        return out / name / record.PAGE

    monkeypatch.setattr("ntier_analysis.report.write_report", write)
    asked = ["report", "--store", str(store), "--out", str(reports)]
    first = CliRunner().invoke(cli.app, asked)
    assert drawn == []
    assert f"{report.sweep} (1 of 1) unchanged" in first.stderr
    assert first.stdout.endswith(f"report: {reports / report.sweep / 'report.html'}\n")
    forced = CliRunner().invoke(cli.app, [*asked, "--force"])
    assert drawn == [report.sweep]
    assert forced.stdout == first.stdout
    (reports / report.sweep / "report.md").unlink()
    assert CliRunner().invoke(cli.app, asked).stdout == first.stdout
    assert drawn == [report.sweep] * 2
