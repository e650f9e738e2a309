"""What each number of the verdict's rules does to its errors: all cases of known truth, judged again with that number
alone a fourth smaller and larger.

    python analysis/bench/sensitivity.py tuning|selection|scoring FAMILY=FOLDER ...

FOLDER as of families.py. Prints Markdown: per family how many sharp cases are right, confident and wrong, and unknown
with the rules as they are; then, for each number that any case turns on, what changes. Shares above a half (and
percentages above 50) keep below 1: what is left to 1 gets smaller and larger. Numbers that decide what is kept of a
trial (scores.MEASURED) act as far as the rules read them again."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ntier_analysis.verdict as rules
from families import read
from scores import Judged, judged, wrong

SMALLER, LARGER = 0.8, 1.25
NO_RULES = {"advice", "data", "moves", "search", "store", "stored", "suspects", "replicas"}
"""Modules that plan, say or read, and decide no class or name."""
Number = tuple[str, str, float]
"""Module, name, value."""


def modules() -> dict[str, ast.Module]:
    paths = sorted(Path(rules.__file__).parent.glob("*.py"))
    return {p.stem: ast.parse(p.read_text()) for p in paths if p.stem not in NO_RULES}


def numbers(parsed: dict[str, ast.Module]) -> list[Number]:
    """The constants of the rules, in the order of modules and lines."""
    found = []
    for module, tree in parsed.items():
        there = vars(importlib.import_module(f"ntier_analysis.verdict.{module}"))
        for node in tree.body:
            if isinstance(node, ast.Assign):
                names = [n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name) and n.id.isupper()]
                found += [(module, n, there[n]) for n in names if type(there[n]) in (int, float)]
    return found


def readers(parsed: dict[str, ast.Module], module: str, name: str) -> list[str]:
    """Modules that hold the constant: its own, and those that import it."""
    source = f"ntier_analysis.verdict.{module}"
    found = [
        other
        for other, tree in parsed.items()
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == source and name in [a.name for a in node.names]
    ]
    return [module, *found]


@contextmanager
def instead(places: list[str], name: str, value: float) -> Iterator[None]:
    held = [importlib.import_module(f"ntier_analysis.verdict.{m}") for m in places]
    before = getattr(held[0], name)
    try:
        for module in held:
            setattr(module, name, value)
        yield
    finally:
        for module in held:
            setattr(module, name, before)


def moved(value: float, factor: float) -> float:
    for whole in (1.0, 100.0):
        if whole / 2 < value < whole:
            return whole - (whole - value) / factor
    return max(1, round(value * factor)) if isinstance(value, int) else value * factor


def tally(found: list[Judged]) -> tuple[int, int, int]:
    return sum(j.right for j in found), sum(map(wrong, found)), sum(j.outcome == "unknown" for j in found)


def change(before: tuple[int, int, int], after: tuple[int, int, int]) -> str:
    """`right -2, wrong +1, unknown +1`; a dash if nothing changed."""
    names = ("right", "wrong", "unknown")
    moves = [f"{n} {b - a:+d}" for n, a, b in zip(names, before, after, strict=True) if a != b]
    return ", ".join(moves) or "–"


def main() -> None:
    seeds, *given = sys.argv[1:]
    folders = {name: Path(folder) for name, folder in (pair.split("=", 1) for pair in given)}
    sharp = {}
    for family, folder in folders.items():
        there = {p.stem for p in (folder / "store/trials").glob("*.parquet")}
        sharp[family] = [line for line in read(folder, seeds) if line["name"] in there and not line["why"]]

    def judge() -> dict[str, tuple[int, int, int]]:
        return {f: tally([judged(folders[f], line) for line in lines]) for f, lines in sharp.items()}

    base = judge()
    for family, (right, false, unknown) in base.items():
        print(
            f"* {family}: {len(sharp[family])} sharp cases, {right} right, {false} confident and wrong, "
            f"{unknown} unknown"
        )
    columns = [f"{family}, {way}" for family in sharp for way in ("smaller", "larger")]
    print("\n| number | value | " + " | ".join(columns) + " |\n|---|--:|" + "---|" * len(columns))
    parsed, still = modules(), []
    for module, name, value in numbers(parsed):
        places = readers(parsed, module, name)
        results = []
        for factor in (SMALLER, LARGER):
            with instead(places, name, moved(value, factor)):
                results.append(judge())
        cells = [change(base[family], result[family]) for family in sharp for result in results]
        if any(cell != "–" for cell in cells):
            print(f"| {module}.{name} | {value:.4g} | " + " | ".join(cells) + " |", flush=True)
        else:
            still.append(f"{module}.{name}")
    print(f"\nNo sharp case turns on these {len(still)}: {', '.join(still)}.")


if __name__ == "__main__":
    main()
