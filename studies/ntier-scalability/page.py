#!/usr/bin/env python3
"""The study's page from its data.

page.py          maxima.csv, outcomes.csv, data/ -> README.md (between its marks), claims.md, figures/
page.py RESULTS  before that: what its store/ holds of the study -> these three, and operands.csv: the sides of the
                 claims' ratios. What they have of other sweeps stays, so that the study can be measured block by
                 block, on several days and machines, and a sweep be compared with one of another day"""

from __future__ import annotations

import csv
import math
import re
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import costs
import figures as drawn
from costs import ANCHOR
from ntier_analysis.comparison.values import has_valid_trial
from ntier_analysis.expectation.claims import (
    Claim,
    Judged,
    alternatives,
    anchors,
    between,
    filled,
    judge,
    operands_of,
    read,
    read_parts,
    table,
    write_parts,
)
from ntier_analysis.expectation.quantities import Facts, mean_throughput, read_facts
from ntier_analysis.expectation.quantity import Quantity, quotient
from ntier_analysis.expectation.sides import Blocks, Operand, Side, read_operands, with_ends, write_operands
from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.store.tables import sweeps
from ntier_analysis.wording import counted

HERE = Path(__file__).resolve().parent
CLAIMS, OUTCOMES, OPERANDS = HERE / "claims.yaml", HERE / "outcomes.csv", HERE / "operands.csv"
SCALE = CORES = 0.2  # of the mesh, and of its nodes
ROWS, DATABASES = (1, 2, 3), (1, 2, 3, 4, 6, 9)
PROXY = "shardingsphere"


class Series(NamedTuple):
    """A map: the letters of its topologies' databases. `of_paper`: what the paper's is called; empty: the same."""

    title: str
    letters: str
    middleware: str = PROXY
    of_paper: str = ""


SERIES = (
    Series("MySQL, normal nodes (Figures 2(a), 3(a))", "M"),
    Series("PostgreSQL, normal nodes (Figures 2(b), 3(b))", "P"),
    Series("MySQL, low-cost nodes (Figures 2(c), 3(c))", "ML"),
    Series("MySQL, normal nodes, behind HAProxy", "M", "haproxy", "MySQL, normal nodes, behind C-JDBC"),
)
MESH = "1-{1,2,3}-1-{1,2,3,4,6,9}"
ALL, LONG, LONG_8000 = drawn.ALL, drawn.LONG, drawn.LONG_8000
SQL = "browse_only.ndbsql"
CLUSTER = f"1-2-{{1-2C.{SQL}.s0_2,2-2C.{SQL}.s0_2,4-2C.{SQL}.s0_15,1-4C.{SQL}.s0_15,2-4C.{SQL}.s0_15,4-4C.{SQL}.s0_15}}"
DENSITY = "figure {} --kind density-surface --node"
FIGURES = (
    ("1(a)", "density of the database's CPU over the users, one database", f"1-1-1-1M.{ALL}.s0_2", f"{DENSITY} db1"),
    ("1(b)", "the same, two databases", f"1-1-1-2M.{ALL}.s0_2", f"{DENSITY} db1"),
    ("2(a), 3(a)", "what limits, and maximum throughput: MySQL", f"{MESH}M.{ALL}.s0_2", "map"),
    ("2(b), 3(b)", "the same, PostgreSQL", f"1-{{1,2,3}}-1-{{{{1,2,3,4}}P.{ALL}.s0_2,{{6,9}}P.{ALL}.s0_1}}", "map"),
    ("2(c), 3(c)", "the same, MySQL on low-cost nodes", f"{MESH}ML.{ALL}.s0_2", "map"),
    ("2(d), 3(d), 3(e)", "the same, MySQL Cluster", CLUSTER, "map"),
    ("4(a)", "density of the first database's disk", LONG, f"{DENSITY} db1 --resource disk"),
    ("4(b)", "density of the middleware's CPU", LONG, f"{DENSITY} middleware1"),
    ("5", "disk, running and executed statements, CPU by the second", LONG_8000, "figure {} --kind course --node db1"),
    ("5", "which of these move together, found without being told", LONG_8000, "chains {}"),
)
"""Figure of the paper, what it shows, the sweeps that it needs here, the command that makes it."""
COLUMNS = ("sweep", "limits", "max_per_s", "low", "high", "at_least", "knee_users", "trials", "day",
           "anchor_per_s")  # fmt: skip


