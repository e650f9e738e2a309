"""What the collectors share: a steady one-second clock, and a CSV file whose lines are written whole."""

import signal
import sys
import time


def seconds():
    """Yields once a second, aligned to the start; a second that was missed is left out, never made up for."""
    begun = time.monotonic()
    tick = 0
    while True:
        yield
        tick = max(tick + 1, int(time.monotonic() - begun))
        time.sleep(max(0.0, begun + tick - time.monotonic()))


def as_user(name):
    """Options of `subprocess.Popen` for a program of this user. `runuser` would wait for two seconds between SIGTERM
    and its own end, at the end of each trial."""
    return {"user": name, "group": name, "extra_groups": ()}


def open_csv(path, columns):
    """A line-buffered file with its header; ends the program quietly on SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    file = open(path, "w", buffering=1, encoding="ascii")  # noqa: SIM115 (open until the collector ends)
    file.write(",".join(["t_s", *columns]) + "\n")
    return file
