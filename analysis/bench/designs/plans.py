"""The designs that are compared. Each runs trials of an experiment until it has what it wants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ntier_analysis.statistics.ratios import of_intervals, p_different
from ntier_analysis.statistics.throughput import of_batches
from ntier_analysis.statistics.values import CONFIDENCE, Interval, Ratio
from ntier_analysis.verdict.data import TrialData
from ntier_analysis.verdict.load import COUNTS
from ntier_analysis.verdict.search import Goal, next_step

from designs.experiment import Experiment

PRECISE = 0.03
"""Half-width that is wanted of the maximum (95 %), relative."""
LOOKS = tuple(range(20, 90, 10))
"""s of run after which a run may end."""
STAIRS = (1, 2, 3, 4, 6, 8, 10, 13)
"""Steps of the staircase, as numbers of the grid's loads."""
STAIR_S = 15.0


def _search(experiment: Experiment, goal: Goal, trial: Callable[[int], object]) -> None:
    while True:
        step = next_step(experiment.trials, goal, 1.0, experiment.system.idle)
        if step.users is None:
            return
        trial(max(1, step.users))


def _goal(experiment: Experiment, precision: float, most: int) -> Goal:
    return Goal(experiment.system.grid, precision, most, grain=1)


def grid(experiment: Experiment) -> None:
    """Each of 13 loads, after a reset."""
    for users in experiment.system.grid:
        experiment.fresh(users)


def search(experiment: Experiment) -> None:
    """SEARCH=capacity: at most four loads, and up to six while fewer than three lie beyond the knee."""
    _search(experiment, replace(_goal(experiment, 0.05, 4), most_if_few=6), experiment.fresh)


def search_of_four(experiment: Experiment) -> None:
    """The same with at most four loads in any case."""
    _search(experiment, _goal(experiment, 0.05, 4), experiment.fresh)


def precise_search(experiment: Experiment) -> None:
    """SEARCH=capacity with PRECISION=0.03: at most six loads."""
    _search(experiment, _goal(experiment, PRECISE, 6), experiment.fresh)


def brief_search(experiment: Experiment) -> None:
    """The same loads in trials half as long, at most six of them."""
    _search(experiment, _goal(experiment, PRECISE, 6), lambda users: experiment.fresh(users, 10.0, 20.0))


def search_until_known(experiment: Experiment) -> None:
    """The search of four loads; each run ends as soon as its own interval is +-5 %, after 20 to 80 s."""
    goal = _goal(experiment, 0.05, 4)
    _search(experiment, goal, lambda users: experiment.until_known(users, 0.05, LOOKS))


def search_that_goes_on(experiment: Experiment) -> None:
    """The search of four loads in one trial: users come and go, and nothing is reset."""
    _search(experiment, _goal(experiment, 0.05, 4), lambda users: experiment.steps([users], 40.0))


def brief_search_that_goes_on(experiment: Experiment) -> None:
    """The same with runs of 20 s and at most six loads."""
    _search(experiment, _goal(experiment, PRECISE, 6), lambda users: experiment.steps([users], 20.0))


def staircase(experiment: Experiment) -> None:
    """Eight loads up and the same down in one trial, 15 s each."""
    loads = [experiment.system.grid[i - 1] for i in STAIRS]
    experiment.steps(loads + loads[::-1], STAIR_S)


DESIGNS = {
    "grid": grid, "search": search, "search of four loads": search_of_four, "search, 3 %": precise_search,
    "search, half as long": brief_search,
    "search, runs until known": search_until_known, "search that goes on": search_that_goes_on,
    "search that goes on, half as long": brief_search_that_goes_on, "staircase up and down": staircase,
}  # fmt: skip


def returned(trials: list[TrialData]) -> dict[int, Ratio]:
    """Of a staircase: users -> throughput on the way down over that on the way up. Without the highest load, which has
    no way down of its own."""
    half = len(trials) // 2
    up, down = trials[: half - 1], trials[half + 1 :][::-1]
    return {a.load.users: of_intervals(_own(a), _own(b)) for a, b in zip(up, down, strict=True)}


def _own(t: TrialData) -> Interval:
    assert t.load.rates is not None
    return of_batches(t.load.rates, len(t.load.rates))


def kept_down(trials: list[TrialData]) -> list[int]:
    """Loads that a staircase served on its way up and does not any more on its way down: throughput is lower by what
    counts at least (COUNTS), and the difference is surer than 95 % for all loads together (Bonferroni)."""
    ratios = returned(trials)
    limit = (1 - CONFIDENCE) / len(ratios)
    return [users for users, r in ratios.items() if r.value <= 1 - COUNTS and p_different(r) < limit]
