#!/usr/bin/env python3
"""The study's page from its data.

page.py              results.csv, rates.csv, limits.csv, thesis.csv -> README.md (between its marks), figures
page.py RESULTS      before that: valid trials of its raw/ -> the first two; what its store/ says of the sweeps ->
                     limits.csv, outcomes.csv, claims.md. What they have of other trials stays: the study may be
                     measured on several days"""

from __future__ import annotations

import csv
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from ntier_analysis.comparison.values import has_valid_trial
from ntier_analysis.expectation.claims import filled, judge, read, read_parts, table, write_parts
from ntier_analysis.expectation.quantities import read_facts
from ntier_analysis.store.tables import sweeps
from ntier_analysis.wording import counted
from scipy import stats
from scipy.optimize import curve_fit

HERE = Path(__file__).resolve().parent
SYSTEM, SCALE = "two-phase-commit", 0.2
THREADS, SELECTS, STATEMENTS = 8, 4800, 61  # alter threads; selects of a run; statements of an alter here
COLUMNS = ("nodes", "mode", "sleep_s", "block", "rep", "scale", "day", "seconds", "selects", "alters", "statements",
           "failed", "queries_per_s", "alters_per_s", "alter_ms", "alter_p99_ms", "stale_ms", "stale_p99_ms", "late",
           "stock", "converged", "broken")  # fmt: skip
RATES = ("nodes", "mode", "sleep_s", "block", "rep", "selects", "alters")
CURVES = ((1, "base"), (2, "acid"), (2, "base"), (4, "acid"), (4, "base"))
SLEEPS = (2.0, 1.5, 1.0, 0.5, 0.1)
SHORTEST, LONG = 0.1, 1.0  # sleeps of the claims, and of the comparison with what people use today
MODES = {
    "acid": "two-phase commit on all nodes",
    "quorum": "one node writes; a commit waits until a majority has applied it",
    "base": "commit on one node, our queue",
    "logical": "commit on one node, PostgreSQL's logical replication",
}
NOT_MEASURED, NO_RUN = "not measured", "not measured yet"
LEAST_SLEEPS = 3  # for a fit of two numbers that leaves something to judge it by
Key = tuple[int, str]
Row = dict[str, str]
Cells = dict[Key, dict[float, list[Row]]]


def rows(name: str) -> list[Row]:
    """None if there is no such file: nothing of this kind was measured."""
    if not (HERE / name).exists():
        return []
    with (HERE / name).open(newline="") as file:
        return list(csv.DictReader(file))


# ---- what was measured -> small files beside the page ----------------------------------------------------------------


def collect(raw: Path) -> None:
    """Valid trials -> results.csv and rates.csv, beside those that they have already."""
    results = {cell_of(row): row for row in rows("results.csv")}
    rates = {cell_of(row): row for row in rows("rates.csv")}
    for file in sorted(raw.glob(f"{SYSTEM}.*/*/manifest.json")):
        told = json.loads(file.read_text())
        client = file.parent / "clients/client1"
        if not (told.get("validity") or {}).get("valid") or not (client / "work.json").exists():
            continue
        row = result(told, json.loads((client / "work.json").read_text()))
        results[cell_of(row)] = row
        rates[cell_of(row)] = {key: row[key] for key in RATES[:5]} | by_second(client / "progress.csv")
    write("results.csv", COLUMNS, results)
    write("rates.csv", RATES, rates)


def result(told: Mapping[str, Any], done: Mapping[str, Any]) -> dict[str, Any]:
    """A line of results.csv from a trial's manifest and its driver's account."""
    alone = told["soft_resources"].get("alter_threads") == 0
    alter, stale = done.get("alter_ms", {}), done.get("stale_ms", {})
    return {
        "nodes": told["topology"], "mode": "selects" if alone else done["mode"],
        "sleep_s": told["system"]["factor"]["value"], "block": told["sweep"].rpartition(".")[2], "rep": told["rep"],
        "scale": told["scale"], "day": day(told),
        **{k: done[k] for k in COLUMNS[7:13]}, "alters_per_s": round(done["alters"] / done["seconds"], 3),
        "alter_ms": alter.get("median", ""), "alter_p99_ms": alter.get("p99", ""),
        "stale_ms": stale.get("median", ""), "stale_p99_ms": stale.get("p99", ""),
        "late": "" if done.get("late") is None else done["late"],
        "stock": done["state"].get("stock", ""), "converged": done["state"].get("converged", ""),
        "broken": "; ".join(done["state"].get("broken", [])),
    }  # fmt: skip


