"""Samples as they lie on the disk: one row per series instead of one per sample, and each number as the count that it
was made from.

A series is one metric of one item in one trial. Its labels are written once. Its times, phases and interval lengths
are a *clock*, which all series that a collector read at the same moments share: it is written with the first of them.

A value is `offset + count / divisor * factor / scale + rest`, with a whole `count`: what a collector reads are counters
and levels, so that 6 digits tell what 17 digits of a rate hold. The form is found by trying (`forms`). It is used only
if it gives back the very same bits; else the values stand as they are (`raw`)."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ntier_analysis.errors import DataError
from ntier_analysis.store.forms import Finder, Form, decimal, restored
from ntier_analysis.store.schema import PHASES, SAMPLES

LAYOUT_KEY, LAYOUT = b"ntier_layout", b"series"
"""In a file's metadata; a file without them has a row per sample."""
VALUES_KEY = b"ntier_values"
"""Number of samples, there too."""
LABELS = ("sweep", "trial", "node", "tier", "resource", "metric", "unit", "source", "item")
NUMBERS = {
    "clock": (pa.int64(), "Number of the clock in this file."),
    "steps": (pa.bool_(), "Of a clock: whether its intervals are the distances of its times."),
    "t_divisor": (pa.float64(), "Of a clock: t_s = t_count / t_divisor."),
    "interval_divisor": (pa.float64(), "Of a clock: interval_s = interval_count / interval_divisor."),
    "interval_first": (pa.float64(), "Of a clock with `steps`: the first interval."),
    "per": (pa.int64(), "What divides: 0 divisor or divisors, 1 the interval in hundredths of seconds, 2 in seconds."),
    "offset": (pa.float64(), "Of the formula."),
    "divisor": (pa.float64(), "Of the formula, for all samples of the series."),
    "factor": (pa.float64(), "Of the formula."),
    "scale": (pa.float64(), "Of the formula."),
}
LISTS = {
    "phase": (pa.int64(), f"Of a clock: number of the phase, from 0: {', '.join(PHASES)}."),
    "t_count": (pa.int64(), "Of a clock: times, as counts."),
    "t_raw": (pa.float64(), "Of a clock: times that are no counts."),
    "interval_count": (pa.int64(), "Of a clock: interval lengths, as counts."),
    "interval_raw": (pa.float64(), "Of a clock: interval lengths that are neither counts nor distances of times."),
    "count": (pa.int64(), "Counts of the formula that spread around one value."),
    "level": (pa.int64(), "Counts of the formula that change little from one to the next; a series has one of both."),
    "divisors": (pa.int64(), "Divisors of the formula, if each sample has its own."),
    "rest": (pa.float64(), "Rests of the formula; null if all are 0."),
    "raw": (pa.float64(), "Values that are no counts; the formula is then not used."),
}


def _field(name: str, kind: pa.DataType, definition: str) -> pa.Field:
    return pa.field(name, kind, metadata={"unit": "", "definition": definition})


SERIES = pa.schema(
    [SAMPLES.field(name) for name in LABELS]
    + [_field(name, *what) for name, what in NUMBERS.items()]
    + [_field(name, pa.list_(kind), text) for name, (kind, text) in LISTS.items()],
    metadata=SAMPLES.metadata,
)
"""The table `samples` on the disk."""

_DELTA = ("t_count", "interval_count", "level")
_SPLIT = ("count", "divisors")


def options(table: pa.Table) -> dict[str, Any]:
    """Encodings of Parquet by column, for pyarrow.parquet.write_table."""
    of = {name: f"{name}.list.element" for name in LISTS}
    raw = table.column("raw").combine_chunks().flatten()
    few = pc.count_distinct(raw).as_py() < len(raw) / 2
    encoding = {of[name]: "DELTA_BINARY_PACKED" for name in _DELTA} | {of[n]: "BYTE_STREAM_SPLIT" for n in _SPLIT}
    plain = ("t_raw", "interval_raw") if few else ("t_raw", "interval_raw", "raw")
    encoding |= {of[name]: "BYTE_STREAM_SPLIT" for name in plain}
    dictionary = [*LABELS, *NUMBERS, *(path for path in of.values() if path not in encoding)]
    dictionary.remove("steps")  # one bit
    return {"column_encoding": encoding, "use_dictionary": dictionary, "write_statistics": list(LABELS)}


