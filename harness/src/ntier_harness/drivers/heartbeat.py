"""The heartbeat of one client, checked line by line against the contract (docs/drivers.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

REQUIRED = ("t_s", "users", "completed", "failed", "response_time_mean_ms")
UNKNOWABLE = ("started", "in_flight")
"""May be empty: not every program sees when an interaction begins."""
COUNTS = ("users", "started", "completed", "failed", "in_flight")
GROWING = ("t_s", "started", "completed", "failed")
LINE_MOST = 1000  # characters
LINES_PER_S, LINES_SPARE = 3, 10  # one a second is the rule, one more at the start and at the end


class Broken(ValueError):
    """What the driver wrote breaks the contract; says what, with the line."""


@dataclass(frozen=True)
class Beat:
    """One line: counts since the start, users and in_flight of the moment, the mean since the line before (ms, NaN if
    nothing was completed). None: the driver does not know."""

    t_s: float
    users: int
    completed: int
    failed: int
    response_time_mean_ms: float
    started: int | None = None
    in_flight: int | None = None


@dataclass
class Heartbeat:
    """Takes lines of progress.csv as they come, its header first."""

    header: list[str] = field(default_factory=list)
    latest: Beat | None = None
    before: Beat | None = None
    lines: int = 0
    first_s: float | None = None

    def take(self, lines: list[str], now_s: float) -> bool:
        """Whether there was a new beat. Raises Broken."""
        if not lines:
            return False
        if self.first_s is None:
            self.first_s = now_s  # all lines that were there at the first look with any count as one second's
        elif self.lines + len(lines) > LINES_PER_S * (now_s - self.first_s) + LINES_SPARE:
            raise Broken(f"{self.lines + len(lines)} lines in {now_s - self.first_s:.0f} s: one a second is allowed")
        else:
            self.lines += len(lines)
        new = False
        for line in lines:
            if len(line) > LINE_MOST:
                raise Broken(f"a line of {len(line)} characters, at most {LINE_MOST} are allowed")
            if not self.header:
                self._read_header(line)
                continue
            self.before, self.latest, new = self.latest, self._beat(line), True
            self._compare(line)
        return new

    def _read_header(self, line: str) -> None:
        self.header = line.strip().split(",")
        missing = [name for name in (*REQUIRED, *UNKNOWABLE) if name not in self.header]
        if missing:
            raise Broken(f"line {line[:100]!r} is not a header: column {missing[0]} is missing")

    def _beat(self, line: str) -> Beat:
        values = line.strip().split(",")
        if len(values) != len(self.header):
            raise Broken(f"line {line[:100]!r} has {len(values)} fields, the header has {len(self.header)}")
        fields = dict(zip(self.header, values, strict=True))
        read = {name: _number(name, fields[name], line) for name in REQUIRED}
        read |= {name: _number(name, fields[name], line) if fields[name] else None for name in UNKNOWABLE}
        for name in COUNTS:
            if read[name] is not None and (read[name] < 0 or read[name] % 1):
                raise Broken(f"line {line[:100]!r}: {name} is {fields[name]!r}, expected a whole number from 0 on")
        return Beat(**{name: int(n) if name in COUNTS and n is not None else n for name, n in read.items()})

    def _compare(self, line: str) -> None:
        beat, old = self.latest, self.before
        assert beat is not None
        if beat.failed > beat.completed:
            raise Broken(f"line {line[:100]!r}: {beat.failed} failed of {beat.completed} completed")
        if beat.started is not None and beat.completed + (beat.in_flight or 0) > beat.started:
            in_flight = "" if beat.in_flight is None else f" and {beat.in_flight} in flight"
            raise Broken(f"line {line[:100]!r}: {beat.completed} completed{in_flight}, but only {beat.started} started")
        for name in GROWING if old else ():
            now, then = getattr(beat, name), getattr(old, name)
            if now is not None and then is not None and now < then:
                raise Broken(f"line {line[:100]!r}: {name} fell from {then} to {now}")


def _number(name: str, text: str, line: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise Broken(f"line {line[:100]!r}: {name} is {text[:40]!r}, expected a number") from None
    if math.isinf(value) or (math.isnan(value) and name != "response_time_mean_ms"):
        raise Broken(f"line {line[:100]!r}: {name} is {text[:40]!r}, expected a number")
    return value
