"""Contents of a store and its size on the disk, by the files' own footers: no value is read."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ntier_analysis.errors import DataError
from ntier_analysis.places import as_given, table_files
from ntier_analysis.store.schema import STORE_SCHEMA, TABLES
from ntier_analysis.store.series import VALUES_KEY
from ntier_analysis.store.tables import check_table, schema_version, sweeps
from ntier_analysis.wording import counted

SAMPLES = "samples"
"""The table that has one measured value per row."""


@dataclass
class TableInfo:
    """Of one table, over all sweeps. `bytes`: of the files on the disk."""

    table: str
    files: int = 0
    rows: int = 0
    bytes: int = 0

    @property
    def bytes_per_row(self) -> float | None:
        return self.bytes / self.rows if self.rows else None


@dataclass
class StoreInfo:
    store: str
    sweeps: int
    tables: list[TableInfo]
    schema_versions: dict[int, int]
    """Version -> number of files."""
    unreadable: list[str] = field(default_factory=list)
    """What is wrong with each file that cannot be read; it counts nowhere else."""

    @property
    def bytes_per_value(self) -> float | None:
        """Of the samples: a row is one value of one metric at one time."""
        return next((t.bytes_per_row for t in self.tables if t.table == SAMPLES), None)

    def document(self) -> dict:
        tables = [asdict(t) | {"bytes_per_row": t.bytes_per_row} for t in self.tables]
        return asdict(self) | {
            "tables": tables,
            "rows": sum(t.rows for t in self.tables),
            "bytes": sum(t.bytes for t in self.tables),
            "bytes_per_value": self.bytes_per_value,
            "schema_version_of_program": STORE_SCHEMA,
        }

    def text(self) -> str:
        rows = [("table", "files", "rows", "bytes", "bytes/row")]
        whole = TableInfo("all", *(sum(getattr(t, k) for t in self.tables) for k in ("files", "rows", "bytes")))
        for t in [*self.tables, whole]:
            each = t.bytes_per_row
            rows.append(
                (t.table, f"{t.files:,}", f"{t.rows:,}", f"{t.bytes:,}", "-" if each is None else f"{each:.2f}")
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
                 for row in rows]  # fmt: skip
        versions = ", ".join(f"{v} ({counted(n, 'file')})" for v, n in sorted(self.schema_versions.items()))
        lines = [f"{self.store}: {counted(self.sweeps, 'sweep')}", *lines, f"schema version {versions or '-'}"]
        if self.bytes_per_value is not None:
            lines.append(f"{SAMPLES}: a row is one measured value, so {self.bytes_per_value:.2f} bytes a value")
        return "\n".join(lines)


def examine(store: Path) -> StoreInfo:
    """Raises DataError if there is no store; a file that cannot be read is told of in `unreadable`."""
    names = sweeps(store)
    tables, versions, unreadable = [], Counter(), []
    for name in TABLES:
        table = TableInfo(name)
        for path in table_files(store, name):
            try:
                check_table(path)
                footer = pq.read_metadata(path)
                version = schema_version(path, footer.metadata)
                rows = _rows(path, footer)
            except DataError as error:
                unreadable.append(as_given(error))
            except (pa.ArrowException, OSError) as error:
                unreadable.append(f"{as_given(path)}: not readable as Parquet ({error})")
            else:
                versions[version] += 1
                table.files, table.rows = table.files + 1, table.rows + rows
                table.bytes += path.stat().st_size
        tables.append(table)
    return StoreInfo(as_given(store), len(names), tables, dict(versions), unreadable)


def _rows(path: Path, footer: pq.FileMetaData) -> int:
    """Samples lie in the file as series; it says how many there are."""
    text = (footer.metadata or {}).get(VALUES_KEY, str(footer.num_rows).encode())
    if not text.isdigit():
        raise DataError(f"{path}: {VALUES_KEY.decode()} is {text.decode(errors='replace')!r}, expected a number")
    return int(text)
