#!/usr/bin/env python3
"""The study's page from its data.

page.py              results.csv and thesis.csv -> README.md (between its marks) and queries.svg
page.py RAW STORE    before that: valid trials of results/raw -> results.csv; the claims by the store -> claims.md"""

from __future__ import annotations

import csv
import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from ntier_analysis.expectation.claims import judge, read, table
from scipy.optimize import curve_fit

HERE = Path(__file__).resolve().parent
SYSTEM = "two-phase-commit"
THREADS = 8
SELECTS = 4800
COLUMNS = ("nodes", "mode", "sleep_s", "rep", "scale", "seconds", "selects", "alters", "statements", "failed",
           "queries_per_s", "alters_per_s", "stock", "converged", "atomic")  # fmt: skip
MARKS = {name: (f"<!-- {name} -->", f"<!-- end of {name} -->") for name in ("tables", "law", "claims")}
Key = tuple[int, str]


def rows(name: str) -> list[dict[str, str]]:
    with (HERE / name).open(newline="") as file:
        return list(csv.DictReader(file))


def collect(raw: Path) -> None:
    """Valid trials -> results.csv."""
    kept = []
    for file in sorted(raw.glob(f"{SYSTEM}.*/*/manifest.json")):
        told = json.loads(file.read_text())
        work = file.parent / "clients/client1/work.json"
        if not (told.get("validity") or {}).get("valid") or not work.exists():
            continue
        done = json.loads(work.read_text())
        kept.append({
            "nodes": told["topology"], "mode": done["mode"], "sleep_s": told["system"]["factor"]["value"],
            "rep": told["rep"], "scale": told["scale"], **{k: done[k] for k in COLUMNS[5:11]},
            "alters_per_s": round(done["alters"] / done["seconds"], 3),
            **{k: done["state"].get(k, "") for k in COLUMNS[12:]},
        })  # fmt: skip
    with (HERE / "results.csv").open("w", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)


def by_cell(found: Iterable[dict[str, str]]) -> dict[Key, dict[float, list[dict[str, str]]]]:
    cells: dict[Key, dict[float, list[dict[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for row in found:
        cells[int(row["nodes"]), row["mode"]][float(row["sleep_s"])].append(row)
    return cells


def mean(cell: list[dict[str, str]], column: str) -> float:
    return float(np.mean([float(row[column]) for row in cell]))


def tables() -> str:
    """Tables 2 to 4 of the thesis, and what was measured here."""
    thesis, here = by_cell(rows("thesis.csv")), by_cell(rows("results.csv"))
    lines = ["| nodes | mode | sleep, s | thesis: queries/s | seconds | here: queries/s | seconds | alters/s | runs |",
             "|--:|---|--:|--:|--:|--:|--:|--:|--:|"]  # fmt: skip
    for (nodes, mode), sleeps in thesis.items():
        for sleep, cell in sleeps.items():
            ours = here.get((nodes, mode), {}).get(sleep, [])
            measured = [f"{mean(ours, 'queries_per_s'):,.0f}", f"{mean(ours, 'seconds'):.1f}",
                        f"{mean(ours, 'alters_per_s'):.2f}", str(len(ours))] if ours else ["", "", "", "0"]  # fmt: skip
            theirs = [f"{mean(cell, 'queries_per_s'):,.0f}", f"{mean(cell, 'seconds'):.2f}"]
            lines.append(f"| {nodes} | {mode} | {sleep:g} | {' | '.join([*theirs, *measured])} |")
    return "\n".join(lines)


def law(sleep: np.ndarray, statements: float, work_s: float) -> np.ndarray:
    """log of the statements per second of THREADS threads that sleep and then work."""
    return np.log(THREADS * statements / (sleep + work_s))


def fitted() -> str:
    """The law fitted to the thesis' tables: statements of an alter, its time, what is left over."""
    lines = ["| nodes | mode | statements of an alter | time of an alter, s | limit, statements/s | error of the fit |",
             "|--:|---|--:|--:|--:|--:|"]  # fmt: skip
    for (nodes, mode), sleeps in by_cell(rows("thesis.csv")).items():
        at = np.array(list(sleeps))
        rate = np.array([mean(c, "queries_per_s") - SELECTS / mean(c, "seconds") for c in sleeps.values()])
        best, spread = curve_fit(law, at, np.log(rate), p0=(50, 0.1), bounds=(0, (1000, 10)))
        error, off = np.sqrt(np.diag(spread)), np.sqrt(np.mean((np.log(rate) - law(at, *best)) ** 2))
        texts = [f"{best[0]:.0f} ± {error[0]:.0f}", f"{best[1]:.2f} ± {error[1]:.2f}",
                 f"{THREADS * best[0] / best[1]:,.0f}", f"{100 * off:.0f} %"]  # fmt: skip
        lines.append(f"| {nodes} | {mode} | {' | '.join(texts)} |")
    return "\n".join(lines)


def draw() -> None:
    """Figure 26: queries per second over the sleep."""
    mpl.rcParams["svg.hashsalt"] = SYSTEM
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    here = by_cell(rows("results.csv"))
    for place, (title, cells) in enumerate((("thesis", by_cell(rows("thesis.csv"))), ("here", here)), 1):
        axes = figure.add_subplot(1, 2, place)
        for (nodes, mode), sleeps in sorted(cells.items()):
            at = sorted(sleeps)
            style = {
                "marker": "o" if mode == "base" else "x",
                "color": f"C{(1, 2, 4).index(nodes)}",
                "linestyle": "-" if mode == "base" else "--",
            }
            axes.plot(at, [mean(sleeps[s], "queries_per_s") for s in at], label=label(nodes, mode), **style)
        axes.set(title=title, xlabel="sleep between alters, s", ylabel="queries/s", xlim=(0, 2.1))
        axes.set_ylim(bottom=0)
        if cells:
            axes.legend()
    figure.savefig(HERE / "queries.svg", metadata={"Date": None})


def label(nodes: int, mode: str) -> str:
    return "1 node" if nodes == 1 else f"{nodes} nodes, {mode.upper()}"


def page() -> str:
    """README.md with its made parts made anew."""
    text = (HERE / "README.md").read_text()
    made: dict[str, Any] = {"tables": tables(), "law": fitted(), "claims": (HERE / "claims.md").read_text().rstrip()}
    for name, (begin, end) in MARKS.items():
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n{made[name]}\n{end}{rest.partition(end)[2]}"
    return text


def main(arguments: list[str]) -> None:
    if arguments:
        collect(Path(arguments[0]))
        (HERE / "claims.md").write_text(table(judge(read(HERE / "claims.yaml"), Path(arguments[1]))) + "\n")
    draw()
    (HERE / "README.md").write_text(page())


if __name__ == "__main__":
    main(sys.argv[1:])
