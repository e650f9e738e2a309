"""Which of several throughputs are the same: pairwise equivalence, corrected for the number of pairs, and letters.

Same = the ratio lies within the margin (two one-sided tests); "no difference found" is not the same, but undecided.
Being within a margin is not transitive: an estimate may share a letter with two others that share none, so letters
are shown and never forced into a partition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

MARGIN = 0.05
"""Throughputs within 5 % of each other are the same for a plan of capacity; noise of a trial is about as large."""
ALPHA = 0.05


@dataclass(frozen=True)
class Estimate:
    """A positive quantity by the logarithm of its value: standard error of that, and its degrees of freedom."""

    log: float
    error: float
    freedom: float

    @classmethod
    def of(cls, value: float, error: float, n: int) -> Estimate:
        """From a mean, its standard error and the number of repetitions (>= 2) that gave it."""
        if not (value > 0 and error >= 0 and n >= 2):
            raise ValueError(f"an estimate needs a positive mean of 2 or more, got {value} +- {error}, n = {n}")
        return cls(math.log(value), error / value, n - 1)


@dataclass(frozen=True)
class Pair:
    """a / b with its 95 % interval; `p_same`, `p_different`: corrected by Holm over all pairs of the family.
    `relation`: same, higher, lower or undecided."""

    a: str
    b: str
    ratio: float
    low: float
    high: float
    p_same: float
    p_different: float
    relation: str


def compare_all(found: Mapping[str, Estimate], margin: float = MARGIN) -> list[Pair]:
    """All pairs of a family (names -> estimates)."""
    return compare_pairs(found, list(itertools.combinations(found, 2)), margin)


def compare_pairs(found: Mapping[str, Estimate], pairs: list[tuple[str, str]], margin: float = MARGIN) -> list[Pair]:
    """The given pairs as one family. Welch's t on logarithms, unequal variances."""
    tests = [_tests(found[a], found[b], margin) for a, b in pairs]
    same, different = (holm(np.array([t[k] for t in tests])) for k in (3, 4))
    return [
        Pair(a, b, *t[:3], float(p), float(q), _relation(t[0], float(p), float(q)))
        for (a, b), t, p, q in zip(pairs, tests, same, different, strict=True)
    ]


def _tests(a: Estimate, b: Estimate, margin: float) -> tuple[float, float, float, float, float]:
    """Ratio, ends of its 95 % interval, p of equivalence, p of a difference."""
    difference = a.log - b.log
    error = max(math.hypot(a.error, b.error), 1e-12)
    freedom = error**4 / max(a.error**4 / a.freedom + b.error**4 / b.freedom, 1e-60)
    reach = float(stats.t.ppf(0.975, freedom)) * error
    above = stats.t.sf((difference - math.log(1 - margin)) / error, freedom)
    below = stats.t.cdf((difference - math.log(1 + margin)) / error, freedom)
    two_sided = 2 * stats.t.sf(abs(difference) / error, freedom)
    ends = (math.exp(difference + k * reach) for k in (0, -1, 1))
    return (*ends, float(max(above, below)), float(two_sided))


def _relation(ratio: float, p_same: float, p_different: float) -> str:
    if p_same < ALPHA:
        return "same"
    if p_different < ALPHA:
        return "higher" if ratio > 1 else "lower"
    return "undecided"


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's correction: p values that hold for the whole family."""
    order = np.argsort(p)
    steps = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(steps, 1.0)
    return corrected


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
