"""Gatling's simulation.log in its binary form, from 3.13 on (big-endian, no padding):

    0 RUN      version  class  start: long  description  scenarios: [string]  assertions: [length, bytes]
    1 REQUEST  groups: [cached]  name: cached  start  end  ok: byte  message: cached
    2 USER     scenario: int  begins: byte  time
    3 GROUP    groups: [cached]  start  end  cumulated  ok: byte
    4 ERROR    message: cached  time

A list is a count (int) and its items. A string is the number of its bytes (int), these, and a byte: 0 for ISO 8859-1,
1 for UTF-16; an empty one is the number alone. A cached string is a number (int) and the string, the next time the
number's negative alone. Times are ms (int) after the run's start, which is ms since 1970.

Source: LogFileDataWriter.scala of 3.13.0 to 3.15.1, and logs of the versions in docs/how-to/imports.md."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import BinaryIO

from ntier_analysis.contracts.files import LINE_BYTES, stream
from ntier_analysis.errors import DataError
from ntier_analysis.parsers.gatling_events import EPOCH_MS, Events

RUN, REQUEST, USER, GROUP, ERROR = range(5)
ITEMS = 10_000
"""Scenarios, assertions, or groups within each other that a record has at most."""
SEEN = (3, 15)
"""The latest version whose form is known: a later one's log is read alike, and the reader of the report is told."""


class _Torn(Exception):
    """The file ends within a record."""


class _Log:
    """The file's values in turn, with the byte at which each begins."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self._file, self.at = path, file, 0
        self._cached: dict[int, str] = {}

    def take(self, n: int) -> bytes:
        got = self._file.read(n)
        if len(got) < n:
            raise _Torn
        self.at += n
        return got

    def header(self) -> int | None:
        """Kind of the next record; None at the end."""
        got = self._file.read(1)
        self.at += len(got)
        return got[0] if got else None

    def int32(self) -> int:
        return struct.unpack(">i", self.take(4))[0]

    def int64(self) -> int:
        return struct.unpack(">q", self.take(8))[0]

    def flag(self) -> bool:
        value = self.take(1)[0]
        if value > 1:
            raise self.wrong(f"{value}", "0 or 1", 1)
        return value == 1

    def count(self, most: int) -> int:
        n = self.int32()
        if not 0 <= n <= most:
            raise self.wrong(f"a length of {n}", f"0 to {most:,}", 4)
        return n

    def string(self) -> str:
        n = self.count(LINE_BYTES)
        if not n:
            return ""
        raw, coder = self.take(n), self.take(1)[0]
        if coder > 1:
            raise self.wrong(f"a coding of {coder}", "0 or 1", 1)
        # UTF-16 has the byte order of the machine that wrote it; that of all but s390x is little
        return raw.decode("utf-16-le" if coder else "latin-1", "replace")

    def cached(self) -> str:
        number = self.int32()
        if number > 0:
            self._cached[number] = self.string()
        elif -number not in self._cached:
            raise self.wrong(f"a string {number}", "one that was there before", 4)
        return self._cached[abs(number)]

    def wrong(self, said: str, expected: str, length: int) -> DataError:
        return DataError(f"{self.path}: byte {self.at - length} is {said}, expected {expected}: no log of Gatling")


def binary(path: Path) -> Events:
    """Raises DataError naming file and byte."""
    with stream(path) as file:
        log, events = _Log(path, file), Events(path)
        begun = log.at
        try:
            log.header()
            base, version = _run(log)
            begun = log.at
            while (kind := log.header()) is not None:
                _record(log, kind, base, events)
                begun = log.at
        except _Torn:
            raise DataError(f"{path}: ends within {_torn_at(path, begun)}") from None
    told = re.match(r"(\d+)\.(\d+)", version)
    if not told or (int(told[1]), int(told[2])) > SEEN:
        events.notes.append(f"whether the log of Gatling {version[:40]!r} has the form of those up to 3.15")
    return events


def _torn_at(path: Path, begun: int) -> str:
    """In which record, and what to do."""
    if not begun:
        return "its first record, which tells when the run began: nothing of it can be used"
    unpacked = " of the unpacked file" if path.suffix in (".zst", ".gz") else ""
    return (
        f"the record that begins at byte {begun}{unpacked}, as that of a run that was killed; leave it out: "
        f"head -c {begun}{unpacked}"
    )


def _run(log: _Log) -> tuple[int, str]:
    """Start of the run, ms since 1970, and Gatling's version."""
    version = log.string()
    log.string()
    start = log.int64()
    if not EPOCH_MS[0] < start < EPOCH_MS[1]:
        raise log.wrong(f"a start of {start}", "milliseconds since 1970", 8)
    log.string()
    for _ in range(log.count(ITEMS)):
        log.string()
    for _ in range(log.count(ITEMS)):
        log.take(log.count(LINE_BYTES))
    return start, version


def _record(log: _Log, kind: int, base: int, events: Events) -> None:
    place = f"{log.path}: record at byte {log.at - 1}"
    if kind == REQUEST:
        groups = [log.cached() for _ in range(log.count(ITEMS))]
        name, start, end, ok = log.cached(), base + log.int32(), base + log.int32(), log.flag()
        log.cached()
        events.request(groups, name, start, end, ok, place)
    elif kind == USER:
        log.int32()
        begins = log.flag()
        events.user(base + log.int32(), begins)
    elif kind == GROUP:
        for _ in range(log.count(ITEMS)):
            log.cached()
        log.take(12)
        log.flag()
    elif kind == ERROR:
        log.cached()
        log.int32()
    else:
        raise log.wrong(f"a record of kind {kind}", "1 to 4", 1)
