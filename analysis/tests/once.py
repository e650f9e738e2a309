"""What several tests want is made once for all processes of a run of the tests: the fixture `made_once`, for helpers of
tests, which name what they want by what it is made of."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

Make = Callable[[Path], object]
"""Fills a folder."""

made_once: Callable[[str, Make], Path] | None = None
"""The fixture; None outside of tests (analysis/bench)."""


def shared(kind: str, parts: object, make: Make) -> Path:
    """The folder that `make` has filled, to be read only. `parts`: what decides its content, told apart by `repr`."""
    return made_once(f"{kind}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}", make)


def copied(kind: str, parts: object, make: Make, target: Path) -> None:
    """Fills `target` with a copy of it."""
    if made_once is None:
        make(target)
    else:
        shutil.copytree(shared(kind, parts, make), target, dirs_exist_ok=True)
