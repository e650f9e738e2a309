"""Hooks of mkdocs.yml: pages made from the programs, pages that lie outside docs/, and links between all of them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
ELSEWHERE = {
    "README.md": "index.md",
    "setup/README.md": "how-to/set-up.md",
    "results/README.md": "reference/results.md",
    "workloads/README.md": "reference/load.md",
    "systems/README.md": "reference/systems.md",
    "systems/mediawiki/README.md": "reference/mediawiki.md",
    "systems/two-phase-commit/README.md": "reference/two-phase-commit.md",
    "ansible/README.md": "reference/roles.md",
    "studies/ntier-scalability/README.md": "studies/ntier-scalability.md",
    "studies/two-phase-commit/README.md": "studies/two-phase-commit.md",
}
"""File of the repository -> page of the site."""
FOLDERS = {"docs/decisions": "decisions/index.md"}
PICTURES = (".png", ".svg")
LINK = re.compile(r"\[([^][]*)\]\(([^()#\s]+)(#[^()\s]*)?\)")
WIDTH = 100
"""Columns of a command's help."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav.append({"Decisions": ["decisions/index.md", *(f"decisions/{path.name}" for path in decisions())]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    made = {page: (ROOT / path).read_text(encoding="utf-8") for path, page in ELSEWHERE.items()}
    made |= {
        "decisions/index.md": decision_list(),
        "reference/make.md": make_page(),
        "reference/ntier.md": ntier_page(),
        "reference/ntier-analysis.md": analysis_page(),
        "reference/store.md": store_page(),
        "reference/checks.md": checks_page(),
    }
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    for picture in pictures():
        files.append(File.generated(config, in_site(picture), abs_src_path=str(ROOT / picture)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as they are right in the repository -> as they are right in the site."""
    here = page.file.src_uri
    source = next((path for path, made in ELSEWHERE.items() if made == here), f"docs/{here}")
    if here == "index.md":  # alone in its part of the navigation
        page.meta["hide"] = ["navigation"]
    return LINK.sub(lambda m: link(m, source, here), markdown)


def link(match: re.Match, source: str, here: str) -> str:
    """The link (or picture) with its target in the site; the text alone if the target is a file that the site lacks."""
    text, target, anchor = match[1], match[2], match[3] or ""
    path = meant(target, source)
    if "://" in target or not (ROOT / path).exists():
        return match[0]
    page = in_site(path)
    return f"[{text}]({posixpath.relpath(page, posixpath.dirname(here) or '.')}{anchor})" if page else text


def meant(target: str, source: str) -> str:
    """The file of the repository that a link in the file `source` leads to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))


def in_site(path: str) -> str:
    """Where a file of the repository is in the site; empty if it is not there."""
    page = ELSEWHERE.get(path) or FOLDERS.get(path)
    if page is None and not path.startswith("docs/"):
        return f"pictures/{path}" if path.endswith(PICTURES) else ""
    return page or path.removeprefix("docs/")


def pictures() -> set[str]:
    """Those outside docs/ that the pages of ELSEWHERE show."""
    links = ((m[2], source) for source in ELSEWHERE for m in LINK.finditer((ROOT / source).read_text(encoding="utf-8")))
    paths = {meant(*found) for found in links if found[0].endswith(PICTURES)}
    return {path for path in paths if not path.startswith("docs/")}


# ---- decisions -----------------------------------------------------------------------------------------------------


@cache
def decisions() -> list[Path]:
    return sorted((ROOT / "docs/decisions").glob("*.md"))


def decision_list() -> str:
    lines = [f"* [{path.read_text(encoding='utf-8').splitlines()[0][2:]}]({path.name})" for path in decisions()]
    return "\n".join(["# Decisions", "", "What was decided, why, and what follows.", "", *lines, ""])


# ---- reference -----------------------------------------------------------------------------------------------------


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    def line(cells: Iterable[Any]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"

    head = list(head)
    return "\n".join([line(head), "|" + "---|" * len(head), *map(line, rows), ""])


def make_page() -> str:
    goals = re.findall(r"^([a-z-]+):.*?## (.*)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    intro = "Variables are given as `NAME=value`. They become the options of [`ntier`](ntier.md) with the same name.\n"
    return f"# make\n\n{intro}\n" + table(("goal", "does"), ((f"`make {goal}`", text) for goal, text in goals))


def ntier_page() -> str:
    import click
    from ntier_harness.cli import cli

    return commands("ntier", cli, click.Context)


def analysis_page() -> str:
    import typer
    from ntier_analysis.cli import app

    return commands("ntier-analysis", typer.main.get_command(app), typer.Context)


def commands(program: str, group: Any, context: Any) -> str:
    """The help of each command, as the program prints it."""

    def chapters() -> Iterator[str]:
        for name, command in group.commands.items():
            called = context(command, info_name=f"{program} {name}", terminal_width=WIDTH)
            yield f"## {program} {name}\n\n```text\n{command.get_help(called)}\n```\n"

    intro = group.help or ""
    return f"# {program}\n\n{intro}\n\n" + "\n".join(chapters())


def store_page() -> str:
    from ntier_analysis.store.schema import RULES, TABLES
    from ntier_analysis.store.series import LABELS, SERIES

    def rows(name: str) -> Iterator[tuple]:
        for field in TABLES[name]:
            facts = {key.decode(): value.decode() for key, value in field.metadata.items()}
            rule = RULES[name].get(field.name)
            yield f"`{field.name}`", facts["definition"], facts["unit"], rule.text if rule else ""

    head = ("column", "definition", "unit", "allowed")
    chapters = [f"## {name}\n\n{table(head, rows(name))}" for name in TABLES]
    intro = "Each table has a file per sweep: `<store>/<table>/<sweep>.parquet`. A missing value is null, never 0.\n"
    written = ((f"`{f.name}`", f.metadata[b"definition"].decode()) for f in SERIES if f.name not in LABELS)
    formula = "`offset + count / divisor * factor / scale + rest`"
    chapters.append(
        f"## samples on the disk\n\nA row per series, beside its labels. A value is {formula}, or `raw`. Series with "
        f"the same `clock` have the same times, phases and intervals.\n\n{table(head[:2], written)}"
    )
    return f"# Tables of the store\n\n{intro}\n" + "\n".join(chapters)


def checks_page() -> str:
    from ntier_analysis.validity import imported, sweep
    from ntier_analysis.validity.registry import registered

    trial = ((c.id, c.title, "yes" if c.required else "no", f"`{c.reason}`") for c in registered())
    whole = ((id_, title, f"`{reason}`") for id_, title, reason, _ in sweep._CHECKS)
    brought = ((id_, title, f"`{reason}`") for id_, title, reason, _ in imported.REGISTERED)
    short = ("id", "checks", "reason")
    return "\n".join(
        [
            "# Checks",
            "",
            "The programs' own list. [Validity](../validity.md) has the limit of each check and where it comes from.",
            "*Reason* is the word that `invalid_reasons` names.",
            "",
            "## Of a trial",
            "",
            table(("id", "checks", "required", "reason"), trial),
            "## Of a sweep",
            "",
            "These warn; they make no trial invalid.",
            "",
            table(short, whole),
            "## Of an imported trial",
            "",
            table(short, brought),
        ]
    )
