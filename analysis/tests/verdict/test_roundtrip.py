"""Known truth -> raw files -> store -> verdict. What is true is asked of the simulator: relief of a part must help
where it limits, and must not where it is a symptom."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from ntier_analysis.ingest import ingest_sweep
from ntier_analysis.store.tables import read_table
from ntier_analysis.verdict.store import verdicts
from ntier_analysis.verdict.tables import as_json, sweep_verdict
from synthetic import Spec, Truth, simulate, stored_sweep, write_sweep, write_trial

pytestmark = pytest.mark.whole

IDLE = {"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.0005}
LOADS = [200, 400, 800, 1000, 1200]  # nominal; scale 0.1; 10 interactions/s saturate at 700


def judged(truth: Truth, users=LOADS):
    return verdicts(stored_sweep(truth, users) / "store", [])[0]


KNOWN: dict[str, float] = {}
"""Throughput of each network that was asked for: most are compared with several others."""


def throughput(truth: Truth, users: int = 120) -> float:
    """Interactions per s in a long run, beyond the knee."""
    if (key := repr((truth, users))) not in KNOWN:
        ramp_s, run_s = 20.0, 400.0
        run = simulate(truth, users, (ramp_s, run_s, 5.0), 77)
        done = sum(ramp_s <= begun + response < ramp_s + run_s for begun, response, _ in run.interactions)
        KNOWN[key] = done / run_s
    return KNOWN[key]


def gain(truth: Truth, users: int = 120, **relief) -> float:
    """Throughput with a part relieved / without; 1.1 is more than chance makes of 400 s."""
    return throughput(replace(truth, **relief), users) / throughput(truth, users)


HELPS, NOTHING = 1.1, 1.05


def beyond(truth: Truth, users: list[int]):
    """The verdict on the two highest loads of a sweep, had the others not been run."""
    store = stored_sweep(truth, users) / "store"
    names = [f"u{n:05d}.r01" for n in users[-2:]]
    tables = (read_table(store, name) for name in ("trials", "samples", "nodes", "interactions"))
    return sweep_verdict("beyond", *(t[t["trial"].isin(names)] for t in tables)).verdict


@pytest.mark.parametrize("tier", ["db", "app", "middleware", "web"])
def test_one_saturated_cpu_is_named(tier):
    truth = Truth(IDLE | {tier: 0.01})
    assert gain(truth, demand_s=IDLE | {tier: 0.01 / 1.5}) > HELPS
    assert gain(truth, demand_s={t: s / 1.5 for t, s in IDLE.items()} | {tier: 0.01}, db_pool=500) < NOTHING
    found = judged(truth)
    assert found.verdict == "single"
    assert found.kind == "stable"
    assert [(b.tier, b.resource, b.nodes) for b in found.bottlenecks] == [(tier, "cpu", (f"{tier}1",))]
    assert found.bottlenecks[0].saturation > 0.95
    assert not found.at_least
    assert found.knee_bracketed
    assert found.max_throughput.value == pytest.approx(10.0, rel=0.06)
    assert 640 <= found.knee_users <= 760
    assert [v.verdict for _, v in found.trials] == ["none", "none", "single", "single", "single"]
    assert any(f"utilization law: {tier}1" in text for text in found.evidence)


def test_nothing_limits_yet():
    found = judged(Truth(IDLE), [200, 400, 600])
    assert found.verdict == "none"
    assert found.at_least
    assert found.bottlenecks == []
    assert {v.verdict for _, v in found.trials} == {"none"}


def test_nothing_limits_before_the_knee_whatever_is_relieved():
    assert gain(Truth(IDLE), 60, demand_s=dict.fromkeys(IDLE, 0.00001), db_pool=500, app_threads=500) < NOTHING


def test_serial_section_that_no_collector_sees_is_hidden():
    truth = Truth(IDLE, lock_s=0.1, service="constant", db_pool=500, app_threads=500)
    assert gain(truth, lock_s=0.1 / 1.5) > HELPS
    assert gain(truth, demand_s=dict.fromkeys(IDLE, 0.0001)) < NOTHING
    found = judged(truth)
    assert found.verdict == "hidden"
    assert found.bottlenecks == []
    assert found.max_throughput.value == pytest.approx(10, rel=0.03)


def test_equal_demands_are_simultaneous():
    """T25: two equal stations in series are slightly anti-correlated by nature, and yet no alternation."""
    truth = Truth(IDLE | {"app": 0.01, "db": 0.01}, db_pool=500, app_threads=500)
    assert gain(truth, 180, demand_s=truth.demand_s | {"app": 0.01 / 1.5}) < HELPS
    assert gain(truth, 180, demand_s=truth.demand_s | {"db": 0.01 / 1.5}) < HELPS
    assert gain(truth, 180, demand_s=IDLE | {"app": 0.01 / 1.5, "db": 0.01 / 1.5}) > 1.3
    found = judged(truth, [1500, 1700, 1900])
    trials = [v for _, v in found.trials]
    assert all(v.kind != "alternating" for v in trials)
    assert {"multi", "single"} >= {v.verdict for v in trials}
    assert any(v.kind == "simultaneous" for v in trials)


def test_stations_that_slow_down_in_turn_are_alternating():
    truth = Truth(
        IDLE | {"app": 0.001, "db": 0.001},
        stalls={"app": (10.0, 0.5, 50.0), "db": (10.0, 0.5, 50.0)},
        phase_of_stall={"app": 0.0, "db": 5.0},
    )
    each = [gain(truth, stalls={tier: truth.stalls[tier]}) for tier in ("app", "db")]
    assert min(each) > HELPS
    assert gain(truth, stalls={}) > max(each) + 0.05
    found = judged(truth, [800, 1000, 1200])
    assert (found.verdict, found.kind) == ("multi", "alternating")
    assert {(b.tier, b.resource) for b in found.bottlenecks} == {("app", "cpu"), ("db", "cpu")}


def test_t5_node_that_saturates_half_of_the_time_is_never_none():
    """Mean utilization is near 50 %, and yet it limits."""
    truth = Truth(IDLE | {"db": 0.001}, stalls={"db": (10.0, 0.5, 100.0)})
    assert gain(truth, 50, stalls={}) > HELPS
    found = judged(truth, [400, 500, 600])
    for load, v in found.trials:
        assert v.verdict == "single", (load.users, v.evidence)
        assert 0.3 < v.bottlenecks[0].saturation < 0.75
        assert v.bottlenecks[0].tier == "db"


def test_t3_sysstat_of_a_pegged_node_is_not_believed():
    """lxcfs shows 2-5 % for a node that its quota has pegged."""
    found = judged(Truth(IDLE | {"db": 0.01}, sysstat_busy_pct=3.0), [200, 1000, 1200])
    assert [(b.tier, b.resource) for b in found.bottlenecks] == [("db", "cpu")]
    assert found.bottlenecks[0].saturation > 0.95


def test_t4_full_pool_above_a_saturated_database_is_a_symptom():
    truth = Truth(IDLE | {"db": 0.01}, db_pool=4)
    assert gain(truth, db_pool=8) < NOTHING
    assert gain(truth, demand_s=IDLE | {"db": 0.01 / 1.5}) > HELPS
    found = judged(truth, [1000, 1200])
    _, v = found.trials[-1]
    assert [(b.tier, b.resource) for b in v.bottlenecks] == [("db", "cpu")]
    assert any("symptom of db1 cpu" in text for text in v.evidence)


def test_t4_small_pool_above_an_idle_database_is_the_bottleneck():
    """Statements wait for something that serves any number at once: two places let through two at a time."""
    truth = Truth(IDLE, delay_s=0.2, db_pool=2, app_threads=500)
    assert gain(truth, db_pool=3) > 1.3
    assert gain(truth, demand_s=dict.fromkeys(IDLE, 0.0001), app_threads=1000) < HELPS
    found = judged(truth)
    assert {(b.tier, b.resource, b.item) for b in found.bottlenecks} == {("app", "pool", "connections")}
    _, v = found.trials[-1]
    assert any("raise it by a step" in text for text in v.evidence)
    assert any("raise the connections of app by a step" in text for text in found.next)


LOCK = Truth(IDLE, lock_s=0.1, service="constant", app_threads=500)


def test_t4_pools_of_any_size_above_a_lock_give_the_same_throughput():
    """What a test demanded of the verdict once, `app pool`, is not what limits."""
    assert all(gain(replace(LOCK, db_pool=pool), db_pool=500) < 1.01 for pool in (2, 20))
    assert gain(replace(LOCK, db_pool=2), lock_s=0.1 / 1.5) > HELPS


@pytest.mark.parametrize("pool", [2, 20])
def test_t4_pool_full_above_a_lock_is_never_named(pool):
    truth = replace(LOCK, db_pool=pool)
    found = judged(truth)
    assert (found.verdict, found.bottlenecks) == ("hidden", [])
    assert any("times as long as at low load" in text for text in found.trials[-1][1].evidence)
    blind = beyond(truth, LOADS)
    assert (blind.verdict, blind.bottlenecks) == ("unknown", [])
    assert any("no low load shows how long a place is held" in text for text in blind.trials[-1][1].evidence)
    assert any("raise the connections of app by a step" in text for text in blind.next)


def test_t17_saturated_resource_off_the_critical_path_is_no_bottleneck():
    truth = Truth(IDLE, hogs={"web1": [(-2.0, 90.0)]})
    found = judged(truth, [200, 400])
    assert found.verdict == "none"
    assert any("throughput still follows the law" in text for _, v in found.trials for text in v.evidence)


def test_t20_invalid_trials_are_listed_and_do_not_count(tmp_path):
    truth = Truth(IDLE | {"db": 0.01})
    raw = tmp_path / "raw"
    sweep = write_sweep(raw, truth, LOADS)
    broken = Truth(IDLE | {"db": 0.02}, error_share=0.2)  # half of the throughput
    write_trial(raw, Spec(1100, broken, seed=9, start_s=1_790_010_000.0))
    ingest_sweep(sweep, tmp_path / "store")
    found = verdicts(tmp_path / "store", [])[0]
    assert found.max_throughput.value == pytest.approx(10.0, rel=0.06)
    listed = {load.trial: (load.valid, v.verdict) for load, v in found.trials}
    assert listed["u01100.r01"] == (False, "unknown")
    assert any("u01100.r01" in text and "errors" in text for text in found.evidence)


def test_json_follows_the_contract():
    found = judged(Truth(IDLE | {"db": 0.01}))
    document = json.loads(json.dumps(as_json(found)))
    assert {
        "sweep", "topology", "max_throughput_per_s", "max_throughput_interval", "knee_users", "verdict", "bottlenecks",
        "kind", "trials", "migration",
    } <= set(document)  # fmt: skip
    assert document["bottlenecks"][0].keys() >= {"tier", "resource", "nodes", "saturation", "interval"}
    assert document["trials"][0].keys() >= {"trial", "users", "verdict", "bottlenecks"}
    assert document["migration"] == []


def test_verdict_needs_no_density():
    """T7: the share of saturated samples never comes from a kernel density."""
    code = (
        "import sys, ntier_analysis.verdict.store, ntier_analysis.validity.registry as r; r.registered();"
        "drawing = ('ntier_analysis.density', 'ntier_analysis.figures', 'matplotlib');"
        "bad = [m for m in sys.modules if m.startswith(drawing)];"
        "sys.exit(str(bad) if bad else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
