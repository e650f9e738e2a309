"""Files of sysstat: its own binary format, or its JSON."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ntier_analysis.contracts import implied
from ntier_analysis.contracts.files import read_bytes
from ntier_analysis.errors import DataError
from ntier_analysis.parsers.sysstat import cpus, host, sysstat
from ntier_analysis.sysstat import is_sa

TIERS = (*implied.TIERS, "client", "controller", "host")
_TIER = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
EXPECTED = "expected is what `sar -o FILE 1` or `/usr/lib/sysstat/sadc -S XALL 1 FILE` wrote"


@dataclass(frozen=True)
class NodeFile:
    """One node's sysstat file; `offset_s`: the node's clock minus the client's."""

    node: str
    tier: str
    path: Path
    offset_s: float = 0.0

    @classmethod
    def parse(cls, text: str, folder: Path = Path(), kind: str = "sysstat file") -> NodeFile:
        """`NODE=FILE` or `NODE=FILE:TIER`, TIER any name; without one the node's name says it if it is that of a known
        tier (`db3`). `kind`: what FILE is, for messages. Raises DataError."""
        node, equals, rest = text.partition("=")
        path, _, tier = rest.rpartition(":")
        if not _TIER.fullmatch(tier) or not path:
            path, tier = rest, re.sub(r"[-_.]?\d*$", "", node)
        if not equals or not node or not path:
            what = kind.split()[-1].upper()
            raise DataError(f"{kind} {text!r}: expected NODE={what} or NODE={what}:TIER")
        if tier not in TIERS and rest == path:
            names = ", ".join(TIERS)
            raise DataError(f"{kind} {text!r}: the tier of {node} is missing; put it behind the {kind.split()[-1]}: "
                            f"{names}, or any other name")  # fmt: skip
        return cls(node, tier, folder / path)


def read_node(file: NodeFile, *, containers: bool) -> tuple[pd.DataFrame, int | None]:
    """Tidy samples on the client's clock, with the CPU use in cores, and the number of CPUs (None in a container).
    `attrs["host"]`: the machine that wrote the file."""
    content = read_bytes(file.path)
    if content.removeprefix(BOM_UTF8).lstrip()[:1] != b"{" and not is_sa(content):
        raise DataError(f"{file.path}: neither sysstat's own format nor its JSON; {EXPECTED}")
    frame = sysstat(file.path, own_machine=not containers, content=content)
    if frame.empty:
        raise DataError(f"{file.path}: no records; {EXPECTED}")
    frame = frame.assign(t_s=frame["t_s"] - file.offset_s, node=file.node, tier=file.tier, source="sysstat")
    frame.attrs["host"] = host(file.path, content)
    if containers:
        return frame, None
    cores = cpus(file.path, content)
    busy = frame[(frame["resource"] == "cpu") & (frame["metric"] == "utilization_pct")]
    used = busy.assign(metric="used_cores", unit="cores", value=busy["value"] * cores / 100)
    return pd.concat([frame, used], ignore_index=True), cores  # both have the attrs
