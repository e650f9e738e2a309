"""The only place that starts processes. `dry.DryRunner` is its twin: the same calls on a simulated machine."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ntier_harness.errors import Interrupted, WorkError

T = TypeVar("T")
TICK_S = 0.2  # how long a request to stop may go unnoticed


@dataclass(frozen=True)
class Done:
    """A program that ended. `code` < 0: killed by that signal; `out`, `err` are text."""

    argv: list[str]
    code: int
    out: str
    err: str

    @property
    def problem(self) -> str:
        """The last thing the program said, for an error message."""
        lines = [s for s in (self.err.strip() or self.out.strip()).splitlines() if s.strip()]
        return lines[-1] if lines else f"exit code {self.code}"


class Stop:
    """A request to stop (SIGINT, SIGTERM, SIGHUP). The first is seen at the next wait, except in `deferred` parts; the
    second ends the process at once, with what is on disk (which is always in order)."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._deferred = 0
        self.on_first: Callable[[], None] = lambda: None

    def install(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._handle)

    def _handle(self, _number: int, _frame: Any) -> None:
        if self._event.is_set():
            os._exit(130)
        self._event.set()
        self.on_first()

    def request(self) -> None:
        self._event.set()

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    def check(self) -> None:
        if self._event.is_set() and not self._deferred:
            raise Interrupted("interrupted")

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """Inside, a first request to stop waits: for collecting, which takes seconds and must not be cut."""
        self._deferred += 1
        try:
            yield
        finally:
            self._deferred -= 1

    def wait(self, seconds: float) -> None:
        if self._deferred:
            time.sleep(seconds)
        else:
            self._event.wait(seconds)
            self.check()


class Spawned:
    """A program that runs beside us, in a session of its own; its output goes to a file."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path | None) -> None:
        self._process = process
        self._output = output
        self._offset = 0
        self.pid = process.pid

    def poll(self) -> int | None:
        return self._process.poll()

    def lines(self) -> list[str]:
        """Complete lines written since the last call."""
        if self._output is None or not self._output.exists():
            return []
        with self._output.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        end = data.rfind(b"\n") + 1
        self._offset += end
        return data[:end].decode(errors="replace").splitlines()

    def stop(self, wait_s: float = 3.0) -> int | None:
        """SIGTERM, and SIGKILL if it is still there after `wait_s`."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(wait_s)
        return self._process.poll()


