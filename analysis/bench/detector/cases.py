"""Cases of known truth, drawn from a seed: a network whose limit is built in, loads around its knee, how it is seen.

What each class means, and how its label is checked, is in docs/detector.md."""

from __future__ import annotations

import numpy as np

from detector.network import TIERS
from detector.plan import Case, Key, Plan, View, turns

SEEDS = {"tuning": 20260101, "selection": 20261122, "scoring": 20261123}
CLASSES = ("none", "single", "simultaneous", "alternating", "hidden")


def draw(kind: str, seeds: str, number: int) -> Case:
    """Case `number` of a class, from the set `seeds` ("tuning", "selection", "scoring": disjoint by construction)."""
    entropy = [SEEDS[seeds], CLASSES.index(kind), number]
    rng = np.random.default_rng(entropy)
    plan = _plan(rng)
    variants = VARIANTS[kind]
    variant = variants[number % len(variants)]
    claims, relief = variant(plan)
    loads = _loads(rng) if kind != "none" else tuple(sorted(rng.uniform(0.2, 0.72, int(rng.integers(4, 6)))))
    return Case(
        name=f"{seeds}.{kind}.{number:04d}",
        truth=kind,
        variant=variant.__name__,
        network=plan.build(),
        claims={k: _nodes(plan, k, n) for k, n in claims.items()},
        relief=relief,
        loads=loads,
        run_s=180.0 if number % 6 == 5 else 60.0,
        scale=float(rng.choice([0.1, 0.2, 0.3])),
        view=_view(rng, plan),
        seed=int(rng.integers(2**31)),
        design_x=plan.target,
    )


def _plan(rng: np.random.Generator) -> Plan:
    nodes = {"web": 1, "app": int(rng.integers(1, 3)), "middleware": 1, "db": int(rng.choice([1, 1, 2, 3]))}
    plan = Plan(
        rng=rng,
        nodes=nodes,
        target=float(np.exp(rng.uniform(np.log(15), np.log(45)))),
        quota=float(rng.uniform(0.1, 0.3)) if rng.random() < 0.6 else None,
        busy={},
        variation={tier: float(rng.choice([0.5, 1.0, 1.0, 3.0])) for tier in TIERS},
        latency_s=float(rng.uniform(0.002, 0.03)),
        inner_latency_s=float(rng.choice([0.0, 0.01, 0.03])),
        connections=int(rng.choice([24, 60, 120])),
        threads=int(rng.choice([60, 150, 300])),
        workers=int(rng.choice([150, 400])),
    )
    for tier in TIERS:
        plan.busy[tier, "cpu"] = float(rng.uniform(0.08, 0.8))
        plan.policies[tier] = (str(rng.choice(["round_robin", "random", "least_pending"])), ())
    plan.busy["db", "disk"] = float(rng.uniform(0.0, 0.5))
    plan.busy["web", "network"] = float(rng.uniform(0.0, 0.5))
    return plan


def _loads(rng: np.random.Generator) -> tuple[float, ...]:
    """2 or 3 loads below 0.8 of the knee, 0 to 2 near it, 3 or 4 beyond."""
    low = rng.uniform(0.2, 0.8, int(rng.integers(2, 4)))
    near = rng.uniform(0.8, 1.15, int(rng.integers(0, 3)))
    high = rng.uniform(1.25, 2.2, int(rng.integers(3, 5)))
    return tuple(sorted([*low, *near, *high]))


def _view(rng: np.random.Generator, plan: Plan) -> View:
    return View(
        slow_s=float(rng.choice([1.0, 1.0, 0.1])),
        ticks=plan.quota is None and rng.random() < 0.25,
        noise_pct=float(rng.uniform(0, 1.5)),
        gap_s=float(rng.choice([0.0, 0.0, rng.uniform(1, 4)])),
        interactions=bool(rng.random() < 0.6),
        queues=bool(rng.random() < 0.7),
    )


