"""The comparison of designs is right itself: who is there at each step, the machine's speed, a trial that goes on."""

from dataclasses import replace

import numpy as np
import pytest
from designs import experiment as experiments
from designs.experiment import MACHINE_S, Experiment, pace, stays
from designs.plans import kept_down
from designs.systems import System, first_family, grid_around
from detector import network
from ntier_analysis.statistics.throughput import batch_rates
from ntier_analysis.verdict.data import TrialData
from ntier_analysis.verdict.load import Load
from queueing.model import Part, Step, Think, simulate
from queueing.model import System as Simulated

pytestmark = pytest.mark.whole

STEPS = [(10, 0.0, 20.0, 60.0), (25, 60.0, 70.0, 110.0), (5, 110.0, 120.0, 160.0), (8, 160.0, 170.0, 210.0)]
DEMANDS = {"web": 0.01, "app": 0.01, "middleware": 0.01, "db": 0.05}
FIRST = network.Network(
    dict.fromkeys(DEMANDS, 1),
    tuple(network.Station(t, f"{t}1", "cpu") for t in DEMANDS),
    (),
    tuple(network.Step("serve", (t, "cpu"), (d,), 1.0) for t, d in DEMANDS.items()),
    {},
)
SECOND = Simulated(
    tuple(DEMANDS),
    dict.fromkeys(DEMANDS, 1),
    tuple(Part(t, 0, "cpu") for t in DEMANDS),
    tuple(s for t, d in DEMANDS.items() for s in (Step("enter", t), Step("serve", t, "cpu", "exponential", d))),
    Think(7.0),
)


def run_first(users, ramp_s, run_s, seed, shift_s=0.0, stay=None, pace=None):
    return network.simulate(FIRST, users, ramp_s, run_s, seed, shift_s, stay, pace)


def run_second(users, ramp_s, run_s, seed, shift_s=0.0, stay=None, pace=None):
    return simulate(SECOND, users, ramp_s, run_s, seed, shift_s, stay=stay, pace=pace)


def done(run) -> np.ndarray:
    return run.finished if hasattr(run, "finished") else run.done


both = pytest.mark.parametrize("run", [run_first, run_second])


def test_each_step_has_its_users_and_who_left_is_not_there_again():
    come, go = stays(STEPS, 40)
    for users, _, run_from, run_to in STEPS:
        for at in (run_from + 0.01, run_to - 0.01):
            assert ((come <= at) & (at < go)).sum() == users
    assert (go[:5] == np.inf).all(), "who came first stays"
    assert np.isfinite(come).sum() == 25 + 3
    with pytest.raises(ValueError, match="28 users come in all, allowed are 27"):
        stays(STEPS, 27)


@both
def test_users_who_all_stay_are_a_trial_as_before(run):
    plain = run(40, 20.0, 40.0, 3)
    stay = (20.0 * np.arange(40) / 40, np.full(40, np.inf))
    assert np.array_equal(done(plain), done(run(40, 20.0, 40.0, 3, stay=stay, pace=np.ones(62))))


@both
def test_nobody_is_served_who_has_left_or_not_come(run):
    come, go = np.zeros(40), np.full(40, np.inf)
    come[20:], go[:10] = np.inf, 30.0
    found = done(run(40, 0.0, 200.0, 3, stay=(come, go)))
    rates = [((found[:, 0] >= a) & (found[:, 0] < b)).sum() / (b - a) / n for a, b, n in ((0, 30, 20), (30, 200, 10))]
    assert rates == pytest.approx([1 / 7.1, 1 / 7.1], rel=0.3)


@both
def test_a_machine_at_half_speed_serves_half_as_much(run):
    usual, slow = (run(300, 20.0, 200.0, 3, pace=np.full(222, p)).throughput for p in (1.0, 2.0))
    assert slow == pytest.approx(usual / 2, rel=0.05)


def test_the_speed_varies_about_one_and_is_drawn_from_the_seed():
    assert np.array_equal(pace(5, 0.1), pace(5, 0.1))
    assert np.mean([(1 / pace(seed, 0.1)).mean() for seed in range(40)]) == pytest.approx(1, abs=0.02)
    assert np.std(np.log(pace(5, 0.1))) == pytest.approx(0.1, rel=0.5)
    assert (pace(5, 0.0) == 1).all()


def test_the_knee_lies_in_the_first_half_of_the_grid():
    for seed in range(20):
        loads = grid_around(200.0, seed)
        assert len(loads) == 13
        assert 1.8 <= loads[-1] / 200.0 <= 9


@pytest.mark.parametrize(("falls", "kept"), [(0.0, []), (0.05, [100])])
def test_a_staircase_names_the_load_that_a_system_does_not_serve_again(falls, kept):
    """At 100 users each who waits makes a service 5 % longer: 14/s without a queue, 5/s with one of 65."""
    parts = tuple(replace(p, falls=falls) if p.tier == "db" else p for p in SECOND.parts)
    slowed = replace(SECOND, parts=parts)

    def run(users, ramp_s, run_s, seed, shift_s, stay=None, pace=None):
        return simulate(slowed, users, ramp_s, run_s, seed, shift_s, stay=stay, pace=pace)

    def part(run, begin_s, end_s, users):
        return replace(run, ramp_s=begin_s, end_s=end_s, users=users)

    experiment = Experiment(Rates({}, 20.0, 140.0, 7.0, (50, 160), 1, {}, run, part, None), np.ones(MACHINE_S), 4)
    experiment.steps([50, 100, 160, 160, 100, 50], 60.0)
    assert kept_down(experiment.trials) == kept


class Rates(System):
    """Of its runs only the throughput is analysed."""

    def seen(self, number, run):
        answered = run.answered()
        rates = batch_rates(answered[:, 0] + answered[:, 1], run.ramp_s, run.end_s)
        load = Load(f"u{number}", run.users, run.users, float(rates.mean()), run.response_s, 7.0, run.ramp_s, run.end_s,
                    True, rates=rates)  # fmt: skip
        return TrialData(load, [], {})


class Bare(System):
    """Its runs are not analysed."""

    def seen(self, number, run):
        return run


def test_a_trial_that_goes_on_repeats_what_it_did_before():
    runs = []

    def kept(*given, **more):
        runs.append(run_first(*given, **more))
        return runs[-1]

    system = Bare({}, 20.0, 140.0, 7.0, (100, 200), 1, {}, kept, lambda run, *_: run, lambda *_: None)
    goes_on = Experiment(system, np.ones(MACHINE_S), 4)
    goes_on.steps([100], 20.0)
    goes_on.steps([180], 20.0)
    first, second = (done(r) for r in runs)
    end = runs[0].end_s - 10  # an interaction that is under way at the end is in the second run only
    assert len(first) > 200
    assert np.array_equal(first[first[:, 0] < end - 5][:150], second[second[:, 0] < end - 5][:150])
    assert goes_on.seconds == experiments.OVERHEAD_S + runs[1].end_s + experiments.DOWN_S


def test_a_case_is_seen_as_an_import_would_see_it():
    system = next(s for n in range(3000, 3010) if (s := first_family(n)))
    experiment = Experiment(system, pace(1, 0.0), 4)
    trial = experiment.fresh(system.grid[-1])
    assert trial.load.throughput_per_s == pytest.approx(system.maximum, rel=0.25)
    assert trial.load.rates is not None
    known = experiment.until_known(system.grid[-1], 1.0, (20.0, 30.0))
    assert known.load.end_s - known.load.start_s == pytest.approx(20)
