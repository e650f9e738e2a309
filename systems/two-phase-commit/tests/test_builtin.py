"""PostgreSQL's own replication as a mode of the driver, on real PostgreSQL of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "load")]

import psycopg  # noqa: E402
from clusters import CONNINFO, WITH_PASSWORD, Cluster  # noqa: E402
from trials import COORDINATOR, Trial, nodes_of, on_each, program, refused  # noqa: E402
from twophase import base, builtin  # noqa: E402
from twophase.acid import Refused  # noqa: E402
from twophase.builtin import BuiltIn, end  # noqa: E402
from twophase.changes import Change  # noqa: E402
from twophase.places import Place  # noqa: E402
from twophase.recovery import State, check  # noqa: E402

pytestmark = pytest.mark.whole
NOTE = "SELECT note FROM items WHERE id = 1"
LEFT = (
    "SELECT (SELECT count(*) FROM pg_subscription) + (SELECT count(*) FROM pg_replication_slots) + (SELECT count(*) "
    "FROM pg_publication) + (SELECT count(*) FROM pg_trigger), current_setting('synchronous_standby_names')"
)
RIGHTS = HERE.parent / "roles/two_phase_node/files/rights.sql"


def run(job: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(job)


@pytest.mark.parametrize("mode", ["logical", "quorum"])
def test_a_run_keeps_what_its_mode_promises(two, tmp_path, ended, mode):
    trial = ended(two, tmp_path, mode, amount=240)  # 3 s: lags are read once a second
    work, lags = trial.work, trial.lines("lag.csv")
    assert (work["failed"], work["drained"], work["state"]["broken"]) == (0, True, [])
    assert work["state"]["orders"] == work["alters"] > 10
    both = [("1", "2"), ("2", "1")]
    assert {(row["origin"], row["peer"]) for row in lags} == set(both if mode == "logical" else both[:1])
    assert work["stale_ms"]["median"] <= work["stale_ms"]["p99"]
    assert program("check", two, "--mode", mode).returncode == 0
    with psycopg.connect(two[1].conninfo, autocommit=True) as connection:
        connection.execute("UPDATE items SET stock = stock + 1 WHERE id = 5")
    said = program("check", two, "--mode", mode)
    assert said.returncode == 1
    assert "items differ between the nodes" in said.stdout


def test_the_account_of_the_nodes_has_the_rights_that_it_needs(two, tmp_path):
    """No superuser, and a password that only this machine's file has."""
    file = tmp_path / "pgpass"
    file.write_text(f"*:*:postgres:{WITH_PASSWORD}:secret\n")
    file.chmod(0o600)
    conninfo = f"dbname=postgres user={WITH_PASSWORD} passfile={file}"
    for node in two:
        with psycopg.connect(node.conninfo, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {WITH_PASSWORD} LOGIN PASSWORD 'secret'")
            connection.execute(RIGHTS.read_text())
            connection.execute("DROP TABLE items, orders; DROP SCHEMA replication CASCADE")
            connection.execute(f"GRANT ALL ON DATABASE postgres TO {WITH_PASSWORD}")
            connection.execute(f"GRANT ALL ON SCHEMA public TO {WITH_PASSWORD}")
        node.load(200, f"{WITH_PASSWORD} password=secret")
    for mode in ("quorum", "acid", "logical"):  # the last one may win or lose stock
        trial = Trial(tmp_path / mode, two, mode, conninfo=conninfo, amount=20)
        trial.begin()
        assert trial.end() == (0, ""), mode
        assert trial.work["state"]["broken"] == [], mode
    run(end(nodes_of(two)))
    for node in two:
        with psycopg.connect(node.conninfo, autocommit=True) as connection:
            connection.execute(f"DROP OWNED BY {WITH_PASSWORD} CASCADE; DROP ROLE {WITH_PASSWORD}")


@contextlib.contextmanager
def no_word(node: Cluster) -> Iterator[None]:
    """It applies nothing of what others change."""
    with psycopg.connect(node.conninfo, autocommit=True) as connection:
        name = connection.execute("SELECT subname FROM pg_subscription").fetchone()[0]
        connection.execute(f"ALTER SUBSCRIPTION {name} DISABLE")
        yield
        connection.execute(f"ALTER SUBSCRIPTION {name} ENABLE")


async def written(node: Place, name: str) -> None:
    async with node.pool(1, autocommit=False) as pool:
        await base.commit(pool, node, Change(name, ((1, -1), (2, 1)), name), queued=False)


@pytest.mark.parametrize("rule", [True, False])
def test_of_two_that_change_a_row_at_once_the_later_writer_stands(two, rule):
    """Without the rule each node keeps what the other one wrote."""
    nodes = nodes_of(two)
    replication = BuiltIn(nodes, "logical")
    run(replication.begin())
    if not rule:
        on_each(two, "DROP TRIGGER later_wins ON items")
    with no_word(two[0]), no_word(two[1]):
        run(written(nodes[1], "early"))
        time.sleep(0.01)
        run(written(nodes[0], "late"))
    assert run(replication.caught_up(30))
    assert on_each(two, NOTE) == ([("late",)] * 2 if rule else [("early",), ("late",)])
    assert run(replication.late()) == (2 if rule else 0), "both rows of the early one"
    assert on_each(two, "SELECT count(*) FROM orders") == [(2,)] * 2
    assert (run(check(nodes)).broken("logical") == []) == rule


def test_a_commit_waits_for_its_quorum_and_says_when_there_is_none(two):
    nodes = nodes_of(two)
    replication = BuiltIn(nodes, "quorum")
    run(replication.begin())

    async def made(name: str, wait_s: float) -> None:
        async with nodes[0].pool(1, autocommit=False, synchronous_commit="remote_apply") as pool:
            await pool.wait()
            await builtin.commit(pool, Change(name, ((1, -1), (2, 1)), name), wait_s)

    run(made("first", 30))
    assert on_each(two, NOTE) == [("first",)] * 2, "it is there when the commit ends"
    with no_word(two[1]), pytest.raises(Refused, match="not on enough other nodes after 3 s"):
        run(made("second", 3))
    run(made("third", 30))
    assert on_each(two, "SELECT string_agg(id, ' ' ORDER BY id) FROM orders") == [("first second third",)] * 2
    state: State = run(check(nodes))
    assert state.broken("quorum") == []


@pytest.mark.parametrize("mode", ["logical", "quorum"])
def test_what_a_killed_run_left_is_taken_away_by_the_next_one(two, tmp_path, mode):
    trial = Trial(tmp_path / "killed", two, mode, amount=100_000)
    trial.begin()
    while not trial.lines("lag.csv"):
        assert trial.process.poll() is None
        time.sleep(0.1)
    trial.process.send_signal(signal.SIGKILL)
    trial.end()
    assert {row[0] > 0 for row in on_each(two, LEFT)} == {True}
    trial = Trial(tmp_path / "acid", two, "acid", amount=8)
    trial.begin()
    assert trial.end() == (0, "")
    assert on_each(two, LEFT) == [(0, "")] * 2


@pytest.mark.parametrize(
    ("mode", "name", "value", "usual", "says"),
    [
        ("logical", "wal_level", "replica", "logical", "wal_level is replica; workload logical needs logical"),
        ("logical", "max_replication_slots", 0, 10, "max_replication_slots is 0; 2 nodes need 1 or more"),
        ("quorum", "max_logical_replication_workers", 0, 4,
         "max_logical_replication_workers is 0; 2 nodes need 1 or more"),
    ],
)  # fmt: skip
def test_a_node_that_cannot_replicate_is_named(two, tmp_path, mode, name, value, usual, says):
    two[1].restart(**{name: value})
    try:
        assert f"node2 ({two[1].end}): {says}" in refused(Trial(tmp_path / "run", two, mode))
    finally:
        two[1].restart(**{name: usual})


@pytest.mark.parametrize(
    ("nodes", "mode", "standbys", "says"),
    [(1, "logical", 0, "workload logical needs 2 nodes or more"),
     (2, "quorum", 2, "standbys: 2; with 2 nodes allowed are 0 to 1")],
)  # fmt: skip
def test_too_few_nodes_are_refused(two, tmp_path, nodes, mode, standbys, says):
    assert says in refused(Trial(tmp_path / "run", two[:nodes], mode, standbys=standbys))


@pytest.mark.parametrize(
    ("topo", "mix", "more", "says"),
    [("1", "logical", (), "topo: 1; workload logical needs 2 nodes or more"),
     ("2", "quorum", ("--set", "standbys=2"), "set standbys: 2; with 2 nodes allowed are 0 to 1")],
)  # fmt: skip
def test_a_plan_with_too_few_nodes_is_refused(topo, mix, more, says):
    ntier = Path(sys.executable).with_name("ntier")
    argv = [ntier, "plan", "--system", "two-phase-commit", "--topo", topo, "--mix", mix, *more]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=HERE)
    assert done.returncode == 2
    assert says in done.stderr


# ---- the driver and the contract of drivers ------------------------------------------------------------------------


@pytest.mark.parametrize(("program_", "kept"), [(COORDINATOR, True), (HERE / "other_draws.py", False)])
def test_the_check_of_drivers_sees_whether_two_clients_draw_what_one_does(two, tmp_path, monkeypatch, program_, kept):
    """Though selects and alters of a worker take turns as they happen to."""
    from ntier_harness.drivers import check as contract

    monkeypatch.setattr(contract, "PHASES", {"ramp_up_s": 0.5, "run_s": 2.5, "ramp_down_s": 0.5})
    told = Trial.parameters(tmp_path, two, "base", conninfo=CONNINFO, sleep_s=0.1, amount=120)
    starter = HERE.parents[2] / "workloads/bin/run-driver"
    found: dict[str, contract.Finding] = {}

    class Enough(Exception):
        pass

    def show(finding: contract.Finding) -> None:
        found[finding.rule] = finding
        if finding.rule == "same draws on two clients":
            raise Enough

    with pytest.raises(Enough):
        contract.check([sys.executable, str(program_), "drive"], {"parameters": told}, "work", starter, show)
    assert found.pop("same draws on two clients").kept is kept
    assert {f.kept for f in found.values()} <= {True, None}, found
