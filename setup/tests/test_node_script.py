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

    def run(incus: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {
            "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
            "NTIER_STATE": str(tmp_path / "state"),
            "TMPDIR": str(tmp_path / "tmp"),
        }
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
# web1, made by the state that the file `mark` names, and cache1, of which nobody knows; what is deleted is gone
case "$*" in
  *"delete --force web1"*) touch {place}/web1;;
  *"delete --force cache1"*) touch {place}/cache1;;
  *" list "*) for node in web1 cache1; do [ -e {place}/$node ] || echo $node; done;;
  *"config get web1 user.ntier.state"*) [ -e {place}/mark ] && cat {place}/mark;;
esac
"""


@pytest.fixture
def two(node, tmp_path):
    """two(state that made web1, arguments of node.sh) -> what was said, and which nodes are gone then."""
    place = tmp_path / "place"
    place.mkdir()

    def run(made_by: Path | None, *arguments: str) -> tuple[subprocess.CompletedProcess[str], set[str]]:
        (place / "mark").unlink(missing_ok=True)
        if made_by:
            (place / "mark").write_text(f"{made_by}\n")
        done = node(TWO_NODES.format(place=shlex.quote(str(place))), *arguments)
        return done, {p.name for p in place.iterdir()} - {"mark"}

    return run


@pytest.fixture
def other(tmp_path) -> Path:
    """Another state, which has web1."""
    (tmp_path / "another state/local/nodes/web1").mkdir(parents=True)
    return tmp_path / "another state"


def test_beside_nodes_of_another_state_its_owner_s_command_is_named(two, other):
    done, gone = two(other, "guard")
    assert (done.returncode, gone) == (1, set())
    quoted = str(other).replace(" ", "\\ ")
    remove = f"or remove them with  NTIER_STATE={quoted} make down ;"
    assert f"NTIER_STATE={other} made web1 and may be at work: wait, {remove}" in done.stderr
    assert "no NTIER_STATE has cache1: if nobody needs them, remove them with  make down" in done.stderr


def test_nodes_of_a_state_that_is_gone_are_nobodys(two, other, tmp_path):
    other.rename(tmp_path / "gone")
    done, _ = two(other, "guard")
    assert "no NTIER_STATE has cache1 web1: if nobody needs them, remove them with  make down" in done.stderr


def test_what_is_removed_is_not_of_another_state_that_has_it(two, other):
    done, gone = two(other, "clear")
    assert (done.returncode, done.stderr) == (0, f"node web1 stays: it is of NTIER_STATE={other}\n")
    assert gone == {"cache1"}
    (other / "local/nodes/web1").rmdir()
    assert two(other, "clear")[1] == {"web1", "cache1"}, "nobody has it any more"


@pytest.mark.parametrize("by_another_name", [False, True])
def test_our_own_nodes_are_removed(two, tmp_path, by_another_name):
    (tmp_path / "state/local/nodes/web1").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "state")
    done, gone = two(tmp_path / ("link" if by_another_name else "state"), "clear")
    assert (done.returncode, done.stderr, gone) == (0, "", {"web1", "cache1"})


def test_a_node_whose_owner_incus_does_not_tell_is_not_removed(two):
    """It is there, and `config get` fails."""
    done, gone = two(None, "clear")
    assert (done.returncode, gone) == (1, set())
    assert "Incus does not answer" in done.stderr


@pytest.mark.parametrize("made", [False, True])
def test_a_node_that_was_ours_and_is_another_state_s_now_is_left_to_it(two, other, tmp_path, monkeypatch, made):
    """We began to make it, or had it; then another state made one of that name."""
    folder = tmp_path / "state/local/nodes/web1"
    folder.mkdir()
    if made:
        (folder / "made").write_text("web 198.18.1.2 - -")
    monkeypatch.setenv("NTIER_SPECS", "web1 web 198.18.1.2 - -")
    for command in (("guard",), ("create", "web1", "web", "198.18.1.2")):
        done, gone = two(other, *command)
        assert (done.returncode, gone) == (1, set())
        assert f"NTIER_STATE={other}" in done.stderr
    done, gone = two(other, "delete", "web1")
    assert (done.returncode, gone, folder.exists()) == (0, set(), False)


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
