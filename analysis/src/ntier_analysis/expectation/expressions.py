"""The language of expectations: `max_throughput >= 100`, `verdict == single db cpu`, `ratio(B, A) within 5 %`.

Each measured value has an interval: `>= 100` holds if the whole interval lies there, does not hold if none of it does,
and is undecided in between. It is also undecided if the value is unknown, or bounded only on the other side."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from ntier_analysis.comparison import Comparison, compare
from ntier_analysis.comparison.values import METRICS, has_valid_trial
from ntier_analysis.errors import DataError
from ntier_analysis.expectation.quantities import ALLOWED, NAMES, Facts, mean_throughput, quantity, read_facts
from ntier_analysis.expectation.quantity import Quantity, quotient
from ntier_analysis.expectation.saturations import named
from ntier_analysis.setting import MUST_EQUAL, differing
from ntier_analysis.statistics.values import Ratio


class Outcome(StrEnum):
    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"


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
_NUMBER = re.compile(r"([0-9.eE+-]+)\s*(%?)")
VERDICTS = ("none", "single", "multi", "hidden", "unknown")
KINDS = ("stable", "simultaneous", "alternating")
_ALLOWED = f"verdict, {', '.join(ALLOWED)}, ratio(B, A), ratio(X of B, Y of A)"


@dataclass(frozen=True)
class Others:
    """What is known beside one sweep: `facts` of other sweeps, by name; `anchors`: sweep -> its anchor, the sweep that
    was measured beside it and tells how fast the machine was then."""

    facts: Mapping[str, Facts] = field(default_factory=dict)
    anchors: Mapping[str, str] = field(default_factory=dict)

    def of(self, sweep: str, store: Path) -> Facts:
        return self.facts.get(sweep) or read_facts(store, [sweep])[sweep]


def evaluate(text: str, facts: Facts, store: Path, others: Others | None = None) -> Result:
    """Raises DataError for an expectation that cannot be read, naming it and what is allowed."""
    match = _FORM.fullmatch(text.strip())
    if not match:
        raise DataError(f"expectation {text!r}: expected NAME OPERATOR VALUE, for example max_throughput >= 100")
    name, args, op, bound = match["name"], match["args"], match["op"], match["bound"].strip()
    evidence: tuple[str, ...] = ()
    if name == "verdict":
        if args is not None:
            raise DataError(f"expectation {text!r}: verdict takes no argument")
        outcome, seen = _verdict(text, facts, op, bound)
        evidence = tuple(facts.verdict["evidence"])
    elif name == "ratio":
        outcome, seen = _ratio(text, args, op, bound, store, facts, others or Others())
    elif name in NAMES:
        limit = _number(text, bound, share=name == "saturation")
        measured = quantity(name, args, facts, text)
        outcome, seen = bounded(measured, op, limit), measured.text
    else:
        raise DataError(f"expectation {text!r}: unknown name {name!r}; allowed are {_ALLOWED}")
    return Result(facts.sweep, text.strip(), outcome, seen, evidence)


def _number(text: str, bound: str, *, share: bool) -> float:
    """`share`: of a share, 0.9 or 90 %; else only a ratio may be given in per cent."""
    match = _NUMBER.fullmatch(bound)
    try:
        value = float(match[1]) / (100 if match[2] else 1)
    except (TypeError, ValueError):
        raise DataError(f"expectation {text!r}: {bound!r} is not a number") from None
    if share and not 0 <= value <= 1:
        raise DataError(f"expectation {text!r}: {bound!r} is not a share; allowed are 0 to 1, or 0 % to 100 %")
    if not share and match[2]:
        raise DataError(f"expectation {text!r}: {bound!r}: a percentage is not allowed here; expected a number")
    return value


def bounded(measured: Quantity, op: str, bound: float) -> Outcome:
    """Of `measured OP bound`, by the whole interval. Raises DataError for an operator that is not allowed there."""
    low, high = measured.low, measured.high
    if low is None or high is None:
        return Outcome.UNDECIDED
    sure = {
        ">=": (low >= bound, high < bound),
        ">": (low > bound, high <= bound),
        "<=": (high <= bound, low > bound),
        "<": (high < bound, low >= bound),
        "==": (low == high == bound, bound < low or bound > high),
        "!=": (bound < low or bound > high, low == high == bound),
    }
    if op not in sure:
        raise DataError(f"operator {op!r} needs ratio(B, A) on its left; allowed here are {', '.join(sure)}")
    holds, fails = sure[op]
    return Outcome.HOLDS if holds else Outcome.FAILS if fails else Outcome.UNDECIDED


def _verdict(text: str, facts: Facts, op: str, bound: str) -> tuple[Outcome, str]:
    """`single db cpu`, `multi db cpu and app cpu`, or only a part of it: `single`, `multi simultaneous`."""
    if op not in ("==", "!="):
        raise DataError(f"expectation {text!r}: a verdict can be == or !=")
    wanted = _wanted(text, bound, facts.order)
    if facts.verdict["verdict"] == "unknown" and wanted.verdict != "unknown":
        return Outcome.UNDECIDED, facts.named
    return (Outcome.HOLDS if wanted.met(facts) == (op == "==") else Outcome.FAILS), facts.named


@dataclass(frozen=True)
class _Wanted:
    """`kind` "": any kind; `named` empty: any resources."""

    verdict: str
    kind: str
    named: frozenset[tuple[str, str]]

    def met(self, facts: Facts) -> bool:
        seen = facts.verdict
        bottlenecks = {(b["tier"], b["resource"]) for b in seen["bottlenecks"]}
        return (
            self.verdict == seen["verdict"]
            and self.kind in ("", seen["kind"])
            and (not self.named or set(self.named) == bottlenecks)
        )


def _wanted(text: str, bound: str, tiers: tuple[str, ...]) -> _Wanted:
    words = bound.lower().split()
    if not words or words[0] not in VERDICTS:
        raise DataError(f"expectation {text!r}: verdict {bound!r}; allowed are {', '.join(VERDICTS)}")
    kind = words.pop(1) if words[1:] and words[1] in KINDS else ""
    parts = " ".join(words[1:]).split(" and ") if words[1:] else []
    if parts and words[0] not in ("single", "multi"):
        raise DataError(f"expectation {text!r}: {words[0]} names no resource; expected {words[0]} alone")
    return _Wanted(words[0], kind, frozenset(named(part, text, tiers=tiers) for part in parts))


def _ratio(
    text: str, args: str | None, op: str, bound: str, store: Path, facts: Facts, others: Others
) -> tuple[Outcome, str]:
    names = [a.strip() for a in (args or "").split(",")]
    if len(names) == 2 and any(" of " in name or re.split(r"[\s(]", name)[0] in NAMES for name in names):
        return _ratio_of(text, names, op, bound, store, facts, others)
    if len(names) not in (2, 3):
        raise DataError(f"expectation {text!r}: expected ratio(B, A), ratio(B, A, METRIC) or ratio(X of B, Y of A)")
    limit = _number(text, bound, share=False) if op != "within" else _margin(text, bound)
    metric, _, tier = names[2].partition(" ") if len(names) == 3 else ("", "", "")
    if metric and metric not in METRICS:
        raise DataError(f"expectation {text!r}: unknown metric {metric!r}; allowed are {', '.join(METRICS)}")
    without = [name for name in names[:2] if not has_valid_trial(name, store)]
    if without:
        return Outcome.UNDECIDED, f"{without[0]} has no valid trial"
    comparison = compare(names[1], names[0], store)
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
    low, high = ratio.low, ratio.high
    if not metric:
        low, high, why = _open_ends(comparison, ratio)
        seen += why
    if op == "within" and (low, high) == (ratio.low, ratio.high):
        return _within(ratio, limit), seen
    if op == "within":
        outside = low > 1 + limit or high < 1 - limit
        return (Outcome.FAILS if outside else Outcome.UNDECIDED), seen
    return bounded(Quantity(ratio.value, low, high), op, limit), seen


OF_ITSELF = ("saturation", "knee_users", "invalid_trials", "with_disk")
"""What a sweep's scale is not in, or is in the same way everywhere."""
_PART = re.compile(
    r"(?P<name>[a-z_0-9]+)\s*(?:\((?P<args>[^()]*)\))?(?P<anchored>\s+in\s+anchors)?(?:\s+of\s+(?P<sweep>\S+))?"
)


