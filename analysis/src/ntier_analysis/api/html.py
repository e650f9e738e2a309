"""Small tables for notebooks; every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup


def table(
    title: str,
    rows: Iterable[tuple[str, object]],
    below: Iterable[str] = (),
    *,
    first: tuple[str, Iterable[str]] = ("", ()),
) -> str:
    """A heading, `first` (a name and its sentences), rows of a name and a value, and sentences that fold away."""
    lines = Markup("").join(Markup("<li>{}</li>").format(text) for text in first[1])
    top = Markup("<p>{}</p><ul>{}</ul>").format(first[0], lines) if lines else Markup("")
    cells = Markup("").join(
        Markup('<tr><th style="text-align:left">{}</th><td style="text-align:left">{}</td></tr>').format(name, value)
        for name, value in rows
    )
    items = Markup("").join(Markup("<li>{}</li>").format(text) for text in below)
    more = Markup("<details><summary>Evidence</summary><ul>{}</ul></details>").format(items) if items else Markup("")
    return str(Markup("<div><p><b>{}</b></p>{}<table>{}</table>{}</div>").format(title, top, cells, more))
