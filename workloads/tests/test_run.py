"""Runs of the real plan by the real JMeter against real sockets."""

from __future__ import annotations

import csv
import itertools
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from ledger import Ledger, ledger, rows

pytestmark = pytest.mark.whole

SHORT = {"users": 20, "ramp_up_s": 2, "run_s": 4, "ramp_down_s": 1, "think_mean_ms": 300}
RUNS = {
    "auto": {"seed": 5, "threads": "auto"},  # virtual ones, on a JVM where they are good
    "platform": {"seed": 5, "threads": "platform"},
    "virtual": {"seed": 5, "threads": "virtual"},
    "another seed": {"seed": 6},
}


def exit_code(directory: Path) -> int:
    return int((directory / "driver.rc").read_text())


@pytest.fixture
def usual(board, run_jmeter, made_once) -> Callable[[str], Path]:
    """One of `RUNS`, on two web servers. Several tests look at it."""

    def make(folder: Path, which: str) -> None:
        before = remembered()
        run_jmeter(folder, port=board(), host="127.0.0.1,localhost", **SHORT, **RUNS[which])
        assert exit_code(folder) == 0
        assert remembered() == before, "nothing is left with the user who runs it"

    return lambda which: made_once(f"usual {which}", lambda folder: make(folder, which))


@pytest.mark.alone
def test_users_seconds_add_up(board, run_jmeter, measured, tmp_path):
    numbers = itertools.count()
    load = {"users": 300, "content_share": 0.2, "ramp_up_s": 12, "run_s": 40, "ramp_down_s": 2, "port": board()}

    def run() -> tuple[Path, Ledger]:
        trial = run_jmeter(tmp_path / f"trial{next(numbers)}", **load)
        assert exit_code(trial) == 0
        return trial, ledger([trial])

    trial, figures = measured(run, lambda run: abs(run[1].unaccounted_share) < 0.01)
    assert figures.errors == 0
    assert figures.not_started_share == 0
    assert abs(figures.unaccounted_share) < 0.01, figures
    # 300 users at 7 s: about 1,700 interactions; the rate has 2.4 % sampling noise, so 10 % is four standard errors
    expected = 300 / (6.9965 + figures.response_time_mean_ms / 1000)
    assert figures.throughput_per_s == pytest.approx(expected, rel=0.1)
    lives = rows(trial / "users.csv")
    assert sorted(int(r["user"]) for r in lives) == list(range(300))
    beats = rows(trial / "progress.csv")
    assert max(int(b["users"]) for b in beats) == 300
    completed = int(beats[-1]["completed"])
    assert completed == sum(int(r["interactions"]) for r in lives) == len(rows(trial / "interactions.jtl.csv"))
    assert all(int(b["completed"]) + int(b["in_flight"]) <= int(b["started"]) for b in beats)
    assert max(int(b["in_flight"]) for b in beats) > 0
    cut_off = sum(r["pending_ms"] != "" for r in lives)
    assert int(beats[-1]["started"]) == completed + cut_off
    assert int(beats[-1]["content_checked"]) > 100
    assert int(beats[-1]["content_wrong"]) == 0


def remembered() -> dict[Path, int]:
    """What JMeter's window remembers for this user, with the times of its last changes."""
    return {p: p.stat().st_mtime_ns for p in (Path.home() / ".java").rglob("*")}


def test_results_have_the_columns_of_jmeters_dashboard_and_one_record_per_interaction(usual):
    trial = usual("auto")
    records = rows(trial / "interactions.jtl.csv")
    wanted = """timeStamp elapsed label responseCode responseMessage threadName success failureMessage bytes sentBytes
        grpThreads allThreads Latency Connect"""
    assert set(wanted.split()) <= set(records[0])
    assert {r["label"] for r in records} <= states("browse_only")
    assert all(int(r["bytes"]) > 9724 for r in records), "each page is loaded with its logo"
    assert list(rows(trial / "thinks.csv")[0]) == ["t_start_ms", "user", "state", "drawn_ms", "actual_ms"]
    assert "shutdown requested at end of test" in (trial / "jmeter.log").read_text(), "no thread of its own waits on"


def test_users_take_turns_over_the_web_servers_and_each_keeps_its_own(usual):
    trial = usual("auto")
    used: dict[str, set[str]] = {}
    for r in rows(trial / "interactions.jtl.csv"):
        used.setdefault(r["threadName"].rsplit("-", 1)[1], set()).add(r["URL"].split("/")[2].split(":")[0])
    assert len(used) == SHORT["users"]
    assert all(len(servers) == 1 for servers in used.values())
    assert Counter(server for servers in used.values() for server in servers) == {"127.0.0.1": 10, "localhost": 10}


def states(mix: str) -> set[str]:
    with (Path(__file__).parents[1] / "mixes" / f"{mix}.csv").open() as table:
        return {r["from"] for r in csv.DictReader(line for line in table if line[0] != "#")}


