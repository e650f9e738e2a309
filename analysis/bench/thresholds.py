"""What each number of the verdict's rules does: all cases of known truth judged again, with that number alone smaller
and larger.

    python analysis/bench/thresholds.py tuning|selection|scoring FAMILY=FOLDER ... [--every N] [--set NAME=VALUE,...]

FOLDER as of families.py. Prints Markdown: per family, how many sharp cases are right, confident and wrong, and unknown
by the rules as they are; then a row for each number, with what changes, and the first sentence of its comment.
`--set module.NAME=value,...`: instead, one row for each set of numbers that are moved together (to switch a rule off,
for example).

A number that is a share above a half (or a percentage above 50) keeps below 1: what is left to 1 gets smaller and
larger. Of one between 1 and 2, what is more than 1 does. Samples are judged as they are stored, so the threshold of
saturation (95 %) stays."""

from __future__ import annotations

import argparse
import ast
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import ntier_analysis.verdict as rules
from families import read
from ntier_analysis.verdict import causes, exact, full_together, saturation, stops, tables
from ntier_analysis.verdict.data import TrialData
from ntier_analysis.verdict.load import NO_PAUSES
from scores import Judged, Seen, judged_of, seen_of, wrong

FACTOR = 1.25
NO_RULES = {"advice", "data", "demands", "foresight", "moves", "replicas", "search", "store", "stored", "suspects"}
"""Modules that plan, say, read, or compare sweeps: no class, resource or node of a case depends on them."""
NOT_HERE = {"reasoning": "arrivals and work only (bench/load_models.py)", "saturation": "samples are judged as stored"}
"""Modules whose numbers no case of the families can show."""
Case = tuple[dict, Seen]
"""Line of the list, and what was measured."""


def modules() -> dict[str, ast.Module]:
    paths = sorted(Path(rules.__path__[0]).glob("*.py"))
    return {p.stem: ast.parse(p.read_text()) for p in paths if p.stem not in NO_RULES}


def numbers(parsed: dict[str, ast.Module]) -> dict[str, float]:
    """`module.NAME` -> value of the constants of the rules, in the order of modules and lines."""
    values = {}
    for module, tree in parsed.items():
        there = vars(importlib.import_module(f"{rules.__name__}.{module}"))
        for node in tree.body:
            if isinstance(node, ast.Assign):
                names = [n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name) and n.id.isupper()]
                values |= {f"{module}.{n}": there[n] for n in names if type(there[n]) in (int, float)}
    return values


def comments(parsed: dict[str, ast.Module]) -> dict[str, str]:
    """`module.NAME` -> first sentence of what stands below the constant in the source."""
    said = {}
    for module, tree in parsed.items():
        for node, below in pairwise(tree.body):
            text = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else ""
            if isinstance(node, ast.Assign):
                names = [n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)]
                said |= {f"{module}.{n}": " ".join(str(text).split()).split(". ")[0].rstrip(".") for n in names}
    return said


def readers(parsed: dict[str, ast.Module], module: str, name: str) -> list[str]:
    """Modules that hold a constant: its own, and those that import it."""
    source = f"{rules.__name__}.{module}"
    imports = [
        (other, node) for other, tree in parsed.items() for node in tree.body if isinstance(node, ast.ImportFrom)
    ]
    return [module, *(o for o, n in imports if n.module == source and name in [a.name for a in n.names])]


@contextmanager
def instead(parsed: dict[str, ast.Module], values: dict[str, float]) -> Iterator[None]:
    """Within, these numbers have these values, wherever they are read."""
    places = []
    for full, value in values.items():
        module, name = full.split(".")
        held = [importlib.import_module(f"{rules.__name__}.{m}") for m in readers(parsed, module, name)]
        places += [(m, name, getattr(m, name), value) for m in held]
    try:
        for module, name, _, value in places:
            setattr(module, name, value)
        yield
    finally:
        for module, name, before, _ in places:
            setattr(module, name, before)


def moved(value: float, factor: float) -> float:
    for whole in (1.0, 100.0):
        if whole / 2 < value < whole:
            return whole - (whole - value) / factor
    if 1 < value < 2:  # times as much: what is more than once
        return 1 + (value - 1) * factor
    if isinstance(value, int):
        near = round(value * factor)
        return near if near != value else value + (1 if factor > 1 else -1)
    return value * factor


def keep_what_is_slow() -> None:
    """Most of the time goes into two pure functions, whose arguments no number but the grid's changes."""
    relations: dict[tuple, object] = {}
    relation = causes.relation

    def remembered(a, b, load):
        key = (id(a), id(b), saturation.GRID_S)
        if key not in relations:
            relations[key] = relation(a, b, load)
        return relations[key]

    causes.relation = full_together.relation = remembered
    solve = cache(lambda stations, think_s, users: exact_solve(list(stations), think_s, users))
    exact_solve, exact.solve = exact.solve, lambda stations, think_s, users: solve(tuple(stations), think_s, users)


