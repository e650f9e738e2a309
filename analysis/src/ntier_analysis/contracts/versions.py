"""Versions of the components under test: `role.component` -> version, as the manifest has them."""

from __future__ import annotations

from collections.abc import Mapping

UNKNOWN = "unknown"
"""A program that did not run when it was asked; it differs from nothing."""
MAKERS = ("terraform", "incus")
"""Programs that make the nodes; nothing of them runs in a trial."""


def tested(versions: Mapping[str, str]) -> dict[str, str]:
    """What is under test and known."""
    return {k: v for k, v in versions.items() if k not in MAKERS and v != UNKNOWN}


def differing(then: Mapping[str, str], now: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """(component, version then, version now) of components that both know and whose versions differ, by name."""
    before, after = tested(then), tested(now)
    return [(k, before[k], after[k]) for k in sorted(before.keys() & after.keys()) if before[k] != after[k]]
