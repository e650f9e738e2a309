"""ProxySQL without ProxySQL, of which no package can be had here: its configuration, rendered and read again; collector
and reset against an administrator's port made of SQLite, which is what ProxySQL's own is made of."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

ROLE = Path(__file__).resolve().parents[1] / "roles/proxysql"
TOKEN = re.compile(r'\s*(?:#[^\n]*\s*)*(?:"((?:[^"\\]|\\.)*)"|([A-Za-z*][\w*-]*)|(-?\d+)|([=:;,(){}\[\]]))')
# Variables and columns by proxysql.com's documentation: "MySQL Variables", "PostgreSQL Variables", "Admin Variables",
# the tables of "Main (runtime)"; address and hostgroup are the configuration file's names of hostname and hostgroup_id.
KNOWN = {
    "admin_variables": {"admin_credentials", "mysql_ifaces", "pgsql_ifaces"},
    "mysql_variables": {
        "interfaces", "server_version", "max_connections", "multiplexing", "have_ssl", "connect_timeout_server",
        "connect_timeout_server_max", "query_retries_on_failure", "wait_timeout", "free_connections_pct",
        "monitor_enabled", "default_authentication_plugin", "auto_increment_delay_multiplex",
    },
    "pgsql_variables": {
        "interfaces", "server_version", "max_connections", "multiplexing", "have_ssl", "connect_timeout_server",
        "connect_timeout_server_max", "query_retries_on_failure", "wait_timeout", "free_connections_pct",
    },
    "servers": {"address", "port", "hostgroup", "weight", "max_connections"},
    "mysql_users": {"username", "password", "default_hostgroup", "active", "transaction_persistent", "default_schema"},
    "pgsql_users": {"username", "password", "default_hostgroup", "active", "transaction_persistent"},
    "query_rules": {"rule_id", "active", "match_digest", "destination_hostgroup", "multiplex", "apply"},
}  # fmt: skip


class Reader:
    """The part of libconfig's grammar that is in use: settings, groups, lists, text, whole numbers, truth values."""

    def __init__(self, text: str) -> None:
        self.tokens, at = [], 0
        while text[at:].strip() and not re.fullmatch(r"\s*(#[^\n]*\s*)*", text[at:]):
            token = TOKEN.match(text, at)
            assert token, f"not libconfig: {text[at : at + 60]!r}"
            self.tokens.append(next((kind, part) for kind, part in enumerate(token.groups()) if part is not None))
            at = token.end()

    def take(self, *wanted: str) -> str:
        _, part = self.tokens.pop(0)
        assert not wanted or part in wanted, f"{part!r} where {wanted} is expected"
        return part

    def settings(self, end: str | None = None) -> dict[str, Any]:
        settings: dict[str, Any] = {}
        while self.tokens and self.tokens[0][1] != end:
            name = self.take()
            assert name not in settings, f"{name} is set twice"
            self.take("=", ":")
            settings[name] = self.value()
            if self.tokens and self.tokens[0][1] in (";", ","):
                self.take()
        return settings

    def value(self) -> Any:
        kind, part = self.tokens.pop(0)
        if part == "{" and kind == 3:
            group = self.settings("}")
            self.take("}")
            return group
        if part == "(" and kind == 3:
            items = []
            while self.tokens[0] != (3, ")"):
                items.append(self.value())
                if self.take(",", ")") == ")":
                    return items
                assert self.tokens[0] != (3, ")"), "a comma before the end of a list"
            self.take(")")
            return items
        assert kind in (0, 2) or part in ("true", "false"), f"{part!r} is no value"
        return int(part) if kind == 2 else part == "true" if kind == 1 else part


def rendered(dbms: str, replicas: int = 3) -> dict[str, Any]:
    return Reader(text(dbms, replicas)).settings()


def text(dbms: str, replicas: int = 3) -> str:
    environment = jinja2.Environment(trim_blocks=True, undefined=jinja2.StrictUndefined, autoescape=False)
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    port = 5432 if dbms == "postgresql" else 3306
    given = {
        "ansible_managed": "", "address": "198.18.3.1", "app_db_password": "p-a_s", "middleware_db_password": "q-w_e",
        "proxysql_dbms": dbms, "proxysql_port": port, "proxysql_database_port": port,
        "proxysql_databases": [f"198.18.4.{i + 1}" for i in range(replicas)], "proxysql_pool_max": 18,
    }  # fmt: skip
    computed = ("proxysql_server_version", "proxysql_clients_max")
    values = {**defaults, **given, **{n: environment.from_string(defaults[n]).render(given) for n in computed}}
    return environment.from_string((ROLE / "templates/proxysql.cnf.j2").read_text()).render(values)


