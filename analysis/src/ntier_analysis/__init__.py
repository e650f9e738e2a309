"""Finds the bottleneck of a multi-tier system in what an experiment measured.

>>> import ntier_analysis as na
>>> sweep = na.Store.demo().sweep("1-1-1-1M.browse_only.shardingsphere")
>>> [f"{b.tier} {b.resource}" for b in sweep.verdict.bottlenecks]
['db cpu']

All names of `__all__` are public and described in docs/analysis.md, chapter "From Python"; modules below are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ntier_analysis.api import Bottleneck, Comparison, Density, Maps, Store, Sweep, Verdict
    from ntier_analysis.errors import DataError

__all__ = ["Bottleneck", "Comparison", "DataError", "Density", "Maps", "Store", "Sweep", "Verdict"]


def __getattr__(name: str) -> object:
    """Imports pandas and the rest when a name is first used: the commands and the contracts need none of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; public are {', '.join(__all__)}")
    if name == "DataError":
        from ntier_analysis.errors import DataError

        return DataError
    from ntier_analysis import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return __all__
