"""`ntier-analysis import`: options -> runs."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.files import check_folder
from ntier_analysis.errors import DataError
from ntier_analysis.importing.folder import import_folder
from ntier_analysis.importing.prometheus import node_name
from ntier_analysis.importing.run import GENERATORS, Run, read_list
from ntier_analysis.importing.runs import import_runs
from ntier_analysis.importing.sysstat_files import NodeFile

PROMETHEUS = "prometheus"
"""Whose clock stamps all of its samples, as `--clock-offset` names it."""

MOST_OFF_S = 1e10
"""A clock that began at 1970 is some 1.8e9 s off; beyond three centuries a time has no date to be told."""


def run(folder: Path | None, listed: Path | None, options: dict[str, Any], store: Path) -> list[str]:
    """One of: a folder of CSV tables, a list of runs, or one run from the options. Raises DataError."""
    replace_old = options.pop("replace", False)
    generators = {name: tuple(options.pop(name, ())) for name in GENERATORS}
    sa, nodes = options.pop("sa"), options.pop("node", [])
    files = bool(any(generators.values()) or sa or options.get("prometheus") or options.get("loads"))
    of_list = listed is not None and not (any(generators.values()) or sa)
    if (folder is not None) + (of_list or files) != 1 or (listed is not None and not of_list):
        raise DataError(
            "import needs one of: a folder of CSV tables; files of a load generator (--jtl, --k6, --locust, --gatling) "
            "and of nodes (--sa, --prometheus); --runs FILE"
        )
    check_folder(store, "--store")
    if folder is not None:
        return import_folder(folder, store, replace=replace_old)
    if options["stamp"] not in ("start", "end"):
        raise DataError(f"--stamp is {options['stamp']!r}, allowed are start and end")
    offsets = _offsets(options.pop("clock_offset"))
    named = tuple(node_name(text) for text in nodes)
    request = Run(sa=tuple(NodeFile.parse(text) for text in sa), node=named, **generators, **options)
    runs = read_list(listed, request) if listed is not None else [request]
    return import_runs([_corrected(r, offsets) for r in runs], store, replace=replace_old)


def _offsets(texts: list[str]) -> dict[str, float]:
    offsets = {}
    for text in texts:
        node, _, seconds = text.partition("=")
        try:
            offsets[node] = float(seconds)
        except ValueError:
            offsets[node] = math.nan
        if not abs(offsets[node]) < MOST_OFF_S:
            raise DataError(f"clock offset {text[:80]!r}: expected NODE=SECONDS, the seconds a number below 1e10")
    return offsets


def _corrected(run: Run, offsets: dict[str, float]) -> Run:
    known = [file.node for file in run.sa] + [PROMETHEUS] * bool(run.prometheus)
    unknown = next((n for n in offsets if n not in known), None)
    if unknown is not None:
        raise DataError(f"clock offset of {unknown}: no such node; there are: {', '.join(known)}")
    return replace(
        run,
        sa=tuple(replace(f, offset_s=offsets.get(f.node, 0.0)) for f in run.sa),
        prometheus_offset_s=offsets.get(PROMETHEUS, 0.0),
    )
