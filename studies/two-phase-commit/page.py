#!/usr/bin/env python3
"""The study's page from its data.

page.py              results.csv, rates.csv, limits.csv, thesis.csv -> README.md (between its marks), claims.md, figures
page.py RESULTS      before that: valid trials of its raw/ -> the first two; what its store/ says of the sweeps ->
                     limits.csv. What they have of other trials stays: the study may be measured on several days and
                     machines, and each adds its runs. A file RESULTS/machine names the machine in the tables; without
                     one it is its cores and CPU, which two machines may share. Claims are judged from results.csv"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import judging
import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from ntier_analysis.comparison.values import has_valid_trial
from ntier_analysis.expectation.claims import anchors as beside
from ntier_analysis.expectation.claims import filled, read, table
from ntier_analysis.expectation.quantities import read_facts
from ntier_analysis.store.tables import sweeps
from ntier_analysis.wording import counted
from scipy import stats
from scipy.optimize import curve_fit

HERE = Path(__file__).resolve().parent
SYSTEM, SCALE = "two-phase-commit", 0.15
THREADS, SELECTS, STATEMENTS = 8, 4800, 61  # alter threads; selects of a run; statements of an alter here
RUN = ("nodes", "mode", "sleep_s", "block", "rep", "day", "began")
"""Names one run: two days or machines have the same repetitions. `began`: of the run phase, UTC."""
DONE = ("seconds", "selects", "alters", "statements", "failed", "queries_per_s")
COLUMNS = (*RUN, "machine", "scale", "set", *DONE, "alters_per_s", "alter_ms", "alter_p99_ms", "stale_ms",
           "stale_p99_ms", "late", "stock", "converged", "broken", "added_ms", "relay_cores")  # fmt: skip
RATES = (*RUN, "selects", "alters")
LIMITS = ("sweep", "day", "machine", "at", "limits")
"""`at`: values of the factor that the verdict has seen."""
USUAL = {"delay_ms": 0, "transfers": 30, "note_bytes": 100, "select_rows": 1000, "ntier_data_profile": "small"}
"""Runs with other values of these stand apart (column `set`)."""
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
ENOUGH = 5  # repetitions
LEAST_SLEEPS = 3  # for a fit of two numbers that leaves something to judge it by
Key = tuple[int, str]
Row = dict[str, str]
Cells = dict[Key, dict[float, list[Row]]]


def rows(name: str) -> list[Row]:
    """None if there is no such file: nothing of this kind was measured. A column that is younger than a file is empty
    there."""
    if not (HERE / name).exists():
        return []
    columns = {"results.csv": COLUMNS, "rates.csv": RATES, "limits.csv": LIMITS}.get(name, ())
    with (HERE / name).open(newline="") as file:
        return [dict.fromkeys(columns, "") | row for row in csv.DictReader(file)]


# ---- what was measured -> small files beside the page ----------------------------------------------------------------


def collect(raw: Path) -> None:
    """Valid trials -> results.csv and rates.csv, beside those that they have already."""
    results = {run_of(row): row for row in rows("results.csv")}
    rates = {run_of(row): row for row in rows("rates.csv")}
    for file in sorted(raw.glob(f"{SYSTEM}.*/*/manifest.json")):
        told = json.loads(file.read_text())
        client = file.parent / "clients/client1"
        if not (told.get("validity") or {}).get("valid") or not (client / "work.json").exists():
            continue
        row = result(told, json.loads((client / "work.json").read_text()), machine(raw.parent, told))
        results[run_of(row)] = row
        rates[run_of(row)] = {key: row[key] for key in RUN} | by_second(client / "progress.csv")
    write("results.csv", COLUMNS, results)
    write("rates.csv", RATES, rates)


def result(told: Mapping[str, Any], done: Mapping[str, Any], machine: str) -> dict[str, Any]:
    """A line of results.csv from a trial's manifest and its driver's account."""
    factor = told["system"]["factor"]
    parameters = told["soft_resources"] | {factor["name"]: factor["value"]}
    alone = parameters.get("alter_threads") == 0
    alter, stale, delays = done.get("alter_ms", {}), done.get("stale_ms", {}), done.get("delays") or {}
    added = list(delays.get("round_trips_ms", {}).values())
    return {
        "nodes": told["topology"], "mode": "selects" if alone else done["mode"],
        "sleep_s": parameters["sleep_s"], "block": told["sweep"].rpartition(".")[2], "rep": told["rep"],
        **when(told), "machine": machine, "scale": told["scale"], "set": other_settings(parameters),
        **{k: done[k] for k in DONE}, "alters_per_s": round(done["alters"] / done["seconds"], 3),
        "alter_ms": alter.get("median", ""), "alter_p99_ms": alter.get("p99", ""),
        "stale_ms": stale.get("median", ""), "stale_p99_ms": stale.get("p99", ""),
        "late": "" if done.get("late") is None else done["late"],
        "stock": done["state"].get("stock", ""), "converged": done["state"].get("converged", ""),
        "broken": "; ".join(done["state"].get("broken", [])),
        "added_ms": round(float(np.median(added)), 3) if added else "",
        "relay_cores": round(delays["cpu_s"] / done["seconds"], 4) if "cpu_s" in delays else "",
    }  # fmt: skip


def when(told: Mapping[str, Any]) -> dict[str, str]:
    """Day and time at which a trial's run phase began, UTC."""
    (run,) = (phase for phase in told["phases"] if phase["name"] == "run")
    began = datetime.fromtimestamp(run["start_s"], UTC)
    return {"day": began.date().isoformat(), "began": f"{began:%H:%M:%S}"}


