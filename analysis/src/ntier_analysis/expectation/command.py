"""`ntier-analysis check`: one line per expectation."""

from __future__ import annotations

from pathlib import Path

import orjson

from ntier_analysis.expectation.expressions import Outcome
from ntier_analysis.expectation.files import check


def run(
    store: Path,
    expressions: list[str],
    source: Path | None,
    sweeps: list[str] | None,
    *,
    allow_undecided: bool,
    json: bool,
) -> tuple[str, int]:
    """(what to print, how many expectations are not met)."""
    results = check(store, expressions, source, sweeps)
    met = {Outcome.HOLDS} | ({Outcome.UNDECIDED} if allow_undecided else set())
    failed = sum(r.outcome not in met for r in results)
    if not json:
        return "\n".join(r.text for r in results), failed
    rows = [
        {"sweep": r.sweep, "expectation": r.expectation, "outcome": r.outcome.value, "seen": r.seen,
         "evidence": r.evidence}
        for r in results
    ]  # fmt: skip
    return orjson.dumps({"met": failed == 0, "expectations": rows}, option=orjson.OPT_INDENT_2).decode(), failed