def _nodes(plan: Plan, key: Key, given: tuple[str, ...]) -> tuple[str, ...]:
    if given or key[1].startswith("pool:"):
        return given or tuple(f"{key[0]}{i + 1}" for i in range(plan.nodes[key[0]]))
    return tuple(f"{key[0]}{i + 1}" for i in range(plan.nodes[key[0]]))


def _some(plan: Plan, options: list[Key], n: int) -> list[Key]:
    return [options[i] for i in plan.rng.choice(len(options), n, replace=False)]


CPUS: list[Key] = [(tier, "cpu") for tier in TIERS]
HARD: list[Key] = [*CPUS, ("db", "disk"), ("web", "network")]
Claims = tuple[dict[Key, tuple[str, ...]], set[Key]]


# ---- single --------------------------------------------------------------------------------------------------------


def one_cpu(plan: Plan) -> Claims:
    """The CPUs of one tier; the next in line is used up to 0.88 of it."""
    (key,) = _some(plan, CPUS, 1)
    other = _some(plan, [k for k in HARD if k != key], 1)[0]
    plan.busy[other] = float(plan.rng.uniform(0.3, 0.88))
    plan.busy[key] = 1.0
    return {key: ()}, {key}


def one_device(plan: Plan) -> Claims:
    """The database's disk or the web server's network."""
    (key,) = _some(plan, HARD[-2:], 1)
    plan.busy[key] = 1.0
    return {key: ()}, {key}


def small_pool(plan: Plan) -> Claims:
    """Few connections (or threads), held across a delay behind the database."""
    item = str(plan.rng.choice(["connections", "threads"]))
    size = int(plan.rng.integers(2, 9))
    setattr(plan, item, size)
    for key in HARD:
        plan.busy[key] = 0.4 * plan.busy.get(key, 0.0)
    plan.inner_latency_s = 0.9 * size * plan.nodes["app"] / plan.target
    key = ("app", f"pool:{item}")
    return {key: ()}, {key}


def now_and_then(plan: Plan) -> Claims:
    """A competitor takes most of one CPU, 40 to 70 % of the time, in turns of 2 to 10 s."""
    (key,) = _some(plan, CPUS, 1)
    plan.nodes = plan.nodes | {key[0]: 1}
    for k in HARD:
        plan.busy[k] = 0.5 * plan.busy.get(k, 0.0)
    plan.busy[key] = float(plan.rng.uniform(0.35, 0.6))
    share = float(plan.rng.uniform(0.4, 0.7))
    (times,) = turns(plan, float(plan.rng.uniform(2, 6)), (share,), bool(plan.rng.random() < 0.3))
    plan.options[key] = {"competitor": float(plan.rng.uniform(0.8, 0.95)), "switches": times}
    return {key: ()}, {key}


def hot_replica(plan: Plan) -> Claims:
    """The balancer gives one of three databases half of the requests or more."""
    plan.nodes = plan.nodes | {"db": 3}
    hot = int(plan.rng.integers(3))
    weight = float(plan.rng.uniform(2.5, 5.0))
    weights = tuple(weight if i == hot else 1.0 for i in range(3))
    plan.policies["db"] = ("random", weights)
    plan.busy["db", "cpu"] = (2 + weight) / weight / 3
    plan.busy["db", "disk"] *= 0.5
    return {("db", "cpu"): (f"db{hot + 1}",)}, {("db", "cpu")}


def full_pools_above(plan: Plan) -> Claims:
    """A saturated CPU of the middleware or the database, and pools so small that all of them are full above it."""
    (key,) = _some(plan, CPUS[2:], 1)
    plan.busy[key] = 1.0
    plan.connections, plan.threads, plan.workers = (int(plan.rng.integers(*r)) for r in ((12, 24), (20, 40), (40, 70)))
    return {key: ()}, {key}


