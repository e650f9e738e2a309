"""Groups within a map, ratios between maps, scale-out fits."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from ntier_analysis.campaign.cells import Campaign, Cell, MapKey
from ntier_analysis.statistics.groups import Pair, compare_all, compare_pairs, letters
from ntier_analysis.statistics.scaling import Curve, fit

ASPECTS = ("dbms", "low_cost", "middleware")
"""In what two maps may differ to be compared; the first of a pair is the reference."""


OF_MIDDLEWARE = ("policy", "tie")


@dataclass(frozen=True)
class Groups:
    """`letters`: sweep -> letters; sharing one = shown to be the same within 5 %, none = the same as no other. `pairs`:
    all comparisons, Holm over all. `steps`: those of neighbours, larger / smaller topology, Holm over these: all
    pairs of many topologies are too many to show much."""

    letters: dict[str, str]
    pairs: list[Pair]
    steps: list[Pair]


def groups(cells: list[Cell]) -> Groups:
    """Groups of one map, the highest maximum first (letter a); cells without an estimate get no letter, nor do lower
    bounds."""
    known = sorted((c for c in cells if c.estimate), key=lambda c: -c.max_per_s)
    estimates, bounds = {c.sweep: c.estimate for c in known}, _bounds(known)
    pairs = compare_all(estimates, bounds=bounds)
    same = {frozenset((p.a, p.b)) for p in pairs if p.relation == "same"}
    steps = compare_pairs(estimates, _neighbours(known), bounds=bounds)
    return Groups(letters([c.sweep for c in known if any(c.sweep in s for s in same)], same), pairs, steps)


def _bounds(cells: Iterable[Cell]) -> set[str]:
    """Sweeps whose maximum may be any higher."""
    return {c.sweep for c in cells if c.at_least}


def _neighbours(cells: list[Cell]) -> list[tuple[str, str]]:
    """(next, one) for each two that follow each other in a row or a column of the map, in the order of the map."""
    steps = []
    for along, across in (("x", "y"), ("y", "x")):
        for line in sorted({getattr(c, across) for c in cells}):
            row = sorted((c for c in cells if getattr(c, across) == line), key=lambda c: getattr(c, along))
            steps += [(b.sweep, a.sweep) for a, b in itertools.pairwise(row)]
    return steps


@dataclass(frozen=True)
class RatioMap:
    """Two maps that differ in `aspect`, compared place by place: `pairs` maps (x, y) -> other / reference. `scales`: of
    the sweeps compared."""

    aspect: str
    reference: MapKey
    other: MapKey
    pairs: dict[tuple[int, int], Pair]
    scales: tuple[float, ...]


def ratios(campaign: Campaign) -> list[RatioMap]:
    """Ratios for all pairs of maps that have a measured place in common, corrected by Holm over the places of each
    pair."""
    result = []
    for a, b in itertools.combinations(sorted(campaign.maps), 2):
        aspect = _difference(a, b, list(campaign.maps))
        if aspect is None:
            continue
        first, second = ({c.place: c for c in campaign.maps[k] if c.estimate} for k in (a, b))
        places = sorted(first.keys() & second.keys())
        if places:
            both = (*first.values(), *second.values())
            wanted = [(second[p].sweep, first[p].sweep) for p in places]
            pairs = compare_pairs({c.sweep: c.estimate for c in both}, wanted, bounds=_bounds(both))
            scales = tuple(sorted({cells[p].scale for p in places for cells in (first, second)}))
            result.append(RatioMap(aspect, a, b, dict(zip(places, pairs, strict=True)), scales))
    return result


def _difference(a: MapKey, b: MapKey, known: list[MapKey]) -> str | None:
    """The one aspect in which they differ. Variants must be equal, unless there is no map with the equal one."""
    differing = [k for k in ASPECTS if getattr(a, k) != getattr(b, k)]
    if len(differing) != 1 or a.mix != b.mix or a.fixed != b.fixed:
        return None
    if _setting(a, differing[0]) != _setting(b, differing[0]):
        return None
    if a.variant != b.variant and (_twin(a, b, known) or _twin(b, a, known)):
        return None
    return differing[0]


def _setting(of: MapKey, aspect: str) -> dict[str, tuple]:
    """What else must be equal. Policies are left out if the middlewares differ, since each has its own."""
    own = OF_MIDDLEWARE if aspect == "middleware" else ()
    return {column: values for column, values in of.setting if column not in own}


def _twin(a: MapKey, b: MapKey, known: list[MapKey]) -> bool:
    """Whether there is a map as b with the variant of a."""
    return any(
        k.variant == a.variant and all(getattr(k, n) == getattr(b, n) for n in (*ASPECTS, "mix", "fixed"))
        for k in known
    )


@dataclass(frozen=True)
class ScaleOut:
    """One row of a map: maximum throughput over the replicas at `app` application servers."""

    app: int
    cells: list[Cell]
    amdahl: Curve
    usl: Curve
    words: str


def scale_outs(cells: list[Cell]) -> list[ScaleOut]:
    """Rows with at least three measured numbers of replicas. A lower bound is no point of a law, and is left out."""
    rows = []
    for app in sorted({c.y for c in cells}):
        row = sorted((c for c in cells if c.y == app and c.estimate and not c.at_least), key=lambda c: c.x)
        if len({c.x for c in row}) >= 3:
            errors, freedom = ([getattr(c.estimate, k) for c in row] for k in ("standard_error", "freedom"))
            rows.append(ScaleOut(app, row, *fit([c.x for c in row], [c.max_per_s for c in row], errors, freedom)))
    return rows
