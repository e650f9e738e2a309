"""Series -> tidy samples of nodes, and what their scrapes hide."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ntier_analysis.errors import DataError
from ntier_analysis.importing.mapping import Exporter, Rule
from ntier_analysis.importing.prometheus.asking import TOOK
from ntier_analysis.importing.prometheus.grid import refuse_uneven, without_repeats
from ntier_analysis.importing.prometheus.rules import MISSED, Scrapes, evaluated, refuse_idle_alone
from ntier_analysis.importing.prometheus.targets import of_target, refuse_twins, same_time, target, told
from ntier_analysis.parsers.counters import long_form
from ntier_analysis.parsers.prometheus import Series
from ntier_analysis.validity.imported import SCRAPE
from ntier_analysis.wording import clock, counted

AROUND_S = 60.0
"""Samples of so long before and after a trial are kept with it."""
RESTART_S = 1.5
"""By how much the time of a start moves if there was another one (it is computed, and may differ a little)."""
NOT_UTILIZATION = ("cpu", "disk")
CORES = ("cores", "used_cores")
"""What an exporter of machines tells of the whole host, though its node is a container there."""
LATE = 0.05
"""Share of the scrape interval from which on the duration of the scrapes (95th percentile) is told."""
KEPT_AS = ("cpu", "", SCRAPE, "s")
"""Resource, item, metric and unit of the samples that tell this duration."""


@dataclass(frozen=True)
class Scraped:
    """`samples`: tidy, with node, tier and source. `cores`: node -> CPUs. `tiers`: node -> tier. `interval_s`: median
    over nodes and exporters. `notices`: what is missing, began anew, or was left out. `unknown`: what the scrapes
    hide."""

    samples: pd.DataFrame
    cores: dict[str, float]
    tiers: dict[str, str]
    notices: list[str] = field(default_factory=list)
    unknown: tuple[str, ...] = ()


class Reader:
    """Rules of the mapping on the series of one node and exporter after the other."""

    def __init__(
        self, source: str, containers: bool, offset_s: float, grid: bool, span: tuple[float, float],
        durations: list[Series], notices: list[str],
    ) -> None:  # fmt: skip
        self._source, self._containers, self._offset, self._grid, self._span = source, containers, offset_s, grid, span
        self._low, self._high = span[0] - AROUND_S + offset_s, span[1] + AROUND_S + offset_s
        self._notices, self._parts, self._cores = notices, [], {}
        self._took = _by_target(durations)
        self._slow: dict[str, float] = {}
        self._undated: set[str] = set()
        self._intervals: list[float] = []
        self._blind: set[str] = set()
        self._untimed: set[str] = set()

    def result(self, tiers: dict[str, str]) -> Scraped:
        samples = pd.concat(self._parts, ignore_index=True) if self._parts else pd.DataFrame()
        if samples.empty:
            raise DataError(f"{self._source}: no sample of any node in the time of the load")
        hidden = []
        if self._intervals:
            low, high = min(self._intervals), max(self._intervals)
            every = f"{low:.3g} s" if high < 1.2 * low else f"{low:.3g} to {high:.3g} s"
            hidden.append(f"peaks shorter than the scrape interval of {every}, which are averaged away")
        for most in sorted(set(self._slow.values())):
            names = ", ".join(sorted(node for node, s in self._slow.items() if s == most))
            hidden.append(
                f"when in its scrape each counter of {names} was read (95 % of the scrapes took up to {most:g} s)"
            )
        if self._undated:
            told = ", ".join(sorted(self._undated))
            hidden.append(f"how long the scrapes of {told} took ({TOOK}), and so how exactly they are dated")
        if self._grid and self._blind:
            names = ", ".join(sorted(self._blind))
            hidden.append(f"missing scrapes of {names}: query_range repeats the last value for up to five minutes")
        if self._grid and self._untimed:
            names = ", ".join(sorted(self._untimed))
            hidden.append(
                f"whether the scrapes of {names} are as far apart as their times: no counter of seconds tells it, and "
                "rates may be wrong by half if the step of query_range does not divide the scrape interval"
            )
        return Scraped(samples, self._cores, tiers, self._notices, tuple(hidden))

    def read(self, exporter: str, rules: Exporter, node: tuple[str, str], series: list[Series]) -> None:
        name = node[0]
        whole = self._merged(name, rules, series)
        refuse_idle_alone(f"{self._source}: {name}", rules, whole)
        whole = self._without_repeats(exporter, rules, name, whole)
        clocks = _clocks(whole)
        if not clocks:
            return
        nominal = {metric: every for metric, (_, every) in clocks.items()}
        most = max(clocks, key=lambda metric: len(clocks[metric][0]))
        self._intervals += nominal.values()
        self._say_missing(exporter, name, *clocks[most])
        took = self._duration(name, series, *clocks[most])
        scrapes = Scrapes(nominal, self._restarts(exporter, rules, name, whole), took)
        tables, cores = [], None
        of_host = CORES if self._containers and rules.machine else ()
        for rule in (rule for rule in rules.series if rule.metric not in of_host):
            for item, values, at in evaluated(rule, whole, scrapes):
                if rule.metric == "cores":
                    cores = values
                    continue
                tables.append(self._column(rule, rules, item, values, at))
        if len(took):
            t = took.index.to_numpy(float)
            tables.append((KEPT_AS, scrapes.read_at(t), took.to_numpy(), np.full(len(t), np.nan)))
        for metric, moments in sorted(scrapes.resets.items()):
            self._notices.append(
                f"{self._source}: {name}: counter {metric} began anew or ran backwards at "
                f"{_moments(sorted(moments))}: those intervals have no value"
            )
        if cores is not None and cores.notna().any():
            self._cores[name] = float(cores.median())
        frame = long_form([f for f in tables if np.isfinite(f[2]).any()])  # an interface of unknown speed has none
        if len(frame):
            frame["t_s"] -= self._offset
            self._parts.append(frame.assign(node=name, tier=node[1], source=exporter))

    def _duration(self, node: str, series: list[Series], times: np.ndarray, nominal: float) -> pd.Series:
        """Of each scrape that gave samples, s; none lasts longer than the interval, by Prometheus' rules."""
        targets = {target(s) for s in series}
        parts = [part for of, part in self._took.items() if of in targets]
        took = pd.concat(parts).groupby(level=0).max() if parts else pd.Series(dtype=float)
        took = took[took.index.isin(times)].dropna().clip(0.0, nominal)
        if took.empty:
            self._undated.add(node)
        elif (most := took.quantile(0.95)) > LATE * nominal:
            self._slow[node] = max(_rounded_up(most), self._slow.get(node, 0.0))
        return took

    def _column(self, rule: Rule, rules: Exporter, item: str, values: pd.Series, at: pd.Series) -> tuple:
        metric = rule.metric
        if self._containers and rules.machine and metric == "utilization_pct" and rule.resource in NOT_UTILIZATION:
            metric = "busy_pct"
        return (rule.resource, item, metric, _unit(metric)), values.index.to_numpy(float), values.to_numpy(float), at

    def _merged(self, node: str, rules: Exporter, series: list[Series]) -> list[Series]:
        """A node's series, also if its instance was renamed; one moment must not have two values."""
        place, where = f"{self._source}: node {node}", of_target(rules, series)
        parts: dict[tuple, list[Series]] = defaultdict(list)
        for s in series:
            kept = {k: v for k, v in s.labels.items() if k not in where}
            inside = (s.t >= self._low) & (s.t <= self._high) & ~np.isnan(s.v)
            if inside.any():
                parts[s.name, tuple(sorted(kept.items()))].append(Series(s.name, s.labels, s.t[inside], s.v[inside]))
        refuse_twins(place, [s for some in parts.values() for s in some], where)
        whole, renamed = [], {}
        for (name, _), some in parts.items():
            some.sort(key=lambda s: s.t[0])
            for before, after in itertools.pairwise(some):
                if after.t[0] <= before.t[-1]:
                    raise same_time(place, name, before, after, where)
                renamed[told(before, where), told(after, where)] = after.t[0]
            t, v = np.concatenate([s.t for s in some]), np.concatenate([s.v for s in some])
            whole.append(Series(name, some[-1].labels, t, v))  # whole, since a rule may be for one instance only
        for (before, after), t in renamed.items():
            self._notices.append(f"{self._source}: {node}: {before} became {after} at {clock(t)}")
        return whole

    def _without_repeats(self, exporter: str, rules: Exporter, node: str, series: list[Series]) -> list[Series]:
        if not self._grid:
            return series
        kept = without_repeats(rules, series)
        if kept is None:
            self._blind.add(exporter)
        elif refuse_uneven(f"{self._source}: {node}", rules, kept):
            return kept
        self._untimed.add(exporter)
        return series if kept is None else kept

    def _say_missing(self, exporter: str, node: str, times: np.ndarray, nominal: float) -> None:
        gaps = np.flatnonzero(np.diff(times) > MISSED * nominal)
        lost = int(sum(round((times[i + 1] - times[i]) / nominal) - 1 for i in gaps))
        if lost:
            when = ", ".join(f"{clock(times[i])} to {clock(times[i + 1])}" for i in gaps[:3])
            self._notices.append(
                f"{self._source}: {node}: {counted(lost, 'scrape')} of {exporter} missing ({when}"
                f"{', ...' * (len(gaps) > 3)}; every {nominal:.3g} s otherwise): no values there"
            )
        low, high = self._span[0] + self._offset, self._span[1] + self._offset
        if times[0] - low > 3 * nominal or high - times[-1] > 3 * nominal:
            self._notices.append(
                f"{self._source}: {node}: {exporter} has samples only from {clock(times[0])} to {clock(times[-1])}; "
                "was its instance renamed? then name both: --node NODE=OLD --node NODE=NEW"
            )

    def _restarts(self, exporter: str, rules: Exporter, node: str, series: list[Series]) -> set[tuple[float, float]]:
        """(last reading before, first after) of each."""
        found: set[tuple[float, float]] = set()
        for s in (s for s in series if s.name in (rules.started, rules.uptime)):
            step = np.diff(s.v)
            other = np.abs(step) > RESTART_S if s.name == rules.started else step < 0
            found |= set(zip(s.t[:-1][other].tolist(), s.t[1:][other].tolist(), strict=True))
        if found:
            seen = _moments(sorted({after for _, after in found}))
            self._notices.append(
                f"{self._source}: {node} ({exporter}) was restarted, seen at {seen}: its counters began anew, no "
                "values there"
            )
        return found


