"""The part of a target that rents machines which is about snapshots of them: which are used, and how one is made."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import cast

from ntier_harness import durable, installed
from ntier_harness.errors import RequestError, WorkError
from ntier_harness.paths import Paths
from ntier_harness.runner import Runner
from ntier_harness.spec import CLIENT, Spec
from ntier_harness.targets import snapshots
from ntier_harness.targets.account import NODE, OWNER, Account, KeepsSnapshots, Snapshot, Thing
from ntier_harness.targets.rental import Offer
from ntier_harness.targets.snapshots import Part

EVERY_S = 2.0
"""How often the provider is asked."""
OFF_S = 120.0
"""How long a machine may take to shut down when it is asked to; then it is switched off."""
SNAPSHOT_S = 1800.0
USUAL_S = 300.0
"""What shutting down and a snapshot may take together, for the budget: not measured, minutes for some GB."""
TRIES = 3


class Imaging:
    keeps_snapshots = False
    """Whether `account` is one that does."""
    name: str
    runner: Runner
    paths: Paths
    offer: Offer
    owner_label: str
    account: Account
    only: set[str] | None = None
    """Tiers of which machines are rented, for snapshots; None: all, to work with."""
    images_of_tiers: dict[str, str]
    """Tier -> the snapshot that its new machines are made from."""
    outdated_images: tuple[str, ...] = ()
    """What a person should know of those that are not used."""
    work_s: float | None

    @property
    def building(self) -> Path:
        """There as long as the machines have been rented for snapshots, and nothing was deployed on them."""
        return self.paths.place / "building"

    @property
    def snapshots_kept(self) -> Path:
        """There as long as the account may hold snapshots of ours, which cost: without our name nobody would find them
        (setup/purge.sh)."""
        return self.paths.place / "snapshots.json"

    def _note_snapshots(self) -> None:
        if not self.snapshots_kept.exists():
            durable.write(self.snapshots_kept, json.dumps({"owner": self.owner_label}))

    @property
    def _keeper(self) -> KeepsSnapshots:
        return cast("KeepsSnapshots", self.account)

    def own_snapshots(self) -> list[Snapshot]:
        return self._keeper.snapshots(self.owner_label) if self.keeps_snapshots else []

    def all_snapshots(self) -> list[Snapshot]:
        """Of every owner."""
        return self._keeper.snapshots() if self.keeps_snapshots else []

    def parts(self, spec: Spec) -> list[Part]:
        return snapshots.parts(spec, self.offer, installed.of_roles(self.paths, spec))

    # ---- using them

    @property
    def image_variables(self) -> dict[str, object]:
        """Of the Terraform root."""
        return {"images": self.images_of_tiers, "only": None if self.only is None else sorted(self.only)}

    def choose_images(self, spec: Spec) -> None:
        """New machines are made from a snapshot where one fits. Those that are up stay what they are."""
        there = self.own_snapshots() if self.only is None else []
        if there:  # of a version that did not note them
            self._note_snapshots()
        self.images_of_tiers, self.outdated_images = {}, ()
        if not there:
            return
        try:
            wanted = self.parts(spec)
        except RequestError:  # what its roles install is not known, so no snapshot can be it
            return
        chosen = self.usable(wanted, spec, there)
        self.images_of_tiers = {part.tier: snapshot.id for part, snapshot in chosen.items()}
        old = {s.labels[snapshots.ROLE] for s in snapshots.outdated(wanted, there)}
        if missing := [part.role for part in wanted if part.role in old and part not in chosen]:
            roles = f"role{'s' * (len(missing) > 1)} {', '.join(missing)}"
            self.outdated_images = (f"snapshots of {roles} are outdated and not used; make them anew: ntier images",)

    def usable(self, wanted: list[Part], spec: Spec, there: list[Snapshot]) -> dict[Part, Snapshot]:
        """Those that a machine of a part can be made from."""
        hardware = self._keeper.hardware() if there else {}
        types = {p: CLIENT if p.tier == CLIENT else spec.node_type(p.tier) for p in wanted}
        found = {p: snapshots.fitting(p, there, hardware.get(self.offer.of(types[p]).type)) for p in wanted}
        return {part: snapshot for part, snapshot in found.items() if snapshot}

    # ---- making them

    def images_only(self) -> None:
        """What is rented from now on is for snapshots: a budget need not last for a trial."""
        self.work_s = USUAL_S

    def begin_images(self, lacking: list[Part]) -> None:
        """From now on `up` rents a machine for each of these, made from the provider's image. Raises RequestError if
        machines are up for something else, since nothing of it may get into a snapshot."""
        if self.paths.nodes.exists() and not self.building.exists():
            raise RequestError(
                f"images: machines are up for something else; end that first: ntier down --target {self.name}"
            )
        self.only = {part.tier for part in lacking}

    def take_snapshot(self, part: Part, versions: str) -> None:
        """Its machine is shut down, and the disk kept. Raises WorkError if one of both fails."""
        machine = self._machine(part.node)
        self._keeper.shut_down(machine)
        if not self._is_off(part.node):
            self._keeper.shut_down(machine, at_once=True)
            if not self._is_off(part.node):
                raise WorkError(f"{self.name}: {part.node} does not shut down within {2 * OFF_S:g} s")
        labels = {OWNER: self.owner_label, snapshots.ROLE: part.role, snapshots.DIGEST: part.digest}
        self._note_snapshots()
        before = {s.id for s in self._of(part)}  # those that fit no machine of this type
        for number in range(1, TRIES + 1):
            try:
                self._keeper.take_snapshot(machine, f"Ntier {part.role}: {versions}"[:200], labels)
                break
            except WorkError:
                if self._of(part, before):  # only the answer was lost
                    break
                if number == TRIES:
                    raise
                self.runner.sleep(EVERY_S)
        self.await_snapshot(part, before)

    def _of(self, part: Part, before: Collection[str] = ()) -> list[Snapshot]:
        """Ours of just this installation, without those that were there `before`."""
        return [s for s in snapshots.of(part, self.own_snapshots()) if s.id not in before]

    def await_snapshot(self, part: Part, before: Collection[str] = ()) -> None:
        """Waits until it can be used. Raises WorkError if it cannot be; what failed is removed."""
        self._comes(lambda: all(s.status != "creating" for s in self._of(part, before)), SNAPSHOT_S)
        made = self._of(part, before)
        if not any(s.status == "available" for s in made):
            self._keeper.remove_snapshots([s for s in made if s.status != "creating"])
            said = made[0].status if made else "not there"
            raise WorkError(f"{self.name}: the snapshot of role {part.role} is {said}; the same command tries again")

    def remove_snapshots(self, which: list[Snapshot]) -> None:
        """Raises WorkError naming what is still there afterwards."""
        self._keeper.remove_snapshots(which)
        there = {s.id for s in self._keeper.snapshots()}
        if left := [s.name for s in which if s.id in there]:
            raise WorkError(f"{self.name}: still there: {', '.join(left)}")
        if not self.own_snapshots():
            durable.remove(self.snapshots_kept)

    def kept(self) -> str:
        with contextlib.suppress(WorkError):  # what `down` had to do is done
            if there := self.own_snapshots():
                said = snapshots.told(there, self.offer.currency)
                return f"{said}; they stay until: ntier images --remove --target {self.name}"
        return ""

    def _machine(self, node: str) -> Thing:
        things = self.account.find(self.owner_label)
        found = next((t for t in things if t.kind == "machine" and t.labels.get(NODE) == node), None)
        if found is None:
            raise WorkError(f"{self.name}: the machine of {node} is gone")
        return found

    def _is_off(self, node: str) -> bool:
        return self._comes(lambda: self._machine(node).status == "off", OFF_S)

    def _comes(self, holds: Callable[[], bool], wait_s: float) -> bool:
        """Whether it holds within so many seconds."""
        end = self.runner.monotonic() + wait_s
        while not holds():
            if self.runner.monotonic() >= end:
                return False
            self.runner.sleep(EVERY_S)
        return True
