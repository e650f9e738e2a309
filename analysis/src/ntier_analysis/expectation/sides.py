"""`ratio(throughput(0.1 alter) of B, throughput(1 alter) of A)`: any two numbers of two sweeps, or of one. Instead of a
number there may be a quotient of two, `ratio(X of B / Y of B, X of A / Y of A)`: it tells whether a ratio grows. Each
side can be kept as a line of a file: two sweeps are then compared though no store ever had both."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

import pandas as pd

from ntier_analysis.errors import DataError
from ntier_analysis.expectation.outcomes import Outcome, bounded, margin, number, within
from ntier_analysis.expectation.quantities import NAMES
from ntier_analysis.expectation.quantity import Quantity, quotient
from ntier_analysis.setting import IMPORTED, MUST_EQUAL, as_one, as_text, setting
from ntier_analysis.statistics import distributions as stats
from ntier_analysis.statistics.values import CONFIDENCE

OF_ITSELF = ("saturation", "knee_users", "invalid_trials", "with_disk")
"""What a sweep's scale is not in, or is in the same way everywhere."""
RATES = ("max_throughput", "mean_throughput", "throughput", "goodput")
"""What can be told in units of an anchor's throughput."""
SETTINGS = ("scale", "data_profile", "think_time_s", "mix", "system", "target")
"""In which a difference of two sweeps is told."""
LATER = ("system", "target")
"""Those that files of operands did not always have: then they are unknown."""
ACROSS = ("data_profile", "think_time_s", "mix")
"""In which they must not differ either, unless the expectation names them: `... >= 2 across mix`."""
NEVER = ("scale", "system")
"""In which they must not differ at all."""
_ACROSS = re.compile(r"(?P<bound>.+?)\s+across\s+(?P<columns>.+)")
_FORM = re.compile(
    r"(?P<name>[a-z_0-9]+)\s*(?:\((?P<args>[^()]*)\))?(?P<anchored>\s+in\s+anchors)?(?:\s+of\s+(?P<sweep>\S+))?"
)


@dataclass(frozen=True)
class Side:
    """`cores(web) of SWEEP`; `anchored`: in units of what the sweep's anchor made at the same time; `divides`: the side
    before it, `X of B / Y of A`."""

    name: str
    args: str | None
    anchored: bool
    sweep: str
    divides: bool = False

    @property
    def number(self) -> str:
        """What is measured, without the sweep: `cores(web)`, `max_throughput in anchors`."""
        args = "" if self.args is None else f"({' '.join(self.args.split())})"
        return f"{self.name}{args}{' in anchors' if self.anchored else ''}"


@dataclass(frozen=True)
class Operand:
    """A side as it was measured; `settings`: of its sweep, as text, where the other side's must be the same; `day`: of
    its last trial, if it comes from another store."""

    measured: Quantity
    settings: Mapping[str, str]
    day: str = ""


Kept = Mapping[tuple[str, str], Operand]
"""(sweep, number) -> what it was."""


@dataclass(frozen=True)
class Between:
    """What a number of the same cell differs by from one block of trials to the next, beyond what the trials of a block
    differ by: s.d. of its logarithm, and the degrees of freedom that this is known with."""

    sd: float
    freedom: float


@dataclass(frozen=True)
class Blocks:
    """`of`: sweep -> its block, by the name of its anchor; one without is a block of its own. `differ`: number, as in
    `Side.number`, -> what blocks put between two sweeps."""

    of: Mapping[str, str] = field(default_factory=dict)
    differ: Mapping[str, Between] = field(default_factory=dict)

    def between(self, compared: Iterable[Side]) -> Quantity | None:
        """A factor of 1 with the interval that blocks give a ratio of these sides; None if they give it none: sides of
        one block have what was the block's in common."""
        powers: Counter[tuple[str, str]] = Counter()
        term = -1
        for side in compared:
            term += not side.divides
            if side.number in self.differ:
                powers[side.number, self.of.get(side.sweep, side.sweep)] += 1 if (term == 0) != side.divides else -1
        errors = [
            (power * self.differ[number].sd, self.differ[number].freedom)
            for (number, _), power in powers.items()
            if power
        ]
        if not errors:
            return None
        freedom = min(freedom for _, freedom in errors)
        reach = float(stats.t.ppf(0.5 + CONFIDENCE / 2, freedom)) * math.hypot(*(error for error, _ in errors))
        reach = min(reach, MOST_REACH)
        return Quantity(1.0, math.exp(-reach), math.exp(reach), freedom=freedom)


