"""Predictions of sweeps whose truth is known, what-ifs against the truth of the other topology, and refusals."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import mesh
import numpy as np
import pandas as pd
import pytest
from ntier_analysis.cli import app
from ntier_analysis.contracts.system import Replicas
from ntier_analysis.errors import DataError
from ntier_analysis.prediction.demands import TierDemand, known_tier_demands, tier_demands
from ntier_analysis.prediction.forecast import beyond, what_if
from ntier_analysis.prediction.jmva import jmva
from ntier_analysis.prediction.model import Change, errors, predict, station
from ntier_analysis.prediction.store import predicted, text
from ntier_analysis.report.data import read_sweep
from ntier_analysis.report.words import prediction
from ntier_analysis.statistics.mva import Station
from ntier_analysis.statistics.values import Demand
from ntier_analysis.store.tables import read_table, write_table
from typer.testing import CliRunner


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("prediction") / "store"
    mesh.write_sweep(folder, "1/1/1/1M", judged=True)
    mesh.write_sweep(folder, "1/1/1/1ML", loads=(200, 400, 600, 900, 2000, 3000), judged=True)
    return folder


SWEEP = "1-1-1-1M.browse_only.shardingsphere"


@pytest.fixture(scope="module")
def document(store) -> dict:
    return predicted(store, SWEEP, "1/1/1/2M", [], None)


def test_demands_and_maximum_are_those_of_the_truth(document):
    for d in document["demands"]:
        assert d["demand_ms"] == pytest.approx(1e3 * mesh.DEMANDS_S[d["tier"]], rel=0.05)
        low, high = d["interval_ms"]
        assert low < d["demand_ms"] < high
    low, high = document["max_throughput_interval"]
    assert low < mesh.capacity_per_s("1/1/1/1M") * 0.2 < high
    assert document["bottleneck"] == "db"


def test_errors_are_told_apart_by_what_was_fitted(document):
    off, loads = document["errors"], document["loads"]
    assert off["throughput"] < 0.03
    assert abs(off["plateau"]) < 0.05
    # all of 1,000 to 3,000 users lie below saturation, nothing beyond 4,000
    assert [r["users"] for r in loads if r["fitted"]] == [1000, 2000, 3000]
    errors = [abs(r["throughput_per_s"] / r["measured_throughput_per_s"] - 1) for r in loads]
    assert np.mean(errors) == pytest.approx(off["throughput"])


def test_one_more_database_moves_the_bottleneck_to_the_application(document):
    (answer,) = document["what_if"]
    assert answer["bottleneck"] == "app"
    assert answer["max_throughput_per_s"] == pytest.approx(0.2 * mesh.capacity_per_s("1/1/1/2M"), rel=0.05)
    assert answer["ratio"] == pytest.approx(mesh.capacity_per_s("1/1/1/2M") / mesh.capacity_per_s("1/1/1/1M"), rel=0.05)
    assert answer["utilization"]["db"] == pytest.approx(0.594, rel=0.06)


def test_another_node_type_takes_its_capacity_from_the_store(store):
    (answer,) = predicted(store, SWEEP, "1/1/1/1ML", [], None)["what_if"]
    assert answer["max_throughput_per_s"] == pytest.approx(0.2 * mesh.capacity_per_s("1/1/1/1ML"), rel=0.06)


def tiers(nodes: int = 1) -> list[TierDemand]:
    def tier(name: str, demand_s: float, count: int = 1) -> TierDemand:
        demand = Demand(0.001 * count, demand_s, 0.02 * demand_s, 0.5, 20, 1e-6, 0.0)
        replicas = Replicas.ALL_WRITE if name == "db" else Replicas.BALANCED
        return TierDemand(name, count, 0.2, demand, ("a", "b"), replicas)

    return [tier("app", 0.001), tier("middleware", 0.0008), tier("db", 0.004 * nodes, nodes)]


def test_writes_are_not_divided_among_replicas():
    reads, writes = what_if(tiers(), "1/1/1/1M", "1/1/1/2M", True)
    assert reads.ratio == pytest.approx(2.0, rel=0.02)
    assert writes.ratio == pytest.approx(1.0)
    assert "only read" in reads.assumption
    (alone,) = what_if(tiers(), "1/1/1/1M", "1/1/1/2M", False)
    assert alone.ratio == reads.ratio
    # back from two to one: a read then costs the one node all, a write what it cost before
    fewer_reads, fewer_writes = what_if(tiers(2), "1/1/1/2M", "1/1/1/1M", True)
    assert fewer_reads.ratio == pytest.approx(0.5, rel=0.02)
    assert fewer_writes.ratio == pytest.approx(1.0)
    # without another number of databases there is no question of it
    assert len(what_if(tiers(), "1/1/1/1M", "1/2/1/1M", True)) == 1


def test_a_tier_of_another_system_is_found_by_its_own_notation():
    cached = [replace(t, tier={"middleware": "cache"}.get(t.tier, t.tier)) for t in tiers()]
    order = "web,app,cache,db"
    (answer,) = what_if(cached, "1/1/1/1M", "1/1/1/2M", False, None, order)
    assert answer.ratio == pytest.approx(2.0, rel=0.02)
    with pytest.raises(DataError, match="for each of web, app, cache, db, for example 1/1/1/1"):
        what_if(cached, "1/1/1/1M", "1/1M", False, None, order)
    with pytest.raises(DataError, match="topology 'three boxes': expected a number of nodes"):
        what_if(tiers(), "three boxes", "1/1/1/2M", False)


def test_draws_lie_about_the_line_also_where_it_begins_below_0():
    """An interaction that costs more at high loads: idle -0.010 cores; cut off at 0, no draw came near the line."""
    steep = [TierDemand("db", 1, 0.2, Demand(-0.010, 0.002, 2e-5, 0.5, 20, 0.002, 0.0), ("a",))]
    found = predict(steep, 7.0, [50]).maximum
    assert found.value == pytest.approx(105)
    assert np.median(found.draws) == pytest.approx(found.value, rel=0.01)
    assert found.low < found.value < found.high


def test_whether_a_mix_writes_is_read_from_what_users_asked_for(store, tmp_path):
    assert not any("writes" in c for c in predicted(store, SWEEP, None, [], None)["caveats"])
    shutil.copytree(store, tmp_path / "store")
    asked = read_table(tmp_path / "store", "interactions", SWEEP)
    write_table(tmp_path / "store", "interactions", SWEEP, asked.assign(interaction="StoreComment"))
    document = predicted(tmp_path / "store", SWEEP, "1/1/1/2M", [], None)
    assert any("mix browse_only writes" in c for c in document["caveats"])
    assert len(document["what_if"]) == 2


def test_no_prediction_is_so_many_per_cent_off_a_lower_bound(tmp_path):
    mesh.write_sweep(tmp_path, "1/1/1/1M", loads=(1000, 2000, 3000, 4500), judged=True)
    document = predicted(tmp_path, SWEEP, None, [], None)
    assert document["measured_max_at_least"]
    assert document["errors"]["plateau"] is None
    assert "measured at least" in text(document)


def test_a_node_of_several_cores_serves_several_at_once():
    tier = TierDemand("db", 2, 2.5, Demand(0.0, 0.01, 0.0, 1.0, 5), (), Replicas.ALL_WRITE)
    node = station(tier, 0.0, 0.01)
    assert (node.servers, node.queues, node.demand_s) == (5.0, 1, 0.01)
    other = station(TierDemand("app", 2, 0.2, Demand(0.0, 0.01, 0.0, 1.0, 5), ()), 0.0, 0.01)
    assert (other.servers, other.queues) == (1.0, 2)
    assert other.demand_s == pytest.approx(0.05)


def test_bands_hold_the_point_and_widen_with_the_demands():
    prediction = predict(tiers(), 7.0, [50, 200, 2000])
    assert (prediction.throughput.low <= prediction.throughput.value).all()
    assert (prediction.throughput.value <= prediction.throughput.high).all()
    relative = (prediction.throughput.high - prediction.throughput.low) / prediction.throughput.value
    assert relative[0] < 0.01 < relative[2]
    assert predict(tiers(), 7.0, [2000], {"db": Change(5, 0.2)}).maximum.tier == "app"


@pytest.mark.parametrize(
    ("topo", "cores", "words"),
    [
        ("1/1/1/2P", [], "nothing of another DBMS"),
        ("1/1/1", [], "four numbers"),
        ("1/1/1/200M", [], "1..99"),
        ("1/1/1/1ML", ["big=2"], "low_cost=0.06"),
        ("1/1/1/1ML", ["low_cost=-1"], "low_cost=0.06"),
        (None, ["nonsense"], "low_cost=0.06"),
        (None, ["normal=0.5"], "give it with --topo"),
        ("1/1/1/2M", ["normal=0.5"], "--cores normal=0.5: 1/1/1/2M has no nodes of this type that 1/1/1/1M lacks"),
        ("1/1/1/1ML", ["low_cost=0.06", "normal=0.5"], "--cores normal=0.5"),
    ],
)
def test_what_cannot_be_predicted_is_refused(store, topo, cores, words):
    with pytest.raises(DataError, match=words):
        predicted(store, SWEEP, topo, cores, None)


def test_a_node_type_that_is_nowhere_is_asked_for(tmp_path):
    mesh.write_sweep(tmp_path, "1/1/1/1M", loads=(1000, 2000, 3000), judged=True)
    with pytest.raises(DataError, match="give --cores low_cost=CORES"):
        predicted(tmp_path, SWEEP, "1/1/1/1ML", [], None)
    (answer,) = predicted(tmp_path, SWEEP, "1/1/1/1ML", ["low_cost=0.06"], None)["what_if"]
    assert answer["bottleneck"] == "db"


def test_cores_of_a_node_type_are_those_of_the_same_system_and_place(tmp_path):
    mesh.write_sweep(tmp_path, "1/1/1/1M", loads=(1000, 2000, 3000), judged=True)
    elsewhere = mesh.write_sweep(tmp_path, "1/1/1/1ML", loads=(200, 400), name="elsewhere", judged=True)
    trials = read_table(tmp_path, "trials", elsewhere)
    write_table(tmp_path, "trials", elsewhere, trials.assign(target="hosts"))
    with pytest.raises(DataError, match="give --cores low_cost=CORES"):
        predicted(tmp_path, SWEEP, "1/1/1/1ML", [], None)
    mesh.write_sweep(tmp_path, "1/1/1/1ML", loads=(200, 400), judged=True)
    (answer,) = predicted(tmp_path, SWEEP, "1/1/1/1ML", [], None)["what_if"]
    other = mesh.write_sweep(tmp_path, "1/1/1/2ML", loads=(200, 400), judged=True)
    nodes = read_table(tmp_path, "nodes", other)
    write_table(tmp_path, "nodes", other, nodes.assign(cpu_cores=2 * nodes["cpu_cores"]))
    with pytest.raises(DataError, match=r"different cores .*0\.06 in .* and 0\.12 in .*give --cores low_cost=CORES"):
        predicted(tmp_path, SWEEP, "1/1/1/1ML", [], None)
    (given,) = predicted(tmp_path, SWEEP, "1/1/1/1ML", ["low_cost=0.06"], None)["what_if"]
    assert given["max_throughput_per_s"] == pytest.approx(answer["max_throughput_per_s"])


def test_a_sweep_that_is_saturated_from_its_first_load_is_refused_by_name_of_the_tier(tmp_path):
    mesh.write_sweep(tmp_path, "1/1/1/1M", loads=(6000, 8000))
    with pytest.raises(DataError, match="tier db: 0 valid loads below 90 %"):
        predicted(tmp_path, SWEEP, None, [], None)


def test_a_node_that_was_not_measured_takes_its_trial_out_of_the_fit():
    trials = pd.DataFrame(
        {"trial": ["a", "b", "c"], "users": [1, 2, 3], "valid": True, "throughput_per_s": [10.0, 20.0, 30.0]}
    )
    trials = trials.assign(run_start_s=0.0, run_end_s=60.0)
    nodes = pd.DataFrame({"node": ["db1", "db2"], "tier": "db", "cpu_cores": 0.2})
    samples = [
        {"trial": t, "node": n, "t_s": float(s), "value": 0.001 * x}
        for t, x in (("a", 10), ("b", 20), ("c", 30))
        for n in ("db1", "db2")
        for s in range(1, 61)
        if (t, n) != ("c", "db2")
    ]
    (tier,) = tier_demands(trials, pd.DataFrame(samples), nodes)
    assert tier.trials == ("a", "b")
    assert tier.demand.demand_s == pytest.approx(0.002)
    assert tier.idle_cores == pytest.approx(0.0, abs=1e-9)


def test_repetitions_are_no_loads_of_their_own(tmp_path):
    """Two loads below the saturation of the database, three times each."""
    sweep = mesh.write_sweep(tmp_path, "1/1/1/1M", loads=(1000, 2000, 6000, 7000, 8000), reps=3, judged=True)
    document = predicted(tmp_path, sweep, None, [], None)
    db = next(d for d in document["demands"] if d["tier"] == "db")
    assert db["loads"] == 2
    assert np.isnan([*db["interval_ms"], *document["max_throughput_interval"]]).all()
    assert "cores idle, 2 loads" in text(document)
    assert " over 5 loads " in prediction((data := read_sweep(tmp_path, sweep)).forecast, 0.2, data.verdict)


@pytest.mark.parametrize(
    ("verdict", "names", "words"),
    [
        ("single", ["db cpu"], ""),
        ("multi", ["app cpu", "db disk"], "the verdict names db disk, of which the model knows nothing"),
        ("hidden", [], "the verdict is hidden, so something else than a CPU may limit"),
        ("none", [], ""),
    ],
)
def test_what_the_model_does_not_know_makes_it_an_upper_bound(verdict, names, words):
    named = [dict(zip(("tier", "resource"), name.split(), strict=True)) for name in names]
    assert beyond({"verdict": verdict, "bottlenecks": named}) == words


def test_a_limit_beside_the_cpus_is_told_on_the_maximum_itself(tmp_path):
    """The CPUs of all nodes are half as busy as they would be if one of them limited."""
    sweep = mesh.write_sweep(tmp_path, "1/1/1/1M")
    samples = read_table(tmp_path, "samples", sweep)
    write_table(tmp_path, "samples", sweep, samples.assign(value=samples["value"] / 2))
    document = predicted(tmp_path, sweep, "1/1/1/2M", [], None)
    assert document["verdict"] in ("hidden", "unknown")
    assert document["upper_bound_because"].startswith(f"the verdict is {document['verdict']}")
    said = text(document)
    assert "maximum at most " in said
    assert f": {document['upper_bound_because']}; among the CPUs, db's would be full first" in said
    assert "1/1/1/2M reaches at most " in said
    assert "then app limits" not in said
    assert "which is an upper bound" in prediction((data := read_sweep(tmp_path, sweep)).forecast, 0.2, data.verdict)


def half_measured(store: Path) -> str:
    """A sweep on 1/2/1/1M whose app2 and db1 have neither samples nor cores, as an import of some nodes leaves them."""
    sweep = mesh.write_sweep(store, "1/2/1/1M")
    nodes, samples = (read_table(store, name, sweep) for name in ("nodes", "samples"))
    lost = nodes["node"].isin(["app2", "db1"])
    write_table(store, "nodes", sweep, nodes.assign(cpu_cores=nodes["cpu_cores"].mask(lost)))
    write_table(store, "samples", sweep, samples[~samples["node"].isin(["app2", "db1"])])
    return sweep


def test_a_tier_of_which_a_node_was_not_measured_has_no_demand(tmp_path):
    sweep = half_measured(tmp_path)
    with pytest.raises(DataError, match="tier app: its CPU was not measured on 1 of 2 nodes"):
        predicted(tmp_path, sweep, None, [], None)
    trials, nodes, samples = (read_table(tmp_path, name, sweep) for name in ("trials", "nodes", "samples"))
    used = samples[samples["metric"] == "used_cores"]
    assert set(known_tier_demands(trials, used, nodes)) == {"web", "middleware"}
    only_db = nodes[nodes["tier"] != "app"]  # the topology still has the two applications
    with pytest.raises(DataError, match="tier app: its CPU was not measured on 2 of 2 nodes"):
        tier_demands(trials, used, only_db)


def test_a_tier_without_nodes_needs_no_demand(tmp_path):
    """1/1/0/1 has no middleware: nothing of it was left out."""
    sweep = mesh.write_sweep(tmp_path, "1/1/1/1M", judged=True)
    for name in ("trials", "nodes", "samples"):
        rows = read_table(tmp_path, name, sweep)
        rows = rows.assign(topology="1/1/0/1M") if name == "trials" else rows[rows["tier"] != "middleware"]
        write_table(tmp_path, name, sweep, rows)
    assert [t["tier"] for t in predicted(tmp_path, sweep, None, [], None)["demands"]] == ["web", "app", "db"]


def demands_of(store: Path, sweep: str) -> list[dict]:
    done = CliRunner().invoke(app, ["demands", sweep, "--store", str(store), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_a_node_without_a_demand_comes_first_with_the_reason(tmp_path):
    """The database limits, and is full at three of the four loads: the others alone would name the application."""
    rows = demands_of(tmp_path, mesh.write_sweep(tmp_path, "1/1/1/1M", loads=(1000, 8000, 9000, 10000)))
    assert (rows[0]["node"], rows[0]["demand_ms"], rows[0]["reason"]) == ("db1", None, "full at all but 1 load")
    assert (rows[1]["node"], rows[1]["loads"], rows[1]["reason"]) == ("app1", 4, "")
    rows = demands_of(tmp_path, half_measured(tmp_path))
    assert {r["node"]: r["reason"] for r in rows if r["reason"]} == dict.fromkeys(("app2", "db1"), "no cores on record")
    assert {r["node"] for r in rows[:2]} == {"app2", "db1"}


def test_low_cost_nodes_are_those_of_the_last_tier_also_if_it_has_no_demand():
    (answer,) = what_if(tiers()[:2], "1/1/1/1M", "1/1/1/1ML", False, {"low_cost": 0.06})
    assert answer.ratio == pytest.approx(1.0)


def test_text_says_how_far_off_it_is(document):
    said = text(document)
    assert "mean absolute error of the throughput" in said
    assert "what if: 1/1/1/2M reaches" in said
    assert "the model knows CPUs only" in said


def test_command(store, tmp_path):
    jmt = tmp_path / "model.jmva"
    command = ["predict", SWEEP, "--topo", "1/1/1/2M", "--store", str(store), "--jmt", str(jmt), "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0
    assert json.loads(done.output)["what_if"][0]["topology"] == "1/1/1/2M"
    assert ElementTree.parse(jmt).getroot().tag == "model"


def test_jmva_spells_out_queues_and_servers():
    root = ElementTree.fromstring(jmva([Station("app", 0.02, 1, 2), Station("db", 0.03, 2)], 7.0, 4))
    names = {e.get("name"): e for e in root.iter() if e.tag.endswith("station")}
    assert list(names) == ["think", "app1", "app2", "db"]
    assert names["app1"].find("servicetimes/servicetime").text == "0.01"
    assert names["db"].tag == "ldstation"
    assert names["db"].find("servicetimes/servicetimes").text == "0.03;0.015;0.015;0.015"
    assert root.find("parameters/stations").get("number") == "4"


def test_a_load_that_was_repeated_often_does_not_outweigh_the_others():
    users = np.array([10, 20, 20, 20, 20])
    rates = SimpleNamespace(value=np.array([10.0, 20.0, 20.0, 20.0, 20.0]))
    found = SimpleNamespace(users=users, throughput=rates, response=rates, maximum=SimpleNamespace(value=20.0))
    measured = np.array([5.0, 20.0, 20.0, 20.0, 20.0])  # off by 100 % at one load of two
    off = errors(found, measured, measured, np.array([True, True, False, False, False]), 20.0)
    assert (off.throughput, off.response) == (0.5, 0.5)
    assert (off.throughput_fitted, off.throughput_beyond) == (0.5, 0.0)


def test_what_is_not_known_or_slow_is_no_nan_and_no_zero_in_the_text(document):
    slow = {key: document[key] / 1000 for key in ("max_throughput_per_s", "measured_max_throughput_per_s")}
    loads = [
        r | {key: r[key] / 1000 if "low" not in key and "high" not in key else np.nan for key in r if "per_s" in key}
        for r in document["loads"]
    ]
    demands = [d | {"interval_ms": [np.nan, np.nan]} for d in document["demands"]]
    unknown = {"max_throughput_interval": [np.nan, np.nan], "demands": demands, "loads": loads, "what_if": []}
    said = text(document | slow | unknown)
    assert "nan" not in said
    assert not re.search(r"[^.\d]0\.0(?!\d| %)", said)