def paths(trial: Path) -> dict[str, list[str]]:
    """States that each user visited, in order (JMeter numbers threads from 1)."""
    visits: dict[str, list[str]] = {}
    for r in sorted(rows(trial / "interactions.jtl.csv"), key=lambda r: int(r["timeStamp"]) + int(r["elapsed"])):
        visits.setdefault(r["threadName"].rsplit("-", 1)[1], []).append(r["label"] + r["URL"].rsplit("/", 1)[1])
    return visits


def test_the_same_seed_gives_the_same_walks_requests_and_thinks(usual):
    """On threads of either kind."""
    one, two, other = map(usual, ("auto", "platform", "another seed"))
    for what in (paths, draws):
        first, same, others = what(one), what(two), what(other)
        compared = {user: min(len(first[user]), len(same[user])) for user in first.keys() & same.keys()}
        assert all(first[user][:n] == same[user][:n] for user, n in compared.items())
        assert sum(compared.values()) > 60, "enough to compare: about ten for each of 20 users"
        assert any(first[user][:n] != others.get(user, [])[:n] for user, n in compared.items())


def test_failed_requests_are_tried_again_counted_and_lead_home(board, run_jmeter):
    trial = run_jmeter(port=board("status=503"), tries=3, retry_pause_ms=100, **SHORT)
    assert exit_code(trial) == 0
    records = rows(trial / "interactions.jtl.csv")
    stories = [r for r in records if r["label"] == "ViewStory"]
    assert stories
    assert all(r["success"] == "false" and r["responseCode"] == "503" and int(r["elapsed"]) >= 200 for r in stories)
    assert all(r["success"] == "true" for r in records if r["label"] != "ViewStory")
    last = rows(trial / "progress.csv")[-1]
    assert int(last["failed"]) == len(stories)
    assert int(last["retries"]) >= 2 * len(stories)
    for visits in paths(trial).values():
        after = {b.split("edu")[0] for a, b in itertools.pairwise(visits) if a.startswith("ViewStory")}
        assert after <= {"StoriesOfTheDay"}


def test_a_request_that_is_given_up_is_not_sent_again(board, run_jmeter):
    """The server still works for it: a second one would be load that no user makes."""
    trial = run_jmeter(port=board("delay_ms=2000"), timeout_ms=500, retry_pause_ms=100, **SHORT)
    assert exit_code(trial) == 0
    records = rows(trial / "interactions.jtl.csv")
    assert records
    assert all(r["success"] == "false" and r["responseCode"].endswith("SocketTimeoutException") for r in records)
    assert all(500 <= int(r["elapsed"]) < 2000 for r in records)
    assert rows(trial / "progress.csv")[-1]["retries"] == "0"


def test_an_error_page_is_a_failed_sample_although_its_status_is_200(board, run_jmeter):
    trial = run_jmeter(port=board("insert=ERROR"), **SHORT)
    records = rows(trial / "interactions.jtl.csv")
    assert records
    outcomes = {(r["success"], r["failureMessage"], r["responseCode"]) for r in records}
    assert outcomes == {("false", "ERROR page", "200")}
    assert {r["label"] for r in records} == {"StoriesOfTheDay"}, "an error leads home"
    assert len(rows(trial / "thinks.csv")) == 0, "without a think"


def test_wrong_content_is_counted_and_fails_the_sample(board, run_jmeter, tmp_path):
    checks = tmp_path / "checks.csv"
    checks.write_text("state,must_contain\nViewStory,no page shows this\n")
    trial = run_jmeter(port=board(), content_checks=checks, content_share=1, **SHORT)
    failed = Counter(r["label"] for r in rows(trial / "interactions.jtl.csv") if r["success"] == "false")
    last = rows(trial / "progress.csv")[-1]
    assert set(failed) == {"ViewStory"}
    assert int(last["content_wrong"]) == int(last["content_checked"]) == failed["ViewStory"]


def test_requests_under_way_at_the_end_are_pending_not_errors(board, run_jmeter):
    trial = run_jmeter(port=board("delay_ms=60000"), **SHORT)
    assert exit_code(trial) == 0
    lives = rows(trial / "users.csv")
    assert len(lives) == 20
    assert all(r["pending_state"] == "StoriesOfTheDay" for r in lives)
    lived_ms = [float(r["t_end_ms"]) - float(r["t_start_ms"]) for r in lives]
    assert all(float(r["pending_ms"]) > 0.3 * lived > 0 for r, lived in zip(lives, lived_ms, strict=True))
    assert all(r["errors"] == "0" for r in lives)
    assert rows(trial / "interactions.jtl.csv") == []


def test_a_request_that_is_tried_again_is_cut_off_at_the_end_too(board, run_jmeter):
    """The first try is refused at once, the second one would take two minutes."""
    trial = run_jmeter(port=board("refuse_first=20", "delay_ms=120000"), tries=30, retry_pause_ms=100, **SHORT)
    assert time.time() - int((trial / "start").read_text()) / 1000 < 60
    assert exit_code(trial) == 0
    lives = rows(trial / "users.csv")
    assert len(lives) == 20
    assert all(r["pending_state"] == "StoriesOfTheDay" and r["errors"] == "0" for r in lives)


