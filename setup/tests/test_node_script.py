"""The script of the local target's nodes with an Incus in its place: one that is silent, and one that takes no keys."""

from __future__ import annotations

import os
import shlex
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


TWO_NODES = """#!/bin/sh
# web1, which {other} made, and cache1, of which nobody knows; what is deleted is gone
case "$*" in
  *"delete --force web1"*) touch {other}/web1;;
  *"delete --force cache1"*) touch {other}/cache1;;
  *" list "*) for node in web1 cache1; do [ -e {other}/$node ] || echo $node; done;;
  *"config get web1 user.ntier.state"*) echo {other};;
esac
"""


def test_beside_nodes_of_another_state_its_owner_s_command_is_named(node, tmp_path):
    other = tmp_path / "another state"
    other.mkdir()
    done = node(TWO_NODES.format(other=shlex.quote(str(other))), "guard")
    assert done.returncode == 1
    named = f"web1 are of NTIER_STATE={other}, perhaps at work: wait for it, or remove them with  NTIER_STATE="
    assert f"{named}{str(other).replace(' ', chr(92) + ' ')} make down ;" in done.stderr
    assert "nobody knows whose cache1 are: if another NTIER_STATE made them, use its make down" in done.stderr
    assert list(other.iterdir()) == [], "nothing was removed"


def test_what_is_removed_is_not_of_another_state_that_has_it(node, tmp_path):
    other = tmp_path / "other"
    (other / "local/nodes/web1").mkdir(parents=True)
    done = node(TWO_NODES.format(other=other), "clear")
    assert (done.returncode, done.stderr) == (0, f"node web1 stays: it is of NTIER_STATE={other}\n")
    assert ((other / "web1").exists(), (other / "cache1").exists()) == (False, True)
    (other / "local/nodes/web1").rmdir()
    node(TWO_NODES.format(other=other), "clear")
    assert (other / "web1").exists(), "nobody has it any more"


def test_a_node_says_which_state_made_it(node, tmp_path):
    said = tmp_path / "said"
    node(f'#!/bin/sh\necho "$*" >>{said}\n{NO_KEYS.partition(chr(10))[2]}', "create", "web1", "web", "198.18.1.2")
    assert f"--config user.ntier.state={tmp_path / 'state'} " in said.read_text()


def test_a_node_that_takes_no_keys_fails_at_once_and_no_private_key_lies_around(node, tmp_path):
    done = node(NO_KEYS, "create", "web1", "web", "198.18.1.2")
    assert done.returncode == 1
    assert "node web1 does not take its keys" in done.stderr
    assert not list((tmp_path / "tmp").iterdir())
    keys = [p.name for p in (tmp_path / "state").rglob("ssh_host_ed25519_key")]
    assert len(keys) == 1, "its own, for the next attempt to replace"
