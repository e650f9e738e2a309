"""ProxySQL's configuration, rendered and read again: there is no package of it here, so nothing has run it yet."""

from __future__ import annotations

import re
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
        "monitor_enabled", "default_authentication_plugin",
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
            found = TOKEN.match(text, at)
            assert found, f"not libconfig: {text[at : at + 60]!r}"
            self.tokens.append(next((kind, part) for kind, part in enumerate(found.groups()) if part is not None))
            at = found.end()

    def take(self, *wanted: str) -> str:
        _, part = self.tokens.pop(0)
        assert not wanted or part in wanted, f"{part!r} where {wanted} is expected"
        return part

    def settings(self, end: str | None = None) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self.tokens and self.tokens[0][1] != end:
            name = self.take()
            assert name not in found, f"{name} is set twice"
            self.take("=", ":")
            found[name] = self.value()
            if self.tokens and self.tokens[0][1] in (";", ","):
                self.take()
        return found

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


def rendered(dbms: str) -> dict[str, Any]:
    environment = jinja2.Environment(trim_blocks=True, undefined=jinja2.StrictUndefined, autoescape=False)
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    port = 5432 if dbms == "postgresql" else 3306
    given = {
        "ansible_managed": "", "address": "198.18.3.1", "app_db_password": "p-a_s", "middleware_db_password": "q-w_e",
        "proxysql_dbms": dbms, "proxysql_port": port, "proxysql_database_port": port,
        "proxysql_databases": ["198.18.4.1", "198.18.4.2", "198.18.4.3"], "proxysql_pool_max": 18,
    }  # fmt: skip
    version = environment.from_string(defaults["proxysql_server_version"]).render(given)
    values = {**defaults, **given, "proxysql_server_version": version}
    return Reader(environment.from_string((ROLE / "templates/proxysql.cnf.j2").read_text()).render(values)).settings()


@pytest.mark.parametrize(("dbms", "kind"), [("mysql", "mysql"), ("postgresql", "pgsql")])
def test_every_name_is_one_that_proxysql_knows(dbms, kind):
    found = rendered(dbms)
    other = {"mysql": "pgsql", "pgsql": "mysql"}[kind]
    sections = {"datadir", "admin_variables", f"{other}_variables"}
    assert set(found) == sections | {f"{kind}_{part}" for part in ("variables", "servers", "users", "query_rules")}
    for section in (section for section in found if section.endswith("_variables")):
        assert set(found[section]) <= KNOWN[section], section
    for section in ("servers", "users", "query_rules"):
        for row in found[f"{kind}_{section}"]:
            assert set(row) <= KNOWN.get(f"{kind}_{section}", KNOWN.get(section)), section


@pytest.mark.parametrize(("dbms", "kind"), [("mysql", "mysql"), ("postgresql", "pgsql")])
def test_reads_go_to_all_replicas_alike_and_writes_to_the_first(dbms, kind):
    found = rendered(dbms)
    by_group: dict[int, list[str]] = {}
    for server in found[f"{kind}_servers"]:
        by_group.setdefault(server["hostgroup"], []).append(server["address"])
        assert (server["weight"], server["max_connections"]) == (1, 18)
    assert by_group == {0: ["198.18.4.1", "198.18.4.2", "198.18.4.3"], 1: ["198.18.4.1"]}
    (user,) = found[f"{kind}_users"]
    assert user["default_hostgroup"] == 0
    write, *rest = found[f"{kind}_query_rules"]
    assert write["destination_hostgroup"] == 1
    for statement, writes in (("INSERT INTO users", True), ("UPDATE users", True), ("SELECT * FROM users", False)):
        assert bool(re.match(write["match_digest"], statement)) is writes
    if kind == "mysql":  # else Connector/J's first question pins its connection
        assert [(rule["match_digest"], rule["multiplex"]) for rule in rest] == [("@@", 2)]


@pytest.mark.parametrize("dbms", ["mysql", "postgresql"])
def test_only_the_clients_port_is_open_to_others(dbms):
    found = rendered(dbms)
    listening = [value for section in found.values() if isinstance(section, dict)
                 for name, value in section.items() if name.endswith(("ifaces", "interfaces"))]  # fmt: skip
    assert len(listening) == len(set(listening)) == 4
    assert [at for at in listening if not at.startswith("127.0.0.1:")] == [
        f"198.18.3.1:{5432 if dbms == 'postgresql' else 3306}"
    ]
    assert found["admin_variables"]["admin_credentials"] == "ntier_admin:q-w_e"


def test_the_collector_reads_the_replicas_from_the_same_file():
    """It finds them by the text of the lines, which the template writes."""
    pattern = re.search(r"SERVER = re.compile\(r'(.*)'\)", (ROLE / "files/middleware_status").read_text())[1]
    environment = jinja2.Environment(trim_blocks=True, autoescape=False)
    text = environment.from_string((ROLE / "templates/proxysql.cnf.j2").read_text()).render(
        proxysql_dbms="mysql", proxysql_databases=["198.18.4.1", "198.18.4.2"], proxysql_database_port=3306,
        proxysql_pool_max=18, proxysql_admin_port=6032,
    )  # fmt: skip
    assert re.findall(pattern, text) == [("198.18.4.1", "18"), ("198.18.4.2", "18")]


def test_without_a_program_or_a_package_the_message_says_what_to_do():
    tasks = yaml.safe_load((ROLE / "tasks/install.yml").read_text())
    (task,) = [task for task in tasks if "ansible.builtin.assert" in task]
    message = " ".join(task["ansible.builtin.assert"]["fail_msg"].split())
    assert "PROXYSQL_BINARY=/path/to/proxysql" in message
