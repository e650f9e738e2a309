"""A closed (or partly open) queueing network of tiers, as values, and its simulation with SimPy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from random import Random

import numpy as np
import simpy

from queueing import parts
from queueing.laws import sampler

Key = tuple[str, str]
"""Tier and resource; pools as `pool:item`."""


@dataclass(frozen=True)
class Part:
    """One resource of one node. `kind`: station, places or shared; `servers`: those of a station, places of a pool.
    `share`: what something else takes of a station between odd and even `switches` (s). `pause`: (after how many
    services, s) all servers stop. `batch`: (period s, work s, piece s) of a periodic job. `stops`: no service begins
    between odd and even times. `remade`: (period s, work s, tier): connections break and cost that tier CPU once.
    `falls`: how much longer a service of a station takes for each request that waits (0.05: 20 waiting double it)."""

    tier: str
    node: int
    resource: str
    kind: str = "station"
    servers: int = 1
    factor: float = 1.0
    measured: bool = True
    share: float = 0.0
    switches: tuple[float, ...] = ()
    pause: tuple[int, float] | None = None
    batch: tuple[float, float, float] | None = None
    stops: tuple[float, ...] = ()
    stop_factor: float = 1.0
    remade: tuple[float, float, str] | None = None
    falls: float = 0.0

    @property
    def key(self) -> Key:
        return self.tier, self.resource


WORKS = ("serve", "delay", "serial", "thread")


@dataclass(frozen=True)
class Step:
    """`operation`: enter or exit (a tier: chooses a node), serve, delay, take, give, serial (a delay inside a lock),
    thread (work on the tier's CPU inside a lock), skip (with probability `mean` the next `count` steps). `law` and
    `mean` (s) of the work; `only`: write or read, of those interactions alone; `urgent`: writes go first."""

    operation: str
    tier: str = ""
    resource: str = ""
    law: str = "exponential"
    mean: float = 0.0
    only: str = ""
    urgent: bool = False
    count: int = 0


@dataclass(frozen=True)
class Think:
    """`wave`: (period s, share of it, factor) in which think time passes `factor` times as fast; else slower, so that
    the mean rate is 1."""

    mean_s: float = 7.0
    law: str = "exponential"
    wave: tuple[float, float, float] | None = None

    def ends(self, now: float, length: float) -> float:
        """When a think of this length that begins now is over."""
        if self.wave is None:
            return now + length
        period, share, fast = self.wave
        slow = (1 - share * fast) / (1 - share)
        while True:
            at = now % period
            rate, left = (fast, share * period - at) if at < share * period else (slow, period - at)
            left = max(left, 1e-6)
            if rate * left >= length:
                return now + length / rate
            length -= rate * left
            now += left


@dataclass(frozen=True)
class System:
    """`tiers` from the client inwards; `policies`: tier -> (round_robin, random or least_pending, weights);
    `write_share` of the interactions; `open_per_s`: requests of others that come beside the users', or are all there
    are without users; `amount`: units of work after which the users stop (0: they go on)."""

    tiers: tuple[str, ...]
    nodes: dict[str, int]
    parts: tuple[Part, ...]
    steps: tuple[Step, ...]
    think: Think
    policies: dict[str, tuple[str, tuple[float, ...]]] = field(default_factory=dict)
    write_share: float = 0.1
    open_per_s: float = 0.0
    amount: int = 0

    def keys(self) -> list[Key]:
        return list(dict.fromkeys(p.key for p in self.parts))

    def relieved(self, keys: set[Key], factor: float, but: tuple[Key, int] | None = None) -> System:
        """The same with `factor` times the capacity of these parts, except on the node `but`."""
        changed = tuple(
            _relieved(p, factor) if p.key in keys and (p.key, p.node) != but else p for p in self.parts
        )  # fmt: skip
        return replace(self, parts=changed)


def _relieved(part: Part, factor: float) -> Part:
    if part.resource.startswith("pool:"):
        return replace(part, servers=max(part.servers + 1, round(part.servers * factor)))
    if part.resource == "stop":
        return replace(part, stop_factor=part.stop_factor * factor)
    return replace(part, factor=part.factor * factor)


@dataclass
class Run:
    """`done` (n, 3): begun s, response s, 1 if it writes, of the users' interactions (without users: of the others'),
    `begun`: when these came; `logs` by part (if recorded); `busy`: share of each part's capacity in use, over the whole
    time, and for places the mean number that wait."""

    system: System
    users: int
    ramp_s: float
    end_s: float
    done: np.ndarray
    logs: list[parts.Log | None]
    busy: list[float]
    shift_s: float = 0.0
    begun: np.ndarray = field(default_factory=lambda: np.empty(0))

    def answered(self) -> np.ndarray:
        """(n, 3) of the interactions completed in the run phase."""
        ended = self.done[:, 0] + self.done[:, 1]
        return self.done[(ended >= self.ramp_s) & (ended < self.end_s)]

    @property
    def throughput(self) -> float:
        return len(self.answered()) / (self.end_s - self.ramp_s)

    @property
    def response_s(self) -> float:
        answered = self.answered()
        return float(answered[:, 1].mean()) if len(answered) else float("nan")


class _World:
    """The objects of one simulation."""

    def __init__(self, system: System, seed: int, shift_s: float, record: bool) -> None:
        self.system, self.seed = system, seed
        self.env = simpy.Environment()
        self.index = {tier: i for i, tier in enumerate(system.tiers)}
        self.logs: list[parts.Log | None] = [parts.Log() if record else None for _ in system.parts]
        self.at_place: dict[tuple[str, str, int], object] = {}
        self.objects = [self._part(p, log, shift_s) for p, log in zip(system.parts, self.logs, strict=True)]
        for p in system.parts:
            if p.remade is not None:
                self.env.process(self._break(p, shift_s))
        self.pending = {t: [0] * n for t, n in system.nodes.items()}
        self.turn = dict.fromkeys(system.tiers, 0)
        self.ops = [self._operation(s) for s in system.steps]
        self.done: list[tuple[float, float, float]] = []
        self.begun: list[float] = []
        self.left = system.amount

    def _part(self, p: Part, log: parts.Log | None, shift_s: float):
        env = self.env
        if p.resource == "stop":
            station = self.at_place[p.tier, "cpu", p.node]
            station.stop_factor = p.stop_factor
            env.process(parts.standstill(env, station, _shifted(p.stops, shift_s)))
            return station
        if p.kind == "station":
            made = parts.Station(env, p.servers, p.factor, log)
            made.falls = p.falls
            if p.switches:
                env.process(parts.competitor(env, made, p.share, _shifted(p.switches, shift_s)))
            if p.pause is not None:
                made.pauses(*p.pause)
            if p.batch is not None:
                env.process(parts.batch_job(env, made, *p.batch, p.batch[0] - shift_s % p.batch[0]))
        elif p.kind == "places":
            made = parts.Places(env, p.servers, p.factor, log)
        else:
            made = parts.SharedLock(env, p.factor)
        self.at_place[p.tier, p.resource, p.node] = made
        return made

    def slow(self, pace: list[float]) -> None:
        """All CPUs work at the pace of the machine."""
        for (_, resource, _), made in self.at_place.items():
            if resource == "cpu":
                made.pace = pace

    def _break(self, p: Part, shift_s: float):
        """All connections of a pool break at once, again and again."""
        pool, (period, _, _) = self.at_place[p.tier, p.resource, p.node], p.remade
        yield self.env.timeout(period - shift_s % period)
        while True:
            pool.stale = pool.size
            yield self.env.timeout(period)

    def _operation(self, s: Step) -> tuple:
        tier = self.index.get(s.tier, -1)
        nodes = self.system.nodes.get(s.tier, 0)
        objects = [self.at_place.get((s.tier, s.resource, n)) for n in range(nodes)]
        draw = sampler(s.law, s.mean) if s.operation in WORKS else None
        only = {"": -1, "read": 0, "write": 1}[s.only]
        remade = [p.remade for p in self.system.parts if p.key == (s.tier, s.resource) and p.remade]
        extra = s.mean if s.operation == "skip" else (remade[0] if remade else None)
        return s.operation, tier, objects, draw, only, s.urgent, s.count, extra, s.tier

    def choose(self, tier: str, rng: Random) -> int:
        policy, weights = self.system.policies.get(tier, ("round_robin", ()))
        n, draw = self.system.nodes[tier], rng.random()
        if n == 1:
            return 0
        if policy == "random":
            return rng_index(draw, weights or (1.0,) * n)
        if policy == "least_pending":
            return min(range(n), key=self.pending[tier].__getitem__)
        self.turn[tier] = (self.turn[tier] + 1) % n
        return self.turn[tier]

    def walk(self, rng: Random, write: bool):
        """One interaction: the steps in order."""
        env, at, k, ops = self.env, [0] * len(self.system.tiers), 0, self.ops
        while k < len(ops):
            operation, tier, objects, draw, only, urgent, count, extra, name = ops[k]
            k += 1
            if operation == "serve" or operation == "delay":
                work = draw(rng)
                if only >= 0 and only != write:
                    continue
                if operation == "delay":
                    yield env.timeout(work)
                    continue
                station = objects[at[tier]]
                yield station.serve(work, urgent and write)
                if station.residual:
                    yield env.timeout(work * station.residual)
            elif operation == "take":
                places = objects[at[tier]]
                waits = places.take(write)
                if waits is not None:
                    yield waits
                if extra is not None and places.stale:
                    places.stale -= 1
                    cpu = self.at_place[extra[2], "cpu", at[self.index[extra[2]]]]
                    yield cpu.serve(extra[1])
            elif operation == "give":
                objects[at[tier]].give(write)
            elif operation == "serial" or operation == "thread":
                work = draw(rng)
                if only >= 0 and only != write:
                    continue
                yield from self._locked(objects[at[tier]], work, write, name, at[tier], operation)
            elif operation == "enter":
                at[tier] = self.choose(name, rng)
                self.pending[name][at[tier]] += 1
            elif operation == "exit":
                self.pending[name][at[tier]] -= 1
            elif operation == "skip" and rng.random() < extra:
                k += count
        return

    def _locked(self, lock, work: float, write: bool, tier: str, node: int, operation: str):
        """Work inside a lock: a delay, or (`thread`) on the node's CPU, where it keeps one core busy. More cores do not
        shorten it; a relief of the lock frees it earlier, as for stations."""
        waits = lock.take(write)
        if waits is not None:
            yield waits
        if operation == "serial":
            yield self.env.timeout(work / lock.factor)
        else:
            cpu = self.at_place[tier, "cpu", node]
            yield cpu.serve(work / lock.factor)
            if cpu.residual:
                yield self.env.timeout(work / lock.factor * cpu.residual)
        lock.give(write)
        if lock.residual:
            yield self.env.timeout(work * lock.residual)

    def user(self, number: int, first_s: float, leaves_s: float = math.inf):
        env, think = self.env, self.system.think
        rng = Random(self.seed * 1_000_003 + number)
        length = sampler(think.law, think.mean_s)
        writes = self.system.write_share
        yield env.timeout(first_s)
        while True:
            until = min(think.ends(env._now, length(rng)), max(env._now, leaves_s))
            yield env.timeout(until - env._now)
            if env._now >= leaves_s:
                return
            if self.system.amount:
                if not self.left:
                    return
                self.left -= 1
            begun, write = env._now, rng.random() < writes
            yield from self.walk(rng, write)
            self.done.append((begun, env._now - begun, float(write)))

    def noted(self, rng: Random, write: bool):
        """A request that belongs to no user, and is on record."""
        begun = self.env._now
        self.begun.append(begun)
        yield from self.walk(rng, write)
        self.done.append((begun, self.env._now - begun, float(write)))

    def others(self, come=None):
        """Requests that come whether or not earlier ones are answered."""
        come = come or self.walk
        rng, number = Random(self.seed + 77), 0
        while True:
            yield self.env.timeout(rng.expovariate(self.system.open_per_s))
            number += 1
            self.env.process(come(Random(self.seed * 7_000_003 + number), rng.random() < self.system.write_share))


def rng_index(draw: float, weights: tuple[float, ...]) -> int:
    """Index that a uniform draw falls on."""
    left = draw * sum(weights)
    for i, w in enumerate(weights):
        left -= w
        if left < 0:
            return i
    return len(weights) - 1


def _shifted(switches: tuple[float, ...], shift_s: float) -> tuple[float, ...]:
    """What is left of a schedule; begins with 0 if it is on just then."""
    left = [t - shift_s for t in switches if t > shift_s]
    past = len(switches) - len(left)
    return tuple([0.0] * (past % 2) + left)


def simulate(
    system: System, users: int, ramp_s: float, run_s: float, seed: int, shift_s: float = 0.0, record: bool = False,
    stay: tuple[np.ndarray, np.ndarray] | None = None, pace: np.ndarray | None = None,
) -> Run:  # fmt: skip
    """Times in s from the start of the ramp-up, in which the users start one after the other. `shift_s`: how far all
    schedules have got by then. `stay`: when each user comes and goes instead (inf: never). `pace`: factor of the work
    on CPUs in each second, as a machine of varying speed makes it."""
    world = _World(system, seed, shift_s, record)
    if pace is not None:
        world.slow(pace.tolist())
    if stay is None:
        each = [world.env.process(world.user(number, ramp_s * number / users)) for number in range(users)]
    else:
        come = [(i, float(a), float(b)) for i, (a, b) in enumerate(zip(*stay, strict=True)) if math.isfinite(a)]
        each = [world.env.process(world.user(*one)) for one in come]
    if system.open_per_s:
        world.env.process(world.others(None if users else world.noted))
    world.env.run(until=simpy.AllOf(world.env, each) if system.amount else ramp_s + run_s)
    end = float(world.env.now)
    busy = [_busy(o, end) for o in world.objects]
    done, begun = np.array(world.done).reshape(-1, 3), np.array(world.begun)
    return Run(system, users, ramp_s, end, done, world.logs, busy, shift_s, begun)


def _busy(made: object, end_s: float) -> float:
    if isinstance(made, parts.Station):
        return made.busy_s / made.servers / end_s
    waiting = sum(end_s - e.came for e in made.queue) if isinstance(made, parts.Places) else 0.0
    return (made.waited_s + waiting) / end_s
