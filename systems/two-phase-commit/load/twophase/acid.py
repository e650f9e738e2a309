"""ACID: two-phase commit on every node, through PostgreSQL's PREPARE TRANSACTION.

1. The change is done on the first node, then on all others at once. The first node is the referee: two changes of one
   row meet there, and only one of them goes on to the others, so that they never wait for each other in a circle.
2. Every node prepares. If one does not, all roll back.
3. The decision to commit goes to the disk. From here on the transaction is committed, whatever happens.
4. Every node commits. What a node could not be told is told as soon as it answers again.

A node that does not answer within `vote_s` counts as one that refused.

`reached(step, node)` is called at each step; it is how tests stop a coordinator or a node at exactly this place."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg_pool import AsyncConnectionPool

from twophase.changes import MOVE, ORDER, Change
from twophase.connections import Connection
from twophase.decisions import DecisionLog
from twophase.places import UNREACHABLE, Place, first_line

FORMAT = 22_100  # of the transactions' names (X/Open XA): tells ours from those of others
VOTE_S = 15.0  # more than the 10 s that a node waits for a lock
AGAIN_S = 0.2  # between two attempts to tell a node the outcome
Reached = Callable[[str, int], None]


class Refused(Exception):
    """The change was not made, on no node; the text says why."""


@dataclass(frozen=True)
class Untold:
    """A node that does not know the outcome of a transaction yet. `session`: what may still be preparing it there."""

    name: str
    node: Place
    commits: bool
    session: str


def xid(connection: Connection, name: str) -> psycopg.Xid:
    return connection.xid(FORMAT, name, "")


class TwoPhase:
    """`run` makes changes; `tell_outcomes` runs beside it."""

    def __init__(
        self, nodes: Sequence[Place], pools: Sequence[AsyncConnectionPool[Any]], log: DecisionLog,
        reached: Reached = lambda _step, _node: None, vote_s: float = VOTE_S,
    ) -> None:  # fmt: skip
        self.nodes, self.pools, self.log, self.reached, self.vote_s = nodes, pools, log, reached, vote_s
        self.untold: list[Untold] = []
        self._numbers = itertools.count(1)

    async def run(self, change: Change) -> None:
        """Raises Refused. Returns when the change is committed on every node that can be reached."""
        name = self.log.name(next(self._numbers))
        async with AsyncExitStack() as held:
            try:
                connections = [await held.enter_async_context(pool.connection()) for pool in self.pools]
            except UNREACHABLE as error:
                raise Refused(first_line(error)) from None
            try:
                await self._work(connections, name, change)
                self.reached("work", 0)
                await self._all(self._prepare, connections)
            except psycopg.Error as error:
                await self._all(self._undo, connections, name)
                raise Refused(first_line(error)) from None
            self.reached("undecided", 0)
            await self.log.decide(name)
            self.reached("decided", 0)
            await self._all(self._commit, connections, name)

    async def _work(self, connections: Sequence[Connection], name: str, change: Change) -> None:
        await self._change(connections[0], name, change)
        done = (self._change(connection, name, change) for connection in connections[1:])
        _raise_first(await asyncio.gather(*done, return_exceptions=True))

    async def _change(self, connection: Connection, name: str, change: Change) -> None:
        async def statements() -> None:
            await connection.tpc_begin(xid(connection, name))
            async with connection.cursor() as cursor:
                await cursor.executemany(MOVE, change.rows)
                await cursor.execute(ORDER, [change.order, psycopg.types.json.Jsonb(change.moves)])

        await self._answer(connection, statements())

    async def _answer(self, connection: Connection, request: Coroutine[Any, Any, None]) -> None:
        """Raises psycopg.OperationalError if there is none in time. The connection is then cut, so that nothing waits
        for it: to cancel the request would mean to ask the node that does not answer."""
        task = asyncio.ensure_future(request)
        done, _ = await asyncio.wait({task}, timeout=self.vote_s)
        if not done:
            with contextlib.suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)
        await task

    async def _all(self, step: Callable[..., Any], connections: Sequence[Connection], *more: Any) -> None:
        """One step on all nodes at once. Waits for all of them, also if one fails; then raises the first error."""
        done = (step(node, connection, *more) for node, connection in zip(self.nodes, connections, strict=True))
        _raise_first(await asyncio.gather(*done, return_exceptions=True))

    async def _prepare(self, node: Place, connection: Connection) -> None:
        await self._answer(connection, self._asked("prepare", node, connection.tpc_prepare))
        self.reached("prepared", node.number)

    async def _asked(self, step: str, node: Place, request: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.reached(step, node.number)
        await request()

    async def _commit(self, node: Place, connection: Connection, name: str) -> None:
        try:
            await self._answer(connection, self._asked("commit", node, connection.tpc_commit))
            self.reached("committed", node.number)
        except psycopg.Error:
            await self._leave(node, connection, name, commits=True)

    async def _undo(self, node: Place, connection: Connection, name: str) -> None:
        try:
            await self._answer(connection, connection.tpc_rollback())
        except psycopg.errors.UndefinedObject:
            await connection.close()  # rolled back already; the connection does not know
        except psycopg.ProgrammingError:
            return  # it had not begun there
        except psycopg.Error:
            await self._leave(node, connection, name, commits=False)

    async def _leave(self, node: Place, connection: Connection, name: str, *, commits: bool) -> None:
        """For `tell_outcomes`. The connection goes: it may be in the middle of a statement."""
        self.untold.append(Untold(name, node, commits, node.sessions[connection]))
        await connection.close()

    async def tell_outcomes(self) -> None:
        """Goes on for ever: what nodes were not told, until they are."""
        while True:
            for left in list(self.untold):
                try:
                    connection = await left.node.connect(far=left.node.number > 0)
                    async with connection:
                        await end_sessions(connection, left.session)
                        await tell(connection, left.name, commits=left.commits)
                except psycopg.Error:
                    continue
                self.untold.remove(left)
            await asyncio.sleep(AGAIN_S)


def _raise_first(results: Sequence[Any]) -> None:
    for result in results:
        if isinstance(result, BaseException):
            raise result


async def tell(connection: Connection, name: str, *, commits: bool) -> None:
    """Ends a prepared transaction. One that is not there has ended already: it was told before, or never prepared."""
    try:
        await (connection.tpc_commit if commits else connection.tpc_rollback)(xid(connection, name))
    except psycopg.errors.UndefinedObject:
        return


async def end_sessions(connection: Connection, whose: str) -> None:
    """Ends the session of this name, or all of a coordinator, and waits until they are gone. A server goes on with a
    PREPARE TRANSACTION after its client has died: only without these sessions no transaction can become prepared any
    more. Names are compared part by part: session COORDINATOR.RUN.NODE.1 is not the beginning of ...NODE.10."""
    query = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
        "WHERE starts_with(application_name || '.', %s) AND pid <> pg_backend_pid()"
    )
    while whose:
        row = await (await connection.execute(query, [f"{whose}."])).fetchone()
        if not row or not row[0]:
            return
        await asyncio.sleep(0.05)
