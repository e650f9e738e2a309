"""The kinds of cases. Each changes a plan and says what it builds in; what is true is decided by relief alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from queueing.model import Key
from queueing.plan import CACHES, Plan, turns


@dataclass(frozen=True)
class Built:
    """`kind`: class; `keys`: the parts that limit (measured or not); `loads`: how they are chosen, the highest at most
    `top` knees; `blind`: a CPU without samples."""

    kind: str
    keys: frozenset[Key] = frozenset()
    loads: str = "usual"
    top: float = 9.0
    blind: Key | None = None


def built(kind: str, *keys: Key, **given) -> Built:
    return Built(kind, frozenset(keys), **given)


def one(plan: Plan, options: list[Key]) -> Key:
    return options[int(plan.rng.integers(len(options)))]


def two(plan: Plan, options: list[Key]) -> tuple[Key, Key]:
    a, b = plan.rng.choice(len(options), 2, replace=False)
    return options[a], options[b]


def between(plan: Plan, low: float, high: float) -> float:
    return float(plan.rng.uniform(low, high))


def others_low(plan: Plan, *keys: Key, part: float = 0.4) -> None:
    for k in plan.busy:
        if k not in keys:
            plan.busy[k] *= part


# ---- none ----------------------------------------------------------------------------------------------------------


def room(plan: Plan) -> Built:
    """Loads far below the limit."""
    plan.busy[one(plan, plan.cpus)] = 1.0
    return built("none", loads="low")


def long_service(plan: Plan) -> Built:
    """Answers that take long without waiting: many cores, delays, a short think time."""
    plan.think = replace(plan.think, mean_s=between(plan, 0.5, 2.0))
    plan.cores = dict.fromkeys(plan.tiers, 16)
    plan.inner_delay_s = between(plan, 0.05, 0.3)
    for k in plan.cpus:
        plan.busy[k] = between(plan, 0.05, 0.3)
    return built("none", loads="low")


def wide_disk_with_room(plan: Plan) -> Built:
    """A disk that serves 32 at a time always has something in service, and room."""
    plan.busy[one(plan, plan.cpus)] = 1.0
    plan.disk_slots, plan.busy[plan.disk] = 32, between(plan, 0.15, 0.3)
    return built("none", loads="low")


def waves_with_room(plan: Plan) -> Built:
    """Users that come in waves: busy for seconds, never short."""
    plan.busy[one(plan, plan.cpus)] = 0.9
    plan.think = replace(plan.think, wave=(between(plan, 6, 20), 0.3, between(plan, 1.5, 1.9)))
    return built("none", loads="very low")


def backup_with_room(plan: Plan) -> Built:
    """A backup keeps the disk at 100 % for seconds; few interactions need it, and briefly."""
    plan.busy[one(plan, plan.cpus)] = 1.0
    plan.busy[plan.disk] = 0.05
    period = between(plan, 15, 30)
    plan.options[plan.disk] = {"batch": (period, between(plan, 0.3, 0.6) * period, 0.004)}
    return built("none", loads="low")


# ---- single --------------------------------------------------------------------------------------------------------


def one_cpu(plan: Plan) -> Built:
    key = one(plan, plan.cpus)
    other = one(plan, [k for k in plan.busy if k != key])
    plan.busy[other] = between(plan, 0.3, 0.8)
    plan.busy[key] = 1.0
    return built("single", key)


def many_cores(plan: Plan) -> Built:
    """All cores of a tier's nodes."""
    key = one(plan, plan.cpus)
    plan.cores[key[0]] = int(plan.rng.choice([2, 4, 8]))
    plan.busy[key] = 1.0
    return built("single", key)


def one_disk(plan: Plan) -> Built:
    plan.busy[plan.disk] = 1.0
    return built("single", plan.disk)


def full_wide_disk(plan: Plan) -> Built:
    """A disk with parallelism, all of it used."""
    plan.disk_slots, plan.busy[plan.disk] = int(plan.rng.choice([4, 8, 32])), 1.0
    return built("single", plan.disk)


def small_pool(plan: Plan) -> Built:
    """Few connections, held across a delay."""
    others_low(plan)
    nodes = plan.nodes[plan.caller]
    plan.connections = int(plan.rng.integers(2, 10))
    plan.inner_delay_s = 0.9 * plan.connections * nodes / plan.target
    return built("single", (plan.caller, "pool:connections"))


