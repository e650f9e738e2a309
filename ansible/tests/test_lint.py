"""ansible-lint, profile production, without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.whole

ANSIBLE = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
# ansible-lint starts Ansible for each playbook and each role, two CPU seconds each; below it is started once for all.
LINT = (
    "import sys; from ansiblelint.__main__ import _run_cli_entrypoint; from ansiblelint.runner import Runner; "
    "Runner._run_syntax_check_phase = lambda self, _matches: self._collect_syntax_check_files(); _run_cli_entrypoint()"
)


SYSTEMS = [ANSIBLE.parent / "systems" / name for name in ("mediawiki", "two-phase-commit")]


def run(folder: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    settings = {"ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"), "NO_COLOR": "1"}
    settings["ANSIBLE_ROLES_PATH"] = f"{folder / 'roles'}:{ANSIBLE / 'roles'}"
    environment = os.environ | settings | {"PATH": f"{BIN}:{os.environ['PATH']}"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("folder", [ANSIBLE, *SYSTEMS], ids=lambda folder: folder.name)
def test_production_profile_passes(folder, tmp_path):
    command = [sys.executable, "-c", LINT, "--offline", "--project-dir", ".", "-c", ANSIBLE / ".ansible-lint"]
    command += [name for name in ("roles", "verify.yml") if folder != ANSIBLE and (folder / name).exists()]
    done = run(folder, *command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "production" in done.stderr + done.stdout

    # Each file of tasks, since what `main` includes as it runs is not looked at otherwise.
    files = sorted((folder / "roles").glob("*/tasks/*.yml"))
    tasks = [{"ansible.builtin.import_role": {"name": str(f.parents[1]), "tasks_from": f.stem}} for f in files]
    (tmp_path / "roles.yml").write_text(yaml.safe_dump([{"hosts": "localhost", "tasks": tasks}]))
    playbooks = [*folder.glob("playbooks/*.yml"), *folder.glob("verify.yml")]
    done = run(folder, "ansible-playbook", "-i", "localhost,", "--syntax-check", tmp_path / "roles.yml", *playbooks)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("playbook: ") == 1 + len(playbooks)
