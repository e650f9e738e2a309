"""Which replicas of a full resource limit, by what more of them would bring.

By the utilization law, throughput can grow until the first resource is used 100 %. So more of one replica alone brings
no more than the others have room for; where they have little, they limit as well, whichever reads full."""

from __future__ import annotations

from ntier_analysis.verdict.causes import SOFT
from ntier_analysis.verdict.context import NO_ROOM_PCT, Context
from ntier_analysis.verdict.coverage import MORE
from ntier_analysis.verdict.saturation import Key, Saturation

PART = 0.5
"""A replica limits if leaving it out of the relief of all costs half of an equal share of the gain: the definition of
the second family of truth (bench/queueing/relief.py)."""


def limiting_replicas(named: list[Saturation], found: list[Saturation], context: Context) -> list[Saturation]:
    """The resources among `found` of the same tier that limit too, although they are not `named`. Resources that limit
    for a part of the time (none has no room) are left as they are: their mean use does not show it."""
    group, keys = named[0].group, {s.key for s in named}
    here = {s.key: s.utilization_mean_pct for s in found if s.resource not in SOFT}
    used = {key: context.used_pct.get(key, pct) for key, pct in here.items()}
    # All runs beyond the knee together may leave it a little room, where it has none in this one.
    if _most(used, keys) < NO_ROOM_PCT:
        used = here
    most = _most(used, keys)
    if most < NO_ROOM_PCT:
        return []
    tier = {s.key for s in found if s.group == group and s.key in used}
    shares = {key: pct / most for key, pct in used.items() if pct > 0}
    whole = _gain(shares, tier)
    return [
        s
        for s in found
        if s.key in tier - keys and (whole - _gain(shares, tier - {s.key})) * len(tier) >= PART * whole > 0
    ]


def _most(used: dict[Key, float], keys: set[Key]) -> float:
    return max((used.get(key, 0.0) for key in keys), default=0.0)


def _gain(used: dict[Key, float], relieved: set[Key]) -> float:
    """Gain of throughput, as a share, if these had half as much capacity again. `used`: resource -> use against
    that of the fullest."""
    return max(0.0, min((1 + MORE * (key in relieved)) / share for key, share in used.items()) - 1)
