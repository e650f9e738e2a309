"""The `nodes` list: the only thing that provisioning hands on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ntier_analysis.contracts.files import RECORD_BYTES, read_json
from ntier_analysis.errors import DataError

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,199}$")]
"""What names files and folders: letters, digits and . _ + -."""
Capacity = Annotated[float, Field(gt=0)]


def said(error: ValidationError) -> str:
    """The first thing that is wrong: field, value and what is allowed."""
    first = error.errors()[0]
    where = ".".join(str(p) for p in first["loc"]) or "file"
    value = "" if first["type"] in ("missing", "json_invalid") else f" (found {repr(first['input'])[:80]})"
    return f"{where}: {' '.join(first['msg'].split())}{value}"


class Node(BaseModel):
    """One machine of the deployment (or a client)."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    name: Name
    tier: Name
    index: int
    node_type: str
    address: str
    role: str
    image: str | None = None
    cpu_cores: Capacity | None = None
    """CPU capacity in cores once limits are in force; None = not limited."""
    memory_bytes: Annotated[int, Field(gt=0)] | None = None
    disk_bytes_s: Capacity | None = None
    """Bytes per second that the disk reads, and as many that it writes; None = not limited."""
    network_bits_s: Capacity | None = None
    """Bits per second in each direction; None = not limited."""
    cores: Annotated[int, Field(gt=0)] | None = None
    """Cores of the node's own machine (target hosts); None = it shares one with the others."""


def read_nodes(path: Path) -> list[Node]:
    """Reads `nodes.json`. Raises FileNotFoundError, or DataError naming the node and the field that is wrong."""
    path.stat()
    document = read_json(path, RECORD_BYTES)
    if not isinstance(document, list):
        raise DataError(f"{path}: expected a list of nodes")
    try:
        return [Node.model_validate(item) for item in document]
    except ValidationError as error:
        raise DataError(f"{path}: {said(error)}") from None
