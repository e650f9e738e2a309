"""Whether a report is still the one that would be written now: the digests of what it was made from, and of what was
written, lie beside it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from ntier_analysis.contracts.files import RECORD_BYTES, read_bytes, write_text
from ntier_analysis.digests import of_files, of_program
from ntier_analysis.errors import DataError
from ntier_analysis.places import raw_beside, table_file
from ntier_analysis.store.schema import TABLES
from ntier_analysis.verdict.store import verdicts
from ntier_analysis.verdict.stored import to_text

FILE = "report.inputs.json"
PAGE = "report.html"


def inputs(store: Path, sweep: str) -> str:
    """Digest of all that the report of a sweep depends on. Raises DataError for an unknown sweep.

    These are this program with the libraries that draw, the sweep's tables, its verdict (which other sweeps of the
    store may change), and its raw files, by size and time of change, since logs may have gigabytes."""
    (verdict,) = verdicts(store, [sweep])
    files = [table_file(store, table, sweep) for table in TABLES]
    parts = [
        of_program(),
        of_files(sorted(f for f in files if f.exists()), store),
        to_text(verdict),
        *(f"{path} {size} {changed_ns}" for path, size, changed_ns in _raw_files(raw_beside(store, sweep))),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _raw_files(folder: Path) -> list[tuple[str, int, int]]:
    files = [(p.relative_to(folder).as_posix(), p.stat()) for p in sorted(folder.rglob("*")) if p.is_file()]
    return [(path, state.st_size, state.st_mtime_ns) for path, state in files]


def unchanged(folder: Path, made_from: str) -> bool:
    """Whether the report in `folder` was made from these inputs, and all of its files are as they were written."""
    try:
        record = json.loads(read_bytes(folder / FILE, RECORD_BYTES))
    except (DataError, ValueError):  # no report, or one that was interrupted
        return False
    return isinstance(record, dict) and record == _record(folder, made_from)


def forget(folder: Path) -> None:
    """Called before a report is written, so that after an interruption the next one begins anew."""
    (folder / FILE).unlink(missing_ok=True)


def write(folder: Path, made_from: str) -> None:
    """After a report was written."""
    write_text(folder / FILE, json.dumps(_record(folder, made_from), indent=1) + "\n")


def _record(folder: Path, made_from: str) -> dict[str, object]:
    written = [p for p in sorted(folder.rglob("*")) if p.is_file() and p != folder / FILE]
    return {"schema_version": 1, "inputs": made_from, "outputs": of_files(written, folder)}
