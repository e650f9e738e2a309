"""Processes of a node by their groups: found, told apart from later ones of the same number, ended."""

import contextlib
import os
import signal
import time
from pathlib import Path


def start_ticks(pid):
    """Start of a process in clock ticks since boot, which tells it from a later one of its number; None if gone."""
    status = process_status(pid)
    return int(status[19]) if status else None


def process_status(pid):
    """Fields of /proc/PID/stat from the third (state, parent, group, ...); None if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields


def signal_groups(groups, number):
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, number)


def living_groups():
    statuses = (process_status(folder.name) for folder in Path("/proc").glob("[0-9]*"))
    return {int(status[2]) for status in statuses if status}


KILLED_S = 5  # a killed process is gone when it has had a CPU and its memory is freed


def stop_groups(groups, limit_s):
    """Ends process groups (SIGTERM, then SIGKILL) and waits until they are gone. Returns those that it had to kill."""
    signal_groups(groups, signal.SIGTERM)
    killed = living_after(groups, limit_s)
    signal_groups(killed, signal.SIGKILL)
    living_after(killed, KILLED_S)
    return killed


def living_after(groups, limit_s):
    """-> those of the groups that still live after this time; at once if there are none. The last look comes after it:
    a machine that stood still must not make of a group that has ended one that had to be killed."""
    deadline, left, late = time.monotonic() + limit_s, set(groups), False
    while left and not late:
        late = time.monotonic() >= deadline
        left &= living_groups()
        time.sleep(0.02)
    return left


def marked_groups(mark):
    """Process groups that have `mark` (NAME=value) in their environment, whatever is known of them otherwise."""
    groups = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                groups.add(os.getpgid(int(folder.name)))
        except OSError:
            continue  # ended meanwhile
    return groups - {os.getpgrp()}
