"""The coordinator and its driver on real PostgreSQL of this machine: what a run leaves, what is refused, kills."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "load")]

import crash_matrix  # noqa: E402
import psycopg  # noqa: E402
from clusters import Cluster, alive, clusters, free_port  # noqa: E402
from trials import SELECTS, Trial, on_each, program, refused  # noqa: E402
from twophase.acid import Refused, TwoPhase, Untold  # noqa: E402
from twophase.base import Applied, Delivery, commit  # noqa: E402
from twophase.changes import Change, draw  # noqa: E402
from twophase.decisions import DecisionLog, LogError, LogLost  # noqa: E402
from twophase.drive import Work  # noqa: E402
from twophase.places import places  # noqa: E402
from twophase.recovery import check  # noqa: E402

pytestmark = pytest.mark.whole
KILLS, SEED = 8, 20  # of the fast subset; crash_matrix.py --kills 100 is the whole


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder that the databases' user may enter; pytest's own it may not."""
    with tempfile.TemporaryDirectory(prefix="two-phase-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.fixture(scope="module")
def pair(place: Path) -> Iterator[list[Cluster]]:
    """Two nodes."""
    with clusters(place / "pair", 2) as made:
        yield made


@pytest.fixture
def two(pair: list[Cluster]) -> list[Cluster]:
    """The two nodes with fresh data."""
    for node in pair:
        node.load(200)
    return pair


@pytest.mark.parametrize("mode", ["acid", "base"])
def test_a_run_does_all_selects_in_turns_and_the_nodes_agree_afterwards(two, tmp_path, ended, mode):
    trial = ended(two, tmp_path, mode)
    done, last = trial.lines("interactions.jtl.csv"), trial.lines("progress.csv")[-1]
    labels = [row["label"] for row in done]
    assert labels.count("select") == SELECTS == trial.work["selects"] == int(last["selects"])
    assert labels.count("alter") == trial.work["alters"] == int(last["alters"]) > 10
    assert len(done) == int(last["completed"]) == int(last["started"])
    assert {row["success"] for row in done} == {"true"}
    assert trial.work["state"]["converged"]
    assert trial.work["state"]["orders"] == trial.work["alters"]
    assert trial.work["statements"] == 7 * trial.work["alters"]
    if mode == "acid":
        assert trial.work["state"]["atomic"]
        assert trial.lines("applied.csv") == []
    else:
        sent = sum(int(row["changes"]) for row in trial.lines("applied.csv"))
        assert sent == trial.work["alters"]  # each to the one other node
    assert program("check", two).returncode == 0


UNDO = """
WITH gone AS (DELETE FROM orders WHERE id = %s RETURNING moves)
UPDATE items SET stock = stock - (m->>1)::bigint FROM gone, jsonb_array_elements(moves) AS m WHERE id = (m->>0)::int
"""
INVENT = "INSERT INTO orders VALUES (%s || 'x', '[]')"  # it begins like those of this run
NEWS = {"lacks": (UNDO, "lacks 1 committed alters"), "has": (INVENT, "has 1 refused alters")}


@pytest.mark.parametrize("news", NEWS)
def test_what_threads_were_told_of_their_alters_is_compared_with_what_is_there(two, tmp_path, ended, news):
    """A commit that all nodes have lost alike, and a refused alter that all have, as a whole: each node is right in
    itself, and all agree."""
    statement, says = NEWS[news]

    def disturb() -> None:
        first = [(None,)]
        while first[0][0] is None or first[0] != first[-1]:
            time.sleep(0.05)
            first = on_each(two, "SELECT min(id) FROM orders")
        for node in two:
            with psycopg.connect(node.conninfo) as connection:
                connection.execute("LOCK TABLE items IN EXCLUSIVE MODE")  # after all alters that are under way
                connection.execute(statement, [first[0][0]])

    work = ended(two, tmp_path, "acid", disturb).work
    assert work["state"]["converged"]
    assert work["state"]["atomic"]
    assert work["state"]["broken"] == [f"node{n} ({node.end}) {says}" for n, node in enumerate(two, 1)]


@pytest.mark.parametrize("mode", ["acid", "base"])
def test_a_single_node_is_driven_too_and_queues_nothing(two, tmp_path, ended, mode):
    trial = ended(two[:1], tmp_path, mode)
    assert trial.work["selects"] == SELECTS
    assert trial.work["state"]["orders"] == trial.work["alters"] > 10
    assert trial.work["drained"]
    assert not trial.work["state"]["broken"]
    with psycopg.connect(two[0].conninfo) as node:
        assert node.execute("SELECT count(*) FROM replication.outbox").fetchone() == (0,)


def test_it_ends_on_sigterm_and_leaves_nothing_in_doubt(two, tmp_path):
    trial = Trial(tmp_path / "run", two, "acid", amount=100_000)
    trial.begin()
    while not trial.lines("progress.csv") or int(trial.lines("progress.csv")[-1]["alters"]) < 5:
        assert trial.process.poll() is None
        time.sleep(0.1)
    trial.process.send_signal(signal.SIGTERM)
    assert trial.end() == (0, "")
    assert program("recover", two, "--state", tmp_path / "state/client1").stdout.startswith("0 in doubt committed, 0 ")
    assert program("check", two).returncode == 0


def test_draws_of_a_thread_do_not_depend_on_the_clients():
    one = draw(random.Random("7:alter:3"), "a", 3, 200, 10)
    assert one == draw(random.Random("7:alter:3"), "a", 3, 200, 10) != draw(random.Random("7:alter:2"), "a", 3, 200, 10)
    assert sum(pieces for _, pieces in one.moves) == 0
    assert [item for item, _ in one.moves] == sorted({item for item, _ in one.moves})


@pytest.mark.parametrize(("nodes", "threads"), [(4, 8), (2, 8), (3, 8), (8, 8), (4, 6), (1, 8)])
def test_each_thread_of_selects_goes_round_all_nodes_and_so_do_all_threads_together(nodes, threads):
    work = object.__new__(Work)
    work.balance, work.total, work.nodes = "turns", threads, [None] * nodes
    of_thread = [[work._turn(piece) for piece in range(t, 60 * threads, threads)] for t in range(threads)]
    for turns in (*of_thread, *zip(*of_thread, strict=True)):
        counts = [turns.count(node) for node in range(nodes)]
        assert max(counts) - min(counts) <= 1


# ---- what is refused before anything is measured -------------------------------------------------------------------


def test_a_node_that_cannot_prepare_is_named(two, tmp_path):
    two[1].restart(max_prepared_transactions=0)
    try:
        said = refused(Trial(tmp_path / "acid", two, "acid"))
        assert "node2" in said
        assert "max_prepared_transactions is 0; two-phase commit with 4 alter threads needs 4 or more" in said
        trial = Trial(tmp_path / "base", two, "base", amount=4)
        trial.begin()
        assert trial.end()[0] == 0  # needs none
    finally:
        two[1].restart(max_prepared_transactions=32)


def test_a_node_that_is_missing_is_named(two, tmp_path):
    nobody = Cluster(two[0].bin, two[0].folder, free_port())
    said = refused(Trial(tmp_path / "run", [*two, nobody], "base"))
    assert f"node3 (127.0.0.1:{nobody.port}): cannot connect" in said


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("ALTER TABLE items ADD colour text", "node2 (END): table public.items has columns (id integer, stock "),
        ("DROP TABLE replication.positions", "node2 (END): table replication.positions has columns (none); expected"),
        ("DELETE FROM items WHERE id > 150", "different numbers of items: node1 (ONE): 200, node2 (END): "),
    ],
    ids=["column", "table", "rows"],
)  # fmt: skip
def test_a_node_with_other_tables_is_named(two, tmp_path, statement, says):
    with psycopg.connect(two[1].conninfo, autocommit=True) as connection:
        connection.execute(statement)
    assert says.replace("END", two[1].end).replace("ONE", two[0].end) in refused(Trial(tmp_path / "run", two, "base"))


