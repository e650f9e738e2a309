"""What targets say of money when their machines cost none."""

from __future__ import annotations

from typing import Any

from ntier_harness.spec import Spec


class Free:
    """A target that rents nothing."""

    rents = False
    keeps_snapshots = False

    def price(self, _spec: Spec, _seconds: float) -> dict[str, Any] | None:
        """What `seconds` of these nodes cost, for the plan; None: nothing."""
        return None

    def price_of_all(self, _legs: list[tuple[Spec, float]], _work: str) -> dict[str, Any] | None:
        """The same of a campaign's sweeps, one after the other, each with its seconds."""
        return None

    def rent(self) -> dict[str, Any] | None:
        """What the nodes that are up cost, for manifests (contracts: `Rent`); None: nothing."""
        return None

    def begin(self, work: str) -> None:
        """From now on machines are rented for this sweep or campaign, within its budget."""

    def afford(self, seconds: float) -> None:
        """Raises BudgetReached if the budget does not last for so many seconds more."""

    def over(self) -> bool:
        """Whether the moment has come after which the budget would be exceeded."""
        return False

    def stay(self) -> None:
        """Nodes that would end by themselves while nobody is there: there are none."""

    def remarks(self) -> list[str]:
        """What a person should know of the machines that are up."""
        return []

    def still_rented(self) -> str:
        """A sentence on machines that go on costing money; empty: none do."""
        return ""

    def give_back(self) -> bool:
        """Whether the machines were rented for this work alone, so that they go with it."""
        return False

    def kept(self) -> str:
        """A sentence on what goes on costing money after `down`; empty: nothing does."""
        return ""
