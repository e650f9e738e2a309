"""A fast closed network for the search: N users who think go through FIFO stations with one server per node. Gives the
values that a trial leaves (`TrialData`), without files. Its true maximum is known: the least capacity / demand."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from ntier_analysis.statistics.throughput import batch_rates
from ntier_analysis.verdict.data import TrialData
from ntier_analysis.verdict.load import Load

THINK_S = 7.0
TIERS = ("web", "app", "middleware", "db")


@dataclass(frozen=True)
class Network:
    """`demand_s`: CPU seconds per interaction of each tier; `nodes`: servers of each tier; `cores` of each node,
    `idle` of them used without load; `cv2`: squared coefficient of variation of the demands; `lock_s`: a serial section
    that uses no CPU; `falls`: how much longer an interaction takes the db per waiting request (retrograde)."""

    demand_s: tuple[float, float, float, float]
    nodes: tuple[int, int, int, int] = (1, 1, 1, 1)
    cores: float = 0.2
    idle: float = 0.004
    cv2: float = 1.0
    lock_s: float = 0.0
    falls: float = 0.0

    @property
    def maximum(self) -> float:
        """Interactions per second that the bottleneck can serve."""
        limits = [n * (self.cores - self.idle) / d for n, d in zip(self.nodes, self.demand_s, strict=True)]
        return min([*limits, 1 / self.lock_s] if self.lock_s else limits)

    def idle_cores(self) -> dict[str, float]:
        return {f"{t}{i + 1}": self.idle for t, n in zip(TIERS, self.nodes, strict=True) for i in range(n)}


def draws(rng: np.random.Generator, mean: float, cv2: float) -> Callable[[], float]:
    """Exponential for cv2 = 1, else balanced hyperexponential."""
    block: list[float] = []

    def one() -> float:
        if not block:
            x = rng.exponential(1.0, 4096)
            if cv2 > 1:
                p = (1 + np.sqrt((cv2 - 1) / (cv2 + 1))) / 2
                x = np.where(rng.random(4096) < p, x / (2 * p), x / (2 * (1 - p)))
            block.extend((mean * x).tolist())
        return block.pop()

    return one


@dataclass
class _Station:
    free_at: list[float]
    draw: Callable[[], float]
    falls: float = 0.0
    busy: list[float] = field(default_factory=list)
    waiting: int = 0


def trial(network: Network, users: int, seed: int, scale: float = 0.2,
          phases: tuple[float, float] = (20.0, 40.0)) -> TrialData:  # fmt: skip
    """One trial at `users` nominal users: `phases` are ramp-up and run, s."""
    rng = np.random.default_rng([seed, users])
    start, end = phases[0], sum(phases)
    real = round(users * scale)
    stations = _stations(network, rng)
    think = draws(rng, THINK_S, 1.0)
    events = [(phases[0] * i / real + think(), i, 0, 0.0) for i in range(real)]
    heapq.heapify(events)
    done, responses = [], []
    used = np.zeros(len(stations))
    while events:
        now, user, stage, begun = events[0]
        if now >= end:
            break
        if stage == len(stations):
            done.append(now)
            if now >= start:
                responses.append(now - begun)
            heapq.heapreplace(events, (now + think(), user, 0, 0.0))
            continue
        station = stations[stage]
        free = heapq.heappop(station.free_at)
        begin = max(now, free)
        work = station.draw() * (1 + station.falls * max(0.0, free - now))
        heapq.heappush(station.free_at, begin + work)
        used[stage] += max(0.0, min(begin + work, end) - max(begin, start))
        heapq.heapreplace(events, (begin + work, user, stage + 1, begun or now))
    return _data(network, users, real, np.array(done), np.array(responses), used / (end - start), start, end)


def _stations(network: Network, rng: np.random.Generator) -> list[_Station]:
    speed = network.cores - network.idle
    stations = [
        _Station([0.0] * n, draws(rng, d / speed, network.cv2))
        for n, d in zip(network.nodes, network.demand_s, strict=True)
    ]
    stations[3].falls = network.falls
    return [*stations, _Station([0.0], draws(rng, network.lock_s, 1.0))] if network.lock_s else stations


def _data(network: Network, users: int, real: int, done: np.ndarray, responses: np.ndarray, used: np.ndarray,
          start: float, end: float) -> TrialData:  # fmt: skip
    rates = batch_rates(done, start, end)
    load = Load(f"u{users:05d}.r01", users, real, float(rates.mean()), float(responses.mean()), THINK_S, start, end,
                True, rates=rates)  # fmt: skip
    tiers = {f"{t}{i + 1}": t for t, n in zip(TIERS, network.nodes, strict=True) for i in range(n)}
    speed = network.cores - network.idle
    cores = {
        f"{t}{i + 1}": float(used[k]) / n * speed + network.idle
        for k, (t, n) in enumerate(zip(TIERS, network.nodes, strict=True))
        for i in range(n)
    }
    return TrialData(load, [], tiers, cores, dict.fromkeys(tiers, network.cores))
