"""The same work for many things, in several processes of this machine, with a bar for what takes longer."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

SHOWN_AFTER_S = 2.0


def in_processes(do: Callable[[Item], Result], items: list[Item], jobs: int) -> Iterator[Result]:
    """`do(item)` of each item, in the items' order; `jobs` at the same time. With one job, or one item, all is done in
    this process. What `do` raises is raised here.

    `do` must leave the same behind when it is done twice, or again after it was cut off: if a worker dies (killed, out
    of memory), all that has no result yet is done in this process, one after the other."""
    done = 0
    if min(jobs, len(items)) > 1:
        # A new interpreter each: a fork would copy locks that a thread of a library holds.
        pool = ProcessPoolExecutor(min(jobs, len(items)), mp_context=get_context("spawn"))
        try:
            for result in pool.map(do, items):
                yield result
                done += 1
        except BrokenProcessPool:
            left = len(items) - done
            print(f"warning: a process died; the {left} left are done one after the other", file=sys.stderr)
        finally:
            pool.shutdown(cancel_futures=True)
    yield from map(do, items[done:])


def shown(results: Iterable[Result], of: int, what: str) -> Iterator[Result]:
    """The results as they come. On a terminal a bar on stderr says how many there are, from SHOWN_AFTER_S on."""
    if not sys.stderr.isatty():
        yield from results
        return
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False)
    task, began, coming = bar.add_task(what, total=of), time.monotonic(), iter(results)
    while True:
        timer = threading.Timer(max(0.0, began + SHOWN_AFTER_S - time.monotonic()), bar.start)
        timer.start()
        try:
            result = next(coming)
        except StopIteration:
            return
        finally:
            timer.cancel()
            timer.join()
            bar.stop()  # whoever takes the result may print
        bar.advance(task)
        yield result
