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

    def run(check: bool = True, **given: str) -> subprocess.CompletedProcess[str]:
        command = ["sh", "-c", f"umask 022; exec {tmp_path}/setup/setup.sh"]
        return subprocess.run(command, env=environment | given, check=check, capture_output=True, text=True)

    return run


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


NEEDED = ("incus", "mmdebstrap", "mkfs.btrfs", "sar", "javac", "mvn", "zstd")
SBIN = "/usr/sbin:/sbin"
OF_THE_SHELL = ("bash", "sh", "cat", "dirname", "grep", "mkdir", "sha256sum", "tail")


@pytest.mark.parametrize("missing", ["mvn", "zstd", "mmdebstrap", "javac"])
def test_a_program_that_was_removed_since_is_installed_again(setup, tmp_path, missing):
    """The folders of root's programs are stand-ins, too: on some machines they are links to /usr/bin."""
    script = tmp_path / "setup/setup.sh"
    assert script.read_text().count(SBIN) == 1
    script.write_text(script.read_text().replace(SBIN, str(tmp_path / "sbin")))
    (tmp_path / "sbin").mkdir()
    for name in NEEDED:
        program = tmp_path / ("sbin" if name.startswith("mkfs") else "bin") / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    for name in OF_THE_SHELL:
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    (tmp_path / "setup/daemons.sh").write_text("#!/bin/sh\n")
    (tmp_path / ".venv/bin/ansible-playbook").write_text(f"#!/bin/sh\necho called >>{tmp_path}/calls\n")
    for _ in range(2):
        setup(PATH=str(tmp_path / "bin"))
    assert (tmp_path / "calls").read_text().split() == ["called"], "with everything in place there is nothing to do"
    (tmp_path / "bin" / missing).unlink()
    setup(PATH=str(tmp_path / "bin"))
    assert (tmp_path / "calls").read_text().split() == ["called"] * 2


def test_ansible_gets_a_locale_that_it_takes(setup, tmp_path):
    (tmp_path / ".venv/bin/ansible-playbook").write_text(f"#!/bin/sh\necho $LC_ALL >{tmp_path}/locale\n")
    setup(LC_ALL="xx_XX")
    assert (tmp_path / "locale").read_text() == "C.UTF-8\n"


@pytest.mark.parametrize("place", ["state", "~/state"])
def test_a_state_whose_place_depends_on_where_one_stands_is_refused(setup, tmp_path, place):
    done = setup(check=False, NTIER_STATE=place)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: NTIER_STATE: '{place}' is not an absolute path; allowed are")
    assert not (tmp_path / place).exists()


def test_a_persons_own_settings_of_ansible_do_not_reach_set_up(setup, tmp_path):
    """It would ask for a password that nobody sees the question of, or take plug-ins that are not there."""
    (tmp_path / ".venv/bin/ansible-playbook").write_text(f"#!/bin/sh\nenv >{tmp_path}/environment\n")
    setup(ANSIBLE_CONFIG="/home/me/.ansible.cfg", ANSIBLE_BECOME_ASK_PASS="true")
    told = [line for line in (tmp_path / "environment").read_text().splitlines() if line.startswith("ANSIBLE_")]
    assert f"ANSIBLE_CONFIG={tmp_path}/ansible/ansible.cfg" in told
    assert f"ANSIBLE_HOME={tmp_path}/state/local/ansible" in told, "the home may be read-only"
    assert not [line for line in told if "BECOME" in line]