def collections(plan: Plan) -> Built:
    """Garbage collections stop a tier and use its CPU."""
    key = one(plan, plan.cpus[: max(1, len(plan.cpus) - 1)])
    plan.busy[key] = between(plan, 0.65, 0.85)
    every = int(plan.rng.integers(10, 60))
    per_node = plan.target / plan.nodes[key[0]] * (2 if key[0] == plan.caller != plan.front else 1)
    plan.options[key] = {"pause": (every, (1 - plan.busy[key]) * every / per_node)}
    return built("single", key)


def connection_storm(plan: Plan) -> Built:
    """All connections break every few seconds; each costs the innermost tier CPU to make again."""
    key = (plan.inner, "cpu")
    others_low(plan, key, part=0.6)
    plan.busy[key] = between(plan, 0.4, 0.7)
    plan.connections = int(plan.rng.integers(20, 60))
    period = between(plan, 5, 15)
    stolen = (1 - plan.busy[key]) * period * plan.cores[plan.inner] * plan.nodes[plan.inner]
    each = stolen / plan.connections / plan.nodes[plan.caller]
    plan.options[plan.caller, "pool:connections"] = {"remade": (period, each, plan.inner)}
    return built("single", key)


def backup(plan: Plan) -> Built:
    """A periodic job competes for the disk."""
    others_low(plan, plan.disk, part=0.6)
    plan.busy[plan.disk] = between(plan, 0.45, 0.7)
    period = between(plan, 8, 20)
    plan.options[plan.disk] = {"batch": (period, (1.05 - plan.busy[plan.disk]) * period, between(plan, 0.02, 0.1))}
    return built("single", plan.disk)


def priorities(plan: Plan) -> Built:
    """Some interactions go before others everywhere; one CPU limits."""
    key = one(plan, plan.cpus)
    plan.busy[key] = 1.0
    plan.urgent, plan.write_share = True, between(plan, 0.2, 0.6)
    return built("single", key)


def waves(plan: Plan) -> Built:
    """Users come in waves; one CPU limits."""
    key = one(plan, plan.cpus)
    plan.busy[key] = 1.0
    plan.think = replace(plan.think, wave=(between(plan, 5, 20), 0.35, between(plan, 1.5, 2.5)))
    return built("single", key)


def hot_replica(plan: Plan) -> Built:
    """One of three innermost nodes gets half of the requests or more."""
    plan.nodes[plan.inner] = 3
    hot, weight = int(plan.rng.integers(3)), between(plan, 2.5, 5.0)
    plan.policies[plan.inner] = ("random", tuple(weight if i == hot else 1.0 for i in range(3)))
    key = (plan.inner, "cpu")
    plan.busy[key] = (2 + weight) / weight / 3
    plan.busy[plan.disk] *= 0.4
    return built("single", key)


def heavy_tail(plan: Plan) -> Built:
    key = one(plan, plan.cpus)
    plan.busy[key] = 1.0
    plan.laws[key[0]] = "pareto"
    return built("single", key)


def partly_open(plan: Plan) -> Built:
    """Requests of others come beside the users' and take a part of the CPU."""
    key = one(plan, plan.cpus)
    plan.busy[key] = 1.0
    plan.open_per_s = between(plan, 0.2, 0.5) * plan.target
    return built("single", key)


def blocking(plan: Plan) -> Built:
    """The front's workers wait for a place in the next tier's backlog, which a CPU further in fills."""
    if len(plan.tiers) < 3:
        return one_cpu(plan)
    key = one(plan, plan.cpus[1:])
    plan.busy[key] = 1.0
    plan.workers, plan.buffer = int(plan.rng.integers(4, 16)), int(plan.rng.integers(4, 16))
    return built("single", key)


def full_pools_above(plan: Plan) -> Built:
    """A CPU limits, and the pools above it are full: symptoms."""
    key = one(plan, plan.cpus[-1:] if len(plan.cpus) < 4 else plan.cpus[2:])
    plan.busy[key] = 1.0
    plan.connections, plan.workers = int(plan.rng.integers(10, 20)), int(plan.rng.integers(25, 50))
    return built("single", key)


