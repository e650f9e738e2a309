"""Each check fails for its own fault, and none fails an honest trial."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import zstandard
from checked import Checks
from ntier_analysis.contracts import Manifest, Outcome
from ntier_analysis.contracts.checks import CHECK_NAMES
from ntier_analysis.errors import DataError
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.generator import errors
from ntier_analysis.validity.registry import check, registered, validate
from ntier_analysis.validity.sweep import check_names
from synthetic import Spec, Truth, entry, write_trial

HONEST = Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.0012})
SPEC = Spec(600, HONEST, phases=(20.0, 40.0, 5.0))


def checks(folder: Path):
    """All of them, for what they say together."""
    validity = validate(RawTrial(folder))
    return validity, {c.id: c for c in validity.checks}


def rewrite(path: Path, change) -> None:
    """Applies `change(text) -> text` to a raw file, compressed or not."""
    packed = path.suffix == ".zst"
    content = path.read_bytes()
    text = (zstandard.ZstdDecompressor().decompress(content) if packed else content).decode()
    data = change(text).encode()
    path.write_bytes(zstandard.ZstdCompressor().compress(data) if packed else data)


def change_manifest(folder: Path, **changes) -> None:
    manifest = Manifest.read(folder)
    manifest.model_copy(update=changes).write(folder)


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    return write_trial(tmp_path_factory.mktemp("raw"), SPEC)


def kept_awake(text: str) -> str:
    """A file of the host, as it is when processes compute wherever it would be idle."""
    header, *rows = text.splitlines()
    lines = [f"{header},awake_ns"]
    for row in rows:
        t_s, user, nice, system, idle, *others = row.split(",")
        lines.append(",".join([t_s, user, str(int(nice) + int(idle)), system, "0", *others, f"{1e7 * int(idle):.0f}"]))
    return "\n".join(lines) + "\n"


def test_a_host_whose_cpus_are_kept_awake_is_no_busier(tmp_path):
    """And its pressure, which counts those that keep them awake, says nothing even where no node has a quota."""
    folder = write_trial(tmp_path, SPEC)
    nodes = [node.model_copy(update={"cpu_cores": None}) for node in Manifest.read(folder).nodes]
    change_manifest(folder, nodes=nodes)
    before = Checks(folder)
    busy = before["H1"].value, before["H1.mean"].value
    assert before["H2.pressure"].outcome is Outcome.PASS
    rewrite(folder / "nodes/host/host_stat.csv.zst", kept_awake)
    after = Checks(folder)
    assert (after["H1"].value, after["H1.mean"].value) == pytest.approx(busy)
    assert after["H2"].outcome is Outcome.PASS
    assert after["H2.pressure"].outcome is Outcome.UNDECIDABLE
    assert "what keeps the CPUs awake" in after["H2.pressure"].detail


def test_a_run_too_short_for_a_drift_shows_none(tmp_path):
    folder = write_trial(tmp_path, SPEC)
    run = next(p for p in Manifest.read(folder).phases if p.name == "run")
    short = run.model_copy(update={"end_s": run.start_s + 5})
    change_manifest(folder, phases=[short if p.name == "run" else p for p in Manifest.read(folder).phases])
    found = Checks(folder)["S1"]
    assert (found.outcome, found.value, found.detail) == (Outcome.UNDECIDABLE, None, "the run is too short to tell")


def test_honest_trial_is_valid(honest):
    validity, by_id = checks(honest)
    assert validity.valid, validity.reasons
    assert validity.reasons == []
    starred = "G1 G2 G3 G3.thread G3.gc G4 E1 E2 H1 H2 H3 H4 H5 C1 C2 C3 C4 C5 O5 P1 P2"
    assert set(starred.split()) <= {c.id for c in validity.checks if c.required}
    assert {"M2", "S1", "S2", "G5"} <= {c.id for c in validity.checks if not c.required}
    assert abs(by_id["G1"].value) < 0.1
    assert by_id["H2.pressure"].outcome is Outcome.UNDECIDABLE


@pytest.mark.parametrize(
    ("truth", "id_", "reason"),
    [
        (replace(HONEST, error_share=0.2), "E1", "errors"),
        (replace(HONEST, content_wrong=1), "E2", "wrong_content"),
        (replace(HONEST, think_overshoot_ms=100.0), "G2", "generator_lag"),
        (replace(HONEST, busiest_thread_pct=83.0), "G3.thread", "generator_saturated"),
        (replace(HONEST, gc_pauses=[(30.0, 250.0)]), "G3.gc", "generator_saturated"),
        (replace(HONEST, gc_pauses=[(20.0 + i, 15.0) for i in range(1, 40)]), "G3.gc", "generator_saturated"),
        (replace(HONEST, quota_cores={"db1": 0.2}), "H4", "quota_differs"),
        (replace(HONEST, quota_cores={"db1": None}), "H4", "quota_differs"),
        (replace(HONEST, used_factor={"db1": 1.1}, hogs={"db1": [(-2.0, 90.0)]}), "H3", "quota_not_kept"),
        (replace(HONEST, used_factor={"db1": 0.9}, hogs={"db1": [(-2.0, 90.0)]}), "H3", "quota_not_kept"),
        (replace(HONEST, steal_pct=3.0), "H2", "host_robbed"),
        (replace(HONEST, host_busy_pct=95.0), "H1", "host_saturated"),
        (replace(HONEST, sample_s=0.2), "C1", "collector_gap"),
        (replace(HONEST, sample_s=0.2), "C2", "collector_interval"),
    ],
)
def test_fault_is_found(tmp_path, truth, id_, reason):
    by_id = Checks(write_trial(tmp_path, replace(SPEC, truth=truth)))
    assert by_id[id_].outcome is Outcome.FAIL, by_id[id_]
    assert by_id.invalidate(id_) == [reason]


def test_lines_of_one_reading_that_are_stamped_one_after_the_other_are_one_reading(tmp_path):
    """Half of the intervals between stamps are microseconds then, and their median was one of these."""
    folder = write_trial(tmp_path, SPEC)

    def another_replica(text: str) -> str:
        header, *lines = text.splitlines()
        rows = [line.split(",") for line in lines]
        seconds = [",".join([f"{float(t) + 40e-6:.6f}", "db2", *values]) for t, _, *values in rows]
        return "\n".join([header, *(line for both in zip(lines, seconds, strict=True) for line in both)]) + "\n"

    rewrite(folder / "nodes/middleware1/middleware_status.csv", another_replica)
    by_id = Checks(folder)
    assert [by_id[id_].outcome for id_ in ("C1", "C1.gap", "C2")] == [Outcome.PASS] * 3, by_id["C2"]


def test_machine_whose_speed_changes_is_noticed_and_the_trial_counts(tmp_path):
    validity, by_id = checks(write_trial(tmp_path / "slowed", replace(SPEC, truth=replace(HONEST, slowed=1.5))))
    assert by_id["H6"].outcome is Outcome.FAIL
    assert by_id["H6"].value == pytest.approx(50.0)
    assert "loop 300 to 450 us" in by_id["H6"].detail
    assert validity.valid
    assert Checks(write_trial(tmp_path / "steady", SPEC))["H6"].outcome is Outcome.PASS


def test_t1_generator_that_lags_is_seen_by_the_ledger(tmp_path):
    """Users sleep 300 ms longer than they say: 4 % of the user-seconds are nobody's."""
    folder = write_trial(tmp_path, replace(SPEC, truth=replace(HONEST, think_overshoot_ms=300.0), seal=False))

    def forget(text):
        lines = text.splitlines()
        rows = [line.split(",") for line in lines[1:]]
        honest = [",".join([*r[:4], f"{min(float(r[3]), float(r[4])):.3f}"]) for r in rows]
        return "\n".join([lines[0], *honest]) + "\n"

    rewrite(folder / "clients/client1/thinks.csv.zst", forget)
    by_id = Checks(folder)
    assert by_id["G1"].outcome is Outcome.FAIL
    assert 3 < by_id["G1"].value < 5
    assert by_id["G2"].outcome is Outcome.PASS  # the generator's own records look clean
    assert by_id.invalidate("G1") == ["generator_lag"]


