"""Numbers and times in sentences. All code that prints a count uses these functions, so nothing prints "1 trials"."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any


def counted(n: float, noun: str) -> str:
    """`1 trial`, `13 trials`, `0.2 cores`, `2 topologies`. `noun`: in the singular, with a regular plural."""
    number = f"{n:g}" if isinstance(n, float) else n
    plural = f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{noun}s"
    return f"{number} {noun if n == 1 else plural}"


def in_markdown(text: object) -> str:
    """In one line, and so that `|` in a name ends no cell of a table."""
    return re.sub(r"\s*[\r\n]\s*", " ", str(text)).replace("|", r"\|")


def join(parts: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def ends(low: float, high: float, digits: str) -> str:
    """`[460, 500]`, `[460, ∞)`. digits: the format of a number, `.0f`."""
    return f"[{low:{digits}}, ∞)" if high == math.inf else f"[{low:{digits}}, {high:{digits}}]"


def number(value: float | None, digits: int = 3) -> str:
    """Few significant digits with thousands separators; a missing value is a dash."""
    if not _finite(value):
        return "–"
    if value == 0:
        return "0"
    if abs(value) < 1e-4:
        return f"{value:.0e}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{round(value, decimals):,.{decimals}f}"


def interval(value: float, low: float | None, high: float | None, digits: int = 3) -> str:
    """`28.4 [28.0, 28.8]`: as many decimals everywhere as the value shows. `28.4 [28.0, ∞)` without an upper end."""
    if not _finite(low) or not (_finite(high) or high == math.inf):
        return number(value, digits)
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 2
    return f"{value:,.{decimals}f} {ends(low, high, f',.{decimals}f')}"


def share(value: float, low: float, high: float) -> str:
    """Shares 0..1 always with two decimals: `0.97 [0.95, 0.98]`, without an interval `0.97`."""
    if not _finite(value):
        return "–"
    known = _finite(low) and _finite(high)
    return f"{value:.2f} [{low:.2f}, {high:.2f}]" if known else f"{value:.2f}"


def _finite(value: float | None) -> bool:
    """Not None, NaN, infinite, or pandas' NA."""
    try:
        return math.isfinite(value)
    except TypeError:
        return False


def with_ends(value: float, low: float, high: float) -> str:
    """`1.05 [0.79, 1.39]`, `3.46 [unknown, unknown]`."""
    ends = ("unknown" if math.isnan(end) else f"{end:.2f}" for end in (low, high))
    return f"{value:.2f} [{', '.join(ends)}]"


def some_are(n: int, of: int, noun: str) -> str:
    """`1 of 7 trials is`, `3 of 7 trials are`."""
    return f"{n} of {counted(of, noun)} {'is' if n == 1 else 'are'}"


def why_invalid(trial: Any) -> str:
    """`host_saturated`, `failed: app1: task 'start': no such file`, or nothing. trial: a row of the store's trials."""
    told = [" ".join(t.split()) for t in (trial.invalid_reasons, trial.failure) if isinstance(t, str)]
    return ": ".join(filter(None, told))


def node_of(tier: str) -> str:
    """`db node`; `node` of a tier that has this name itself."""
    return tier if tier == "node" else f"{tier} node"


def resource(name: str, item: str = "") -> str:
    """A resource as sentences have it: `CPU`, `disk`, and which thread: `thread ldm2`."""
    if name == "thread" and item:
        return f"thread {item}"
    return name.upper() if name in ("cpu", "jvm") else name


def with_item(name: str, item: str) -> str:
    """A resource and which of its parts, all of them named: `CPU`, `disk vda`, `thread ldm2`."""
    return f"{resource(name)} {item}".strip()


def moment(t_s: float) -> str:
    """`2026-11-27 18:20:01 UTC`, of an epoch time."""
    return f"{datetime.fromtimestamp(t_s, UTC):%Y-%m-%d %H:%M:%S} UTC"


def clock(t_s: float) -> str:
    """`18:20:01`, UTC."""
    return f"{datetime.fromtimestamp(t_s, UTC):%H:%M:%S}"
