"""Systems as data: what is wrong with a system.yaml is said with file, line, key and what is allowed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from ntier_harness.cli import cli
from ntier_harness.errors import RequestError
from ntier_harness.systems import find, names
from ntier_harness.systems.definition import schema
from ntier_harness.systems.notation import parse
from ntier_harness.systems.reading import examine

ROOT = Path(__file__).resolve().parents[2]
ROLES = ROOT / "ansible" / "roles"
SMALL = """\
name: small
title: Two tiers
source: none
license: MIT
tiers:
  - name: front
    title: Front
    roles: [web]
    talks_to: [back]
  - name: back
    title: Back
    roles: [postgresql]
notation: {forms: [[front, back]], example: 1/2}
settings:
  workers:
    title: Workers
    tier: front
    range: [1, 10]
    default: 4
load:
  driver: {kind: command, command: [python3, load.py]}
  model: closed
  entry: {tier: front, port: 80}
  factor: {name: users, title: Users, default: "10,20"}
  workloads:
    reads: {title: Reads, writes: false}
  default_workload: reads
  phases:
    short: {ramp_up_s: 5, run_s: 20, ramp_down_s: 2}
  default_phases: short
verify:
  requests:
    - {name: page, tier: front, port: 80, path: /}
"""


def said(tmp_path: Path, text: str) -> list[str]:
    folder = tmp_path / "small"
    folder.mkdir(exist_ok=True)
    (folder / "system.yaml").write_text(text)
    try:
        return [str(p).removeprefix(f"{folder}/") for p in examine(folder, ROLES)[1]]
    except RequestError as error:
        return [str(error).removeprefix(f"{folder}/")]


@pytest.mark.parametrize("name", names(ROOT))
def test_systems_of_the_project_are_right(name):
    assert find(ROOT, name).definition.name == name


def test_the_published_schema_is_current():
    assert json.loads((ROOT / "systems/system.schema.json").read_text()) == json.loads(json.dumps(schema())), (
        "ntier systems schema >systems/system.schema.json"
    )


def test_a_small_system_is_right(tmp_path):
    assert said(tmp_path, SMALL) == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("title: Front", "titel: Front", "line 7: tiers.0.titel: 'titel' is unknown (did you mean 'title'"),
        ("    title: Back\n", "\ttitle: Back\n", "system.yaml, line 11: not YAML (found a tab character"),
        ("    title: Back\n", "", "system.yaml, line 10: tiers.1.title: Field required"),
        ("roles: [postgresql]", "roles: [postgresql]\n    talks_to: [front]",
         "system.yaml, line 9: tiers.0.talks_to: a cycle: front -> back -> front"),
        ("talks_to: [back]", "talks_to: [cache]", "line 9: tiers.0.talks_to.0: tier: 'cache' is unknown"),
        ("roles: [web]", "roles: [wep]", "line 8: tiers.0.roles.0: wep: no such role in "),
        ("    roles: [web]\n", "", "line 6: tiers.0: roles: missing"),
        ("default: 4", "default: 40", "line 19: settings.workers.default: 40 is out of range; allowed are 1..10"),
        ("default: 4", "default: 1.5", "line 19: settings.workers.default: 1.5 is out of range; allowed are 1..10"),
        ("range: [1, 10]", "choices: [on, off]", "line 18: settings.workers.choices.0: is on, off, yes or no without"),
        ("tier: front\n    range", "tier: frond\n    range", "line 17: settings.workers.tier: tier: 'frond' is"),
        ("model: closed", "model: open_", "load.model: Input should be 'closed', 'open' or 'work' (found 'open_')"),
        ("example: 1/2", "example: 1/2/3", "notation.example: topology '1/2/3': expected numbers front/back"),
        ("name: small", "name: large", "line 1: name: 'large' is in the folder small; both have the same name"),
        ("name: back", "name: client", "line 10: tiers.1.name: client is taken"),
        ("default_workload: reads", "default_workload: read", "load.default_workload: workload: 'read' is unknown"),
        ("kind: command, command: [python3, load.py]", "kind: jmeter, plan: load.jmx", "load.jmx does not exist"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(tmp_path, old, new, says):
    found = said(tmp_path, SMALL.replace(old, new, 1))
    assert any(says in line for line in found), found
    assert not any("\n" in line for line in found)


def test_check_ends_with_code_2(tmp_path):
    said(tmp_path, SMALL.replace("roles: [web]", "roles: [wep]"))
    done = CliRunner().invoke(cli, ["systems", "check", str(tmp_path / "small")])
    assert done.exit_code == 2
    assert "wep: no such role" in done.output
    said(tmp_path, SMALL)
    assert CliRunner().invoke(cli, ["systems", "check", str(tmp_path / "small")]).exit_code == 0


def test_interactions_are_the_plans():
    """Each sampler of the JMeter plan is an interaction of the system, and the other way round."""
    system = find(ROOT, "rubbos")
    plan = system.path(system.definition.load.driver.plan).read_text()
    assert set(re.findall(r'<HTTPSamplerProxy [^>]*testname="([^"]+)"', plan)) == set(system.definition.interactions)


@pytest.mark.parametrize("text", ["1/2/1/9ML", "1-2-1-9ML", "1/1/1/1P"])
def test_a_topology_is_printed_back(text):
    assert parse(find(ROOT, "rubbos").definition, text).slug == text.replace("/", "-")
