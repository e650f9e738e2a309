"""A server that answers as Hetzner Cloud's API does, as far as the provider and the harness use it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .fake_cloud import FakeCloud, Refused, now
from .fake_snapshots import BASE, GB_MONTH, Snapshots

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
DISKS_GB = {"ccx13": 80, "cpx12": 40, "ccx23": 160}
GROUP_MOST = 10


@dataclass
class FakeHcloud(Snapshots, FakeCloud):
    address_price: float = ADDRESS_PRICE
    stopped: Callable[[dict[str, Any]], None] = lambda _: None
    taken: Callable[[dict[str, Any], dict[str, Any]], None] = lambda _, __: None
    dropped: Callable[[dict[str, Any]], None] = lambda _: None
    snapshots: dict[int, dict[str, Any]] = field(default_factory=dict)
    snapshot_s: float = 0.0
    spoilt: int = 0

    target = "hcloud"
    provider = "hetznercloud/hcloud"
    version = "1.58.0"
    secrets = (TOKEN,)
    kinds = tuple(KINDS)
    things: ClassVar = {"machine": "/servers", "network": "/networks", "filter": "/firewalls",
                        "address": "/primary_ips", "snapshot": "/create_image", "shutdown": "/shutdown"}  # fmt: skip
    errors: ClassVar = {
        "quota": (403, "resource_limit_exceeded", "server limit reached"),
        "rate": (429, "rate_limit_exceeded", "limit of requests per hour reached"),
        "error": (500, "server_error", "something went wrong"),
        "capacity": (412, "resource_unavailable", "error during placement"),
    }
    locations = ("fsn1", "nbg1")
    offer: ClassVar = {"options": {"poll_interval": "50ms"}}

    @property
    def endpoint(self) -> str:
        return f"{self.url}/v1"

    @property
    def environment(self) -> dict[str, str]:
        return {"HCLOUD_TOKEN": TOKEN, "HCLOUD_ENDPOINT": self.endpoint}

    # ---- what tests do to it

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        status, answer = self.answer(method, f"/v1/{path}", f"Bearer {TOKEN}", body or {})
        assert status < 300, answer
        return answer

    def switch_off(self, machine: dict[str, Any]) -> None:
        machine["status"] = "off"

    def where(self, machine: dict[str, Any]) -> str:
        return machine["location"]

    def take_away(self, machine: dict[str, Any]) -> None:
        self.ask("DELETE", f"servers/{machine['id']}")

    def add_network(self, name: str, labels: dict[str, str]) -> None:
        self.ask("POST", "networks", {"name": name, "ip_range": "10.0.0.0/8", "labels": labels})

    def let_in(self) -> list[list[str]]:
        return [r["source_ips"] for f in self.resources["firewalls"].values() for r in f["rules"] if r["port"] == "22"]

    def expected(self, machines: int) -> dict[str, int]:
        return {"servers": machines, "primary_ips": machines, "networks": 1, "firewalls": 1, "placement_groups": 1,
                "ssh_keys": 1}  # fmt: skip

    def populate(self, owner: str, machines: int) -> int:
        labels = {"ntier-owner": owner, "ntier-work": "x", "ntier-expires": "1000"}

        def make(kind: str, **body: object) -> int:
            return self.ask("POST", kind, {"labels": labels, **body})[kind[:-1]]["id"]

        make("ssh_keys", name=owner, public_key=owner)
        make("networks", name=owner, ip_range="10.0.0.0/8")
        firewall = make("firewalls", name=owner)
        for i in range(machines):
            address = make("primary_ips", name=f"{owner}-{i}", auto_delete=False, location="fsn1")
            make("servers", name=f"{owner}-{i}", server_type="ccx13", image="debian-13", location="fsn1",
                 firewalls=[{"firewall": firewall}], public_net={"ipv4": address})  # fmt: skip
        return 2 * machines + 3

    # ---- requests

    def shortened(self, path: str) -> str:
        return path.removeprefix("/v1")

    def place(self, body: dict[str, Any]) -> str | None:
        return body.get("location")

    def check_token(self, _path: str, token: str | None, _body: dict[str, Any]) -> None:
        if token != f"Bearer {TOKEN}":
            raise Refused(401, "unauthorized", "unable to authenticate")

    def told(self, _path: str, refused: Refused) -> dict[str, Any]:
        return {"error": {"code": refused.code, "message": str(refused), "details": {}}}

    def _route(self, method: str, path: str, query: Any, body: Any) -> tuple[int, Any]:
        if path == "/pricing":
            prices = [{"location": n, "price_hourly": {"gross": f"{self.address_price:.10f}"}} for n in LOCATIONS]
            image = {"price_per_gb_month": {"gross": f"{GB_MONTH:.10f}"}}
            addresses = [{"type": "ipv4", "prices": prices}]
            return 200, {"pricing": {"currency": "EUR", "primary_ips": addresses, "image": image}}
        if path in ("/server_types", "/images", "/locations", "/actions"):
            return 200, self._catalogue(path, query)
        parts = path.strip("/").split("/")
        kind = parts[0]
        if kind == "images" and len(parts) == 2:
            return self._one_image(method, int(parts[1]))
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
        if path == "/images" and query.get("type") == ["snapshot"]:
            return paged("images", labelled([self.shown_image(i) for i in self.snapshots.values()], query))
        if path == "/images":
            image = self._image(name or "debian-13")
            return paged("images", [image] if image["name"] == "debian-13" else [])
        if path == "/locations":
            return paged("locations", [self._location(n) for n in LOCATIONS if name in (None, n)])
        if path == "/actions":
            return paged("actions", [action(int(i)) for i in query.get("id", [])])
        return paged("server_types", [self._type(n) for n in TYPES if name in (None, n)])

    def _one_image(self, method: str, number: int) -> tuple[int, Any]:
        if number == BASE:
            return 200, {"image": self._image("debian-13")}
        if number not in self.snapshots:
            raise Refused(404, "not_found", f"image with ID '{number}' not found")
        if method == "DELETE":
            self.dropped(self.snapshots.pop(number))
            return 204, None
        return 200, {"image": self.shown_image(self.snapshots[number])}

    def _list(self, kind: str, query: Any) -> dict[str, Any]:
        resources = list(self.resources[kind].values())
        if name := query.get("name", [None])[0]:
            resources = [r for r in resources if r["name"] == name]
        if fingerprint := query.get("fingerprint", [None])[0]:
            resources = [r for r in resources if r["fingerprint"] == fingerprint]
        resources = labelled(resources, query)
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
        address = self.next_address(common["name"], taken)
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
        self._check_image(str(body["image"]), type_)
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

    def _check_image(self, image: str, type_: str) -> None:
        if not image.isdigit() or int(image) == BASE:
            return
        snapshot = self.snapshots.get(int(image))
        if snapshot is None or self.image_ready(snapshot)["status"] != "available":
            raise Refused(404, "not_found", f"image with ID '{image}' not found")
        if snapshot["disk_size"] > DISKS_GB[type_]:
            raise Refused(422, "invalid_input", "image disk is bigger than server type disk")

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
        elif kind == "servers" and name == "create_image":
            if self.is_locked(resource):
                raise Refused(423, "locked", "server is locked")
            image = self.new_snapshot(next(self._ids), resource, body, DISKS_GB[resource["type"]])
            self.taken(resource, image)
            return {"image": self.shown_image(image), "action": action(next(self._ids))}
        elif kind == "servers" and name in ("poweron", "poweroff", "shutdown"):
            if name != "poweron":
                self.stopped(resource)
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
        if kind == "servers" and self.is_locked(resource):
            raise Refused(423, "locked", "server is locked")
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
            "image": self._shown_image_of(str(r["image"])),
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

    def _shown_image_of(self, image: str) -> dict[str, Any] | None:
        """None: it was a snapshot that is gone."""
        if not image.isdigit() or int(image) == BASE:
            return self._image("debian-13")
        snapshot = self.snapshots.get(int(image))
        return self.shown_image(snapshot) if snapshot else None

    def _location(self, name: str) -> dict[str, Any]:
        return {"id": 1 + list(LOCATIONS).index(name), "name": name, "network_zone": LOCATIONS[name], "country": "DE"}

    def _image(self, name: str) -> dict[str, Any]:
        return {"id": BASE, "name": name, "status": "available", "type": "system", "architecture": "x86",
                "description": name, "os_flavor": "debian", "os_version": "13", "disk_size": 5, "labels": {},
                "created": now(), "protection": {"delete": False}}  # fmt: skip

    def _type(self, name: str) -> dict[str, Any]:
        cores, memory, price = TYPES[name]
        amount = {"net": f"{price / 1.19:.10f}", "gross": f"{price:.10f}"}
        prices = [{"location": n, "price_hourly": amount, "price_monthly": amount} for n in LOCATIONS]
        return {"id": 1 + list(TYPES).index(name), "name": name, "description": name, "cores": cores, "memory": memory,
                "disk": DISKS_GB[name], "storage_type": "local", "cpu_type": "dedicated", "architecture": "x86",
                "prices": prices, "deprecated": False,
                "locations": [{"id": 1, "name": n} for n in LOCATIONS]}  # fmt: skip


def action(id_: int) -> dict[str, Any]:
    return {"id": id_, "status": "success", "command": "x", "progress": 100, "started": now(), "finished": now(),
            "error": None, "resources": []}  # fmt: skip


def labelled(things: list[dict[str, Any]], query: Any) -> list[dict[str, Any]]:
    """Those that a request's `label_selector` means."""
    for wanted in filter(None, query.get("label_selector", [""])[0].split(",")):
        key, _, value = wanted.partition("==" if "==" in wanted else "=")
        things = [r for r in things if key in r["labels"] and value in ("", r["labels"][key])]
    return things


def rule(asked: dict[str, Any]) -> dict[str, Any]:
    return {"source_ips": [], "destination_ips": [], "port": None, "description": None} | asked


def paged(name: str, items: list[Any], page: int = 1, size: int = 25) -> dict[str, Any]:
    last = max(1, -(-len(items) // size))
    meta = {"page": page, "per_page": size, "previous_page": None, "next_page": page + 1 if page < last else None,
            "last_page": last, "total_entries": len(items)}  # fmt: skip
    return {name: items[(page - 1) * size : page * size], "meta": {"pagination": meta}}
