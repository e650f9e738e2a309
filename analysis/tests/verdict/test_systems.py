"""What the manifest says of a system is all that the analysis knows of it; stores of before mean what they meant."""

import json
import shutil

import pandas as pd
import pytest
from ntier_analysis.contracts import Outcome, implied
from ntier_analysis.contracts.layout import Layout
from ntier_analysis.contracts.manifest import Manifest
from ntier_analysis.contracts.system import Factor, LoadModel, System, Tier
from ntier_analysis.demo import SWEEP, unpack
from ntier_analysis.described import by_load, ordered, system_of
from ntier_analysis.ingest import ingest_sweep
from ntier_analysis.setting import differing
from ntier_analysis.store.tables import read_table
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.registry import OFF, switched_off, validate
from ntier_analysis.validity.sweep import unused_checks
from ntier_analysis.verdict.tables import as_json, sweep_verdict
from synthetic import Spec, Truth, entry, write_trial

NAMES = {"web": "edge", "app": "shop", "middleware": "router", "db": "shelf"}
TABLES_JUDGED = ("trials", "samples", "nodes", "interactions")


@pytest.fixture(scope="module")
def old(tmp_path_factory) -> dict[str, pd.DataFrame]:
    """A measured sweep as it was stored before systems were data."""
    store = unpack(tmp_path_factory.mktemp("old"))
    found = {name: read_table(store, name, SWEEP) for name in TABLES_JUDGED}
    assert found["trials"]["system"].isna().all()
    assert found["trials"]["load_model"].isna().all()
    return found


def verdict(tables: dict[str, pd.DataFrame]) -> dict:
    return as_json(sweep_verdict(SWEEP, *(tables[name] for name in TABLES_JUDGED)).verdict)


def described(trials: pd.DataFrame, system: System) -> pd.DataFrame:
    """The columns that ingest writes of a manifest that names its system."""
    return trials.assign(
        tiers=",".join(system.order), system=system.model_dump_json(exclude={"factor": {"value"}}),
        load_model=system.load_model.value, factor=system.factor.name, factor_unit=system.factor.unit,
        factor_value=trials["users"].astype(float),
    )  # fmt: skip


def renamed(text: str) -> str:
    for before, after in NAMES.items():
        text = text.replace(before, after)
    return text


def test_a_store_of_before_and_one_that_says_so_have_the_same_verdict(old):
    said = old | {"trials": described(old["trials"], implied.system(1))}
    assert verdict(said) == verdict(old)


@pytest.mark.parametrize(("most", "advice"), [(1, "repeat with a larger db node"), (9, "repeat with one more db node")])
def test_nobody_is_told_to_add_a_node_that_the_system_does_not_allow(old, most, advice):
    tiers = [t.model_copy(update={"most": most if t.name == "db" else None}) for t in implied.system(1).tiers]
    system = implied.system(1).model_copy(update={"tiers": tiers})
    said = verdict(old | {"trials": described(old["trials"], system)})
    assert any(text.startswith(advice) for text in said["next"])


def test_tiers_of_any_name_have_the_same_verdict(old):
    tiers = [Tier(name=NAMES[t.name], title=t.title, replicas=t.replicas) for t in implied.system(1).tiers]
    system = implied.system(1).model_copy(update={"name": "shop", "tiers": tiers})
    other = {"trials": described(old["trials"], system), "interactions": old["interactions"]}
    for name in ("samples", "nodes"):
        other[name] = old[name].assign(tier=old[name]["tier"].map(lambda t: NAMES.get(t, t)))
    mine, theirs = verdict(old), verdict(other)
    assert [(NAMES[b["tier"]], b["resource"]) for b in mine["bottlenecks"]] == [
        (b["tier"], b["resource"]) for b in theirs["bottlenecks"]
    ]
    for key in ("verdict", "kind", "max_throughput_per_s", "knee_users"):
        assert mine[key] == theirs[key]
    assert [t["verdict"] for t in mine["trials"]] == [t["verdict"] for t in theirs["trials"]]