def _ratio_of(
    text: str, names: list[str], op: str, bound: str, store: Path, known: Facts, others: Others
) -> tuple[Outcome, str]:
    """`ratio(throughput(0.1 alter) of B, throughput(1 alter) of A)`: any two numbers of two sweeps, or of one. Without
    `of`: of the sweep that the expectation is of."""
    limit = _margin(text, bound) if op == "within" else _number(text, bound, share=False)
    parts, compared = [], []
    for name in names:
        match = _PART.fullmatch(name)
        if not match or match["name"] not in NAMES:
            raise DataError(
                f"expectation {text!r}: {name!r}: expected NAME(ARGUMENT) of SWEEP; names are {', '.join(NAMES)}"
            )
        sweep = match["sweep"] or known.sweep
        if sweep != known.sweep and not has_valid_trial(sweep, store):
            return Outcome.UNDECIDED, f"{sweep} has no valid trial"
        facts = known if sweep == known.sweep else others.of(sweep, store)
        part = quantity(match["name"], match["args"], facts, text)
        parts.append(_in_anchors(part, sweep, store, others, text) if match["anchored"] else part)
        if not match["anchored"] and match["name"] not in OF_ITSELF:
            compared.append(facts.trials)
    for name, part in zip(names, parts, strict=True):
        if math.isnan(part.value):
            return Outcome.UNDECIDED, f"{name}: {part.note}"
    ratio = quotient(*parts)
    odd = differing(*compared, ("scale", "data_profile", "think_time_s", "mix")) if len(compared) == 2 else {}
    said = ratio.text + "".join(f"; {column} is {one} and {other}" for column, (one, other) in odd.items())
    if "scale" in odd:
        return Outcome.UNDECIDED, f"{said}: {MUST_EQUAL['scale']}"
    return (within(ratio, limit) if op == "within" else bounded(ratio, op, limit)), said