def machine(results: Path, told: Mapping[str, Any]) -> str:
    """As RESULTS/machine names it; without that file what the manifest knows, cores and model of its CPU. Empty:
    nothing."""
    if (named := results / "machine").exists():
        return named.read_text().strip()
    host = told.get("host") or {}
    model = (host.get("facts") or {}).get("cpu_model", "")
    return f"{host['cores']} x {model}".removesuffix(" x ") if "cores" in host else model


def other_settings(parameters: Mapping[str, Any]) -> str:
    """`delay_ms=5 transfers=100`."""
    there = {name: parameters.get(name, usual) for name, usual in USUAL.items()}
    return " ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in there.items()
        if value != USUAL[name]
    )


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


def run_of(row: Mapping[str, object]) -> tuple[int, str, float, str, str, str, int]:
    """Nodes, mode, sleep, block, day, time, repetition. A run whose line was written before times were kept has an
    empty one."""
    nodes, mode, sleep, block, rep, day, began = (str(row[name] or "") for name in RUN)
    return int(nodes), mode, float(sleep), block, day, began, int(rep)


def collect_limits(results: Path) -> None:
    """What limits each sweep of the study, by its verdict; `day`: of its last valid trial there."""
    store = results / "store"
    kept = {(row["sweep"], row["day"], row["machine"]): row for row in rows("limits.csv")}
    names = [name for name in sweeps(store) if name.startswith(f"{SYSTEM}.") and has_valid_trial(name, store)]
    for name, facts in (read_facts(store, names) if names else {}).items():
        seen = facts.trials[facts.trials["valid"].astype(bool)]
        last = datetime.fromtimestamp(seen["run_end_s"].max(), UTC).date().isoformat()
        at = " ".join(f"{value:g}" for value in sorted(seen["factor_value"].unique()))
        told = json.loads(next((results / "raw" / name).glob("*/manifest.json")).read_text())
        row = dict(zip(LIMITS, (name, last, machine(results, told), at, facts.named), strict=True))
        kept[name, last, row["machine"]] = row
    write("limits.csv", LIMITS, kept)


# ---- values --------------------------------------------------------------------------------------------------------


def by_cell(found: Iterable[Row]) -> Cells:
    cells: Cells = defaultdict(lambda: defaultdict(list))
    for row in found:
        cells[int(row["nodes"]), row["mode"]][float(row["sleep_s"])].append(row)
    return cells


def is_anchor(row: Row) -> bool:
    return row["block"].startswith("anchor-")


def usual() -> list[Row]:
    """All runs here at the study's scale, with the usual settings."""
    return [row for row in rows("results.csv") if float(row["scale"]) == SCALE and not row["set"]]


def measured() -> Cells:
    """Of these, all but the anchors, which stand for themselves."""
    return by_cell(row for row in usual() if not is_anchor(row))


def occasion(row: Row) -> tuple[str, str]:
    """Machine and day."""
    return row["machine"], row["day"]


def sweep(row: Row) -> str:
    """That the run is of. A run of selects alone is one of BASE."""
    mode = "base" if row["mode"] == "selects" else row["mode"]
    return f"{SYSTEM}.{row['nodes']}.{mode}.{row['block']}"


def in_anchors(cell: list[Row]) -> list[float]:
    """Queries per second of each run that has an anchor, divided by the mean of its block's anchors on the same machine
    and day."""
    units, of = defaultdict(list), beside(HERE / "claims.yaml")
    for row in filter(is_anchor, usual()):
        units[sweep(row), occasion(row)].append(float(row["queries_per_s"]))
    return [
        float(row["queries_per_s"]) / float(np.mean(units[key]))
        for row in cell
        if (key := (of.get(sweep(row), ""), occasion(row))) in units
    ]


def mean(cell: list[Row], column: str) -> float:
    return float(np.mean([float(row[column]) for row in cell]))


def interval(cell: list[Row], column: str, digits: int = 0) -> str:
    return spread([float(row[column]) for row in cell if row[column] != ""], digits) or NOT_MEASURED


def spread(values: list[float], digits: int) -> str:
    """Mean, and half its 95 % interval (Student's t) if there are two or more; nothing of nothing."""
    if not values:
        return ""
    text, half = f"{np.mean(values):,.{digits}f}", half_width(values)
    return text if math.isnan(half) else f"{text} ± {half:,.{digits}f}"


def half_width(values: list[float]) -> float:
    """Half of the 95 % interval of the mean (Student's t); NaN of a single value."""
    if len(values) < 2:
        return math.nan
    return float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))


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


