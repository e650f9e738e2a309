"""`ntier driver check`: runs any command by the contract against a small web server on this machine, and says what of
the contract (docs/drivers.md) it keeps and breaks."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

from ntier_harness.drivers import CONTRACT, Share, split
from ntier_harness.drivers.heartbeat import Broken, Heartbeat
from ntier_harness.errors import RequestError

WORKERS, THINK_S, RATE_PER_S = 6, 0.2, 20
AMOUNT, ENDLESS = 120, 80_000  # pieces of work; pieces, and seconds, of what is to be ended
PHASES = {"ramp_up_s": 1.0, "run_s": 4.0, "ramp_down_s": 1.0}
TIER = "server"  # of what a driver is told: this machine alone
WAITS_S = 2.5  # how long it is kept waiting for the start
READY_S, END_S, TERM_S = 60.0, 20.0, 3.0  # as a trial allows (load.MAX_BOOT_S, trial.EXIT_WAIT_S, ntier-node)
GAP_S = 5.0  # between two lines of the heartbeat, as load.HEARTBEAT_S
EARLY_S, LATE_S = 0.05, 1.0  # requests before the start, and after the end
COLUMNS = ("timeStamp", "elapsed", "label", "responseCode", "threadName", "success", "failureMessage", "bytes",
           "Latency", "Connect")  # fmt: skip
LEAVERS, LEAVE_PHASES = 4, {"ramp_up_s": 4.0, "run_s": 2.0, "ramp_down_s": 0.5}  # of the run in which users leave
LEAVE_S, LEFT_S = 2.0, 1.0  # when they leave; how much later the last one may be gone (in a trial: the ramp-up's end)
SAME_LEAST = 10  # interactions that two runs must have in common before their order says anything


@dataclass(frozen=True)
class Finding:
    """One rule of the contract. `kept`: None if the runs do not tell."""

    rule: str
    kept: bool | None
    said: str


class Server:
    """A web server that notes when it was asked; each page takes 5 ms."""

    def __init__(self) -> None:
        self.asked_s: list[float] = []
        asked_s = self.asked_s

        class Page(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                asked_s.append(time.time())
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                time.sleep(0.005)
                body = b"<html>page</html>\n"
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_PUT = do_HEAD = do_GET

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, *_: Any) -> None:
                """A driver that ends cuts its requests off."""

        self._server = Quiet(("127.0.0.1", 0), Page)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@dataclass
class Started:
    """A driver in a folder of its own."""

    folder: Path
    share: Share
    begun_s: float
    start_s: float = 0.0
    rows: list[dict[str, str]] = field(default_factory=list)

    @property
    def code(self) -> int | None:
        with contextlib.suppress(FileNotFoundError):
            return int((self.folder / "driver.rc").read_text())
        return None

    def lines(self) -> list[str]:
        """Whole lines of the heartbeat."""
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / "progress.csv").read_text(errors="replace").rpartition("\n")[0].splitlines()
        return []

    @property
    def last_words(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            lines = (self.folder / "driver.out").read_text(errors="replace").strip().splitlines()
            return f": {lines[-1][:200]}" if lines else ""
        return ""

    def release(self, at_s: float) -> None:
        (self.folder / "start.new").write_text(f"{round(1000 * at_s)}\n")
        (self.folder / "start.new").rename(self.folder / "start")
        self.start_s = round(at_s, 3)

    def wait(self, until_s: float) -> int | None:
        while self.code is None and time.time() < until_s:
            time.sleep(0.05)
        return self.code


@dataclass
class Bench:
    """The runs of one check."""

    command: list[str]
    starter: Path
    settings: Mapping[str, Any]
    model: str
    place: Path
    server: Server
    runs: int = 0

    def told(self, share: Share, seed: int, *, endless: bool = False) -> dict[str, Any]:
        addresses, amount = ["127.0.0.1"], ENDLESS if endless else AMOUNT
        phases = PHASES | ({"run_s": ENDLESS} if endless else {})
        base = {
            "contract": CONTRACT, "load_model": self.model, "workload": "check", "client": share.client,
            "clients": share.clients, "workers": share.workers, "first_worker": share.first, "workers_total": WORKERS,
            "seed": seed, "think_time_s": THINK_S, "phases": phases, "targets": {TIER: addresses},
            "entry": {"addresses": addresses, "port": self.server.port, "path": ""},
            "parameters": {"rate_per_s": RATE_PER_S, "amount": amount},
        }  # fmt: skip
        more = dict(self.settings)
        base["parameters"] |= more.pop("parameters", {})
        if endless:  # also where an amount was given, which may be done before the driver is told to end
            base["parameters"]["amount"] = ENDLESS
        return base | more

    def start(self, share: Share, seed: int = 1, *, endless: bool = False, text: str | None = None) -> Started:
        """`endless`: goes on until it is ended. `text`: written to driver.json instead of the usual contents."""
        self.runs += 1
        folder = self.place / f"run{self.runs}"
        folder.mkdir()
        (folder / "driver.json").write_text(text or json.dumps(self.told(share, seed, endless=endless), indent=1))
        started = Started(folder, share, time.time())
        done = subprocess.run([self.starter, folder, *self.command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RequestError(f"driver: {done.stderr.strip()}")
        return started

    def get_ready(self, run: Started) -> bool:
        """Waits for the first heartbeat."""
        while run.code is None and time.time() < run.begun_s + READY_S:
            if len(run.lines()) > 1:
                return True
            time.sleep(0.05)
        return len(run.lines()) > 1

    @property
    def whole(self) -> Share:
        return split(WORKERS, 1)[0]

    def left(self) -> list[int]:
        """Processes of the check's drivers."""
        mark, processes = f"NTIER_LOAD={self.place}".encode(), []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    processes.append(int(folder.name))
        return processes

    def end(self) -> None:
        for pid in self.left():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def check(
    command: list[str], settings: Mapping[str, Any], model: str, starter: Path, report: Callable[[Finding], None]
) -> list[Finding]:
    """Rules in the order in which they are tried; a run that never gets ready ends the check. Raises RequestError if
    the command cannot be started at all."""
    server, findings = Server(), []
    with tempfile.TemporaryDirectory(prefix="ntier-driver-") as place:
        bench = Bench(command, starter, settings, model, Path(place).resolve(), server)
        try:
            for finding in rules(bench):
                findings.append(finding)
                report(finding)
        finally:
            bench.end()
            server.close()
    return findings


