"""What holds up the users as anything hidden in the system does, and is outside of what was measured of it: the network
of the load generator or the host of all nodes, if these have no room; and a server that nobody told."""

from __future__ import annotations

import numpy as np

from ntier_analysis.verdict.causes import SOFT
from ntier_analysis.verdict.context import NO_ROOM_PCT, Context
from ntier_analysis.verdict.disks import Room
from ntier_analysis.verdict.load import is_server
from ntier_analysis.verdict.saturation import Saturation

UNLISTED = (
    "which servers the system has is not told (by its tiers, or by a topology that counts their nodes): whether one "
    "that nobody measured limits, or something hidden in the others, is unknown"
)


def outside_full(found: list[Saturation], context: Context) -> list[Saturation]:
    return [s for s in found if not is_server(s.tier) and _no_room(s, context)]


def crowded(found: list[Saturation], context: Context) -> str:
    """Why nothing in the system need limit: names what is full outside of it; '' if nothing is."""
    full = outside_full(found, context)
    if not full:
        return ""
    used = " and ".join(f"{s.name} is used {s.utilization_mean_pct:.0f} %" for s in full)
    return f"{used}, and that is not the system's own: whether it limits, or something hidden in the system, is unknown"


def unlisted(context: Context) -> str:
    """Why nothing need be hidden in the servers that were measured; '' if it is known that these are all."""
    return "" if context.nodes_told else UNLISTED


def _no_room(s: Saturation, context: Context) -> bool:
    """A disk's busy time is no sign without its queue, and a pool may be full of what waits in the system."""
    if s.resource in SOFT or not s.utilization_mean_pct >= NO_ROOM_PCT:
        return False
    known = context.disks.get(s.key)
    return s.resource != "disk" or bool(known and known.room is Room.NONE and np.isfinite(s.queue))
