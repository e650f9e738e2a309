"""Raw -> store: deterministic, idempotent, honest about what it could not read. Import, SQL and the commands."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from ntier_analysis.contracts import Manifest, State, implied
from ntier_analysis.contracts.system import Interaction
from ntier_analysis.errors import DataError
from ntier_analysis.expectation.loads import at_load
from ntier_analysis.expectation.quantities import read_facts
from ntier_analysis.importing import import_folder
from ntier_analysis.ingest import attempts, ingest_sweep, sweep_folders
from ntier_analysis.objectives import in_time
from ntier_analysis.store import query, tables
from ntier_analysis.store.schema import TABLES
from ntier_analysis.store.series import SERIES
from ntier_analysis.store.tables import read_table, sweeps, write_table
from ntier_analysis.verdict.store import verdicts
from program import called, started
from synthetic import Spec, Truth, write_sweep, write_trial

TRUTH = Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.01})
SWEEP = "1-1-1-1M.browse_only.shardingsphere"
SHORT = {"phases": (10.0, 20.0, 2.0)}


@pytest.fixture(scope="module")
def made(made_once):
    """Raw results and their store, for all processes of the tests."""

    def make(folder):
        make_raw(folder / "raw")
        ingest_sweep(folder / "raw" / SWEEP, folder / "store")
        exported(folder / "store", folder / "csv")
        add_others(folder / "store", folder / "many")

    return made_once("a_sweep_and_its_store", make)


@pytest.fixture(scope="module")
def raw(made):
    return made / "raw"


@pytest.fixture(scope="module")
def store(made):
    return made / "store"


def make_raw(folder):
    write_sweep(folder, TRUTH, [300, 1000], **SHORT)
    logs = folder / SWEEP / "u00300.r01/nodes/middleware1/logs"
    logs.mkdir()
    head = "number,choice_ns,begin_ns,end_ns,replica,seen\n"
    (logs / "middleware_trace.csv").write_text(head + "0,0,5,9,db1,\n1,0,7,9,db1,\n")  # one replica: nothing to choose


def frames(store: Path) -> dict[str, pd.DataFrame]:
    return {name: read_table(store, name) for name in TABLES}


def test_an_interaction_has_its_own_objective(tmp_path):
    """Goodput, and its interval, count it instead of the load's."""
    folder = write_trial(tmp_path / "raw", Spec(300, TRUTH, phases=(2.0, 8.0, 1.0), seal=False))
    manifest = Manifest.read(folder)

    def goodput(slo_ms, own_ms=None):
        done = manifest.model_copy(update={"slo_ms": slo_ms})
        if own_ms:
            said = [Interaction(name="StoriesOfTheDay", slo_ms=own_ms)]
            done.system = implied.system(300).model_copy(update={"interactions": said})
        done.write(folder)
        store = tmp_path / f"{slo_ms}-{own_ms}"
        ingest_sweep(folder.parent, store)
        (row,) = read_table(store, "trials").itertuples()
        facts = read_facts(store, [SWEEP])[SWEEP]
        found = at_load("goodput", "300", facts.trials.assign(valid=True), lambda: facts.table("interactions"), "")
        return row.goodput_per_s, (found.low, found.high)

    none, all_ = goodput(1e-6), goodput(None)
    assert none[0] == 0 < all_[0]
    assert goodput(1e-6, own_ms=1e6) == all_
    assert goodput(None, own_ms=1e-6) == none


@pytest.mark.parametrize(
    ("slo_ms", "own", "kept"),
    [
        (None, {}, [True, True, True]),
        (100, {}, [True, False, False]),
        (100, {"Search": 300}, [True, True, False]),
        (None, {"Search": 100}, [True, False, True]),
    ],
)
def test_each_interaction_is_judged_by_its_own_objective_or_the_load_s(slo_ms, own, kept):
    done = pd.DataFrame({"interaction": ["Search", "Search", "Page"], "response_time_ms": [100.0, 200.0, 200.0]})
    for frame in (done, done.astype({"interaction": "category"})):
        assert in_time(frame, slo_ms, own).tolist() == kept


