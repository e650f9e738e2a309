"""Gatling's simulation.log. That of 3.4 to 3.12 is text: a line per event, fields separated by tabs.

    RUN      class  id  start  description  version
    USER     scenario  START|END  time
    REQUEST  groups  name  start  end  OK|KO  message

Times are ms since 1970. From 3.13 on it is binary: parsers/gatling_binary.py."""

from __future__ import annotations

import itertools
from pathlib import Path

from ntier_analysis.contracts.files import lines, stream, text_of
from ntier_analysis.errors import DataError
from ntier_analysis.parsers.gatling_binary import RUN, binary
from ntier_analysis.parsers.gatling_events import EPOCH_MS, Events
from ntier_analysis.parsers.generated import Generated

OTHER = ("GROUP", "ERROR", "ASSERTION")
"""Events that say nothing of a single request: groups sum up requests, errors are of the script."""


def gatling(path: Path) -> Generated:
    """Raises DataError naming file, and line and field, or byte."""
    with stream(path) as file:
        head = file.read(1)
    return (binary(path) if head == bytes([RUN]) else _text(path)).generated()


def _text(path: Path) -> Events:
    events, begun = Events(path), False

    def take(line: bytes, number: int) -> None:
        nonlocal begun
        place = f"{path}:{number}"
        kind, *fields = text_of(line, path).split("\t") if number == 1 else _fields(line, place)
        if kind == "RUN":
            begun = True
        elif kind not in ("REQUEST", "USER", *OTHER):
            raise DataError(f"{place}: {kind[:40]!r}, expected RUN, USER, REQUEST, GROUP or ERROR: the text of Gatling")
        if kind == "USER":
            _user(fields, place, events)
        elif kind == "REQUEST":
            _request(fields, place, events)

    for number, (line, following) in enumerate(itertools.pairwise(itertools.chain(lines(path), [None])), start=1):
        try:
            take(line, number)
        except DataError as error:
            if number == 1 or following is not None:
                raise
            raise DataError(f"{error}; the last line of a run that was killed is incomplete: delete it") from None
    if not begun:
        raise DataError(f"{path}: no line RUN: not Gatling's simulation.log")
    return events


def _fields(line: bytes, place: str) -> list[str]:
    try:
        return line.decode().split("\t")
    except UnicodeDecodeError as error:
        raise DataError(f"{place}: byte {line[error.start]:#x} is not UTF-8") from None


def _user(fields: list[str], place: str, events: Events) -> None:
    if len(fields) != 3 or fields[1] not in ("START", "END"):
        raise DataError(
            f"{place}: USER with {len(fields)} fields, expected scenario, START or END, time (Gatling 3.4+)"
        )
    events.user(_time(fields[2], "time", place), fields[1] == "START")


def _request(fields: list[str], place: str, events: Events) -> None:
    if len(fields) < 5 or fields[4] not in ("OK", "KO"):
        raise DataError(
            f"{place}: REQUEST with {len(fields)} fields, expected groups, name, start, end, OK or KO, message "
            "(Gatling 3.4+)"
        )
    groups, name, start, end, status = fields[:5]
    begin, done = _time(start, "start", place), _time(end, "end", place)
    events.request(groups.split(","), name, begin, done, status == "OK", place)


def _time(text: str, name: str, place: str) -> float:
    if not (text.isascii() and text.isdigit() and len(text) < 16 and EPOCH_MS[0] < int(text) < EPOCH_MS[1]):
        raise DataError(f"{place}: {name} is {text[:40]!r}, expected milliseconds since 1970 (13 digits)")
    return float(text)