def rules(bench: Bench) -> Iterator[Finding]:
    run = bench.start(bench.whole)
    ready = bench.get_ready(run)
    took = time.time() - run.begun_s
    if not ready:
        why = f"ended with exit code {run.code}" if run.code is not None else f"no heartbeat within {READY_S:.0f} s"
        yield Finding("ready", False, f"{why}{run.last_words}")
        return
    yield Finding("ready", True, f"first heartbeat after {took:.1f} s")
    yield from waiting(bench, run)
    run.release(time.time() + 1)
    end_s = run.start_s + sum(PHASES.values())
    code = run.wait(end_s + END_S)
    said = "still runs" if code is None else f"exit code {code}{run.last_words}" if code else "exit code 0"
    yield Finding("ends", code == 0, f"{said} {max(0.0, time.time() - end_s):.1f} s after the end of the ramp-down")
    yield heartbeat(run)
    yield results(run)
    yield timely(bench, run, end_s)
    left = bench.left()
    yield Finding("leaves nothing", not left, f"{len(left)} processes are left" if left else "no process is left")
    bench.end()
    yield from same_draws(bench, run)
    yield from on_request(bench, run)
    yield wrong_request(bench)
    if bench.model == "closed":
        yield users_leave(bench)


def waiting(bench: Bench, run: Started) -> Iterator[Finding]:
    lines = len(run.lines())
    time.sleep(WAITS_S)
    beats = len(run.lines()) - lines
    asked = len(bench.server.asked_s)
    if run.code is not None:
        yield Finding("waits", False, f"ended before the start with exit code {run.code}{run.last_words}")
    elif asked:
        yield Finding("waits", False, f"{asked} requests before the start")
    else:
        least = int(WAITS_S) - 1
        yield Finding("waits", beats >= least, f"{beats} heartbeats in {WAITS_S} s before the start, no request")


