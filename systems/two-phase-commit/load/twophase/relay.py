"""A way to a node that takes its time: what is sent into it comes out `delay_s` later, in each direction.

It stands in for a network between places that are far apart, on machines whose kernel cannot delay packets (netem).
The bytes of a connection are delayed; opening it is not, since connections of a run are opened once.

relay.py, started by the driver as a process of its own: reads one line of JSON, {"delay_ms", "ends": [[HOST, PORT,
ADDRESS], ...]}, listens on each ADDRESS:PORT of this machine, prints one line and works until its standard input is
closed. So it ends with the driver, however that ends. Then it prints its account (`Relay.account`)."""

from __future__ import annotations

import array
import asyncio
import contextlib
import json
import resource
import selectors
import sys
from collections.abc import Iterable, Sequence

MOST_BYTES = 65_536  # read at once
MOST_CHUNKS = 256  # on their way in one direction of a connection; its sender then waits, as for a full network


class Relay:
    """To one node. `whole`: cleared, nothing goes through and nobody is told. `delay_s` may be changed at any time."""

    def __init__(self, host: str, port: int, delay_s: float) -> None:
        self.host, self.port, self.delay_s = host, port, delay_s
        self.whole = asyncio.Event()
        self.whole.set()
        self.late = array.array("f")
        """Of each piece: how much later it left than it should have, s."""
        self.connections: set[asyncio.Task[None]] = set()

    async def listen(self, address: str = "127.0.0.1", port: int = 0) -> int:
        """-> the port. Raises OSError if it is taken."""
        self.server = await asyncio.start_server(self._accept, address, port)
        return int(self.server.sockets[0].getsockname()[1])

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.connections.add(task)
        with contextlib.closing(writer), contextlib.suppress(asyncio.CancelledError):
            await self._both_ways(reader, writer)
        self.connections.discard(task)

    async def _both_ways(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            there, back = await asyncio.open_connection(self.host, self.port)
            with contextlib.closing(back):
                try:
                    async with asyncio.TaskGroup() as both:
                        both.create_task(self._one_way(reader, back))
                        both.create_task(self._one_way(there, writer))
                except* OSError:
                    pass  # one side broke: both are closed

    async def _one_way(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        """Raises OSError when either side breaks. An end that was said in order goes through in order."""
        loop, under_way = asyncio.get_running_loop(), asyncio.Queue[tuple[float, bytes]](MOST_CHUNKS)

        async def take() -> None:
            data = b"-"
            while data:
                data = await source.read(MOST_BYTES)
                await under_way.put((loop.time() + self.delay_s, data))

        async def give() -> None:
            data = b"-"
            while data:
                due, data = await under_way.get()
                if (early := due - loop.time()) > 0:
                    await asyncio.sleep(early)
                await self.whole.wait()
                self.late.append(loop.time() - due)
                target.write(data)
                await target.drain()
            target.write_eof()

        async with asyncio.TaskGroup() as both:
            both.create_task(take())
            both.create_task(give())

    @staticmethod
    def account(relays: Iterable[Relay]) -> dict[str, float]:
        """`pieces` that went through; how much too late they left, ms (median, 99th percentile); `cpu_s` of the whole
        process."""
        late = sorted(1000 * each for relay in relays for each in relay.late)
        used = resource.getrusage(resource.RUSAGE_SELF)
        account = {"pieces": len(late), "cpu_s": round(used.ru_utime + used.ru_stime, 3)}
        if late:
            account |= {"late_ms": round(late[len(late) // 2], 3), "late_p99_ms": round(late[int(0.99 * len(late))], 3)}
        return account


async def serve(delay_ms: float, ends: Sequence[tuple[str, int, str]]) -> None:
    relays = [Relay(host, port, delay_ms / 1000) for host, port, _ in ends]
    for relay, (_, port, address) in zip(relays, ends, strict=True):
        await relay.listen(address, port)
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for relay in relays:
        relay.server.close()  # one that is accepted now would outlive the loop
    print(json.dumps(Relay.account(relays)), flush=True)


def precise() -> asyncio.SelectorEventLoop:
    """A loop whose timers are good to less than 0.1 ms. Python's usual one waits in whole milliseconds (epoll)."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=precise) as runner:
        runner.run(serve(**json.loads(sys.stdin.readline())))
