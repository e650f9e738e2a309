"""How many nodes each tier of a topology has, read off its notation: a number per tier, from the users inwards."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ntier_analysis.contracts.implied import TIERS

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
