"""The claims of a paper, as data, judged by a store: each holds, differs, is undecided, or was not measured. What no
measurement of ours can tell stands there too, with the reason."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from ntier_analysis.comparison.values import has_valid_trial
from ntier_analysis.contracts.files import read_yaml
from ntier_analysis.errors import DataError
from ntier_analysis.expectation.expressions import Others, evaluate, evaluate_sides, operand, sides_of
from ntier_analysis.expectation.loads import NO_TRIAL, NotMeasured
from ntier_analysis.expectation.outcomes import Outcome
from ntier_analysis.expectation.quantities import NAMES, Facts, read_facts
from ntier_analysis.expectation.sides import Kept, Side

TEXTS = ("says", "place", "paper")
FORMS = ({"sweep", "expect"}, {"expect"}, {"unjudged"})
_KEYS = f"these keys, each with a text: {', '.join(TEXTS)}, sweep, expect"
_OTHER = (
    "expect may be a list, all of which must hold; without sweep, a map {sweep: expectation}; instead of both, "
    "unjudged: WHY"
)
ANCHORS = "anchors"
"""Key beside the claims: {anchor: sweep}, or {anchor: [sweep, ...]}."""


class Judged(StrEnum):
    HOLDS = "holds"
    DIFFERS = "differs"
    UNDECIDED = "undecided"
    NOT_MEASURED = "not measured"
    NOT_JUDGED = "not judged"


Part = tuple[str, str, str]
"""Claim, sweep, expectation."""
PART_COLUMNS = ("claim", "sweep", "expectation", "outcome", "seen")

_OF = {Outcome.HOLDS: Judged.HOLDS, Outcome.FAILS: Judged.DIFFERS, Outcome.UNDECIDED: Judged.UNDECIDED}


@dataclass(frozen=True)
class Claim:
    """`says`: the sentence and `place` where it stands; `paper`: the value there; `parts`: sweeps and what must hold of
    each, in the language of `check`, all of them together; `unjudged`: why there are none; `anchors`: sweep -> its
    anchor, of those that it names; `seen` and `judged`: by the store; `found`: the same of each part."""

    name: str
    says: str
    place: str
    paper: str
    parts: tuple[tuple[str, str], ...] = ()
    unjudged: str = ""
    anchors: dict[str, str] = field(default_factory=dict)
    judged: Judged = Judged.NOT_MEASURED
    seen: str = ""
    found: tuple[tuple[Judged, str], ...] = ()

    @property
    def sweeps(self) -> list[str]:
        """All that must have been measured, anchors too."""
        return list(dict.fromkeys(name for sweep, text in self.parts for name in self.needed(sweep, text)))

    @property
    def sides(self) -> dict[tuple[str, str], tuple[Side, str]]:
        """(Sweep, number) of each side of its ratios -> the side, and an expectation with it."""
        found = ((side, text) for sweep, text in self.parts for side in sides_of(text, sweep))
        return {(side.sweep, side.number): (side, text) for side, text in found}

    def needed(self, sweep: str, text: str) -> list[str]:
        """Sweeps of one part."""
        names = [sweep, *re.findall(r"\bof\s+([^\s,()]+)", text)]
        if plain := re.match(r"ratio\(\s*([^\s,()]+)\s*,\s*([^\s,()]+)\s*[,)]", text.strip()):
            names += [name for name in plain.groups() if name not in NAMES]
        anchored = [self.anchors[name] for name in names if name in self.anchors] if "in anchors" in text else []
        return list(dict.fromkeys([*names, *anchored]))


def read(file: Path) -> list[Claim]:
    """Raises DataError naming the file, the claim and what is allowed."""
    document = _document(file)
    units = _anchors(document.pop(ANCHORS, {}), file)
    claims = []
    for name, given in document.items():
        place = f"{file}: {name}"
        if (
            not isinstance(given, dict)
            or not set(TEXTS) <= set(given)
            or set(given) - set(TEXTS) not in FORMS
            or not all(isinstance(given.get(key, ""), str) for key in (*TEXTS, "sweep", "unjudged"))
        ):
            raise DataError(f"{place}: expected {_KEYS}; {_OTHER}")
        texts = {key: given[key] for key in TEXTS}
        claim = Claim(str(name), **texts, parts=_parts(given, place), unjudged=given.get("unjudged", ""))
        named = {s for sweep, text in claim.parts for s in claim.needed(sweep, text)}
        claims.append(replace(claim, anchors={s: a for s, a in units.items() if s in named}))
    return claims


def anchors(file: Path) -> dict[str, str]:
    """Sweep -> its anchor, of all that the file names. Raises DataError as `read` does."""
    return _anchors(_document(file).get(ANCHORS, {}), file)


def _document(file: Path) -> dict[Any, Any]:
    document, _ = read_yaml(file)
    if not isinstance(document, dict) or not document:
        raise DataError(f"{file}: expected {{claim: {{{', '.join(TEXTS)}, sweep, expect}}}}")
    return document


def _parts(given: dict[str, Any], place: str) -> tuple[tuple[str, str], ...]:
    if "unjudged" in given:
        return ()
    expected = {given["sweep"]: given["expect"]} if "sweep" in given else given["expect"]
    if not isinstance(expected, dict) or not expected:
        raise DataError(f"{place}: expected sweep: NAME beside expect, or expect: {{sweep: expectation}}")
    parts = []
    for sweeps, texts in expected.items():
        listed = texts if isinstance(texts, list) else [texts]
        if not listed or not all(isinstance(text, str) for text in listed):
            raise DataError(f"{place}: {sweeps}: expected an expectation, or a list of them; {texts!r} is none")
        parts += [(sweep, text) for sweep in alternatives(str(sweeps)) for text in listed]
    return tuple(parts)


def _anchors(given: Any, file: Path) -> dict[str, str]:
    """Sweep -> its anchor."""
    if not isinstance(given, dict):
        raise DataError(f"{file}: {ANCHORS}: expected {{anchor: sweep}}, or {{anchor: [sweep, ...]}}")
    found = {}
    for anchor, sweeps in given.items():
        listed = sweeps if isinstance(sweeps, list) else [sweeps]
        if not all(isinstance(text, str) for text in listed):
            raise DataError(f"{file}: {ANCHORS}: {anchor}: expected a sweep, or a list of them")
        found |= {sweep: str(anchor) for text in listed for sweep in alternatives(text)}
    return found


def alternatives(pattern: str) -> list[str]:
    """`1-{1,2}-1-{3,4}M` -> the four sweeps, as a shell would."""
    match = re.search(r"\{([^{}]*)\}", pattern)
    if not match:
        return [pattern]
    before, after = pattern[: match.start()], pattern[match.end() :]
    return [sweep for part in match[1].split(",") for sweep in alternatives(f"{before}{part.strip()}{after}")]


def judge(
    claims: list[Claim],
    store: Path,
    kept: Mapping[Part, tuple[Judged, str]] | None = None,
    operands: Kept | None = None,
) -> list[Claim]:
    """The claims with what the store says of them. A sweep that is not there was not measured. Of other stores, perhaps
    of other machines: `operands`, what they had of a side of a ratio (`operands_of`), and `kept`, what they said of a
    part (`read_parts`), where the operands do not tell."""
    known = _facts(claims, store)
    said = {(sweep, text): part for (_, sweep, text), part in (kept or {}).items()}
    return [_judged(claim, Others(known, claim.anchors, operands or {}), store, said) for claim in claims]


def operands_of(claims: list[Claim], store: Path) -> Kept:
    """The sides of the claims' ratios that the store has, to be kept."""
    known, found = _facts(claims, store), {}
    for claim in claims:
        others = Others(known, claim.anchors)
        for key, (side, text) in claim.sides.items():
            if not _lacking(claim, *key, others):
                with suppress(NotMeasured):
                    measured = operand(side, store, others, text)
                    found[key] = replace(measured, day=known[side.sweep].day)
    return found


