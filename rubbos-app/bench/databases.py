"""What loading costs, and what the comment search costs with and without its index, on nodes of their own:

    python rubbos-app/bench/databases.py load small standard
    python rubbos-app/bench/databases.py search standard

Needs the images (`make setup`). Prints Markdown. Nothing else should run on the machine."""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "setup"))
import testnode  # noqa: E402

JAR = ROOT / "rubbos-app/target/rubbos-data.jar"
SIZE = {
    "mysql": "SELECT SUM(DATA_LENGTH + INDEX_LENGTH) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'rubbos'",
    "postgresql": "SELECT pg_database_size('rubbos')",
}
SCHEMA_ON_NODE, DATA_ON_NODE = "/mnt/schema", "/mnt/data"
TUNED = {  # for loading, as the roles do it
    "mysql": "SET GLOBAL innodb_redo_log_capacity = 1073741824; SET GLOBAL innodb_flush_log_at_trx_commit = 0; "
    "SET GLOBAL innodb_buffer_pool_size = 1073741824; SET GLOBAL local_infile = 1",
    "postgresql": "ALTER SYSTEM SET maintenance_work_mem = '256MB'; ALTER SYSTEM SET max_wal_size = '4GB'; "
    "ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf()",
}
RAW = {  # the biggest table alone, into a table without any index: the DBMS's own limit
    "mysql": """mysql --local-infile=1 rubbos -e "CREATE TABLE raw LIKE old_comments;
        ALTER TABLE raw MODIFY id INT UNSIGNED NOT NULL, DROP PRIMARY KEY{drop};
        LOAD DATA LOCAL INFILE '/mnt/data/old_comments.tsv' INTO TABLE raw" """,
    "postgresql": """runuser -u postgres -- psql -q rubbos -c 'CREATE TABLE raw (LIKE old_comments)' \\
        -c "\\\\copy raw FROM '/mnt/data/old_comments.tsv'" """,
}
WARM, TIMES = 2, 7


def generate(profile: str, folder: Path) -> float:
    began = time.monotonic()
    now = str(int(time.time()))
    options = ["--profile", profile, "--seed", "1", "--reference-time", now, "--out", str(folder)]
    subprocess.run(["java", "-Xmx2g", "-jar", str(JAR), *options], check=True, capture_output=True)
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return time.monotonic() - began


def timed(node: testnode.DatabaseNode, command: str) -> float:
    began = time.monotonic()
    node.run(["sh", "-euc", command])
    return time.monotonic() - began


def load(profiles: list[str]) -> None:
    """Rows per second of load.sh (tables, indexes, statistics) and of the bulk load of one table without indexes."""
    columns = "profile, rows, files, generated, DBMS, loaded and indexed, in the DBMS, rows/s, bulk load alone: rows/s"
    print(f"| {columns.replace(', ', ' | ')} |\n{'|---' * 9}|")
    for profile in profiles:
        with tempfile.TemporaryDirectory(prefix="ntier-bench-") as name:
            data = Path(name) / "data"
            took = generate(profile, data)
            tables = {p.stem: sum(1 for _ in p.open("rb")) for p in data.glob("*.tsv")}
            rows, size = sum(tables.values()), sum(p.stat().st_size for p in data.glob("*.tsv"))
            for dbms in ("mysql", "postgresql"):
                node = testnode.create(dbms, 31, Path(name))
                try:
                    node.mount(data, DATA_ON_NODE)
                    node.mount(ROOT / "rubbos-app/schema" / dbms, SCHEMA_ON_NODE)
                    node.sql(TUNED[dbms], "mysql" if dbms == "mysql" else "postgres")
                    run_as = "runuser -u postgres -- " if dbms == "postgresql" else ""
                    seconds = timed(node, f"{run_as}sh {SCHEMA_ON_NODE}/load.sh {DATA_ON_NODE}")
                    stored = int(node.sql(SIZE[dbms]))
                    drop = "".join(f", DROP INDEX {i}" for i in ("id", "story", "parent_id", "rating_num", "search"))
                    raw = timed(node, RAW[dbms].replace("{drop}", drop))
                finally:
                    node.delete()
                print(
                    f"| `{profile}` | {rows:,} | {size / 1e6:,.0f} MB | {took:.1f} s | {dbms} | {seconds:.1f} s "
                    f"| {stored / 1e6:,.0f} MB | {rows / seconds:,.0f} | {tables['old_comments'] / raw:,.0f} |",
                    flush=True,
                )


