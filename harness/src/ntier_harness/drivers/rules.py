"""Rules of the drivers' contract (docs/drivers.md), judged by what runs of a driver left in their folders."""

from __future__ import annotations

import csv
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ntier_harness.drivers import bench
from ntier_harness.drivers.bench import WORKERS, Server, Started
from ntier_harness.drivers.heartbeat import Broken, Heartbeat

GAP_S = 5.0  # between two lines of the heartbeat, as load.HEARTBEAT_S
EARLY_S, LATE_S = 0.05, 1.0  # requests before the start, and after the end
LEAD_S = 0.2  # from the moment a driver is told the start to the start: what a trial allows for (docs/drivers.md)
BEGIN_S = 1.0  # by which the first request may be late: a JVM's first one takes some tenths of a second, or more
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
    rows = list(reader)
    for n, row in enumerate(rows, 2):
        if problem := wrong_row(row, run):
            return Finding(rule, False, f"interactions.jtl.csv:{n}: {problem}")
    run.rows = rows  # whose numbers are numbers
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


def begin_most_s(told: Mapping[str, Any]) -> float:
    """How long after the start the first request may begin, by what a driver is told: users begin in the first half of
    the ramp-up and may think first; of open arrivals none comes for ten mean gaps once in 20,000 times. The timers of a
    JMeter plan are its own."""
    if "jmeter" in told:
        return math.inf
    if told["load_model"] == "closed":
        think_s = told["think_time_s"]
        return bench.PHASES["ramp_up_s"] / 2 + (think_s if isinstance(think_s, int | float) else 0.0) + BEGIN_S
    if told["load_model"] == "work":
        return BEGIN_S
    rate = told["parameters"]["rate_per_s"]
    return BEGIN_S + 10 / rate if isinstance(rate, int | float) and rate > 0 else math.inf


def timely(server: Server, run: Started, end_s: float, begin_s: float) -> Finding:
    """What the server saw; a driver with another protocol sends it nothing. `begin_s`: `begin_most_s`."""
    rule, asked = "keeps the phases", list(server.asked_s)
    if not asked:
        return Finding(rule, None, f"no request came to 127.0.0.1:{server.port}")
    early, late = run.start_s - min(asked), max(asked) - end_s
    if early > EARLY_S or late > LATE_S:
        which = f"{early:.2f} s before the start" if early > EARLY_S else f"{late:.1f} s after the end"
        return Finding(rule, False, f"a request came {which}")
    begun = min((int(row["timeStamp"]) / 1000 for row in run.rows), default=min(asked)) - run.start_s
    if begun > begin_s:
        late_s = f"began {begun:.2f} s after the start, expected {begin_s:.2g} s at most"
        return Finding(rule, False, f"the first interaction {late_s} (the start is told {LEAD_S} s ahead)")
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
