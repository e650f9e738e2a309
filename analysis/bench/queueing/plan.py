"""A system in the making: what each part does at the throughput that the case is laid out for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from queueing.model import Key, Part, Step, System, Think

TIER_NAMES = (
    ("web", "app", "middleware", "db"),
    ("frontend", "backend", "cache", "postgres"),
    ("nginx", "django", "postgres"),
    ("gateway", "orders", "inventory", "mysql"),
    ("lb", "api", "redis", "mysql"),
    ("php", "mariadb"),
    ("shop", "store"),
)
CACHES = ("cache", "redis")
"""Tiers that answer some requests without the one behind them."""
SCHEDULE_S = 800.0
"""Competitors and stops are scheduled this far: longer than any run and its shift."""


@dataclass
class Plan:
    """`target`: interactions/s at which `busy` (key -> share of the capacity in use) holds; `options`: key -> fields of
    its parts; `hit`: share that a cache answers; `visits` of the innermost tier per interaction; `before`: part of the
    caller's CPU work that is done before it calls."""

    rng: np.random.Generator
    tiers: tuple[str, ...]
    nodes: dict[str, int]
    target: float
    think: Think
    cores: dict[str, int]
    busy: dict[Key, float]
    laws: dict[str, str]
    policies: dict[str, tuple[str, tuple[float, ...]]] = field(default_factory=dict)
    options: dict[Key, dict] = field(default_factory=dict)
    latency_s: float = 0.005
    inner_delay_s: float = 0.0
    workers: int = 1000
    connections: int = 500
    buffer: int = 0
    disk_slots: int = 1
    hit: float = 0.0
    visits: int = 1
    before: float = 0.6
    serial_s: float = 0.0
    serial_only: str = ""
    shared_s: float = 0.0
    thread: tuple[str, float] | None = None
    write_share: float = 0.1
    urgent: bool = False
    open_per_s: float = 0.0

    @property
    def front(self) -> str:
        return self.tiers[0]

    @property
    def caller(self) -> str:
        """The tier that holds the connections to the innermost ones."""
        return self.tiers[-2] if len(self.tiers) < 4 else self.tiers[1]

    @property
    def inner(self) -> str:
        return self.tiers[-1]

    @property
    def cpus(self) -> list[Key]:
        return [(t, "cpu") for t in self.tiers]

    @property
    def disk(self) -> Key:
        return self.inner, "disk"

    def servers(self, key: Key) -> int:
        return self.disk_slots if key[1] == "disk" else self.cores[key[0]]

    def build(self) -> System:
        return System(
            self.tiers, self.nodes, tuple(self._parts()), tuple(self._steps()), self.think, self.policies,
            self.write_share, self.open_per_s,
        )  # fmt: skip

    # ---- parts ------------------------------------------------------------------------------------------------------

    def _of(self, tier: str, resource: str, **given) -> list[Part]:
        options = given | self.options.get((tier, resource), {})
        return [Part(tier, i, resource, **options) for i in range(self.nodes[tier])]

    def _parts(self) -> list[Part]:
        parts = [p for t in self.tiers for p in self._of(t, "cpu", servers=self.cores[t])]
        parts += self._of(self.inner, "disk", servers=self.disk_slots)
        parts += self._of(self.front, "pool:workers", kind="places", servers=self.workers)
        parts += self._of(self.caller, "pool:connections", kind="places", servers=self.connections)
        if self.buffer:
            parts += self._of(self.tiers[1], "pool:backlog", kind="places", servers=self.buffer)
        if self.serial_s:
            parts += self._of(self.inner, "lock", kind="places", measured=False)
        if self.shared_s:
            parts += self._of(self.inner, "lock", kind="shared", measured=False)
        if self.thread is not None:
            parts += self._of(self.thread[0], "thread", kind="places", measured=False)
        if ("stop",) in self.options:
            parts += [Part(self.inner, i, "stop", measured=False, stops=self.options["stop",]["stops"])
                      for i in range(self.nodes[self.inner])]  # fmt: skip
        return parts

    # ---- steps ------------------------------------------------------------------------------------------------------

    def work(self, key: Key, part: float = 1.0) -> float:
        """Mean seconds of one visit: `part` of what an interaction needs there in all."""
        total = self.busy.get(key, 0.0) * self.servers(key) * self.nodes[key[0]] / self.target
        behind = 1 / (1 - self.hit) if key[0] == self.inner else 1.0
        return part * total * behind

    def _serve(self, tier: str, resource: str, part: float = 1.0) -> list[Step]:
        mean = self.work((tier, resource), part)
        law = self.laws[tier] if resource == "cpu" else self.laws["disk"]
        return [Step("serve", tier, resource, law, mean, urgent=self.urgent)] if mean > 0 else []

    def _steps(self) -> list[Step]:
        inside = self._behind(2 if len(self.tiers) == 4 else len(self.tiers) - 1)
        front, caller = self.front, self.caller
        called = [Step("take", caller, "pool:connections"), *inside, Step("give", caller, "pool:connections")]
        if caller != front:
            body = [Step("enter", caller), *self._serve(caller, "cpu", self.before), *self._thread(caller), *called,
                    *self._serve(caller, "cpu", 1 - self.before), Step("exit", caller)]  # fmt: skip
        else:
            body = called
        leave = [Step("give", front, "pool:workers")]
        if self.buffer:
            # Blocking after service: a worker is kept until the next tier's backlog has a place, no longer.
            place = ("pool:backlog",)
            body = [body[0], Step("take", caller, *place), *leave, *body[1:-1], Step("give", caller, *place), body[-1]]
            leave = []
        return [
            Step("enter", front), Step("take", front, "pool:workers"), *self._serve(front, "cpu"),
            *self._thread(front), *body, *leave, Step("exit", front), Step("delay", law="erlang", mean=self.latency_s),
        ]  # fmt: skip

    def _behind(self, first: int) -> list[Step]:
        """The visits of the tiers from `first` inwards."""
        visit: list[Step] = []
        for _ in range(self.visits):
            inner = [Step("enter", self.inner), *self._serve(self.inner, "cpu", 1 / self.visits), *self._locks(),
                     *self._thread(self.inner, 1 / self.visits), *self._delay(),
                     *self._serve(self.inner, "disk", 1 / self.visits), Step("exit", self.inner)]  # fmt: skip
            if first == len(self.tiers) - 1:
                visit += inner
                continue
            between = self.tiers[first]
            skip = [Step("skip", mean=self.hit, count=len(inner))] if self.hit else []
            visit += [Step("enter", between), *self._serve(between, "cpu", 1 / self.visits),
                      *self._thread(between, 1 / self.visits), *skip, *inner, Step("exit", between)]  # fmt: skip
        return visit

    def _locks(self) -> list[Step]:
        behind = self.visits * (1 - self.hit)
        if self.serial_s:
            return [Step("serial", self.inner, "lock", self.laws["lock"], self.serial_s / behind, self.serial_only)]
        return [Step("serial", self.inner, "lock", self.laws["lock"], self.shared_s / behind)] if self.shared_s else []

    def _thread(self, tier: str, part: float = 1.0) -> list[Step]:
        if self.thread is None or self.thread[0] != tier:
            return []
        behind = 1 / (1 - self.hit) if tier == self.inner else 1.0
        return [Step("thread", tier, "thread", self.laws[tier], part * behind * self.thread[1])]

    def _delay(self) -> list[Step]:
        mean = self.inner_delay_s / self.visits / (1 - self.hit)
        return [Step("delay", law="erlang", mean=mean)] if mean > 0 else []


def turns(
    rng: np.random.Generator, round_s: float, shares: tuple[float, ...], regular: bool
) -> list[tuple[float, ...]]:
    """Switch times of several that go on one after the other, each for its share of a round (s); the rest nobody."""
    at, times = 0.0, [[] for _ in shares]
    while at < SCHEDULE_S:
        length = round_s if regular else round_s * float(rng.gamma(6.0, 1 / 6))
        begin = at
        for own, share in zip(times, shares, strict=True):
            own += [begin, begin + share * length]
            begin += share * length
        at += length
    return [tuple(t) for t in times]
