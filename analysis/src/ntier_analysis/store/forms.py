"""Numbers of a series as whole counts, so that the very same numbers come back.

Collectors read counters and levels. What is stored are their rates and shares: `delta / interval * 100`,
`used / total * 100`. Such a number has 53 bits, the counts behind it have ten. The formula is not known here; it is
looked for among the few that collectors use, and tested bit by bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

Array = np.ndarray

MOST = float(2**52)
"""Larger counts are not exact as floating-point numbers."""
DIVISORS = (1.0, 100.0, 1e6)
"""Whole numbers; two decimals, as programs print them; microseconds."""
RATE_SCALES = (1.0, 10.0, 1000.0)
"""sysstat divides rates of milliseconds by these (a disk's share of time, its queue)."""
PLAIN, HUNDREDTHS, SECONDS = 0, 1, 2
"""`per`: what the counts are divided by."""
NUMBER_BITS = 50
"""What a floating-point number costs after compression, about."""


@dataclass(frozen=True)
class Form:
    """`counts` (n,) whole, NaN where the value is; the value is `restored` of it and the others. `divisors`, `rest`
    (n,) or None."""

    counts: Array
    divisor: float = 1.0
    per: int = PLAIN
    factor: float = 1.0
    scale: float = 1.0
    offset: float = 0.0
    divisors: Array | None = None
    rest: Array | None = None

    @property
    def changes_little(self) -> bool:
        """Whether differences of neighbours are written in fewer bits than the counts."""
        known = self.counts[~np.isnan(self.counts)]
        return len(known) > 2 and _bits(np.diff(known)) + 1 < _bits(known)


def restored(counts, per, interval, divisor, divisors, factor, scale, offset, rest) -> Array:
    """The values. All are (n,), or numbers; `interval` in s, NaN in `divisors` where `divisor` counts."""
    with np.errstate(all="ignore"):
        by = np.where(np.isnan(divisors), divisor, divisors)
        by = np.where(per == HUNDREDTHS, np.rint(interval * 100), np.where(per == SECONDS, interval, by))
        return offset + counts / by * factor / scale + rest


def values(form: Form, interval: Array) -> Array:
    rest = 0.0 if form.rest is None else form.rest
    divisors = np.nan if form.divisors is None else form.divisors
    return restored(form.counts, form.per, interval, form.divisor, divisors, form.factor, form.scale, form.offset, rest)


def decimal(x: Array) -> Form | None:
    """Counts over a fixed divisor, for times and interval lengths (n,), which may have NaN; None if they are none."""
    for divisor in DIVISORS:
        form = Form(np.rint(x * divisor), divisor)
        if _fits(form, x, x) and not (np.abs(form.counts) > MOST).any():
            return form
    return None


class Finder:
    """Finds forms. Of series of one metric the same form is tried first, since it nearly always fits again."""

    def __init__(self) -> None:
        self._last: dict[object, tuple[str, float]] = {}

    def find(self, metric: object, x: Array, interval: Array) -> Form | None:
        """The form of the values x (n,), NaN for none, in intervals (n,) of so many s; None if they are as short as
        they are."""
        known = ~np.isnan(x)
        if known.all():
            return self._find(metric, x, interval)
        form = self._find(metric, x[known], interval[known]) if known.any() else Form(x[known])
        return None if form is None else _spread(form, known)

    def _find(self, metric: object, x: Array, interval: Array) -> Form | None:
        with np.errstate(all="ignore"):
            for form in _exact(x, interval):
                if _fits(form, x, interval) and not (np.abs(form.counts) > MOST).any():
                    return _reduced(form)
            return self._with_rests(metric, x, interval)

    def _with_rests(self, metric: object, x: Array, interval: Array) -> Form | None:
        name, bits = self._last.get(metric, ("", 0.0))
        if name:
            form = _complete(_LOOKED_FOR[name](x, interval), x, interval)
            if form is not None and _cost(form) < 1.2 * bits + 1:
                return form
        best, least, found = None, _raw_bits(x), ""
        for name, look in _LOOKED_FOR.items():
            form = _complete(look(x, interval), x, interval)
            if form is not None and (bits := _cost(form)) < least:
                best, least, found = form, bits, name
        if found:
            self._last[metric] = found, least
        return best


def _exact(x: Array, interval: Array) -> Iterator[Form]:
    """Forms without a rest."""
    for divisor in DIVISORS[:2]:
        yield Form(np.rint(x * divisor), divisor)
    if _in_hundredths(interval):
        for scale in RATE_SCALES:
            counts = np.rint(x * scale / 100 * np.rint(interval * 100))
            yield Form(counts, per=HUNDREDTHS, factor=100.0, scale=scale)


def _in_hundredths(interval: Array) -> bool:
    hundredths = np.rint(interval * 100)
    return bool((hundredths >= 1).all() and np.array_equal(hundredths / 100, interval))


def _fits(form: Form, x: Array, interval: Array) -> bool:
    """Whether just the same bits come back (0 is not -0); NaN is NaN."""
    back = values(form, interval)
    same = back.view(np.int64) == x.view(np.int64)
    return bool((same | (np.isnan(back) & np.isnan(x))).all())


def _reduced(form: Form) -> Form:
    """Zero bits that all counts end in go to the factor: a power of two changes no digit."""
    common = int(np.bitwise_or.reduce(np.abs(form.counts).astype(np.int64)))
    twos = (common & -common).bit_length() - 1 if common else 0
    if twos <= 0 or form.divisors is not None:
        return form
    return replace(form, counts=form.counts / 2.0**twos, factor=form.factor * 2.0**twos)


def _spread(form: Form, known: Array) -> Form:
    def wide(part: Array | None, otherwise: float) -> Array | None:
        if part is None:
            return None
        whole = np.full(len(known), otherwise)
        whole[known] = part
        return whole

    divisors = wide(form.divisors, 1.0)
    return replace(form, counts=wide(form.counts, np.nan), divisors=divisors, rest=wide(form.rest, 0.0))


# ---- forms with a rest ---------------------------------------------------------------------------------------------


def _complete(form: Form | None, x: Array, interval: Array) -> Form | None:
    """With the rests that are left; None if even so other bits come back."""
    if form is None or not np.isfinite(form.counts).all() or (np.abs(form.counts) > MOST).any():
        return None
    rest = x - values(form, interval)
    form = form if not rest.any() else replace(form, rest=rest)
    return form if _fits(form, x, interval) else None


def _hundredths(x: Array, interval: Array) -> Form | None:
    """Sums of two decimals, which are a little beside two decimals."""
    return Form(np.rint(x * 100), 100.0)


def _share(x: Array, interval: Array) -> Form | None:
    """Percent of ticks, whose number changes."""
    if x.min() < -1e-9 or x.max() > 100 + 1e-9:
        return None
    counts, ticks = _parts(np.abs(x) / 100, 1e-15)
    return Form(counts, factor=100.0, divisors=ticks)


def _remainder(x: Array, interval: Array) -> Form | None:
    """What is left of 100 percent."""
    if x.min() < -1e-9 or x.max() > 100 + 1e-9:
        return None
    counts, ticks = _parts(np.abs(100 - x) / 100, 1e-15)
    return Form(counts, factor=-100.0, offset=100.0, divisors=ticks)


def _quotient(x: Array, interval: Array) -> Form | None:
    """Means: a sum over a number of requests."""
    if x.min() < 0:
        return None
    counts, numbers = _parts(x, 4e-16 * np.maximum(x, 1))
    return Form(counts, divisors=numbers)


def _level(x: Array, interval: Array) -> Form | None:
    """Multiples of one unknown unit; of percent, if 100 is one of them too."""
    found = _unit(x)
    if found is None:
        return None
    counts, unit = found
    whole = np.rint(100 / unit)
    if 1 <= whole <= MOST and abs(100 / unit - whole) < 1e-4:
        return Form(counts, whole, factor=100.0)
    return Form(counts, factor=unit)


def _rate(x: Array, interval: Array) -> Form | None:
    """The same per hundredth of a second."""
    found = _unit(x * np.rint(interval * 100)) if _in_hundredths(interval) else None
    return found and Form(found[0], per=HUNDREDTHS, factor=found[1])


def _rate_s(x: Array, interval: Array) -> Form | None:
    """The same per second."""
    found = _unit(x * interval) if (interval > 0).all() else None
    return found and Form(found[0], per=SECONDS, factor=found[1])


_LOOKED_FOR: dict[str, Callable[[Array, Array], Form | None]] = {
    look.__name__: look for look in (_hundredths, _remainder, _share, _quotient, _level, _rate, _rate_s)
}


def _fractions(x: Array, tolerance: Array | float, most: float = 2.0**22) -> tuple[Array, Array, Array]:
    """Continued fractions of x (n,) >= 0 -> numerators, denominators, and which of them are within the tolerance."""
    p, q = np.floor(x), np.ones_like(x)
    p1, q1 = np.ones_like(x), np.zeros_like(x)
    left, found = x - p, np.abs(p - x) <= tolerance
    for _ in range(16):
        if found.all():
            break
        with np.errstate(all="ignore"):
            whole = np.floor(1 / left)
            next_p, next_q = whole * p + p1, whole * q + q1
            go = ~found & (next_q <= most) & (next_p <= MOST)
            left = np.where(go, 1 / left - whole, left)
            p1, q1 = np.where(go, p, p1), np.where(go, q, q1)
            p, q = np.where(go, next_p, p), np.where(go, next_q, q)
            found = found | (go & (np.abs(p / q - x) <= tolerance))
            if not go.any():
                break
    return p, q, found


def _parts(x: Array, tolerance: Array | float) -> tuple[Array, Array]:
    """x (n,) >= 0 as quotients with denominators near one another: (counts, denominators). What is none has a rest."""
    p, q, found = _fractions(x, tolerance)
    usual = _usual(q[found])
    times = np.where(found, np.maximum(1.0, np.rint(usual / q)), 1.0)
    return np.where(found, p * times, np.rint(x * usual)), np.where(found, q * times, usual)


def _usual(q: Array) -> float:
    """The number that most of q divide; of several the smallest."""
    if not len(q):
        return 1.0
    different, often = np.unique(q, return_counts=True)
    tried = np.unique(np.concatenate([different[np.argsort(often)[-16:]], different[-16:]]))
    fitting = (np.mod(tried[:, None], different[None, :]) == 0) @ often
    return float(tried[np.argmax(fitting)])


def _unit(w: Array) -> tuple[Array, float] | None:
    """w (n,) as multiples of one number: (multiples, number); None if they are not."""
    size = np.abs(w)
    if not size.any():
        return None
    reference = float(np.median(size[size > 0]))
    sample = size[size > 0][:: max(1, int((size > 0).sum()) // 24)]
    reference = float(sample[np.argmin(np.abs(sample - reference))])
    _, q, found = _fractions(sample / reference, 2e-15 * np.maximum(1, sample / reference), 2.0**24)
    if not found.all():
        return None
    multiple = math.lcm(*(int(n) for n in q))
    if multiple > 2**40:
        return None
    counts = w / reference * multiple
    whole = np.rint(counts)
    if (np.abs(counts - whole) > np.maximum(1e-3, 1e-14 * size / reference * multiple)).any():
        return None
    common = int(np.gcd.reduce(np.abs(whole).astype(np.int64)))
    return whole / common, reference / multiple * common


# ---- costs ---------------------------------------------------------------------------------------------------------


def _bits(counts: Array) -> float:
    """Of one whole number of these, about."""
    return float(np.log2(1 + 4 * np.std(counts)))


def _entropy(x: Array) -> tuple[float, float]:
    """Bits of one of the values if their list is known, and the share of those that differ."""
    _, often = np.unique(x, return_counts=True)
    p = often / len(x)
    return float(-(p * np.log2(p)).sum()), len(often) / len(x)


def _cost(form: Form) -> float:
    """Bits of a value, about."""
    bits = min(_bits(form.counts), _bits(np.diff(form.counts)) + 1 if len(form.counts) > 1 else np.inf)
    for part, each in ((form.divisors, 8), (form.rest, NUMBER_BITS)):
        if part is not None:
            entropy, different = _entropy(part)
            bits += entropy + each * different
    return bits


def _raw_bits(x: Array) -> float:
    entropy, different = _entropy(x)
    return entropy + NUMBER_BITS * different