@pytest.mark.parametrize(("dbms", "kind"), [("mysql", "mysql"), ("postgresql", "pgsql")])
def test_every_name_is_one_that_proxysql_knows(dbms, kind):
    configuration = rendered(dbms)
    other = {"mysql": "pgsql", "pgsql": "mysql"}[kind]
    sections = {"datadir", "admin_variables", f"{other}_variables"}
    assert set(configuration) == sections | {
        f"{kind}_{part}" for part in ("variables", "servers", "users", "query_rules")
    }
    for section in (section for section in configuration if section.endswith("_variables")):
        assert set(configuration[section]) <= KNOWN[section], section
    for section in ("servers", "users", "query_rules"):
        for row in configuration[f"{kind}_{section}"]:
            assert set(row) <= KNOWN.get(f"{kind}_{section}", KNOWN.get(section)), section


@pytest.mark.parametrize(("dbms", "kind"), [("mysql", "mysql"), ("postgresql", "pgsql")])
def test_reads_go_to_all_replicas_alike_and_writes_to_the_first(dbms, kind):
    configuration = rendered(dbms)
    by_group: dict[int, list[str]] = {}
    for server in configuration[f"{kind}_servers"]:
        by_group.setdefault(server["hostgroup"], []).append(server["address"])
        assert (server["weight"], server["max_connections"]) == (1, 18)
    assert by_group == {0: ["198.18.4.1", "198.18.4.2", "198.18.4.3"], 1: ["198.18.4.1"]}
    (user,) = configuration[f"{kind}_users"]
    assert user["default_hostgroup"] == 0
    write, *rest = configuration[f"{kind}_query_rules"]
    assert write["destination_hostgroup"] == 1
    for statement, writes in (("INSERT INTO users", True), ("UPDATE users", True), ("SELECT * FROM users", False)):
        assert bool(re.match(write["match_digest"], statement)) is writes
    if kind == "mysql":  # else Connector/J's first question pins its connection
        assert [(rule["match_digest"], rule["multiplex"]) for rule in rest] == [("@@", 2)]


@pytest.mark.parametrize("dbms", ["mysql", "postgresql"])
def test_only_the_clients_port_is_open_to_others(dbms):
    configuration = rendered(dbms)
    listening = [value for section in configuration.values() if isinstance(section, dict)
                 for name, value in section.items() if name.endswith(("ifaces", "interfaces"))]  # fmt: skip
    assert len(listening) == len(set(listening)) == 4
    assert [at for at in listening if not at.startswith("127.0.0.1:")] == [
        f"198.18.3.1:{5432 if dbms == 'postgresql' else 3306}"
    ]
    assert configuration["admin_variables"]["admin_credentials"] == "ntier_admin:q-w_e"


@pytest.mark.parametrize(("dbms", "kind"), [("mysql", "mysql"), ("postgresql", "pgsql")])
def test_one_replica_has_one_pool(dbms, kind):
    configuration = rendered(dbms, replicas=1)
    assert [(s["address"], s["hostgroup"]) for s in configuration[f"{kind}_servers"]] == [("198.18.4.1", 0)]
    assert not any("destination_hostgroup" in rule for rule in configuration[f"{kind}_query_rules"])


def test_a_client_does_not_stay_on_its_replica_after_an_insert():
    assert rendered("mysql")["mysql_variables"]["auto_increment_delay_multiplex"] == 0


# Statements with a semicolon at their end, as the client sends them. Rows of connection_pool: address, status,
# connections in use and idle, statements. Idle connections of a replica that is not online are closed some looks later.
ADMINISTRATOR = """#!{python}
import json, sqlite3, sys
from pathlib import Path
state = Path({state!r})
for line in sys.stdin:
    pools, log, looks = json.loads(state.read_text())
    log.append(line.strip())
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE stats_mysql_connection_pool (srv_host, status, ConnUsed INT, ConnFree INT, Queries INT)")
    base.executemany("INSERT INTO stats_mysql_connection_pool VALUES (?, ?, ?, ?, ?)", pools)
    if line.startswith("UPDATE"):
        wanted = line.split("'")[1]
        for pool in pools:
            pool[1] = wanted if pool[0] != "198.18.4.9" else "SHUNNED"
    elif line.startswith("SELECT"):
        for row in base.execute(line):
            print(*row, sep="\\t", flush=True)
        looks += "FROM" in line
        for pool in pools:
            pool[3] = 0 if pool[1] != "ONLINE" and looks > 2 else pool[3]
    state.write_text(json.dumps([pools, log, looks]))
"""


