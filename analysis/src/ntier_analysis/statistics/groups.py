"""Which of several throughputs are the same: pairwise equivalence, corrected for the number of pairs, and letters.

Same = the ratio lies within the margin (two one-sided tests); "no difference found" is not the same, but undecided.
Being within a margin is not transitive: an estimate may share a letter with two others that share none, so letters
are shown and never forced into a partition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from ntier_analysis.statistics.families import holm
from ntier_analysis.statistics.ratios import of_intervals, p_different, p_same
from ntier_analysis.statistics.values import Interval, Ratio

MARGIN = 0.05
"""Throughputs within 5 % of each other are the same for a plan of capacity; noise of a trial is about as large."""
ALPHA = 0.05


@dataclass(frozen=True)
class Pair:
    """`ratio`: a / b, open above if a is a lower bound (infinity), below if b is one (0). `p_same`, `p_different`:
    corrected by Holm over all pairs of the family; 1 where a bound can show nothing. `relation`: same, higher, lower or
    undecided."""

    a: str
    b: str
    ratio: Ratio
    p_same: float
    p_different: float
    relation: str

    @property
    def side(self) -> str:
        """`at least` or `at most` if the ratio is open on one side, `unknown` if on both, else empty."""
        below, above = self.ratio.low == 0, self.ratio.high == math.inf
        return "unknown" if below and above else "at least" if above else "at most" if below else ""

    @property
    def row(self) -> dict[str, str | float]:
        """As a line of a table."""
        ends = {"ratio": self.ratio.value, "low": self.ratio.low, "high": self.ratio.high}
        tests = {"p_same": self.p_same, "p_different": self.p_different, "relation": self.relation}
        return {"a": self.a, "b": self.b} | ends | tests


def compare_all(intervals: Mapping[str, Interval], margin: float = MARGIN, bounds: Collection[str] = ()) -> list[Pair]:
    """All pairs of a family (names -> estimates)."""
    return compare_pairs(intervals, list(itertools.combinations(intervals, 2)), margin, bounds)


def compare_pairs(
    intervals: Mapping[str, Interval],
    pairs: list[tuple[str, str]],
    margin: float = MARGIN,
    bounds: Collection[str] = (),
) -> list[Pair]:
    """The given pairs as one family. The ratio is that of `ratios.of_intervals`, as everywhere. `bounds`: names whose
    estimate is a lower bound. The true value may be any higher, so such a pair is never the same, a is higher only if
    b is no bound, and lower only if a is none."""
    tested = [opened(of_intervals(intervals[b], intervals[a]), a in bounds, b in bounds) for a, b in pairs]
    same, different = holm([_p_same(r, margin) for r in tested]), holm([_p_different(r) for r in tested])
    return [
        Pair(a, b, r, float(p), float(q), _relation(r.value, float(p), float(q)))
        for (a, b), r, p, q in zip(pairs, tested, same, different, strict=True)
    ]


def opened(ratio: Ratio, a: bool, b: bool) -> Ratio:
    """a / b, where a, or b, is a lower bound and may be any higher. A ratio of unknown error stays unknown."""
    if math.isnan(ratio.low):
        return ratio
    above = {"high": math.inf, "high_90": math.inf} if a else {}
    below = {"low": 0.0, "low_90": 0.0} if b else {}
    return replace(ratio, **above, **below)


def _p_same(ratio: Ratio, margin: float) -> float:
    return 1.0 if ratio.low == 0 or ratio.high == math.inf else p_same(ratio, margin)


def _p_different(ratio: Ratio) -> float:
    open_end = ratio.low == 0 if ratio.value > 1 else ratio.high == math.inf
    return 1.0 if open_end else p_different(ratio)


def _relation(ratio: float, p_same: float, p_different: float) -> str:
    if p_same < ALPHA:
        return "same"
    if p_different < ALPHA:
        return "higher" if ratio > 1 else "lower"
    return "undecided"


def letters(names: list[str], same: set[frozenset[str]]) -> dict[str, str]:
    """Letters such that two names share one exactly if they are the same (insert and absorb, Piepho 2004): each letter
    is a largest group whose members are all the same. In the order of `names`: a, b, ..., z, aa, ..."""
    columns = [set(names)]
    for pair in itertools.combinations(names, 2):
        if frozenset(pair) in same:
            continue
        split = [c - {n} for c in columns if c >= set(pair) for n in pair]
        columns = _absorbed([c for c in columns if not c >= set(pair)] + split)
    place = {n: i for i, n in enumerate(names)}
    columns.sort(key=lambda c: sorted(place[n] for n in c))
    return {n: "".join(_letter(i) for i, c in enumerate(columns) if n in c) for n in names}


def _absorbed(columns: list[set[str]]) -> list[set[str]]:
    """Without columns that lie in another one."""
    kept: list[set[str]] = []
    for column in sorted(columns, key=len, reverse=True):
        if not any(column <= k for k in kept):
            kept.append(column)
    return kept


def _letter(index: int) -> str:
    return chr(ord("a") + index) if index < 26 else _letter(index // 26 - 1) + _letter(index % 26)
