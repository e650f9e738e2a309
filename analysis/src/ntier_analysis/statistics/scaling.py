"""How throughput grows with replicas: Amdahl's law and the Universal Scalability Law, with intervals.

X(n) = lambda n / (1 + sigma (n - 1) + kappa n (n - 1)); sigma: share that does not scale (contention), kappa: cost of
keeping replicas in step (coherency; Amdahl: 0). Gunther, Guerrilla Capacity Planning, 2007."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.optimize import nnls

Array = npt.NDArray[np.float64]

DRAWS = 400
"""Parametric bootstrap: the ends of a 95 % interval move by a few per cent of its width from seed to seed."""


@dataclass(frozen=True)
class Curve:
    """One law fitted. `value`, `low`, `high`: lambda (1/s per replica), sigma, kappa with 95 % intervals. `p`: of the
    chi-square test that it fits (NaN without a degree of freedom). `aicc`: smaller is better (NaN: too few points)."""

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
        curves = np.array([usl(np.asarray(n, float), *d) for d in self.draws])
        return tuple(np.percentile(curves, (2.5, 97.5), axis=0))

    @property
    def peak(self) -> float:
        """Number of replicas at which throughput is largest; infinite without coherency cost."""
        _, sigma, kappa = self.value
        return float("inf") if kappa <= 1e-9 else float(np.sqrt((1 - sigma) / kappa))


def usl(n: Array, rate: float, sigma: float, kappa: float) -> Array:
    return rate * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def fit(n: npt.ArrayLike, throughput: npt.ArrayLike, errors: npt.ArrayLike, seed: int = 1) -> tuple[Curve, Curve, str]:
    """Amdahl and USL through throughputs (1/s, standard errors > 0) of n replicas (different ones, at least 2 and 3
    points wanted), and in words which of them the data prefer. Raises ValueError with fewer than 3 points."""
    n, x, e = (np.asarray(v, float) for v in (n, throughput, errors))
    if len(np.unique(n)) < 3:
        raise ValueError("a scale-out fit needs at least 3 numbers of replicas")
    if not ((x > 0).all() and (e > 0).all()):
        raise ValueError("throughputs and their standard errors must be positive")
    amdahl, universal = (_curve(name, n, x, e, seed) for name in ("Amdahl", "USL"))
    return amdahl, universal, _preferred(amdahl, universal, len(n))


def _curve(name: str, n: Array, x: Array, e: Array, seed: int) -> Curve:
    best, chi2 = _solve(name, n, x, e)
    rng = np.random.default_rng(seed)
    draws = np.array([_solve(name, n, np.maximum(rng.normal(x, e), 0.01 * x), e)[0] for _ in range(DRAWS)])
    count = 2 if name == "Amdahl" else 3
    freedom = len(n) - count
    p = float(stats.chi2.sf(chi2, freedom)) if freedom > 0 else float("nan")
    # small-sample correction of Akaike's criterion; it needs more points than parameters + 1
    aicc = chi2 + 2 * count + 2 * count * (count + 1) / (freedom - 1) if freedom > 1 else float("nan")
    low, high = np.percentile(draws, (2.5, 97.5), axis=0)
    return Curve(name, tuple(map(float, best)), tuple(map(float, low)), tuple(map(float, high)), p, aicc, draws)


def _solve(name: str, n: Array, x: Array, e: Array) -> tuple[Array, float]:
    """Parameters and chi-square. n / X is linear in 1/lambda, sigma/lambda and kappa/lambda, none of them negative; its
    error is n e / X^2."""
    columns = [np.ones_like(n), n - 1] + ([n * (n - 1)] if name == "USL" else [])
    weight = x**2 / (n * e)
    coefficients, _ = nnls(np.column_stack(columns) * weight[:, None], n / x * weight)
    rate = 1 / max(coefficients[0], 1e-12)
    solution = np.r_[rate, coefficients[1:] * rate, [] if name == "USL" else [0.0]]
    return solution, float((((x - usl(n, *solution)) / e) ** 2).sum())


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
