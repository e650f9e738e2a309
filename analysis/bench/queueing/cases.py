"""Cases drawn from a seed: a system, loads, how it is seen. What is true of them, relief decides (relief.py)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from queueing.model import Run, System, Think, simulate
from queueing.plan import TIER_NAMES, Plan
from queueing.variants import ALL, Built, has_cache

SEEDS = {"tuning": 31, "selection": 32, "scoring": 33}
RAMP_S = 20.0
PILOT_LOAD, PILOT_S = 2.5, 60.0
"""Load in knees of the layout, and length, of the run that finds the maximum throughput."""
SHIFT_S = 300.0
"""How far the schedules may have got when a trial begins."""
LOADS = {
    "usual": ((0.2, 0.8, 1, 4), (0.8, 1.15, 0, 2), (1.25, 2.5, 1, 4)),
    "far": ((0.2, 0.8, 1, 3), (2.0, 5.0, 2, 4)),
    "beyond": ((0.2, 0.7, 1, 3), (1.2, 3.0, 2, 5)),
    "low": ((0.15, 0.65, 3, 6),),
    "very low": ((0.1, 0.4, 3, 6),),
    "up to the knee": ((0.2, 0.85, 3, 6),),
    "from the knee": ((1.1, 2.5, 2, 5),),
    "all high": ((1.6, 3.0, 2, 5),),
    "one high": ((1.4, 2.5, 1, 2),),
    "one low": ((0.2, 0.5, 1, 2),),
}
"""Name -> (low, high, least number, one more than the greatest) of loads in knees."""


@dataclass(frozen=True)
class View:
    """How a case is seen: intervals of CPUs and of the rest (s), noise (points), a collector's longest gap (s), whether
    there are disk queues, the busiest core, single interactions."""

    cpu_s: float
    slow_s: float
    noise_pct: float
    gap_s: float
    queues: bool
    cores: bool
    interactions: bool


OWN = View(cpu_s=0.1, slow_s=1.0, noise_pct=0.5, gap_s=0.0, queues=True, cores=True, interactions=True)
"""As this project's own collectors see a trial (docs/measurements.md): control groups ten times a second, disks with
their queue and pools once a second, each interaction. What they lose invalidates a trial, so no gap is left."""
OWN_LOADS = (0.4, 0.6, 1.4, 1.7, 2.0)
"""In knees: two below the knee and three above it, as this project asks for."""


@dataclass(frozen=True)
class Case:
    """`loads` in knees; `scale`: emulated users per nominal one. `model`: closed (users who think), open (the knee is a
    rate, 1/s, and nobody is a user) or work (the users do not think)."""

    name: str
    variant: str
    built: Built
    system: System
    loads: tuple[float, ...]
    knee_users: float
    run_s: float
    scale: float
    view: View
    seed: int
    model: str = "closed"

    @property
    def levels(self) -> list[float]:
        """What is asked in each trial, ascending: users, or arrivals per second."""
        return sorted(load * self.knee_users for load in self.loads) if self.model == "open" else self.users

    def run(self, system: System, level: float, ramp_s: float, run_s: float, seed: int, *further, **given) -> Run:
        """One simulation of the system, perhaps relieved, at this level."""
        if self.model == "open":
            return simulate(replace(system, open_per_s=level), 0, ramp_s, run_s, seed, *further, **given)
        return simulate(system, int(level), ramp_s, run_s, seed, *further, **given)

    @property
    def users(self) -> list[int]:
        """Emulated users of each trial, ascending; loads that round to the same are one."""
        return sorted({max(1, round(load * self.knee_users)) for load in self.loads})


def draw(seeds: str, number: int) -> Case:
    """Case `number` of the set `seeds` (tuning, selection, scoring: disjoint by construction)."""
    rng = np.random.default_rng([20261122, SEEDS[seeds], number])
    plan = _plan(rng)
    variant = ALL[number % len(ALL)]
    built = variant(plan)
    loads = _loads(rng, built)
    system, seed = plan.build(), int(rng.integers(2**31))
    return Case(
        name=f"queueing.{seeds}.{number:04d}",
        variant=variant.__name__,
        built=built,
        system=system,
        loads=tuple(loads),
        knee_users=_knee(system, plan, seed),
        run_s=float(rng.choice([40.0, 50.0, 60.0])),
        scale=float(rng.choice([0.1, 0.2, 0.5, 1.0])),
        view=_view(rng),
        seed=seed,
    )


def as_own(case: Case) -> Case:
    """The same system as this project measures it by itself."""
    return replace(case, view=OWN, loads=OWN_LOADS)


def _plan(rng: np.random.Generator) -> Plan:
    tiers = TIER_NAMES[int(rng.choice(len(TIER_NAMES), p=[0.28, 0.2, 0.12, 0.12, 0.12, 0.08, 0.08]))]
    nodes = dict.fromkeys(tiers, 1) | {tiers[-1]: int(rng.choice([1, 1, 2, 3]))}
    if len(tiers) > 2:
        nodes[tiers[1]] = int(rng.choice([1, 1, 2]))
    laws = {t: str(rng.choice(["exponential", "erlang", "deterministic", "hyperexponential"])) for t in tiers}
    plan = Plan(
        rng=rng,
        tiers=tiers,
        nodes=nodes,
        target=float(np.exp(rng.uniform(np.log(10), np.log(22)))),
        think=Think(
            mean_s=float(np.exp(rng.uniform(np.log(0.5), np.log(15)))),
            law=str(
                rng.choice(["exponential", "exponential", "lognormal", "deterministic", "erlang", "hyperexponential"])
            ),
        ),
        cores={t: int(rng.choice([1, 1, 1, 2, 4])) for t in tiers},
        busy={(t, "cpu"): float(rng.uniform(0.08, 0.75)) for t in tiers}
        | {(tiers[-1], "disk"): float(rng.uniform(0.02, 0.5))},
        laws=laws | {"disk": str(rng.choice(["exponential", "erlang", "hyperexponential"])), "lock": "exponential"},
        latency_s=float(rng.uniform(0.001, 0.02)),
        disk_slots=int(rng.choice([1, 1, 4])),
        visits=int(rng.choice([1, 1, 2, 3])),
    )
    if has_cache(plan):
        plan.hit = float(rng.choice([0.0, 0.3, 0.6]))
    for t in tiers:
        plan.policies[t] = (str(rng.choice(["round_robin", "random", "least_pending"])), ())
    return plan


def _loads(rng: np.random.Generator, built: Built) -> list[float]:
    parts = [(low, min(high, built.top), int(rng.integers(a, b))) for low, high, a, b in LOADS[built.loads]]
    return sorted(float(x) for low, high, n in parts for x in rng.uniform(low, high, n))


def _knee(system: System, plan: Plan, seed: int) -> float:
    """Users at which N / (Z + R0) meets the maximum throughput, both simulated."""
    z = system.think.mean_s
    alone = simulate(system, 1, 0.0, 40 * (z + 0.2), seed)
    idle_s = alone.response_s if len(alone.done) else 0.1
    many = max(4, round(PILOT_LOAD * plan.target * (z + idle_s)))
    return max(1.0, simulate(system, many, RAMP_S, PILOT_S, seed).throughput * (z + idle_s))


def _view(rng: np.random.Generator) -> View:
    return View(
        cpu_s=float(rng.choice([0.1, 0.1, 1.0])),
        slow_s=float(rng.choice([0.1, 1.0, 1.0])),
        noise_pct=float(rng.uniform(0, 1.5)),
        gap_s=float(rng.choice([0.0, 0.0, rng.uniform(1, 4)])),
        queues=bool(rng.random() < 0.7),
        cores=bool(rng.random() < 0.7),
        interactions=bool(rng.random() < 0.6),
    )


def sweep_runs(case: Case) -> list[Run]:
    """The trials of the case's sweep, by load."""
    rng = np.random.default_rng([case.seed, 3])
    return [
        case.run(
            case.system, n, RAMP_S, case.run_s, case.seed + 11 * (i + 1), float(rng.uniform(0, SHIFT_S)), record=True
        )
        for i, n in enumerate(case.levels)
    ]
