"""A server that answers as Hetzner Cloud's API does, as far as the provider and the harness use it. It keeps in memory
what exists and counts it, checks the token, and fails as it is told to (`Fault`)."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import threading
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "fake" * 16  # 64 characters, as the provider demands
KINDS = {
    "servers": "server",
    "networks": "network",
    "firewalls": "firewall",
    "placement_groups": "placement_group",
    "ssh_keys": "ssh_key",
    "primary_ips": "primary_ip",
    "volumes": "volume",
}
LOCATIONS = {"fsn1": "eu-central", "nbg1": "eu-central", "hel1": "eu-central"}
ADDRESS_PRICE = 0.001
TYPES = {"ccx13": (2, 8, 0.0819), "cpx12": (1, 2, 0.0218), "ccx23": (4, 16, 0.1639)}  # cores, GB, gross price
GROUP_MOST = 10


@dataclass
class Fault:
    """What goes wrong with requests of `method` whose path matches, `times` times after `skip` that go well. `kind`:

    * quota: refused, the account's limit is reached
    * rate: 429
    * error: 500, nothing is done
    * error_after: 500, but it is done
    * capacity: no machine is free in `location`
    * slow: answered after `seconds`
    """

    kind: str
    method: str = "POST"
    path: str = "/servers$"
    times: int = 1
    skip: int = 0
    location: str | None = None
    seconds: float = 0.0

    def takes(self, method: str, path: str, body: dict[str, Any]) -> bool:
        if method != self.method or not re.search(self.path, path):
            return False
        if self.location and body.get("location") != self.location:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.times -= 1
        return self.times >= 0


class Refused(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


@dataclass
class FakeHcloud:
    """The account. `addresses`: of the servers, in this order, each free again once its server is gone.
    `created`, `deleted`: called with a server's record (bench/rented_local.py lets real nodes stand for servers)."""

    addresses: Callable[[int], str] = lambda i: f"203.0.113.{i + 1}"
    address_of: Callable[[str], str] | None = None
    """The address of this name instead."""
    created: Callable[[dict[str, Any]], None] = lambda _: None
    deleted: Callable[[dict[str, Any]], None] = lambda _: None
    faults: list[Fault] = field(default_factory=list)
    resources: dict[str, dict[int, dict[str, Any]]] = field(default_factory=lambda: {k: {} for k in KINDS})
    requests: list[str] = field(default_factory=list)
    address_price: float = ADDRESS_PRICE
    made: int = 0
    """Servers that were ever made."""
    most: int = 0
    """Servers that there were at once."""
    user_data: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._ids = itertools.count(1000)
        self._lock = threading.RLock()
        self._server: ThreadingHTTPServer | None = None

    # ---- as a server

    def __enter__(self) -> FakeHcloud:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                """Quiet."""

            def handle_one(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length) or b"{}")
                status, answer = fake.answer(self.command, self.path, self.headers.get("Authorization"), body)
                data = b"" if answer is None else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = handle_one

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_: Any) -> None:
                """A client that was killed is no error of ours."""

        self._server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    @property
    def endpoint(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def count(self) -> dict[str, int]:
        """What exists, without the kinds of which there is nothing."""
        with self._lock:
            return {kind: len(things) for kind, things in self.resources.items() if things}

    def names(self, kind: str = "servers") -> list[str]:
        with self._lock:
            return sorted(r["name"] for r in self.resources[kind].values())

    # ---- requests

    def answer(self, method: str, url: str, token: str | None, body: dict[str, Any]) -> tuple[int, Any]:
        parsed = urllib.parse.urlparse(url)
        path, query = parsed.path.removeprefix("/v1"), urllib.parse.parse_qs(parsed.query)
        with self._lock:
            self.requests.append(f"{method} {path}")
            fault = next((f for f in self.faults if f.takes(method, path, body)), None)
        if fault and fault.kind == "slow":
            time.sleep(fault.seconds)
        try:
            if token != f"Bearer {TOKEN}":
                raise Refused(401, "unauthorized", "unable to authenticate")
            if fault:
                self._before(fault)
            with self._lock:
                status, answer = self._route(method, path, query, body)
            if fault and fault.kind == "error_after":
                raise Refused(500, "server_error", "something went wrong")
            return status, answer
        except Refused as refused:
            return refused.status, {"error": {"code": refused.code, "message": str(refused), "details": {}}}

    def _before(self, fault: Fault) -> None:
        errors = {
            "quota": Refused(403, "resource_limit_exceeded", "server limit reached"),
            "rate": Refused(429, "rate_limit_exceeded", "limit of requests per hour reached"),
            "error": Refused(500, "server_error", "something went wrong"),
            "capacity": Refused(412, "resource_unavailable", "error during placement"),
        }
        if fault.kind in errors:
            raise errors[fault.kind]

    def _route(self, method: str, path: str, query: Any, body: Any) -> tuple[int, Any]:
        if path == "/pricing":
            prices = [{"location": n, "price_hourly": {"gross": f"{self.address_price:.10f}"}} for n in LOCATIONS]
            return 200, {"pricing": {"currency": "EUR", "primary_ips": [{"type": "ipv4", "prices": prices}]}}
        if path in ("/server_types", "/images", "/locations", "/actions"):
            return 200, self._catalogue(path, query)
        parts = path.strip("/").split("/")
        kind = parts[0]
        if kind not in KINDS:
            raise Refused(404, "not_found", f"no such thing: {path}")
        if len(parts) == 1:
            return (200, self._list(kind, query)) if method == "GET" else (201, self._create(kind, body))
        resource = self.resources[kind].get(int(parts[1]))
        if resource is None:
            raise Refused(404, "not_found", f"{KINDS[kind]} with ID '{parts[1]}' not found")
        if len(parts) == 4:
            return 201, self._act(kind, resource, parts[3], body)
        if method == "DELETE":
            return self._delete(kind, resource)
        if method == "PUT":
            resource |= {k: v for k, v in body.items() if k in ("name", "labels")}
        return 200, {KINDS[kind]: self._shown(kind, resource)}

    def _catalogue(self, path: str, query: Any) -> dict[str, Any]:
        name = query.get("name", [None])[0]
        if path == "/images":
            image = self._image(name or "debian-13")
            return paged("images", [image] if image["name"] == "debian-13" else [])
        if path == "/locations":
            return paged("locations", [self._location(n) for n in LOCATIONS if name in (None, n)])
        if path == "/actions":
            return paged("actions", [action(int(i)) for i in query.get("id", [])])
        return paged("server_types", [self._type(n) for n in TYPES if name in (None, n)])

    def _list(self, kind: str, query: Any) -> dict[str, Any]:
        resources = list(self.resources[kind].values())
        if name := query.get("name", [None])[0]:
            resources = [r for r in resources if r["name"] == name]
        if fingerprint := query.get("fingerprint", [None])[0]:
            resources = [r for r in resources if r["fingerprint"] == fingerprint]
        for wanted in filter(None, query.get("label_selector", [""])[0].split(",")):
            key, _, value = wanted.partition("==" if "==" in wanted else "=")
            resources = [r for r in resources if key in r["labels"] and value in ("", r["labels"][key])]
        page, size = int(query.get("page", ["1"])[0]), int(query.get("per_page", ["25"])[0])
        shown = [self._shown(kind, r) for r in resources]
        return paged(kind, shown, page, size)

    # ---- changes

    def _create(self, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        if any(r["name"] == body["name"] for r in self.resources[kind].values()):
            raise Refused(409, "uniqueness_error", f"{KINDS[kind]} name is already used")
        common = {
            "id": next(self._ids),
            "name": body["name"],
            "labels": body.get("labels") or {},
            "created": now(),
            "protection": {"delete": False, "rebuild": False},
        }
        made = getattr(self, f"_new_{KINDS[kind]}")(common, body)
        self.resources[kind][made["id"]] = made
        answer: dict[str, Any] = {KINDS[kind]: self._shown(kind, made)}
        if kind == "servers":
            self.made += 1
            self.most = max(self.most, len(self.resources[kind]))
            self.user_data[made["name"]] = body.get("user_data", "")
            self.created(made | {"user_data": body.get("user_data", "")})
            answer |= {"action": action(next(self._ids)), "next_actions": [], "root_password": None}
        if kind == "firewalls":
            answer["actions"] = []
        return answer

    def _new_ssh_key(self, common: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        print_ = hashlib.md5(body["public_key"].encode()).hexdigest()
        if any(k["fingerprint"] == print_ for k in self.resources["ssh_keys"].values()):
            raise Refused(409, "uniqueness_error", "SSH key with the same fingerprint already exists")
        return common | {"public_key": body["public_key"], "fingerprint": print_}

    def _new_network(self, common: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        return common | {"ip_range": body["ip_range"], "subnets": body.get("subnets") or [], "routes": [],
                         "load_balancers": [], "expose_routes_to_vswitch": False}  # fmt: skip

    def _new_firewall(self, common: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        return common | {"rules": [rule(r) for r in body.get("rules") or []]}

    def _new_placement_group(self, common: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        return common | {"type": body["type"]}

    def _new_primary_ip(self, common: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        taken = {ip["ip"] for ip in self.resources["primary_ips"].values()}
        address = next(a for i in itertools.count() if (a := self.addresses(i)) not in taken)
        address = self.address_of(common["name"]) if self.address_of else address
        return common | {"ip": address, "type": "ipv4", "assignee_id": None, "assignee_type": "server",
                         "auto_delete": body["auto_delete"], "location": self._location(body["location"]),
                         "dns_ptr": [], "blocked": False, "protection": {"delete": False}}  # fmt: skip

    def _new_server(self, common: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        group, type_ = body.get("placement_group"), body["server_type"]
        members = [s for s in self.resources["servers"].values() if group and s["group"] == group]
        if len(members) >= GROUP_MOST:
            raise Refused(412, "placement_error", "the placement group is full")
        if type_ not in TYPES or body["location"] not in LOCATIONS:
            raise Refused(422, "invalid_input", "invalid input")
        given = (body.get("public_net") or {}).get("ipv4")
        if not given:  # an address of its own, without labels
            named = {"id": next(self._ids), "name": f"primary_ip-{common['id']}", "labels": {}, "created": now()}
            made = self._new_primary_ip(named, {"auto_delete": True, "location": body["location"]})
            given = made["id"]
            self.resources["primary_ips"][given] = made
        ip = self.resources["primary_ips"][given]
        if ip["assignee_id"]:
            raise Refused(422, "primary_ip_assigned", "the primary IP is already assigned")
        ip["assignee_id"] = common["id"]
        return common | {
            "status": "running", "type": type_, "location": body["location"], "image": body["image"], "group": group,
            "firewalls": [f["firewall"] for f in body.get("firewalls") or []], "ip": ip["ip"], "ip_id": given,
            "private": [],
        }  # fmt: skip

    def _act(self, kind: str, resource: dict[str, Any], name: str, body: dict[str, Any]) -> dict[str, Any]:
        if kind == "networks" and name == "add_subnet":
            resource["subnets"].append(body | {"gateway": "10.98.0.1"})
        elif kind == "networks" and name == "delete_subnet":
            if self._attached(resource):
                raise Refused(409, "service_error", "cannot remove subnet because servers are attached to it")
            resource["subnets"] = [s for s in resource["subnets"] if s["ip_range"] != body["ip_range"]]
        elif kind == "servers" and name == "attach_to_network":
            network = self.resources["networks"].get(body["network"])
            if network is None or not network["subnets"]:
                raise Refused(412, "no_subnet_available", "no subnet")
            resource["private"].append({"network": body["network"], "ip": body.get("ip"), "alias_ips": [],
                                        "mac_address": f"86:00:00:00:{resource['id'] // 256:02x}:00"})  # fmt: skip
        elif kind == "servers" and name in ("poweron", "poweroff", "shutdown"):
            resource["status"] = "running" if name == "poweron" else "off"
        elif kind == "firewalls" and name == "set_rules":
            resource["rules"] = [rule(r) for r in body["rules"]]
        elif kind == "firewalls" and name == "remove_from_resources":
            for item in body["remove_from"]:
                if server := self.resources["servers"].get(item["server"]["id"]):
                    server["firewalls"] = [f for f in server["firewalls"] if f != resource["id"]]
        else:
            raise Refused(404, "not_found", f"{kind} cannot {name}")
        made = action(next(self._ids))
        return {"actions": [made]} if kind == "firewalls" else {"action": made}

    def _delete(self, kind: str, resource: dict[str, Any]) -> tuple[int, Any]:
        used = [s for s in self.resources["servers"].values() if resource["id"] in s["firewalls"]]
        if kind == "firewalls" and used:
            raise Refused(422, "resource_in_use", "firewall is still in use")
        if kind == "primary_ips" and resource["assignee_id"] in self.resources["servers"]:
            raise Refused(422, "invalid_input", "primary IP must be unassigned")
        del self.resources[kind][resource["id"]]
        if kind != "servers":
            return 204, None
        ip = self.resources["primary_ips"][resource["ip_id"]]
        ip["assignee_id"] = None
        if ip["auto_delete"]:
            del self.resources["primary_ips"][resource["ip_id"]]
        self.deleted(resource)
        return 200, {"action": action(next(self._ids))}

    # ---- as the API shows them

    def _attached(self, network: dict[str, Any]) -> list[int]:
        servers = self.resources["servers"].values()
        return [s["id"] for s in servers if any(p["network"] == network["id"] for p in s["private"])]

    def _shown(self, kind: str, r: dict[str, Any]) -> dict[str, Any]:
        servers = self.resources["servers"].values()
        if kind == "servers":
            return self._shown_server(r)
        if kind == "networks":
            return r | {"servers": self._attached(r)}
        if kind == "firewalls":
            using = [s["id"] for s in servers if r["id"] in s["firewalls"]]
            return r | {"applied_to": [{"type": "server", "server": {"id": i}} for i in using]}
        if kind == "placement_groups":
            return r | {"servers": [s["id"] for s in servers if s["group"] == r["id"]]}
        return r

    def _shown_server(self, r: dict[str, Any]) -> dict[str, Any]:
        group = self.resources["placement_groups"].get(r["group"] or 0)
        kept = ("id", "name", "labels", "created", "protection", "status")
        return {k: r[k] for k in kept} | {
            "server_type": self._type(r["type"]),
            "image": self._image("debian-13"),
            "location": self._location(r["location"]),
            "public_net": {
                "ipv4": {"id": r["ip_id"], "ip": r["ip"], "blocked": False, "dns_ptr": ""},
                "ipv6": None,
                "floating_ips": [],
                "firewalls": [{"id": f, "status": "applied"} for f in r["firewalls"]],
            },
            "private_net": r["private"],
            "backup_window": None,
            "rescue_enabled": False,
            "iso": None,
            "locked": False,
            "volumes": [],
            "load_balancers": [],
            "primary_disk_size": 80,
            "placement_group": self._shown("placement_groups", group) if group else None,
        }

    def _location(self, name: str) -> dict[str, Any]:
        return {"id": 1 + list(LOCATIONS).index(name), "name": name, "network_zone": LOCATIONS[name], "country": "DE"}

    def _image(self, name: str) -> dict[str, Any]:
        return {"id": 7, "name": name, "status": "available", "type": "system", "architecture": "x86",
                "description": name, "os_flavor": "debian", "os_version": "13", "disk_size": 5, "labels": {},
                "created": now(), "protection": {"delete": False}}  # fmt: skip

    def _type(self, name: str) -> dict[str, Any]:
        cores, memory, price = TYPES[name]
        amount = {"net": f"{price / 1.19:.10f}", "gross": f"{price:.10f}"}
        prices = [{"location": n, "price_hourly": amount, "price_monthly": amount} for n in LOCATIONS]
        return {"id": 1 + list(TYPES).index(name), "name": name, "description": name, "cores": cores, "memory": memory,
                "disk": 80, "storage_type": "local", "cpu_type": "dedicated", "architecture": "x86", "prices": prices,
                "deprecated": False, "locations": [{"id": 1, "name": n} for n in LOCATIONS]}  # fmt: skip


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())


def action(id_: int) -> dict[str, Any]:
    return {"id": id_, "status": "success", "command": "x", "progress": 100, "started": now(), "finished": now(),
            "error": None, "resources": []}  # fmt: skip


def rule(asked: dict[str, Any]) -> dict[str, Any]:
    return {"source_ips": [], "destination_ips": [], "port": None, "description": None} | asked


def paged(name: str, items: list[Any], page: int = 1, size: int = 25) -> dict[str, Any]:
    last = max(1, -(-len(items) // size))
    meta = {"page": page, "per_page": size, "previous_page": None, "next_page": page + 1 if page < last else None,
            "last_page": last, "total_entries": len(items)}  # fmt: skip
    return {name: items[(page - 1) * size : page * size], "meta": {"pagination": meta}}
