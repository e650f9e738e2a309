"""Traps of measuring: ticks, clocks, order, scale, files. docs/wrong-bottlenecks.md."""

import json
import shutil
import subprocess
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from checked import Checks
from detector import observe
from detector.network import simulate
from detector.plan import Case, View
from networks import LOADS, frames, judged, judged_frames, named, plan, throughput
from ntier_analysis.contracts.files import read_bytes
from ntier_analysis.importing import import_folder
from ntier_analysis.importing.folder import prepared
from ntier_analysis.importing.sysstat_files import NodeFile, read_node
from ntier_analysis.ingest import ingest_sweep
from ntier_analysis.parsers.counters import clock, deltas
from ntier_analysis.parsers.host import tcp
from ntier_analysis.parsers.sysstat import sysstat
from ntier_analysis.statistics.laws import dependence
from ntier_analysis.sysstat.keys import device
from ntier_analysis.validity.sweep import sweep_checks
from ntier_analysis.verdict.saturation import excess_moved, saturations
from ntier_analysis.verdict.store import verdicts
from ntier_analysis.verdict.tables import as_json
from synthetic import Spec, Truth, sysstat_json, write_sweep, write_trial

pytestmark = pytest.mark.whole

DB, APP = ("db", "cpu"), ("app", "cpu")