def law(sleep: np.ndarray, statements: float, work_s: float) -> np.ndarray:
    """log of the statements per second of THREADS threads that sleep and then work."""
    return np.log(THREADS * statements / (sleep + work_s))


def fit(sleep: list[float], rate: list[float]) -> list[str]:
    """Statements of an alter, its time, each with its 95 % interval; the limit, if the time is known to be more than
    none; what is left over."""
    at, y = np.array(sleep), np.log(rate)
    best, spread = curve_fit(law, at, y, p0=(50, 0.1), bounds=(0, (1000, 10)))
    half = stats.t.ppf(0.975, len(at) - 2) * np.sqrt(np.diag(spread))
    off = np.sqrt(np.mean((y - law(at, *best)) ** 2))
    limit = f"{THREADS * best[0] / best[1]:,.0f}" if best[1] > half[1] else "not known"
    return [f"{best[0]:.0f} ± {half[0]:.0f}", f"{best[1]:.2f} ± {half[1]:.2f}", limit, f"{100 * off:.0f} %"]


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
             "rows that came late", "runs with a broken promise", "runs", "occasions")  # fmt: skip
    lines = [f"| {' | '.join(names)} |", "|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    missing = 0
    for nodes in (2, 4):
        for sleep in (SHORTEST, LONG):
            for mode, text in MODES.items():
                cell = here.get((nodes, mode), {}).get(sleep, [])
                if not cell:
                    missing += 1
                    continue
                stale = "0" if mode == "acid" else interval(cell, "stale_ms")
                found = [interval(cell, "queries_per_s"), interval(cell, "alters_per_s", 1), interval(cell, "alter_ms"),
                         stale, interval(cell, "late")]  # fmt: skip
                broken = sum(bool(row["broken"]) for row in cell)
                lines.append(f"| {nodes} | {sleep:g} | {text} | {' | '.join(found)} | {broken} | {counts(cell)} |")
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

    def runs(name: str, sleep: float) -> list[tuple[tuple[str, str], float]]:
        return [
            (occasion(row), float(row["alters_per_s"]))
            for row in usual()
            if sweep(row) == name and float(row["sleep_s"]) == sleep
        ]

    return table(judging.judge(read(HERE / "claims.yaml"), runs))


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
    if not runs_with_rates():
        return f"Rates over time: {NO_RUN}."
    return "![Selects and alters per second in each run](rates.svg)"


def runs_with_rates() -> list[Row]:
    shown = {run_of(row) for row in usual() if not is_anchor(row)}
    return [row for row in rows("rates.csv") if run_of(row) in shown]


# ---- figures -------------------------------------------------------------------------------------------------------


def draw() -> None:
    mpl.rcParams["svg.hashsalt"] = SYSTEM
    draw_queries().savefig(HERE / "queries.svg", metadata={"Date": None})
    if runs_with_rates():
        draw_rates().savefig(HERE / "rates.svg", metadata={"Date": None})


def draw_queries() -> Figure:
    """Figure 26: queries per second over the sleep, means; small dots are single runs, bars 95 % intervals of the means
    of three runs or more (of two, a bar would say nothing: 12.7 standard errors)."""
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    for place, (title, cells) in enumerate((("thesis", by_cell(rows("thesis.csv"))), ("here", measured())), 1):
        axes = figure.add_subplot(1, 2, place)
        for (nodes, mode), sleeps in sorted(cells.items()):
            at = sorted(sleeps)
            if mode == "selects":
                flat = np.mean([mean(cell, "queries_per_s") for cell in sleeps.values()])
                axes.axhline(float(flat), color="0.5", label="selects alone")
                continue
            rates = [[float(row["queries_per_s"]) for row in sleeps[s]] for s in at]
            bars = [half_width(values) if len(values) > 2 else math.nan for values in rates]
            look = style(nodes, mode)
            axes.errorbar(at, list(map(np.mean, rates)), bars, label=label(nodes, mode), capsize=2, **look)
            single = [(s, value) for s, values in zip(at, rates, strict=True) for value in values if len(values) > 1]
            axes.scatter(*np.array(single).reshape(-1, 2).T, s=6, color=look["color"], alpha=0.6)
        axes.set(title=title, xlabel="sleep between alters, s", ylabel="queries/s", xlim=(0, 2.1))
        highest = max((mean(c, "queries_per_s") for sleeps in cells.values() for c in sleeps.values()), default=1.0)
        axes.set_ylim(0, 1.3 * highest)  # a wide interval may leave the figure
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
            draw_run(axes[i][j], min(runs, key=run_of) if runs else None)
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
    "delays": delays,
    "sizes": sizes,
    "anchors": anchors,
    "limits": limits,
    "extent": extent,
    "claims": claims,
}


def page() -> str:
    """README.md with its made parts made anew."""
    return filled((HERE / "README.md").read_text(), {name: make() for name, make in PARTS.items()})


def main(arguments: list[str]) -> None:
    if arguments:
        results = Path(arguments[0])
        collect(results / "raw")
        collect_limits(results)
    (HERE / "claims.md").write_text(claims() + "\n")
    draw()
    (HERE / "README.md").write_text(page())


if __name__ == "__main__":
    main(sys.argv[1:])