def day(told: Mapping[str, Any]) -> str:
    """Of a trial's end, UTC."""
    return datetime.fromtimestamp(max(phase["end_s"] or 0 for phase in told["phases"]), UTC).date().isoformat()


def by_second(progress: Path) -> dict[str, str]:
    """Selects and alters that ended between one heartbeat and the next, about a second later."""
    with progress.open(newline="") as file:
        beats = [row for row in csv.DictReader(file) if int(row["started"] or 0)]
    return {
        name: " ".join(str(int(b[name]) - int(a[name])) for a, b in pairwise(beats)) for name in ("selects", "alters")
    }


def write(name: str, columns: tuple[str, ...], kept: Mapping[Any, Mapping[str, Any]]) -> None:
    with (HERE / name).open("w", newline="") as out:
        writer = csv.DictWriter(out, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept[key] for key in sorted(kept))


def cell_of(row: Mapping[str, object]) -> tuple[int, str, float, str, int]:
    """Nodes, mode, sleep, block, repetition."""
    return int(str(row["nodes"])), str(row["mode"]), float(str(row["sleep_s"])), str(row["block"]), int(str(row["rep"]))


def collect_limits(store: Path) -> None:
    """What limits each sweep of the study, by its verdict."""
    kept = {row["sweep"]: row for row in rows("limits.csv")}
    names = [name for name in sweeps(store) if name.startswith(f"{SYSTEM}.") and has_valid_trial(name, store)]
    for name, facts in (read_facts(store, names) if names else {}).items():
        kept[name] = {"sweep": name, "limits": facts.named}
    write("limits.csv", ("sweep", "limits"), kept)


# ---- values --------------------------------------------------------------------------------------------------------


def by_cell(found: Iterable[Row]) -> Cells:
    cells: Cells = defaultdict(lambda: defaultdict(list))
    for row in found:
        cells[int(row["nodes"]), row["mode"]][float(row["sleep_s"])].append(row)
    return cells


def measured(scale: float = SCALE) -> Cells:
    """All runs here at one scale; anchors stand for themselves."""
    return by_cell(
        row for row in rows("results.csv") if float(row["scale"]) == scale and not row["block"].startswith("anchor-")
    )


def mean(cell: list[Row], column: str) -> float:
    return float(np.mean([float(row[column]) for row in cell]))


def interval(cell: list[Row], column: str, digits: int = 0) -> str:
    """Mean of the runs that have the number, and half its 95 % interval (Student's t) if there are two or more."""
    values = [float(row[column]) for row in cell if row[column] != ""]
    if not values:
        return NOT_MEASURED
    text = f"{np.mean(values):,.{digits}f}"
    if len(values) < 2:
        return text
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{text} ± {half:,.{digits}f}"


def tables() -> str:
    """Tables 2 to 4 of the thesis, and what was measured here."""
    thesis, here = by_cell(rows("thesis.csv")), measured()
    lines = ["| nodes | mode | sleep, s | thesis: queries/s | seconds | here: queries/s | seconds | alters/s | runs |",
             "|--:|---|--:|--:|--:|--:|--:|--:|--:|"]  # fmt: skip
    for (nodes, mode), sleeps in thesis.items():
        for sleep, cell in sleeps.items():
            ours = here.get((nodes, mode), {}).get(sleep, [])
            found = [interval(ours, "queries_per_s"), interval(ours, "seconds", 1), interval(ours, "alters_per_s", 2)]
            theirs = [f"{mean(cell, 'queries_per_s'):,.0f}", f"{mean(cell, 'seconds'):.2f}"]
            lines.append(f"| {nodes} | {mode} | {sleep:g} | {' | '.join([*theirs, *found])} | {len(ours)} |")
    alone = [row for sleeps in [here.get((1, "selects"), {})] for cell in sleeps.values() for row in cell]
    flat = [interval(alone, "queries_per_s", 1), interval(alone, "seconds", 1)]
    lines.append(f"| 1 | selects alone |  | figure 26 |  | {' | '.join(flat)} | 0 | {len(alone)} |")
    return "\n".join(lines)


def law(sleep: np.ndarray, statements: float, work_s: float) -> np.ndarray:
    """log of the statements per second of THREADS threads that sleep and then work."""
    return np.log(THREADS * statements / (sleep + work_s))


