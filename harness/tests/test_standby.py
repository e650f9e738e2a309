"""The analysis that stays up between questions: a real program, asked, stopped, killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from ntier_harness import standby
from ntier_harness.errors import Interrupted, WorkError
from ntier_harness.runner import Runner
from ntier_harness.standby import ANALYSIS, END_WAIT_S, end

VERSION = [ANALYSIS, "--version"]
HELP = [ANALYSIS, "--help"]  # needs no libraries


@pytest.fixture
def runner():
    made = Runner()
    yield made
    if made.analysis._process:
        end(made.analysis._process)


def pid(runner: Runner) -> int:
    return runner.analysis._process.pid


def gone(number: int) -> bool:
    return not os.path.exists(f"/proc/{number}")


def test_one_program_answers_what_each_would_have_said_alone(runner):
    alone = runner.run(VERSION)
    asked = [runner.ask(VERSION) for _ in range(2)]
    assert [(d.code, d.out, d.err) for d in asked] == [(0, alone.out, alone.err)] * 2
    first = pid(runner)
    with pytest.raises(WorkError, match="nowhere"):
        runner.ask([ANALYSIS, "validate", "nowhere"])
    assert runner.ask(VERSION).out == alone.out, "an error ends the command and not the program"
    assert pid(runner) == first


@pytest.fixture
def another_program(tmp_path, monkeypatch) -> Path:
    """The analysis, of which what stays up fails at every question."""
    file = tmp_path / "ntier-analysis"
    answer = '{"code": 1, "out": "", "err": "ImportError: cannot import name x"}'
    stays_up = f"[ $1 != standby ] || while read -r line; do echo '{answer}'; done"
    file.write_text(f'#!/bin/sh\n{stays_up}\n[ $1 = standby ] || exec {ANALYSIS} "$@"\n')
    file.chmod(0o755)
    monkeypatch.setattr(standby, "ANALYSIS", str(file))
    return file


def test_what_fails_in_the_program_that_stays_up_is_asked_of_a_new_one(runner, another_program):
    """As after an update of the analysis while a campaign runs: each trial would fail by it."""
    argv = [str(another_program), "--version"]
    assert runner.ask(argv).out.startswith("ntier-analysis ")
    assert runner.analysis._process is None
    with pytest.raises(WorkError, match="nowhere"):
        runner.ask([str(another_program), "validate", "nowhere"])


@pytest.fixture
def quick(tmp_path, monkeypatch) -> None:
    """The analysis stays up without what no question here needs, which takes it two seconds at each start."""
    file = tmp_path / "ntier-analysis"
    lines = ["from ntier_analysis import cli, standby", "standby.load = lambda: None", "cli.main()"]
    file.write_text("\n".join([f"#!{sys.executable}", *lines, ""]))
    file.chmod(0o755)
    monkeypatch.setattr(standby, "ANALYSIS", str(file))


def test_a_killed_program_is_started_again(runner):
    runner.ask(VERSION)
    before = pid(runner)
    os.kill(before, signal.SIGKILL)
    assert runner.ask(VERSION).code == 0
    runner.ask(VERSION)
    assert pid(runner) != before


@pytest.mark.usefixtures("quick")
def test_a_program_that_ended_by_itself_leaves_no_pipes(runner):
    """As after each large trial: of a long campaign no file could be opened any more."""
    runner.ask(HELP)
    before = len(os.listdir("/proc/self/fd"))
    os.kill(pid(runner), signal.SIGKILL)
    runner.analysis._process.wait()
    runner.ask(HELP)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.usefixtures("quick")
def test_a_program_that_dies_over_a_question_leaves_it_to_another(runner):
    runner.ask(HELP)
    held = pid(runner)
    os.kill(held, signal.SIGSTOP)
    threading.Timer(0.5, os.kill, (held, signal.SIGKILL)).start()
    assert runner.ask(HELP, timeout=60).code == 0


@pytest.mark.usefixtures("quick")
def test_a_program_that_does_not_answer_is_ended(runner):
    runner.ask(HELP)
    held = pid(runner)
    os.kill(held, signal.SIGSTOP)
    with pytest.raises(WorkError, match=r"ntier-analysis --help: no answer within 0\.3 s"):
        runner.ask(HELP, timeout=0.3)
    assert gone(held)
    assert runner.ask(HELP).code == 0


@pytest.mark.usefixtures("quick")
def test_a_request_to_stop_does_not_wait_for_the_answer(runner):
    runner.ask(HELP)
    held = pid(runner)
    os.kill(held, signal.SIGSTOP)
    threading.Timer(0.3, runner.stop.request).start()
    with pytest.raises(Interrupted):
        runner.ask(HELP, timeout=60)
    assert gone(held)


@pytest.mark.parametrize("ends", ["sys.exit()", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_it_ends_with_who_asks(ends):
    asks = "runner = Runner(); runner.ask([ANALYSIS, '--version']); print(runner.analysis._process.pid, flush=True)"
    imports = "from ntier_harness.runner import Runner; from ntier_harness.standby import ANALYSIS"
    program = [sys.executable, "-c", f"import os, signal, sys; {imports}; {asks}; {ends}"]
    number = int(subprocess.run(program, stdout=subprocess.PIPE, text=True).stdout)
    until = time.monotonic() + 5 * END_WAIT_S
    while not gone(number) and time.monotonic() < until:
        time.sleep(0.05)
    assert gone(number)
