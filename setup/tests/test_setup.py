"""What set-up makes in the state, with stubs for the programs that make the rest."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
STUBS = ("setup/bootstrap.sh", ".venv/bin/python", ".venv/bin/ansible-playbook", "bin/incus")
READ = ("setup.sh", "controller.yml", "daemons.sh", "preseed.yml.j2", "profile.yml")


@pytest.fixture
def setup(tmp_path):
    """Runs setup.sh of a checkout whose programs do nothing, as root, with an open umask."""
    for stub in STUBS:
        (tmp_path / stub).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / stub).write_text("#!/bin/sh\n")
        (tmp_path / stub).chmod(0o755)
    (tmp_path / "bin/id").write_text("#!/bin/sh\necho 0\n")
    (tmp_path / "bin/id").chmod(0o755)
    for name in READ:
        shutil.copy(ROOT / "setup" / name, tmp_path / "setup")
    (tmp_path / "requirements.txt").touch()
    environment = os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "NTIER_STATE": f"{tmp_path}/state"}
    return lambda: subprocess.run(
        ["sh", "-c", f"umask 022; exec {tmp_path}/setup/setup.sh"], env=environment, check=True, capture_output=True
    )


def modes(folder: Path) -> dict[str, int]:
    return {p.name: p.stat().st_mode & 0o777 for p in folder.iterdir() if p.is_dir()}


OURS = {"data": 0o700, "local": 0o700, "logs": 0o700, "ssh": 0o700}


def test_what_set_up_makes_nobody_else_reads(setup, tmp_path):
    setup()
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    assert modes(tmp_path / "state") == OURS


def test_a_folder_that_was_there_keeps_its_mode(setup, tmp_path):
    (tmp_path / "state/papers").mkdir(parents=True)
    for folder in (tmp_path / "state", tmp_path / "state/papers"):
        folder.chmod(0o755)
    setup()
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o755
    assert modes(tmp_path / "state") == {**OURS, "papers": 0o755}
    (playbook,) = yaml.safe_load((ROOT / "setup/controller.yml").read_text())
    files = [task.get("ansible.builtin.file", {}) for task in playbook["tasks"]]
    assert not [file for file in files if "mode" in file], "nor does the playbook change it"
