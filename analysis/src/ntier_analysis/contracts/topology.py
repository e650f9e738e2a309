"""The W/A/C/D notation: `1/2/1/9ML` is 1 web, 2 app, 1 middleware and 9 low-cost MySQL nodes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ntier_analysis.contracts.implied import TIERS

DBMS = {"M": "mysql", "P": "postgresql", "C": "mysql_cluster"}

_FORM = re.compile(r"(\d{1,9})/(\d{1,9})/(\d{1,9})/(\d{1,9})([A-Za-z]*)")


class TopologyError(ValueError):
    """A topology that does not follow the notation; the message names the part and what is allowed."""


@dataclass(frozen=True)
class Topology:
    """One topology. `dbms` is the notation's letter (a key of `DBMS`) or empty where the source leaves it out, as the
    paper's `1/2/1/2L` does."""

    web: int
    app: int
    middleware: int
    db: int
    dbms: str = "M"
    low_cost: bool = False

    @classmethod
    def parse(cls, text: str, *, dbms_required: bool = True) -> Topology:
        """Reads `W/A/C/D` + `M|P|C` + optional `L`, also as a slug (`1-2-1-9ML`).

        Raises TopologyError naming the wrong part."""
        match = _FORM.fullmatch(text.strip().replace("-", "/"))
        if not match:
            raise TopologyError(
                f"topology {text!r}: expected W/A/C/D with four numbers and a DBMS letter, for example 1/2/1/9M"
            )
        counts = [int(n) for n in match.groups()[:4]]
        for tier, count in zip(TIERS, counts, strict=True):
            if not 1 <= count <= 99:
                raise TopologyError(f"topology {text!r}: {tier} count is {count}, allowed are 1..99")
        letters = match.group(5)
        low_cost = letters.endswith("L")
        dbms = letters.removesuffix("L")
        if dbms not in DBMS and (dbms or dbms_required):
            allowed = ", ".join(f"{k} ({v})" for k, v in DBMS.items())
            raise TopologyError(
                f"topology {text!r}: DBMS letter is {dbms or 'missing'}, allowed are {allowed}, then an optional L"
            )
        return cls(*counts, dbms=dbms, low_cost=low_cost)

    def __str__(self) -> str:
        counts = f"{self.web}/{self.app}/{self.middleware}/{self.db}"
        return counts + self.dbms + ("L" if self.low_cost else "")

    @property
    def slug(self) -> str:
        """The form for paths and keys: `1-2-1-9ML`."""
        return str(self).replace("/", "-")

    @property
    def counts(self) -> dict[str, int]:
        """Nodes per tier, clients not included."""
        return {tier: getattr(self, tier) for tier in TIERS}

    @property
    def node_count(self) -> int:
        return sum(self.counts.values())
