"""Every change that must survive a crash goes through here: whole or absent, never half.

`NTIER_CRASH_AT=n` ends the process, as kill -9 would, at the n-th durable step: tests walk through all n."""

from __future__ import annotations

import os
from pathlib import Path

_count = 0


def step(_what: str) -> None:
    """A point at which a crash is worth testing: before, between and after the parts of a durable change."""
    global _count
    _count += 1
    if _count == int(os.environ.get("NTIER_CRASH_AT") or 0):
        os._exit(137)


def steps() -> int:
    """Durable steps so far in this process."""
    return _count


def _sync_dir(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Replaces `path` durably: temporary file in the same folder, fsync, rename, fsync of the folder."""
    temporary = path.with_name(f".{path.name}.tmp")
    step(f"begin {path.name}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(fd, "w") as file:
        file.write(text)
        file.flush()
        step(f"written {path.name}")
        os.fsync(file.fileno())
    step(f"synced {path.name}")
    os.replace(temporary, path)
    step(f"renamed {path.name}")
    _sync_dir(path.parent)


def remove(path: Path) -> None:
    step(f"remove {path.name}")
    path.unlink(missing_ok=True)
    _sync_dir(path.parent)


def rename(old: Path, new: Path) -> None:
    step(f"rename {old.name}")
    os.rename(old, new)
    step(f"renamed {new.name}")
    _sync_dir(new.parent)
