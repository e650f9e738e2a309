#!/usr/bin/env python3
"""What a statement of two-phase commit costs the driver: its connections beside psycopg's own, in turns.

    driver_cost.py [--rounds 5] [--alters 100]

Runs alters of 61 statements against four PostgreSQL servers of this machine and prints CPU time of this process per
statement. The difference depends on psycopg's release: run it with the one that the nodes have, too."""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

SYSTEM = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(SYSTEM / "load"), str(SYSTEM / "tests")]

import psycopg  # noqa: E402
from clusters import Cluster, clusters  # noqa: E402
from twophase import places  # noqa: E402
from twophase.acid import TwoPhase  # noqa: E402
from twophase.changes import draw  # noqa: E402
from twophase.connections import Connection  # noqa: E402
from twophase.decisions import DecisionLog  # noqa: E402

NODES, ITEMS, TRANSFERS, THREADS = 4, 10_000, 30, 8


async def us_per_statement(made: list[Cluster], log: DecisionLog, alters: int) -> float:
    nodes = places.places([cluster.conninfo for cluster in made], "bench")
    pools = [node.pool(THREADS, autocommit=False) for node in nodes]
    for pool in pools:
        await pool.open(wait=True)
    two_phase, draws = TwoPhase(nodes, pools, log), random.Random()

    async def thread(many: int) -> None:
        for _ in range(many):
            await two_phase.run(draw(draws, f"{draws.getrandbits(64):x}", TRANSFERS, ITEMS, 100))

    await asyncio.gather(*(thread(8) for _ in range(THREADS)))  # statements are prepared from the sixth on
    before = time.process_time()
    await asyncio.gather(*(thread(-(-alters // THREADS)) for _ in range(THREADS)))
    used_s = time.process_time() - before
    for pool in pools:
        await pool.close()
    return 1e6 * used_s / (-(-alters // THREADS) * THREADS * NODES * (2 * TRANSFERS + 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--alters", type=int, default=100)
    told = parser.parse_args()
    measured: dict[type, list[float]] = {Connection: [], psycopg.AsyncConnection: []}
    with tempfile.TemporaryDirectory(prefix="driver-cost-") as folder:
        os.chmod(folder, 0o755)  # the databases' user must enter it
        with clusters(Path(folder) / "nodes", NODES, items=ITEMS) as made:
            for _ in range(told.rounds):
                for kind, of_it in measured.items():
                    with patch.object(places, "Connection", kind), DecisionLog(Path(folder) / "log").locked() as log:
                        log.begin()
                        of_it.append(asyncio.run(us_per_statement(made, log, told.alters)))
    own, plain = measured.values()
    ratios = [a / b for a, b in zip(own, plain, strict=True)]
    print(f"psycopg {psycopg.__version__} ({psycopg.pq.__impl__}), {told.rounds} rounds of {told.alters} alters")
    for name, of_it in (("the driver's connections", own), ("psycopg's", plain)):
        print(f"{name}: {statistics.median(of_it):.1f} us a statement ({min(of_it):.1f} to {max(of_it):.1f})")
    print(f"ratio: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
