"""The language of expectations: `max_throughput >= 100`, `verdict == single db cpu`, `ratio(B, A) within 5 %`.

Each measured value has an interval: `>= 100` holds if the whole interval lies there, does not hold if none of it does,
and is undecided in between. It is also undecided if the value is unknown, or bounded only on the other side."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ntier_analysis.comparison import Comparison, NotComparable, compare
from ntier_analysis.comparison.sweeps import NO_CAPACITY
from ntier_analysis.comparison.values import METRICS, has_valid_trial
from ntier_analysis.contracts.implied import TIERS
from ntier_analysis.errors import DataError
from ntier_analysis.expectation.outcomes import Outcome, bounded, margin, number, within
from ntier_analysis.expectation.quantities import ALLOWED, NAMES, Facts, mean_throughput, quantity, read_facts
from ntier_analysis.expectation.quantity import Quantity, quotient
from ntier_analysis.expectation.saturations import named
from ntier_analysis.expectation.sides import (
    Between,
    Blocks,
    Kept,
    Operand,
    Side,
    is_ratio_of_sides,
    ratio_of,
    settings_of,
    sides,
)


@dataclass(frozen=True)
class Result:
    """`seen`: what was found, in words; `evidence`: the sentences of the verdict, for an expectation on it."""

    sweep: str
    expectation: str
    outcome: Outcome
    seen: str
    evidence: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        why = [] if self.outcome is Outcome.HOLDS else [f"\n  - {text}" for text in self.evidence]
        return f"{self.outcome}: {self.sweep}: {self.expectation} (seen: {self.seen}){''.join(why)}"


_FORM = re.compile(r"(?P<name>[a-z_0-9]+)\s*(?:\((?P<args>.*)\))?\s*(?P<op><=|>=|==|!=|<|>|within)\s*(?P<bound>.+)")
VERDICTS = ("none", "single", "multi", "hidden", "unknown")
KINDS = ("stable", "simultaneous", "alternating")
_ALLOWED = f"verdict, {', '.join(ALLOWED)}, ratio(B, A), ratio(X of B, Y of A)"


@dataclass(frozen=True)
class Others:
    """What is known beside one sweep: `facts` of other sweeps, by name; `anchors`: sweep -> its anchor, the sweep that
    was measured beside it and tells how fast the machine was then; `kept`: sides of ratios as another store had them,
    for sweeps that this one lacks; `several`: of so many expectations the intervals must hold together; `between`:
    number -> what it differs by between sweeps of two anchors; `verdicts`: sweep -> the words of its verdict, as
    another store had it."""

    facts: Mapping[str, Facts] = field(default_factory=dict)
    anchors: Mapping[str, str] = field(default_factory=dict)
    kept: Kept = field(default_factory=dict)
    several: int = 1
    between: Mapping[str, Between] = field(default_factory=dict)
    verdicts: Mapping[str, str] = field(default_factory=dict)

    def named(self, sweep: str, store: Path) -> str:
        """The words of a sweep's verdict."""
        kept = sweep not in self.facts and sweep in self.verdicts
        return self.verdicts[sweep] if kept else self.of(sweep, store).named

    def of(self, sweep: str, store: Path) -> Facts:
        return self.facts.get(sweep) or read_facts(store, [sweep])[sweep]


def evaluate(text: str, facts: Facts, store: Path, others: Others | None = None) -> Result:
    """Raises DataError for an expectation that cannot be read, naming it and what is allowed."""
    name, args, op, bound = _read(text)
    others = others or Others()
    evidence: tuple[str, ...] = ()
    if name == "verdict":
        here = replace(others, facts={**others.facts, facts.sweep: facts})
        outcome, seen = evaluate_verdict(text, facts.sweep, store, here)
        evidence = tuple(facts.verdict["evidence"])
    elif sides_of(text, facts.sweep):
        return evaluate_sides(text, facts.sweep, store, replace(others, facts={**others.facts, facts.sweep: facts}))
    elif name == "ratio":
        outcome, seen = _ratio(text, _arguments(args), op, bound, store, others.several)
    elif name in NAMES:
        limit = number(text, bound, share=name == "saturation")
        measured = quantity(name, args, facts, text)
        outcome, seen = bounded(measured.one_of(others.several), op, limit), measured.text
    else:
        raise DataError(f"expectation {text!r}: unknown name {name!r}; allowed are {_ALLOWED}")
    return Result(facts.sweep, text.strip(), outcome, seen, evidence)