def fit(sleep: list[float], rate: list[float]) -> list[str]:
    """Statements of an alter, its time, each with its 95 % interval; the limit; what is left over."""
    at, y = np.array(sleep), np.log(rate)
    best, spread = curve_fit(law, at, y, p0=(50, 0.1), bounds=(0, (1000, 10)))
    half = stats.t.ppf(0.975, len(at) - 2) * np.sqrt(np.diag(spread))
    off = np.sqrt(np.mean((y - law(at, *best)) ** 2))
    return [f"{best[0]:.0f} ± {half[0]:.0f}", f"{best[1]:.2f} ± {half[1]:.2f}", f"{THREADS * best[0] / best[1]:,.0f}",
            f"{100 * off:.0f} %"]  # fmt: skip


def fitted() -> str:
    """The law fitted to the thesis' tables, and to the runs here."""
    names = "nodes", "mode", "of", "statements of an alter", "time of an alter, s", "limit, statements/s", "fit's error"
    lines = [f"| {' | '.join(names)} |", "|--:|---|---|--:|--:|--:|--:|"]
    here = measured()
    for (nodes, mode), sleeps in by_cell(rows("thesis.csv")).items():
        rate = [mean(c, "queries_per_s") - SELECTS / mean(c, "seconds") for c in sleeps.values()]
        lines.append(f"| {nodes} | {mode} | the thesis | {' | '.join(fit(list(sleeps), rate))} |")
        ours = here.get((nodes, mode), {})
        if len(ours) < LEAST_SLEEPS:
            few = f"{NOT_MEASURED} (runs at {counted(len(ours), 'sleep')}, {LEAST_SLEEPS} are needed)"
            lines.append(f"| {nodes} | {mode} | here | {few} |  |  |  |")
            continue
        runs = [(sleep, STATEMENTS * float(row["alters_per_s"])) for sleep, cell in ours.items() for row in cell]
        lines.append(f"| {nodes} | {mode} | here | {' | '.join(fit(*map(list, zip(*runs, strict=True))))} |")
    return "\n".join(lines)


def today() -> str:
    """All four modes on the same work."""
    here = measured()
    names = ("nodes", "sleep, s", "mode", "queries/s", "alters/s", "an alter takes, ms", "others have it after, ms",
             "rows that came late", "runs with a broken promise", "runs")  # fmt: skip
    lines = [f"| {' | '.join(names)} |", "|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|"]
    for nodes in (2, 4):
        for sleep in (SHORTEST, LONG):
            for mode, text in MODES.items():
                cell = here.get((nodes, mode), {}).get(sleep, [])
                stale = "0" if mode == "acid" and cell else interval(cell, "stale_ms")
                found = [interval(cell, "queries_per_s"), interval(cell, "alters_per_s", 1), interval(cell, "alter_ms"),
                         stale, interval(cell, "late")]  # fmt: skip
                broken = sum(bool(row["broken"]) for row in cell) if cell else NOT_MEASURED
                lines.append(f"| {nodes} | {sleep:g} | {text} | {' | '.join(found)} | {broken} | {len(cell)} |")
    return "\n".join(lines)


def anchors() -> str:
    """One node at 1 s in each block, pass by pass: how the machine wandered."""
    found: dict[str, dict[int, Row]] = defaultdict(dict)
    for row in rows("results.csv"):
        if row["block"].startswith("anchor-"):
            found[row["block"].removeprefix("anchor-")][int(row["rep"])] = row
    if not found:
        return f"Anchors: {NO_RUN}."
    lines = ["| block | days | queries/s of each pass |", "|---|---|---|"]
    for block, passes in sorted(found.items()):
        days = sorted({row["day"] for row in passes.values()})
        rates = ", ".join(f"{float(passes[rep]['queries_per_s']):,.0f}" for rep in sorted(passes))
        lines.append(f"| {block} | {days[0]}{f' to {days[-1]}' if days[1:] else ''} | {rates} |")
    return "\n".join(lines)


def limits() -> str:
    """What limits, by the verdict of each sweep."""
    found = [row for row in rows("limits.csv") if ".anchor-" not in row["sweep"]]
    if not found:
        return f"What limits: {NO_RUN}."
    return "\n".join(["| sweep | what limits |", "|---|---|", *(f"| {r['sweep']} | {r['limits']} |" for r in found)])


def rates_over_time() -> str:
    """The figure, once a run has told its rates."""
    if not runs_with_rates():
        return f"Rates over time: {NO_RUN}."
    return "![Selects and alters per second in each run](rates.svg)"


def runs_with_rates() -> list[Row]:
    return [row for row in rows("rates.csv") if not row["block"].startswith("anchor-")]


# ---- figures -------------------------------------------------------------------------------------------------------


