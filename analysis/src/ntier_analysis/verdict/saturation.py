"""Saturation of every node and resource in the run phase of one trial, from the raw samples."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from ntier_analysis.statistics.share import Share, saturation_share
from ntier_analysis.statistics.throughput import BATCHES, of_batches, of_trials
from ntier_analysis.statistics.values import Interval, estimated

THRESHOLDS = (90.0, 95.0, 99.0)
THRESHOLD = 95.0
"""Utilization, %, from which on a sample is saturated: the definition (docs/glossary.md). Tables hold all."""
WHOLE_SECONDS = 0.5
"""Seconds by which an interval of sysstat ended after its stamp, on average: sadc stores time(), the whole second."""
PREFERRED = ("cgroup", "procstat", "host_stat")
"""Sources of CPU utilization in order of trust; then any other."""
COLLECTING = "gc_pct"
METRICS = ("utilization_pct", "throttled_pct", "waiting", "active", "queue", "wait_ms", "operations_per_s", COLLECTING)
"""What a saturation is judged by. `waiting`: requests that wait for a place in a pool, whatever its mean occupancy (a
pool may be the sum of several); `active`: places that are taken; `queue`, `wait_ms`, `operations_per_s`: requests that
a disk has, how long it takes for one, waiting included, and how many it serves; `gc_pct`: share of the time in which
garbage collections stop a program."""
BESIDE = {"active", "queue", "wait_ms", "operations_per_s", COLLECTING}
"""Those that alone are no utilization."""
GRID_S = 0.1
"""Finest clock on which resources are compared: the interval of the collectors."""
THROTTLED_SLACK_PCT = 5.0
"""CPU with a quota is judged by its throttled periods: one that was throttled used all of its quota and wanted more.
Its utilization is not precise enough at 100 ms: the kernel accounts in slices, so that a pegged node with three busy
threads reads 70-125 %, and only 59 % of the samples are above 95 % (measured, 1 ms in 10 ms). A sample spans ten
periods, give or take one at its ends: nine of ten count, hence 5 points. A quota that throttles less than that in
the mean of the run does not bite: one thread uses up a quota of one core, and is throttled in no period. Then the CPU
is judged as one without a quota."""

Key = tuple[str, str, str]
"""Node, resource, item."""
Group = tuple[str, str]
"""Tier, resource."""


@dataclass(frozen=True)
class Saturation:
    """One resource of one node. `shares`: threshold -> share; `indicator`: (n,) of 1, 0, NaN on a grid of `interval_s`
    from the start of the run, `values` (n,) the utilizations in % on the same (may be empty). `by_throttling`: CPU with
    a quota that bites, judged by throttled periods. `queue`, `wait_ms`: mean number of requests, and mean time of one;
    `places`: of a pool; `visits_per_s`: requests that took a place in a pool, or that a CPU's node got (visits.py); NaN
    if it was not measured. `collections`: of a CPU, share of the time, %, in which garbage collections stopped a
    program of the node, in equal parts of the run; empty if they were not measured."""

    node: str
    tier: str
    resource: str
    item: str
    source: str
    shares: dict[float, Share]
    utilization_mean_pct: float
    utilization_p95_pct: float
    interval_s: float
    by_throttling: bool = False
    indicator: np.ndarray = field(default_factory=lambda: np.array([]), repr=False)
    values: np.ndarray = field(default_factory=lambda: np.array([]), repr=False)
    queue: float = float("nan")
    wait_ms: float = float("nan")
    places: float = float("nan")
    collections: np.ndarray = field(default_factory=lambda: np.array([]), repr=False)
    visits_per_s: float = float("nan")

    @property
    def collected_pct(self) -> float:
        """Mean share of the run in collections, %; 0 if they were not measured."""
        known = self.collections[~np.isnan(self.collections)]
        return float(known.mean()) if len(known) else 0.0

    @property
    def wanted_pct(self) -> np.ndarray:
        """(n,) utilizations in % on the grid of `values`, where a sample that was throttled counts as full, if it reads
        less than its throttled periods have used alone: it wanted all, whatever the kernel left unused of its quota."""
        if not self.by_throttling or len(self.values) != len(self.indicator):
            return self.values
        contradicts = (self.indicator == 1.0) & (self.values < THRESHOLD - THROTTLED_SLACK_PCT)
        return np.where(contradicts, 100.0, self.values)

    @property
    def full_pct(self) -> float:
        """Mean of `wanted_pct`, %; the mean utilization if there are no values."""
        known = self.wanted_pct[~np.isnan(self.wanted_pct)]
        return float(known.mean()) if len(known) else self.utilization_mean_pct

    @property
    def share(self) -> Share:
        return self.shares[THRESHOLD]

    @property
    def name(self) -> str:
        return f"{self.node} {self.resource}" + f" ({self.item})" * bool(self.item)

    @property
    def key(self) -> Key:
        return self.node, self.resource, self.item

    @property
    def group(self) -> Group:
        return self.tier, self.resource


@dataclass(frozen=True)
class Series:
    """One metric in the order of time: times and values as stored, and what the values are about: the `middle`s of
    their intervals."""

    t: np.ndarray
    middle: np.ndarray
    value: np.ndarray


NOTHING = Series(*(np.array([]),) * 3)
Metrics = dict[str, Series]


def middles(samples: pd.DataFrame) -> np.ndarray:
    """(rows,) times that the samples are about: the middles of their intervals, whose ends are t_s. A reading of a
    moment (no interval_s, or no such column) is about t_s itself. So is a value of an import that tells no interval:
    whether such a time is the beginning or the end is not known, and as the middle it is wrong by half of one at most.

    sysstat's t_s is the whole second in which an interval ended, so that it ended half a second later on average."""
    t = samples["t_s"].to_numpy(float)
    if "interval_s" not in samples:
        return t
    back = samples["interval_s"].to_numpy(float) / 2
    if "source" in samples:
        back = back - WHOLE_SECONDS * (samples["source"] == "sysstat").to_numpy()
    return t - np.nan_to_num(back)


