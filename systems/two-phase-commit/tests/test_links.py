"""Links that are cut, shut and slow, and a clock that is wrong: what is refused, what is late, and that nothing is
wrong afterwards. On real PostgreSQL of this machine."""

from __future__ import annotations

import asyncio
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "load")]

from clusters import Cluster  # noqa: E402
from links import links  # noqa: E402
from trials import Trial, nodes_of, on_each, program, refused  # noqa: E402
from twophase import base, builtin, delays  # noqa: E402
from twophase.acid import Refused  # noqa: E402
from twophase.builtin import BuiltIn  # noqa: E402
from twophase.changes import Change  # noqa: E402
from twophase.delays import Delays  # noqa: E402
from twophase.places import Place, Unfit, places  # noqa: E402
from twophase.recovery import check  # noqa: E402

pytestmark = [pytest.mark.whole, pytest.mark.alone]
NOTE = "SELECT note FROM items WHERE id = 1"
ORDERS = "SELECT coalesce(string_agg(id, ' ' ORDER BY id), '') FROM orders"


def run(job: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(job)


# ---- between the coordinator and a node ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["acid", "base"])
def test_a_link_that_is_cut_and_then_shut_under_load_delays_and_refuses_but_breaks_nothing(two, tmp_path, ended, mode):
    """Cut for 1 s: what needs the second node is late. Shut for 1 s: it is refused, and the first node goes on."""
    with links(two[1]) as (link,):

        def disturb() -> None:
            for wait_s, change in ((1.2, link.cut), (1, link.mend), (0.5, link.shut), (1, link.reopen)):
                time.sleep(wait_s)
                change()

        trial = ended([two[0], link.node], tmp_path, mode, disturb, amount=560)
    work, done = trial.work, trial.lines("interactions.jtl.csv")
    alters = [row for row in done if row["label"] == "alter"]
    assert max(int(row["elapsed"]) for row in alters if row["success"] == "true") > 700, "late"
    assert work["failed"] == sum(row["responseCode"] == "refused" for row in done) > 0, "refused"
    assert work["state"]["broken"] == []
    assert work["state"]["converged"]
    assert program("check", two, "--mode", mode).returncode == 0
    if mode == "acid":
        assert work["state"]["orders"] == work["alters"], "what was refused is on no node"
    else:
        assert work["state"]["orders"] >= work["alters"], "the answer to a commit may be lost, the change is not"
        assert max(float(row["oldest_ms"]) for row in trial.lines("applied.csv")) > 700


# ---- between nodes -------------------------------------------------------------------------------------------------


async def written(node: Place, name: str, *, queued: bool) -> None:
    async with node.pool(1, autocommit=False) as pool:
        await pool.wait()
        await base.commit(pool, node, Change(name, ((1, -1), (2, 1)), name), queued=queued)


def until(nodes: list[Cluster], query: str, wanted: Any, seconds: float = 20) -> None:
    limit = time.monotonic() + seconds
    while (found := on_each(nodes, query)) != [(wanted,)] * len(nodes):
        assert time.monotonic() < limit, found
        time.sleep(0.1)


@pytest.mark.parametrize("down", ["cut", "shut"])
@pytest.mark.parametrize("mode", ["base", "logical"])
def test_between_nodes_a_link_that_is_down_delays_what_others_see_and_refuses_nothing(two, mode, down):
    """Both go on alone, change the same row, and agree after it is up again."""

    async def main() -> None:
        with links(*two) as made:
            nodes, through = nodes_of(two), places([link.node.conninfo for link in made], "test")
            for node, way in zip(nodes, through, strict=True):
                node.far = way.conninfo
            delivery, replication = base.Delivery(nodes, lambda _: None), BuiltIn(through, "logical")
            if mode == "logical":
                await replication.begin()
            task = asyncio.create_task(delivery.run()) if mode == "base" else None
            await written(nodes[0], "before", queued=mode == "base")
            await asyncio.to_thread(until, two, ORDERS, "before")
            for link in made:
                link.cut() if down == "cut" else link.shut()
            for node, name in zip(nodes, ("earlier", "later"), strict=True):
                await asyncio.wait_for(written(node, name, queued=mode == "base"), 20)  # it waits for no link
                await asyncio.sleep(0.02)
            await asyncio.sleep(1)
            assert on_each(two, ORDERS) == [("before earlier",), ("before later",)], "each has its own only"
            for link in made:
                link.mend() if down == "cut" else link.reopen()
            await asyncio.to_thread(until, two, ORDERS, "before earlier later")
            assert on_each(two, NOTE) == [("later",)] * 2
            if mode == "base":
                assert await delivery.drained(10)
                task.cancel()
            else:
                assert await replication.caught_up(20)
        assert (await check(nodes)).broken(mode) == []

    run(main())


def test_without_a_link_to_its_quorum_a_commit_is_refused_and_with_a_slow_one_it_is_late(two):
    async def main() -> None:
        with links(two[0]) as (link,):
            nodes = nodes_of(two)
            replication = BuiltIn([places([link.node.conninfo], "test")[0], nodes[1]], "quorum")
            await replication.begin()

            async def made(name: str, wait_s: float) -> float:
                async with nodes[0].pool(1, autocommit=False, synchronous_commit="remote_apply") as pool:
                    await pool.wait()
                    began = time.monotonic()
                    await builtin.commit(pool, Change(name, ((1, -1), (2, 1)), name), wait_s)
                    return time.monotonic() - began

            await made("1", 30)
            link.slow(0.1)
            assert await made("2", 30) >= 0.2
            assert on_each(two, NOTE) == [("2",)] * 2
            link.cut()
            with pytest.raises(Refused, match="not on enough other nodes after 3 s"):
                await made("3", 3)
            assert on_each(two, ORDERS) == [("1 2 3",), ("1 2",)], "it stays on the first node"
            link.mend()
            await made("4", 30)
            assert await replication.caught_up(20)
            assert on_each(two, ORDERS) == [("1 2 3 4",)] * 2
            assert (await check(nodes)).broken("quorum") == []
            link.slow(0)

    run(main())


# ---- delays between nodes as a setting -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["acid", "base"])
def test_a_delay_lengthens_what_goes_between_nodes_and_nothing_else(two, tmp_path, ended, mode):
    work = ended(two, tmp_path, mode, amount=160, delay_ms=100, sleep_s=0.2).work
    asked_ms = work["delays"]["asked_ms"]
    assert (work["failed"], work["state"]["broken"], asked_ms) == (0, [], 200)
    assert all(added == pytest.approx(asked_ms, rel=0.1) for added in work["delays"]["round_trips_ms"].values())
    assert work["delays"]["pieces"] > 100
    assert work["delays"]["cpu_s"] > 0
    assert work["select_ms"]["median"] < asked_ms
    if mode == "acid":
        assert work["alter_ms"]["median"] > 4 * asked_ms, "change, order, prepare, commit"
    else:
        assert work["alter_ms"]["median"] < asked_ms
        assert work["stale_ms"]["median"] > asked_ms


def test_no_delay_is_no_relay(two, tmp_path):
    trial = Trial(tmp_path / "run", two, "acid", amount=8)
    trial.begin()
    assert trial.end() == (0, "")
    assert "delays" not in trial.work


def test_a_delay_that_cannot_be_made_is_refused(two, tmp_path):
    says = "delay_ms: 5; workload logical allows 0 only"
    assert says in refused(Trial(tmp_path / "logical", two, "logical", delay_ms=5))
    with socket.create_server(("127.0.1.2", two[1].port)):
        said = refused(Trial(tmp_path / "taken", two, "base", delay_ms=5))
    assert said.startswith("coordinator: relay: ")
    assert "address already in use" in said


RELAY_THAT_COMPLAINS = """
import runpy, sys
print("socket.send() raised exception.", file=sys.stderr)
runpy.run_path({relay!r}, run_name="__main__")
print("Task was destroyed but it is pending!", file=sys.stderr)
"""
RELAY_THAT_DIES = """
import os, runpy, sys, threading, time
from pathlib import Path

def die_when_told():
    while not Path({told!r}).exists():
        time.sleep(0.05)
    print("no more room", file=sys.stderr, flush=True)
    os._exit(1)

threading.Thread(target=die_when_told, daemon=True).start()
runpy.run_path({relay!r}, run_name="__main__")
"""


def with_relay(program: str, two, folder: Path, monkeypatch) -> Delays:
    """Delays with this program in place of the relay, which is told that the run has begun, for some seconds. They are
    so long that a slow machine's way through the relay, 4 to 9 ms a round trip, is not refused (60 are allowed)."""
    told = folder / "begun"
    (folder / "other.py").write_text(program.format(relay=str(delays.RELAY), told=str(told)))
    monkeypatch.setattr(delays, "RELAY", folder / "other.py")

    async def main() -> Delays:
        async with delays.delayed(nodes_of(two), 300.0) as made:
            told.touch()
            await asyncio.sleep(5)
        return made

    return asyncio.run(main())


def test_what_the_relay_complains_of_is_not_its_account(two, tmp_path, monkeypatch):
    made = with_relay(RELAY_THAT_COMPLAINS, two, tmp_path, monkeypatch)
    made.check_account()
    assert made.told["pieces"] > 0


def test_a_relay_that_dies_is_told_with_its_last_words(two, tmp_path, monkeypatch):
    made = with_relay(RELAY_THAT_DIES, two, tmp_path, monkeypatch)
    with pytest.raises(Unfit, match="relay: it ended during the run: no more room"):
        made.check_account()


def test_a_delay_that_is_not_as_asked_is_refused():
    Delays(10.0, {"node2": 11.4}, {"late_ms": 0.7}).check_round_trips()
    Delays(10.0, {"node2": 11.4}, {"late_ms": 0.7}).check_account()
    with pytest.raises(Unfit, match=r"node2: delays add 12\.00 ms to a round trip; 10 ms were asked for"):
        Delays(10.0, {"node2": 12.0}).check_round_trips()
    with pytest.raises(Unfit, match=r"the relay was late by 1.00 ms \(median\) under load; asked were 5 ms"):
        Delays(10.0, {"node2": 10.0}, {"late_ms": 1.0}).check_account()
    with pytest.raises(Unfit, match="relay: it ended during the run"):
        Delays(10.0, {"node2": 10.0}).check_account()


def test_a_plan_with_a_delay_that_nothing_makes_is_refused():
    ntier = Path(sys.executable).with_name("ntier")
    argv = [ntier, "plan", "--system", "two-phase-commit", "--topo", "2", "--mix", "quorum", "--set", "delay_ms=5"]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=HERE)
    assert done.returncode == 2
    assert "set delay_ms: 5" in done.stderr
    assert "workload quorum allows 0 only" in done.stderr


