"""nodes.json as an inventory: what hosts and groups come of it, and what is refused."""

from __future__ import annotations

import json

import pytest

NODE = {"name": "db1", "tier": "db", "index": 1, "node_type": "normal", "address": "198.18.1.41", "role": "mysql"}


def test_hosts_groups_and_variables(inventory):
    client = {
        **NODE,
        "name": "client1",
        "tier": "client",
        "role": "client",
        "address": "198.18.1.51",
        "cpu_cores": None,
    }
    done = inventory([{**NODE, "cpu_cores": 0.1, "memory_bytes": 2**30, "image": "mysql-small"}, client])
    assert done.returncode == 0, done.stderr
    # Ansible marks texts that it would not take as templates; the mark is not of interest here.
    groups = json.loads(done.stdout, object_hook=lambda item: item.get("__ansible_unsafe", item))
    assert groups["db"]["hosts"] == ["db1"]
    assert groups["client"]["hosts"] == ["client1"]
    db1 = groups["_meta"]["hostvars"]["db1"]
    assert (db1["ansible_host"], db1["cpu_cores"], db1["memory_bytes"]) == ("198.18.1.41", 0.1, 2**30)
    assert (db1["node_type"], db1["index"], db1["ntier_role"], db1["ntier_tier"]) == ("normal", 1, "mysql", "db")
    assert db1["ntier_addresses"]["db"] == ["198.18.1.41"]
    assert db1["ansible_ssh_common_args"].startswith("-F none ")  # nobody's own configuration
    assert "StrictHostKeyChecking=yes" in db1["ansible_ssh_common_args"]
    assert db1["ansible_ssh_common_args"].count("/local/known_hosts") == 1
    assert db1["ansible_ssh_private_key_file"].endswith("/ssh/id_ed25519")


def test_a_machine_without_a_quota_has_all_of_its_cores(inventory):
    """Target hosts and rented machines: programs get their threads from it."""
    done = inventory([{**NODE, "cpu_cores": None, "cores": 8}])
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["_meta"]["hostvars"]["db1"]["cpu_cores"] == 8


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([{**NODE, "tier": "data base"}], "tier 'data base'; allowed: small letters, digits and _"),
        ([{key: value for key, value in NODE.items() if key != "address"}], "missing ['address']"),
        ([{**NODE, "adress": "198.18.1.41"}], "unknown ['adress']"),
        ([NODE, NODE], "node 1 (db1): a second node of this name"),
        ({"nodes": [NODE]}, "expected a list of nodes"),
        ("[{", "not readable as JSON"),
    ],
)
def test_a_wrong_file_is_refused_with_place_and_reason(inventory, nodes, said):
    done = inventory(nodes)
    assert done.returncode != 0
    assert said in " ".join(done.stderr.split())
