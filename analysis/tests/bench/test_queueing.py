"""The second family of known truth is right itself: against theory, against the first family, and in what it sees."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from detector import network as kernel
from detector.cases import draw as kernel_case
from detector.truth import by_relief
from families import judge_family
from ntier_analysis.statistics.mva import Station, solve
from queueing import make, observe
from queueing.cases import Case, View, draw
from queueing.model import Part, Step, System, Think, simulate
from queueing.relief import FACTOR, label, tells_growth
from queueing.variants import built

pytestmark = pytest.mark.whole

TIERS = ("front", "back")
STATIONS = (Part("front", 0, "cpu", servers=3), Part("back", 0, "cpu"), Part("back", 0, "disk"))
LONG_S = 60.0
"""Shorter than the bench's: these limits are far from 5 %."""
DEMANDS = {("front", "cpu"): 0.12, ("back", "cpu"): 0.03, ("back", "disk"): 0.02}


def system(think: Think, law: str = "exponential", parts: tuple[Part, ...] = STATIONS) -> System:
    served = [Step("serve", *key, law, d) for key, d in DEMANDS.items()]
    steps = (Step("enter", "front"), served[0], Step("enter", "back"), *served[1:], Step("exit", "back"),
             Step("exit", "front"))  # fmt: skip
    return System(TIERS, {"front": 1, "back": 1}, parts, steps, think)


def seen_as(network: System, users: list[int], **given) -> Case:
    view = View(cpu_s=0.1, slow_s=1.0, noise_pct=0.0, gap_s=0.0, queues=True, cores=True, interactions=True)
    loads = tuple(float(n) for n in users)
    return Case("made", "made", built("none"), network, loads, 1.0, 40.0, 1.0, view, 7, **given)


@pytest.mark.parametrize("users", [30, 120])
def test_throughput_is_that_of_exact_mva_whatever_the_shape_of_the_think_time(users):
    exact = solve([Station("f", 0.12, 3), Station("c", 0.03), Station("d", 0.02)], 3.0, users)
    for law in ("exponential", "lognormal"):
        simulated = np.mean([simulate(system(Think(3.0, law)), users, 30, 400, seed).throughput for seed in (1, 2)])
        assert simulated == pytest.approx(exact.throughput_per_s[0], rel=0.02), law


def test_both_families_simulate_the_same_simple_network_alike():
    demands = {"web": 0.01, "app": 0.03, "middleware": 0.015, "db": 0.04}
    stations = tuple(kernel.Station(t, f"{t}1", "cpu") for t in demands)
    walk = tuple(kernel.Step("serve", (t, "cpu"), (d,), 1.0) for t, d in demands.items())
    first = kernel.Network(dict.fromkeys(demands, 1), stations, (), walk, {})
    steps = tuple(s for t, d in demands.items() for s in (Step("enter", t), Step("serve", t, "cpu", "exponential", d)))
    parts = tuple(Part(t, 0, "cpu") for t in demands)
    second = System(tuple(demands), dict.fromkeys(demands, 1), parts, steps, Think(kernel.THINK_S))
    for users in (100, 220):
        a = np.mean([kernel.simulate(first, users, 50, 600, seed).throughput for seed in (1, 2)])
        b = np.mean([simulate(second, users, 50, 600, seed).throughput for seed in (1, 2)])
        assert a == pytest.approx(b, rel=0.02), users


def test_relief_takes_away_waiting_and_nothing_else():
    """One user never waits, so more capacity gains nothing, however long the service is; many gain what is added."""
    base = system(Think(0.2))
    more = base.relieved(set(base.keys()), FACTOR)
    assert simulate(more, 1, 0, 500, 1).throughput == pytest.approx(simulate(base, 1, 0, 500, 1).throughput, rel=0.01)
    gain = simulate(more, 60, 30, 500, 1).throughput / simulate(base, 60, 30, 500, 1).throughput
    assert gain == pytest.approx(FACTOR, rel=0.02)


