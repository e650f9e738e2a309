"""MySQL Cluster on real nodes: what a killed data node does to the cluster, to its data, and to a trial. Two data nodes
are one node group: either of them holds everything."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from ntier_analysis.contracts.manifest import State

from .conftest import DEADLINE_S, NTIER, RealSweep, on_node

MADE = Path(os.environ.get("NTIER_STATE") or "/var/lib/ntier") / "ndb/version.json"
pytestmark = [
    pytest.mark.nodes("1/1/2/2C"),
    pytest.mark.faults,
    pytest.mark.skipif(not MADE.exists(), reason="make ndb has not built the programs"),
]
CLUSTER = ["--topo", "1/1/2/2C", "--data", "tiny"]
SQL_NODES, DATA_NODES = ("middleware1", "middleware2"), ("db1", "db2")
KILL = "pkill -9 -x ndbmtd"
RETURN_S = 300.0  # a start of the whole cluster takes half a minute on an idle machine


@pytest.fixture(scope="module")
def cluster(deployments: None) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    for command in ("up", "deploy"):
        done = subprocess.run([NTIER, command, *CLUSTER], capture_output=True, text=True, timeout=DEADLINE_S)
        assert done.returncode == 0, done.stderr


def sql(node: str, statement: str) -> str:
    return on_node(node, f'mysql --batch --skip-column-names -e "{statement}"').strip()


def rows(node: str) -> dict:
    """Rows and digest of each table, as this SQL node reads them."""
    return json.loads(on_node(node, "ntier-data"))


def started() -> str:
    """How many data nodes serve, and how many there are: `2 2`."""
    return on_node("management1", "/usr/local/lib/ntier/ndb-nodes $(hostname -I)").strip()


def connected() -> list[str]:
    """How many data nodes each SQL node sees."""
    return [sql(node, "SELECT COUNT(*) FROM ndbinfo.membership") for node in SQL_NODES]


def await_cluster() -> None:
    """Starts the data nodes that are down, together: each waits for the other. One that is connected is not yet
    started: the other one's end would be its own."""
    end = time.monotonic() + RETURN_S
    for node in DATA_NODES:
        if on_node(node, "systemctl is-active ntier-ndbmtd").strip() == "failed":
            on_node(node, "systemctl start --no-block ntier-ndbmtd")
    while started() != "2 2" or connected() != ["2", "2"]:
        assert time.monotonic() < end, (started(), connected())
        time.sleep(1)


@pytest.mark.parametrize("killed", [("db1",), ("db2",), DATA_NODES], ids=["first", "second", "whole_group"])
def test_rows_are_there_again_after_data_nodes_were_killed(cluster, killed):
    """One of a group: the other one answers at once. Both: nothing answers, with an error; a start brings all back."""
    await_cluster()
    before = rows("middleware1")
    for node in killed:
        on_node(node, KILL)
    counted = sql("middleware1", "SELECT COUNT(*) FROM rubbos.users WHERE id >= 0")
    if len(killed) == 1:
        assert counted == str(before["users"]["rows"])
        assert rows("middleware2") == before
    else:
        assert counted == "", "a cluster without its data answered"
    await_cluster()
    assert rows("middleware1") == rows("middleware2") == before


def test_two_sql_nodes_see_the_same_rows_whoever_writes(cluster):
    await_cluster()
    before = rows("middleware1")["categories"]["rows"]
    try:
        sql("middleware1", "INSERT INTO rubbos.categories (id, name) VALUES (900, 'of one')")
        sql("middleware2", "INSERT INTO rubbos.categories (id, name) VALUES (901, 'of two')")
        assert rows("middleware1") == rows("middleware2")
        assert rows("middleware1")["categories"]["rows"] == before + 2
    finally:
        sql("middleware2", "DELETE FROM rubbos.categories WHERE id >= 900")
    assert rows("middleware1")["categories"]["rows"] == rows("middleware2")["categories"]["rows"] == before


def swept(tmp_path: Path, name: str, mix: str = "browse_only") -> RealSweep:
    return RealSweep(tmp_path / "results", name, f"1-1-2-2C.{mix}.ndbsql", ("--data", "tiny", "--scale", "auto"))


def test_a_trial_that_lost_a_data_node_goes_on_and_is_invalid(cluster, tmp_path):
    """Users got pages without an error until the run's end; what was measured is another topology."""
    await_cluster()
    sweep = swept(tmp_path, "one_killed")
    sweep.start()
    sweep.await_step("run")
    sweep.fault(lambda: on_node("db2", KILL))
    sweep.check(sweep.wait(), (0, 1))
    first, *further = sweep.attempts()
    assert first.outcome in ("invalid", "failed")
    checks = {c.id: c for c in first.manifest.validity.checks}
    assert "data_nodes_lost" in first.manifest.validity.reasons, (first.manifest.validity.reasons, checks.keys())
    assert "1 of 2 data nodes were started" in checks["R3"].detail
    assert checks["E1"].outcome == "pass", checks["E1"].detail
    assert any(a.manifest.state is State.COLLECTED for a in further), sweep.log.read_text()[-3000:]


def test_a_trial_that_lost_a_node_group_fails_and_the_sweep_goes_on(cluster, tmp_path):
    await_cluster()
    sweep = swept(tmp_path, "group_killed")
    sweep.start()
    sweep.await_step("run")
    sweep.fault(lambda: [on_node(node, KILL) for node in DATA_NODES])
    sweep.check(sweep.wait(), (0, 1))
    first, *further = sweep.attempts()
    assert first.outcome in ("invalid", "failed")
    assert first.manifest.validity is None or first.manifest.validity.reasons
    assert any(a.manifest.state is State.COLLECTED for a in further), sweep.log.read_text()[-3000:]


def test_users_who_write_leave_the_same_rows_at_both_sql_nodes(cluster, tmp_path):
    await_cluster()
    sweep = swept(tmp_path, "writes", "read_write")
    sweep.check(sweep.run(), (0, 1))
    seen = [a.manifest.validity.checks for a in sweep.attempts() if a.manifest.validity]
    assert seen, sweep.log.read_text()[-3000:]
    replicas = [next(c for c in checks if c.id == "R2") for checks in seen]
    assert all(c.outcome == "pass" and c.detail.startswith("2 replicas") for c in replicas), replicas