def collect(store: Path) -> None:
    """Sweeps of the study with a valid trial -> maxima.csv and costs.csv, beside those that they have already."""
    beside = _anchors()
    wanted = {*beside, *beside.values(), *(sweep for claim in read(CLAIMS) for sweep in claim.sweeps)}
    names = [name for name in sweeps(store) if name in wanted and has_valid_trial(name, store)]
    facts = read_facts(store, names) if names else {}
    made = {name: _row(facts[name], facts.get(beside.get(name, ""))) for name in names}
    kept = {name: row for name, row in rows().items() if name in wanted}
    with (HERE / "maxima.csv").open("w", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for _, row in sorted((kept | made).items()))
    costs.keep(facts.values(), wanted)


def _row(cell: Facts, anchor: Facts | None) -> dict[str, object]:
    """Interactions per second are measured, not nominal."""
    verdict = cell.verdict
    low, high = verdict["max_throughput_interval"]
    unit = mean_throughput(anchor.trials).value if anchor else math.nan
    knee = verdict["knee_users"]
    return {
        "sweep": cell.sweep, "limits": cell.named, "max_per_s": verdict["max_throughput_per_s"], "low": low,
        "high": high, "at_least": int(verdict["max_throughput_at_least"]),
        "knee_users": None if knee is None else round(knee),
        "trials": int(cell.trials["valid"].fillna(False).sum()), "day": cell.day,
        "anchor_per_s": "" if math.isnan(unit) else round(unit, 3),
    }  # fmt: skip


def rows() -> dict[str, dict[str, str]]:
    with (HERE / "maxima.csv").open(newline="") as file:
        return {row["sweep"]: row for row in csv.DictReader(file)}


def paper() -> dict[tuple[str, int, int], str]:
    """What limits in the paper, by its text: letters, application servers, databases -> tier and resource."""
    with (HERE / "paper.csv").open(newline="") as file:
        found = csv.DictReader(file)
        return {(r["letters"], int(r["application_servers"]), int(r["databases"])): r["limits"] for r in found}


def figures() -> str:
    """The paper's figures, the command that draws ours, and how many of its sweeps were measured."""
    there = rows()
    lines = ["| paper | shows | here: `.venv/bin/ntier-analysis ...` | measured |", "|---|---|---|---|"]
    for name, shows, pattern, command in FIGURES:
        named = alternatives(pattern)
        measured = sum(sweep in there for sweep in named)
        said = "not measured yet" if not measured else f"{measured} of {counted(len(named), 'sweep')}"
        drawn = f"{command.format(named[0])}{' --out FILE' if command.startswith('figure') else ''}"
        lines.append(f"| {name} | {shows} | {f'`{drawn}`' if command else 'has not been run yet'} | {said} |")
    return "\n".join(lines)


def pictures(drawings: dict[str, Drawing]) -> str:
    """Each drawn figure with what is to be seen in it."""
    parts = [
        f"**Figure {paper}.** {drawing.finding} {drawing.caption}\n\n![Figure {paper}](figures/{drawn.picture(paper)})"
        for paper, drawing in drawings.items()
    ]
    return "\n\n".join(parts) or "None yet."


def sweep_at(row: int, databases: int, letters: str, middleware: str) -> str:
    """Name of the sweep of a place of the mesh. `row`: application servers."""
    small = letters == "P" and databases > 4  # all full at SCALE are more than the machine beneath has
    return f"1-{row}-1-{databases}{letters}.browse_only.{middleware}.{'s0_1' if small else 's0_2'}"


@cache
def _anchors() -> dict[str, str]:
    """Sweep -> its anchor. The file takes long to read, and each place asks."""
    return anchors(CLAIMS)


