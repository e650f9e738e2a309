"""Which trial comes next: all loads of a grid, or those that a search for the capacity asks for. Both read the ledger,
so the same command goes on where an earlier one stopped."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Protocol

from ntier_analysis.contracts.files import RECORD_BYTES, read_json
from ntier_analysis.wording import counted
from pydantic import BaseModel, Field

from ntier_harness import durable, ledger, plan
from ntier_harness.errors import WorkError
from ntier_harness.files import no_record
from ntier_harness.lab import Lab
from ntier_harness.plan import Trial, trial_seed
from ntier_harness.screen import duration
from ntier_harness.spec import Spec
from ntier_harness.standby import ANALYSIS

RECORD = "search.json"
HOST_FULL = "host full"
"""The analysis' reason to stop where the machine beneath is full at the lowest loads: to repeat them tells nothing."""


class Schedule(Protocol):
    """The trials of a sweep as they become known."""

    def next(self) -> Trial | None:
        """The first trial that is not finished; None at the end."""

    def ahead(self, last: str) -> Trial | None:
        """The next trial, if it is the same whether or not that of the key `last`, whose outcome is not known yet, is
        valid; None if it is not known either."""

    def trials(self) -> list[Trial]:
        """All that are known by now, in order."""

    def at_most(self) -> int:
        """How many there will be."""


def make(lab: Lab, spec: Spec, attempts: int) -> Schedule:
    return Search(lab, spec, attempts) if spec.search == "capacity" else Grid(lab, spec, attempts)


@dataclass
class Grid:
    """Every load of the request."""

    lab: Lab
    spec: Spec
    attempts: int

    def next(self) -> Trial | None:
        return unfinished(self.trials(), self.lab.paths.raw / self.spec.sweep, self.attempts)

    def ahead(self, last: str) -> Trial | None:
        """Another attempt at the last one can as well come later."""
        others = [t for t in self.trials() if t.key != last]
        return unfinished(others, self.lab.paths.raw / self.spec.sweep, self.attempts)

    def trials(self) -> list[Trial]:
        return plan.order(self.spec)

    def at_most(self) -> int:
        return len(self.trials())


def to_come(lab: Lab, spec: Spec, attempts: int) -> list[Trial]:
    """Trials that are not finished. Those that a search has yet to choose are counted as trials of the highest load."""
    made, tries = make(lab, spec, attempts), ledger.attempts(lab.paths.raw / spec.sweep)
    known = made.trials()
    unknown = made.at_most() - len(known)
    return [t for t in known if ledger.next_attempt(t, tries, attempts) is not None] + [
        Trial(spec.users[-1], 1, 0) for _ in range(unknown)
    ]


def unfinished(trials: list[Trial], sweep_dir: Path, attempts: int) -> Trial | None:
    """The first trial that is neither valid nor out of attempts."""
    tries = ledger.attempts(sweep_dir)
    return next((t for t in trials if ledger.next_attempt(t, tries, attempts) is not None), None)


class _Decision(BaseModel):
    users: Annotated[int, Field(ge=1)] | None
    reason: str
    why: str


class _Record(BaseModel):
    decisions: list[_Decision]
    valid: list[str] | None = None
    lost: list[str] = []
    enough_reps: Annotated[int, Field(ge=1)] | None = None


