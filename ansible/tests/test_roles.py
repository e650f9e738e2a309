"""Roles without nodes: typed arguments, the packet filter's matrix, Apache's worker arithmetic."""

from __future__ import annotations

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
SHARED = {  # variables of the experiment and of the inventory: typed where they are used, set outside of the roles
    "ntier_scale", "ntier_controller_address", "app_db_password", "middleware_db_password", "monitor_db_password",
    "middleware_login", "app_database_user", "ntier_whole_machine",
}  # fmt: skip


def read(role: str, path: str) -> dict[str, Any]:
    file = ANSIBLE / "roles" / role / path
    return (yaml.safe_load(file.read_text()) or {}) if file.exists() else {}


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


# machine is for what no image is made for, database is a part of other roles' installation
@pytest.mark.parametrize("role", sorted(set(ROLES) - {"machine", "database"}))
def test_an_image_holds_no_peer_no_address_and_no_secret(role):
    text = (ANSIBLE / "roles" / role / "tasks/install.yml").read_text()
    assert not re.search(r"groups\[|hostvars|_password|\{\{ address", text)
    assert f"/etc/ntier/installed/{role}" in text


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
    defaults = read("common", "defaults/main.yml")
    services = defaults["common_services"]
    services["middleware"]["port"] = services["db"]["port"] = environment.from_string(
        defaults["common_database_port"]
    ).render(ntier_dbms=dbms)
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
