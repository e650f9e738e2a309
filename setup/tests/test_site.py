"""The documentation as a site, and the first page."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ntier_analysis.store.schema import TABLES
from ntier_analysis.validity.registry import registered

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(made_once) -> Path:
    """Built strictly: a dead link or anchor, or a page outside the navigation, is an error."""
    return made_once("site", build)


def build(out: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", out]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def text(page: Path) -> str:
    article = page.read_text().partition("<article")[2].partition("</article>")[0]
    return html.unescape(re.sub(r"<[^>]+>", "", article))


@pytest.mark.whole
def test_every_page_is_there_and_fetches_nothing_from_elsewhere(site):
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    written = {path.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for path in ROOT.glob("docs/**/*.md")}
    studies = {f"studies/{path.parent.name}.html" for path in ROOT.glob("studies/*/README.md")}
    assert written | studies | {"index.html", "decisions/index.html", "reference/results.html"} <= pages
    assert (site / "pictures/studies/ntier-scalability/figures/figure-1a.png").exists()
    fetched = r'<(?:script|img|iframe)[^>]* src="?https?:|<link[^>]* href="?https?:'
    assert not [page for page in site.rglob("*.html") if re.search(fetched, page.read_text())]


@pytest.mark.whole
def test_the_reference_is_that_of_the_programs(site):
    from ntier_analysis.cli import app
    from ntier_harness.cli import cli

    own = text(site / "reference/ntier-analysis.html")
    assert all(f"Usage: ntier-analysis {c.name or c.callback.__name__}" in own for c in app.registered_commands)
    assert all(f"Usage: ntier {name}" in text(site / "reference/ntier.html") for name in cli.commands)
    store = text(site / "reference/store.html").split()
    assert all(name in store for schema in TABLES.values() for name in schema.names)
    checks = text(site / "reference/checks.html").split()
    assert {c.id for c in registered()} | {"O1", "S1.sweep", "I14"} <= set(checks)


def test_the_first_page_is_short():
    assert len((ROOT / "README.md").read_text().split()) <= 600


def test_the_picture_of_the_modules_is_that_of_the_code(tmp_path):
    drawn = tmp_path / "modules.svg"
    subprocess.run([sys.executable, ROOT / "docs/modules.py", drawn], check=True)
    shown = ROOT / "docs/figures/modules.svg"
    assert drawn.read_bytes() == shown.read_bytes(), "python docs/modules.py draws it anew"
