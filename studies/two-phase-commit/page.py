#!/usr/bin/env python3
"""The study's page from its data.

page.py              results.csv, rates.csv, limits.csv, thesis.csv -> README.md (between its marks), claims.md, figures
page.py RESULTS      before that: valid trials of its raw/ -> the first two; what its store/ says of the sweeps ->
                     limits.csv. What they have of other trials stays: the study may be measured on several days and
                     machines, and each adds its runs. A file RESULTS/machine names the machine in the tables; without
                     one it is its cores and CPU, which two machines may share. Claims are judged from results.csv"""

from __future__ import annotations

import math
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import curves
import judging
import laws
import numpy as np
import runs
from ntier_analysis.expectation.claims import filled, read, table
from ntier_analysis.wording import counted
from runs import (
    LIMITS,
    NO_RUN,
    NOT_MEASURED,
    SCALE,
    USUAL,
    Row,
    by_cell,
    half_width,
    in_anchors,
    is_anchor,
    mean,
    measured,
    occasion,
    rows,
    run_of,
    sweep,
    usual,
)

SELECTS = 4800  # of a run
SHORTEST, LONG = 0.1, 1.0  # sleeps of the claims, and of the comparison with what people use today
MODES = {
    "acid": "two-phase commit on all nodes",
    "quorum": "one node writes; a commit waits until a majority has applied it",
    "base": "commit on one node, our queue",
    "logical": "commit on one node, PostgreSQL's logical replication",
}
ENOUGH = 5  # repetitions
EIGHT = "s0_1"  # block of eight-nodes.yaml
LEAST_SLEEPS = 3  # for a fit of two numbers that leaves something to judge it by

# ---- a cell of a table -----------------------------------------------------------------------------------------------


def interval(cell: list[Row], column: str, digits: int = 0) -> str:
    return spread([float(row[column]) for row in cell if row[column] != ""], digits) or NOT_MEASURED


def spread(values: list[float], digits: int) -> str:
    """Mean, and half its 95 % interval (Student's t) if there are two or more; nothing of nothing."""
    if not values:
        return ""
    text, half = f"{np.mean(values):,.{digits}f}", half_width(values)
    return text if math.isnan(half) else f"{text} ± {half:,.{digits}f}"


# ---- tables ----------------------------------------------------------------------------------------------------------


