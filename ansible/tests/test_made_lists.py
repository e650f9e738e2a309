"""The lists of what the roles make on their owner's machine: all that their tasks write, and nothing of the owner's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROLES = Path(__file__).resolve().parents[1] / "roles"
OF_SYSTEMS = sorted(ROLES.parents[1].glob("systems/*/roles/*"))
PLACES = ("/etc/", "/opt/", "/usr/", "/var/")
WRITE = ("copy", "template", "file", "unarchive", "blockinfile", "lineinfile")


def values(task: dict[str, Any]) -> Iterator[str]:
    """Absolute paths that a task writes to, from its arguments and what it loops over."""
    for module in WRITE:
        arguments = task.get(f"ansible.builtin.{module}")
        if not isinstance(arguments, dict) or arguments.get("state") == "absent":
            continue
        text = str(arguments.get("dest", arguments.get("path", "")))
        if not text.startswith("{{ item"):
            yield text
        items = task.get("loop", [])
        for item in items if isinstance(items, list) else []:
            for value in item.values() if isinstance(item, dict) else [item]:
                if isinstance(value, str) and "item" in text:
                    yield value


def tasks(file: Path) -> Iterator[dict[str, Any]]:
    for task in yaml.safe_load(file.read_text()) or []:
        yield task
        yield from task.get("block", [])


def of_program(role: Path, spec: dict[str, Any]) -> Iterator[str]:
    """Paths that the shared role `program` writes to for this one, and its configuration for loading data."""
    yield from spec.get("files", {})
    yield from (folder["path"] for folder in spec.get("folders", []))
    unit, load = f"/etc/systemd/system/{spec.get('unit')}", role / "tasks/load.yml"
    if (role / "files" / str(spec.get("unit"))).exists():
        yield unit
    if (role / "files/service.conf").exists():
        yield f"{unit}.d/ntier.conf"
    for task in tasks(load) if load.exists() else []:
        yield task.get("vars", {}).get("database_load_settings", {}).get("file", "")


@pytest.mark.parametrize("role", sorted(path.parent.name for path in ROLES.glob("*/made.yml")))
def test_a_role_lists_all_that_it_writes(role):
    files = [*(ROLES / role / "tasks").glob("*.yml")]
    files += (ROLES / "database/tasks").glob("*.yml") if role in ("mysql", "postgresql") else []
    assert not unlisted(ROLES / role, files)


@pytest.mark.parametrize("role", OF_SYSTEMS, ids=lambda role: role.name)
def test_a_role_of_a_system_lists_all_that_it_writes(role):
    assert not unlisted(role, [*role.glob("tasks/*.yml")])


def unlisted(role: Path, files: list[Path]) -> set[str]:
    """What the tasks in `files` write and neither the role's list nor those of the shared roles name."""
    lists = [role / "made.yml", *(ROLES / name / "made.yml" for name in ("common", "machine", "monitor"))]
    known = [yaml.safe_load(file.read_text()) for file in lists]
    listed = {path for made in known for how in ("makes", "replaces", "edits") for path in made.get(how, [])}
    shared = {path for made in known for path in made.get("shares", [])}  # what is put into them is named itself
    file = role / "vars/main.yml"
    variables = yaml.safe_load(file.read_text()) if file.exists() else {}
    written = {text for file in files for task in tasks(file) for text in values(task)}
    written |= set(of_program(role, variables.get(f"{role.name}_program", {})))
    for name, value in variables.items():
        written = {text.replace(f"{{{{ {name} }}}}", str(value)) for text in written}
    written = {re.sub(r"/?\{\{.*", "", text) for text in written}
    ours = {text for text in written if text.startswith(PLACES) and not text.startswith("/etc/ntier")}
    whole = {"/etc/nftables.conf"}  # of whole machines only
    return {
        t
        for t in ours - whole - shared
        if not any(t == p or t.startswith(f"{p}/") or p.startswith(f"{t}/") for p in listed)
    }


# Debian's packages remove these folders themselves when they are purged.
PURGED_WHOLE = {"/etc/mediawiki", "/etc/nginx"}


@pytest.mark.parametrize("file", [*ROLES.glob("*/made.yml"), *(r / "made.yml" for r in OF_SYSTEMS)], ids=str)
def test_a_folder_where_its_owner_may_put_something_is_not_removed_whole(file):
    made = yaml.safe_load(file.read_text()) if file.exists() else None
    for path in map(Path, (made or {}).get("makes", [])):
        a_file = path.suffix or path.parent == Path("/etc/default")
        if path.is_relative_to("/etc") and not a_file and "ntier" not in str(path):
            assert str(path) in {*PURGED_WHOLE, "/etc/postgresql/17/main"}
        assert path not in map(Path, ("/var/www", "/var/lib/postgresql", "/var/lib/tomcat10", "/usr/share/man/man1"))


@pytest.mark.parametrize(
    ("role", "data"),
    [("mysql", "/var/lib/mysql"), ("ndbmtd", "/var/lib/ndbmtd"), ("postgresql", "/var/lib/postgresql/17/main")],
)
def test_what_restoring_makes_beside_the_data_is_listed(role, data):
    made = yaml.safe_load((ROLES / role / "made.yml").read_text())["makes"]
    home = role if role == "ndbmtd" else "database"
    beside = set(re.findall(r"\$DATA(\.\w+)", (ROLES / home / "files/restore").read_text()))
    assert ".lock" in beside
    assert {f"{data}{end}" for end in beside} <= set(made)


def test_every_role_of_a_tier_has_a_list_and_timers_are_those_that_are_masked():
    shared = {p.name for p in ROLES.iterdir()} - {p.parent.name for p in ROLES.glob("*/made.yml")}
    assert shared == {"database", "ndb", "program"}  # what these write is on the lists of the roles that call them
    common = yaml.safe_load((ROLES / "common/made.yml").read_text())
    timers = yaml.safe_load((ROLES / "common/defaults/main.yml").read_text())["common_quiet_timers"]
    assert common["replaces"] == [f"/etc/systemd/system/{timer}" for timer in timers]
    assert set(timers) <= set(common["units"])
    sysctl = (ROLES / "common/tasks/install.yml").read_text()
    assert set(common["settings"]) == set(re.findall(r"^ +(net\.[a-z0-9_.]+) = ", sysctl, re.MULTILINE))
