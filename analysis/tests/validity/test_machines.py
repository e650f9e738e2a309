"""Checks where each node is a machine of its own (target hosts): no host, no quota, CPU sampled on the node."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from checked import Checks
from ntier_analysis.contracts import Manifest, Outcome
from ntier_analysis.ingest import ingest_sweep
from ntier_analysis.parsers import host
from ntier_analysis.store.tables import read_table
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.registry import validate
from synthetic import T0, Spec, Truth, entry, write_trial

SPEC = Spec(
    200,
    Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.0012}, cores=1.0),
    (20.0, 40.0, 5.0),
    scale=1.0,
)


def as_machines(
    folder: Path, *, steal_pct: float = 0.0, kills: int = 0, client_pct: float = 30.0, slowed: float = 1.0
) -> Path:
    """The trial as target hosts leaves it; steal, kills and what slows it down after half of the run are db1's."""
    m = Manifest.read(folder)
    shutil.rmtree(folder / "nodes/host")
    del m.collectors["host"]
    for node in m.nodes:
        for file in (folder / "nodes" / node.name).glob("cgroup_*"):
            file.unlink()
        robbed = steal_pct if node.name == "db1" else 0.0
        busy = client_pct if node.tier == "client" else 10.0
        killed = kills if node.name == "db1" else 0
        write_procstat(folder / "nodes" / node.name / "procstat.csv", busy, robbed, killed)
        write_canary(folder / "nodes" / node.name / "canary.csv", slowed if node.name == "db1" else 1.0)
        m.collectors[node.name].append("procstat")
    m.nodes = [n.model_copy(update={"cpu_cores": None, "cores": 2}) for n in m.nodes]
    m.quota_readback = [{"node": n.name, "t_s": T0, "moment": "run", "cpu_cores": None} for n in m.nodes]
    m.target = "hosts"
    m.files = [entry(folder, p) for p in sorted(folder.rglob("*")) if p.is_file() and p.name != "manifest.json"]
    m.write(folder)
    return folder


def write_procstat(path: Path, busy_pct: float, steal_pct: float, kills: int) -> None:
    """Two cores for 68 s at 10 Hz; the kills come in the middle."""
    lines = ["t_s,user,nice,system,idle,iowait,irq,softirq,steal,oom_kills"]
    for i in range(680):
        ticks = 2000 * i  # a hundred times finer than the kernel's, so that shares are exact
        user, steal = (round(ticks * pct / 100) for pct in (busy_pct, steal_pct))
        lines.append(f"{T0 - 2 + i / 10:.6f},{user},0,0,{ticks - user - steal},0,0,0,{steal},{kills * (i > 340)}")
    path.write_text("\n".join(lines) + "\n")


def write_canary(path: Path, slowed: float) -> None:
    """A reading per second; from the middle of the run on (second 40 of 65) the same work takes longer."""
    rows = [f"{T0 + s:.6f},{300 * (slowed if s >= 40 else 1):.1f},400.0" for s in range(-2, 66)]
    path.write_text("\n".join(["t_s,loop_us,pages_us", *rows]) + "\n")


@pytest.fixture
def trial(tmp_path):
    return write_trial(tmp_path, SPEC)


def checks(folder: Path):
    validity = validate(RawTrial(folder))
    return validity, {c.id: c for c in validity.checks}


def test_the_store_has_a_machines_cores_and_its_samples_on_the_controllers_clock(trial, tmp_path):
    """db1's clock was 30 ms ahead before the trial and 50 ms after it."""
    folder = as_machines(trial)
    m = Manifest.read(folder)
    m.clock_offsets_s["db1"] |= {"offset_before": 0.03, "offset_after": 0.05}
    m.clock_offsets_s["web1"] |= {"offset_before": 0.0, "offset_after": 0.0}
    m.write(folder)
    ingest_sweep(folder.parent, tmp_path / "store")
    nodes, samples = (read_table(tmp_path / "store", table) for table in ("nodes", "samples"))
    assert nodes["cpu_cores"].tolist() == [2.0] * 5
    samples = samples[samples["metric"] == "iowait_pct"].sort_values("t_s")
    web1, db1 = (samples[(samples["node"] == n) & (samples["source"] == "procstat")] for n in ("web1", "db1"))
    assert db1["t_s"].to_numpy() == pytest.approx(web1["t_s"].to_numpy() - 0.04, abs=1e-6)
    run = m.phase("run")
    assert ((db1["phase"] == "run") == db1["t_s"].between(run.start_s, run.end_s, "left")).all()


