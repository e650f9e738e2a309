"""What a provider's account holds of ours. Each provider has its own module that keeps this."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

OWNER, WORK, EXPIRES, NODE = "ntier-owner", "ntier-work", "ntier-expires", "ntier-node"
"""Labels on everything that is rented."""


@dataclass(frozen=True)
class Thing:
    """A machine, address, disk, network, filter, group or key with our label."""

    kind: str
    id: str
    name: str
    labels: dict[str, str] = field(default_factory=dict)
    detail: str = ""
    """Type or address, for a person."""
    status: str = ""

    @property
    def owner(self) -> str:
        return self.labels.get(OWNER, "")

    @property
    def expires_s(self) -> float | None:
        """When it should be gone, UTC epoch; None if it does not say."""
        text = self.labels.get(EXPIRES, "")
        return float(text) if text.isdigit() else None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Account(Protocol):
    """Raises WorkError for what the provider does not answer; no message has a secret in it."""

    def find(self, owner: str | None = None) -> list[Thing]:
        """Everything with our label, or with this owner's; machines first."""

    def remove(self, things: list[Thing]) -> None:
        """Deletes them, in an order that works. What is gone already is no error."""

    def prices(self, location: str) -> dict[str, float]:
        """Machine type -> what an hour costs today, as the provider itself says; empty if it does not."""
