"""How often the 95 % intervals of the analysis hold the truth, by seeded simulation.

    python analysis/bench/interval_coverage.py [--runs 400]

Prints Markdown, the tables of docs/detector.md, in a minute or two. In brackets: Wilson 95 % for that many runs. Runs
that gave no interval are left out, and the share of the others is given.

* maximum throughput: 1 to 8 trials of 60 s, each with batch rates of its own noise (4 % of a batch), the trials' own
  rates differing by 0 to 10 %;
* saturation: a resource that goes on and off, states of exponential length, sampled at 10 Hz and 1 Hz;
* demand: CPU in use at loads below saturation, which differ from the law by 1 to 5 %; the same of 3 % with repetitions,
  which share what their load is off the law and differ by 0.5 % themselves;
* ratio of the maxima of two sweeps of 3 or 6 trials each."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from ntier_analysis.statistics.laws import demand_of, pool
from ntier_analysis.statistics.ratios import of_intervals
from ntier_analysis.statistics.share import saturation_share, wilson
from ntier_analysis.statistics.throughput import BATCHES
from ntier_analysis.statistics.values import Interval, Ratio

RUNS = 400
BATCH_NOISE = 0.04
BETWEEN = (0.0, 0.03, 0.05, 0.10)
TRIALS = (1, 2, 3, 5, 8)
REPEATED = 0.005
SHARES = (0.1, 0.3, 0.5, 0.8, 0.95)
CORRELATIONS_S = (0.3, 1.0, 3.0, 10.0)


def held(intervals: list[Interval | Ratio], truth: float) -> str:
    """`0.952 [0.927, 0.969]`: how many hold the truth; after it, if some runs gave no interval, how many did."""
    known = [i for i in intervals if np.isfinite(i.low)]
    there = f" ({len(known) / len(intervals):.0%})" if len(known) < len(intervals) else ""
    return _text(np.array([i.low <= truth <= i.high for i in known])) + there


def _text(hits: np.ndarray) -> str:
    low, high = wilson(float(hits.mean()), len(hits), 1.96)
    return f"{hits.mean():.3f} [{low:.3f}, {high:.3f}]"


def table(corner: str, columns: tuple, rows: tuple, cell: Callable[[object, object], str], name: Callable = str) -> str:
    lines = [f"| {corner} | " + " | ".join(name(c) for c in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    lines += ["| " + " | ".join([name(r), *(cell(r, c) for c in columns)]) + " |" for r in rows]
    return "\n".join(lines)


# ---- maximum -------------------------------------------------------------------------------------------------------


def plateau(rng: np.random.Generator, trials: int, between: float, mean: float = 100.0) -> Interval:
    """Trials of one system whose speed differs from trial to trial by `between` (relative s.d.)."""
    levels = mean * (1 + between * rng.standard_normal(trials))
    rates = levels[:, None] * (1 + BATCH_NOISE * rng.standard_normal((trials, BATCHES)))
    return pool(list(rates))[0]


def maxima(trials: int, between: float, runs: int) -> list[Interval]:
    rng = np.random.default_rng([1, trials, round(1000 * between)])
    return [plateau(rng, trials, between) for _ in range(runs)]


def ratios(trials: int, between: float, runs: int) -> list[Ratio]:
    rng = np.random.default_rng([2, trials, round(1000 * between)])
    return [of_intervals(plateau(rng, trials, between), plateau(rng, trials, between, mean=120.0)) for _ in range(runs)]


# ---- saturation ----------------------------------------------------------------------------------------------------


def on_off(rng: np.random.Generator, share: float, correlation_s: float, run_s: float, interval_s: float) -> np.ndarray:
    """1 and 0 at each sample; the correlation falls as exp(-t / correlation_s)."""
    stay = np.exp(-interval_s / correlation_s)
    draws = rng.random(round(run_s / interval_s))
    states = np.empty(len(draws))
    state = draws[0] < share
    for i, draw in enumerate(draws):
        if i:
            state = draw < share * (1 - stay) + stay * state
        states[i] = state
    return states


def shares(share: float, correlation_s: float, run_s: float, interval_s: float, runs: int) -> list:
    rng = np.random.default_rng([3, *(round(100 * v) for v in (share, correlation_s, run_s, interval_s))])
    return [saturation_share(on_off(rng, share, correlation_s, run_s, interval_s), interval_s) for _ in range(runs)]


def share_cell(share: float, correlation_s: float, run_s: float, interval_s: float, runs: int) -> str:
    """Coverage; after a slash that of the runs with enough changes, where these are not all."""
    intervals = shares(share, correlation_s, run_s, interval_s, runs)
    hits = np.array([s.low <= share <= s.high for s in intervals])
    enough = np.array([s.enough_changes for s in intervals])
    told = f"{hits.mean():.2f}"
    if enough.all():
        return told
    return f"{told} / " + (f"{hits[enough].mean():.2f}" if enough.sum() >= 20 else "–") + f" ({enough.mean():.0%})"


# ---- demand --------------------------------------------------------------------------------------------------------


def demands(loads: int, noise: float, runs: int, repetitions: int = 1) -> list[Interval]:
    """0.05 cores idle and 2 ms an interaction, at rates of 20 to 80 % of a core's capacity."""
    rng = np.random.default_rng([4, loads, round(1000 * noise), *([repetitions] if repetitions > 1 else [])])
    level = np.repeat(np.arange(loads), repetitions)
    rate = (np.linspace(0.2, 0.8, loads) * 0.95 / 0.002)[level]
    used, found = 0.05 + 0.002 * rate, []
    for _ in range(runs):
        off = (1 + noise * rng.standard_normal(loads))[level]
        if repetitions > 1:
            off = off * (1 + REPEATED * rng.standard_normal(len(level)))
        found.append(demand_of(rate, used * off, 1.0, level).interval)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=RUNS)
    runs = parser.parse_args().runs
    percent = "{:.0%}".format
    print("Maximum throughput, by number of trials and what these differ by (s.d.):\n")
    print(table("trials", BETWEEN, TRIALS, lambda k, b: held(maxima(k, b, runs), 100.0), _named))
    print("\nRatio of two maxima, by trials a side and what these differ by:\n")
    print(table("trials", BETWEEN, (3, 6), lambda k, b: held(ratios(k, b, runs), 1.2), _named))
    print("\nDemand, by number of loads and what CPU in use differs by from the law:\n")
    cell = lambda k, e: held(demands(k, e, runs), 0.002)  # noqa: E731
    print(table("loads", (0.01, 0.02, 0.05), (3, 4, 6, 10), cell, _named))
    print("\nDemand, by number of loads and repetitions of each:\n")
    cell = lambda k, r: held(demands(k, 0.03, runs, r), 0.002)  # noqa: E731
    print(table("loads", (1, 3, 5), (3, 4, 6), cell))
    for interval_s, run_s in ((0.1, 60.0), (0.1, 180.0), (1.0, 60.0), (1.0, 180.0)):
        print(f"\nSaturation, {run_s:.0f} s sampled every {interval_s:g} s, by share and correlation time:\n")
        cell = lambda tau, p, r=run_s, i=interval_s: share_cell(p, tau, r, i, runs // 2)  # noqa: E731
        print(table("s \\ share", SHARES, CORRELATIONS_S, cell, "{:g}".format), flush=True)
    print(f"\n{runs} runs a cell (saturation: {runs // 2}); standard error at {percent(0.95)}: "
          f"{(0.95 * 0.05 / runs) ** 0.5:.3f}")  # fmt: skip


def _named(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.0%}"


if __name__ == "__main__":
    main()
