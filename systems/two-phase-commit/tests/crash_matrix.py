#!/usr/bin/env python3
"""kill -9 of the coordinator or a node at drawn steps of the protocol, on real PostgreSQL of this machine.

crash_matrix.py [--kills 100] [--seed 1] [--nodes 3]: kills, recovers, checks; prints a table; exit code 1 if anything
was violated. Each kill is drawn from its seed: step, how often the step is passed before, victim. The data are not
loaded anew in between, so that what one kill leaves behind meets the next one."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "load")]

from clusters import Cluster, alive, clusters, kill_cluster  # noqa: E402
from twophase.acid import Refused, TwoPhase  # noqa: E402
from twophase.base import Delivery, commit  # noqa: E402
from twophase.changes import draw  # noqa: E402
from twophase.decisions import DecisionLog  # noqa: E402
from twophase.places import Place, places  # noqa: E402
from twophase.recovery import State, check, recover  # noqa: E402

COORDINATOR = HERE.parent / "load/coordinator.py"
ITEMS, TRANSFERS, WORKERS = 200, 3, 4
CHANGES = 12  # of each worker
STEPS = {
    "acid": {
        "work": "before prepare",
        "prepare": "between the requests to prepare",
        "prepared": "between the answers to them",
        "undecided": "all prepared, not decided",
        "decided": "after the decision",
        "commit": "between the requests to commit",
        "committed": "between the answers to them",
    },
    "base": {
        "queued": "before the local commit",
        "local": "after the local commit",
        "taken": "taken from the queue",
        "applied": "applied, queue not told",
    },
}
PASSES = {"work": 20, "prepare": 60, "prepared": 60, "undecided": 20, "decided": 20, "commit": 60, "committed": 60,
          "queued": 20, "local": 20, "taken": 10, "applied": 10}  # fmt: skip
"""How often each step is passed at least in one run of CHANGES; the kill is drawn among these."""
SECONDS = 60  # for one run; it takes about one


@dataclass(frozen=True)
class Kill:
    """`passes`: of the step before the kill; `victim`: -1 the coordinator, else the node's number."""

    seed: int
    mode: str
    step: str
    passes: int
    victim: int

    @staticmethod
    def drawn(seed: int, mode: str, nodes: int) -> Kill:
        draws = random.Random(seed)
        step = draws.choice(list(STEPS[mode]))
        return Kill(seed, mode, step, draws.randint(1, PASSES[step]), draws.choice([-1, -1, *range(nodes)]))

    @property
    def who(self) -> str:
        return "coordinator" if self.victim < 0 else f"node{self.victim + 1}"


