"""SQL on the store: one DuckDB view per table, nothing else of the disk within reach."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ntier_analysis.errors import DataError
from ntier_analysis.store.schema import TABLES
from ntier_analysis.store.tables import check_table, sweeps

MEMORY = "4GiB"
"""Memory that DuckDB may take; a query that needs more is refused, or runs more slowly."""


def run(store: Path, query: str) -> pd.DataFrame:
    """Result of one query (the last of several). Raises DataError with DuckDB's message, for any statement that is not
    a query (DuckDB could write to any folder that it may read), and if DuckDB is not installed."""
    try:
        import duckdb
    except ModuleNotFoundError:
        raise DataError("SQL needs DuckDB, which is not installed; install it with: pip install duckdb") from None
    sweeps(store)
    connection = duckdb.connect()
    folder = str(store.resolve())
    connection.execute(f"SET memory_limit = '{MEMORY}'")
    connection.execute("SET allowed_directories = [?]", [folder])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    try:
        for table in TABLES:
            if parquet_files := list((store / table).glob("*.parquet")):
                for path in parquet_files:
                    check_table(path)  # DuckDB waits for a FIFO
                files = f"{folder}/{table}/*.parquet".replace("'", "''")
                connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{files}')")  # noqa: S608
        for statement in duckdb.extract_statements(query):
            if statement.type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
                raise DataError(f"SQL: {statement.type.name} is not allowed, the store is read only; ask with SELECT")
        return connection.execute(query).df()
    except duckdb.Error as error:
        # the first paragraph; then comes the query with a mark under the place
        said = " ".join(str(error).split("\n\n")[0].split())
        raise DataError(f"SQL: {said}") from error


def formatted(frame: pd.DataFrame, form: str) -> str:
    """`table`, `csv` (formulas made harmless for spreadsheets) or `json` (records), with a final newline."""
    if form == "json":
        return frame.to_json(orient="records", indent=1, date_format="iso") + "\n"
    if form == "csv":
        return frame.map(_harmless).to_csv(index=False)
    return ("no rows" if frame.empty else frame.to_string(index=False)) + "\n"


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