def test_an_honest_trial_is_valid_and_says_what_does_not_apply(trial):
    validity, by_id = checks(as_machines(trial))
    assert validity.valid, [c for c in validity.checks if c.required and c.outcome is not Outcome.PASS]
    apply_not = [c.id for c in validity.checks if c.detail.startswith("not applicable")]
    assert apply_not == ["H1", "H1.mean", "H2.pressure", "H3", "H4", "R3"]
    assert by_id["H2"].value == 0.0
    assert by_id["H2"].n == 5 * 40
    assert by_id["G3"].value == pytest.approx(30, abs=0.5)


@pytest.mark.parametrize(
    ("fault", "id_", "says"),
    [
        ({"steal_pct": 8.0}, "H2", "8.00 % of the CPU time of db1"),
        ({"kills": 1}, "H5", "db1: 1 processes killed"),
        ({"client_pct": 85.0}, "G3", "client1 used 85 %"),
    ],
)
def test_a_fault_of_one_machine_invalidates_the_trial(trial, fault, id_, says):
    by_id = Checks(as_machines(trial, **fault))
    assert by_id.invalidate(id_)
    assert by_id[id_].outcome is Outcome.FAIL
    assert says in by_id[id_].detail


def test_a_machine_that_becomes_slower_is_named_and_the_trial_counts(trial):
    validity, by_id = checks(as_machines(trial, slowed=1.5))
    assert by_id["H6"].outcome is Outcome.FAIL
    assert by_id["H6"].value == pytest.approx(50.0)
    assert "the same work on db1 took loop 300 to 450 us" in by_id["H6"].detail
    assert validity.valid


def test_a_trial_from_before_machines_ran_a_canary_is_as_good(trial):
    folder = as_machines(trial)
    for file in folder.glob("nodes/*/canary.csv"):
        file.unlink()
    m = Manifest.read(folder)
    m.files = [f for f in m.files if not f.path.endswith("canary.csv")]
    m.write(folder)
    validity, by_id = checks(folder)
    assert validity.valid
    assert by_id["H6"].detail.startswith("not applicable")


def test_a_machine_without_its_samples_cannot_be_valid(trial):
    as_machines(trial)
    (trial / "nodes/db1/procstat.csv").unlink()
    by_id = Checks(trial)
    assert by_id.invalidate("H2")
    assert by_id["H2"].outcome is Outcome.UNDECIDABLE


def test_procstat_counts_cores_in_ticks_and_kills(tmp_path):
    path = tmp_path / "procstat.csv"
    path.write_text(
        "t_s,user,nice,system,idle,iowait,irq,softirq,steal,oom_kills\n"
        f"{T0},0,0,0,0,0,0,0,0,3\n{T0 + 0.1},8,0,4,6,2,0,0,0,3\n{T0 + 0.2},16,0,8,14,2,0,0,0,\n"
    )
    frame, backwards = host.procstat(path)
    values = {metric: part["value"].tolist() for metric, part in frame.groupby("metric")}
    assert backwards == 0
    assert values["utilization_pct"] == pytest.approx([60, 60])
    assert values["system_pct"] == pytest.approx([20, 20])
    assert values["used_cores"] == pytest.approx([1.2, 1.2], rel=1e-4)
    assert values["oom_kills"][:2] == [3, 3]
    assert np.isnan(values["oom_kills"][2])
    assert set(frame["resource"]) == {"cpu", "memory"}
