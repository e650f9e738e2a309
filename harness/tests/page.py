"""The files of the page "A system of your own that already runs", and a checkout to put them into."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "system-that-runs.md"


def files_shown() -> dict[str, str]:
    """Path in the checkout -> text, as the page shows them."""
    return dict(re.findall(r"^`(\S+)`\n\n```\w+\n(.*?)^```$", PAGE.read_text(), re.S | re.M))


def copy_checkout(into: Path) -> None:
    """This checkout by links, with `build`, `systems` and `results` of its own."""
    into.mkdir()
    for path in ROOT.iterdir():
        if path.name not in ("build", "systems", "results", ".git"):
            (into / path.name).symlink_to(path)
    (into / "systems").mkdir()
    for path in (ROOT / "systems").iterdir():
        (into / "systems" / path.name).symlink_to(path)
