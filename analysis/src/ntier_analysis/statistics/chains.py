"""Which series of a node move with or against each other, and along which chain.

Correlation alone links everything with everything. The tree that keeps, of all pairs, the strongest links which connect
the series once (maximum spanning tree; with mutual information as weight this is the tree of Chow and Liu 1968, the
best approximation of the joint distribution by a tree, and -log(1 - r^2) / 2 is the mutual information of normal
variables) leaves the direct ones: disk - queue - statements - CPU instead of also disk - CPU. A noisy series (a queue
read once a second) hangs beside the chain instead of in it.

Signs along the way tell what rises and what falls with the series that the chain begins at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree

from ntier_analysis.statistics import distributions as stats
from ntier_analysis.statistics.families import holm
from ntier_analysis.statistics.values import CONFIDENCE, reach_of

STRONG = 0.3
"""Smallest correlation (either sign) of a link."""
FAMILY = 0.05
"""Chance that unrelated series show any link, over all pairs that were looked at together: those of all nodes."""
MIN_SHIFT_S = 3.0
MIN_SAMPLES = 20
NEARLY_1 = 1 - 1e-12
CAUTION = 0.8
"""A short run tells the correlation of neighbours in time too low. Of 40 to 200 samples whose neighbours correlate by 0
to 0.9, p below 0.001 comes in 0 to 0.3 % of unrelated pairs with it, and in up to 0.6 % without."""


@dataclass(frozen=True)
class Link:
    """Series `first` and `second` correlate by `r`; `p`: how often unrelated series do so as strongly, of this pair
    alone; `worth`: independent samples that theirs are worth (0: too few to compare, infinite: one never changes)."""

    first: str
    second: str
    r: float
    p: float
    worth: float = 0.0

    @property
    def compared(self) -> bool:
        return 0 < self.worth < math.inf

    def may_be(self, sign: int, several: int) -> bool:
        """Whether a correlation of STRONG in this direction (1, -1) is not ruled out by its interval (Fisher's), which
        is so wide that the intervals of so many pairs hold together."""
        if self.worth <= 3:
            return True
        reach = float(stats.norm.isf((1 - CONFIDENCE) / 2)) * reach_of(several) / math.sqrt(self.worth - 3)
        return math.atanh(max(-NEARLY_1, min(sign * self.r, NEARLY_1))) + reach >= math.atanh(STRONG)


def links(series: dict[str, np.ndarray], interval_s: float) -> list[Link]:
    """The links of one family (`pairs`, `linked`)."""
    return linked([pairs(series, interval_s)])[0]


def linked(families: Sequence[list[Link]]) -> list[list[Link]]:
    """Of the pairs of each node those that are strong and, corrected by Holm over all pairs of all nodes, significant;
    strongest first."""
    corrected = iter(holm([link.p for family in families for link in family]).tolist())
    kept = [[link for link, p in zip(family, corrected, strict=False) if abs(link.r) >= STRONG and p < FAMILY]
            for family in families]  # fmt: skip
    return [sorted(family, key=lambda link: -abs(link.r)) for family in kept]


def pairs(series: dict[str, np.ndarray], interval_s: float) -> list[Link]:
    """`series`: name -> (n,) on one clock, NaN where there is no value. All pairs that can be compared: neither is
    constant, and both are long enough."""
    return [link for link in all_pairs(series, interval_s) if link.compared]


def all_pairs(series: dict[str, np.ndarray], interval_s: float) -> list[Link]:
    """As `pairs`, and those that cannot be compared."""
    smallest = max(1, round(MIN_SHIFT_S / interval_s))
    return [Link(a, b, *_related(series[a], series[b], smallest)) for a, b in combinations(sorted(series), 2)]


def _related(a: np.ndarray, b: np.ndarray, smallest: int) -> tuple[float, float, float]:
    """r, p and worth of a link."""
    known = ~(np.isnan(a) | np.isnan(b))
    a, b = a[known], b[known]
    if len(a) < max(MIN_SAMPLES, 2 * smallest + 1):
        return 0.0, 1.0, 0.0
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0, 1.0, math.inf
    return _correlation(a, b, smallest)


def _correlation(a: np.ndarray, b: np.ndarray, smallest: int) -> tuple[float, float, float]:
    """r, its p by Student's t, and what the samples are worth. Neighbours in time are alike, so these are worth fewer:
    as many as give the variance that r has when one series is moved in time against the other (Bartlett 1935), by
    `smallest` samples or more. To count the shifts that correlate as strongly would not do: a run of 40 s has 35."""
    n = len(a)
    a, b = (a - a.mean()) / a.std(), (b - b.mean()) / b.std()
    r = float(a @ b) / n
    moved = np.fft.irfft(np.fft.rfft(a) * np.conj(np.fft.rfft(b)), n)[smallest : n - smallest + 1] / n
    worth = CAUTION / max(float(np.mean(moved**2)), 1 / n)
    if worth <= 3 or abs(r) >= 1:
        return r, 1.0 if worth <= 3 else 0.0, worth
    return r, float(2 * stats.t.sf(abs(r) * np.sqrt((worth - 2) / (1 - r * r)), worth - 2)), worth


def possible(every: list[Link], start: str) -> set[tuple[str, int]]:
    """What may move with `start` (name, 1) or against it (name, -1): all that a chain could reach over pairs whose link
    is not ruled out. `every`: of `all_pairs`."""
    steps: dict[str, list[tuple[str, int]]] = {}
    for link in every:
        for sign in (1, -1):
            if link.may_be(sign, len(every)):
                steps.setdefault(link.first, []).append((link.second, sign))
                steps.setdefault(link.second, []).append((link.first, sign))
    found, following = {(start, 1)}, [(start, 1)]
    while following:
        name, sign = following.pop()
        more = {(other, sign * move) for other, move in steps.get(name, [])} - found
        found |= more
        following += more
    return found


def tree(all_links: list[Link]) -> list[Link]:
    """The strongest links that connect each series once."""
    if not all_links:
        return []
    names = sorted({n for link in all_links for n in (link.first, link.second)})
    place = {name: i for i, name in enumerate(names)}
    weight = np.zeros((len(names), len(names)))
    for link in all_links:
        weight[place[link.first], place[link.second]] = 2.0 - abs(link.r)  # 0 would be no link
    kept = set(zip(*(ends.tolist() for ends in minimum_spanning_tree(weight).nonzero()), strict=True))
    return [link for link in all_links if (place[link.first], place[link.second]) in kept]


@dataclass(frozen=True)
class Step:
    """`name` moves with `before` (correlation `r`); `sign`: +1 if it moves with the series that the chain begins at."""

    before: str
    name: str
    r: float
    sign: int


def chain(all_links: list[Link], start: str) -> list[Step]:
    """All that hangs on `start` in the tree, from there outwards; empty if no link begins there."""
    neighbours: dict[str, list[tuple[str, float]]] = {}
    for link in tree(all_links):
        neighbours.setdefault(link.first, []).append((link.second, link.r))
        neighbours.setdefault(link.second, []).append((link.first, link.r))
    steps, signs = [], {start: 1}

    def walk(name: str) -> None:
        for following, r in neighbours.get(name, []):
            if following not in signs:
                signs[following] = signs[name] * (1 if r > 0 else -1)
                steps.append(Step(name, following, r, signs[following]))
                walk(following)

    walk(start)
    return steps
