"""ansible-lint, profile production, without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.whole

ANSIBLE = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent


SYSTEMS = [ANSIBLE.parent / "systems" / name for name in ("mediawiki", "two-phase-commit")]


@pytest.mark.parametrize("folder", [ANSIBLE, *SYSTEMS], ids=lambda folder: folder.name)
def test_production_profile_passes(folder):
    settings = {"ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"), "NO_COLOR": "1"}
    settings["ANSIBLE_ROLES_PATH"] = f"{folder / 'roles'}:{ANSIBLE / 'roles'}"
    environment = os.environ | settings | {"PATH": f"{BIN}:{os.environ['PATH']}"}
    command = [BIN / "ansible-lint", "--offline", "--project-dir", ".", "-c", ANSIBLE / ".ansible-lint"]
    command += [name for name in ("roles", "verify.yml") if folder != ANSIBLE and (folder / name).exists()]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "production" in done.stderr + done.stdout
