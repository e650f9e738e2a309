"""Distributions of service, think and hold times. Each sampler draws from the caller's own stream only, so that a user
asks for the same work in every run (common random numbers)."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

Sampler = Callable[[Random], float]

LAWS = ("exponential", "erlang", "deterministic", "hyperexponential", "lognormal", "pareto")
ERLANG_PHASES = 4
HYPER_CV2 = 6.0
"""Squared coefficient of variation of the hyperexponential: a mix of short and rare long requests."""
LOGNORMAL_CV = 1.5
PARETO_SHAPE, PARETO_CAP = 1.8, 200.0
"""Infinite variance, cut at 200 times the smallest: the longest request is then about 90 times the mean one."""


def sampler(law: str, mean: float) -> Sampler:
    """Draws of a law with this mean, in its unit."""
    if mean <= 0:
        return lambda rng: 0.0
    if law == "deterministic":
        return lambda rng: mean
    if law == "exponential":
        rate = 1 / mean
        return lambda rng: rng.expovariate(rate)
    if law == "erlang":
        return lambda rng: rng.gammavariate(ERLANG_PHASES, mean / ERLANG_PHASES)
    if law == "hyperexponential":
        return _hyperexponential(mean)
    if law == "lognormal":
        sigma2 = math.log(1 + LOGNORMAL_CV**2)
        mu, sigma = math.log(mean) - sigma2 / 2, math.sqrt(sigma2)
        return lambda rng: rng.lognormvariate(mu, sigma)
    if law == "pareto":
        return _pareto(mean)
    raise ValueError(f"law {law!r}, allowed are {', '.join(LAWS)}")


def _hyperexponential(mean: float) -> Sampler:
    """Two phases with balanced means."""
    p = (1 + math.sqrt((HYPER_CV2 - 1) / (HYPER_CV2 + 1))) / 2
    short, long = 2 * p / mean, 2 * (1 - p) / mean
    return lambda rng: rng.expovariate(short if rng.random() < p else long)


def _pareto(mean: float) -> Sampler:
    """Bounded Pareto by inversion."""
    a, cap = PARETO_SHAPE, PARETO_CAP
    tail = 1 - cap**-a
    unit = a / (a - 1) * (1 - cap ** (1 - a)) / tail
    scale = mean / unit
    return lambda rng: scale * (1 - rng.random() * tail) ** (-1 / a)