class Runner:
    """Real processes, real clock."""

    def __init__(self, stop: Stop | None = None) -> None:
        self.stop = stop or Stop()

    def now(self) -> float:
        """UTC epoch, s."""
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        self.stop.check()
        while (left := end - time.monotonic()) > 0:
            self.stop.wait(min(left, TICK_S))

    def parallel(self, do: Callable[[Any], T], items: Iterable[Any]) -> list[T]:
        """`do` for every item at once; results in order. All are waited for, then the first error is raised."""
        items = list(items)
        if not items:
            return []
        with ThreadPoolExecutor(max_workers=min(16, len(items))) as pool:
            futures = [pool.submit(do, item) for item in items]
        return [f.result() for f in futures]

    def run(self, argv: list[str], *, input: str | None = None, timeout: float = 60, cwd: Path | None = None,
            env: dict[str, str] | None = None, check: bool = True) -> Done:  # fmt: skip
        """Runs a program to its end. Raises WorkError if it fails (with `check`) or exceeds `timeout` s."""
        process = self._popen(argv, cwd=cwd, env=env, stdin=subprocess.PIPE if input else subprocess.DEVNULL)
        out, err = self._communicate(process, argv, input.encode() if input else None, timeout)
        done = Done(argv, process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))
        if check and done.code:
            raise WorkError(f"{' '.join(argv[:4])}: {done.problem}")
        return done

    def fetch(self, argv: list[str], file: Path, timeout: float = 60) -> None:
        """Writes what a program prints to a file. Raises WorkError if it fails or exceeds `timeout` s."""
        with file.open("wb") as out:
            process = self._popen(argv, stdin=subprocess.DEVNULL, stdout=out)
            _, err = self._communicate(process, argv, None, timeout)
        if process.returncode:
            done = Done(argv, process.returncode, "", err.decode(errors="replace"))
            raise WorkError(f"{' '.join(argv[:1] + argv[-1:])}: {done.problem}")

    def lines(self, argv: list[str], on_line: Callable[[str], None], *, log: Path, cwd: Path | None = None,
              env: dict[str, str] | None = None, timeout: float = 1800) -> int:  # fmt: skip
        """Runs a program whose lines (stdout and stderr together, also written to `log`) are handed on as they come."""
        with log.open("ab") as out:
            process = self._popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        spawned = Spawned(process, log)
        spawned._offset = log.stat().st_size if log.exists() else 0
        end = time.monotonic() + timeout
        try:
            while True:
                code = process.poll()
                for line in spawned.lines():
                    on_line(line)
                if code is not None:
                    return code
                if time.monotonic() > end:
                    raise WorkError(f"{argv[0]}: still running after {timeout:g} s; stopped. Its output: {log}")
                self.sleep(TICK_S)
        finally:
            spawned.stop()

    def spawn(self, argv: list[str], output: Path | None = None) -> Spawned:
        """Starts a program that runs beside us; its output (if `output`) can be read by lines."""
        if output is None:
            return Spawned(self._popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL), None)
        with output.open("ab") as out:
            return Spawned(self._popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out), output)

    def exchange(self, argv: list[str], n: int) -> tuple[float, float]:
        """(offset, round trip) of the exchange with the smallest round trip: a line is sent, the program answers with
        its time (epoch, s). Raises WorkError if it does not answer."""
        process = self._popen(argv, stdin=subprocess.PIPE)
        watchdog = threading.Timer(15, process.kill)
        watchdog.start()
        best = (0.0, float("inf"))
        try:
            for _ in range(n):
                sent = time.time()
                process.stdin.write(b"\n")
                process.stdin.flush()
                answer = float(process.stdout.readline())
                received = time.time()
                if received - sent < best[1]:
                    best = (answer - (sent + received) / 2, received - sent)
        except (OSError, ValueError):
            raise WorkError(f"{' '.join(argv[:1] + argv[-1:])}: no time from the node's clock") from None
        finally:
            watchdog.cancel()
            process.kill()
            process.communicate()
        return best

    def end_orphans(self, programs: Iterable[str], marks: Iterable[str]) -> int:
        """Ends processes that an earlier harness started and did not survive: `programs` (base names, as command or as
        script) with one of `marks` in an argument. Only under the lock. Returns how many there were."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                argv = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            ours = any(Path(a).name in programs for a in argv[:4]) and any(m in a for a in argv for m in marks)
            if ours and int(folder.name) != os.getpid():
                found.append(int(folder.name))
        for number, wait_s in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 1.0)):
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            end = time.monotonic() + wait_s
            while any(Path(f"/proc/{pid}").exists() for pid in found) and time.monotonic() < end:
                time.sleep(0.05)
        return len(found)

    def _popen(self, argv: list[str], env: dict[str, str] | None = None, **kwargs: Any) -> subprocess.Popen[bytes]:
        kwargs.setdefault("stdout", subprocess.PIPE)
        kwargs.setdefault("stderr", subprocess.PIPE if kwargs["stdout"] != subprocess.DEVNULL else subprocess.DEVNULL)
        full = os.environ | env if env else None
        try:
            return subprocess.Popen(argv, env=full, start_new_session=True, **kwargs)
        except FileNotFoundError:
            raise WorkError(f"{argv[0]} is not installed; run: make setup") from None

    def _communicate(
        self, process: subprocess.Popen[bytes], argv: list[str], data: bytes | None, timeout: float
    ) -> tuple[bytes, bytes]:
        end = time.monotonic() + timeout
        while True:
            try:
                out, err = process.communicate(data, timeout=TICK_S)
                return out or b"", err or b""
            except subprocess.TimeoutExpired:
                data = None
            try:
                self.stop.check()
                if time.monotonic() > end:
                    raise WorkError(f"{' '.join(argv[:1] + argv[-1:])}: no answer within {timeout:g} s")
            except (Interrupted, WorkError):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                raise
