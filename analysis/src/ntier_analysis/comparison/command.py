"""`ntier-analysis compare`: text or JSON, and the figure with its table."""

from __future__ import annotations

from pathlib import Path

import orjson

from ntier_analysis.comparison.sweeps import Comparison, compare
from ntier_analysis.comparison.texts import as_json, comparison_text, conclusion, table
from ntier_analysis.contracts.files import check_folder


def run(a: str, b: str, store: Path, margin: float, *, anyway: bool, loads: bool, out: Path | None, json: bool) -> str:
    if out is not None:
        check_folder(out, "--out")
    comparison = compare(a, b, store, margin=margin, anyway=anyway)
    written = draw(comparison, out) if out is not None else []
    if json:
        return orjson.dumps(as_json(comparison), option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY).decode()
    return "\n".join([comparison_text(comparison, loads=loads), *map(str, written)])


def draw(comparison: Comparison, out: Path) -> list[Path]:
    """Writes comparison.png, .pdf (the figure), comparison.csv (what it draws) and ratios.csv (all)."""
    from ntier_analysis.figures.comparison import ratios
    from ntier_analysis.figures.drawing import Origin, save, write_csv
    from ntier_analysis.figures.load_axis import over

    a, b, rows = comparison.a, comparison.b, table(comparison)
    topology = " / ".join(str(s.trials["topology"].iloc[0]) for s in (a, b))
    commits = sorted({c for s in (a, b) for c in s.trials["git_commit"].dropna()})
    trials = tuple(f"{s.sweep}/{t}" for s in (a, b) for t in s.trials["trial"])
    command = f"ntier-analysis compare {a.label} {b.label}"
    origin = Origin(
        f"{a.sweep} / {b.sweep}", topology, trials, float(a.trials["scale"].iloc[0]), ", ".join(commits), command
    )
    with over(comparison.axis):
        drawing = ratios(rows, a.label, b.label, comparison.margin, conclusion(comparison))
    return [*save(drawing, origin, out), write_csv(rows, out / "ratios.csv", origin)]
