"""Connections wait for their server only: what is passed on to the event loop, and what is not."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest
from psycopg.waiting import Ready, Wait
from twophase import connections
from twophase.connections import Steps

BUSY_S = connections.BUSY_S


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """That this program stood still for some milliseconds changes nothing."""
    monkeypatch.setattr(connections, "BUSY_S", 60.0)


def request(*waits: int) -> Steps:
    """Waits for these, one after the other; returns what was ready each time."""
    ready = []
    for wanted in waits:
        ready.append((yield wanted))
    return ready


def passed_on(steps: Steps, ours: socket.socket) -> tuple[list[int], list[int]]:
    """-> what the event loop had to wait for, each answered by Ready.R, and what the request returned."""
    seen, answer = [], None
    only = connections._only_long(steps, ours.fileno())
    while True:
        try:
            seen.append(only.send(answer))
        except StopIteration as done:
            return seen, done.value
        answer = Ready.R


def test_a_socket_that_can_be_written_to_is_not_waited_for(ends):
    assert passed_on(request(Wait.W, Wait.RW, Wait.RW), ends[0]) == ([], [Ready.W] * 3)


def test_an_answer_that_is_there_is_told_as_well(ends):
    ends[1].send(b"x")
    assert passed_on(request(Wait.RW), ends[0]) == ([], [Ready.RW])


def test_an_answer_is_waited_for(ends):
    ends[1].send(b"x")  # also one that is there: the others have their turn meanwhile
    assert passed_on(request(Wait.R, Wait.RW, Wait.R), ends[0]) == ([Wait.R, Wait.R], [Ready.R, Ready.RW, Ready.R])


def test_a_full_socket_is_waited_for(ends):
    ends[0].setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            ends[0].send(bytes(65536))
    assert passed_on(request(Wait.W, Wait.RW), ends[0]) == ([Wait.W, Wait.RW], [Ready.R, Ready.R])


def test_others_have_their_turn_after_5_ms(ends, monkeypatch):
    monkeypatch.setattr(connections, "BUSY_S", BUSY_S)

    def long() -> Steps:
        for _ in range(3):
            time.sleep(1.5 * BUSY_S)
            yield Wait.RW

    assert passed_on(long(), ends[0])[0] == [Wait.RW] * 3


def test_a_request_on_a_socket_that_is_shut_is_told_so(ends):
    ends[0].shutdown(socket.SHUT_RDWR)
    assert passed_on(request(Wait.RW), ends[0]) == ([], [Ready.RW])


def test_an_error_of_the_request_gets_through(ends):
    def broken() -> Steps:
        yield Wait.RW
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        passed_on(broken(), ends[0])
