"""Densities side by side: ours, SciPy, KDEpy, statsmodels and arviz-stats, in one run on one sample.

    analysis/bench/density.py [--large] [--repeats 5]

The sample is a saturated CPU (55 % of it within a few points of 100 %, a mode at 78 %). All get the same bandwidth.
Printed: CPU ms per density (median of interleaved repeats), ratio to SciPy, largest error as a share of the peak
against the exact reflected sum, and the mass that lies in [0, 100] %. The other libraries are installed into an
environment of their own (build/bench-density) and this script is run again there."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
OTHERS = ["KDEpy==1.1.12", "statsmodels==0.15.0", "arviz-stats[xarray]"]
OURS = ["numpy", "scipy", "numba"]
BANDWIDTH_PCT = 2.0

Method = Callable[[np.ndarray, np.ndarray], np.ndarray]


def saturated(n: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    busy = 100 - rng.exponential(1.5, n)
    return np.clip(np.where(rng.random(n) < 0.55, busy, rng.normal(78, 6, n)), 0, 100)


def methods() -> dict[str, Method]:
    """Name -> function of (samples, grid), for the libraries that are installed."""
    from ntier_analysis.density import density
    from scipy.stats import gaussian_kde

    known: dict[str, Method] = {
        "ntier": lambda x, grid: np.interp(grid, np.linspace(0, 100, 401), density(x, BANDWIDTH_PCT)),
        "scipy gaussian_kde": lambda x, grid: gaussian_kde(x, BANDWIDTH_PCT / x.std(ddof=1))(grid),
    }
    if find_spec("KDEpy"):
        from KDEpy import FFTKDE

        def kdepy(x: np.ndarray, grid: np.ndarray) -> np.ndarray:
            wide, values = FFTKDE(bw=BANDWIDTH_PCT).fit(x).evaluate(1024)
            return np.interp(grid, wide, values, left=0.0, right=0.0)

        known["KDEpy FFTKDE"] = kdepy
    if find_spec("statsmodels"):
        from statsmodels.nonparametric.kde import KDEUnivariate

        def statsmodels(x: np.ndarray, grid: np.ndarray) -> np.ndarray:
            fit = KDEUnivariate(x)
            fit.fit(bw=BANDWIDTH_PCT, fft=True, gridsize=1024)
            return np.interp(grid, fit.support, fit.density, left=0.0, right=0.0)

        known["statsmodels fft"] = statsmodels
    if find_spec("arviz_stats"):
        from arviz_stats.base import array_stats

        def arviz(x: np.ndarray, grid: np.ndarray) -> np.ndarray:
            at, values, _ = array_stats.kde(x, bw=BANDWIDTH_PCT, bound_correction=True, custom_lims=(0, 100))
            return np.interp(grid, at, values)

        known["arviz-stats, reflected"] = arviz
    return known


def measure(n: int, repeats: int) -> None:
    from ntier_analysis.density import GRID_PCT, reflected_sum

    x, grid = saturated(n), GRID_PCT
    # in parts: the exact sum holds a value per sample and grid point
    exact = np.mean([reflected_sum(part, BANDWIDTH_PCT, grid) for part in x.reshape(-1, min(n, 10_000))], axis=0)
    times: dict[str, list[float]] = {}
    curves: dict[str, np.ndarray] = {}
    known = methods()
    for method in known.values():  # compiles, imports
        method(x[:100], grid)
    for _ in range(repeats):
        for name, method in known.items():
            if name.startswith("scipy") and n > 200_000 and name in times:
                continue  # ten seconds each
            start = time.process_time()
            curves[name] = method(x, grid)
            times.setdefault(name, []).append(1e3 * (time.process_time() - start))
    base = float(np.median(times["scipy gaussian_kde"]))
    for name, durations_ms in times.items():
        curve, ms = curves[name], float(np.median(durations_ms))
        error = f"{np.abs(curve - exact).max() / exact.max():.1e}"
        mass = float(np.trapezoid(curve, grid))
        print(f"| {name} | {n:,} | {ms:.3f} | {base / ms:,.0f}x | {error} | {mass:.3f} |")


def measure_batch(series: int, n: int, repeats: int) -> None:
    from ntier_analysis.density import densities
    from scipy.stats import gaussian_kde

    batch = saturated(series * n).reshape(series, n)
    at = np.linspace(0, 100, 401)
    densities(batch[:2], BANDWIDTH_PCT)
    ours, scipy = [], []
    for _ in range(repeats):
        start = time.process_time()
        densities(batch, BANDWIDTH_PCT)
        ours.append(1e6 * (time.process_time() - start) / series)
        start = time.process_time()
        for row in batch[:20]:
            gaussian_kde(row, BANDWIDTH_PCT / row.std(ddof=1))(at)
        scipy.append(1e6 * (time.process_time() - start) / 20)
    us, base = float(np.median(ours)), float(np.median(scipy))
    print(
        f"\nBatch of {series:,} series of {n}: {us:.0f} us each, SciPy {base:.0f} us ({base / us:.0f}x); "
        f"the 1.2 million densities of the paper take {us * 1.2:.0f} s of one core."
    )


def environment() -> Path:
    """Python of an environment with the other libraries, made on first use."""
    folder = ROOT / "build" / "bench-density"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        uv = ROOT / ".venv" / "bin" / "uv"
        subprocess.run([uv, "venv", "-q", "--clear", "--python", sys.executable, folder], check=True)
        subprocess.run([uv, "pip", "install", "-q", "--python", python, *OURS, *OTHERS], check=True)
        (folder / "ready").touch()
    return python


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="also a million samples (SciPy alone takes ten seconds)")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if not find_spec("KDEpy"):
        path = os.pathsep.join([str(ROOT / "analysis" / "src"), os.environ.get("PYTHONPATH", "")])
        return subprocess.run([environment(), *sys.argv], env=os.environ | {"PYTHONPATH": path}, check=False).returncode
    print("| method | n | CPU ms | vs SciPy | error / peak | mass in 0..100 |\n|---|--:|--:|--:|--:|--:|")
    for n in (720, 10_000, 100_000, *([1_000_000] if options.large else [])):
        measure(n, options.repeats)
    measure_batch(4_000, 720, options.repeats)
    return 0


if __name__ == "__main__":
    sys.exit(main())
