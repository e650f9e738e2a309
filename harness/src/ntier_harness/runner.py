"""The only place that starts processes. `dry.DryRunner` is its twin: the same calls on a simulated machine."""

from __future__ import annotations

import contextlib
import contextvars
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ntier_harness.answers import Answers
from ntier_harness.errors import Interrupted, WorkError
from ntier_harness.standby import Gone, Standby

T = TypeVar("T")
TICK_S = 0.2  # how long a request to stop may go unnoticed
EXCHANGE_S, LINE_S = 15, 20  # an exchange may take this long, and so much more for each line that comes before it
MARK = "NTIER_HARNESS"
"""In the environment of every process that a harness starts, and of theirs: `identity`."""


def start_ticks(pid: int) -> str:
    """Start of a process in clock ticks since boot, which tells it from a later one of its number; "" if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def numbering() -> str:
    """Our namespace of process numbers, which tells them from those of containers that are visible, too; "" without
    /proc."""
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return ""


def identity() -> str:
    """Of this process: "<namespace>.<pid>.<start>"."""
    return f"{numbering()}.{os.getpid()}.{start_ticks(os.getpid())}"


def harness_of(pid: str) -> str | None:
    """The mark of a process; None if it has none, or has ended, or is another user's."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    return next((v.decode().partition("=")[2] for v in variables if v.startswith(f"{MARK}=".encode())), None)


