"""Two-phase commit on real nodes: one node alone, then others that join it and leave it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ntier_harness import ledger

from .conftest import DEADLINE_S, NTIER, nodes

SYSTEM = ["--system", "two-phase-commit", "--mix", "base", "--scale", "0.2"]

pytestmark = [pytest.mark.nodes("2"), pytest.mark.usefixtures("deployments")]


def ntier(command: str, topo: str, *more: str) -> str:
    done = subprocess.run(
        [NTIER, command, *SYSTEM, "--topo", topo, *more], capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_nodes_that_join_one_that_was_alone_hold_the_same(tmp_path: Path) -> None:
    """Its users have changed its data, and so did the verification of each deployment; that of 2 nodes fails where they
    do not hold the same."""
    amount = ["--factor", "sleep_s=0.1", "--set", "amount=800", "--results", str(tmp_path)]  # 10 s of selects
    ntier("sweep", "1", *amount)
    (sweep,) = (tmp_path / "raw").iterdir()
    ((*_, last),) = ledger.attempts(sweep).values()
    assert last.outcome == "valid", last.manifest
    for topo in ("2", "1", "2"):
        ntier("up", topo)
        assert "deployed and verified" in ntier("deploy", topo)
        assert set(nodes()) == {"client1", *(f"node{n + 1}" for n in range(int(topo)))}
