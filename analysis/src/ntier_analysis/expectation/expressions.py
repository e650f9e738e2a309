"""The language of expectations: `max_throughput >= 100`, `verdict == single db cpu`, `ratio(B, A) within 5 %`.

What was measured has an interval: `>= 100` holds if all of the interval is, does not hold if none of it is, and is
undecided in between."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ntier_analysis.comparison import compare
from ntier_analysis.comparison.values import METRICS
from ntier_analysis.errors import DataError
from ntier_analysis.expectation.quantities import ALLOWED, NAMES, Facts, Quantity, quantity
from ntier_analysis.statistics.values import Ratio


class Outcome(StrEnum):
    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Result:
    """`seen`: what was found, in words."""

    sweep: str
    expectation: str
    outcome: Outcome
    seen: str

    @property
    def text(self) -> str:
        return f"{self.outcome}: {self.sweep}: {self.expectation} (seen: {self.seen})"


_FORM = re.compile(r"(?P<name>[a-z_0-9]+)\s*(?:\((?P<args>.*)\))?\s*(?P<op><=|>=|==|!=|<|>|within)\s*(?P<bound>.+)")
_NUMBER = re.compile(r"([0-9.eE+-]+)\s*(%?)")
_ALLOWED = f"verdict, {', '.join(ALLOWED)}, ratio(B, A)"


def evaluate(text: str, facts: Facts, store: Path) -> Result:
    """Raises DataError for an expectation that cannot be read, naming it and what is allowed."""
    match = _FORM.fullmatch(text.strip())
    if not match:
        raise DataError(f"expectation {text!r}: expected NAME OPERATOR VALUE, for example max_throughput >= 100")
    name, args, op, bound = match["name"], match["args"], match["op"], match["bound"].strip()
    if name == "verdict":
        outcome, seen = _verdict(text, facts, op, bound)
    elif name == "ratio":
        outcome, seen = _ratio(text, args, op, bound, store)
    elif name in NAMES:
        found = quantity(name, args, facts, text)
        outcome, seen = _bounded(found, op, _number(text, bound)), found.text
    else:
        raise DataError(f"expectation {text!r}: unknown name {name!r}; allowed are {_ALLOWED}")
    return Result(facts.verdict["sweep"], text.strip(), outcome, seen)


def _number(text: str, bound: str) -> float:
    match = _NUMBER.fullmatch(bound)
    try:
        return float(match[1]) / (100 if match[2] else 1)
    except (TypeError, ValueError):
        raise DataError(f"expectation {text!r}: {bound!r} is not a number") from None


def _bounded(found: Quantity, op: str, bound: float) -> Outcome:
    low, high = found.low, found.high
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
    seen = facts.named
    words = bound.lower().split()
    if words[:1] != ["unknown"] and facts.verdict["verdict"] == "unknown":
        return Outcome.UNDECIDED, seen
    allowed = ("none", "single", "multi", "hidden", "unknown")
    if not words or words[0] not in allowed:
        raise DataError(f"expectation {text!r}: verdict {bound!r}; allowed are {', '.join(allowed)}")
    equal = words[0] == facts.verdict["verdict"] and _rest(facts, words[1:])
    return (Outcome.HOLDS if equal == (op == "==") else Outcome.FAILS), seen


def _rest(facts: Facts, words: list[str]) -> bool:
    kinds = ("stable", "simultaneous", "alternating")
    if words[:1] and words[0] in kinds and words.pop(0) != facts.verdict["kind"]:
        return False
    if not words:
        return True
    wanted = {tuple(part.split()) for part in " ".join(words).split(" and ")}
    return wanted == {(b["tier"], b["resource"]) for b in facts.verdict["bottlenecks"]}


def _ratio(text: str, args: str | None, op: str, bound: str, store: Path) -> tuple[Outcome, str]:
    names = [a.strip() for a in (args or "").split(",")]
    if len(names) not in (2, 3):
        raise DataError(f"expectation {text!r}: expected ratio(B, A) or ratio(B, A, METRIC)")
    found = compare(names[1], names[0], store)
    row = found.primary
    if len(names) == 3:
        metric, _, tier = names[2].partition(" ")
        if metric not in METRICS:
            raise DataError(f"expectation {text!r}: unknown metric {metric!r}; allowed are {', '.join(METRICS)}")
        wanted = [r for r in found.rows if r.scope == "all loads" and r.metric == metric and r.tier == tier]
        row = next(iter(wanted), None)
    if row is None or row.ratio is None:
        return Outcome.UNDECIDED, "nothing that both sweeps have in common"
    ratio, seen = row.ratio, f"{row.ratio.text}, {row.basis}"
    if op == "within":
        return _within(ratio, _number(text, bound)), seen
    return _bounded(Quantity(ratio.value, ratio.low, ratio.high), op, _number(text, bound)), seen


def _within(ratio: Ratio, margin: float) -> Outcome:
    if ratio.outcome(margin) == "same":
        return Outcome.HOLDS
    outside = ratio.low > 1 + margin or ratio.high < 1 - margin
    return Outcome.FAILS if outside else Outcome.UNDECIDED
