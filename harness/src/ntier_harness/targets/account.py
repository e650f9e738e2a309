"""What a provider's account holds of ours. Each provider has its own module that keeps this."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from ntier_harness.targets.rental import Offer

OWNER, WORK, EXPIRES, NODE = "ntier-owner", "ntier-work", "ntier-expires", "ntier-node"
"""Labels on everything that is rented."""
OFF = ("off", "stopping", "deleting", "error", "unknown")
"""Status of a machine that is of no use any more."""


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
    fault: str = ""
    """What the provider says went wrong with it."""

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

    def lacks(self, offer: Offer) -> list[str]:
        """What the offer names and the provider does not have, each with what there is; empty if nothing, or if
        Terraform's provider says it just as well."""


@dataclass(frozen=True)
class Snapshot:
    """The disk of a machine, kept by the provider with our label. `disk_gb`: of the machine that it was taken from; no
    smaller one can be made from it. `price_per_month`: in the account's currency; None while its size is not known."""

    id: str
    name: str
    labels: dict[str, str]
    status: str
    """`available`, `creating`, or what went wrong."""
    disk_gb: float
    size_gb: float | None = None
    price_per_month: float | None = None
    architecture: str = ""
    """Of the machine's processor; a machine of another one does not start from it."""

    @property
    def owner(self) -> str:
        return self.labels.get(OWNER, "")


@dataclass(frozen=True)
class Hardware:
    """What a machine type must have in common with a snapshot."""

    disk_gb: float
    architecture: str = ""


class KeepsSnapshots(Account, Protocol):
    """An account that can make snapshots of machines. They are in no answer of `find`: they outlive `down`."""

    def snapshots(self, owner: str | None = None) -> list[Snapshot]:
        """Those with our label, or with this owner's."""

    def shut_down(self, machine: Thing, *, at_once: bool = False) -> None:
        """Asks the machine to end; `at_once`: ends it. It is off when `find` says so."""

    def take_snapshot(self, machine: Thing, name: str, labels: dict[str, str]) -> None:
        """Asks for it, once: after an error it may be there all the same."""

    def remove_snapshots(self, snapshots: list[Snapshot]) -> None:
        """What is gone already is no error."""

    def hardware(self) -> dict[str, Hardware]:
        """Of each machine type."""
