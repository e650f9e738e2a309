"""Snapshots of rented machines on which roles are installed. What was installed is known by a digest in the snapshot's
labels: one with another digest is never used."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

from ntier_harness.errors import RequestError
from ntier_harness.spec import CLIENT, Spec
from ntier_harness.targets.account import Hardware, Snapshot
from ntier_harness.targets.rental import Offer, money

ROLE, DIGEST = "ntier-role", "ntier-digest"
EVERYWHERE = ("common", "monitor")
"""Roles of every node."""


@dataclass(frozen=True)
class Part:
    """What the nodes of a tier have installed. `role`: the one that the node is about, after the system's name if one
    of the tier's roles is of the system's own; `digest`: of all roles."""

    tier: str
    role: str
    digest: str

    @property
    def node(self) -> str:
        """The one that it is installed on for a snapshot."""
        return f"{self.tier}1"


def parts(spec: Spec, offer: Offer, installed: dict[str, str]) -> list[Part]:
    """Of every tier and the clients. `installed`: role -> digest of its installation. Raises RequestError for a role of
    which none is known."""
    found = []
    for tier in (*spec.topology.counts, CLIENT):
        roles = [CLIENT] if tier == CLIENT else spec.roles(tier)
        missing = [role for role in (*EVERYWHERE, *roles) if role not in installed]
        if missing:
            raise RequestError(f"images: nothing is known of what role {missing[0]} installs; run: make setup")
        sources = {name: s.source for name, s in offer.apt.items() if set(s.roles) & set(roles)}
        what = [offer.image, sources, [(role, installed[role]) for role in (*EVERYWHERE, *roles)]]
        digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
        own = f"{spec.system.name}." if any(spec.system.role(role) for role in roles) else ""
        name = roles[-1] if roles else tier
        found.append(Part(tier, f"{own}{name}", digest[:40]))  # a label has at most 63 characters
    return found


def of(part: Part, snapshots: Iterable[Snapshot]) -> list[Snapshot]:
    """Those of just this installation."""
    return [s for s in snapshots if (s.labels.get(ROLE), s.labels.get(DIGEST)) == (part.role, part.digest)]


def fitting(part: Part, snapshots: Iterable[Snapshot], hardware: Hardware | None) -> Snapshot | None:
    """One that a machine with such hardware can be made from; None: there is none, or the hardware is not known."""
    ready = [s for s in of(part, snapshots) if s.status == "available"]
    alike = (s for s in ready if hardware and s.architecture == hardware.architecture)
    return next((s for s in alike if s.disk_gb <= hardware.disk_gb), None)


def outdated(wanted: Iterable[Part], snapshots: Iterable[Snapshot]) -> list[Snapshot]:
    """Those of the same roles with another installation, and those that failed."""
    wanted = list(wanted)
    roles, usable = {part.role for part in wanted}, {(part.role, part.digest) for part in wanted}
    return [
        s
        for s in snapshots
        if (role := s.labels.get(ROLE)) in roles
        and ((role, s.labels.get(DIGEST)) not in usable or s.status not in ("available", "creating"))
    ]


def told(snapshots: list[Snapshot], currency: str) -> str:
    """What they cost: `5 snapshots cost 0.10 EUR per month`; of those whose price is not known it says so."""
    known = [s.price_per_month for s in snapshots if s.price_per_month is not None]
    number = f"{len(snapshots)} snapshot{'s' * (len(snapshots) > 1)} cost{'s' * (len(snapshots) == 1)}"
    unknown = f" ({len(snapshots) - len(known)} of unknown size not counted)" if len(known) < len(snapshots) else ""
    return f"{number} {money(sum(known), currency)} per month{unknown}"
