"""Open load and fixed work: cases of the family `queueing` under another load model, their labels by relief as there,
and what the verdict says of them.

    python analysis/bench/load_models.py open|work FIRST LAST

Prints a line per case and, at the end, how many verdicts are right, silent (`unknown`) and wrong. Borderline cases
(relief.py) do not count."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent))

from ntier_analysis.importing.folder import prepared
from ntier_analysis.statistics.backlog import backlog
from ntier_analysis.verdict.data import SweepVerdict
from ntier_analysis.verdict.tables import sweep_verdict
from queueing import observe
from queueing.cases import RAMP_S, Case, draw, sweep_runs
from queueing.model import Run, Think, simulate
from queueing.relief import Label, label

WORKERS = (1, 2, 4, 8, 16, 32, 64)
WORK_S = 40.0
"""How long the amount of work would take at the maximum throughput."""
BEAT_S = 1.0


def under(model: str, case: Case) -> Case:
    """The case's system under open load (the knee is then its maximum throughput), or doing a fixed amount of work."""
    best = simulate(case.system, round(2.5 * case.knee_users) + 4, RAMP_S, 60.0, case.seed).throughput
    if model == "open":
        return replace(case, model=model, knee_users=best, scale=1.0, system=replace(case.system, open_per_s=0.0))
    first, last = sorted(np.random.default_rng([case.seed, 9]).choice(len(WORKERS), 2, replace=False))
    system = replace(case.system, think=Think(0.0), open_per_s=0.0)
    loads = tuple(float(n) for n in WORKERS[first : last + 1])
    work = replace(case, model=model, knee_users=1.0, loads=loads, scale=1.0, system=system)
    return replace(work, run_s=WORK_S)


def runs_of(case: Case) -> list[Run]:
    """The trials of the sweep; of work each lasts until it is done."""
    if case.model != "work":
        return sweep_runs(case)
    best = simulate(case.system, int(case.levels[-1]), 5.0, 30.0, case.seed).throughput
    system = replace(case.system, amount=max(50, round(best * case.run_s)))
    return [
        simulate(system, int(n), 0.0, 0.0, case.seed + i, record=True) for i, n in enumerate(case.levels)
    ]  # fmt: skip


def told(case: Case, runs: list[Run], factor: tuple[str, str], values: list[float]) -> pd.DataFrame:
    """Columns that a driver's heartbeat gives."""
    rows = []
    for run, value in zip(runs, values, strict=True):
        row = {"load_model": case.model, "factor": factor[0], "factor_unit": factor[1], "factor_value": value}
        if case.model == "open":
            t = np.arange(0.0, run.end_s + BEAT_S, BEAT_S)
            begun = np.searchsorted(run.begun, t)
            ended = np.searchsorted(np.sort(run.done[:, 0] + run.done[:, 1]), t)
            growth = backlog(t, begun, begun - ended, run.ramp_s, run.end_s)
            row |= {"offered_per_s": growth.offered_per_s, "backlog_growth_per_s": growth.growth_per_s,
                    "backlog_error_per_s": growth.error_per_s, "pending": round(np.nan_to_num(growth.at_end)),
                    "users": 1, "users_real": 1}  # fmt: skip
        rows.append(row)
    return pd.DataFrame(rows)


def judged(
    case: Case, runs: list[Run], factor: tuple[str, str] | None = None, values: list[float] | None = None
) -> SweepVerdict:
    """The verdict on these trials."""
    return sweep_verdict(case.name, *tables_of(case, runs, factor, values)).verdict


def tables_of(
    case: Case, runs: list[Run], factor: tuple[str, str] | None = None, values: list[float] | None = None
) -> list[pd.DataFrame | None]:
    """trials, samples, nodes, interactions: brought in as another system's data are."""
    if factor is None:
        factor = ("rate", "1/s") if case.model == "open" else ("users", "")
    trials, samples, interactions = observe.frames(case, runs)
    further = told(case, runs, factor, values or [float(v) for v in case.levels])
    trials = trials.drop(columns=[c for c in further if c in trials]).join(further)
    tables = prepared(trials, samples, interactions)[case.name]
    single = None if interactions is None else tables["interactions"]
    return [tables["trials"], tables["samples"].drop(columns="unit_given", errors="ignore"), tables["nodes"], single]


def outcome(truth: Label, said: SweepVerdict) -> str:
    """`right`, `silent` or `wrong`; `borderline` where relief itself is no clear judge."""
    if any(not text.startswith("built in") for text in truth.why):
        return "borderline"
    if said.verdict == "unknown":
        return "silent"
    kind = said.kind if said.verdict == "multi" else said.verdict
    claims = {(b.tier, f"pool:{b.item}" if b.resource == "pool" else b.resource) for b in said.bottlenecks}
    return "right" if kind == truth.truth and claims == set(truth.claims) else "wrong"


def main() -> None:
    if len(sys.argv) != 4 or sys.argv[1] not in ("open", "work"):
        sys.exit("usage: load_models.py open|work FIRST LAST")
    counts: Counter[str] = Counter()
    for number in range(int(sys.argv[2]), int(sys.argv[3])):
        case = under(sys.argv[1], draw("tuning", number))
        truth, said = label(case, 100.0), judged(case, runs_of(case))
        counts[outcome(truth, said)] += 1
        claims = ", ".join(f"{b.tier} {b.resource} {b.item}".strip() for b in said.bottlenecks)
        print(case.name, case.variant, [round(v, 1) for v in case.levels], outcome(truth, said), "| true:", truth.truth,
              sorted(truth.claims), "| said:", said.verdict, said.kind, claims, flush=True)  # fmt: skip
    print(dict(counts))


if __name__ == "__main__":
    main()
