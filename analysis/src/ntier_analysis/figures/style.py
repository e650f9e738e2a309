"""One look for all figures: sizes, and a colour, marker and line per tier that also differ without colour."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files

import matplotlib as mpl
from matplotlib.style import context

from ntier_analysis.contracts import implied
from ntier_analysis.figures.load_axis import tiers_in_order

COLUMN_IN = 3.33
PAGE_IN = 7.0
"""Widths of a column and of the page of a two-column paper, inches."""
DENSITY_MAP = "cividis"
LAW_COLOR = "#555555"
INVALID_COLOR = "#8c8c8c"
THRESHOLD_PCT = 95.0


@dataclass(frozen=True)
class Look:
    """How a tier is drawn. `color` is one of the Okabe-Ito palette, which colour-blind readers can tell apart."""

    color: str
    marker: str
    line: str | tuple


_OKABE_ITO = dict(
    zip(
        ("black", "orange", "sky", "green", "yellow", "blue", "vermilion", "purple"),
        mpl.color_sequences["okabe_ito"],
        strict=True,
    )
)


def _look(name: str, marker: str, line: str | tuple) -> Look:
    return Look(mpl.colors.to_hex(_OKABE_ITO[name]), marker, line)


IN_ORDER = (
    _look("sky", "o", ":"),
    _look("green", "^", "--"),
    _look("blue", "D", "-."),
    _look("vermilion", "s", "-"),
    _look("orange", "v", (0, (5, 1))),
    _look("yellow", "P", (0, (3, 1, 1, 1))),
)
"""Of the tiers, from the users inwards."""
TIERS: dict[str, Look] = {
    **dict(zip(implied.TIERS, IN_ORDER, strict=False)),
    "client": _look("black", "x", (0, (1, 3))),
    "host": _look("purple", "+", (0, (1, 3))),
}
"""By name, where no system says in which order its tiers stand; what is no tier of it gets `OTHER`."""
THROUGHPUT_COLOR, GOODPUT_COLOR, ALERT_COLOR = (IN_ORDER[i].color for i in (2, 1, 3))
OTHER = Look("#555555", "*", "-")


def tier_look(tier: str) -> Look:
    order = _of_its_own()
    if tier not in order:
        return TIERS.get(tier, OTHER)
    return IN_ORDER[order.index(tier)] if order.index(tier) < len(IN_ORDER) else OTHER


def _of_its_own() -> tuple[str, ...]:
    """The tiers of the system that is drawn, if they are not those that have a look by name."""
    order = tiers_in_order()
    return () if set(order) <= set(TIERS) else order


def tier_order(tier: str) -> int:
    """Sort key: the tiers from the users inwards, client, host, then others."""
    names = [*_of_its_own(), *TIERS]
    return names.index(tier) if tier in names else len(names)


@contextmanager
def styled() -> Iterator[None]:
    """Applies our style sheet while a figure is made."""
    with as_file(files("ntier_analysis.figures") / "ntier.mplstyle") as path, context(["default", path]):
        yield


def users_ticks(axis, loads) -> None:
    """Ticks at the measured loads in thousands, at most eight of them, written 4 k."""
    marks = sorted({float(u) for u in loads})
    step = max(1, -(-len(marks) // 8))
    shown = marks[::-1][::step][::-1]
    axis.set_ticks(shown, labels=[thousands(u) for u in shown])


def thousands(users: float) -> str:
    """4000 -> 4 k, 1500 -> 1.5 k, 800 -> 800."""
    return f"{users / 1000:g} k" if users >= 1000 else f"{users:g}"


def utilization_label(resource: str, item: str, node: str) -> str:
    """The axis of a utilization: a pool has no work of its own, its places are in use."""
    if resource == "pool":
        return f"pool {item} in use, {node} [%]"
    return f"{resource_name(resource, item)} utilization of {node} [%]"


def resource_name(resource: str, item: str = "") -> str:
    """`CPU`, `disk vda`, `pool threads`: as axes, captions and findings call it."""
    return f"{resource.upper() if resource in ('cpu', 'jvm') else resource} {item}".strip()
