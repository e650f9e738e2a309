"""Links to nodes that tests cut, break and slow down: the driver's relay in a thread, before a node of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "load")]

from clusters import Cluster  # noqa: E402
from twophase.relay import Relay, precise  # noqa: E402


class Link:
    """`node`: the cluster, as it is reached through the link."""

    def __init__(self, node: Cluster, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._relay = loop, Relay("127.0.0.1", node.port, 0)
        self.node = replace(node, port=self._do(self._relay.listen))

    def _do(self, job: Callable[..., Awaitable[Any]], *words: Any) -> Any:
        async def done() -> Any:
            return await job(*words)

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result(10)

    def cut(self) -> None:
        """Nothing goes through, and nobody is told."""
        self._loop.call_soon_threadsafe(self._relay.whole.clear)

    def mend(self) -> None:
        self._loop.call_soon_threadsafe(self._relay.whole.set)

    def slow(self, seconds: float) -> None:
        """Each direction takes so long."""
        self._relay.delay_s = seconds

    def shut(self) -> None:
        """All connections end, and new ones are refused."""

        async def job() -> None:
            self._relay.server.close()
            ended = list(self._relay.connections)
            for connection in ended:
                connection.cancel()
            await asyncio.gather(*ended, return_exceptions=True)

        self._do(job)

    def reopen(self) -> None:
        self._do(self._relay.listen, "127.0.0.1", self.node.port)


@contextlib.contextmanager
def links(*nodes: Cluster) -> Iterator[list[Link]]:
    told: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def work() -> None:
        over = asyncio.Event()
        told.set_result((asyncio.get_running_loop(), over))
        await over.wait()

    def thread() -> None:
        with asyncio.Runner(loop_factory=precise) as runner:  # at its end it cancels what is left
            runner.run(work())

    with ThreadPoolExecutor(1) as pool:
        pool.submit(thread)
        loop, over = told.result(10)
        made = [Link(node, loop) for node in nodes]
        try:
            yield made
        finally:
            for link in made:
                link.shut()  # else one that is just accepted would outlive the loop
            loop.call_soon_threadsafe(over.set)
