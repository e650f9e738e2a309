"""A signal is seen whatever it interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

WHILE_IT_WAITS = """
import signal, sys
from ntier_harness.errors import Interrupted
from ntier_harness.runner import Runner

def interrupted_at(line):
    runner, seen, said = Runner(), 0, []
    runner.stop.on_first = lambda: said.append("stopping")
    runner.stop.install()
    def trace(frame, event, _arg):
        nonlocal seen
        seen += event == "line"
        if event == "line" and seen == line:
            signal.raise_signal(signal.SIGINT)
        return trace
    sys.settrace(trace)
    try:
        runner.sleep(0.01)
        runner.stop.check()
    except Interrupted:
        return said == ["stopping"]
    finally:
        sys.settrace(None)
    return None

line = 1
while (told := interrupted_at(line)) is not None:
    assert told, line
    line += 1
print(line)
"""


HANG_UP = """
import signal
from ntier_harness.runner import Stop
stop = Stop()
stop.install()
signal.raise_signal(signal.SIGHUP)
print(stop.requested)
"""


def test_a_hang_up_stops_unless_nohup_is_before_the_command():
    command = [sys.executable, "-c", HANG_UP]
    for before, stops in (([], "True"), (["nohup"], "False")):
        # the tests themselves may run under nohup, which their programs would inherit
        usual = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)}
        done = subprocess.run([*before, *command], capture_output=True, text=True, timeout=60, **usual)
        assert (done.returncode, done.stdout.strip()) == (0, stops)


SIGNALS = """
import signal, sys
from ntier_harness.errors import Interrupted
from ntier_harness.runner import Stop
stop = Stop()
stop.install()
for name in sys.argv[1:]:
    stop.request() if name == "budget" else signal.raise_signal(signal.Signals[name])
with stop.deferred():
    stop.check()
print("what must not be cut is done", flush=True)
"""


@pytest.mark.parametrize(
    ("signals", "ends_at_once"),
    [("SIGHUP SIGHUP", False), ("budget SIGINT", False), ("SIGINT SIGINT", True), ("SIGHUP SIGTERM", True),
     ("budget SIGINT SIGINT", True)],
)  # fmt: skip
def test_a_second_signal_ends_at_once_but_not_a_closed_terminals_two(signals, ends_at_once):
    """While machines are given back, say: because a budget is used up, or the terminal was closed."""
    usual = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)}
    command = [sys.executable, "-c", SIGNALS, *signals.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, **usual)
    assert (done.returncode, "is done" in done.stdout) == ((130, False) if ends_at_once else (0, True))


RENTING = """
import signal
from ntier_harness.commands.begin import make_lab
make_lab(target="hcloud")
signal.raise_signal(signal.SIGINT)
signal.raise_signal(signal.SIGINT)
"""


def test_who_ends_it_at_once_is_told_of_rented_machines():
    done = subprocess.run([sys.executable, "-c", RENTING], capture_output=True, text=True, timeout=60)
    said = "machines that are rented by now stay, and may cost money, until: ntier down --target hcloud"
    assert (done.returncode, done.stderr) == (130, f"warning: {said}\n")


UNHEARD = """
import signal
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup, which tests may be run by, asks to ignore it
from ntier_harness.errors import Interrupted
from ntier_harness.runner import Stop
from ntier_harness.screen import make_screen
screen, stop = make_screen(), Stop()
stop.on_first = lambda: screen.say("stopping")
stop.install()
screen.say("[1/2] u01000.r01")
screen.warn("no valid attempt")
screen.close()
signal.raise_signal(signal.SIGHUP)
try:
    stop.check()
except Interrupted:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("stderr", ["a log on a full disk", "a program that has ended", "nothing"])
def test_work_goes_on_and_stops_where_nobody_can_read_what_is_said(stderr):
    """A closed terminal, say, with rented machines that are to be given back."""
    command = [sys.executable, "-c", UNHEARD]
    redirected = {"a log on a full disk": "2>/dev/full", "a program that has ended": "", "nothing": "2>&-"}[stderr]
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(["sh", "-c", f'exec "$@" {redirected}', "sh", *command], stdout=subprocess.PIPE,
                              stderr=write, text=True, timeout=60)  # fmt: skip
    finally:
        os.close(write)
    assert (done.stdout, done.returncode) == ("interrupted\n", 0)


def test_at_any_line_of_a_wait():
    done = subprocess.run([sys.executable, "-c", WHILE_IT_WAITS], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5
