"""Systems as data: what is wrong with a system.yaml is said with file, line, key and what is allowed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from ntier_analysis.contracts.nodes import Node
from ntier_harness import doctor, tables
from ntier_harness.cli import cli, main
from ntier_harness.deploy import installs, of_tiers, services
from ntier_harness.errors import RequestError, WorkError
from ntier_harness.installed import hash_of
from ntier_harness.ledger import Attempt, attempts, check_same_experiment
from ntier_harness.paths import Paths
from ntier_harness.plan import order
from ntier_harness.request import make_spec
from ntier_harness.runner import Runner
from ntier_harness.settings import values
from ntier_harness.ssh import Nodes
from ntier_harness.systems import find, makers, names
from ntier_harness.systems.definition import Reset, schema
from ntier_harness.systems.notation import parse
from ntier_harness.systems.on_disk import OWN_ROLES
from ntier_harness.systems.reading import OF_NODES, examine
from ntier_harness.targets.hosts import Hosts
from ntier_harness.targets.terraform import common_variables
from ntier_harness.trial import described, planned

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


DATA = "data: {tier: back, default: tiny, profiles: {tiny: few}}\nload:"


def said(tmp_path: Path, text: str, *, thorough: bool = False) -> list[str]:
    folder = tmp_path / "small"
    folder.mkdir(exist_ok=True)
    (folder / "system.yaml").write_text(text)
    try:
        return [str(p).removeprefix(f"{folder}/") for p in examine(folder, ROLES, thorough=thorough)[1]]
    except RequestError as error:
        return [str(error).removeprefix(f"{folder}/")]


@pytest.mark.parametrize("name", names(ROOT))
def test_systems_of_the_project_are_right(name):
    assert find(ROOT, name).definition.name == name
    assert examine(ROOT / "systems" / name, ROLES, thorough=True)[1] == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("  workers:\n", "  address:\n", "line 15: settings.address: address is a variable of Ntier's or Ansible's"),
        ("  workers:\n", "  index:\n", "line 15: settings.index: index is a variable of Ntier's or Ansible's; not"),
        ("  workers:\n", "  ntier_scale:\n", "settings.ntier_scale: ntier_scale is a variable of Ntier's"),
        ("  workers:\n", "  ansible_user:\n", "settings.ansible_user: ansible_user is a variable of Ntier's"),
        ("  factor:", "  parameters: {index: {title: I, range: [1, 9], default: 1}}\n  factor:",
         "load.parameters.index: index is a variable"),
        ("notation:", "variants: {v: {title: V, tier: back, default: a, choices: {a: {variables: {groups: 3}}}}}\n"
         "notation:", "variants.v.choices.a.variables.groups: groups is a variable of Ntier's or Ansible's"),
        ("notation:", "variants: {v: {title: V, tier: back, default: a, choices: {a: {variables: {workers: 3}}}}}\n"
         "notation:", "variants.v.choices.a.variables.workers: workers is a setting already, and its value would win"),
        ("notation:", "variants: {v: {title: V, tier: back, default: a, choices: {a: {available: false}, b: {}}}}\n"
         "notation:", "variants.v.default: a cannot be deployed (available: false); allowed are b"),
        ("forms: [[front, back]]", "forms: [[front, back], [back]]",
         "load.entry.tier: front is in no topology back (notation.forms); the load needs it in each"),
        ("load:\n",
         "data: {tier: back, default: tiny, profiles: {tiny: few}, generate: [python3, no/make.py]}\nload:\n",
         "data.generate.1: " + str(ROOT / "no/make.py") + " does not exist; the command is run in the project's"),
    ],
)  # fmt: skip
def test_what_a_request_or_a_deployment_would_stumble_over_later(tmp_path, old, new, says):
    assert old in SMALL
    found = said(tmp_path, SMALL.replace(old, new, 1))
    assert any(says in text for text in found), found


def test_variables_of_nodes_are_those_of_the_inventory():
    source = (ROOT / "ansible" / "plugins" / "inventory" / "nodes.py").read_text().partition("def host_variables")[2]
    named = re.findall(r'^        "(\w+)":', source.partition("\ndef ")[0], re.MULTILINE)
    own = [name for name in named if name[0].islower() and not name.startswith(("ansible_", "ntier_"))]
    assert sorted(own) == sorted(OF_NODES)


@pytest.mark.parametrize("model", ["open", "work"])
def test_a_plan_that_ntiers_users_run_makes_a_closed_load(tmp_path, model):
    """Judged as arrivals at a rate its users, who think, would never overload anything."""
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "load.jmx").write_text("<jmeterTestPlan/>")
    plan = SMALL.replace("kind: command, command: [python3, load.py]", "kind: jmeter, plan: load.jmx")
    found = said(tmp_path, plan.replace("model: closed", f"model: {model}"))
    assert found == [
        f"system.yaml, line 22: load.model: {model}: Ntier's users, which run the plan, think; give closed, or "
        "own_thread_group: true if the plan makes this load itself"
    ]
    own = plan.replace("plan: load.jmx", "plan: load.jmx, own_thread_group: true")
    assert said(tmp_path, own.replace("model: closed", f"model: {model}")) == said(tmp_path, plan) == []


RULES_ARE = "expected a class Rules with defaults and check (ntier_harness.systems.rules)"
PHASES = SMALL[SMALL.index("  phases:") : SMALL.index("verify:")]
WORKLOADS = SMALL[SMALL.index("  workloads:") : SMALL.index("  default_workload:")]


@pytest.mark.parametrize(
    ("old", "new", "file", "text", "says"),
    [
        ("verify:", "rules: rules.py\nverify:", "rules.py", "x = 1\n", f"line 31: rules: FILE: {RULES_ARE}"),
        ("verify:", "rules: rules.py\nverify:", "rules.py", "class Rules:\n    pass\n", f"rules: FILE: {RULES_ARE}"),
        ("verify:", "rules: rules.py\nverify:", "rules.py", "x = (\n", "rules: FILE: SyntaxError: '(' was never"),
        ("verify:", "rules: rules.py\nverify:", "rules.py",
         "class Rules:\n    def __init__(self, a): ...\n    def defaults(self, r): ...\n    def check(self, r): ...\n",
         "rules: FILE: Rules(): TypeError: "),
        (PHASES, "  phases_file: phases.yaml\n", "phases.yaml", "short: 1\n", "load.phases_file: FILE"),
        (PHASES, "  phases_file: phases.yaml\n", "phases.yaml",
         "phases: {a: {ramp_up_s: 5, run_s: 20, ramp_down_s: 2}}\ndefault_phases: b\n",
         "load.phases_file: phases: 'b' is unknown; allowed are a"),
        (WORKLOADS, "  mixes: mixes\n", "mixes/reads.csv", "nonsense\n", "load.mixes: FILE"),
        ("verify:", "checks: {off: {Z9: never}}\nverify:", "beside", "",
         "line 31: checks.off.Z9: check: 'Z9' is unknown; allowed are C1, C1.end, "),
    ],
)  # fmt: skip
def test_check_reads_the_files_that_a_system_names(tmp_path, old, new, file, text, says):
    assert old in SMALL
    place = tmp_path / "small" / file
    place.parent.mkdir(parents=True)
    place.write_text(text)
    found = said(tmp_path, SMALL.replace(old, new, 1), thorough=True)
    assert any(says.replace("FILE", str(place)) in text for text in found), found
    wrong = CliRunner().invoke(cli, ["systems", "check", str(tmp_path / "small")])
    assert wrong.exit_code == 2
    assert says.replace("FILE", str(place)) in wrong.output


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
        ("name: back", "name: front2", "tiers.1.name: front2 is the name of node 2 of tier front; use another"),
        ("name: back", "name: client7", "tiers.1.name: client7 is the name of node 7 of tier client; use another"),
        ("path: /}", 'path: /, contains: "a("}', "verify.requests.0.contains: 'a(' is no regular expression: "),
        ('default: "10,20"', "default: abc", "load.factor.default: users: 'abc': expected first:last:step"),
        ('factor: {name: users, title: Users, default: "10,20"}',
         'parameters: {rate: {title: R, range: [1, 9], default: 1}}\n  factor: {name: rate, title: R, default: "1,20"}',
         "load.factor.default: factor rate: 20 is out of range; allowed are whole numbers 1..9"),
        ("default_workload: reads", "default_workload: read", "load.default_workload: workload: 'read' is unknown"),
        ("verify:", "checks: {off: {G3.: never}}\nverify:", "checks.off.G3.: String should match pattern"),
        ("verify:", "checks: {own: {a: {title: A, expect: total(back reads) == 0}}}\nverify:",
         "checks.own.a: total counts events; reads does not end with _per_s"),
        ("verify:", "checks: {own: {a: {title: A, expect: total(cache reads_per_s) == 0}}}\nverify:",
         "checks.own.a.expect: tier: 'cache' is unknown"),
        ("notation:",
         "variants: {v: {title: V, tier: back, default: a, choices: {a: {ports: {back: [81]}}}}}\nnotation:",
         "variants.v.choices.a.ports.back.0: port: '81' is unknown; allowed are none"),
        ("kind: command, command: [python3, load.py]", "kind: jmeter, plan: load.jmx", "load.jmx does not exist"),
        ('factor: {name: users, title: Users, default: "10,20"}',
         'parameters: {rate: {title: R, range: [1, 9], default: 1}}\n  factor: {name: rate, title: R, default: "1,2", '
         'scales: true}',
         "load.factor.scales: only users are multiplied by the scale; the factor is rate"),
        ("title: Front", "title: Front\n    node_type: big", "tiers.0.node_type: node type: 'big' is unknown"),
        ("example: 1/2", "example: 1/2, node_types: {L: {tier: back, node_type: big}}",
         "notation.node_types.L.node_type: node type: 'big' is unknown"),
        ("default: 4", "default: {by: node_type, values: {low_cost: 4}}",
         "settings.workers.default.values: none for normal"),
        (SMALL[SMALL.index("notation"):SMALL.index("load:")],
         "notation: {forms: [[front, back]], example: 1/2, node_types: {L: {tier: back, node_type: low_cost}}}\n"
         "settings:\n"
         "  threads: {title: T, tier: back, range: [1, 9], default: {by: node_type, values: {normal: 4}}}\n",
         "settings.threads.default.values: none for low_cost"),
        ("name: back", "name: back_end", "tiers.1.name: back_end: machines are named by it, and a machine's name"),
        ("load.py]", "load.py], files: [load.py]",
         "load.driver.command.1: 'load.py' is a program of the client; the system's own file is called ./load.py"),
        ("load.py]", "load/drvier.py]", "load/drvier.py is no file; a word with / names a file of the system's folder"),
        ("load.py]", "load.py], files: [a/x.csv, b/x.csv]", "load.driver: two files have the name x.csv"),
        ("load:", DATA.replace("}}", "}, in_image: true}"),
         "data.in_image: setup/images/images.yml makes images with the data of rubbos only; leave it out"),
        ("load:", DATA.replace("}}", "}, told: {a: b}}"), "data.told: needs generate: CMD"),
        ("load:", DATA.replace("}}", "}, generate: [awk, '{print}']}"),
         "data.generate.1: '{print}': in braces are allowed {profile}, {seed}, {now_s}, {out}; write {{ and }} for"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(tmp_path, old, new, says):
    problems = said(tmp_path, SMALL.replace(old, new, 1))
    assert any(says in line for line in problems), problems
    assert not any("\n" in line for line in problems)


@pytest.mark.parametrize("word", ["/usr/bin/load", "--url=a/b", "http://shop/a", "plain"])
def test_other_words_of_a_command_are_no_files(tmp_path, word):
    assert said(tmp_path, SMALL.replace("load.py]", f'"{word}"]')) == []


def test_a_mix_whose_name_nobody_could_ask_for_is_refused(tmp_path):
    (tmp_path / "small/mixes").mkdir(parents=True)
    begin, end = SMALL.index("  workloads:"), SMALL.index("  default_workload:")
    text = SMALL[:begin] + "  mixes: mixes\n" + SMALL[end:]
    (tmp_path / "small/mixes/reads.csv").touch()
    assert said(tmp_path, text) == []
    (tmp_path / "small/mixes/my mix.csv").touch()
    (line,) = said(tmp_path, text)
    assert "mixes/my mix.csv: a mix is called by the name of its file, which may have a-z, 0-9, _ and -" in line


def test_mixes_have_the_default_one_and_users_who_think(tmp_path):
    (tmp_path / "small/mixes").mkdir(parents=True)
    for name in ("mixes/reads.csv", "load.jmx"):
        (tmp_path / "small" / name).touch()
    begin, end = SMALL.index("  workloads:"), SMALL.index("  default_workload:")
    text = SMALL[:begin] + "  mixes: mixes\n" + SMALL[end:]
    text = text.replace("kind: command, command: [python3, load.py]", "kind: jmeter, plan: load.jmx")
    assert said(tmp_path, text) == []
    (line,) = said(tmp_path, text.replace("default_workload: reads", "default_workload: writes"))
    assert "load.default_workload: mix: 'writes' is unknown; allowed are reads" in line
    (line,) = said(tmp_path, text.replace("model: closed", "model: open"))
    assert "load.model: open: users who walk a mix think; give closed, or workloads: for mixes:" in line


def own_roles(tmp_path: Path, **handlers: str) -> str:
    """The small system with roles of its own before those of its two tiers; role -> name of its handler."""
    for role, name in handlers.items():
        for part, text in (("tasks", "[]"), ("handlers", f"- name: {name}\n  listen: []\n")):
            (tmp_path / "small/roles" / role / part).mkdir(parents=True)
            (tmp_path / "small/roles" / role / part / "main.yml").write_text(text)
    one, other = handlers
    return SMALL.replace("[web]", f"[{one}]").replace("[postgresql]", f"[{other}]")


def test_a_handler_of_another_tier_would_be_the_one_that_runs(tmp_path):
    text = own_roles(tmp_path, one="Restart it", two="Restart it")
    (line,) = said(tmp_path, text)
    assert line.startswith("system.yaml, line 12: tiers.1.roles.0: ")
    assert line.endswith("two/handlers/main.yml: one has a handler 'Restart it' too; put the unit's name into it")


@pytest.mark.parametrize("names", [("Restart one", "Restart two"), ("Restart {{ a }}", "Restart {{ a }}")])
def test_handlers_of_other_names_and_of_variables_are_right(tmp_path, names):
    one, two = (f'"{name}"' for name in names)
    assert said(tmp_path, own_roles(tmp_path, one=one, two=two)) == []


def test_a_handler_of_a_role_of_every_node_is_taken(tmp_path):
    (line,) = said(tmp_path, own_roles(tmp_path, one="Load the packet filter", two="Restart two"))
    assert "common has a handler 'Load the packet filter' too" in line


def test_a_role_that_would_replace_one_of_ntier_s_own_is_refused(tmp_path):
    (tmp_path / "small/roles/monitor/tasks").mkdir(parents=True)
    (line,) = said(tmp_path, SMALL)
    assert line.endswith("small/roles/monitor: would replace Ntier's own role monitor; give it another name")


def test_the_roles_of_ntier_s_own_are_those_that_are_included_by_name():
    """And the client's, whose nodes are no tier's."""
    included = re.compile(r"(?:include|import)_role:(?:\s*\{\s*|\s+)name:\s*([a-z_]+)")
    files = [p for folder in ("playbooks", "roles") for p in (ROOT / "ansible" / folder).rglob("*.yml")]
    assert {name for file in files for name in included.findall(file.read_text())} | {"client"} == set(OWN_ROLES)


@pytest.mark.parametrize(
    ("commands", "code", "printed"),
    [
        (["echo one", "echo two"], 0, "one\ntwo\n"),
        (["false && true", "echo two"], 1, ""),
        (["echo {{ one }} # a remark", "exit 3"], 3, "{{ one }}\n"),
    ],
)
def test_all_commands_that_reset_a_tier_are_run_until_one_fails(tmp_path, commands, code, printed):
    resets = [Reset(tier="back", command=command) for command in commands]
    said(tmp_path, SMALL)
    definition = examine(tmp_path / "small", ROLES)[0].model_copy(update={"reset": resets})
    done = subprocess.run(["sh", "-c", definition.reset_of("back")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (code, printed)
    assert definition.reset_of("front") == ""


def test_any_check_can_be_off(tmp_path):
    """Ids as the analysis has them (docs/validity.md)."""
    off = "checks: {off: {E2: no pages, G3.gc: no JVM, G2.p99: no sessions, C1.end: none}}\nverify:"
    assert said(tmp_path, SMALL.replace("verify:", off)) == []


def test_a_wrong_system_does_not_hide_the_others(root, monkeypatch):
    (root / "systems/small").mkdir()
    (root / "systems/small/system.yaml").write_text(SMALL.replace("kind: command", "kind: comand"))
    monkeypatch.setenv("NTIER_ROOT", str(root))
    listed = CliRunner().invoke(cli, ["systems"])
    assert listed.output.startswith("rubbos: ")
    assert isinstance(listed.exception, RequestError), "which main makes exit code 2"
    assert "load.driver.kind" in str(listed.exception)
    found = doctor.brought(root, root / "state")
    assert [(f.what, f.level) for f in found if "load.driver.kind" in f.detail] == [("system", "warn")]
    assert any(f.what == "proxysql" for f in found)


def test_check_ends_with_code_2(tmp_path):
    said(tmp_path, SMALL.replace("roles: [web]", "roles: [wep]"))
    done = CliRunner().invoke(cli, ["systems", "check", str(tmp_path / "small")])
    assert done.exit_code == 2
    assert "wep: no such role" in done.output
    said(tmp_path, SMALL)
    assert CliRunner().invoke(cli, ["systems", "check", str(tmp_path / "small")]).exit_code == 0


@pytest.fixture
def plan(root):
    """A request of the small system, which has a variable beside the users."""
    folder = root / "systems" / "small"
    folder.mkdir()
    more = (
        "  parameters:\n    sleep_s: {title: Pause, unit: s, range: [0, 10.0], default: 1}\n"
        "    kind: {title: Kind, choices: [a, b], default: a}\n"
    )
    (folder / "system.yaml").write_text(SMALL.replace("  default_workload", more + "  default_workload"))

    def make(**options):
        return make_spec({"system": "small", "topo": "1/2"} | options, root, 2)

    return make


def test_another_system_has_its_name_in_its_keys(plan):
    spec = plan()
    assert spec.sweep == "small.1-2.reads"
    assert [t.key for t in order(spec)] == ["u00010.r01", "u00020.r01"]
    assert values(spec) == {"ntier_scale": 0.3, "sleep_s": 1, "kind": "a", "workers": 4}
    assert spec.images == ("web", "postgresql", "client")
    assert (spec.data_profile, spec.middleware) == ("none", "none")
    described = [(t["name"], t["count"], t["role"]) for t in common_variables(spec)["tiers"]]
    assert described == [("front", 1, "web"), ("back", 2, "postgresql"), ("client", 1, "client")]


@pytest.mark.parametrize(
    ("topo", "known"),
    [("1/2/1M", ["pages_computed"]), ("1/2/1/1M", ["cache_evicted", "cache_refused", "pages_computed"])],
)
def test_a_trial_records_the_checks_of_its_tiers(topo, known):
    spec = make_spec({"system": "mediawiki", "topo": topo}, ROOT, 2)
    told = described(spec, order(spec)[0])
    assert sorted(told.checks_own) == known
    assert told.checks_own["pages_computed"].wanted.bound == 0.9


@pytest.mark.parametrize(("system", "topo", "told"), [("rubbos", "1/1/1/1M", True), ("toy", "1/1", False)])
def test_a_trial_records_whether_its_nodes_tell_what_they_hold(system, topo, told):
    """Without that, check R2 would refuse every trial of a system that writes and has two databases."""
    spec = make_spec({"system": system, "topo": topo}, ROOT, 2)
    assert described(spec, order(spec)[0]).restores is told


def test_any_number_may_be_the_factor(plan):
    spec = plan(factor="sleep_s=0.5,0.1,2", users="30", reps="2")
    assert spec.sweep == "small.1-2.reads.sleep-s-users30"
    keys = [t.key for t in order(spec)]
    assert keys[:3] == ["sleep_s-0_1.r01", "sleep_s-2.r01", "sleep_s-0_5.r01"]
    assert len(set(keys)) == 6
    assert {t.users for t in order(spec)} == {30}
    assert len({t.seed for t in order(spec) if t.rep == 1}) == 1
    assert "sleep_s" not in values(spec)
    assert [spec.parameters(t.value)["sleep_s"] for t in order(spec)[:3]] == [0.1, 2.0, 0.5]


@pytest.mark.parametrize(
    ("system", "topo", "opened"),
    [
        ("rubbos", "1/2/1/1M",
         {"web": ["client 80"], "app": ["web 8080"], "middleware": ["app 3306"], "db": ["middleware 3306"]}),
        ("rubbos", "1/2/1/1P",
         {"web": ["client 80"], "app": ["web 8080"], "middleware": ["app 5432"], "db": ["middleware 5432"]}),
        ("mediawiki", "1/2/1M", {"web": ["client 80"], "app": ["web 9000"], "db": ["app 3306"]}),
        ("mediawiki", "1/2/1/1P",
         {"web": ["client 80"], "app": ["web 9000"], "cache": ["app 11211"], "db": ["app 5432"]}),
        ("toy", "2/1", {"web": ["client 80"], "db": ["web 5432"]}),
        ("two-phase-commit", "2", {"node": ["client 5432", "node 5432"]}),
    ],
)  # fmt: skip
def test_only_who_asks_a_tier_may_connect_and_only_where_it_serves(system, topo, opened):
    by_tier = services(make_spec({"system": system, "topo": topo}, ROOT, 2))
    assert {tier: [f"{s['from']} {s['port']}" for s in served] for tier, served in by_tier.items()} == opened


def test_clients_reach_what_verifies_too(plan):
    file = plan().system.folder / "system.yaml"
    file.write_text(file.read_text() + "    - {name: health, tier: back, port: 8081, path: /}\n")
    assert services(plan()) == {
        "front": [{"from": "client", "port": 80}],
        "back": [{"from": "client", "port": 8081}],
    }, "back has no ports that front reaches"


def test_what_a_command_generated_is_handed_to_the_roles_of_any_system(plan, lab):
    def spec(seed=1):
        file.write_text(text.replace("load:", DATA.replace("}}", f"}}, seed: {seed}, {made}}}"), 1))
        return plan()

    file = plan().system.folder / "system.yaml"
    text, made, machine = file.read_text(), 'generate: [java, "{profile}", --out, "{out}"]', lab()
    assert spec().images == ("web", "postgresql", "client"), "not an image with the data of another system"
    told = tables.for_roles(machine.runner, machine.paths, spec())
    folder = Path(told["ntier_data_source"])
    assert (folder / "data.json").exists()
    assert len(told["ntier_data_digest"]) == 64
    assert folder.name.startswith("small-tiny-")
    other = tables.for_roles(machine.runner, machine.paths, spec(seed=2))
    assert other["ntier_data_source"] != str(folder), "data of another seed are other data"


def test_roles_that_make_the_data_are_told_the_seed(plan, lab):
    file, machine = plan().system.folder / "system.yaml", lab()
    file.write_text(file.read_text().replace("load:", DATA.replace("}}", "}, seed: 3}"), 1))
    asked = SimpleNamespace(nodes=SimpleNamespace(tier=lambda _: []), runner=machine.runner, paths=machine.paths)
    assert of_tiers(asked, plan())["ntier_data_seed"] == 3


def test_a_command_that_does_not_describe_its_data_is_named(plan, lab, monkeypatch):
    file = plan().system.folder / "system.yaml"
    file.write_text(file.read_text().replace("load:", DATA.replace("}}", "}, generate: [java]}"), 1))
    machine = lab()
    monkeypatch.setattr(machine.runner, "run", lambda *_a, **_b: None)
    with pytest.raises(WorkError, match=r"small/system.yaml: data.generate: the command made no .*/data.json"):
        tables.for_roles(machine.runner, machine.paths, plan())


def test_set_up_makes_the_programs_that_a_command_uses():
    rubbos = find(ROOT, "rubbos").definition.data
    assert makers(ROOT, rubbos.generate) == ["rubbos-app"]
    assert makers(ROOT, ["java", "-jar", "other.jar"]) == []


@pytest.mark.parametrize("key", ["u01000.r01", "sleep_s-0_1.r02.a2", "n-100.r01"])
def test_trials_of_any_factor_are_found_again(tmp_path, key):
    (tmp_path / key).mkdir()
    (tmp_path / key / "manifest.json").write_text("torn")
    assert list(attempts(tmp_path)) == [key.removesuffix(".a2")]


def test_settings_and_factors_of_whole_numbers_are_whole(plan):
    """Also a negative one; a driver that makes a range of it could not take 1000.0."""
    file = plan().system.folder / "system.yaml"
    file.write_text(file.read_text().replace("[1, 10]", "[-20, 19]").replace("[0, 10.0]", "[0, 10]"))
    assert plan(set=["workers=-5"]).settings == {"workers": -5}
    for wrong in ("-21", "1_0", "+1", "1.0", "--1", ""):
        with pytest.raises(RequestError, match=r"is out of range; allowed are -20\.\.19"):
            plan(set=[f"workers={wrong}"])
    spec = plan(factor="sleep_s=1,2")
    assert json.dumps([spec.parameters(value)["sleep_s"] for value in spec.values]) == "[1, 2]"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"users": "1,30", "clients": "2"}, "users: 1 at scale 0.3 are 1 real user for 2 clients; each needs one"),
        ({"factor": "sleep_s=1", "clients": "2"}, "users: 1 at scale 0.3 are 1 real user for 2 clients"),
        ({"factor": "sleep=1"}, "factor: 'sleep=1' is unknown (did you mean 'sleep_s=...'?); allowed are users="),
        ({"factor": "sleep_s"}, "is unknown"),
        ({"factor": "kind=a"}, "is unknown"),
        ({"factor": "sleep_s=11"}, "factor sleep_s: 11 is out of range; allowed are 0..10.0"),
        ({"factor": "sleep_s=a"}, "expected first:last:step or a list"),
        ({"factor": "sleep_s=0:inf:1"}, "expected first:last:step or a list"),
        ({"factor": "sleep_s=0:1:nan"}, "expected first:last:step or a list"),
        ({"factor": "sleep_s=0:1:0.0001"}, "gives more values than the 999 that are allowed"),
        ({"factor": "sleep_s=1", "users": "1,2"}, "sleep_s is the factor; give one number of users"),
        ({"factor": "users=1", "users": "1"}, "users are given twice"),
        ({"factor": "sleep_s=1", "search": "capacity"}, "capacity searches over users, but the factor is sleep_s"),
        ({"system": "smal"}, "system: 'smal' is unknown (did you mean 'small'?)"),
        ({"topo": "1/2/3"}, "topo: topology '1/2/3': expected numbers front/back"),
        ({"set": ["workers=11"]}, "set workers: '11' is out of range; allowed are 1..10"),
        ({"data": "tiny"}, "the system has no data profiles"),
        ({"middleware": "haproxy"}, "middleware: system small has none"),
        ({"variant": ["x=y"]}, "variant: 'x' is unknown"),
    ],
)  # fmt: skip
def test_a_wrong_request_is_one_clear_error(plan, options, says):
    with pytest.raises(RequestError) as error:
        plan(**options)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "more", "says"),
    [
        ("roles: [postgresql]", "roles: [postgresql]\n    talks_to: [front]", [], "a cycle: front -> back -> front"),
        ("talks_to: [back]", "talks_to: [cache]", [], "tier: 'cache' is unknown"),
        ("roles: [web]", "roles: [wep]", [], "wep: no such role in"),
        ("    title: Back\n", "\ttitle: Back\n", [], "found a tab character"),
        ("default: 4", "default: 40", [], "40 is out of range; allowed are 1..10"),
        ("", "", ["--set", "workers=11"], "set workers: '11' is out of range; allowed are 1..10"),
        ("", "", ["--set", "worker=1"], "set: 'worker' is unknown (did you mean 'workers'?)"),
    ],
)
def test_a_wrong_system_is_one_line_and_leaves_nothing(plan, root, monkeypatch, capsys, old, new, more, says):
    file = root / "systems" / "small" / "system.yaml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new, 1))
    monkeypatch.setenv("NTIER_ROOT", str(root))
    monkeypatch.setenv("NTIER_STATE", str(root / "state"))
    monkeypatch.setattr(sys, "argv", ["ntier", "sweep", "--system", "small", "--topo", "1/2", *more])
    before = sorted(root.rglob("*"))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert says in line
    assert sorted(root.rglob("*")) == before


def test_a_change_of_a_system_s_own_role_is_installed_anew(plan, lab):
    """As set-up's digests do for shared roles, which stay what they are."""
    spec, machine = plan(), lab()
    assert installs(machine, spec) == {}, "all of its roles are shared ones"
    known = {"ntier_install_digests": {"web": "one", "postgresql": "two"}}
    machine.paths.install_digests.parent.mkdir(parents=True)
    machine.paths.install_digests.write_text(json.dumps(known))
    tasks = spec.system.folder / "roles" / "web" / "tasks"
    tasks.mkdir(parents=True)
    installed = []
    for text in ("[]", "[]", "[{}]"):
        (tasks / "install.yml").write_text(text)
        installed.append(installs(machine, spec)["ntier_install_digests"])
    assert installed[0] == installed[1]
    assert installed[0]["web"] != installed[2]["web"]
    assert {digests["postgresql"] for digests in installed} == {"two"}
    assert "one" not in {digests["web"] for digests in installed}


