"""The registry of checks and the three outcomes. Rules and sources of each check: docs/validity.md."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ntier_analysis.contracts import Check, Outcome, Validity
from ntier_analysis.contracts.system import LoadModel, System
from ntier_analysis.errors import DataError
from ntier_analysis.trial import RawTrial

SIGNIFICANT = 3.0
"""Standard errors beyond which a deviation is not chance."""


OFF = "switched off by the system"

MODULES = (
    "generator",
    "network",
    "mix",
    "host",
    "collection",
    "operations",
    "replicas",
    "data",
    "provenance",
    "results",
)
"""Modules of this package that hold the checks of a trial."""


@dataclass(frozen=True)
class Finding:
    """What one check saw. `required` and `reason` override the registry's, for a check that only sometimes must pass,
    or that may fail in two ways."""

    outcome: Outcome
    value: float | None = None
    limit: float | None = None
    unit: str = ""
    n: int | None = None
    standard_error: float | None = None
    detail: str = ""
    required: bool | None = None
    reason: str = ""


@dataclass(frozen=True)
class _Registered:
    id: str
    title: str
    required: bool
    reason: str
    function: Callable[[RawTrial], Finding]
    thinkers: bool = False


_REGISTRY: dict[str, _Registered] = {}


def check(id_: str, title: str, reason: str, *, required: bool = True, thinkers: bool = False):
    """Registers a function RawTrial -> Finding. `thinkers`: the check is about users who think, and does not apply to
    arrivals at a rate or a fixed amount of work."""

    def register(function: Callable[[RawTrial], Finding]) -> Callable[[RawTrial], Finding]:
        if id_ in _REGISTRY:
            raise ValueError(f"check {id_} is registered twice")
        _REGISTRY[id_] = _Registered(id_, title, required, reason, function, thinkers)
        return function

    return register


def exact(value: float, limit: float, unit: str, detail: str, n: int | None = None) -> Finding:
    """A deterministic check: fails beyond the limit; a value that is not a number is undecidable."""
    if math.isnan(value):
        return Finding(Outcome.UNDECIDABLE, None, limit, unit, n, None, detail)
    outcome = Outcome.PASS if value <= limit else Outcome.FAIL
    return Finding(outcome, value, limit, unit, n, None, detail)


def sampled(value: float, limit: float, standard_error: float, unit: str, detail: str, n: int) -> Finding:
    """A sampled quantity whose target is 0: fails beyond the limit and beyond three standard errors; beyond the limit
    alone is undecidable."""
    if math.isnan(value):
        return Finding(Outcome.UNDECIDABLE, None, limit, unit, n, None, detail)
    if abs(value) <= limit:
        outcome = Outcome.PASS
    elif abs(value) > SIGNIFICANT * standard_error:
        outcome = Outcome.FAIL
    else:
        outcome = Outcome.UNDECIDABLE
    error = None if math.isnan(standard_error) else standard_error
    return Finding(outcome, value, limit, unit, n, error, detail)


def not_applicable(detail: str) -> Finding:
    """Passes, since there is nothing that could be wrong; the detail says why."""
    return Finding(Outcome.PASS, n=0, detail=f"not applicable: {detail}")


def undecidable(detail: str, *, n: int | None = None, required: bool | None = None) -> Finding:
    return Finding(Outcome.UNDECIDABLE, n=n, detail=detail, required=required)


def registered() -> list[_Registered]:
    """All checks, in the order of their registration."""
    for name in MODULES:  # they register themselves
        importlib.import_module(f"ntier_analysis.validity.{name}")
    return list(_REGISTRY.values())


def switched_off(check: Check, why: str) -> Check:
    """The outcome of a check that does not apply: it neither passes nor fails, and says why."""
    return Check(
        id=check.id, title=check.title, required=False, outcome=Outcome.UNDECIDABLE, detail=f"{OFF}: {why}"
    )  # fmt: skip


def validate(trial: RawTrial) -> Validity:
    """Runs all checks but those that the system switches off. One that throws is undecidable, with the error in its
    detail."""
    checks = [run(entry, trial) for entry in (*registered(), *_own(trial.system))]
    return Validity(valid=all(c.outcome is Outcome.PASS for c in checks if c.required), checks=checks)


def _own(system: System) -> list[_Registered]:
    """Checks that the system brings along."""
    from ntier_analysis.validity import own

    return [
        _Registered(f"S.{name}", check.title, check.required, name, partial(own.finding, wanted=check.wanted))
        for name, check in system.checks_own.items()
    ]


def run(entry: _Registered, trial: RawTrial) -> Check:
    """One check, as `validate` makes all of them."""
    if why := trial.system.checks_off.get(entry.id):
        return switched_off(Check(id=entry.id, title=entry.title, required=False, outcome=Outcome.UNDECIDABLE), why)
    try:
        if entry.thinkers and trial.load_model is not LoadModel.CLOSED:
            finding = not_applicable(f"nobody thinks under a load of the model {trial.load_model.value}")
        else:
            finding = entry.function(trial)
    except MemoryError:  # a fault of this machine, not of the trial
        raise
    except DataError as error:
        finding = undecidable(str(error).replace(f"{trial.folder}/", ""))
    except Exception as error:  # a checker that throws must not decide: it is reported, and the trial does not count
        finding = undecidable(f"the check itself failed: {type(error).__name__}: {error}")
    return Check(
        id=entry.id,
        title=entry.title,
        required=entry.required if finding.required is None else finding.required,
        outcome=finding.outcome,
        value=_finite(finding.value),
        limit=finding.limit,
        unit=finding.unit,
        n=finding.n,
        standard_error=_finite(finding.standard_error),
        reason="" if finding.outcome is Outcome.PASS else finding.reason or entry.reason,
        detail=finding.detail,
    )


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
