"""The driver that a system names (`load: driver:` of its system.yaml), and what of it goes to the clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ntier_harness.drivers import Command, Driver
from ntier_harness.drivers.jmeter import JMeter, Walks
from ntier_harness.errors import RequestError

LOAD = "/opt/ntier/load"  # of a client node: files of the system's driver, without the folders they had


class Program(Protocol):
    """`load: driver:` as values. Paths are relative to the system's folder."""

    @property
    def kind(self) -> str:
        """`jmeter` or `command`."""

    @property
    def plan(self) -> str | None: ...
    @property
    def own_thread_group(self) -> bool: ...
    @property
    def command(self) -> Sequence[str]: ...
    @property
    def files(self) -> Sequence[str]: ...
    @property
    def properties(self) -> Mapping[str, Any]: ...


def files(program: Program, folder: Path) -> list[Path]:
    """What is copied to LOAD on each client: the plan, the words of the command that are files of the system, and
    `files`. Raises RequestError for one that is missing, and for two of one name."""
    named = [*program.files, *([program.plan] if program.plan else [])]
    words = [word for word in program.command if is_file(word, folder)]
    found = list(dict.fromkeys((folder / name).resolve() for name in (*named, *words)))
    for path in found:
        if not path.exists():
            raise RequestError(f"{folder / 'system.yaml'}: load.driver: {path} does not exist")
    twice = [name for name, n in Counter(path.name for path in found).items() if n > 1]
    if twice:
        raise RequestError(f"{folder / 'system.yaml'}: load.driver: two files have the name {twice[0]}")
    return found


def is_file(word: str, folder: Path) -> bool:
    """Whether a word of a command names a file of the system: a program of the node has no slash, or begins with it."""
    return "/" in word and not word.startswith("/") and (folder / word).is_file()


def make(program: Program, folder: Path, more: Mapping[str, Any] | None = None, walks: Walks | None = None) -> Driver:
    """`more`: properties of the workload, which win. A command is told its properties as parameters of the run."""
    if program.kind == "jmeter":
        assert program.plan
        plan = f"{LOAD}/{Path(program.plan).name}"
        return JMeter(plan, program.own_thread_group, dict(program.properties) | dict(more or {}), walks)
    return Command(
        tuple(f"{LOAD}/{Path(w).name}" if is_file(w, folder) else w for w in program.command),
        dict(program.properties) | dict(more or {}),
    )
