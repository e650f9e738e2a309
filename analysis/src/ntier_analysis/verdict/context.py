"""What the loads of a sweep tell of each other."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from ntier_analysis.statistics.values import lower_end
from ntier_analysis.verdict.disks import LOW_ENOUGH, NEARLY, OUTGROWN_PCT, Disk, disks
from ntier_analysis.verdict.load import COUNTS, TIERS, Load
from ntier_analysis.verdict.places import held_longer
from ntier_analysis.verdict.saturation import Group, Key, Saturation, mean_use
from ntier_analysis.verdict.stops import together

NO_ROOM_PCT = 90.0
"""Mean utilization from which on a resource has no room. At the knee itself a limiting resource of a small model is
used 96 % (exact MVA, scale 0.1); a share of 5 % more throughput needs 5 % room."""


@dataclass(frozen=True)
class Context:
    """`full_anyway`: (tier, resource) of resources that were full where nothing was lost, and that throughput has
    outgrown; `full_at_times`: the same of resources of which other such loads say that the requests may fill them;
    `full_always`: those that were full at each such load; `node_full_always`: the same of single nodes, pools too;
    `held_longer`: pools -> how many times longer a place is held on the plateau than at low load, at most (left out if
    nobody knows); `held_at_least`: the least that it may be;
    `together`: pools whose holders wait for one thing whenever the system stands still; `used_pct`: resource of a node
    -> mean utilization over the plateau; `least_pct`: what that is at least, with 95 % confidence to that side,
    by all of it or by its highest load (of two that limit alike, the one before fills up as users become more);
    `most_pct`: the upper end of its 95 % interval; `disks`: what is known of the room of those that read full;
    `needed_pct`: resource -> mean use that the plateau's throughput needs, by that at all low loads together;
    `settled_pct`: the same by the loads beyond the knee at which requests do not pile up;
    `explained_pct`: the most that it, or the requests to the node, need by any load that loses nothing; `level`: that
    throughput; `order`: tiers from the client inwards; `levels_off`: other loads show that
    throughput no longer grows as the law says, so that what is lost is lost by waiting; `growth`: trial -> d ln X / d
    ln N from a lower load; `outdone`: trial -> throughput of the best higher load, in times of its own; `cores`: node
    -> CPU capacity, where it is known; `nodes_told`: it is known which servers the system has."""

    full_anyway: frozenset[Group] = frozenset()
    full_at_times: frozenset[Group] = frozenset()
    full_always: frozenset[Group] = frozenset()
    node_full_always: frozenset[Key] = frozenset()
    held_longer: dict[Key, float] = field(default_factory=dict)
    held_at_least: dict[Key, float] = field(default_factory=dict)
    together: frozenset[Key] = frozenset()
    used_pct: dict[Key, float] = field(default_factory=dict)
    least_pct: dict[Key, float] = field(default_factory=dict)
    most_pct: dict[Key, float] = field(default_factory=dict)
    disks: dict[Key, Disk] = field(default_factory=dict)
    needed_pct: dict[Key, float] = field(default_factory=dict)
    settled_pct: dict[Key, float] = field(default_factory=dict)
    explained_pct: dict[Key, float] = field(default_factory=dict)
    level: float = float("nan")
    order: tuple[str, ...] = TIERS
    levels_off: bool = True
    growth: dict[str, float] = field(default_factory=dict)
    outdone: dict[str, float] = field(default_factory=dict)
    cores: dict[str, float] = field(default_factory=dict)
    nodes_told: bool = True

    def is_full_anyway(self, s: Saturation) -> bool:
        """Whether something else than the requests fills it: its tier was full at a load that loses nothing, or itself
        at all of them. (One replica can be full while its tier is used little.)"""
        return s.group in self.full_anyway or s.key in self.node_full_always

    def is_waited_for(self, s: Saturation) -> bool:
        """Whether it is a disk for which, by its queue, users wait."""
        return s.key in self.disks and self.disks[s.key].waits

    def is_always_full(self, s: Saturation) -> bool:
        """Whether it was full at each load that loses nothing. (A disk is judged by who waits for it, where that is
        asked.)"""
        judged = s.key in self.disks and not self.disks[s.key].bounded
        return (s.group in self.full_always or s.key in self.node_full_always) and not judged


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
    once = set.union(*full)
    at_times = {group for group in once if _requests_may_fill(group, outgrown, level)}
    held = held_longer(low, plateau)
    ends, at_most_users = _ends(plateau), _ends([t for t in plateau if t[0].level == plateau[-1][0].level])
    return Context(
        full_anyway=frozenset(once - at_times),
        full_at_times=frozenset(at_times),
        full_always=frozenset(set.intersection(*full)),
        node_full_always=frozenset(set.intersection(*nodes)),
        held_longer={key: h.most for key, h in held.items() if np.isfinite(h.most)},
        held_at_least={key: h.least for key, h in held.items()},
        together=together(plateau),
        used_pct=_used(plateau, "key"),
        least_pct={key: max(least, at_most_users.get(key, (0.0, 0.0))[0]) for key, (least, _) in ends.items()},
        most_pct={key: most for key, (_, most) in ends.items()},
        disks=disks(free, plateau),
        needed_pct=_needed(low, level),
        settled_pct=_needed([t for t in plateau if t[0].piling < COUNTS], level),
        explained_pct=_explained(free, plateau, level),
        level=level,
    )


def _full(trials: Trials, by: str) -> list[set]:
    """What was full in each trial."""
    return [{name for name, pct in _used([t], by).items() if pct >= NO_ROOM_PCT} for t in trials] or [set()]


def _requests_may_fill(group: Group, outgrown: Trials, level: float) -> bool:
    """Whether one of the loads that throughput has outgrown says that, by the utilization law, the requests alone use
    no more of the resource than it has on the plateau: then another load's was full by chance (a job, a program that
    was not compiled yet). A disk's busy time is in no proportion to them; it is judged by who waits for it."""
    loads: dict[float, Trials] = defaultdict(list)
    for load, found in outgrown:
        loads[load.level].append((load, found))
    if group[1] == "disk":
        return False
    for some in loads.values():
        used = _used(some, "group").get(group, float("inf"))
        if used * level / np.mean([load.throughput_per_s for load, _ in some]) <= OUTGROWN_PCT:
            return True
    return False


