"""An account of Hetzner Cloud, by its HTTP API. The token is read from the environment for each request."""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

from ntier_harness.errors import WorkError
from ntier_harness.targets.account import OWNER, Thing

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
TRIES, FIRST_WAIT_S = 7, 0.5  # 0.5 + 1 + 2 + ... = 31 s in all
BUSY = (409, 422, 423, 429)  # changed meanwhile, still in use, locked, too many requests


class HcloudAccount:
    """`sleep`: waits so many seconds."""

    def __init__(self, sleep: Callable[[float], None]) -> None:
        self._sleep = sleep

    def find(self, owner: str | None = None) -> list[Thing]:
        selector = f"{OWNER}={owner}" if owner else OWNER
        return [_thing(kind, r) for kind in KINDS for r in self._list(kind, label_selector=selector)]

    def remove(self, things: list[Thing]) -> None:
        for path, kind in KINDS.items():
            for thing in (t for t in things if t.kind == kind):
                self._ask("DELETE", f"/{path}/{thing.id}", gone_is_fine=True)

    def prices(self, location: str) -> dict[str, float]:
        """With VAT, as the account pays it; the public address, which is priced by itself, is added."""
        address = self._address_price(location)
        per_hour = {}
        for type_ in self._list("server_types"):
            for price in type_.get("prices", []):
                if price.get("location") == location:
                    per_hour[type_["name"]] = float(price["price_hourly"]["gross"]) + address
        return per_hour

    def _address_price(self, location: str) -> float:
        pricing = self._ask("GET", "/pricing")["pricing"]
        ipv4 = next((p for p in pricing.get("primary_ips", []) if p.get("type") == "ipv4"), {"prices": []})
        return next((float(p["price_hourly"]["gross"]) for p in ipv4["prices"] if p.get("location") == location), 0.0)

    def _list(self, kind: str, **query: str) -> list[dict[str, Any]]:
        things: list[dict[str, Any]] = []
        page: int | None = 1
        while page:
            text = urllib.parse.urlencode(query | {"page": page, "per_page": 50})
            answer = self._ask("GET", f"/{kind}?{text}")
            things += answer[kind]
            page = answer["meta"]["pagination"]["next_page"]
        return things

    def _ask(self, method: str, path: str, *, gone_is_fine: bool = False) -> dict[str, Any]:
        """Tries again while the API is busy or broken. Raises WorkError with what it said last."""
        for number in range(TRIES):
            status, answer, said = self._once(method, path)
            if 0 < status < 300 or (status == 404 and gone_is_fine):
                return answer
            if status and status not in BUSY and status < 500:
                break
            if number + 1 < TRIES:
                self._sleep(FIRST_WAIT_S * 2**number)
        hint = "; is HCLOUD_TOKEN right, and may it write?" if status in (401, 403) else ""
        raise WorkError(f"hcloud: {method} {path.partition('?')[0]}: {said}{hint}")

    def _once(self, method: str, path: str) -> tuple[int, dict[str, Any], str]:
        """(HTTP status or 0, answer, what went wrong)."""
        endpoint = os.environ.get("HCLOUD_ENDPOINT") or ENDPOINT
        request = urllib.request.Request(  # noqa: S310 (the endpoint is the provider's, or the person's own)
            endpoint + path, method=method, headers={"Authorization": f"Bearer {os.environ.get('HCLOUD_TOKEN', '')}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
                text = response.read()
                return response.status, json.loads(text) if text else {}, ""
        except urllib.error.HTTPError as error:
            return error.code, {}, f"{error.code} {_message(error)}"
        except (OSError, ValueError, http.client.HTTPException) as error:
            return 0, {}, str(getattr(error, "reason", error)) or type(error).__name__


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