def decoy(plan: Plan) -> Claims:
    """A CPU limits; another resource reads 100 % at any load and limits nothing: a disk that serves 32 at a time, or a
    web server whose spare CPU something else uses."""
    (key,) = _some(plan, [("app", "cpu"), ("middleware", "cpu"), ("db", "cpu")], 1)
    plan.busy[key] = 1.0
    _always_full(plan)
    return {key: ()}, {key}


def _always_full(plan: Plan) -> None:
    if plan.rng.random() < 0.5:
        plan.wide_disk = True
        plan.busy["db", "disk"] = float(plan.rng.uniform(4, 10))
    else:
        plan.busy["web", "cpu"] = float(plan.rng.uniform(0.1, 0.3))
        plan.options["web", "cpu"] = {"competitor": 0.4, "switches": (0.0,)}


# ---- several -------------------------------------------------------------------------------------------------------


def equal_demands(plan: Plan) -> Claims:
    """Two resources with the same capacity, to 3 %."""
    a, b = _some(plan, HARD, 2)
    plan.busy[a], plan.busy[b] = 1.0, float(plan.rng.uniform(0.97, 1.0))
    for key in (a, b):
        plan.policies[key[0]] = ("least_pending", ())
    return {a: (), b: ()}, {a, b}


def slowed_together(plan: Plan) -> Claims:
    """Competitors on two tiers' CPUs at the same times, 60 to 90 % of the time."""
    a, b = _some(plan, CPUS, 2)
    plan.nodes = plan.nodes | {a[0]: 1, b[0]: 1}
    _others_low(plan, (a, b))
    (times,) = turns(plan, float(plan.rng.uniform(2, 8)), (float(plan.rng.uniform(0.6, 0.9)),), False)
    busy, share = float(plan.rng.uniform(0.4, 0.6)), float(plan.rng.uniform(0.8, 0.93))
    for key in (a, b):
        plan.busy[key] = busy
        plan.options[key] = {"competitor": share, "switches": times}
    return {a: (), b: ()}, {a, b}


def in_turn(plan: Plan) -> Claims:
    """Competitors on two CPUs one after the other, in turns of 0.4 to 10 s."""
    a, b = _some(plan, CPUS, 2)
    return _turns_of(plan, a, b, float(np.exp(plan.rng.uniform(np.log(0.4), np.log(10)))))


def disk_in_turn(plan: Plan) -> Claims:
    """The database's disk (a backup, say) and a CPU in turns of 3 to 10 s; the disk may be sampled at 1 Hz."""
    (a,) = _some(plan, CPUS, 1)
    return _turns_of(plan, a, ("db", "disk"), float(plan.rng.uniform(3, 10)))


def _turns_of(plan: Plan, a: Key, b: Key, mean_s: float) -> Claims:
    """The web server lets so few in that the requests held up in one turn pass in a tenth of the next: else both would
    be busy in each turn, and nothing alternated."""
    plan.nodes = plan.nodes | {a[0]: 1, b[0]: 1}
    plan.workers = int(np.clip(mean_s / 10 * plan.target / 0.4, 3, 60))
    plan.latency_s, plan.inner_latency_s = 0.002, 0.0
    _others_low(plan, (a, b))
    first = float(plan.rng.uniform(0.4, 0.6))
    schedule = turns(plan, mean_s, (first, 1 - first), bool(plan.rng.random() < 0.4))
    competitor = float(plan.rng.uniform(0.85, 0.95))
    for key, times in zip((a, b), schedule, strict=True):
        plan.busy[key] = float(plan.rng.uniform(0.3, 0.5))
        plan.options[key] = {"competitor": competitor, "switches": times}
    return {a: (), b: ()}, {a, b}


