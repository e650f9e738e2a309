"""The meaning of manifests and stores that are older than the field `system`.

Until then there was one system, RUBBoS in the topology W/A/C/D, driven by users who think. No other module of the
analysis knows a system, a tier or an interaction by its name."""

from __future__ import annotations

from ntier_analysis.contracts.system import Factor, Interaction, LoadModel, Replicas, System, Tier

TIERS = ("web", "app", "middleware", "db")
"""From the users inwards."""
NAME = "rubbos"
"""The system of a sweep that names none."""
USERS = "users"
"""The factor of a sweep that names none."""
THINK_S = 7.0
"""Mean think time, s (TPC-W, RUBBoS)."""

_TITLES = {"web": "web server", "app": "application", "middleware": "cluster middleware", "db": "database"}
_ROWS = {"StoreComment": ("comments", "old_comments"), "StoreModerateLog": ("moderator_log",)}
"""Interactions that each leave exactly one row in one of the tables. The others do not: a nickname may be taken, a
story may be accepted by one author while another rejects it."""


def system(users: float) -> System:
    """The system of a trial whose manifest names none."""
    return System(
        name=NAME,
        title="RUBBoS",
        tiers=[Tier(name=t, title=_TITLES[t], replicas=_replicas(t)) for t in TIERS],
        load_model=LoadModel.CLOSED,
        factor=Factor(name=USERS, title=USERS, value=users),
        interactions=[Interaction(name=name, writes=True, rows=rows) for name, rows in _ROWS.items()],
    )


def rows(system: System) -> dict[str, tuple[str, ...]]:
    """Interaction -> tables; it leaves exactly one row in one of them. A system with the same interactions that
    does not name any tables is treated alike."""
    told = {i.name: i.rows for i in system.interactions if i.rows}
    return told or {i.name: _ROWS[i.name] for i in system.interactions if i.name in _ROWS}


def pictured(system: System) -> bool:
    """Whether each interaction ends with one picture, its page's logo. True for systems that have one of the
    interactions of `_ROWS`."""
    return any(i.name in _ROWS for i in system.interactions)


def _replicas(tier: str) -> Replicas:
    return Replicas.ALL_WRITE if tier == TIERS[-1] else Replicas.BALANCED
