"""O5: nodes that are not used, splits that are not the policy's, counters that disagree."""

from pathlib import Path

import pandas as pd
import pytest
from checked import Checks
from ntier_analysis.contracts import Manifest, Outcome
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.registry import validate
from replicas import spread
from synthetic import Spec, Truth, write_trial

HONEST = Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.0012})
SPEC = Spec(600, HONEST, phases=(20.0, 40.0, 5.0), seal=False)
USED = ("O5", "O5.split", "O5.counters")
LEAST = {"policy": "least_pending"}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return write_trial(tmp_path_factory.mktemp("raw"), SPEC)


@pytest.fixture
def folder(original, tmp_path) -> Path:
    import shutil

    return Path(shutil.copytree(original, tmp_path / "trial"))


def checks(folder: Path):
    validity = validate(RawTrial(folder))
    return validity, {c.id: c for c in validity.checks}


def test_equal_shares_of_a_policy_that_promises_them_are_valid(folder):
    spread(folder, [50.0, 51.0])
    validity, by_id = checks(folder)
    assert validity.valid, validity.reasons
    assert by_id["O5.split"].value == pytest.approx(0.5, abs=0.05)
    assert by_id["O5.split"].n == pytest.approx(40 * 101, abs=101)


def test_t24_a_pinned_connection_is_found(folder):
    """Every statement goes to db1 although the policy is round robin."""
    spread(folder, [100.0, 0.0])
    by_id = Checks(folder)
    assert "topology_not_used" in by_id.invalidate(*USED)
    assert by_id["O5"].detail.startswith("idle: db2; ")
    assert by_id["O5.split"].outcome is Outcome.FAIL


@pytest.mark.parametrize("rate", [0.2, 100.0])
def test_t24_a_replica_that_the_middleware_does_not_know_is_found_at_any_load(folder, rate):
    spread(folder, [rate, 0.0], listed=1, **LEAST)
    by_id = Checks(folder)
    assert "topology_not_used" in by_id.invalidate(*USED)
    assert "not in the middleware's list" in by_id["O5"].detail


def test_t24_two_names_for_one_database_are_found_by_the_databases_own_counters(folder):
    spread(folder, [50.0, 50.0], own=[100.0, 0.0])
    by_id = Checks(folder)
    assert {"topology_not_used", "counters_disagree"} <= set(by_id.invalidate(*USED))
    assert by_id["O5"].detail.startswith("idle: db2; ")
    assert by_id["O5.split"].outcome is Outcome.PASS  # the middleware alone sees nothing wrong


def test_least_pending_may_leave_the_second_replica_idle_while_the_first_is_never_found_busy(folder):
    spread(folder, [5.0, 0.0], busy_s=[0.0, 0.0], **LEAST)
    validity, by_id = checks(folder)
    assert validity.valid, validity.reasons
    assert (by_id["O5"].outcome, by_id["O5"].required) == (Outcome.UNDECIDABLE, False)
    assert "db2" in by_id["O5"].detail


def test_least_pending_must_use_the_second_replica_once_the_first_was_found_busy(folder):
    """Half of 2,000 reads found db1 busy; at least 700 of them (lower end of Wilson's interval at 40 samples)."""
    spread(folder, [50.0, 0.0], busy_s=[5.0, 0.0], **LEAST)
    by_id = Checks(folder)
    assert "topology_not_used" in by_id.invalidate(*USED)
    assert 600 < int(by_id["O5"].detail.partition("at least ")[2].split()[0]) < 1000


def test_the_third_replica_is_due_only_when_both_before_it_are_busy(folder):
    spread(folder, [50.0, 20.0, 0.0], busy_s=[9.0, 0.0, 0.0], **LEAST)
    validity, by_id = checks(folder)
    assert validity.valid, validity.reasons
    assert "db3" in by_id["O5"].detail
    assert by_id["O5.split"].outcome is Outcome.PASS


