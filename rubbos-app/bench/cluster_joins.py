"""What the self-joins of a thread cost MySQL Cluster, by where they are done. Needs a deployed cluster that is idle:

    ntier up --topo 1/1/1/2C --data small; ntier deploy --topo 1/1/1/2C --data small
    python rubbos-app/bench/cluster_joins.py

Prints Markdown: CPU time of one statement on all data nodes, on the SQL node, and its response time, medians of rounds
in which the ways follow each other in random order, with the smallest and the largest."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import time

SQL_NODE = "middleware1"
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")  # the nodes have this machine's kernel
STATEMENTS, ROUNDS = 40, 7
DEPTHS = (0, 3, 6, 9)
COLUMNS = ("id", "parent", "childs", "rating", "date", "subject", "comment")
BATCHED = "SET optimizer_switch = 'batched_key_access=on,mrr_cost_based=off';"
WAYS = {  # name -> (session settings, columns)
    "pushed where it can be (default)": ("SET ndb_join_pushdown = ON;", COLUMNS),
    "not pushed": ("SET ndb_join_pushdown = OFF;", COLUMNS),
    "not pushed, batched keys": (f"SET ndb_join_pushdown = OFF; {BATCHED}", COLUMNS),
    "pushed, batched keys": (f"SET ndb_join_pushdown = ON; {BATCHED}", COLUMNS),
    "pushed, without the TEXT": ("SET ndb_join_pushdown = ON;", COLUMNS[:-1]),
}
STORY = """SET @story = (SELECT story_id FROM (SELECT story_id, COUNT(*) AS n FROM comments GROUP BY story_id) AS sizes
    ORDER BY ABS(n - 35), story_id LIMIT 1);"""


def on_node(name: str, *command: str, given: str = "") -> str:
    argv = ["incus", "--project", "ntier", "exec", name, "--", *command]
    return subprocess.run(argv, check=True, capture_output=True, text=True, input=given).stdout


def statement(depth: int, columns: tuple[str, ...]) -> str:
    """That of the comments' level `depth` (CommentTree.java)."""
    last = f"t{depth}"
    tables = "".join(f", comments t{level}" for level in range(depth + 1))
    joins = "".join(f" AND t{level}.parent = t{level - 1}.id" for level in range(1, depth + 1))
    return (
        f"SELECT {', '.join(f'{last}.{column}' for column in columns)}, users.nickname FROM users{tables} "
        f"WHERE t0.parent = 0{joins} AND {last}.story_id = @story AND {last}.writer = users.id;"
    )


def used_ms(names: list[str], program: str) -> float:
    """CPU time of a program on some nodes since its start."""
    text = "\n".join(
        on_node(name, "sh", "-c", f"cat $(pgrep -x {program} | sed 's|.*|/proc/&/stat|')") for name in names
    )
    fields = [line.rpartition(")")[2].split() for line in text.splitlines() if line]
    return TICK_MS * sum(int(f[11]) + int(f[12]) for f in fields)


def measured(depth: int, way: str, data_nodes: list[str]) -> tuple[float, float, float]:
    """ms of one statement: CPU of all data nodes, CPU of the SQL node, response time."""
    settings, columns = WAYS[way]
    before = used_ms(data_nodes, "ndbmtd"), used_ms([SQL_NODE], "mysqld")
    began = time.monotonic()
    on_node(SQL_NODE, "mysql", "--batch", "rubbos", given=STORY + settings + statement(depth, columns) * STATEMENTS)
    took = time.monotonic() - began
    after = used_ms(data_nodes, "ndbmtd"), used_ms([SQL_NODE], "mysqld")
    return (after[0] - before[0]) / STATEMENTS, (after[1] - before[1]) / STATEMENTS, 1000 * took / STATEMENTS


def main() -> None:
    listed = subprocess.run(
        ["incus", "--project", "ntier", "list", "--format", "csv", "--columns", "n"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    data_nodes = [name for name in listed if name.startswith("db")]
    order = random.Random(1)
    found: dict[tuple[int, str], list[tuple[float, float, float]]] = {}
    for _ in range(ROUNDS):
        cells = [(depth, way) for depth in DEPTHS for way in WAYS]
        for cell in order.sample(cells, len(cells)):
            found.setdefault(cell, []).append(measured(*cell, data_nodes))
    print(f"{len(data_nodes)} data nodes, {ROUNDS} rounds of {STATEMENTS} statements about one story of 35 comments")
    print("| joins | way | data nodes, CPU ms | SQL node, CPU ms | response time, ms |\n|---|---|---|---|---|")
    for depth in DEPTHS:
        for way in WAYS:
            columns = zip(*found[depth, way], strict=True)
            cells = " | ".join(f"{statistics.median(c):.1f} ({min(c):.1f} to {max(c):.1f})" for c in columns)
            print(f"| {depth} | {way} | {cells} |")


if __name__ == "__main__":
    main()