# ---- rows -> series ------------------------------------------------------------------------------------------------


def encoded(rows: pa.Table) -> pa.Table:
    """A table of `SAMPLES`, sorted as the store sorts it -> a table of `SERIES` that `decoded` turns into the same."""
    rows = rows.combine_chunks()
    starts = _starts(rows)
    t, interval, value = (_floats(rows[name]) for name in ("t_s", "interval_s", "value"))
    phase = _phases(rows["phase"])
    sources, metrics = (rows[name].take(starts[:-1]).to_pylist() for name in ("source", "metric"))
    finder, clocks, written = Finder(), {}, []
    for i, (start, end) in enumerate(pairwise(starts.tolist())):
        part = slice(start, end)
        key = hashlib.blake2b(b"".join(a[part].tobytes() for a in (t, interval, phase)), digest_size=16).digest()
        row = {} if key in clocks else _clock(t[part], interval[part], phase[part])
        row["clock"] = clocks.setdefault(key, len(clocks))
        found = finder.find((sources[i], metrics[i]), value[part], interval[part])
        written.append(row | (_form(found) if found is not None else {"raw": value[part]}))
    labels = [rows[name].combine_chunks().take(starts[:-1]) for name in LABELS]
    numbers = [pa.array([row.get(name) for row in written], kind) for name, (kind, _) in NUMBERS.items()]
    lists = [_lists([row.get(name) for row in written], kind) for name, (kind, _) in LISTS.items()]
    metadata = SERIES.metadata | {LAYOUT_KEY: LAYOUT, VALUES_KEY: str(len(rows)).encode()}
    return pa.Table.from_arrays([*labels, *numbers, *lists], schema=SERIES.with_metadata(metadata))


def _starts(rows: pa.Table) -> np.ndarray:
    """Where each series begins, and the number of rows."""
    n = len(rows)
    if not n:
        return np.zeros(1, np.int64)
    new = np.zeros(n, bool)
    new[0] = True
    for name in LABELS:
        codes = pc.fill_null(rows[name].combine_chunks().indices, -1).to_numpy(zero_copy_only=False)
        new[1:] |= codes[1:] != codes[:-1]
    return np.append(np.flatnonzero(new), n)


def _floats(column: pa.ChunkedArray) -> np.ndarray:
    """NaN for null."""
    return column.to_numpy().astype(float, copy=False)


def _phases(column: pa.ChunkedArray) -> np.ndarray:
    """(rows,) number in PHASES, -1 for null."""
    found = pc.index_in(column.cast(pa.string()), value_set=pa.array(PHASES))
    return pc.fill_null(found, -1).to_numpy().astype(np.int8)


def _clock(t: np.ndarray, interval: np.ndarray, phase: np.ndarray) -> dict[str, Any]:
    row: dict[str, Any] = {"phase": np.where(phase < 0, np.nan, phase), "steps": False}
    times = decimal(t)
    row |= {"t_raw": t} if times is None else {"t_count": times.counts, "t_divisor": times.divisor}
    if np.isnan(interval).all():
        return row
    if np.array_equal(np.diff(t), interval[1:]):
        return row | {"steps": True, "interval_first": None if np.isnan(interval[0]) else float(interval[0])}
    lengths = decimal(interval)
    if lengths is None:
        return row | {"interval_raw": interval}
    return row | {"interval_count": lengths.counts, "interval_divisor": lengths.divisor}


def _form(form: Form) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(form, name) for name in ("per", "offset", "divisor", "factor", "scale")}
    row["level" if form.changes_little else "count"] = form.counts
    return row | {name: array for name in ("divisors", "rest") if (array := getattr(form, name)) is not None}


def _lists(parts: list[np.ndarray | None], kind: pa.DataType) -> pa.ListArray:
    """NaN in a part is null."""
    sizes = [0 if part is None else len(part) for part in parts]
    there = [part for part in parts if part is not None]
    flat = np.concatenate(there) if there else np.empty(0)
    unknown = np.isnan(flat)
    if pa.types.is_integer(kind):
        flat = np.where(unknown, 0, flat).astype(np.int64)
    values = pa.array(flat, kind, mask=unknown)
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, values, mask=pa.array([part is None for part in parts], pa.bool_()))


# ---- series -> rows ------------------------------------------------------------------------------------------------