def _explained(free: Trials, plateau: Trials, level: float) -> dict[Key, float]:
    """CPU -> mean use that the plateau's throughput needs, or the requests that its node gets there (where they were
    counted), in proportion to those at any load that loses nothing, %: the most of them."""
    now: dict[Key, list[float]] = defaultdict(list)
    for s in (s for _, found in plateau for s in found if s.visits_per_s > 0):
        now[s.key].append(s.visits_per_s)
    most = _dearest(free, level)
    for s in (s for _, found in free for s in found if s.key in most and s.key in now):
        if s.visits_per_s > 0 and np.isfinite(s.utilization_mean_pct):
            most[s.key] = max(most[s.key], s.utilization_mean_pct * float(np.mean(now[s.key])) / s.visits_per_s)
    return most


def _needed(some: Trials, level: float) -> dict[Key, float]:
    """Resource -> mean use that this throughput needs in proportion to that at these loads (utilization law), %: by all
    of them together, each as much as it completed, since few requests of very different size tell little. (The dearest
    run alone would be the dearer, the more runs there are.) What a node uses without load is in it. (A disk that serves
    several at a time needs less: it is busy while it serves anything.)"""
    used: dict[Key, float] = defaultdict(float)
    served: dict[Key, float] = defaultdict(float)
    for load, found in some:
        run_s = load.end_s - load.start_s
        for s in found:
            if np.isfinite(s.utilization_mean_pct):
                used[s.key] += s.utilization_mean_pct * run_s
                served[s.key] += load.throughput_per_s * run_s
    return {key: pct * level / served[key] for key, pct in used.items()}


def _dearest(free: Trials, level: float) -> dict[Key, float]:
    """The same by the load at which work was dearest."""
    most: dict[Key, float] = {}
    for t in free:
        for key, pct in _needed([t], level).items():
            most[key] = max(most.get(key, 0.0), pct)
    return most


def _used(trials: Trials, by: str) -> dict:
    """Mean utilization over the trials, of each `key` or `group`."""
    used: dict = defaultdict(list)
    for _, found in trials:
        for s in found:
            if np.isfinite(s.utilization_mean_pct):
                used[getattr(s, by)].append(s.utilization_mean_pct)
    return {name: float(np.mean(values)) for name, values in used.items()}


def _ends(trials: Trials) -> dict[Key, tuple[float, float]]:
    """What a resource's mean utilization over the trials is at least, with 95 % confidence to that side, and the upper
    end of its 95 % interval (of two runs that lie apart, to that side too); left out where it has none. Beyond the knee
    throughput is level, and by the utilization law so is the use: each run shows another stretch of it, and runs differ
    by more than the batches of each tell."""
    seen: dict[Key, list[Saturation]] = defaultdict(list)
    for _, found in trials:
        for s in found:
            seen[s.key].append(s)
    ends = {}
    for key, some in seen.items():
        used = mean_use(*some)
        if np.isfinite(used.high):
            together = used.n == 2 and used.freedom > 1  # then the ends of both runs are all that is known
            apart = used.n == 2 and not together  # Student's t to both sides would nearly always reach 100 %
            least = used.low if together else lower_end(used)
            ends[key] = (least, 2 * used.value - least if apart else used.high)
    return ends
