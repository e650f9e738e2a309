"""Users who leave during the ramp-up: gone in time with what they wait for, and the others do not notice."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from driver_runs import WORKLOADS, start_driver, told, wait_for_end
from ledger import rows

pytestmark = pytest.mark.whole

STAY, LEAVE, FIRST, LEAVE_S = 8, 40, 100, 6.0
RAMP_UP_S, RUN_S = 8, 4
LOAD = {"users": STAY, "ramp_up_s": RAMP_UP_S, "run_s": RUN_S, "ramp_down_s": 1, "think_mean_ms": 300}
LEAVING = {"workers": LEAVE, "first_worker": FIRST, "leave_s": LEAVE_S}
SOON_S = 1.9  # before the run begins, in which nobody of them may be
ESTABLISHED = "01"


def connections(port: int) -> int:
    """Open ones to a port of this machine, seen from those who opened them."""
    lines = [
        line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    return sum(int(line[2].rpartition(":")[2], 16) == port and line[3] == ESTABLISHED for line in lines)


@dataclass(frozen=True)
class Trial:
    """A run in which users left, and the open connections to the board before and after that."""

    out: Path
    before: int
    after: int

    @property
    def start_s(self) -> float:
        return int((self.out / "start").read_text()) / 1000


@pytest.mark.alone
def test_they_are_gone_in_time_with_the_answers_they_wait_for(board, java, jmeter_home, measured, tmp_path):
    """48 users ask for pages that take 0.6 s, of which the board serves 16 at once: most who leave wait."""
    (tmp_path / "dictionary.txt").write_text("word\n")
    numbers = itertools.count()

    def run() -> Trial:
        port, out = board("delay_ms=600"), tmp_path / f"above{next(numbers)}"
        out.mkdir()
        given = {"host": "127.0.0.1", "port": port, "dictionary": tmp_path / "dictionary.txt"}
        (out / "driver.json").write_text(json.dumps(told(out, given | LOAD | {"leaving": LEAVING})))
        start_driver(out, java, jmeter_home)
        start_s = int((out / "start").read_text()) / 1000
        time.sleep(max(0, start_s + LEAVE_S - 0.3 - time.time()))
        before = connections(port)
        time.sleep(max(0, start_s + LEAVE_S + SOON_S - time.time()))
        after = connections(port)
        return Trial(wait_for_end(out), before, after)

    def is_good(trial: Trial) -> bool:
        with contextlib.suppress(AssertionError):
            check(trial)
            return True
        return False

    check(measured(run, is_good))


def check(trial: Trial) -> None:
    out, start_s = trial.out, trial.start_s
    assert (out / "driver.rc").read_text().strip() == "0"
    lives = {int(r["user"]): r for r in rows(out / "users.csv")}
    assert sorted(lives) == [*range(STAY), *range(FIRST, FIRST + LEAVE)]
    ends = {user: int(float(r["t_end_ms"])) / 1000 - start_s for user, r in lives.items()}
    assert all(LEAVE_S - 0.1 <= ends[user] <= LEAVE_S + SOON_S for user in lives if user >= FIRST), ends
    assert all(ends[user] >= RAMP_UP_S + RUN_S for user in range(STAY))
    assert all(float(r["t_start_ms"]) / 1000 - start_s < LEAVE_S / 2 + SOON_S for r in lives.values())
    waited = [user for user in lives if user >= FIRST and lives[user]["pending_ms"]]
    assert len(waited) > LEAVE / 4, "nobody took a request along: nothing is tested"
    assert trial.before > 2 * STAY
    assert trial.after <= STAY, "a connection of somebody who left is open"

    records = rows(out / "interactions.jtl.csv")
    left = [r for r in records if int(r["threadName"].rsplit("-", 1)[1]) > STAY]
    assert max((int(r["timeStamp"]) + int(r["elapsed"])) / 1000 - start_s for r in left) <= LEAVE_S + SOON_S
    beats = rows(out / "progress.csv")
    assert max(int(b["users"]) for b in beats) == STAY + LEAVE
    in_run = [b for b in beats if start_s + RAMP_UP_S <= float(b["t_s"]) < start_s + RAMP_UP_S + RUN_S]
    assert {int(b["users"]) for b in in_run} == {STAY}
    assert max(int(b["in_flight"]) for b in in_run) <= STAY
    cut_off = sum(r["pending_ms"] != "" for r in lives.values())
    assert int(beats[-1]["started"]) == len(records) + cut_off


def test_the_others_draw_what_they_draw_without_them(board, run_jmeter, tmp_path):
    port = board()
    runs = [
        run_jmeter(tmp_path / "plain", port=port, **LOAD),
        run_jmeter(tmp_path / "above", port=port, **LOAD, leaving=LEAVING),
    ]
    thinks = [
        {u: [r["drawn_ms"] for r in rows(run / "thinks.csv") if int(r["user"]) == u][:8] for u in range(STAY)}
        for run in runs
    ]
    assert all(len(drawn) == 8 for drawn in thinks[0].values())
    assert thinks[0] == thinks[1]


@pytest.mark.parametrize(("more", "leaving", "said"), [
    ({"own_thread_group": True}, LEAVING, "leaving: the threads of a plan's own thread groups cannot leave"),
    ({}, LEAVING | {"leave_s": 8.5}, "leave_s above 0 and within the ramp-up"),
    ({}, LEAVING | {"workers": 0}, "workers must be 1 or more"),
])  # fmt: skip
def test_what_it_cannot_do_is_refused(tmp_path, more, leaving, said):
    request = told(tmp_path, LOAD | {"leaving": leaving})
    request["jmeter"] |= more
    (tmp_path / "driver.json").write_text(json.dumps(request))
    done = subprocess.run([WORKLOADS / "bin/run-jmeter", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_driver_whose_users_stay_refuses(tmp_path):
    request = told(tmp_path, LOAD | {"leaving": LEAVING}) | {"parameters": {"requests": "x.csv"}}
    (tmp_path / "driver.json").write_text(json.dumps(request))
    program = WORKLOADS.parent / "drivers/http_driver.py"
    done = subprocess.run([program, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "http_driver: ValueError: leaving: users of this driver stay to the end\n"
