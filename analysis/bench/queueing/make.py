"""Makes cases: draws, labels by relief, simulates the sweep, and puts what a user would import into a store.

    python analysis/bench/queueing/make.py FOLDER tuning|selection|scoring FIRST LAST [OWN]

Resumable: a case that is in FOLDER/queueing.<set>.jsonl is not made again. Borderline cases are kept and marked. OWN is
a second folder, of the same systems as this project measures them by itself."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from ntier_analysis.importing.folder import prepared
from ntier_analysis.store.tables import write_table

from queueing import observe
from queueing.cases import SEEDS, Case, as_own, draw, sweep_runs
from queueing.model import Run
from queueing.relief import Label, label


def make(folder: Path, case: Case) -> dict:
    """Labels and stores one case; returns its line of the list."""
    truth = label(case)
    store(folder, case, sweep_runs(case))
    return described(case, truth)


def store(folder: Path, case: Case, runs: list[Run], first: int = 0) -> None:
    """What a user would import of these trials; `first`: number of the first."""
    trials, samples, interactions = observe.frames(case, runs, first)
    for name, frame in prepared(trials, samples, interactions)[case.name].items():
        write_table(folder / "store", name, case.name, frame)


def described(case: Case, truth: Label) -> dict:
    """A case's line of the list."""
    claims = [[t, r, [observe.node_name(case, t, n) for n in nodes]] for (t, r), nodes in truth.claims.items()]
    return {
        "name": case.name, "family": "queueing", "truth": truth.truth, "actual": truth.actual, "variant": case.variant,
        "built_in": case.built.kind, "holds": not truth.why, "borderline": bool(truth.why), "why": truth.why,
        "claims": claims, "unseen": [list(k) for k in truth.unseen], "gains": truth.gains, "scale": case.scale,
        "run_s": case.run_s, "interactions": case.view.interactions, "tiers": list(case.system.tiers),
        "think_s": case.system.think.mean_s, "users": case.users, "loads": case.loads, "x": truth.base_x,
        "r_s": truth.base_r, "cpu_s": case.view.cpu_s,
    }  # fmt: skip


def list_path(folder: Path, seeds: str) -> Path:
    return folder / f"queueing.{seeds}.jsonl"


def write(folder: Path, seeds: str, line: dict) -> None:
    with list_path(folder, seeds).open("a") as out:
        out.write(json.dumps(line) + "\n")


def fill(folder: Path, seeds: str, numbers: range, *, own: bool) -> None:
    """The cases that are not there yet; `own`: as this project measures their systems."""
    folder.mkdir(parents=True, exist_ok=True)
    path = list_path(folder, seeds)
    done = {json.loads(line)["name"] for line in path.read_text().splitlines()} if path.exists() else set()
    for number in numbers:
        if f"queueing.{seeds}.{number:04d}" not in done:
            case = draw(seeds, number)
            write(folder, seeds, make(folder, as_own(case) if own else case))


def main() -> None:
    if len(sys.argv) not in (5, 6) or sys.argv[2] not in SEEDS:
        sys.exit(f"usage: make.py FOLDER {'|'.join(SEEDS)} FIRST LAST [OWN]")
    folder, seeds, first, last, *others = sys.argv[1:]
    numbers = range(int(first), int(last))
    fill(Path(folder), seeds, numbers, own=False)
    for other in others:
        fill(Path(other), seeds, numbers, own=True)


if __name__ == "__main__":
    main()
