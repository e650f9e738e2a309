"""Simulated systems with and without a memory of their own: the verdict names the load from which the one does not come
back, and names none of the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ntier_analysis.recovery import AWAY, BACK, ONCE, UNDECIDED, recoveries, sentences
from ntier_analysis.statistics import throughput
from queueing.model import Part, Step, System, Think, simulate

pytestmark = pytest.mark.whole

RAMP_S, RUN_S, ABOVE = 60.0, 60.0, 160
LOADS = (20, 60)
DEMANDS = {"web": 0.01, "db": 0.05}
FORGETS = System(
    tuple(DEMANDS),
    dict.fromkeys(DEMANDS, 1),
    tuple(Part(t, 0, "cpu") for t in DEMANDS),
    tuple(s for t, d in DEMANDS.items() for s in (Step("enter", t), Step("serve", t, "cpu", "exponential", d))),
    Think(7.0),
)
REMEMBERS = replace(FORGETS, parts=tuple(replace(p, falls=0.12) if p.tier == "db" else p for p in FORGETS.parts))
"""Each who waits at the database makes a service 12 % longer: with 40 of 60 users in the queue it serves 3.4/s instead
of 20/s, and 60 users ask for 8/s. What keeps it slow is a queue that its own slowness makes, as in a system that runs
out of memory or of cache. At 20 users it comes back."""


def stay(users: int, above: int | None) -> tuple[np.ndarray, np.ndarray]:
    """When each comes and leaves, as the driver does it."""
    if above is None:
        return RAMP_S / 2 * np.arange(users) / users, np.full(users, np.inf)
    comes = RAMP_S / 4 * np.arange(above) / above
    return comes, np.where(np.arange(above) < users, np.inf, RAMP_S / 2)


def trial(system: System, users: int, rep: int, above: int | None, order: int) -> dict:
    """A row of the table that has such trials."""
    come, go = stay(users, above)
    run = simulate(system, len(come), RAMP_S, RUN_S, 10 * rep, 0.0, stay=(come, go))
    done = run.done[:, 0] + run.done[:, 1]
    rate, late = (throughput.throughput(done, begin, RAMP_S + RUN_S) for begin in (RAMP_S, RAMP_S + RUN_S / 2))
    start_s = 1000.0 * (10 * rep + order)
    row = {"users": users, "rep": rep, "valid": True, "trial": f"u{users:05d}.r{rep:02d}"}
    row |= {"run_start_s": start_s, "run_end_s": start_s + RUN_S}
    row |= {"throughput_per_s": rate.value, "throughput_low_per_s": rate.low, "throughput_high_per_s": rate.high}
    if above is None:
        return row
    row |= {"late_throughput_per_s": late.value, "late_throughput_high_per_s": late.high}
    return row | {"above": above, "invalid_reasons": "", "failure": ""}


def simulated(system: System, folder: Path) -> None:
    """Three repetitions of each load after a reset and from above."""
    for order, above in enumerate((None, ABOVE)):
        rows = [trial(system, n, rep, above, order) for n in LOADS for rep in (1, 2, 3)]
        pd.DataFrame(rows).to_pickle(folder / str(order))


@pytest.fixture
def measured(made_once) -> Callable[[str, System, int], list[pd.DataFrame]]:
    """The first repetitions of both sides."""

    def measured(name: str, system: System, reps: int) -> list[pd.DataFrame]:
        folder = made_once(f"recovery-{name}", lambda folder: simulated(system, folder))
        return [side[side["rep"] <= reps] for side in (pd.read_pickle(folder / str(order)) for order in range(2))]

    return measured


@pytest.mark.parametrize("reps", [1, 3])
def test_a_system_that_remembers_is_named_with_the_load(measured, reps):
    found = recoveries(*measured("remembers", REMEMBERS, reps))
    assert [r.users for r in found] == list(LOADS)
    assert found[0].outcome != AWAY
    assert found[1].outcome == AWAY
    assert 0.1 < found[1].ratio.value < 0.4, "by far more than by the margin"
    (said,) = sentences(found, "1/1")
    assert said.startswith(f"1/1 does not come back within a run of {RUN_S:.0f} s at 60 users after 160: 0.")
    assert " 20" not in said.split(";")[0], "there it comes back, perhaps late"


@pytest.mark.parametrize("reps", [1, 3])
def test_a_system_that_forgets_is_not_named(measured, reps):
    """Though more were there before than it can serve: 140 users ask for all that it can do."""
    found = recoveries(*measured("forgets", FORGETS, reps))
    assert AWAY not in {r.outcome for r in found}
    assert reps == 1 or found[1].outcome == BACK, "three repetitions show it"
    (said,) = sentences(found, "1/1")
    assert "does not come back" not in said


def pairs_of_trials(rng: np.random.Generator, reps: int, kept: float, loads: int) -> list:
    """What is said of a system that keeps so much of its throughput, whose trials differ by 11 % (s.d.)."""
    rows = [
        {"users": n, "rep": rep, "valid": True, "trial": "x", "run_start_s": 10.0 * rep + side,
         "throughput_per_s": (x := float(rng.lognormal(np.log(100 * (kept if side else 1)), np.hypot(0.11, 0.03)))),
         "throughput_low_per_s": 0.93 * x, "throughput_high_per_s": 1.07 * x,
         "above": side, "invalid_reasons": "", "failure": ""}
        for n in range(1, loads + 1) for rep in range(1, reps + 1) for side in (0, 9)
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    return recoveries(frame[frame["above"] == 0], frame[frame["above"] == 9])


@pytest.mark.long
def test_how_often_one_comes_back_that_keeps_less():
    """Of 300 loads at which a system keeps 0.8 of its throughput none is said to come back because of one pair, though
    a tenth of the pairs look like it; with three repetitions two in a hundred at most."""
    rng = np.random.default_rng(2)
    one, three = ([r.outcome for r in pairs_of_trials(rng, reps, 0.8, 300)] for reps in (1, 3))
    assert BACK not in one
    assert 15 <= one.count(ONCE) <= 45
    assert three.count(BACK) <= 6
    assert ONCE not in three


@pytest.mark.long
def test_how_often_one_is_named_that_comes_back():
    """Trials that differ by 11 % from each other, as measured on a virtual machine. Of 400 simulated sweeps with three
    loads the rules name one in 2 % at most (expected: 0.9 %); without a margin it would be a third."""
    rng, named = np.random.default_rng(1), {1: 0, 3: 0}
    for reps in named:
        for _ in range(200):
            found = pairs_of_trials(rng, reps, 1.0, 3)
            named[reps] += any(r.outcome == AWAY for r in found)
    assert max(named.values()) <= 8, named
    assert UNDECIDED in {r.outcome for r in found}, "these trials say little, and the verdict says so"