def test_t1_saturated_client(tmp_path):
    folder = write_trial(tmp_path, replace(SPEC, seal=False, truth=replace(HONEST, hogs={"client1": [(-2.0, 90.0)]})))
    manifest = Manifest.read(folder)
    nodes = [n.model_copy(update={"cpu_cores": 0.3}) if n.name == "client1" else n for n in manifest.nodes]
    change_manifest(folder, nodes=nodes)
    by_id = Checks(folder)
    assert by_id["G3"].outcome is Outcome.FAIL
    assert by_id.invalidate("G3") == ["generator_saturated"]


def test_t1_generator_of_one_thread_on_an_idle_machine(tmp_path):
    folder = write_trial(tmp_path, replace(SPEC, truth=replace(HONEST, busiest_thread_pct=83.0), seal=False))
    by_id = Checks(folder)
    assert by_id["G3"].outcome is Outcome.PASS  # its machine has room
    assert by_id["G3.thread"].detail == "client1: user-1 used 83 % of one core; the generator used 0.30 cores in all"
    (folder / "clients/client1/driver_cpu.csv").unlink()  # of a trial that is older than this file
    validity, by_id = checks(folder)
    assert validity.valid, validity.reasons
    assert by_id["G3.thread"].outcome is Outcome.UNDECIDABLE
    assert not by_id["G3.thread"].required


