"""Several runs of one thing differ by more than each of them shows. Seeds: 2026112901 and on, used nowhere else."""

from dataclasses import replace

import numpy as np
import pytest
from ntier_analysis.statistics.share import Share
from ntier_analysis.statistics.values import lower_end
from ntier_analysis.verdict.agreement import migrations
from ntier_analysis.verdict.base import base_response
from ntier_analysis.verdict.context import _ends, of_loads
from ntier_analysis.verdict.load import Bottleneck, Verdict
from ntier_analysis.verdict.saturation import THRESHOLDS, mean_use
from ntier_analysis.verdict.sweep import judge_sweep

from .test_principles import CELLS, named, resource, trial

SAMPLES = 200


def used(*means, spread=5.0, rng=None):
    """One resource in several runs, used so much in the mean of each, with `spread` between samples."""
    rng = rng or np.random.default_rng(2026112901)
    noise = rng.normal(0.0, spread, (len(means), SAMPLES))
    values = np.array(means)[:, None] + noise - noise.mean(axis=1, keepdims=True)
    return [replace(resource("db1", mean=m), values=v) for m, v in zip(means, values, strict=True)]


@pytest.mark.parametrize("runs", [3, 8])
def test_a_mean_use_of_several_runs_holds_though_they_differ(runs):
    """By 4 points (standard deviation), where the samples of a run tell its mean to 0.35."""
    rng = np.random.default_rng(2026112902)
    found = [mean_use(*used(*rng.normal(70.0, 4.0, runs), rng=rng)) for _ in range(400)]
    assert 0.91 <= np.mean([u.low <= 70.0 <= u.high for u in found]) <= 0.985


def test_a_mean_use_of_two_runs_has_the_ends_of_both_if_these_overlap():
    """By Student's t, 68.7 and 69.3 % may be 65 to 73."""
    runs = used(68.7, 69.3, spread=10.0)
    both, each = mean_use(*runs), [mean_use(s) for s in runs]
    ends = min(u.low for u in each), max(u.high for u in each)
    assert (both.value, both.low, both.high) == (pytest.approx(69.0), *ends)


@pytest.mark.parametrize("apart", [0.0, 0.5, 4.0, 20.0])
def test_the_mean_of_two_runs_is_held_though_they_differ_by_much_more_than_each_tells(apart):
    """`apart`: standard deviation of the runs, where each tells its mean to 0.35. The ends of both hold it in 0.5."""
    rng = np.random.default_rng(2026112904)
    found = [mean_use(*used(*rng.normal(70.0, apart, 2), rng=rng)) for _ in range(400)]
    assert np.mean([u.low <= 70.0 <= u.high for u in found]) > 0.8


def test_a_mean_use_of_runs_that_agree_by_chance_is_known_no_better_than_each_run():
    together, alone = mean_use(*used(70.0, 70.0, 70.0)), mean_use(*used(70.0))
    assert together.half_width > alone.half_width / np.sqrt(3) / 1.5
    assert (together.value, together.n) == (pytest.approx(70.0), 3)


def test_what_runs_differ_by_is_in_the_most_that_a_resource_may_be_used():
    """74, 80 and 86 %: the mean may be 94."""
    trials = [(trial(n, 20.0, n / 20 - 7).load, [s]) for n, s in zip((200, 250, 300), used(74, 80, 86), strict=True)]
    assert of_loads([], trials).most_pct[("db1", "cpu", "")] > 90


def ends_of(*runs):
    trials = [(trial(n, 20.0, n / 20 - 7).load, [s]) for n, s in zip((200, 250, 300), runs, strict=False)]
    return _ends(trials)["db1", "cpu", ""]


def test_two_runs_that_overlap_are_known_to_the_ends_of_both_and_others_to_one_side():
    """60 and 66 % may be 44 by Student's t to one side, 25 to both."""
    together = used(68.7, 69.3, spread=10.0)
    both = mean_use(*together)
    assert ends_of(*together) == (both.low, both.high)
    apart = used(60.0, 66.0)
    assert ends_of(*apart) == pytest.approx((lower_end(mean_use(*apart)), 126 - lower_end(mean_use(*apart))))
    assert 40 < ends_of(*apart)[0] < 50


def test_a_run_without_samples_is_none_of_two():
    """Of three, one without: the others' ends, as of two."""
    runs = used(68.7, 69.3, spread=10.0)
    nothing = replace(runs[0], values=np.full(SAMPLES, np.nan), utilization_mean_pct=np.nan)
    assert ends_of(*runs, nothing) == ends_of(*runs)


def test_a_load_that_serves_more_than_the_plateau_is_judged_by_its_own_use():
    """Its CPU is used 88 %: it may limit there, whatever the plateau, where something else has become dearer, uses."""
    free = [trial(n, n / 7.02, 0.02) for n in (30, 60)]
    first, *plateau = used(88, 70, 71, 70, spread=1.0)
    more = trial(175, 20.0, 1.75, first)
    full = [trial(n, 18.0, n / 18 - 7, s) for n, s in zip((250, 300, 350), plateau, strict=True)]
    found = judge_sweep("s", "1/1/1/1M", [*free, more, *full])
    said = {at.users: v.verdict for at, v in found.trials}
    assert (said[175], said[350]) == ("unknown", "hidden")


