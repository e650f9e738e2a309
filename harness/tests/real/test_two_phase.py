"""Two-phase commit on real nodes: one node alone, then others that join it and leave it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ntier_analysis.contracts.manifest import State

from .conftest import DEADLINE_S, NTIER, last_attempts, nodes

SYSTEM = ["--system", "two-phase-commit", "--mix", "base", "--scale", "0.2"]

pytestmark = [pytest.mark.nodes("2"), pytest.mark.faults, pytest.mark.usefixtures("deployments")]


def ntier(command: str, topo: str, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [NTIER, command, *SYSTEM, "--topo", topo, *more], capture_output=True, text=True, timeout=DEADLINE_S
    )


def test_nodes_that_join_one_that_was_alone_hold_the_same(tmp_path: Path) -> None:
    """Its users have changed its data, and so did the verification of each deployment; that of 2 nodes fails where they
    do not hold the same."""
    amount = ["--factor", "sleep_s=0.1", "--set", "amount=800", "--results", str(tmp_path)]  # 10 s of selects
    ntier("sweep", "1", *amount, "--attempts", "1")
    (attempt,) = last_attempts(tmp_path)
    assert attempt.manifest.state is State.COLLECTED  # valid or not: its users ran
    for topo in ("2", "1", "2"):
        up, deployed = ntier("up", topo), ntier("deploy", topo)
        assert up.returncode == deployed.returncode == 0, up.stderr + deployed.stdout + deployed.stderr
        assert "deployed and verified" in deployed.stdout + deployed.stderr
        assert set(nodes()) == {"client1", *(f"node{n + 1}" for n in range(int(topo)))}
