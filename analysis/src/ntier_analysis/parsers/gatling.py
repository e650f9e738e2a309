"""Gatling's simulation.log in its text form: a line per event, fields separated by tabs.

    RUN      class  id  start  description  version
    USER     scenario  START|END  time
    REQUEST  groups  name  start  end  OK|KO  message

Times are ms since 1970. This is the form of 3.4 to 3.10; the binary form of later versions is refused."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np

from ntier_analysis.contracts.files import lines, stream, text_of
from ntier_analysis.errors import DataError
from ntier_analysis.parsers.generated import Generated, by_completion, steps

MOST = 20_000_000
"""Requests that are held at most."""
OTHER = ("GROUP", "ERROR", "ASSERTION")
"""Events that say nothing of a single request: groups sum up requests, errors are of the script."""
_MS = (1e11, 1e14)


def gatling(path: Path) -> Generated:
    """Raises DataError naming file, line and field."""
    _refuse_binary(path)
    names: list[str] = []
    times: list[tuple[float, float]] = []
    ok: list[bool] = []
    users: list[tuple[float, int]] = []
    begun = False

    def take(line: bytes, number: int) -> None:
        nonlocal begun
        place = f"{path}:{number}"
        kind, *fields = text_of(line, path).split("\t") if number == 1 else _fields(line, place)
        if kind == "RUN":
            begun = True
        elif kind not in ("REQUEST", "USER", *OTHER):
            raise DataError(f"{place}: {kind[:40]!r}, expected RUN, USER, REQUEST, GROUP or ERROR: the text of Gatling")
        if kind == "USER":
            users.append(_user(fields, place))
        elif kind == "REQUEST":
            name, start, end, good = _request(fields, place)
            names.append(name)
            times.append((start, end))
            ok.append(good)
            if len(names) > MOST:
                raise DataError(f"{place}: more than {MOST:,} requests; import it in parts")

    for number, (line, following) in enumerate(itertools.pairwise(itertools.chain(lines(path), [None])), start=1):
        try:
            take(line, number)
        except DataError as error:
            if number == 1 or following is not None:
                raise
            raise DataError(f"{error}; the last line of a run that was killed is incomplete: delete it") from None
    if not begun:
        raise DataError(f"{path}: no line RUN: not Gatling's simulation.log")
    if not names:
        raise DataError(f"{path}: no requests")
    span = np.array(times) / 1000
    response = 1000 * (span[:, 1] - span[:, 0])
    frame = by_completion(span[:, 1], np.round(response), np.array(names, dtype=object), np.array(ok))
    changes = np.array(sorted(users), dtype=float).reshape(-1, 2)
    active = changes[:, 1].cumsum()
    if len(users) and span[:, 1].max() > changes[-1, 0] / 1000:  # killed: those who were there stayed until the end
        changes, active = np.append(changes, [[1000 * span[:, 1].max(), 0]], axis=0), np.append(active, active[-1])
    notes = ("whether users were injected closed or open: Gatling does not write it",)
    return Generated(frame, steps(changes[:, 0] / 1000, active), notes=notes)


def _refuse_binary(path: Path) -> None:
    with stream(path) as file:
        head = file.read(64)
    if head[:1] == b"\0":
        raise DataError(
            f"{path}: binary, as later versions of Gatling write it; expected its text (Gatling 3.4 to 3.10). Log "
            'each request into a table yourself: docs/how-to/imports.md, "Access logs, and any other program"'
        )


def _fields(line: bytes, place: str) -> list[str]:
    try:
        return line.decode().split("\t")
    except UnicodeDecodeError as error:
        raise DataError(f"{place}: byte {line[error.start]:#x} is not UTF-8") from None


def _user(fields: list[str], place: str) -> tuple[float, int]:
    """When, and by how many users more."""
    if len(fields) != 3 or fields[1] not in ("START", "END"):
        raise DataError(
            f"{place}: USER with {len(fields)} fields, expected scenario, START or END, time (Gatling 3.4+)"
        )
    return _time(fields[2], "time", place), 1 if fields[1] == "START" else -1


def _request(fields: list[str], place: str) -> tuple[str, float, float, bool]:
    if len(fields) < 5 or fields[4] not in ("OK", "KO"):
        raise DataError(
            f"{place}: REQUEST with {len(fields)} fields, expected groups, name, start, end, OK or KO, message "
            "(Gatling 3.4+)"
        )
    groups, name, start, end, status = fields[:5]
    begin, done = _time(start, "start", place), _time(end, "end", place)
    if done < begin:
        raise DataError(f"{place}: end is {end}, expected at least the start, {start}")
    if not name:
        raise DataError(f"{place}: name is empty")
    return "/".join(filter(None, [*groups.split(","), name])), begin, done, status == "OK"


def _time(text: str, name: str, place: str) -> float:
    if not (text.isascii() and text.isdigit() and len(text) < 16 and _MS[0] < int(text) < _MS[1]):
        raise DataError(f"{place}: {name} is {text[:40]!r}, expected milliseconds since 1970 (13 digits)")
    return float(text)