def test_t12_clocks_half_a_period_apart_turn_an_alternation_into_its_opposite():
    """Why an offset beyond 50 ms makes a trial invalid (validity check C4)."""
    turn = (np.arange(600) // 20 % 2).astype(float)  # turns of 2 s
    assert dependence(turn, 1 - turn, 0.1).lift == 0.0
    assert dependence(turn, np.roll(1 - turn, 20), 0.1).lift == pytest.approx(2.0)
    assert dependence(turn, np.roll(1 - turn, 1), 0.1).lift < 0.2


IDLE = {"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.0005}


def test_t13_users_that_start_inside_the_run_are_noticed(tmp_path):
    folder = write_trial(tmp_path, Spec(4000, Truth(IDLE | {"db": 0.0012}), phases=(20.0, 60.0, 5.0)))
    manifest = json.loads((folder / "manifest.json").read_text())
    ramp_up, run = manifest["phases"][:2]
    ramp_up["end_s"] = run["start_s"] = ramp_up["start_s"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert Checks(folder)["S2"].outcome.value == "fail"


def test_t13_application_that_is_cold_at_first_is_no_bottleneck(tmp_path):
    """In the first 15 s of the run it needs six times the CPU; warm, it serves all loads without a wait."""
    cold = Truth(IDLE | {"app": 0.006}, stalls={"app": (10_000.0, 0.0035, 6.0)}, app_threads=500, db_pool=500)
    warm = replace(cold, stalls={})
    users = [300, 400, 500, 600, 700, 800, 900, 1000]
    for name, truth in (("cold", cold), ("warm", warm)):
        ingest_sweep(write_sweep(tmp_path / name, truth, users, validated=True), tmp_path / name / "store")
    (verdict,), (without,) = (verdicts(tmp_path / name / "store", []) for name in ("cold", "warm"))
    assert without.verdict == "none"
    assert (verdict.verdict, verdict.bottlenecks) == ("unknown", [])
    assert any("the runs were not steady" in text for text in verdict.evidence)
    assert any("more time to warm up" in text for text in verdict.next)


def test_t18_pegged_cpu_counted_in_ticks_is_saturated_throughout():
    readings = np.array([90.0, 110.0, 100.0, 90.0, 110.0, 100.0])
    assert (excess_moved(readings) == 100.0).all()
    assert (excess_moved(np.array([60.0, 100.0, 40.0])) == [60.0, 100.0, 40.0]).all()
    assert excess_moved(np.array([60.0, 110.0, 40.0])).mean() == pytest.approx(70.0)
    verdict = judged(plan({DB: 1.0}, quota=None).build(), view=View(ticks=True))
    assert named(verdict) == [("db", "cpu", ("db1",))]
    assert verdict.bottlenecks[0].saturation > 0.97


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


WARMING = (60, 100, 150, 200, 230, 260, 290, 320)


def in_order(order):
    """A sweep whose system warms up: the disk's work falls from trial to trial, in the order of execution. Cold, the
    disk limits, warm the database's CPU."""

    def network(users):
        return plan({DB: 0.85, ("db", "disk"): 0.55 * (1 + 0.9 * np.exp(-order.index(users) / 1.5)) ** 1.3}).build()

    case = Case("trap", "", "", network(order[0]), {}, set(), WARMING, 60.0, 0.1, View(), 1, 20.0)
    runs = [simulate(network(n), n, 20.0, 60.0, 1 + order.index(n), 37.0 * order.index(n)) for n in WARMING]
    made = observe.frames(case, runs)
    places = {observe.trial_name(case, i): order.index(n) - i for i, n in enumerate(WARMING)}
    for frame, columns in zip(made, (["run_start_s", "run_end_s"], ["t_s"], ["t_s"]), strict=True):
        frame[columns] += 1000.0 * frame["trial"].map(places).to_numpy()[:, None]
    return made


def test_t31_loads_in_order_of_their_size_cannot_tell_warming_up_from_load():
    """Descending, the largest loads meet the cold disk and the next ones the CPU: that is no migration with the load.
    The order of execution is judged, not believed: loads of one plateau that say different things name nothing."""
    cold = plan({DB: 0.85, ("db", "disk"): 0.55 * 1.9**1.3}).build()
    assert throughput(cold.relieved({("db", "disk")}, 1.5)) > 1.1 * throughput(cold)
    for order, limits in ((WARMING, [("db", "cpu", ("db1",))]), (WARMING[::-1], [])):
        trials, samples, interactions = in_order(order)
        (tables,) = prepared(trials, samples, interactions).values()
        checks = sweep_checks(tables["trials"], tables["samples"], tables["nodes"], tables["interactions"])
        by_id = {check.id: check for check in checks}
        assert by_id["W5"].outcome.value == "undecidable"
        assert "warm-up and load cannot be told apart; run them at random" in by_id["W5"].detail
        judged_ = judged_frames(trials, samples, interactions)
        assert named(judged_) == limits
        assert judged_.verdict == ("single" if limits else "unknown")
        disagree = [text for text in judged_.evidence if text.startswith("the trials beyond the knee disagree")]
        assert (not disagree) if limits else "most name db cpu (3 of 3)" in disagree[0]
        assert judged_.migration == []


def test_t31_warming_up_is_found_in_loads_at_random(tmp_path):
    """The same load first and last (W8), and the throughput over the order (W5)."""
    cold, warm = Truth(IDLE | {"db": 0.016}, db_pool=500, app_threads=500), Truth(IDLE | {"db": 0.01})
    order = [1000, 1400, 1200, 1000, 1300, 1100, 1400, 1200, 1000]
    for i, users in enumerate(order):
        truth = replace(cold, demand_s=IDLE | {"db": 0.01 + 0.006 * np.exp(-i / 1.5)}) if i < 5 else warm
        rep = order[:i].count(users) + 1
        spec = Spec(users, truth, seed=i, rep=rep, start_s=1_790_000_000.0 + 200 * i, validated=True)
        write_trial(tmp_path, spec)
    ingest_sweep(tmp_path / Spec(1, warm).sweep, tmp_path / "store")
    (verdict,) = verdicts(tmp_path / "store", [])
    assert any(text.startswith("check W8 fails") for text in verdict.evidence)


def test_t31_order_of_the_rows_changes_nothing():
    trials, samples, interactions = frames(plan({DB: 1.0}).build())
    mixed = trials.sample(frac=1.0, random_state=5), samples.sample(frac=1.0, random_state=6), interactions
    assert as_json(judged_frames(trials, samples, interactions)) == as_json(judged_frames(*mixed))


def sweep_of_two(raw: Path, change) -> Checks:
    """Two trials of one system, the first of which is valid; `change` does something to the second before it is
    judged. -> its checks by id."""
    truth = Truth(IDLE | {"db": 0.01})
    for users in (200, 600):
        made = Spec(users, truth, seed=users, start_s=1_790_000_000.0 + users, validated=users == 200)
        second = write_trial(raw, made)
    change(second)
    return Checks(second)


def test_t32_node_that_was_renamed_between_two_trials_is_no_node_of_the_sweep(tmp_path):
    def rename(folder):
        (folder / "nodes" / "db1").rename(folder / "nodes" / "db7")
        (folder / "manifest.json").write_text((folder / "manifest.json").read_text().replace('"db1"', '"db7"'))

    assert sweep_of_two(tmp_path / "same", lambda folder: None)["P1"].detail.startswith("same system")
    same_nodes = sweep_of_two(tmp_path / "renamed", rename)["P1"]
    assert (same_nodes.outcome.value, same_nodes.required) == ("fail", True)
    assert "nodes (compared with u00200.r01): start another sweep" in same_nodes.detail


def test_t32_node_that_was_made_anew_under_its_name_is_told(tmp_path):
    def anew(folder):
        for moment in ("before", "after"):
            path = folder / "nodes" / "db1" / f"facts_{moment}.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | {"boot_id": "another"}))

    same_nodes = sweep_of_two(tmp_path, anew)["P1"]
    assert same_nodes.outcome.value == "undecidable"
    assert same_nodes.detail.startswith("db1 started since u00200.r01")


def test_t32_imported_samples_of_a_renamed_node_are_not_joined():
    trials, samples, interactions = frames(plan({DB: 1.0}).build())
    later = samples["trial"].isin(["u04", "u05"]) & (samples["node"] == "db1")
    verdict = judged_frames(trials, samples.assign(node=samples["node"].mask(later, "db7")), interactions)
    assert (verdict.verdict, verdict.bottlenecks) == ("unknown", [])
    assert {load.invalid_reasons for load, _ in verdict.trials} == {"topology"}


SADF = shutil.which("sadf")
SA = Path(__file__).parents[1] / "importing" / "data" / "host-12.6.1.sa.zst"


def of_sadf(path: Path, *option: str) -> pd.DataFrame:
    """What sadf itself prints of the file for one option, one row per record and item."""
    done = subprocess.run(
        [SADF, "-d", "-U", path, "--", *option],
        capture_output=True,
        text=True,
        check=True,
        env={"LC_ALL": "C", "TZ": "UTC"},
    )
    heads = [line for line in done.stdout.splitlines() if line.startswith("#")]
    rows = [line for line in done.stdout.splitlines() if not line.startswith("#") and "LINUX-RESTART" not in line]
    return pd.read_csv(StringIO("\n".join([heads[0].lstrip("# "), *rows])), sep=";")


@pytest.mark.skipif(SADF is None, reason="needs sysstat's sadf, the other reader of the file")
@pytest.mark.parametrize(
    ("option", "item", "columns"),
    [
        (["-d"], "DEV", {"tps": "operations_per_s", "aqu-sz": "queue", "await": "wait_ms", "%util": "utilization_pct"}),
        (["-n", "DEV"], "IFACE", {"rxpck/s": "rx_packets_per_s", "txpck/s": "tx_packets_per_s"}),
        (["-n", "ETCP"], "", {"retrans/s": "tcp_retransmits_per_s", "atmptf/s": "tcp_failed_connects_per_s"}),
        (["-W"], "", {"pswpin/s": "swap_in_per_s", "pswpout/s": "swap_out_per_s"}),
        (["-q"], "", {"runq-sz": "runnable", "blocked": "blocked"}),
        (["-u"], "", {"%iowait": "iowait_pct", "%steal": "steal_pct"}),
    ],
)
def test_t23_each_value_is_the_one_that_sadf_prints(tmp_path, option, item, columns):
    path = tmp_path / "host.sa"
    path.write_bytes(read_bytes(SA))
    frame, _ = read_node(NodeFile("db1", "db", SA), containers=False)
    printed = of_sadf(path, *option)
    assert len(printed) > 10
    if item == "DEV":  # sadf names the devices of this machine; the file has their numbers
        numbers = {name: Path(f"/sys/class/block/{name}/dev") for name in set(printed["DEV"])}
        known = {name: device(*map(int, at.read_text().split(":"))) for name, at in numbers.items() if at.exists()}
        printed["DEV"] = printed["DEV"].replace(known)
    resource = {"DEV": "disk", "IFACE": "network"}.get(item)
    for column, metric in columns.items():
        ours = frame[(frame["metric"] == metric) & (frame["resource"].eq(resource) if resource else True)]
        ours = {
            (round(t), name): value for t, name, value in zip(ours["t_s"], ours["item"], ours["value"], strict=True)
        }
        theirs = {
            (row["timestamp"], row[item] if item else ""): row[column]
            for row in printed.to_dict("records")
            if not item or any(name == row[item] for _, name in ours)
        }
        assert ours.keys() == theirs.keys(), (column, ours.keys() ^ theirs.keys())
        assert [ours[key] for key in theirs] == pytest.approx(list(theirs.values()), abs=0.006), column


def test_t23_counter_of_32_bits_that_wraps_has_no_value_and_is_counted(tmp_path):
    """4.29e9 operations in a second would be a spike; and nothing tells a wrap from a restart."""
    path = tmp_path / "tcp.csv"
    top = 2**32 - 50
    header = "t_s,out_segs,retrans_segs,attempt_fails,listen_overflows,listen_drops"
    path.write_text(f"{header}\n1,{top},0,0,0,0\n2,{top + 40},0,0,0,0\n3,30,0,0,0,0\n4,70,0,0,0,0\n")
    clock_ = clock(path, np.array([1.0, 2.0, 3.0, 4.0]), 1.0)
    values, backwards = deltas(np.array([top, top + 40, 30, 70], dtype=np.uint64), clock_)
    assert (values[0], values[2], backwards) == (40, 40, 1)
    assert np.isnan(values[1])
    assert tcp(path)[1] == 1


def test_t23_disk_that_comes_and_goes_in_mid_file_shifts_nothing(tmp_path):
    times = 1_790_000_000.0 + np.arange(5)
    document = json.loads(sysstat_json(times, np.full(5, 20.0), "db1"))
    records = document["sysstat"]["hosts"][0]["statistics"]
    for i in (1, 2, 4):
        new = {"disk-device": "vdb", "tps": 100.0 + i, "rkB": 0.0, "wkB": 0.0, "util-percent": 10.0 * i}
        records[i]["disk"].insert(0, new)
    path = tmp_path / "sysstat.json"
    path.write_text(json.dumps(document))
    frame = sysstat(path, own_machine=True).query("resource == 'disk' and metric == 'operations_per_s'")
    by_disk = {
        item: dict(zip(part["t_s"] - times[0], part["value"], strict=True)) for item, part in frame.groupby("item")
    }
    assert by_disk == {"vdb": {1: 101, 2: 102, 4: 104}, "vda": dict.fromkeys(range(5), 3.0)}


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