def saturations(samples: pd.DataFrame, start: float, end: float) -> list[Saturation]:
    """`samples`: rows of one trial with columns t_s, node, tier, resource, metric, value, source, item, and interval_s
    if they have one.

    One entry per (node, resource, item) that has utilization_pct; of several sources the most trusted one, and among
    equals the one that reads most often."""
    samples = samples[samples["metric"].isin(METRICS)]
    middle = middles(samples)
    during = (middle >= start) & (middle < end)
    inside = samples[during].assign(middle=middle[during])
    keys = ["node", "resource", "item", "source", "metric"]
    parts: dict[tuple[str, str, str, str], Metrics] = {}
    tiers: dict[str, str] = {}
    for (*key, metric), rows in inside.groupby(keys, sort=True):
        ordered = rows.sort_values("t_s")
        of = Series(*(ordered[name].to_numpy(dtype=float) for name in ("t_s", "middle", "value")))
        parts.setdefault(tuple(key), {})[str(metric)] = of
        tiers[key[0]] = str(ordered["tier"].iloc[0])
    chosen: dict[tuple, tuple] = {}
    order = {key: preference(key[3], series.get("utilization_pct", NOTHING).t) for key, series in parts.items()}
    for key in (k for k, series in parts.items() if not set(series) <= BESIDE):
        chosen[key[:3]] = min(chosen.get(key[:3], key), key, key=order.__getitem__)
    stops = _collections(parts, start, end)
    found = [_saturation(key, tiers[key[0]], parts[key], start, end) for key in chosen.values()]
    return [replace(s, collections=stops[s.node]) if s.resource == "cpu" and s.node in stops else s for s in found]


def _collections(parts: dict[tuple[str, str, str, str], Metrics], start: float, end: float) -> dict[str, np.ndarray]:
    """Of each node that runs programs with collections, the share of the time in them; of several the longest."""
    found: dict[str, np.ndarray] = {}
    for (node, *_), series in parts.items():
        read = series.get(COLLECTING, NOTHING)
        if len(read.t) > 1:
            grid = _on_grid(read.middle, read.value, start, end, median_interval(read.t))
            known = found.get(node, grid)
            cells = max(len(known), len(grid))
            found[node] = np.fmax(_finer(known, cells), _finer(grid, cells))
    return found


