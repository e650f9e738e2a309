"""Strict CSV reading: columns and types are stated, a bad line is an error that names file and line.

The only thing that is forgiven is a torn last line (a collector that was killed while it wrote): it is left out and
counted in `frame.attrs["torn_lines"]`. Files of others (`strict`) are not forgiven even that."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import zstandard

from ntier_analysis.errors import DataError

MAX_BYTES = 4 * 2**30
"""Upper bound of a decompressed file: a corrupt or hostile archive must not take the machine's memory."""

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
UTF16 = (b"\xff\xfe", b"\xfe\xff")
UTF8_MARK = b"\xef\xbb\xbf"


def read_bytes(path: Path) -> bytes:
    """Content of a file; `.zst` is decompressed. Raises DataError if it cannot be read."""
    try:
        raw = path.read_bytes()
        if path.suffix != ".zst":
            return raw
        with zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True) as reader:
            content = reader.read(MAX_BYTES)
    except (OSError, zstandard.ZstdError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from error
    if len(content) >= MAX_BYTES:
        raise DataError(f"{path}: more than {MAX_BYTES} bytes decompressed")
    return content


def read_csv(
    path: Path,
    columns: dict[str, str],
    *,
    optional: dict[str, str] | None = None,
    others: str | None = None,
    delimiter: str = ",",
    strict: bool = False,
) -> pd.DataFrame:
    """Reads the columns `{name: "number"|"whole"|"count"|"text"|"flag"}`, all of which the header must have, and those
    of `optional` that it has; other columns are left out (their names are in `attrs["left_out"]`), or read as type
    `others`. An empty number is NaN. Comment lines (#) before the header are skipped. `strict`: a torn last line is an
    error.

    Raises DataError naming file, line and field."""
    content, skipped = _text(path)
    header = _header(content, delimiter)
    if not content.strip():
        raise DataError(f"{path}: empty, expected a header with {', '.join(columns)}")
    for name in columns:
        if name not in header:
            raise DataError(f"{path}:{skipped + 1}: column {name!r} is missing; found {', '.join(header)[:200]}")
    duplicate = next((name for name in header if header.count(name) > 1), None)
    if duplicate is not None:
        raise DataError(f"{path}:{skipped + 1}: column {duplicate!r} occurs twice")
    known = columns | (optional or {})
    wanted = {name: known.get(name, others) for name in header if name in known or others}
    torn = 0 if content.endswith(b"\n") else 1
    if torn:
        content = content + b"\n" if strict else content[: content.rfind(b"\n") + 1]
    try:
        table = _parse(content, header, wanted, delimiter)
    except pa.ArrowInvalid as error:
        raise _located(path, content, skipped, header, wanted, delimiter, error) from error
    frame = table.to_pandas(integer_object_nulls=False)
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
            raise DataError(f"{path}:{line_of(path, row, delimiter)}: {name} is {said}, expected a whole number")
        if kind == "whole":
            frame[name] = frame[name].astype("Int64")
    frame.attrs |= {"torn_lines": torn, "left_out": [name for name in header if name not in wanted]}
    return frame


def _text(path: Path) -> tuple[bytes, int]:
    """Content from the header on, and how many lines of comment were before it."""
    content = read_bytes(path)
    if content[:2] in UTF16:
        raise DataError(f"{path}: UTF-16, expected UTF-8; convert it: iconv -f UTF-16 -t UTF-8")
    content = content.removeprefix(UTF8_MARK)
    skipped = 0
    while content.startswith(b"#"):
        content, skipped = content.partition(b"\n")[2], skipped + 1
    return content, skipped


def _header(content: bytes, delimiter: str) -> list[str]:
    line = content.partition(b"\n")[0].decode("utf-8", "replace").strip()
    return [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]


def header_line(path: Path) -> str:
    return _text(path)[0].partition(b"\n")[0].decode("utf-8", "replace").strip()


def line_of(path: Path, row: int, delimiter: str = ",") -> int:
    """Line of the file at which the row (from 0) ends: for messages, since fields may hold line breaks and empty lines
    are skipped."""
    content, skipped = _text(path)
    reader = csv.reader(io.StringIO(content.decode("utf-8", "replace"), newline=""), delimiter=delimiter)
    rows = (reader.line_num for fields in reader if fields)
    return skipped + next((line for number, line in enumerate(rows) if number == row + 1), row + 2)


def _parse(content: bytes, header: list[str], wanted: dict[str, str], delimiter: str) -> pa.Table:
    return pa_csv.read_csv(
        io.BytesIO(content),
        read_options=pa_csv.ReadOptions(
            use_threads=False, block_size=max(2**20, len(content)), column_names=header, skip_rows=1
        ),
        parse_options=pa_csv.ParseOptions(newlines_in_values=True, delimiter=delimiter),
        convert_options=pa_csv.ConvertOptions(
            column_types={name: _ARROW[kind] for name, kind in wanted.items()},
            include_columns=list(wanted),
            null_values=_EMPTY,
            true_values=_TRUE,
            false_values=_FALSE,
            strings_can_be_null=False,
        ),
    )


def _located(
    path: Path,
    content: bytes,
    skipped: int,
    header: list[str],
    wanted: dict[str, str],
    delimiter: str,
    error: Exception,
) -> DataError:
    """The slow way, only after a failure: finds the line that Arrow could not read."""
    text = content.decode("utf-8", "replace")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    next(reader, None)
    for row in reader:
        if not row:
            continue
        line = skipped + reader.line_num
        if len(row) != len(header):
            return DataError(f"{path}:{line}: {len(row)} fields, the header has {len(header)}")
        for name, field in zip(header, row, strict=True):
            kind = wanted.get(name, "text")
            if kind != "text" and field not in _EMPTY and not _is(kind, field):
                return DataError(f"{path}:{line}: {name} is {field[:40]!r}, expected {_EXPECTED[kind]}")
            if "\ufffd" in field:
                return DataError(f"{path}:{line}: {name} is {field[:40]!r}, expected UTF-8")
    return DataError(f"{path}: not readable as CSV ({error})")


def _is(kind: str, text: str) -> bool:
    """Whether Arrow takes it."""
    if kind == "flag":
        return text in _TRUE + _FALSE
    try:
        pa.array([text.strip()]).cast(_ARROW[kind])
    except pa.ArrowInvalid:
        return False
    return True