def test_a_file_that_may_be_run_is_another_file(tmp_path):
    (tmp_path / "driver.py").write_text("#!/usr/bin/env python3\n")
    (tmp_path / "driver.py").chmod(0o644)
    before = hash_of(tmp_path, [tmp_path])
    (tmp_path / "driver.py").chmod(0o755)
    assert hash_of(tmp_path, [tmp_path]) != before


def test_a_role_that_does_not_say_what_it_leaves_does_not_come_to_machines_of_others(plan, root, tmp_path, monkeypatch):
    monkeypatch.setattr(Runner, "has", lambda *_: True)
    spec = plan(target="hosts")
    hosts = "".join(f"- address: 10.0.0.{i}\n" for i in range(1, 5))
    (tmp_path / "lab.yaml").write_text(f"hosts:\n{hosts}")
    target = Hosts(Runner(), Paths(root, tmp_path, tmp_path, "hosts"), tmp_path / "lab.yaml")
    target.check(spec)
    role = spec.system.folder / "roles" / "postgresql"
    role.mkdir(parents=True)
    with pytest.raises(RequestError, match=r"hosts: .*small/roles/postgresql/made.yml does not exist; say there what"):
        target.check(spec)
    (role / "made.yml").touch()
    target.check(spec)


def test_no_module_knows_a_system_by_name():
    """Names of systems, tiers, interactions, programs and settings are in `systems/` alone. `middleware` is a field of
    the manifest and an option, too; `Read` is a word of the kernel's (blkio), `node` one of ours."""
    known = set()
    for definition in (find(ROOT, name).definition for name in names(ROOT)):
        choices = [c for v in definition.variants.values() for c in v.choices]
        known |= {definition.name, *definition.tier_names, *definition.interactions, *definition.settings, *choices}
    quoted = re.compile(rf"""["'/]({"|".join(map(re.escape, sorted(known - {"middleware", "Read", "node"})))})["'/]""")
    sources = (ROOT / "harness/src").rglob("*.py")
    places = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in [*sources, *(ROOT / "terraform/modules/topology").glob("*.tf")]
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if quoted.search(line)
    ]
    assert places == []