def test_transactions_of_another_coordinator_are_not_touched(two, tmp_path):
    with contextlib.closing(psycopg.connect(two[0].conninfo)) as connection:
        connection.tpc_begin("somebody else's")
        connection.execute("UPDATE items SET note = 'x' WHERE id = 1")
        connection.tpc_prepare()
    try:
        assert "node1" in (said := refused(Trial(tmp_path / "run", two, "base")))
        assert "1 prepared transactions of another coordinator" in said
    finally:
        with psycopg.connect(two[0].conninfo, autocommit=True) as connection:
            connection.tpc_rollback(connection.tpc_recover()[0])


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [("balance", "any", "balance: 'any'; allowed are turns, least_pending"),
     ("sleep_s", -1, "sleep_s: -1; allowed are numbers from 0"),
     ("transfers", 101, "transfers: 101 need 202 items; the nodes hold 200")],
)  # fmt: skip
def test_a_wrong_parameter_is_named(two, tmp_path, name, value, says):
    assert says in refused(Trial(tmp_path / "run", two, "base", **{name: value}))


def test_a_plan_without_places_for_prepared_transactions_is_refused():
    argv = ["plan", "--system", "two-phase-commit", "--topo", "2", "--set", "node_max_prepared_transactions=0"]
    ntier = Path(sys.executable).with_name("ntier")
    done = subprocess.run([ntier, *argv], capture_output=True, text=True, cwd=HERE)
    assert done.returncode == 2
    assert "two-phase commit with 8 alter threads needs 8 or more, or the workload base" in done.stderr
    assert subprocess.run([ntier, *argv, "--mix", "base"], capture_output=True, cwd=HERE).returncode == 0


