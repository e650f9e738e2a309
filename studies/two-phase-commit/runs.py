"""The runs: valid trials -> small files beside the page, and what these files have, by cell."""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from ntier_analysis.comparison.values import has_valid_trial
from ntier_analysis.expectation.claims import anchors as beside
from ntier_analysis.expectation.quantities import read_facts
from ntier_analysis.store.tables import sweeps
from scipy import stats

HERE = Path(__file__).resolve().parent
SYSTEM, SCALE = "two-phase-commit", 0.15
RUN = ("nodes", "mode", "sleep_s", "block", "rep", "day", "began")
"""Names one run: two days or machines have the same repetitions. `began`: of the run phase, UTC."""
DONE = ("seconds", "selects", "alters", "statements", "failed", "queries_per_s")
COLUMNS = (*RUN, "machine", "scale", "set", *DONE, "alters_per_s", "alter_ms", "alter_p99_ms", "stale_ms",
           "stale_p99_ms", "late", "stock", "converged", "broken", "added_ms", "relay_cores")  # fmt: skip
RATES = (*RUN, "selects", "alters")
LIMITS = ("sweep", "day", "machine", "at", "limits")
"""`at`: values of the factor that the verdict has seen."""
DEFINITION = yaml.safe_load((HERE.parents[1] / "systems" / SYSTEM / "system.yaml").read_text())
USUAL = {
    name: setting["default"]
    for name, setting in (DEFINITION["settings"] | DEFINITION["load"]["parameters"]).items()
    if name != "sleep_s"
} | {"ntier_data_profile": DEFINITION["data"]["default"], "clients": 1}
"""Runs with other values of these stand apart (column `set`)."""
NOT_MEASURED, NO_RUN = "not measured", "not measured yet"
Key = tuple[int, str]
Row = dict[str, str]
Cells = dict[Key, dict[float, list[Row]]]
"""Nodes and mode -> sleep -> runs."""


def rows(name: str) -> list[Row]:
    """None of a file that is not there: nothing of this kind was measured. A column that is younger than a file is
    empty there."""
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
        account, clients = json.loads((client / "work.json").read_text()), len([*client.parent.iterdir()])
        row = result(told, account, machine(raw.parent, told), clients)
        results[run_of(row)] = row
        rates[run_of(row)] = {key: row[key] for key in RUN} | by_second(client / "progress.csv")
    write("results.csv", COLUMNS, results)
    write("rates.csv", RATES, rates)


def result(told: Mapping[str, Any], done: Mapping[str, Any], machine: str, clients: int = 1) -> dict[str, Any]:
    """A line of results.csv from a trial's manifest and the account of the first client's driver."""
    factor = told["system"]["factor"]
    parameters = told["soft_resources"] | {factor["name"]: factor["value"], "clients": clients}
    if alone := parameters.get("alter_threads") == 0:
        del parameters["alter_threads"]  # the mode says it
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
        at = " ".join(f"{value:g}" for value in sorted(seen["factor_value"].fillna(seen["users"]).unique()))
        told = json.loads(next((results / "raw" / name).glob("*/manifest.json")).read_text())
        row = dict(zip(LIMITS, (name, last, machine(results, told), at, facts.named), strict=True))
        kept[name, last, row["machine"]] = row
    write("limits.csv", LIMITS, kept)


# ---- runs by cell ---------------------------------------------------------------------------------------------------


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


def half_width(values: list[float]) -> float:
    """Half of the 95 % interval of the mean (Student's t); NaN of a single value."""
    if len(values) < 2:
        return math.nan
    return float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))


def runs_with_rates() -> list[Row]:
    shown = {run_of(row) for row in usual() if not is_anchor(row)}
    return [row for row in rows("rates.csv") if run_of(row) in shown]
