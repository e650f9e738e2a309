"""Rules that data cannot express, in a system's own Python file (`rules:` in its system.yaml).

The file defines a class `Rules` with these methods; the harness makes one and asks it. It sees a request as values and
touches nothing."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ntier_harness.errors import RequestError


@dataclass(frozen=True)
class Request:
    """What a rule may know: nodes of each tier, choice and traits of each variant, the workload, the data, the settings
    that were given, and all of them (`values`)."""

    counts: Mapping[str, int]
    chosen: Mapping[str, str]
    letters: Mapping[str, str]
    """Variant -> letter in the notation."""
    traits: Mapping[str, Mapping[str, Any]]
    workload: str
    writes: bool
    given: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    data_profile: str = ""
    workers: int = 1
    """Real users, or workers, of the largest load."""
    memory_bytes: Mapping[str, int | None] = field(default_factory=dict)
    """Of each tier's nodes, at this scale; None: a machine of its own."""
    allowed: Callable[[str], Mapping[str, Sequence[str]]] = lambda _: {}
    """Setting -> choice of the variant that decides it -> values that it allows; only choices that work with the others
    of the request."""


class Rules(Protocol):
    def defaults(self, request: Request) -> dict[str, Any]:
        """Defaults that follow from other values; what was given stands."""

    def check(self, request: Request) -> None:
        """Raises ValueError with what is wrong and what is allowed."""


class NoRules:
    """Of a system that needs none."""

    def defaults(self, _request: Request) -> dict[str, Any]:
        return {}

    def check(self, _request: Request) -> None:
        return None


def load(file: Path | None) -> Rules:
    """Raises RequestError if the file has no class `Rules` with its methods."""
    if file is None:
        return NoRules()
    spec = importlib.util.spec_from_file_location(f"ntier_system_{file.parent.name.replace('-', '_')}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise RequestError(f"{file}: {type(error).__name__}: {error}") from None
    made = getattr(module, "Rules", None)
    if not isinstance(made, type) or not all(callable(getattr(made, name, None)) for name in ("defaults", "check")):
        raise RequestError(f"{file}: expected a class Rules with defaults and check (ntier_harness.systems.rules)")
    try:
        return made()
    except Exception as error:
        raise RequestError(f"{file}: Rules(): {type(error).__name__}: {error}") from None
