"""Inventory plug-in: Ntier's `nodes.json` (the output `nodes` of a Terraform target) as hosts and groups."""

from __future__ import annotations

import json
import os
import re
import socket

from ansible.errors import AnsibleParserError

from ansible.plugins.inventory import BaseInventoryPlugin

DOCUMENTATION = r"""
name: nodes
short_description: Hosts and groups from Ntier's nodes.json
description:
  - Reads a file whose name ends in C(nodes.json), a list of nodes as C(terraform output -json nodes) prints it.
  - Each node is a host; each tier is a group, and so is C(client).
  - C(ntier_addresses) has for each tier the addresses of its nodes, in order.
  - Nodes are reached as root by SSH with the deployment's own key and its own file of host keys, unless a file
    C(access.json) beside it says otherwise (target hosts; see C(ntier_harness.ssh.Access)).
options:
  state:
    description:
      - Folder that holds C(ssh/id_ed25519). The host keys are in C(known_hosts) beside the nodes file.
      - Empty means the folder above the one that holds the nodes file.
    type: path
    default: ""
    env:
      - name: NTIER_STATE
"""

TIER = re.compile(r"[a-z][a-z0-9_]{0,39}")
REQUIRED = ("name", "tier", "index", "node_type", "address", "role")
OPTIONAL = ("cpu_cores", "memory_bytes", "disk_bytes_s", "network_bits_s", "image", "cores")


class InventoryModule(BaseInventoryPlugin):
    NAME = "nodes"

    def verify_file(self, path: str) -> bool:
        return super().verify_file(path) and path.endswith("nodes.json")

    def parse(self, inventory, loader, path, cache=True):
        super().parse(inventory, loader, path, cache)
        nodes = read_nodes(path)
        folder = os.path.dirname(os.path.abspath(path))
        state = os.environ.get("NTIER_STATE") or os.path.dirname(folder)
        access = read_access(os.path.join(folder, "access.json"))
        for tier in dict.fromkeys(["client", *(node["tier"] for node in nodes)]):
            inventory.add_group(tier)
        for node in nodes:
            inventory.add_host(node["name"], group=node["tier"])
            for key, value in host_variables(node, folder, state, access.get(node["name"], {})).items():
                inventory.set_variable(node["name"], key, value)
        inventory.set_variable("all", "ntier_addresses", addresses(nodes))


def read_nodes(path: str) -> list[dict]:
    """The checked list of nodes. Raises AnsibleParserError naming the file, the node and the key."""
    try:
        with open(path, encoding="utf-8") as file:
            nodes = json.load(file)
    except (OSError, ValueError) as error:
        raise AnsibleParserError(f"{path}: not readable as JSON: {error}") from error
    if not isinstance(nodes, list) or not all(isinstance(node, dict) for node in nodes):
        raise AnsibleParserError(f"{path}: expected a list of nodes (terraform output -json nodes)")
    seen: set[str] = set()
    for position, node in enumerate(nodes):
        place = f"{path}: node {position} ({node.get('name', 'no name')})"
        missing = [key for key in REQUIRED if node.get(key) in (None, "")]
        unknown = sorted(set(node) - set(REQUIRED) - set(OPTIONAL))
        if missing or unknown:
            raise AnsibleParserError(f"{place}: missing {missing}, unknown {unknown}; allowed: {REQUIRED + OPTIONAL}")
        if not TIER.fullmatch(str(node["tier"])):
            raise AnsibleParserError(f"{place}: tier {node['tier']!r}; allowed: small letters, digits and _")
        if node["name"] in seen:
            raise AnsibleParserError(f"{place}: a second node of this name")
        seen.add(node["name"])
    return nodes


def addresses(nodes: list[dict]) -> dict[str, list[str]]:
    """Tier -> addresses of its nodes, by index: the peers of a role."""
    by_tier: dict[str, list[str]] = {}
    for node in sorted(nodes, key=lambda node: node["index"]):
        by_tier.setdefault(node["tier"], []).append(node["address"])
    return by_tier


def read_access(path: str) -> dict[str, dict]:
    """Node -> how SSH reaches it, where that is not the usual way."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise AnsibleParserError(f"{path}: not readable as JSON: {error}") from error


def host_variables(node: dict, folder: str, state: str, access: dict) -> dict:
    """Connection and hardware of one node, as Ansible's host variables."""
    key_file = access.get("key_file", os.path.join(state, "ssh", "id_ed25519"))
    user = access.get("user", "root")
    options = {
        "UserKnownHostsFile": access.get("known_hosts", os.path.join(folder, "known_hosts")),
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "IdentitiesOnly": "yes" if key_file else "no",
        "BatchMode": "yes",
    }
    return {
        "ansible_host": access.get("host", node["address"]),
        "ansible_port": access.get("port", 22),
        "ansible_user": user,
        "ansible_become": user != "root",
        "ansible_python_interpreter": "/usr/bin/python3",
        **({"ansible_ssh_private_key_file": key_file} if key_file else {}),
        # -F none: neither the person's nor the machine's own settings of SSH
        "ansible_ssh_common_args": " ".join(["-F none", *(f"-o {key}={value}" for key, value in options.items())]),
        "ntier_tier": node["tier"],
        "ntier_role": node["role"],
        "ntier_controller_address": source_address(node["address"]),
        "address": node["address"],
        "index": node["index"],
        "node_type": node["node_type"],
        "cpu_cores": node.get("cpu_cores") or node.get("cores"),  # its quota; without one, the whole machine's
        "memory_bytes": node.get("memory_bytes"),
    }


def source_address(address: str) -> str:
    """The address this machine uses towards `address` (nothing is sent); empty if there is no route."""
    try:
        family = socket.getaddrinfo(address, 22, type=socket.SOCK_DGRAM)[0][0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 22))
            return probe.getsockname()[0]
    except OSError:
        return ""
