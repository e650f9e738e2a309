#!/usr/bin/env python3
"""The parts of `make test`. What makes images and deploys waits for half of its time, so it runs beside what
only computes; what measures comes last and has the machine to itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Stage after stage. The parts of a stage are goals of the Makefile that run at once; the last one has the screen.
STAGES = (("test-bases", "test-tools"), ("test-images", "test-without"), ("test-alone",))


class Part:
    """A goal of the Makefile that runs; `log` gets what it prints, if it does not have the screen."""

    def __init__(self, goal: str, log: Path | None) -> None:
        self.goal, self.log, self.begin_s = goal, log, time.monotonic()
        command = ["make", "--no-print-directory", "-C", str(ROOT), goal]
        if log is None:
            self.process = subprocess.Popen(command)
        else:
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("wb") as out:  # the terminal's Ctrl-C does not reach another process group
                self.process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, process_group=0
                )

    def end(self) -> bool:
        """Waits for it and says how it ended; returns whether all is well."""
        code = self.process.wait()
        if self.log:
            print(self.log.read_text(errors="replace"), end="")
        took = "" if self.log else f" after {time.monotonic() - self.begin_s:.0f} s"  # the other may have ended before
        say(f"{self.goal}: {'passed' if code == 0 else f'failed (exit code {code})'}{took}")
        return code == 0

    def interrupt(self) -> None:
        """Its tests undo what they began, as after a Ctrl-C."""
        if self.log and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
        self.process.wait()


def say(text: str) -> None:
    print(f"test: {text}", flush=True)


def run(stage: tuple[str, ...], logs: Path) -> bool:
    """Whether all parts of the stage passed. A failure in one does not end the others: their result is of use, too."""
    parts = [Part(goal, logs / f"{goal}.log") for goal in stage[:-1]]
    for part in parts:
        say(f"{part.goal} begins; it prints to {part.log}, and here at its end")
    say(f"{stage[-1]} begins")
    parts.append(Part(stage[-1], None))
    try:
        ends = [part.end() for part in reversed(parts)]
    except KeyboardInterrupt:
        for part in parts:
            part.interrupt()
        raise
    return all(ends)


def main() -> int:
    begin_s = time.monotonic()
    try:
        well = all(run(stage, ROOT / "build/tests") for stage in STAGES)  # a stage that failed is the last one
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    say(f"{'all passed' if well else 'FAILED'} after {(time.monotonic() - begin_s) / 60:.0f} min")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
