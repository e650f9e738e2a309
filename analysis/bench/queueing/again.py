"""What an abstention leads to: does the experiment that an `unknown` verdict asks for bring the right answer?

    python analysis/bench/queueing/again.py FOLDER tuning|selection|scoring [CONTROLS]

FOLDER is as make.py left it. Each sharp case there that is judged `unknown` is measured again as the verdict's own
advice says, and judged. If the answer is `unknown` again, its advice is followed once more. Prints how many answers are
then right, wrong and unknown. Resumable: FOLDER/again/ keeps what was measured.

What a user does who is told nothing but these sentences (advised.py):

* Loads and repetitions come into the same store, beside the old trials. Repeated loads have three trials.
* What asks for other samples, longer runs, a longer ramp-up or a change of the system makes a new sweep: all loads are
  measured again, with what is asked for. The old sweep does not count.
* Longer runs last as long as those of `PHASES=standard`.
* A pool is raised by half, and a disk made half as fast again. If the highest load then serves more, by what counts
  and no chance makes, that limits.
* Who looks what fills a resource at low load finds a backup or competitor, and ends it; or nothing
  but the requests, and tries a faster disk.

All new runs have other random numbers. The truth of what was then measured is asked again where it may differ: at a
higher highest load, with other samples, of a changed system. Two more groups tell the other side: cases whose truth is
`unknown` at first follow their advice, too; and the first CONTROLS cases that were judged rightly get each load again,
twice as long, and one more load, in the same store."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from families import read
from ntier_analysis.verdict.load import COUNTS
from scores import Judged, judged, share_text, wrong

from queueing.advised import REPEATS, Asked, asked
from queueing.cases import OWN_LOADS, RAMP_S, SEEDS, SHIFT_S, Case, as_own, draw, sweep_runs
from queueing.make import described, list_path, store, write
from queueing.model import Key, Run
from queueing.observe import trial_name
from queueing.plan import SCHEDULE_S
from queueing.relief import ERRORS, label

ROUNDS = 2
STANDARD_S, STANDARD_RAMP_S = 180.0, 60.0
"""Phases `standard` of workloads/phases.yaml."""
STEP = 1.5
GROUPS = {
    "abstained": "`unknown`, although the truth can be told",
    "unknown": "`unknown`, and truly so",
    "right": "right (controls)",
}
OUTCOMES = ("right", "a part", "wrong", "unknown", "truly unknown", "cannot be followed", "borderline")
"""`a part`: a test by more capacity shows one of several that limit."""
OPEN = ("unknown", "truly unknown")


@dataclass
class Sweep:
    """The trials that count. `first`: number of the first of them; `number`: that of the next run. No two runs have the
    same random numbers."""

    case: Case
    runs: list[Run]
    number: int
    first: int = 0

    def run(self, users: int, run_s: float, ramp_s: float = RAMP_S, case: Case | None = None) -> Run:
        case, number = case or self.case, self.number
        self.number += 1
        shift_s = float(np.random.default_rng([case.seed, 5, number]).uniform(0, SHIFT_S))
        run_s = min(run_s, SCHEDULE_S - SHIFT_S - ramp_s)
        return case.run(case.system, users, ramp_s, run_s, case.seed + 11 * (number + 1), shift_s, record=True)

    def measured_s(self, users: int) -> float:
        """Length of the longest run of this load; of those that it was not measured at, the usual one."""
        return max((r.end_s - r.ramp_s for r in self.runs if r.users == users), default=self.case.run_s)

    @property
    def users(self) -> list[int]:
        return sorted({run.users for run in self.runs})


def followed(sweep: Sweep, plateau_users: Iterable[int], wanted: Asked) -> Sweep:
    """The sweep that a user has who did what was asked for."""
    scale = sweep.case.scale
    real = {round(n / scale): n for n in sweep.users}
    beyond = {real[n] for n in plateau_users if n in real} or {sweep.users[-1]}
    added = [max(1, round(n * scale)) for n in wanted.loads]
    if not wanted.anew:
        names = {trial_name(i): run.users for i, run in enumerate(sweep.runs, sweep.first)}
        some = [*added, *(names[t] for t in wanted.trials)]
        if wanted.repeat:
            there = Counter(run.users for run in sweep.runs)
            some += [users for users in sorted(beyond) for _ in range(REPEATS - there[users])]
        return replace(sweep, runs=sweep.runs + [sweep.run(n, sweep.measured_s(n)) for n in some], number=sweep.number)
    made = Sweep(changed(sweep.case, wanted), [], sweep.number, sweep.number)
    for users in sorted({*sweep.users, *added}):
        run_s, ramp_s = sweep.measured_s(users), STANDARD_RAMP_S if wanted.warmer else RAMP_S
        if wanted.longer and users >= min(beyond):
            run_s, ramp_s = max(STANDARD_S, 2 * run_s), STANDARD_RAMP_S
        times = REPEATS if wanted.repeat and users in beyond else 1
        made.runs += [made.run(users, run_s, ramp_s) for _ in range(times)]
    return made


def changed(case: Case, wanted: Asked) -> Case:
    """Seen as asked for, and without what is to end."""
    if wanted.view:
        case = replace(case, view=replace(case.view, **wanted.view))
    if wanted.blind:
        case = replace(case, built=replace(case.built, blind=None))
    if wanted.end:
        parts = case.system.parts
        free = tuple(replace(p, batch=None, share=0.0, switches=()) if p.key in wanted.end else p for p in parts)
        case = replace(case, system=replace(case.system, parts=free))
    return case


def more(sweep: Sweep) -> Sweep:
    """What a control gets: each load again, twice as long, and one more load below the highest."""
    users = sweep.users
    between = (users[-1] * (users[-2] if len(users) > 1 else users[-1] / 2)) ** 0.5
    runs = [sweep.run(n, 2 * sweep.case.run_s) for n in (*users, max(1, round(between)))]
    return replace(sweep, runs=sweep.runs + runs, number=sweep.number)


def grows(sweep: Sweep, key: Key) -> bool:
    """Whether the highest load serves more with half as much of it again, by what counts and no chance makes."""
    top = max(sweep.runs, key=lambda run: run.users)
    raised = replace(sweep.case, system=sweep.case.system.relieved({key}, STEP))
    now = sweep.run(top.users, top.end_s - top.ramp_s, top.ramp_s, raised)
    before, after = len(top.answered()), len(now.answered())
    return after >= (1 + COUNTS) * before and after - before >= ERRORS * (after + before) ** 0.5


def outcome(said: Judged, wanted: Asked, sweep: Sweep) -> str:
    """What the verdict is worth; if it is `unknown`, what the user found who tested by more capacity."""
    if unclear(said.line):
        return "borderline"
    if said.outcome != "unknown":
        return "wrong" if wrong(said) else "right"
    found = [key for key in wanted.steps if grows(sweep, key)]
    if found:
        claims = {(tier, resource) for tier, resource, _ in said.line["claims"]}
        return "right" if set(found) == claims else "a part" if set(found) < claims else "wrong"
    return "truly unknown" if said.right else "unknown"


def unclear(line: dict) -> bool:
    """Whether relief itself is no clear judge (that it is not what was built in says nothing here)."""
    return any(not text.startswith("built in") for text in line["why"])


def again(folder: Path, line: dict, seeds: str, group: str, said: Judged) -> list[dict]:
    """The rounds of one case, stored in `folder`; `said`: of its first verdict."""
    case = draw(seeds, int(line["name"].rsplit(".", 1)[1]))
    if tuple(line["loads"]) == OWN_LOADS:
        case = as_own(case)
    runs = sweep_runs(case)
    sweep, truth, rounds = Sweep(case, runs, len(runs)), line, []
    for number in range(1, ROUNDS + 1):
        wanted, before = asked(said.verdict.next, sweep.case), sweep.case
        told = {"of": line["name"], "group": group, "round": number, "advice": said.verdict.next, "left": wanted.left}
        if group == "right":
            sweep = more(sweep)
        elif wanted.anything:
            sweep = followed(sweep, said.verdict.plateau_users, wanted)
        else:
            return [*rounds, truth | told | {"outcome": "cannot be followed"}]
        loads = tuple(n / case.knee_users for n in sweep.users)
        sweep.case = replace(sweep.case, name=f"{line['name']}.{number}", loads=loads)
        same = (before.system, before.view, before.built) == (sweep.case.system, sweep.case.view, sweep.case.built)
        if not same or sweep.users[-1] > truth["users"][-1] or truth["truth"] == "unknown":
            truth = described(sweep.case, label(sweep.case))
        truth = truth | {"name": sweep.case.name, "users": sweep.users}
        store(folder, sweep.case, sweep.runs, sweep.first)
        said = judged(folder, truth)
        named = [[b.tier, b.resource, list(b.nodes)] for b in said.verdict.bottlenecks]
        result = outcome(said, wanted, sweep)
        rounds.append(truth | told | {"outcome": result, "said": said.outcome, "named": named})
        if group == "right" or said.outcome != "unknown" or result not in OPEN:
            break
    return rounds


def group_of(said: Judged) -> str:
    """One of GROUPS; '' if it is wrong."""
    if said.outcome == "unknown":
        return "unknown" if said.right else "abstained"
    return "right" if said.right else ""


def table(lines: list[dict]) -> list[str]:
    """By first verdict and round: what the answers are worth. An answer of the first round stands in the second."""
    rows = ["| first verdict | after | cases | " + " | ".join(OUTCOMES) + " |", "|---" * (3 + len(OUTCOMES)) + "|"]
    for group, title in GROUPS.items():
        for number in range(1, ROUNDS + 1 if group != "right" else 2):
            last = {x["of"]: x["outcome"] for x in lines if x["group"] == group and x["round"] <= number}
            count, clear = Counter(last.values()), sum(o != "borderline" for o in last.values())
            if not last:
                continue
            cells = [share_text(count[o], clear) if o != "borderline" else str(count[o]) for o in OUTCOMES]
            rows.append(f"| {title} | round {number} | {clear} | " + " | ".join(cells) + " |")
    return rows


def main() -> None:
    if len(sys.argv) not in (3, 4) or sys.argv[2] not in SEEDS:
        sys.exit(f"usage: again.py FOLDER {'|'.join(SEEDS)} [CONTROLS]")
    folder, seeds, controls = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0
    target = folder / "again"
    target.mkdir(exist_ok=True)
    path = list_path(target, seeds)
    lines = [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []
    done = {line["of"] for line in lines}
    sharp = [(line, judged(folder, line)) for line in read(folder, seeds) if not line["why"]]
    for group in GROUPS:
        some = [(line, said) for line, said in sharp if group_of(said) == group]
        for line, said in some[:controls] if group == "right" else some:
            if line["name"] not in done:
                for one in again(target, line, seeds, group, said):
                    lines.append(one)
                    write(target, seeds, one)
    print("\n".join(table(lines)))


if __name__ == "__main__":
    main()
