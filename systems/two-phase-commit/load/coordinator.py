#!/usr/bin/env python3
"""Coordinator of transactions on several PostgreSQL nodes that hold the same data.

coordinator.py drive DIR     the load of one trial (docs/drivers.md); DIR holds driver.json
coordinator.py recover       ends what a coordinator left: transactions in doubt, by its decision log; replication
coordinator.py check         whether the nodes hold what a mode promises; exit code 1 if not
coordinator.py verify        a change made on each node is read on all of them
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import uuid
from pathlib import Path

import psycopg
from twophase.acid import Refused
from twophase.base import Delivery, commit
from twophase.builtin import end
from twophase.changes import draw
from twophase.decisions import DecisionLog, LogError
from twophase.drive import Work
from twophase.places import Place, Unfit, examine, first_line, places
from twophase.recovery import PROMISES, State, check, recover

WRONG, NOT_RIGHT = 2, 1
DRAIN_S = 20.0


async def recovered(nodes: list[Place], folder: Path) -> int:
    with DecisionLog(folder).locked() as log:
        print(await recover(nodes, log))
        await end(nodes)
    return 0


async def checked(nodes: list[Place], mode: str) -> int:
    state = await check(nodes)
    print(said(state))
    if broken := state.broken(mode):
        print(f"{mode} promises: {PROMISES[mode]}; but {'; '.join(broken)}")
    return NOT_RIGHT if broken else 0


async def verified(nodes: list[Place], items: int) -> int:
    await end(nodes)
    delivery, before = Delivery(nodes, lambda _: None), await check(nodes)
    task = asyncio.create_task(delivery.run())
    for node in nodes:
        async with node.pool(1, autocommit=False) as pool:
            await commit(pool, node, draw(random.Random(), f"verify.{uuid.uuid4()}", 1, items, 0))  # noqa: S311
        if not await delivery.drained(DRAIN_S):
            print(f"a change made on {node.title} is not on all nodes after {DRAIN_S:.0f} s", file=sys.stderr)
            return NOT_RIGHT
    task.cancel()
    state = await check(nodes)
    print(said(state))
    return 0 if state.converged and state.stray == before.stray else NOT_RIGHT


def said(state: State) -> str:
    differ = f"different on the nodes: {', '.join(state.differ)}" if state.differ else "the same on all nodes"
    return (
        f"{state.nodes} nodes, {state.orders} orders, {differ}; {state.waiting} changes on their way; {state.prepared} "
        f"transactions in doubt; {state.stray} items with another stock than their orders say; stock won or lost: "
        f"{state.stock}"
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("drive").add_argument("folder", type=Path)
    for name in ("recover", "check", "verify"):
        command = commands.add_parser(name)
        command.add_argument("--nodes", required=True, help="HOST:PORT,HOST:PORT: in the order that drivers use")
        command.add_argument("--conninfo", required=True, help="how to connect: dbname=shop user=... passfile=...")
        if name == "recover":
            command.add_argument("--state", type=Path, required=True, help="folder of the decision log")
        if name == "check":
            command.add_argument("--mode", choices=PROMISES, default="base", help="whose promise (base)")
    return parser.parse_args()


async def main(told: argparse.Namespace) -> int:
    if told.command == "drive":
        await Work(told.folder).run()
        return 0
    ends = (end.rpartition(":") for end in told.nodes.split(","))
    nodes = places([f"host={host} port={port} {told.conninfo}" for host, _, port in ends], told.command)
    if told.command == "recover":
        return await recovered(nodes, told.state)
    items = await examine(nodes, prepared=0)
    return await checked(nodes, told.mode) if told.command == "check" else await verified(nodes, items)


if __name__ == "__main__":
    try:
        code = asyncio.run(main(arguments()))
    except (KeyError, LogError, OSError, TypeError, Unfit, ValueError) as error:
        text = str(error) if isinstance(error, LogError | Unfit) else f"{type(error).__name__}: {error}"
        sys.exit(print(f"coordinator: {text}", file=sys.stderr) or WRONG)
    except (Refused, psycopg.Error) as error:
        sys.exit(print(f"coordinator: {first_line(error)}", file=sys.stderr) or NOT_RIGHT)
    sys.exit(code)
