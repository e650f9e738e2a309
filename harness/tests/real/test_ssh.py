"""The connections that commands on the nodes share, when somebody kills them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ntier_analysis.contracts.nodes import Node
from ntier_harness.commands.begin import make_lab
from ntier_harness.lab import Lab
from ntier_harness.ssh import options

pytestmark = pytest.mark.nodes("1/1/1/1M")


@pytest.fixture
def lab(deployed: None) -> Iterator[Lab]:
    lab = make_lab()
    lab.nodes.disconnect()
    lab.nodes.connect()
    yield lab
    lab.runner.stop_spawned()
    lab.nodes.disconnect()


def master(lab: Lab, node: Node) -> int:
    """Pid of the process that holds the connection; 0 if there is none."""
    access = lab.nodes.access(node)
    done = lab.runner.run(["ssh", *options(access, lab.paths), "-O", "check", access.destination], check=False)
    return 0 if done.code else int(done.err.partition("pid=")[2].partition(")")[0])


def kill_master(lab: Lab, node: Node) -> None:
    """Its socket stays where it was."""
    before = set(lab.paths.ssh.glob("cm-*"))
    pid = master(lab, node)
    assert pid, "no connection to kill"
    os.kill(pid, signal.SIGKILL)
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        time.sleep(0.01)
    assert set(lab.paths.ssh.glob("cm-*")) == before
    assert master(lab, node) == 0


def test_a_connection_that_was_killed_is_opened_again(lab):
    for node in lab.nodes.all:
        kill_master(lab, node)
    lab.nodes.connect()
    assert all(master(lab, node) for node in lab.nodes.all)


def test_what_ssh_says_of_its_connection_is_no_output_of_the_command(lab, tmp_path):
    node = lab.nodes.clients[0]
    kill_master(lab, node)
    spawned = lab.nodes.spawn(node, "echo t_s,users", tmp_path / "progress.csv")
    while spawned.poll() is None:
        time.sleep(0.05)
    assert spawned.lines() == ["t_s,users"]
    assert "Control socket connect" in (lab.paths.logs / "ssh.log").read_text()
