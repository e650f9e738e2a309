"""Snapshots in the fake of Hetzner Cloud, whose API calls them images."""

from __future__ import annotations

import time
from typing import Any

BASE = 7
"""Number of the image debian-13."""
GB_MONTH = 0.0136
"""Price of a stored GB for a month."""
SIZE_GB = 1.5


class Snapshots:
    """`snapshots`: number -> record; they are not counted with what `down` must leave none of. `snapshot_s`: how long
    one takes, in which its server is locked. `spoilt`: how many of the next ones fail. `stopped`: called with the
    record of a server that is to be off, `taken` with those of server and snapshot, `dropped` with that of a snapshot
    (bench/rented_local.py)."""

    snapshots: dict[int, dict[str, Any]]
    resources: dict[str, dict[Any, dict[str, Any]]]
    snapshot_s: float
    spoilt: int

    def image_ready(self, image: dict[str, Any]) -> dict[str, Any]:
        if image["status"] == "creating" and time.monotonic() >= image["ready"]:
            image |= {"status": image["becomes"], "image_size": SIZE_GB}
        return image

    def shown_image(self, image: dict[str, Any]) -> dict[str, Any]:
        hidden = ("ready", "becomes", "was_off")
        return {k: v for k, v in self.image_ready(image).items() if k not in hidden}

    def is_locked(self, server: dict[str, Any]) -> bool:
        ours = (i for i in self.snapshots.values() if i["created_from"]["id"] == server["id"])
        return any(self.image_ready(i)["status"] == "creating" for i in ours)

    def new_snapshot(self, number: int, server: dict[str, Any], body: dict[str, Any], disk_gb: int) -> dict[str, Any]:
        self.spoilt -= 1
        image = {
            "id": number, "name": None, "type": "snapshot", "status": "creating", "architecture": "x86",
            "description": body["description"], "labels": body.get("labels") or {}, "image_size": None,
            "disk_size": disk_gb, "created_from": {"id": server["id"], "name": server["name"]}, "bound_to": None,
            "os_flavor": "debian", "os_version": "13", "created": server["created"], "protection": {"delete": False},
            "ready": time.monotonic() + self.snapshot_s, "was_off": server["status"] == "off",
            "becomes": "unavailable" if self.spoilt >= 0 else "available",
        }  # fmt: skip
        self.snapshots[number] = image
        return image
