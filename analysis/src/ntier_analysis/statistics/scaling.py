"""How throughput grows with replicas: Amdahl's law and the Universal Scalability Law, with intervals.

X(n) = lambda n / (1 + sigma (n - 1) + kappa n (n - 1)); sigma: share that does not scale (contention), kappa: cost of
keeping replicas in step (coherency; Amdahl: 0). Gunther, Guerrilla Capacity Planning, 2007."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ntier_analysis.statistics import distributions as stats

Array = npt.NDArray[np.float64]

DRAWS = 1000
"""Parametric bootstrap: the ends of a 95 % interval move by a few per cent of its width from seed to seed."""
RUNS = 2000
"""Simulated for the test of a fit: where p is 0.01, it comes out as 0.006 to 0.014."""
LEAST_FACTOR = 1e-4
"""No simulated error is smaller than this share of the true one: weights beyond that leave the solution no digits."""


@dataclass(frozen=True)
class Curve:
    """One law fitted. `value`, `low`, `high`: lambda (1/s per replica), sigma, kappa with 95 % intervals. `p`: of the
    test that it fits, by chi-square, simulated where errors are estimated (NaN without a degree of freedom). `aicc`:
    smaller is better (NaN: too few points). It presumes known errors. With estimated ones two laws differ in it by too
    much, so a difference alone prefers no law with more parameters: the interval of kappa must agree."""

    name: str
    value: tuple[float, float, float]
    low: tuple[float, float, float]
    high: tuple[float, float, float]
    p: float
    aicc: float
    draws: Array

    def at(self, n: npt.ArrayLike) -> Array:
        return usl(np.asarray(n, float), *self.value)

    def band(self, n: npt.ArrayLike) -> tuple[Array, Array]:
        """95 % interval of the curve at each n."""
        curves = usl(np.asarray(n, float), *self.draws.T[..., None])
        return tuple(np.percentile(curves, (2.5, 97.5), axis=0))

    @property
    def peak(self) -> float:
        """Number of replicas at which throughput is largest; infinite without coherency cost."""
        _, sigma, kappa = self.value
        return float("inf") if kappa <= 1e-9 else float(np.sqrt((1 - sigma) / kappa))


def usl(n: Array, rate: float | Array, sigma: float | Array, kappa: float | Array) -> Array:
    return rate * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def fit(
    n: npt.ArrayLike,
    throughput: npt.ArrayLike,
    errors: npt.ArrayLike,
    freedom: npt.ArrayLike = math.inf,
    seed: int = 1,
) -> tuple[Curve, Curve, str]:
    """Amdahl and USL through throughputs (1/s, standard errors > 0) of n replicas (different ones, at least 2 and 3
    points wanted), and in words which of them the data prefer. `freedom`: degrees of freedom that each error was
    estimated with; infinite: known. Raises ValueError with fewer than 3 points."""
    n, x, e = (np.asarray(v, float) for v in (n, throughput, errors))
    freedom = np.broadcast_to(np.asarray(freedom, float), n.shape)
    if len(np.unique(n)) < 3:
        raise ValueError("a scale-out fit needs at least 3 numbers of replicas")
    if not ((x > 0).all() and (e > 0).all() and (freedom > 0).all()):
        raise ValueError("throughputs, their standard errors and degrees of freedom must be positive")
    amdahl, universal = (_curve(name, n, x, e, freedom, seed) for name in ("Amdahl", "USL"))
    return amdahl, universal, _preferred(amdahl, universal, len(n))


def _curve(name: str, n: Array, x: Array, e: Array, freedom: Array, seed: int) -> Curve:
    best, chi2 = _solve(name, n, x, e)
    rng = np.random.default_rng(seed)
    off, factor = _noise(freedom, DRAWS, rng)
    draws, _ = _solve(name, n, np.maximum(x + e * off / factor, 0.01 * x), e)
    count = 2 if name == "Amdahl" else 3
    spare = len(n) - count
    p = _p_fits(name, n, usl(n, *best), e, freedom, float(chi2), rng) if spare > 0 else float("nan")
    # small-sample correction of Akaike's criterion; it needs more points than parameters + 1
    aicc = float(chi2) + 2 * count + 2 * count * (count + 1) / (spare - 1) if spare > 1 else float("nan")
    low, high = np.percentile(draws, (2.5, 97.5), axis=0)
    return Curve(name, tuple(map(float, best)), tuple(map(float, low)), tuple(map(float, high)), p, aicc, draws)


def _p_fits(
    name: str, n: Array, fitted: Array, e: Array, freedom: Array, chi2: float, rng: np.random.Generator
) -> float:
    """Share of runs around the fitted curve whose chi-square is as large. An error from three trials may be far too
    small by chance, and then a true curve has a chi-square far beyond its table: each run estimates its own errors."""
    if np.isinf(freedom).all():
        return float(stats.chi2.sf(chi2, len(n) - (2 if name == "Amdahl" else 3)))
    off, factor = _noise(freedom, RUNS, rng)
    _, seen = _solve(name, n, np.maximum(fitted + e * off, 0.01 * fitted), e * factor)
    return float((1 + (seen >= chi2).sum()) / (1 + RUNS))


def _noise(freedom: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """(count, points): normal errors of standard deviation 1, and estimates of this deviation (1 where it is known).
    Their quotient is Student's t."""
    known = np.isinf(freedom)
    finite = np.where(known, 1.0, freedom)
    off = rng.standard_normal((count, len(freedom)))
    factor = np.sqrt(rng.chisquare(finite, off.shape) / finite)
    return off, np.where(known, 1.0, np.maximum(factor, LEAST_FACTOR))


