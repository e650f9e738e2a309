"""The page shows the toy as it is: whoever copies its files from there has it whole, and it runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

TOY = Path(__file__).resolve().parents[1]
ROOT = TOY.parents[1]
NTIER = Path(sys.executable).with_name("ntier")
SHOWN = dict(re.findall(r"^`toy/(\S+)`\n\n```\w+\n(.*?)^```$", (TOY.parent / "README.md").read_text(), re.S | re.M))
LINES_OF_YAML = 100


def test_the_page_shows_every_file_of_the_toy():
    files = {str(p.relative_to(TOY)) for p in TOY.rglob("*") if p.is_file() and "tests" not in p.parts}
    assert {name for name in files if "__pycache__" not in name} == set(SHOWN)


def test_what_it_shows_are_the_files():
    assert {name: (TOY / name).read_text() for name in SHOWN} == SHOWN


def test_yaml_and_tasks_are_short_and_as_long_as_the_page_says():
    lines = [
        line
        for name, text in SHOWN.items()
        if name.endswith(".yml") or name == "system.yaml"
        for line in text.splitlines()
    ]
    assert 0 < len(lines) <= LINES_OF_YAML
    said = re.search(r"service of (\d+) lines.*?(\d+) lines of YAML", (TOY.parent / "README.md").read_text(), re.S)
    assert said.groups() == (str(len(SHOWN["roles/toy_web/files/service.py"].splitlines())), str(len(lines)))


def test_tasks_use_each_setting_of_the_service():
    settings = yaml.safe_load(SHOWN["system.yaml"])["settings"]
    for name in settings:
        assert name.startswith("db_") or name in SHOWN["roles/toy_web/tasks/main.yml"]


def test_the_web_server_listens_on_the_nodes_own_address_only():
    tasks = yaml.safe_load(SHOWN["roles/toy_web/tasks/main.yml"])
    (server,) = [
        text for task in tasks if "server {" in (text := str(task.get("ansible.builtin.copy", {}).get("content")))
    ]
    assert re.findall(r"listen (\S+.*?);", server) == ["{{ address }}:80"]


@pytest.fixture
def brought_in(tmp_path: Path) -> dict[str, str]:
    """Environment of a checkout whose systems/ has nothing of the toy but what the page shows."""
    for part in ROOT.iterdir():
        if part.name not in ("systems", "results", ".git"):
            (tmp_path / part.name).symlink_to(part)
    (tmp_path / "systems").mkdir()
    for name in ("default", "rubbos"):
        (tmp_path / "systems" / name).symlink_to(ROOT / "systems" / name)
    for name, text in SHOWN.items():
        file = tmp_path / "systems/toy" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return {**os.environ, "NTIER_ROOT": str(tmp_path)}


def ntier(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([NTIER, *words], env=environment, capture_output=True, text=True, timeout=1200)


def test_what_the_page_shows_is_a_system(brought_in):
    checked = ntier(brought_in, "systems", "check", f"{brought_in['NTIER_ROOT']}/systems/toy")
    assert checked.returncode == 0, checked.stderr
    planned = ntier(brought_in, "plan", "--system", "toy", "--topo", "2/1", "--scale", "0.3", "--json")
    assert planned.returncode == 0, planned.stderr
    assert json.loads(planned.stdout)["nodes"] == 4, "two web nodes, a database and a client"


@pytest.mark.nodes
@pytest.mark.faults
@pytest.mark.usefixtures("deployments")
def test_what_the_page_shows_is_deployed_driven_and_judged(brought_in, tmp_path):
    request = ["--system", "toy", "--topo", "1/1", "--scale", "0.3", "--users", "5,40", "--phases", "5/20/1"]
    done = ntier(brought_in, "sweep", *request, "--results", str(tmp_path / "out"))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    asked = subprocess.run([NTIER.with_name("ntier-analysis"), "verdict", tmp_path / "out/store", "--json"],
                           capture_output=True, check=True)  # fmt: skip
    (sweep,) = json.loads(asked.stdout)["sweeps"]
    assert sweep["sweep"].startswith("toy.1-1.visits")
    assert {t["users"] for t in sweep["trials"]} == {5, 40}
    # 10 ms of CPU for each page on 0.3 cores: less than 30 pages a second, of the 40 that the users would ask for
    assert (sweep["verdict"], [b["nodes"] for b in sweep["bottlenecks"]]) == ("single", [["web1"]]), sweep["evidence"]