def again(t: TrialData) -> TrialData:
    """The trial with its pauses found again: they depend on numbers of the rules."""
    load = t.load
    pauses = NO_PAUSES
    if load.done_s is not None:
        pauses = stops.pauses_between(load.done_s, load.start_s, load.end_s, load.spans)
    return replace(t, load=tables.stood_still(replace(load, pauses=pauses), t.saturations, t.order))


def judge(cases: list[Case]) -> list[Judged]:
    return [judged_of(line, [again(t) for t in trials], checks) for line, (trials, checks) in cases]


def tally(found: list[Judged]) -> tuple[int, int, int]:
    sharp = [j for j in found if not j.line["why"]]
    return sum(j.right for j in sharp), sum(map(wrong, sharp)), sum(j.outcome == "unknown" for j in sharp)


def change(before: list[Judged], after: list[Judged]) -> str:
    """`right -2, wrong +1, unknown +1` of the sharp cases, and how many borderline verdicts differ; a dash if none."""
    names = ("right", "wrong", "unknown")
    parts = [f"{n} {b - a:+d}" for n, a, b in zip(names, tally(before), tally(after), strict=True) if a != b]
    pairs = [(a, b) for a, b in zip(before, after, strict=True) if said(a) != said(b)]
    borderline = sum(bool(a.line["why"]) for a, _ in pairs)
    if not parts and len(pairs) > borderline:
        parts = [f"{len(pairs) - borderline} as right as before"]
    return ", ".join(parts + [f"borderline {borderline}"] * bool(borderline)) or "–"


def said(j: Judged) -> tuple:
    return j.outcome, {(b.tier, b.resource, b.item): b.nodes for b in j.verdict.bottlenecks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seeds", choices=("tuning", "selection", "scoring"))
    parser.add_argument("families", nargs="+", metavar="FAMILY=FOLDER")
    parser.add_argument("--every", type=int, default=1, help="of each family only every so-many-th case")
    parser.add_argument("--set", action="append", default=[], metavar="MODULE.NAME=VALUE,...")
    given = parser.parse_args()
    cases: dict[str, list[Case]] = {}
    for family, folder in ((name, Path(path)) for name, path in (pair.split("=", 1) for pair in given.families)):
        there = {p.stem for p in (folder / "store/trials").glob("*.parquet")}
        lines = [line for line in read(folder, given.seeds) if line["name"] in there]
        cases[family] = [(line, seen_of(folder, line["name"])) for line in lines[:: given.every]]
    keep_what_is_slow()
    before = {family: judge(some) for family, some in cases.items()}
    for family, found in before.items():
        n, (right, false, unknown) = sum(not j.line["why"] for j in found), tally(found)
        print(f"* {family}: {n} sharp cases, {right} right, {false} confident and wrong, {unknown} unknown; "
              f"{len(found) - n} borderline")  # fmt: skip
    parsed = modules()

    def changes(values: dict[str, float]) -> dict[str, str]:
        with instead(parsed, values):
            return {family: change(before[family], judge(some)) for family, some in cases.items()}

    if given.set:
        print_sets(given.set, changes, list(cases))
    else:
        print_numbers(numbers(parsed), comments(parsed), changes, list(cases))


def print_sets(sets: list[str], changes, families: list[str]) -> None:
    print("\n| numbers | " + " | ".join(families) + " |\n|---" + "|---" * len(families) + "|")
    for text in sets:
        values = {name: ast.literal_eval(value) for name, value in (part.split("=") for part in text.split(","))}
        found = changes(values)
        print(f"| {text} | " + " | ".join(found[f] for f in families) + " |", flush=True)


def print_numbers(values: dict[str, float], said: dict[str, str], changes, families: list[str]) -> None:
    columns = [f"{family}, {way}" for family in families for way in ("smaller", "larger")]
    print("\n| number | value | tried | " + " | ".join(columns) + " | what it is |")
    print("|---|--:|---|" + "---|" * len(columns) + "---|")
    still = 0
    for name, value in values.items():
        if why := NOT_HERE.get(name.split(".")[0]):
            cells = [why] + [""] * (2 * len(families) - 1)
            print(f"| `{name}` | {value:.4g} | | {' | '.join(cells)} | {said.get(name, '')} |")
            continue
        tried = [moved(value, factor) for factor in (1 / FACTOR, FACTOR)]
        found = [changes({name: other}) for other in tried]
        cells = [one[family] for family in families for one in found]
        still += all(cell == "–" for cell in cells)
        texts = f"{tried[0]:.3g}, {tried[1]:.3g}"
        print(f"| `{name}` | {value:.4g} | {texts} | {' | '.join(cells)} | {said.get(name, '')} |", flush=True)
    print(f"\n{len(values)} numbers; no case turns on {still} of them.")


if __name__ == "__main__":
    main()