def part_time(plan: Plan) -> Built:
    """Something else takes most of one CPU in turns."""
    key = one(plan, plan.cpus)
    plan.nodes[key[0]] = 1
    others_low(plan, key, part=0.6)
    on, share = between(plan, 0.4, 0.7), between(plan, 0.7, 0.92)
    plan.busy[key] = 1.0 * (1 - on * share)
    (times,) = turns(plan.rng, between(plan, 4, 12), (on,), bool(plan.rng.random() < 0.3))
    plan.options[key] = {"share": share, "switches": times}
    return built("single", key)


def beside_a_wide_disk(plan: Plan) -> Built:
    """A CPU limits; the disk always has something in service, and room."""
    key = one(plan, plan.cpus)
    plan.busy[key] = 1.0
    plan.disk_slots, plan.busy[plan.disk] = 32, between(plan, 0.12, 0.3)
    return built("single", key)


def all_saturated(plan: Plan) -> Built:
    return replace(one_cpu(plan), loads="all high")


def only_one_load(plan: Plan) -> Built:
    return replace(one_cpu(plan), loads="one high")


def lowest_saturated(plan: Plan) -> Built:
    return replace(many_cores(plan), loads="from the knee")


def up_to_the_knee(plan: Plan) -> Built:
    """No load beyond the knee."""
    return replace(one_cpu(plan), kind="none", keys=frozenset(), loads="up to the knee")


# ---- several -------------------------------------------------------------------------------------------------------


def equal_demands(plan: Plan) -> Built:
    a, b = two(plan, [*plan.cpus, plan.disk])
    plan.busy[a], plan.busy[b] = 1.0, between(plan, 0.98, 1.0)
    for key in (a, b):
        plan.policies[key[0]] = ("least_pending", ())
        plan.laws[key[0] if key[1] == "cpu" else "disk"] = str(
            plan.rng.choice(["exponential", "erlang", "deterministic"])
        )
    return built("simultaneous", a, b, loads="far")


def slowed_together(plan: Plan) -> Built:
    """Something else takes a part of two CPUs at the same times."""
    a, b = two(plan, plan.cpus)
    plan.nodes |= {a[0]: 1, b[0]: 1}
    others_low(plan, a, b)
    on, share = between(plan, 0.6, 0.9), between(plan, 0.7, 0.85)
    (times,) = turns(plan.rng, between(plan, 4, 10), (on,), False)
    for key in (a, b):
        plan.busy[key] = 1.0 * (1 - on * share)
        plan.options[key] = {"share": share, "switches": times}
    return built("simultaneous", a, b, loads="far")


def _in_turn(plan: Plan, a: Key, b: Key, round_s: float, covered: float) -> Built:
    plan.nodes |= {a[0]: 1, b[0]: 1}
    plan.cores |= {key[0]: 1 for key in (a, b) if key[1] == "cpu"}
    # Each of the two is visited once. Who goes to and fro waits for both turns to come round again, which no capacity
    # would relieve.
    plan.visits, plan.before = 1, 1.0
    others_low(plan, a, b)
    first = between(plan, 0.45, 0.55) * covered
    depth, level = between(plan, 0.55, 0.85), between(plan, 0.9, 1.05)
    schedule = turns(plan.rng, round_s, (first, covered - first), bool(plan.rng.random() < 0.4))
    for key, times, on in zip((a, b), schedule, (first, covered - first), strict=True):
        share = depth + between(plan, -0.05, 0.05)
        # Both could do about as much on average: else one of them has the other's backlog all the time.
        plan.busy[key] = level * between(plan, 0.96, 1.04) * (1 - on * share)
        plan.options[key] = {"share": share, "switches": times}
    # In a turn the slow one leaves about 1.25 x the target waiting per second. More users than that in all, and both
    # have work at every moment; fewer, and each idles at the end of the other's turns.
    plan.think = replace(plan.think, mean_s=min(plan.think.mean_s, between(plan, 1.5, 6)))
    waiting = 1.25 * round_s * covered / 2 / (plan.think.mean_s + 0.3)
    return built(
        "alternating", a, b, loads="beyond", top=float(np.clip(1 + between(plan, 0.3, 0.9) * waiting, 1.25, 3.5))
    )


def turns_that_cover(plan: Plan) -> Built:
    """Two CPUs slow down in turns that together cover the run; each works off its backlog in the other's turn."""
    return _in_turn(plan, *two(plan, plan.cpus), between(plan, 8, 26), 1.0)


def turns_with_gaps(plan: Plan) -> Built:
    return _in_turn(plan, *two(plan, plan.cpus), between(plan, 5, 20), between(plan, 0.75, 0.95))


