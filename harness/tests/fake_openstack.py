"""A server that answers as an OpenStack cloud does: Keystone, Nova, Neutron, Glance and Cinder in one, as far as the
provider and the harness use them."""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from .fake_cloud import FakeCloud, Fault, Refused, now

PASSWORD, TOKEN = "correct-horse-battery-staple", "gAAAAfake" * 8
USER, PROJECT, DOMAIN = "u" * 32, "p" * 32, "default"
FLAVORS = {"m1.small": (1, 2048), "m1.medium": (2, 4096), "m1.large": (4, 8192)}  # cores, MiB
IMAGE = {"id": "00000007-0000-4000-8000-000000000000", "name": "debian-13", "status": "active", "min_disk": 0,
         "min_ram": 0, "visibility": "public", "tags": [], "size": 3 << 30, "created_at": "2026-01-01T00:00:00Z",
         "updated_at": "2026-01-01T00:00:00Z", "disk_format": "qcow2", "container_format": "bare",
         "checksum": "0" * 32, "protected": False, "owner": PROJECT, "file": "", "schema": ""}  # fmt: skip
ZONES = ("zone1", "zone2")
OUTSIDE = "0000000e-0000-4000-8000-000000000000"
PAGE = 20
"""Of every list."""
NAMES = {"networks": "network", "subnets": "subnet", "routers": "router", "ports": "port", "floatingips": "floatingip",
         "security-groups": "security_group", "security-group-rules": "security_group_rule"}  # fmt: skip
CODES = {400: "badRequest", 403: "forbidden", 404: "itemNotFound", 409: "conflictingRequest", 429: "overLimit"}


