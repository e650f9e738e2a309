"""Rules of a mapping, evaluated on the series of one exporter on one node."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ntier_analysis.errors import DataError
from ntier_analysis.importing.mapping import Exporter, Rule, Term
from ntier_analysis.importing.prometheus.nodes import matches
from ntier_analysis.parsers.counters import Clock, deltas
from ntier_analysis.parsers.prometheus import Series

MISSED = 1.5
"""Scrapes are missing where two follow each other in more than so many median intervals."""


@dataclass(frozen=True)
class Scrapes:
    """The scrapes of one exporter on one node. `nominal`: metric -> median interval, s; an exporter may date some of
    them itself (cAdvisor), on a clock beside that of the scrapes. `restarts`: between which two readings each was.
    `took`: time of a scrape -> its duration, s; empty if nobody told it. `resets`: counter -> when it began anew,
    filled while rates are made."""

    nominal: dict[str, float]
    restarts: set[tuple[float, float]]
    took: pd.Series
    resets: dict[str, set[float]] = field(default_factory=lambda: defaultdict(set))

    def read_at(self, t: np.ndarray) -> np.ndarray:
        """The middle of each scrape: a better guess of when a counter was read than its beginning."""
        return t + self.took.reindex(t).fillna(0.0).to_numpy() / 2


Evaluated = tuple[str, pd.Series, np.ndarray]
"""Item, values by time, lengths of their intervals or nan."""


def evaluated(rule: Rule, series: list[Series], scrapes: Scrapes) -> Iterator[Evaluated]:
    """Of each item of the rule."""
    if rule.each is None:
        yield from _of_one(rule, series, scrapes)
        return
    parts: dict[str, list[Series]] = defaultdict(list)
    for s in series:
        parts[s.labels.get(rule.each, "")].append(s)
    by_item: dict[str, list[Evaluated]] = defaultdict(list)
    for _, part in sorted(parts.items()):
        for found in _of_one(rule, part, scrapes):
            by_item[found[0]].append(found)
    for item, some in by_item.items():
        if len(some) == 1:
            yield some[0]
            continue
        frame, unknown = _by_scrape([v for _, v, _ in some], scrapes.nominal.get(rule.value[0].metric, 0.0))
        values = (frame.max(axis=1) if rule.largest else frame.sum(axis=1)).mask(unknown)
        first = min(some, key=lambda found: found[1].index[0])[2][0]
        yield item, values, np.diff(values.index.to_numpy(float), prepend=values.index[0] - first)


def _of_one(rule: Rule, series: list[Series], scrapes: Scrapes) -> Iterator[Evaluated]:
    value = [_term(term, rule, series, scrapes) for term in rule.value]
    of, times = ([_term(term, rule, series, scrapes) for term in terms] for terms in (rule.of, rule.times))
    items = sorted({item for parts in value for item in parts})
    for item in items:
        result = _together([p[item] for p in value if item in p], largest=rule.largest)
        for parts, terms, divides in ((times, rule.times, False), (of, rule.of, True)):
            if not parts:
                continue
            other = _together([p[item] for p in parts if item in p])
            if other is None:
                result = None
                break
            other = _at(result.index, other, terms, scrapes)
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


def _at(times: pd.Index, other: pd.Series, terms: list[Term], scrapes: Scrapes) -> pd.Series:
    """A gauge holds until it is read again, unless a scrape is missing; a rate is of its own interval only."""
    if any(term.rate for term in terms):
        return other.reindex(times)
    nominal = max(scrapes.nominal.get(term.metric, 0.0) for term in terms)
    return other.reindex(times, method="ffill", tolerance=MISSED * nominal)


def _together(parts: list[pd.Series], *, largest: bool = False) -> pd.Series | None:
    """Sum (or largest) of terms at the times that all of them have."""
    if not parts:
        return None
    frame = pd.concat(parts, axis=1, join="inner").sort_index()
    return frame.max(axis=1, skipna=False) if largest else frame.sum(axis=1, skipna=False)


def _term(term: Term, rule: Rule, series: list[Series], scrapes: Scrapes) -> dict[str, pd.Series]:
    """Item -> sum over its series by time. A series that is not there at a time adds nothing; a gap or a counter that
    began anew makes the sum unknown. Series that have a clock each (containers of a pod) are summed by scrape."""
    by_item: dict[str, list[pd.Series]] = defaultdict(list)
    for s in series:
        if not _is_of(term, s):
            continue
        if rule.item is not None and not s.labels.get(rule.item):
            continue
        if term.positive:
            s = Series(s.name, s.labels, s.t[s.v > 0], s.v[s.v > 0])
            if not len(s.t):
                continue
        v = np.ones(len(s.v)) if term.count else s.v
        if term.rate:
            v = _rate(s, scrapes)
        by_item[s.labels[rule.item] if rule.item else ""].append(pd.Series(v, index=s.t))
    rates = {}
    for item, unaligned in by_item.items():
        frame, unknown = _by_scrape(unaligned, scrapes.nominal.get(term.metric, 0.0))
        rates[item] = frame.sum(axis=1).mask(unknown)
    return rates


def _by_scrape(unaligned: list[pd.Series], nominal: float) -> tuple[pd.DataFrame, pd.Series]:
    """A column for each part and a row for each scrape; and which scrapes have a part of unknown value."""
    parts = _on_one_clock(unaligned, nominal)
    frame = pd.concat(parts, axis=1).sort_index()
    there = pd.concat([p.notna() | True for p in parts], axis=1).reindex(frame.index).fillna(False).astype(bool)
    return frame, (frame.isna() & there).any(axis=1)


def _is_of(term: Term, s: Series) -> bool:
    if s.name != term.metric or not matches(s.labels, term.where):
        return False
    return not any(re.fullmatch(p, s.labels.get(name, "")) for name, p in term.without.items())


def refuse_idle_alone(place: str, rules: Exporter, series: list[Series]) -> None:
    """What a counter of seconds counts besides idle time would be 0 if only idle time was stored. Raises DataError."""
    for rule in (rule for rule in rules.series if rule.rest):
        value, of = ([t for t in terms if t.rate and t.rate == rules.seconds] for terms in (rule.value, rule.of))
        whole = [s for s in series if any(_is_of(t, s) for t in of)]
        if value and whole and all(any(_is_of(t, s) for t in value) for s in whole):
            labels = sorted({name for t in value for name in (*t.where, *t.without)})
            had = ((name, sorted({s.labels.get(name, "") for s in whole})) for name in labels)
            told = ", ".join(f"{name} {' and '.join(values)}" for name, values in had)
            raise DataError(
                f"{place}: {rules.seconds} has only {told}; {rule.resource} {rule.metric} needs it of all modes"
            )


def _on_one_clock(parts: list[pd.Series], nominal: float) -> list[pd.Series]:
    """Each reading at the time of the nearest one of the series that has most, if that is less than half of an interval
    away. No two readings of a series meet there."""
    clock = max(parts, key=len).index
    if all(part.index.isin(clock).all() for part in parts):
        return parts
    aligned = []
    for part in parts:
        nearest = clock.get_indexer(part.index, method="nearest", tolerance=nominal / 2)  # -1: none
        moved = part.set_axis(np.where(nearest < 0, part.index, clock[nearest]))
        aligned.append(moved[~moved.index.duplicated()])
    return aligned


def _rate(s: Series, scrapes: Scrapes) -> np.ndarray:
    """Per second, one value per reading, the first NaN."""
    between, nominal = np.diff(s.t), scrapes.nominal.get(s.name, np.inf)
    step, _ = deltas(s.v, Clock(s.t, between, between > MISSED * nominal, nominal))
    anew = np.zeros(len(between), dtype=bool)
    for before, after in scrapes.restarts:
        anew |= (s.t[:-1] < after) & (s.t[1:] > before)
    resets_at = s.t[1:][(np.diff(s.v) < 0) & ~anew]
    if len(resets_at):
        scrapes.resets[s.name] |= set(resets_at.tolist())
    step[anew] = np.nan
    dt = np.diff(scrapes.read_at(s.t))
    return np.concatenate([[np.nan], step / np.where(dt > 0, dt, np.nan)])
