"""Machines of others that do not reach each other are named before anything is installed on them. The looks are real:
this machine asks its own addresses, and one that leads nowhere."""

from __future__ import annotations

import socket

import pytest
from ntier_harness.errors import RequestError
from ntier_harness.paths import Paths
from ntier_harness.runner import Runner
from ntier_harness.ssh import Access
from ntier_harness.targets.inventory import Host, wanted_nodes
from ntier_harness.targets.mutual import cut_off

from .test_hosts import machines_by_ssh  # noqa: F401 (a fixture)

NOWHERE = "224.0.0.1"
"""Of a group: no connection leads there, on whatever machine this runs."""


@pytest.fixture
def lab(spec, machines_by_ssh, tmp_path):  # noqa: F811
    """-> a request of target hosts, and a machine of this one's own addresses for each of its nodes."""
    request = spec(topo="1/1/1/2M", target="hosts")
    names = [name for name, _, _ in wanted_nodes(request)]
    hosts = {n: Host(f"127.0.0.{i}", Access(f"127.0.0.{i}", "-")) for i, n in enumerate(names, 2)}
    return Paths(tmp_path, tmp_path, tmp_path, "hosts"), request, hosts


def test_machines_that_answer_are_reached_whether_anybody_listens_or_not(lab):
    paths, request, hosts = lab
    with socket.create_server((hosts["web1"].address, 0)):
        assert cut_off(Runner(), paths, request, hosts, []) == []


def test_each_connection_that_is_stopped_is_named_with_both_ends(lab):
    """db2 does not answer. The middleware asks it, and nobody else does."""
    paths, request, hosts = lab
    hosts["db2"] = Host(NOWHERE, Access("127.0.0.9", "-"))
    (said,) = cut_off(Runner(), paths, request, hosts, [])
    asker = f"hosts: middleware1 ({hosts['middleware1'].access.destination})"
    assert said.startswith(f"{asker} does not reach db2, {NOWHERE}:3306: ")
    assert said.endswith("; open the firewalls between the two, or give an address by which they reach each other")
    assert cut_off(Runner(), paths, request, hosts, ["db2"]) == [], "our own packet filter there is made anew"


def test_where_the_load_enters_clients_are_asked_too(lab):
    paths, request, hosts = lab
    hosts["web1"] = Host(NOWHERE, Access("127.0.0.9", "-"))
    (said,) = cut_off(Runner(), paths, request, hosts, [])
    assert said.startswith(f"hosts: client1 ({hosts['client1'].access.destination}) does not reach web1, ")


def test_a_machine_that_cannot_look_is_no_machine_that_reaches_all(lab, tmp_path):
    paths, request, hosts = lab
    program = tmp_path / "bin/python3"
    program.write_text("#!/bin/sh\necho 'no module named socket' >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(RequestError, match=r"could not look which of the others it reaches: .*no module named socket"):
        cut_off(Runner(), paths, request, hosts, [])
