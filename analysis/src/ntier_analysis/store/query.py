"""SQL on the store: one DuckDB view per table, nothing else of the disk within reach."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ntier_analysis.errors import DataError
from ntier_analysis.places import table_files
from ntier_analysis.store.schema import TABLES
from ntier_analysis.store.tables import check_version, is_series, sweeps

MEMORY = "4GiB"
"""Memory that DuckDB may take; a query that needs more is refused, or runs more slowly."""


SERIES_AS_ROWS = """
SELECT sweep, trial, t_s, phase, node, tier, resource, metric,
  coalesce(raw, "offset" + count / CASE per WHEN 1 THEN round(interval_s * 100) WHEN 2 THEN interval_s
    ELSE coalesce(divisor_of, divisor) END * factor / scale + coalesce(rest, 0)) AS value,
  unit, source, item, interval_s
FROM (
  SELECT s.* EXCLUDE (count, level, divisors, rest, raw, phase, t_count, t_raw, interval_count, interval_raw),
    unnest(c.t) AS t_s, unnest(c.lengths) AS interval_s,
    unnest([['ramp_up', 'run', 'ramp_down', 'outside'][p + 1] FOR p IN c.phase]) AS phase,
    unnest(coalesce(s.count, s.level)) AS count, unnest(s.divisors) AS divisor_of, unnest(s.rest) AS rest,
    unnest(s.raw) AS raw
  FROM (SELECT * FROM {0}) s JOIN (
    SELECT sweep, clock, phase, t,
      CASE WHEN steps THEN [CASE WHEN i = 1 THEN interval_first ELSE t[i] - t[i - 1] END FOR i IN range(1, len(t) + 1)]
        ELSE coalesce([n / interval_divisor FOR n IN interval_count], interval_raw) END AS lengths
    FROM (SELECT *, coalesce([n / t_divisor FOR n IN t_count], t_raw) AS t FROM {0})
    WHERE t IS NOT NULL) c USING (sweep, clock))
"""
"""store/series.py as SQL."""


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
            if parquet_files := table_files(store, table):
                for path in parquet_files:
                    check_version(path)  # also since DuckDB waits for a FIFO
                connection.execute(f"CREATE VIEW {table} AS {_view(table, parquet_files, folder)}")
        for statement in duckdb.extract_statements(query):
            if statement.type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
                raise DataError(f"SQL: {statement.type.name} is not allowed, the store is read only; ask with SELECT")
        return connection.execute(query).df()
    except duckdb.Error as error:
        # the first paragraph; then comes the query with a mark under the place
        said = " ".join(str(error).split("\n\n")[0].split())
        raise DataError(f"SQL: {said}") from error


def _view(table: str, paths: list[Path], folder: str) -> str:
    """The files of a table as one; series of samples as rows."""
    as_series = {p for p in paths if table == "samples" and is_series(p)}
    parts = []
    for some, query in ((set(paths) - as_series, "SELECT * FROM {}"), (as_series, SERIES_AS_ROWS)):
        names = ", ".join("'" + f"{folder}/{table}/{p.name}".replace("'", "''") + "'" for p in sorted(some))
        parts += [query.format(f"read_parquet([{names}], union_by_name = true)")] if some else []
    return " UNION ALL BY NAME ".join(parts)


def formatted(frame: pd.DataFrame, form: str) -> str:
    """`table`, `csv` (formulas made harmless for spreadsheets) or `json` (records), with a final newline."""
    if form == "json":
        return frame.to_json(orient="records", indent=1, date_format="iso") + "\n"
    if form == "csv":
        return frame.map(_harmless).to_csv(index=False)
    return ("no rows" if frame.empty else frame.to_string(index=False)) + "\n"


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
