"""A store of sweeps."""

from __future__ import annotations

import os
import tempfile
from collections import OrderedDict
from functools import cache, cached_property
from os import PathLike
from pathlib import Path

import pandas as pd

from ntier_analysis.api import html
from ntier_analysis.api.comparing import Comparison
from ntier_analysis.api.mapping import Maps
from ntier_analysis.api.sweep import Sweep
from ntier_analysis.campaign.costs import read_prices
from ntier_analysis.campaign.store import read_campaign
from ntier_analysis.comparison import compare
from ntier_analysis.demo import unpack
from ntier_analysis.errors import DataError
from ntier_analysis.figures import overview as figures
from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.overview import lacking, overview, pairs
from ntier_analysis.places import as_given, opened
from ntier_analysis.store.query import run
from ntier_analysis.store.tables import read_table, sweeps
from ntier_analysis.verdict.store import judge_again
from ntier_analysis.wording import counted

KEPT = 2
"""Sweeps that a store keeps as they were read, those asked for last: each may hold some hundred MB, and a loop over all
sweeps of a store shall not hold all of them."""


class Store:
    """The Parquet store that `make ingest` or `ntier-analysis import` wrote: a folder, or a URL of fsspec, of which a
    copy in a temporary folder lasts as long as the program. Raises DataError if it is none.

    >>> import ntier_analysis as na
    >>> store = na.Store.demo()
    >>> store.sweeps[0]
    '1-1-1-1M.browse_only.shardingsphere'
    >>> na.Store("no/such/folder")
    Traceback (most recent call last):
    ntier_analysis.errors.DataError: no/such/folder: not a store ...
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = opened(os.fspath(path))
        self._sweeps: OrderedDict[str, Sweep] = OrderedDict()
        sweeps(self.path)

    @classmethod
    def demo(cls) -> Store:
        """Three measured sweeps that come with the package (MySQL, and PostgreSQL twice; one node per tier), unpacked
        into a temporary folder that lasts as long as the program.

        >>> import ntier_analysis as na
        >>> len(na.Store.demo().sweeps)
        3
        """
        return cls(_demo())

    @property
    def sweeps(self) -> list[str]:
        """Names, sorted."""
        return sweeps(self.path)

    def sweep(self, name: str = "") -> Sweep:
        """Without a name the first. Raises DataError for an unknown name, naming what there is.

        >>> import ntier_analysis as na
        >>> na.Store.demo().sweep("1-2-1-2M")
        Traceback (most recent call last):
        ntier_analysis.errors.DataError: no sweep '1-2-1-2M' in ...; there are: 1-1-1-1M.browse_only.shardingsphere, ...
        """
        there = self.sweeps
        name = name or next(iter(there), "")
        if not name:
            raise DataError(f"{as_given(self.path)}: holds no sweep")
        if name not in there:
            raise DataError(f"no sweep {name!r} in {as_given(self.path)}; there are: {', '.join(there) or 'none'}")
        sweep = self._sweeps.pop(name, None) or Sweep(self.path, name)
        self._sweeps[name] = sweep
        while len(self._sweeps) > KEPT:
            self._sweeps.popitem(last=False)
        return sweep

    def __iter__(self):
        """Over the sweeps, in order of their names."""
        return map(self.sweep, self.sweeps)

    def __contains__(self, name: object) -> bool:
        """Whether the store has a sweep of this name.

        >>> import ntier_analysis as na
        >>> "1-1-1-1M.browse_only.shardingsphere" in na.Store.demo(), "1-2-1-2M" in na.Store.demo()
        (True, False)
        """
        return (name.name if isinstance(name, Sweep) else name) in self.sweeps

    @property
    def trials(self) -> pd.DataFrame:
        """The trials of all sweeps; columns as `Sweep.trials`, with sweep.

        >>> import ntier_analysis as na
        >>> na.Store.demo().trials.groupby("topology")["valid"].sum().to_dict()
        {'1/1/1/1M': 13, '1/1/1/1P': 12}
        """
        rows = read_table(self.path, "trials").sort_values(["sweep", "users", "rep"], ignore_index=True)
        return rows.assign(valid=rows["valid"].fillna(False).astype(bool))

    @cached_property
    def overview(self) -> pd.DataFrame:
        """One row per sweep: sweep, topology, dbms, low_cost, nodes (a count), mix, middleware, scale, data_profile,
        setting (what else must be equal in sweeps that are set side by side), valid (trials), verdict, bottleneck,
        max_throughput_per_s with low, high (measured, 95 %) and at_least, nominal_per_s (divided by the scale),
        knee_users, users_within_slo (highest load whose valid trials keep 95 % within the objective), work (what an
        interaction and its arrival are, in words: maxima of equal work and scale can be ranked).

        >>> import ntier_analysis as na
        >>> na.Store.demo().overview[["topology", "verdict", "bottleneck", "at_least"]]
           topology verdict bottleneck  at_least
        0  1/1/1/1M  single     db cpu     False
        1  1/1/1/1P  single     db cpu      True
        2  1/1/1/1P  single     db cpu      True
        """
        return overview(self.path)

    @property
    def missing(self) -> list[str]:
        """What the store does not hold: a sentence for each question that it cannot answer."""
        return lacking(self.overview)

    def map(self, sweeps: list[str] | None = None, mix: str | None = None, prices: str | None = None) -> Maps:
        """Bottleneck maps over the topologies of the sweeps named (None: all) with the mix (None: any). `prices`: a
        JSON file (docs/maps.md). Raises DataError for an unknown sweep or mix, and for fewer than two sweeps.

        >>> import ntier_analysis as na
        >>> na.Store.demo().map(mix="read_write")
        Traceback (most recent call last):
        ntier_analysis.errors.DataError: no sweep with mix 'read_write' in ...; there are: browse_only
        """
        return Maps(read_campaign(self.path, sweeps, mix), read_prices(Path(prices) if prices else None))

    @property
    def maps(self) -> list[Maps]:
        """The maps of all sweeps; none if there are no two topologies in one notation (`missing` says what is)."""
        try:
            return [self.map()]
        except DataError:
            return []

    def compare(self, a: str, b: str, margin: float = 0.05) -> Comparison:
        """Ratios B/A of two sweeps (or `OTHER_STORE:SWEEP`); `margin`: what still counts as the same. Raises DataError
        for an unknown sweep, for one without a valid trial, and if the sweeps' conditions differ so that a ratio means
        nothing.

        >>> import ntier_analysis as na
        >>> store = na.Store.demo()
        >>> store.compare(store.sweeps[0], store.sweeps[0]).outcome
        'same'
        """
        return Comparison(compare(a, b, self.path, margin=margin))

    def pairs(self, differ: str) -> list[tuple[str, str]]:
        """Pairs of sweeps with valid trials that differ only in `differ`: `dbms`, or `low_cost` (type of the database
        nodes).

        >>> import ntier_analysis as na
        >>> len(na.Store.demo().pairs("dbms")), na.Store.demo().pairs("low_cost")
        (2, [])
        """
        allowed = ("dbms", "low_cost")
        if differ not in allowed:
            raise DataError(f"differ is {differ!r}, allowed are {', '.join(allowed)}")
        return pairs(self.overview, differ)

    def maxima(self) -> Drawing:
        """Figure: maximum throughput of each sweep with its interval."""
        return figures.maxima(self.overview)

    def reach(self) -> Drawing:
        """Figure: users at the knee of each sweep, and users within the response-time objective."""
        return figures.reach(self.overview)

    def sql(self, query: str) -> pd.DataFrame:
        """Result of a DuckDB query on the store's tables, read-only. Raises DataError with DuckDB's message.

        >>> import ntier_analysis as na
        >>> na.Store.demo().sql("SELECT count(*) AS n FROM trials WHERE valid")
            n
        0  25
        """
        return run(self.path, query)

    def __repr__(self) -> str:
        names = self.sweeps
        return f"Store {as_given(self.path)}: {counted(len(names), 'sweep')} ({', '.join(names)})"

    def _repr_html_(self) -> str:
        return html.table(f"Store {as_given(self.path)}", [(s.name, s.verdict.sentence) for s in self])


@cache
def _demo() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="ntier-demo-")
    _KEPT.append(folder)
    store = unpack(Path(folder.name))
    judge_again(store, [])
    return store


_KEPT: list[tempfile.TemporaryDirectory] = []
"""Removed when the program ends."""