def test_without_think_time_users_who_think_have_no_verdict(old):
    trials = described(old["trials"], implied.system(1)).assign(think_time_s=float("nan"))
    found = verdict(old | {"trials": trials})
    assert found["verdict"] == "unknown"
    assert not found["bottlenecks"]
    assert "think time is not known" in " ".join(found["evidence"])


def test_a_check_that_the_system_switches_off_is_told(old):
    system = implied.system(1).model_copy(update={"checks_off": {"O1": "its demand grows by design"}})
    found = verdict(old | {"trials": described(old["trials"], system)})
    assert found["checks_off"] == {"O1": "its demand grows by design"}
    assert "check O1 is switched off by the system: its demand grows by design" in found["evidence"]


# ---- manifests -----------------------------------------------------------------------------------------------------


def with_system(folder, system: System | None) -> None:
    manifest = Manifest.read(folder)
    manifest.system = system
    manifest.write(folder)


def of_users(system: System, users: int, **given) -> System:
    return system.model_copy(update={"factor": Factor(name="users", title="users", value=users), **given})


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    truth = Truth({"web": 0.001, "app": 0.002, "middleware": 0.001, "db": 0.003})
    return write_trial(tmp_path_factory.mktemp("raw"), Spec(300, truth, (10.0, 20.0, 2.0)))


def test_a_manifest_of_before_means_what_it_meant(trial):
    with_system(trial, None)
    before = validate(RawTrial(trial))
    with_system(trial, of_users(implied.system(300), 300))
    assert validate(RawTrial(trial)) == before


def test_ingest_keeps_what_the_manifest_says(trial, tmp_path):
    system = of_users(implied.system(300), 300, checks_off={"G5": "think times are from a trace"})
    with_system(trial, system)
    ingest_sweep(trial.parent, tmp_path / "store", revalidate=True)
    trials = read_table(tmp_path / "store", "trials", trial.parent.name)
    assert system_of(trials) == system
    assert trials["tiers"].tolist() == ["web,app,middleware,db"]
    checks = read_table(tmp_path / "store", "checks", trial.parent.name).set_index("id")
    assert checks.loc["G5", "detail"] == f"{OFF}: think times are from a trace"
    assert checks.loc["G5", "outcome"] == "undecidable"
    assert not checks.loc["G5", "required"]


def with_heartbeat(trial, tmp_path, model, factor, beats):
    """The trial as a driver wrote it that knows interactions and heartbeats alone: no users' lives, no think times."""
    raw = tmp_path / "raw" / trial.parent.name / trial.name
    shutil.copytree(trial, raw)
    client = next((raw / "clients").iterdir())
    for name in ("thinks.csv", "users.csv", "progress.csv"):
        (client / name).unlink(missing_ok=True)
        (client / f"{name}.zst").unlink(missing_ok=True)
    (raw / "config" / "driver.json").write_text(json.dumps({"load_model": model, "parameters": {"rate_per_s": 30}}))
    manifest = Manifest.read(raw)
    up = manifest.phase("ramp_up").start_s
    lines = [f"{up + s:.3f},{beats(s)}" for s in range(34)]
    (client / "progress.csv").write_text("\n".join(["t_s,users,started,completed,failed,in_flight", *lines]) + "\n")
    manifest.system = implied.system(300).model_copy(update={"load_model": model, "factor": factor})
    manifest.files = [entry(raw, p) for p in sorted(raw.rglob("*")) if p.is_file() and p.name != "manifest.json"]
    manifest.write(raw)
    return raw


