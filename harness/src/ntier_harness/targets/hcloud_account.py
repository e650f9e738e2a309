"""An account of Hetzner Cloud, by its HTTP API. The token is read from the environment for each request."""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from ntier_harness.targets.account import OWNER, Hardware, Snapshot, Thing
from ntier_harness.targets.asking import Answer, HttpAccount, is_token

ENDPOINT = "https://api.hetzner.cloud/v1"
KINDS = {
    "servers": "machine",
    "primary_ips": "address",
    "volumes": "disk",
    "firewalls": "firewall",
    "networks": "network",
    "placement_groups": "group",
    "ssh_keys": "key",
}
"""In the order in which they can be deleted."""


class HcloudAccount(HttpAccount):
    name = "hcloud"
    hint = "is HCLOUD_TOKEN right, and may it write?"
    kinds = tuple(KINDS.values())

    def find(self, owner: str | None = None) -> list[Thing]:
        selector = f"{OWNER}={owner}" if owner else OWNER
        return [_thing(kind, r) for kind in KINDS for r in self._list(kind, label_selector=selector)]

    def delete(self, thing: Thing) -> None:
        path = next(path for path, kind in KINDS.items() if kind == thing.kind)
        self.ask("DELETE", f"/{path}/{thing.id}", gone_is_fine=True)

    def prices(self, location: str) -> dict[str, float]:
        """With VAT, as the account pays it; the public address, which is priced by itself, is added."""
        address = self._address_price(location)
        per_hour = {}
        for type_ in self._list("server_types"):
            for price in type_.get("prices", []):
                if price.get("location") == location:
                    per_hour[type_["name"]] = float(price["price_hourly"]["gross"]) + address
        return per_hour

    # ---- snapshots, which the API calls images ------------------------------------------------------------------

    def snapshots(self, owner: str | None = None) -> list[Snapshot]:
        selector = f"{OWNER}={owner}" if owner else OWNER
        found = self._list("images", type="snapshot", label_selector=selector)
        price = self._snapshot_price() if found else 0.0
        return [_snapshot(r, price) for r in found]

    def shut_down(self, machine: Thing, *, at_once: bool = False) -> None:
        self.ask("POST", f"/servers/{machine.id}/actions/{'poweroff' if at_once else 'shutdown'}", {})

    def take_snapshot(self, machine: Thing, name: str, labels: dict[str, str]) -> None:
        body = {"type": "snapshot", "description": name, "labels": labels}
        self.ask("POST", f"/servers/{machine.id}/actions/create_image", body, tries=1)

    def remove_snapshots(self, snapshots: list[Snapshot]) -> None:
        for snapshot in snapshots:
            self.ask("DELETE", f"/images/{snapshot.id}", gone_is_fine=True)

    def hardware(self) -> dict[str, Hardware]:
        return {t["name"]: Hardware(float(t["disk"]), t["architecture"]) for t in self._list("server_types")}

    def _snapshot_price(self) -> float:
        """Of a GB and month, with VAT."""
        return float(self.ask("GET", "/pricing")["pricing"]["image"]["price_per_gb_month"]["gross"])

    # ---- requests -----------------------------------------------------------------------------------------------

    def _address_price(self, location: str) -> float:
        pricing = self.ask("GET", "/pricing")["pricing"]
        ipv4 = next((p for p in pricing.get("primary_ips", []) if p.get("type") == "ipv4"), {"prices": []})
        return next((float(p["price_hourly"]["gross"]) for p in ipv4["prices"] if p.get("location") == location), 0.0)

    def _list(self, kind: str, **query: str) -> list[dict[str, Any]]:
        things: list[dict[str, Any]] = []
        page: int | None = 1
        while page:
            text = urllib.parse.urlencode(query | {"page": page, "per_page": 50})
            answer = self.ask("GET", f"/{kind}?{text}")
            things += answer[kind]
            page = answer["meta"]["pagination"]["next_page"]
        return things

    def once(self, method: str, path: str, body: dict[str, Any] | None) -> Answer:
        endpoint = os.environ.get("HCLOUD_ENDPOINT") or ENDPOINT
        token = os.environ.get("HCLOUD_TOKEN", "")
        if not is_token(token):
            return Answer(401, said="HCLOUD_TOKEN has a sign in it that no token has")
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 (the endpoint is the provider's, or the person's own)
            endpoint + path, method=method, data=data, headers=headers
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
                text = response.read()
                return Answer(response.status, json.loads(text) if text else {})
        except urllib.error.HTTPError as error:
            return Answer(error.code, said=f"{error.code} {_message(error)}")
        except (OSError, ValueError, http.client.HTTPException) as error:
            return Answer(0, said=str(getattr(error, "reason", error)) or type(error).__name__)


def _message(error: urllib.error.HTTPError) -> str:
    try:
        said = json.loads(error.read())["error"]
        return f"{said['message']} ({said['code']})"
    except (ValueError, KeyError, TypeError, OSError, http.client.HTTPException):
        return str(error.reason)


def _thing(kind: str, r: dict[str, Any]) -> Thing:
    detail = {
        "servers": lambda: r["server_type"]["name"],
        "primary_ips": lambda: r["ip"],
        "networks": lambda: r["ip_range"],
    }.get(kind, lambda: "")()
    return Thing(KINDS[kind], str(r["id"]), r["name"], r.get("labels") or {}, detail, r.get("status", ""))


def _snapshot(r: dict[str, Any], gb_month: float) -> Snapshot:
    size = r.get("image_size")
    price = None if size is None else round(size * gb_month, 4)
    name = r.get("description") or f"snapshot {r['id']}"
    labels, disk_gb = r.get("labels") or {}, float(r["disk_size"])
    return Snapshot(str(r["id"]), name, labels, r["status"], disk_gb, size, price, r["architecture"])
