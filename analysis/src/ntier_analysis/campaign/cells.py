"""A cell of a bottleneck map: one sweep's verdict and maximum throughput, and the conditions it was measured under."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pandas as pd

from ntier_analysis.contracts import Topology
from ntier_analysis.contracts.topology import DBMS
from ntier_analysis.described import loads
from ntier_analysis.setting import IMPORTED, MUST_EQUAL, as_text, by_make, setting
from ntier_analysis.statistics.values import Interval
from ntier_analysis.verdict.data import SweepVerdict
from ntier_analysis.wording import counted, resource

SETTING = tuple(c for c in MUST_EQUAL if c not in ("mix", "middleware", "scale"))
"""Columns that the cells of one map share besides mix and middleware. The scale is not among them: maxima are nominal,
and a warning names scales that differ."""

NAMES = {"mysql": "MySQL", "postgresql": "PostgreSQL", "mysql_cluster": "MySQL Cluster"}


@dataclass(frozen=True, order=True)
class MapKey:
    """What the cells of one map share. `fixed`: nodes of the two tiers that are no axis (web, and middleware; data
    nodes with MySQL Cluster). `variant`: the sweep's own name, empty if it has none. `setting`: (column, values) of
    `SETTING`; `told`: in words, what of it differs within the campaign."""

    mix: str
    middleware: str
    dbms: str
    low_cost: bool
    fixed: tuple[int, int]
    variant: str = ""
    setting: tuple[tuple[str, tuple], ...] = ()
    told: str = ""

    @property
    def told_slug(self) -> str:
        return re.sub(r"[^A-Za-z0-9_]+", "-", self.told)

    @property
    def slug(self) -> str:
        kind = self.dbms + ("L" if self.low_cost else "")
        parts = [kind, self.mix, self.middleware, f"{self.fixed[0]}-{self.fixed[1]}", self.variant, self.told_slug]
        return ".".join(p for p in parts if p)

    @property
    def label(self) -> str:
        dbms = NAMES[DBMS[self.dbms]] if self.dbms in DBMS else "DBMS not named"
        nodes = "low-cost nodes" if self.low_cost else "normal nodes"
        third = "data nodes" if self.dbms == "C" else "middleware"
        extra = "" if self.fixed == (1, 1) else f"{self.fixed[0]} web, {self.fixed[1]} {third}"
        return ", ".join(p for p in (dbms, nodes, self.middleware, self.mix, extra, self.variant, self.told) if p)


@dataclass(frozen=True)
class Cell:
    """One topology on one map. Rates are nominal (measured / scale), 1/s. `bottlenecks`: (tier,
    resource). `estimate`: the maximum, None if too little is known for a test. `at_least`: the maximum is a lower
    bound. `loads`: users (or the factor's value), throughput_per_s, low_per_s, high_per_s, p95_ms of each valid trial.
    `nodes`: node type -> count, clients not included. `slo_ms`: the mix's objective, NaN without one. `saturation`: of
    the bottleneck that is saturated most; `saturation_interval`: 95 %."""

    sweep: str
    topology: Topology
    map_key: MapKey
    scale: float
    verdict: str
    kind: str
    bottlenecks: tuple[tuple[str, str], ...]
    saturation: float
    max_per_s: float
    low_per_s: float
    high_per_s: float
    at_least: bool
    estimate: Interval | None
    trials: int
    valid: int
    pooled: int
    repetitions: int
    loads: pd.DataFrame
    nodes: dict[str, int]
    slo_ms: float = math.nan
    commits: tuple[str, ...] = ()
    saturation_interval: tuple[float, float] = (math.nan, math.nan)

    @property
    def imported(self) -> bool:
        return ("target", (IMPORTED,)) in self.map_key.setting

    @property
    def x(self) -> int:
        """Databases (SQL nodes with MySQL Cluster)."""
        return self.topology.middleware if self.topology.dbms == "C" else self.topology.db

    @property
    def y(self) -> int:
        return self.topology.app

    @property
    def place(self) -> tuple[int, int]:
        return self.x, self.y

    @property
    def top_per_s(self) -> float:
        """Upper end of the maximum's interval; infinite of a lower bound."""
        return math.inf if self.at_least else self.high_per_s

    @property
    def limit(self) -> str:
        """`db CPU`, `app + db CPU`, `hidden`, ..."""
        if not self.bottlenecks:
            return {"none": "no limit yet"}.get(self.verdict, self.verdict)
        resources = {r for _, r in self.bottlenecks}
        if len(resources) == 1:
            return " + ".join(t for t, _ in self.bottlenecks) + " " + resource(resources.pop())
        return " + ".join(f"{t} {resource(r)}" for t, r in self.bottlenecks)


def cell(trials: pd.DataFrame, nodes: pd.DataFrame, judged: SweepVerdict) -> Cell:
    """From the sweep's tables and its verdict."""
    first = trials.iloc[0]
    topology = Topology.parse(str(first["topology"]), dbms_required=False)
    scale = float(first["scale"]) if pd.notna(first["scale"]) else 1.0
    maximum = judged.max_throughput
    known = maximum is not None and maximum.value > 0
    ends = [
        v / scale if known and math.isfinite(v) else math.nan
        for v in ((maximum.low, maximum.high) if known else (0, 0))
    ]
    valid = trials[trials["valid"].fillna(False).astype(bool)]
    most = max(judged.bottlenecks, key=lambda b: b.saturation, default=None)
    return Cell(
        sweep=judged.sweep,
        topology=topology,
        map_key=_map_key(judged.sweep, topology, first, setting(trials, SETTING)),
        scale=scale,
        verdict=judged.verdict,
        kind=judged.kind,
        bottlenecks=tuple((b.tier, b.resource) for b in judged.bottlenecks),
        saturation=most.saturation if most else math.nan,
        saturation_interval=(most.low, most.high) if most else (math.nan, math.nan),
        max_per_s=maximum.value / scale if known else math.nan,
        low_per_s=ends[0],
        high_per_s=ends[1],
        at_least=judged.at_least,
        estimate=_nominal(maximum, scale) if known and judged.verdict not in ("none", "unknown") else None,
        trials=len(trials),
        valid=len(valid),
        pooled=maximum.n if known else 0,
        repetitions=int(loads(valid).value_counts().min()) if len(valid) else 0,
        loads=_loads(valid, scale),
        nodes=_node_types(topology, nodes),
        slo_ms=float(first["slo_ms"]) if pd.notna(first["slo_ms"]) else math.nan,
        commits=tuple(sorted(trials["git_commit"].dropna().unique())),
    )


def _map_key(sweep: str, topology: Topology, first: pd.Series, alike: tuple) -> MapKey:
    mix, middleware = (str(first[c]) if pd.notna(first[c]) else "" for c in ("mix", "middleware"))
    stem = f"{topology.slug}.{mix}.{middleware}"
    variant = sweep.removeprefix(stem).removeprefix(".") if sweep.startswith(stem) else ""
    third = topology.db if topology.dbms == "C" else topology.middleware
    return MapKey(mix, middleware, topology.dbms, topology.low_cost, (topology.web, third), variant, alike)


def _nominal(interval: Interval, scale: float) -> Interval | None:
    """None without a standard error."""
    if not (math.isfinite(interval.standard_error) and interval.standard_error > 0):
        return None
    numbers = (interval.value, interval.low, interval.high, interval.standard_error)
    return Interval(*(v / scale for v in numbers), interval.n, interval.freedom)


def _loads(valid: pd.DataFrame, scale: float) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "users": loads(valid),
            "throughput_per_s": valid["throughput_per_s"] / scale,
            "low_per_s": valid["throughput_low_per_s"] / scale,
            "high_per_s": valid["throughput_high_per_s"] / scale,
            "p95_ms": valid["response_time_p95_ms"],
        }
    ).sort_values("users", ignore_index=True)


