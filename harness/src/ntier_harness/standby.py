"""`ntier-analysis standby`: the analysis stays up between questions, which spares each the start of an interpreter and
keeps what was read of earlier trials."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

from ntier_harness.answers import Answers
from ntier_harness.errors import WorkError

ANALYSIS = str(Path(sys.executable).with_name("ntier-analysis"))
END_WAIT_S = 2.0


class Gone(Exception):
    """The program ended before it answered."""


class Standby:
    """Questions are asked one after the other, by whichever thread. `popen`: starts a program (`Runner._popen`);
    `check`: raises if the user wants to stop; it is called every `tick_s`."""

    def __init__(self, popen: Callable[..., subprocess.Popen[bytes]], check: Callable[[], None], tick_s: float) -> None:
        self._popen, self._check, self._tick_s = popen, check, tick_s
        self._process: subprocess.Popen[bytes] | None = None
        self._end: Callable[[], object] = lambda: None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Starts the program unless it is up. It gets ready by itself."""
        with self._lock:
            self._up()

    def ask(self, argv: list[str], timeout_s: float) -> tuple[int, str, str]:
        """Exit code, output and errors of a command of the analysis. Raises Gone; WorkError after `timeout_s`, and what
        `check` raises: then the program is ended."""
        with self._lock:
            process, until_s = self._up(), time.monotonic() + timeout_s
            try:
                process.stdin.write(json.dumps(argv[1:]).encode() + b"\n")
                process.stdin.flush()
                answer = json.loads(Answers(process.stdout, self._check, self._tick_s).next(until_s))
                return answer["code"], answer["out"], answer["err"]
            except BaseException as error:
                self._process = None
                end(process, at_once=True)
                if isinstance(error, TimeoutError):
                    raise WorkError(f"{' '.join(argv[:1] + argv[-1:])}: no answer within {timeout_s:g} s") from None
                if isinstance(error, OSError | EOFError | ValueError | KeyError | TypeError):
                    raise Gone from None
                raise

    def end(self) -> None:
        """Ends the program; the next question starts another one."""
        with self._lock:
            self._process = None
            self._end()

    def _up(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._end()  # else the pipes of each that ended by itself would stay open
            self._process = self._popen([ANALYSIS, "standby"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self._end = weakref.finalize(self, end, self._process)
        return self._process


def end(process: subprocess.Popen[bytes], *, at_once: bool = False) -> None:
    """Its input ends, and so does it; it is killed if it does not, with what it had started."""
    with contextlib.suppress(OSError):
        process.stdin.close()
    if not at_once:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_WAIT_S)
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