def turns_with_backlog(plan: Plan) -> Claims:
    """Competitors on two CPUs one after the other, in turns of 3 to 12 s that cover the whole run. Many users are let
    in, so that each CPU works off its backlog in the other's turns, and both are saturated then. Both have the same
    capacity on average, to 10 %."""
    a, b = _some(plan, CPUS, 2)
    plan.nodes = plan.nodes | {a[0]: 1, b[0]: 1}
    plan.workers, plan.threads, plan.connections = 2000, 2000, 2000
    plan.latency_s, plan.inner_latency_s = 0.002, 0.0
    _others_low(plan, (a, b))
    first = float(plan.rng.uniform(0.4, 0.6))
    schedule = turns(plan, float(plan.rng.uniform(3, 12)), (first, 1 - first), bool(plan.rng.random() < 0.3))
    competitor, unequal = float(plan.rng.uniform(0.6, 0.9)), float(plan.rng.uniform(0.9, 1.1))
    for key, times, share, factor in zip((a, b), schedule, (first, 1 - first), (1.0, unequal), strict=True):
        plan.busy[key] = (1 - competitor * share) * factor
        plan.options[key] = {"competitor": competitor, "switches": times}
    return {a: (), b: ()}, {a, b}


def _others_low(plan: Plan, keys: tuple[Key, ...]) -> None:
    for k in HARD:
        if k not in keys:
            plan.busy[k] = 0.4 * plan.busy.get(k, 0.0)


# ---- hidden, none --------------------------------------------------------------------------------------------------


def lock(plan: Plan) -> Claims:
    """A serial section behind the database that no collector sees; all pools have room."""
    plan.lock_s = 1 / plan.target
    plan.connections = plan.threads = plan.workers = 2000
    return {}, {("db", "lock")}


def lock_below_full_pools(plan: Plan) -> Claims:
    """The same, and the pools above it fill up: symptoms."""
    plan.lock_s = 1 / plan.target
    plan.connections, plan.threads = int(plan.rng.integers(12, 40)), int(plan.rng.integers(30, 90))
    return {}, {("db", "lock")}


def unseen_device(plan: Plan) -> Claims:
    """A saturated disk or network without a collector."""
    key = HARD[-2:][int(plan.rng.integers(2))]
    plan.busy[key] = 1.0
    plan.options[key] = {"measured": False}
    return {}, {key}


def lock_beside_a_wide_disk(plan: Plan) -> Claims:
    """A serial section that nobody sees, and a disk that serves 32 at a time: it reads 95 % and more, and has room."""
    plan.lock_s = 1 / plan.target
    plan.connections = plan.threads = plan.workers = 2000
    plan.wide_disk = True
    plan.busy["db", "disk"] = float(plan.rng.uniform(3.0, 6.0))
    return {}, {("db", "lock")}


def stops(plan: Plan) -> Claims:
    """The database stands still for 2 to 5 s every 8 to 16 s; otherwise everything has room."""
    for k in HARD:
        plan.busy[k] = 0.3 * plan.busy.get(k, 0.0)
    plan.connections = plan.threads = plan.workers = 2000
    share = float(plan.rng.uniform(0.25, 0.35))
    (times,) = turns(plan, float(plan.rng.uniform(2, 5)), (share,), False)
    plan.options["db", "cpu"] = {"stalls": True, "switches": times}
    return {}, set()


def room(plan: Plan) -> Claims:
    """One resource is the next limit, far away."""
    (key,) = _some(plan, HARD, 1)
    plan.busy[key] = 1.0
    return {}, set()


def room_beside_a_full_resource(plan: Plan) -> Claims:
    """The same, and something reads 100 % without limiting anything."""
    (key,) = _some(plan, [("app", "cpu"), ("middleware", "cpu"), ("db", "cpu")], 1)
    plan.busy[key] = 1.0
    _always_full(plan)
    return {}, set()


VARIANTS = {
    "single": [
        one_cpu, one_device, small_pool, now_and_then, hot_replica, full_pools_above, decoy, one_cpu, one_cpu,
    ],
    "simultaneous": [equal_demands, slowed_together, equal_demands],
    "alternating": [in_turn, turns_with_backlog, disk_in_turn, turns_with_backlog],
    "hidden": [lock, lock_below_full_pools, unseen_device, stops, lock_beside_a_wide_disk],
    "none": [room, room, room_beside_a_full_resource],
}  # fmt: skip
