"""`ntier-analysis export`: what other programs get."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import doors
import good_import
import pytest
from ntier_analysis import cli
from ntier_analysis.exporting.document import Export, exported, json_schema
from ntier_analysis.exporting.formats import to_junit, to_openmetrics
from ntier_analysis.importing import import_folder

SCHEMA = Path(__file__).parents[3] / "docs" / "schema" / "export.schema.json"


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    import_folder(good_import.write(folder / "in", good_import.files()), folder / "store")
    return folder / "store"


def call(store: Path, *arguments: object) -> doors.Done:
    return doors.call(cli.main, "export", "s", "--store", store, *arguments)


def test_the_json_is_the_verdict_and_fits_its_schema(store):
    done = call(store, "--json")
    assert done.code == 0, done
    document = json.loads(done.out)
    export = Export.model_validate(document)
    assert (export.verdict, export.bottlenecks[0].nodes, export.bottlenecks[0].resource) == ("single", ["db1"], "cpu")
    assert [t.users for t in export.trials] == [200, 1000, 1400]
    assert export.trials[0].response_time_mean_ms == pytest.approx(5, rel=0.01)
    assert {check.id for check in export.trials[0].checks} >= {"I1", "I3", "I8"}
    assert "whether users were late" in export.trials[0].not_validated


def test_the_published_schema_is_that_of_the_program():
    assert json.loads(SCHEMA.read_text()) == json_schema()


LINE = re.compile(r'[a-z][a-z0-9_]*\{(?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*\} -?[0-9.e+-]+')


def test_openmetrics_is_well_formed_and_says_the_verdict(store):
    lines = call(store, "--openmetrics").out.splitlines()
    assert lines[-1] == "# EOF"
    types = [line.split()[2:] for line in lines if line.startswith("# TYPE")]
    assert {kind for _, kind in types} == {"gauge"}  # node_exporter's textfile collector drops a file with an info
    declared = {name for name, _ in types}
    samples = [line for line in lines if not line.startswith("#")]
    for line in samples:
        assert LINE.fullmatch(line), line
        assert line.partition("{")[0] in declared
    assert any(s.startswith('ntier_verdict_info{sweep="s",') and 'verdict="single"' in s for s in samples)
    (most,) = [s for s in samples if s.startswith("ntier_max_throughput_per_second{")]
    assert float(most.split()[-1]) == pytest.approx(100, rel=0.02)
    assert sum(s.startswith("ntier_trial_throughput_per_second{") for s in samples) == 3


@pytest.fixture(scope="module")
def over_sleep(tmp_path_factory) -> Path:
    """A sweep over another factor than users, at a scale; its last trial failed, so that no check examined it."""
    folder, files = tmp_path_factory.mktemp("sleep"), good_import.files()
    files["trials"] = files["trials"].assign(
        factor="sleep_s", factor_unit="s", factor_value=[2.0, 0.5, 0.1], mix="browse_only", scale=0.5,
        users=[400, 2000, 2800], throughput_low_per_s=[20.0, 90.0, 90.0],
        valid=[True, True, False], invalid_reasons=["", "", "failed"],
    )  # fmt: skip
    import_folder(good_import.write(folder / "in", files), folder / "store")
    return folder / "store"


def test_an_export_says_what_its_numbers_are_of(over_sleep):
    export = Export.model_validate(json.loads(call(over_sleep, "--json").out))
    assert (export.scale, export.mix, export.factor.name, export.factor.unit) == (0.5, "browse_only", "sleep_s", "s")
    assert {t.users: t.throughput_interval for t in export.trials}[400][0] == 20
    samples = call(over_sleep, "--openmetrics").out.splitlines()
    assert 'ntier_scale{sweep="s"} 0.5' in samples
    labels = '{sweep="s",trial="u00200",users="400",factor="sleep_s",factor_unit="s",factor_value="2"}'
    assert f"ntier_trial_throughput_low_per_second{labels} 20" in samples


def test_a_trial_that_failed_is_a_failure_for_junit_though_it_has_no_checks(over_sleep):
    root = ElementTree.fromstring(call(over_sleep, "--junit").out.split("\n", 1)[1])
    cases = {suite.get("name"): suite[0] for suite in root if ".u" in suite.get("name")}
    assert {case.get("name") for case in cases.values()} == {"trial is valid"}
    failed = {name: case.find("failure") for name, case in cases.items() if case.find("failure") is not None}
    assert [*failed] == ["s.u01400"]
    assert failed["s.u01400"].get("message") == "not valid: failed"


def test_odd_characters_are_escaped(store):
    export = exported(store, "s").model_copy(update={"topology": 'a"b\\c\nd\x00'})
    assert r'topology="a\"b\\c\nd' in to_openmetrics(export)
    named = export.model_copy(update={"sweep": "a<&\x00"})
    root = ElementTree.fromstring(to_junit(named, []).split("\n", 1)[1])
    assert root[0].get("name").startswith("a<&?.")


def test_junit_has_a_case_for_each_check_and_expectation(store):
    done = call(store, "--junit", "--expect", "max_throughput >= 90", "--expect", "max_throughput >= 500")
    assert done.code == 0, done
    root = ElementTree.fromstring(done.out.split("\n", 1)[1])
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites)[:2] == ["s.expectations", "s.u00200"]
    mine = suites["s.expectations"]
    assert (mine.get("tests"), mine.get("failures")) == ("2", "1")
    failed = [case.get("name") for case in mine if case.find("failure") is not None]
    assert failed == ["max_throughput >= 500"]
    trial = suites["s.u00200"]
    assert trial.get("failures") == "0"
    assert any(case.get("name").startswith("I3 Users by Little's law") for case in trial)


def test_a_file_is_written_and_named(store, tmp_path):
    done = call(store, "--junit", "--out", tmp_path / "ntier.xml")
    assert (done.code, done.out.strip()) == (0, str(tmp_path / "ntier.xml"))
    ElementTree.parse(tmp_path / "ntier.xml")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "export needs one of --openmetrics, --junit and --json"),
        (("--json", "--junit"), "export needs one of"),
        (("--json", "--expect", "max_throughput >= 1"), "expectations are exported by --junit, not by --json"),
        (("--json", "--out", "/dev/null"), "--out"),
    ],
)
def test_a_wrong_request_is_refused(store, arguments, said):
    doors.refused(call(store, *arguments), said)


def test_an_unknown_sweep_is_refused(store):
    doors.refused(doors.call(cli.main, "export", "x", "--json", "--store", store), "no sweep 'x'", "there are: s")