def test_every_table_has_the_schema_with_units(store):
    for name, schema in TABLES.items():
        stored = pq.read_schema(store / name / f"{SWEEP}.parquet")
        assert stored.names == (SERIES if name == "samples" else schema).names
        for field in stored:
            assert field.metadata[b"definition"].endswith(b".")
            assert b"unit" in field.metadata


def test_i9_rebuilding_gives_equal_tables(raw, store, tmp_path):
    ingest_sweep(raw / SWEEP, tmp_path / "again")
    for name, frame in frames(store).items():
        pd.testing.assert_frame_equal(frame, read_table(tmp_path / "again", name))
        assert len(frame) or name in ("decisions", "from_above"), name  # this sweep is a grid, and all stay to the end


def test_a_folder_without_a_trial_takes_nothing_from_the_store(store, tmp_path):
    """Of a sweep that has just begun again: `search.json` alone."""
    (tmp_path / "raw" / SWEEP).mkdir(parents=True)
    before = {p: p.stat().st_mtime_ns for p in store.rglob("*.parquet")}
    assert ingest_sweep(tmp_path / "raw" / SWEEP, store, force=True).trials == 0
    assert {p: p.stat().st_mtime_ns for p in store.rglob("*.parquet")} == before
    assert ingest_sweep(tmp_path / "raw" / SWEEP, tmp_path / "new").trials == 0
    assert not (tmp_path / "new").exists()


def test_a_sweep_without_a_trial_has_no_report(store, tmp_path):
    """A store from before may hold one, or one of which no trial could be read."""
    shutil.copytree(store, tmp_path / "store")
    write_table(tmp_path / "store", "trials", SWEEP, read_table(store, "trials", SWEEP).head(0))
    done = called("report", "--store", tmp_path / "store", "--out", tmp_path / "reports")
    assert (done.returncode, done.stderr.count("Traceback")) == (2, 0)
    assert "has no trial, so there is nothing to report" in done.stderr


def test_second_ingest_changes_nothing(raw, store):
    before = {p: p.stat().st_mtime_ns for p in store.rglob("*.parquet")}
    assert ingest_sweep(raw / SWEEP, store).unchanged
    assert {p: p.stat().st_mtime_ns for p in store.rglob("*.parquet")} == before


def test_contract_columns_and_phases(store):
    samples = read_table(store, "samples")
    assert set(samples["phase"]) == {"ramp_up", "run", "ramp_down", "outside"}
    assert not samples.duplicated(["trial", "node", "source", "resource", "item", "metric", "t_s"]).any()
    cpu = samples[(samples["metric"] == "utilization_pct") & (samples["resource"] == "cpu")]
    assert set(cpu["node"]) == {"web1", "app1", "middleware1", "db1", "client1", "host"}
    trial = read_table(store, "trials").iloc[0]
    done = read_table(store, "interactions")
    run = done[(done["trial"] == trial["trial"]) & (done["phase"] == "run")]
    assert trial["throughput_per_s"] == pytest.approx(len(run) / 20)
    assert trial["throughput_low_per_s"] < trial["throughput_per_s"] < trial["throughput_high_per_s"]
    assert pd.isna(trial["response_time_p99_ms"])  # 60 interactions carry no 99th percentile


def test_t29_interactions_that_never_ended_are_counted(tmp_path):
    """30 s per query in a run of 20 s: the completed ones are the lucky ones."""
    slow = Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.3}, service="constant")
    write_trial(tmp_path, Spec(300, slow, **SHORT))
    ingest_sweep(tmp_path / SWEEP, tmp_path / "store")
    trial = read_table(tmp_path / "store", "trials").iloc[0]
    assert trial["pending"] >= 20
    evidence = verdicts(tmp_path / "store", [])[0].trials[0][1].evidence
    assert any("the response time is a lower bound" in text for text in evidence)


