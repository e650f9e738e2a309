"""A search as it is stored: the record beside the raw trials -> table `decisions` -> evidence, and the command."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import doors
import pytest
from ntier_analysis import cli
from ntier_analysis.errors import DataError
from ntier_analysis.ingest import decisions, ingest_sweep
from ntier_analysis.places import table_file
from ntier_analysis.statistics.foresight import Spread
from ntier_analysis.store.tables import read_table
from ntier_analysis.verdict.foresight import Foresight
from ntier_analysis.verdict.search import Goal
from ntier_analysis.verdict.store import cores_of_idle, idle_use, searched, verdicts
from ntier_analysis.verdict.tables import search_evidence
from synthetic import Truth, stored_sweep, write_sweep

TRUTH = Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.01})  # 10/s, the knee is at 700 users
GRID = tuple(range(200, 1401, 100))
DECISIONS = [
    {"users": 200, "reason": "low", "why": "a low load"},
    {"users": 1000, "reason": "beyond the knee", "why": "db1 saturates first"},
    {"users": 1200, "reason": "plateau", "why": "another"},
    {"users": 1400, "reason": "plateau", "why": "another"},
    {"users": None, "reason": "precise", "why": "the maximum is known to +-4.0 %"},
]


@pytest.fixture(scope="module")
def folder(simulated):
    made = stored_sweep(TRUTH, [200, 1000, 1200, 1400], validated=True)
    return made, next((made / "raw").iterdir())


def test_the_record_becomes_evidence(folder, tmp_path):
    made = shutil.copytree(folder[0], tmp_path / "made")
    sweep = made / "raw" / folder[1].name
    assert not verdicts(made / "store", [])[0].knee_bracketed, "a grid needs two loads below the knee"
    (sweep / "search.json").write_text(json.dumps({"grid": GRID, "decisions": DECISIONS}))
    assert not ingest_sweep(sweep, made / "store").unchanged
    found = verdicts(made / "store", [])[0]
    assert found.knee_bracketed
    assert not found.at_least
    text = "the loads were searched: 4 instead of the grid's 13 (9 spared); it stopped because the maximum is known"
    assert any(line.startswith(text) for line in found.evidence)
    assert "load 1000: db1 saturates first" in found.evidence
    assert list(read_table(made / "store", "decisions")["step"]) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("chosen", "measured", "says"),
    [
        ([200, 1000], [200, 1000], "2 instead of the grid's 13 (11 spared); it"),
        ([], GRID, "0, beside 13 that come from a grid (200, 300, "),
        ([1350], [200, 1000, 1350], "1, beside 2 that come from a grid (200, 1000), instead of the grid's 13 (10 sp"),
        ([1350], [*GRID, 1350], "1300, 1400); it stopped"),
        ([*GRID[:-1], 1350, 1360], [*GRID[:-1], 1350, 1360], "the loads were searched: 14; it stopped"),
    ],
)  # fmt: skip
def test_loads_that_no_decision_chose_come_from_a_grid(tmp_path, chosen, measured, says):
    made = [{"users": u, "reason": "low", "why": "x"} for u in chosen]
    (tmp_path / "search.json").write_text(json.dumps({"grid": GRID, "decisions": [*made, DECISIONS[-1]]}))
    assert says in search_evidence(decisions(tmp_path), set(measured))[0]


def test_a_grid_is_judged_as_one_although_a_search_has_looked_at_it(tmp_path):
    sweep = write_sweep(tmp_path / "raw", TRUTH, [200, 1000, 1200, 1400], validated=True)
    (sweep / "search.json").write_text(json.dumps({"grid": GRID, "decisions": DECISIONS[1:]}))
    ingest_sweep(sweep, tmp_path / "store")
    assert not verdicts(tmp_path / "store", [])[0].knee_bracketed, "nobody chose the lowest load"


def test_a_torn_record_is_an_error_that_names_it(tmp_path):
    sweep = write_sweep(tmp_path / "raw", TRUTH, [200], validated=True)
    (sweep / "search.json").write_text("{")
    with pytest.raises(DataError, match=r"search\.json: not JSON"):
        ingest_sweep(sweep, tmp_path / "store")


def test_the_next_load_comes_from_the_store(folder):
    made, sweep = folder
    first = searched(made / "store", sweep.name, Goal(GRID), [f"u{u:05d}.r01" for u in (1000, 1200, 1400)])
    assert first.reason == "beyond the knee"
    assert 800 <= first.users <= 1400
    assert "db1 saturates first" in first.why
    assert searched(made / "store", "unknown", Goal(GRID)).users == 200
    with pytest.raises(DataError, match="nothing: not a store"):
        searched(made / "nothing", "unknown", Goal(GRID))


def test_idle_cores_are_those_before_the_load(folder):
    made, _ = folder
    trials, samples = read_table(made / "store", "trials"), read_table(made / "store", "samples")
    assert cores_of_idle(idle_use(trials, samples))["db1"] == pytest.approx(0.0, abs=0.001)


def test_the_command_prints_a_decision(folder):
    made, sweep = folder
    program = Path(sys.executable).with_name("ntier-analysis")
    command = [program, "search", sweep.name, "--store", made / "store", "--users", ",".join(map(str, GRID))]
    done = subprocess.run([*command, "--json", "--precision", "0.5"], capture_output=True, text=True, check=True)
    step = json.loads(done.stdout)
    assert (step["users"], step["reason"]) == (None, "precise")
    wrong = subprocess.run([*command[:-1], "a,b"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("error: users: 'a,b': expected whole numbers")


def foreseen(made, sweep, topology="1/1/1/1M", scale="1"):
    program = Path(sys.executable).with_name("ntier-analysis")
    command = [program, "foresee", sweep, "--store", made / "store", "--topology", topology, "--scale", scale]
    done = subprocess.run([*command, "--run-s", "60", "--most", "12", "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("wrong", [("--run-s", "inf"), ("--run-s", "1e308"), ("--scale", "nan"), ("--scale", "0")])
def test_a_run_without_end_and_a_scale_that_is_none_are_refused(folder, wrong):
    made, sweep = folder
    asked = [
        "foresee",
        sweep.name,
        "--store",
        made / "store",
        "--topology",
        "1/1/1/1M",
        "--scale",
        "1",
        "--run-s",
        "60",
    ]
    assert doors.call(cli.main, *asked).code == 0
    done = doors.call(cli.main, *asked, *wrong)
    assert (done.code, wrong[0] in done.err) == (2, True), done


@pytest.mark.parametrize(
    "asked", [("search", "--users", "100,200"), ("foresee", "--topology", "1", "--scale", "1", "--run-s", "60")]
)
def test_a_store_that_is_not_there_is_an_error_not_an_empty_one(tmp_path, asked):
    (tmp_path / "results").mkdir()
    for name in ("typo", "results"):
        done = doors.call(cli.main, *asked, "s", "--store", tmp_path / name)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done
        assert f"{name}: not a store (no folder trials in it); name another with --store" in done.err


def test_trials_beyond_the_knee_foresee_the_width_of_the_interval(folder):
    made, sweep = folder
    trials = read_table(made / "store", "trials")
    topology, scale = trials["topology"].iloc[0], f"{trials['scale'].iloc[0]:g}"
    own = foreseen(made, sweep.name, topology, scale)
    assert own["source"] == sweep.name
    assert own["trials_n"] == 3
    assert own["throughput_per_s"] == pytest.approx(10, rel=0.1)
    lowest, highest = own["plateau_users"]
    assert lowest == 1000
    assert highest == pytest.approx(own["throughput_per_s"] * (7 + 60 / 2) / 0.1, abs=1)
    found = verdicts(made / "store", [sweep.name])[0].max_throughput
    # The very trials that it was seen in: their own interval, but for the runs' lengths.
    assert own["half_widths"]["3"][0] == pytest.approx(found.half_width / found.value, rel=0.5)
    assert own["half_widths"]["12"][0] < own["half_widths"]["3"][0]
    other = foreseen(made, "not-yet", topology, scale)
    assert (other["source"], other["half_widths"]) == (sweep.name, own["half_widths"])
    assert foreseen(made, "not-yet", "1/2/1/1M", scale) == {"source": None}
    assert foreseen(made, "not-yet", topology, "0.35") == {"source": None}


def test_loads_that_did_not_count_are_not_foreseen_to_count(tmp_path):
    """At 4,500 users an answer takes more than half of the run, so three others count; and a torn file of another sweep
    is no matter of this one."""
    sweep = write_sweep(tmp_path / "raw", TRUTH, [200, 1000, 1200, 1400, 4500], validated=True)
    ingest_sweep(sweep, tmp_path / "store")
    table_file(tmp_path / "store", "trials", "another").write_bytes(b"torn")
    told = foreseen(tmp_path, sweep.name, scale="0.1")
    assert (told["source"], told["plateau_users"], told["trials_n"]) == (sweep.name, [1000, 1400], 3)
    assert foreseen(tmp_path, "not-yet", scale="0.1")["source"] == sweep.name


def test_loads_above_all_that_were_measured_count_as_long_as_they_settle():
    seen = Foresight("s", Spread(34.0, 0.1, 0.05, 20.0, 3), (2000, 3000), False, 7.0, 0.2)
    assert seen.counts_up_to(20) == 3000
    assert seen.counts_up_to(40) == pytest.approx(34 * (7 + 20) / 0.2)
    assert replace(seen, left_out=True).counts_up_to(40) == 3000
