"""The load of one trial, by the contract of drivers: select threads share a fixed number of selects, and alter threads
change data until these are done."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import json
import random
import signal
import time
import zlib
from collections import Counter
from collections.abc import Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psycopg

from twophase.acid import Refused, TwoPhase
from twophase.base import Applied, Delivery, commit
from twophase.builtin import OLDEST, BuiltIn, Lag, end
from twophase.builtin import commit as commit_with_quorum
from twophase.changes import Change, draw
from twophase.decisions import DecisionLog
from twophase.delays import Delays, delayed
from twophase.places import UNREACHABLE, Place, Unfit, examine, first_line, places, scalar
from twophase.recovery import PROMISES, Foreign, check, recover

HEARTBEAT = "t_s,users,started,completed,failed,in_flight,response_time_mean_ms,selects,alters,untold\n"
RESULTS = "timeStamp,elapsed,label,responseCode,threadName,success,failureMessage,bytes,Latency,Connect,drawn\n"
APPLIED = "t_s,origin,peer,changes,oldest_ms,late\n"
LAG = "t_s,origin,peer,behind_bytes,lag_ms\n"
OWN_ORDERS = "SELECT count(*) FROM orders WHERE starts_with(id, %s)"
SELECT = "SELECT id, stock FROM items WHERE id BETWEEN %s AND %s ORDER BY stock, id LIMIT 10"
ATTEMPTS = 10  # to find nothing in doubt, s
END_S = 2.0  # for alters that are under way when the time is over
CHECK_S = 3.0  # for the checker after the end; the harness takes 5 s without a heartbeat for a driver that hangs
DELIVERY_S = 1.0  # for changes that are still on their way then
MOST_DELAYED = 32  # alter threads: the relay can have 1,024 open files (select), two for each connection to 8 nodes
COUNT_S = 0.5  # for counting conflicts of PostgreSQL's own replication


class Work:
    """One run in a folder, which holds driver.json. Raises ValueError, KeyError or OSError where that is wrong."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.told = folder, json.loads((folder / "driver.json").read_text())
        p = self.told["parameters"]
        self.mode, self.amount = one_of(p, "mode", tuple(PROMISES)), number(p, "amount", 1)
        self.alter_threads, self.sleep_s = number(p, "alter_threads", 0), float(number(p, "sleep_s", 0, whole=False))
        self.select_sleep_s = float(number(p, "select_sleep_s", 0, whole=False))
        self.transfers, self.note_bytes = number(p, "transfers", 1), number(p, "note_bytes", 0)
        self.select_rows, self.balance = number(p, "select_rows", 1), one_of(p, "balance", ("turns", "least_pending"))
        self.standbys, self.delay_ms = number(p, "standbys", 0), float(number(p, "delay_ms", 0, whole=False))
        if self.delay_ms and self.mode in OLDEST:
            raise ValueError(
                f"delay_ms: {self.delay_ms:g}; workload {self.mode} allows 0 only: what its nodes send each other does "
                f"not pass this driver"
            )
        if self.delay_ms and self.alter_threads > MOST_DELAYED:
            raise ValueError(f"alter_threads: {self.alter_threads}; with delay_ms allowed are 0 to {MOST_DELAYED}")
        if self.told["load_model"] != "work":
            raise ValueError(f"load_model: {self.told['load_model']!r}; this driver does a fixed amount of work only")
        self.total, first = self.told["workers_total"], self.told["first_worker"]
        self.workers = range(first, first + self.told["workers"])
        self.alterers = [a for a in range(self.alter_threads) if a % self.total in self.workers]
        state = Path(p.get("state") or Path(__file__).resolve().parents[1] / "state")
        self.log = DecisionLog(state / f"client{self.told['client'] + 1}")
        self.nodes: list[Place] = []
        self.items = self.active = self.started = self.completed = self.failed = 0
        self.cut_off_alters = 0  # at the end: nobody was told what became of them
        self.done, self.pending = Counter[str](), Counter[int]()
        self.lately: list[float] = []
        self.took: dict[str, list[float]] = {"select": [], "alter": []}  # of those that succeeded, ms
        self.stale: list[float] = []  # how old what reached another node was, ms
        self.late: int | None = 0  # rows that reached a node which had later ones; None: not known
        self.builtin: BuiltIn | None = None
        self.delays: Delays | None = None
        self.over = asyncio.Event()
        self.files = {
            name: self._open(name, head)
            for name, head in (
                ("interactions.jtl.csv", RESULTS),
                ("applied.csv", APPLIED),
                ("lag.csv", LAG),
                ("progress.csv", ""),
            )
        }

    def _open(self, name: str, head: str) -> Any:
        file = (self.folder / name).open("w")
        file.write(head)
        return file

    def conninfos(self) -> list[str]:
        """Of the nodes, in the order that all coordinators must share: that of their addresses."""
        p, entry = self.told["parameters"], self.told["entry"]
        given = str(p.get("nodes") or "")
        ends = given.split(",") if given else [f"{a}:{entry['port']}" for a in entry["addresses"]]
        return [f"host={host} port={port} {p['conninfo']}" for host, _, port in (end.rpartition(":") for end in ends)]

    # ---- a run ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Raises Unfit for nodes that are not as they must be, LogError for a log that cannot be used."""
        for what in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(what, self.over.set)
        with self.log.locked():
            self.nodes = places(self.conninfos(), f"{self.log.coordinator}.{self.log.run + 1}")
            self.items = await examine(self.nodes, prepared=self.alter_threads if self.mode == "acid" else 0)
            if self.items < 2 * self.transfers:
                raise Unfit(f"transfers: {self.transfers} need {2 * self.transfers} items; the nodes hold {self.items}")
            await self._replicate()
            await self._recover()
            self.log.begin()
            if not self.delay_ms:
                await self._with_connections()
                return
            async with delayed(self.nodes, self.delay_ms) as self.delays:
                await self._with_connections()
            if (account := self.folder / "work.json").exists():
                account.write_text(
                    json.dumps(json.loads(account.read_text()) | {"delays": self.delays.told}, indent=1) + "\n"
                )
            self.delays.check_account()

    async def _replicate(self) -> None:
        """The first client takes away what an earlier run left of PostgreSQL's own replication, and sets up its own."""
        if self.told["client"] == 0:
            await end(self.nodes)
        if self.mode in OLDEST:
            self.builtin = BuiltIn(self.nodes, self.mode, self.standbys)
            if self.told["client"] == 0:
                await self.builtin.begin()

    async def _recover(self) -> None:
        """What is in doubt because of another client's coordinator, that one recovers at the same moment."""
        for left in range(ATTEMPTS - 1, -1, -1):
            try:
                await recover(self.nodes, self.log)
                return
            except Foreign:
                if not left or self.told["clients"] == 1:
                    raise
                await asyncio.sleep(1)

    async def _with_connections(self) -> None:
        async with contextlib.AsyncExitStack() as opened:
            selecting, altering = len(self.workers), max(1, len(self.alterers))
            self.readers = [node.pool(selecting, autocommit=True) for node in self.nodes]
            waits = {"synchronous_commit": "remote_apply"} if self.mode == "quorum" else {}
            acid = self.mode == "acid"  # its coordinator is where the first node is
            self.writers = [
                node.pool(altering, autocommit=False, far=acid and node.number > 0, **waits) for node in self.nodes
            ]
            for pool in (*self.readers, *self.writers):
                await opened.enter_async_context(pool)
                await pool.wait(timeout=30)
            self.two_phase = TwoPhase(self.nodes, self.writers, self.log)
            self.delivery = Delivery(self.nodes, self._applied)
            tasks = [asyncio.create_task(job) for job in (self._beats(), self._beside())]
            try:
                await first_of(self._work(), *tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                for file in self.files.values():
                    file.close()

    def _beside(self) -> Coroutine[Any, Any, None]:
        """What runs beside the load; deliveries and readings of lags on the first client."""
        if self.told["client"] == 0 and self.builtin:
            return self.builtin.watch(self._lag)
        if self.told["client"] == 0 and self.mode == "base":
            return self.delivery.run()
        return self.two_phase.tell_outcomes()

    async def _work(self) -> None:
        """Waits for the common start; ends when the selects are done, the time is over, or SIGTERM has come."""
        await until_file(self.folder / "start", self.over)
        if self.over.is_set():
            return
        start_s = int((self.folder / "start").read_text()) / 1000
        await asyncio.sleep(max(0.0, start_s - time.time()))
        limit = asyncio.get_running_loop().call_later(
            max(0.0, start_s + sum(self.told["phases"].values()) - time.time()), self.over.set
        )
        finished_s, cut_off = await self._threads(start_s)
        limit.cancel()
        self._beat()
        await self._conclude(finished_s - start_s, cut_off=cut_off)

    async def _threads(self, start_s: float) -> tuple[float, bool]:
        """-> when the selects were done, or were cut off because the time was over. An alter that is under way then may
        end."""
        async with asyncio.TaskGroup() as group:
            alters = [group.create_task(self._alters(a, start_s)) for a in self.alterers]
            await asyncio.wait([group.create_task(self._selects(w)) for w in self.workers])
            finished_s, cut_off = time.time(), self.over.is_set()
            self.over.set()
            if alters:
                _, late = await asyncio.wait(alters, timeout=END_S)
                self.cut_off_alters = len(late)
                for task in late:  # what is in doubt then, the next run recovers
                    task.cancel()
        return finished_s, cut_off

    async def _conclude(self, seconds: float, *, cut_off: bool) -> None:
        """Without a heartbeat, since the work is done; the contract allows 5 s."""
        drained = await self._drained(cut_off=cut_off)
        state: dict[str, Any] = {}
        if not cut_off:
            with contextlib.suppress(TimeoutError, *UNREACHABLE):
                async with asyncio.timeout(CHECK_S):
                    found = await check(self.nodes)
                    broken = found.broken(self.mode) + (await self._miscounted() if drained else [])
                told = {"atomic": found.atomic, "converged": found.converged, "broken": broken}
                state = asdict(found) | told
        statements = self.done["alter"] * (2 * self.transfers + 1)
        summary = {
            "mode": self.mode, "seconds": round(seconds, 3), "selects": self.done["select"], "of": self.amount,
            "alters": self.done["alter"], "statements": statements, "failed": self.failed, "drained": drained,
            "queries_per_s": round((self.done["select"] + statements) / seconds, 2), "promise": PROMISES[self.mode],
            "select_ms": spread(self.took["select"]), "alter_ms": spread(self.took["alter"]),
            "stale_ms": spread(self.stale), "late": self.late, "state": state,
        }  # fmt: skip
        (self.folder / "work.json").write_text(json.dumps(summary, indent=1) + "\n")

    async def _miscounted(self) -> list[str]:
        """Alters of this client and run that became something else than their threads were told. Of one that is refused
        only two-phase commit says that it is on no node."""
        told, found = self.done["alter"], []
        for node in self.nodes:
            async with await node.connect() as connection:
                there = await scalar(connection, OWN_ORDERS, [self.log.name(0).removesuffix("0")])
            if there < told:
                found.append(f"{node.title} lacks {told - there} committed alters")
            if self.mode == "acid" and there > told + self.cut_off_alters:
                found.append(f"{node.title} has {there - told - self.cut_off_alters} refused alters")
        return found

    async def _drained(self, *, cut_off: bool) -> bool:
        """Whether all changes have reached all nodes."""
        if self.mode == "acid":
            return True
        if cut_off:
            return False
        if self.builtin is None:
            return await self.delivery.drained(DELIVERY_S)
        drained, self.late = await self.builtin.caught_up(DELIVERY_S), None
        with contextlib.suppress(TimeoutError, Unfit):
            self.late = await asyncio.wait_for(self.builtin.late(), COUNT_S)
        return drained

    # ---- threads ----------------------------------------------------------------------------------------------------

    def stream(self, *whose: Any) -> random.Random:
        """Random numbers of one thread or one piece of work: the same however many clients share them."""
        return random.Random(":".join(map(str, (self.told["seed"], *whose))))  # noqa: S311 (a load, not a secret)

    async def _selects(self, worker: int) -> None:
        self.active += 1
        for piece in range(worker, self.amount, self.total):
            if self.over.is_set():
                break
            first = self.stream("select", piece).randint(1, max(1, self.items - self.select_rows + 1))
            await self._timed("select", "select", worker, self._select(piece, first), str(first))
            await self._pause(self.select_sleep_s)
        self.active -= 1

    async def _select(self, piece: int, first: int) -> None:
        node = self._turn(piece)
        self.pending[node] += 1
        try:
            async with self.readers[node].connection() as connection:
                rows = await (await connection.execute(SELECT, [first, first + self.select_rows - 1])).fetchall()
        except (psycopg.Error, *UNREACHABLE) as error:
            raise Refused(first_line(error)) from None
        finally:
            self.pending[node] -= 1
        if not rows:
            raise Refused(f"no item from {first} on")

    def _turn(self, piece: int) -> int:
        """The node that a select goes to. Each thread goes round, and so do the threads at each step: threads that
        kept to one node would differ if the nodes do, and the slowest would say how long a run takes."""
        if self.balance == "turns":
            return (piece // self.total + piece % self.total) % len(self.nodes)
        return min(range(len(self.nodes)), key=lambda n: (self.pending[n], (n - piece) % len(self.nodes)))

    async def _alters(self, alterer: int, start_s: float) -> None:
        draws, number_ = self.stream("alter", alterer), 0
        self.active += 1
        await self._pause(start_s + draws.uniform(0, self.sleep_s) - time.time())  # threads do not begin in step
        while not self.over.is_set():
            number_ += 1
            order = f"{self.log.name(alterer)}.{number_}"
            change = draw(draws, order, self.transfers, self.items, self.note_bytes)
            node = draws.randrange(len(self.nodes))
            drawn = f"{node}:{zlib.crc32(repr(change.moves).encode()):08x}"
            await self._timed("alter", f"alter{alterer}", alterer % self.total, self._alter(node, change), drawn)
            await self._pause(self.sleep_s)
        self.active -= 1

    async def _alter(self, node: int, change: Change) -> None:
        """`node`: where it is made, by the modes that let every node write."""
        if self.mode == "acid":
            await self.two_phase.run(change)
        elif self.mode == "quorum":
            await commit_with_quorum(self.writers[0], change)
        else:
            queued = self.mode == "base" and len(self.nodes) > 1
            await commit(self.writers[node], self.nodes[node], change, queued=queued)
            self.delivery.hint(self.nodes[node])

    async def _pause(self, seconds: float) -> None:
        """Ends early when the run does."""
        if seconds > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.over.wait(), seconds)

    async def _timed(self, label: str, thread: str, worker: int, job: Coroutine[Any, Any, None], drawn: str) -> None:
        """One interaction and its line. Alter thread A counts as worker A, modulo the workers. What a node refuses is a
        failed interaction, not an error of ours. `drawn`: tells what was drawn for it."""
        begin_s, code, message = time.time(), "200", ""
        self.started += 1
        try:
            await job
        except Refused as error:
            code, message = "refused", str(error)
        ms, ok = 1000 * (time.time() - begin_s), code == "200"
        self.failed, self.completed = self.failed + (not ok), self.completed + 1
        self.done[label] += ok
        self.lately.append(ms)
        if ok:
            self.took[label].append(ms)
        name = f"{thread}-{worker - self.workers.start + 1}"
        row = [round(1000 * begin_s), round(ms), label, code, name, str(ok).lower(), message, 0, 0, 0, drawn]
        csv.writer(self.files["interactions.jtl.csv"], lineterminator="\n").writerow(row)

    def _applied(self, done: Applied) -> None:
        self.stale.append(1000 * done.oldest_s)
        self.late = (self.late or 0) + done.late
        self.files["applied.csv"].write(
            f"{done.t_s:.3f},{done.origin + 1},{done.peer + 1},{done.changes},{1000 * done.oldest_s:.1f},{done.late}\n"
        )

    def _lag(self, seen: Lag) -> None:
        self.stale.append(1000 * seen.lag_s)
        behind = "" if seen.behind_bytes is None else seen.behind_bytes
        self.files["lag.csv"].write(
            f"{seen.t_s:.3f},{seen.origin + 1},{seen.peer + 1},{behind},{1000 * seen.lag_s:.1f}\n"
        )

    # ---- heartbeat --------------------------------------------------------------------------------------------------

    async def _beats(self) -> None:
        self.files["progress.csv"].write(HEARTBEAT)
        while not self.over.is_set():
            self._beat()
            await asyncio.sleep(1 - time.time() % 1)
        await asyncio.Event().wait()  # the last line comes when the alters have ended

    def _beat(self) -> None:
        mean = sum(self.lately) / len(self.lately) if self.lately else float("nan")
        self.lately.clear()
        counts = [self.active, self.started, self.completed, self.failed, self.started - self.completed]
        more = [self.done["select"], self.done["alter"], len(self.two_phase.untold)]
        row = [f"{time.time():.3f}", *counts, f"{mean:.1f}", *more]
        self.files["progress.csv"].write(",".join(map(str, row)) + "\n")
        for file in self.files.values():
            file.flush()


def spread(ms: list[float]) -> dict[str, float]:
    """Median and 99th percentile, ms; nothing of nothing."""
    if not ms:
        return {}
    ordered = sorted(ms)
    return {"median": round(ordered[len(ordered) // 2], 1), "p99": round(ordered[int(0.99 * len(ordered))], 1)}


def number(parameters: dict[str, Any], name: str, least: float, *, whole: bool = True) -> Any:
    value = parameters[name]
    if whole and isinstance(value, float) and value.is_integer():  # of a factor
        value = int(value)
    if type(value) not in ((int,) if whole else (int, float)) or value < least:
        raise ValueError(f"{name}: {value!r}; allowed are {'whole ' if whole else ''}numbers from {least} on")
    return value


def one_of(parameters: dict[str, Any], name: str, allowed: tuple[str, ...]) -> str:
    if parameters[name] not in allowed:
        raise ValueError(f"{name}: {parameters[name]!r}; allowed are {', '.join(allowed)}")
    return parameters[name]


async def until_file(file: Path, over: asyncio.Event) -> None:
    while not file.exists() and not over.is_set():
        await asyncio.sleep(0.02)


async def first_of(work: Coroutine[Any, Any, None], *beside: asyncio.Task[Any]) -> None:
    """Waits for the work. If what runs beside it fails, so does the work. What has nothing to do there, as the
    deliveries of a single node, ends at once."""
    task = asyncio.ensure_future(work)
    running = {task, *beside}
    while not task.done():
        ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for other in ended - {task}:
            if other.cancelled() or other.exception():
                task.cancel()
            other.result()
    await task
