"""The page shows the toy as it is: whoever copies its files from there has it whole."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

TOY = Path(__file__).resolve().parents[1]
SHOWN = dict(re.findall(r"^`toy/(\S+)`\n\n```\w+\n(.*?)^```$", (TOY.parent / "README.md").read_text(), re.S | re.M))
LINES_OF_YAML = 100


def test_the_page_shows_every_file_of_the_toy():
    files = {str(p.relative_to(TOY)) for p in TOY.rglob("*") if p.is_file() and "tests" not in p.parts}
    assert {name for name in files if "__pycache__" not in name} == set(SHOWN)


def test_what_it_shows_are_the_files():
    assert {name: (TOY / name).read_text() for name in SHOWN} == SHOWN


def test_yaml_and_tasks_are_short():
    lines = [
        line
        for name, text in SHOWN.items()
        if name.endswith(".yml") or name == "system.yaml"
        for line in text.splitlines()
    ]
    assert 0 < len(lines) <= LINES_OF_YAML


def test_tasks_use_each_setting_of_the_service():
    settings = yaml.safe_load(SHOWN["system.yaml"])["settings"]
    for name in settings:
        assert name.startswith("db_") or name in SHOWN["roles/toy_web/tasks/main.yml"]