# ---- the decision log ----------------------------------------------------------------------------------------------


def decided(folder: Path, *names: int) -> list[str]:
    """A run of a coordinator that decides these; -> their names."""
    log = DecisionLog(folder)

    async def main() -> list[str]:
        with log.locked():
            log.begin()
            await asyncio.gather(*(log.decide(log.name(n)) for n in names))
            return [log.name(n) for n in names]

    return asyncio.run(main())


def test_decisions_are_there_after_a_crash_and_names_are_never_used_twice(tmp_path):
    first = decided(tmp_path, 1, 2, 3)
    with DecisionLog(tmp_path).locked() as log:
        assert log.decided == set(first)
    assert not set(decided(tmp_path, 1, 2, 3)) & set(first)


def test_a_record_that_was_cut_off_was_not_decided_and_a_broken_one_is_an_error(tmp_path):
    first = decided(tmp_path, 1, 2)
    file = tmp_path / "decisions.log"
    whole = file.read_text()
    file.write_text(whole[:-3])
    with DecisionLog(tmp_path).locked() as log:
        assert len(log.decided) == 1
    file.write_text(whole.replace(first[0], first[0] + "0"))
    with pytest.raises(LogError, match=r"decisions.log, line 2: the record is broken"), DecisionLog(tmp_path).locked():
        pass


def test_a_disk_that_fails_lets_nobody_go_on(tmp_path, monkeypatch):
    """Neither the one whose flush failed nor those who came after it, though the disk would take theirs."""
    fails = iter([OSError(28, "No space left on device")])

    def flush(_descriptor: int) -> None:
        if error := next(fails, None):
            time.sleep(0.1)  # the others come meanwhile
            raise error

    monkeypatch.setattr(os, "fdatasync", flush)

    async def main() -> list[BaseException | None]:
        with (log := DecisionLog(tmp_path)).locked():
            log.begin()
            first = asyncio.gather(*(log.decide(log.name(n)) for n in (1, 2)), return_exceptions=True)
            await asyncio.sleep(0.05)
            later = asyncio.gather(log.decide(log.name(3)), return_exceptions=True)
            return [*await first, *await later]

    assert {type(told) for told in asyncio.run(main())} == {LogLost}


def test_a_second_coordinator_is_kept_out(tmp_path):
    with DecisionLog(tmp_path).locked(), pytest.raises(LogError, match="another coordinator uses"):  # noqa: SIM117
        with DecisionLog(tmp_path).locked():
            pass


# ---- BASE: order and conflicts -------------------------------------------------------------------------------------


