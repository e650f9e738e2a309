"""How often the interval of the maximum at the machine's mean speed holds, by seeded simulation, and how often it is
refused where what it presumes is wrong.

    python analysis/bench/reference_speed.py [--runs 400]
    python analysis/bench/reference_speed.py --store DIR SWEEP     # of a sweep with many trials beyond its knee

Trials of one system: the database's CPU limits; web server, application server and middleware have room. The machine's
speed differs from trial to trial (s.d. of its logarithm); beside it, each trial's throughput and each tier's cost of an
interaction differ by 2 %. The kinds of machine:

* common: all tiers are slow together, which is presumed;
* database only: the database alone is slow, for example by a neighbour on its disk or by its own data;
* each its own: each tier has a speed of its own;
* one its own: common, but for the application server, which has a speed of its own (s.d. 0.15) beside;
* half: the tiers with room are slowed half as much (in logarithms), as if they needed memory less.

What is true is the throughput at the speed at which an interaction costs what it did on average over the trials.
With `--store`: all halves of the trials beyond the knee, the interval of one half against the other half's mean, both
at the cost of the first half."""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path

import numpy as np
from interval_coverage import table
from mean_speed import AtSpeed, at_mean_speed
from ntier_analysis.statistics.share import wilson
from ntier_analysis.statistics.values import NAN
from ntier_analysis.store.tables import read_table
from ntier_analysis.verdict.data import TrialData
from ntier_analysis.verdict.load import Load
from ntier_analysis.verdict.plateau import ON_PLATEAU, pooled
from ntier_analysis.verdict.saturation import Saturation
from ntier_analysis.verdict.store import verdicts
from ntier_analysis.verdict.tables import trial_data

RUNS = 400
ROOM = {"web": 0.3, "app": 0.6, "middleware": 0.5}
"""Use of the tiers with room at the maximum, share of their CPUs."""
MAXIMUM = 100.0
OWN = 0.02
SPREADS = (0.0, 0.03, 0.05, 0.10)
TRIALS = (3, 4, 6, 9)
KINDS = ("common", "one its own", "half", "database only", "each its own")
MOST_HALVES = 200


def trials_of(rng: np.random.Generator, n: int, spread: float, kind: str) -> list[TrialData]:
    """n trials beyond the knee; batches of throughput, and of each tier's use, differ by 5 %."""
    found = []
    for i in range(n):
        slow = spread * rng.standard_normal()
        rate = MAXIMUM * np.exp(-slow + OWN * rng.standard_normal())
        rates = rate * (1 + 0.05 * rng.standard_normal(10))
        load = Load(f"u{i:02d}.r01", 1000 + i, 1000, float(rates.mean()), 2.0, 7.0, 0.0, 40.0, True, rates=rates)
        used = {"db1": 1.0}
        for tier, share in ROOM.items():
            own = {"one its own": slow + 0.15 * rng.standard_normal() * (tier == "app")}
            slower = (own | {"common": slow, "half": slow / 2, "database only": 0.0}).get(kind)
            slower = spread * rng.standard_normal() if slower is None else slower
            cost = share / MAXIMUM * np.exp(slower + OWN * rng.standard_normal())
            used[f"{tier}1"] = float(cost * rates.mean())
        nodes = {node: node[:-1] for node in used}
        course = {node: 100 * cores * (1 + 0.05 * rng.standard_normal(10)) for node, cores in used.items()}
        used = {node: float(course[node].mean()) / 100 for node in used}
        cpus = [Saturation(n, nodes[n], "cpu", "", "", {}, 100 * used[n], NAN, 4.0, values=course[n]) for n in used]
        found.append(TrialData(load, cpus, nodes, used, dict.fromkeys(used, 1.0)))
    return found


def true_maximum(found: AtSpeed) -> float:
    """At which the tiers that count need what was found for an interaction, all of them slow alike."""
    return sum(ROOM[tier] for tier in found.tiers) / found.cost_s