def test_tie_at_random_promises_every_replica_its_part(folder):
    spread(folder, [50.0, 0.0], busy_s=[0.0, 0.0], policy="least_pending", tie="random")
    assert "topology_not_used" in Checks(folder).invalidate(*USED)


@pytest.mark.parametrize(
    ("rates", "policy", "outcome"),
    [
        ([60.0, 40.0], "random", "fail"),
        ([60.0, 40.0], "weighted_random", "fail"),
        ([51.5, 48.5], "random", "pass"),
        ([0.7, 0.5], "random", "undecidable"),
    ],
)
def test_a_split_off_the_equal_shares(folder, rates, policy, outcome):
    """10 points at 4,000 reads; 1.5 points; 8 points at 50 reads, whose standard error is 7."""
    spread(folder, rates, policy=policy)
    by_id = Checks(folder)
    assert by_id["O5.split"].outcome.value == outcome
    assert ("split_off_policy" in by_id.invalidate(*USED)) == (outcome == "fail")
    assert "topology_not_used" not in by_id.invalidate(*USED)


def test_statements_that_did_not_come_through_the_middleware_are_found(folder):
    spread(folder, [50.0, 50.0], own=[50.0, 60.0])
    by_id = Checks(folder)
    assert "counters_disagree" in by_id.invalidate(*USED)
    assert by_id["O5.counters"].detail.startswith("db2: ")


def test_a_burst_at_the_end_of_the_run_may_be_inside_for_one_counter_only(folder):
    """100 statements in the last second of the run, which the database's counter shows after its end."""
    spread(folder, [10.0, 10.0])
    add(folder / "nodes/middleware1/middleware_status.csv", "executed_total", 61)
    add(folder / "nodes/db1/mysql_status.csv", "Com_select", 62)
    assert "counters_disagree" not in Checks(folder).invalidate(*USED)


def test_a_burst_in_the_middle_of_the_run_must_be_inside_for_both_counters(folder):
    spread(folder, [10.0, 10.0])
    add(folder / "nodes/middleware1/middleware_status.csv", "executed_total", 40)
    assert "counters_disagree" in Checks(folder).invalidate(*USED)


def test_a_late_reading_does_not_change_the_count(folder):
    """Rates of 28 and 238 statements/s in 1.79 and 0.21 s: their plain mean would count 166 too many."""
    spread(folder, [50.0, 50.0])
    file = folder / "nodes/db1/mysql_status.csv"
    table = pd.read_csv(file)
    table.loc[table.index == 40, "t_s"] += 0.79
    table.to_csv(file, index=False)
    assert "counters_disagree" not in Checks(folder).invalidate(*USED)


def add(file: Path, column: str, second: int) -> None:
    """100 more at db1 from this second of the file on."""
    table = pd.read_csv(file)
    later = table["t_s"] - table["t_s"].min() >= second
    table.loc[later & (table.get("replica", "db1") == "db1"), column] += 100
    table.to_csv(file, index=False)


def test_without_the_middlewares_counters_the_databases_own_tell(folder):
    spread(folder, [50.0, 0.0])
    (folder / "nodes/middleware1/middleware_status.csv").unlink()
    manifest = Manifest.read(folder)
    collectors = {n: [c for c in names if c != "middleware_status"] for n, names in manifest.collectors.items()}
    manifest.model_copy(update={"collectors": collectors}).write(folder)
    by_id = Checks(folder)
    assert "topology_not_used" in by_id.invalidate(*USED)
    assert by_id["O5.counters"].outcome is Outcome.UNDECIDABLE


def test_an_app_node_without_a_request_is_found(folder):
    manifest = Manifest.read(folder)
    app = next(n for n in manifest.nodes if n.name == "app1")
    second = app.model_copy(update={"name": "app2", "index": 2})
    manifest.model_copy(update={"nodes": [*manifest.nodes, second]}).write(folder)
    by_id = Checks(folder)
    assert by_id["O5"].outcome is Outcome.FAIL
    assert by_id["O5"].detail.startswith("idle: app2; ")