def decoded(
    series: pa.Table, columns: list[str] | None = None, filters: list | None = None, most: int = 2**31
) -> pa.Table:
    """A table of `SERIES` -> columns of `SAMPLES`, of the rows that the filters (as in pyarrow.parquet.read_table)
    leave. Raises DataError, which does not name the file, for one that is none, or that claims more than `most`
    rows."""
    import pyarrow.parquet as pq

    names = columns or SAMPLES.names
    try:
        clocks = Clocks(series)
        rows = _rows(_selected(series, filters), clocks, list(dict.fromkeys([*names, *asked(filters)])), most)
        rows = rows.filter(pq.filters_to_expression(filters)) if filters else rows
        return rows.select(names)
    except DataError:
        raise
    except (pa.ArrowException, KeyError, IndexError, ValueError, TypeError, OverflowError) as error:
        raise DataError(f"not a table of series ({type(error).__name__} {error})") from error


def columns_for(columns: list[str] | None) -> list[str]:
    """Columns of `SERIES` that the columns of `SAMPLES` are made from."""
    if columns is None or "value" in columns:
        return SERIES.names
    return [name for name in SERIES.names if name not in ("count", "level", "divisors", "rest", "raw")]


def asked(filters: list | None) -> list[str]:
    """Columns that filters look at."""
    return [f[0] for every in _either(filters) for f in every]


def _either(filters: list | None) -> list[list[tuple]]:
    if not filters:
        return []
    return filters if isinstance(filters[0], list) else [filters]


def _selected(series: pa.Table, filters: list | None) -> pa.Table:
    """The series that rows of the filters can come from, by their labels alone."""
    import pyarrow.parquet as pq

    labels = [[f for f in every if f[0] in LABELS] for every in _either(filters)]
    if not labels or not all(labels):
        return series
    texts = pa.table({name: series[name].cast(pa.string()) for name in LABELS} | {"number": np.arange(len(series))})
    return series.take(texts.filter(pq.filters_to_expression(labels))["number"])


class Clocks:
    """The clocks of a table: `sizes` {number: samples}, and of all of them one after the other `t`, `interval`, `phase`
    (rows,); `starts` {number: first row}."""

    def __init__(self, series: pa.Table) -> None:
        told = series.filter(pc.or_(pc.is_valid(series["t_count"]), pc.is_valid(series["t_raw"])))
        numbers = _known(told, "clock")
        _, first = np.unique(numbers, return_index=True)
        self.table = told.take(np.sort(first)).combine_chunks()
        self.numbers = numbers[np.sort(first)]
        self.sizes = np.maximum(_sizes(self.table, "t_count"), _sizes(self.table, "t_raw"))
        self.starts = np.cumsum(self.sizes) - self.sizes

    def of(self, series: pa.Table) -> np.ndarray:
        """(series,) place of the clock of each."""
        asked = _known(series, "clock")
        order = np.argsort(self.numbers)
        place = np.searchsorted(self.numbers[order], asked)
        if len(asked) and (place.max() >= len(order) or (self.numbers[order][place] != asked).any()):
            raise DataError("a series has a clock that is not there")
        return order[place]

    def times(self) -> np.ndarray:
        t = np.full(int(self.sizes.sum()), np.nan)
        _fill(t, self.table, "t_raw", self.sizes)
        counts = _fill(np.full(len(t), np.nan), self.table, "t_count", self.sizes)
        counted = counts / np.repeat(_numbers(self.table, "t_divisor"), self.sizes)
        return np.where(np.isnan(counts), t, counted)

    def intervals(self, t: np.ndarray) -> np.ndarray:
        lengths = _fill(np.full(len(t), np.nan), self.table, "interval_raw", self.sizes)
        counts = _fill(np.full(len(t), np.nan), self.table, "interval_count", self.sizes)
        counted = counts / np.repeat(_numbers(self.table, "interval_divisor"), self.sizes)
        lengths = np.where(np.isnan(counts), lengths, counted)
        steps = self.table["steps"].fill_null(False).to_numpy().astype(bool)
        between = np.diff(t, prepend=np.nan)
        between[self.starts[self.sizes > 0]] = _numbers(self.table, "interval_first")[self.sizes > 0]
        return np.where(np.repeat(steps, self.sizes), between, lengths)

    def phases(self) -> np.ndarray:
        """(rows,) numbers in PHASES, -1 for null."""
        phase = _fill(np.full(int(self.sizes.sum()), np.nan), self.table, "phase", self.sizes)
        number = np.where(np.isnan(phase), -1, phase).astype(np.int32)
        if len(number) and (number.min() < -1 or number.max() >= len(PHASES)):
            raise DataError(f"a phase is {number.max()}, expected a number below {len(PHASES)}")
        return number


