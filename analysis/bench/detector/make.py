"""Makes cases: draws, checks the label, simulates the sweep, and puts what a user would import into a store.

    python analysis/bench/detector/make.py FOLDER tuning|scoring CLASS FIRST LAST [--labels]
    python analysis/bench/detector/make.py FOLDER tuning|scoring again      # references only
    python analysis/bench/detector/make.py FOLDER tuning|scoring shares     # of the references, the saturations only

Resumable: a case that is in FOLDER/<set>.<class>.jsonl is not made again. Cases whose counterfactuals contradict the
label get that of the counterfactuals; if these do not tell one, the case is written down and left out. `--labels`:
without the references, which take most of the time and only the intervals are held against (`again` makes them)."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from ntier_analysis.importing.folder import prepared
from ntier_analysis.store.tables import write_table
from ntier_analysis.verdict.saturation import saturations

from detector import observe, truth
from detector.cases import draw
from detector.network import Run, simulate
from detector.plan import LONG_S, Case

REFERENCE_S = 600.0
"""Run whose saturations are the truth of the shares."""
REFERENCE = 3
"""Version of the references, written into each line."""
X_REFERENCE_S = 2400.0
HEAVY = 4
"""The same for the throughput, and how many such runs where the work of the limit is drawn from a heavy tail: the
error of the mean of n draws with a coefficient of variation of 3 is 3 / sqrt(n)."""
ALIKE_S = 1200.0
"""Length of all runs together that are like a trial of the sweep, but for the seed: their mean is what such a trial
measures, which is not the long run's (20 s of ramp-up do not settle a system beyond its knee)."""


def make(folder: Path, case: Case, *, labels_only: bool = False) -> dict:
    """Checks and imports one case; returns its line of the list. `labels_only`: without references."""
    checked = truth.check(case)
    line = {
        "name": case.name, "truth": checked.truth, "built_in": case.truth, "variant": case.variant,
        "holds": checked.holds, "why": checked.why, "run_s": case.run_s, "gains": checked.gains, "scale": case.scale,
        "claims": [[t, r, list(n)] for (t, r), n in case.claims.items() if (t, r) in checked.claims],
        "base_s": checked.base_s, "knee_real": checked.knee_real, "interactions": case.view.interactions,
        "quota": any(s.quota is not None for s in case.network.stations), "ticks": case.view.ticks,
    }  # fmt: skip
    if not checked.truth:
        return line
    runs = truth.sweep_runs(case, checked.knee_real)
    _store(folder / "store", case, runs)
    line["users_reference"] = runs[-1].users
    if labels_only or not checked.holds:
        return line
    return line | reference(case, runs[-1].users) | {"reference": REFERENCE}


def reference(case: Case, users: int) -> dict:
    """Throughput and saturations of a long run at the sweep's highest load, observed in the same way without gaps."""
    run = simulate(case.network, users, truth.RAMP_S, REFERENCE_S, case.seed + 999)
    x = long_throughput(case, users) if case.truth != "none" else run.throughput
    long = {"x_reference": x, "users_reference": users, "shares": shares(case, [run], case.seed + 999)}
    return long | {"loads": list(case.loads)} | alike(case, users)


def shares(case: Case, runs: list[Run], seed: int) -> list[list]:
    """[node, resource, item, share] of each resource, mean over the runs, observed as the sweep is but without gaps."""
    total: dict[tuple[str, str, str], float] = {}
    for i, run in enumerate(runs):
        rows = observe.sample_rows(case, 0, run, replace(case.view, gap_s=0.0), seed + i).assign(source="import")
        for s in saturations(rows, observe.start(0) + run.ramp_s, observe.start(0) + run.end_s):
            total[s.key] = total.get(s.key, 0.0) + s.share.value / len(runs)
    return [[*key, share] for key, share in total.items()]


def alike(case: Case, users: int) -> dict:
    """Mean throughput and shares of runs that differ from the sweep's trial at the highest load by the seed only."""
    runs = runs_alike(case, users, HEAVY if heavy(case) else 1)
    mean = float(np.mean([run.throughput for run in runs]))
    return {"x_alike": mean} | shares_alike(case, runs)


def shares_alike(case: Case, runs: list[Run]) -> dict:
    return {"shares_alike": shares(case, runs[: int(np.ceil(ALIKE_S / case.run_s))], case.seed + 2000)}


def runs_alike(case: Case, users: int, times: int) -> list[Run]:
    more = times * int(np.ceil(ALIKE_S / case.run_s))
    shifts = np.random.default_rng(case.seed).uniform(0, LONG_S / 2, more)
    protocol = (users, truth.SWEEP_RAMP_S, case.run_s)
    return [simulate(case.network, *protocol, case.seed + 2000 + i, x) for i, x in enumerate(shifts)]


def heavy(case: Case) -> bool:
    """Whether the work of what limits is drawn from a heavy tail."""
    limits = [s for s in case.network.steps if s.operation == "serve" and s.target in case.relief]
    return any(s.variation > 1 for s in limits)


def long_throughput(case: Case, users: int) -> float:
    """Throughput at `users` with an error of 0.3 to 0.6 %."""
    pools = any(resource.startswith("pool:") for _, resource in case.relief)
    network = case.network if pools else truth.smooth(case.network)
    seeds = range(case.seed + 1000, case.seed + 1000 + (HEAVY if heavy(case) else 1))
    return float(np.mean([simulate(network, users, truth.RAMP_S, X_REFERENCE_S, seed).throughput for seed in seeds]))


def again(folder: Path, seeds: str, *, shares_only: bool = False) -> None:
    """Makes the references of all cases again: after a change of what counts as saturated. `shares_only`: the
    saturations of cases that have none."""
    for path in sorted(folder.glob(f"{seeds}.*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            made = "shares_alike" in line if shares_only else line.get("reference") == REFERENCE
            if line["holds"] and not made:
                _, kind, number = line["name"].split(".")
                case, users = draw(kind, seeds, int(number)), line["users_reference"]
                if shares_only:
                    line |= shares_alike(case, runs_alike(case, users, 1))
                else:
                    line |= reference(case, users) | {"reference": REFERENCE}
                path.write_text("".join(json.dumps(x) + "\n" for x in lines))


def _store(store: Path, case: Case, runs: list) -> None:
    """The tables that an import of the case's files makes, not by way of text (a test shows that they are equal)."""
    trials, samples, interactions = observe.frames(case, runs)
    tables = prepared(trials, samples, interactions)[case.name]
    for name, frame in tables.items():
        write_table(store, name, case.name, frame)


def main() -> None:
    if sys.argv[3] in ("again", "shares"):
        again(Path(sys.argv[1]), sys.argv[2], shares_only=sys.argv[3] == "shares")
        return
    folder, seeds, kind = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{seeds}.{kind}.jsonl"
    done = {json.loads(line)["name"] for line in path.read_text().splitlines()} if path.exists() else set()
    for number in range(int(sys.argv[4]), int(sys.argv[5])):
        case = draw(kind, seeds, number)
        if case.name not in done:
            line = make(folder, case, labels_only="--labels" in sys.argv)
            with path.open("a") as out:
                out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
