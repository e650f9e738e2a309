"""Capacity search against the full grid on simulated networks of known truth: trials needed, error, and how often the
95 % interval of the maximum holds although the search stops by its width.

    python analysis/bench/capacity_search.py --runs 1000 --seed 1 [--grid] [--out results.csv]

Networks are drawn at random: 1..9 nodes per tier, any tier the bottleneck, knee between 900 and 16,000 nominal users,
demands from smooth to very variable. The range is the paper's, 1,000 to 13,000 users, the phases are `short`."""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from closed_network import THINK_S, Network, trial
from ntier_analysis.verdict.search import Goal, next_step
from ntier_analysis.verdict.sweep import judge_sweep

GRID = tuple(range(1000, 13001, 1000))
SCALE = 0.2


def random_network(rng: np.random.Generator) -> Network:
    """Knee log-uniform in 900..16,000 users, one tier the bottleneck, the others at 20..95 % of it."""
    knee = np.exp(rng.uniform(np.log(900), np.log(16_000)))
    maximum = knee * SCALE / THINK_S
    hot, nodes = int(rng.integers(4)), tuple(int(n) for n in rng.choice([1, 1, 1, 2, 4, 9], 4))
    shares = rng.uniform(0.2, 0.95, 4)
    shares[hot] = 1.0
    cores, idle = 0.2, float(rng.uniform(0, 0.008))
    demand = tuple(float(s * n * (cores - idle) / maximum) for s, n in zip(shares, nodes, strict=True))
    return Network(demand, nodes, cores, idle, cv2=float(rng.choice([1.0, 3.0, 6.0])))


def search(network: Network, seed: int, goal: Goal):
    trials = []
    while True:
        step = next_step(trials, goal, SCALE, network.idle_cores())
        if step.users is None:
            return judge_sweep("", "", trials, SCALE), len(trials), step.reason
        trials.append(trial(network, step.users, seed, SCALE))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=100)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--precision", type=float, default=0.05)
    options.add_argument("--most", type=int, default=4, help="loads; a search takes up to 6 if a precision is given")
    options.add_argument(
        "--most-if-few", type=int, default=6, help="the same while fewer than three lie beyond the knee"
    )
    options.add_argument("--grid", action="store_true", help="run the full grid too (slow)")
    options.add_argument("--seconds", type=float, default=float("inf"), help="begin no run after this time")
    options.add_argument("--out", type=Path)
    chosen = options.parse_args()
    rows, began = [], time.monotonic()
    for i in range(chosen.runs):
        if time.monotonic() - began > chosen.seconds:
            break
        seed = chosen.seed * 1_000_000 + i
        network = random_network(np.random.default_rng(seed))
        found, n, reason = search(network, seed, Goal(GRID, chosen.precision, chosen.most, chosen.most_if_few))
        rows.append(row(network, found, n, reason, seed))
        if chosen.grid:
            full = judge_sweep("", "", [trial(network, u, seed + 500_000, SCALE) for u in GRID], SCALE)
            rows[-1] |= {"grid": full.max_throughput.value, "grid_low": full.max_throughput.low,
                         "grid_high": full.max_throughput.high, "grid_verdict": full.verdict,
                         "grid_at_least": full.at_least, "grid_knee": full.knee_users}  # fmt: skip
    if chosen.out:
        with chosen.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    report(rows)
    print(f"{len(rows)} runs in {time.monotonic() - began:.0f} s")


def row(network: Network, found, n: int, reason: str, seed: int) -> dict:
    x, knee = found.max_throughput, network.maximum * THINK_S / SCALE
    return {
        "seed": seed, "knee_true": knee, "maximum": network.maximum, "cv2": network.cv2, "trials": n, "reason": reason,
        "value": x.value, "low": x.low, "high": x.high, "at_least": found.at_least, "verdict": found.verdict,
        "knee": found.knee_users, "plateau": len(found.plateau_users),
    }  # fmt: skip


def share(hits: list[bool]) -> str:
    """Share with Clopper-Pearson's 95 % interval."""
    if not hits:
        return "none"
    low, high = stats.binomtest(sum(hits), len(hits)).proportion_ci()
    return f"{100 * np.mean(hits):.1f} % [{100 * low:.1f}, {100 * high:.1f}] of {len(hits)}"


def report(rows: list[dict]) -> None:
    for reason in sorted({r["reason"] for r in rows}):
        mine = [r for r in rows if r["reason"] == reason]
        trials = np.bincount([r["trials"] for r in mine])
        print(
            f"stopped {reason!r}: {len(mine)}; trials {{{', '.join(f'{i}: {c}' for i, c in enumerate(trials) if c)}}}"
        )
    full = [r for r in rows if not r["at_least"]]
    print(f"interval holds the true maximum: {share([r['low'] <= r['maximum'] <= r['high'] for r in full])}")
    for cv2 in sorted({r["cv2"] for r in full}):
        mine = [r for r in full if r["cv2"] == cv2]
        print(f"  cv2 {cv2:g}: {share([r['low'] <= r['maximum'] <= r['high'] for r in mine])}")
    errors = 100 * np.array([r["value"] / r["maximum"] - 1 for r in full])
    print(f"error: mean {errors.mean():+.2f} %, sd {errors.std():.2f} %, worst {abs(errors).max():.1f} %")
    widths = [(r["high"] - r["low"]) / 2 / r["value"] for r in full]
    print(f"half-width: median {100 * np.median(widths):.1f} %, most {100 * max(widths):.1f} %")
    both = [r for r in full if "grid" in r]
    if both:
        overlap = [r["low"] <= r["grid_high"] and r["grid_low"] <= r["high"] for r in both]
        solid = [r["grid_low"] <= r["maximum"] <= r["grid_high"] for r in both if not r["grid_at_least"]]
        print(f"overlaps the grid's interval: {share(overlap)}")
        print(f"the grid's own interval holds: {share(solid)}")


if __name__ == "__main__":
    main()
