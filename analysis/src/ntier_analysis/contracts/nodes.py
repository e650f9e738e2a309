"""The `nodes` list: the only thing that provisioning hands on."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict


class Node(BaseModel):
    """One machine of the deployment (or a client)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    tier: str
    index: int
    node_type: str
    address: str
    role: str
    image: str | None = None
    cpu_cores: float | None = None
    """CPU capacity in cores once limits are in force; None = not limited."""
    memory_bytes: int | None = None
    disk_bytes_s: float | None = None
    """Bytes per second that the disk reads, and as many that it writes; None = not limited."""
    network_bits_s: float | None = None
    """Bits per second in each direction; None = not limited."""
    cores: int | None = None
    """Cores of the node's own machine (target hosts); None = it shares one with the others."""


def read_nodes(path: Path) -> list[Node]:
    """Reads `nodes.json`. Raises pydantic.ValidationError for a node that does not follow the contract."""
    return [Node.model_validate(item) for item in json.loads(path.read_text())]
