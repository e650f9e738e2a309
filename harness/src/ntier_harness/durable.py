"""Every change that must survive a crash goes through here: whole or absent, never half.

`NTIER_CRASH_AT=n` ends the process, as kill -9 would, at the n-th durable step: tests walk through all n."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from ntier_analysis.contracts.files import sync_folder

from ntier_harness.errors import WorkError

DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)

_count = 0


def is_disk(error: BaseException | None) -> bool:
    """Whether the error means that the disk takes no more data."""
    return isinstance(error, OSError) and error.errno in DISK


@contextlib.contextmanager
def errors_named() -> Iterator[None]:
    """Turns an error with our own files into a WorkError that names the file and what to do."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        what = f"{error.filename or 'a file'}: {error.strerror or error}"
        raise WorkError(f"{what}{'; make room, then the same command goes on' if is_disk(error) else ''}") from error


def step(_what: str) -> None:
    """A point at which a crash is worth testing: before, between and after the parts of a durable change."""
    global _count
    _count += 1
    if _count == int(os.environ.get("NTIER_CRASH_AT") or 0):
        os._exit(137)


def steps() -> int:
    """Durable steps so far in this process."""
    return _count


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Replaces `path` durably: temporary file in the same folder, fsync, rename, fsync of the folder."""
    temporary = path.with_name(f".{path.name}.tmp")
    step(f"begin {path.name}")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(fd, "w") as file:
            file.write(text)
            file.flush()
            step(f"written {path.name}")
            os.fsync(file.fileno())
        step(f"synced {path.name}")
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        error.filename = str(path)  # the error of a full disk names the file only if it came from opening it
        raise
    step(f"renamed {path.name}")
    sync_folder(path.parent)


def remove(path: Path) -> None:
    step(f"remove {path.name}")
    path.unlink(missing_ok=True)
    sync_folder(path.parent)


def rename(old: Path, new: Path) -> None:
    step(f"rename {old.name}")
    os.rename(old, new)
    step(f"renamed {new.name}")
    sync_folder(new.parent)