def test_of_work_the_heartbeat_tells_how_long_its_workers_pause(trial, tmp_path):
    """40 workers, of whom the 300 users' interactions take a small part of the time."""
    factor = Factor(name="sleep_s", title="sleep", unit="s", value=1.0)
    raw = with_heartbeat(trial, tmp_path, LoadModel.WORK, factor, lambda s: f"40,{30 * s},{30 * s},0,0")
    ingest_sweep(raw.parent, tmp_path / "store", revalidate=True)
    row = read_table(tmp_path / "store", "trials", raw.parent.name).iloc[0]
    per_s, response_s = row["throughput_per_s"], row["response_time_mean_ms"] / 1000
    assert row["think_measured_s"] == pytest.approx(40 / per_s - response_s, rel=0.02)
    checks = read_table(tmp_path / "store", "checks", raw.parent.name).set_index("id")
    assert not [id_ for id_, check in checks.iterrows() if check["outcome"] == "fail" and "Z + R" in check["detail"]]


def test_of_an_open_load_the_heartbeat_tells_what_was_offered(trial, tmp_path):
    factor = Factor(name="rate", title="rate", unit="1/s", value=30.0)
    raw = with_heartbeat(trial, tmp_path, LoadModel.OPEN, factor, lambda s: f"1,{30 * s},{20 * s},0,{10 * s}")
    ingest_sweep(raw.parent, tmp_path / "store", revalidate=True)
    row = read_table(tmp_path / "store", "trials", raw.parent.name).iloc[0]
    assert row["offered_per_s"] == pytest.approx(30.0)
    assert row["backlog_growth_per_s"] == pytest.approx(10.0)
    assert row["pending"] == 300
    assert pd.isna(row["think_time_s"])
    checks = read_table(tmp_path / "store", "checks", raw.parent.name).set_index("id")
    for id_ in ("G1", "G2", "G4", "M1", "M3"):
        assert checks.loc[id_, "outcome"] == "pass", id_
        assert "nobody thinks" in checks.loc[id_, "detail"]


# ---- values --------------------------------------------------------------------------------------------------------


def test_layouts_follow_the_order_of_the_system():
    assert dict(Layout.of("1/2/1M", "web,app,db").nodes) == {"web": 1, "app": 2, "db": 1}
    assert dict(Layout.of("4", "node").nodes) == {"node": 4}
    assert dict(Layout.of("1-2-1-9ML").nodes) == {"web": 1, "app": 2, "middleware": 1, "db": 9}
    assert Layout.of("1/2/1M", "a,b") == Layout.of("two boxes") == Layout()


def test_trials_stand_in_order_of_their_factor():
    trials = pd.DataFrame({"trial": list("abc"), "users": 8, "factor": "sleep_s", "factor_value": [0.5, 2.0, 0.1]})
    assert by_load(trials)["trial"].tolist() == ["c", "a", "b"]
    assert by_load(trials.drop(columns=["factor", "factor_value"]))["trial"].tolist() == ["a", "b", "c"]
    assert ordered(["db", "client", "web", "cache"], implied.TIERS) == ["web", "db", "cache"]


def test_sweeps_of_before_and_of_now_can_be_compared():
    before = pd.DataFrame({"mix": ["browse_only"]})
    now = before.assign(load_model="closed", factor="users")
    assert differing(before, now) == {}
    assert set(differing(before, now.assign(load_model="open"))) == {"load_model"}


def test_switched_off_is_neither_passed_nor_failed():
    from ntier_analysis.contracts import Check

    failed = Check(id="G1", title="t", required=True, outcome=Outcome.FAIL, value=3.0, reason="generator_lag")
    off = switched_off(failed, "why")
    assert (off.required, off.outcome, off.reason, off.value) == (False, Outcome.UNDECIDABLE, "", None)
    assert off.detail == f"{OFF}: why"


def test_a_name_that_no_check_has_is_told():
    assert unused_checks({"G1": "why", "W2": "so", "Z9": "?"}) == [
        "check G1 is switched off by the system: why",
        "check W2 is switched off by the system: so",
        "the system switches off a check Z9, which does not exist",
    ]