def _rows(series: pa.Table, clocks: Clocks, columns: list[str], most: int) -> pa.Table:
    """The rows of some series of the table that the clocks are of."""
    place = clocks.of(series)
    sizes = clocks.sizes[place]
    total = int(sizes.sum())
    if total > most:
        raise DataError(f"{total:,} rows, allowed are at most {most:,}")
    begin = np.cumsum(sizes) - sizes
    at = np.repeat(clocks.starts[place] - begin, sizes) + np.arange(total)
    t = clocks.times()
    interval = clocks.intervals(t) if {"interval_s", "value"} & set(columns) else None
    made: dict[str, pa.Array] = {}
    for name in columns:
        if name in LABELS:
            made[name] = _repeated(series[name].combine_chunks(), sizes)
        elif name == "phase":
            number = clocks.phases()[at]
            made[name] = pa.DictionaryArray.from_arrays(pa.array(number, mask=number < 0), pa.array(PHASES))
        elif name == "value":
            made[name] = _column(_values(series, sizes, interval[at]))
        else:
            made[name] = _column((t if name == "t_s" else interval)[at])
    return pa.table(made)


def _column(values: np.ndarray) -> pa.Array:
    return pa.array(values, pa.float64(), mask=np.isnan(values))


def _repeated(labels: pa.Array, sizes: np.ndarray) -> pa.Array:
    labels = labels if pa.types.is_dictionary(labels.type) else labels.dictionary_encode()
    codes = pc.fill_null(labels.indices, -1).to_numpy(zero_copy_only=False)
    repeated = np.repeat(codes, sizes)
    return pa.DictionaryArray.from_arrays(pa.array(repeated, mask=repeated < 0), labels.dictionary)


def _values(series: pa.Table, sizes: np.ndarray, interval: np.ndarray) -> np.ndarray:
    total = len(interval)
    told = sum(pc.is_valid(series[name].combine_chunks()).to_numpy(zero_copy_only=False).astype(int)
               for name in ("count", "level", "raw"))  # fmt: skip
    if (told != 1).any():
        raise DataError("a series has none or several of count, level, raw")
    counts = _fill(np.full(total, np.nan), series, "count", sizes)
    _fill(counts, series, "level", sizes)
    divisors = _fill(np.full(total, np.nan), series, "divisors", sizes)
    rest = _fill(np.zeros(total), series, "rest", sizes)

    def each(name: str) -> np.ndarray:
        return np.repeat(_numbers(series, name), sizes)

    values = restored(counts, each("per"), interval, each("divisor"), divisors, each("factor"), each("scale"),
                      each("offset"), rest)  # fmt: skip
    return _fill(values, series, "raw", sizes)


def _numbers(series: pa.Table, name: str) -> np.ndarray:
    return series[name].to_numpy().astype(float)


def _known(series: pa.Table, name: str) -> np.ndarray:
    if series[name].null_count:
        raise DataError(f"column {name} has nulls")
    return series[name].to_numpy().astype(np.int64)


def _sizes(series: pa.Table, name: str) -> np.ndarray:
    return pc.fill_null(pc.list_value_length(series[name]), 0).to_numpy().astype(np.int64)


def _fill(into: np.ndarray, series: pa.Table, name: str, sizes: np.ndarray) -> np.ndarray:
    """Writes the lists of a column to the rows of their series; NaN for null. Raises DataError if a list is longer or
    shorter than the series."""
    lists = series[name].combine_chunks()
    there = pc.is_valid(lists).to_numpy(zero_copy_only=False)
    if not there.any():
        return into
    if (_sizes(series, name) != np.where(there, sizes, 0)).any():
        raise DataError(f"a list of {name} is longer or shorter than its clock")
    flat = lists.flatten().to_numpy(zero_copy_only=False).astype(float, copy=False)
    if there.all():
        into[:] = flat
    else:
        into[np.repeat(there, sizes)] = flat
    return into
