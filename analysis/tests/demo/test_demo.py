"""The measured sweeps in the package, and the package alone in an environment of its own."""

import ast
import os
import re
import runpy
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from ntier_analysis.demo import SWEEP, unpack
from ntier_analysis.report import summary
from ntier_analysis.store.schema import LATER_TABLES, TABLES
from ntier_analysis.store.tables import sweeps

ROOT = Path(__file__).parents[2]
DATA = ROOT / "src" / "ntier_analysis" / "demo" / "data.zip"


def test_data_are_small_whole_and_name_no_place():
    assert DATA.stat().st_size <= 1.5e6
    places = [b"/tmp/", b"/root/", b"/home/", str(ROOT.parent).encode()]
    with zipfile.ZipFile(DATA) as archive:
        assert archive.testzip() is None
        for name in archive.namelist():
            assert name.startswith(("store/", "raw/"))
            assert not any(place in archive.read(name) for place in places)


def test_the_store_is_whole(tmp_path):
    store = unpack(tmp_path)
    assert len(sweeps(store)) == 3
    for table in TABLES.keys() - LATER_TABLES:  # it was measured before there were such
        assert {p.stem for p in (store / table).glob("*.parquet")} == set(sweeps(store))
    assert "Measured, not simulated" in (tmp_path / "README.md").read_text()
    assert unpack(tmp_path) == store  # again, over what is there


@pytest.fixture(scope="module")
def program(made_once) -> Path:
    """`ntier-analysis` of the built wheel in a new environment; only its dependencies come from this one."""
    return made_once("wheel", install) / "env/bin/ntier-analysis"


def install(base: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", base]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = base.glob("ntier_analysis-*.whl")
    venv.create(base / "env", with_pip=False)
    python = base / "env" / "bin" / "python"
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    # a folder that a .pth file names is searched, its own .pth files (our editable packages) are not read
    (Path(site) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    script = base / "env" / "bin" / "ntier-analysis"
    script.write_text(f"#!{python}\nfrom ntier_analysis.cli import main\nmain()\n")
    script.chmod(0o755)


def alone(program: Path, *arguments, cwd: Path) -> subprocess.CompletedProcess:
    bare = {"PATH": os.environ["PATH"], "HOME": str(cwd), "LANG": "C.UTF-8"}
    return subprocess.run([program, *arguments], cwd=cwd, env=bare, capture_output=True, text=True, check=False)


@pytest.mark.whole
def test_the_package_alone_writes_the_full_report(program, tmp_path):
    where = subprocess.run(
        [program.with_name("python"), "-c", "import ntier_analysis as n; print(n.__file__)"],
        capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]},
    ).stdout  # fmt: skip
    assert str(program.parents[1]) in where
    done = alone(program, "demo", "--out", "here", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    sentence, path = done.stdout.splitlines()
    assert sentence.startswith("db CPU on db1 limits 1/1/1/1M at 115 [111, 119] interactions/s")
    page = tmp_path / "here" / "reports" / SWEEP / "report.html"
    assert Path(path) == page
    html = page.read_text()
    assert sentence.split(" at ")[0] in html
    assert html.count("<svg") + html.count("data:image/svg") >= 8
    assert "Next:" in done.stderr
    # the README shows what a sweep prints: lines of this one, recorded
    (recorded,) = re.findall(r"```text\n(.*?)```", (ROOT.parent / "README.md").read_text(), re.DOTALL)
    printed = summary.text(summary.read(page)).replace(f"{tmp_path / 'here'}/", "ntier-demo/")
    assert set(recorded.splitlines()) <= set(printed.splitlines())
    # and so does the picture of the terminal; docs/record.py draws it anew
    record = runpy.run_path(str(ROOT.parent / "docs/record.py"))
    assert record["terminal"](record["COMMAND"], printed) == (ROOT.parent / "docs/figures/terminal.svg").read_text()


@pytest.mark.whole
def test_the_package_alone_gates(program, tmp_path):
    expected = ("--expect", "verdict == single db cpu", "--expect", "verdict == none")
    done = alone(program, "check", str(unpack(tmp_path)), "--sweep", SWEEP, *expected, cwd=tmp_path)
    assert done.returncode == 3
    assert [line.split(": ")[0] for line in done.stdout.splitlines() if "verdict ==" in line] == [
        "holds",
        "does not hold",
    ]


def test_all_that_is_imported_is_declared():
    """The test above borrows the dependencies of this environment: whether the wheel asks for them, it cannot tell."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = project["dependencies"] + extras["fast"] + extras["sql"] + extras["cluster"] + extras["remote"]
    declared = {re.split(r"[^A-Za-z0-9_-]", name)[0].lower() for name in asked}
    trees = [ast.parse(path.read_text()) for path in (ROOT / "src").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    packages = {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"ntier_analysis"}
    assert {"pyyaml" if p == "yaml" else p.lower() for p in packages} <= declared


@pytest.mark.whole
def test_no_harness_is_needed(program, tmp_path):
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('ntier_harness') is not None)"
    assert alone(program.with_name("python"), "-c", code, cwd=tmp_path).returncode == 0
