"""The program that stays up, and the search from raw trials that it answers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from ntier_analysis import cli, ingest, searching
from ntier_analysis.searching import next_of_raw
from ntier_analysis.verdict.search import Goal
from ntier_analysis.verdict.store import searched
from program import PROGRAM, called
from synthetic import Truth, write_sweep

TRUTH = Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.01})  # 10/s, the knee is at 700 users
USERS = [200, 1000, 1200, 1400]
PHASES_S = (10.0, 30.0, 2.0)
GOAL = Goal(tuple(range(200, 1401, 100)))
WITHOUT_LIBRARIES = "from ntier_analysis import cli, standby; standby.load = lambda: None; "
QUICK = [sys.executable, "-c", WITHOUT_LIBRARIES + "cli.main(['standby'])"]
"""The program, without the two seconds that it takes for what no command of the test needs."""


@pytest.fixture(scope="module")
def made(made_once):
    """Raw trials and their store."""

    def make(folder):
        ingest.ingest_sweep(write_sweep(folder / "raw", TRUTH, USERS, phases=PHASES_S), folder / "store")

    return made_once("standby", make)


@pytest.fixture(scope="module")
def sweep(made, tmp_path_factory):
    """A copy of the raw trials, since tests spoil some and mend them."""
    raw = shutil.copytree(made / "raw", tmp_path_factory.mktemp("standby") / "raw")
    return next(raw.iterdir())


@pytest.fixture
def read(monkeypatch):
    """Names of the trials that were read."""
    names, real = [], searching.trial_tables

    def noted(trial, *rest, **more):
        names.append(trial.folder.name)
        return real(trial, *rest, **more)

    monkeypatch.setattr(searching, "trial_tables", noted)
    searching._kept.clear()
    return names


def served(lines: list, program: list | None = None, within_s: float = 120) -> tuple[list[dict], int, str]:
    """Answers, exit code and errors of the program that was given these lines."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run(program or [PROGRAM, "standby"], input=text, capture_output=True, text=True, timeout=within_s)
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode, done.stderr


@pytest.mark.parametrize("n", range(len(USERS) + 1))
def test_raw_trials_and_the_store_give_the_same_step(made, sweep, n):
    without = [f"u{u:05d}.r01" for u in USERS[n:]]
    assert next_of_raw(sweep, GOAL, without) == searched(made / "store", sweep.name, GOAL, without)


def test_a_sweep_that_has_not_begun_starts_with_its_lowest_load(tmp_path):
    assert next_of_raw(tmp_path / "none", GOAL).users == 200


def test_each_trial_is_read_once_until_its_record_changes(sweep, read):
    before = next_of_raw(sweep, GOAL, ["u01400.r01"])
    assert read == ["u00200.r01", "u01000.r01", "u01200.r01"]
    assert next_of_raw(sweep, GOAL, ["u01400.r01"]) == before
    next_of_raw(sweep, GOAL)
    assert read[3:] == ["u01400.r01"]
    file = sweep / "u01400.r01" / "manifest.json"
    text = file.read_text()
    try:
        file.write_text(text.replace('"seed"', ' "seed"'))
        next_of_raw(sweep, GOAL)
    finally:
        file.write_text(text)
    assert read[4:] == ["u01400.r01"]


def test_a_trial_that_cannot_be_read_counts_as_none(sweep, read):
    file = sweep / "u01400.r01" / "manifest.json"
    text, without = file.read_text(), next_of_raw(sweep, GOAL, ["u01400.r01"])
    try:
        file.write_text("{")
        assert next_of_raw(sweep, GOAL) == without
    finally:
        file.write_text(text)


@pytest.mark.parametrize(("name", "said"), [("typo", "there is no such folder"), ("file", "is no folder")])
def test_raw_results_that_are_not_there_are_an_error(tmp_path, capsys, name, said):
    """And no sweep that has yet to begin, whose first load is the lowest."""
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as ended:
        cli.main(["search", "s", "--raw", str(tmp_path / name), "--users", "200,700"])
    assert ended.value.code == 2
    place = tmp_path / name
    assert capsys.readouterr().err == (
        f"error: {place}: {said}; expected a folder of raw results, with a folder for each sweep\n"
    )


def test_a_file_that_could_not_be_read_is_looked_for_again(sweep, read):
    """A disk of the network may be away for a moment."""
    file = sweep / "u01400.r01" / "nodes" / "db1"
    whole = next_of_raw(sweep, GOAL)
    searching._kept.clear()
    away = file.rename(file.with_name("away"))
    try:
        assert next_of_raw(sweep, GOAL) != whole
    finally:
        away.rename(file)
    assert next_of_raw(sweep, GOAL) == whole