def _node_types(topology: Topology, nodes: pd.DataFrame) -> dict[str, int]:
    """Counted from the table; without one, from the notation."""
    servers = nodes[nodes["tier"].isin(topology.counts)].drop_duplicates("node")
    if len(servers) == topology.node_count and servers["node_type"].notna().all():
        return {str(k): int(v) for k, v in servers["node_type"].value_counts().sort_index().items()}
    low = topology.db if topology.low_cost else 0
    return {k: n for k, n in (("low_cost", low), ("normal", topology.node_count - low)) if n}


@dataclass(frozen=True)
class Campaign:
    """`maps`: what the cells of a map share -> its cells; `warnings`: what a reader must know before comparing."""

    maps: dict[MapKey, list[Cell]]
    warnings: list[str]

    @property
    def cells(self) -> list[Cell]:
        return [c for cells in self.maps.values() for c in cells]


def _told(cells: list[Cell]) -> tuple[list[Cell], list[str]]:
    """The cells, with what differs in their settings named in their keys, and the columns that differ."""
    values: dict[str, set] = {}
    for c in cells:
        for column, seen in c.map_key.setting:
            values.setdefault(column, set()).add(seen)
    differing = [column for column, seen in values.items() if len(seen) > 1]

    def named(of: MapKey) -> MapKey:
        return replace(of, told=", ".join(f"{k} {as_text(v)}" for k, v in of.setting if k in differing))

    return [replace(c, map_key=named(c.map_key)) for c in cells], differing


