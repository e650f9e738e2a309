#!/usr/bin/env python3
"""kill -9 of the coordinator or a node at drawn steps of the protocol, on real PostgreSQL of this machine.

crash_matrix.py [--kills 100] [--seed 1] [--nodes 3]: kills, recovers, checks; prints a table; exit code 1 if anything
was violated. Each kill is drawn from its seed: step, how often the step is passed before, victim. The data are not
loaded anew in between, so that what one kill leaves behind meets the next one.

crash_matrix.py --log FILE --seconds 240: the same in parts. Each kill has its line in FILE; those that are there are
not made again. Exit code 3: the time was over, call it again."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
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
PAUSE_S = 0.02  # between two looks at it
LATER = "outcomes told later: "


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
class Result:
    """`resolved`: outcomes of transactions that a node learned only after the kill (in doubt there, or never prepared),
    from the coordinator that lived, or from its successor by the decision log. `lost`: changes told as committed that
    some node does not have."""

    kill: Kill
    violated: list[str] = field(default_factory=list)
    resolved: int = 0
    lost: int = 0


class Counted(list[Any]):
    """A list that knows how many were ever put into it."""

    ever = 0

    def append(self, value: Any) -> None:
        self.ever += 1
        super().append(value)


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
            two_phase.untold = untold = Counted()
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
            while untold:
                await asyncio.sleep(0.05)
            print(f"{LATER}{untold.ever}")
            if not acid and not await delivery.drained(SECONDS):
                raise RuntimeError("the queues do not get empty")
            beside.cancel()
            for pool in pools:
                await pool.close()


def start(run: Run) -> subprocess.Popen[str]:
    told = json.dumps({"kill": asdict(run.kill), "ends": run.ends, "pids": run.pids, "folder": run.folder})
    return subprocess.Popen([sys.executable, __file__, "--inside", told], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)  # fmt: skip


def carry_out(kill: Kill, nodes: list[Cluster], folder: Path) -> Result:
    """One kill, and what was violated after everything had recovered."""
    ends = [node.conninfo for node in nodes]
    run = Run(kill, ends, [node.pid for node in nodes], str(folder))
    process, died = start(run), False
    for _ in range(
        round(SECONDS / PAUSE_S)
    ):  # not by the clock: if all of this is stopped for a while, that is no fault
        if process.poll() is not None:
            break
        if kill.victim >= 0 and not died and not alive(run.pids[kill.victim]):
            died = True
            nodes[kill.victim].start()
        time.sleep(PAUSE_S)
    if process.poll() is None:
        process.kill()
        return Result(kill, [f"the coordinator did not end in {SECONDS} s: {process.communicate()[0][-500:]}"])
    said = process.communicate()[0]
    if kill.victim >= 0 and not died and not alive(run.pids[kill.victim]):
        died = True
        nodes[kill.victim].start()
    if (process.returncode == -signal.SIGKILL) != (kill.victim < 0) or (kill.victim >= 0) != died:
        return Result(kill, [f"not killed as drawn: exit code {process.returncode}, {said[-500:]}"])
    resolved = after(kill, nodes, folder) if kill.victim < 0 else int(re.findall(rf"{LATER}(\d+)", said)[-1])
    there = places(ends, "check")
    found, lost = asyncio.run(violations(kill, there, folder)), asyncio.run(missing(kill, there, folder))
    return Result(kill, found, resolved, len(set().union(*lost.values())))


def after(kill: Kill, nodes: list[Cluster], folder: Path) -> int:
    """A coordinator was killed: its successor recovers, by the program that people use; queues are delivered. -> how
    many transactions were in doubt."""
    ends = ",".join(node.end for node in nodes)
    words = ["--nodes", ends, "--conninfo", "dbname=postgres user=tester", "--state", folder / "log"]
    said = subprocess.run(
        [sys.executable, COORDINATOR, "recover", *words], check=True, stdout=subprocess.PIPE, text=True
    )
    if kill.mode == "base":
        asyncio.run(deliver(places([node.conninfo for node in nodes], "later")))
    return sum(map(int, re.findall(r"(\d+) in doubt", said.stdout)))


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
    for title, lost in (await missing(kill, nodes, folder)).items():
        found += [f"{len(lost)} changes that were told as committed are not on {title}"] if lost else []
    return found


async def missing(kill: Kill, nodes: list[Place], folder: Path) -> dict[str, set[str]]:
    """Node -> changes told as committed that it does not have."""
    told, found = set((folder / f"told.{kill.mode}").read_text().split()), {}
    for node in nodes:
        async with await node.connect() as connection:
            rows = await (await connection.execute("SELECT id FROM orders")).fetchall()
        found[node.title] = told - {row[0] for row in rows}
    return found


def drawn(kills: int, seed: int, n: int) -> list[Kill]:
    """Half of them in each mode."""
    return [
        Kill.drawn(seed + 2 * i + number, mode, n)
        for number, mode in enumerate(STEPS)
        for i in range(kills // 2 + (number < kills % 2))
    ]


def matrix(kills: Sequence[Kill], folder: Path, n: int = 3, end: float = float("inf")) -> Iterator[Result]:
    """Those of one mode share their servers. `end`: by time.monotonic(); no kill begins after it."""
    folder.mkdir(parents=True, exist_ok=True)
    for mode in STEPS:
        wanted = [kill for kill in kills if kill.mode == mode]
        if not wanted or time.monotonic() > end:
            continue
        with clusters(folder / mode, n, ITEMS) as nodes:
            for kill in wanted:
                if time.monotonic() > end:
                    return
                yield carry_out(kill, nodes, folder / mode)


def table(results: Sequence[Result]) -> str:
    lines = ["| mode | step | coordinator killed | a node killed | outcomes told later | lost commits | violations |",
             "|---|---|--:|--:|--:|--:|--:|"]  # fmt: skip
    for mode, steps in STEPS.items():
        for step, title in steps.items():
            here = [result for result in results if (result.kill.mode, result.kill.step) == (mode, step)]
            lines.append(f"| {mode} | {title} | {_counts(here)} |")
    lines.append(f"| | all {len(results)} | {_counts(results)} |")
    return "\n".join([*lines, "", *(f"{r.kill}: {text}" for r in results for text in r.violated)])


def _counts(results: Sequence[Result]) -> str:
    killed = Counter(result.kill.victim < 0 for result in results)
    sums = (
        sum(r.resolved for r in results),
        sum(r.lost for r in results),
        sum(map(bool, (r.violated for r in results))),
    )
    return " | ".join(map(str, (killed[True], killed[False], *sums)))


def done_before(log: Path | None) -> dict[Kill, Result]:
    if not log or not log.exists():
        return {}
    told = (json.loads(line) for line in log.read_text().splitlines())
    return {(kill := Kill(**t.pop("kill"))): Result(kill, **t) for t in told}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--log", type=Path, help="file with a line for each kill that was made")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no kill after so long")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.inside:
        given = json.loads(told.inside)
        asyncio.run(Run(Kill(**given["kill"]), given["ends"], given["pids"], given["folder"]).main())
        return 0
    kills, done = drawn(told.kills, told.seed, told.nodes), done_before(told.log)
    left, end = [kill for kill in kills if kill not in done], time.monotonic() + told.seconds
    with tempfile.TemporaryDirectory(prefix="two-phase-") as place:
        os.chmod(place, 0o755)
        for result in matrix(left, Path(place), told.nodes, end):
            done[result.kill] = result
            print(f"{len(done):4d}  {result.kill}  {'; '.join(result.violated) or 'right'}", flush=True)
            if told.log:
                with told.log.open("a") as file:
                    file.write(json.dumps(asdict(result)) + "\n")
    results = [done[kill] for kill in kills if kill in done]
    print(table(results))
    if any(result.violated for result in results):
        return 1
    return 0 if len(results) == len(kills) else 3


if __name__ == "__main__":
    sys.exit(main())
