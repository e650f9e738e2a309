"""Brings a trial's files home from the nodes and compresses what is big."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

from ntier_analysis.contracts.nodes import Node

from ntier_harness.errors import WorkError
from ntier_harness.ssh import Nodes

COMPRESS_FROM_BYTES = 32_768  # below, a compressed file saves nothing worth the extra step for a reader
ALWAYS = (
    "interactions.jtl.csv",
    "thinks.csv",
    "situations.csv",
    "cgroup_cpu.csv",
    "cgroup_mem_io.csv",
    "host_stat.csv",
    "pressure.csv",
)
KEEP = (".zst", ".png", ".pid", ".rc")
LEVEL = 3  # zstd; higher levels cost time between trials and save 4 % (measured on sysstat files)


def fetch(nodes: Nodes, node: Node, directory: str, into: Path, limit_s: float) -> None:
    """One tar stream (zstd) of the node's trial folder, unpacked into `into`. Raises WorkError naming the node, also
    after `limit_s`."""
    import zstandard

    archive = into.with_name(f".{node.name}.tar.zst")
    into.mkdir(parents=True, exist_ok=True)
    try:
        nodes.fetch(node, f"ntier-node pack {directory}", archive, limit_s)
        unpack(archive, into)
    except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
        raise WorkError(f"collect {node.name}: {error}") from None
    finally:
        archive.unlink(missing_ok=True)


def unpack(archive: Path, into: Path) -> None:
    """A tar stream, zstd or plain, without links, devices or paths that lead out of `into`."""
    import zstandard

    with archive.open("rb") as file:
        zstd = file.read(4) == b"\x28\xb5\x2f\xfd"
        file.seek(0)
        stream = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) if zstd else file
        with tarfile.open(fileobj=stream, mode="r|") as tar:
            tar.extractall(into, filter="data")
    entries = list(into.iterdir())
    if len(entries) == 1 and entries[0].is_dir() and entries[0].name not in ("logs", "config"):
        for path in list(entries[0].iterdir()):  # the stream carried the folder itself
            shutil.move(str(path), into / path.name)
        entries[0].rmdir()


def compress(directory: Path) -> None:
    """Compresses what the contract wants compressed and everything else that is big, below `directory`."""
    import zstandard

    compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
    for path in [p for p in directory.rglob("*") if p.is_file() and not p.is_symlink()]:
        if path.name == "manifest.json" or path.suffix in KEEP:
            continue
        if path.name in ALWAYS or path.stat().st_size >= COMPRESS_FROM_BYTES:
            packed = path.with_name(path.name + ".zst")
            try:
                with path.open("rb") as source, packed.open("wb") as out:
                    compressor.copy_stream(source, out)
            except OSError:
                packed.unlink(missing_ok=True)  # the file itself stays
                raise
            path.unlink()
