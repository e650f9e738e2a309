"""What a driver tells while it runs, and clients whose clocks differ."""

from __future__ import annotations

import math

import pytest
from ntier_harness.drivers import split
from ntier_harness.drivers.heartbeat import Beat, Broken, Heartbeat
from ntier_harness.errors import WorkError
from ntier_harness.load import compare_clocks, merged

from .this_machine import node

HEADER = "t_s,users,started,completed,failed,in_flight,response_time_mean_ms"


def test_shares_are_whole_and_follow_each_other():
    shares = split(10, 3)
    assert [(s.first, s.workers) for s in shares] == [(0, 4), (4, 3), (7, 3)]
    with pytest.raises(ValueError, match="2 users or workers for 3 clients"):
        split(2, 3)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["t_s,users,completed"], "column failed is missing"),
        ([HEADER, "1,2,3"], "has 3 fields, the header has 7"),
        ([HEADER, "1,2,3,4,0,0,5"], "4 completed and 0 in flight, but only 3 started"),
        ([HEADER, "1,2,9,4,5,0,5"], "5 failed of 4 completed"),
        ([HEADER, "1,2,9,4,0,0,5", "2,2,8,4,0,0,5"], "started fell from 9 to 8"),
        ([HEADER, "2,2,9,4,0,0,5", "1,2,9,4,0,0,5"], "t_s fell from 2.0 to 1.0"),
        ([HEADER, "1,2,9,4.5,0,0,5"], "completed is '4.5', expected a whole number"),
        ([HEADER, "1,two,9,4,0,0,5"], "users is 'two', expected a number"),
        ([HEADER, "nan,2,9,4,0,0,5"], "t_s is 'nan', expected a number"),
        ([HEADER, "1" * 2000], "a line of 2000 characters"),
    ],
)
def test_what_is_wrong_with_a_heartbeat_is_named(lines, said):
    with pytest.raises(Broken, match=said):
        Heartbeat().take(lines, 100.0)


def test_a_flood_of_heartbeats_is_noticed():
    heart = Heartbeat()
    heart.take([HEADER, *(f"{i},1,{i},{i},0,0,5" for i in range(60))], 100.0)
    assert heart.take(["60,1,60,60,0,0,5"], 101.0)
    with pytest.raises(Broken, match="one a second is allowed"):
        heart.take([f"{61 + i / 100},1,99,99,0,0,5" for i in range(99)], 102.0)


def test_a_look_that_saw_nothing_yet_is_not_the_first():
    """The driver has been ready for a minute when the first answer comes over a slow link."""
    heart = Heartbeat()
    assert not heart.take([], 100.0)
    assert heart.take([HEADER, *(f"{i},1,{i},{i},0,0,5" for i in range(60))], 100.1)
    assert heart.take(["60,1,60,60,0,0,5"], 101.0)


def test_a_driver_may_not_know_when_interactions_begin():
    heart = Heartbeat()
    heart.take([HEADER, "1,2,,4,0,,nan"], 100.0)
    assert (heart.latest.started, heart.latest.in_flight, heart.latest.completed) == (None, None, 4)


def test_heartbeats_of_several_clients_are_one():
    fast = (Beat(11, 5, 90, 1, 10.0), Beat(10, 5, 0, 0, math.nan))
    slow = (Beat(11, 5, 10, 0, 110.0), Beat(10, 5, 0, 0, math.nan))
    heartbeat = merged([fast, slow])
    assert (heartbeat.users, heartbeat.completed, heartbeat.errors, heartbeat.t_s) == (10, 100, 1, 11)
    assert heartbeat.response_time_ms == pytest.approx(20.0), "each interaction counts once, not each client"
    assert math.isnan(merged([(fast[1], None)]).response_time_ms)


def test_clients_whose_clocks_differ_do_not_start_a_trial():
    clients = [node("client1", "client"), node("client2", "client")]

    def offsets(one: float, two: float, trip: float = 0.002) -> dict[str, dict[str, float]]:
        return {n: {"offset_before": o, "rtt_before": trip} for n, o in (("client1", one), ("client2", two))}

    compare_clocks(offsets(0.01, -0.02), clients)
    compare_clocks(offsets(0.03, -0.04, trip=0.03), clients)
    with pytest.raises(WorkError, match=r"clock: client2 and client1 are 70 ms apart; .* may differ by 50 ms"):
        compare_clocks(offsets(0.03, -0.04), clients)
    with pytest.raises(WorkError, match="client1 and this machine are 200 ms apart"):
        compare_clocks(offsets(0.2, 0.2), clients)
