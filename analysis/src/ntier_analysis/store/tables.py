"""Reads and writes the store's Parquet files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ntier_analysis.contracts.files import STREAM_BYTES, check_folder, opened, replacing, sync
from ntier_analysis.errors import DataError
from ntier_analysis.labels import in_order, joined
from ntier_analysis.places import as_given, sweep_names, table_file, wrote
from ntier_analysis.store import series
from ntier_analysis.store.schema import LATER_TABLES, NEEDED, READABLE, SORT_BY, STORE_SCHEMA, TABLES
from ntier_analysis.store.validation import validated

MADE_ANEW = "make it anew: ntier-analysis ingest (what was imported: import it again into another --store)"
ZSTD_LEVEL, ZSTD_SAMPLES = 3, 9
"""Level 9 takes 0.1 us more of a sample, and 3 % less of the disk."""
LOCK_S = 20.0
"""How long a program waits for another one that writes; writing takes seconds."""
MAX_ROWS = 2**25
"""Of one file: a file of a few kB can claim any number. Thirteen loads of 65 s on 5 nodes have 84,000 samples (the
demo's sweep); the study's phases on 13 nodes would give some 4 million."""


def to_table(name: str, frame: pd.DataFrame) -> pa.Table:
    """Frame -> table with exactly the columns of the schema, sorted. A missing column is null; an unknown column or a
    value of the wrong type raises DataError naming it."""
    schema = TABLES[name]
    unknown = [c for c in frame.columns if c not in schema.names]
    if unknown:
        raise DataError(f"table {name}: unknown column {unknown[0]!r}; allowed are {', '.join(schema.names)}")
    frame = validated(name, frame, lambda row: f"table {name}, row {row + 1}")
    labels = [f.name for f in schema if pa.types.is_dictionary(f.type) and f.name in frame.columns]
    frame = frame.astype(dict.fromkeys(labels, "category"))  # which are sorted in a fifth of the time of texts
    frame = frame.sort_values([c for c in SORT_BY[name] if c in frame.columns], kind="stable")
    arrays = []
    for field in schema:
        if field.name not in frame.columns:
            arrays.append(pa.nulls(len(frame), field.type))
            continue
        try:
            arrays.append(_array(frame[field.name], field.type))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError) as error:
            raise DataError(f"table {name}, column {field.name}: {error}") from error
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(column: pd.Series, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        texts = pa.array(column.cat.categories.astype(object), type=pa.string())
        codes = column.cat.codes.to_numpy().astype("int32")
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), texts)
    return pa.array(column, type=kind, from_pandas=True)


def fingerprint(store: Path, sweep: str) -> str | None:
    """What the sweep's tables were made from (`inputs` of write_table); None if a table is missing or torn."""
    try:
        inputs = {table_inputs(store, name, sweep) for name in TABLES}
    except DataError:
        return None
    return inputs.pop() if len(inputs) == 1 else None


def table_inputs(store: Path, name: str, sweep: str) -> str:
    """What one table was made from; empty if it does not say (imported data)."""
    path = table_file(store, name, sweep)
    check_table(path)
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error
    _check_version(path, metadata)
    return metadata.get(b"ntier_inputs", b"").decode()


def write_tables(
    store: Path, sweep: str, frames: dict[str, pd.DataFrame], *, inputs: str = "", lock: bool = False
) -> None:
    """Replaces `<store>/<table>/<sweep>.parquet` of each table once all of them are on the disk, so that an error or a
    full disk leaves the sweep as it was. `inputs`: a digest of what they were made from. Call it within `locked`, or
    with `lock`, which keeps others from writing only while files are replaced: making them takes much longer.

    Raises DataError for a frame against the schema, or with more rows than are read, OSError if the disk does not take
    it."""
    check_rows(store, sweep, frames)
    if lock:
        _check_folders(store)
    with ExitStack() as held, ExitStack() as made:
        for name, frame in frames.items():
            table = to_table(name, frame)
            table = table.replace_schema_metadata({**table.schema.metadata, b"ntier_inputs": inputs.encode()})
            (store / name).mkdir(parents=True, exist_ok=True)
            temporary = made.enter_context(replacing(store / name / f"{sweep}.parquet"))
            write_parquet(name, table, temporary)
            _refuse_rows(store, sweep, name, _most(pq.read_metadata(temporary)))
            sync(temporary)
        if lock:
            held.enter_context(locked(store))
    wrote(store, sweep, frames)


def check_rows(store: Path, sweep: str, frames: Mapping[str, pd.DataFrame]) -> None:
    """Raises DataError for a table that would have more rows than are read again."""
    for name, frame in frames.items():
        _refuse_rows(store, sweep, name, len(frame))


def _refuse_rows(store: Path, sweep: str, name: str, rows: int) -> None:
    if rows > MAX_ROWS:
        raise DataError(
            f"{store}: sweep {sweep} would have {rows:,} rows of {name}, allowed are at most {MAX_ROWS:,}; put some of "
            "its trials into another sweep (import: --sweep)"
        )


def write_parquet(name: str, table: pa.Table, path: Path, level: int | None = None) -> None:
    """A table of the schema as a file, in the way in which the store keeps it. `level` of zstd."""
    metadata, how = table.schema.metadata, {}
    if name == "samples":
        level = level or ZSTD_SAMPLES
        table = series.encoded(table)
        how = series.options(table)
        table = table.replace_schema_metadata({**table.schema.metadata, **metadata})
    pq.write_table(table, path, compression="zstd", compression_level=level or ZSTD_LEVEL, **how)


def migrate(store: Path, sweep: str) -> int:
    """Writes those of the sweep's files that are of an earlier version as the newest has them; returns their number.
    The tables stay equal, and each file is replaced at once. Raises DataError. Call it within `locked`."""
    old = 0
    for name, schema in TABLES.items():
        path = table_file(store, name, sweep)
        if _from_before(store, name, sweep):
            continue
        check_table(path)
        try:
            file = _opened(path)
            if schema_version(path, file.schema_arrow.metadata) == STORE_SCHEMA:
                continue
            _check_columns(path)
            table = file.read()
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(path, error) from error
        stamped = {**(table.schema.metadata or {}), b"ntier_store_schema": str(STORE_SCHEMA).encode()}
        if name == "samples":
            table = _as_the_schema(table, schema)
        with replacing(path, durable=True) as temporary:
            write_parquet(name, table.replace_schema_metadata(stamped), temporary)
        wrote(store, sweep, [name])
        old += 1
    return old


def _as_the_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Exactly its columns; labels may be stored as texts."""
    table = _with_later_columns(table, schema).select(schema.names).combine_chunks()
    columns = [
        c.combine_chunks().dictionary_encode() if pa.types.is_string(c.type) and f.type != c.type else c.cast(f.type)
        for c, f in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def write_table(store: Path, name: str, sweep: str, frame: pd.DataFrame, *, inputs: str = "") -> Path:
    """One table of a sweep, as write_tables does it; returns its file."""
    write_tables(store, sweep, {name: frame}, inputs=inputs)
    return store / name / f"{sweep}.parquet"


@contextmanager
def locked(store: Path) -> Iterator[None]:
    """One writer of the store at a time. Raises DataError if it cannot be written, or if another program still writes
    after LOCK_S; the system releases the lock of a program that died."""
    from filelock import FileLock, Timeout

    _check_folders(store)
    store.mkdir(parents=True, exist_ok=True)
    lock = FileLock(store / ".lock", timeout=LOCK_S)
    try:
        lock.acquire()
    except Timeout:
        raise DataError(f"{store}: another program is writing to it; try again when it is done") from None
    try:
        yield
    finally:
        lock.release()


def _check_folders(store: Path) -> None:
    for folder in (store, *(store / name for name in TABLES)):
        check_folder(folder, "--store")


def sweeps(store: Path) -> list[str]:
    """Names of the sweeps that the store holds, sorted. Raises DataError if there is no store."""
    folder = store / "trials"
    if not folder.is_dir():
        raise DataError(
            f"{as_given(store)}: not a store (no folder trials in it); name another with --store, or make one with: "
            "ntier-analysis ingest"
        )
    return sweep_names(store)


def read_table(
    store: Path,
    name: str,
    sweep: str | None = None,
    *,
    columns: list[str] | None = None,
    filters: list | None = None,
    categories: bool = False,
) -> pd.DataFrame:
    """One table of one sweep (or of all) as a frame; labels are plain strings, or `categories` in order. Raises
    DataError for a file that is missing, torn, of a later schema, or with a value that the schema does not allow.
    `filters` as in pyarrow.parquet.read_table."""
    if name not in TABLES:
        raise DataError(f"unknown table {name!r}; allowed are {', '.join(TABLES)}")
    names = [sweep] if sweep is not None else sweeps(store)
    there = [n for n in names if not _from_before(store, name, n)]
    parts = [_read(table_file(store, name, n), columns, filters, categories=categories) for n in there]
    if not parts:
        empty = TABLES[name].empty_table()
        return (empty.select(columns) if columns else empty).to_pandas()
    return joined(parts) if len(parts) > 1 else parts[0]


def read_values(store: Path, name: str, sweep: str, columns: list[str]) -> tuple[dict[str, list], str]:
    """A few columns of one table as plain values, and its `table_inputs`; a column that the file was written without is
    all None. A tenth of the time of `read_table`, which makes a frame of them."""
    path = table_file(store, name, sweep)
    check_table(path)
    try:
        file = _opened(path)
        there = [c for c in columns if c in file.schema_arrow.names]
        values = file.read(columns=there).to_pydict()
        rows = file.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error
    inputs = (file.schema_arrow.metadata or {}).get(b"ntier_inputs", b"").decode()
    return {c: values.get(c, [None] * rows) for c in columns}, inputs


def _from_before(store: Path, name: str, sweep: str) -> bool:
    """Whether the sweep is older than this table."""
    return (
        name in LATER_TABLES
        and not table_file(store, name, sweep).exists()
        and table_file(store, "trials", sweep).exists()
    )


def _read(path: Path, columns: list[str] | None, filters: list | None, *, categories: bool) -> pd.DataFrame:
    check_table(path)
    try:
        _opened(path)
        _check_columns(path)
        if is_series(path):
            data = _of_series(path, columns, filters)
        else:
            data = pq.read_table(path, columns=columns, filters=filters)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error
    if columns is None:
        data = _with_later_columns(data, TABLES[path.parent.name])
    frame = data.to_pandas(strings_to_categorical=False)  # labels are categories until they are checked: much quicker
    frame = validated(path.parent.name, frame, lambda row: f"{path}: row {row + 1}", stored=True)
    if categories:
        return in_order(frame)
    for column in frame.select_dtypes("category"):  # by Arrow in a seventh of the time of astype("str")
        frame[column] = data.column(column).cast(pa.large_string()).to_pandas()
    return frame


def is_series(path: Path) -> bool:
    """Whether a file of samples has a row per series, as they are written since version 2."""
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error
    return path.parent.name == "samples" and metadata.get(series.LAYOUT_KEY) == series.LAYOUT


def _of_series(path: Path, columns: list[str] | None, filters: list | None) -> pa.Table:
    needed = None if columns is None else [*columns, *series.asked(filters)]
    try:
        return series.decoded(pq.read_table(path, columns=series.columns_for(needed)), columns, filters, MAX_ROWS)
    except DataError as error:
        raise DataError(f"{path}: {error}; rebuild it with: ntier-analysis ingest") from error


def check_table(path: Path) -> None:
    """Raises DataError unless it is a regular file of at most STREAM_BYTES."""
    if not os.path.lexists(path):
        raise DataError(f"{path}: no such file; make it with: ntier-analysis ingest")
    opened(path, STREAM_BYTES).close()


def check_version(path: Path) -> None:
    """Raises DataError for a table of a version that is not read, or that is no Parquet."""
    check_table(path)
    try:
        metadata = pq.read_schema(path).metadata
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error
    _check_version(path, metadata)


def schema_version(path: Path, metadata: Mapping[bytes, bytes] | None) -> int:
    """Version of the store's schema that a file was written by. Raises DataError if it is no number."""
    text = (metadata or {}).get(b"ntier_store_schema", b"1")
    if not text.isdigit():
        raise DataError(f"{path}: schema version {text.decode(errors='replace')!r}, expected a number; {MADE_ANEW}")
    return int(text)


def _check_version(path: Path, metadata: Mapping[bytes, bytes] | None) -> None:
    """Within a version the schema only grows; what another version's columns mean is not known here."""
    version = schema_version(path, metadata)
    if version not in READABLE:
        age = "a later" if version > STORE_SCHEMA else "an earlier"
        raise DataError(f"{path}: of {age} version of the store ({version}, here {STORE_SCHEMA}); {MADE_ANEW}")


def _opened(path: Path) -> pq.ParquetFile:
    file = pq.ParquetFile(path)
    _check_version(path, file.schema_arrow.metadata)
    most = _most(file.metadata)
    if most > MAX_ROWS:
        raise DataError(f"{path}: {most:,} rows, allowed are at most {MAX_ROWS:,}")
    return file


def _most(footer: pq.FileMetaData) -> int:
    """Rows, or numbers of the column that has most: lists have several in a row."""
    groups = range(footer.num_row_groups)
    columns = range(footer.num_columns)
    return max([footer.num_rows, *(sum(footer.row_group(g).column(c).num_values for g in groups) for c in columns)])


def _check_columns(path: Path) -> None:
    """Raises DataError for a column that is missing, or of another type than the schema's."""
    there, name = pq.read_schema(path), path.parent.name
    schema, needed = (series.SERIES, series.SERIES.names) if is_series(path) else (TABLES[name], NEEDED.get(name, []))
    lacking = next((c for c in needed if c not in there.names), None)
    if lacking is not None:
        raise DataError(f"{path}: column {lacking} is missing; rebuild it with: ntier-analysis ingest")
    for field in there:
        if field.name in schema.names and _plain(field.type) != _plain(schema.field(field.name).type):
            raise DataError(f"{path}: column {field.name} is {field.type}, expected {schema.field(field.name).type}")


def _plain(kind: pa.DataType) -> pa.DataType:
    """Labels are texts."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if pa.types.is_large_string(kind) else kind


def _unreadable(path: Path, error: Exception) -> DataError:
    return DataError(f"{path}: not readable as Parquet ({error}); rebuild it with: ntier-analysis ingest")


def _with_later_columns(data: pa.Table, schema: pa.Schema) -> pa.Table:
    """A column that the schema got after the file was written is null there."""
    for field in schema:
        if field.name not in data.column_names:
            kind = pa.string() if pa.types.is_dictionary(field.type) else field.type
            data = data.append_column(field.name, pa.nulls(data.num_rows, kind))
    return data