def _clocks(series: list[Series]) -> dict[str, tuple[np.ndarray, float]]:
    """Metric -> (when it was read, median interval in s), of those that were read twice. Its series may have a clock
    each: readings that are less than half an interval apart are of one scrape."""
    parts: dict[str, list[np.ndarray]] = defaultdict(list)
    for s in series:
        parts[s.name].append(s.t)
    clocks = {}
    for name, some in parts.items():
        times = np.unique(np.concatenate(some))
        own = [float(np.median(np.diff(t))) for t in some if len(t) > 1]
        if len(times) < 2:
            continue
        nominal = float(np.median(own or np.diff(times)))
        if np.diff(times).min() < nominal / 2:
            times = _apart(times, nominal / 2)
        clocks[name] = times, nominal
    return {name: clock for name, clock in clocks.items() if len(clock[0]) > 1}


def _apart(times: np.ndarray, least: float) -> np.ndarray:
    """Those that are at least so far from the one kept before."""
    kept = [times[0]]
    for t in times[1:]:
        if t - kept[-1] >= least:
            kept.append(t)
    return np.array(kept)


def _by_target(durations: list[Series]) -> dict[tuple[str, str], pd.Series]:
    parts: dict[tuple[str, str], list[pd.Series]] = defaultdict(list)
    for s in durations:
        parts[target(s)].append(pd.Series(s.v, index=s.t))
    return {of: pd.concat(some) for of, some in parts.items()}


def _rounded_up(seconds: float) -> float:
    """To one digit: parts of a test that are imported one by one then tell the same."""
    unit = 10.0 ** np.floor(np.log10(seconds))
    return float(np.ceil(seconds / unit - 1e-9) * unit)


def _unit(metric: str) -> str:
    match = re.search(r"(?:^|_)(bytes_per_s|per_s|pct|bytes|ms|s|cores|mhz)$", metric)
    return match[1] if match else "count"


def _moments(times: list[float]) -> str:
    return ", ".join(clock(t) for t in times[:3]) + ", ..." * (len(times) > 3)