def test_interactions_are_the_plans():
    """Each sampler of the JMeter plan is an interaction of the system, and the other way round."""
    system = find(ROOT, "rubbos")
    plan = system.path(system.definition.load.driver.plan).read_text()
    assert set(re.findall(r'<HTTPSamplerProxy [^>]*testname="([^"]+)"', plan)) == set(system.definition.interactions)


@pytest.mark.parametrize("text", ["1/2/1/9ML", "1-2-1-9ML", "1/1/1/1P"])
def test_a_topology_is_printed_back(text):
    assert parse(find(ROOT, "rubbos").definition, text).slug == text.replace("/", "-")


def test_another_number_of_workers_is_another_experiment(plan, lab):
    """The factor is the pause, so a trial's name does not tell."""
    asked = {"factor": "sleep_s=1", "name": "mine"}
    ten, twenty = (plan(**asked, users=n) for n in ("10", "20"))
    [trial] = order(ten)
    machine = lab()
    client = Node(name="client1", tier="client", index=1, role="client", address="192.0.2.1", node_type="client")
    machine._nodes = Nodes(machine.runner, machine.paths, [client])
    there = {trial.key: [Attempt(Path("x/y"), trial.key, 1, planned(machine, ten, trial, 1, values(ten)))]}
    check_same_experiment(ten, there, values(ten))
    with pytest.raises(RequestError, match=r"users \(10 there\)"):
        check_same_experiment(twenty, there, values(twenty))


def test_rules_see_the_values_of_the_factor():
    asked = {"system": "two-phase-commit", "topo": "2"}
    spec = make_spec(asked | {"factor": "alter_threads=8,64"}, ROOT, 2)
    assert values(spec)["node_max_prepared_transactions"] == 64
    for more in ({"mix": "logical", "factor": "delay_ms=0,5"}, {"factor": "transfers=5.5"}):
        with pytest.raises(RequestError):
            make_spec(asked | more, ROOT, 2)


def test_many_options_still_give_a_name(spec):
    many = {"target": "hosts", "phases": "120/600/30", "data": "tiny", "clients": "4", "seed": "123456", "trace": "100"}
    one, other = (spec(**many, set=[f"web_max_workers={n}"]).name for n in (60, 61))
    assert one != other
    assert len(one) == len(other) == 40
