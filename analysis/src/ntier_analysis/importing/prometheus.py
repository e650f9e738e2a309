"""A Prometheus, or a snapshot of it -> tidy samples of nodes, and what its scrapes hide.

Asked are the samples as they were scraped (`/api/v1/query` of a range), page by page. `query_range` would show a
value again at each of its steps until the next scrape, for up to five minutes."""

from __future__ import annotations

import itertools
import re
import urllib.error
import urllib.parse
import urllib.request
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import orjson
import pandas as pd

from ntier_analysis.contracts.files import JSON_BYTES, size
from ntier_analysis.errors import DataError
from ntier_analysis.importing.mapping import Exporter, Mapping, NodeName, Rule, Term
from ntier_analysis.importing.sysstat_files import TIERS, NodeFile
from ntier_analysis.parsers.counters import Clock, deltas, long_form
from ntier_analysis.parsers.prometheus import Series, joined, of_answer, snapshot
from ntier_analysis.store.schema import LONGEST_S
from ntier_analysis.validity.imported import SCRAPE
from ntier_analysis.wording import counted

AROUND_S = 60.0
"""Samples of so long before and after a trial are kept with it."""
PAGE_S = 600
"""What is asked for at once."""
WAIT_S = 30
MISSED = 1.5
"""Scrapes are missing where two follow each other in more than so many median intervals."""
RESTART_S = 1.5
"""By how much the time of a start moves if there was another one (it is computed, and may differ a little)."""
_PORT = re.compile(r":\d+$")
NOT_UTILIZATION = ("cpu", "disk")
TOOK = "scrape_duration_seconds"
"""Prometheus' own metric of each target, with its labels: how long a scrape took. A scrape is dated at its beginning;
the counters in it were read at some time until its end."""
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


def node_name(text: str) -> NodeName:
    """`NODE=INSTANCE` or `NODE=INSTANCE:TIER`, as of `--sa`. Raises DataError."""
    named = NodeFile.parse(text, kind="instance")
    return NodeName(node=named.node, match=re.escape(str(named.path)), tier=named.tier)


def scraped(
    source: str, mapping: Mapping, start_s: float, end_s: float, *, containers: bool, offset_s: float
) -> Scraped:
    """`source`: URL or file; of the loads' time [start_s, end_s] on the client's clock, and AROUND_S more at both ends.
    Prometheus' clock is ahead by `offset_s`. `containers`: what shows a machine is that of their host.

    Raises DataError naming source and place."""
    names = {name for exporter in mapping.exporters.values() for name in exporter.metrics} | {TOOK}
    grid = False
    if is_url(source):
        read_series = _asked(source, mapping, start_s - AROUND_S + offset_s, end_s + AROUND_S + offset_s)
    else:
        read_series, grid = snapshot(Path(source), names.__contains__)
    read_series = [s for s in read_series if _matches(s.labels, mapping.match)]
    durations = [s for s in read_series if s.name == TOOK] if not grid else []
    read_series = [s for s in read_series if s.name != TOOK]
    if not read_series:
        raise DataError(f"{source}: none of the metrics that the mapping names, or no series with its labels")
    notices: list[str] = []
    nodes = _by_node(source, read_series, mapping, notices)
    reader = _Reader(source, containers, offset_s, grid, (start_s, end_s), durations, notices)
    for (exporter, node), series in sorted(nodes.items()):
        reader.read(exporter, mapping.exporters[exporter], node, series)
    return reader.result({node: tier for _, (node, tier) in nodes})


def is_url(source: str) -> bool:
    return "://" in source


# ---- asking --------------------------------------------------------------------------------------------------------


def _asked(source: str, mapping: Mapping, start_s: float, end_s: float) -> list[Series]:
    parts = urllib.parse.urlsplit(source)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise DataError(f"--prometheus {source}: expected http://HOST:PORT, https://..., or a file")
    if end_s - start_s > LONGEST_S:
        raise DataError(f"--prometheus {source}: the loads span {(end_s - start_s) / 86400:.0f} days, allowed are 11")
    url = source.rstrip("/") + "/api/v1/query?"
    wanted = [(name, e.where) for e in mapping.exporters.values() for name in sorted(e.metrics)] + [(TOOK, {})]
    series: list[Series] = []
    for name, where in wanted:
        labels = ",".join(f"{k}=~{orjson.dumps(v).decode()}" for k, v in (mapping.match | where).items())
        for begin in np.arange(start_s, end_s, PAGE_S):
            until = min(begin + PAGE_S, end_s)
            query = {"query": f"{name}{{{labels}}}[{int(np.ceil(until - begin))}s]", "time": f"{until:.3f}"}
            answer = _get(url + urllib.parse.urlencode(query), source)
            series += of_answer(answer, f"{source}: {name}", name.__eq__)
    return joined(series, source)  # a sample at the border of two pages comes twice


