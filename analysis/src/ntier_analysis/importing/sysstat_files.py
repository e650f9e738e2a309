"""Files of sysstat: its JSON as it is, its own binary format by the sadf of this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ntier_analysis.errors import DataError
from ntier_analysis.parsers.csvfile import read_bytes
from ntier_analysis.parsers.sysstat import cpus, sysstat

TIERS = ("web", "app", "middleware", "db", "client", "controller", "host")
_TIER = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
TIMEOUT_S = 120
MEMORY_BYTES = 2 * 2**30
"""sadf has had readers that a crafted file could make allocate without end (CVE-2022-39377)."""
CONVERT = "convert it on the machine that wrote it: LC_ALL=C TZ=UTC sadf -j FILE -- -A > FILE.json"


@dataclass(frozen=True)
class NodeFile:
    """One node's sysstat file; `offset_s`: the node's clock minus the client's."""

    node: str
    tier: str
    path: Path
    offset_s: float = 0.0

    @classmethod
    def parse(cls, text: str, folder: Path = Path()) -> NodeFile:
        """`NODE=FILE` or `NODE=FILE:TIER`, TIER any name; without one the node's name says it if it is that of a known
        tier (`db3`). Raises DataError."""
        node, equals, rest = text.partition("=")
        path, _, tier = rest.rpartition(":")
        if not _TIER.fullmatch(tier) or not path:
            path, tier = rest, re.sub(r"[-_.]?\d*$", "", node)
        if not equals or not node or not path:
            raise DataError(f"sysstat file {text!r}: expected NODE=FILE or NODE=FILE:TIER")
        if tier not in TIERS and rest == path:
            names = ", ".join(TIERS)
            raise DataError(f"sysstat file {text!r}: the tier of {node} is missing; put it behind the file: "
                            f"{names}, or any other name")  # fmt: skip
        return cls(node, tier, folder / path)


def read_node(file: NodeFile, *, containers: bool) -> tuple[pd.DataFrame, int | None]:
    """Tidy samples on the client's clock, with the CPU use in cores, and the number of CPUs (None in a container)."""
    content = _json(file.path)
    frame = sysstat(file.path, own_machine=not containers, content=content)
    if frame.empty:
        raise DataError(f"{file.path}: no records{_versions(file.path)}; {CONVERT}")
    frame = frame.assign(t_s=frame["t_s"] - file.offset_s, node=file.node, tier=file.tier, source="sysstat")
    if containers:
        return frame, None
    cores = cpus(file.path, content)
    busy = frame[(frame["resource"] == "cpu") & (frame["metric"] == "utilization_pct")]
    used = busy.assign(metric="used_cores", unit="cores", value=busy["value"] * cores / 100)
    return pd.concat([frame, used], ignore_index=True), cores


def _json(path: Path) -> bytes:
    content = read_bytes(path)
    if content.lstrip()[:1] == b"{":
        return content
    if content.lstrip()[:1] in (b"<", b"#") or content[:5] == b"Linux":
        raise DataError(f"{path}: neither sysstat's own format nor its JSON; {CONVERT}")
    return _run(path, content, "-j", "--", "-A")


def _run(path: Path, content: bytes, *arguments: str) -> bytes:
    """sadf on the (decompressed) content, with UTC, a time-out and an upper bound of its memory."""
    program = shutil.which("sadf")
    if program is None:
        raise DataError(f"{path}: sysstat's own format, and there is no sadf here; install sysstat, or {CONVERT}")
    with tempfile.NamedTemporaryFile(suffix=".sa") as file:
        file.write(content)
        file.flush()
        environment = {**os.environ, "TZ": "UTC", "LC_ALL": "C", "S_TIME_FORMAT": "ISO"}
        command = [program, arguments[0], file.name, *arguments[1:]]
        try:
            done = subprocess.run(
                command, capture_output=True, env=environment, timeout=TIMEOUT_S, preexec_fn=_limit, check=False
            )
        except subprocess.TimeoutExpired:
            raise DataError(f"{path}: sadf took more than {TIMEOUT_S} s") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().replace(file.name, str(path))
        raise DataError(f"{path}: sadf cannot read it ({' '.join(said.split())[:200]}); {CONVERT}")
    return done.stdout


def _limit() -> None:
    import resource  # there is none on Windows, nor a sadf

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def _versions(path: Path) -> str:
    """sadf says nothing of a file that a later version wrote: it gives no records and exit code 0."""
    content = read_bytes(path)
    if content.lstrip()[:1] == b"{" or shutil.which("sadf") is None:
        return ""
    wrote = re.search(rb"sysstat version ([\d.]+)", _run(path, content, "-H"))
    here = subprocess.run(["sadf", "-V"], capture_output=True, check=False)
    reads = re.search(rb"sysstat version ([\d.]+)", here.stdout + here.stderr)
    if not wrote or not reads or wrote[1] == reads[1]:
        return ""
    return f" (sysstat {wrote[1].decode()} wrote it, the sadf here is {reads[1].decode()})"
