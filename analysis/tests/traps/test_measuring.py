"""Traps of measuring: ticks, clocks, order, scale, files. docs/wrong-bottlenecks.md."""

import json

import numpy as np
import pandas as pd
import pytest
from detector import observe
from detector.network import simulate
from detector.plan import Case, View
from networks import LOADS, frames, judged, judged_frames, named, plan
from ntier_analysis.importing import import_folder
from ntier_analysis.statistics.laws import dependence
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.registry import validate
from ntier_analysis.verdict.saturation import excess_moved, saturations
from ntier_analysis.verdict.store import verdicts
from ntier_analysis.verdict.tables import as_json
from synthetic import Spec, Truth, write_trial

DB, APP = ("db", "cpu"), ("app", "cpu")


def test_t12_clocks_half_a_period_apart_turn_an_alternation_into_its_opposite():
    """Why an offset beyond 50 ms makes a trial invalid (validity check C4)."""
    turn = (np.arange(600) // 20 % 2).astype(float)  # turns of 2 s
    assert dependence(turn, 1 - turn, 0.1).lift == 0.0
    assert dependence(turn, np.roll(1 - turn, 20), 0.1).lift == pytest.approx(2.0)
    assert dependence(turn, np.roll(1 - turn, 1), 0.1).lift < 0.2


def test_t13_users_that_start_inside_the_run_are_noticed(tmp_path):
    truth = Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.0012})
    folder = write_trial(tmp_path, Spec(4000, truth, phases=(20.0, 60.0, 5.0)))
    manifest = json.loads((folder / "manifest.json").read_text())
    ramp_up, run = manifest["phases"][:2]
    ramp_up["end_s"] = run["start_s"] = ramp_up["start_s"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    start = {c.id: c.outcome.value for c in validate(RawTrial(folder)).checks}["S2"]
    assert start == "fail"


def test_t18_pegged_cpu_counted_in_ticks_is_saturated_throughout():
    readings = np.array([90.0, 110.0, 100.0, 90.0, 110.0, 100.0])
    assert (excess_moved(readings) == 100.0).all()
    assert (excess_moved(np.array([60.0, 100.0, 40.0])) == [60.0, 100.0, 40.0]).all()
    assert excess_moved(np.array([60.0, 110.0, 40.0])).mean() == pytest.approx(70.0)
    found = judged(plan({DB: 1.0}, quota=None).build(), view=View(ticks=True))
    assert named(found) == [("db", "cpu", ("db1",))]
    assert found.bottlenecks[0].saturation > 0.97


@pytest.mark.parametrize("quota", [0.1, 0.2, 0.3])
def test_t18_pegged_node_with_a_quota_reads_saturated_in_99_pct(quota):
    run = simulate(plan({DB: 1.0}, quota=quota).build(), 300, 20.0, 60.0, 4)
    case = Case("pegged", "", "", run.network, {}, set(), (), 60.0, 0.1, View(), 4, 20.0)
    rows = observe.sample_rows(case, 0, run, View(), 4).assign(source="import")
    (db,) = [
        s for s in saturations(rows, observe.start(0) + 20, observe.start(0) + 80) if s.group == DB and s.node == "db1"
    ]
    assert db.share.value >= 0.99


def test_t28_the_same_model_at_three_times_the_scale_has_the_same_bottleneck():
    small = judged(plan({DB: 1.0, APP: 0.7}).build())
    users = tuple(3 * n for n in LOADS)
    big_plan = plan({DB: 1.0, APP: 0.7}, quota=0.6)
    big_plan.target = 60.0
    big = judged(big_plan.build(), users)
    assert named(small) == named(big)
    assert big.max_throughput.value == pytest.approx(3 * small.max_throughput.value, rel=0.05)


def test_t31_order_of_the_trials_changes_nothing():
    trials, samples, interactions = frames(plan({DB: 1.0}).build())
    mixed = trials.sample(frac=1.0, random_state=5), samples.sample(frac=1.0, random_state=6), interactions
    assert as_json(judged_frames(trials, samples, interactions)) == as_json(judged_frames(*mixed))


def test_files_of_an_import_give_the_verdict_of_the_frames(tmp_path):
    """What the score of the detector is counted on is what a user's import would give."""
    network = plan({DB: 1.0, APP: 0.9}).build()
    case = Case("case", "", "", network, {}, set(), (40, 200, 220, 240), 30.0, 0.1, View(), 3, 20.0)
    runs = [simulate(network, n, 20.0, 30.0, 3 + i) for i, n in enumerate((40, 200, 220, 240))]
    observe.write(tmp_path / "files", case, runs)
    import_folder(tmp_path / "files", tmp_path / "store")
    (stored,) = verdicts(tmp_path / "store", [])
    made = judged_frames(*(f if not isinstance(f, pd.DataFrame) else f.copy() for f in observe.frames(case, runs)))
    assert (stored.verdict, stored.kind) == (made.verdict, made.kind)
    assert [(b.tier, b.resource, b.nodes) for b in stored.bottlenecks] == [
        (b.tier, b.resource, b.nodes) for b in made.bottlenecks
    ]
    assert [b.saturation for b in stored.bottlenecks] == pytest.approx([b.saturation for b in made.bottlenecks])
    assert stored.max_throughput.value == pytest.approx(made.max_throughput.value)