def _get(url: str, source: str) -> object:
    opener = urllib.request.build_opener()
    try:
        with opener.open(url, timeout=WAIT_S) as answer:
            content = answer.read(JSON_BYTES + 1)
    except urllib.error.HTTPError as error:
        content = error.read(2000)
        if error.code not in (400, 422, 503):
            raise DataError(f"--prometheus {source}: HTTP {error.code} {error.reason}") from None
    except (OSError, ValueError) as error:
        raise DataError(f"--prometheus {source}: cannot be reached ({getattr(error, 'reason', error)})") from None
    if len(content) > JSON_BYTES:
        raise DataError(
            f"--prometheus {source}: more than {size(JSON_BYTES)} for {PAGE_S} s of one metric; narrow `match`"
        )
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        raise DataError(f"--prometheus {source}: the answer is not JSON; is this a Prometheus server?") from None


# ---- nodes ---------------------------------------------------------------------------------------------------------


def _matches(labels: dict[str, str], wanted: dict[str, str]) -> bool:
    return all(re.fullmatch(pattern, labels.get(name, "")) for name, pattern in wanted.items())


def _by_node(
    source: str, all_series: list[Series], mapping: Mapping, notices: list[str]
) -> dict[tuple[str, tuple[str, str]], list[Series]]:
    """(exporter, (node, tier)) -> its series. Instances without a tier are left out and named."""
    by_metric: dict[str, list[Series]] = defaultdict(list)
    for series in all_series:
        by_metric[series.name].append(series)
    nodes: dict[tuple[str, tuple[str, str]], list[Series]] = defaultdict(list)
    left_out: dict[str, None] = {}
    for name, exporter in mapping.exporters.items():
        for series in (s for metric in sorted(exporter.metrics) for s in by_metric[metric]):
            value = series.labels.get(exporter.node, "")
            if not value or not _matches(series.labels, exporter.where):
                continue
            place = _node_of(value, mapping.nodes)
            if place is None:
                left_out[value] = None
            else:
                nodes[name, place].append(series)
    shown = ", ".join(list(left_out)[:10]) + ", ..." * (len(left_out) > 10)
    if not nodes:
        raise DataError(f"{source}: which node of which tier is {shown}? give --node NODE=INSTANCE:TIER, or a mapping")
    if left_out:
        notices.append(f"{source}: left out, since no node is named for them: {shown}")
    tiers: dict[str, str] = {}
    for _, (node, tier) in nodes:
        if tiers.setdefault(node, tier) != tier:
            raise DataError(f"{source}: node {node} has two tiers: {tiers[node]} and {tier}")
    return nodes


def _node_of(value: str, named: list[NodeName]) -> tuple[str, str] | None:
    plain = _PORT.sub("", value)
    for name in named:
        if re.fullmatch(name.match, value) or re.fullmatch(name.match, plain):
            tier = name.tier or _tier_of(name.node)
            if tier is None:
                raise DataError(f"node {name.node} of the mapping: its tier is missing")
            return name.node, tier
    tier = None if named else _tier_of(plain)
    return None if tier is None else (plain, tier)


def _tier_of(node: str) -> str | None:
    tier = re.sub(r"[-_.]?\d*$", "", node)
    return tier if tier in TIERS else None


# ---- samples -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scrapes:
    """The scrapes of one exporter on one node. `took`: time of a scrape -> its duration, s; empty if nobody told it.
    `resets`: counter -> when it began anew, filled while rates are made."""

    nominal: float
    restarts: set[float]
    took: pd.Series
    resets: dict[str, set[float]] = field(default_factory=lambda: defaultdict(set))

    def read_at(self, t: np.ndarray) -> np.ndarray:
        """The middle of each scrape: a better guess of when a counter was read than its beginning."""
        return t + self.took.reindex(t).fillna(0.0).to_numpy() / 2