def test_newest_attempt_counts(tmp_path):
    write_trial(tmp_path, Spec(300, TRUTH, **SHORT))
    write_trial(tmp_path, Spec(300, TRUTH, seed=2, attempt=2, **SHORT))
    write_trial(tmp_path, Spec(300, TRUTH, seed=3, attempt=10, **SHORT))
    by_trial = attempts(tmp_path / SWEEP)
    assert [p.name for p in by_trial["u00300.r01"]] == ["u00300.r01", "u00300.r01.a2", "u00300.r01.a10"]
    assert ingest_sweep(tmp_path / SWEEP, tmp_path / "store").trials == 1
    trials = read_table(tmp_path / "store", "trials")
    assert trials[["seed", "attempt", "attempts"]].iloc[0].tolist() == [3, 10, 3]


def test_failed_trial_is_a_record(tmp_path):
    folder = write_trial(tmp_path, Spec(300, TRUTH, **SHORT))
    manifest = Manifest.read(folder)
    manifest.model_copy(update={"state": State.FAILED, "failure": "client_exit 137"}).write(folder)
    ingest_sweep(tmp_path / SWEEP, tmp_path / "store")
    trial = read_table(tmp_path / "store", "trials").iloc[0]
    assert (trial["valid"], trial["invalid_reasons"], trial["failure"]) == (False, "failed", "client_exit 137")
    assert verdicts(tmp_path / "store", [])[0].verdict == "unknown"


def test_altered_raw_file_gives_no_number(raw, tmp_path):
    path = shutil.copytree(raw, tmp_path / "raw") / SWEEP / "u01000.r01/clients/client1/interactions.jtl.csv.zst"
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(bytes(content))
    done = called("ingest", "--raw", tmp_path / "raw", "--store", tmp_path / "store")
    assert done.returncode == 1
    assert "interactions.jtl.csv.zst (SHA-256 differs)" in done.stderr
    trials = read_table(tmp_path / "store", "trials").set_index("trial")
    assert trials["valid"].tolist() == [True, False]
    assert trials.loc["u01000.r01", "invalid_reasons"] == "files"
    assert pd.isna(trials.loc["u01000.r01", "throughput_per_s"])


def test_t33_doubled_records_are_refused(tmp_path):
    folder = write_trial(tmp_path / "raw", Spec(300, TRUTH, seal=False, **SHORT))
    path = folder / "nodes/db1/mysql_status.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines + lines[10:12]) + "\n")
    done = called("ingest", "--raw", tmp_path / "raw", "--store", tmp_path / "store")
    assert done.returncode == 1
    assert "mysql_status.csv" in done.stderr
    assert not read_table(tmp_path / "store", "trials")["valid"].iloc[0]


def test_torn_parquet_is_rebuilt(raw, made, tmp_path):
    store = shutil.copytree(made / "store", tmp_path / "store")
    path = store / "samples" / f"{SWEEP}.parquet"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(DataError, match="rebuild"):
        read_table(store, "samples")
    assert not ingest_sweep(raw / SWEEP, store).unchanged
    assert len(read_table(store, "samples"))


def test_unknown_sweep_names_what_is_there(raw, store):
    with pytest.raises(DataError, match=SWEEP):
        sweep_folders(raw, ["no-such"])
    with pytest.raises(DataError, match=SWEEP):
        verdicts(store, ["no-such"])


def test_sql_sees_the_store_and_nothing_else(store):
    frame = query.run(store, "SELECT trial, count(*) AS n FROM interactions GROUP BY trial ORDER BY trial")
    assert frame["trial"].tolist() == ["u00300.r01", "u01000.r01"]
    with pytest.raises(DataError, match="SQL"):
        query.run(store, "SELECT * FROM read_text('/etc/hostname')")
    with pytest.raises(DataError, match="SQL: Binder Error"):
        query.run(store, "SELECT nothing FROM trials")


@pytest.mark.parametrize("what", ["COPY trials TO '{}/x.csv'", "ATTACH '{}/x.db'", "SELECT 1; DROP VIEW trials"])
def test_sql_writes_nothing(store, what):
    before = sorted(store.rglob("*"))
    with pytest.raises(DataError, match="is not allowed, the store is read only"):
        query.run(store, what.format(store))
    assert sorted(store.rglob("*")) == before


