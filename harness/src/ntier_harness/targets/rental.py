"""What rented machines are and what they cost: the file that offers them, prices, hours that count, and the record of
what was rented."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from ntier_analysis.contracts.files import RECORD_BYTES, read_json
from pydantic import BaseModel, Field

from ntier_harness import durable, files
from ntier_harness.errors import RequestError, needs_root
from ntier_harness.files import Document, checked, no_record

HOUR_S = 3600.0


class MachineType(Document):
    """One of the provider's types. `price_per_hour`: in the offer's currency, all that an hour of it costs; 0: nothing,
    or nobody knows."""

    type: str
    cores: Annotated[int, Field(ge=1)]
    memory_bytes: Annotated[int, Field(ge=1)]
    price_per_hour: Annotated[float, Field(ge=0)]


class AptSource(Document):
    """As cloud-init takes it, on nodes with one of these roles. `keyid`: the key's whole fingerprint."""

    source: Annotated[str, Field(pattern=r"^deb \S")]
    keyid: Annotated[str, Field(pattern=r"^[0-9A-F]{40}$")]
    roles: list[str]


class Offer(Document):
    """A file `machines.json`: which machine becomes a node of each type, and its price. `locations`: name -> network
    zone, in the order in which they are tried. `apt`: sources of packages that Debian does not have."""

    currency: Annotated[str, Field(pattern=r"^[A-Z]{2,3}$")]
    """Or what else the provider counts in, such as SU (service units)."""
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    source: str
    note: str = ""
    image: str
    locations: Annotated[dict[str, str], Field(min_length=1)]
    node_types: Annotated[dict[str, MachineType], Field(min_length=1)]
    apt: dict[str, AptSource] = Field(default_factory=dict)
    options: dict[str, str] = Field(default_factory=dict)
    """What only one provider has: variables of its Terraform root."""

    def of(self, node_type: str) -> MachineType:
        """Raises RequestError for a node type that is not offered."""
        if node_type not in self.node_types:
            offered = ", ".join(self.node_types)
            raise RequestError(f"machines: no machine for node type {node_type}; there are: {offered}")
        return self.node_types[node_type]


def read_offer(file: Path) -> Offer:
    """Raises RequestError naming file and field."""
    try:
        return checked(Offer, files.read_json(file), file)
    except RequestError as error:
        raise RequestError(f"machines: {error}") from None


def parse_budget(text: str, currency: str) -> float:
    """`5EUR` or `5`. Raises RequestError for another currency than the offer's."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]{2,3})?\s*", text)
    if not match or not float(match[1]) > 0:
        raise RequestError(f"budget: {text!r}: expected an amount above 0, for example 5{currency}")
    if match[2] and match[2].upper() != currency:
        raise RequestError(f"budget: {text!r}: prices are in {currency}")
    return float(match[1])


def hours(seconds: float) -> int:
    """Hours that are paid for: every one that has begun, and at least one."""
    return max(1, math.ceil(seconds / HOUR_S))


class Rented(BaseModel):
    """A machine from the moment before it was asked for until it was seen to be gone. `work`: the sweep or campaign
    that it was rented for; empty: by `ntier up`. `found_by`: others that began while it was there, and answer for it,
    too. `machine`: the provider's number of it; empty until it is known to be there."""

    node: str
    type: str
    price_per_hour: float
    from_s: float
    until_s: float | None = None
    work: str = ""
    found_by: list[str] = Field(default_factory=list)
    machine: str = ""
    currency: str = ""
    """Of its price; empty in older records: the record's."""

    def is_of(self, work: str) -> bool:
        return work == self.work or work in self.found_by

    def cost(self, at_s: float) -> float:
        return self.price_per_hour * hours(min(at_s, self.until_s or at_s) - self.from_s)


class _Record(BaseModel):
    schema_version: int = 1
    currency: str
    machines: list[Rented]


