"""Systems as data in plans, trials and deployments: keys, factors, settings, roles, images."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from ntier_analysis.contracts.nodes import Node
from ntier_harness import tables
from ntier_harness.cli import main
from ntier_harness.connections import services
from ntier_harness.deploy import installs, of_tiers
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
from ntier_harness.systems.notation import parse
from ntier_harness.targets.hosts import Hosts
from ntier_harness.targets.terraform import common_variables
from ntier_harness.trial import described, planned

from .small_system import DATA, SMALL

ROOT = Path(__file__).resolve().parents[2]


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