def scale_of(sweep: str) -> float:
    """By the end of its name; an anchor has that of its block."""
    name = next((cell for cell, anchor in _anchors().items() if anchor == sweep), sweep)
    told = re.search(r"\.s(\d+)_(\d+)$", name)
    return float(f"{told[1]}.{told[2]}") if told else SCALE


def maps() -> None:
    """The paper's maps beside ours -> figures/maps.png. The paper has one middleware: its map of MySQL stands beside
    ours behind each."""
    there, theirs = rows(), paper()

    def place(series: Series, row: int, databases: int) -> tuple[str, str]:
        found = there.get(sweep_at(row, databases, series.letters, series.middleware))
        if found is None or not found["max_per_s"]:
            return "", ""
        return named(found["limits"]), _in_anchors(found)

    def pair(series: Series) -> drawn.Pair:
        return drawn.Pair(
            (f"{series.title}: here", lambda row, d: place(series, row, d)),
            (f"{series.of_paper or series.title}: the paper", lambda row, d: (theirs[series.letters, row, d], "")),
        )

    drawn.draw_maps([pair(series) for series in SERIES], ROWS, DATABASES)


def _in_anchors(row: dict[str, str]) -> str:
    """Machines and hours differ in speed: in units of what 1/1/1/1M made beside it; empty where nothing did."""
    if not row["anchor_per_s"]:
        return ""
    least = "≥ " if row["at_least"] == "1" else ""
    mark = "" if scale_of(row["sweep"]) == SCALE else "*"
    return f"{least}{float(row['max_per_s']) / float(row['anchor_per_s']):.2f}{mark}"


