"""The Makefile as a person uses it: variables, and what happens before set-up. Set-up itself is a stub that writes down
that it was called."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STUB = '#!/bin/sh\necho "$(basename "$0") $*" >>calls\n'


@pytest.fixture
def make(tmp_path):
    """A checkout on a bare machine; returns (exit code, stderr, what of set-up was called)."""
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    (tmp_path / "setup").mkdir()
    for name in ("bootstrap.sh", "setup.sh"):
        script = tmp_path / "setup" / name
        script.write_text(STUB)
        script.chmod(0o755)
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parents[1])
    for name in ("workloads", "studies"):
        (tmp_path / name).symlink_to(ROOT / name)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}  # of a make above this test
    state = {"NTIER_ROOT": str(ROOT), "NTIER_STATE": str(tmp_path / "state")}

    def run(*arguments: str, **env: str) -> tuple[int, str, list[str]]:
        calls = tmp_path / "calls"
        calls.unlink(missing_ok=True)
        place = [f"RESULTS={tmp_path / 'results'}"] if arguments[0] not in ("-n", "setup", "test", "first") else []
        done = subprocess.run(["make", *arguments, *place], cwd=tmp_path, env=clean | state | env,
                              capture_output=True, text=True, timeout=60)  # fmt: skip
        assert not (tmp_path / "state").exists()
        said = calls.read_text().splitlines() if calls.exists() else []
        return done.returncode, done.stderr + done.stdout * (arguments[0] == "-n"), said

    return run


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["sweep", "TOPO=1/1/1/1m"], "error: topo: "),
        (["up", "TOPO=1/0/1/1M"], "app count is 0"),
        (["plan", "TOPO=1/1/1/1M", "MIX=browse"], "error: mix: "),
        (["deploy"], "error: topo: missing"),
        (["setup", "TOPO=1/1/1/1m"], "error: topo: "),
        (["setup", "TARGET=hsots"], "error: target: 'hsots' is unknown (did you mean 'hosts'?)"),
        (["setup", "USERS=1000", "DATA=tiny"], "USERS says something about one sweep"),
        (["smoke", "JSON=1"], ""),
        (["sweep", "TOPO=1/1/1/1M", "SET=web_max_worker=60"], "did you mean 'web_max_workers'"),
        (["campaign", "SPEC=none.yaml"], "error: spec: none.yaml: cannot be read"),
        (["campaign"], "error: SPEC is missing"),
        (["study"], "error: name: no study ''; there are: "),
        (["study", "NAME=two-phase"], "no study 'two-phase'"),
        (["study", "NAME=two-phase-commit", "SPEC=none.yaml"], "error: spec: none.yaml: cannot be read"),
        (["sweep", "TARGET=hosts", "TOPO=1/1/1/1M"], "error: hosts: missing"),
    ],
    ids=lambda value: "-".join(value).replace("/", "") if isinstance(value, list) else "says",
)
def test_a_request_that_is_refused_installs_nothing(make, tmp_path, arguments, says):
    if arguments[0] == "smoke":  # a request that is right, where the results cannot be
        (tmp_path / "results").write_text("")
        says = "results is not a folder"
    code, said, calls = make(*arguments)
    assert code == 2
    assert says in said
    assert [call.split()[0] for call in calls] in ([], ["bootstrap.sh"]), "at most the Python environment"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["PHASE=standard"], "PHASE is not a variable of `make plan` (did you mean PHASES?); it takes"),
        (["REP=3"], "did you mean REPS?"),
        (["topo=1/1/1/1M"], "did you mean TOPO?"),
        (["SWEEP=x"], "SWEEP is not a variable of `make plan`"),
        (["SET=a=1", "SET=b=2"], "SET is there twice"),
    ],
    ids=lambda value: "-".join(value).replace("/", "") if isinstance(value, list) else "says",
)
def test_a_variable_that_would_be_swallowed_is_refused(make, given, says):
    code, said, calls = make("plan", "TOPO=1/1/1/1M", *given)
    assert (code, calls) == (2, [])
    assert says in said


@pytest.mark.parametrize(
    ("goal", "switch"),
    [("purge", "YES"), ("images", "REMOVE"), ("plan", "JSON"), ("report", "FORCE"), ("ndb", "IDLE"), ("map", "JOIN")],
)
@pytest.mark.parametrize(("value", "code"), [("0", 2), ("no", 2), ("1", 0), ("", 0)])
def test_a_switch_is_1_or_absent(make, goal, switch, value, code):
    """As YES=0 of somebody who means no."""
    done, said, _ = make("-n", goal, f"{switch}={value}")
    assert done == code, said
    assert (f"{switch}={value} is neither yes nor no" in said) is (code == 2)


def test_set_up_of_everything_takes_what_it_uses(make):
    assert make("setup", "DATA=tiny", "MIDDLEWARE=haproxy", "TARGET=local") == (
        0, "", ["bootstrap.sh ", "setup.sh --data tiny --middleware haproxy"])  # fmt: skip
    assert make("setup", "TARGET=hosts") == (0, "", ["bootstrap.sh "])


def test_goals_do_not_run_at_once_whatever_a_shell_says(make, tmp_path):
    with (tmp_path / "Makefile").open("a") as file:
        file.write("first:\n\t@sleep 0.5; echo first >>calls\nsecond:\n\t@echo second >>calls\n")
    assert make("first", "second", MAKEFLAGS="-j4")[2] == ["first", "second"]


def test_without_terraform_no_test_begins(make):
    code, said, calls = make("test", TERRAFORM="/nowhere/terraform")
    assert (code, calls) == (2, [])
    assert "error: terraform: /nowhere/terraform cannot be run here" in said


def test_variables_become_the_options_of_the_command(make):
    _, said, _ = make("-n", "sweep", "TOPO=1/1/1/1M", "SET=web_max_workers=60 app_pool_size=4", "CLIENTS=2",
                      "ATTEMPTS=5", "NAME=it's")  # fmt: skip
    command = said.splitlines()[-1]
    assert "--set 'web_max_workers=60' --set 'app_pool_size=4'" in command
    assert "--clients '2'" in command
    assert "--attempts '5'" in command
    assert r"--name 'it'\''s'" in command


@pytest.mark.parametrize(
    ("goal", "folder"), [("ingest", "raw"), ("report", "reports"), ("map", "map"), ("notebooks", "notebooks")]
)
def test_places_with_a_quote_are_handed_on_as_they_are(make, goal, folder):
    place, names = "/home/o'brien/r", [] if goal == "notebooks" else ["a", "b'c"]
    _, said, _ = make("-n", goal, f"RESULTS={place}", *([f"SWEEP={' '.join(names)}"] if names else []))
    argv = shlex.split(said.splitlines()[-1])
    assert argv[argv.index("--store") + 1] == f"{place}/store"
    assert f"{place}/{folder}" in argv
    assert argv[len(argv) - len(names) :] == names


def test_what_removes_images_takes_what_the_command_takes(make):
    _, said, _ = make("-n", "images", "REMOVE=1", "JSON=1", "RESULTS=there", "TARGET=hcloud", "TOPO=1/1/1/1M")
    command = said.splitlines()[-1]
    assert "images --remove " in command
    assert "--target 'hcloud' --results 'there' --json".replace(" ", "") in command.replace(" ", "")
    assert "--topo" in command, "which the command refuses beside --remove"


def test_the_environment_of_the_shell_is_not_read(make):
    shells = {"NAME": "laptop", "TARGET": "x86_64", "RESULTS": "/somewhere", "PHASE": "1", "USERS": "me"}
    _, said, _ = make("-n", "plan", "TOPO=1/1/1/1M", **shells)
    assert said.splitlines()[-1].split() == [
        ".venv/bin/ntier",
        "plan",
        "--topo",
        "'1/1/1/1M'",
        "--results",
        "'results'",
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="a campaign on target local is refused without root")
def test_set_up_makes_the_images_that_a_campaign_needs(make, tmp_path):
    ntier = tmp_path / "ntier"  # the real one, which stops where work would begin
    ntier.write_text(f'#!/bin/sh\ncase "$*" in *--needs) exec {Path(sys.executable).with_name("ntier")} "$@";; esac\n')
    ntier.chmod(0o755)
    (tmp_path / "Makefile").write_text(
        (tmp_path / "Makefile").read_text().replace("NTIER  := $(VENV)/ntier", f"NTIER := {ntier}")
    )
    code, said, calls = make("campaign", "SPEC=workloads/campaigns/identical-pair.yaml")
    assert (code, said) == (0, "")
    assert calls == ["bootstrap.sh ", "setup.sh --images web,app,haproxy,mysql-small,client"]
