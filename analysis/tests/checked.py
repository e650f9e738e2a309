"""Checks of a trial, each made when a test looks at it: all of them take fifty times as long."""

from __future__ import annotations

from pathlib import Path

from ntier_analysis.contracts import Check, Outcome
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity import registry


class Checks(dict[str, Check]):
    """By id, of the trial as it was when its manifest was read and each file was looked at first."""

    def __init__(self, trial: RawTrial | Path) -> None:
        super().__init__()
        self.trial = trial if isinstance(trial, RawTrial) else RawTrial(trial)

    def __missing__(self, id_: str) -> Check:
        entry = {entry.id: entry for entry in registry.registered()}[id_]
        self[id_] = registry.run(entry, self.trial)
        return self[id_]

    def invalidate(self, *ids: str) -> list[str]:
        """Reasons of those that do not pass, but must: the trial is invalid for each of them."""
        wrong = (self[i] for i in ids if self[i].required and self[i].outcome is not Outcome.PASS)
        return [check.reason for check in wrong]