def test_t2_fast_error_pages(tmp_path):
    """5 % of the answers are errors of 1 ms: throughput looks fine, the trial does not count."""
    validity, by_id = checks(write_trial(tmp_path, replace(SPEC, truth=replace(HONEST, error_share=0.05))))
    assert by_id["E1"].outcome is Outcome.FAIL
    assert by_id["E1"].value == pytest.approx(5, abs=2.5)
    assert not validity.valid
    assert "errors" in validity.reasons


@pytest.mark.parametrize(
    ("answered_s", "waiting", "outcome"),
    [
        (100.0, 60, Outcome.FAIL),
        (240.0, 60, Outcome.PASS),  # slow, not hung
        (100.0, 0, Outcome.PASS),  # nobody asked
        (100.0, np.nan, Outcome.PASS),  # the driver does not know
    ],
)
def test_who_waits_for_a_system_that_hangs_has_no_answer(answered_s, waiting, outcome):
    """Users give nothing up, so that no time-out would tell."""
    answers = pd.DataFrame({"t_s": np.linspace(1, answered_s, 500), "ok": True, "code": "200"})
    beats = pd.DataFrame({"client": "client1", "t_s": [249.0, 255.0], "in_flight": [waiting, 0]})
    found = errors(SimpleNamespace(run=(0.0, 250.0), run_interactions=answers, progress=beats))
    assert found.outcome is outcome
    assert ("60 of 560 failed (60 x still waiting" in found.detail) == (outcome is Outcome.FAIL)


def test_one_error_in_many_is_no_fault(tmp_path):
    validity, by_id = checks(write_trial(tmp_path, replace(SPEC, truth=replace(HONEST, error_share=0.003))))
    assert by_id["E1"].outcome is Outcome.PASS
    assert validity.valid


def test_missing_user(tmp_path):
    folder = write_trial(tmp_path, replace(SPEC, seal=False))
    rewrite(folder / "clients/client1/users.csv", lambda t: "\n".join(t.splitlines()[:-1]) + "\n")
    by_id = Checks(folder)
    assert by_id["G4"].outcome is Outcome.FAIL
    assert (by_id["G4"].value, by_id["G4"].limit) == (59, 60)


