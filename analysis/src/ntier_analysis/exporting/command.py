"""`ntier-analysis export`."""

from __future__ import annotations

from pathlib import Path

from ntier_analysis.contracts.files import check_file, write_text
from ntier_analysis.errors import DataError
from ntier_analysis.expectation.files import check
from ntier_analysis.exporting.document import exported
from ntier_analysis.exporting.formats import to_json, to_junit, to_openmetrics


def run(
    store: Path,
    sweep: str,
    kinds: list[str],
    out: Path | None,
    expect: list[str],
    expected: Path | None,
    *,
    allow: bool,
) -> str:
    """What to print: the export, or the file that it was written to. Raises DataError."""
    if len(kinds) != 1:
        raise DataError("export needs one of --openmetrics, --junit and --json")
    if (expect or expected or allow) and kinds != ["junit"]:
        raise DataError(f"expectations are exported by --junit, not by --{kinds[0]}")
    if out is not None:
        check_file(out, "--out")
    document = exported(store, sweep)
    if kinds == ["junit"]:
        results = check(store, expect, expected, [sweep]) if expect or expected else []
        text = to_junit(document, [r for r in results if r.sweep == sweep], allow_undecided=allow)
    else:
        text = to_json(document) + "\n" if kinds == ["json"] else to_openmetrics(document)
    if out is None:
        return text
    write_text(out, text)
    return f"{out}\n"
