"""What the loads of a sweep tell of each other."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from ntier_analysis.verdict.disks import LOW_ENOUGH, NEARLY, Disk, disks
from ntier_analysis.verdict.load import COUNTS, TIERS, Load
from ntier_analysis.verdict.saturation import Group, Key, Saturation, mean_use
from ntier_analysis.verdict.stops import shows_pauses, together

NO_ROOM_PCT = 90.0
"""Mean utilization from which on a resource has no room. At the knee itself a limiting resource of a small model is
used 96 % (exact MVA, scale 0.1); a share of 5 % more throughput needs 5 % room."""
HELD_LONGER = 1.5
"""A place in a pool that is held this many times longer than at low load waits for something deeper: at least a third
of the time is waiting. Half as many places again would give little more."""


@dataclass(frozen=True)
class Context:
    """`full_anyway`: (tier, resource) of resources that were full where nothing was lost, and that throughput has
    outgrown; `full_always`: those of them that were full at each such load; `node_full_always`: the same of single
    nodes, pools too; `held_longer`: pools -> how many times longer a place is held on the plateau than at low load;
    `together`: pools whose holders wait for one thing whenever the system stands still; `used_pct`: resource of a node
    -> mean utilization over the plateau; `most_pct`: the upper end of its 95 % interval; `disks`: what is known of the
    room of those that read full; `needed_pct`: CPU -> mean use that the plateau's throughput needs, by that at low
    loads; `level`: that throughput; `order`: tiers from the client inwards; `levels_off`: other loads show that
    throughput no longer grows as the law says, so that what is lost is lost by waiting; `growth`: trial -> d ln X / d
    ln N from a lower load; `outdone`: trial -> throughput of the best higher load, in times of its own; `cores`: node
    -> CPU capacity, where it is known."""

    full_anyway: frozenset[Group] = frozenset()
    full_always: frozenset[Group] = frozenset()
    node_full_always: frozenset[Key] = frozenset()
    held_longer: dict[Key, float] = field(default_factory=dict)
    together: frozenset[Key] = frozenset()
    used_pct: dict[Key, float] = field(default_factory=dict)
    most_pct: dict[Key, float] = field(default_factory=dict)
    disks: dict[Key, Disk] = field(default_factory=dict)
    needed_pct: dict[Key, float] = field(default_factory=dict)
    level: float = float("nan")
    order: tuple[str, ...] = TIERS
    levels_off: bool = True
    growth: dict[str, float] = field(default_factory=dict)
    outdone: dict[str, float] = field(default_factory=dict)
    cores: dict[str, float] = field(default_factory=dict)

    def is_full_anyway(self, s: Saturation) -> bool:
        """Whether something else than the requests fills it: its tier was full at a load that loses nothing, or itself
        at all of them. (One replica can be full while its tier is used little.)"""
        return s.group in self.full_anyway or s.key in self.node_full_always

    def is_always_full(self, s: Saturation) -> bool:
        """Whether it was full at each load that loses nothing. (A disk is judged by who waits for it.)"""
        return (s.group in self.full_always or s.key in self.node_full_always) and s.key not in self.disks


NO_CONTEXT = Context()

Trials = list[tuple[Load, list[Saturation]]]


def of_loads(free: Trials, plateau: Trials) -> Context:
    """`free`: trials that lose nothing; `plateau`: those beyond the knee."""
    if not plateau:
        return NO_CONTEXT
    level = float(np.mean([load.throughput_per_s for load, _ in plateau]))
    outgrown = [(load, found) for load, found in free if load.throughput_per_s <= LOW_ENOUGH * level]
    low = [(load, found) for load, found in free if load.throughput_per_s <= NEARLY * level]
    full, nodes = _full(outgrown, "group"), _full(outgrown, "key")
    return Context(
        frozenset(set.union(*full)),
        frozenset(set.intersection(*full)),
        frozenset(set.intersection(*nodes)),
        _held_longer(low, plateau),
        together(plateau),
        _used(plateau, "key"),
        _most(plateau),
        disks(free, plateau),
        _needed(low, level),
        level,
    )


def _full(trials: Trials, by: str) -> list[set]:
    """What was full in each trial."""
    return [{name for name, pct in _used([t], by).items() if pct >= NO_ROOM_PCT} for t in trials] or [set()]


def _needed(low: Trials, level: float) -> dict[Key, float]:
    """CPU -> mean use that this throughput needs in proportion to that at a low load (utilization law), %: by the low
    load at which work was dearest, since few requests of very different size tell it badly. What a node uses without
    load is in it."""
    needed: dict[Key, float] = {}
    for load, found in low:
        for s in found:
            if s.resource == "cpu" and np.isfinite(s.utilization_mean_pct):
                needed[s.key] = max(needed.get(s.key, 0.0), s.utilization_mean_pct * level / load.throughput_per_s)
    return needed


def _used(trials: Trials, by: str) -> dict:
    """Mean utilization over the trials, of each `key` or `group`."""
    used: dict = defaultdict(list)
    for _, found in trials:
        for s in found:
            if np.isfinite(s.utilization_mean_pct):
                used[getattr(s, by)].append(s.utilization_mean_pct)
    return {name: float(np.mean(values)) for name, values in used.items()}


def _most(trials: Trials) -> dict[Key, float]:
    """Upper end of the 95 % interval of a resource's mean utilization over the trials; left out where it has none.
    Beyond the knee throughput is level, and by the utilization law so is the use: each run shows another stretch of
    it."""
    seen: dict[Key, list[Saturation]] = defaultdict(list)
    for _, found in trials:
        for s in found:
            seen[s.key].append(s)
    ends = {key: mean_use(*some).high for key, some in seen.items()}
    return {key: high for key, high in ends.items() if np.isfinite(high)}


def _held_longer(low: Trials, plateau: Trials) -> dict[Key, float]:
    """Little's law on a pool: places taken = throughput x time held, so the time held is utilization / throughput x
    size, and its growth needs no size."""
    before, now = _held(low), _held(plateau)
    longer = {key: now[key] / before[key] for key in now if before.get(key, 0.0) > 0.0}
    lasting = [length for load, _ in plateau if load.paused >= COUNTS for length in np.diff(load.pauses, axis=1)[:, 0]]
    if lasting and not all(shows_pauses(load, float(np.median(lasting))) for load, _ in low):
        # The low loads may stand still, too: places are held less long without that, and the ratio is larger.
        return {key: times for key, times in longer.items() if times > HELD_LONGER}
    return longer


def _held(trials: Trials) -> dict[Key, float]:
    taken: dict[Key, float] = defaultdict(float)
    rate: dict[Key, float] = defaultdict(float)
    for load, found in trials:
        for s in found:
            if s.resource == "pool" and np.isfinite(s.utilization_mean_pct):
                taken[s.key] += s.utilization_mean_pct
                rate[s.key] += load.throughput_per_s
    return {key: taken[key] / rate[key] for key in taken if rate[key] > 0}
