"""The inventory file of the target `hosts` as values: which machines there are, and which node each becomes."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ntier_harness.errors import RequestError
from ntier_harness.files import at_home, read_yaml
from ntier_harness.spec import CLIENT, Spec
from ntier_harness.ssh import Access, check_path

NODE_TYPES = ("normal", "low_cost", CLIENT)  # of terraform/modules/topology
USER_KNOWN_HOSTS = "~/.ssh/known_hosts"
ACCESS_KEYS = ("user", "port", "key_file")
HOST_KEYS = (
    "address",
    "ssh",
    *ACCESS_KEYS,
    "tiers",
    "node_type",
    "i_may_load_this_public_address",
    "address_is_translated",
)
FILE_KEYS = ("hosts", "known_hosts", "apt_sources", *ACCESS_KEYS)
PUBLIC = (
    "an address of the Internet, where no load is sent; if the machine is yours, or you have its owner's leave, say "
    "i_may_load_this_public_address: true for it"
)


@dataclass(frozen=True)
class Host:
    """A machine of the inventory. `address`: in the experiment's network; `access`: how SSH reaches it, maybe by
    another address. `tiers`, `node_type`: what it may become; empty and None: anything. `translated`: the machine
    does not have the address itself, but what is sent there reaches it."""

    address: str
    access: Access
    tiers: tuple[str, ...] = ()
    node_type: str | None = None
    public_load: bool = False
    translated: bool = False

    @property
    def is_private(self) -> bool:
        """Private or reserved for benchmarks: not an address of the Internet."""
        return not ipaddress.ip_address(self.address).is_global

    def fits(self, tier: str, node_type: str) -> bool:
        return (not self.tiers or tier in self.tiers) and self.node_type in (None, node_type)


@dataclass(frozen=True)
class Inventory:
    """`apt_sources`: tier -> lines of apt's sources that its hosts get beside their own."""

    file: Path
    hosts: tuple[Host, ...]
    apt_sources: dict[str, list[str]] = field(default_factory=dict)


def read_inventory(file: Path, tiers: tuple[str, ...]) -> Inventory:
    """`tiers`: of the system, and the clients. Raises RequestError naming the file, the host and the key, and what is
    allowed."""
    place = f"hosts: {file}"
    try:
        data, _ = read_yaml(file)
    except RequestError as error:
        raise RequestError(f"hosts: {error}") from None
    data = _only(place, data, FILE_KEYS)
    listed = data.get("hosts")
    if not isinstance(listed, list) or not listed:
        raise RequestError(f"{place}: hosts: expected a list of hosts")
    known_hosts = _path(f"{place}: known_hosts", file, data.get("known_hosts") or USER_KNOWN_HOSTS)
    usual = {k: data[k] for k in ACCESS_KEYS if k in data}
    hosts = tuple(
        _host(f"{place}: host {i}", file, tiers, usual, known_hosts, item) for i, item in enumerate(listed, 1)
    )
    for name, values in (
        ("address", [h.address for h in hosts]),
        ("ssh", [(h.access.host, h.access.port) for h in hosts]),
    ):
        twice = next((v for v in values if values.count(v) > 1), None)
        if twice:
            raise RequestError(f"{place}: {name} {twice} occurs twice; each host becomes one node")
    return Inventory(file, hosts, _apt_sources(place, tiers, data.get("apt_sources") or {}))


def _only(place: str, data: Any, allowed: tuple[str, ...]) -> dict[str, Any]:
    """Without the keys that have no value: they say nothing. Raises RequestError for a key that is not allowed."""
    if not isinstance(data, dict):
        raise RequestError(f"{place}: expected keys and values; allowed are {', '.join(allowed)}")
    unknown = [str(k) for k in data if k not in allowed]
    if unknown:
        raise RequestError(f"{place}: {unknown[0]} is unknown; allowed are {', '.join(allowed)}")
    return {k: value for k, value in data.items() if value is not None}


def _path(place: str, file: Path, text: Any) -> str:
    """Relative to the inventory file; ~ is the home. Raises RequestError for a path that SSH does not take."""
    path = str((file.parent / at_home(place, str(text))).resolve())
    check_path(place, path)
    return path


