"""The parts of a checkout that say what the default system is, for tests with a checkout of their own."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def add_systems(root: Path) -> None:
    """RUBBoS, its roles by name only, and the names of set-up's images."""
    shutil.copytree(ROOT / "systems" / "rubbos", root / "systems" / "rubbos")
    shutil.copy(ROOT / "systems" / "default", root / "systems")
    for role in (p for p in (ROOT / "ansible" / "roles").iterdir() if p.is_dir()):
        (root / "ansible" / "roles" / role.name / "tasks").mkdir(parents=True)
    for folder, file in (("ansible/playbooks", "verify.yml"), ("setup/images", "images.yml")):
        (root / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / folder / file, root / folder)
