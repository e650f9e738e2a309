"""Systems as data: what is wrong with a system.yaml is said with file, line, key and what is allowed."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from ntier_harness import doctor
from ntier_harness.cli import cli
from ntier_harness.errors import RequestError
from ntier_harness.systems import find, names
from ntier_harness.systems.definition import Reset, schema
from ntier_harness.systems.on_disk import OWN_ROLES
from ntier_harness.systems.reading import OF_NODES, examine

from .small_system import DATA, SMALL

ROOT = Path(__file__).resolve().parents[2]
ROLES = ROOT / "ansible" / "roles"


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
        ("roles: [web]\n", "roles: [web]\n    image: webb\n",
         "line 9: tiers.0.image: image: 'webb' is unknown (did you mean 'web'?); allowed are web, app, shardingsphere"),
        ("path: /}", "path: /a page}", "line 33: verify.requests.0.path: String should match pattern"),
        ("path: /}", 'path: "/{{ secret }}"}', "line 33: verify.requests.0.path: String should match pattern"),
        ("path: /}", "path: /#top}", "line 33: verify.requests.0.path: String should match pattern"),
        ("path: /}", "path: /caf\u00e9}", "line 33: verify.requests.0.path: String should match pattern"),
        ("port: 80}\n  factor", "port: 80, path: shop}\n  factor", "load.entry.path: String should match pattern"),
        ("model: closed", "model: open\n  think_time_s: 7",
         "line 23: load.think_time_s: only the users of a closed load think, and model is open; leave it out"),
        ("model: closed", "model: work\n  think_time_s: 7", "load.think_time_s: only the users of a closed load think"),
    ],
)  # fmt: skip
def test_what_a_request_or_a_deployment_would_stumble_over_later(tmp_path, old, new, says):
    assert old in SMALL
    found = said(tmp_path, SMALL.replace(old, new, 1))
    assert any(says in text for text in found), found


@pytest.mark.parametrize("image", ["web", "base-sid", "mysql-tiny"])
@pytest.mark.parametrize("path", ["/", "/a%20page?n={n}&q=x".replace("{n}", "1"), "/w/index.php?title=A:B"])
def test_what_set_up_makes_and_a_request_line_takes_is_right(tmp_path, image, path):
    text = SMALL.replace("roles: [web]\n", f"roles: [web]\n    image: {image}\n").replace(
        "path: /}", f'path: "{path}"}}'
    )
    assert said(tmp_path, text) == []
    thinking = SMALL.replace("title: Reads,", "title: Reads, think_time_s: 2,")
    assert said(tmp_path, thinking) == []
    assert said(tmp_path, thinking.replace("model: closed", "model: open")) == [
        "system.yaml, line 26: load.workloads.reads.think_time_s: only the users of a closed load think, and model is "
        "open; leave it out"
    ]


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
