"""What is used of scipy.stats, under its names. Distributions are computed by the functions that scipy.stats calls, to
the last bit: it builds a hundred distributions when it is loaded, which took a third of the start of a command. Its
tests and fits are taken from it; then it is loaded."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special


class t:
    """Student's; 0 < q <= 1."""

    @staticmethod
    def ppf(q: Any, df: Any) -> Any:
        return special.stdtrit(df, q)

    @staticmethod
    def isf(q: Any, df: Any) -> Any:
        return -special.stdtrit(df, q)

    @staticmethod
    def cdf(x: Any, df: Any) -> Any:
        return special.stdtr(df, x)

    @staticmethod
    def sf(x: Any, df: Any) -> Any:
        return special.stdtr(df, np.negative(x))


class norm:
    @staticmethod
    def isf(q: Any) -> Any:
        return -special.ndtri(q)

    @staticmethod
    def sf(x: Any) -> Any:
        return special.ndtr(np.negative(x))


class beta:
    @staticmethod
    def ppf(q: Any, a: Any, b: Any) -> Any:
        return special.betaincinv(a, b, q)


class f:
    @staticmethod
    def ppf(q: Any, dfn: Any, dfd: Any) -> Any:
        return special.fdtri(dfn, dfd, q)


def __getattr__(name: str) -> Any:
    from scipy import stats

    return getattr(stats, name)
