"""Scores the verdicts on several families of known truth, each apart.

    python analysis/bench/families.py tuning|selection|scoring FAMILY=FOLDER ... [--wrong]

FOLDER holds what a family's make.py wrote (*.jsonl, store/). Prints Markdown: per family and class recall and precision
with Wilson intervals, the confusion matrix, confident-and-wrong share, abstention, variants; borderline cases apart.
A case is right only if class, (tier, resource) pairs and nodes are; `unknown` is a class of its own, whose right answer
is `unknown`. `--wrong`: also each case that was judged wrongly, with its evidence."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from detector.score import OUTCOMES, Judged, judged, share_text
from ntier_analysis.statistics.share import wilson


@dataclass(frozen=True)
class Family:
    """`sharp`: cases whose label holds; `borderline`: those near a limit or not what was built in; `failed`: cases that
    the verdict ended on with an error; `dropped`: cases without data (their maker left them out)."""

    name: str
    sharp: list[Judged]
    borderline: list[Judged]
    failed: list[tuple[dict, str]]
    dropped: int


def read(folder: Path, seeds: str) -> list[dict]:
    """Lines of all cases of a set: <set>.<class>.jsonl or <family>.<set>.jsonl."""
    paths = [p for p in sorted(folder.glob("*.jsonl")) if seeds in p.stem.split(".")]
    if not paths:
        raise SystemExit(f"{folder}: no list of cases of the set {seeds!r} (*.jsonl)")
    return [json.loads(line) for p in paths for line in p.read_text().splitlines()]


def judge_family(name: str, folder: Path, seeds: str) -> Family:
    found = Family(name, [], [], [], 0)
    lines = read(folder, seeds)
    there = {p.stem for p in (folder / "store" / "trials").glob("*.parquet")}
    for line in lines:
        if line["name"] not in there:
            continue
        try:
            case = judged(folder, line)
        except Exception as error:
            found.failed.append((line, f"{type(error).__name__}: {error}"))
            continue
        (found.sharp if line["holds"] else found.borderline).append(case)
    return Family(name, found.sharp, found.borderline, found.failed, sum(x["name"] not in there for x in lines))


def wrong(j: Judged) -> bool:
    """Confident and wrong: a verdict other than unknown that errs in class, (tier, resource) or nodes."""
    return j.outcome != "unknown" and not j.right


def fraction(found: list[Judged], test: Callable[[Judged], bool]) -> str:
    return share_text(sum(test(j) for j in found), len(found))


def confusion(found: list[Judged]) -> list[str]:
    """Rows: truth; columns: verdict. In brackets: how many of those on the diagonal name other parts or nodes."""
    count = Counter((j.line["truth"], j.outcome) for j in found)
    misnamed = Counter(j.line["truth"] for j in found if j.outcome == j.line["truth"] and not j.right)
    lines = ["| truth \\ verdict | " + " | ".join(OUTCOMES) + " |", "|---" * (len(OUTCOMES) + 1) + "|"]
    for t in OUTCOMES:
        cells = [str(count[t, o]) + (f" ({misnamed[t]} misnamed)" if o == t and misnamed[t] else "") for o in OUTCOMES]
        lines.append(f"| {t} | " + " | ".join(cells) + " |")
    return lines


def per_class(found: list[Judged]) -> list[str]:
    lines = ["| class | recall | precision | class alone | unknown | confident and wrong |", "|---" * 6 + "|"]
    recalls, precisions = [], []
    for kind in OUTCOMES:
        true, said = [j for j in found if j.line["truth"] == kind], [j for j in found if j.outcome == kind]
        if not true:
            continue
        hits = sum(j.right for j in true)
        recalls.append(hits / len(true))
        precisions.append(hits / len(said) if said else 0.0)
        alone = sum(j.outcome == kind for j in true)
        abstained = sum(j.outcome == "unknown" for j in true)
        cells = [share_text(hits, len(true)), share_text(hits, len(said)), f"{alone}/{len(true)}", str(abstained)]
        lines.append(f"| {kind} | " + " | ".join(cells) + f" | {sum(map(wrong, true))} |")
    if found:
        macro = [macro_text(values, len(found)) for values in (recalls, precisions)]
        lines.append(f"| **macro** | {macro[0]} | {macro[1]} | | | |")
    return lines


def macro_text(values: list[float], n: int) -> str:
    mean = float(np.mean(values))
    low, high = wilson(mean, n, 1.96)
    return f"{mean:.3f} [{low:.3f}, {high:.3f}]"


def totals(found: list[Judged]) -> list[str]:
    knowable = [j for j in found if j.line["truth"] != "unknown"]
    return [
        f"* right: {fraction(found, lambda j: j.right)}",
        f"* confident and wrong: {fraction(found, wrong)}",
        f"* abstained where something can be said: {fraction(knowable, lambda j: j.outcome == 'unknown')}",
    ]


def by_variant(found: list[Judged]) -> list[str]:
    lines = ["| truth | variant | right | unknown | confident and wrong |", "|---|---|---|---|---|"]
    for key in sorted({(j.line["truth"], j.line["variant"]) for j in found}):
        some = [j for j in found if (j.line["truth"], j.line["variant"]) == key]
        right, abstained = sum(j.right for j in some), sum(j.outcome == "unknown" for j in some)
        lines.append(f"| {key[0]} | {key[1]} | {right}/{len(some)} | {abstained} | {sum(map(wrong, some))} |")
    return lines


def report(family: Family) -> list[str]:
    lines = [f"## {family.name}", ""]
    lines += [f"{len(family.sharp)} sharp cases, {len(family.borderline)} borderline, {len(family.failed)} ended with "
              f"an error, {family.dropped} left out by their maker", ""]  # fmt: skip
    for part in (totals, confusion, per_class, by_variant):
        lines += [*part(family.sharp), ""]
    if family.borderline:
        lines += [f"### {family.name}, borderline", ""]
        for part in (totals, confusion):
            lines += [*part(family.borderline), ""]
    return lines + [f"* ERROR {line['name']} {line['variant']}: {error}" for line, error in family.failed]


def details(found: list[Judged]) -> list[str]:
    """Each case that was judged wrongly, with what relief gained and what the verdict said."""
    lines = []
    for j in [j for j in found if not j.right]:
        gains = {k: round(v, 3) for k, v in j.line["gains"].items()}
        said = [(b.tier, b.resource, b.item, b.nodes) for b in j.found.bottlenecks]
        true = f"{j.line['truth']} {j.line['claims']} {j.line.get('unseen', '')}"
        lines += ["", f"### {j.line['name']} {j.line['variant']}: {true} -> {j.outcome} {said}", f"gains {gains}"]
        lines += j.found.evidence
        for load, v in j.found.trials:
            at = f"{load.users_real:g} users {load.throughput_per_s:.1f}/s R {load.response_s:.3f} lost {v.lost:.3f}"
            lines.append(f"  - {at} {v.verdict} {v.kind}")
        lines += ["    " + e for e in (j.found.trials[-1][1].evidence if j.found.trials else [])]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description="Scores the verdicts on families of known truth.")
    parser.add_argument("seeds", choices=("tuning", "selection", "scoring"))
    parser.add_argument("families", nargs="+", metavar="FAMILY=FOLDER")
    parser.add_argument("--wrong", action="store_true", help="also print each case that was judged wrongly")
    given = parser.parse_args()
    for pair in given.families:
        name, _, folder = pair.partition("=")
        family = judge_family(name, Path(folder), given.seeds)
        print("\n".join(report(family)))
        if given.wrong:
            print("\n".join(details(family.sharp)))


if __name__ == "__main__":
    main()