def heartbeat(run: Started) -> Finding:
    """Every line by itself, and the gaps."""
    rule, heart, times = "heartbeat", Heartbeat(), []
    try:
        for n, line in enumerate(run.lines()):
            heart.take([line], run.begun_s + n / 2)
            times += [heart.latest.t_s] if heart.latest else []
    except Broken as error:
        return Finding(rule, False, f"progress.csv: {error}")
    gaps = [b - a for a, b in pairwise(times)]
    if not gaps or max(gaps) > GAP_S:
        return Finding(rule, False, f"progress.csv: {max(gaps, default=0):.1f} s without a line, at most {GAP_S} s")
    if not run.begun_s - 1 <= times[0] <= time.time() + 1:
        return Finding(rule, False, f"progress.csv: t_s is {times[0]}, expected seconds since 1970 ({time.time():.3f})")
    last = heart.latest
    assert last is not None
    counts = "started: not told" if last.started is None else f"{last.started} started"
    return Finding(rule, True, f"{len(times)} lines; {counts}, {last.completed} completed, {last.failed} failed")


def results(run: Started, off_most: int = 0) -> Finding:
    """interactions.jtl.csv against its columns, its heartbeat and the phases. `off_most`: by how many both may differ,
    of a run that was told to end."""
    rule, file = "results", run.folder / "interactions.jtl.csv"
    if not file.exists():
        return Finding(rule, False, "interactions.jtl.csv is missing")
    text = file.read_text(errors="replace")
    reader = csv.DictReader(text.splitlines())
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or [])]
    if missing:
        return Finding(rule, False, f"interactions.jtl.csv: column {missing[0]} is missing")
    if not text.endswith("\n"):
        return Finding(rule, False, "interactions.jtl.csv: the last line has no end")
    run.rows = list(reader)
    for n, row in enumerate(run.rows, 2):
        if problem := wrong_row(row, run):
            return Finding(rule, False, f"interactions.jtl.csv:{n}: {problem}")
    beats = list(csv.DictReader(run.lines()))
    completed = (beats[-1].get("completed") or "") if beats else ""
    if not completed.isdigit() or abs(int(completed) - len(run.rows)) > off_most:
        return Finding(
            rule, False, f"{len(run.rows)} lines, but the last heartbeat says {completed or 'not how many'} completed"
        )
    return Finding(rule, bool(run.rows), f"{len(run.rows)} interactions; the heartbeat says {completed}")


def wrong_row(row: Mapping[str, Any], run: Started) -> str:
    """What is wrong with one interaction; empty if nothing is."""
    for name in ("timeStamp", "elapsed", "bytes", "Latency", "Connect"):
        if not re.fullmatch(r"\d{1,15}", row[name] or ""):
            return f"{name} is {row[name]!r}, expected a whole number"
    if (row["success"] or "").lower() not in ("true", "false"):
        return f"success is {row['success']!r}, expected true or false"
    if not row["label"]:
        return "label is empty, expected the name of the interaction"
    number = re.search(r"-(\d{1,9})$", row["threadName"] or "")
    if number is None or not 1 <= int(number[1]) <= run.share.workers:
        return f"threadName is {row['threadName']!r}, expected -1 to -{run.share.workers} at its end"
    if int(row["timeStamp"]) / 1000 < run.start_s - EARLY_S:
        return f"timeStamp is {run.start_s - int(row['timeStamp']) / 1000:.3f} s before the start"
    return ""


def timely(bench: Bench, run: Started, end_s: float) -> Finding:
    """What the server saw; a driver with another protocol sends it nothing."""
    rule, asked = "keeps the phases", list(bench.server.asked_s)
    if not asked:
        return Finding(rule, None, f"no request came to 127.0.0.1:{bench.server.port}")
    early, late = run.start_s - min(asked), max(asked) - end_s
    if early > EARLY_S or late > LATE_S:
        which = f"{early:.2f} s before the start" if early > EARLY_S else f"{late:.1f} s after the end"
        return Finding(rule, False, f"a request came {which}")
    if len(asked) < len(run.rows):
        return Finding(rule, False, f"{len(run.rows)} interactions, but the server was asked {len(asked)} times")
    return Finding(rule, True, f"{len(asked)} requests, the first {-early:.2f} s after the start")


Thread = tuple[int, str]
"""A worker by its number among all, and which of its threads; "": it has one."""


def tells_draws(runs: list[Started]) -> bool:
    return all("drawn" in row for run in runs for row in run.rows)