def _facts(claims: list[Claim], store: Path) -> dict[str, Facts]:
    """Of all sweeps of the claims that the store has."""
    if not store.is_dir():
        raise DataError(f"{store}: there is no store")
    named = dict.fromkeys(sweep for claim in claims for sweep in claim.sweeps)
    measured = [sweep for sweep in named if _measured(sweep, store)]
    return read_facts(store, measured) if measured else {}


def _measured(sweep: str, store: Path) -> bool:
    try:
        return has_valid_trial(sweep, store)
    except DataError:
        return False


def _judged(claim: Claim, others: Others, store: Path, kept: Mapping[tuple[str, str], tuple[Judged, str]]) -> Claim:
    """Differs if one part does; holds if all do. `kept`: what an expectation said of a sweep, in whichever claim."""
    if not claim.parts:
        return replace(claim, judged=Judged.NOT_JUDGED, seen=claim.unjudged)
    here = [_part(claim, sweep, text, others, store) for sweep, text in claim.parts]
    found = [
        part if part[0] is not Judged.NOT_MEASURED else kept.get(named, part)
        for named, part in zip(claim.parts, here, strict=True)
    ]
    outcomes = [judged for judged, _ in found]
    order = (Judged.DIFFERS, Judged.NOT_MEASURED, Judged.UNDECIDED, Judged.HOLDS)
    judged = next(outcome for outcome in order if outcome in outcomes)
    seen = found[0][1] if len(found) == 1 else _seen(claim.parts, found)
    return replace(claim, judged=judged, seen=seen, found=tuple(found))


