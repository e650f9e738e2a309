# ruff: noqa: E501 (tables: a line per case)
"""Bad input for the tests of every door: what is no file, what is no text, and good content spoilt at random.

`NTIER_FUZZ=1000` makes the random part that many times as long (default 1: some seconds per door)."""

from __future__ import annotations

import contextlib
import copy
import faulthandler
import io
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

FUZZ = int(os.environ.get("NTIER_FUZZ") or 1)
LIMIT_S = 30
"""No refusal takes more CPU time, and none waits four times as long; each takes less than a second of full speed."""


def examples(n: int) -> settings:
    """The same n cases each time, or NTIER_FUZZ times as many new ones."""
    return settings(
        max_examples=n * FUZZ,
        deadline=None,
        derandomize=FUZZ == 1,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


# ---- calling a program ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Done:
    code: int | str
    """Exit code; the exception's text if one came out, which a person would see as a traceback."""
    out: str
    err: str

    def __str__(self) -> str:
        return f"exit code {self.code}\n{self.out[-300:]}\n{self.err[-1500:]}"


@contextlib.contextmanager
def within(seconds: int) -> Iterator[None]:
    """Raises TimeoutError for what takes more CPU time than this, and in the middle of what takes four times as long,
    also of a wait for a FIFO: other programs may take the CPU for a while."""

    def ring(*_: Any) -> None:
        raise TimeoutError(f"more than {4 * seconds} s")

    before, cpu_s = signal.signal(signal.SIGALRM, ring), time.process_time()
    signal.alarm(4 * seconds)
    # what hangs outside of Python hears no signal: then the tests end here, and say where
    faulthandler.dump_traceback_later(8 * seconds, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)
        if time.process_time() - cpu_s > seconds:  # also of a program that ends by SystemExit
            raise TimeoutError(f"more than {seconds} s of CPU")


def call(main: Callable[[], None], *arguments: object) -> Done:
    """The program's own main, in this process."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    argv, sys.argv = sys.argv, ["program", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), within(LIMIT_S):
            main()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(bool(error.code))
    except BaseException as error:  # what a person would see as a traceback
        code = f"{type(error).__name__}: {str(error)[:300]}"
    finally:
        sys.argv = argv
    return Done(code, out.getvalue(), err.getvalue())


def refused(done: Done, *said: str) -> None:
    """Exit code 2 and one clear line that names thing and place."""
    errors = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert done.code == 2, done
    assert len(errors) == 1, done
    assert len(errors[0]) < 1200, done
    assert errors[0] == done.err.splitlines()[-1], done
    assert all(word in errors[0] for word in said), (said, str(done))


def orderly(done: Done, *codes: int) -> None:
    """One of the exit codes; 2 with one clear line."""
    if done.code == 2:
        refused(done)
    else:
        assert done.code in codes, done


# ---- what is no file, what is no text ------------------------------------------------------------------------------


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    try:  # the name of a socket has at most 107 bytes
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


NO_FILES: dict[str, Callable[[Path], None]] = {
    "missing": lambda path: None,
    "folder": lambda path: path.mkdir(),
    "fifo": _fifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "socket": _socket,
    "dangling": lambda path: path.symlink_to("nowhere"),
    "loop": lambda path: path.symlink_to(path.name),
    "sparse": _sparse,
}
NO_TEXTS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda good: b"",
    "blank": lambda good: b"\n \n",
    "nul": lambda good: good[:20] + b"\0\0" + good[20:],
    "utf16": lambda good: good.decode().encode("utf-16"),
    "utf16_be": lambda good: b"\xfe\xff" + good.decode().encode("utf-16-be"),
    "utf16_unmarked": lambda good: good.decode().encode("utf-16-le"),
    "latin1": lambda good: good.replace(b"e", b"\xe9"),
    "gzip": lambda good: b"\x1f\x8b\x08\x00" + good,
    "random": lambda good: bytes((i * 7919 + i // 256) % 256 for i in range(4096)),
    "one line": lambda good: b"a" * 3_000_000,
    "commas": lambda good: b"," * 100_000 + b"\n",
    "names": lambda good: good.partition(b"\n")[0] + b"".join(b",n%d" % i for i in range(100_000)) + b",n99999\n1\n",
    "comments": lambda good: b"# x\n" * 100_000,
    "lists": lambda good: b"[" * 100_000,
    "maps": lambda good: b'{"a":' * 100_000,
}
DOCUMENTS: dict[str, Callable[[bytes], bytes]] = {
    "null": lambda good: b"null",
    "number": lambda good: b"3",
    "text": lambda good: b'"a"',
    "list": lambda good: b"[1, 2]",
    "nested": lambda good: b'{"a": ' + b"[" * 40 + b"]" * 40 + b"}",
    "aliases": lambda good: b"a0: &a0 [x, x]\n" + b"".join(b"a%d: &a%d [%s]\n" % (i, i, b", ".join([b"*a%d" % (i - 1)] * 9)) for i in range(1, 12)),
    "recursive": lambda good: b"a: &a [*a]\n",
    "python": lambda good: b"a: !!python/object/apply:os.getcwd []\n",
    "digits": lambda good: b"a: " + b"9" * 10_000 + b"\n",
    "date": lambda good: b"a: 2001-13-45\n",
    "keys": lambda good: b"{" + b"".join(b'"k%d": 1, ' % i for i in range(50_000)) + b'"k49999": 2}',
    "repeated": lambda good: b'{"a": 1, "a": 2}',
    "100 MB": lambda good: b"a: " + b"b" * 100_000_000,
}  # fmt: skip

UNWRITABLE: dict[str, Callable[[Path], Path]] = {
    "a file": lambda folder: _made(folder / "file"),
    "below a file": lambda folder: _made(folder / "file") / "sub",
    "a fifo": lambda folder: _at(_fifo, folder / "fifo"),
    "a device": lambda folder: Path("/dev/null"),
    "dangling": lambda folder: _at(NO_FILES["dangling"], folder / "link"),
    "unwritable": lambda folder: Path("/proc/ntier"),
    "too long": lambda folder: folder / ("x" * 300),
}
"""Where no folder can be, not even for root."""


def _made(path: Path) -> Path:
    path.write_text("")
    return path


def _at(make: Callable[[Path], None], path: Path) -> Path:
    make(path)
    return path


# ---- good content, spoilt at random --------------------------------------------------------------------------------

ODD = ["", " ", "0", "-1", "nan", "inf", "-inf", "1e308", "1e-320", "1" + "0" * 30, "9223372036854775808", "½", "=1+1", "x" * 5000,
       "../..", "a/b", '"', "'", "\t", "true", "null", "2026-11-23", "NaN,NaN", "\u2028", "0x10", "-0", "1_000"]  # fmt: skip
VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    0.5,
    1e308,
    1e-320,
    10**30,
    "",
    "x",
    "x" * 5000,
    "../..",
    "\0",
    [],
    {},
    [[]],
    [None],
    {"": ""},
]


@st.composite
def spoilt_csv(draw: st.DrawFn, good: bytes) -> bytes:
    """A table with one to three cells, columns or lines that are odd."""
    lines = [line.split(",") for line in good.decode().splitlines()]
    for _ in range(draw(st.integers(1, 3))):
        row = draw(st.integers(0, len(lines) - 1))
        column = draw(st.integers(0, max(len(lines[0]) - 1, 0)))
        kind = draw(st.sampled_from(["cell", "cell", "cell", "column", "line", "twice", "swap", "rows"]))
        if kind == "cell" and column < len(lines[row]):
            lines[row][column] = draw(st.sampled_from(ODD))
        elif kind == "column":
            odd = draw(st.sampled_from(ODD))
            lines = [lines[0], *([*line[:column], odd, *line[column + 1 :]] for line in lines[1:])]
        elif kind == "line":
            del lines[row][column:]
        elif kind == "twice":
            lines.insert(row, lines[row])
        elif kind == "swap":
            lines[row], lines[-1] = lines[-1], lines[row]
        elif kind == "rows" and len(lines) > 3:
            del lines[1 : draw(st.integers(2, len(lines) - 1))]
    return "\n".join(map(",".join, lines)).encode() + draw(st.sampled_from([b"\n", b"", b"\r\n", b'\n"']))


@st.composite
def spoilt_bytes(draw: st.DrawFn, good: bytes) -> bytes:
    """A file that is cut, or holds some other bytes."""
    at = draw(st.integers(0, len(good)))
    return good[:at] + draw(st.binary(max_size=8)) + draw(st.sampled_from([b"", good[at:], good[at + 1 :]]))


@st.composite
def spoilt_document(draw: st.DrawFn, good: Any) -> Any:
    """A document in which one or two values are others, missing, or beside unknown ones."""
    document = copy.deepcopy(good)
    for _ in range(draw(st.integers(1, 2))):
        place = document
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(min(len(place), 3)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(place[key], dict | list) and place[key] and draw(st.booleans()):
                place = place[key]
                continue
            kind = draw(st.sampled_from(["other", "other", "other", "gone", "more"]))
            if kind == "gone":
                del place[key]
            elif kind == "more" and isinstance(place, dict):
                place["odd"] = copy.deepcopy(draw(st.sampled_from(VALUES)))  # the next round may change it
            else:
                place[key] = copy.deepcopy(draw(st.sampled_from(VALUES)))
            break
    return document
