"""The analysis knows no system by heart: neither its name, nor its tiers, nor its interactions."""

import ast
import csv
import re
from pathlib import Path

import ntier_analysis
import pytest

PACKAGE = Path(ntier_analysis.__file__).parent
PROJECT = PACKAGE.parents[2]
IMPLIED = "contracts/implied.py"
"""What manifests meant that were written before they named a system."""
SYSTEMS = re.compile(r"rubbos|mediawiki", re.IGNORECASE)
TIERS = {"web", "app", "middleware", "db"}
FIELD = "middleware"
"""Also a field of every manifest, whatever the system: `none` where there is no such program."""
FIELDS = {
    "campaign/cells.py",
    "campaign/compare.py",
    "importing/folder.py",
    "ingest.py",
    "overview.py",
    "report/page.py",
    "report/replicas.py",
    "report/tables.py",
    "setting.py",
    "validity/provenance.py",
}
"""Modules that name the field."""


def interactions() -> set[str]:
    """States of the mixes, by the tables of the workloads."""
    names = set()
    for path in (PROJECT / "workloads" / "mixes").rglob("*.csv"):
        lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        names |= {row["from"] for row in csv.DictReader(lines)}
    return names


def known_by_heart(path: Path, names: set[str]) -> list[str]:
    """Names of a system, a tier or an interaction in a module, with their lines."""
    source = path.read_text()
    places = [f"{n}: {word}" for n, line in enumerate(source.splitlines(), 1) for word in SYSTEMS.findall(line)]
    banned = (TIERS | names) - ({FIELD} if path.relative_to(PACKAGE).as_posix() in FIELDS else set())
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and node.value in banned:
            places.append(f"{node.lineno}: {node.value!r}")
    return places


def modules() -> list[str]:
    every = (path.relative_to(PACKAGE) for path in sorted(PACKAGE.rglob("*.py")))
    return [path.as_posix() for path in every if path.parts[0] != "demo" and path.as_posix() != IMPLIED]


@pytest.fixture(scope="module")
def names() -> set[str]:
    words = interactions()
    if not words:
        pytest.skip("the workloads are not beside the analysis")
    assert "StoriesOfTheDay" in words
    return words


def test_no_module_knows_a_system_a_tier_or_an_interaction(names):
    known = {module: known_by_heart(PACKAGE / module, names) for module in modules()}
    assert {module: words for module, words in known.items() if words} == {}


def test_the_search_finds_what_it_looks_for(tmp_path, names, monkeypatch):
    monkeypatch.setitem(known_by_heart.__globals__, "PACKAGE", tmp_path)
    module = tmp_path / "some.py"
    module.write_text('"""Of RUBBoS."""\nif tier == "db":\n    state = "StoreComment"\n')
    assert known_by_heart(module, names) == ["1: RUBBoS", "2: 'db'", "3: 'StoreComment'"]
