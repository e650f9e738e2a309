"""What the loads of a sweep tell of each other."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from ntier_analysis.verdict.disks import Disk, disks
from ntier_analysis.verdict.load import TIERS, Load
from ntier_analysis.verdict.saturation import Group, Key, Saturation

ANYWAY_PCT = 90.0
"""Mean utilization at a load that lost nothing, from which on a resource was full anyway ..."""
OUTGROWN = 0.6
"""... if throughput was less than this share of the plateau's: by the utilization law the resource would be used
150 % on the plateau, were the use of the requests' making. (At three quarters, 120 %, a resource with work of very
different size may read 90 % in a short run by chance: simulated.)"""
LOW = 0.75
"""Throughput against the plateau's, up to which a load tells how long a place in a pool is held without waiting."""
HELD_LONGER = 1.5
"""A place in a pool that is held this many times longer than at low load waits for something deeper: at least a third
of the time is waiting. Half as many places again would give little more."""


@dataclass(frozen=True)
class Context:
    """`full_anyway`: (tier, resource) of resources that were full where nothing was lost, and that throughput has
    outgrown; `held_longer`: pools -> how many times longer a place is held on the plateau than at low load;
    `used_pct`: resource of a node -> mean utilization over the plateau; `disks`: what is known of the room of those
    that read full; `order`: tiers from the client inwards; `levels_off`: other loads show that throughput no longer
    grows as the law says, so that what is lost is lost by waiting; `growth`: trial -> d ln X / d ln N from a lower
    load; `cores`: node -> CPU capacity, where it is known."""

    full_anyway: frozenset[Group] = frozenset()
    held_longer: dict[Key, float] = field(default_factory=dict)
    used_pct: dict[Key, float] = field(default_factory=dict)
    disks: dict[Key, Disk] = field(default_factory=dict)
    order: tuple[str, ...] = TIERS
    levels_off: bool = True
    growth: dict[str, float] = field(default_factory=dict)
    cores: dict[str, float] = field(default_factory=dict)


NO_CONTEXT = Context()

Trials = list[tuple[Load, list[Saturation]]]


def of_loads(free: Trials, plateau: Trials) -> Context:
    """`free`: trials that lose nothing; `plateau`: those beyond the knee."""
    if not plateau:
        return NO_CONTEXT
    level = float(np.mean([load.throughput_per_s for load, _ in plateau]))
    outgrown = [(load, found) for load, found in free if load.throughput_per_s <= OUTGROWN * level]
    low = [(load, found) for load, found in free if load.throughput_per_s <= LOW * level]
    anyway = {group for trial in outgrown for group, pct in _used([trial], "group").items() if pct >= ANYWAY_PCT}
    return Context(frozenset(anyway), _held_longer(low, plateau), _used(plateau, "key"), disks(free, plateau))


def _used(trials: Trials, by: str) -> dict:
    """Mean utilization over the trials, of each `key` or `group`."""
    used: dict = defaultdict(list)
    for _, found in trials:
        for s in found:
            if np.isfinite(s.utilization_mean_pct):
                used[getattr(s, by)].append(s.utilization_mean_pct)
    return {name: float(np.mean(values)) for name, values in used.items()}


def _held_longer(low: Trials, plateau: Trials) -> dict[Key, float]:
    """Little's law on a pool: places taken = throughput x time held, so the time held is utilization / throughput x
    size, and its growth needs no size."""
    before, now = _held(low), _held(plateau)
    return {key: now[key] / before[key] for key in now if before.get(key, 0.0) > 0.0}


def _held(trials: Trials) -> dict[Key, float]:
    taken: dict[Key, float] = defaultdict(float)
    rate: dict[Key, float] = defaultdict(float)
    for load, found in trials:
        for s in found:
            if s.resource == "pool" and np.isfinite(s.utilization_mean_pct):
                taken[s.key] += s.utilization_mean_pct
                rate[s.key] += load.throughput_per_s
    return {key: taken[key] / rate[key] for key in taken if rate[key] > 0}