# ---- a clock that is wrong -----------------------------------------------------------------------------------------


@pytest.fixture
def slow_clock(two) -> Iterator[list[Cluster]]:
    """The second node's clock is five seconds behind."""
    two[1].restart(clock_off_s=-5)
    yield two
    two[1].restart()


def test_with_a_clock_that_is_wrong_the_nodes_still_agree_and_what_was_seen_is_never_undone(
    slow_clock, tmp_path, ended
):
    """Only of changes that nobody had seen, the truly later one may lose: if it is by less than the clocks differ."""
    now = "SELECT extract(epoch FROM clock_timestamp())::float8"
    right, wrong = (row[0] for row in on_each(slow_clock, now))
    assert wrong - right == pytest.approx(-5, abs=2)
    nodes = nodes_of(slow_clock)

    async def changed(number: int, name: str) -> None:
        await written(nodes[number], name, queued=True)

    async def delivered() -> str:
        delivery = base.Delivery(nodes, lambda _: None)
        task = asyncio.create_task(delivery.run())
        assert await delivery.drained(20)
        task.cancel()
        (first,), (second,) = on_each(slow_clock, NOTE)
        assert first == second, "they agree"
        return first

    async def main() -> None:
        await changed(0, "first")
        await changed(1, "second")
        assert await delivered() == "first", "the later writer lost: its clock said it was earlier"
        await changed(1, "third")
        assert await delivered() == "third", "it had seen the first: it is later, whatever its clock says"
        await changed(0, "fourth")
        await asyncio.sleep(6)
        await changed(1, "fifth")
        assert await delivered() == "fifth", "by more than the clocks differ"
        assert (await check(nodes)).broken("base") == []

    run(main())
    trial = ended(slow_clock, tmp_path, "base")
    assert trial.work["state"]["broken"] == []
    assert 0 < statistics.median(float(row["oldest_ms"]) for row in trial.lines("applied.csv")) < 4500, (
        "ages are of one clock"
    )


def test_a_relay_that_cannot_begin_leaves_no_other_complaint(caplog):
    """asyncio complains of a process that somebody else has waited for; most of the times, if it is killed while it
    ends."""
    node = Place(1, "host=127.0.0.1 port=5999", "n1")

    async def main() -> None:
        for _ in range(10):
            with pytest.raises(Unfit, match="address already in use"):
                async with delays.delayed([node], 5):
                    pass

    with socket.create_server(("127.0.1.2", 5999)):
        run(main())
    assert caplog.messages == []
