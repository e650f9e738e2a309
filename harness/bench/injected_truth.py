"""Bottlenecks that were built into a real system, and what the verdict says of each with no hint.

    .venv/bin/python harness/bench/injected_truth.py --results results/injected            # all, about an hour
    .venv/bin/python harness/bench/injected_truth.py cpu_cut pool_of_one

Each case is one sweep of few loads. What is injected is part of the deployment or of the machine, never of the
analysis: `cpu_cut` and `slow_disk` give a node a smaller limit, `skewed_balancer` gives one database four times the
weight of the other in HAProxy, `cpu_hog` is another program on the database's node, the others are settings. Goes on
where it was stopped. Two cases need images that set-up makes when asked: make setup TOPO=1/1/1/2M with
MIDDLEWARE=haproxy, and with DATA=standard."""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager as Context
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import orjson
from ntier_analysis.contracts.nodes import Node
from ntier_analysis.report.words import verdict_sentence
from ntier_harness.cli import main as ntier
from ntier_harness.targets import local

HOG_S = 5.0  # on, and off
LOCK_S = 3.0  # the same
WEIGHT = 4  # of one database, where the others have 1
HOGS = 4  # busy loops: of the CPU that a database with one or two running queries would get, they take most


@contextmanager
def limited(node: str, **factors: float) -> Iterator[None]:
    """The node gets this share of a limit (cpu_cores, disk_bytes_s); the manifest says what it got."""
    right = local.granted

    def granted(given: Node) -> Node:
        changed = {k: getattr(given, k) * f for k, f in factors.items()} if given.name == node else {}
        return right(given.model_copy(update=changed))

    with patch.object(local, "granted", granted):
        yield


@contextmanager
def beside(node: str, script: str, pause_s: float) -> Iterator[None]:
    """Another program on the node, again and again; it must end by itself. The node may come and go."""
    command = ["incus", "--project", local.PROJECT, "exec", node, "--", "sh", "-c", script]
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            subprocess.run(command, check=False, capture_output=True)
            done.wait(pause_s)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def hog(node: str) -> Context:
    """Computes for HOG_S, and rests as long."""
    loops = " & ".join([f"timeout {HOG_S:g} sh -c 'while :; do :; done'"] * HOGS)
    return beside(node, f"{loops} & wait", HOG_S)


def weighted(node: str, database: str) -> Context:
    """HAProxy on the node gives the database WEIGHT times its share. Connections are ended once: they stay where they
    were opened."""
    tell = f"""import socket
def ask(text):
    link = socket.socket(socket.AF_UNIX)
    link.connect("/run/haproxy/admin.sock")
    link.sendall(text.encode() + b"\\n")
    return b"".join(iter(lambda: link.recv(4096), b"")).decode()
if not ask("get weight database/{database}").startswith("{WEIGHT} "):
    ask("set weight database/{database} {WEIGHT}")
    for line in ask("show stat database 4 -1").splitlines()[1:]:
        if line:
            ask("shutdown sessions server database/" + line.split(",")[1])"""
    return beside(node, f"exec python3 -c '{tell}'", 10.0)


def locked(node: str) -> Context:
    """Locks the tables that pages read from for LOCK_S, and rests as long: statements wait, nothing is used."""
    tables = ", ".join(f"{table} WRITE" for table in ("stories", "old_stories", "comments", "users", "categories"))
    return beside(node, f"exec mysql rubbos -e 'LOCK TABLES {tables}; DO SLEEP({LOCK_S:g})'", LOCK_S)


@dataclass(frozen=True)
class Case:
    """`truth`: what must be named (tier, resource, nodes); None: nothing that is measured, so `hidden`."""

    topology: str
    users: str
    truth: tuple[str, str, tuple[str, ...]] | None
    settings: tuple[str, ...] = ()
    injected: Callable[[], Context] = field(default=nullcontext)
    middleware: str = "shardingsphere"
    scale: float = 0.2
    data: str = "small"


