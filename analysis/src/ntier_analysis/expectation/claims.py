"""The claims of a paper, as data, judged by a store: each holds, differs, is undecided, or was not measured."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ntier_analysis.comparison.values import has_valid_trial
from ntier_analysis.contracts.files import read_yaml
from ntier_analysis.errors import DataError
from ntier_analysis.expectation.expressions import Outcome, evaluate
from ntier_analysis.expectation.loads import NO_TRIAL
from ntier_analysis.expectation.quantities import read_facts

KEYS = ("says", "place", "paper", "sweep", "expect")


class Judged(StrEnum):
    HOLDS = "holds"
    DIFFERS = "differs"
    UNDECIDED = "undecided"
    NOT_MEASURED = "not measured"


_OF = {Outcome.HOLDS: Judged.HOLDS, Outcome.FAILS: Judged.DIFFERS, Outcome.UNDECIDED: Judged.UNDECIDED}


@dataclass(frozen=True)
class Claim:
    """`says`: the sentence and `place` where it stands; `paper`: the value there; `expect`: what must hold for it, in
    the language of `check`, of `sweep`; `seen` and `judged`: by the store."""

    name: str
    says: str
    place: str
    paper: str
    sweep: str
    expect: str
    judged: Judged = Judged.NOT_MEASURED
    seen: str = ""


def read(file: Path) -> list[Claim]:
    """Raises DataError naming the file, the claim and what is allowed."""
    document, _ = read_yaml(file)
    if not isinstance(document, dict) or not document:
        raise DataError(f"{file}: expected {{claim: {{{', '.join(KEYS)}}}}}")
    claims = []
    for name, parts in document.items():
        if (
            not isinstance(parts, dict)
            or set(parts) != set(KEYS)
            or not all(isinstance(v, str) for v in parts.values())
        ):
            raise DataError(f"{file}: {name}: expected these keys, each with a text: {', '.join(KEYS)}")
        claims.append(Claim(str(name), **parts))
    return claims


def judge(claims: list[Claim], store: Path) -> list[Claim]:
    """The claims with what the store says of them. A sweep that is not there was not measured."""
    if not store.is_dir():
        raise DataError(f"{store}: there is no store")
    judged = []
    for claim in claims:
        sweeps = dict.fromkeys([claim.sweep, *re.findall(r"\bof\s+([^\s,()]+)", claim.expect)])
        if missing := [sweep for sweep in sweeps if not _measured(sweep, store)]:
            judged.append(_with(claim, Judged.NOT_MEASURED, f"no valid trial of {', '.join(missing)}"))
            continue
        result = evaluate(claim.expect, read_facts(store, [claim.sweep])[claim.sweep], store)
        measured = NO_TRIAL not in result.seen
        judged.append(_with(claim, _OF[result.outcome] if measured else Judged.NOT_MEASURED, result.seen))
    return judged


def _measured(sweep: str, store: Path) -> bool:
    try:
        return has_valid_trial(sweep, store)
    except DataError:
        return False


def _with(claim: Claim, judged: Judged, seen: str) -> Claim:
    return Claim(claim.name, claim.says, claim.place, claim.paper, claim.sweep, claim.expect, judged, seen)


def table(claims: list[Claim]) -> str:
    """Markdown."""
    lines = ["| claim | where | the paper | here | outcome |", "|---|---|---|---|---|"]
    lines += [f"| {c.says} | {c.place} | {c.paper} | {c.seen} | **{c.judged}** |" for c in claims]
    return "\n".join(lines)
