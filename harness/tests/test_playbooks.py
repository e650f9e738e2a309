"""What is said of a task that failed, by a real run of Ansible on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ntier_harness.deploy import opaque
from ntier_harness.errors import WorkError
from ntier_harness.paths import Paths
from ntier_harness.playbooks import Events, play
from ntier_harness.runner import Runner

ROOT = Path(__file__).resolve().parents[2]
PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - name: It looks
      {task}
"""


@pytest.mark.parametrize(
    ("task", "says"),
    [
        ("ansible.builtin.command: sh -c 'echo first >&2; echo no room for the check >&2; exit 3'",
         "localhost: task 'It looks': no room for the check (exit code 3)"),
        ("ansible.builtin.command: sh -c 'exit 3'", "localhost: task 'It looks': non-zero return code"),
        ("ansible.builtin.fail: {msg: pool_max is 0}", "localhost: task 'It looks': pool_max is 0"),
    ],
)  # fmt: skip
def test_a_failed_task_says_why(task, says, tmp_path):
    (tmp_path / "play.yml").write_text(PLAY.format(task=task))
    program = Path(sys.executable).with_name("ansible-playbook")
    environment = {**os.environ, "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.jsonl", "ANSIBLE_NOCOLOR": "1"}
    argv = [program, "-i", "localhost,", "-e", f"ansible_python_interpreter={sys.executable}", "play.yml"]
    done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True)
    told = []
    events = Events(lambda _: None, told.append)
    for line in done.stdout.splitlines():
        events.line(line)
        assert told or "v2_runner_on_failed" not in line  # at once, not when the others have ended
    assert done.returncode == 2
    assert told == [events.failure] == [says]


def test_a_command_that_resets_a_tier_comes_to_the_node_as_it_is(tmp_path):
    """Braces in it are the command's, not Ansible's."""
    script = "#!/bin/sh\ndocker ps --format '{{.Names}} {{ none }}'\n"
    tasks = yaml.safe_load((ROOT / "ansible/playbooks/deploy.yml").read_text())[0]["tasks"]
    (task,) = (t for t in tasks if "ntier_reset" in str(t.get("ansible.builtin.copy", "")))
    copied = task["ansible.builtin.copy"] | {"dest": str(tmp_path / "90-system")}
    task["ansible.builtin.copy"] = {k: v for k, v in copied.items() if k not in ("owner", "group")}
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [task]}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    known = {"ntier_tier": "db", "ntier_reset": {"db": opaque(script)}, "ansible_python_interpreter": sys.executable}
    (tmp_path / "known.json").write_text(json.dumps(known))
    argv = [Path(sys.executable).with_name("ansible-playbook"), "-i", "localhost,", "-e", "@known.json", "play.yml"]
    subprocess.run(argv, cwd=tmp_path, capture_output=True, check=True)
    assert (tmp_path / "90-system").read_text() == script


def test_the_deployment_knows_more_digests_than_set_up(tmp_path):
    """Of a system's own roles; Ansible takes a whole variable from whoever says it last."""
    paths = Paths(Path(__file__).resolve().parents[2], tmp_path, tmp_path)
    for file, digests in ((paths.install_digests, {"web": "old"}), (paths.deployment, {"web": "old", "own": "new"})):
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"ntier_install_digests": digests}))
    paths.nodes.write_text("[]")
    paths.logs.mkdir()
    task = "ansible.builtin.fail: {msg: 'own is {{ ntier_install_digests.own }}'}"
    (tmp_path / "play.yml").write_text(PLAY.format(task=task))
    with pytest.raises(WorkError, match="own is new"):
        play(Runner(), paths, [str(tmp_path / "play.yml")])


def test_what_ansible_says_is_for_nobody_else_while_it_says_it(tmp_path):
    """Also if it is interrupted: there may be a password in it."""
    paths = Paths(Path(__file__).resolve().parents[2], tmp_path, tmp_path)
    paths.nodes.parent.mkdir(exist_ok=True)
    paths.nodes.write_text("[]")
    paths.logs.mkdir()
    look = f"stat -c %a {paths.logs}/ansible-play.jsonl"
    task = f"""ansible.builtin.fail: {{msg: "its mode is {{{{ lookup('pipe', '{look}') }}}}"}}"""
    (tmp_path / "play.yml").write_text(PLAY.format(task=task))
    with pytest.raises(WorkError, match="its mode is 600"):
        play(Runner(), paths, [str(tmp_path / "play.yml")])


@pytest.mark.parametrize("name", ["LC_ALL", "ANSIBLE_CONFIG"])
def test_a_persons_own_locale_and_configuration_do_not_reach_the_deployment(name, tmp_path, monkeypatch):
    """Ansible ends at once in a locale that is not UTF-8; a person's configuration may name other plug-ins and keys."""
    paths = Paths(Path(__file__).resolve().parents[2], tmp_path, tmp_path)
    paths.nodes.parent.mkdir(exist_ok=True)
    paths.nodes.write_text("[]")
    paths.logs.mkdir()
    own = tmp_path / "ansible.cfg"
    own.write_text("[inventory]\nenable_plugins = ansible.builtin.script\nany_unparsed_is_failed = True\n")
    monkeypatch.setenv(name, {"LC_ALL": "C", "ANSIBLE_CONFIG": str(own)}[name])
    task = "ansible.builtin.debug: {msg: seen}"
    (tmp_path / "play.yml").write_text(PLAY.format(task=task))
    assert play(Runner(), paths, [str(tmp_path / "play.yml")]) == 1


def test_ansible_writes_nothing_to_the_home(tmp_path, monkeypatch):
    """It may be read-only, as where a service runs the deployment."""
    paths = Paths(Path(__file__).resolve().parents[2], tmp_path, tmp_path)
    paths.nodes.parent.mkdir(exist_ok=True)
    paths.nodes.write_text("[]")
    paths.logs.mkdir()
    (tmp_path / "home").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ANSIBLE_HOME", "/none")
    (tmp_path / "play.yml").write_text(PLAY.format(task="ansible.builtin.debug: {msg: seen}"))
    assert play(Runner(), paths, [str(tmp_path / "play.yml")]) == 1


def test_a_persons_shell_does_not_keep_ansible_from_checking_host_keys(tmp_path, monkeypatch):
    """SSH takes the first value that it meets, and Ansible puts this one before ours."""
    paths = Paths(Path(__file__).resolve().parents[2], tmp_path, tmp_path)
    paths.nodes.parent.mkdir(exist_ok=True)
    paths.nodes.write_text("[]")
    paths.logs.mkdir()
    monkeypatch.setenv("ANSIBLE_HOST_KEY_CHECKING", "False")
    task = """ansible.builtin.fail: {msg: "checked: {{ lookup('ansible.builtin.config', 'HOST_KEY_CHECKING') }}"}"""
    (tmp_path / "play.yml").write_text(PLAY.format(task=task))
    with pytest.raises(WorkError, match="checked: True"):
        play(Runner(), paths, [str(tmp_path / "play.yml")])
