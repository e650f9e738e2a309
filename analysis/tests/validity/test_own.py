"""Checks that a system brings along, on a trial whose counters are known: 3 statements for each interaction."""

import shutil

import pytest
from ntier_analysis.contracts import Manifest, Outcome, implied
from ntier_analysis.contracts.system import OwnCheck, System
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.registry import validate
from pydantic import ValidationError
from synthetic import Spec, Truth, write_trial


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    truth = Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.0012})
    return write_trial(tmp_path_factory.mktemp("raw"), Spec(600, truth, phases=(20.0, 40.0, 5.0), seal=False))


def judged(written, tmp_path, expect, **more):
    folder = shutil.copytree(written, tmp_path / "trial")
    check = OwnCheck(title="Statements", expect=expect, **more)
    system = implied.system(600).model_copy(update={"checks_own": {"statements": check}})
    Manifest.read(folder).model_copy(update={"system": system}).write(folder)
    found = validate(RawTrial(folder))
    return found, next(c for c in found.checks if c.id == "S.statements")


@pytest.mark.parametrize(
    ("expect", "outcome"),
    [
        ("per_interaction(db questions_per_s) == 3", Outcome.PASS),
        ("per_interaction(db questions_per_s) == 4", Outcome.FAIL),
        ("per_interaction(middleware statements_per_s) >= 2.9", Outcome.PASS),
        ("total(db innodb_row_lock_time_per_s) == 0", Outcome.PASS),
        ("total(db questions_per_s) <= 100", Outcome.FAIL),
        ("highest(db connections) <= 30", Outcome.PASS),
        ("highest(db connections) < 30", Outcome.FAIL),
        ("lowest(db connections) > 29", Outcome.PASS),
    ],
)
def test_counters_are_judged_by_what_the_system_says(written, tmp_path, expect, outcome):
    found, check = judged(written, tmp_path, expect)
    assert check.outcome is outcome, check
    assert found.valid == (outcome is Outcome.PASS), "a required check decides"
    assert found.reasons == ([] if found.valid else ["statements"])


def test_a_check_that_is_not_required_warns(written, tmp_path):
    found, check = judged(written, tmp_path, "total(db questions_per_s) <= 100", required=False)
    assert (check.outcome, check.reason, found.valid) == (Outcome.FAIL, "statements", True)


def test_what_nobody_counts_is_undecidable_and_says_what_there_is(written, tmp_path):
    found, check = judged(written, tmp_path, "total(db selects_per_s) == 0")
    assert check.outcome is Outcome.UNDECIDABLE
    assert not found.valid
    assert check.detail.startswith("selects_per_s was not collected on db1; collected were ")
    assert "questions_per_s" in check.detail


def test_a_metric_that_means_several_things_is_not_guessed(written, tmp_path):
    _, check = judged(written, tmp_path, "highest(web utilization_pct) <= 100")
    assert check.outcome is Outcome.UNDECIDABLE
    assert "cpu of cgroup_cpu" in check.detail
    assert "pool of apache_status" in check.detail


@pytest.mark.parametrize(
    ("expect", "says"),
    [
        ("deadlocks == 0", "expected FUNCTION"),
        ("mean(db connections) == 0", "functions are total, per_interaction, highest, lowest"),
        ("total(db connections) == 0", "connections does not end with _per_s"),
        ("total(db questions_per_s) == 1.2.3", "expected FUNCTION"),
    ],
)
def test_what_cannot_be_read_is_refused(expect, says):
    with pytest.raises(ValidationError, match=says):
        OwnCheck(title="x", expect=expect)


def test_its_tier_must_be_one_of_the_system():
    own = {"x": {"title": "x", "expect": "total(cache a_per_s) == 0"}}
    told = implied.system(600).model_dump() | {"checks_own": own}
    with pytest.raises(ValidationError, match=r"checks_own\.x: tier 'cache' is none of web"):
        System.model_validate(told)
