"""Roles without nodes: typed arguments, the packet filter's matrix, Apache's worker arithmetic."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

ANSIBLE = Path(__file__).resolve().parents[1]
ROLES = sorted(path.name for path in (ANSIBLE / "roles").iterdir() if path.is_dir())
HOMES = {path.name: path for path in ANSIBLE.parent.glob("systems/*/roles/*")} | {  # folder of each role
    role: ANSIBLE / "roles" / role for role in ROLES
}
SHARED = {  # variables of the experiment and of the inventory: typed where they are used, set outside of the roles
    "ntier_scale", "ntier_controller_address", "app_db_password", "middleware_db_password", "monitor_db_password",
    "middleware_login", "app_database_user", "ntier_whole_machine",
}  # fmt: skip


def read(role: str, path: str) -> dict[str, Any]:
    file = HOMES[role] / path
    return (yaml.safe_load(file.read_text()) or {}) if file.exists() else {}


def read_list(role: str, path: str) -> list[dict[str, Any]]:
    return list(read(role, path) or [])


@pytest.mark.parametrize("role", ROLES)
def test_every_variable_is_typed_and_described(role):
    specs = read(role, "meta/argument_specs.yml")["argument_specs"]
    options = {name: option for spec in specs.values() for name, option in spec.get("options", {}).items()}
    for name, option in options.items():
        assert option.get("type"), name
        assert option.get("description"), name
    assert set(read(role, "defaults/main.yml")) <= set(options), "defaults without a type"
    undefined = {name for name, option in options.items() if not option.get("required")} - SHARED
    assert undefined - {f"{role}_data_source"} <= set(read(role, "defaults/main.yml")), "options without a default"


@pytest.mark.parametrize("role", ROLES)
def test_a_stated_default_is_the_default(role):
    options = read(role, "meta/argument_specs.yml")["argument_specs"]["main"].get("options", {})
    defaults = read(role, "defaults/main.yml")
    for name, option in options.items():
        if "default" in option and name in defaults and not str(defaults[name]).startswith("{{"):
            assert defaults[name] == option["default"], name


@pytest.mark.parametrize("system", ["rubbos", "mediawiki", "toy"])
def test_a_setting_has_its_default_in_the_system_alone(system):
    """Roles take its value; at most they say that there is none, in a system that does not have the setting."""
    settings = yaml.safe_load((ANSIBLE.parent / "systems" / system / "system.yaml").read_text())["settings"]
    for role in sorted(HOMES):
        specs = read(role, "meta/argument_specs.yml").get("argument_specs", {})
        optional = {n for n, o in specs.get("main", {}).get("options", {}).items() if not o.get("required")}
        assert not optional & set(settings), role
        for name, value in read(role, "defaults/main.yml").items():
            assert name not in settings, role
            assert not re.search(rf"\b({'|'.join(settings)}) *\| *default\((?!''\))", str(value)), (role, name)


# machine is for what no image is made for
@pytest.mark.parametrize("role", sorted({*ROLES, "mediawiki_app", "memcached"} - {"machine"}))
def test_an_image_holds_no_peer_no_address_and_no_secret(role):
    text = (HOMES[role] / "tasks/install.yml").read_text() + str(read(role, "vars/main.yml"))
    assert not re.search(r"groups\[|ntier_addresses|hostvars|_password|\{\{ address", text)


@pytest.mark.parametrize("role", sorted(HOMES))
def test_nothing_lies_in_everybodys_folder_under_a_name_that_is_known_before(role):
    """On the controller others have accounts, too: what they put there first would be written over or sent."""
    tasks = "".join(file.read_text() for file in HOMES[role].glob("tasks/*.yml"))
    assert not re.search(r"(?<!/var)/tmp/", tasks)


# ---- the programs of a node (role program) --------------------------------------------------------------------------

PROGRAMS = [role for role in sorted(HOMES) if f"{role}_program" in read(role, "vars/main.yml")]
SPEC = read("program", "meta/argument_specs.yml")["argument_specs"]["main"]["options"]["program_spec"]["options"]


def program(role: str) -> dict[str, Any]:
    return read(role, "vars/main.yml")[f"{role}_program"]


def tasks(role: str, name: str) -> list[dict[str, Any]]:
    file = HOMES[role] / "tasks" / name
    return yaml.safe_load(file.read_text()) if file.exists() else []


def test_every_role_but_the_shared_ones_is_a_program():
    assert set(ROLES) - set(PROGRAMS) == {"database", "machine", "ndb", "program"}
    assert set(PROGRAMS) - set(ROLES) == {"mediawiki_app", "memcached"}


@pytest.mark.parametrize("role", PROGRAMS)
def test_a_program_is_described_in_known_words_and_its_files_are_there(role):
    spec = program(role)
    assert spec["role"] == role
    assert set(spec) <= set(SPEC)
    assert {name for name, option in SPEC.items() if option.get("required")} <= set(spec)
    assert set(spec.get("reports", {})) <= set(SPEC["reports"]["options"])
    for folder in spec.get("folders", []):
        assert set(folder) <= set(SPEC["folders"]["options"])
    files = HOMES[role] / "files"
    for place, source in spec.get("files", {}).items():
        assert place.startswith("/")
        assert "{{" in source or (files / source).is_file(), source
    assert spec.get("check") in {None, *spec.get("files", {})}


@pytest.mark.parametrize("role", PROGRAMS)
def test_a_program_is_installed_and_deployed_by_the_shared_role(role):
    """What its tasks notify is a handler: the unit's, or its own."""
    shared = {"name": "program", "tasks_from": "install"}
    (installed,) = [task for task in tasks(role, "install.yml") if task.get("ansible.builtin.include_role") == shared]
    deployed = tasks(role, "main.yml")[-1]
    assert deployed["ansible.builtin.include_role"] == {"name": "program"}
    for task in (installed, deployed):
        assert task["vars"]["program_spec"] == f"{{{{ {role}_program }}}}"
    handlers = read_list(role, "handlers/main.yml")
    known = {handler.get("listen", handler["name"]) for handler in handlers} | {f"Restart {program(role).get('unit')}"}
    own = [task for name in ("install.yml", "configure.yml", "started.yml") for task in tasks(role, name)]
    assert {task["notify"] for task in own if "notify" in task} <= known