class _Reader:
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
        return Scraped(samples, self._cores, tiers, self._notices, tuple(hidden))

    def read(self, exporter: str, rules: Exporter, node: tuple[str, str], series: list[Series]) -> None:
        name = node[0]
        whole = self._merged(name, rules, series)
        whole = self._without_repeats(exporter, rules, whole)
        times = np.unique(np.concatenate([s.t for s in whole])) if whole else np.array([])
        if len(times) < 2:
            return
        nominal = float(np.median(np.diff(times)))
        self._intervals.append(nominal)
        self._say_missing(exporter, name, times, nominal)
        took = self._duration(name, series, times, nominal)
        scrapes = _Scrapes(nominal, self._restarts(exporter, rules, name, whole), took)
        tables, cores = [], None
        for rule in rules.series:
            for item, values, at in _evaluated(rule, whole, scrapes):
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
        targets = {_target(s) for s in series}
        parts = [part for target, part in self._took.items() if target in targets]
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
        of_target = dict.fromkeys((rules.node, "instance", "job"))
        parts: dict[tuple, list[Series]] = defaultdict(list)
        for s in series:
            kept = {k: v for k, v in s.labels.items() if k not in of_target}
            inside = (s.t >= self._low) & (s.t <= self._high) & ~np.isnan(s.v)
            if inside.any():
                parts[s.name, tuple(sorted(kept.items()))].append(Series(s.name, s.labels, s.t[inside], s.v[inside]))
        whole, renamed = [], {}
        for (name, _), some in parts.items():
            some.sort(key=lambda s: s.t[0])
            for before, after in itertools.pairwise(some):
                told = [", ".join(f"{k}={s.labels[k]}" for k in of_target if k in s.labels) for s in (before, after)]
                if after.t[0] <= before.t[-1]:
                    raise DataError(
                        f"{self._source}: node {node}: {name} of {told[0]} and of {told[1]} are of the same time; "
                        "choose one by `match` of a mapping"
                    )
                renamed[tuple(told)] = after.t[0]
            t, v = np.concatenate([s.t for s in some]), np.concatenate([s.v for s in some])
            whole.append(Series(name, some[-1].labels, t, v))  # whole, since a rule may be for one instance only
        for (before, after), t in renamed.items():
            self._notices.append(f"{self._source}: {node}: {before} became {after} at {_clock(t)}")
        return whole

    def _without_repeats(self, exporter: str, rules: Exporter, series: list[Series]) -> list[Series]:
        """Times of a grid at which nothing was scraped anew: what always advances stands still there."""
        if not self._grid:
            return series
        alive = [s for s in series if s.name == rules.advances]
        if not alive:
            self._blind.add(exporter)
            return series
        total = pd.DataFrame({n: pd.Series(s.v, index=s.t) for n, s in enumerate(alive)}).sort_index()
        fresh = total.ne(total.shift()).any(axis=1)
        kept = fresh.index[fresh]
        some = [(s, np.isin(s.t, kept)) for s in series]
        return [Series(s.name, s.labels, s.t[at], s.v[at]) for s, at in some if at.any()]

    def _say_missing(self, exporter: str, node: str, times: np.ndarray, nominal: float) -> None:
        gaps = np.flatnonzero(np.diff(times) > MISSED * nominal)
        lost = int(sum(round((times[i + 1] - times[i]) / nominal) - 1 for i in gaps))
        if lost:
            when = ", ".join(f"{_clock(times[i])} to {_clock(times[i + 1])}" for i in gaps[:3])
            self._notices.append(
                f"{self._source}: {node}: {counted(lost, 'scrape')} of {exporter} missing ({when}"
                f"{', ...' * (len(gaps) > 3)}; every {nominal:.3g} s otherwise): no values there"
            )
        low, high = self._span[0] + self._offset, self._span[1] + self._offset
        if times[0] - low > 3 * nominal or high - times[-1] > 3 * nominal:
            self._notices.append(
                f"{self._source}: {node}: {exporter} has samples only from {_clock(times[0])} to {_clock(times[-1])}; "
                "was its instance renamed? then name both: --node NODE=OLD --node NODE=NEW"
            )

    def _restarts(self, exporter: str, rules: Exporter, node: str, series: list[Series]) -> set[float]:
        times: set[float] = set()
        for s in series:
            step = np.diff(s.v)
            if s.name == rules.started:
                times |= set(s.t[1:][np.abs(step) > RESTART_S].tolist())
            elif s.name == rules.uptime:
                times |= set(s.t[1:][step < 0].tolist())
        if times:
            self._notices.append(
                f"{self._source}: {node} ({exporter}) was restarted, seen at {_moments(sorted(times))}: its counters "
                "began anew, no values there"
            )
        return times


def _target(series: Series) -> tuple[str, str]:
    return series.labels.get("job", ""), series.labels.get("instance", "")


