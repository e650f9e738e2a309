"""What is wrong with a key of a `system.yaml`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ntier_harness.errors import unknown

Key = tuple[str | int, ...]
"""Where it is, from the top."""


@dataclass(frozen=True)
class Problem:
    """Something wrong with one key of a file."""

    file: Path
    line: int | None
    key: str
    text: str

    def __str__(self) -> str:
        line = f", line {self.line}" if self.line else ""
        return f"{self.file}{line}: {self.key}: {self.text}" if self.key else f"{self.file}{line}: {self.text}"


def among(key: Key, name: str, allowed: Any, what: str) -> Iterator[tuple[Key, str]]:
    """The problem of a name that is not allowed, if it is not."""
    if name not in allowed:
        yield key, str(unknown(what, name, allowed))
