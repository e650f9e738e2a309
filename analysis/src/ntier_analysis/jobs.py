"""The same work for many things, in several processes of this machine or of a Dask cluster, with a bar for what takes
longer."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, suppress
from functools import partial
from multiprocessing import get_context
from typing import Any, TypeVar

from ntier_analysis.errors import DataError

Item = TypeVar("Item")
Result = TypeVar("Result")

SHOWN_AFTER_S = 2.0
CONNECT_S = 10


def spread(
    do: Callable[[Item], Result], items: list[Item], *, jobs: int = 1, cluster: str | None = None
) -> Iterator[Result]:
    """`in_processes`, or `on_cluster` if one is named."""
    return in_processes(do, items, jobs) if cluster is None else on_cluster(do, items, cluster)


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


def on_cluster(do: Callable[[Item], Result], items: list[Item], cluster: str) -> Iterator[Result]:
    """The same as tasks of Dask. `cluster`: address of a scheduler, or `local:N` for N processes of this machine.

    If a worker dies, another one does its tasks again, so `do` must be as `in_processes` says. Raises DataError for a
    cluster that cannot be reached or is lost, has other rules than this program, or loses a worker at the same task
    again and again (Dask's `allowed-failures`)."""
    try:
        from distributed import CancelledError, Client, LocalCluster
        from distributed.comm import CommClosedError
        from distributed.scheduler import KilledWorker
    except ModuleNotFoundError:
        raise DataError("--cluster needs Dask; install it with: pip install 'ntier-analysis[cluster]'") from None
    with ExitStack() as open_:
        workers = _local_workers(cluster)
        if workers:
            there: Any = open_.enter_context(
                LocalCluster(
                    n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=logging.ERROR
                )
            )
        else:
            there = cluster
        try:
            client = open_.enter_context(Client(there, timeout=CONNECT_S))
        except (OSError, ValueError) as error:
            raise DataError(f"--cluster {cluster}: no scheduler answers ({error or type(error).__name__})") from None
        futures = client.map(partial(_checked, do, _rules()), items, pure=False)
        try:
            for item, future in zip(items, futures, strict=True):
                try:
                    yield future.result()
                except KilledWorker:
                    raise DataError(f"--cluster {cluster}: {item}: each worker that began it died") from None
                except (CancelledError, CommClosedError, TimeoutError) as error:
                    raise DataError(f"--cluster {cluster}: lost ({error or type(error).__name__})") from None
        finally:
            with suppress(OSError, CancelledError):  # a lost cluster cancels nothing
                client.cancel(futures)


def _local_workers(cluster: str) -> int:
    """N of `local:N`; 0 for an address. Raises DataError for what is neither."""
    kind, _, rest = cluster.partition(":")
    if kind == "local" and rest.isdecimal() and 1 <= int(rest) <= 1024:
        return int(rest)
    if kind in ("tcp", "tls", "ws", "wss", "ucx") and rest.startswith("//") and len(rest) > 2:
        return 0
    raise DataError(f"--cluster {cluster}: expected tcp://HOST:PORT (or tls://...) of a scheduler, or local:N")


def _rules() -> str:
    from ntier_analysis.verdict.stored import analysis_version

    return analysis_version()


def _checked(do: Callable[[Item], Result], rules: str, item: Item) -> Result:
    """On a worker. Another version there would give other numbers."""
    if _rules() != rules:
        raise DataError(f"a worker of the cluster has the rules of {_rules()}, this program those of {rules}")
    return do(item)


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