def _read(text: str) -> tuple[str, str | None, str, str]:
    """Name, argument, operator, bound."""
    match = _FORM.fullmatch(text.strip())
    if not match:
        raise DataError(f"expectation {text!r}: expected NAME OPERATOR VALUE, for example max_throughput >= 100")
    return match["name"], match["args"], match["op"], match["bound"].strip()


def sides_of(text: str, sweep: str) -> list[Side]:
    """The two sides of a ratio of two numbers; none of any other expectation."""
    name, args, _, _ = _read(text)
    arguments = _arguments(args)
    return sides(text, arguments, sweep) if name == "ratio" and is_ratio_of_sides(arguments) else []


def evaluate_sides(text: str, sweep: str, store: Path, others: Others) -> Result:
    """Of `sides_of`: the sweep itself need not be in the store."""
    *_, op, bound = _read(text)
    blocks = Blocks(others.anchors, others.between)
    outcome, seen = ratio_of(
        text, sides_of(text, sweep), op, bound, lambda s: operand(s, store, others, text), others.several, blocks
    )
    return Result(sweep, text.strip(), outcome, seen)


def _arguments(args: str | None) -> list[str]:
    return [a.strip() for a in (args or "").split(",")]


def evaluate_verdict(text: str, sweep: str, store: Path, others: Others) -> tuple[Outcome, str]:
    """`single db cpu`, `multi db cpu and app cpu`, or only a part of it: `single`, `multi simultaneous`; or `verdict of
    SWEEP`. By the words of the verdict, so that one that was kept can be judged."""
    name, args, op, bound = _read(text)
    if name != "verdict" or args is not None:
        raise DataError(f"expectation {text!r}: verdict takes no argument")
    if op not in ("==", "!="):
        raise DataError(f"expectation {text!r}: a verdict can be == or !=")
    seen = others.named(sweep, store)
    facts = others.facts.get(sweep)
    found = _Words.of(seen)
    if other := re.fullmatch(r"verdict\s+of\s+(\S+)", bound):
        words = others.named(other[1], store)
        wanted, told = replace(_Words.of(words), kind=""), f"{seen}; {other[1]}: {words}"
        both = found.verdict, wanted.verdict  # of two hidden limits nobody knows whether they are the same
        known = "unknown" not in both and both != ("hidden", "hidden")
    else:
        tiers = facts.order if facts else (*TIERS, *(tier for tier, _ in found.resources))
        wanted, told = _wanted(text, bound, tiers), seen
        known = found.verdict != "unknown" or wanted.verdict == "unknown"
    if not known:
        return Outcome.UNDECIDED, told
    return (Outcome.HOLDS if wanted.met(found, whole=bool(other)) == (op == "==") else Outcome.FAILS), told


@dataclass(frozen=True)
class _Words:
    """`kind` "": any kind; `resources` empty: any resources."""

    verdict: str
    kind: str
    resources: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, named: str) -> _Words:
        """Of `Facts.named`."""
        words = named.split() or ["unknown"]
        kind = words.pop(1) if words[1:] and words[1] in KINDS else ""
        parts = " ".join(words[1:]).split(" and ") if words[1:] else []
        return cls(
            words[0], kind, frozenset((tier, resource) for tier, _, resource in (p.partition(" ") for p in parts))
        )

    def met(self, seen: _Words, *, whole: bool = False) -> bool:
        """`whole`: no resources are none."""
        return (
            self.verdict == seen.verdict
            and self.kind in ("", seen.kind)
            and (not (self.resources or whole) or self.resources == seen.resources)
        )