def change(node: Cluster, number: int, name: str, note: str) -> None:
    """Of item 1, on one node; it stays in the queue."""

    async def main() -> None:
        place = places([node.conninfo], "test")[0]
        place.number = number
        async with place.pool(1, autocommit=False) as pool:
            await commit(pool, place, Change(name, ((1, -1), (2, 1)), note))

    asyncio.run(main())


def deliver(nodes: list[Cluster]) -> int:
    """-> rows that came late."""
    done: list[Applied] = []

    async def main() -> None:
        delivery = Delivery(places([node.conninfo for node in nodes], "test"), done.append)
        task = asyncio.create_task(delivery.run())
        assert await delivery.drained(30)
        task.cancel()

    asyncio.run(main())
    return sum(each.late for each in done)


NOTE = "SELECT note FROM items WHERE id = 1"


def test_the_later_writer_wins_on_both_nodes(two):
    change(two[1], 1, "first", "early")
    time.sleep(0.01)
    change(two[0], 0, "second", "late")
    assert deliver(two) == 2, "both rows of the early one"
    assert on_each(two, NOTE) == [("late",)] * 2
    assert on_each(two, "SELECT count(*) FROM orders") == [(2,)] * 2


def test_a_change_that_saw_another_is_later_whatever_the_clocks_say(two):
    """Node 1 is an hour ahead: its row has such a clock. Node 2 has the row, and changes it by its own, right clock."""
    change(two[0], 0, "first", "ahead")
    with psycopg.connect(two[0].conninfo) as connection:
        connection.execute("UPDATE items SET hlc = hlc + (3600000::bigint << 16) WHERE id = 1")
        connection.execute("UPDATE replication.outbox SET changes = jsonb_set(changes, '{rows,0,3}', to_jsonb("
                           "(changes->'rows'->0->>3)::bigint + (3600000::bigint << 16)))")  # fmt: skip
    deliver(two)
    change(two[1], 1, "second", "right")
    deliver(two)
    assert on_each(two, NOTE) == [("right",)] * 2


def test_a_change_is_not_passed_by_while_it_is_committed_late(two):
    """By the number in the queue alone the late one would be left out for ever."""
    with psycopg.connect(two[0].conninfo) as late:
        late.execute('INSERT INTO replication.outbox (changes) VALUES (\'{"order": "late", "moves": [], "rows": []}\')')
        change(two[0], 0, "early", "x")
        seconds = time.monotonic() + 1
        while time.monotonic() < seconds:
            asyncio.run(briefly(two))
        late.commit()
    deliver(two)
    assert on_each(two, "SELECT count(*) FROM orders WHERE id IN ('late', 'early')")[1] == (2,)


async def briefly(nodes: list[Cluster]) -> None:
    delivery = Delivery(places([node.conninfo for node in nodes], "test"), lambda _: None)
    task = asyncio.create_task(delivery.run())
    await asyncio.sleep(0.3)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_the_program_that_verifies_a_deployment(two):
    done = program("verify", two)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 nodes, 2 orders, the same on all nodes; 0 changes on their way" in done.stdout
    with psycopg.connect(two[1].conninfo) as connection:
        connection.execute("UPDATE items SET stock = stock + 1 WHERE id = 5")
    assert program("check", two).returncode == 1


# ---- the outcome is told later ---------------------------------------------------------------------------------------


def test_who_tells_an_outcome_ends_the_session_that_did_not_hear_it_and_no_other(two, tmp_path):
    """Of 12 sessions at the node, the second and those whose numbers begin alike."""

    async def main() -> list[bool]:
        (node,) = places([two[0].conninfo], "c0.1")
        sessions = [await node.connect() for _ in range(12)]
        coordinator = TwoPhase([node], [], DecisionLog(tmp_path))
        coordinator.untold.append(Untold("c0.1.7", node, commits=False, session=node.sessions[sessions[1]]))
        task = asyncio.create_task(coordinator.tell_outcomes())
        while coordinator.untold:
            await asyncio.sleep(0.05)
        task.cancel()
        live = []
        for session in sessions:
            with contextlib.suppress(psycopg.OperationalError):
                await session.execute("SELECT 1")
            live.append(not session.closed)
            await session.close()
        return live

    assert asyncio.run(asyncio.wait_for(main(), 30)) == [True, False] + 10 * [True]