def _host(place: str, file: Path, known: tuple[str, ...], usual: dict[str, Any], known_hosts: str, data: Any) -> Host:
    data = _only(place, data, HOST_KEYS)
    address = _address(place, data.get("address"))
    place = f"{place} ({address})"
    tiers, node_type = data.get("tiers", []), data.get("node_type")
    public, translated = (
        _flag(place, data, key) for key in ("i_may_load_this_public_address", "address_is_translated")
    )
    if not isinstance(tiers, list) or any(t not in known for t in tiers):
        raise RequestError(f"{place}: tiers: {tiers!r}: expected a list of {', '.join(known)}")
    if node_type not in (None, *NODE_TYPES):
        raise RequestError(f"{place}: node_type: {node_type!r}: allowed are {', '.join(NODE_TYPES)}")
    fields = usual | {k: data[k] for k in ACCESS_KEYS if k in data}
    port = fields.get("port", 22)
    if not isinstance(port, int) or isinstance(port, bool) or not 1 <= port <= 65535:
        raise RequestError(f"{place}: port: {port!r}: allowed are 1..65535")
    host, user = str(data.get("ssh", address)), str(fields.get("user", "root"))
    for key, text in (("ssh", host), ("user", user)):
        if not text or text.startswith("-") or not all(c.isalnum() or c in ".-_:" for c in text):
            raise RequestError(f"{place}: {key}: {text!r} is not the name of a {'machine' if key == 'ssh' else 'user'}")
    key = fields.get("key_file")
    key_file = None if key is None else _path(f"{place}: key_file", file, key)
    if key_file and not Path(key_file).is_file():
        raise RequestError(f"{place}: key_file: {key_file} does not exist")
    return Host(address, Access(host, known_hosts, user, port, key_file), tuple(tiers), node_type, public, translated)


def _flag(place: str, data: dict[str, Any], key: str) -> bool:
    if not isinstance(value := data.get(key, False), bool):
        raise RequestError(f"{place}: {key}: {value!r}: allowed are true, false")
    return value


def _address(place: str, text: Any) -> str:
    try:
        address = ipaddress.IPv4Address(str(text))
    except ValueError:
        raise RequestError(
            f"{place}: address: {text!r}: expected the IPv4 address in the experiment's network"
        ) from None
    if address.is_loopback or address.is_multicast or address.is_unspecified:
        raise RequestError(f"{place}: address: {address} is not the address of a single machine")
    return str(address)


def _apt_sources(place: str, tiers: tuple[str, ...], data: Any) -> dict[str, list[str]]:
    data = _only(f"{place}: apt_sources", data, tiers)
    for tier, lines in data.items():
        if not isinstance(lines, list) or not all(isinstance(line, str) and line.startswith("deb ") for line in lines):
            raise RequestError(f"{place}: apt_sources: {tier}: expected a list of lines 'deb URI SUITE COMPONENT'")
    return data


def wanted_nodes(spec: Spec) -> list[tuple[str, str, str]]:
    """(name, tier, node type) of every node of the topology and its clients, in the order of the tiers."""
    groups = [(t, n, spec.node_type(t)) for t, n in spec.topology.counts.items()] + [(CLIENT, spec.clients, CLIENT)]
    return [(f"{tier}{i}", tier, node_type) for tier, n, node_type in groups for i in range(1, n + 1)]


def assign(inventory: Inventory, spec: Spec) -> dict[str, Host]:
    """Node -> host: nodes in the order of the tiers, each takes the first free host of the file that fits. If none is
    free, a node that has a fitting host moves to another one if it can (Kuhn's augmenting paths), so an assignment is
    found whenever one exists. The same file and topology give the same assignment.

    Raises RequestError with counts per tier if there is none, or if load would go to an address of the Internet."""
    nodes = wanted_nodes(spec)
    taken: dict[int, int] = {}  # host -> node

    def place(node: int, tried: set[int]) -> bool:
        _, tier, node_type = nodes[node]
        fitting = [i for i, host in enumerate(inventory.hosts) if host.fits(tier, node_type) and i not in tried]
        for i in [i for i in fitting if i not in taken] + [i for i in fitting if i in taken]:
            tried.add(i)
            if i not in taken or place(taken[i], tried):
                taken[i] = node
                return True
        return False

    if not all(place(node, set()) for node in range(len(nodes))):
        raise RequestError(_too_few(inventory, spec, nodes))
    assigned = {nodes[node][0]: inventory.hosts[i] for i, node in taken.items()}
    result = {name: assigned[name] for name, _, _ in nodes}
    entry = spec.system.definition.load.entry.tier
    for name, tier, _ in nodes:
        host = result[name]
        if tier == entry and not (host.is_private or host.public_load):
            raise RequestError(f"hosts: {inventory.file}: {name} is {host.address}: {PUBLIC}")
    return result


def _too_few(inventory: Inventory, spec: Spec, nodes: list[tuple[str, str, str]]) -> str:
    kinds = list(dict.fromkeys((tier, node_type) for _, tier, node_type in nodes))
    needed = [sum(n[1:] == kind for n in nodes) for kind in kinds]
    there = [sum(h.fits(*kind) for h in inventory.hosts) for kind in kinds]
    parts = [
        f"{tier}{f' ({node_type})' if node_type == 'low_cost' else ''} needs {n}, {m} of the hosts fit"
        for (tier, node_type), n, m in zip(kinds, needed, there, strict=True)
    ]
    return (
        f"hosts: {inventory.file}: its {len(inventory.hosts)} hosts cannot become the {len(nodes)} nodes of "
        f"{spec.topology} and its client: {'; '.join(parts)}"
    )
