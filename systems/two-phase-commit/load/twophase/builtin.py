"""Replication that PostgreSQL brings with it, between the nodes: logical replication, set up for a run.

`logical`: each node publishes what its own clients write and subscribes to all others. A commit waits for nobody.
PostgreSQL itself has no rule for two nodes that change one row: each would keep what came last, and the copies would
differ for ever. So a trigger, which fires for replicated changes only, lets the later writer win, by BASE's clock.

`quorum`: all changes are made on the first node, and the others subscribe to it. A commit waits until `standbys` of
them have applied the change (synchronous_standby_names = ANY k, synchronous_commit = remote_apply).

What a run sets up goes on after it, so that changes under way arrive; the next run, of any mode, takes it away
first."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb
from psycopg_pool import AsyncConnectionPool

from twophase.acid import Refused
from twophase.changes import MOVE, ORDER, Change
from twophase.connections import Connection
from twophase.places import UNREACHABLE, Place, Unfit, first_line, scalar

NAME = "twophase"  # publication; first part of the names of subscriptions and slots
OLDEST = {"logical": 16, "quorum": 15}  # `origin = none`; the right to set one server setting, granted by itself
START_S = 30.0  # until changes flow: a subscription that fails tries again after 5 s (wal_retrieve_retry_interval)
GONE_S = 15.0  # for a slot that its sender still holds
QUORUM_S = 15.0  # for a commit that waits for other nodes; as long as two-phase commit waits for votes
AGAIN_S = 0.5  # after a node could not be reached
LATER_WINS = """
CREATE SEQUENCE replication.late;
CREATE FUNCTION replication.later_wins() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF (NEW.hlc, NEW.origin) > (OLD.hlc, OLD.origin) THEN RETURN NEW; END IF;
  PERFORM nextval('replication.late');
  RETURN NULL;
END $$;
CREATE TRIGGER later_wins BEFORE UPDATE ON items FOR EACH ROW EXECUTE FUNCTION replication.later_wins();
ALTER TABLE items ENABLE REPLICA TRIGGER later_wins;
"""
LATE = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM replication.late"
SUBSCRIBE = (
    "CREATE SUBSCRIPTION {name} CONNECTION {conninfo} PUBLICATION {publication} "
    "WITH (slot_name = {name}, create_slot = false, copy_data = false, "
)
OPTIONS = {
    "logical": "origin = none)",  # what came from another node is not passed on: no loops
    "quorum": "synchronous_commit = on)",  # the commit that waits is durable on those nodes, too
}
BEHIND = """
SELECT application_name, pg_wal_lsn_diff(pg_current_wal_flush_lsn(), replay_lsn)::bigint,
  coalesce(extract(epoch FROM replay_lag), 0)::float8 FROM pg_stat_replication WHERE starts_with(application_name, %s)
"""


@dataclass(frozen=True)
class Lag:
    """At `t_s`: bytes of node `origin`'s log that `peer` has not applied, and the time from the flush of a change on
    `origin` to the word that `peer` applied it, of about the last one (pg_stat_replication.replay_lag)."""

    t_s: float
    origin: int
    peer: int
    behind_bytes: int | None
    lag_s: float


def title(origin: Place, peer: Place) -> str:
    """Of the subscription and its slot; it is the standby's name, too."""
    return f"{NAME}_{origin.number + 1}_{peer.number + 1}"


@contextlib.asynccontextmanager
async def at(node: Place) -> AsyncIterator[Connection]:
    """A connection whose commits wait for no other node. Raises Unfit for what the node refuses."""
    try:
        async with await node.connect() as connection:
            await connection.execute("SET synchronous_commit = local")
            yield connection
    except psycopg.Error as error:
        raise Unfit(f"{node.title}: {first_line(error)}") from None


