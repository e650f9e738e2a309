"""Digests of files and of this program: whether a result is still the one that would be computed now."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ntier_analysis.contracts.files import STREAM_BYTES, opened

LIBRARIES = ("jinja2", "matplotlib", "numpy", "pandas", "pyarrow", "scipy")
"""Whose versions show in numbers, figures and pages."""


def of_files(paths: Iterable[Path], base: Path) -> str:
    """SHA-256 over the names (relative to `base`) and contents of files, in the order given. Raises DataError for one
    that is no regular file or cannot be read."""
    digest = hashlib.sha256()
    for path in paths:
        with opened(path, STREAM_BYTES) as file:
            digest.update(f"{path.relative_to(base).as_posix()}\0".encode())
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


@cache
def of_program() -> str:
    """SHA-256 over this package's programs, templates and styles, and the versions of Python and of LIBRARIES."""
    base = Path(__file__).parent
    files = [p for p in sorted(base.rglob("*")) if p.is_file() and is_source(p.relative_to(base))]
    versions = [f"python {sys.version}", *(f"{name} {_version(name)}" for name in LIBRARIES)]
    return hashlib.sha256("\n".join([of_files(files, base), *versions]).encode()).hexdigest()


def is_source(path: Path) -> bool:
    """Whether a file of this package, named relative to it, decides what is computed. What Python and numba keep in
    `__pycache__` comes and goes while programs run (also under temporary names), and the demo's data are input."""
    return "__pycache__" not in path.parts and path.suffix != ".zip"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # put on the path without its metadata
        return "unknown"