def test_sql_as_csv_and_json(store):
    query_text = "SELECT '=1+1' AS formula, trial FROM trials ORDER BY trial LIMIT 1"
    assert json.loads(called("sql", query_text, "--store", store, "--json").stdout) == [
        {"formula": "=1+1", "trial": "u00300.r01"}
    ]
    assert called("sql", query_text, "--store", store, "--csv").stdout == "formula,trial\n'=1+1,u00300.r01\n"
    assert called("sql", "SELECT 1 WHERE false", "--store", store).stdout == "no rows\n"
    wrong = called("sql", "DROP TABLE trials", "--store", store)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("error: SQL: ")


def test_a_store_of_before_a_column_was_added_is_read_with_nulls(store, tmp_path):
    """As a sweep of last month: the schema only grows within a version."""
    path = tmp_path / "nodes" / f"{SWEEP}.parquet"
    path.parent.mkdir()
    (tmp_path / "trials").mkdir()
    shutil.copy(store / "trials" / path.name, tmp_path / "trials")
    old = pq.read_table(store / "nodes" / path.name).drop_columns(["disk_bytes_s", "role"])
    pq.write_table(old, path)
    frame = read_table(tmp_path, "nodes", SWEEP)
    assert set(frame.columns) == set(TABLES["nodes"].names)
    assert frame[["disk_bytes_s", "role"]].isna().all(axis=None)


# ---- import --------------------------------------------------------------------------------------------------------


def exported(store: Path, folder: Path) -> Path:
    """A store as the three files that another system would bring."""
    folder.mkdir()
    names = [
        "sweep",
        "trial",
        "topology",
        "users",
        "throughput_per_s",
        "response_time_mean_ms",
        "run_start_s",
        "run_end_s",
    ]
    trials = read_table(store, "trials")
    trials[names].assign(users=trials["users_real"], color="red").to_csv(folder / "trials.csv", index=False)
    samples = read_table(store, "samples")
    kept = samples[(samples["metric"] == "utilization_pct") & samples["source"].isin(["cgroup", "host_stat"])]
    names = ["sweep", "trial", "t_s", "node", "tier", "resource", "metric", "value"]
    kept[names].to_csv(folder / "samples.csv", index=False)
    return folder


def test_import_gives_the_same_verdict(made, store, tmp_path):
    notices = import_folder(made / "csv", tmp_path / "store")
    assert "trials.csv: ignored column color" in notices
    theirs, ours = verdicts(tmp_path / "store", [])[0], verdicts(store, [])[0]
    assert theirs.verdict == ours.verdict == "single"
    assert [(b.tier, b.resource) for b in theirs.bottlenecks] == [(b.tier, b.resource) for b in ours.bottlenecks]


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("trials.csv", lambda t: t.replace("users,", "people,", 1), "trials.csv:1: column 'users' is missing"),
        ("trials.csv", lambda t: t.replace("1/1/1/1M,30,", "1/1/1/1M,many,", 1), "trials.csv:2: users is 'many'"),
        ("samples.csv", lambda t: t.replace("u01000.r01", "u09999.r01", 1), "'u09999.r01' of .* is not in trials.csv"),
        ("samples.csv", lambda t: t + t.splitlines()[-1] + "\n", "samples.csv:.* is repeated"),
    ],
)
def test_import_refuses_bad_files(made, tmp_path, file, change, message):
    folder = shutil.copytree(made / "csv", tmp_path / "csv")
    path = folder / file
    path.write_text(change(path.read_text()))
    with pytest.raises(DataError, match=message):
        import_folder(folder, tmp_path / "store")
    assert not (tmp_path / "store").exists()


# ---- commands ------------------------------------------------------------------------------------------------------


def test_verdict_as_json_and_text(store):
    document = json.loads(called("verdict", store, "--json").stdout)
    assert [s["sweep"] for s in document["sweeps"]] == [SWEEP]
    assert document["sweeps"][0]["verdict"] == "single"
    text = called("verdict", store).stdout
    assert "single db cpu" in text
    assert "maximum throughput" in text


def test_demands_of_a_sweep(store):
    rows = {row["node"]: row for row in json.loads(called("demands", SWEEP, "--store", store, "--json").stdout)}
    assert rows["app1"]["sweep"] == SWEEP
    assert rows["app1"]["demand_ms"] > 0
    assert "app1" in called("demands", "--store", store).stdout
    unknown = called("demands", "none", "--store", store)
    assert unknown.returncode == 2
    assert "'none' is not in" in unknown.stderr