def sequences(runs: list[Started]) -> dict[Thread, list[str]]:
    """What each worker did, in order. If the results tell what was drawn: what each of its threads drew. In which order
    the threads of one worker take their turns is no draw: it depends on how long each interaction took."""
    done: dict[Thread, list[str]] = {}
    drawn = tells_draws(runs)
    for run in runs:
        for row in sorted(run.rows, key=lambda r: int(r["timeStamp"])):
            thread, _, number = row["threadName"].rpartition("-")
            key = int(number) - 1 + run.share.first, thread if drawn else ""
            done.setdefault(key, []).append(f"{row['label']} {row['drawn']}" if drawn else row["label"])
    return done


def common(first: Mapping[Thread, list[str]], second: Mapping[Thread, list[str]]) -> list[tuple[list[str], list[str]]]:
    """How each thread began, as far as both did it; a worker's last interactions may stand in another order if they
    overlap."""
    pairs = [(first[w], second.get(w, [])) for w in first]
    lengths = [min(len(a), len(b)) for a, b in pairs]
    return [(a[:n], b[:n]) for (a, b), n in zip(pairs, lengths, strict=True)]


def same_draws(bench: Bench, whole: Started) -> Iterator[Finding]:
    rule = "same draws on two clients"
    runs = [bench.start(share) for share in split(WORKERS, 2)]
    if not all(bench.get_ready(run) for run in runs):
        yield Finding(rule, False, "two drivers on one machine did not both get ready")
        return
    at_s = time.time() + 1
    for run in runs:
        run.release(at_s)
    for run in runs:
        run.wait(at_s + sum(PHASES.values()) + END_S)
        results(run)
    bench.end()
    yield same(rule, bench.model, whole, runs)


def same(rule: str, model: str, whole: Started, runs: list[Started]) -> Finding:
    """Whether the drivers of `runs` together drew what the one of `whole` did."""
    pairs = common(sequences([whole]), sequences(runs))
    compared, kinds = sum(len(a) for a, _ in pairs), {label for a, b in pairs for label in (*a, *b)}
    if model == "open":  # arrivals overlap, and the results have them in the order of their ends
        pairs = [(sorted(a), sorted(b)) for a, b in pairs]
    wrong = sum(a != b for a, b in pairs)
    if compared < SAME_LEAST or len(kinds) < 2:
        return Finding(rule, None, f"{compared} interactions of {len(kinds)} kinds are too few to tell")
    who = "threads" if tells_draws([whole]) else "workers"
    said = f"{wrong} of {len(pairs)} {who} did other things" if wrong else f"{compared} interactions compared"
    return Finding(rule, not wrong, said)


def on_request(bench: Bench, whole: Started) -> Iterator[Finding]:
    """SIGTERM during the run, of a run with another seed."""
    run = bench.start(bench.whole, seed=2, endless=True)
    if not bench.get_ready(run):
        yield Finding("ends on SIGTERM", False, "it did not get ready a second time")
        return
    run.release(time.time() + 0.5)
    time.sleep(3)
    if run.code is not None:
        done = bench.model == "work" and run.code == 0  # its work is not given by `amount`, and there was too little
        said = f"ended by itself within 2.5 s of the start: exit code {run.code}{run.last_words}"
        yield Finding("ends on SIGTERM", None if done else False, said)
        return
    os.kill(int((run.folder / "driver.pid").read_text()), signal.SIGTERM)
    sent_s = time.time()
    code = run.wait(sent_s + TERM_S)
    said = (
        f"still runs {TERM_S:.0f} s later" if code is None else f"exit code {code} after {time.time() - sent_s:.1f} s"
    )
    yield Finding("ends on SIGTERM", code == 0, said)
    bench.end()
    finding = results(run, WORKERS)
    yield Finding("its files are whole then", finding.kept, finding.said)
    pairs = common(sequences([whole]), sequences([run]))
    kinds = {label for a, b in pairs for label in (*a, *b)}
    told = sum(len(a) for a, _ in pairs) >= SAME_LEAST and len(kinds) > 1
    differs = any(a != b for a, b in pairs)
    said = "other draws with another seed" if differs else "the same draws with another seed"
    yield Finding("the seed counts", differs if told else None, said if told else "too few interactions to tell")


def wrong_request(bench: Bench) -> Finding:
    """No workers, and a file that is no JSON: exit code 2 and a message, at once."""
    none = json.dumps(bench.told(Share(0, 1, 0, 0), 1))
    for what, text in (("workers: 0", none), ("a driver.json that is no JSON", "{")):
        run = bench.start(bench.whole, text=text)
        code = run.wait(run.begun_s + READY_S / 2)
        bench.end()
        if code != 2 or not run.last_words:
            ended = "goes on" if code is None else f"exit code {code}"
            return Finding("refuses a wrong request", False, f"{what}: {ended}{run.last_words}; expected exit code 2")
    return Finding("refuses a wrong request", True, "exit code 2 and a message")


