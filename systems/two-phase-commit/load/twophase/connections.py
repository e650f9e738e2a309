"""Connections that wait for their server only, and not for the event loop."""

from __future__ import annotations

import select
import time
from collections.abc import Generator
from typing import Any

import psycopg
from psycopg.waiting import Ready, Wait

BUSY_S = 0.005  # for which one connection may keep the others waiting

Steps = Generator[Any, Any, Any]
"""How psycopg describes a request: it yields what it waits for (Wait) and is sent what is ready (Ready)."""


class Connection(psycopg.AsyncConnection[Any]):
    """psycopg 3.2 goes through the event loop once for each statement of a pipeline, to wait until a socket can be
    written to that nearly always can: 0.14 ms of CPU a statement, instead of 0.04 (bench/driver_cost.py). With four
    nodes the driver, which is one thread, then kept alters waiting. Later releases of psycopg do as this class does."""

    async def wait(self, gen: Steps, *interval: Any, **named: Any) -> Any:
        return await super().wait(_only_long(gen, self.pgconn.socket), *interval, **named)


def _only_long(steps: Steps, socket: int) -> Steps:
    """`steps` without the waits for a socket that can be written to already."""
    began_s = time.monotonic()
    try:
        wanted = next(steps)
        while True:
            ready = _ready(socket, wanted) if wanted & Wait.W and time.monotonic() - began_s < BUSY_S else 0
            if not ready:
                ready = yield wanted
                began_s = time.monotonic()
            wanted = steps.send(ready)
    except StopIteration as done:
        return done.value


def _ready(socket: int, wanted: int) -> int:
    """What can be done now of what is wanted; 0: nothing."""
    poll = select.poll()
    poll.register(socket, (wanted & Wait.R and select.POLLIN) | (wanted & Wait.W and select.POLLOUT))
    found = poll.poll(0)
    events = found[0][1] if found else 0
    if events & ~(select.POLLIN | select.POLLOUT):  # closed, or broken: whoever reads is told what happened
        return wanted
    return (events & select.POLLIN and Ready.R) | (events & select.POLLOUT and Ready.W)