def disk_and_cpu_in_turn(plan: Plan) -> Built:
    """A checkpoint slows the disk, then something else a CPU."""
    return _in_turn(plan, one(plan, plan.cpus[:-1]), plan.disk, between(plan, 6, 20), between(plan, 0.85, 1.0))


# ---- hidden --------------------------------------------------------------------------------------------------------


def lock(plan: Plan) -> Built:
    plan.serial_s = 1 / plan.target
    plan.nodes[plan.inner] = 1
    return built("hidden", (plan.inner, "lock"))


def shared_lock(plan: Plan) -> Built:
    """Readers share, writers are alone."""
    plan.nodes[plan.inner] = 1
    plan.write_share = between(plan, 0.15, 0.5)
    # Between two writers (a share w of all) the readers pass together, which takes about as long as one or two of them.
    plan.shared_s = 1 / (2.2 * plan.write_share * plan.target)
    return built("hidden", (plan.inner, "lock"))


def lock_below_full_pools(plan: Plan) -> Built:
    plan.connections, plan.workers = int(plan.rng.integers(8, 25)), int(plan.rng.integers(25, 60))
    return lock(plan)


def lock_beside_a_busy_disk(plan: Plan) -> Built:
    """A 32-slot disk reads 95 to 100 % beside the lock that limits."""
    plan.disk_slots, plan.busy[plan.disk] = 32, between(plan, 0.1, 0.3)
    return lock(plan)


def pegged_thread(plan: Plan) -> Built:
    """A single-threaded stage keeps one of many cores busy."""
    tier = str(plan.rng.choice(plan.tiers))
    plan.nodes[tier] = 1
    plan.cores[tier] = int(plan.rng.choice([4, 8, 16]))
    plan.busy[tier, "cpu"] = between(plan, 0.05, 0.3)
    plan.thread = (tier, 1 / plan.target)
    return built("hidden", (tier, "thread"))


def unseen_disk(plan: Plan) -> Built:
    plan.busy[plan.disk] = 1.0
    plan.options[plan.disk] = {"measured": False}
    return built("hidden", plan.disk)


def stops(plan: Plan) -> Built:
    """The innermost tier begins nothing for seconds, again and again (a checkpoint)."""
    others_low(plan)
    (times,) = turns(plan.rng, between(plan, 8, 16), (between(plan, 0.2, 0.35),), False)
    plan.options["stop",] = {"stops": times}
    return built("hidden", (plan.inner, "stop"), loads="low")


# ---- unknown -------------------------------------------------------------------------------------------------------


def one_load_of_long_answers(plan: Plan) -> Built:
    """One load, nothing measured is full, answers take long: of these two twins, this one only takes long."""
    long_service(plan)
    plan.inner_delay_s = between(plan, 0.3, 0.8)
    return built("unknown", loads="one low")


def one_load_behind_a_lock(plan: Plan) -> Built:
    """The other twin: it waits for a lock."""
    for k in plan.busy:
        plan.busy[k] *= 0.5
    locked = lock(plan)
    return replace(locked, kind="unknown", loads="one high")


def blind_cpu(plan: Plan) -> Built:
    """The CPU that limits has no samples, though the node has others."""
    key = one(plan, plan.cpus)
    plan.busy[key] = 1.0
    others_low(plan, key, part=0.8)
    return replace(built("unknown", key), blind=key)


ALL = (
    turns_that_cover, one_cpu, room, lock, equal_demands,
    turns_with_gaps, many_cores, long_service, shared_lock, slowed_together,
    turns_that_cover, one_disk, wide_disk_with_room, pegged_thread, blind_cpu,
    disk_and_cpu_in_turn, full_wide_disk, waves_with_room, unseen_disk, equal_demands,
    turns_that_cover, small_pool, backup_with_room, lock_beside_a_busy_disk, one_load_of_long_answers,
    turns_that_cover, collections, room, stops, one_load_behind_a_lock,
    connection_storm, backup, priorities, waves, hot_replica,
    heavy_tail, partly_open, blocking, full_pools_above, part_time,
    beside_a_wide_disk, all_saturated, only_one_load, lowest_saturated, up_to_the_knee,
    lock_below_full_pools, equal_demands, turns_that_cover, slowed_together, long_service,
)  # fmt: skip
"""Case number n is of variant n modulo their number."""


def has_cache(plan: Plan) -> bool:
    return any(t in CACHES for t in plan.tiers)