def is_orphan(pid: str) -> bool:
    """Whether the process was started by a harness that has ended."""
    mark = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", harness_of(pid) or "")
    return bool(mark) and mark[1] == numbering() and start_ticks(int(mark[2])) != mark[3]


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
    second ends the process at once, with what is on disk (which is always in order). Not so a second SIGHUP: a terminal
    that is closed sends two, one by its shell and one by the kernel. Nor the first signal after `request`.

    `deferred` holds for what its caller does, and for the threads it starts (`Runner.parallel`); work beside it goes
    its own way."""

    def __init__(self) -> None:
        self._untold = self._requested = self._signalled = False
        self._deferred = contextvars.ContextVar("deferred", default=False)
        self.on_first: Callable[[], None] = lambda: None
        self.last_words = ""
        """Said when the second signal ends the process."""

    def install(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # else nohup asked for this
                signal.signal(number, self._handle)

    def _handle(self, number: int, _frame: Any) -> None:
        """Takes no lock and prints nothing by a stream: what it interrupts may hold the lock (that of
        `threading.Event`, or of the stream), and would wait for itself."""
        if not self._signalled:
            self._signalled = self._untold = self._requested = True
        elif number != signal.SIGHUP:
            with contextlib.suppress(OSError):
                os.write(2, self.last_words.encode())
            os._exit(130)

    def request(self) -> None:
        self._requested = True

    @property
    def requested(self) -> bool:
        return self._requested

    def check(self) -> None:
        if not self._requested:
            return
        if self._untold:
            self._untold = False
            self.on_first()
        if not self._deferred.get():
            raise Interrupted("interrupted")

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """Inside, a first request to stop waits: for collecting, which takes seconds and must not be cut."""
        before = self._deferred.set(True)
        try:
            yield
        finally:
            self._deferred.reset(before)

    def wait(self, seconds: float) -> None:
        """A request is seen at the end: `seconds` are TICK_S at most."""
        time.sleep(seconds)
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


def still_running(handles: list[int], wait_s: float) -> list[int]:
    """Those of the processes (pidfds) that have not ended within `wait_s`."""
    end = time.monotonic() + wait_s
    while handles and (left := end - time.monotonic()) > 0:
        ended, _, _ = select.select(handles, [], [], left)
        handles = [handle for handle in handles if handle not in ended]
    return handles


@contextlib.contextmanager
def input_of(given: str | bytes | None) -> Iterator[Any]:
    """What a program may have as its stdin. A file and no pipe, which somebody would have to feed for as long as the
    program takes: of more than a pipe holds, `Popen.communicate` with a timeout forgets the rest."""
    if not given:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(given.encode() if isinstance(given, str) else given)
        file.seek(0)
        yield file


class Runner:
    """Real processes, real clock."""

    def __init__(self, stop: Stop | None = None) -> None:
        self.stop = stop or Stop()
        self.spawned: list[Spawned] = []
        self.analysis = Standby(self._popen, self.stop.check, TICK_S)

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

    def has(self, program: str) -> bool:
        """Whether the program is installed."""
        return shutil.which(program) is not None

    def parallel(self, do: Callable[[Any], T], items: Iterable[Any]) -> list[T]:
        """`do` for every item at once; results in order. All are waited for, then the first error is raised."""
        items = list(items)
        if not items:
            return []
        with ThreadPoolExecutor(max_workers=min(16, len(items))) as pool:
            futures = [pool.submit(contextvars.copy_context().run, do, item) for item in items]
        return [f.result() for f in futures]

    def beside(self, do: Callable[[], T]) -> Callable[[], T]:
        """Does this in a thread of its own while the caller goes on. What is returned waits for its end, and returns or
        raises what it did."""
        made: Future[T] = Future()

        def work() -> None:
            try:
                made.set_result(do())
            except BaseException as error:
                made.set_exception(error)

        threading.Thread(target=work, name="beside").start()
        return made.result

    def run(self, argv: list[str], *, input: str | bytes | None = None, timeout: float = 60, cwd: Path | None = None,
            env: dict[str, str] | None = None, check: bool = True) -> Done:  # fmt: skip
        """Runs a program to its end. Raises WorkError if it fails (with `check`) or exceeds `timeout` s."""
        with input_of(input) as given:
            process = self._popen(argv, cwd=cwd, env=env, stdin=given)
        out, err = self._communicate(process, argv, timeout)
        done = Done(argv, process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))
        if check and done.code:
            raise WorkError(f"{' '.join(argv[:4])}: {done.problem}")
        return done

    def ask(self, argv: list[str], timeout: float = 60) -> Done:
        """Runs a command of the analysis to its end, as `run` does, in the program that stays up for that; in one of
        its own if that one is gone (killed for want of memory), or fails by itself (code 1; a wrong file is 2): for
        want of memory, or because it was installed anew since it began, and half of it is of another version."""
        try:
            done = Done(argv, *self.analysis.ask(argv, timeout))
        except Gone:
            return self.run(argv, timeout=timeout)
        if done.code == 1:
            self.analysis.end()
            return self.run(argv, timeout=timeout)
        if done.code:
            raise WorkError(f"{' '.join(argv[:4])}: {done.problem}")
        return done

    def fetch(self, argv: list[str], file: Path, timeout: float = 60) -> None:
        """Writes what a program prints to a file. Raises WorkError if it fails or exceeds `timeout` s."""
        with file.open("wb") as out:
            process = self._popen(argv, stdin=subprocess.DEVNULL, stdout=out)
            _, err = self._communicate(process, argv, timeout)
        if process.returncode:
            done = Done(argv, process.returncode, "", err.decode(errors="replace"))
            raise WorkError(f"{' '.join(argv[:1] + argv[-1:])}: {done.problem}")

    def lines(self, argv: list[str], on_line: Callable[[str], None], *, log: Path, cwd: Path | None = None,
              env: Mapping[str, str | None] | None = None, timeout: float = 1800) -> int:  # fmt: skip
        """Runs a program whose lines (stdout and stderr together, also written to `log`) are handed on as they come.
        `env`: beside our own environment; None: not even what is there."""
        with log.open("ab") as out:
            begin = os.fstat(out.fileno()).st_size  # before it can write
            process = self._popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        spawned = Spawned(process, log)
        spawned._offset = begin
        end = time.monotonic() + timeout
        try:
            while True:
                code = process.poll()
                for line in spawned.lines():
                    on_line(line)
                if code is not None:
                    if code < 0:  # killed: what it had started may go on without it
                        with contextlib.suppress(ProcessLookupError):
                            os.killpg(spawned.pid, signal.SIGKILL)
                    return code
                if time.monotonic() > end:
                    raise WorkError(f"{argv[0]}: still running after {timeout:g} s; stopped. Its output: {log}")
                self.sleep(TICK_S)
        finally:
            spawned.stop()

    def spawn(self, argv: list[str], output: Path | None = None, errors: Path | None = None) -> Spawned:
        """Starts a program that runs beside us; its output (if `output`) can be read by lines. Its stderr goes to
        `errors`, and without it where its output goes."""
        if output is None:
            process = self._popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        else:
            with output.open("ab") as out, (errors or output).open("ab") as err:
                process = self._popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        self.spawned.append(Spawned(process, output))
        return self.spawned[-1]

    def stop_spawned(self) -> None:
        """Ends all programs that we started and that still run."""
        while self.spawned:
            self.spawned.pop().stop()

    def exchange(self, argv: list[str], n: int, first: int = 0) -> tuple[list[str], float, float]:
        """The `first` lines that a program prints, then (offset, round trip) of the exchange with the smallest round
        trip: a line is sent, the program answers with its time (epoch, s). Raises WorkError if it does not answer."""
        process = self._popen(argv, stdin=subprocess.PIPE)
        answers = Answers(process.stdout, self.stop.check, TICK_S)
        limit_s = EXCHANGE_S + LINE_S * first
        until_s = time.monotonic() + limit_s
        lines, best, late = [], (0.0, float("inf")), False
        try:
            lines = [answers.next(until_s).decode(errors="replace") for _ in range(first)]
            for _ in range(n):
                sent = time.time()
                process.stdin.write(b"\n")
                process.stdin.flush()
                answer = float(answers.next(until_s))
                received = time.time()
                if received - sent < best[1]:
                    best = (answer - (sent + received) / 2, received - sent)
        except (OSError, EOFError, ValueError) as error:  # a time-out is an OSError
            best, late = None, isinstance(error, TimeoutError)
        finally:
            process.kill()
            _, err = process.communicate()
        if best is None:
            said = f"no answer within {limit_s} s" if late else err.decode(errors="replace").strip()
            said = said or "no time from the node's clock"
            raise WorkError(f"{' '.join(argv[:1] + argv[-1:])}: {said.splitlines()[-1]}")
        return lines, *best

    def end_orphans(self) -> int:
        """Ends processes that a harness started and left when it died, in whichever folder it worked: they carry its
        mark (pid and start). Returns how many there were."""
        orphans: list[int] = []
        for pid in (folder.name for folder in Path("/proc").glob("[0-9]*")):
            if is_orphan(pid):
                with contextlib.suppress(ProcessLookupError):
                    handle = os.pidfd_open(int(pid))  # of this process, not of a later one of its number
                    orphans.append(handle) if is_orphan(pid) else os.close(handle)
        left = orphans
        for number, wait_s in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 1.0)):
            for handle in left:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, number)
            left = still_running(left, wait_s)
        for handle in orphans:
            os.close(handle)
        return len(orphans)

    def _popen(
        self, argv: list[str], env: Mapping[str, str | None] | None = None, **kwargs: Any
    ) -> subprocess.Popen[bytes]:
        kwargs.setdefault("stdout", subprocess.PIPE)
        kwargs.setdefault("stderr", subprocess.PIPE if kwargs["stdout"] != subprocess.DEVNULL else subprocess.DEVNULL)
        full = {k: v for k, v in {**os.environ, MARK: identity(), **(env or {})}.items() if v is not None}
        try:
            return subprocess.Popen(argv, env=full, start_new_session=True, **kwargs)
        except FileNotFoundError:
            raise WorkError(f"{argv[0]} is not installed; run: make setup") from None

    def _communicate(self, process: subprocess.Popen[bytes], argv: list[str], timeout: float) -> tuple[bytes, bytes]:
        end = time.monotonic() + timeout
        while True:
            try:
                out, err = process.communicate(timeout=TICK_S)
                return out or b"", err or b""
            except subprocess.TimeoutExpired:
                pass
            try:
                self.stop.check()
                if time.monotonic() > end:
                    raise WorkError(f"{' '.join(argv[:1] + argv[-1:])}: no answer within {timeout:g} s")
            except (Interrupted, WorkError):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                raise