def tables() -> str:
    """Tables 2 to 4 of the thesis, and what was measured here."""
    thesis, here = by_cell(rows("thesis.csv")), measured()
    names = ("nodes", "mode", "sleep, s", "thesis: queries/s", "seconds", "here: queries/s", "in anchors", "seconds",
             "alters/s", "runs", "occasions")  # fmt: skip
    lines = [f"| {' | '.join(names)} |", "|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for (nodes, mode), sleeps in thesis.items():
        for sleep, cell in sleeps.items():
            ours = here.get((nodes, mode), {}).get(sleep, [])
            found = [interval(ours, "queries_per_s"), spread(in_anchors(ours), 2) or "", interval(ours, "seconds", 1),
                     interval(ours, "alters_per_s", 2), counts(ours)]  # fmt: skip
            theirs = [f"{mean(cell, 'queries_per_s'):,.0f}", f"{mean(cell, 'seconds'):.2f}"]
            lines.append(f"| {nodes} | {mode} | {sleep:g} | {' | '.join([*theirs, *found])} |")
    alone = [row for sleeps in [here.get((1, "selects"), {})] for cell in sleeps.values() for row in cell]
    flat = [interval(alone, "queries_per_s", 1), spread(in_anchors(alone), 2), interval(alone, "seconds", 1)]
    lines.append(f"| 1 | selects alone |  | figure 26 |  | {' | '.join(flat)} | 0 | {counts(alone)} |")
    return "\n".join(lines)


def counts(cell: list[Row]) -> str:
    """Two columns: runs, and machines and days that they are from."""
    return f"{len(cell)} | {len(set(map(occasion, cell)))}"


def fitted() -> str:
    """Both laws fitted to the thesis' tables, and to the runs here."""
    names = ("nodes", "mode", "of", "sleeps", "statements of an alter", "time of an alter, s", "limit, statements/s",
             "fit's error", "queue: work of an alter, s", "waits of an alter, s", "limit, statements/s",
             "fit's error")  # fmt: skip
    lines = [f"| {' | '.join(names)} |", f"|--:|---|---|{'--:|' * 9}"]
    here = measured()
    for (nodes, mode), sleeps in by_cell(rows("thesis.csv")).items():
        rate = [mean(c, "queries_per_s") - SELECTS / mean(c, "seconds") for c in sleeps.values()]
        lines.append(f"| {nodes} | {mode} | the thesis | {' | '.join(laws.columns(list(sleeps), rate))} |")
        ours = here.get((nodes, mode), {})
        if len(ours) < LEAST_SLEEPS:
            few = f"{NOT_MEASURED} (runs at {counted(len(ours), 'sleep')}, {LEAST_SLEEPS} are needed)"
            lines.append(f"| {nodes} | {mode} | here | {few} |{'  |' * 8}")
            continue
        lines.append(f"| {nodes} | {mode} | here | {' | '.join(laws.columns(*laws.points(ours)))} |")
    return "\n".join(lines)


COMPARED = ("queries/s", "alters/s", "an alter takes, ms", "others have it after, ms", "rows that came late",
            "runs with a broken promise", "runs", "occasions")  # fmt: skip


def compared(mode: str, cell: list[Row]) -> str:
    """The columns COMPARED."""
    stale = "0" if mode == "acid" else interval(cell, "stale_ms")
    found = [interval(cell, "queries_per_s"), interval(cell, "alters_per_s", 1), interval(cell, "alter_ms"), stale,
             interval(cell, "late")]  # fmt: skip
    return f"{' | '.join(found)} | {sum(bool(row['broken']) for row in cell)} | {counts(cell)} |"


def today() -> str:
    """All four modes on the same work."""
    here = measured()
    lines = [f"| nodes | sleep, s | mode | {' | '.join(COMPARED)} |", f"|--:|--:|---|{'--:|' * len(COMPARED)}"]
    missing = 0
    for nodes in (2, 4):
        for sleep in (SHORTEST, LONG):
            for mode, text in MODES.items():
                cell = here.get((nodes, mode), {}).get(sleep, [])
                if not cell:
                    missing += 1
                    continue
                lines.append(f"| {nodes} | {sleep:g} | {text} | {compared(mode, cell)}")
    if missing:
        lines += ["", f"Not measured yet: {missing} of {4 * len(MODES)} such rows."]
    return "\n".join(lines)


def anchors() -> str:
    """One node at 1 s in each block, pass by pass: how fast the machines were, and how they wandered."""
    found: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in filter(is_anchor, sorted(rows("results.csv"), key=run_of)):
        found[row["day"], row["machine"], row["block"].removeprefix("anchor-")].append(row)
    if not found:
        return f"Anchors: {NO_RUN}."
    lines = ["| day | machine | block | queries/s of each pass | an alter takes, ms (median of each pass) |",
             "|---|---|---|---|---|"]  # fmt: skip
    for (day, where, block), passes in sorted(found.items()):
        rates = ", ".join(f"{float(row['queries_per_s']):,.0f}" for row in passes)
        times = ", ".join(row["alter_ms"] or "?" for row in passes)
        lines.append(f"| {day} | {where or 'not known'} | {block} | {rates} | {times} |")
    return "\n".join(lines)


def claims() -> str:
    """What the thesis says, judged by the runs."""

    def rates(name: str, sleep: float) -> list[tuple[tuple[str, str], float]]:
        return [
            (occasion(row), float(row["alters_per_s"]))
            for row in usual()
            if sweep(row) == name and float(row["sleep_s"]) == sleep
        ]

    return table(judging.judge(read(runs.HERE / "claims.yaml"), rates))


def varied(block: str, setting: str) -> list[tuple[int, str, float, list[Row]]]:
    """Of a block that varies one setting: nodes, mode, value, runs."""
    found: dict[tuple[int, str, float], list[Row]] = defaultdict(list)
    for row in rows("results.csv"):
        others = dict(word.split("=") for word in row["set"].split())
        value = float(others.pop(setting, USUAL[setting]))
        if row["block"] == block and not others and float(row["scale"]) == SCALE:
            found[int(row["nodes"]), row["mode"], value].append(row)
    return [(*key, found[key]) for key in sorted(found)]


def delays() -> str:
    """What a delay between the nodes costs."""
    found = varied("delays", "delay_ms")
    if not found:
        return f"Delays: {NO_RUN}."
    names = ("nodes", "mode", "delay, ms", "added to a round trip, ms", "alters/s", "an alter takes, ms",
             "others have it after, ms", "relay, cores", "runs", "occasions")  # fmt: skip
    lines = [f"| {' | '.join(names)} |", f"|--:|---|{'--:|' * 8}"]
    for nodes, mode, delay, cell in found:
        told = [interval(cell, "added_ms", 2) if delay else "0", interval(cell, "alters_per_s", 1),
                interval(cell, "alter_ms", 1), "0" if mode == "acid" else interval(cell, "stale_ms"),
                interval(cell, "relay_cores", 3) if delay else "0"]  # fmt: skip
        lines.append(f"| {nodes} | {mode} | {delay:g} | {' | '.join(told)} | {counts(cell)} |")
    return "\n".join(lines)


def eight() -> str:
    """Eight nodes beside two at a scale that two cores carry."""
    found = by_cell(row for row in rows("results.csv") if row["block"] == EIGHT)
    if not found:
        return f"Eight nodes: {NO_RUN}."
    lines = [f"| nodes | mode | sleep, s | {' | '.join(COMPARED)} |", f"|--:|---|--:|{'--:|' * len(COMPARED)}"]
    for (nodes, mode), sleeps in sorted(found.items()):
        lines += [f"| {nodes} | {mode} | {s:g} | {compared(mode, cell)}" for s, cell in sorted(sleeps.items())]
    return "\n".join(lines)


def sizes() -> str:
    """Other sizes of rows and of alters."""
    blocks = (("rows", "note_bytes", "bytes in a row"), ("alters", "transfers", "transfers in an alter"))
    found = [(text, *cell) for block, setting, text in blocks for cell in varied(block, setting)]
    if not found:
        return f"Sizes: {NO_RUN}."
    names = ("what", "nodes", "mode", "alters/s", "statements/s", "an alter takes, ms", "others have it after, ms",
             "runs", "occasions")  # fmt: skip
    lines = [f"| {' | '.join(names)} |", f"|---|--:|---|{'--:|' * 6}"]
    for text, nodes, mode, value, cell in found:
        rate = [float(row["statements"]) / float(row["seconds"]) for row in cell]
        told = [interval(cell, "alters_per_s", 1), spread(rate, 0), interval(cell, "alter_ms", 1),
                "0" if mode == "acid" else interval(cell, "stale_ms")]  # fmt: skip
        lines.append(f"| {value:g} {text} | {nodes} | {mode} | {' | '.join(told)} | {counts(cell)} |")
    return "\n".join(lines)


def limits() -> str:
    """What limits, by the verdict of each sweep."""
    found = [row for row in rows("limits.csv") if ".anchor-" not in row["sweep"]]
    if not found:
        return f"What limits: {NO_RUN}."
    lines = (f"| {' | '.join(row[name] or 'not noted' for name in LIMITS)} |" for row in found)
    return "\n".join(["| sweep | day | machine | at | what limits |", "|---|---|---|---|---|", *lines])


def extent() -> str:
    """How much of the thesis' 25 runs was made here, and when."""
    here, there = measured(), by_cell(rows("thesis.csv"))
    cells = [(here.get(key, {}).get(sleep, [])) for key, sleeps in there.items() for sleep in sleeps]
    enough = sum(len(cell) >= ENOUGH for cell in cells)
    lines = [
        f"Of the thesis' {len(cells)} runs {sum(map(bool, cells))} were made here at least once, and {enough} at least "
        f"{ENOUGH} times. Valid runs:", "", "| day | machine | block | runs |", "|---|---|---|--:|",
    ]  # fmt: skip
    days = Counter((row["day"], row["machine"], row["block"]) for row in rows("results.csv"))
    lines += [f"| {day} | {where or 'not known'} | {block} | {n} |" for (day, where, block), n in sorted(days.items())]
    return "\n".join(lines)


def rates_over_time() -> str:
    """The figure, once a run has told its rates."""
    if not runs.runs_with_rates():
        return f"Rates over time: {NO_RUN}."
    return "![Selects and alters per second in each run](rates.svg)"


def figure_of_laws() -> str:
    """The figure, once a mode was measured at more sleeps than the thesis'."""
    if not curves.with_law():
        return f"More sleeps than the thesis': {NO_RUN}."
    return "![Statements of alters per second over the sleep, and both laws](laws.svg)"


# ---- page ----------------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[], str]] = {
    "tables": tables,
    "rates": rates_over_time,
    "law": fitted,
    "laws": figure_of_laws,
    "today": today,
    "delays": delays,
    "eight": eight,
    "sizes": sizes,
    "anchors": anchors,
    "limits": limits,
    "extent": extent,
    "claims": claims,
}


def page() -> str:
    """README.md with its made parts made anew."""
    return filled((runs.HERE / "README.md").read_text(), {name: make() for name, make in PARTS.items()})


def main(arguments: list[str]) -> None:
    if arguments:
        results = Path(arguments[0])
        runs.collect(results / "raw")
        runs.collect_limits(results)
    (runs.HERE / "claims.md").write_text(claims() + "\n")
    curves.draw(runs.HERE)
    (runs.HERE / "README.md").write_text(page())


if __name__ == "__main__":
    main(sys.argv[1:])
