"""Machines of others: where a program of the system serves somebody already, nothing is installed and replaced."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ntier_harness.request import make_spec
from ntier_harness.systems import find
from ntier_harness.targets.hosts import expected

ROOT = Path(__file__).resolve().parents[3]
FIT = {
    "uid": "0", "distribution": "debian", "release": "13", "os": "Debian 13", "init": "systemd", "python": "python3",
    "owner": "", "databases": "", "listening": "", "programs": "systemd sshd",
}  # fmt: skip


def units(system: str, role: str) -> list[str]:
    """Of packages that the role installs; those of our own name begin with ntier-."""
    folders = (ROOT / "systems" / system / "roles", ROOT / "ansible/roles")
    made = next(file for folder in folders if (file := folder / role / "made.yml").exists())
    named = yaml.safe_load(made.read_text()).get("units", [])
    return [unit.split(".service")[0].split("@")[0] for unit in named if not unit.startswith("ntier-")]


def middlewares() -> list[tuple[str, str]]:
    choices = find(ROOT, "rubbos").definition.variants["middleware"].choices
    return [(name, unit) for name, choice in choices.items() for role in choice.roles for unit in units("rubbos", role)]


@pytest.mark.parametrize(("middleware", "unit"), middlewares())
def test_a_machine_with_a_middleware_of_somebody_is_refused(middleware, unit):
    """The program has the unit's name, but for the release in it (pgpool2)."""
    look = expected(make_spec({"topo": "1/1/1/1M"}, ROOT, cores=8), "db")
    assert look.wrong(FIT, "us") == ""
    said = look.wrong(FIT | {"programs": f"systemd {unit.rstrip('0123456789')}"}, "us")
    assert said.startswith(f"{unit.rstrip('0123456789')} runs, not started by this project"), middleware


DATABASE = {"databases": "/var/lib/postgresql/17/main/PG_VERSION"}


@pytest.mark.parametrize(
    ("tier", "what"), [("web", {"programs": "nginx"}), ("web", {"programs": "postgres"}), ("db", DATABASE)]
)
def test_a_machine_that_serves_somebody_does_not_become_the_example(tier, what):
    look = expected(make_spec({"system": "toy", "topo": "1/1"}, ROOT, cores=8), tier)
    assert look.wrong(FIT, "us") == ""
    assert "not ours" in (said := look.wrong(FIT | what, "us")) or "not started by this project" in said
    if "databases" in what:
        assert what["databases"] in look.look()
