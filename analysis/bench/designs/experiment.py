"""An experiment on one system: trials that each begin anew, or steps of one trial that goes on. It has a clock, since
the machine's speed changes with it, and since the time is what is compared."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from ntier_analysis.statistics.throughput import throughput
from ntier_analysis.verdict.data import TrialData

from designs.systems import System

OVERHEAD_S = 11.5
"""Of a trial beside its phases: mean of 9 trials (docs/decisions/per-trial-path.md)."""
RAMP_S, RUN_S, DOWN_S = 20.0, 40.0, 5.0
"""Phases `short` (workloads/phases.yaml)."""
STEP_RAMP_S, SETTLE_S = 5.0, 5.0
"""In one trial that goes on: users come or go, then the system settles, before the next run is measured."""
MEMORY_S = 60.0
"""Time in which the machine's speed forgets what it was."""
MACHINE_S = 3600
CROWD = 5
"""Users that may come in all, in highest loads; those who come again are others. Fixed, so that a trial which goes on
repeats what it did before."""


def pace(seed: int, spread: float) -> np.ndarray:
    """Factor of the work on CPUs in each second of an hour: log-normal with this s.d. of the logarithm, an
    autoregression that forgets in MEMORY_S. The speed, 1 / factor, is 1 on average."""
    rng = np.random.default_rng([seed, 17])
    keep = np.exp(-1 / MEMORY_S)
    noise, level = rng.standard_normal(MACHINE_S), np.empty(MACHINE_S)
    level[0] = noise[0]
    for i in range(1, MACHINE_S):
        level[i] = keep * level[i - 1] + np.sqrt(1 - keep**2) * noise[i]
    return np.exp(spread * level + spread**2 / 2)


@dataclass
class Experiment:
    """`seconds` so far; `trials` as the analysis sees them, in the order in which they were run; `done`: steps of the
    trial that goes on: (users, begin, run from, run to), s from its start."""

    system: System
    pace: np.ndarray
    seed: int
    seconds: float = 0.0
    trials: list[TrialData] = field(default_factory=list)
    done: list[tuple[int, float, float, float]] = field(default_factory=list)
    began: float = 0.0

    def fresh(self, users: int, ramp_s: float = RAMP_S, run_s: float = RUN_S) -> TrialData:
        """A trial after a reset."""
        self.seconds += OVERHEAD_S
        run = self._simulated(users, ramp_s, run_s)
        self.seconds += ramp_s + run_s + DOWN_S
        return self._keep(run)

    def until_known(self, users: int, precision: float, looks: tuple[float, ...]) -> TrialData:
        """A trial after a reset that ends at the first of the looks (s of run) at which its own interval is as narrow
        as asked."""
        self.seconds += OVERHEAD_S
        run = self._simulated(users, RAMP_S, looks[-1])
        begun = run.answered()
        ended = begun[:, 0] + begun[:, 1]
        for run_s in looks:
            found = throughput(ended, RAMP_S, RAMP_S + run_s)
            if found.value > 0 and found.half_width <= precision * found.value:
                break
        self.seconds += RAMP_S + run_s + DOWN_S
        return self._keep(self.system.part(run, RAMP_S, RAMP_S + run_s, users))

    def steps(self, loads: list[int], run_s: float) -> list[TrialData]:
        """Further steps of one trial, each from the state in which the one before left the system."""
        if not self.done:
            self.seconds += OVERHEAD_S
            self.began = self.seconds
        for users in loads:
            begin = self.done[-1][3] if self.done else 0.0
            run_from = begin + (STEP_RAMP_S + SETTLE_S if self.done else RAMP_S)
            self.done.append((users, begin, run_from, run_from + run_s))
        end = self.done[-1][3]
        stay = stays(self.done, CROWD * self.system.grid[-1])
        pace = self._pace(self.began, end)
        run = self.system.run(len(stay[0]), 0.0, end, self.seed, self.began, stay=stay, pace=pace)
        self.seconds = self.began + end + DOWN_S
        return [self._keep(self.system.part(run, a, b, users)) for users, _, a, b in self.done[-len(loads) :]]

    def _simulated(self, users: int, ramp_s: float, run_s: float) -> object:
        seed = self.seed + 7919 * (len(self.trials) + 1)
        return self.system.run(users, ramp_s, run_s, seed, self.seconds, pace=self._pace(self.seconds, ramp_s + run_s))

    def _pace(self, begin_s: float, length_s: float) -> np.ndarray:
        """Around the end of the hour it begins anew."""
        return self.pace[(int(begin_s) + np.arange(int(length_s) + 2)) % len(self.pace)]

    def _keep(self, run: object) -> TrialData:
        self.trials.append(self.system.seen(len(self.trials), run))
        return self.trials[-1]


def stays(steps: list[tuple[int, float, float, float]], most: int) -> tuple[np.ndarray, np.ndarray]:
    """When each of `most` users comes and goes (inf: never), so that each step has its number of users. Who came last
    goes first; who comes later is somebody else. The users of the first step come evenly until its run, those of later
    ones within STEP_RAMP_S."""
    come, go, here, used = np.full(most, np.inf), np.full(most, np.inf), [], 0
    for i, (users, begin, run_from, _) in enumerate(steps):
        within, change = STEP_RAMP_S if i else run_from - begin, users - len(here)
        at = begin + within * np.arange(abs(change)) / max(1, abs(change))
        if change >= 0:
            if used + change > most:
                raise ValueError(f"{used + change} users come in all, allowed are {most}")
            come[used : used + change] = at
            here += range(used, used + change)
            used += change
        else:
            go[here[change:][::-1]] = at
            del here[change:]
    return come, go