class BuiltIn:
    """`begin` sets it up, `watch` runs beside the load, `caught_up` waits at the end."""

    def __init__(self, nodes: Sequence[Place], mode: str, standbys: int = 0) -> None:
        """`standbys`: other nodes that must have applied a change before its commit ends; 0: as many as make a majority
        with the first node."""
        self.nodes, self.mode = nodes, mode
        self.origins = list(nodes) if mode == "logical" else list(nodes[:1])
        self.pairs = [(a, b) for a in self.origins for b in nodes if a is not b]
        self.standbys = standbys or len(nodes) // 2

    async def begin(self) -> None:
        """Only after `end`. Raises Unfit with one line for what is missing."""
        await self._fit()
        await asyncio.gather(*map(self._publish, self.origins))
        passwords = {origin.number: await _password(origin) for origin in self.origins}
        await asyncio.gather(*(self._subscribe(peer, passwords) for peer in self.nodes))
        await self._until_flowing("streaming", "state = 'streaming'")
        if self.mode == "quorum":
            await self._wait_for_standbys()

    async def _fit(self) -> None:
        """Whether the nodes' settings allow it."""
        if len(self.nodes) < 2:
            raise Unfit(f"workload {self.mode} needs 2 nodes or more")
        if self.mode == "quorum" and self.standbys >= len(self.nodes):
            most = len(self.nodes) - 1
            raise Unfit(f"standbys: {self.standbys}; with {most + 1} nodes allowed are 0 to {most}")
        for node in self.nodes:
            sent, received = (sum(pair[i] is node for pair in self.pairs) for i in (0, 1))
            least = {"max_wal_senders": sent, "max_replication_slots": max(sent, received),
                     "max_logical_replication_workers": received}  # fmt: skip
            async with at(node) as connection:
                version = connection.info.server_version // 10_000
                if version < OLDEST[self.mode]:
                    raise Unfit(f"{node.title}: PostgreSQL {version}; {self.mode} needs {OLDEST[self.mode]} or newer")
                if sent and (level := await scalar(connection, "SHOW wal_level")) != "logical":
                    raise Unfit(f"{node.title}: wal_level is {level}; workload {self.mode} needs logical")
                for name, needed in least.items():
                    found = int(await scalar(connection, f"SHOW {name}"))
                    if found < needed:
                        raise Unfit(f"{node.title}: {name} is {found}; {len(self.nodes)} nodes need {needed} or more")

    async def _publish(self, origin: Place) -> None:
        """Slots are made apart from their subscriptions: two nodes that subscribe to each other at once would each wait
        for the other's transaction to end."""
        async with at(origin) as connection:
            await connection.execute(f"CREATE PUBLICATION {NAME} FOR TABLE items, orders")
            for a, peer in self.pairs:
                if a is origin:
                    slot = "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')"
                    await connection.execute(slot, [title(origin, peer)])

    async def _subscribe(self, peer: Place, passwords: dict[int, str]) -> None:
        async with at(peer) as connection:
            if self.mode == "logical":
                await connection.execute(LATER_WINS)
            for origin, b in self.pairs:
                if b is peer:
                    words = {
                        "name": sql.Identifier(title(origin, peer)), "publication": sql.Identifier(NAME),
                        "conninfo": sql.Literal(conninfo(origin, passwords[origin.number])),
                    }  # fmt: skip
                    await connection.execute(sql.SQL(SUBSCRIBE).format(**words) + sql.SQL(OPTIONS[self.mode]))

    async def _until_flowing(self, what: str, condition: str) -> None:
        """Until the origins say so of all their peers."""
        query = f"SELECT application_name FROM pg_stat_replication WHERE {condition}"  # noqa: S608 (of this file)
        limit = time.monotonic() + START_S
        for origin in self.origins:
            async with at(origin) as connection:
                while True:
                    there = {row[0] for row in await (await connection.execute(query)).fetchall()}
                    late = [b for a, b in self.pairs if a is origin and title(a, b) not in there]
                    if not late:
                        break
                    if time.monotonic() > limit:
                        raise Unfit(
                            f"{late[0].title}: its subscription to {origin.title} is not {what} after {START_S:.0f} s; "
                            f"its log says why"
                        )
                    await asyncio.sleep(0.1)

    async def _wait_for_standbys(self) -> None:
        """From here on commits on the first node wait, of sessions that do not say otherwise."""
        names = ", ".join(title(a, b) for a, b in self.pairs)
        async with at(self.nodes[0]) as connection:
            value = sql.Literal(f"ANY {self.standbys} ({names})")
            await connection.execute(sql.SQL("ALTER SYSTEM SET synchronous_standby_names = {}").format(value))
            await connection.execute("SELECT pg_reload_conf()")
        await self._until_flowing("a synchronous standby", "sync_state = 'quorum'")

    async def watch(self, told: Callable[[Lag], None]) -> None:
        """Goes on for ever: once a second, how far each node is behind each other one."""
        async with asyncio.TaskGroup() as group:
            for origin in self.origins:
                group.create_task(self._watch(origin, told))

    async def _watch(self, origin: Place, told: Callable[[Lag], None]) -> None:
        peers = {title(a, b): b.number for a, b in self.pairs if a is origin}
        while True:
            try:
                async with await origin.connect() as connection:
                    while True:
                        await asyncio.sleep(1 - time.time() % 1)
                        rows = await (await connection.execute(BEHIND, [f"{NAME}_"])).fetchall()
                        for name, behind, lag_s in rows:
                            told(Lag(time.time(), origin.number, peers[name], behind, lag_s))
            except psycopg.Error:
                await asyncio.sleep(AGAIN_S)

    async def caught_up(self, seconds: float) -> bool:
        """Waits until all that was committed by now is applied everywhere, `seconds` at most."""
        with contextlib.suppress(TimeoutError, Unfit):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*map(self._caught_up, self.origins))
                return True
        return False

    async def _caught_up(self, origin: Place) -> None:
        query = (
            "SELECT count(*) FROM pg_stat_replication "
            "WHERE starts_with(application_name, %s) AND replay_lsn >= %s::pg_lsn"
        )
        async with at(origin) as connection:
            now = await scalar(connection, "SELECT pg_current_wal_flush_lsn()::text")
            while await scalar(connection, query, [f"{NAME}_", now]) < sum(a is origin for a, _ in self.pairs):
                await asyncio.sleep(0.05)

    async def late(self) -> int:
        """Replicated rows that were not applied, since the node had later ones, of all nodes together."""
        if self.mode == "quorum":
            return 0  # one writer
        total = 0
        for node in self.nodes:
            async with at(node) as connection:
                total += await scalar(connection, LATE)
        return total


