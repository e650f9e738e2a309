"""Whether a case is what its label says: long runs of the same network, as it is and with a part of it relieved."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from detector.network import THINK_S, Network, Run, simulate
from detector.plan import Case, Key

FACTOR = 1.5
"""Capacity of what is relieved."""
GAIN = 0.05
"""Throughput that a relief of a bottleneck gives at least, and of anything else at most."""
UNSURE = (0.03, 0.08)
"""A case is borderline if a gain that decides lies in here: as in the second family (queueing/relief.py)."""
NONE_GAIN = UNSURE[0]
"""What relieving everything may gain at most where nothing limits: between this and GAIN a case is neither."""
RAMP_S = 30.0
SWEEP_RAMP_S = 20.0
"""Ramp-up of the sweep's trials, as in the phases `short`."""
LONG_S = 300.0
BEYOND = 1.8
"""Load of the test in knees; without a plateau (`none`, stops) the highest load of the sweep."""


@dataclass
class Truth:
    """`x_max`: throughput at BEYOND knees; `base_s`: response time at a tenth of the knee; `gains` by what was
    relieved; `holds`: whether all inequalities of the class that was built in do; `truth`, `claims`: class and parts by
    the gains alone, '' if something else gains too; `why` it is borderline (empty: it is not)."""

    x_max: float
    base_s: float
    knee_real: float
    gains: dict[str, float]
    holds: bool
    truth: str
    claims: set[Key]
    why: list[str]


def smooth(network: Network) -> Network:
    """Quotas as plain capacity: the same throughput without their periods, simulated five times as fast."""
    stations = tuple(s if s.quota is None else replace(s, width=s.quota, quota=None) for s in network.stations)
    return replace(network, stations=stations)


def throughput(network: Network, users: int, seed: int, run_s: float = LONG_S) -> float:
    return simulate(smooth(network), users, RAMP_S, run_s, seed).throughput


def knee(case: Case) -> tuple[float, float, float]:
    """Maximum throughput, response time of the idle system, users at which they meet."""
    first = throughput(case.network, round(2.0 * case.design_x * THINK_S), case.seed, 200.0)
    idle = simulate(case.network, max(2, round(0.1 * first * THINK_S)), RAMP_S, 300.0, case.seed).response_s
    return first, idle, first * (THINK_S + idle)


def check(case: Case) -> Truth:
    """Runs the counterfactuals of the case's class."""
    _, idle, users = knee(case)
    level = bool(case.relief)  # what nothing limits, or stops now and then, has no plateau: the label is of its loads
    top = BEYOND if level else max(case.loads)
    at = max(2, round(top * users))
    base = throughput(case.network, at, case.seed)

    def gain(network: Network) -> float:
        return throughput(network, at, case.seed) / base - 1

    claims, everything = set(case.relief), set(case.network.keys())
    others = everything - claims
    if case.truth == "alternating":
        # Larger pools would hold more requests up in each turn and let both work at once.
        others = {key for key in others if not key[1].startswith("pool:")}
    relieved = {"claimed": gain(_relieved(case, claims)), "others": gain(case.network.relieved(others, FACTOR))}
    if len(claims) > 1:
        relieved |= {f"{t} {r}": gain(case.network.relieved({(t, r)}, FACTOR)) for t, r in sorted(claims)}
    if case.truth == "none":
        relieved = {"others": gain(case.network.relieved(everything, FACTOR))}
    knee_real = base * (THINK_S + idle) if level else users
    truth, limits = by_relief(case, relieved)
    return Truth(base, idle, knee_real, relieved, _holds(case, relieved), truth, limits, _borderline(case, relieved))


def by_relief(case: Case, gains: dict[str, float]) -> tuple[str, set[Key]]:
    """Class and parts that limit, as the gains say, whatever was built in; '' if more than was built in gains.

    `unknown` if the data cannot tell: where a disk that serves many at a time reads full and nobody sampled its queue,
    a lock and the disk look the same (as in the second family)."""
    if gains["others"] >= GAIN:
        return "", set()
    if gains.get("claimed", 0.0) < GAIN:
        return "none", set()
    wide = any(s.resource == "disk" and s.width > 1 and s.measured for s in case.network.stations)
    if case.truth == "hidden" and wide and not case.view.queues:
        return "unknown", set()
    if len(case.claims) < 2:
        return case.truth, set(case.claims)
    alone = {key for key in case.claims if gains[" ".join(key)] >= GAIN}
    kind = {0: "simultaneous", 1: "single"}.get(len(alone), "alternating")
    return kind, alone or set(case.claims)


def _borderline(case: Case, gains: dict[str, float]) -> list[str]:
    deciding = {"none": ("others",), "alternating": tuple(k for k in gains if k != "claimed")}.get(case.truth, gains)
    near = [f"{k} {gains[k]:+.3f}" for k in deciding if UNSURE[0] <= gains[k] <= UNSURE[1]]
    return near + ([] if _holds(case, gains) else [f"built in: {case.truth}"])


def _relieved(case: Case, claims: set[Key]) -> Network:
    """For a case that stops, relief is that it does not."""
    if claims:
        return case.network.relieved(claims, FACTOR)
    stations = tuple(replace(s, switches=()) if s.stalls else s for s in case.network.stations)
    return replace(case.network, stations=stations)


def _holds(case: Case, gains: dict[str, float]) -> bool:
    alone = [g for k, g in gains.items() if k not in ("claimed", "others")]
    if case.truth == "none":
        return gains["others"] < NONE_GAIN
    helps = gains["claimed"] >= GAIN and gains["others"] < GAIN
    if case.truth == "simultaneous":
        return helps and max(alone) < GAIN
    if case.truth == "alternating":
        return helps and min(alone) >= GAIN and gains["claimed"] >= max(alone) + GAIN
    return helps


def sweep_runs(case: Case, knee_real: float) -> list[Run]:
    """The trials of the case's sweep."""
    rng = np.random.default_rng([case.seed, 3])
    users = [max(2, round(load * knee_real)) for load in case.loads]
    shifts = rng.uniform(0, 500, len(users))
    return [
        simulate(case.network, n, SWEEP_RAMP_S, case.run_s, case.seed + 11 * i, float(shift))
        for i, (n, shift) in enumerate(zip(users, shifts, strict=True))
    ]
