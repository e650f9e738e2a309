"""After a crash: every transaction that is in doubt ends as the decision log says; and whether the data are right."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from twophase.acid import FORMAT, end_sessions, tell
from twophase.base import waiting
from twophase.decisions import DecisionLog
from twophase.places import STOCK, Place, Unfit, first_line, scalar

STRAY = """
SELECT count(*) FROM (SELECT i.id FROM items i
  LEFT JOIN (SELECT (m->>0)::int AS id, sum((m->>1)::bigint) AS moved
             FROM orders, jsonb_array_elements(moves) AS m GROUP BY 1) AS o ON o.id = i.id
  WHERE i.stock <> %s + coalesce(o.moved, 0)) AS stray
"""
DIGESTS = {
    "items": "SELECT count(*), coalesce(sum(hashtext(i::text)::bigint), 0) FROM items AS i",
    "orders": "SELECT count(*), coalesce(sum(hashtext(o::text)::bigint), 0) FROM orders AS o",
}


ONE_ORDER = ("acid", "quorum")
_EACH_OTHER = "in the end all nodes hold the same; where two changed one row at once, the later writer stands"
PROMISES = {
    "acid": "a committed alter is on all nodes, as a whole; one that was refused is on none",
    "base": _EACH_OTHER,
    "logical": _EACH_OTHER,
    "quorum": "a committed alter is on the first node and as many others as asked for; in the end on all, as a whole",
}
"""Mode -> what the checker holds it to."""


class Foreign(Unfit):
    """A node holds prepared transactions of another coordinator."""


@dataclass
class Recovered:
    committed: int = 0
    rolled_back: int = 0

    def __str__(self) -> str:
        return f"{self.committed} in doubt committed, {self.rolled_back} in doubt rolled back"


async def recover(nodes: Sequence[Place], log: DecisionLog) -> Recovered:
    """Ends all transactions of this log's coordinator. The log must be locked: its coordinator does not run any more.

    Raises Unfit if a node cannot be reached, or holds prepared transactions that this log knows nothing of."""
    result = Recovered()
    for node in nodes:
        try:
            connection = await node.connect()
        except psycopg.OperationalError as error:
            raise Unfit(
                f"{node.title}: cannot connect, so nobody knows what is in doubt there: {first_line(error)}"
            ) from None
        async with connection:
            await end_sessions(connection, log.coordinator)
            foreign = 0
            for found in await connection.tpc_recover():
                if found.format_id != FORMAT or not found.gtrid.startswith(f"{log.coordinator}."):
                    foreign += 1
                    continue
                commits = found.gtrid in log.decided
                await tell(connection, found.gtrid, commits=commits)
                result.committed += commits
                result.rolled_back += not commits
            if foreign:
                raise Foreign(
                    f"{node.title}: {foreign} prepared transactions of another coordinator are in doubt; recover them "
                    f"with its decision log (this one is of {log.coordinator} in {log.folder})"
                )
    return result


@dataclass
class State:
    """What a checker found. `stock`: what the sum over all items has won or lost since they were loaded, on the first
    node where it has; `stray`: items, of all nodes together, whose stock is not what the orders there add up to."""

    nodes: int
    orders: int = 0
    differ: list[str] = field(default_factory=list)
    prepared: int = 0
    waiting: int = 0
    stray: int = 0
    stock: int = 0

    @property
    def converged(self) -> bool:
        return not self.differ and not self.waiting

    @property
    def atomic(self) -> bool:
        return self.converged and not self.prepared and not self.stray and not self.stock

    def broken(self, mode: str) -> list[str]:
        """What is not as `mode` promises (PROMISES), after the last change has arrived."""
        found = [f"{self.waiting} changes are on their way"] if self.waiting else []
        found += [f"{table} differ between the nodes" for table in self.differ]
        found += [f"{self.prepared} transactions are in doubt"] if self.prepared else []
        if mode in ONE_ORDER:
            found += [f"{self.stray} items are changed by half or twice"] if self.stray else []
            found += [f"{self.stock} pieces of stock were won or lost"] if self.stock else []
        return found


async def check(nodes: Sequence[Place]) -> State:
    """Reads all nodes, while nobody writes. Raises psycopg.OperationalError for one that cannot be reached."""
    state, digests = State(len(nodes)), []
    for found, prepared, stray, stock in await asyncio.gather(*map(_look, nodes)):
        digests.append(found)
        state.prepared += prepared
        state.stray += stray
        state.stock = state.stock or stock
    state.orders = digests[0]["orders"][0]
    state.differ = sorted({t for other in digests for t in DIGESTS if other[t] != digests[0][t]})
    state.waiting = await waiting(nodes)
    return state


async def _look(node: Place) -> tuple[dict[str, Any], int, int, int]:
    """Of one node: number and digest of each table's rows, prepared transactions, stray items, stock won or lost."""
    async with await node.connect() as connection:
        digests = {table: await (await connection.execute(query)).fetchone() for table, query in DIGESTS.items()}
        prepared = await scalar(connection, "SELECT count(*) FROM pg_prepared_xacts")
        stray = await scalar(connection, STRAY, [STOCK])
        stock = await scalar(connection, "SELECT sum(stock) - %s * count(*) FROM items", [STOCK])
    return digests, prepared, stray, int(stock)
