"""BASE: a change is committed on one node, and applied to the others later.

The commit puts the new rows into the node's queue (replication.outbox) in the same transaction. A deliverer for each
pair of nodes takes them from there in order, applies them at the other node together with the position it has reached,
and goes on. A crash loses nothing: what was committed is in the queue, and what was applied is in the position.

Where two nodes changed one row, the later writer wins, everywhere. *Later* is by a hybrid logical clock that each row
carries: the clock of the node that wrote, or one more than the row had, whichever is larger; then the node's number.
A change that was made after another one had arrived is later than it, whatever the clocks say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.types.json import Jsonb
from psycopg_pool import AsyncConnectionPool

from twophase.acid import Reached, Refused
from twophase.changes import ORDER, Change
from twophase.places import UNREACHABLE, Place, first_line

MOVE = """
UPDATE items SET stock = stock + %s, note = %s, origin = %s,
  hlc = greatest(hlc + 1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint << 16) WHERE id = %s
"""
QUEUE = """
INSERT INTO replication.outbox (changes) SELECT jsonb_build_object('order', %s::text, 'moves', %s::jsonb, 'rows',
  (SELECT jsonb_agg(jsonb_build_array(id, stock, note, hlc, origin) ORDER BY id) FROM items WHERE id = ANY(%s)))
"""
TAKE = """
SELECT xid, seq, changes, extract(epoch FROM clock_timestamp() - queued_at)::float8 FROM replication.outbox
WHERE (xid, seq) > (%s, %s) AND xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
ORDER BY xid, seq LIMIT %s
"""
LOCK = "SELECT id FROM items WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE"
APPLY = """
UPDATE items SET stock = c.stock, note = c.note, hlc = c.hlc, origin = c.origin
FROM (SELECT (r->>0)::int AS id, (r->>1)::bigint AS stock, r->>2 AS note, (r->>3)::bigint AS hlc, (r->>4)::int AS origin
      FROM jsonb_array_elements(%s) AS r) AS c
