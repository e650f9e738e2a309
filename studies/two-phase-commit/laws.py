"""Laws of the curves: statements per second of the alter threads over their sleep.

Two laws with two numbers each. *One time*: an alter takes the same time at every sleep. *A queue*: the threads share
one thing that works on one alter at a time, such as the CPU of the nodes; the time of an alter grows with the load."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from runs import Row
from scipy import stats
from scipy.optimize import curve_fit

THREADS, STATEMENTS = 8, 61  # alter threads; statements of an alter here
MOST_S = 10.0  # that an alter may take, by a law
Array = np.ndarray


def one_time(sleep: Array, statements: float, time_s: float) -> Array:
    """Statements per second of THREADS threads that sleep and then work for this time."""
    return np.asarray(THREADS * statements / (sleep + time_s))


def queue(sleep: Array, work_s: float, wait_s: float) -> Array:
    """The same of threads that need one shared thing for `work_s` of an alter, one after the other, and time that
    nobody else is kept from for `wait_s`. Exact mean value analysis of a closed network with one station (Reiser and
    Lavenberg, 1980)."""
    waiting, rate = np.zeros_like(sleep), np.zeros_like(sleep)
    for threads in range(1, THREADS + 1):
        time_s = work_s * (1 + waiting)
        rate = threads / (sleep + wait_s + time_s)
        waiting = rate * time_s
    return STATEMENTS * rate


@dataclass(frozen=True)
class Fit:
    """`best` and `half`: the law's two numbers, and half of their 95 % intervals (NaN: the runs do not tell). `error`:
    root of the mean squared error of the logarithms."""

    best: Array
    half: Array
    error: float


def fit(law: Callable[..., Array], sleep: list[float], rate: list[float]) -> Fit:
    """Least squares of the logarithms: an error of a tenth counts alike at every sleep."""
    at, y = np.array(sleep), np.log(rate)
    first, most = ((50, 0.1), (1000, MOST_S)) if law is one_time else ((0.02, 0.02), (MOST_S, MOST_S))
    best, spread = curve_fit(lambda *x: np.log(law(*x)), at, y, p0=first, bounds=(0, most))
    half = stats.t.ppf(0.975, len(at) - 2) * np.sqrt(np.diag(spread))
    half[half > most] = np.nan
    return Fit(best, half, float(np.sqrt(np.mean((y - np.log(law(at, *best))) ** 2))))


def columns(sleep: list[float], rate: list[float]) -> list[str]:
    """Number of sleeps; of each law its two numbers, the limit that no sleep at all would give, and its error. A limit
    is known if the number that it is divided by is more than none."""
    plain, shared = fit(one_time, sleep, rate), fit(queue, sleep, rate)
    statements, time_s, work_s = plain.best[0], plain.best[1], shared.best[0]
    return [
        str(len(set(sleep))), told(plain, 0, 0), told(plain, 1, 2),
        limit(THREADS * statements / time_s, known=time_s > plain.half[1]), f"{100 * plain.error:.0f} %",
        told(shared, 0, 3), told(shared, 1, 3),
        limit(STATEMENTS / work_s, known=work_s > shared.half[0]), f"{100 * shared.error:.0f} %",
    ]  # fmt: skip


def told(found: Fit, number: int, digits: int) -> str:
    """One of the law's numbers, with its interval if there is one."""
    value, half = f"{found.best[number]:.{digits}f}", found.half[number]
    return value if np.isnan(half) else f"{value} ± {half:.{digits}f}"


def limit(value: float, *, known: bool) -> str:
    return f"{value:,.0f}" if known else "not known"


def points(sleeps: dict[float, list[Row]]) -> tuple[list[float], list[float]]:
    """Sleep and statements per second of each run."""
    found = [(sleep, STATEMENTS * float(row["alters_per_s"])) for sleep, cell in sleeps.items() for row in cell]
    return [sleep for sleep, _ in found], [rate for _, rate in found]
