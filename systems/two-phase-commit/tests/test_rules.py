"""Settings that follow from others."""

from __future__ import annotations

from pathlib import Path

import pytest
from ntier_harness.errors import RequestError
from ntier_harness.request import make_spec
from ntier_harness.settings import values
from ntier_harness.systems import find
from twophase.drive import MOST_DELAYED

ROOT = Path(__file__).resolve().parents[3]
LOAD = find(ROOT, "two-phase-commit").definition.load


@pytest.mark.parametrize("threads", [8, LOAD.parameters["alter_threads"].range[1]])
@pytest.mark.parametrize("asked", ["set", "factor"])
def test_a_node_has_a_connection_and_a_place_for_each_thread(threads, asked):
    how = {"set": [f"alter_threads={threads}"]} if asked == "set" else {"factor": f"alter_threads=1,{threads}"}
    soft = values(make_spec({"system": "two-phase-commit", "topo": "2"} | how, ROOT, cores=8))
    assert soft["node_max_prepared_transactions"] >= threads
    assert soft["db_max_connections"] == max(200, threads + LOAD.workers + 40)


def test_a_node_accepts_the_connections_of_all_select_threads():
    """Else every attempt would end 30 s after the deployment."""
    request = {"system": "two-phase-commit", "topo": "2", "users": "300"}
    assert values(make_spec(request, ROOT, cores=8))["db_max_connections"] == 300 + 8 + 40
    with pytest.raises(
        RequestError, match=r"set db_max_connections: 340; 8 alter threads and 300 select threads need 348"
    ):
        make_spec(request | {"set": ["db_max_connections=340"]}, ROOT, cores=8)


def test_more_threads_than_the_driver_delays_are_refused_before_nodes_are_made():
    asked = {"system": "two-phase-commit", "topo": "2"}
    make_spec(asked | {"set": [f"alter_threads={MOST_DELAYED}", "delay_ms=5"]}, ROOT, cores=8)
    make_spec(asked | {"set": [f"alter_threads={MOST_DELAYED + 1}"]}, ROOT, cores=8)
    for more in ({"set": ["alter_threads=33", "delay_ms=5"]}, {"set": ["alter_threads=33"], "factor": "delay_ms=0,5"}):
        with pytest.raises(RequestError, match=r"set alter_threads: 33; with delay_ms allowed are 0 to 32"):
            make_spec(asked | more, ROOT, cores=8)
