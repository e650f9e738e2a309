"""Strict CSV reading: columns and types are stated, a bad line is an error that names file and line.

One fault is tolerated: an incomplete last line (of a collector that was killed while it wrote) is left out and counted
in `frame.attrs["torn_lines"]`. In files of others (`strict`) it is an error, too."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv

from ntier_analysis.contracts.files import GIB, LINE_BYTES, MIB, lines, repeated, size, stream, text_of
from ntier_analysis.errors import DataError

VALUES_BYTES = GIB
"""Upper bound of a table in memory (Arrow): 10 million lines of a JTL."""
BLOCK_BYTES = 4 * MIB
"""What is parsed at once; a line is shorter (LINE_BYTES)."""

_ARROW = {
    "number": pa.float64(),
    "whole": pa.float64(),
    "count": pa.int64(),
    "text": pa.string(),
    "flag": pa.bool_(),
}
"""`count`: a whole number in each line; `whole`: the same, but it may be empty, or written 3.0."""
_EMPTY = ["", "NaN", "nan"]
_TRUE = ["true", "True", "TRUE", "1", "yes"]
_FALSE = ["false", "False", "FALSE", "0", "no"]
_EXPECTED = {"number": "a number", "whole": "a whole number", "count": "a whole number", "flag": "true or false"}
EXACT = 2**53
"""Whole numbers that a float holds exactly."""


def read_csv(
    path: Path,
    columns: dict[str, str],
    *,
    optional: dict[str, str] | None = None,
    others: str | None = None,
    delimiter: str = ",",
    strict: bool = False,
    hints: dict[str, str] | None = None,
) -> pd.DataFrame:
    """Reads the columns `{name: "number"|"whole"|"count"|"text"|"flag"}`, all of which the header must have, and those
    of `optional` that it has; other columns are left out (their names are in `attrs["left_out"]`), or read as type
    `others`. An empty number is NaN. Comment lines (#) before the header are skipped. `strict`: a torn last line is an
    error. `hints`: column -> what the error for a value of it says further.

    Raises DataError naming file, line and field."""
    skipped, line = _header_line(path)
    header = names_of(line, delimiter)
    if not line.strip():
        raise DataError(f"{path}: empty, expected a header with {', '.join(columns)}")
    for name in columns:
        if name not in header:
            raise DataError(f"{path}:{skipped + 1}: column {name!r} is missing; found {', '.join(header)[:200]}")
    duplicate = repeated(header)
    if duplicate is not None:
        raise DataError(f"{path}:{skipped + 1}: column {duplicate[:80]!r} occurs twice")
    known = columns | (optional or {})
    wanted = {name: known.get(name, others) for name in header if name in known or others}
    with _Rows(path, skipped + 1, strict=strict) as rows:
        try:
            table = _parse(path, rows, header, wanted, delimiter)
        except pa.ArrowInvalid as error:
            raise _located(path, skipped, header, wanted, delimiter, error, hints or {}) from error
    if not rows.even_quotes:
        for _ in _records(path, delimiter):
            pass  # raises, if one stands open at the end
    frame = table.to_pandas(integer_object_nulls=False, self_destruct=True)
    for name, kind in wanted.items():
        if kind not in ("count", "whole"):
            continue
        # What was read as an integer is exact; nanoseconds since the epoch are beyond what a float holds.
        exact = pd.api.types.is_integer_dtype(frame[name]) | (frame[name].abs() <= EXACT)
        whole = (frame[name] % 1 == 0) & exact
        wrong = ~whole if kind == "count" else frame[name].notna() & ~whole
        if wrong.any():
            row = int(wrong.to_numpy().argmax())
            said = "empty" if pd.isna(frame[name][row]) else repr(frame[name][row].item())
            expected = f"{_EXPECTED[kind]}{(hints or {}).get(name, '')}"
            raise DataError(f"{path}:{line_of(path, row, delimiter)}: {name} is {said}, expected {expected}")
        if kind == "whole":
            frame[name] = frame[name].astype("Int64")
    frame.attrs |= {"torn_lines": rows.torn, "left_out": [name for name in header if name not in wanted]}
    return frame


class _Rows(io.RawIOBase):
    """The file's lines after the first `skip`, whole ones only: a torn last one is left out and counted in `torn`, or
    ended if `strict`."""

    def __init__(self, path: Path, skip: int, *, strict: bool) -> None:
        self._path, self._file, self._strict, self.torn = path, stream(path), strict, 0
        self._ready, self._rest, self._line, self._quotes = memoryview(b""), b"", skip, 0
        for _ in range(skip):
            self._file.readline()

    @property
    def even_quotes(self) -> bool:
        """Whether each quotation mark that was read has its other one."""
        return self._quotes % 2 == 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            chunk = self._file.read(MIB)
            if not chunk:
                if not self._rest:
                    return 0
                self.torn = 1
                self._ready, self._rest = memoryview(self._rest + b"\n" if self._strict else b""), b""
                if not self._strict:
                    return 0
                break
            self._take(chunk)
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n

    def _take(self, chunk: bytes) -> None:
        whole, end, rest = chunk.rpartition(b"\n")
        if end:
            self._quotes += self._rest.count(b'"') + whole.count(b'"')
            self._ready, self._rest = memoryview(self._rest + whole + end), rest
            self._line += whole.count(b"\n") + 1
        else:
            self._rest += rest
        if len(self._rest) > LINE_BYTES:
            raise DataError(f"{self._path}:{self._line + 1}: a line of more than {size(LINE_BYTES)}")

    def close(self) -> None:
        self._file.close()
        super().close()


def _header_line(path: Path) -> tuple[int, str]:
    """How many lines of comment are before the header, and the header."""
    for number, line in enumerate(lines(path)):
        text = text_of(line, path) if number == 0 else line.decode("utf-8", "replace")
        if not text.startswith("#"):
            return number, text.strip()
    return 0, ""


def names_of(line: str, delimiter: str = ",") -> list[str]:
    """Columns of a header, without quotation marks."""
    try:
        return [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return [line]


def header_line(path: Path) -> str:
    return _header_line(path)[1]


def _records(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Line at which each record ends, and its fields, from the header on; empty lines are left out. Slow, so only for
    messages. Raises DataError for what no CSV reader accepts."""
    skipped = _header_line(path)[0]
    texts = itertools.islice(lines(path), skipped, None)
    decoded = (text.decode("utf-8", "replace") + "\n" for text in texts)
    reader, last = csv.reader(decoded, delimiter=delimiter, strict=True), skipped
    try:
        for fields in reader:
            last = skipped + reader.line_num
            if fields:
                yield last, fields
    except csv.Error as error:
        hint = "; a quotation mark that is not closed?" if '"' in str(error) or "end of data" in str(error) else ""
        raise DataError(f"{path}:{last + 1}: not readable as CSV ({error}{hint})") from None


def line_of(path: Path, row: int, delimiter: str = ",") -> int:
    """Line of the file at which the row (from 0) ends: for messages, since fields may hold line breaks and empty lines
    are skipped."""
    return next((line for line, _ in itertools.islice(_records(path, delimiter), row + 1, None)), row + 2)


def _parse(path: Path, rows: _Rows, header: list[str], wanted: dict[str, str], delimiter: str) -> pa.Table:
    """The columns of `wanted`, block by block: the text of the file is never in memory whole."""
    schema = pa.schema([(name, _ARROW[kind]) for name, kind in wanted.items()])
    file = io.BufferedReader(rows, BLOCK_BYTES)
    if not file.peek(1):
        return schema.empty_table()
    reader = pa_csv.open_csv(
        file,
        read_options=pa_csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES, column_names=header),
        parse_options=pa_csv.ParseOptions(newlines_in_values=True, delimiter=delimiter),
        convert_options=pa_csv.ConvertOptions(
            column_types=schema,
            include_columns=list(wanted),
            null_values=_EMPTY,
            true_values=_TRUE,
            false_values=_FALSE,
            strings_can_be_null=False,
        ),
    )
    batches, held = [], 0
    for batch in reader:
        batches.append(batch)
        held += batch.nbytes
        if held > VALUES_BYTES:
            raise DataError(f"{path}: more than {size(VALUES_BYTES)} of values; import it in parts")
    return pa.Table.from_batches(batches, schema=schema)


