"""Strict CSV reading: columns and types are stated, a bad line is an error that names file and line.

The only thing that is forgiven is a torn last line (a collector that was killed while it wrote): it is left out and
counted in `frame.attrs["torn_lines"]`."""

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

_ARROW = {"number": pa.float64(), "count": pa.int64(), "text": pa.string()}


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
) -> pd.DataFrame:
    """Reads the columns `{name: "number"|"count"|"text"}`, all of which the header must have, and those of `optional`
    that it has; other columns are left out, or read as type `others`. An empty number is NaN. Comment lines (#) before
    the header are skipped.

    Raises DataError naming file, line and field."""
    content = read_bytes(path)
    skipped = 0
    while content.startswith(b"#"):
        content, skipped = content.partition(b"\n")[2], skipped + 1
    header_line, _, _ = content.partition(b"\n")
    header = header_line.decode("utf-8", "replace").strip().split(delimiter)
    if not content.strip():
        raise DataError(f"{path}: empty, expected a header with {', '.join(columns)}")
    for name in columns:
        if name not in header:
            raise DataError(f"{path}:{skipped + 1}: column {name!r} is missing; found {', '.join(header)}")
    duplicate = next((name for name in header if header.count(name) > 1), None)
    if duplicate is not None:
        raise DataError(f"{path}:{skipped + 1}: column {duplicate!r} occurs twice")
    known = columns | (optional or {})
    wanted = {name: known.get(name, others) for name in header if name in known or others}
    torn = 0 if content.endswith(b"\n") else 1
    if torn:
        content = content[: content.rfind(b"\n") + 1]
    try:
        table = _parse(content, wanted, delimiter)
    except pa.ArrowInvalid as error:
        raise _located(path, content, skipped, header, wanted, delimiter, error) from error
    frame = table.to_pandas(integer_object_nulls=False)
    for name, kind in wanted.items():
        if kind == "count" and frame[name].isna().any():
            line = int(frame[name].isna().to_numpy().argmax()) + skipped + 2
            raise DataError(f"{path}:{line}: {name} is empty, expected a whole number")
    frame.attrs["torn_lines"] = torn
    return frame


def _parse(content: bytes, wanted: dict[str, str], delimiter: str) -> pa.Table:
    return pa_csv.read_csv(
        io.BytesIO(content),
        read_options=pa_csv.ReadOptions(use_threads=False, block_size=max(2**20, len(content))),
        parse_options=pa_csv.ParseOptions(newlines_in_values=True, delimiter=delimiter),
        convert_options=pa_csv.ConvertOptions(
            column_types={name: _ARROW[kind] for name, kind in wanted.items()},
            include_columns=list(wanted),
            null_values=["", "NaN", "nan"],
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
    reader = csv.reader(io.StringIO(content.decode("utf-8", "replace"), newline=""), delimiter=delimiter)
    next(reader, None)
    for row in reader:
        if not row:
            continue
        line = skipped + reader.line_num
        if len(row) != len(header):
            return DataError(f"{path}:{line}: {len(row)} fields, the header has {len(header)}")
        for name, text in zip(header, row, strict=True):
            kind = wanted.get(name, "text")
            if kind != "text" and text not in ("", "NaN", "nan") and not _is(kind, text):
                what = "a whole number" if kind == "count" else "a number"
                return DataError(f"{path}:{line}: {name} is {text[:40]!r}, expected {what}")
    return DataError(f"{path}: not readable as CSV ({error})")


def _is(kind: str, text: str) -> bool:
    try:
        int(text) if kind == "count" else float(text)
    except ValueError:
        return False
    return True