def _part(claim: Claim, sweep: str, text: str, others: Others, store: Path) -> tuple[Judged, str]:
    compared = [(side.sweep, side.number) for side in sides_of(text, sweep)]
    needed = [side for side in compared if side not in others.kept] if compared else [(sweep, text)]
    if missing := list(dict.fromkeys(name for part in needed for name in _lacking(claim, *part, others))):
        return Judged.NOT_MEASURED, f"the store has no valid trial of {', '.join(missing)}"
    try:
        if compared:
            result = evaluate_sides(text, sweep, store, others)
        else:
            result = evaluate(text, others.facts[sweep], store, others)
    except NotMeasured as error:
        return Judged.NOT_MEASURED, str(error)
    return (_OF[result.outcome] if NO_TRIAL not in result.seen else Judged.NOT_MEASURED), result.seen


def _lacking(claim: Claim, sweep: str, text: str, others: Others) -> list[str]:
    """Sweeps that the store lacks, of those that a part, or a side of one, needs."""
    return [name for name in claim.needed(sweep, text) if name not in others.facts]


def _seen(parts: tuple[tuple[str, str], ...], found: list[tuple[Judged, str]]) -> str:
    """How many parts came out how, and what was seen of each that was measured. What all parts have in common, sweep or
    expectation, is not repeated."""
    counts = Counter(judged for judged, _ in found)
    differ = [len({part[i] for part in parts}) > 1 for i in range(2)]
    each = [
        f"{', '.join(word for word, differs in zip(part, differ, strict=True) if differs)}: {seen} ({judged})"
        for part, (judged, seen) in zip(parts, found, strict=True)
        if judged is not Judged.NOT_MEASURED
    ]
    counted = ", ".join(f"{judged} {counts[judged]}" for judged in Judged if counts[judged])
    return "; ".join([f"of {len(found)}: {counted}", *each])


def write_parts(claims: list[Claim], file: Path) -> None:
    """The parts that were measured, one a line: small enough to be kept beside the claims, while a store is not."""
    with file.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(PART_COLUMNS)
        for claim in claims:
            for (sweep, text), (judged, seen) in zip(claim.parts, claim.found, strict=False):
                if judged is not Judged.NOT_MEASURED:
                    writer.writerow((claim.name, sweep, text, judged, seen))


def read_parts(file: Path) -> dict[Part, tuple[Judged, str]]:
    """Of `write_parts`; what an expectation that has changed since saw is not taken for the new one. Raises DataError
    naming the file and the line."""
    if not file.exists():
        return {}
    with file.open(newline="") as lines:
        reader = csv.DictReader(lines)
        if tuple(reader.fieldnames or ()) != PART_COLUMNS:
            raise DataError(f"{file}: expected the columns {', '.join(PART_COLUMNS)}")
        try:
            return {
                (row["claim"], row["sweep"], row["expectation"]): (Judged(row["outcome"]), row["seen"])
                for row in reader
            }
        except ValueError as error:
            raise DataError(f"{file}, line {reader.line_num}: {error}") from None


def table(claims: list[Claim]) -> str:
    """Markdown."""
    lines = ["| claim | where | the paper | here | outcome |", "|---|---|---|---|---|"]
    lines += [f"| {c.says} | {c.place} | {c.paper} | {c.seen} | **{c.judged}** |" for c in claims]
    return "\n".join(lines)


def filled(text: str, made: dict[str, str]) -> str:
    """A study's page with its made parts made anew: each stands between `<!-- NAME -->` and `<!-- end of NAME -->`."""
    for name, part in made.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n{part}\n{end}{rest.partition(end)[2]}"
    return text
