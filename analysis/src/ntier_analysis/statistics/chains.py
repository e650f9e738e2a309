"""Which series of a node move with or against each other, and along which chain.

Correlation alone links everything with everything. The tree that keeps, of all pairs, the strongest links which connect
the series once (maximum spanning tree; with mutual information as weight this is the tree of Chow and Liu 1968, the
best approximation of the joint distribution by a tree, and -log(1 - r^2) / 2 is the mutual information of normal
variables) leaves the direct ones: disk - queue - statements - CPU instead of also disk - CPU. A noisy series (a queue
read once a second) hangs beside the chain instead of in it.

Signs along the way tell what rises and what falls with the series that the chain begins at."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree

STRONG = 0.3
"""Smallest correlation (either sign) of a link."""
SIGNIFICANT = 0.01
SHIFTS = 200
MIN_SHIFT_S = 3.0
MIN_SAMPLES = 20


@dataclass(frozen=True)
class Link:
    """Series `first` and `second` correlate by `r`; `p`: share of random shifts in time that correlate as strongly."""

    first: str
    second: str
    r: float
    p: float


def links(series: dict[str, np.ndarray], interval_s: float, seed: int = 1) -> list[Link]:
    """`series`: name -> (n,) on one clock, NaN where there is no value. All strong and significant pairs, strongest
    first. Constant series have no links. Null by circular shifts of at least 3 s."""
    pairs = []
    rng = np.random.default_rng(seed)
    for first, second in combinations(sorted(series), 2):
        a, b = series[first], series[second]
        known = ~(np.isnan(a) | np.isnan(b))
        a, b = a[known], b[known]
        smallest = max(1, round(MIN_SHIFT_S / interval_s))
        if len(a) < max(MIN_SAMPLES, 2 * smallest + 1) or np.ptp(a) == 0 or np.ptp(b) == 0:
            continue
        a, b = (a - a.mean()) / a.std(), (b - b.mean()) / b.std()
        r = float(a @ b) / len(a)
        shifts = rng.integers(smallest, len(a) - smallest, size=SHIFTS)
        shifted = b[(np.arange(len(b)) - shifts[:, None]) % len(b)]
        p = (1 + np.count_nonzero(abs(shifted @ a) / len(a) >= abs(r))) / (SHIFTS + 1)
        if abs(r) >= STRONG and p < SIGNIFICANT:
            pairs.append(Link(first, second, r, p))
    return sorted(pairs, key=lambda link: -abs(link.r))


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