@dataclass
class Run:
    """One coordinator with its changes, in a process of its own. Each change that its caller was told of is in
    `told_file`, on the disk."""

    kill: Kill
    ends: list[str]
    pids: list[int]
    folder: str

    @property
    def told_file(self) -> Path:
        return Path(self.folder) / f"told.{self.kill.mode}"

    def reached(self, step: str, _node: int) -> None:
        if step != self.kill.step or next(self.passes) != self.kill.passes:
            return
        if self.kill.victim < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        kill_cluster(self.pids[self.kill.victim])

    async def main(self) -> None:
        self.passes = itertools.count(1)
        log = DecisionLog(Path(self.folder) / "log")
        with log.locked():
            nodes = places(self.ends, f"{log.coordinator}.{log.run + 1}", lock_timeout_s=3)
            await recover(nodes, log)
            log.begin()
            pools = [node.pool(WORKERS, autocommit=False) for node in nodes]
            for pool in pools:
                await pool.open(wait=True)
            two_phase = TwoPhase(nodes, pools, log, self.reached)
            delivery = Delivery(nodes, lambda _: None, self.reached)
            acid = self.kill.mode == "acid"
            beside = asyncio.create_task(two_phase.tell_outcomes() if acid else delivery.run())
            self.told = os.open(self.told_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

            async def one(worker: int) -> None:
                draws = random.Random(f"{self.kill.seed}.{worker}")
                for number in range(CHANGES):
                    order = f"{log.name(worker)}.{number}"
                    change = draw(draws, order, TRANSFERS, ITEMS, 8)
                    try:
                        if acid:
                            await two_phase.run(change)
                        else:
                            node = draws.randrange(len(nodes))
                            await commit(pools[node], nodes[node], change, self.reached)
                            delivery.hint(nodes[node])
                    except Refused:
                        await asyncio.sleep(0.1)
                        continue
                    os.write(self.told, f"{order}\n".encode())

            await asyncio.gather(*map(one, range(WORKERS)))
            while two_phase.untold:
                await asyncio.sleep(0.05)
            if not acid and not await delivery.drained(SECONDS):
                raise RuntimeError("the queues do not get empty")
            beside.cancel()
            for pool in pools:
                await pool.close()


def start(run: Run) -> subprocess.Popen[str]:
    told = json.dumps({"kill": asdict(run.kill), "ends": run.ends, "pids": run.pids, "folder": run.folder})
    return subprocess.Popen([sys.executable, __file__, "--inside", told], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)  # fmt: skip


def carry_out(kill: Kill, nodes: list[Cluster], folder: Path) -> list[str]:
    """One kill, and what was violated after everything had recovered; empty: nothing."""
    ends = [node.conninfo for node in nodes]
    run = Run(kill, ends, [node.pid for node in nodes], str(folder))
    process, end, died = start(run), time.monotonic() + SECONDS, False
    while process.poll() is None and time.monotonic() < end:
        if kill.victim >= 0 and not died and not alive(run.pids[kill.victim]):
            died = True
            nodes[kill.victim].start()
        time.sleep(0.02)
    if process.poll() is None:
        process.kill()
        return [f"the coordinator did not end in {SECONDS} s: {process.communicate()[0][-500:]}"]
    said = process.communicate()[0]
    if kill.victim >= 0 and not died and not alive(run.pids[kill.victim]):
        died = True
        nodes[kill.victim].start()
    if (process.returncode == -signal.SIGKILL) != (kill.victim < 0) or (kill.victim >= 0) != died:
        return [f"not killed as drawn: exit code {process.returncode}, {said[-500:]}"]
    if kill.victim < 0:
        after(kill, nodes, folder)
    return asyncio.run(violations(kill, places(ends, "check"), folder))


def after(kill: Kill, nodes: list[Cluster], folder: Path) -> None:
    """A coordinator was killed: its successor recovers, by the program that people use; queues are delivered."""
    ends = ",".join(node.end for node in nodes)
    words = ["--nodes", ends, "--conninfo", "dbname=postgres user=tester", "--state", folder / "log"]
    subprocess.run([sys.executable, COORDINATOR, "recover", *words], check=True, stdout=subprocess.DEVNULL)
    if kill.mode == "base":
        asyncio.run(deliver(places([node.conninfo for node in nodes], "later")))


async def deliver(nodes: list[Place]) -> None:
    delivery = Delivery(nodes, lambda _: None)
    task = asyncio.create_task(delivery.run())
    await delivery.drained(SECONDS)
    task.cancel()


async def violations(kill: Kill, nodes: list[Place], folder: Path) -> list[str]:
    state: State = await check(nodes)
    found = [] if state.converged else [f"the nodes differ: {state.differ}, {state.waiting} changes on their way"]
    if state.prepared:
        found.append(f"{state.prepared} transactions are still in doubt")
    if kill.mode == "acid" and (state.stray or state.stock):
        found.append(f"{state.stray} items are changed by half, {state.stock} pieces of stock won or lost")
    told = set((folder / f"told.{kill.mode}").read_text().split())
    for node in nodes:
        async with await node.connect() as connection:
            there = {row[0] for row in await (await connection.execute("SELECT id FROM orders")).fetchall()}
        if lost := told - there:
            found.append(f"{len(lost)} changes that were told as committed are not on {node.title}")
    return found


def matrix(kills: int, seed: int, folder: Path, n: int = 3, say: Any = lambda _: None) -> tuple[list[Kill], list[str]]:
    """Half of the kills in each mode. -> the kills, and all that was violated, each with the kill before it."""
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Kill] = []
    broken: list[str] = []
    for number, mode in enumerate(STEPS):
        with clusters(folder / mode, n, ITEMS) as nodes:
            for i in range(kills // 2 + (number < kills % 2)):
                kill = Kill.drawn(seed + 2 * i + number, mode, n)
                found = carry_out(kill, nodes, folder / mode)
                say(f"{len(made) + 1:4d}  {kill}  {'; '.join(found) or 'right'}")
                broken += [f"{kill}: {text}" for text in found]
                made.append(kill)
    return made, broken


def table(kills: list[Kill], broken: list[str]) -> str:
    counts = Counter((kill.mode, kill.step, "coordinator" if kill.victim < 0 else "node") for kill in kills)
    lines = ["| mode | killed | coordinator | a node |", "|---|---|--:|--:|"]
    for mode, steps in STEPS.items():
        for step, title in steps.items():
            lines.append(f"| {mode} | {title} | {counts[mode, step, 'coordinator']} | {counts[mode, step, 'node']} |")
    return "\n".join([*lines, "", f"{len(kills)} kills, {len(broken)} violations", *broken])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.inside:
        given = json.loads(told.inside)
        asyncio.run(Run(Kill(**given["kill"]), given["ends"], given["pids"], given["folder"]).main())
        return 0
    with tempfile.TemporaryDirectory(prefix="two-phase-") as place:
        os.chmod(place, 0o755)
        kills, broken = matrix(told.kills, told.seed, Path(place), told.nodes, lambda text: print(text, flush=True))
    print(table(kills, broken))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