@dataclass
class FakeOpenstack(FakeCloud):
    target = "openstack"
    provider = "terraform-provider-openstack/openstack"
    version = "3.4.0"
    secrets = (PASSWORD, TOKEN)
    kinds = (*NAMES, "servers", "os-server-groups", "os-keypairs", "volumes")
    things: ClassVar = {"machine": "/servers", "network": "/networks", "filter": "/security-groups",
                        "address": "/floatingips"}  # fmt: skip
    errors: ClassVar = {
        "quota": (403, "OverQuota", "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances"),
        "rate": (429, "TooMany", "This request was rate-limited."),
        "error": (500, "HTTPInternalServerError", "Unexpected API Error."),
    }
    locations = ZONES
    offer: ClassVar = {"locations": dict.fromkeys(ZONES, "public")}
    credential = "X-Auth-Token"

    @property
    def environment(self) -> dict[str, str]:
        return {"OS_AUTH_URL": f"{self.url}/identity/v3", "OS_USERNAME": "ann", "OS_PASSWORD": PASSWORD,
                "OS_PROJECT_NAME": "lab", "OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_NAME": "Default",
                "OS_REGION_NAME": "RegionOne"}  # fmt: skip

    def headers(self, path: str, status: int) -> dict[str, str]:
        wait = {"Retry-After": "1"} if status == 429 else {}
        return wait | ({"X-Subject-Token": TOKEN} if path.endswith("/auth/tokens") else {})

    # ---- what tests do to it

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        status, answer = self.answer(method, f"/{path}", TOKEN, body or {})
        assert status < 300, answer
        return answer

    def switch_off(self, machine: dict[str, Any]) -> None:
        machine["status"] = "SHUTOFF"

    def where(self, machine: dict[str, Any]) -> str:
        return machine["zone"]

    def take_away(self, machine: dict[str, Any]) -> None:
        self.ask("DELETE", f"compute/v2.1/servers/{machine['id']}")

    def add_network(self, name: str, labels: dict[str, str]) -> None:
        self._make("networks", name=name, description=" ".join(f"{k}={v}" for k, v in labels.items()))

    def let_in(self) -> list[list[str]]:
        rules = self.resources["security-group-rules"].values()
        return [[r["remote_ip_prefix"]] for r in rules if r["port_range_min"] == 22]

    def expected(self, machines: int) -> dict[str, int]:
        """A port more for the router and one for DHCP; two of the four rules come with the group."""
        return {"networks": 1, "subnets": 1, "routers": 1, "ports": machines + 2, "floatingips": machines,
                "security-groups": 1, "security-group-rules": 4, "servers": machines, "os-server-groups": 1,
                "os-keypairs": 1}  # fmt: skip

    def _make(self, kind: str, **body: Any) -> dict[str, Any]:
        return self.ask("POST", f"network/v2.0/{kind}", {NAMES[kind]: body})[NAMES[kind]]

    def populate(self, owner: str, machines: int) -> int:
        labels = {"ntier-owner": owner, "ntier-work": "x", "ntier-expires": "1000"}
        name, text = f"ntier-{owner}", " ".join(f"{k}={v}" for k, v in labels.items())
        self.ask("POST", "compute/v2.1/os-keypairs", {"keypair": {"name": name, "public_key": "ssh-ed25519 A"}})
        network = self._make("networks", name=name, description=text)["id"]
        subnet = self._make("subnets", name=name, network_id=network, cidr="10.98.0.0/16", ip_version=4)["id"]
        router = self._make("routers", name=name, description=text, external_gateway_info={"network_id": OUTSIDE})
        self.ask("PUT", f"network/v2.0/routers/{router['id']}/add_router_interface", {"subnet_id": subnet})
        group = self._make("security-groups", name=name, description=text)["id"]
        for i in range(machines):
            port = self._make("ports", name=f"{name}-db{i}", network_id=network, description=text,
                              security_groups=[group], fixed_ips=[{"subnet_id": subnet}])["id"]  # fmt: skip
            self._make("floatingips", floating_network_id=OUTSIDE, port_id=port, description=text)
            server = {"name": f"{name}-db{i}", "imageRef": IMAGE["id"], "flavorRef": "2", "key_name": name,
                      "networks": [{"port": port}], "metadata": labels, "availability_zone": "zone1"}  # fmt: skip
            self.ask("POST", "compute/v2.1/servers", {"server": server})
        id_ = self._id()
        self.resources["volumes"][id_] = {"id": id_, "name": name, "status": "available", "size": 9, "metadata": labels}
        return 3 * machines + 6

    # ---- requests

    def place(self, body: dict[str, Any]) -> str | None:
        return body.get("server", {}).get("availability_zone")

    def check_token(self, path: str, token: str | None, body: dict[str, Any]) -> None:
        if path.startswith("/identity"):
            given = body.get("auth", {}).get("identity", {}).get("password", {}).get("user", {}).get("password")
            let_in = "auth" not in body or given == PASSWORD
        else:
            let_in = token == TOKEN
        if not let_in:
            raise Refused(401, "Unauthorized", "The request you have made requires authentication.")

    def told(self, path: str, refused: Refused) -> dict[str, Any]:
        if path.startswith("/network"):
            return {"NeutronError": {"type": refused.code, "message": str(refused), "detail": ""}}
        said = {"code": refused.status, "message": str(refused)}
        return {"error": said} if path.startswith("/identity") else {CODES.get(refused.status, "computeFault"): said}

    def after(self, fault: Fault, answer: Any) -> None:
        """Nova takes a request that it has no machine for, and says so only later."""
        super().after(fault, answer)
        if fault.kind == "capacity":
            server = self.resources["servers"][answer["server"]["id"]]
            said = "No valid host was found. There are not enough hosts available."
            server |= {"status": "ERROR", "fault": {"code": 500, "created": now(), "message": said}}

    def _route(self, method: str, path: str, query: Any, body: Any) -> tuple[int, Any]:
        service, *parts = path.strip("/").split("/")
        if service in ("identity", "image"):
            return getattr(self, f"_{service}")(method, parts, query, body)
        if len(parts) < 2:
            return 200, self._versions(service)
        if service == "volume":
            return self._volume(method, parts[2:])
        return getattr(self, f"_{service}")(method, parts[1:], query, body)

    def _versions(self, service: str) -> dict[str, Any]:
        number = {"compute": "v2.1", "network": "v2.0", "identity": "v3", "image": "v2", "volume": "v3"}[service]
        links = [{"rel": "self", "href": f"{self.url}/{service}/{number}/"}]
        version = {"id": number, "status": "CURRENT", "links": links, "version": "", "min_version": ""}
        return {"version": version | {"version": "2.96", "min_version": "2.1"}} if service == "compute" else {
            "versions": [version]}  # fmt: skip

    def _identity(self, _method: str, parts: list[str], _query: Any, _body: Any) -> tuple[int, Any]:
        if parts[-1:] != ["tokens"]:
            links = [{"rel": "self", "href": f"{self.url}/identity/v3/"}]
            version = {"id": "v3.14", "status": "stable", "links": links, "media-types": []}
            return (200, {"version": version}) if parts else (300, {"versions": {"values": [version]}})
        urls = {"identity": "identity", "compute": "compute/v2.1", "network": "network", "image": "image",
                "block-storage": f"volume/v3/{PROJECT}"}  # fmt: skip
        catalog = [
            {"type": type_, "name": type_, "id": type_, "endpoints": [
                {"id": type_, "interface": "public", "region": "RegionOne", "region_id": "RegionOne",
                 "url": f"{self.url}/{path}"}]}
            for type_, path in urls.items()
        ]  # fmt: skip
        domain = {"id": DOMAIN, "name": "Default"}
        token = {"methods": ["password"], "expires_at": "2099-01-01T00:00:00.000000Z",
                 "issued_at": "2026-01-01T00:00:00.000000Z", "audit_ids": ["a"], "is_domain": False,
                 "user": {"id": USER, "name": "ann", "domain": domain, "password_expires_at": None},
                 "project": {"id": PROJECT, "name": "lab", "domain": domain},
                 "roles": [{"id": "r", "name": "member"}], "catalog": catalog}  # fmt: skip
        return 201, {"token": token}

    def _image(self, _method: str, parts: list[str], query: Any, _body: Any) -> tuple[int, Any]:
        if parts[:2] != ["v2", "images"]:
            return 300, self._versions("image")
        if len(parts) == 3:
            return 200, IMAGE
        there = query.get("name", [IMAGE["name"]])[0] == IMAGE["name"]
        return 200, {"images": [IMAGE] if there else [], "schema": "", "first": "/v2/images"}

    def _volume(self, method: str, parts: list[str]) -> tuple[int, Any]:
        volumes = self.resources["volumes"]
        if method == "DELETE":
            found(volumes, parts[1])
            del volumes[parts[1]]
            return 202, None
        return 200, {"volumes": list(volumes.values())}

    def _page(self, kind: str, name: str, items: list[dict[str, Any]], query: Any) -> tuple[int, Any]:
        """A page of a list, filtered by what the query names."""
        for key in set(query) - {"limit", "marker", "is_public", "sort_key", "sort_dir", "deleted"}:
            items = [i for i in items if str(i.get(key)).lower() == query[key][0].lower()]
        ids = [i["id"] for i in items]
        start = ids.index(query["marker"][0]) + 1 if "marker" in query else 0
        size = min(PAGE, int(query.get("limit", [PAGE])[0]))
        page = {name: items[start : start + size]}
        if start + size < len(items):
            href = f"{self.url}/{kind}?limit={size}&marker={ids[start + size - 1]}"
            page[f"{name}_links"] = [{"rel": "next", "href": href}]
        return 200, page

    def _id(self) -> str:
        return f"{next(self._ids):08x}-0000-4000-8000-000000000000"

    # ---- Nova

    def _compute(self, method: str, parts: list[str], query: Any, body: Any) -> tuple[int, Any]:
        kind = parts[0]
        if kind == "flavors":
            flavors = [self._flavor(n) for n in FLAVORS]
            if parts[1:] and parts[1] != "detail":
                return 200, {"flavor": found({f["id"]: f for f in flavors}, parts[1])}
            return 200, {"flavors": flavors}
        if kind == "os-availability-zone":
            zones = [{"zoneName": z, "zoneState": {"available": True}, "hosts": None} for z in ZONES]
            return 200, {"availabilityZoneInfo": zones}
        if kind in ("os-keypairs", "os-server-groups"):
            return self._named(method, kind, parts[1:], body)
        if kind == "servers":
            return self._servers(method, parts[1:], query, body)
        raise Refused(404, "NotFound", f"no such thing: {kind}")

    def _flavor(self, name: str) -> dict[str, Any]:
        cores, memory = FLAVORS[name]
        return {"id": str(1 + list(FLAVORS).index(name)), "name": name, "vcpus": cores, "ram": memory, "disk": 20,
                "swap": "", "rxtx_factor": 1.0, "os-flavor-access:is_public": True, "OS-FLV-EXT-DATA:ephemeral": 0,
                "OS-FLV-DISABLED:disabled": False, "links": []}  # fmt: skip

    def _named(self, method: str, kind: str, parts: list[str], body: Any) -> tuple[int, Any]:
        """Key pairs, which are known by their names, and server groups."""
        singular, plural = ("keypair", "keypairs") if kind == "os-keypairs" else ("server_group", "server_groups")
        known = self.resources[kind]
        if method == "POST":
            made = body[singular]
            if kind == "os-keypairs":
                if made["name"] in known:
                    raise Refused(409, "Conflict", f"Key pair '{made['name']}' already exists.")
                made |= {"id": made["name"], "fingerprint": "aa:bb", "user_id": USER, "type": "ssh"}
            else:
                made |= {"id": self._id(), "members": [], "metadata": {}, "project_id": PROJECT, "user_id": USER}
            known[made["id"]] = made
            return 200, {singular: made}
        if not parts:
            items = list(known.values())
            return 200, {plural: [{singular: i} for i in items] if kind == "os-keypairs" else items}
        found(known, parts[0])
        if method == "DELETE":
            del known[parts[0]]
            return (202 if kind == "os-keypairs" else 204), None
        return 200, {singular: known[parts[0]]}

    def _servers(self, method: str, parts: list[str], query: Any, body: Any) -> tuple[int, Any]:
        servers = self.resources["servers"]
        if method == "POST" and not parts:
            return 202, {"server": self._new_server(body)}
        if not parts or parts == ["detail"]:
            items = [self._shown_server(s) for s in servers.values()]
            return self._page("compute/v2.1/servers/detail", "servers", items, query)
        server = found(servers, parts[0])
        if parts[1:] == ["tags"]:
            return 200, {"tags": []}
        if parts[1:] == ["os-interface"]:
            return 200, {"interfaceAttachments": []}
        if parts[1:] == ["metadata"]:
            server["metadata"] |= body["metadata"]
            return 200, {"metadata": server["metadata"]}
        if parts[1:] == ["action"]:
            server["status"] = "SHUTOFF" if "os-stop" in body else "ACTIVE"
            return 202, None
        if method == "DELETE":
            self.resources["ports"][server["port"]] |= {"device_id": "", "device_owner": "", "status": "DOWN"}
            del servers[server["id"]]
            self.deleted(server)
            return 204, None
        return 200, {"server": self._shown_server(server)}

    def _new_server(self, body: dict[str, Any]) -> dict[str, Any]:
        asked = body["server"]
        port = self.resources["ports"].get(asked["networks"][0]["port"])
        if asked["imageRef"] != IMAGE["id"] or asked["flavorRef"] not in {self._flavor(n)["id"] for n in FLAVORS}:
            raise Refused(400, "BadRequest", "Can not find requested image or flavor")
        if asked.get("availability_zone", ZONES[0]) not in ZONES:
            raise Refused(400, "BadRequest", "The requested availability zone is not available")
        if asked.get("key_name") not in self.resources["os-keypairs"]:
            raise Refused(400, "BadRequest", "Invalid key_name provided.")
        if port is None or port["device_id"]:
            raise Refused(409, "PortInUse", "Port is still in use, or there is none")
        server = {"id": self._id(), "name": asked["name"], "status": "ACTIVE", "metadata": asked.get("metadata") or {},
                  "flavor": asked["flavorRef"], "key_name": asked["key_name"], "port": port["id"],
                  "zone": asked.get("availability_zone", ZONES[0]), "created": now()}  # fmt: skip
        port |= {"device_id": server["id"], "device_owner": "compute:nova", "status": "ACTIVE"}
        self.resources["servers"][server["id"]] = server
        self.made += 1
        self.most = max(self.most, len(self.resources["servers"]))
        self.user_data[server["name"]] = base64.b64decode(asked.get("user_data", "")).decode()
        self.created(server | {"user_data": self.user_data[server["name"]]})
        return {"id": server["id"], "links": [], "OS-DCF:diskConfig": "MANUAL", "security_groups": []}

    def _shown_server(self, s: dict[str, Any]) -> dict[str, Any]:
        port = self.resources["ports"].get(s["port"], {"fixed_ips": [], "network_id": "", "security_groups": []})
        network = self.resources["networks"].get(port["network_id"], {"name": ""})
        addresses = [{"addr": ip["ip_address"], "version": 4, "OS-EXT-IPS:type": "fixed",
                      "OS-EXT-IPS-MAC:mac_addr": port["mac_address"]} for ip in port["fixed_ips"]]  # fmt: skip
        groups = [self.resources["security-groups"].get(g, {"name": g})["name"] for g in port["security_groups"]]
        kept = {k: s[k] for k in ("id", "name", "status", "metadata", "key_name", "created", "fault") if k in s}
        return kept | {
            "flavor": {"id": s["flavor"], "links": []},
            "image": {"id": IMAGE["id"], "links": []},
            "addresses": {network["name"]: addresses},
            "security_groups": [{"name": g} for g in groups],
            "updated": s["created"],
            "tenant_id": PROJECT,
            "user_id": USER,
            "hostId": "h",
            "accessIPv4": "",
            "accessIPv6": "",
            "config_drive": "",
            "progress": 100,
            "OS-EXT-AZ:availability_zone": s["zone"],
            "OS-EXT-STS:task_state": None,
            "OS-EXT-STS:vm_state": s["status"].lower(),
            "OS-EXT-STS:power_state": 1,
            "os-extended-volumes:volumes_attached": [],
        }

    # ---- Neutron

    def _network(self, method: str, parts: list[str], query: Any, body: Any) -> tuple[int, Any]:
        kind = parts[0]
        if kind not in NAMES:
            raise Refused(404, "HTTPNotFound", f"no such thing: {kind}")
        name, known = NAMES[kind], self.resources[kind]
        if len(parts) == 1 and method == "GET":
            own = [self._outside()] if kind == "networks" else []
            items = own + [self._shown(kind, r) for r in known.values()]
            return self._page(f"network/v2.0/{kind}", kind.replace("-", "_"), items, query)
        if len(parts) == 1:
            common = {"id": self._id(), "name": "", "description": "", "tenant_id": PROJECT, "project_id": PROJECT,
                      "status": "ACTIVE", "tags": [], "created_at": now(), "updated_at": now()}  # fmt: skip
            made = getattr(self, f"_new_{name}")(common | body[name])
            known[made["id"]] = made
            return 201, {name: self._shown(kind, made)}
        if kind == "networks" and parts[1] == OUTSIDE:
            return 200, {name: self._outside()}
        resource = found(known, parts[1])
        if len(parts) == 3:
            return 200, getattr(self, f"_{parts[2]}")(resource, body)
        if method == "DELETE":
            self._check_unused(kind, resource)
            del known[resource["id"]]
            self._goes_with(kind, resource)
            return 204, None
        if method == "PUT":
            resource |= body[name]
        return 200, {name: self._shown(kind, resource)}

    def _outside(self) -> dict[str, Any]:
        return self._new_network({"id": OUTSIDE, "name": "public", "description": "", "status": "ACTIVE", "tags": [],
                                  "tenant_id": "admin", "project_id": "admin", "created_at": now(),
                                  "updated_at": now(), "router:external": True})  # fmt: skip

    def _shown(self, kind: str, r: dict[str, Any]) -> dict[str, Any]:
        if kind == "networks":
            return r | {"subnets": [s["id"] for s in self._of("subnets", "network_id", r["id"])]}
        if kind == "security-groups":
            return r | {"security_group_rules": self._of("security-group-rules", "security_group_id", r["id"])}
        return r

    def _of(self, kind: str, key: str, value: str) -> list[dict[str, Any]]:
        return [r for r in self.resources[kind].values() if r[key] == value]

    def _new_network(self, r: dict[str, Any]) -> dict[str, Any]:
        return {"admin_state_up": True, "shared": False, "router:external": False, "mtu": 1450, "subnets": [],
                "availability_zone_hints": [], "availability_zones": [], "port_security_enabled": True,
                "dns_domain": ""} | r  # fmt: skip

    def _new_subnet(self, r: dict[str, Any]) -> dict[str, Any]:
        found(self.resources["networks"], r["network_id"])
        hosts = ipaddress.ip_network(r["cidr"])
        pool = [{"start": str(hosts[2]), "end": str(hosts[-2])}]
        made = {"gateway_ip": str(hosts[1]), "allocation_pools": pool, "enable_dhcp": True, "dns_nameservers": [],
                "host_routes": [], "service_types": [], "subnetpool_id": None, "dns_publish_fixed_ip": False,
                "ipv6_address_mode": None, "ipv6_ra_mode": None} | r  # fmt: skip
        self.resources["subnets"][made["id"]] = made
        self._own_port(made, made["allocation_pools"][0]["start"], "network:dhcp", "dhcp")
        return made

    def _own_port(self, subnet: dict[str, Any], address: str, owner: str, device: str) -> dict[str, Any]:
        """A port that the cloud makes for itself; nobody described it."""
        port = self._new_port({"id": self._id(), "name": "", "description": "", "tags": [], "status": "ACTIVE",
                               "tenant_id": PROJECT, "project_id": PROJECT, "network_id": subnet["network_id"],
                               "device_owner": owner, "device_id": device, "created_at": now(), "updated_at": now(),
                               "security_groups": [],
                               "fixed_ips": [{"subnet_id": subnet["id"], "ip_address": address}]})  # fmt: skip
        self.resources["ports"][port["id"]] = port
        return port

    def _new_port(self, r: dict[str, Any]) -> dict[str, Any]:
        found(self.resources["networks"], r["network_id"])
        taken = {ip["ip_address"] for p in self._of("ports", "network_id", r["network_id"]) for ip in p["fixed_ips"]}
        for ip in r["fixed_ips"]:
            subnet = found(self.resources["subnets"], ip["subnet_id"])
            free = (str(a) for a in ipaddress.ip_network(subnet["cidr"]).hosts() if str(a) not in taken)
            if ip.setdefault("ip_address", next(free)) in taken:
                raise Refused(409, "IpAddressInUse", f"Unable to complete operation: {ip['ip_address']} is in use.")
        for group in r["security_groups"]:
            found(self.resources["security-groups"], group)
        number = int(r["id"][:8], 16)
        return {"admin_state_up": True, "device_id": "", "device_owner": "", "allowed_address_pairs": [],
                "mac_address": f"fa:16:3e:00:{number // 256 % 256:02x}:{number % 256:02x}", "extra_dhcp_opts": [],
                "binding:vnic_type": "normal", "binding:host_id": "", "binding:profile": {}, "binding:vif_details": {},
                "binding:vif_type": "unbound", "port_security_enabled": True, "dns_name": "", "dns_assignment": [],
                "qos_policy_id": None} | r  # fmt: skip

    def _new_router(self, r: dict[str, Any]) -> dict[str, Any]:
        gateway = r.get("external_gateway_info") or {}
        if gateway.get("network_id") != OUTSIDE:
            raise Refused(404, "NetworkNotFound", f"Network {gateway.get('network_id')} could not be found.")
        fixed = [{"subnet_id": "outside", "ip_address": "198.51.100.254"}]
        gateway = {"enable_snat": True, "external_fixed_ips": fixed} | gateway
        return {"admin_state_up": True, "distributed": False, "ha": False, "routes": [], "flavor_id": None,
                "availability_zone_hints": []} | r | {"external_gateway_info": gateway}  # fmt: skip

    def _interface(self, router: dict[str, Any], port: dict[str, Any]) -> dict[str, Any]:
        subnet = port["fixed_ips"][0]["subnet_id"]
        return {"id": router["id"], "tenant_id": PROJECT, "project_id": PROJECT, "port_id": port["id"],
                "network_id": port["network_id"], "subnet_id": subnet, "subnet_ids": [subnet], "tags": []}  # fmt: skip

    def _add_router_interface(self, router: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        subnet = found(self.resources["subnets"], body["subnet_id"])
        if any(p["fixed_ips"][0]["subnet_id"] == subnet["id"] for p in self._of("ports", "device_id", router["id"])):
            raise Refused(400, "BadRequest", f"Router already has a port on subnet {subnet['id']}")
        port = self._own_port(subnet, subnet["gateway_ip"], "network:router_interface", router["id"])
        return self._interface(router, port)

    def _remove_router_interface(self, router: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        ports = [p for p in self._of("ports", "device_id", router["id"])
                 if body.get("port_id") in (None, p["id"])
                 and body.get("subnet_id") in (None, p["fixed_ips"][0]["subnet_id"])]  # fmt: skip
        if not ports:
            raise Refused(404, "RouterInterfaceNotFound", f"Router {router['id']} has no such interface")
        if self._of("floatingips", "router_id", router["id"]):
            raise Refused(409, "RouterInterfaceInUseByFloatingIP", "Router interface is required by floating IPs.")
        del self.resources["ports"][ports[0]["id"]]
        return self._interface(router, ports[0])

    def _new_security_group(self, r: dict[str, Any]) -> dict[str, Any]:
        for ethertype in ("IPv4", "IPv6"):
            rule = self._new_security_group_rule({"id": self._id(), "direction": "egress", "ethertype": ethertype,
                                                  "security_group_id": r["id"], "tenant_id": PROJECT,
                                                  "project_id": PROJECT, "description": ""})  # fmt: skip
            self.resources["security-group-rules"][rule["id"]] = rule
        return {"stateful": True, "shared": False} | r

    def _new_security_group_rule(self, r: dict[str, Any]) -> dict[str, Any]:
        return {"protocol": None, "port_range_min": None, "port_range_max": None, "remote_ip_prefix": None,
                "remote_group_id": None, "remote_address_group_id": None} | r  # fmt: skip

    def _new_floatingip(self, r: dict[str, Any]) -> dict[str, Any]:
        port = found(self.resources["ports"], r["port_id"])
        interfaces = self._of("ports", "device_owner", "network:router_interface")
        routers = [p["device_id"] for p in interfaces
                   if p["fixed_ips"][0]["subnet_id"] == port["fixed_ips"][0]["subnet_id"]]  # fmt: skip
        if not routers or r["floating_network_id"] != OUTSIDE:
            raise Refused(404, "ExternalGatewayForFloatingIPNotFound", "External network is not reachable from subnet.")
        if self._of("floatingips", "port_id", port["id"]):
            raise Refused(409, "FloatingIPPortAlreadyAssociated", "The port has a floating IP already.")
        taken = {f["floating_ip_address"] for f in self.resources["floatingips"].values()}
        return r | {"floating_ip_address": self.next_address(port["name"], taken), "router_id": routers[0],
                    "fixed_ip_address": port["fixed_ips"][0]["ip_address"], "dns_name": "", "dns_domain": "",
                    "port_forwardings": [], "port_details": None, "qos_policy_id": None}  # fmt: skip

    def _check_unused(self, kind: str, resource: dict[str, Any]) -> None:
        id_, ports = resource["id"], self.resources["ports"].values()
        uses: dict[str, Callable[[dict[str, Any]], bool]] = {
            "networks": lambda p: p["network_id"] == id_ and p["device_owner"] != "network:dhcp",
            "subnets": lambda p: p["device_owner"] != "network:dhcp" and p["fixed_ips"][0]["subnet_id"] == id_,
            "routers": lambda p: p["device_id"] == id_,
            "security-groups": lambda p: id_ in p["security_groups"],
            "ports": lambda p: p["id"] == id_ and p["device_owner"].startswith("network:"),
        }
        if kind in uses and any(map(uses[kind], ports)):
            raise Refused(409, f"{NAMES[kind].title()}InUse", f"{NAMES[kind]} {id_} is in use.")

    def _goes_with(self, kind: str, gone: dict[str, Any]) -> None:
        """What the cloud removes or changes by itself with a thing that goes."""
        ports, id_ = self.resources["ports"], gone["id"]
        if kind in ("networks", "subnets"):
            key = (lambda p: p["network_id"]) if kind == "networks" else (lambda p: p["fixed_ips"][0]["subnet_id"])
            for port in [p for p in ports.values() if key(p) == id_]:
                del ports[port["id"]]
        if kind == "networks":
            for subnet in self._of("subnets", "network_id", id_):
                del self.resources["subnets"][subnet["id"]]
        if kind == "security-groups":
            for rule in self._of("security-group-rules", "security_group_id", id_):
                del self.resources["security-group-rules"][rule["id"]]
        if kind == "ports":
            for address in self._of("floatingips", "port_id", id_):
                address |= {"port_id": None, "router_id": None, "fixed_ip_address": None, "status": "DOWN"}


def found(things: dict[Any, dict[str, Any]], id_: str) -> dict[str, Any]:
    if id_ not in things:
        raise Refused(404, "NotFound", f"{re.sub(r'[^a-zA-Z0-9-]', '', id_)} could not be found.")
    return things[id_]
