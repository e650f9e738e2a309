"""`ntier-analysis check`: expectations hold, do not hold, or cannot be decided."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from ntier_analysis.demo import SWEEP, unpack
from ntier_analysis.errors import DataError
from ntier_analysis.expectation import check
from ntier_analysis.expectation.expressions import evaluate
from ntier_analysis.expectation.quantities import read_facts

PROGRAM = Path(sys.executable).with_name("ntier-analysis")
DEFAULT = SWEEP.replace("1M", "1P")
POSTGRESQL = f"{DEFAULT}.xd86811"


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    return unpack(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def facts(store):
    """Read once: a verdict takes a second."""
    return read_facts(store, [SWEEP, DEFAULT])


def command(*arguments):
    return subprocess.run([PROGRAM, "check", *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [  # measured: 115.7 [112.5, 118.9], knee 4,055, db CPU
        ("max_throughput >= 100", "holds"),
        ("max_throughput >= 115", "undecided"),
        ("max_throughput >= 130", "does not hold"),
        ("max_throughput<=130", "holds"),
        ("max_throughput == 100", "does not hold"),
        ("knee_users > 3500", "holds"),
        ("knee_users > 4050", "undecided"),
        ("verdict == single", "holds"),
        ("verdict == single db cpu", "holds"),
        ("verdict == single app cpu", "does not hold"),
        ("verdict == multi db cpu and app cpu", "does not hold"),
        ("verdict != hidden", "holds"),
        ("saturation(db cpu) >= 0.9", "holds"),
        ("saturation(db cpu) >= 90 %", "holds"),
        ("saturation(app cpu) >= 0.5", "does not hold"),
        ("throughput(5000) >= 100", "holds"),
        ("throughput(5000) >= 120", "undecided"),
        ("p95(1000) <= 2000", "holds"),
        ("p95(8000) <= 2000", "does not hold"),
        ("p99(1000) <= 9999", "holds"),
        ("errors(4000) == 0", "holds"),
        ("invalid_trials == 0", "holds"),
        (f"ratio({POSTGRESQL}, {SWEEP}) within 5 %", "does not hold"),
        (f"ratio({SWEEP}, {SWEEP}) within 5%", "holds"),
        (f"ratio({POSTGRESQL}, {SWEEP}) <= 0.7", "holds"),
        (f"ratio({POSTGRESQL}, {SWEEP}, demand_ms db) >= 1.2", "holds"),
    ],
)
def test_the_interval_decides(store, facts, text, outcome):
    found = evaluate(text, facts[SWEEP], store)
    assert found.outcome == outcome, found.text


def test_a_lower_bound_is_no_upper_bound(store, facts):
    """19 [13, 24] at least: two loads beyond the knee."""
    at_least, at_most = (evaluate(f"max_throughput {t}", facts[DEFAULT], store) for t in (">= 10", "<= 30"))
    assert (at_least.outcome, at_most.outcome) == ("holds", "undecided")
    assert "a lower bound" in at_most.seen


def test_too_few_samples_are_undecided(store, facts):
    found = evaluate("p99(100) <= 99999", facts[DEFAULT], store)
    assert found.outcome == "undecided"
    assert "too few interactions" in found.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_throughput", "expected NAME OPERATOR VALUE"),
        ("speed >= 1", "unknown name 'speed'; allowed are verdict, max_throughput, knee_users"),
        ("max_throughput >= fast", "'fast' is not a number"),
        ("max_throughput(1000) >= 1", "takes no argument"),
        ("p95(1234) <= 1", "needs a load that was measured: 1000, 2000"),
        ("p95 <= 1", "needs a load that was measured"),
        ("saturation(db) >= 1", r"expected saturation\(TIER RESOURCE\)"),
        ("verdict >= single", "a verdict can be == or !="),
        ("verdict == slow", "verdict 'slow'; allowed are none, single"),
        ("max_throughput within 5 %", "operator 'within' needs ratio"),
        (f"ratio({SWEEP}) within 5 %", r"expected ratio\(B, A\)"),
        (f"ratio(x, {SWEEP}) within 5 %", "no sweep 'x'"),
        (f"ratio({SWEEP}, {SWEEP}, colour) within 5 %", "unknown metric 'colour'; allowed are throughput_per_s"),
    ],
)
def test_what_cannot_be_read_is_named(store, facts, text, message):
    with pytest.raises(DataError, match=message):
        evaluate(text, facts[SWEEP], store)


def test_a_file_for_one_sweep_and_for_all(store, tmp_path):
    path = tmp_path / "expected.yml"
    path.write_text(f"all:\n  - verdict == single db cpu\n{SWEEP}:\n  - max_throughput >= 100\n  - knee_users < 5000\n")
    found = check(store, [], path)
    assert len(found) == 3 + 2
    assert {r.outcome for r in found} == {"holds"}
    assert {r.sweep for r in found} == {SWEEP, DEFAULT, POSTGRESQL}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a list", "expected {sweep: "),
        ("a: [unclosed", "not readable as YAML or JSON"),
        ("nosuch: [verdict == none]", "no sweep 'nosuch'"),
        (f"{SWEEP}: [5]", "expectation 5 is not a text"),
        (f"{SWEEP}: {{bottleneck: db}}", "bottleneck is 'db', expected {tier, resource}"),
        ("!!python/object/apply:os.system ['true']", "not readable as YAML or JSON"),
    ],
)
def test_wrong_files_are_refused(store, tmp_path, text, message):
    path = tmp_path / "expected.yml"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        check(store, [], path)


def test_exit_codes(store):
    good, open_, bad = "max_throughput >= 100", "max_throughput >= 115", "max_throughput >= 130"
    one = ("--sweep", SWEEP)
    assert command(store, *one, "--expect", good).returncode == 0
    failed = command(store, *one, "--expect", good, "--expect", bad)
    assert failed.returncode == 3
    assert failed.stderr == "1 expectation not met\n"
    assert "does not hold: " in failed.stdout
    assert command(store, *one, "--expect", open_).returncode == 3
    assert command(store, *one, "--expect", open_, "--allow-undecided").returncode == 0
    assert command(store, *one, "--expect", "nonsense").returncode == 2
    nothing = command(store)
    assert nothing.returncode == 2
    assert "nothing is expected" in nothing.stderr


def test_json(store):
    done = command(store, "--sweep", SWEEP, "--expect", "max_throughput >= 130", "--json")
    document = json.loads(done.stdout)
    assert document["met"] is False
    assert document["expectations"][0]["outcome"] == "does not hold"