def test_a_failed_trial_is_seen_as_in_the_store(sweep, tmp_path, read):
    file = sweep / "u01400.r01" / "manifest.json"
    text = file.read_text()
    try:
        failed = {"state": "failed", "failure": "web1: no answer", "validity": None}
        file.write_text(json.dumps(json.loads(text) | failed))
        ingest.ingest_sweep(sweep, tmp_path / "store")
        assert next_of_raw(sweep, GOAL) == searched(tmp_path / "store", sweep.name, GOAL)
    finally:
        file.write_text(text)


def test_a_trial_from_above_is_not_seen(sweep, read):
    file = sweep / "u01400.r01" / "manifest.json"
    text, without = file.read_text(), next_of_raw(sweep, GOAL, ["u01400.r01"])
    try:
        file.write_text(json.dumps(json.loads(text) | {"above": 8000, "above_real": 8000}))
        assert next_of_raw(sweep, GOAL) == without
    finally:
        file.write_text(text)


def test_the_program_does_one_command_after_another(sweep):
    asked = ["search", sweep.name, "--raw", str(sweep.parent), "--users", "200,700,1400", "--json"]
    alone = called(*asked)
    assert alone.returncode == 0
    wrong = [*asked[:-2], "a,b"]
    answers, code, _ = served([asked, wrong, ["nonsense"], asked])
    assert code == 0
    assert [a["code"] for a in answers] == [0, 2, 2, 0]
    assert answers[0] == answers[3] == {"code": 0, "out": alone.stdout, "err": alone.stderr}
    assert answers[1]["err"] == "error: users: 'a,b': expected whole numbers above 0 with commas (1000,2000)\n"


@pytest.mark.parametrize("line", [7, [], ["search", 1], {"search": 1}])
def test_a_line_that_is_no_command_is_one_error(line):
    answers, code, said = served([line, ["--version"]], QUICK)
    assert (answers, code) == ([], 2)
    assert said == f"error: standby: {json.dumps(line)!r}: expected a JSON list of words\n"


CALLED = "import os; from ntier_analysis import standby; {}; standby.serve(lambda words: {})"


def test_what_libraries_print_does_not_come_between_the_answers():
    answers, _, said = served([["a"]], [sys.executable, "-c", CALLED.format("0", "os.write(1, b'noise')")])
    assert answers == [{"code": 0, "out": "", "err": ""}]
    assert said == "noise"


def test_an_error_that_nobody_expected_ends_the_command_only():
    answers, code, _ = served([["a"], ["b"]], [sys.executable, "-c", CALLED.format("0", "1 / 0")])
    assert code == 0
    assert [(a["code"], a["err"].splitlines()[-1]) for a in answers] == [(1, "ZeroDivisionError: division by zero")] * 2


def test_what_is_asked_to_stand_by_while_it_does_says_so():
    """It read the commands that came after as those of a second one, and answered none."""
    answers, code, _ = served([["standby"], ["--help"]], QUICK, within_s=30)
    assert (code, [a["code"] for a in answers]) == (0, [2, 0])
    assert answers[0]["err"] == "error: standby: is up already; expected another command\n"


def test_a_command_that_reads_its_input_leaves_the_others_theirs():
    read = CALLED.format("import sys", "print(repr(sys.stdin.read()), repr(open(0, closefd=False).read()))")
    answers, _, _ = served([["a"], ["b"]], [sys.executable, "-c", read])
    assert [a["out"] for a in answers] == ["'' ''\n"] * 2


def test_too_little_memory_ends_it_without_an_answer():
    """Who asks then starts a program of its own, as for one that was killed; an answer would have failed the trial."""
    short = WITHOUT_LIBRARIES + "cli.command = lambda: lambda words: bytearray(1 << 62); cli.standby()"
    answers, code, said = served([["a"], ["b"]], [sys.executable, "-c", short])
    assert (answers, code) == ([], 1)
    assert "MemoryError" in said


def test_a_command_that_ends_with_a_sentence_has_said_it():
    answers, _, _ = served([["a"]], [sys.executable, "-c", CALLED.format("import sys", "sys.exit('no such thing')")])
    assert answers == [{"code": 1, "out": "", "err": "no such thing\n"}]


def test_no_more_trials_are_kept_than_allowed(sweep, read, monkeypatch):
    monkeypatch.setattr(searching, "TRIALS_KEPT", 2)
    step = next_of_raw(sweep, GOAL)
    assert len(searching._kept) == 2
    assert next_of_raw(sweep, GOAL) == step


def test_it_ends_after_its_answer_when_it_holds_much_memory():
    answers, code, _ = served([["a"], ["b"]], [sys.executable, "-c", CALLED.format("standby.MOST_BYTES = 1", "0")])
    assert (len(answers), code) == (1, 0)