def campaign(cells: Iterable[Cell], *, join_names: bool = False) -> Campaign:
    """Sorts cells into maps. If several sweeps have one place, it keeps the one with most valid trials, with a warning.
    join_names: sweeps of different names share a map."""
    maps: dict[MapKey, dict[tuple[int, int], Cell]] = {}
    cells, warnings = list(cells), []
    cells, differing = _told(cells)
    if differing:
        warnings.append(
            f"The sweeps differ in {', '.join(differing)}. Sweeps that differ in one of these are in separate maps, "
            "which are not compared."
        )
    names = sorted({c.map_key.variant for c in cells} - {""})
    if join_names and names:
        cells = [replace(c, map_key=replace(c.map_key, variant="")) for c in cells]
        warnings.append(
            f"Sweeps with different names ({', '.join(names)}) share a map. They agree in {', '.join(SETTING)}. "
            "Whether they differ in other settings was not checked."
        )
    for c in sorted(cells, key=lambda c: (c.map_key, c.place, -c.valid, c.sweep)):
        kept = maps.setdefault(c.map_key, {}).setdefault(c.place, c)
        if kept is not c:
            warnings.append(f"{c.sweep} is left out: {kept.sweep} is the same topology with {kept.valid} valid trials")
    mapped = Campaign({k: list(v.values()) for k, v in maps.items()}, warnings)
    scales = sorted({c.scale for c in mapped.cells})
    if len(scales) > 1:
        named = ", ".join(f"{s:g}" for s in scales)
        warnings.append(
            f"Scales differ ({named}): nominal throughputs are compared, which assumes that CPU per interaction does "
            "not depend on the scale (ntier-analysis demands shows whether it does). Response times and the knee do "
            "not carry over."
        )
    single = [c for c in mapped.cells if c.estimate is not None and c.repetitions < 2]
    if single:
        again = by_make("repeat with REPS=3", all(c.imported for c in single))
        warnings.append(
            f"Measured only once: {len(single)} of {counted(len(mapped.cells), 'topology')}. The intervals and tests "
            "of their maxima cover differences between trials of one deployment, not differences between "
            f"deployments{again}."
        )
    return replace(mapped, warnings=warnings)