def test_nothing_is_hidden_beside_a_network_whose_use_in_three_runs_may_be_full_in_the_mean():
    """A network used 76, 83 and 90 % beyond the knee. Taken together its samples say 81.5 to 84.5 %."""
    free = [trial(n, n / 7.02, 0.02) for n in (30, 60)]
    full = [
        trial(n, 20.0, n / 20 - 7, replace(s, resource="network"))
        for n, s in zip((200, 250, 300), used(76, 83, 90), strict=True)
    ]
    found = judge_sweep("s", "1/1/1/1M", [*free, *full])
    assert (found.verdict, named(found)) == ("unknown", [])
    assert any("db1 network may have no room" in text for _, v in found.trials for text in v.evidence)
    even = [replace(t, saturations=[*t.saturations[:-1], replace(used(76)[0], resource="network")]) for t in full]
    assert judge_sweep("s", "1/1/1/1M", [*free, *even]).verdict == "hidden"


@pytest.mark.parametrize(("runs", "verdict"), [((78, 79, 81), "hidden"), ((79, 80, 82), "unknown")])
def test_a_cpu_is_used_as_much_as_all_loads_beyond_the_knee_say(runs, verdict):
    """From 80 % on it may limit. Throughput is level there, and by the utilization law so is the use: what one of three
    runs says beside the others is chance."""
    free = [trial(n, n / 7.02, 0.02) for n in (30, 60)]
    full = [trial(n, 20.0, n / 20 - 7, s) for n, s in zip((200, 250, 300), used(*runs), strict=True)]
    found = judge_sweep("s", "1/1/1/1M", [*free, *full])
    assert (found.verdict, {v.verdict for at, v in found.trials if at.users >= 200}) == (verdict, {verdict})


@pytest.mark.parametrize(
    ("runs", "verdict"), [((99.0, 98.0, 92.0), "unknown"), ((97.5, 97.0, 96.0), "multi"), ((92.0, 98.0, 99.0), "multi")]
)
def test_two_limit_together_only_if_neither_may_have_room_by_what_runs_differ_by(runs, verdict):
    """One CPU is used 100 %, another one 96 to 97 % in the mean of three runs. If these lie 7 points apart, the mean
    may be 90: more of the first alone may bring a tenth. Of two that limit alike the other fills up as users become
    more, so the highest load alone may tell."""
    free = [trial(n, n / 7.02, 0.02) for n in (30, 60)]
    most = [replace(resource("app1", np.arange(CELLS) % 20 < 18, m)) for m in runs]
    full = [
        trial(n, 20.0, n / 20 - 7, s, resource("db1", np.ones(CELLS), 100))
        for n, s in zip((200, 250, 300), most, strict=True)
    ]
    found = judge_sweep("s", "1/1/1/1M", [*free, *full])
    both = [("app", "cpu"), ("db", "cpu")]
    assert (found.verdict, named(found)) == (verdict, both if verdict == "multi" else [])
    assert any("by the interval of that use, so app1 cpu may have room" in e for _, v in found.trials
               for e in v.evidence) == (verdict == "unknown")  # fmt: skip


# ---- moves of the bottleneck ---------------------------------------------------------------------------------------


def shown(users, rep, shares):
    """A run in which these were saturated, each share known to 0.03."""
    some = [
        replace(
            resource(node),
            shares=dict.fromkeys(THRESHOLDS, Share(share, share - 0.03, share + 0.03, SAMPLES, 0, SAMPLES)),
        )
        for node, share in shares.items()
    ]
    made = trial(users, 20.0, 3.0, *some)
    made = replace(made, load=replace(made.load, trial=f"u{users}.r{rep}"))
    top = max(shares, key=shares.get)
    return made, Verdict("single", bottlenecks=[Bottleneck(top.rstrip("1"), "cpu", (top,), shares[top], 0.0, 1.0)])


@pytest.mark.parametrize(("apart", "moves"), [(0.0, 1), (0.45, 0)])
def test_a_bottleneck_moves_only_by_more_than_repetitions_differ(apart, moves):
    """From 0.85 to 0.5 in the mean. If three repetitions of a load lie 0.45 apart, their mean is known to 0.56."""
    steps = (-apart / 2, 0.0, apart / 2)
    low = [shown(200, i, {"app1": 0.85 + d / 4, "db1": 0.5}) for i, d in enumerate(steps)]
    high = [shown(300, i, {"app1": 0.5 + d, "db1": 0.95}) for i, d in enumerate(steps)]
    high = [(t, replace(v, bottlenecks=[Bottleneck("db", "cpu", ("db1",), 0.95, 0.0, 1.0)])) for t, v in high]
    assert len(migrations([*low, *high])) == moves


# ---- the response time without waiting -----------------------------------------------------------------------------


@pytest.mark.parametrize(("times", "cold"), [((0.79, 0.80, 0.81), True), ((0.15, 0.45, 1.8), False)])
def test_a_load_is_cold_only_by_more_than_its_repetitions_differ(times, cold):
    """In the mean 0.8 s, where more users are answered in 0.12. One of three runs may have been slow for itself."""
    low = [trial(100, 100 / (7 + r), r) for r in times]
    some = [
        replace(t, load=replace(t.load, trial=f"{t.load.trial}.r{i}", end_s=600.0, throughput_per_s=13.0))
        for i, t in enumerate(low)
    ]
    assert bool(base_response([*some, trial(200, 200 / 7.12, 0.12), trial(400, 400 / 7.15, 0.15)]).cold) == cold
