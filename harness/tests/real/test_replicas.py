"""A middleware on real nodes that does not use both replicas, as a wrong configuration would have it (trap T24).
Round robin promises each replica half of the reads; a trial in which one got none must not count."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from ntier_harness import ledger

from .conftest import DEADLINE_S, NTIER, on_node

pytestmark = [pytest.mark.nodes("1/1/1/2M"), pytest.mark.faults]

CONFIGURATION = "/etc/ntier/shardingsphere/config-rw.yaml"
RESTART = "systemctl restart ntier-shardingsphere"
HEALTHY_S = 120  # a cold proxy on a busy machine; a sweep that finds it unhealthy would deploy the right configuration
TOPOLOGY = ["--topo", "1/1/1/2M", "--set", "middleware_policy=round_robin"]
WRONG = {
    # every read goes to the first of the two
    "one_entry": "sed -i 's/read-data-source-names: db1,db2/read-data-source-names: db1/'",
    # the middleware counts two replicas, and both are the same database
    "two_names_for_one": "sed -i \"s/$(awk '/^  db2:/{f=1} f&&/url:/' {file} | grep -oE '198[0-9.]+' | head -n 1)/"
    "$(awk '/^  db1:/{f=1} f&&/url:/' {file} | grep -oE '198[0-9.]+' | head -n 1)/\"",
}


def ntier(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([NTIER, *arguments], capture_output=True, text=True, timeout=DEADLINE_S)


@pytest.fixture(scope="module")
def two_replicas(deployments: None) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    for command in ("up", "deploy"):
        done = ntier(command, *TOPOLOGY)
        assert done.returncode == 0, done.stderr


def await_healthy() -> None:
    end = time.monotonic() + HEALTHY_S
    while "yes" not in on_node("middleware1", "ntier-node reset >/dev/null && echo yes"):
        assert time.monotonic() < end, "the middleware with the wrong configuration does not serve"


@pytest.fixture
def wrong(two_replicas: None, request: pytest.FixtureRequest):
    """The middleware with one of the wrong configurations; the right one afterwards."""
    change = WRONG[request.param].replace("{file}", CONFIGURATION)
    on_node("middleware1", f"cp -p {CONFIGURATION} /root/right.yaml; {change} {CONFIGURATION}; {RESTART}")
    await_healthy()
    differs = on_node("middleware1", f"cmp -s {CONFIGURATION} /root/right.yaml || echo yes").strip()
    yield differs == "yes"
    on_node("middleware1", f"mv /root/right.yaml {CONFIGURATION}; {RESTART}")


@pytest.mark.parametrize("wrong", list(WRONG), indirect=True)
def test_t24_a_replica_that_gets_nothing_makes_the_trial_invalid(wrong: bool, tmp_path: Path, request):
    assert wrong, "the configuration was not changed"
    options = ["--users", "1000", "--phases", "5/10/1", "--attempts", "1", "--name", "pinned"]
    done = ntier("sweep", *TOPOLOGY, *options, "--results", str(tmp_path))
    assert done.returncode in (0, 1), done.stderr
    (attempt,) = ledger.attempts(tmp_path / "raw/1-1-1-2M.browse_only.shardingsphere.pinned")["u01000.r01"]
    assert attempt.outcome == "invalid", done.stderr[-3000:]
    by_id = {c.id: c for c in attempt.manifest.validity.checks}
    assert "topology_not_used" in attempt.manifest.validity.reasons, by_id["O5"]
    assert by_id["O5"].detail.startswith("idle: db2; ")