def _finer(grid: np.ndarray, cells: int) -> np.ndarray:
    """The same over the run in more cells."""
    return grid[np.arange(cells) * len(grid) // cells]


def median_interval(t: np.ndarray) -> float:
    """Of times in order; infinite if there are too few to tell."""
    return float(np.median(np.diff(t))) if len(t) > 1 else float("inf")


def preference(source: str, t: np.ndarray) -> tuple[int, float]:
    """Sources that were read at times `t`, in order of trust, then of how often they read: the least one counts."""
    return PREFERRED.index(source) if source in PREFERRED else len(PREFERRED), median_interval(t)


def _at(series: Metrics, metric: str, t: np.ndarray) -> np.ndarray:
    """Values of a metric that were read at just these times, else NaN."""
    read = series.get(metric, NOTHING)
    if not len(read.t):
        return np.full(len(t), np.nan)
    index = np.minimum(np.searchsorted(read.t, t), len(read.t) - 1)
    return np.where(read.t[index] == t, read.value[index], np.nan)


def _saturation(key: tuple[str, str, str, str], tier: str, series: Metrics, start: float, end: float) -> Saturation:
    node, resource, item, source = key
    used = series.get("utilization_pct", NOTHING)
    t, value = used.t, used.value
    # How often it is read, one reading tells only if it says of what time it is; else at least one is missing.
    alone_s = 2 * float(t[0] - used.middle[0]) if len(t) == 1 else 0.0
    interval = median_interval(t) if len(t) > 1 else alone_s if alone_s > 0 else end - start
    throttled = _at(series, "throttled_pct", t)
    by_throttling = bool(np.isfinite(throttled).any()) and np.nanmean(throttled) >= THROTTLED_SLACK_PCT
    full = excess_moved(value)
    judged = np.where(np.isfinite(throttled), throttled + THROTTLED_SLACK_PCT, full) if by_throttling else full
    if resource == "pool":
        judged = np.where(_at(series, "waiting", t) > 0, 100.0, judged)
    expected = round((end - start) / interval) + (len(t) == 1 and not alone_s > 0)
    shares, indicator = {}, np.array([])
    for threshold in THRESHOLDS:
        marked = np.where(np.isnan(judged), np.nan, (judged >= threshold).astype(float))
        grid = _on_grid(used.middle, marked, start, end, interval)
        found = saturation_share(grid, interval)
        shares[threshold] = replace(found, missing=max(found.missing, expected - found.n))
        if threshold == THRESHOLD:
            indicator = grid
    known = value[~np.isnan(value)]
    queues = series.get("queue", NOTHING).value
    return Saturation(
        node=node,
        tier=tier,
        resource=resource,
        item=item,
        source=source,
        shares=shares,
        utilization_mean_pct=float(known.mean()) if len(known) else float("nan"),
        utilization_p95_pct=float(np.percentile(known, 95)) if len(known) else float("nan"),
        interval_s=interval,
        by_throttling=by_throttling,
        indicator=indicator,
        values=_on_grid(used.middle, value, start, end, interval),
        queue=float(np.nanmean(queues)) if np.isfinite(queues).any() else float("nan"),
        wait_ms=_per_operation(series),
        places=_places(_at(series, "active", t), value),
    )


def _per_operation(series: Metrics) -> float:
    """Mean time of a request to a disk, ms; NaN without one. A reading is the mean of the requests in its interval, so
    it counts as often as there were some, where that was measured. (0: there was none.)"""
    read = series.get("wait_ms", NOTHING)
    waits, rates = read.value, _at(series, "operations_per_s", read.t)
    if (known := (waits > 0) & (rates > 0)).any():
        return float(np.average(waits[known], weights=rates[known]))
    return float(waits[waits > 0].mean()) if (waits > 0).any() else float("nan")


def _places(taken: np.ndarray, used_pct: np.ndarray) -> float:
    """Saturation of a pool, by the readings (n,) of places taken and of their share of all places."""
    known = (taken > 0) & (used_pct > 0)
    return float(np.median(100 * taken[known] / used_pct[known])) if known.any() else float("nan")


def mean_use(*runs: Saturation) -> Interval:
    """Mean utilization of a resource, %, in one run with the interval of its batch means, or in several. Of these the
    runs are the sample (`of_trials`): batches of all runs together would leave out what differs between runs. Of two,
    that nearly always gives 0 to 100, so they have the ends of both, unless these lie apart, as shares have
    (statistics/share.py). That holds the mean in 0.83 of the cases or more, whatever runs differ by (the ends of both
    alone in 0.5). NaN ends if there are too few samples; of several, runs without any are left out."""
    each = [_of_batches(s) for s in runs]
    each = [e for e in each if np.isfinite(e.value)] or each[:1]
    if len(each) == 1:
        return each[0]
    used, errors = np.array([e.value for e in each]), np.array([e.standard_error for e in each])
    if len(each) == 2 and not np.isfinite(errors).all():
        return estimated(float(used.mean()), float("nan"), 0, 2)
    if len(each) == 2 and max(e.low for e in each) <= min(e.high for e in each):
        ends = min(e.low for e in each), max(e.high for e in each)
        return Interval(float(used.mean()), *ends, float(np.hypot(*errors)) / 2, 2, sum(e.freedom for e in each))
    return of_trials(used, errors if np.isfinite(errors).all() else None, sum(e.freedom for e in each))


def _of_batches(s: Saturation) -> Interval:
    """Batches of like numbers of samples, so that a gap of the collector leaves none of them empty."""
    known = s.values[~np.isnan(s.values)]
    if len(known) < BATCHES:
        return estimated(s.utilization_mean_pct, float("nan"), 0, s.share.n)
    return of_batches(np.array([part.mean() for part in np.array_split(known, BATCHES)]), s.share.n)


def excess_moved(value: np.ndarray) -> np.ndarray:
    """Utilizations (n,) in %. The part of a sample beyond 100 is added to the sample before it, then to the one after
    it, as far as they have room.

    Nothing is used more than 100 %: a sample of 110 beside one of 90 is work that was counted late. A CPU counted in
    ticks of 10 ms reads 90, 110, 100, ... at 10 Hz when it is pegged, half of it below 95 %. The mean stays."""
    moved = value.copy()
    for i in np.flatnonzero(value > 100.0):
        for j in (i - 1, i + 1):
            if 0 <= j < len(moved) and moved[i] > 100.0 and moved[j] < 100.0:
                shift = min(moved[i] - 100.0, 100.0 - moved[j])
                moved[i] -= shift
                moved[j] += shift
    return moved


def _on_grid(t: np.ndarray, values: np.ndarray, start: float, end: float, interval: float) -> np.ndarray:
    """Values on a regular grid; a cell without a sample is NaN, of two samples in a cell the later counts."""
    cells = max(1, round((end - start) / interval))
    grid = np.full(cells, np.nan)
    index = np.clip(((t - start) / interval).astype(int), 0, cells - 1)
    # Jitter puts two samples into one cell and none into the next: fill that one from the sample nearest to it.
    grid[index] = values
    empty = np.flatnonzero(np.isnan(grid))
    if len(empty) and len(t):
        centres = start + (empty + 0.5) * interval
        nearest = np.clip(np.searchsorted(t, centres), 1, max(len(t) - 1, 1))
        nearest = np.where(
            np.abs(t[nearest - 1] - centres) <= np.abs(t[nearest % len(t)] - centres), nearest - 1, nearest
        )
        nearest = np.clip(nearest, 0, len(t) - 1)
        close = np.abs(t[nearest] - centres) <= interval
        grid[empty[close]] = values[nearest[close]]
    return grid


def aligned(a: Saturation, b: Saturation, start: float, end: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Indicators of two resources on one clock: the coarser grid, each cell the majority of its samples."""
    interval = max(a.interval_s, b.interval_s, GRID_S)
    cells = max(1, round((end - start) / interval))
    return _coarse(a, cells), _coarse(b, cells), interval


def _coarse(s: Saturation, cells: int) -> np.ndarray:
    if len(s.indicator) == cells:
        return s.indicator
    centres = (np.arange(len(s.indicator)) + 0.5) * cells / max(len(s.indicator), 1)
    cell = np.clip(centres.astype(int), 0, cells - 1)
    known = ~np.isnan(s.indicator)
    total = np.bincount(cell[known], weights=s.indicator[known], minlength=cells)
    count = np.bincount(cell[known], minlength=cells)
    with np.errstate(invalid="ignore"):
        return np.where(count > 0, (total / np.maximum(count, 1) >= 0.5).astype(float), np.nan)


def means(values: np.ndarray, cells: int) -> np.ndarray:
    """Means of equal parts, NaN where a part has no value."""
    cell = (np.arange(len(values)) * cells) // len(values)
    known = ~np.isnan(values)
    total = np.bincount(cell[known], weights=values[known], minlength=cells)
    count = np.bincount(cell[known], minlength=cells)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def saturation_table(found: list[Saturation]) -> pd.DataFrame:
    """One row per resource and threshold, columns of the store's table `saturation` without its keys."""
    rows = []
    for s in found:
        for threshold, share in s.shares.items():
            rows.append(
                {
                    "node": s.node,
                    "tier": s.tier,
                    "resource": s.resource,
                    "item": s.item,
                    "source": s.source,
                    "threshold_pct": threshold,
                    "saturation": share.value,
                    "saturation_low": share.low,
                    "saturation_high": share.high,
                    "n": share.n,
                    "n_missing": share.missing,
                    "n_effective": share.n_effective,
                    "utilization_mean_pct": s.utilization_mean_pct,
                    "utilization_p95_pct": s.utilization_p95_pct,
                    "interval_s": s.interval_s,
                }
            )
    return pd.DataFrame(rows)