@dataclass
class Search:
    """The loads that the analysis asks for, one after the other (repetition 1); further repetitions repeat them. If
    there are as many as the minutes allow, and a precision was asked for, each begins only if that is not reached.

    Each decision is on disk (`search.json` beside the trials) before its trial begins. Trials of a grid that are in the
    same folder are known to the search, and are not run again."""

    lab: Lab
    spec: Spec
    attempts: int

    @property
    def folder(self) -> Path:
        return self.lab.paths.raw / self.spec.sweep

    def next(self) -> Trial | None:
        left = unfinished(self._first(), self.folder, self.attempts)
        if left is None and not self.stopped():
            left = self._decide()
        left = left or unfinished(self.trials(), self.folder, self.attempts)
        if left and self._may_be_enough(left) and self._ask()["reason"] == "precise":
            self._end(left.rep - 1)
            return None
        return left

    def ahead(self, last: str) -> Trial | None:
        """A decision needs the trials before it. Repetitions of what was decided do not."""
        known = self.trials()
        left = unfinished([t for t in known if t.key != last], self.folder, self.attempts)
        if left is None or not self.stopped() or last in {t.key for t in self._first()}:
            return None
        return None if self._may_be_enough(left) else left

    def trials(self) -> list[Trial]:
        loads = tuple(sorted({t.users for t in self._first()}))
        return [*self._first(), *(t for t in plan.order(self.spec, loads) if 1 < t.rep <= self._reps())]

    def _reps(self) -> int:
        """Those of the request, or fewer if the precision asked for was reached with those, or no load can be run."""
        made = self.record()
        if [d["reason"] for d in made["decisions"][-1:]] == [HOST_FULL]:
            return 1
        enough = made.get("enough_reps") if self._may_end_sooner() else None
        return min(enough or self.spec.reps, self.spec.reps)

    def _may_end_sooner(self) -> bool:
        return self.spec.reps_by_minutes and self.spec.asked_precision is not None

    def _may_be_enough(self, trial: Trial) -> bool:
        """Whether this trial begins a repetition that is run only if the ones before it do not tell enough. Of the
        first one the decision to stop has said that already."""
        begun = any(key.endswith(f".r{trial.rep:02d}") for key in ledger.attempts(self.folder))
        return self._may_end_sooner() and trial.rep > 2 and not begun

    def _end(self, reps: int) -> None:
        """The precision was reached with so many repetitions."""
        self._save(self.record() | {"enough_reps": reps})
        times = counted(reps, "repetition")
        self.lab.screen.say(f"search: the maximum is known to +-{100 * self.spec.precision:g} % after {times}")

    def _first(self) -> list[Trial]:
        users = dict.fromkeys(d["users"] for d in self.record()["decisions"] if d["users"] is not None)
        return [Trial(u, 1, trial_seed(self.spec.seed, u, 1)) for u in users]

    def at_most(self) -> int:
        loads = len(self._first()) if self.stopped() else max(len(self._first()), self._budget())
        return loads * self._reps()

    def stopped(self) -> bool:
        """Whether a search for this goal has come to its end. Without a trial it begins anew: somebody emptied it. It
        goes on if other trials are valid than when it stopped."""
        made, valid = self.record(), self._valid()
        ended = bool(made["decisions"]) and made["decisions"][-1]["users"] is None and made == made | self._goal()
        return ended and bool(ledger.attempts(self.folder)) and made.get("valid", valid) == valid

    def _valid(self) -> list[str]:
        """Keys of the trials that a decision rests on, repetition 1."""
        tries = ledger.attempts(self.folder)
        return sorted(k for k, v in tries.items() if k.endswith(".r01") and any(a.outcome == "valid" for a in v))

    def _budget(self) -> int:
        """Loads of its own that it may try at most."""
        return self.spec.most_loads_if_few + self._lost()

    def _lost(self) -> int:
        """How many had no valid trial when it stopped before: it may try one more for each."""
        return len(self.record().get("lost", []))

    def _goal(self) -> dict[str, Any]:
        return {"search": self.spec.search, "grid": list(self.spec.users), "precision": self.spec.precision,
                "most": self.spec.most_loads, "most_if_few": self.spec.most_loads_if_few}  # fmt: skip

    def record(self) -> dict[str, Any]:
        """Goal and decisions so far. Raises WorkError if the file is not what a search writes."""
        try:
            if not (self.folder / RECORD).exists():
                return {"schema_version": 1, **self._goal(), "decisions": []}
            made = read_json(self.folder / RECORD, RECORD_BYTES)
            _Record.model_validate(made)
        except ValueError as error:
            raise no_record(self.folder / RECORD, "search", error) from None
        return made

    def _decide(self) -> Trial | None:
        step = self._ask()
        self._check_new(step["users"])
        before = self.record()
        again = before["decisions"][-1:] == [step]
        made = before | self._goal() | {"decisions": before["decisions"] + [step] * (not again)}
        users = step["users"]
        if users is None:
            valid = self._valid()
            lost = {t.key for t in self._first() if t.key not in valid} | set(before.get("lost", []))
            enough = 1 if step["reason"] == "precise" else None
            made |= {"valid": valid, "lost": sorted(lost), "enough_reps": enough}
        if made != before:
            self._save(made)
        self.lab.screen.event("search", **step)
        self.lab.screen.say(f"search: {self._stop() if users is None else f'{users} users'}: {step['why']}")
        return None if users is None else Trial(users, 1, trial_seed(self.spec.seed, users, 1))

    def _check_new(self, users: int | None) -> None:
        """Raises WorkError for a load that needs no trial: the search would ask for it without end."""
        if users is not None and unfinished([Trial(users, 1, 0)], self.folder, self.attempts) is None:
            raise WorkError(
                f"search: {ANALYSIS} asks for {users} users, which were tried already; see that it is of the same "
                f"version as this program, and that all in {self.folder} can be read"
            )

    def _save(self, made: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        durable.write(self.folder / RECORD, json.dumps(made, indent=1))

    def _stop(self) -> str:
        """What the search spared, beside its own loads and those that a grid of this name ran."""
        tries = ledger.attempts(self.folder)
        ran = {a.manifest.users for v in tries.values() for a in v if a.manifest and a.manifest.rep == 1}
        spared = len(self.spec.users) - len(ran | {t.users for t in self._first()})
        if spared <= 0:
            return "stop"
        time = duration(spared * self.spec.reps * plan.trial_duration_s(replace(self.spec, search="grid")))
        return f"stop; {spared} of the grid's {counted(len(self.spec.users), 'load')} spared, about {time}"

    def _ask(self) -> dict[str, Any]:
        """The analysis' decision: {users or null, why, reason}."""
        tries = ledger.attempts(self.folder)
        mine = {t.key for t in self._first()}
        found = {k: next((a.manifest for a in v if a.manifest), None) for k, v in tries.items()}
        trials = {k: m for k, m in found.items() if not (m and m.above)}  # a search does not see those from above
        open_ = [k for k, m in trials.items() if m and self._next_attempt(m.users, m.rep, tries) is not None]
        others = {m.users for k, m in trials.items() if m and k not in mine and k not in open_ and m.rep == 1}
        more = self._lost() + len(others)
        self.lab.paths.raw.mkdir(parents=True, exist_ok=True)  # before the first trial; without it the analysis refuses
        done = self.lab.runner.ask(
            [ANALYSIS, "search", "--json", "--raw", str(self.lab.paths.raw), "--users",
             ",".join(map(str, self.spec.users)), "--precision", f"{self.spec.precision:g}",
             "--most", str(self.spec.most_loads + more), "--most-if-few", str(self.spec.most_loads_if_few + more),
             *(part for key in open_ for part in ("--without", key)), self.spec.sweep], timeout=900)  # fmt: skip
        try:
            return _Decision.model_validate_json(done.out).model_dump()
        except ValueError:
            raise WorkError(f"search: {ANALYSIS} printed no decision: {done.out[:200]!r}") from None

    def _next_attempt(self, users: int, rep: int, tries: dict[str, list[ledger.Attempt]]) -> int | None:
        return ledger.next_attempt(Trial(users, rep, 0), tries, self.attempts)
