"""The system and the load axis of figures: what the loads are called (users or workers, unless the sweep is over
another factor), and the order of the tiers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ntier_analysis.contracts.implied import USERS
from ntier_analysis.described import OVER_USERS, LoadAxis
from ntier_analysis.wording import join

_AXIS: ContextVar[LoadAxis] = ContextVar("load axis", default=OVER_USERS)
_NUMBER = r"\d(?:[\d,]*\d)?(?:\.\d+)?(?: k)?"
_LOADS = re.compile(rf"((?:{_NUMBER}(?:,| and) )*{_NUMBER}) users\b")


@contextmanager
def over(axis: LoadAxis) -> Iterator[None]:
    """Inside, the loads have its name and unit (the column `users` of frames then holds the factor's values), and the
    system's tiers have its order."""
    before = _AXIS.set(axis)
    try:
        yield
    finally:
        _AXIS.reset(before)


def tiers_in_order() -> tuple[str, ...]:
    """Tiers of the system that is drawn, from the users inwards; empty if they are not known."""
    return _AXIS.get().order


def axis_label() -> str:
    """`users (nominal)`, or `sleep_s [s]`."""
    axis = _AXIS.get()
    return f"{axis.name} (nominal)" if axis.factor == USERS else axis.name


def hover(variable: str) -> str:
    """A load in a template of Plotly: `%{x:,} users`, `sleep_s %{x} s`."""
    axis = _AXIS.get()
    return axis.at(f"%{{{variable}:,}}" if axis.factor == USERS else f"%{{{variable}}}")


def listed(loads: Iterable[float]) -> str:
    """`13,000`, `0.1 and 0.5`, `0.1, 0.5 and 2`: numbers of users, or values of the factor."""
    return join([f"{int(load):,}" if load == int(load) else f"{load:g}" for load in loads])


def in_its_words(text: str) -> str:
    """A sentence about loads: `at 0.5, 1.0 and 2.0 users` reads `at sleep_s 0.5, 1 and 2 s`, or `at 8 workers`."""
    axis = _AXIS.get()

    def named(match: re.Match[str]) -> str:
        return axis.at(match[1] if axis.factor == USERS else re.sub(r"\.0(?!\d)", "", match[1]))

    return _LOADS.sub(named, text)
