"""Whether a disk that reads 100 % has room.

A disk is "busy" while it serves anything. One that serves many requests at a time (an SSD, an array) reads 100 % long
before it is full, so that reading alone convicts no disk. Two things do: its requests take longer than at low load,
or its use has grown as that of a server that serves one at a time does, in proportion to the throughput."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from ntier_analysis.verdict.load import Load
from ntier_analysis.verdict.saturation import Saturation

LONGER, AS_LONG = 3.0, 1.5
"""Time that a request takes on the plateau against that at low load, from which on requests queue, and up to which
none does. Beyond the knee a full disk has the queue of all who wait; one with places left takes as long as ever, give
or take what few requests of very different size do (up to 1.6 times, simulated). Between the two its use decides."""
OUTGROWN_PCT = 120.0
"""Use that the throughput of the plateau would need, extrapolated from a low load: beyond it, the disk serves several
at a time. Idle floors and noise of the readings stay below (simulated: bench/detector, tuning seeds)."""
LOW_ENOUGH = 0.6
"""Throughput of a load that tells, against the plateau's: at 0.6 a disk that serves many at a time and reads 95 % on
the plateau reads 83 %, and the extrapolation is 138 %; above 0.75 both kinds of disk look alike."""
KNOWN_LIMIT = ("cgroup",)
"""Sources whose utilization is a share of a limit that is in force, bytes by bytes: 100 % is full."""


class Room(Enum):
    """What is known of a disk that reads full."""

    NONE = "it is full"
    SOME = "it serves several at a time and has room"
    UNKNOWN = "whether it has room is not known"


@dataclass(frozen=True)
class Disk:
    room: Room
    why: str


Key = tuple[str, str, str]
Trials = list[tuple[Load, list[Saturation]]]


def disks(free: Trials, plateau: Trials) -> dict[Key, Disk]:
    """Of each disk that was measured on the plateau."""
    level = float(np.mean([load.throughput_per_s for load, _ in plateau]))
    low = [(load, found) for load, found in free if load.throughput_per_s <= LOW_ENOUGH * level]
    seen = {s.key: s for _, found in plateau for s in found if s.resource == "disk"}
    return {key: _disk(s, low, plateau, level) for key, s in seen.items()}


def _disk(s: Saturation, low: Trials, plateau: Trials, level: float) -> Disk:
    if s.source.startswith(KNOWN_LIMIT):
        return Disk(Room.NONE, "its use is a share of a known limit")
    longer, text = _longer(s, low, plateau)
    if longer >= LONGER:
        return Disk(Room.NONE, text)
    if longer <= AS_LONG:
        return Disk(Room.SOME, text)
    uses = [
        (load.throughput_per_s, o.utilization_mean_pct)
        for load, found in low
        for o in found
        if o.key == s.key and np.isfinite(o.utilization_mean_pct)
    ]
    if not uses:
        return Disk(Room.UNKNOWN, text or "neither its queue nor a low load was measured")
    expected = float(np.mean([pct / x for x, pct in uses])) * level
    text = f"at low load it is used so much that this throughput would need {expected:.0f} %"
    return Disk(Room.SOME if expected > OUTGROWN_PCT else Room.NONE, text)


def _longer(s: Saturation, low: Trials, plateau: Trials) -> tuple[float, str]:
    """How many times longer a request takes the disks of this tier on the plateau; NaN if it was not measured."""
    now, before = _wait(plateau, s.group), _wait(low, s.group)
    if not (np.isfinite(now) and np.isfinite(before) and before > 0):
        return float("nan"), ""
    return now / before, f"a request takes {now:.1f} ms, at low load {before:.1f} ms"


def _wait(trials: Trials, group: tuple[str, str]) -> float:
    """Mean time of a request over the replicas of a tier, ms; NaN if it was not measured."""
    known = [s.wait_ms for _, found in trials for s in found if s.group == group and np.isfinite(s.wait_ms)]
    return float(np.mean(known)) if known else float("nan")
