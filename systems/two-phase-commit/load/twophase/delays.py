"""Delays between the nodes of a run: a relay (relay.py) before each node, as a process of its own on the client, and
whether it does what was asked.

What goes from one node's place to another passes it; what stays at one place does not. With two-phase commit the
coordinator is where the first node is. With BASE each deliverer is where its change was committed. Selects and checks
are where their node is. PostgreSQL's own replication goes from node to node without this program."""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psycopg

from twophase.places import Place, Unfit

RELAY = Path(__file__).with_name("relay.py")
TRIPS = 21  # of each kind, to each node
SHARE, MS = 0.10, 0.5  # a delay may be wrong by a tenth and half a millisecond
ANSWER_S = 5.0


@dataclass
class Delays:
    """`asked_ms`: added to a round trip, twice the delay; `round_trips_ms`: node -> what was added, before the load
    began (median); `account`: of the relay, once it has ended; `ended`: how it ended, if it gave none."""

    asked_ms: float
    round_trips_ms: dict[str, float] = field(default_factory=dict)
    account: dict[str, float] = field(default_factory=dict)
    ended: str = "it ended during the run"

    @property
    def told(self) -> dict[str, Any]:
        return {"asked_ms": self.asked_ms, "round_trips_ms": self.round_trips_ms, **self.account}

    def check_round_trips(self) -> None:
        """Before the load. Raises Unfit if something else is added than was asked for."""
        for title, added in self.round_trips_ms.items():
            if abs(added - self.asked_ms) > SHARE * self.asked_ms + MS:
                raise Unfit(f"{title}: delays add {added:.2f} ms to a round trip; {self.asked_ms:g} ms were asked for")

    def check_account(self) -> None:
        """After the load. Raises Unfit if half of all pieces were later than is allowed, or nobody knows."""
        if not self.account:
            raise Unfit(f"relay: {self.ended}")
        late = self.account.get("late_ms", 0.0)
        if 2 * late > SHARE * self.asked_ms + MS:
            raise Unfit(f"the relay was late by {late:.2f} ms (median) under load; asked were {self.asked_ms / 2:g} ms")


@contextlib.asynccontextmanager
async def delayed(nodes: Sequence[Place], delay_ms: float) -> AsyncIterator[Delays]:
    """Sets `far` of all nodes. Raises Unfit if the relay cannot work, or does not delay as asked. `account` is there
    afterwards, unless the relay died."""
    ends = []
    for node in nodes:
        words = psycopg.conninfo.conninfo_to_dict(node.conninfo)
        address = f"127.0.1.{node.number + 1}"  # the same port as the node's: a password file may name it
        ends.append((str(words["host"]), int(words.get("port", 5432)), address))
        node.far = f"{node.conninfo} hostaddr={address}"
    with tempfile.TemporaryFile() as complaints:  # apart from its answers: asyncio may complain of what broke
        process = await asyncio.create_subprocess_exec(
            sys.executable, RELAY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints,
            start_new_session=True,  # a signal to the driver is not one to the relay
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"delay_ms": delay_ms, "ends": ends}).encode() + b"\n")
        try:
            if await _within(process.stdout.readline()) != b"ready\n":
                await _within(process.stdout.read())  # until it has ended
                raise Unfit(f"relay: {_last_line(complaints) or 'it ended'}")
            delays = Delays(2 * delay_ms)
            added = await asyncio.gather(*map(added_ms, nodes))
            delays.round_trips_ms = {node.title: round(ms, 3) for node, ms in zip(nodes, added, strict=True)}
            delays.check_round_trips()
            yield delays
            process.stdin.close()
            said = await _within(process.stdout.read())
            if said:
                delays.account = json.loads(said)
            elif why := _last_line(complaints):
                delays.ended += f": {why}"
        finally:
            process.stdin.close()  # which ends the relay
            await _ended(process)


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Killed only if it does not end by itself: to kill one that is just ending takes its exit status away from
    asyncio, which then complains on stderr."""
    try:
        await asyncio.wait_for(process.wait(), ANSWER_S)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _last_line(file: IO[bytes]) -> str:
    file.seek(0)
    return next((line for line in reversed(file.read().decode(errors="replace").splitlines()) if line.strip()), "")


async def _within(said: Awaitable[bytes]) -> bytes:
    try:
        return await asyncio.wait_for(said, ANSWER_S)
    except TimeoutError:
        raise Unfit(f"relay: no answer within {ANSWER_S:.0f} s") from None


async def added_ms(node: Place) -> float:
    """What the way from another node's place adds to a round trip (medians of statements in turns)."""
    async with await node.connect() as near, await node.connect(far=True) as far:
        took: dict[bool, list[float]] = {True: [], False: []}
        for i in range(2 * TRIPS):
            began = time.monotonic()
            await (far if i % 2 else near).execute("SELECT 1")
            took[bool(i % 2)].append(1000 * (time.monotonic() - began))
    return statistics.median(took[True]) - statistics.median(took[False])