@pytest.mark.parametrize(
    ("role", "folders"),
    [
        ("app", {"/opt/ntier/app/rubbos"}),
        (
            "client",
            {
                "/opt/ntier/jmeter",
                "/opt/ntier/jmeter.jsa",
                "/opt/ntier/jmeter.jsa.java",
                "/opt/ntier/workloads/dictionary.txt",
            },
        ),
    ],
)
def test_what_is_unpacked_lies_beside_nothing_older(role, folders):
    """A node that is kept is installed again: all jars of a folder are on the class path."""
    first, second, *_ = tasks(role, "install.yml")
    removed = first["ansible.builtin.file"]
    assert removed["state"] == "absent"
    assert set(first.get("loop", [removed["path"]])) == folders
    assert second["ansible.builtin.include_role"] == {"name": "program", "tasks_from": "install"}  # makes the folder


def test_the_interface_of_a_middleware_names_folders_that_are_read():
    text = (ANSIBLE.parent / "docs/decisions/middleware.md").read_text()
    named = {name for names in re.findall(r"/etc/ntier/\{(.*?)\}\.d", text) for name in names.split(",")}
    read_there = set(re.findall(r'"(\w+)\.d"', (ANSIBLE / "roles/monitor/files/ntier-node").read_text()))
    assert named
    assert named <= read_there


@pytest.mark.parametrize("role", PROGRAMS)
def test_a_service_that_is_kept_gets_what_an_installation_changes_of_its_configuration(role):
    """A handler, or a template of the deployment that has the file's digest: a server reads it when it starts."""
    templates = "".join(file.read_text() for file in (HOMES[role] / "templates").glob("*"))
    for task in tasks(role, "install.yml"):
        copied = task.get("ansible.builtin.copy", {})
        source, place = str(copied.get("src", "")), str(copied.get("dest", ""))
        if place.startswith(("/etc/mysql", "{{ postgresql_etc }}")) and source:
            assert "notify" in task or f"files/{source}') | hash(" in templates, source


@pytest.mark.parametrize("role", ["database", "ndbsql"])
def test_the_account_of_a_dbms_can_read_what_it_loads_whatever_the_umask_of_the_checkout(role):
    copied = [task["ansible.builtin.copy"] for task in walk(tasks(role, "load.yml")) if "ansible.builtin.copy" in task]
    assert {task["mode"] for task in copied if task["dest"].startswith("/var/tmp/ntier-schema")} == {"0644"}


