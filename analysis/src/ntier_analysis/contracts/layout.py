"""How many nodes each tier of a topology has, read off its notation: a number per tier, from the users inwards."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ntier_analysis.contracts.implied import TIERS
from ntier_analysis.contracts.system import NOT_TIERS

_NOTATION = re.compile(r"(\d+(?:[/-]\d+)*)([A-Za-z]*)")


@dataclass(frozen=True)
class Layout:
    """Nodes of each tier, and the letters behind them (DBMS, node type); no tiers: the text has another form."""

    nodes: tuple[tuple[str, int], ...] = ()
    letters: str = ""

    @classmethod
    def of(cls, topology: str, order: str = "") -> Layout:
        """`1/2/1M` (or its slug) and `web,app,db`, as the store's trials have them; no order: what was meant before it
        was stored."""
        match = _NOTATION.fullmatch(topology.strip())
        tiers = tuple(order.split(",")) if order else TIERS
        counts = [int(n) for n in re.split("[/-]", match[1])] if match else []
        return cls(tuple(zip(tiers, counts, strict=True)), match[2]) if match and len(tiers) == len(counts) else cls()


def counts_of(topology: str, order: str, tiers: Iterable[str]) -> dict[str, int] | None:
    """Nodes per tier, maybe none, by a topology whose numbers are those of `order` (joined by ','), or else of web,
    app, middleware and db, unless one of the tiers has another name. `tiers`: of all nodes, also those that are no part
    of the system. None: the topology does not tell."""
    listed = listed_in(order)
    counts = dict(Layout.of(topology, ",".join(listed)).nodes) if listed else {}
    if not counts and (set(tiers) - set(NOT_TIERS)) | set(listed) <= set(TIERS):
        counts = dict(Layout.of(topology).nodes)
    return counts or None


def listed_in(order: str) -> list[str]:
    """Tiers that a user joined by ',', from the client inwards."""
    return [t.strip() for t in order.split(",") if t.strip()]
