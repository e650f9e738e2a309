"""What a program answers, line by line, waited for with an eye on the clock and on a request to stop."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from typing import IO


class Answers:
    """`output`: the program's, which nobody else reads. `check`: raises if the user wants to stop; it is called every
    `tick_s`."""

    def __init__(self, output: IO[bytes], check: Callable[[], None], tick_s: float) -> None:
        self._file, self._check, self._tick_s = output.fileno(), check, tick_s
        self._read = b""
        self._ready = select.poll()
        self._ready.register(self._file, select.POLLIN)

    def next(self, until_s: float) -> bytes:
        """The next line. Raises TimeoutError from `until_s` on (monotonic clock), EOFError if the output ends within
        the line."""
        while b"\n" not in self._read:
            if self._ready.poll(1000 * self._tick_s):
                part = os.read(self._file, 1 << 16)
                if not part:
                    raise EOFError
                self._read += part
                continue
            self._check()
            if time.monotonic() > until_s:
                raise TimeoutError
        line, _, self._read = self._read.partition(b"\n")
        return line