def _wanted(text: str, bound: str, tiers: tuple[str, ...]) -> _Words:
    words = bound.lower().split()
    if not words or words[0] not in VERDICTS:
        allowed = f"{', '.join(VERDICTS)}, verdict of SWEEP"
        raise DataError(f"expectation {text!r}: verdict {bound!r}; allowed are {allowed}")
    kind = words.pop(1) if words[1:] and words[1] in KINDS else ""
    parts = " ".join(words[1:]).split(" and ") if words[1:] else []
    if parts and words[0] not in ("single", "multi"):
        raise DataError(f"expectation {text!r}: {words[0]} names no resource; expected {words[0]} alone")
    return _Words(words[0], kind, frozenset(named(part, text, tiers=tiers) for part in parts))


def _ratio(text: str, names: list[str], op: str, bound: str, store: Path, several: int) -> tuple[Outcome, str]:
    if len(names) not in (2, 3):
        raise DataError(f"expectation {text!r}: expected ratio(B, A), ratio(B, A, METRIC) or ratio(X of B, Y of A)")
    limit = number(text, bound, share=False) if op != "within" else margin(text, bound)
    metric, _, tier = names[2].partition(" ") if len(names) == 3 else ("", "", "")
    if metric and metric not in METRICS:
        raise DataError(f"expectation {text!r}: unknown metric {metric!r}; allowed are {', '.join(METRICS)}")
    without = [name for name in names[:2] if not has_valid_trial(name, store)]
    if without:
        return Outcome.UNDECIDED, f"{without[0]} has no valid trial"
    try:
        comparison = compare(names[1], names[0], store)
    except NotComparable as error:
        return Outcome.UNDECIDED, f"the two cannot be compared: {error.why}"
    if metric:
        wanted = [r for r in comparison.rows if r.scope == "all loads" and r.metric == metric and r.tier == tier]
        row = next(iter(wanted), None)
    else:
        # over all loads the users set the throughput, not the system
        row = comparison.primary if comparison.primary is not None and comparison.primary.scope != "all loads" else None
    if row is None:
        return Outcome.UNDECIDED, _nothing_in_common(comparison, metric)
    if row.ratio is None:
        return Outcome.UNDECIDED, row.basis
    ratio, seen = row.ratio, f"{row.ratio.value:.3f} [{row.ratio.low:.3f}, {row.ratio.high:.3f}], {row.basis}"
    if not metric and comparison.at_least:
        seen += f"; only a lower bound is known of {' and '.join(comparison.at_least)}"
    freedom = None if math.isnan(ratio.freedom) else ratio.freedom
    known = Quantity(ratio.value, ratio.low, ratio.high, freedom=freedom).one_of(several)
    if op == "within":
        return (Outcome.HOLDS if ratio.outcome(limit) == "same" else within(known, limit)), seen
    return bounded(known, op, limit), seen


def operand(side: Side, store: Path, others: Others, text: str) -> Operand | str:
    """By the store; else as another one had it; else why it is not known. Raises DataError for a sweep that has no
    anchor and needs one."""
    sweep = side.sweep
    anchor = others.anchors.get(sweep) if side.anchored else sweep
    if anchor is None:
        raise DataError(f"expectation {text!r}: {sweep} has no anchor; a file of claims names them under anchors:")
    lacking = [name for name in dict.fromkeys((sweep, anchor)) if name not in others.facts]
    if lacking and (sweep, side.number) in others.kept:
        return others.kept[sweep, side.number]
    for name in lacking:
        if not has_valid_trial(name, store):
            return f"{name} has no valid trial"
    facts = others.of(sweep, store)
    measured = quantity(side.name, side.args, facts, text)
    if side.anchored:
        unit = mean_throughput(others.of(anchor, store).trials)
        measured = replace(quotient(measured, unit), note=f"({measured.text} by the anchor's {unit.text})")
    return Operand(measured, settings_of(facts.trials))


def _nothing_in_common(comparison: Comparison, metric: str) -> str:
    if not metric and comparison.open_load:
        return NO_CAPACITY
    if comparison.factor is not None and not comparison.by_users:
        name, _ = comparison.factor
        return f"no mean over values of {name}; ratio(throughput(V) of B, throughput(V) of A) compares one of them"
    if metric or comparison.primary is None:
        return "nothing that both sweeps have in common"
    return "at least one sweep reaches no maximum; ratio(B, A, throughput_per_s) compares all loads"