def test_validate_says_yes_or_no_with_exit_code_0(raw):
    done = started("validate", raw / SWEEP / "u00300.r01", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["valid"] is True


@pytest.mark.parametrize(
    "arguments",
    [("validate", "nowhere"), ("verdict", "nowhere"), ("ingest", "--raw", "nowhere"), ("verdict", "--frob")],
)
def test_wrong_request_is_exit_code_2(tmp_path, arguments):
    done = (started if arguments[0] == "validate" else called)(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr
    assert "Traceback" not in done.stderr


def test_check_is_exit_code_3_if_an_expectation_does_not_hold(store, tmp_path):
    path = tmp_path / "expected.json"
    expected = {"verdict": "single", "bottleneck": {"tier": "db"}}
    path.write_text(json.dumps({SWEEP: expected}))
    assert called("check", store, path, "--expect", "max_throughput >= 8").returncode == 0
    path.write_text(json.dumps({SWEEP: expected | {"max_throughput_per_s": [8, 12]}}))  # one load lies beyond the knee:
    assert called("check", store, path).returncode == 3  # what is "at least" 10/s may be more than 12
    assert called("check", store, path, "--allow-undecided").returncode == 0
    path.write_text(json.dumps({SWEEP: {"bottleneck": {"tier": "app"}}}))
    done = started("check", store, path)
    assert done.returncode == 3
    assert "bottleneck" in done.stdout
    path.write_text(json.dumps({SWEEP: {"colour": "red"}}))
    assert called("check", store, path).returncode == 2


def test_help_is_instant():
    """CPU time, since the machine may be busy: nothing heavy is imported."""
    code = "import sys, ntier_analysis.cli; sys.exit(any(m in sys.modules for m in ('pandas', 'scipy', 'pyarrow')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    start = os.times()
    assert started("--help").returncode == 0
    end = os.times()
    assert end.children_user + end.children_system - start.children_user - start.children_system < 3


def test_rooms_keep_to_themselves():
    """What each part may import (analysis/pyproject.toml)."""
    folder = Path(__file__).parents[2]
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [program, "--config", folder / "pyproject.toml", "--no-cache"],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_store_of_no_sweep(tmp_path):
    with pytest.raises(DataError, match="not a store"):
        sweeps(tmp_path)
    shutil.rmtree(tmp_path)


def test_a_column_that_came_later_is_empty(tmp_path):
    """Stores of earlier versions stay readable."""
    frame = pd.DataFrame({"sweep": ["s"], "trial": ["t"], "node": ["db1"], "tier": ["db"], "cpu_cores": [0.2]})
    path = write_table(tmp_path, "nodes", "s", frame)
    pq.write_table(pq.read_table(path).drop_columns(["disk_bytes_s", "role"]), path)
    read = read_table(tmp_path, "nodes", "s")
    assert set(read.columns) == set(TABLES["nodes"].names)
    assert read["disk_bytes_s"].isna().all()
    assert read["role"].isna().all()


def test_where_users_are_not_scaled_no_figure_is_nominal(raw, tmp_path):
    """A system whose users are as given, on nodes of a tenth: a knee of 105 users is no knee of 1,050."""
    shutil.copytree(raw, tmp_path / "raw")
    for file in sorted((tmp_path / "raw").glob("*/*/manifest.json")):
        m = Manifest.read(file.parent)
        system = implied.system(m.users_real).model_copy(update={"scaled": False})
        m.model_copy(update={"users": m.users_real, "system": system}).write(file.parent)
    ingest_sweep(tmp_path / "raw" / SWEEP, tmp_path / "store")
    trials = read_table(tmp_path / "store", "trials", SWEEP)
    assert list(trials["scale"]) == [1.0, 1.0]
    assert list(trials["users"]) == list(trials["users_real"]) == [30, 100]


# ---- a store of many sweeps ----------------------------------------------------------------------------------------

OTHERS = [f"{n}-{n}-1-1M.browse_only.shardingsphere" for n in (2, 3, 4)]
"""Topologies that are no witnesses of SWEEP: they differ from it in two tiers."""


def add_others(store, many):
    for table in TABLES:
        (many / table).mkdir(parents=True)
        frame = read_table(store, table, SWEEP)
        shutil.copy(store / table / f"{SWEEP}.parquet", many / table)
        for name in OTHERS:
            renamed = {"sweep": name, "topology": name.split(".")[0].replace("-", "/")}
            write_table(many, table, name, frame.assign(**{k: v for k, v in renamed.items() if k in frame}))


@pytest.fixture
def many(made, tmp_path):
    """SWEEP and three others."""
    return shutil.copytree(made / "many", tmp_path / "many")


def test_the_verdict_of_one_sweep_reads_one_small_table_of_the_others(many, monkeypatch):
    opened = []
    checked = tables.check_table
    monkeypatch.setattr(tables, "check_table", lambda path: (opened.append(path), checked(path)))
    for table in set(TABLES) - {"trials"}:
        for name in OTHERS:
            (many / table / f"{name}.parquet").write_text("torn: who reads it fails")
    (judged,) = verdicts(many, [SWEEP])
    assert judged.verdict == "single"
    own, others = ([p.parent.name for p in opened if (p.stem == SWEEP) is mine] for mine in (True, False))
    assert set(own) == {"trials", "verdicts"}
    assert others == ["trials"] * 3, "their topologies say whether they are witnesses"


def test_writing_a_sweep_leaves_the_files_of_the_others(many, raw):
    before = {p: p.stat().st_mtime_ns for p in many.rglob("*.parquet") if p.stem != SWEEP}
    assert len(before) == 3 * len(TABLES)
    ingest_sweep(raw / SWEEP, many, force=True)
    assert {p: p.stat().st_mtime_ns for p in before} == before


def test_info_counts_what_is_there(many):
    done = called("store", "info", "--store", many, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["sweeps"], told["schema_versions"]) == (4, {"2": 4 * len(TABLES)})
    assert {t["table"]: t["rows"] for t in told["tables"]} == {name: len(read_table(many, name)) for name in TABLES}
    files = list(many.rglob("*.parquet"))
    assert told["bytes"] == sum(p.stat().st_size for p in files)
    samples = sum(p.stat().st_size for p in files if p.parent.name == "samples")
    assert told["bytes_per_value"] == samples / len(read_table(many, "samples"))
    said = called("store", "info", "--store", many).stdout
    assert "bytes a value" in said.splitlines()[-1]
    assert said.splitlines()[0] == f"{many}: 4 sweeps"


def test_info_names_a_file_that_cannot_be_read(many):
    (many / "samples" / f"{OTHERS[0]}.parquet").write_text("torn")
    done = called("store", "info", "--store", many, "--json")
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {many}/samples/{OTHERS[0]}.parquet: not readable as Parquet")
    samples = next(t for t in json.loads(done.stdout)["tables"] if t["table"] == "samples")
    assert samples["files"] == 3
    assert called("store", "info", "--store", many / "nothing").returncode == 2


@pytest.mark.parametrize(("version", "age"), [(b"0", "an earlier"), (b"3", "a later")])
def test_a_store_of_another_version_is_refused_and_made_anew_by_ingest(raw, store, tmp_path, version, age):
    for path in store.rglob("*.parquet"):
        made = pq.read_table(path)
        (tmp_path / path.parent.name).mkdir()
        metadata = made.schema.metadata | {b"ntier_store_schema": version}
        pq.write_table(made.replace_schema_metadata(metadata), tmp_path / path.parent.name / path.name)
    with pytest.raises(DataError, match=rf"trials.*: of {age} version of the store \({version.decode()}, here 2\); ma"):
        verdicts(tmp_path, [SWEEP])
    with pytest.raises(DataError, match=f"samples.*: of {age} version"):
        read_table(tmp_path, "samples")
    with pytest.raises(DataError, match=f"of {age} version"):
        query.run(tmp_path, "SELECT count(*) FROM trials")
    assert not ingest_sweep(raw / SWEEP, tmp_path).unchanged
    for name in TABLES:
        pd.testing.assert_frame_equal(read_table(tmp_path, name), read_table(store, name))