def draw() -> None:
    mpl.rcParams["svg.hashsalt"] = SYSTEM
    draw_queries().savefig(HERE / "queries.svg", metadata={"Date": None})
    if runs_with_rates():
        draw_rates().savefig(HERE / "rates.svg", metadata={"Date": None})


def draw_queries() -> Figure:
    """Figure 26: queries per second over the sleep."""
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    for place, (title, cells) in enumerate((("thesis", by_cell(rows("thesis.csv"))), ("here", measured())), 1):
        axes = figure.add_subplot(1, 2, place)
        for (nodes, mode), sleeps in sorted(cells.items()):
            at = sorted(sleeps)
            if mode == "selects":
                flat = np.mean([mean(cell, "queries_per_s") for cell in sleeps.values()])
                axes.axhline(float(flat), color="0.5", label="selects alone")
                continue
            rate = [mean(sleeps[s], "queries_per_s") for s in at]
            axes.plot(at, rate, label=label(nodes, mode), **style(nodes, mode))
        axes.set(title=title, xlabel="sleep between alters, s", ylabel="queries/s", xlim=(0, 2.1))
        axes.set_ylim(bottom=0)
        if cells:
            axes.legend(fontsize="small")
        else:
            axes.text(0.5, 0.5, NO_RUN, transform=axes.transAxes, ha="center")
    return figure


def style(nodes: int, mode: str) -> dict[str, Any]:
    marks = {"base": ("o", "-"), "acid": ("x", "--"), "logical": ("s", ":"), "quorum": ("^", "-.")}
    return {"marker": marks[mode][0], "linestyle": marks[mode][1], "color": f"C{(1, 2, 4).index(nodes)}"}


def label(nodes: int, mode: str) -> str:
    return "1 node" if nodes == 1 else f"{nodes} nodes, {mode.upper() if mode in ('acid', 'base') else mode}"


def draw_rates() -> Figure:
    """Figures 1 to 25: selects and alters per second in each run."""
    figure = Figure(figsize=(11, 9), layout="constrained")
    axes = figure.subplots(len(SLEEPS), len(CURVES), sharex=True, sharey=True)
    found = by_cell(runs_with_rates())
    for i, sleep in enumerate(SLEEPS):
        for j, (nodes, mode) in enumerate(CURVES):
            runs = found.get((nodes, mode), {}).get(sleep, [])
            draw_run(axes[i][j], min(runs, key=lambda row: int(row["rep"])) if runs else None)
            if not i:
                axes[i][j].set_title(label(nodes, mode), fontsize="medium")
        axes[i][0].set_ylabel(f"sleep {sleep:g} s\nper second")
    for axis in axes[-1]:
        axis.set_xlabel("seconds of the run")
    handles, names = axes[0][0].get_legend_handles_labels()
    for axis in axes.flat:
        handles, names = axis.get_legend_handles_labels() if not handles else (handles, names)
    if handles:
        figure.legend(handles, names, loc="outside upper right", ncols=2)
    return figure


def draw_run(axes: Axes, run: Row | None) -> None:
    """Pale each second, strong the mean of five."""
    if run is None:
        axes.text(0.5, 0.5, NOT_MEASURED, transform=axes.transAxes, ha="center", fontsize="small", color="0.4")
        return
    for name, colour in (("selects", "C0"), ("alters", "C3")):
        each = np.array([int(n) for n in run[name].split()])
        axes.plot(np.arange(len(each)) + 0.5, each, color=colour, alpha=0.3, linewidth=0.7)
        fives = each[: len(each) // 5 * 5].reshape(-1, 5).mean(axis=1)
        axes.plot(5 * np.arange(len(fives)) + 2.5, fives, color=colour, label=name)


# ---- page ----------------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[], str]] = {
    "tables": tables,
    "rates": rates_over_time,
    "law": fitted,
    "today": today,
    "anchors": anchors,
    "limits": limits,
    "claims": lambda: (HERE / "claims.md").read_text().rstrip(),
}


def page() -> str:
    """README.md with its made parts made anew."""
    return filled((HERE / "README.md").read_text(), {name: make() for name, make in PARTS.items()})


def main(arguments: list[str]) -> None:
    if arguments:
        results = Path(arguments[0])
        collect(results / "raw")
        collect_limits(results / "store")
        found = judge(read(HERE / "claims.yaml"), results / "store", read_parts(HERE / "outcomes.csv"))
        write_parts(found, HERE / "outcomes.csv")
        (HERE / "claims.md").write_text(table(found) + "\n")
    draw()
    (HERE / "README.md").write_text(page())


if __name__ == "__main__":
    main(sys.argv[1:])
