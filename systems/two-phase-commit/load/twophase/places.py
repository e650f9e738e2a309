"""The nodes: connections to them, and whether they are as a run needs them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from twophase.connections import Connection

STOCK = 1000  # of each item, as schema.sql loads it
COLUMNS = {
    "public.items": "id integer, stock bigint, note text, hlc bigint, origin integer",
    "public.orders": "id text, moves jsonb",
    "replication.outbox": "xid bigint, seq bigint, queued_at timestamp with time zone, changes jsonb",
    "replication.positions": "origin integer, xid bigint, seq bigint",
}
"""Table -> its columns in order (schema.sql)."""
UNREACHABLE = (psycopg.OperationalError, PoolTimeout)
ATTEMPT_S = 5  # to connect; for a free connection of a pool


class Unfit(Exception):
    """A node is not as the run needs it; one line that says which and what is allowed."""


@dataclass
class Place:
    """One node. `number` from 0: its place in the order in which transactions visit the nodes."""

    number: int
    conninfo: str
    title: str
    lock_timeout_s: float = 10.0
    far: str = ""
    """How it is reached from where another node is, if that is not as `conninfo` says (relay.py)."""
    session: str = "twophase"
    """First part of the name of its sessions, by which a later coordinator finds and ends them."""
    sessions: WeakKeyDictionary[Any, str] = field(default_factory=WeakKeyDictionary)
    """Name of each connection that lives."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    async def connect(self, *, autocommit: bool = True, far: bool = False) -> Connection:
        """`far`: from where another node is. Raises psycopg.OperationalError."""
        connection = await Connection.connect(
            (far and self.far) or self.conninfo,
            autocommit=autocommit,
            **self.options,  # type: ignore[arg-type]
        )
        await self.prepare(connection)
        return connection

    @property
    def options(self) -> dict[str, Any]:
        waits = f"-c lock_timeout={round(1000 * self.lock_timeout_s)}"
        alive = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3, "tcp_user_timeout": 10_000}
        return {"connect_timeout": ATTEMPT_S, "options": waits, **alive}

    async def prepare(self, connection: Connection) -> None:
        """A name of its own for each session. It has no name until here, but it has done nothing either."""
        name = f"{self.session}.{self.number}.{next(self._numbers)}"
        before = connection.autocommit
        await connection.set_autocommit(True)
        await connection.execute("SELECT set_config('application_name', %s, false)", [name])
        await connection.set_autocommit(before)
        self.sessions[connection] = name

    def pool(self, size: int, *, autocommit: bool, far: bool = False, **settings: str) -> AsyncConnectionPool[Any]:
        """`far`: from where another node is; `settings`: of the sessions, as PostgreSQL names them."""
        options = self.options
        options["options"] += "".join(f" -c {name}={value}" for name, value in settings.items())
        return AsyncConnectionPool(
            (far and self.far) or self.conninfo, min_size=size, max_size=size, open=False, timeout=ATTEMPT_S,
            connection_class=Connection, configure=self.prepare, kwargs={"autocommit": autocommit, **options},
            reconnect_timeout=86_400,
        )  # fmt: skip


def places(conninfos: Sequence[str], session: str, lock_timeout_s: float = 10.0) -> list[Place]:
    """In the order given, which must be the same for all who write."""
    found = []
    for number, conninfo in enumerate(conninfos):
        parts = psycopg.conninfo.conninfo_to_dict(conninfo)
        title = f"node{number + 1} ({parts.get('host')}:{parts.get('port', 5432)})"
        found.append(Place(number, conninfo, title, lock_timeout_s, session=session))
    return found


def first_line(error: BaseException) -> str:
    return " ".join(str(error).split("\n")[0].split()) or type(error).__name__


async def examine(nodes: Sequence[Place], *, prepared: int) -> int:
    """The number of items. `prepared`: transactions that a node must be able to hold prepared at a time. Raises Unfit
    with one line for the first node that is not as it must be."""
    items: dict[str, int] = {}
    for node in nodes:
        try:
            connection = await node.connect()
        except psycopg.OperationalError as error:
            raise Unfit(f"{node.title}: cannot connect: {first_line(error)}") from None
        async with connection:
            items[node.title] = await _examine(node, connection, prepared)
    if len(set(items.values())) > 1:
        raise Unfit(f"the nodes hold different numbers of items: {', '.join(f'{t}: {n}' for t, n in items.items())}")
    return next(iter(items.values()))


async def _examine(node: Place, connection: Connection, prepared: int) -> int:
    slots = int(await scalar(connection, "SHOW max_prepared_transactions"))
    if slots < prepared:
        raise Unfit(
            f"{node.title}: max_prepared_transactions is {slots}; two-phase commit with {prepared} alter threads needs "
            f"{prepared} or more (setting node_max_prepared_transactions)"
        )
    for table, wanted in COLUMNS.items():
        found = await scalar(
            connection,
            "SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY ordinal_position) "
            "FROM information_schema.columns WHERE table_schema || '.' || table_name = %s",
            [table],
        )
        if found != wanted:
            raise Unfit(f"{node.title}: table {table} has columns ({found or 'none'}); expected ({wanted})")
    return int(await scalar(connection, "SELECT count(*) FROM items"))


async def scalar(connection: Connection, query: str, values: Sequence[Any] | Mapping[str, Any] | None = None) -> Any:
    row = await (await connection.execute(query, values)).fetchone()  # type: ignore[call-overload]
    return row[0]