CASES = {
    "nothing": Case("1/1/1/1M", "1000,6000,8000,10000", ("db", "cpu", ("db1",))),
    "cpu_cut": Case(
        "1/1/1/1M", "500,3000,4000,5000", ("app", "cpu", ("app1",)), (), lambda: limited("app1", cpu_cores=0.25)
    ),
    # Nodes of 0.8 cores: a single connection never fills them. With 0.2 cores it does, and they limit.
    "pool_of_one": Case(
        "1/1/1/1M", "200,2200,2800,3500", ("app", "pool", ("app1",)),
        ("app_pool_mode=shared", "app_pool_size=1"), scale=0.8,
    ),
    "cpu_hog": Case("1/1/1/1M", "1000,4000,5000,6000", ("db", "cpu", ("db1",)), (), lambda: hog("db1")),
    "table_lock": Case("1/1/1/1M", "500,2500,3500,4500", None, (), lambda: locked("db1")),
    # With the small profile's data they cost a database a third more, and the middleware limits still.
    "long_queries": Case(
        "1/1/1/2M", "250,2500,3500,4500", ("db", "cpu", ("db1", "db2")), ("app_comment_search=mysql_5_0",),
        data="standard",
    ),
    "skewed_balancer": Case(
        "1/1/1/2M", "1000,5500,6500,8000", ("db", "cpu", ("db1",)), ("middleware_policy=least_connections",),
        lambda: weighted("middleware1", "db1"), "haproxy",
    ),
    # A small buffer pool: its pages come from the disk. With the default one, a slow disk has the low-cost node read
    # its programs again and again, and nothing is served (nor measured) for half a minute.
    "slow_disk": Case(
        "1/1/1/2ML", "200,1000,1500,2000", ("db", "disk", ("db2",)),
        ("middleware_policy=round_robin", "db_buffer_pool_bytes=33554432"), lambda: limited("db2", disk_bytes_s=0.25),
    ),
}  # fmt: skip


def run(*arguments: str) -> None:
    """The command as a user types it. A sweep without a valid attempt of some trial ends with code 1."""
    with patch.object(sys, "argv", ["ntier", *arguments]):
        try:
            ntier()
        except SystemExit as end:
            if end.code not in (0, 1, None):
                raise


def measure(name: str, case: Case, results: Path, phases: str) -> None:
    settings = [word for pair in case.settings for word in ("--set", pair)]
    load = ["--users", case.users, "--phases", phases, "--name", f"injected-{name}", "--results", str(results)]
    system = ["--topo", case.topology, "--middleware", case.middleware, "--scale", f"{case.scale:g}"]
    system += ["--data", case.data]
    run("up", *system)
    run("deploy", *system, *settings)  # whose checks find a skewed balancer
    with case.injected():
        run("sweep", *system, *load, *settings)


def judged(name: str, case: Case, results: Path) -> dict:
    """What the verdict says of the case's sweep."""
    program = str(Path(sys.executable).with_name("ntier-analysis"))
    pattern = f"{case.topology.replace('/', '-')}.*.injected-{name}.parquet"
    stored = [p.stem for p in (results / "store/trials").glob(pattern)]
    if not stored:
        sys.exit(f"error: case {name} has no stored trial in {results}: what stopped it stands above")
    (sweep_name,) = stored
    asked = [program, "verdict", str(results / "store"), "--sweep", sweep_name, "--json"]
    (verdict,) = orjson.loads(subprocess.run(asked, check=True, capture_output=True).stdout)["sweeps"]
    return verdict


def row(name: str, case: Case, verdict: dict) -> str:
    named = {(b["tier"], b["resource"], tuple(b["nodes"])) for b in verdict["bottlenecks"]}
    right = "yes" if (named == {case.truth} if case.truth else verdict["verdict"] == "hidden") else "no"
    truth = (
        "{} {} on {}".format(*case.truth[:2], ", ".join(case.truth[2])) if case.truth else "nothing that is measured"
    )
    valid = sum(t["valid"] for t in verdict["trials"])
    said = verdict_sentence(verdict, 1.0)
    return f"| {name} | {truth} | {said} | {right} | {valid} of {len(verdict['trials'])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--results", type=Path, default=Path("results/injected"))
    parser.add_argument("--phases", default="short")
    given = parser.parse_args()
    unknown = set(given.cases) - set(CASES)
    if unknown:
        parser.error(f"unknown case {', '.join(sorted(unknown))}; there are: {', '.join(CASES)}")
    for name in given.cases:
        measure(name, CASES[name], given.results, given.phases)
    print("| injected | truth | verdict | right | valid trials |\n|---|---|---|---|--:|")
    for name in given.cases:
        print(row(name, CASES[name], judged(name, CASES[name], given.results)), flush=True)


if __name__ == "__main__":
    main()
