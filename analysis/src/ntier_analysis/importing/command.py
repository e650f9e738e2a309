"""`ntier-analysis import`: options -> runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.files import check_folder
from ntier_analysis.errors import DataError
from ntier_analysis.importing.folder import import_folder
from ntier_analysis.importing.jmeter import Run, import_runs, read_list
from ntier_analysis.importing.sysstat_files import NodeFile


def run(folder: Path | None, listed: Path | None, options: dict[str, Any], store: Path) -> list[str]:
    """One of: a folder of CSV tables, a list of runs, or one run from the options. Raises DataError."""
    replace_old = options.pop("replace", False)
    files = bool(options["jtl"] or options["sa"])
    if (folder is not None) + (listed is not None) + files != 1:
        raise DataError("import needs one of: a folder of CSV tables; --jtl and --sa of a run; --runs FILE")
    check_folder(store, "--store")
    if folder is not None:
        return import_folder(folder, store, replace=replace_old)
    if options["stamp"] not in ("start", "end"):
        raise DataError(f"--stamp is {options['stamp']!r}, allowed are start and end")
    offsets = _offsets(options.pop("clock_offset"))
    jtl, sa = options.pop("jtl"), options.pop("sa")
    one = Run(jtl=tuple(jtl), sa=tuple(NodeFile.parse(text) for text in sa), **options)
    runs = read_list(listed, one) if listed is not None else [one]
    return import_runs([_corrected(r, offsets) for r in runs], store, replace=replace_old)


def _offsets(texts: list[str]) -> dict[str, float]:
    found = {}
    for text in texts:
        node, _, seconds = text.partition("=")
        try:
            found[node] = float(seconds)
        except ValueError:
            raise DataError(f"clock offset {text!r}: expected NODE=SECONDS") from None
    return found


def _corrected(run: Run, offsets: dict[str, float]) -> Run:
    known = [file.node for file in run.sa]
    unknown = next((n for n in offsets if n not in known), None)
    if unknown is not None:
        raise DataError(f"clock offset of {unknown}: no such node; there are: {', '.join(known)}")
    return replace(run, sa=tuple(replace(f, offset_s=offsets.get(f.node, 0.0)) for f in run.sa))