def test_t21_silent_collector(tmp_path):
    """A collector that stood still for 10 s: a gap, not 10 s of zeros."""
    folder = write_trial(tmp_path, replace(SPEC, seal=False))
    rewrite(folder / "nodes/db1/cgroup_cpu.csv.zst", lambda t: "\n".join(drop(t.splitlines(), 400, 500)) + "\n")
    by_id = Checks(folder)
    assert by_id["C1"].outcome is Outcome.FAIL
    assert by_id["C1.gap"].outcome is Outcome.FAIL
    assert "cgroup_cpu of db1" in by_id["C1.gap"].detail
    assert by_id.invalidate("C1") == ["collector_gap"]


def drop(lines, first, last):
    return lines[:first] + lines[last:]


def test_collector_that_died(tmp_path):
    folder = write_trial(tmp_path, replace(SPEC, seal=False))
    end = {"collectors": {"mysql_status": {"state": "died", "exit_code": 137}}}
    (folder / "nodes/db1/end.json").write_text(json.dumps(end))
    by_id = Checks(folder)
    assert by_id["C1.end"].outcome is Outcome.FAIL
    assert "mysql_status of db1 (exit code 137)" in by_id["C1.end"].detail
    assert by_id.invalidate("C1.end")


def test_missing_file_is_undecidable_and_required(tmp_path):
    folder = write_trial(tmp_path, replace(SPEC, seal=False))
    (folder / "nodes/db1/sysstat.json.zst").unlink()
    validity, by_id = checks(folder)
    assert by_id["C1"].outcome is Outcome.UNDECIDABLE
    assert "nodes/db1/sysstat.json: file is missing" in by_id["C1"].detail
    assert by_id["P2"].outcome is Outcome.FAIL
    assert not validity.valid


def test_silent_restart(tmp_path):
    folder = write_trial(tmp_path, replace(SPEC, seal=False))
    path = folder / "nodes/db1/facts_after.json"
    facts = json.loads(path.read_text())
    facts["services"][0] |= {"main_pid": 99, "n_restarts": 1}
    path.write_text(json.dumps(facts))
    by_id = Checks(folder)
    assert by_id["C3"].outcome is Outcome.FAIL
    assert "db1: mysql.service was restarted" in by_id["C3"].detail
    assert by_id.invalidate("C3") == ["restarted"]


@pytest.mark.parametrize(
    ("offset", "trip", "outcome"),
    [
        (0.001, 0.002, "pass"),
        (49.0, 0.002, "fail"),
        (0.06, 0.002, "fail"),
        (0.06, 0.04, "pass"),
        (0.0, 0.5, "undecidable"),
    ],
)
def test_t12_clock_offset(honest, offset, trip, outcome):
    trial = RawTrial(honest)
    trial.manifest.clock_offsets_s["db1"] = {
        "offset_before": offset, "offset_after": offset, "rtt_before": trip, "rtt_after": trip,
    }  # fmt: skip
    assert (found := Checks(trial)["C4"]).outcome == outcome, found


def test_requests_missing_in_the_web_log(tmp_path):
    folder = write_trial(tmp_path, replace(SPEC, seal=False))
    rewrite(folder / "nodes/web1/logs/access.log.zst", lambda t: "\n".join(drop(t.splitlines(), 150, 200)) + "\n")
    by_id = Checks(folder)
    assert by_id["C5"].outcome is Outcome.FAIL
    assert by_id["C5"].value == 50


def test_altered_file(tmp_path):
    folder = write_trial(tmp_path, SPEC)
    path = folder / "nodes/db1/mysql_status.csv"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    by_id = Checks(folder)
    assert by_id["P2"].outcome is Outcome.FAIL
    assert "mysql_status.csv (SHA-256 differs)" in by_id["P2"].detail


def test_path_outside_the_trial_is_refused(tmp_path):
    folder = write_trial(tmp_path, SPEC)
    outside = tmp_path / "secret"
    outside.write_text("x")
    files = [entry(tmp_path, outside).model_copy(update={"path": "../../secret"})]
    change_manifest(folder, files=files)
    by_id = Checks(folder)
    assert "outside the trial" in by_id["P2"].detail


