"""A program that stays up and does one command after another, for who asks often: an interpreter with these libraries
needs one to two seconds to start, a command of a small trial less."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import BinaryIO

from ntier_analysis.errors import DataError

MOST_BYTES = 1 << 30
"""Memory that it holds after an answer, from which on it ends: what a large trial took is not all given back, and a
machine that carries an experiment needs it. Who asks starts it again."""


_up: list[bool] = []
"""Whether it is: not empty."""


def serve(do: Callable[[list[str]], None]) -> None:
    """Reads lines from stdin, each a JSON list of words, and does each with `do`; answers each with a line {code, out,
    err}. Ends with its input, and without an answer if there is too little memory for one: a program that has not done
    others before may have room. Raises DataError for a line that is none, and MemoryError then."""
    if _up:
        raise DataError("standby: is up already; expected another command")
    _up.append(True)
    with os.fdopen(os.dup(0), "rb") as lines, os.fdopen(os.dup(1), "wb") as answers, Path(os.devnull).open() as none:
        os.dup2(none.fileno(), 0)  # a command that reads its input would take the next commands for it
        os.dup2(2, 1)  # what a library prints past Python must not come between the answers
        for line in lines:
            _answer(answers, do, _words(line))
            if held_bytes() > MOST_BYTES:
                return


def _answer(answers: BinaryIO, do: Callable[[list[str]], None], words: list[str]) -> None:
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = code_of(do, words)
    answers.write(json.dumps({"code": code, "out": out.getvalue(), "err": err.getvalue()}).encode() + b"\n")
    answers.flush()


def held_bytes() -> int:
    """Of memory, by this process; 0 where the system does not say it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def code_of(do: Callable[[list[str]], None], words: list[str]) -> int:
    """The exit code that a program would have that does this and ends. An error that nobody expected is written to
    stderr, as Python does. Raises MemoryError."""
    try:
        do(words)
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    except MemoryError:
        raise
    except Exception:
        import traceback

        traceback.print_exc()
        return 1
    return 0


def _words(line: bytes) -> list[str]:
    with suppress(ValueError):
        words = json.loads(line)
        if isinstance(words, list) and words and all(isinstance(w, str) for w in words):
            return words
    raise DataError(f"standby: {line[:80].decode(errors='replace').rstrip()!r}: expected a JSON list of words")


def load() -> None:
    """Imports what the commands need that a running experiment asks for."""
    from ntier_analysis import searching  # noqa: F401
    from ntier_analysis.validity import registry

    registry.registered()