def _by_target(durations: list[Series]) -> dict[tuple[str, str], pd.Series]:
    parts: dict[tuple[str, str], list[pd.Series]] = defaultdict(list)
    for s in durations:
        parts[_target(s)].append(pd.Series(s.v, index=s.t))
    return {target: pd.concat(some) for target, some in parts.items()}


def _rounded_up(seconds: float) -> float:
    """To one digit: parts of a test that are imported one by one then tell the same."""
    unit = 10.0 ** np.floor(np.log10(seconds))
    return float(np.ceil(seconds / unit - 1e-9) * unit)


def _evaluated(rule: Rule, series: list[Series], scrapes: _Scrapes):
    """(item, values by time, lengths of their intervals or nan) of each item of the rule."""
    value = [_term(term, rule, series, scrapes) for term in rule.value]
    of = [_term(term, rule, series, scrapes) for term in rule.of]
    times = [_term(term, rule, series, scrapes) for term in rule.times]
    items = sorted({item for parts in value for item in parts})
    for item in items:
        result = _together([p[item] for p in value if item in p], largest=rule.largest)
        for parts, divides in ((times, False), (of, True)):
            if not parts:
                continue
            other = _together([p[item] for p in parts if item in p])
            if other is None:
                result = None
                break
            other = other.reindex(result.index)
            other = other.where(other > 0) if divides else other  # an interface without a known speed says -1
            result = result / other if divides else result * other
        if result is None:
            continue
        result = rule.factor * ((1 - result) if rule.rest else result)
        rates = any(term.rate for term in rule.value)
        result.index = scrapes.read_at(result.index.to_numpy(float))
        before = result.index.to_series().diff().to_numpy() if rates else np.full(len(result), np.nan)
        if rates:  # the first reading of a counter has no rate
            result, before = result.iloc[1:], before[1:]
        yield item or rule.named, result.replace([np.inf, -np.inf], np.nan), before


def _together(parts: list[pd.Series], *, largest: bool = False) -> pd.Series | None:
    """Sum (or largest) of terms at the times that all of them have."""
    if not parts:
        return None
    frame = pd.concat(parts, axis=1, join="inner").sort_index()
    return frame.max(axis=1, skipna=False) if largest else frame.sum(axis=1, skipna=False)


def _term(term: Term, rule: Rule, series: list[Series], scrapes: _Scrapes) -> dict[str, pd.Series]:
    """Item -> sum over its series by time. A series that is not there at a time adds nothing; a gap or a counter that
    began anew makes the sum unknown."""
    by_item: dict[str, list[pd.Series]] = defaultdict(list)
    for s in series:
        if s.name != term.metric or not _matches(s.labels, term.where):
            continue
        if any(re.fullmatch(p, s.labels.get(name, "")) for name, p in term.without.items()):
            continue
        if rule.item is not None and not s.labels.get(rule.item):
            continue
        v = np.ones(len(s.v)) if term.count else s.v
        if term.rate:
            v = _rate(s, scrapes)
        by_item[s.labels[rule.item] if rule.item else ""].append(pd.Series(v, index=s.t))
    rates = {}
    for item, parts in by_item.items():
        frame = pd.concat(parts, axis=1).sort_index()
        there = pd.concat([p.notna() | True for p in parts], axis=1).reindex(frame.index).fillna(False).astype(bool)
        unknown = (frame.isna() & there).any(axis=1)
        rates[item] = frame.sum(axis=1).mask(unknown)
    return rates


def _rate(s: Series, scrapes: _Scrapes) -> np.ndarray:
    """Per second, one value per reading, the first NaN."""
    between = np.diff(s.t)
    at = Clock(s.t, between, between > MISSED * scrapes.nominal, scrapes.nominal)
    step, _ = deltas(s.v, at)
    anew = np.isin(s.t[1:], list(scrapes.restarts))
    resets_at = s.t[1:][(np.diff(s.v) < 0) & ~anew]
    if len(resets_at):
        scrapes.resets[s.name] |= set(resets_at.tolist())
    step[anew] = np.nan
    dt = np.diff(scrapes.read_at(s.t))
    return np.concatenate([[np.nan], step / np.where(dt > 0, dt, np.nan)])


def _unit(metric: str) -> str:
    match = re.search(r"(?:^|_)(bytes_per_s|per_s|pct|bytes|ms|s|cores|mhz)$", metric)
    return match[1] if match else "count"


def _clock(t: float) -> str:
    return f"{pd.Timestamp(t, unit='s'):%H:%M:%S}"


def _moments(times: list[float]) -> str:
    return ", ".join(_clock(t) for t in times[:3]) + ", ..." * (len(times) > 3)
