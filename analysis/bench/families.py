"""Scores the verdicts on several families of known truth, each apart.

    python analysis/bench/families.py tuning|selection|scoring FAMILY=FOLDER ... [--wrong]

FOLDER holds what a family's make.py wrote (*.jsonl, store/). Prints Markdown: per family and class recall and precision
with Wilson intervals, the confusion matrix, confident-and-wrong share, abstention, variants; borderline cases apart.
A case is right only if class, (tier, resource) pairs and nodes are; `unknown` is a class of its own, whose right answer
is `unknown`. `--wrong`: also each case that was judged wrongly, with its evidence."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

from scores import Judged, by_agreement, by_variant, confusion, judged, per_class, totals


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
    family = Family(name, [], [], [], 0)
    lines = read(folder, seeds)
    there = {p.stem for p in (folder / "store" / "trials").glob("*.parquet")}
    for line in lines:
        if line["name"] not in there:
            continue
        try:
            case = judged(folder, line)
        except Exception as error:
            family.failed.append((line, f"{type(error).__name__}: {error}"))
            continue
        (family.borderline if line["why"] else family.sharp).append(case)
    return Family(name, family.sharp, family.borderline, family.failed, sum(x["name"] not in there for x in lines))


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
    lines += [f"### {family.name}, all by agreement", "", *by_agreement(family.sharp + family.borderline), ""]
    return lines + [f"* ERROR {line['name']} {line['variant']}: {error}" for line, error in family.failed]


def details(cases: list[Judged]) -> list[str]:
    """Each case that was judged wrongly, with what relief gained and what the verdict said."""
    lines = []
    for j in [j for j in cases if not j.right]:
        gains = {k: round(v, 3) for k, v in j.line["gains"].items()}
        said = [(b.tier, b.resource, b.item, b.nodes) for b in j.verdict.bottlenecks]
        true = f"{j.line['truth']} {j.line['claims']} {j.line.get('unseen', '')}"
        lines += ["", f"### {j.line['name']} {j.line['variant']}: {true} -> {j.outcome} {said}", f"gains {gains}"]
        lines += j.verdict.evidence
        for load, v in j.verdict.trials:
            at = f"{load.users_real:g} users {load.throughput_per_s:.1f}/s R {load.response_s:.3f} lost {v.lost:.3f}"
            lines.append(f"  - {at} {v.verdict} {v.kind}")
        lines += ["    " + e for e in (j.verdict.trials[-1][1].evidence if j.verdict.trials else [])]
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
