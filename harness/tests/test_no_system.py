"""Harness and Terraform modules know no system by heart: neither its name, nor its tiers, nor its interactions."""

import ast
import re
from pathlib import Path

import pytest
from ntier_harness.systems import find

ROOT = Path(__file__).resolve().parents[2]
KNOWN = [find(ROOT, name).definition for name in ("rubbos", "mediawiki")]
SYSTEMS = re.compile("|".join(d.name for d in KNOWN), re.IGNORECASE)
TIERS = {tier for d in KNOWN for tier in d.tier_names}
NAMES = TIERS | {name for d in KNOWN for name in d.interactions}
FIELD = "middleware"
"""Also a field of every manifest and an option, whatever the system: `none` where there is no such program."""
FIELDS = {"campaign_spec.py", "plan_view.py", "request.py"}
"""Modules that name the field."""
HARNESS = sorted((ROOT / "harness/src").rglob("*.py"))
MODULES = [
    path
    for path in sorted((ROOT / "terraform/modules").rglob("*"))
    if path.suffix in (".tf", ".json", ".tftpl") and not {"tests", "examples"} & set(path.parts)
]


def known_by_heart(path: Path) -> list[str]:
    """Names in a file, with their lines."""
    text = path.read_text()
    found = [f"{n}: {word}" for n, line in enumerate(text.splitlines(), 1) for word in SYSTEMS.findall(line)]
    if path.suffix != ".py":
        quoted = re.compile(rf'"({"|".join(sorted(NAMES))})"')
        return found + [f"{n}: {w}" for n, line in enumerate(text.splitlines(), 1) for w in quoted.findall(line)]
    banned = NAMES - ({FIELD} if path.name in FIELDS else set())
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    return found + [f"{node.lineno}: {node.value!r}" for node in nodes if node.value in banned]


def test_there_is_something_to_look_for():
    assert {"web", "cache"} <= TIERS
    assert {"StoreComment", "RecentChanges"} <= NAMES
    assert len(HARNESS) > 40
    assert any(path.name == "node_types.json" for path in MODULES)


@pytest.mark.parametrize("path", [*HARNESS, *MODULES], ids=lambda p: p.relative_to(ROOT).as_posix())
def test_it_knows_no_system_by_heart(path):
    assert known_by_heart(path) == []


def test_what_it_would_find(tmp_path):
    (tmp_path / "a.py").write_text('tier = "db"\npage = "ViewStory"\n# as RUBBoS has it\n')
    (tmp_path / "a.tf").write_text('tiers = ["web"]\n')
    assert known_by_heart(tmp_path / "a.py") == ["3: RUBBoS", "1: 'db'", "2: 'ViewStory'"]
    assert known_by_heart(tmp_path / "a.tf") == ["1: web"]
