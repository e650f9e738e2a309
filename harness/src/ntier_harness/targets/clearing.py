"""The part of a target that rents machines which sees to it that nothing is left: it asks the provider, not
Terraform's state."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.files import read_text

from ntier_harness import durable
from ntier_harness.errors import RequestError, WorkError
from ntier_harness.paths import Paths
from ntier_harness.runner import Runner
from ntier_harness.targets.account import NODE, OFF, WORK, Account, Thing
from ntier_harness.targets.rental import Ledger
from ntier_harness.targets.terraform import Terraform

ROUNDS = 20
"""How often `down` looks whether anything is left, SETTLE_S apart."""
SETTLE_S = 2.0
"""A machine that was requested just before a crash may appear this much later. So the API must show nothing twice, this
far apart."""


class Clearing:
    name: str
    owner: str
    runner: Runner
    paths: Paths
    ledger: Ledger
    named_by: tuple[str, ...]
    """Environment variables that say which account it is."""
    _terraform: Terraform

    @property
    def account(self) -> Account:
        raise NotImplementedError

    @property
    def owner_label(self) -> str:
        """The owner as labels and names of machines may be: letters, digits and -. The drawn part is at its end."""
        return re.sub(r"[^A-Za-z0-9]", "-", self.owner)[-30:].strip("-").lower()

    @property
    def _account_file(self) -> Path:
        return self.paths.place / "account"

    def note_account(self) -> None:
        """Whose money it is; no secret can be read from the note."""
        durable.write(self._account_file, self._account_mark(), 0o600)

    def _account_mark(self) -> str:
        named = [self.owner, *(f"{name}={os.environ.get(name, '')}" for name in self.named_by)]
        return hashlib.sha256("\n".join(named).encode()).hexdigest()

    def check_account(self) -> None:
        """Raises RequestError where machines are rented, this is perhaps another account, and none of them is in it:
        Terraform would forget them, and they would go on costing."""
        if not self.ledger.open() or not self._account_file.exists():
            return
        if read_text(self._account_file) == self._account_mark():
            return
        if any(t.kind == "machine" for t in self.account.find(self.owner_label)):
            self.note_account()  # another token of the same account
            return
        names = ", ".join(m.node for m in self.ledger.open())
        raise RequestError(
            f"{self.name}: {names} are rented by other credentials ({', '.join(self.named_by)}), and this account has "
            f"none of them; give those that they were rented with, or, if the machines are gone, remove "
            f"{self._account_file}"
        )

    def clear_strays(self) -> None:
        """Removes what is ours and in no state: what a crash made without noting it; and machines that are off."""
        known = self._terraform.ids()
        things = self.account.find(self.owner_label)
        off = {t.id for t in things if t.kind == "machine" and t.status in OFF}
        strays = [t for t in things if known is None or t.id not in known or t.id in off]
        if strays:
            self.account.remove(strays)
        stay = {t.labels.get(NODE) for t in things if t.kind == "machine" and t not in strays}
        gone = {m.node for m in self.ledger.open()} - stay
        if gone:  # what is made in their place costs an hour of its own
            self.ledger.give_back(self.runner.now(), gone)
        if known is None:
            self._terraform.forget()

    def remove_all(self) -> list[Thing]:
        """Removes what has our label until two looks, SETTLE_S apart, find nothing. Returns what is left."""
        empty = 0
        left: list[Thing] = []
        for _ in range(ROUNDS):
            left = self.account.find(self.owner_label)
            empty = 0 if left else empty + 1
            if empty == 2:
                return []
            if left:
                with contextlib.suppress(WorkError):
                    self.account.remove(left)
            self.runner.sleep(SETTLE_S)
        return left or self.account.find(self.owner_label)

    def leftovers(self) -> list[dict[str, Any]]:
        """Everything with a label of this project in the account: {thing, owner, work, ours, in_use, running, expired}.
        `running`: a machine of its owner runs. One that nobody speaks to shuts down within the hour (`SILENT_S`), so
        somebody may still be at work there, however late."""
        now, ours, things = self.runner.now(), self.owner_label, self.account.find()
        running = {t.owner for t in things if t.kind == "machine" and t.status not in OFF}
        return [
            {
                "kind": t.kind,
                "name": t.name,
                "id": t.id,
                "detail": t.detail,
                "owner": t.owner,
                "work": t.labels.get(WORK, ""),
                "ours": t.owner == ours,
                "in_use": t.owner == ours and self.paths.nodes.exists(),
                "running": t.owner in running,
                "expired": t.expires_s is not None and t.expires_s < now,
            }
            for t in things
        ]

    def remove_leftovers(self, leftovers: list[dict[str, Any]]) -> None:
        """Removes these, and notes it in the ledger. Raises WorkError if one cannot be removed."""
        ids = {(f["kind"], f["id"]) for f in leftovers}
        self.account.remove([t for t in self.account.find() if (t.kind, t.id) in ids])
        self.runner.sleep(SETTLE_S)
        left = [t for t in self.account.find() if (t.kind, t.id) in ids]
        if left:
            raise WorkError(f"{self.name}: still there: {', '.join(map(str, left))}")
        if not self.account.find(self.owner_label):
            self.ledger.give_back(self.runner.now())