def cell(runs: int, n: int, spread: float, kind: str) -> str:
    """Share refused; of the others how many intervals hold; how wide they are beside those of the throughput."""
    held, ratio, tried = 0, [], []
    for i in range(runs):
        some = trials_of(np.random.default_rng([i, n, round(1000 * spread), KINDS.index(kind)]), n, spread, kind)
        found = at_mean_speed(some, {"db"})
        tried.append(isinstance(found, AtSpeed))
        if isinstance(found, AtSpeed):
            held += found.maximum.low <= true_maximum(found) <= found.maximum.high
            ratio.append(found.maximum.half_width / (found.maximum.value * width(some)))
    given = sum(tried)
    if given < runs / 20:
        return f"given {given / runs:.0%}"
    low, high = wilson(held / given, given, 1.96)
    return f"given {given / runs:.0%}, holds {held / given:.3f} [{low:.3f}, {high:.3f}], {np.median(ratio):.2f} as wide"


def width(some: list[TrialData]) -> float:
    """Half-width of the maximum as it is, relative."""
    found = pooled(some)[0]
    return found.half_width / found.value if np.isfinite(found.low) else float("inf")


# ---- trials that were run --------------------------------------------------------------------------------------------


def beyond(store: Path, sweep: str) -> tuple[list[TrialData], set[str]]:
    """Trials beyond the knee, settled or not, and the tiers that limit."""
    (judged,) = verdicts(store, [sweep])
    tables = [read_table(store, t, sweep) for t in ("trials", "samples", "nodes", "interactions")]
    trials = trial_data(tables[0], tables[1][tables[1]["phase"] == "run"], *tables[2:])[0]
    members = [t for t in trials if t.load.valid and t.load.users >= ON_PLATEAU * judged.knee_users]
    return members, {b.tier for b in judged.bottlenecks}


def of_store(store: Path, sweep: str) -> str:
    members, limits = beyond(store, sweep)
    whole = at_mean_speed(members, limits)
    lines = [f"{sweep}: {len(members)} trials beyond the knee, limited by {', '.join(sorted(limits))}", f"all: {whole}"]
    halves = list(combinations(range(len(members)), len(members) // 2))
    rng = np.random.default_rng(1)
    chosen = halves if len(halves) <= MOST_HALVES else [halves[i] for i in rng.choice(len(halves), MOST_HALVES, False)]
    given, at_speed, plain = 0, 0, 0
    for half in chosen:
        one = [members[i] for i in half]
        other = [t for i, t in enumerate(members) if i not in half]
        found, against = at_mean_speed(one, limits), at_mean_speed(other, limits)
        if isinstance(found, AtSpeed) and isinstance(against, AtSpeed) and found.tiers == against.tiers:
            given += 1
            level = against.maximum.value * against.cost_s / found.cost_s
            at_speed += apart(found.maximum, level, against.maximum.half_width * against.cost_s / found.cost_s)
            a, b = pooled(one)[0], pooled(other)[0]
            plain += apart(a, b.value, b.half_width)
    lines.append(f"halves: {len(chosen)}, given in both {given}; apart at equal speed {at_speed}, as they are {plain}")
    return "\n".join(lines)


def apart(a: object, level: float, half_width: float) -> bool:
    """Whether two means differ by more than both half-widths together allow (root of the squares)."""
    return abs(a.value - level) > np.hypot(a.half_width, half_width)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=RUNS)
    options.add_argument("--store", type=Path)
    options.add_argument("sweep", nargs="?")
    chosen = options.parse_args()
    if chosen.store:
        print(of_store(chosen.store, chosen.sweep))
        return
    for kind in KINDS:
        print(f"\n{kind}\n")
        print(table("trials \\ speed differs by", SPREADS, TRIALS,
                    lambda n, spread, kind=kind: cell(chosen.runs, n, spread, kind)))  # fmt: skip


if __name__ == "__main__":
    main()