class Node:
    """Collector and reset in a folder of their own, with a client that leads to `ADMINISTRATOR`."""

    def __init__(self, folder: Path, pools: list[list[Any]]) -> None:
        self.folder, self.state = folder, folder / "state.json"
        self.state.write_text(json.dumps([pools, [], 0]))
        (folder / "proxysql.cnf").write_text(text("mysql", len(pools)))
        client = folder / "mariadb"
        client.write_text(ADMINISTRATOR.format(python=sys.executable, state=str(self.state)))
        client.chmod(0o755)
        places = {
            "/etc/ntier/proxysql/proxysql.cnf": folder / "proxysql.cnf",
            "/usr/local/lib/ntier": ROLE.parent / "monitor/files/lib",
            "/etc/ntier/collectors.d/middleware_status": folder / "middleware_status",
            "LIMIT_S = 45": "LIMIT_S = 10",
        }
        for name in ("middleware_status", "reset"):
            program = (ROLE / "files" / name).read_text()
            for there, here in places.items():
                program = program.replace(there, str(here))
            (folder / name).write_text(program)

    def run(self, name: str, *arguments: Any) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PATH": f"{self.folder}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, self.folder / name, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=90, env=environment)

    def pools(self) -> list[list[Any]]:
        return json.loads(self.state.read_text())[0]


def test_the_reset_closes_idle_connections_and_leaves_all_replicas_online(tmp_path):
    node = Node(tmp_path, [["198.18.4.1", "ONLINE", 0, 7, 10], ["198.18.4.2", "SHUNNED", 0, 4, 11]])
    done = node.run("reset")
    assert done.returncode == 0, done.stderr
    assert [pool[:4] for pool in node.pools()] == [["198.18.4.1", "ONLINE", 0, 0], ["198.18.4.2", "ONLINE", 0, 0]]
    _, log, _ = json.loads(node.state.read_text())
    assert log.count("LOAD MYSQL SERVERS TO RUNTIME;") == 2


def test_the_reset_does_not_close_what_is_in_use(tmp_path):
    node = Node(tmp_path, [["198.18.4.1", "ONLINE", 1, 7, 10]])
    done = node.run("reset")
    assert (done.returncode, done.stderr.strip()) == (1, "ProxySQL: 1 statements are still executed after 10 s")
    assert node.pools() == [["198.18.4.1", "ONLINE", 1, 7, 10]]


@pytest.mark.parametrize("name", ["reset", "middleware_status"])
def test_a_replica_that_is_not_online_is_named(tmp_path, name):
    node = Node(tmp_path, [["198.18.4.1", "ONLINE", 0, 0, 10], ["198.18.4.9", "SHUNNED", 0, 0, 11]])
    (tmp_path / "proxysql.cnf").write_text(text("mysql", 2).replace("198.18.4.2", "198.18.4.9"))
    done = node.run(name, tmp_path)
    assert (done.returncode, done.stderr.strip()) == (1, "ProxySQL: not online: db2")


def test_a_replica_that_proxysql_has_forgotten_is_named(tmp_path):
    node = Node(tmp_path, [["198.18.4.1", "ONLINE", 0, 0, 10]])
    (tmp_path / "proxysql.cnf").write_text(text("mysql", 2))
    assert node.run("middleware_status", tmp_path).stderr.strip() == "ProxySQL: not online: db2"


def test_without_a_program_or_a_package_the_message_says_what_to_do():
    tasks = yaml.safe_load((ROLE / "tasks/install.yml").read_text())
    asserts = {task["name"]: task["ansible.builtin.assert"] for task in tasks if "ansible.builtin.assert" in task}
    message = " ".join(asserts["One of both is there"]["fail_msg"].split())
    assert "PROXYSQL_BINARY=/path/to/its.deb or /path/to/proxysql" in message


@pytest.mark.parametrize(("given", "removed"), [("/x/proxysql_3.0.10.deb", True), ("", True), ("/x/proxysql", False)])
def test_a_program_of_earlier_gives_way_to_a_package_once_that_is_there(given, removed):
    """The unit looks into /usr/local/bin first."""
    tasks = yaml.safe_load((ROLE / "tasks/install.yml").read_text())
    names = [task["name"] for task in tasks]
    environment = jinja2.Environment()
    environment.tests["match"] = lambda value, pattern: re.match(pattern, value) is not None
    (gone,) = [t for t in tasks if t.get("ansible.builtin.file", {}).get("path") == "/usr/local/bin/proxysql"]
    assert gone["ansible.builtin.file"]["state"] == "absent"
    assert environment.compile_expression(gone["when"])(proxysql_binary=given) is removed
    assert names.index("Package, with what it depends on") < names.index(gone["name"])


def test_a_relative_path_of_the_program_is_one_of_the_checkout():
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    environment.filters |= {"path_join": lambda parts: os.path.join(*parts), "realpath": os.path.realpath}
    for given, path in (
        ("build/p.deb", f"{ROLE.parents[2]}/build/p.deb"),
        ("/opt/proxysql", "/opt/proxysql"),
        ("", ""),
    ):
        template = environment.from_string(defaults["proxysql_binary"])
        assert template.render(role_path=str(ROLE), proxysql_given=given) == path


def test_destroying_removes_the_units_of_the_middlewares_that_have_one_of_their_own():
    for role in ROLE.parent.iterdir():
        for unit in role.glob("files/ntier-*.service"):
            made = yaml.safe_load((role / "made.yml").read_text())["makes"]
            assert f"/etc/systemd/system/{unit.name}" in made
