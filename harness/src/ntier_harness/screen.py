"""What a person sees. Messages go to stderr, data to stdout; without a terminal there are plain lines only."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ntier_analysis.contracts.manifest import Manifest, Phase
    from rich.live import Live

    from ntier_harness.load import Progress
    from ntier_harness.plan import Trial

EVERY_S = 30.0  # plain lines: one per change of phase, and one each 30 s


def duration(seconds: float) -> str:
    """`1 h 05 min`, `3 min 20 s`, `45 s`."""
    s = round(seconds)
    if s >= 3600:
        return f"{s // 3600} h {s % 3600 // 60:02d} min"
    return f"{s // 60} min {s % 60:02d} s" if s >= 60 else f"{s} s"


def size(n: float) -> str:
    """Bytes with a decimal unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if n < 1000:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1000
    return f"{n:.1f} TB"


def outcome(manifest: Manifest) -> str:
    """How an attempt ended: valid, invalid or failed."""
    return "valid" if manifest.valid else "invalid" if manifest.validity else "failed"


def tell(text: str) -> None:
    """On stderr. Where nobody can read it any more (a terminal that was closed, a log on a full disk), what is measured
    goes on."""
    try:
        if sys.stderr:  # else it was closed from the beginning, and print would take stdout
            print(text, file=sys.stderr, flush=True)
    except OSError:  # what could not be written would be tried again at the program's end, and be its exit code
        with contextlib.suppress(OSError), open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), sys.stderr.fileno())


class Screen:
    """Plain lines; `LiveScreen` adds one line that changes in place. `events` is where `--json` lines go, or None."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.label = ""
        self.who = "users"
        self._phase = ""
        self._said_s = 0.0

    def say(self, text: str) -> None:
        if not self.as_json:
            tell(text)

    def event(self, kind: str, **values: Any) -> None:
        """With `--json`: one JSON line per event on stdout."""
        if self.as_json:
            print(json.dumps({"event": kind, "t_s": round(time.time(), 3), **values}), flush=True)

    def warn(self, text: str) -> None:
        tell(f"warning: {text}")

    def trial(self, trial: Trial, attempt: int, number: int, of: int, left_s: float, *, at_most: bool = False) -> None:
        self.label = f"[{number}/{of}] {trial.attempt_key(attempt)}"
        self._phase = ""
        self.event("trial", trial=trial.key, attempt=attempt, number=number, of=of)
        left = f"{duration(left_s)} or less" if at_most else duration(left_s)
        self.say(f"{self.label}  {trial.load}, attempt {attempt}; {left} left")

    def step(self, step: str) -> None:
        self.event("step", step=step)

    def tick(self, phase: Phase, progress: Progress, hottest: tuple[str, float] | None, now_s: float) -> None:
        changed = phase.name != self._phase
        if changed or now_s - self._said_s >= EVERY_S:
            self._phase, self._said_s = phase.name, now_s
            self.say(f"{self.label}  {self.line(phase, progress, hottest, now_s)}")
            self.event(
                "progress",
                phase=phase.name,
                users=progress.users,
                throughput_per_s=round(progress.throughput_per_s, 2),
                errors=progress.errors,
                hottest=hottest and {"node": hottest[0], "busy": hottest[1]},
            )

    def line(self, phase: Phase, progress: Progress, hottest: tuple[str, float] | None, now_s: float) -> str:
        hot = f"  hottest {hottest[0]} cpu {hottest[1] * 100:.0f} %" if hottest else ""
        left = max(0.0, (phase.end_s or now_s) - now_s)
        mean = "-" if math.isnan(progress.response_time_ms) else f"{progress.response_time_ms:.0f}"
        return (
            f"{phase.name:9s} {left:4.0f} s left  {progress.users} {self.who}  {progress.throughput_per_s:.1f}/s  "
            f"{mean} ms  {progress.errors} errors{hot}"
        )

    def ended(self, manifest: Manifest, overhead_s: float | None, label: str = "") -> None:
        """`overhead_s`: time that the trial took in addition to its phases; None if it was cut short. `label`: of the
        trial, if another one has begun."""
        reasons = manifest.validity.reasons if manifest.validity else []
        how = outcome(manifest)
        self.event("trial_end", trial=manifest.trial, attempt=manifest.attempt, outcome=how, reasons=reasons,
                   failure=manifest.failure, overhead_s=overhead_s and round(overhead_s, 1))  # fmt: skip
        why = f": {manifest.failure or ', '.join(reasons)}" if how != "valid" else ""
        took = f"  (overhead {overhead_s:.1f} s)" if overhead_s is not None else ""
        self.say(f"{label or self.label}  {how}{why}{took}")

    def close(self) -> None:
        """Ends what changes in place."""

    def result(self, text: str, data: dict[str, Any]) -> None:
        """The outcome, on stdout: as text, or as a JSON line."""
        self.event("result", **data)
        if not self.as_json:
            print(text, flush=True)


class LiveScreen(Screen):
    """On a terminal: a line per trial that changes in place."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console

        self.console = Console(stderr=True, highlight=False)
        self._live: Live | None = None

    def say(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self.console.print(text, markup=False)

    def step(self, step: str) -> None:
        self._show(f"{self.label}  {step}")

    def tick(self, phase: Phase, progress: Progress, hottest: tuple[str, float] | None, now_s: float) -> None:
        self._show(f"{self.label}  {self.line(phase, progress, hottest, now_s)}")

    def _show(self, text: str) -> None:
        from rich.live import Live
        from rich.text import Text

        with contextlib.suppress(OSError):
            if self._live is None:
                self._live = Live(console=self.console, refresh_per_second=4, transient=True)
                self._live.start()
            self._live.update(Text(text))

    def close(self) -> None:
        live, self._live = self._live, None
        if live:
            with contextlib.suppress(OSError):
                live.stop()


def make_screen(*, as_json: bool = False) -> Screen:
    """A live screen on a terminal that can show one, plain lines otherwise."""
    live = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not as_json
    return LiveScreen() if live else Screen(as_json=as_json)
