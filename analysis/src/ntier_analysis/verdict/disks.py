"""Whether a disk that reads 100 % has room.

A disk is "busy" while it serves anything. One that serves many requests at a time (an SSD, an array) reads 100 % long
before it is full, so that reading alone convicts no disk. Two things do: users wait there, that is, as many requests
more than at low load are in its queue as users wait; or its use has grown as that of a server that serves one at a time
does, in proportion to the throughput."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from enum import Enum

import numpy as np

from ntier_analysis.verdict.load import COUNTS, Load
from ntier_analysis.verdict.saturation import THRESHOLD, Key, Saturation

HERE = 0.5
"""Share of the users who wait that the requests queueing at the disks account for, from which on they wait there; with
less, most of them wait somewhere else."""
LONGER = 3.0
"""Time of a request against that at low load, from which on requests queue at the disk even if more users wait at
another resource, as two of the same capacity share them."""
PLACES_LEFT = 1.6
"""The same, up to which places are left: 1.0, give or take what few requests of very different size do. Of 64 simulated
disks that served several at a time, read 90 % or more and had room, four had more than 1.6; at two of these less than
COUNTS of the users who waited did so there. Three that were full beside a CPU, for which most of the users waited, had
1.8 to 2.9, and 7 to 25 % of the users waited there (both families, tuning and selection seeds)."""
OUTGROWN_PCT = 120.0
"""Use that the throughput of the plateau would need, extrapolated from a low load: beyond it, the disk serves several
at a time, and a CPU or network is full of something else, too. Idle floors and noise of the readings stay below
(simulated: bench/detector, tuning seeds)."""
LOW_ENOUGH, NEARLY = 0.6, 0.75
"""Throughput of a load that tells, against the plateau's. At 0.6 what reads 90 % would be used 150 % on the plateau by
the utilization law, were the use of the requests' making: it is full of something else. A disk that serves many at a
time and reads 95 % on the plateau reads 83 % there, and the extrapolation is 138 %. At 0.75, these are 120 and 119 %,
and with work of very different size a short run reads that by chance (simulated): such a load tells how long a place in
a pool is held without waiting, and one at a time of a disk is proved only by ..."""
IN_PROPORTION_PCT = 108.0
"""... an extrapolation of about 100 %."""
STACKED = re.compile(r"(dm-|md)\d+")
"""Devices of the kernel that pass what they get on to disks, which count it again."""
KNOWN_LIMIT = ("cgroup",)
"""Sources whose utilization is a share of a limit that is in force, bytes by bytes: 100 % is full."""


class Room(Enum):
    """What is known of a disk that reads full."""

    NONE = "it is full"
    SOME = "it serves several at a time and has room"
    PERHAPS = "it serves several at a time, and whether all its places are taken is not known"
    UNKNOWN = "whether it has room is not known"


@dataclass(frozen=True)
class Disk:
    """`waits`: by its queue, COUNTS of the users who wait do so there, or HERE of them at the disks of its tier. (A
    queue holds everybody's requests, those of a backup too.) `bounded`: its use is a share of a limit that is in force,
    and who waits for it is not asked."""

    room: Room
    why: str
    waits: bool = False
    bounded: bool = False


Trials = list[tuple[Load, list[Saturation]]]


def disks(free: Trials, plateau: Trials) -> dict[Key, Disk]:
    """Of each disk that was measured on the plateau."""
    level = float(np.mean([load.throughput_per_s for load, _ in plateau]))
    low = [(load, found) for load, found in free if load.throughput_per_s <= NEARLY * level]
    seen = {s.key: s for _, found in plateau for s in found if s.resource == "disk"}
    return {key: _disk(s, low, free, plateau, level) for key, s in seen.items()}


def _disk(s: Saturation, low: Trials, free: Trials, plateau: Trials, level: float) -> Disk:
    if s.source.startswith(KNOWN_LIMIT):
        return Disk(Room.NONE, "its use is a share of a known limit", bounded=True)
    share, own, longer, text = _waiting_here(s, low, plateau)
    if not low and free:  # what users wait longer than at any lower load, they wait longer somewhere
        share, own, longer, text = _waiting_here(s, free[:1], plateau)
    queued = own >= COUNTS or longer >= PLACES_LEFT  # else they wait at the tier's other disks
    if (share >= HERE and queued) or (longer >= LONGER and _queues(s, plateau)):
        return Disk(Room.NONE, text, waits=share >= HERE or own >= COUNTS)
    if share >= HERE:
        share = own
    if share < HERE and low:  # a load that waits itself acquits no disk
        why = f"most of the users wait elsewhere, though a request takes {longer:.1f} times as long as at low load"
        unclear = longer >= LONGER or (longer >= PLACES_LEFT and share >= COUNTS)
        return Disk(Room.UNKNOWN, why) if unclear else Disk(Room.SOME, text)
    expected = _expected(s, low, level, LOW_ENOUGH)
    limit = OUTGROWN_PCT
    if np.isnan(expected):
        expected, limit = _expected(s, low, level, NEARLY), IN_PROPORTION_PCT
    if np.isnan(expected) or limit < expected <= OUTGROWN_PCT:
        return Disk(Room.UNKNOWN, "neither its queue nor a load that is low enough was measured")
    text = f"by its use at low load, this throughput would need {expected:.0f} %"
    return Disk(Room.PERHAPS if expected > OUTGROWN_PCT else Room.NONE, text)


def _alike(a: Saturation, b: Saturation) -> bool:
    """The same disk of one replica or another: the disk of the system and that of the data are two."""
    return a.group == b.group and a.item == b.item


def _queues(s: Saturation, plateau: Trials) -> bool:
    """Whether so many requests are at the disk that what made them LONGER is each other (Little's law: of one that
    serves one at a time, and is busy, as many are there as their time is longer). Larger requests take longer alone."""
    return _mean([o.queue for _, found in plateau for o in found if o.key == s.key]) >= LONGER * THRESHOLD / 100


def _expected(s: Saturation, low: Trials, level: float, share: float) -> float:
    """Use that the throughput `level` would need in proportion to that at loads of at most this share of it, %. Mean of
    the replicas: a heavy request on one of them is chance."""
    needed = [
        o.utilization_mean_pct / load.throughput_per_s
        for load, found in low
        for o in found
        if _alike(o, s) and np.isfinite(o.utilization_mean_pct) and load.throughput_per_s <= share * level
    ]
    return float(np.mean(needed)) * level if needed else float("nan")


def _waiting_here(s: Saturation, low: Trials, plateau: Trials) -> tuple[float, float, float, str]:
    """Requests that wait for the disks of this tier, and for this one alone, against the users who wait, and how many
    times longer than at low load a request takes; NaN if it was not measured.

    Requests wait if they exceed the queue that this rate of requests has at low load (Little's law: rate = queue /
    time). Users who wait: X (R - R0)."""
    usual: dict[str, list[float]] = defaultdict(list)
    for o in (o for _, found in low for o in found if o.group == s.group):
        usual[o.item].append(o.wait_ms)
    times = {item: mean for item, values in usual.items() if (mean := _mean(values)) > 0}
    before = times.get(s.item, float("nan"))
    if not before > 0:
        return float("nan"), float("nan"), float("nan"), ""
    base_s = _mean([load.response_s for load, _ in low])
    shares, owns = [], []
    for load, found in plateau:
        of_tier = [o for o in found if o.group == s.group and np.isfinite(o.queue) and o.wait_ms > 0]
        users = load.throughput_per_s * (load.response_s - base_s)
        counted = [o for o in _not_twice(of_tier) if o.item in times]
        if counted and users > 0:
            waiting = {o.key: o.queue * max(0.0, 1 - times[o.item] / o.wait_ms) / users for o in counted}
            shares.append(sum(waiting.values()))
            owns.append(waiting.get(s.key, 0.0))
    share, own = _mean(shares), _mean(owns)
    if np.isnan(share):
        return share, share, share, ""
    now = _mean([o.wait_ms for _, found in plateau for o in found if o.key == s.key])
    here = "here" if share == own else f"at the disks of this tier, {100 * own:.0f} % at this one"
    return (
        share,
        own,
        now / before,
        (
            f"a request takes {now:.1f} ms, at low load {before:.1f} ms, so {100 * min(share, 1.0):.0f} % of the users"
            f" who wait do so {here}"
        ),
    )


def _not_twice(found: list[Saturation]) -> list[Saturation]:
    """Without the devices that stand on others of their node."""
    below = {o.node for o in found if not STACKED.fullmatch(o.item)}
    return [o for o in found if o.node not in below or not STACKED.fullmatch(o.item)]


def _mean(values: list[float]) -> float:
    known = [v for v in values if np.isfinite(v)]
    return float(np.mean(known)) if known else float("nan")
