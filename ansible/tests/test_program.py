"""The role `program` as Ansible runs it, with an /etc and a systemctl of the test's own: two roles in two folders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.whole

ANSIBLE = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
SYSTEMCTL = """#!/bin/sh
echo "$*" >>"$STATE/calls"
case $1 in
  enable) touch "$STATE/$2" ;;
  is-enabled) [ -e "$STATE/$2" ] && echo enabled ;;
  show) echo LoadState=loaded; echo "ActiveState=$(cat "$STATE/$2.active" 2>/dev/null || echo inactive)" ;;
  start | restart) echo active >"$STATE/$2.active" ;;
esac
"""
ROLE = {
    "vars/main.yml": """
NAME_program:
  role: NAME
  packages: []
  unit: NAME.service
  folders: [{path: /etc/NAME}]
  files: {/etc/ntier/reset.d/50-NAME: reset}
  reports: {packages: [bash], running: ["NAME NAME.service says {{ NAME_word }}"]}
""",
    "defaults/main.yml": "NAME_word: hello\n",
    "tasks/main.yml": """
- ansible.builtin.include_role: {name: program}
  vars:
    program_spec: "{{ NAME_program }}"
    program_peers: {NAME_clients: "{{ clients }}"}
""",
    "tasks/install.yml": """
- ansible.builtin.include_role: {name: program, tasks_from: install}
  vars: {program_spec: "{{ NAME_program }}"}
""",
    "tasks/configure.yml": """
- ansible.builtin.copy: {content: "{{ NAME_word }}", dest: /etc/NAME/conf, mode: "0644"}
  notify: Restart NAME.service
""",
    "tasks/started.yml": '- ansible.builtin.copy: {content: "", dest: /etc/NAME/started, mode: "0644"}\n',
    "files/reset": "#!/bin/sh\n",
    "files/NAME.service": "[Service]\nExecStart=/bin/true\n",
}
PLAY = """
- hosts: all
  gather_facts: false
  strategy: ansible.builtin.free
  tasks:
    - ansible.builtin.include_role: {name: program, tasks_from: installed}
    - ansible.builtin.include_role: {name: "{{ inventory_hostname }}"}
"""
NAMES = ("one", "two")


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder, self.etc = folder, folder / "etc"
        subprocess.run(["cp", "-a", "/etc", self.etc], check=True)
        for name in ("installed", "reset.d", "services.d", "packages.d", "running.d"):
            (self.etc / "ntier" / name).mkdir(parents=True)
        (self.etc / "systemd/system").mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            for file, text in ROLE.items():
                path = folder / f"roles-{name}" / name / file.replace("NAME", name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text.replace("NAME", name))
        (folder / "bin").mkdir()
        (folder / "bin/systemctl").write_text(SYSTEMCTL)
        (folder / "bin/systemctl").chmod(0o755)
        (folder / "state").mkdir()
        (folder / "play.yml").write_text(PLAY)

    def play(self, *arguments: str, clients: str = '["198.18.1.1"]') -> tuple[dict[str, dict[str, int]], str]:
        """What Ansible counted for each role, and what it said."""
        roles = [ANSIBLE / "roles", *(self.folder / f"roles-{name}" for name in NAMES)]
        environment = {
            **os.environ,
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "STATE": str(self.folder / "state"),
            "ANSIBLE_ROLES_PATH": ":".join(map(str, roles)),
            "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
            "ANSIBLE_LOCALHOST_WARNING": "0",
        }
        command = [BIN / "ansible-playbook", "-i", ",".join([*NAMES, ""]), "-c", "local", self.folder / "play.yml"]
        command += ["-e", f'{{"clients": {clients}, "ansible_python_interpreter": "/usr/bin/python3"}}', *arguments]
        inner = ["sh", "-c", 'mount --bind "$0" /etc && exec "$@"', self.etc, *command]
        done = subprocess.run(
            ["unshare", "--mount", *inner], cwd=self.folder, env=environment, capture_output=True, text=True
        )
        return json.loads(done.stdout[done.stdout.index("{") :])["stats"], done.stdout + done.stderr

    def calls(self, verb: str) -> list[str]:
        """Units that systemctl was told to `verb` since the last time."""
        file = self.folder / "state/calls"
        lines = file.read_text().splitlines() if file.exists() else []
        return sorted(line.split()[1] for line in lines if line.split()[0] == verb)

    def text(self, path: str) -> str:
        return (self.etc / path).read_text().strip()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    if os.geteuid() or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("needs root and a mount namespace")
    return Machine(tmp_path)


def test_each_role_is_installed_configured_and_started_and_again_nothing_changes(machine):
    stats, said = machine.play()
    assert [stats[name]["failures"] for name in NAMES] == [0, 0], said
    for name in NAMES:
        assert machine.text(f"ntier/services.d/{name}") == f"{name}.service"
        assert machine.text(f"ntier/running.d/{name}") == f"{name} {name}.service says hello"
        assert machine.text(f"ntier/installed/{name}") == "unknown"
        assert machine.text(f"systemd/system/{name}.service").startswith("[Service]")
        assert os.access(machine.etc / f"ntier/reset.d/50-{name}", os.X_OK)
        assert (machine.etc / name / "started").exists()
    assert machine.calls("start") == ["one.service", "two.service"], "once each, by the handler or after it"
    assert machine.calls("enable") == ["one.service", "two.service"]
    stats, said = machine.play()
    assert [stats[name]["changed"] for name in NAMES] == [0, 0], said

    # another configuration of the first, another installation of the second
    stats, said = machine.play("-e", '{"one_word": "bye", "ntier_install_digests": {"two": "abc"}}')
    assert machine.calls("restart") == ["one.service"], said
    assert machine.text("one/conf") == "bye"
    assert machine.text("ntier/installed/two") == "abc"
    assert machine.text("ntier/installed/one") == "unknown", "any installation will do if none is asked for"


def test_check_mode_of_a_bare_machine_and_a_role_without_peers(machine):
    stats, said = machine.play("--check")
    assert [stats[name]["failures"] for name in NAMES] == [0, 0], said
    assert min(stats[name]["changed"] for name in NAMES) > 2
    assert machine.calls("restart") == []
    assert not (machine.etc / "one").exists()
    stats, said = machine.play(clients="[]")
    assert [stats[name]["failures"] for name in NAMES] == [1, 1]
    assert "one_clients is empty: one has nobody to connect" in said