WHERE items.id = c.id AND (items.hlc, items.origin) < (c.hlc, c.origin)
"""
ORDERS = "INSERT INTO orders SELECT o->>0, o->1 FROM jsonb_array_elements(%s) AS o ON CONFLICT DO NOTHING"
REACHED = """
INSERT INTO replication.positions (origin, xid, seq) VALUES (%s, %s, %s)
ON CONFLICT (origin) DO UPDATE SET xid = excluded.xid, seq = excluded.seq
"""
MOST = 100  # changes applied in one transaction
IDLE_S = 0.1  # between two looks at a queue that nobody has told of
AGAIN_S = 0.5  # after a node could not be reached


@dataclass(frozen=True)
class Applied:
    """One transaction of a deliverer: `changes` of node `origin` are now on `peer`; the oldest waited `oldest_s`.
    `late`: rows that `peer` has as a later writer left them."""

    t_s: float
    origin: int
    peer: int
    changes: int
    oldest_s: float
    late: int


async def commit(
    pool: AsyncConnectionPool[Any], node: Place, change: Change, reached: Reached = lambda _step, _node: None, *,
    queued: bool = True,
) -> None:  # fmt: skip
    """Raises Refused; if the node died during the commit, nobody knows whether the change was made. Returns when the
    change is committed on its node. `queued`: for the deliverers; the server itself replicates what is not."""
    try:
        async with pool.connection() as connection:
            async with connection.cursor() as cursor:
                rows = [(difference, note, node.number + 1, item) for difference, note, item in change.rows]
                await cursor.executemany(MOVE, rows)
                moves = Jsonb(change.moves)
                await cursor.execute(ORDER, [change.order, moves])
                if queued:
                    await cursor.execute(QUEUE, [change.order, moves, [item for item, _ in change.moves]])
            reached("queued", node.number)
    except (psycopg.Error, *UNREACHABLE) as error:
        raise Refused(first_line(error)) from None
    reached("local", node.number)


class Delivery:
    """Deliverers of all pairs of nodes. `told`: what each transaction of theirs did."""

    def __init__(
        self, nodes: Sequence[Place], told: Callable[[Applied], None], reached: Reached = lambda _step, _node: None
    ) -> None:
        self.nodes, self.told, self.reached = nodes, told, reached
        self.pairs = [(a, b) for a in nodes for b in nodes if a is not b]
        self._fresh = {(a.number, b.number): asyncio.Event() for a, b in self.pairs}
        self._positions: dict[tuple[int, int], tuple[int, int]] = {}

    def hint(self, origin: Place) -> None:
        """A change was committed there; nobody needs to wait for the next look."""
        for (a, _), event in self._fresh.items():
            if a == origin.number:
                event.set()

    async def run(self) -> None:
        """Goes on for ever. A node that cannot be reached is tried again."""
        async with asyncio.TaskGroup() as group:
            for origin, peer in self.pairs:
                group.create_task(self._deliver(origin, peer))

    async def _deliver(self, origin: Place, peer: Place) -> None:
        event = self._fresh[origin.number, peer.number]
        while True:
            try:
                source, target = await origin.connect(), await peer.connect(autocommit=False, far=True)
                async with source, target:
                    position = await self._position(origin, peer, target)
                    while True:
                        event.clear()
                        position, more = await self._batch(origin, peer, source, target, position)
                        if not more:
                            await _either(event, IDLE_S)
            except psycopg.Error:
                await asyncio.sleep(AGAIN_S)

    async def _position(self, origin: Place, peer: Place, target: Any) -> tuple[int, int]:
        query = "SELECT xid, seq FROM replication.positions WHERE origin = %s"
        row = await (await target.execute(query, [origin.number])).fetchone()
        await target.commit()
        self._positions[origin.number, peer.number] = row or (0, 0)
        return row or (0, 0)

    async def _batch(
        self, origin: Place, peer: Place, source: Any, target: Any, position: tuple[int, int]
    ) -> tuple[tuple[int, int], bool]:
        """The next changes, in one transaction. Returns the position then, and whether there may be more."""
        taken = await (await source.execute(TAKE, [*position, MOST])).fetchall()
        if not taken:
            return position, False
        self.reached("taken", peer.number)
        began = time.monotonic()
        late = await self._apply(origin, target, taken)
        self.reached("applied", peer.number)
        oldest_s = max(waited for *_, waited in taken) + time.monotonic() - began
        self.told(Applied(time.time(), origin.number, peer.number, len(taken), oldest_s, late))
        position = taken[-1][:2]
        self._positions[origin.number, peer.number] = position
        await self._forget(origin, source)
        return position, len(taken) == MOST

    async def _apply(self, origin: Place, target: Any, taken: Sequence[Any]) -> int:
        """-> rows that were not applied, since the node has later ones."""
        latest: dict[int, list[Any]] = {}
        for _, _, changes, _ in taken:
            for row in changes["rows"]:
                if row[0] not in latest or (row[3], row[4]) > (latest[row[0]][3], latest[row[0]][4]):
                    latest[row[0]] = row
        orders = [[changes["order"], changes["moves"]] for _, _, changes, _ in taken]
        async with target.pipeline():
            await target.execute(LOCK, [sorted(latest)])
            applied = await target.execute(APPLY, [Jsonb(list(latest.values()))])
            await target.execute(ORDERS, [Jsonb(orders)])
            await target.execute(REACHED, [origin.number, *taken[-1][:2]])
            await target.commit()
        return len(latest) - applied.rowcount

    async def _forget(self, origin: Place, source: Any) -> None:
        """Removes from the queue what every other node has; with no hurry, since doing it twice does no harm."""
        known = [self._positions.get((a.number, b.number)) for a, b in self.pairs if a is origin]
        if None in known:
            return
        async with source.transaction():
            await source.execute("SET LOCAL synchronous_commit = off")
            await source.execute("DELETE FROM replication.outbox WHERE (xid, seq) <= (%s, %s)", min(known))

    async def drained(self, seconds: float) -> bool:
        """Waits until every queue is empty, `seconds` at most. Only after the last change was committed."""
        end = time.monotonic() + seconds
        while True:
            try:
                if not await waiting(self.nodes):
                    return True
            except psycopg.Error:
                pass
            if time.monotonic() > end:
                return False
            await asyncio.sleep(0.2)


async def waiting(nodes: Sequence[Place]) -> int:
    """Changes in the queues that some node does not have yet. Raises psycopg.OperationalError."""
    total, positions, queues = 0, {}, {}
    for node in nodes:
        async with await node.connect() as connection:
            read = await connection.execute("SELECT xid, seq FROM replication.outbox")
            queues[node.number] = await read.fetchall()
            read = await connection.execute("SELECT origin, xid, seq FROM replication.positions")
            positions[node.number] = {origin: (xid, seq) for origin, xid, seq in await read.fetchall()}
    for origin, queue in queues.items():
        reached = [p.get(origin, (0, 0)) for peer, p in positions.items() if peer != origin]
        total += sum(any(place > there for there in reached) for place in queue)
    return total


async def _either(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return
