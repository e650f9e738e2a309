"""Places of a pool whose holders wait each on its own: how often a pause ends in order nevertheless.

    python analysis/bench/holders.py [RUNS]

`together` (verdict/stops.py) takes holders that leave a pause in the order in which they came for holders that wait for
one thing. Here none do. All places are held, by interactions that take 30 ms, and some of them wait beside that; each
does so in 60 to 93 % of its time, and for 1 to 4 s per place on average, so that the pool stands still for seconds.
Prints per number of places and distribution of the waits: the share of pauses that end in order, and of sweeps (three
runs of 60 s) that are taken for a stop."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable

import numpy as np
from ntier_analysis.verdict.load import COUNTS, Load
from ntier_analysis.verdict.saturation import Saturation
from ntier_analysis.verdict.stops import ends_in_order, pauses_between, together

SERVICE_S, RUN_S, AFTER_S = 0.03, 60.0, 200.0
Waits = Callable[[np.random.Generator, float], float]


def log_normal(variation: float) -> Waits:
    sigma = np.sqrt(np.log(1 + variation**2))
    return lambda rng, mean: float(mean * np.exp(rng.normal(0.0, sigma) - sigma**2 / 2))


WAITS: dict[str, Waits] = {
    "fixed": lambda _, mean: mean,
    "exponential": lambda rng, mean: float(rng.exponential(mean)),
    "log-normal 1.5": log_normal(1.5),
    "log-normal 3": log_normal(3.0),
    "Pareto 1.5": lambda rng, mean: float(mean / 3 * (1 - rng.random()) ** (-1 / 1.5)),
}


def spans(rng: np.random.Generator, places: int, waits: Waits) -> np.ndarray:
    """(n, 2) beginnings and ends of interactions; someone is always next."""
    mean = places * rng.uniform(1.0, 4.0)
    share = rng.uniform(0.6, 0.93)
    often = share * SERVICE_S / ((1 - share) * mean)
    free, made, now = [0.0] * places, [], 0.0
    while now < RUN_S + 2 * AFTER_S:
        now = heapq.heappop(free)
        held = rng.exponential(SERVICE_S) + (waits(rng, mean) if rng.random() < often else 0.0)
        made.append((now, now + held))
        heapq.heappush(free, now + held)
    return np.array(made)


def trial(rng: np.random.Generator, places: int, waits: Waits, pool: Saturation) -> tuple[Load, list[Saturation]]:
    """A run, as the verdict has it."""
    every = spans(rng, places, waits)
    done = every[:, 1]
    start, end = AFTER_S, AFTER_S + RUN_S
    rate = float(((done >= start) & (done < end)).mean() * len(done) / RUN_S)
    pauses = pauses_between(done, start, end, every)
    load = Load("x", 100, 100, rate, 1.0, 7.0, start, end, True, spans=every, done_s=done, pauses=pauses)
    return load, [pool]


def full_pool(places: int) -> Saturation:
    """Read once a second."""
    cells = np.ones(round(RUN_S))
    return Saturation("app1", "app", "pool", "", "", {}, 100.0, 100.0, 1.0, indicator=cells, values=100 * cells,
                      places=float(places))  # fmt: skip


def main() -> None:
    rng, runs = np.random.default_rng(3), int(sys.argv[1]) if len(sys.argv) > 1 else 100
    for places in (4, 6, 8, 9):
        for name, waits in WAITS.items():
            sweeps = [[trial(rng, places, waits, full_pool(places)) for _ in range(3)] for _ in range(runs)]
            sweeps = [s for s in sweeps if any(load.paused >= COUNTS for load, _ in s)]
            counts = [c for s in sweeps for load, found in s for c in ends_in_order(load.pauses, found, load).values()]
            n, ordered = np.sum(counts, axis=0) if counts else (0, 0)
            taken = sum(bool(together(s)) for s in sweeps)
            share = f"{ordered / n:.2f}" if n else "-"
            print(
                f"{places} places, {name}: {share} of {n} pauses in order; {taken} of {len(sweeps)} sweeps", flush=True
            )


if __name__ == "__main__":
    main()
