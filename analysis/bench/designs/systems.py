"""Systems of both families of known truth, in the one form in which an experiment meets them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from detector import cases as kernel_cases
from detector import network, truth
from detector import observe as kernel_observe
from ntier_analysis.importing.folder import prepared
from ntier_analysis.verdict import tables
from ntier_analysis.verdict.data import TrialData
from queueing import cases as simpy_cases
from queueing import observe as simpy_observe
from queueing.relief import label

KINDS = ("single", "simultaneous", "alternating", "hidden", "single")
"""Classes of the first family in turn: those with a maximum, and the commonest twice."""
BEYOND = 1.8
"""Load, in knees, of the long run that says what the maximum is, as for the labels (detector/truth.py)."""
LONG_S = 2400.0
FEW = 20
"""Users at the knee, at least: with fewer, 13 loads cannot be told apart."""
PLACES = (1.5, 7.0)
"""Where the knee lies in the range of 13 loads, in steps of it; log-uniform."""
LOADS = 13


@dataclass(frozen=True)
class System:
    """`line`: what is true, as the families' lists have it; `maximum`: interactions/s of the long run; `run`: (users,
    ramp-up s, run s, seed, shift s, stays, pace) -> simulated run; `part`: (run, from s, to s, users) -> the same as if
    only that had been its run phase; `frames`: (number, run) -> trial, samples, interactions; `grid`: users."""

    line: dict
    maximum: float
    knee: float
    think_s: float
    grid: tuple[int, ...]
    seed: int
    idle: dict[str, float]
    run: Callable
    part: Callable
    frames: Callable

    def seen(self, number: int, run: object) -> TrialData:
        """What the analysis takes of a run that was trial `number`."""
        trials, samples, done = self.frames(number, run)
        found = prepared(trials, samples, done)[self.line["name"]]
        return tables.trial_data(found["trials"], found["samples"], found["nodes"], found.get("interactions"))[0][0]


def grid_around(knee: float, seed: int) -> tuple[int, ...]:
    """13 equally spaced loads; the knee lies somewhere among the first half of them."""
    place = np.exp(np.random.default_rng([seed, 13]).uniform(*np.log(PLACES)))
    step = max(1, round(knee / place))
    return tuple(step * i for i in range(1, LOADS + 1))


def first_family(number: int) -> System | None:
    """Case `number`; None if its label does not hold or it has no maximum."""
    case = kernel_cases.draw(KINDS[number % len(KINDS)], "scoring", number)
    case = replace(case, scale=1.0, view=replace(case.view, interactions=True))
    checked = truth.check(case)
    if not checked.holds or checked.why or not case.relief or checked.knee_real < FEW:
        return None
    claims = [[t, r, list(n)] for (t, r), n in case.claims.items() if (t, r) in checked.claims]
    line = {"name": case.name, "variant": case.variant, "truth": checked.truth, "claims": claims, "scale": 1.0}

    def run(users, ramp_s, run_s, seed, shift_s, stay=None, pace=None):
        return network.simulate(case.network, users, ramp_s, run_s, seed, shift_s, stay, pace)

    def part(run, begin_s, end_s, users):
        return replace(run, ramp_s=begin_s, end_s=end_s, users=users, finished=_ended(run.finished, begin_s, end_s))

    def frames(i, run):
        trials = pd.DataFrame([kernel_observe.trial_rows(case, i, run)])
        samples = kernel_observe.sample_rows(case, i, run, case.view, case.seed + i)
        return trials, samples, kernel_observe.interaction_rows(case, i, run)

    maximum = _maximum(case, checked)
    idle = {s.node: 0.0 for s in case.network.stations if s.resource == "cpu" and s.measured}
    grid = grid_around(checked.knee_real, case.seed)
    return System(line, maximum, checked.knee_real, network.THINK_S, grid, case.seed, idle, run, part, frames)


def _maximum(case: kernel_cases.Case, checked: truth.Truth) -> float:
    pools = any(resource.startswith("pool:") for _, resource in case.relief)
    system = case.network if pools else truth.smooth(case.network)
    return network.simulate(system, round(BEYOND * checked.knee_real), truth.RAMP_S, LONG_S, case.seed + 1).throughput


def second_family(number: int) -> System | None:
    """Case `number`; None if it is borderline, nothing limits it, or its users come in waves or do not think."""
    case = simpy_cases.draw("scoring", number)
    case = replace(case, scale=1.0, view=replace(case.view, interactions=True))
    if case.model != "closed" or case.system.think.wave is not None or case.system.amount or case.knee_users < FEW:
        return None
    found = label(case)
    if found.why or found.truth in ("none", "unknown"):
        return None
    names = {k: [simpy_observe.node_name(case, k[0], n) for n in nodes] for k, nodes in found.claims.items()}
    claims = [[*k, nodes] for k, nodes in names.items()]
    line = {"name": case.name, "variant": case.variant, "truth": found.truth, "claims": claims, "scale": 1.0}

    def run(users, ramp_s, run_s, seed, shift_s, stay=None, pace=None):
        return case.run(case.system, users, ramp_s, run_s, seed, shift_s, record=True, stay=stay, pace=pace)

    def part(run, begin_s, end_s, users):
        return replace(run, ramp_s=begin_s, end_s=end_s, users=users, done=_ended(run.done, begin_s, end_s))

    def frames(i, run):
        trials = pd.DataFrame([simpy_observe.trial_row(case, i, run, case.system.think.mean_s)])
        samples = simpy_observe.sample_rows(case, i, run, run.shift_s)
        return trials, samples, simpy_observe.interaction_rows(case, i, run)

    long = case.run(case.system, round(BEYOND * case.knee_users), 30.0, LONG_S, case.seed + 1)
    idle = {simpy_observe.node_name(case, p.tier, p.node): 0.0 for p in case.system.parts if p.resource == "cpu"}
    grid = grid_around(case.knee_users, case.seed)
    think_s = case.system.think.mean_s
    return System(line, long.throughput, case.knee_users, think_s, grid, case.seed, idle, run, part, frames)


def _ended(done: np.ndarray, begin_s: float, end_s: float) -> np.ndarray:
    """Interactions (begun, response, ...) that ended in this time."""
    ended = done[:, 0] + done[:, 1]
    return done[(ended >= begin_s) & (ended < end_s)]


FAMILIES = {"detector": first_family, "queueing": second_family}