def _located(
    path: Path,
    skipped: int,
    header: list[str],
    wanted: dict[str, str],
    delimiter: str,
    error: Exception,
    hints: dict[str, str],
) -> DataError:
    """The slow way, only after a failure: finds the line that Arrow could not read."""
    for line, row in itertools.islice(_records(path, delimiter), 1, None):
        if len(row) != len(header):
            return DataError(f"{path}:{line}: {len(row)} fields, the header has {len(header)}")
        for name, field in zip(header, row, strict=True):
            kind = wanted.get(name, "text")
            if kind != "text" and field not in _EMPTY and not _is(kind, field):
                return DataError(
                    f"{path}:{line}: {name} is {field[:40]!r}, expected {_EXPECTED[kind]}{hints.get(name, '')}"
                )
            if "\ufffd" in field:
                return DataError(f"{path}:{line}: {name} is {field[:40]!r}, expected UTF-8")
    return DataError(f"{path}: not readable as CSV ({' '.join(str(error).split())[:200]})")


def _is(kind: str, text: str) -> bool:
    """Whether Arrow takes it."""
    if kind == "flag":
        return text in _TRUE + _FALSE
    try:
        pa.array([text.strip()]).cast(_ARROW[kind])
    except pa.ArrowInvalid:
        return False
    return True
