"""Running Ansible as the harness does, and the nodes that the tests marked `nodes` use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from testnode import SCALE

ANSIBLE = Path(__file__).resolve().parents[1]
ROOT = ANSIBLE.parent
BIN = Path(sys.executable).parent
STATE = Path(os.environ.get("NTIER_STATE") or "/var/lib/ntier")


def ansible_environment(**more: str) -> dict[str, str]:
    return {**os.environ, "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", **more}


@dataclass
class Play:
    """What a playbook did: {"host: task": changed} and the failures' messages."""

    code: int
    changed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    done: int = 0
    text: str = ""


def read_events(text: str) -> Play:
    play = Play(0, text=text)
    for line in text.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if not event.get("_event", "").startswith("v2_runner_on_") or event["_event"] == "v2_runner_on_start":
            continue
        for host, result in event["hosts"].items():
            place = f"{host}: {event['task']['name']}"
            play.done += event["_event"] == "v2_runner_on_ok"
            if result.get("changed") and event["_event"] == "v2_runner_on_ok":
                play.changed.append(place)
            if event["_event"] in ("v2_runner_on_failed", "v2_runner_on_unreachable"):
                play.failed.append(f"{place}: {result.get('msg', '')}")
    return play


@dataclass(frozen=True)
class Deployment:
    """Nodes that run, and the ways to them."""

    nodes: list[dict[str, Any]]
    folder: Path = STATE / "local"  # of nodes.json and known_hosts

    def play(self, name: str, *arguments: str) -> Play:
        files = [STATE / "local" / name for name in ("deployment.json", "secrets.yml", "install_digests.json")]
        variables = [word for file in files if file.exists() for word in ("-e", f"@{file}")]
        command = [str(BIN / "ansible-playbook"), "-i", str(self.folder / "nodes.json"), f"playbooks/{name}.yml"]
        environment = ansible_environment(ANSIBLE_STDOUT_CALLBACK="ansible.posix.jsonl", NTIER_STATE=str(STATE))
        done = subprocess.run(
            [*command, *variables, *arguments],
            cwd=ANSIBLE,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        play = read_events(done.stdout)
        play.code, play.text = done.returncode, done.stdout[-3000:] + done.stderr[-3000:]
        return play

    def ssh(self, node: dict[str, Any], command: str, text: str = "") -> subprocess.CompletedProcess[str]:
        options = {
            "UserKnownHostsFile": self.folder / "known_hosts",
            "StrictHostKeyChecking": "yes",
            "BatchMode": "yes",
        }
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        words += ["-i", str(STATE / "ssh/id_ed25519"), f"root@{node['address']}", command]
        return subprocess.run(["ssh", *words], input=text, capture_output=True, text=True, timeout=120)

    def of_tier(self, tier: str) -> list[dict[str, Any]]:
        return [node for node in self.nodes if node["tier"] == tier]


@pytest.fixture(scope="session")
def deployment(deployments: None) -> Deployment:
    """The deployment of this machine, if it is one of MySQL (the tests know its port and its collectors); else the
    smallest one."""
    file = STATE / "local/nodes.json"
    if not file.exists() or "mysql" not in {node["role"] for node in json.loads(file.read_text())}:
        for command in ("up", "deploy"):
            subprocess.run([BIN / "ntier", command, "--topo", "1/1/1/1M", *SCALE], cwd=ROOT, check=True)
    deployed = Deployment(json.loads(file.read_text()))
    first = deployed.play("deploy")
    assert first.code == 0, first.failed or first.text
    return deployed


@pytest.fixture(scope="session")
def nodes_that_run() -> Callable[[], Deployment]:
    """The deployment of this machine as it is when the fixture is called; nothing is made."""
    return lambda: Deployment(json.loads((STATE / "local/nodes.json").read_text()))


@pytest.fixture
def inventory(tmp_path: Path) -> Callable[[Any], subprocess.CompletedProcess[str]]:
    """`ansible-inventory --list` of a nodes.json with the given content."""

    def read(content: Any) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "local" / "nodes.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        command = [str(BIN / "ansible-inventory"), "-i", str(file), "--list"]
        environment = ansible_environment()
        environment.pop("NTIER_STATE", None)
        return subprocess.run(command, cwd=ANSIBLE, env=environment, capture_output=True, text=True)

    return read
