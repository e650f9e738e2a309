"""Times of `query_range`: a grid, at which the last scrape is shown again until there is a new one."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ntier_analysis.errors import DataError
from ntier_analysis.importing.mapping import Exporter
from ntier_analysis.parsers.prometheus import Series

UNEVEN = 0.08
"""Share by which the rates of a grid may be wrong on average. A step that the scrape interval is a multiple of gives
0, scrapes each second that take 30 ms give 0.01; one of 15 s each 10 s gives 0.33, one of 10 s each 15 s 0.25, one of
4 s each 15 s 0.10."""


def without_repeats(rules: Exporter, series: list[Series]) -> list[Series] | None:
    """Without the times at which nothing was scraped anew: what always advances stands still there. None: nothing tells
    them."""
    alive = [s for s in series if s.name == rules.advances]
    if not alive:
        return None
    total = pd.DataFrame({n: pd.Series(s.v, index=s.t) for n, s in enumerate(alive)}).sort_index()
    fresh = total.ne(total.shift()).any(axis=1)
    kept = fresh.index[fresh]
    some = [(s, np.isin(s.t, kept)) for s in series]
    return [Series(s.name, s.labels, s.t[at], s.v[at]) for s, at in some if at.any()]


def refuse_uneven(place: str, rules: Exporter, series: list[Series]) -> bool:
    """Whether a counter of seconds tells how long passed between two scrapes. Raises DataError if that is not what
    passes between the times of the grid: rates would then be too high here and too low there."""
    counts = [pd.Series(s.v, index=s.t) for s in series if s.name == rules.seconds]
    total = pd.concat(counts, axis=1).sort_index().dropna().sum(axis=1) if counts else pd.Series(dtype=float)
    shown, grown = np.diff(total.index.to_numpy(float)), np.diff(total.to_numpy())
    shown, grown = shown[grown > 0], grown[grown > 0]  # not where it began anew
    if not len(shown):
        return False
    passed = grown * shown.sum() / grown.sum()  # of each CPU, whose seconds are added up
    # uptime is in whole seconds
    off = np.maximum(np.abs(passed - shown) - (1.0 if rules.seconds == rules.uptime else 0.0), 0.0)
    if off.sum() > UNEVEN * shown.sum():
        low, high = np.percentile(passed / shown, (5, 95))
        raise DataError(
            f"{place}: {rules.seconds} grows by {low:.2f} to {high:.2f} s in each second between its times: the "
            "step of query_range does not divide the scrape interval (or modes of the CPU are missing, or scrapes were "
            "slow); ask for the samples as they were scraped: /api/v1/query with a range, or promtool tsdb "
            "dump-openmetrics"
        )
    return True