def test_swapped_mix_is_seen(tmp_path):
    folder = write_trial(tmp_path, replace(SPEC, users=2000, seal=False))
    (folder / "config/browse_only.csv").write_text(
        "from,to,probability\nStoriesOfTheDay,StoriesOfTheDay,0.5\nStoriesOfTheDay,ViewStory,0.5\n"
        "ViewStory,StoriesOfTheDay,1.0\n"
    )
    by_id = Checks(folder)
    assert by_id["M1"].outcome is Outcome.FAIL
    assert abs(by_id["M1"].value) == pytest.approx(33.3, abs=0.5)
    assert by_id["M2"].outcome is Outcome.FAIL


def test_a_trial_on_postgresql_is_valid(tmp_path):
    folder = write_trial(tmp_path, replace(SPEC, seal=False))
    (folder / "nodes/db1/mysql_status.csv").unlink()
    rows = [f"{SPEC.start_s + s:.3f},{27 * s},0,3,24,0" for s in range(-2, 66)]
    header = "t_s,xact_commit,deadlocks,active,connections,lock_waits"
    (folder / "nodes/db1/postgresql_status.csv").write_text("\n".join([header, *rows]) + "\n")
    collectors = Manifest.read(folder).collectors
    names = [c.replace("mysql", "postgresql") for c in collectors["db1"]]
    change_manifest(folder, collectors=collectors | {"db1": names})
    validity, _ = checks(folder)
    assert validity.valid, validity.reasons
    trial = RawTrial(folder)
    assert ("db1", "postgresql_status") in trial.collectors()
    assert "threads_running" in set(trial.samples_of("db1", "postgresql_status")[0]["metric"])


def test_poisson_timer_is_no_exponential_think_time(tmp_path):
    """JMeter's Poisson Random Timer draws 7000 +- 84 ms."""
    folder = write_trial(tmp_path, replace(SPEC, users=4000, seal=False))
    assert Checks(folder)["G5"].outcome is Outcome.PASS
    rng = np.random.default_rng(1)

    def constant(text):
        lines = text.splitlines()
        rows = [line.split(",") for line in lines[1:]]
        return "\n".join([lines[0], *(",".join([*r[:3], str(rng.poisson(7000)), r[4]]) for r in rows)]) + "\n"

    rewrite(folder / "clients/client1/thinks.csv.zst", constant)
    assert Checks(folder)["G5"].outcome is Outcome.FAIL


def test_check_that_throws_does_not_decide(honest, monkeypatch):
    from ntier_analysis.validity import registry

    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))

    @check("X1", "throws", "broken")
    def throws(_trial):
        raise ZeroDivisionError("oops")

    validity, by_id = checks(honest)
    assert by_id["X1"].outcome is Outcome.UNDECIDABLE
    assert "ZeroDivisionError: oops" in by_id["X1"].detail
    assert not validity.valid


def test_manifest_that_is_torn_names_the_file(tmp_path):
    folder = write_trial(tmp_path, SPEC)
    text = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(text[: len(text) // 2])
    with pytest.raises(DataError, match=r"manifest\.json"):
        RawTrial(folder)


def test_every_check_is_documented():
    documentation = (Path(__file__).parents[3] / "docs" / "validity.md").read_text()
    for entry_ in registered():
        assert f"| {entry_.id} |" in documentation, entry_.id


def test_a_client_that_lags_does_not_hide_among_others(honest):
    """A tenth of the thinks is on the second client, 100 ms late each: 10 ms of all, where 35 ms are allowed."""
    assert Checks(honest)["G2"].outcome is Outcome.PASS
    thinks = RawTrial(honest).thinks.copy()
    second = thinks.index % 10 == 0
    thinks.loc[second, "client"] = "client2"
    thinks.loc[second, "actual_ms"] += 100
    late = RawTrial(honest)
    late.thinks = thinks
    lag = Checks(late)["G2"]
    assert (lag.outcome, lag.reason) == (Outcome.FAIL, "generator_lag")
    assert lag.value > 90


def test_the_names_that_the_contract_tells_are_those_of_all_checks():
    assert check_names() == CHECK_NAMES
