"""The scale of the local target: how much of a core a `normal` node gets, so that the host can keep its promise.

Rule: at scale s all nodes at their quota and the clients together use `s x shares` cores, and the machinery beside them
`RESERVE_CORES`. That sum may be HOST_SHARE of the host's cores: ten points below the 80 % at
which a trial becomes invalid (check H1). Below MIN an idle MySQL alone is more than 6 % of its node (0.6 % of a core),
so MIN is taken as long as even then the host has HOST_LIMIT: not all nodes of a large topology are busy at once, since
one of them limits the others; check H1 sees it in each trial."""

from __future__ import annotations

import math

from ntier_harness.errors import RequestError

HOST_SHARE = 0.7
HOST_LIMIT = 0.9  # check H1, 95th percentile
RESERVE_CORES = 0.2  # samplers, incusd, the harness, sshd; measured by bench/monitoring_cost.py
STEP = 0.05  # cgroup periods are whole milliseconds: 1ms/20ms
MIN, MAX = 0.1, 1.0


def needed_cores(scale: float, shares: float) -> float:
    """Cores in use when every node works at its quota; `shares`: what nodes and clients use at scale 1, cores."""
    return scale * shares + RESERVE_CORES


def auto_scale(cores: int, shares: float) -> float:
    """The largest multiple of STEP in MIN..MAX that the rule above allows.

    Raises RequestError if not even MIN fits."""
    best = (HOST_SHARE * cores - RESERVE_CORES) / shares
    scale = min(MAX, math.floor(best / STEP + 1e-9) * STEP)
    if scale >= MIN:
        return round(scale, 2)
    if needed_cores(MIN, shares) <= HOST_LIMIT * cores + 1e-9:
        return MIN
    raise RequestError(
        f"scale: {cores} cores cannot carry nodes and clients of {shares:g} cores even at scale {MIN}; "
        f"use a smaller topology or give --scale yourself (multiples of {STEP})"
    )


def parse_scale(text: str, cores: int, shares: float) -> float:
    """`auto` or a multiple of STEP in STEP..MAX."""
    if text == "auto":
        return auto_scale(cores, shares)
    try:
        scale = float(text)
    except ValueError:
        raise RequestError(f"scale: {text!r} is neither 'auto' nor a number") from None
    if not STEP - 1e-9 <= scale <= MAX or abs(scale / STEP - round(scale / STEP)) > 1e-6:
        raise RequestError(f"scale: {text} is not a multiple of {STEP} between {STEP} and {MAX:g}")
    return round(scale, 2)