async def commit(pool: AsyncConnectionPool[Any], change: Change, wait_s: float = QUORUM_S) -> None:
    """`quorum`: on the first node. Raises Refused; then nobody knows whether the change was made, or it was made there
    and is not on enough other nodes."""
    try:
        async with asyncio.timeout(wait_s), pool.connection() as connection, connection.cursor() as cursor:
            await cursor.executemany(MOVE, change.rows)
            await cursor.execute(ORDER, [change.order, Jsonb(change.moves)])
    except TimeoutError:
        raise Refused(f"not on enough other nodes after {wait_s:.0f} s") from None
    except (psycopg.Error, *UNREACHABLE) as error:
        raise Refused(first_line(error)) from None


async def _password(node: Place) -> str:
    """What libpq took from the password file, if it needed one; the other nodes have no such file."""
    async with at(node) as connection:
        return connection.info.password or ""


def conninfo(node: Place, password: str) -> str:
    """How other nodes connect to it."""
    words = psycopg.conninfo.conninfo_to_dict(node.conninfo)
    words.pop("passfile", None)
    return psycopg.conninfo.make_conninfo(**words, **({"password": password} if password else {}))


async def end(nodes: Sequence[Place]) -> None:
    """Takes away what a run of either mode left; nothing happens where nothing is. Raises Unfit."""
    await asyncio.gather(*map(_end_subscriptions, nodes))
    await asyncio.gather(*map(_end_publication, nodes))


async def _end_subscriptions(node: Place) -> None:
    """Without a word to the nodes that it is subscribed to: they may not answer."""
    async with at(node) as connection:
        if NAME in await scalar(connection, "SHOW synchronous_standby_names"):
            await connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
            await connection.execute("SELECT pg_reload_conf()")
        query = (
            "SELECT subname FROM pg_subscription WHERE starts_with(subname, %s) "
            "AND subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        for (name,) in await (await connection.execute(query, [f"{NAME}_"])).fetchall():
            for statement in ("ALTER SUBSCRIPTION {} DISABLE", "ALTER SUBSCRIPTION {} SET (slot_name = NONE)",
                              "DROP SUBSCRIPTION {}"):  # fmt: skip
                await connection.execute(sql.SQL(statement).format(sql.Identifier(name)))


async def _end_publication(node: Place) -> None:
    query = "SELECT slot_name, active_pid FROM pg_replication_slots WHERE starts_with(slot_name, %s)"
    limit = time.monotonic() + GONE_S
    async with at(node) as connection:
        while slots := await (await connection.execute(query, [f"{NAME}_"])).fetchall():
            if time.monotonic() > limit:
                raise Unfit(f"{node.title}: replication slot {slots[0][0]} is still in use after {GONE_S:.0f} s")
            for name, sender in slots:
                if sender:
                    await connection.execute("SELECT pg_terminate_backend(%s)", [sender])
                else:
                    with contextlib.suppress(psycopg.errors.ObjectInUse, psycopg.errors.UndefinedObject):
                        await connection.execute("SELECT pg_drop_replication_slot(%s)", [name])
            await asyncio.sleep(0.05)
        await connection.execute(
            f"DROP PUBLICATION IF EXISTS {NAME}; DROP FUNCTION IF EXISTS replication.later_wins CASCADE; "
            "DROP SEQUENCE IF EXISTS replication.late"
        )
