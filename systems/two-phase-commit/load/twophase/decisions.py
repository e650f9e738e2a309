"""The decision log: which two-phase commits were decided. What is not in it was not decided, and is rolled back
(presumed abort)."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path

HEAD = "twophase 1"


class LogError(Exception):
    """The log cannot be used; the text says which file and why."""


class LogLost(Exception):
    """The disk failed under a coordinator that runs."""


def _line(text: str) -> str:
    return f"{text} {zlib.crc32(text.encode()):08x}\n"


def _lines(file: Path) -> list[str]:
    """Whole records of a log. A last one that is cut off was never on the disk as far as anybody knows, so nobody acted
    on it. Raises LogError for a broken record before others."""
    found = file.read_text(errors="replace").split("\n")
    whole = []
    for number, line in enumerate(found, 1):
        text, _, check = line.rpartition(" ")
        if f"{line}\n" == _line(text) and check:
            whole.append(text)
        elif number < len(found) - 1:
            raise LogError(f"{file}, line {number}: the record is broken; nobody can say what was decided after it")
    return whole


class DecisionLog:
    """`begin` opens it for one coordinator at a time; `decide` returns when the decision is on the disk.

    Transactions are named `COORDINATOR.RUN.NUMBER`: the coordinator's name is drawn once and kept in the log's head,
    and each `begin` starts another run, so that no name is ever used twice."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "decisions.log"
        self.coordinator, self.run, self.decided = "", 0, set[str]()
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []
        self._one_flush = asyncio.Lock()
        self._descriptor = -1
        self._lost: LogLost | None = None

    @contextlib.contextmanager
    def locked(self) -> Iterator[DecisionLog]:
        """Reads the log and keeps others out. Raises LogError if another coordinator has it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LogError(f"{self.folder}: another coordinator uses this decision log") from None
            self._read()
            yield self

    def _read(self) -> None:
        lines = _lines(self.file) if self.file.exists() else []
        if not lines:
            self.coordinator = f"c{uuid.uuid4().hex[:12]}"
            return
        head = lines[0].split(" ")
        if lines[0] != f"{HEAD} {head[-2]} {head[-1]}":
            raise LogError(f"{self.file}, line 1: expected '{HEAD} NAME RUN', found {lines[0]!r}")
        self.coordinator, self.run, self.decided = head[-2], int(head[-1]), set(lines[1:])

    def begin(self) -> None:
        """A new run with an empty log. Only after every transaction of the runs before has ended everywhere."""
        self.run, self.decided = self.run + 1, set()
        new = self.file.with_suffix(".new")
        new.write_text(_line(f"{HEAD} {self.coordinator} {self.run}"))
        descriptor = os.open(new, os.O_WRONLY | os.O_APPEND)
        os.fsync(descriptor)
        os.replace(new, self.file)
        _sync_folder(self.folder)
        self._descriptor = descriptor

    def name(self, number: int) -> str:
        return f"{self.coordinator}.{self.run}.{number}"

    async def decide(self, transaction: str) -> None:
        """To commit. Decisions that come while the disk is busy go with the next flush, all in one. Raises LogLost if
        the disk fails: then nobody knows what is on it, and the coordinator must end and leave it to recovery."""
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((transaction, done))
        async with self._one_flush:
            if not done.done():
                await self._flush_all()
        done.result()

    async def _flush_all(self) -> None:
        """All that wait are told, also that the disk failed. Nothing is written after that: only the last record may be
        cut off."""
        batch, self._waiting = self._waiting, []
        try:
            if not self._lost:
                await asyncio.to_thread(self._flush, [name for name, _ in batch])
        except LogLost as error:
            self._lost = error
        if self._lost:
            for _, told in batch:
                told.set_exception(self._lost)
            return
        for name, told in batch:
            self.decided.add(name)
            told.set_result(None)

    def _flush(self, names: list[str]) -> None:
        try:
            os.write(self._descriptor, "".join(map(_line, names)).encode())
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise LogLost(f"{self.file}: {error.strerror}; what is in doubt now is left to recovery") from None


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