def test_samples_obey_the_utilization_law_and_littles_law():
    case = seen_as(system(Think(3.0)), [60])
    run = simulate(case.system, 60, 20, 200, 3, record=True)
    samples = observe.sample_rows(case, 0, run, 0.0)
    inside = samples[(samples["t_s"] >= observe.start(0) + 20) & (samples["t_s"] < observe.start(0) + 220)]
    mean = inside.groupby(["tier", "resource", "metric"])["value"].mean()
    for part in STATIONS:
        law = 100 * run.throughput * DEMANDS[part.key] / part.servers
        assert mean[(*part.key, "utilization_pct")] == pytest.approx(law, rel=0.06), part
    queue = inside[inside["metric"] == "queue"]["value"].mean()
    wait_s = inside[inside["metric"] == "wait_ms"]["value"].mean() / 1000
    assert queue == pytest.approx(run.throughput * wait_s, rel=0.1)


def test_label_follows_the_limit_not_what_was_built_in():
    """The same case with the limit moved: its label moves; what was built in stays as it was, so it is borderline."""
    network = system(Think(3.0))
    few, many = label(seen_as(network, [10, 20]), LONG_S), label(seen_as(network, [20, 200]), LONG_S)
    assert (few.truth, few.claims, few.why) == ("none", {}, [])
    assert (many.truth, set(many.claims)) == ("single", {("front", "cpu")})
    assert many.why


def test_one_load_that_may_wait_or_may_serve_is_unknown():
    """Two systems that answer as fast at one load, one by service and one behind a lock: the same data, no verdict."""
    assert label(seen_as(system(Think(3.0)), [20]), LONG_S).truth == "unknown"
    assert label(seen_as(system(Think(12.0)), [20]), LONG_S).truth == "none"


def test_loads_that_are_nearly_the_same_tell_no_more_than_one():
    assert not tells_growth([20], 400)
    assert not tells_growth([18, 20], 400)
    assert tells_growth([10, 20], 400)


def test_users_in_waves_have_one_think_time_for_the_sweep():
    case = seen_as(system(Think(3.0, wave=(10.0, 0.3, 1.8))), [3, 9])
    runs = [simulate(case.system, n, 5, 40, n, record=True) for n in case.users]
    trials, _, _ = observe.frames(case, runs)
    assert trials["think_time_s"].nunique() == 1


def test_a_case_of_the_first_family_that_relief_contradicts_gets_the_label_of_relief():
    case = kernel_case("simultaneous", "scoring", 0)
    a, b = (" ".join(key) for key in case.claims)
    relabelled = by_relief(case, {"claimed": 0.3, "others": 0.0, a: 0.09, b: 0.01})
    assert relabelled == ("single", {tuple(a.split())})
    assert by_relief(case, {"claimed": 0.3, "others": 0.06, a: 0.0, b: 0.0})[0] == ""


def test_a_part_without_a_collector_is_hidden_and_two_equal_ones_are_simultaneous():
    unseen = tuple(replace(p, measured=p.tier != "front") for p in STATIONS)
    truth = label(seen_as(system(Think(3.0), parts=unseen), [20, 200]), LONG_S)
    assert (truth.truth, truth.unseen, truth.claims) == ("hidden", [("front", "cpu")], {})
    equal = tuple(replace(p, servers=4) if p.tier == "front" else p for p in STATIONS)
    truth = label(seen_as(system(Think(3.0), parts=equal), [20, 250]), LONG_S)
    assert (truth.truth, set(truth.claims)) == ("simultaneous", {("front", "cpu"), ("back", "cpu")})


def test_a_case_is_the_same_each_time_and_is_read_and_judged(tmp_path: Path):
    first, again = draw("tuning", 2), draw("tuning", 2)
    assert first == again != draw("selection", 2)
    for own in (False, True):
        folder = tmp_path / f"own {own}"
        for _ in "ab":  # the second time all is there
            make.fill(folder, "tuning", range(2, 3), own=own)
        family = judge_family("queueing", folder, "tuning")
        (judged,) = family.sharp + family.borderline
        assert judged.line["name"] == first.name
        assert not family.failed
        assert len(judged.verdict.trials) == len(judged.line["users"])