def within(ratio: Quantity, margin: float) -> Outcome:
    """Whether the whole interval of a ratio lies within 1 +- margin, or none of it."""
    if ratio.low is None or ratio.high is None:
        return Outcome.UNDECIDED
    if 1 - margin <= ratio.low and ratio.high <= 1 + margin:
        return Outcome.HOLDS
    return Outcome.FAILS if ratio.low > 1 + margin or ratio.high < 1 - margin else Outcome.UNDECIDED


def _in_anchors(part: Quantity, sweep: str, store: Path, others: Others, text: str) -> Quantity:
    """In units of what the sweep's anchor made at the same time: the machine's speed then is in both."""
    anchor = others.anchors.get(sweep)
    if anchor is None:
        raise DataError(f"expectation {text!r}: {sweep} has no anchor; a file of claims names them under anchors:")
    unit = mean_throughput(others.of(anchor, store).trials)
    found = quotient(part, unit)
    return replace(found, note=f"({part.text} by the anchor's {unit.text})")


def _open_ends(comparison: Comparison, ratio: Ratio) -> tuple[float, float, str]:
    """A maximum that is "at least" so much may be any higher: B's opens the ratio above, A's below."""
    low = 0.0 if comparison.a.verdict.at_least else ratio.low
    high = math.inf if comparison.b.verdict.at_least else ratio.high
    bounds = [s.sweep for s in (comparison.a, comparison.b) if s.verdict.at_least]
    return low, high, f"; only a lower bound is known of {' and '.join(bounds)}" if bounds else ""


def _nothing_in_common(comparison: Comparison, metric: str) -> str:
    if comparison.factor is not None and not comparison.by_users:
        name, _ = comparison.factor
        return f"no mean over values of {name}; ratio(throughput(V) of B, throughput(V) of A) compares one of them"
    if metric or comparison.primary is None:
        return "nothing that both sweeps have in common"
    return "at least one sweep reaches no maximum; ratio(B, A, throughput_per_s) compares all loads"


def _margin(text: str, bound: str) -> float:
    match = _NUMBER.fullmatch(bound)
    value = _number(text, bound, share=True) if match else math.nan
    if not 0 < value < 1:
        raise DataError(f"expectation {text!r}: {bound!r} is not a margin; expected for example 5 %")
    return value


def _within(ratio: Ratio, margin: float) -> Outcome:
    if ratio.outcome(margin) == "same":
        return Outcome.HOLDS
    outside = ratio.low > 1 + margin or ratio.high < 1 - margin
    return Outcome.FAILS if outside else Outcome.UNDECIDED