def _solve(name: str, n: Array, x: Array, e: Array) -> tuple[Array, Array]:
    """Parameters (..., 3) and chi-square (...) of each row of x. n / X is linear in 1/lambda, sigma/lambda and
    kappa/lambda; its error is n e / X^2. None of them is negative: of the least-squares fits with some of them 0, the
    best without a negative one counts (as `scipy.optimize.nnls`, for all rows at once)."""
    columns = np.array([np.ones_like(n), n - 1] + ([n * (n - 1)] if name == "USL" else []))
    weight = x**2 / (n * e)
    wanted, parts = n / x * weight, columns * weight[..., None, :]
    coefficients, least = np.zeros((*x.shape[:-1], 3)), np.full(x.shape[:-1], np.inf)
    for chosen in (list(c) for k in range(1, len(columns) + 1) for c in itertools.combinations(range(len(columns)), k)):
        part = parts[..., chosen, :]
        found = np.linalg.solve(part @ np.swapaxes(part, -1, -2), part @ wanted[..., None])
        rest = ((wanted - (found * part).sum(axis=-2)) ** 2).sum(axis=-1)
        better = (found >= 0).all(axis=(-1, -2)) & (rest < least)
        own = np.zeros_like(coefficients)
        own[..., chosen] = found[..., 0]
        coefficients, least = np.where(better[..., None], own, coefficients), np.where(better, rest, least)
    rate = 1 / np.maximum(coefficients[..., :1], 1e-12)
    solution = np.concatenate([rate, coefficients[..., 1:] * rate], axis=-1)
    fitted = usl(n, *np.moveaxis(solution, -1, 0)[..., None])
    return solution, (((x - fitted) / e) ** 2).sum(axis=-1)


def _preferred(amdahl: Curve, universal: Curve, points: int) -> str:
    if np.isnan(universal.p) and amdahl.p < 0.01:
        return f"Amdahl's law does not fit (p < 0.01), and {points} points cannot test the Universal Scalability Law"
    if amdahl.p < 0.01 and universal.p < 0.01:
        return "neither law fits (p < 0.01): something else limits from some number of replicas on"
    if not (np.isfinite(amdahl.aicc) and np.isfinite(universal.aicc)):
        return f"{points} points cannot tell Amdahl's law from the Universal Scalability Law"
    gain = amdahl.aicc - universal.aicc
    if gain > 2 and universal.low[2] > 1e-6:
        return "the data prefer the Universal Scalability Law: replicas cost each other"
    if gain < -2:
        return "the data prefer Amdahl's law: no cost of coherency is seen"
    return "the data cannot tell Amdahl's law from the Universal Scalability Law"
