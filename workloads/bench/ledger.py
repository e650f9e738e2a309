#!/usr/bin/env python3
"""The time ledger of a client run: where did the users' seconds go?

Usage: ledger.py DIR [DIR ...] (each with ntier.properties, interactions.jtl.csv, thinks.csv, users.csv of one client)

Over the run phase, N users have N x T seconds. They think, they wait for replies (pending ones included), or they have
not started yet; what is left, the unaccounted share, is the load generator's own lag. It has no sampling noise, unlike
a rate.
"""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Ledger:
    """Seconds of all users in the run phase, and what they did."""

    users: int
    run_s: float
    think_share: float
    response_share: float
    not_started_share: float
    unaccounted_share: float
    interactions: int
    errors: int
    throughput_per_s: float
    response_time_mean_ms: float
    overshoot_mean_ms: float
    """Thinks that ended in the run phase: actual minus drawn time."""
    overshoot_p99_ms: float


def read_properties(file: Path) -> dict[str, str]:
    lines = (line.strip() for line in file.read_text().splitlines())
    return dict(tuple(part.strip() for part in line.split("=", 1)) for line in lines if "=" in line and line[0] != "#")


def clipped_s(start_ms: float, end_ms: float, low_ms: float, high_ms: float) -> float:
    """Seconds of [start, end] that lie in [low, high]."""
    return max(0.0, min(end_ms, high_ms) - max(start_ms, low_ms)) / 1000


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


def run_phase_ms(directory: Path, properties: dict[str, str]) -> tuple[float, float]:
    """By the start file or, without one, by the properties."""
    file = properties.get("ntier.start_file")
    start = (directory / Path(file).name).read_text() if file else properties["ntier.start_epoch_ms"]
    low = float(start) + 1000 * float(properties["ntier.ramp_up_s"])
    return low, low + 1000 * float(properties["ntier.run_s"])


def ledger(directories: list[Path]) -> Ledger:
    """The ledger of one trial, over all its clients."""
    properties = [read_properties(d / "ntier.properties") for d in directories]
    low, high = run_phase_ms(directories[0], properties[0])
    users = sum(int(p["ntier.users"]) for p in properties)
    think = response = not_started = 0.0
    overshoots: list[float] = []
    elapsed: list[float] = []
    errors = 0
    for directory in directories:
        for row in rows(directory / "thinks.csv"):
            start, actual = float(row["t_start_ms"]), float(row["actual_ms"])
            think += clipped_s(start, start + actual, low, high)
            if low <= start + actual < high:
                overshoots.append(actual - float(row["drawn_ms"]))
        for row in rows(directory / "interactions.jtl.csv"):
            start, took = float(row["timeStamp"]), float(row["elapsed"])
            response += clipped_s(start, start + took, low, high)
            if low <= start + took < high:
                elapsed.append(took)
                errors += row["success"] != "true"
        lives = rows(directory / "users.csv")
        for row in lives:
            not_started += clipped_s(low, float(row["t_start_ms"]), low, high)
            if row["pending_ms"]:
                end = float(row["t_end_ms"])
                response += clipped_s(end - float(row["pending_ms"]), end, low, high)
    total = users * (high - low) / 1000
    overshoots.sort()
    return Ledger(
        users=users,
        run_s=(high - low) / 1000,
        think_share=think / total,
        response_share=response / total,
        not_started_share=not_started / total,
        unaccounted_share=1 - (think + response + not_started) / total,
        interactions=len(elapsed),
        errors=errors,
        throughput_per_s=len(elapsed) / ((high - low) / 1000),
        response_time_mean_ms=sum(elapsed) / max(1, len(elapsed)),
        overshoot_mean_ms=sum(overshoots) / max(1, len(overshoots)),
        overshoot_p99_ms=overshoots[int(0.99 * len(overshoots))] if overshoots else 0.0,
    )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print(json.dumps(asdict(ledger([Path(name) for name in sys.argv[1:]])), indent=2))