def walk(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tasks, and those in their blocks."""
    return [inner for task in listed for inner in (task, *walk(task.get("block", [])))]


def test_a_reset_command_that_a_system_no_longer_has_goes_from_the_nodes(tmp_path):
    """The playbook's own tasks, as Ansible runs them, on a folder of the test's own."""
    (deploy,) = yaml.safe_load((ANSIBLE / "playbooks/deploy.yml").read_text())
    own = yaml.safe_load(
        yaml.safe_dump([t for t in deploy["tasks"] if "90-system" in str(t)]).replace("/etc/ntier", str(tmp_path))
    )
    for task in own:
        for name in ("owner", "group"):
            task.get("ansible.builtin.copy", {}).pop(name, None)
    (tmp_path / "reset.d").mkdir()
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": own}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    for reset, there in (({"db": "dHJ1ZQ=="}, True), ({"web": "dHJ1ZQ=="}, False)):
        variables = {"ntier_tier": "db", "ntier_reset": reset, "ansible_python_interpreter": sys.executable}
        argv = [Path(sys.executable).with_name("ansible-playbook"), "-i", "localhost,", tmp_path / "play.yml"]
        done = subprocess.run([*argv, "-e", json.dumps(variables)], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stdout[-2000:]
        assert (tmp_path / "reset.d/90-system").exists() == there


def test_the_readme_shows_a_role_as_it_is():
    blocks = re.findall(r"```yaml\n(.*?)```", (ANSIBLE / "README.md").read_text(), re.DOTALL)
    described, called = (yaml.safe_load(block) for block in blocks)
    assert described == read("haproxy", "vars/main.yml")
    assert called == tasks("haproxy", "main.yml")[-1:]


@pytest.mark.parametrize("role", sorted(set(PROGRAMS) - {"common", "monitor", "client"}))
def test_a_service_is_reset_and_measured_and_says_its_version(role):
    spec = program(role)
    assert f"/etc/ntier/reset.d/50-{role}" in spec["files"]
    assert any(place.startswith("/etc/ntier/collectors.d/") for place in spec["files"])
    assert any(line.split()[1] == spec["unit"] for line in spec["reports"]["running"])


def test_readmes_are_current():
    done = subprocess.run([sys.executable, ANSIBLE / "readme.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def filter_of(tier: str, dbms: str = "mysql") -> list[str]:
    nodes = {"web1": "198.18.1.11", "app1": "198.18.1.21", "app2": "198.18.1.22", "middleware1": "198.18.1.31",
             "db1": "198.18.1.41", "client1": "198.18.1.51"}  # fmt: skip
    groups: dict[str, list[str]] = {}
    for name in nodes:
        groups.setdefault(name.rstrip("12"), []).append(name)
    environment = jinja2.Environment(trim_blocks=True, undefined=jinja2.StrictUndefined, autoescape=False)
    template = (ANSIBLE / "roles/common/templates/nftables.conf.j2").read_text()
    port = {"mysql": 3306, "postgresql": 5432}[dbms]
    services = {
        "web": [{"from": "client", "port": 80}],
        "app": [{"from": "web", "port": 8080}],
        "middleware": [{"from": "app", "port": port}],
        "db": [{"from": "middleware", "port": port}],
    }
    text = environment.from_string(template).render(
        ansible_managed="", ntier_tier=tier, groups=groups, common_controller_addresses=["198.18.0.1"],
        hostvars={name: {"address": address} for name, address in nodes.items()},
        common_services=services, common_ssh_ports=[22],
    )  # fmt: skip
    assert "policy drop" in text
    return re.findall(r"ip saddr (\S+) tcp dport (\d+) accept", text)


@pytest.mark.parametrize(
    ("tier", "allowed"),
    [
        ("web", {("198.18.1.51", "80")}),
        ("app", {("198.18.1.11", "8080")}),
        ("middleware", {("198.18.1.21", "3306"), ("198.18.1.22", "3306")}),
        ("db", {("198.18.1.31", "3306")}),
        ("client", set()),
    ],
)
def test_only_the_tier_above_may_connect(tier, allowed):
    controller = {("198.18.0.1", "22")}
    assert set(filter_of(tier)) == allowed | controller
    allowed = {(address, "5432" if port == "3306" else port) for address, port in allowed}
    assert set(filter_of(tier, "postgresql")) == allowed | controller


@pytest.mark.parametrize("login", ["own", "client"])
def test_passwords_come_into_no_log_of_postgresql(login):
    """It logs slow statements and those that fail, with all that they say."""
    text = (ANSIBLE / "roles/postgresql/templates/accounts.sql.j2").read_text()
    environment = jinja2.Environment(trim_blocks=True, autoescape=False)
    environment.filters["combine"] = lambda a, b: a | b
    rendered = environment.from_string(text).render(
        middleware_login=login, postgresql_middleware_user="ntier_middleware", middleware_db_password="secret",
        app_db_password="secret", postgresql_database="rubbos", postgresql_rights="write",
    )  # fmt: skip
    before, *after = rendered.split("secret")
    assert len(after) == {"own": 1, "client": 2}[login]
    set_before = re.findall(r"^SET (\w+) = (\S+);$", before, re.M)
    assert {("log_statement", "'none'"), ("log_min_duration_statement", "-1")} <= set(set_before)
    assert ("log_min_error_statement", "'panic'") in set_before


def apache(workers: int) -> dict[str, int]:
    environment = jinja2.Environment(trim_blocks=True, autoescape=False)
    text = environment.from_string((ANSIBLE / "roles/web/templates/apache2.conf.j2").read_text()).render(
        web_max_workers=workers,
        groups={"app": []},
        address="198.18.1.11",
        web_modules=[],
        lookup=lambda *_, **__: "site",
    )
    names = ("ServerLimit", "StartServers", "ThreadsPerChild", "ThreadLimit", "MaxRequestWorkers")
    return {name: int(re.search(rf"^{name} (\d+)$", text, re.M)[1]) for name in names}


@pytest.mark.parametrize("workers", [2, 30, 300, 511, 512, 1000, 20000])
def test_apache_serves_as_many_requests_as_it_was_told_and_its_status_page(workers):
    values = apache(workers)
    assert values["ThreadsPerChild"] == values["ThreadLimit"]
    assert values["ServerLimit"] == values["StartServers"]
    assert values["MaxRequestWorkers"] == values["ServerLimit"] * values["ThreadsPerChild"]
    spare = values["MaxRequestWorkers"] - (workers + 1)
    assert 0 <= spare < values["ServerLimit"]
    if workers < 512:
        assert spare == 0  # exact, with one process


@pytest.mark.parametrize(("cores", "threads"), [(None, 1), (0.05, 1), (1.2, 2), (8, 8), (64, 64), (96, 64)])
def test_haproxy_has_a_thread_for_each_core_up_to_what_it_takes(cores, threads):
    template = read("haproxy", "defaults/main.yml")["haproxy_threads"]
    assert int(jinja2.Environment().from_string(template).render(cpu_cores=cores)) == threads
    (demands,) = [t["ansible.builtin.assert"]["that"] for t in tasks("haproxy", "main.yml") if "that" in str(t)]
    assert "1 <= haproxy_threads | int <= 64" in demands


@pytest.mark.parametrize("role", ["web", "app", "pgpool", "mysql", "postgresql"])
def test_a_service_may_have_as_many_threads_as_its_settings_say(role):
    """systemd allows a unit 15 % of what the kernel does: 4,915 with 32,768."""
    assert "TasksMax=infinity" in (HOMES[role] / "files/service.conf").read_text().splitlines()


@pytest.mark.parametrize("role", ["shardingsphere", "ndbsql"])
def test_a_unit_of_ours_may_have_as_many_threads_as_its_settings_say(role):
    assert "TasksMax=infinity" in (HOMES[role] / f"files/ntier-{role}.service").read_text().splitlines()


@pytest.mark.parametrize(("nodes", "workers", "connections"), [(1, 300, 8192), (1, 20_000, 20_000), (4, 3_000, 12_000)])
def test_tomcat_takes_the_connections_of_all_workers_of_apache(nodes, workers, connections):
    template = jinja2.Environment().from_string(str(read("app", "defaults/main.yml")["app_max_connections"]))
    addresses = {"web": [f"198.18.1.{n}" for n in range(nodes)]}
    assert int(template.render(ntier_addresses=addresses, web_max_workers=workers)) == connections
    assert template.render(ntier_addresses={}) == "8192"


@pytest.mark.parametrize(
    ("pool", "places", "led_to"),
    [
        (2, 4, {1: ["a", "b", "c", "d"], 2: ["c", "d", "a", "b"], 3: ["a", "b", "c", "d"]}),
        (8, 1, {1: ["a"], 2: ["a"]}),
        (3, 2, {1: ["a", "b"], 2: ["b", "a"]}),
    ],
)
def test_pools_of_a_servlet_lead_to_other_places_on_each_app_node(pool, places, led_to):
    """A pool takes the next places in turn: with two connections and four places, two of them."""
    template = (ANSIBLE / "roles/app/templates/rubbos.properties.j2").read_text()
    given = {"app_dbms": "mysql", "app_database_port": 3306, "app_pool_size": pool, "app_jdbc_options": ""}
    for index, order in led_to.items():
        text = (
            jinja2.Environment(trim_blocks=True)
            .from_string(template)
            .render(given, index=index, app_database_addresses=list("abcd")[:places])
        )
        (line,) = [row for row in text.splitlines() if row.startswith("jdbc_url=")]
        assert [url.split("/")[2].removesuffix(":3306") for url in line.removeprefix("jdbc_url=").split()] == order
