"""All statistics of one stored sweep, beside the same done with pandas, SciPy and statsmodels, in one run.

    analysis/bench/sweep_statistics.py STORE SWEEP [--repeats 5]

Both get the sweep's tables in memory. Printed: CPU ms of each part (median of interleaved repeats, and the range), the
ratio, and how far the results differ. The libraries' way is what an analyst would write: densities by `gaussian_kde`
with the same bandwidth (it does not reflect at the ends), saturation shares with a Wilson interval on the sample size
that the autocorrelation leaves, throughput from ten batches of a resampled series."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from ntier_analysis.density import GRID_PCT, densities
from ntier_analysis.statistics.throughput import BATCHES, throughput
from ntier_analysis.store.tables import read_table
from ntier_analysis.verdict.saturation import METRICS, THRESHOLDS, saturations
from ntier_analysis.verdict.tables import NEEDED_METRICS, sweep_verdict
from scipy import stats
from statsmodels.stats.proportion import proportion_confint
from statsmodels.tsa.stattools import acf

BANDWIDTH_PCT = 2.0


@dataclass
class Sweep:
    """Tables of a sweep; `runs`: trial -> start and end of its run phase."""

    name: str
    trials: pd.DataFrame
    samples: pd.DataFrame
    nodes: pd.DataFrame
    done: pd.DataFrame

    @property
    def runs(self) -> dict[str, tuple[float, float]]:
        rows = self.trials[["trial", "run_start_s", "run_end_s"]].itertuples(index=False)
        return {name: (start, end) for name, start, end in rows}

    def utilizations(self) -> list[np.ndarray]:
        """Utilization of each resource of each node in each trial, within 0 and 100 %."""
        some = self.samples[self.samples["metric"] == "utilization_pct"].dropna(subset="value")
        keys = ["trial", "node", "resource", "item", "source"]
        return [g.to_numpy(dtype=float).clip(0, 100) for _, g in some.groupby(keys)["value"]]


def read(store: Path, name: str) -> Sweep:
    wanted = [("metric", "in", list(NEEDED_METRICS)), ("phase", "=", "run")]
    return Sweep(
        name,
        read_table(store, "trials", name),
        read_table(store, "samples", name, filters=wanted),
        read_table(store, "nodes", name),
        read_table(store, "interactions", name, columns=["trial", "t_s", "ok"]),
    )


# ---- ours ----------------------------------------------------------------------------------------------------------


def our_densities(sweep: Sweep) -> np.ndarray:
    return densities(sweep.utilizations(), BANDWIDTH_PCT)


def our_shares(sweep: Sweep) -> np.ndarray:
    """(n, 2): saturation share and half-width of its interval, of all thresholds."""
    by_trial = dict(iter(sweep.samples.groupby("trial")))
    rows = [s for t, (a, b) in sweep.runs.items() if t in by_trial for s in saturations(by_trial[t], a, b)]
    return np.array([(x.value, (x.high - x.low) / 2) for s in rows for x in s.shares.values()])


def our_throughputs(sweep: Sweep) -> np.ndarray:
    done = dict(iter(sweep.done[sweep.done["ok"]].groupby("trial")["t_s"]))
    rates = [throughput(done[t].to_numpy(), a, b) for t, (a, b) in sweep.runs.items() if t in done]
    return np.array([(x.value, x.half_width) for x in rates])


# ---- with the libraries --------------------------------------------------------------------------------------------


def their_densities(sweep: Sweep) -> np.ndarray:
    return np.array([_kde(x) for x in sweep.utilizations()])


def _kde(x: np.ndarray) -> np.ndarray:
    spread = x.std(ddof=1) if len(x) > 1 else 0.0
    if spread < 1e-9:  # an error in SciPy
        return np.full(len(GRID_PCT), np.nan)
    return stats.gaussian_kde(x, BANDWIDTH_PCT / spread)(GRID_PCT)


def their_shares(sweep: Sweep) -> np.ndarray:
    some = sweep.samples[sweep.samples["metric"].isin(METRICS)]
    rows = []
    for _, group in some.groupby(["trial", "node", "resource", "item", "source"]):
        wide = group.pivot_table(index="t_s", columns="metric", values="value")
        if "utilization_pct" not in wide:
            continue
        judged = wide["throttled_pct"] + 5 if "throttled_pct" in wide else wide["utilization_pct"]
        for threshold in THRESHOLDS:
            marked = (judged.dropna() >= threshold).astype(float)
            rows.append(_wilson(marked))
    return np.array(rows)


def _wilson(marked: pd.Series) -> tuple[float, float]:
    n, share = len(marked), float(marked.mean())
    worth = float(n)
    if 0 < share < 1:
        correlations = acf(marked, nlags=n // 2, fft=True)[1:]
        last = np.argmax(correlations <= 0) if (correlations <= 0).any() else len(correlations)
        worth = n / max(1.0, 1 + 2 * correlations[:last].sum())
    low, high = proportion_confint(share * worth, worth, method="wilson")
    return share, (high - low) / 2


def their_throughputs(sweep: Sweep) -> np.ndarray:
    rows = []
    for trial, (start, end) in sweep.runs.items():
        t = sweep.done.loc[(sweep.done["trial"] == trial) & sweep.done["ok"], "t_s"]
        t = t[(t >= start) & (t < end)]
        index = pd.to_timedelta(t - start, unit="s")
        width = (end - start) / BATCHES
        counts = pd.Series(1, index=index).resample(pd.Timedelta(seconds=width), origin="start_day").sum() / width
        counts = counts.iloc[:BATCHES]
        low, high = stats.t.interval(0.95, len(counts) - 1, counts.mean(), counts.sem())
        rows.append((counts.mean(), (high - low) / 2))
    return np.array(rows)


# ---- side by side --------------------------------------------------------------------------------------------------


def cpu_ms(work: Callable[[Sweep], np.ndarray], sweep: Sweep) -> tuple[float, np.ndarray]:
    start = time.process_time()
    result = work(sweep)
    return 1e3 * (time.process_time() - start), result


def spread(times: list[float]) -> str:
    return f"{np.median(times):,.0f} ({min(times):,.0f}-{max(times):,.0f})"


def compare(part: str, ours: Callable, theirs: Callable, sweep: Sweep, repeats: int) -> str:
    own, other, mine, their = [], [], np.array([]), np.array([])
    ours(sweep)  # compiles
    for _ in range(repeats):
        ms, mine = cpu_ms(ours, sweep)
        own.append(ms)
        ms, their = cpu_ms(theirs, sweep)
        other.append(ms)
    ratio = np.median(np.array(other) / np.array(own))
    return f"| {part} | {len(mine):,} | {spread(own)} | {spread(other)} | {ratio:.1f}x | {difference(mine, their)} |"


def difference(mine: np.ndarray, their: np.ndarray) -> str:
    if mine.shape != their.shape:
        return f"{len(their):,} of the libraries"
    if mine.shape[1] == len(GRID_PCT):
        mass = np.trapezoid(their, GRID_PCT, axis=1)
        lost = np.isnan(mass)
        return f"theirs: {lost.sum()} impossible, mass in 0..100 down to {np.nanmin(mass):.2f}"
    # ours also count requests that wait for a pool, and work that a tick counted into the next sample
    equal = np.isclose(mine[:, 0], their[:, 0], atol=0.01).mean()
    width = np.nanmedian(mine[:, 1] / their[:, 1])
    return f"{100 * equal:.0f} % of the values equal to 0.01; our half-width / theirs {width:.2f} (median)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store", type=Path)
    parser.add_argument("sweep")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    start = time.process_time()
    sweep = read(given.store, given.sweep)
    reading = 1e3 * (time.process_time() - start)
    print(
        f"{sweep.name}: {len(sweep.trials)} trials, {sweep.samples['node'].nunique()} nodes, {len(sweep.samples):,} "
        f"samples, {len(sweep.done):,} interactions; read from the store in {reading:,.0f} ms\n\n"
        "| | n | ours, CPU ms | pandas, SciPy, statsmodels, CPU ms | ratio | |\n|---|--:|--:|--:|--:|---|"
    )
    parts = [
        ("densities", our_densities, their_densities),
        ("saturation with intervals", our_shares, their_shares),
        ("throughput with intervals", our_throughputs, their_throughputs),
    ]
    for part in parts:
        print(compare(*part, sweep, given.repeats), flush=True)
    own = []
    for _ in range(given.repeats):
        start = time.process_time()
        sweep_verdict(sweep.name, sweep.trials, sweep.samples, sweep.nodes, sweep.done)
        own.append(1e3 * (time.process_time() - start))
    print(f"| verdict, from the tables | 1 | {spread(own)} | | | |")


if __name__ == "__main__":
    main()