def users_leave(bench: Bench) -> Finding:
    """Some users are to leave during the ramp-up. A driver that cannot do that says so; one that does not listen would
    go on with all of them, or without these."""
    rule = "lets users leave, or refuses"
    who = {"workers": LEAVERS, "first_worker": WORKERS, "leave_s": LEAVE_S}
    told = bench.told(bench.whole, 1) | {"phases": LEAVE_PHASES, "leaving": who}
    run = bench.start(bench.whole, text=json.dumps(told))
    if not bench.get_ready(run):
        code = run.wait(run.begun_s + READY_S)
        bench.end()
        if code == 2 and run.last_words:
            return Finding(rule, True, f"refuses, so its system must not say users_leave{run.last_words}")
        ended = "not ready" if code is None else f"exit code {code}"
        return Finding(rule, False, f"{ended}{run.last_words}; expected users who leave, or exit code 2")
    run.release(time.time() + 1)
    run.wait(run.start_s + sum(LEAVE_PHASES.values()) + END_S)
    bench.end()
    problem = stayed(run)
    if problem:
        return Finding(rule, False, problem)
    return Finding(rule, True, f"{LEAVERS} of {WORKERS + LEAVERS} users left in time: its system may say users_leave")


def stayed(run: Started) -> str:
    """What is wrong with the lives of those who should leave and of those who should stay; empty if nothing is."""
    file = run.folder / "users.csv"
    if not file.exists():
        return "users.csv is missing"
    try:
        rows = list(csv.DictReader(file.read_text(errors="replace").splitlines()))
        ends = {int(r["user"]): float(r["t_end_ms"]) / 1000 - run.start_s for r in rows}
    except (KeyError, TypeError, ValueError) as error:
        return f"users.csv: {type(error).__name__}: {error}"
    run_end_s = LEAVE_PHASES["ramp_up_s"] + LEAVE_PHASES["run_s"]
    for user in range(WORKERS + LEAVERS):
        if user not in ends:
            return (
                f"users.csv: user {user} is not there; users {WORKERS} to {WORKERS + LEAVERS - 1} are to come and leave"
            )
        if user >= WORKERS and not LEAVE_S - EARLY_S <= ends[user] <= LEAVE_S + LEFT_S:
            return (
                f"user {user} left {ends[user]:.2f} s after the start, expected {LEAVE_S:g} to {LEAVE_S + LEFT_S:g} s"
            )
        if user < WORKERS and ends[user] < run_end_s:
            return f"user {user} left {ends[user]:.2f} s after the start, expected to stay until {run_end_s:g} s"
    beats = [b for b in csv.DictReader(run.lines()) if float(b["t_s"]) - run.start_s > LEAVE_S + LEFT_S]
    most = max((int(b["users"]) for b in beats), default=0)
    return f"progress.csv: {most} users after {LEAVERS} of them had left" if most > WORKERS else ""


def text(finding: Finding) -> str:
    mark = {True: "ok     ", False: "BROKEN ", None: "unknown"}[finding.kept]
    return f"{mark} {finding.rule}: {finding.said}"


def read_settings(file: str | None, values: tuple[str, ...], command: list[str]) -> dict[str, Any]:
    """A JSON file with further keys of `driver.json`, and NAME=VALUE of its parameters. Raises RequestError."""
    settings: dict[str, Any] = {}
    if not command:
        raise RequestError(
            f"driver: a command is missing; for example {shlex.join(['ntier', 'driver', 'check', 'CMD'])}"
        )
    if file:
        try:
            settings = json.loads(Path(file).read_text())
        except (OSError, ValueError) as error:
            raise RequestError(f"config: {file}: {error}") from None
        if not isinstance(settings, dict):
            raise RequestError(f"config: {file}: expected a JSON object with keys of driver.json")
    for value in values:
        name, equals, given = value.partition("=")
        if not equals:
            raise RequestError(f"set: {value!r}: expected NAME=VALUE")
        number = re.fullmatch(r"-?\d+(\.\d+)?", given)
        settings.setdefault("parameters", {})[name] = (float(given) if number[1] else int(given)) if number else given
    return settings