def mesh() -> str:
    """A table for each series: databases across, application servers down; what limits in the paper in italics."""
    there, theirs, parts = rows(), paper(), []
    for title, letters, middleware, _ in SERIES:
        lines = [
            f"**{title}**\n",
            f"| application servers | {' | '.join(f'{d} databases' if d > 1 else '1 database' for d in DATABASES)} |",
            f"|--:|{'---|' * len(DATABASES)}",
        ]
        for row in ROWS:
            cells = []
            for d in DATABASES:
                said = f"*{theirs[letters, row, d]}*; " if middleware == PROXY else ""
                cells.append(said + cell(there.get(sweep_at(row, d, letters, middleware))))
            lines.append(f"| {row} | {' | '.join(cells)} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def named(limits: str) -> str:
    """`single db cpu` -> `db cpu`; `multi simultaneous db cpu and app cpu` -> `db cpu and app cpu`."""
    return re.sub(r"^(single|multi( simultaneous| alternating)?) ", "", limits)


def cell(row: dict[str, str] | None) -> str:
    """`db cpu: 577 [557, 597], 1.02 anchors`; throughput nominal."""
    if row is None or not row["max_per_s"]:
        return "not measured yet"
    unit = f", {float(row['max_per_s']) / float(row['anchor_per_s']):.2f} anchors" if row["anchor_per_s"] else ""
    return f"{_told(row)}{unit}"


def _told(row: dict[str, str]) -> str:
    """`db cpu: 577 [557, 597]`."""
    scale = scale_of(row["sweep"])
    ends = f" [{', '.join(f'{float(row[end]) / scale:.0f}' for end in ('low', 'high'))}]" if row["low"] else ""
    least = "at least " if row["at_least"] == "1" else ""
    other = "" if scale == SCALE else f" (scale {scale:g})"
    return f"{named(row['limits'])}: {least}{float(row['max_per_s']) / scale:.0f}{ends}{other}"


def cost() -> str:
    """A table for each series that has been measured in part, and one of PostgreSQL without its genetic planner."""
    there = rows()
    measured = {name: _told(row) for name, row in there.items() if row["max_per_s"]}
    least = {name for name, row in there.items() if row["at_least"] == "1"}
    series = {
        title: [(f"1/{row}/1/{d}{letters}", sweep_at(row, d, letters, middleware)) for row in ROWS for d in DATABASES]
        for title, letters, middleware, _ in SERIES
    }
    planned = [(f"1/1/1/{d}P", f"1-1-1-{d}P.{ALL}.geqo-off") for d in (1, 2)]
    series["PostgreSQL without its genetic planner, beside MySQL"] = [
        ("1/1/1/1M", sweep_at(1, 1, "M", PROXY)),
        *planned,
    ]
    parts = [
        f"**{title}**\n\n{costs.table(places, measured, scale_of, least, blocks())}"
        for title, places in series.items()
        if any(name in measured for _, name in places)
    ]
    return "\n\n".join(parts) or "None yet."


def blocks() -> costs.Blocks:
    """Of what is compared by the CPU of the web server."""
    known = Blocks(_anchors(), between(CLAIMS))

    def of(one: str, other: str) -> Quantity | None:
        return known.between([Side("cores", "web", False, name) for name in (one, other)])

    return of


def claims() -> str:
    """How many came out how, then the table."""
    text = (HERE / "claims.md").read_text().rstrip()
    counts = Counter(re.findall(r"\*\*([a-z ]+)\*\* \|$", text, re.MULTILINE))
    told = ", ".join(f"{judged} {counts[judged]}" for judged in Judged if counts[judged])
    return f"{counts.total()} claims: {told}.\n\n{text}"


def page() -> str:
    """README.md with its made parts made anew."""
    made = {"figures": figures(), "pictures": pictures(drawn.drawings()), "mesh": mesh(), "costs": cost(),
            "anchors": costs.anchors(rows(), SCALE, CORES, blocks()), "claims": claims()}  # fmt: skip
    return filled((HERE / "README.md").read_text(), made)


def judged(store: Path) -> list[Claim]:
    """By the store, and where it lacks a sweep by what others had of it, and said."""
    claims = read(CLAIMS)
    named = {key for claim in claims for key in claim.sides}
    kept = {key: known for key, known in read_operands(OPERANDS).items() if key in named}
    write_operands(kept | with_ends(operands_of(claims, store)), OPERANDS)
    verdicts = {name: row["limits"] for name, row in rows().items()}
    return judge(claims, store, read_parts(OUTCOMES), of_maxima() | read_operands(OPERANDS), verdicts)


def of_maxima() -> dict[tuple[str, str], Operand]:
    """Maxima, and those in anchors, as sides of ratios: of sweeps that are gone, for a claim that is younger."""
    beside, there, found = _anchors(), rows(), {}
    for name, row in there.items():
        settings = {"scale": f"{scale_of(name):g}", "data_profile": "small",
                    "think_time_s": "7", "mix": name.split(".")[1],
                    "system": "unknown", "target": "unknown"}  # fmt: skip
        sides = {"max_throughput": _maximum(row)}
        if unit := there.get(beside.get(name, "")):
            sides["max_throughput in anchors"] = quotient(sides["max_throughput"], replace(_maximum(unit), note=""))
        found |= {(name, number): Operand(side, settings, row["day"]) for number, side in sides.items()}
    return {key: side for key, side in found.items() if side.measured.low is not None}


def _maximum(row: dict[str, str]) -> Quantity:
    """Of a line of maxima.csv. An anchor's trials all lie beyond the knee: its mean is no lower bound."""
    if not row["low"]:
        return Quantity(math.nan, None, None)
    least = row["at_least"] == "1" and ANCHOR not in row["sweep"]
    value, low, high = (float(row[key]) for key in ("max_per_s", "low", "high"))
    return Quantity(value, low, math.inf if least else high, "a lower bound" if least else "")


def main(arguments: list[str]) -> None:
    if arguments:
        store = Path(arguments[0]) / "store"
        collect(store)
        found = judged(store)
        write_parts(found, OUTCOMES)
        (HERE / "claims.md").write_text(table(found) + "\n")
        drawn.keep(store)
    drawn.save(drawn.drawings())
    maps()
    (HERE / "README.md").write_text(page())


if __name__ == "__main__":
    main(sys.argv[1:])
