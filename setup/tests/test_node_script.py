"""The script of the local target's nodes with an Incus in its place: one that is silent, and one that takes no keys."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SILENT = "#!/bin/sh\necho 'Error: The incus daemon does not appear to be started' >&2\nexit 1\n"
NO_KEYS = "#!/bin/sh\ncase \"$*\" in *' exec '*) cat >/dev/null; exit 1;; esac\n"


@pytest.fixture
def node(tmp_path):
    """node(text of the program incus, arguments of node.sh)"""
    (tmp_path / "state/local/nodes/db1").mkdir(parents=True)
    (tmp_path / "state/local/nodes/db1/made").write_text("mysql 198.18.1.1 - -")
    (tmp_path / "state/ssh").mkdir()
    (tmp_path / "state/ssh/id_ed25519.pub").write_text("ssh-ed25519 AAAA ntier\n")
    for name in ("bin", "tmp"):
        (tmp_path / name).mkdir()
    environment = os.environ | {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "NTIER_STATE": str(tmp_path / "state"),
        "TMPDIR": str(tmp_path / "tmp"),
    }

    def run(incus: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "bin/incus").write_text(incus)
        (tmp_path / "bin/incus").chmod(0o755)
        command = ["bash", str(ROOT / "terraform/targets/local/node.sh"), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    return run


@pytest.mark.parametrize("command", [("clear",), ("delete", "db1"), ("guard",), ("create", "db1", "x", "198.18.1.1")])
def test_without_an_answer_no_node_is_forgotten(node, tmp_path, command):
    done = node(SILENT, *command)
    assert done.returncode == 1
    assert "error: Incus does not answer, so nobody knows which nodes there are: run make setup" in done.stderr
    assert (tmp_path / "state/local/nodes/db1").exists()
    assert command[0] == "create" or (tmp_path / "state/local/nodes/db1/made").exists()


def test_a_node_that_takes_no_keys_fails_at_once_and_no_private_key_lies_around(node, tmp_path):
    done = node(NO_KEYS, "create", "web1", "web", "198.18.1.2")
    assert done.returncode == 1
    assert "node web1 does not take its keys" in done.stderr
    assert not list((tmp_path / "tmp").iterdir())
    keys = [p.name for p in (tmp_path / "state").rglob("ssh_host_ed25519_key")]
    assert len(keys) == 1, "its own, for the next attempt to replace"