SEARCH = (
    "SELECT c.id, c.story_id, c.subject, c.date, users.nickname FROM old_comments c, users "
    "WHERE {subject} LIKE '{word}%' AND c.writer = users.id ORDER BY c.date DESC LIMIT 25 OFFSET {offset}"
)
EXPLAIN = {"mysql": "EXPLAIN FORMAT=TREE ", "postgresql": "EXPLAIN "}
ANALYZE = {"mysql": "EXPLAIN ANALYZE ", "postgresql": "EXPLAIN (ANALYZE, TIMING OFF) "}


def milliseconds(dbms: str, explained: str) -> float:
    """Of the whole statement, from EXPLAIN ANALYZE."""
    if dbms == "postgresql":
        return sum(float(ms) for ms in re.findall(r"(?:Planning|Execution) Time: ([\d.]+) ms", explained))
    return float(re.search(r"actual time=[\d.e+-]+\.\.([\d.e+-]+)", explained)[1])


def access(dbms: str, explained: str) -> str:
    """How the comments are found."""
    if dbms == "mysql":
        return "index" if re.search(r"on c using search", explained) else "whole table"
    return "index" if "old_comments_search" in explained else "whole table"


def search(profile: str) -> None:
    """Two conditions (word of more than ten characters, offset above zero) x index x the two forms of the statement."""
    words = (testnode.STATE / "data" / f"mysql-{profile}" / "dictionary.txt").read_text().split()
    print(f"| DBMS | index | statement | word | offset | comments | found by | median ms (of {TIMES}) |")
    print("|---|---|---|---|---|---|---|---|")
    for dbms in ("mysql", "postgresql"):
        with tempfile.TemporaryDirectory(prefix="ntier-bench-") as name:
            node = testnode.create(f"{dbms}-{profile}", 32, Path(name))
            try:
                for line in searches(node, words):
                    print(line, flush=True)
            finally:
                node.delete()


def searches(node: testnode.DatabaseNode, words: list[str]):
    dbms = node.dbms
    if dbms == "mysql":  # as the role does it: the data stay in memory
        node.sql("SET GLOBAL innodb_buffer_pool_size = 1073741824", "mysql")
    long_word = next(w for w in words if len(w) > 10)
    short_word = next(w for w in words if 5 <= len(w) <= 8)
    run_as = ["runuser", "-u", "postgres", "--"] if dbms == "postgresql" else []
    for index in ("prefix", "full"):
        node.run([*run_as, "/usr/local/lib/ntier/search-index", index])
        for form, subject in (("indexed", "c.subject"), ("mysql_5_0", "CONCAT(c.subject, '')")):
            if form == "mysql_5_0" and index == "prefix":
                continue  # no index can be used: the same again
            for word, offset in ((short_word, 0), (long_word, 0), (short_word, 25), (long_word, 25)):
                statement = SEARCH.format(subject=subject, word=word, offset=offset)
                number = node.sql(f"SELECT COUNT(*) FROM old_comments WHERE subject LIKE '{word}%'").strip()
                times = [milliseconds(dbms, node.sql(ANALYZE[dbms] + statement)) for _ in range(WARM + TIMES)][WARM:]
                how = access(dbms, node.sql(EXPLAIN[dbms] + statement))
                yield (
                    f"| {dbms} | {index} | {form} | {word} | {offset} | {number} | {how} "
                    f"| {statistics.median(times):.2f} [{min(times):.2f}, {max(times):.2f}] |"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["load", "search"])
    parser.add_argument("profiles", nargs="+")
    given = parser.parse_args()
    if given.what == "load":
        load(given.profiles)
    else:
        for profile in given.profiles:
            search(profile)


if __name__ == "__main__":
    main()