@dataclass
class Ledger:
    """`rented.json`: every machine that this controller ever rented from one provider. Entries are made before a
    machine is asked for, so that a crash forgets none; the sum may therefore be too high, and is never too low."""

    file: Path
    currency: str
    """Of the offer."""

    @property
    def counted_in(self) -> str:
        """The currency of what is open, which came by one offer; of this one, if nothing is."""
        return next((m.currency for m in self.open()), self.currency)

    def machines(self) -> list[Rented]:
        """Raises WorkError if the file is not such a record, RequestError if only root may know."""
        return self._read().machines

    def _read(self) -> _Record:
        try:
            self.file.stat()
        except FileNotFoundError:
            return _Record(currency=self.currency, machines=[])
        except PermissionError:
            raise needs_root(self.file.parent) from None
        try:
            record = _Record.model_validate(read_json(self.file, RECORD_BYTES))
        except ValueError as error:
            raise no_record(self.file, "rental", error) from None
        for machine in record.machines:
            machine.currency = machine.currency or record.currency
        return record

    def open(self) -> list[Rented]:
        """Those that were not given back."""
        return [m for m in self.machines() if m.until_s is None]

    def rent(self, wanted: dict[str, MachineType], work: str, now_s: float, anew: Collection[str] = ()) -> None:
        """Notes machines that are about to be made: those of this type that are open already stay as they are. `anew`:
        nodes that get another machine even so; until it is there (`settle`) both count. Raises RequestError where
        machines are open whose prices are in another currency: nobody could add them."""
        known = self.machines()
        there = {(m.node, m.type) for m in known if m.until_s is None and m.node not in anew}
        new = [
            Rented(
                node=node,
                type=t.type,
                price_per_hour=t.price_per_hour,
                from_s=now_s,
                work=work,
                currency=self.currency,
            )
            for node, t in wanted.items()
            if (node, t.type) not in there
        ]
        if new:
            self.check_currency()
            self._write([*known, *new])

    def check_currency(self, work: str | None = None) -> None:
        """Raises RequestError where machines are open whose prices are in another currency than the offer's, or, with
        `work`, where some that are gone cost it something in another one: nobody can add them."""
        other = [m for m in self.machines() if m.currency != self.currency]
        if names := ", ".join(m.node for m in other if m.until_s is None):
            raise RequestError(
                f"machines: {names} are rented in {self.counted_in}, and these prices are in {self.currency}; give the "
                "file that they came by, or first give them back"
            )
        if work is not None and (before := {m.currency for m in other if m.is_of(work) and m.price_per_hour}):
            raise RequestError(
                f"budget: what {work} cost before is in {', '.join(sorted(before))}, and these prices are in "
                f"{self.currency}; give prices in the same currency, or no budget"
            )

    def give_back(self, now_s: float, nodes: set[str] | None = None) -> None:
        """Notes that machines are gone; None: all."""
        known = self.machines()
        self._close(known, [m for m in known if m.until_s is None and (nodes is None or m.node in nodes)], now_s)

    def recognise(self, machines: dict[str, str]) -> None:
        """Notes of nodes with one record whose machine it is, which older versions did not. `machines`: node -> the
        provider's number, as known before anything is asked for."""
        known = self.machines()
        nodes = [m.node for m in known if m.until_s is None]
        nameless = [m for m in known if m.until_s is None and not m.machine and nodes.count(m.node) == 1]
        for record in nameless:
            record.machine = machines.get(record.node, "")
        if any(m.machine for m in nameless):
            self._write(known)

    def settle(self, began_s: float, now_s: float, machines: dict[str, str], wanted: dict[str, MachineType]) -> None:
        """Notes what is there now, and that all else is gone. A machine keeps its record; a new one takes the newest
        that was made for one of its type. One that nobody expected gets a record of its own, from `began_s`, before
        which it cannot have been there. `machines`: node -> the provider's number; `wanted`: their types."""
        known = self.machines()
        there = [m for m in known if m.until_s is None]
        kept = []
        for node, number in machines.items():
            t = wanted[node]
            of = [m for m in reversed(there) if m.node == node]
            same = [m for m in of if m.machine == number]
            noted = [m for m in of if not m.machine and m.type == t.type]
            unexpected = {"type": t.type, "price_per_hour": t.price_per_hour, "from_s": began_s}
            for record in (same or noted or [m.model_copy(update=unexpected) for m in of])[:1]:
                record.machine = number
                kept.append(record)
        new = [m for m in kept if not any(m is other for other in there)]
        for record in there:
            if not any(record is m for m in kept):
                record.until_s = now_s
        self._write([*known, *new])

    def _close(self, known: list[Rented], gone: list[Rented], now_s: float) -> None:
        for machine in gone:
            machine.until_s = now_s
        if gone:
            self._write(known)

    def find(self, work: str) -> None:
        """Notes that this work begins with the machines that are open: it answers for them also once they are gone."""
        known = self.machines()
        found = [m for m in known if m.until_s is None and not m.is_of(work)]
        for machine in found:
            machine.found_by.append(work)
        if found:
            self._write(known)

    def spent(self, at_s: float, work: str | None = None) -> float:
        """Cost until then, of what is priced in the offer's currency (`check_currency`). `work`: only rentals for it or
        found by it, and open rentals of any work; None: all."""
        priced_so = [m for m in self.machines() if m.currency == self.currency]
        return sum(m.cost(at_s) for m in priced_so if work is None or m.until_s is None or m.is_of(work))

    def _write(self, machines: list[Rented]) -> None:
        record = _Record(currency=self.counted_in, machines=machines)
        durable.write(self.file, json.dumps(record.model_dump(), indent=1), 0o600)


def money(amount: float, currency: str) -> str:
    """`1.24 EUR`; small amounts with a digit more."""
    return f"{amount:.2f} {currency}" if amount >= 0.1 or amount == 0 else f"{amount:.3f} {currency}"


def priced(offer: Offer, node_types: dict[str, str]) -> dict[str, Any]:
    """What these nodes (name -> node type) cost per hour: {currency, per_hour, machines: {type: count}, ...}."""
    types = [offer.of(t) for t in node_types.values()]
    counts: dict[str, int] = {}
    for t in types:
        counts[t.type] = counts.get(t.type, 0) + 1
    return {
        "currency": offer.currency,
        "per_hour": round(sum(t.price_per_hour for t in types), 4),
        "machines": counts,
        "date": offer.date,
        "source": offer.source,
        "note": offer.note,
    }