ONE_BLOCK = Blocks()
MOST_REACH = 300.0
"""Of a logarithm: a factor of 1e130 tells no more than one without an end, and its powers are numbers still."""


def is_ratio_of_sides(arguments: list[str]) -> bool:
    """Whether a ratio is of two numbers (or of quotients of two), and not of two sweeps."""
    return len(arguments) == 2 and any(" of " in a or re.split(r"[\s(]", a)[0] in NAMES for a in arguments)


def number_of(text: str) -> str:
    """What is compared, as `Side.number` has it: `cores( web )` is `cores(web)`; empty if it is no such number."""
    match = _FORM.fullmatch(text.strip())
    if not match or match["name"] not in NAMES or match["anchored"] or match["sweep"]:
        return ""
    return Side(match["name"], match["args"], False, "").number


def sides(text: str, arguments: Iterable[str], sweep: str) -> list[Side]:
    """Of one expectation; a side without `of` is of `sweep`. Raises DataError."""
    found = []
    for argument in arguments:
        for place, part in enumerate(parts := re.split(r"\s+/\s+", argument)):
            match = _FORM.fullmatch(part)
            if not match or match["name"] not in NAMES or len(parts) > 2:
                raise DataError(
                    f"expectation {text!r}: {argument!r}: expected NAME(ARGUMENT) of SWEEP, or two of them with / "
                    f"between; names are {', '.join(NAMES)}"
                )
            anchored, named = bool(match["anchored"]), match["sweep"] or sweep
            if anchored and match["name"] not in RATES:
                raise DataError(f"expectation {text!r}: {part!r}: only {', '.join(RATES)} can be in anchors")
            found.append(Side(match["name"], match["args"], anchored, named, divides=place > 0))
    return found


def settings_of(trials: pd.DataFrame) -> dict[str, str]:
    return {column: as_text(values) for column, values in setting(trials, SETTINGS)}


def ratio_of(
    text: str,
    compared: list[Side],
    op: str,
    bound: str,
    operand: Callable[[Side], Operand | str],
    several: int = 1,
    blocks: Blocks = ONE_BLOCK,
) -> tuple[Outcome, str]:
    """`operand`: what a side was, or why that is not known; `several`: of so many ratios the intervals must hold
    together; `blocks`: in which the sides were measured."""
    bound, across = _across(text, bound)
    limit = margin(text, bound) if op == "within" else number(text, bound, share=False)
    found = []
    for side in compared:
        known = operand(side)
        if isinstance(known, str):
            return Outcome.UNDECIDED, known
        found.append(known)
    for side, known in zip(compared, found, strict=True):
        if math.isnan(known.measured.value):
            return Outcome.UNDECIDED, f"{side.number} of {side.sweep}: {known.measured.note}"
    between = blocks.between(compared)
    ratio = _quotient(compared, [known.measured for known in found], between)
    told = "".join(f"; {side.sweep}: kept from {known.day}" for side, known in zip(compared, found, strict=True)
                   if known.day)  # fmt: skip
    absolute = not any(side.anchored or side.name in OF_ITSELF for side in compared)
    odd = _odd([known.settings for known in found]) if absolute else {}
    if between:
        told += f"; of other blocks, which alone give [{between.low:.3g}, {between.high:.3g}]"
    said = ratio.text + told + "".join(f"; {column} is {one} and {other}" for column, (one, other) in odd.items())
    if wrong := next((c for c in odd if c in NEVER), None):
        return Outcome.UNDECIDED, f"{said}: {MUST_EQUAL[wrong]}"
    imported = all(known.settings.get("target") == IMPORTED for known in found)
    if unsaid := [c for c in ACROSS if c in odd and c not in across and _apart(c, odd[c], imported=imported)]:
        at_the_end = f"with `across {', '.join(unsaid)}` at its end the expectation compares them nevertheless"
        return Outcome.UNDECIDED, f"{said}: {MUST_EQUAL[unsaid[0]]}; {at_the_end}"
    known = _quotient(
        compared, [known.measured.one_of(several) for known in found], between and between.one_of(several)
    )
    return (within(known, limit) if op == "within" else bounded(known, op, limit)), said