# ---- a link that is cut ----------------------------------------------------------------------------------------------


class Link:
    """A way to a node that can be cut: nothing goes through, and nobody is told."""

    def __init__(self, node: Cluster) -> None:
        self.node, self.whole = node, asyncio.Event()
        self.whole.set()

    async def open(self) -> Cluster:
        self.server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        return Cluster(self.node.bin, self.node.folder, self.server.sockets[0].getsockname()[1])

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self.node.port)

        async def one_way(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                while data := await source.read(65536):
                    await self.whole.wait()
                    target.write(data)
            target.close()

        await asyncio.gather(one_way(reader, back), one_way(there, writer))


@pytest.mark.parametrize(("step", "committed"), [("work", False), ("prepare", False), ("commit", True)])
def test_a_cut_link_delays_and_refuses_but_breaks_nothing(two, tmp_path, step, committed):
    """The second node's link is cut when the step is reached, and mended after the change was made or refused."""

    async def main() -> tuple[bool, int]:
        link, cut = Link(two[1]), [False]
        nodes = places([two[0].conninfo, (await link.open()).conninfo], "test", lock_timeout_s=5)

        def reached(now: str, node: int) -> None:
            if (now, node) == (step, 0) and not cut[0]:
                cut[0] = True
                link.whole.clear()

        async with contextlib.AsyncExitStack() as opened:
            pools = [await opened.enter_async_context(node.pool(1, autocommit=False)) for node in nodes]
            with (log := DecisionLog(tmp_path)).locked():
                log.begin()
                two_phase = TwoPhase(nodes, pools, log, reached, vote_s=5)
                try:
                    await two_phase.run(Change("cut", ((1, -1), (2, 1)), ""))
                    made = True
                except Refused:
                    made = False
                untold = len(two_phase.untold)
                link.whole.set()
                task = asyncio.create_task(two_phase.tell_outcomes())
                while two_phase.untold:
                    await asyncio.sleep(0.05)
                await two_phase.run(Change("after", ((1, -1), (2, 1)), ""))
                task.cancel()
        return made, untold

    assert asyncio.run(main()) == (committed, 1)
    assert (
        on_each(two, "SELECT string_agg(id, ' ' ORDER BY id) FROM orders")
        == [("after cut" if committed else "after",)] * 2
    )
    assert asyncio.run(check(places([node.conninfo for node in two], "check"))).atomic


# ---- kills ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_nothing_is_violated_by_a_kill(place):
    kills = crash_matrix.drawn(KILLS, SEED, 3)
    results = list(crash_matrix.matrix(kills, place / "kills"))
    assert [(result.violated, result.lost) for result in results] == [([], 0)] * KILLS
    assert sum(result.resolved for result in results) > 0, "some kill leaves a transaction in doubt"
    assert {kill.mode for kill in kills} == {"acid", "base"}
    assert {kill.victim < 0 for kill in kills} == {True, False}


def test_a_lost_decision_is_seen(two, tmp_path):
    """One node was told to commit when the coordinator is killed; without its log the other one rolls back."""
    kill = crash_matrix.Kill(1, "acid", "commit", 6, -1)  # every second time the second node is next
    run = crash_matrix.Run(kill, [node.conninfo for node in two], [node.pid for node in two], str(tmp_path))
    process = crash_matrix.start(run)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    log = tmp_path / "log/decisions.log"
    log.write_text(log.read_text().split("\n")[0] + "\n")
    crash_matrix.after(kill, two, tmp_path)
    nodes = places([node.conninfo for node in two], "check")
    found = asyncio.run(crash_matrix.violations(kill, nodes, tmp_path))
    assert any("differ" in text for text in found), found


def test_processes_of_the_databases_are_gone_when_they_are_killed(two):
    pid = two[1].pid
    two[1].kill()
    assert not alive(pid)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(two[1].conninfo)
    two[1].start()
    os.kill(two[1].pid, 0)
