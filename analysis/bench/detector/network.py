"""A closed network of tiers as values: what it is made of, how to relieve a part of it, and how to run it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from detector import kernel

TIERS = ("web", "app", "middleware", "db")
THINK_S = 7.0
POLICIES = {"round_robin": kernel.ROUND_ROBIN, "random": kernel.RANDOM, "least_pending": kernel.LEAST_PENDING}
DELAY_WIDTH = 1e9
"""A station this wide delays without ever queueing."""


@dataclass(frozen=True)
class Station:
    """One resource of one node. `quota` in cores (None: no quota); `competitor`: share of the capacity that something
    else takes between odd and even `switches` (s); `stalls`: it stops then instead. `measured`: a collector sees it."""

    tier: str
    node: str
    resource: str
    width: float = 1.0
    quota: float | None = None
    speed: float = 1.0
    competitor: float = 0.0
    stalls: bool = False
    switches: tuple[float, ...] = ()
    measured: bool = True

    @property
    def key(self) -> tuple[str, str]:
        return self.tier, self.resource


@dataclass(frozen=True)
class Pool:
    """Places that a request holds between `take` and `give`."""

    tier: str
    node: str
    item: str
    size: int
    measured: bool = True

    @property
    def key(self) -> tuple[str, str]:
        return self.tier, f"pool:{self.item}"


@dataclass(frozen=True)
class Step:
    """`operation`: serve, take, give, choose or leave. `target`: key of a station or pool, or a tier. `work`: mean
    core-seconds per class of interaction; `variation`: coefficient of variation of the work."""

    operation: str
    target: tuple[str, str] | str
    work: tuple[float, ...] = ()
    variation: float = 1.0


@dataclass(frozen=True)
class Network:
    """`nodes`: tier -> number; `policies`: tier -> (balancing policy, weight of each node); `shares` of the classes."""

    nodes: dict[str, int]
    stations: tuple[Station, ...]
    pools: tuple[Pool, ...]
    steps: tuple[Step, ...]
    policies: dict[str, tuple[str, tuple[float, ...]]]
    shares: tuple[float, ...] = (1.0,)

    def relieved(self, keys: set[tuple[str, str]], factor: float) -> Network:
        """The same with `factor` times the capacity of the stations and pools of these keys (tier, resource)."""
        stations = tuple(_faster(s, factor) if s.key in keys else s for s in self.stations)
        pools = tuple(
            replace(p, size=max(p.size + 1, round(p.size * factor))) if p.key in keys else p for p in self.pools
        )
        return replace(self, stations=stations, pools=pools)

    def keys(self) -> list[tuple[str, str]]:
        """All (tier, resource) that could limit; pools as `pool:item`."""
        keys = [s.key for s in self.stations if s.width < DELAY_WIDTH] + [p.key for p in self.pools]
        return list(dict.fromkeys(keys))


def _faster(s: Station, factor: float) -> Station:
    return replace(s, quota=s.quota * factor) if s.quota is not None else replace(s, speed=s.speed * factor)


@dataclass
class Run:
    """`finished` (n, 3): begun s, response s, class; `record`: what each station (row) and pool did in each cell."""

    network: Network
    finished: np.ndarray
    record: kernel.Record
    ramp_s: float
    end_s: float
    users: int
    pending: int = 0
    extra: dict = field(default_factory=dict)

    def answered(self) -> np.ndarray:
        """(n, 3) of the interactions completed in the run phase."""
        ended = self.finished[:, 0] + self.finished[:, 1]
        return self.finished[(ended >= self.ramp_s) & (ended < self.end_s)]

    @property
    def throughput(self) -> float:
        return len(self.answered()) / (self.end_s - self.ramp_s)

    @property
    def response_s(self) -> float:
        answered = self.answered()
        return float(answered[:, 1].mean()) if len(answered) else float("nan")


def simulate(network: Network, users: int, ramp_s: float, run_s: float, seed: int, shift_s: float = 0.0,
             stay: tuple[np.ndarray, np.ndarray] | None = None, pace: np.ndarray | None = None) -> Run:  # fmt: skip
    """Times in s from the start of the ramp-up, in which the users start one after the other. `shift_s`: how far the
    competitors' schedules have got by then. `stay`: when each user comes and goes instead (inf: never). `pace`: factor
    of the work on CPUs in each second, as a machine of varying speed makes it."""
    end = ramp_s + run_s
    starts, leaves = stay or (ramp_s * np.arange(users) / users, np.full(users, np.inf))
    pace = np.ones(int(end) + 2) if pace is None else pace
    fixed = _fixed(network, shift_s)
    state = _state(fixed, users, seed)
    record = _record(len(network.stations), len(network.pools), end)
    policy, weights = _balancing(network)
    finished = np.zeros((int(users * end / 3) + 1000, 3))
    places = np.array([p.size for p in network.pools], np.int64)
    arguments = (end, THINK_S, _walk(network), fixed, state, record, places, policy, weights, finished)
    n = kernel.run(seed, starts, leaves, pace, *arguments)
    run = Run(network, finished[:n].copy(), record, ramp_s, end, users)
    run.pending = users - int(state.size[-1])
    return run


def _fixed(network: Network, shift_s: float) -> kernel.Stations:
    left = [_shifted(s.switches, shift_s) for s in network.stations]
    switches = np.full((len(left), max(len(times) for times in left) + 1), np.inf)
    for i, times in enumerate(left):
        switches[i, : len(times)] = times
    return kernel.Stations(
        width=np.array([s.width for s in network.stations]),
        speed=np.array([s.speed for s in network.stations]),
        quota=np.array([np.inf if s.quota is None else s.quota for s in network.stations]),
        competitor=np.array([s.competitor for s in network.stations]),
        stalls=np.array([s.stalls for s in network.stations]),
        switches=switches,
    )


def _shifted(switches: tuple[float, ...], shift_s: float) -> np.ndarray:
    """What is left of a schedule; it begins with 0 if the competitor is on just then."""
    times = np.asarray(switches, float)
    past = int(np.searchsorted(times, shift_s, side="right"))
    return np.concatenate([[0.0] * (past % 2), times[past:] - shift_s])


def _state(fixed: kernel.Stations, users: int, seed: int) -> kernel.State:
    n = len(fixed.width)
    offsets = np.random.default_rng([seed, 1]).uniform(0.001, kernel.PERIOD_S, n)  # periods of nodes are not aligned
    return kernel.State(
        virtual=np.zeros(n),
        last=np.zeros(n),
        budget=np.where(np.isfinite(fixed.quota), fixed.quota * kernel.PERIOD_S, np.inf),
        period_end=offsets,
        throttled=np.zeros(n, np.bool_),
        on=np.zeros(n, np.bool_),
        switch=np.zeros(n, np.int64),
        following=np.full(n, np.inf),
        key=np.zeros((n + 1, users + 1)),
        who=np.zeros((n + 1, users + 1), np.int64),
        size=np.zeros(n + 1, np.int64),
    )


def _record(stations: int, pools: int, end_s: float) -> kernel.Record:
    cells = int(np.ceil(end_s / kernel.CELL_S)) + 1
    return kernel.Record(
        used=np.zeros((stations, cells), np.float32),
        busy=np.zeros((stations, cells), np.float32),
        throttled=np.zeros((stations, cells), np.int8),
        jobs=np.zeros((stations, cells), np.int32),
        done=np.zeros((stations, cells), np.int32),
        taken=np.zeros((pools, cells), np.int32),
        waiting=np.zeros((pools, cells), np.int32),
    )


def _balancing(network: Network) -> tuple[np.ndarray, np.ndarray]:
    weights = np.zeros((len(TIERS), max(network.nodes.values()) + 1))
    policy = np.zeros(len(TIERS), np.int64)
    for i, tier in enumerate(TIERS):
        name, given = network.policies.get(tier, ("round_robin", ()))
        policy[i] = POLICIES[name]
        weights[i, : network.nodes[tier]] = given or 1.0
    return policy, weights


def _walk(network: Network) -> kernel.Walk:
    operations = {"serve": kernel.SERVE, "take": kernel.TAKE, "give": kernel.GIVE}
    operations |= {"choose": kernel.CHOOSE, "leave": kernel.LEAVE}
    first: dict[tuple[str, str], int] = {}
    several: dict[tuple[str, str], int] = {}
    for parts in (network.stations, network.pools):
        for i, part in enumerate(parts):
            first.setdefault(part.key, i)
            several[part.key] = several.get(part.key, 0) + 1
    target, tier = [], []
    for step in network.steps:
        if isinstance(step.target, str):
            target.append(TIERS.index(step.target))
            tier.append(-1)
        else:
            target.append(first[step.target])
            tier.append(TIERS.index(step.target[0]) if several[step.target] > 1 else -1)
    work = np.zeros((len(network.shares), len(network.steps)))
    for k, step in enumerate(network.steps):
        if step.work:
            work[:, k] = step.work
    return kernel.Walk(
        operation=np.array([operations[s.operation] for s in network.steps]),
        target=np.array(target),
        tier=np.array(tier),
        variation=np.array([s.variation for s in network.steps]),
        work=work,
        share=np.minimum(np.cumsum(network.shares) / sum(network.shares), 1.0),
        paced=np.array([s.operation == "serve" and s.target[1] == "cpu" for s in network.steps]),
    )