def _quotient(compared: list[Side], measured: list[Quantity], between: Quantity | None) -> Quantity:
    """Of the two terms, each a number or a quotient of two. `between`: of `Blocks.between`."""
    terms: list[Quantity] = []
    for side, number_ in zip(compared, measured, strict=True):
        terms = [*terms[:-1], quotient(terms[-1], number_)] if side.divides else [*terms, number_]
    ratio = quotient(*terms)
    if between is None:
        return ratio
    upper, lower = terms
    return replace(quotient(quotient(upper, between), lower), note=ratio.note)


def _odd(settings: list[Mapping[str, str]]) -> dict[str, tuple[str, str]]:
    """Setting -> two values in which sides differ, known ones rather than unknown."""
    found = {}
    for column in SETTINGS:
        pairs = [pair for pair in combinations((s[column] for s in settings), 2) if pair[0] != pair[1]]
        pairs.sort(key=lambda pair: "unknown" in pair)
        if pairs and not (column in LATER and "unknown" in pairs[0]):
            found[column] = pairs[0]
    return found


def _across(text: str, bound: str) -> tuple[str, list[str]]:
    """`2 across mix, think_time_s` -> 2 and these two. Raises DataError."""
    match = _ACROSS.fullmatch(bound)
    if not match:
        return bound, []
    columns = [column.strip() for column in match["columns"].split(",")]
    if wrong := next((column for column in columns if column not in ACROSS), None):
        raise DataError(f"expectation {text!r}: across {wrong!r}: allowed are {', '.join(ACROSS)}")
    return match["bound"], columns


def _apart(column: str, values: tuple[str, str], *, imported: bool) -> bool:
    """Whether two settings are known to differ, think times of imports by more than those that were measured do."""
    if "unknown" in values:
        return False
    if column != "think_time_s" or not imported or any("," in value for value in values):
        return True
    return not as_one(*sorted(map(float, values)))


COLUMNS = ("sweep", "number", "value", "low", "high", "note", "day", *SETTINGS, "freedom")
BEFORE = (COLUMNS[:-1], COLUMNS[: -1 - len(LATER)])
"""Of files that were written before the last columns came: what these say is unknown there."""


def with_ends(kept: Kept) -> dict[tuple[str, str], Operand]:
    """Those with an interval: others cannot make a ratio hold, and another store may know more."""
    return {key: o for key, o in kept.items() if o.measured.low is not None or o.measured.high is not None}


def write_operands(kept: Kept, file: Path) -> None:
    """Those with an interval, one a line, by sweep; an end that is not known is empty."""
    with file.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        for (sweep, number_), known in sorted(with_ends(kept).items()):
            measured, settings = known.measured, (known.settings.get(column, "unknown") for column in SETTINGS)
            ends = ("" if end is None else f"{end:.6g}" for end in (measured.low, measured.high))
            freedom = "" if measured.freedom is None else f"{measured.freedom:.6g}"
            told = (f"{measured.value:.6g}", *ends, measured.note, known.day, *settings, freedom)
            writer.writerow((sweep, number_, *told))


def read_operands(file: Path) -> dict[tuple[str, str], Operand]:
    """Of `write_operands`; none if there is no file. Raises DataError naming the file and the line."""
    if not file.exists():
        return {}
    with file.open(newline="") as lines:
        reader = csv.DictReader(lines)
        if tuple(reader.fieldnames or ()) not in (COLUMNS, *BEFORE):
            raise DataError(f"{file}: expected the columns {', '.join(COLUMNS)}")
        found = {}
        for row in reader:
            try:
                ends = (float(row[end]) if row[end] else None for end in ("low", "high"))
                freedom = float(row["freedom"]) if row.get("freedom") else None
                most = 1.0 if (row["number"] or "").startswith("saturation") else math.inf
                measured = Quantity(float(row["value"]), *ends, row["note"], freedom, most)
            except (TypeError, ValueError) as error:
                raise DataError(f"{file}, line {reader.line_num}: {error}") from None
            settings = {c: row.get(c, "unknown") for c in SETTINGS}
            found[row["sweep"], row["number"]] = Operand(measured, settings, row["day"])
        return found
