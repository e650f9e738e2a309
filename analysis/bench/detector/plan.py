"""What a case is made of: a network in the making, how it is observed, and what is true of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from detector.network import DELAY_WIDTH, TIERS, Network, Pool, Station, Step

Key = tuple[str, str]


@dataclass(frozen=True)
class View:
    """How the network is observed. `ticks`: CPU time counted in 10 ms ticks; `slow_s`: interval of disks, networks and
    pools; `gap_s`: longest gap of one collector; `interactions`: whether single interactions are there; `queues`:
    whether disks report their queue and waiting time, as iostat does."""

    interval_s: float = 0.1
    slow_s: float = 1.0
    ticks: bool = False
    noise_pct: float = 1.0
    jitter_s: float = 0.002
    gap_s: float = 0.0
    interactions: bool = True
    queues: bool = True


@dataclass
class Case:
    """`truth`: class; `claims`: (tier, resource) -> nodes that limit; `relief`: keys whose relief must help (the
    hidden too); `loads` as shares of the knee."""

    name: str
    truth: str
    variant: str
    network: Network
    claims: dict[Key, tuple[str, ...]]
    relief: set[Key]
    loads: tuple[float, ...]
    run_s: float
    scale: float
    view: View
    seed: int
    design_x: float
    notes: dict = field(default_factory=dict)


@dataclass
class Plan:
    """A network in the making: `target` throughput, `busy`: key -> share of its capacity used at the target."""

    rng: np.random.Generator
    nodes: dict[str, int]
    target: float
    quota: float | None
    busy: dict[Key, float]
    variation: dict[str, float]
    policies: dict[str, tuple[str, tuple[float, ...]]] = field(default_factory=dict)
    options: dict[Key, dict] = field(default_factory=dict)
    latency_s: float = 0.01
    inner_latency_s: float = 0.0
    workers: int = 400
    threads: int = 300
    connections: int = 60
    lock_s: float = 0.0
    wide_disk: bool = False

    def build(self) -> Network:
        stations = [s for tier in TIERS for s in self._cpus(tier)]
        disk = {"width": 32.0} if self.wide_disk else {}
        stations += [self._station("db", i, "disk", **disk) for i in range(self.nodes["db"])]
        stations += [self._station("web", i, "network") for i in range(self.nodes["web"])]
        stations += [Station("db", "none", r, width=w, measured=False) for r, w in HIDDEN]
        pools = [Pool("web", f"web{i + 1}", "workers", self.workers) for i in range(self.nodes["web"])]
        for item, size in (("threads", self.threads), ("connections", self.connections)):
            pools += [Pool("app", f"app{i + 1}", item, size) for i in range(self.nodes["app"])]
        return Network(self.nodes, tuple(stations), tuple(pools), tuple(self._steps()), self.policies)

    def _cpus(self, tier: str) -> list[Station]:
        width = 1.0 if self.quota is None else 2.0
        return [self._station(tier, i, "cpu", width=width, quota=self.quota) for i in range(self.nodes[tier])]

    def _station(self, tier: str, index: int, resource: str, **given) -> Station:
        options = (
            given | self.options.get((tier, resource), {}) | self.options.get((f"{tier}{index + 1}", resource), {})
        )
        return Station(tier, f"{tier}{index + 1}", resource, **options)

    def work(self, key: Key) -> float:
        """Mean core-seconds of an interaction at this resource."""
        capacity = self.quota if key[1] == "cpu" and self.quota is not None else 1.0
        return self.busy.get(key, 0.0) * capacity * self.nodes[key[0]] / self.target

    def _steps(self) -> list[Step]:
        def serve(tier: str, resource: str = "cpu", part: float = 1.0) -> Step:
            return Step("serve", (tier, resource), (part * self.work((tier, resource)),), self.variation[tier])

        def wait(resource: str, seconds: float) -> Step:
            return Step("serve", ("db", resource), (seconds,), 0.3)

        database = [
            Step("choose", "db"), wait("lock", self.lock_s), serve("db"), wait("inner_latency", self.inner_latency_s),
            serve("db", "disk"), Step("leave", "db"),
        ]  # fmt: skip
        middleware = [Step("choose", "middleware"), serve("middleware"), *database, Step("leave", "middleware")]
        app = [
            Step("choose", "app"), Step("take", ("app", "pool:threads")), serve("app", part=0.5),
            Step("take", ("app", "pool:connections")), *middleware, Step("give", ("app", "pool:connections")),
            serve("app", part=0.5), Step("give", ("app", "pool:threads")), Step("leave", "app"),
        ]  # fmt: skip
        return [
            Step("choose", "web"), Step("take", ("web", "pool:workers")), serve("web"), *app, serve("web", "network"),
            Step("give", ("web", "pool:workers")), Step("leave", "web"), wait("latency", self.latency_s),
        ]  # fmt: skip


HIDDEN = (("lock", 1.0), ("latency", DELAY_WIDTH), ("inner_latency", DELAY_WIDTH))
"""Stations behind the database that no collector sees: a serial section and delays."""


LONG_S = 4000.0
"""Competitors are scheduled this far, longer than any run."""


def turns(plan: Plan, mean_s: float, shares: tuple[float, ...], regular: bool) -> list[tuple[float, ...]]:
    """Switch times of several that go on one after the other: on for `shares` of a round, the rest nobody. Rounds of
    len(shares) x mean_s / sum(shares) x ... seconds, of random length unless regular."""
    at, times = 0.0, [[] for _ in shares]
    round_s = mean_s * len(shares) / sum(shares)
    while at < LONG_S:
        length = round_s if regular else round_s * plan.rng.gamma(4.0, 0.25)
        begin = at
        for own, share in zip(times, shares, strict=True):
            own += [begin, begin + share * length]
            begin += share * length
        at += length
    return [tuple(_apart(t)) for t in times]


def _apart(times: list[float]) -> list[float]:
    """Switches that touch (off and on again at the same moment) are left out."""
    kept: list[float] = []
    for t in times:
        if kept and t - kept[-1] < 1e-6:
            kept.pop()
        else:
            kept.append(t)
    return kept
