"""`ntier driver check`: runs any command by the contract against a small web server on this machine, and says what of
the contract (docs/drivers.md) it keeps and breaks."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ntier_harness.drivers import Share, split
from ntier_harness.drivers.bench import PHASES, WORKERS, Bench, Server, Started
from ntier_harness.drivers.rules import (
    LEAD_S,
    LEAVE_PHASES,
    LEAVE_S,
    LEAVERS,
    SAME_LEAST,
    Finding,
    begin_most_s,
    common,
    heartbeat,
    results,
    same,
    sequences,
    stayed,
    timely,
)
from ntier_harness.errors import RequestError

WAITS_S = 2.5  # how long a driver is kept waiting for the start
END_S, TERM_S = 20.0, 3.0  # as a trial allows (trial.EXIT_WAIT_S, ntier-node)
GONE_S = 2.0  # what was killed at the end may take a moment to die


def check(
    command: list[str], settings: Mapping[str, Any], model: str, starter: Path, report: Callable[[Finding], None]
) -> list[Finding]:
    """Rules in the order in which they are tried; a run that never gets ready ends the check. Raises RequestError if
    the command cannot be started at all."""
    server, findings, command = Server(), [], absolute(command)
    with tempfile.TemporaryDirectory(prefix="ntier-driver-") as place:
        bench = Bench(command, starter, settings, model, Path(place).resolve(), server)
        try:
            for finding in tried(bench):
                findings.append(finding)
                report(finding)
        finally:
            bench.end()
            server.close()
    return findings


def absolute(command: list[str]) -> list[str]:
    """A driver is started in the folder of its run: files that are named from here are named whole. A program without a
    slash is looked up in PATH, as a shell does."""
    program, *words = command
    first = str(Path(program).absolute()) if "/" in program and Path(program).exists() else program
    return [first, *(str(Path(word).absolute()) if Path(word).is_file() else word for word in words)]


def tried(bench: Bench) -> Iterator[Finding]:
    """Rule by rule, with a run of its own where one is needed; a driver that never gets ready ends them."""
    run = bench.start(bench.whole)
    ready = bench.get_ready(run)
    took = time.time() - run.begun_s
    if not ready:
        late = f"no heartbeat within {bench.ready_s:.0f} s"
        why = late if run.code is None else f"ended with exit code {run.code}"
        yield Finding("ready", False, f"{why}{run.last_words}")
        return
    yield Finding("ready", True, f"first heartbeat after {took:.1f} s")
    yield from waiting(bench, run)
    run.release(time.time() + LEAD_S)
    end_s = run.start_s + sum(PHASES.values())
    code = run.wait(end_s + END_S)
    said = "still runs" if code is None else f"exit code {code}{run.last_words}" if code else "exit code 0"
    yield Finding("ends", code == 0, f"{said} {max(0.0, time.time() - end_s):.1f} s after the end of the ramp-down")
    yield heartbeat(run)
    yield results(run)
    yield timely(bench.server, run, end_s, begin_most_s(bench.told(bench.whole, 1)))
    left = bench.left(gone_s=GONE_S)
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


def same_draws(bench: Bench, whole: Started) -> Iterator[Finding]:
    rule = "same draws on two clients"
    runs = [bench.start(share) for share in split(WORKERS, 2)]
    if not all(bench.get_ready(run) for run in runs):
        yield Finding(rule, False, "two drivers on one machine did not both get ready")
        return
    at_s = time.time() + LEAD_S
    for run in runs:
        run.release(at_s)
    for run in runs:
        run.wait(at_s + sum(PHASES.values()) + END_S)
        results(run)
    bench.end()
    yield same(rule, bench.model, whole, runs)


def on_request(bench: Bench, whole: Started) -> Iterator[Finding]:
    """SIGTERM during the run, of a run with another seed."""
    run = bench.start(bench.whole, seed=2, endless=True)
    if not bench.get_ready(run):
        yield Finding("ends on SIGTERM", False, "it did not get ready a second time")
        return
    run.release(time.time() + LEAD_S)
    time.sleep(3)
    if run.code is not None:
        done = bench.model == "work" and run.code == 0  # its work is not given by `amount`, and there was too little
        said = f"ended by itself within {3 - LEAD_S} s of the start: exit code {run.code}{run.last_words}"
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
        code = run.wait(run.begun_s + bench.ready_s / 2)
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
        code = run.wait(run.begun_s + bench.ready_s)
        bench.end()
        if code == 2 and run.last_words:
            return Finding(rule, True, f"refuses, so its system must not say users_leave{run.last_words}")
        ended = "not ready" if code is None else f"exit code {code}"
        return Finding(rule, False, f"{ended}{run.last_words}; expected users who leave, or exit code 2")
    run.release(time.time() + LEAD_S)
    run.wait(run.start_s + sum(LEAVE_PHASES.values()) + END_S)
    bench.end()
    problem = stayed(run)
    if problem:
        return Finding(rule, False, problem)
    return Finding(rule, True, f"{LEAVERS} of {WORKERS + LEAVERS} users left in time: its system may say users_leave")


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
