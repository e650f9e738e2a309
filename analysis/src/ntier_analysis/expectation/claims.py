"""The claims of a paper, as data, judged by a store: each holds, differs, is undecided, or was not measured. What no
measurement of ours can tell stands there too, with the reason.

Of a claim of several parts, each at 95 %, one would differ by chance alone: of 18 parts that hold just so, in a third
of all studies. So a part differs only by an interval that holds together with those of all other parts (Bonferroni: a
claim differs if its surest part does, which is also the first step of Holm's procedure). A claim holds only if every
part does, which needs no correction: it errs only if a part that is wrong holds."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from ntier_analysis.comparison.values import has_valid_trial
from ntier_analysis.contracts.files import read_yaml
from ntier_analysis.errors import DataError
from ntier_analysis.expectation.expressions import (
    Others,
    Result,
    evaluate,
    evaluate_sides,
    evaluate_verdict,
    operand,
    sides_of,
)
from ntier_analysis.expectation.loads import NO_TRIAL, NotMeasured
from ntier_analysis.expectation.outcomes import Outcome
from ntier_analysis.expectation.quantities import NAMES, Facts, read_facts
from ntier_analysis.expectation.sides import Between, Kept, Side, number_of
from ntier_analysis.store.tables import sweeps as stored
from ntier_analysis.wording import in_markdown

TEXTS = ("says", "place", "paper")
FORMS = ({"sweep", "expect"}, {"expect"}, {"unjudged"})
_KEYS = f"these keys, each with a text: {', '.join(TEXTS)}, sweep, expect"
_OTHER = (
    "expect may be a list, all of which must hold; without sweep, a map {sweep: expectation}; instead of both, "
    "unjudged: WHY; beside expect, given: a verdict without which the claim says nothing, for example "
    "verdict == single db cpu"
)
GIVEN = "given"
ANCHORS = "anchors"
"""Key beside the claims: {anchor: sweep}, or {anchor: [sweep, ...]}."""
_PREMISE = re.compile(r"verdict\s*[!=]=\s*(?!verdict\s+of\b)\S")
"""What `given` may be: a verdict, not that of another place."""
BETWEEN = "between blocks"
"""Key beside the claims: {number: {differ: s.d. of identical cells of different blocks, freedom: of this}}."""


class Judged(StrEnum):
    HOLDS = "holds"
    DIFFERS = "differs"
    UNDECIDED = "undecided"
    NOT_MEASURED = "not measured"
    NOT_JUDGED = "not judged"


Part = tuple[str, str, str]
"""Claim, sweep, expectation."""
PART_COLUMNS = ("claim", "sweep", "expectation", "outcome", "seen", "parts")
BEFORE = PART_COLUMNS[:-1]
"""Of files that do not say of how many parts: taken as judged each by itself."""


class Said(NamedTuple):
    """Of a part, as one of so many."""

    judged: Judged
    seen: str
    parts: int = 1


_OF = {Outcome.HOLDS: Judged.HOLDS, Outcome.FAILS: Judged.DIFFERS, Outcome.UNDECIDED: Judged.UNDECIDED}


@dataclass(frozen=True)
class Claim:
    """`says`: the sentence and `place` where it stands; `paper`: the value there; `parts`: sweeps and what must hold of
    each, in the language of `check`, all of them together; `unjudged`: why there are none; `given`: the verdict
    that a place must have for the claim to say something of it; `anchors`: sweep -> its
    anchor, of those that it names; `between`: number -> what blocks of two anchors differ by; `seen` and `judged`: by
    the store; `found`: of each part."""

    name: str
    says: str
    place: str
    paper: str
    parts: tuple[tuple[str, str], ...] = ()
    unjudged: str = ""
    given: str = ""
    anchors: dict[str, str] = field(default_factory=dict)
    between: dict[str, Between] = field(default_factory=dict)
    judged: Judged = Judged.NOT_MEASURED
    seen: str = ""
    found: tuple[tuple[Judged, str], ...] = ()
    as_one_of: tuple[int, ...] = ()
    """Parts among which each part was judged: those of the claim, or, if it was kept, of the claim at that time."""

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
    units, differ = _anchors(document.pop(ANCHORS, {}), file), _between(document.pop(BETWEEN, {}), file)
    claims = []
    for name, given in document.items():
        place = f"{file}: {name}"
        if (
            not isinstance(given, dict)
            or not set(TEXTS) <= set(given)
            or set(given) - {*TEXTS, GIVEN} not in FORMS
            or not all(isinstance(given.get(key, ""), str) for key in (*TEXTS, "sweep", "unjudged", GIVEN))
            or (GIVEN in given and ("unjudged" in given or not _PREMISE.match(given[GIVEN])))
        ):
            raise DataError(f"{place}: expected {_KEYS}; {_OTHER}")
        texts = {key: given[key] for key in TEXTS}
        told = {key: given.get(key, "") for key in ("unjudged", GIVEN)}
        claim = Claim(str(name), **texts, parts=_parts(given, place), **told)
        named = {s for sweep, text in claim.parts for s in claim.needed(sweep, text)}
        claims.append(replace(claim, anchors={s: a for s, a in units.items() if s in named}, between=differ))
    compared = {side.number for claim in claims for sweep, text in claim.parts for side in sides_of(text, sweep)}
    if unused := sorted(set(differ) - compared):
        raise DataError(f"{file}: {BETWEEN}: {unused[0]}: no claim compares it")
    return claims


def anchors(file: Path) -> dict[str, str]:
    """Sweep -> its anchor, of all that the file names. Raises DataError as `read` does."""
    return _anchors(_document(file).get(ANCHORS, {}), file)


def between(file: Path) -> dict[str, Between]:
    """Number -> what it differs by from block to block. Raises DataError as `read` does."""
    return _between(_document(file).get(BETWEEN, {}), file)


def _between(given: Any, file: Path) -> dict[str, Between]:
    found = {}
    for number, said in (given if isinstance(given, dict) else {"": None}).items():
        known = said if isinstance(said, dict) and set(said) == {"differ", "freedom"} else {}
        sd, freedom = (known.get(key) for key in ("differ", "freedom"))
        numbers = all(type(v) in (int, float) for v in (sd, freedom)) and sd > 0 and freedom >= 1
        named = number_of(str(number))
        if not named or not numbers:
            raise DataError(
                f"{file}: {BETWEEN}: {number}: expected {{NUMBER: {{differ: S.D., freedom: DEGREES}}}}, for example "
                f"cores(web): {{differ: 0.05, freedom: 13}}, above 0 and from 1 on; numbers are {', '.join(NAMES)}"
            )
        found[named] = Between(float(sd), float(freedom))
    return found


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
        parts += [(sweep, text) for sweep in _sweeps(str(sweeps), place) for text in listed]
    return tuple(parts)


def _sweeps(pattern: str, place: str) -> list[str]:
    try:
        return alternatives(pattern)
    except ValueError as error:
        raise DataError(f"{place}: {error}") from None


def _anchors(given: Any, file: Path) -> dict[str, str]:
    """Sweep -> its anchor."""
    if not isinstance(given, dict):
        raise DataError(f"{file}: {ANCHORS}: expected {{anchor: sweep}}, or {{anchor: [sweep, ...]}}")
    found = {}
    for anchor, sweeps in given.items():
        place, listed = f"{file}: {ANCHORS}: {anchor}", sweeps if isinstance(sweeps, list) else [sweeps]
        if not all(isinstance(text, str) for text in listed):
            raise DataError(f"{place}: expected a sweep, or a list of them")
        found |= {sweep: str(anchor) for text in listed for sweep in _sweeps(text, place)}
    return found


def alternatives(pattern: str) -> list[str]:
    """`1-{1,2}-1-{3,4}M` -> the four sweeps, as a shell would; braces may stand in braces. Raises ValueError if one has
    no partner."""
    before, brace, rest = pattern.partition("{")
    if "}" in before:
        raise ValueError(f"{pattern}: expected a {{ before each }}")
    if not brace:
        return [pattern]
    depth, begin, parts = 1, 0, []
    for i, letter in enumerate(rest):
        depth += (letter == "{") - (letter == "}")
        if depth == 0 or (depth == 1 and letter == ","):
            parts.append(rest[begin:i].strip())
            begin = i + 1
        if depth == 0:
            inner = [text for part in parts for text in alternatives(part)]
            return [f"{before}{text}{after}" for text in inner for after in alternatives(rest[begin:])]
    raise ValueError(f"{pattern}: expected a }} for each {{")


def judge(
    claims: list[Claim],
    store: Path,
    kept: Mapping[Part, Said] | None = None,
    operands: Kept | None = None,
    verdicts: Mapping[str, str] | None = None,
) -> list[Claim]:
    """The claims with what the store says of them. A sweep that is not there was not measured. Of other stores, perhaps
    of other machines: `operands`, what they had of a side of a ratio (`operands_of`), `verdicts`, sweep -> the words of
    its verdict, and `kept`, what they said of a part (`read_parts`), where these do not tell."""
    others = Others(_facts(claims, store), {}, operands or {}, verdicts=verdicts or {})
    return [
        _judged(claim, replace(others, anchors=claim.anchors, between=claim.between), store, _kept(claim, kept or {}))
        for claim in claims
    ]


def _kept(claim: Claim, kept: Mapping[Part, Said]) -> dict[tuple[str, str], Said]:
    """(Sweep, expectation) -> what it was, in this claim or else in another one. What differed as one of fewer parts
    may not differ as one of as many as here; a verdict has no interval."""
    found: dict[tuple[str, str], Said] = {}
    several = len(claim.parts)
    for (name, sweep, text), said in kept.items():
        if said.judged is Judged.DIFFERS and said.parts < several and not text.startswith("verdict"):
            said = Said(Judged.UNDECIDED, _as_one_of(said.seen, several), several)
        if name == claim.name or (sweep, text) not in found:
            found[sweep, text] = said
    return found


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
    stored(store)  # raises DataError: a folder that is no store has measured nothing, and no claim is judged by it
    named = dict.fromkeys(sweep for claim in claims for sweep in claim.sweeps)
    measured = [sweep for sweep in named if _measured(sweep, store)]
    return read_facts(store, measured) if measured else {}


def _measured(sweep: str, store: Path) -> bool:
    try:
        return has_valid_trial(sweep, store)
    except DataError:
        return False


def _judged(claim: Claim, others: Others, store: Path, kept: Mapping[tuple[str, str], Said]) -> Claim:
    """`kept`: what an expectation said of a sweep."""
    here = [Said(*_part(claim, sweep, text, others, store), len(claim.parts)) for sweep, text in claim.parts]
    found = [
        said if said.judged is not Judged.NOT_MEASURED else kept.get(named, said)
        for named, said in zip(claim.parts, here, strict=True)
    ]
    told = [
        _given(claim.given, sweep, said, others, store) for (sweep, _), said in zip(claim.parts, found, strict=True)
    ]
    judged = of_parts(claim, [(said.judged, said.seen) for said in told])
    itself = tuple((said.judged, said.seen) for said in found)
    return replace(judged, found=itself, as_one_of=tuple(said.parts for said in found))


def _given(premise: str, sweep: str, said: Said, others: Others, store: Path) -> Said:
    """Of a place where the premise does not hold, or is not known, the claim says nothing."""
    if not premise or said.judged not in (Judged.HOLDS, Judged.DIFFERS):
        return said
    outcome, seen = Outcome.UNDECIDED, "not measured"
    if sweep in others.facts or sweep in others.verdicts:
        outcome, seen = evaluate_verdict(premise, sweep, store, others)
    if outcome is Outcome.HOLDS:
        return said
    why = "does not hold there" if outcome is Outcome.FAILS else "is not known there"
    return Said(Judged.UNDECIDED, f"{said.seen}; {premise} {why} ({seen})", said.parts)


def of_parts(claim: Claim, found: list[tuple[Judged, str]]) -> Claim:
    """The claim by its parts, each judged as by `part`: it differs if one does; it holds if all do."""
    if not claim.parts:
        return replace(claim, judged=Judged.NOT_JUDGED, seen=claim.unjudged)
    outcomes = [judged for judged, _ in found]
    order = (Judged.DIFFERS, Judged.NOT_MEASURED, Judged.UNDECIDED, Judged.HOLDS)
    judged = next(outcome for outcome in order if outcome in outcomes)
    seen = found[0][1] if len(found) == 1 else _seen(claim.parts, found)
    return replace(claim, judged=judged, seen=seen, found=tuple(found))


def _part(claim: Claim, sweep: str, text: str, others: Others, store: Path) -> tuple[Judged, str]:
    compared = [(side.sweep, side.number) for side in sides_of(text, sweep)]
    needed = [side for side in compared if side not in others.kept] if compared else [(sweep, text)]
    lacking = dict.fromkeys(name for part in needed for name in _lacking(claim, *part, others))
    of_verdict = text.split()[:1] == ["verdict"]
    if missing := [name for name in lacking if not (of_verdict and name in others.verdicts)]:
        return Judged.NOT_MEASURED, f"the store has no valid trial of {', '.join(missing)}"

    def judged(several: int) -> Result:
        as_one = replace(others, several=several)
        if compared:
            return evaluate_sides(text, sweep, store, as_one)
        if of_verdict:
            return Result(sweep, text, *evaluate_verdict(text, sweep, store, others))
        return evaluate(text, others.facts[sweep], store, as_one)

    try:
        result = judged(1)
        if NO_TRIAL in result.seen:
            return Judged.NOT_MEASURED, result.seen
        return part(result.outcome, result.seen, len(claim.parts), lambda several: judged(several).outcome)
    except NotMeasured as error:
        return Judged.NOT_MEASURED, str(error)


def part(alone: Outcome, seen: str, parts: int, as_one_of: Callable[[int], Outcome]) -> tuple[Judged, str]:
    """What a part of a claim is that came out so `alone`, at 95 %. `as_one_of`: its outcome where the intervals of so
    many hold together."""
    if alone is Outcome.FAILS and parts > 1 and as_one_of(parts) is not Outcome.FAILS:
        return Judged.UNDECIDED, _as_one_of(seen, parts)
    return _OF[alone], seen


def _as_one_of(seen: str, parts: int) -> str:
    return f"{seen}; differs by itself, and as one of {parts} parts it may by chance"


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
            parts_of = zip(claim.found, claim.as_one_of, strict=True)
            for (sweep, text), ((judged, seen), parts) in zip(claim.parts, parts_of, strict=False):
                if judged is not Judged.NOT_MEASURED:
                    writer.writerow((claim.name, sweep, text, judged, seen, parts))


def read_parts(file: Path) -> dict[Part, Said]:
    """Of `write_parts`; what an expectation that has changed since saw is not taken for the new one. Raises DataError
    naming the file and the line."""
    if not file.exists():
        return {}
    with file.open(newline="") as lines:
        reader = csv.DictReader(lines)
        if tuple(reader.fieldnames or ()) not in (PART_COLUMNS, BEFORE):
            raise DataError(f"{file}: expected the columns {', '.join(PART_COLUMNS)}")
        try:
            return {
                (row["claim"], row["sweep"], row["expectation"]): Said(
                    Judged(row["outcome"]), row["seen"], int(row.get("parts", 1))
                )
                for row in reader
            }
        except (ValueError, TypeError) as error:  # TypeError: a line that ends before the column
            raise DataError(f"{file}, line {reader.line_num}: {error}") from None


def table(claims: list[Claim]) -> str:
    """Markdown."""
    lines = ["| claim | where | the paper | here | outcome |", "|---|---|---|---|---|"]
    for c in claims:
        cells = map(in_markdown, (c.says, c.place, c.paper, c.seen))
        lines.append(f"| {' | '.join(cells)} | **{c.judged}** |")
    return "\n".join(lines)


def filled(text: str, made: dict[str, str]) -> str:
    """A study's page with its made parts made anew: each stands between `<!-- NAME -->` and `<!-- end of NAME -->`."""
    for name, part in made.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n{part}\n{end}{rest.partition(end)[2]}"
    return text