@pytest.mark.alone
def test_a_request_that_is_cut_off_began_when_its_user_had_thought(board, run_jmeter, measured, tmp_path):
    """However long it takes to abort the requests of all users: the time between would be nobody's (check G1)."""
    numbers = itertools.count()
    load = SHORT | {"users": 300, "run_s": 12, "think_mean_ms": 1500, "port": board("delay_ms=400")}

    def between_ms() -> list[float]:
        trial = run_jmeter(tmp_path / f"trial{next(numbers)}", **load)
        assert exit_code(trial) == 0
        thought_ms = {r["user"]: float(r["t_start_ms"]) + float(r["actual_ms"]) for r in rows(trial / "thinks.csv")}
        lives = [r for r in rows(trial / "users.csv") if r["pending_ms"] and r["user"] in thought_ms]
        assert len(lives) > 60
        return [float(r["t_end_ms"]) - float(r["pending_ms"]) - thought_ms[r["user"]] for r in lives]

    between = measured(between_ms, lambda found: abs(sum(found) / len(found)) <= 20)
    assert sum(between) / len(between) == pytest.approx(0, abs=20)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"mix": "/nowhere/mix.csv"}, r"mix file '/nowhere/mix.csv' cannot be read"),
        ({"dictionary": "/nowhere/words"}, r"dictionary '/nowhere/words' cannot be read"),
        ({"run_s": -1}, r"run of -1.0 s: must be 0 or more"),
        ({"start_epoch_ms": 1, "start_file": "x"}, r"start 1 and start file 'x' are both given"),
        ({"start_file": "/etc/hostname"}, r"start file '/etc/hostname' has no time in epoch ms"),
        ({"today": "tomorrow"}, r"date 'tomorrow' is not of the form 2026-01-31"),
        ({"threads": "fibres"}, r"threads 'fibres': allowed are auto, virtual, platform"),
        ({"database_users": 0}, r"registered users 0: must be 1 to 2146483647"),
        ({"think_mean_ms": -5}, r"think time mean -5.0 ms is not in 0..3600000"),
    ],
)
def test_bad_input_is_one_error_and_exit_code_2(run_jmeter, properties, message):
    trial = run_jmeter(port=9, **(SHORT | properties))
    assert exit_code(trial) == 2
    assert len(re.findall(rf"^ntier: {message}", (trial / "driver.out").read_text(), re.MULTILINE)) == 1


@pytest.mark.parametrize("threads", ["virtual", "platform"])
def test_both_kinds_of_threads_give_the_same_load(usual, threads, java_25):
    if threads == "virtual" and not java_25:
        pytest.skip("virtual threads need a newer JDK than this machine has")
    trial = usual(threads)
    assert sorted(int(r["user"]) for r in rows(trial / "users.csv")) == list(range(20))
    assert all(r["success"] == "true" for r in rows(trial / "interactions.jtl.csv"))


def draws(*trials: Path) -> dict[int, list[tuple[str, str]]]:
    """What each user drew, in order: transitions and think times, by the user's number among all clients."""
    by_user: dict[int, list[tuple[str, str]]] = {}
    for trial in trials:
        for r in sorted(rows(trial / "thinks.csv"), key=lambda r: float(r["t_start_ms"])):
            by_user.setdefault(int(r["user"]), []).append((r["state"], r["drawn_ms"]))
    return by_user


def roles(*trials: Path) -> dict[int, str]:
    return {int(r["user"]): r["author"] for trial in trials for r in rows(trial / "users.csv")}


def test_what_a_user_draws_does_not_depend_on_the_client_it_is_on(board, run_jmeter, tmp_path):
    port, mixes = board(), Path(__file__).parents[1] / "mixes"
    writers = {"mix": mixes / "read_write.csv", "author_mix": mixes / "authors/read_write.csv", "author_share": 0.4}
    load = SHORT | writers | {"port": port, "seed": 11}
    shares = {"first": (0, 13), "second": (13, 7)}
    one = run_jmeter(tmp_path / "one", **load)
    two = [run_jmeter(tmp_path / n, **(load | {"first_user": f, "users": u})) for n, (f, u) in shares.items()]
    assert roles(one) == roles(*two)
    assert set(roles(one)) == set(range(20))
    assert set(roles(one).values()) == {"0", "1"}
    alone, split = draws(one), draws(*two)
    compared = {user: min(len(alone[user]), len(split[user])) for user in range(20)}
    assert all(alone[u][:n] == split[u][:n] for u, n in compared.items())
    assert sum(compared.values()) > 60, "enough draws to compare: about ten for each of 20 users"
    assert len({tuple(drawn[:5]) for drawn in split.values()}) == 20, "no two users draw alike"
