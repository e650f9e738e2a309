"""Every notebook runs on a store, shows figures, and holds no logic of its own."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("notebook_runner", ROOT / "notebooks" / "run.py")
runner = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(runner)
import ntier_analysis as na  # noqa: E402
from ntier_analysis.demo import unpack  # noqa: E402
from ntier_analysis.store.schema import TABLES  # noqa: E402
from ntier_analysis.store.tables import read_table, write_tables  # noqa: E402
from ntier_analysis.verdict.store import judge_again  # noqa: E402

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def store(made_once) -> Path:
    """The measured sweeps that come with the analysis: MySQL and PostgreSQL, one node per tier."""
    return made_once("demo", lambda folder: judge_again(unpack(folder), [])) / "store"


@pytest.fixture(scope="module")
def executed(store, made_once) -> Callable[[str], Path]:
    """The executed notebook of this name; each takes seconds, so it is executed once."""

    def execute(name: str) -> Path:
        source = runner.notebooks()[name]
        made = made_once(name, lambda folder: runner.execute(source, folder, {"STORE": str(store)}))
        return made / f"{name}.ipynb"

    return execute


@pytest.mark.parametrize("name", list(runner.notebooks()))
def test_runs_and_shows_figures(name, executed):
    outputs = [o for c in nbformat.read(executed(name), 4).cells if c.cell_type == "code" for o in c.outputs]
    assert sum("image/png" in o.get("data", {}) for o in outputs) >= 2
    assert not [o for o in outputs if o.output_type in ("error", "stream")]


@pytest.fixture(scope="module")
def bare(store, tmp_path_factory) -> Path:
    """A store whose sweep failed: no valid trial, no maximum, no sample of a CPU."""
    folder, sweep = tmp_path_factory.mktemp("bare"), na.Store(store).sweeps[0]
    failed = {"valid": False, "invalid_reasons": "failed", "state": "failed"}
    unknown = dict.fromkeys(("throughput_per_s", "goodput_per_s", "response_time_mean_ms"), np.nan)
    trials = read_table(store, "trials", sweep).assign(**failed, **unknown)
    nothing = {name: read_table(store, name, sweep).iloc[:0] for name in TABLES}
    write_tables(folder, sweep, nothing | {"trials": trials, "nodes": read_table(store, "nodes", sweep)})
    judge_again(folder, [])
    return folder


@pytest.mark.parametrize("path", list(runner.notebooks().values()), ids=lambda p: p.stem)
def test_runs_on_a_store_without_a_valid_trial(path, bare):
    scope: dict[str, object] = {}
    for cell in runner.load(path, {"STORE": str(bare)}).cells:
        if cell.cell_type == "code":
            exec(cell.source, scope)


@pytest.mark.parametrize("name", ["01-densities", "02-bottleneck-migration"])
def test_an_empty_store_is_an_error_that_says_so(name, tmp_path):
    (tmp_path / "trials").mkdir()
    cells = runner.load(runner.notebooks()[name], {"STORE": str(tmp_path)}).cells
    source = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    with pytest.raises(na.DataError, match="holds no sweep"):
        exec(source, {})


@pytest.mark.parametrize("path", list(runner.notebooks().values()), ids=lambda p: p.stem)
def test_is_thin(path):
    """No functions, classes or branches: whatever decides something lives in the package, where it is tested."""
    kinds = (ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.If, ast.While, ast.Try)
    tree = ast.parse(path.read_text())
    assert not [node for node in ast.walk(tree) if isinstance(node, kinds)]
    assert len(path.read_text().splitlines()) < 100


@pytest.mark.parametrize("path", list(runner.notebooks().values()), ids=lambda p: p.stem)
def test_uses_the_public_api_only(path):
    """What a reader sees in a notebook works in their own: `import ntier_analysis as na`, and no module below it."""
    tree = ast.parse(path.read_text())
    plain = {(a.name, a.asname) for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    parts = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert plain == {("ntier_analysis", "na")}
    assert parts <= {"IPython.display"}
    assert not [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr.startswith("_")]


def test_a_failing_notebook_fails_the_run_and_is_kept(store, tmp_path, monkeypatch, capsys):
    (tmp_path / "09-broken.py").write_text(
        '# %% tags=["parameters"]\nSTORE = ""\n# %%\nraise RuntimeError("no such column")\n'
    )
    monkeypatch.setattr(runner, "FOLDER", tmp_path)
    assert runner.main(["--store", str(store), "--out", str(tmp_path / "out")]) == 1
    assert "09-broken: RuntimeError: no such column" in capsys.readouterr().err
    assert (tmp_path / "out" / "09-broken.ipynb").is_file()
    assert "no such column" in (tmp_path / "out" / "09-broken.html").read_text()
    assert not (tmp_path / "out" / "09-broken.inputs.json").exists()


def test_a_notebook_runs_again_only_if_something_changed(store, tmp_path, monkeypatch, capsys):
    own = tmp_path / "store"
    shutil.copytree(store, own)
    notebook = tmp_path / "09-short.py"
    cell = 'import os\nprint("seen", 6 * 7, "kernel", os.getpid())\n'
    notebook.write_text('# %% tags=["parameters"]\nSTORE = ""\n# %%\n' + cell)
    monkeypatch.setattr(runner, "FOLDER", tmp_path)
    out = tmp_path / "out"
    asked = ["--store", str(own), "--out", str(out)]

    def again(*more: str) -> str:
        assert runner.main([*asked, *more]) == 0
        return capsys.readouterr().out.strip().removeprefix(str(out / "09-short.html"))

    def quickly(path: Path, folder: Path, _: object) -> None:
        """What follows is about whether a notebook is executed."""
        for end in (".html", ".ipynb"):
            (folder / f"{path.stem}{end}").write_text(path.read_text())

    assert again() == ""
    page = (out / "09-short.html").read_text()
    assert "seen 42" in page
    with pytest.raises(ProcessLookupError):  # its kernel has ended
        os.kill(int(re.search(r"kernel (\d+)", page)[1]), 0)
    assert not re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=[\"'](?:https?:)?//", page)
    assert again() == " (unchanged)"
    monkeypatch.setattr(runner, "execute", quickly)
    assert again("--force") == ""
    notebook.write_text(notebook.read_text().replace("6 * 7", "6 * 8"))
    assert again() == ""
    assert again() == " (unchanged)"
    next(own.glob("trials/*.parquet")).unlink()
    assert again() == ""
    (out / "09-short.html").unlink()
    assert again() == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "unknown notebook 'nope'; there are: 01-densities"),
        ([], "not a store"),
        (["--out", "/dev/null/x"], "--out /dev/null/x: cannot be written (Not a directory)"),
    ],
)
def test_wrong_requests_are_refused(arguments, message, tmp_path, store, capsys):
    with pytest.raises(SystemExit) as ended:
        runner.main([*arguments, "--store", str(store if arguments else tmp_path)])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_a_wrong_request_exits_with_2(store):
    program = [sys.executable, str(ROOT / "notebooks" / "run.py"), "nope", "--store", str(store)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "unknown notebook 'nope'; there are: 01-densities" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_maps_are_shown_and_what_the_store_lacks_is_said(store, executed):
    cells = [c for c in nbformat.read(executed("03-maps"), 4).cells if c.cell_type == "code"]
    (maps,) = [c for c in cells if "store.maps" in c.source]
    assert sum("image/png" in o.get("data", {}) for o in maps.outputs) == len(na.Store(store).map().figures)
    assert len(na.Store(store).map().figures) > 2
    shown = [o for c in cells for o in c.outputs]
    text = " ".join(o["data"].get("text/markdown", "") for o in shown if "data" in o)
    assert "Missing for maps and migration over topologies" in text
    assert "Missing for a comparison of node types" in text
    assert "Missing for a comparison of DBMS" not in text


def test_parameters_that_a_notebook_lacks_are_an_error():
    with pytest.raises(KeyError, match="no parameter NOPE"):
        runner.load(next(iter(runner.notebooks().values())), {"NOPE": "1"})
