"""The command as a person meets it: help at once, one line per error, exit codes, data on stdout."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

NTIER = Path(sys.executable).with_name("ntier")
SMOKE = Path(__file__).resolve().parents[2] / "workloads/campaigns/smoke.yaml"
HEAVY = ("pandas", "numpy", "scipy", "pyarrow", "pydantic", "rich", "yaml", "filelock", "matplotlib")


def ntier(*arguments, **env):
    return subprocess.run([NTIER, *arguments], capture_output=True, text=True, env=os.environ | env, timeout=60)


def test_help_is_instant():
    """0.1 s of CPU on an idle machine; compared with its library alone, so that a slow one may take longer."""

    def used_s() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)  # os.times counts in steps of 10 ms
        return children.ru_utime + children.ru_stime

    def cpu_s(*command: str | Path) -> float:
        before = used_s()
        assert subprocess.run(command, capture_output=True).returncode == 0
        return used_s() - before

    library = min(cpu_s(sys.executable, "-c", "import click") for _ in range(3))
    assert min(cpu_s(NTIER, "--help") for _ in range(3)) < 4 * library


def test_help_imports_nothing_heavy():
    code = (
        "import sys; sys.argv=['ntier','--help']\nfrom ntier_harness.cli import cli\n"
        "try: cli.main(['--help'])\nexcept SystemExit: pass\n"
        f"print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["swep"], "did you mean 'sweep'?"),
        (["plan"], "topo: missing"),
        (["plan", "--topo", "1/1/1/1M", "--mix", "browse"], "allowed are"),
        (["sweep", "--topo", "1/1/1/1X"], "DBMS letter"),
        (["campaign", "--spec", "file.yaml"], "spec: file.yaml: cannot be read"),
        (["plan", "--spec", "file.yaml", "--topo", "1/1/1/1M"], "--topo cannot be given with --spec"),
        (["plan", "--spec", "file.yaml", "--topo", "1/1/1/1M"], "its file may say topologies:"),
        (["plan", "--spec", "file.yaml", "--minutes", "9"], "--minutes cannot be given with --spec: not for campaigns"),
        (["plan", "--spec", str(SMOKE), "--budget", "5EUR"], "budget: target local rents no machines"),
        (["plan", "--nonsense"], "--nonsense"),
        (["up", "--topo", "1/1/1/1M", "--budget", "5EUR"], "budget: ntier up cannot keep one"),
    ],
)
def test_bad_input_is_exit_code_2_and_one_line(arguments, says, tmp_path):
    done = ntier(*arguments, NTIER_STATE=str(tmp_path / "state"))
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("name", ["NTIER_STATE", "NTIER_ROOT"])
@pytest.mark.parametrize("place", [".", "state", "~/state"])
def test_a_place_that_depends_on_where_one_stands_is_refused(name, place):
    done = ntier("status", **{name: place})
    assert done.returncode == 2
    said = f"error: {name}: '{place}' is not an absolute path; allowed are those that begin with /\n"
    assert done.stderr == said


def test_plan_touches_nothing_and_prints_data(tmp_path):
    wanted = ["plan", "--topo", "1/2/1/9ML", "--scale", "0.1"]
    done = ntier(*wanted, "--results", str(tmp_path / "r"), "--json", NTIER_STATE=str(tmp_path / "s"))
    data = json.loads(done.stdout)
    assert (data["nodes"], len(data["trials"]), data["trials"][0]["users_real"]) == (14, 13, 100)
    assert data["duration_s"] > 13 * 65
    assert list(tmp_path.iterdir()) == []
    text = ntier(*wanted).stdout
    assert "[web1] --> [app1]" in text.replace("  ", " ")
    assert "db9" in text


def test_status_without_anything(tmp_path):
    done = ntier("status", "--results", str(tmp_path), "--json", NTIER_STATE=str(tmp_path / "s"))
    assert done.returncode == 0
    assert json.loads(done.stdout)["nodes"] == []


def test_doctor_names_a_command_for_all_that_is_missing():
    done = ntier("doctor", "--json", PATH="/nonexistent")
    findings = json.loads(done.stdout)
    assert done.returncode == 1
    assert {"terraform", "jdk", "incus", "cores", "memory", "disk", "cgroup", "privileges", "apt", "network"} <= {
        f["what"] for f in findings
    }
    assert all(f["mend"] for f in findings if f["level"] != "ok")


def test_without_privileges(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", str(NTIER), "up", "--topo", "1/1/1/1M"],
        capture_output=True, text=True, env=os.environ | {"NTIER_STATE": str(tmp_path / "s")})  # fmt: skip
    if "Permission denied" in done.stderr and "error:" not in done.stderr:
        pytest.skip("the checkout is not readable for others")
    assert done.returncode == 2
    assert "needs root" in done.stderr


@pytest.mark.parametrize("between", [[], ["--"]])
def test_what_follows_a_node_is_the_command_for_it(between, monkeypatch):
    """As docs/rubbos.md sends a folder: `ntier shell client1 tar -x -C /root`."""
    from ntier_harness.cli import cli

    asked = []
    monkeypatch.setattr("ntier_harness.node_commands.shell", lambda _lab, node, command: asked.extend([node, *command]))
    monkeypatch.setattr("ntier_harness.commands.nodes.make_lab", lambda **_: None)
    cli.main(["shell", "client1", *between, "tar", "-x", "-C", "/root", "--target", "x"], standalone_mode=False)
    assert asked == ["client1", "tar", "-x", "-C", "/root", "--target", "x"]


@pytest.mark.parametrize(
    "command",
    [("ntier-analysis", "sql", "SELECT '≥' AS x", "--csv", "--store"), ("ntier", "driver", "check", "sh", "-c")],
)
def test_a_letter_that_the_output_lacks_ends_no_program(tmp_path, command):
    (tmp_path / "trials").mkdir()
    last = str(tmp_path) if command[0] == "ntier-analysis" else "echo ≥ 5; exit 1"
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    program = NTIER.with_name(command[0])
    done = subprocess.run([program, *command[1:], last], capture_output=True, env=environment, timeout=60)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    assert b"\\u2265" in done.stdout
