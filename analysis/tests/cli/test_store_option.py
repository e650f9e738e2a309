"""The store is an option of every command; where it was the first argument, it may still be that."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from ntier_analysis import cli
from ntier_analysis.demo import SWEEP
from ntier_analysis.errors import DataError
from ntier_analysis.verdict.stored import analysis_version
from typer.main import get_command
from typer.testing import CliRunner

HOLDS = "verdict == single db cpu"


@pytest.fixture
def store(demo) -> Path:
    return demo


def said(*arguments: object) -> str:
    done = CliRunner().invoke(cli.app, [str(a) for a in arguments])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_verdict_is_the_same_however_the_store_is_given(store):
    asked = said("verdict", "--store", store, SWEEP)
    assert asked.startswith(f"{SWEEP} (1/1/1/1M): single db cpu")
    assert asked == said("verdict", store, "--sweep", SWEEP) == said("verdict", store, SWEEP)
    assert asked == said("verdict", "--store", store, "--sweep", SWEEP)


def test_without_the_option_the_first_argument_is_the_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"^results/store: not a store"):
        said("verdict")
    with pytest.raises(DataError, match=rf"^{SWEEP}: not a store"):
        said("verdict", SWEEP)
    with pytest.raises(DataError, match=rf"^{SWEEP}: not a store"):
        said("judge", SWEEP)


def test_a_check_takes_its_file_behind_the_store_or_alone(store, tmp_path):
    expected = tmp_path / "expected.yaml"
    expected.write_text(f"{SWEEP}: [{HOLDS}]\n")
    asked = said("check", "--store", store, expected)
    assert asked.startswith(f"holds: {SWEEP}: {HOLDS}")
    assert asked == said("check", store, expected)
    assert asked == said("check", store, "--sweep", SWEEP, "--expect", HOLDS)
    with pytest.raises(DataError, match="check: one file of expectations is allowed, there are: a, b"):
        said("check", "--store", store, "a", "b")


def test_a_sweep_is_judged_again_with_the_store_as_option(store, tmp_path):
    own = shutil.copytree(store, tmp_path / "store")
    assert said("judge", "--store", own, SWEEP).startswith(f"{SWEEP}: single, judged by the rules of ")


def test_version_and_help():
    assert said("--version") == f"ntier-analysis {analysis_version()}\n"
    assert said("-h") == said("--help")
    assert said("check", "-h") == said("check", "--help")


NO_STORE = {"validate", "demo", "standby"}
"""A raw trial; a store that the command makes itself; other commands, with theirs."""


def test_every_command_has_the_option():
    commands = dict(get_command(cli.app).commands)
    commands |= commands.pop("store").commands
    lacking = {n for n, c in commands.items() if not any("--store" in p.opts for p in c.params)}
    assert lacking == NO_STORE


@pytest.mark.parametrize("command", ["verdict", "demands", "chains", "judge", "densities", "report"])
def test_a_store_without_sweeps_is_said_to_be_one(tmp_path, monkeypatch, command):
    """Some commands ended without a word."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "store" / "trials").mkdir(parents=True)
    assert said(command, "--store", tmp_path / "store") == "the store holds no sweep\n"


def test_claims_are_not_judged_by_a_folder_that_is_no_store(tmp_path):
    """All were said to be not measured, as if a store had been asked."""
    (tmp_path / "claims.yaml").write_text(f"c: {{says: a, place: b, paper: c, sweep: {SWEEP}, expect: {HOLDS}}}\n")
    with pytest.raises(DataError, match=f"^{tmp_path}: not a store"):
        said("claims", tmp_path / "claims.yaml", "--store", tmp_path)
