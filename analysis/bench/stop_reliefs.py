"""Reliefs beside stops, computed as the verdict does (verdict/without.py), against the same reliefs simulated.

    python analysis/bench/stop_reliefs.py [SYSTEMS]

Each system has one CPU that stands still for 1 to 4 s, again and again, in 6 to 60 % of the time, at 0.5 to 2.5 knees
of the same system without stops. Prints a line per system, and the errors."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/traps"))

import numpy as np
from detector.network import Network, Run, simulate
from networks import KNEE, plan
from ntier_analysis.verdict.coverage import MORE
from ntier_analysis.verdict.load import Load
from ntier_analysis.verdict.without import Reliefs, reliefs

DB = ("db", "cpu")
RAMP_S, RUN_S = 20.0, 300.0
NO_ROOM = 0.9


def one(rng: np.random.Generator) -> tuple[float, Reliefs, Reliefs]:
    """Use of the CPU between the stops, 0..1, and the gains: simulated, and computed."""
    share, length, load = rng.uniform(0.06, 0.6), rng.uniform(1.0, 4.0), rng.uniform(0.5, 2.5)
    made = plan({DB: 1.0, ("app", "cpu"): 0.3})
    made.variation["db"] = rng.choice([0.5, 1.0, 2.0])
    begin = np.arange(0.0, 4000.0, length / share)
    stops = np.column_stack([begin, begin + length])
    made.options[DB] = {"stalls": True, "switches": tuple(stops.ravel())}
    network, users = made.build(), round(load * KNEE)
    moving = replace(network, stations=tuple(replace(s, switches=()) for s in network.stations))

    def run(some: Network) -> Run:
        return simulate(some, users, RAMP_S, RUN_S, 9)

    now = run(network)
    gained = Reliefs(
        run(moving).throughput / now.throughput - 1,
        run(network.relieved({DB}, 1 + MORE)).throughput / now.throughput - 1,
    )
    row = next(i for i, s in enumerate(network.stations) if s.key == DB)
    cells = slice(round(100 * RAMP_S), round(100 * (RAMP_S + RUN_S)))
    use = min(float(now.record.used[row, cells].sum()) / (RUN_S * 0.2), 1.0)
    end = RAMP_S + RUN_S
    told = Load("x", users, users, now.throughput, now.response_s, 7.0, RAMP_S, end, True)
    seen = stops[(stops[:, 1] > RAMP_S) & (stops[:, 0] < end)]
    return use / (1 - share), gained, reliefs(told, seen, use, 0.1)


def main() -> None:
    rng = np.random.default_rng(5)
    found = [one(rng) for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 30)]
    print("use between the stops | without the stops: simulated, computed | more: simulated, computed")
    for between, gained, told in found:
        print(f"{between:.2f} | {gained.stops:.3f} {told.stops:.3f} | {gained.more:.3f} {told.more:.3f}")
    full = [(gained, told) for between, gained, told in found if between >= NO_ROOM]
    for name in ("stops", "more"):
        errors = [getattr(told, name) - getattr(gained, name) for gained, told in full]
        print(f"{name}: error, 5th, 50th, 95th percentile: {np.round(np.percentile(errors, [5, 50, 95]), 3)}")
    same = sum((gained.stops > gained.more) == (told.stops > told.more) for gained, told in full)
    print(f"of {len(full)} that are full between the stops, the larger gain is the larger one in {same}")


if __name__ == "__main__":
    main()
