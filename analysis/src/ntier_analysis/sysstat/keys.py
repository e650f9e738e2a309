"""What tells the items of an activity apart: names in the file, numbers of devices, or their place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ntier_analysis.sysstat.records import MANY

if TYPE_CHECKING:
    from ntier_analysis.sysstat.items import Readings


@dataclass(frozen=True)
class Keys:
    """For each row, `codes` (rows,) is a number of its item, `names[code]` its name, and `notes` more that is known of
    it. `steady`: each record holds the same items in the same order; `steady_stretches`: each stretch of records
    does."""

    codes: np.ndarray
    names: list[str]
    steady: bool
    notes: dict[str, list[str]] = field(default_factory=dict)
    steady_stretches: bool = False


def only(readings: Readings) -> Keys:
    """The activity has one item."""
    return Keys(readings.position if readings.even == 1 else np.zeros(len(readings.record), np.int64), [""], True)


def by_position(readings: Readings) -> Keys:
    """Items have no name but their number; what else the file says of them is no name."""
    first = readings.activity.first_number
    return Keys(readings.position, [str(i + first) for i in range(readings.most)], True)


def by_cpu(readings: Readings) -> Keys:
    """The first item is all CPUs, then each of them."""
    return Keys(readings.position, ["all", *(str(i) for i in range(readings.most - 1))], True)


def by_interrupt(readings: Readings) -> Keys:
    """Before 12.5.6: the sum of all, then each interrupt. (Later the items are CPUs: figures.interrupts.)"""
    return Keys(readings.position, ["sum", *(str(i) for i in range(readings.most - 1))], True)


def by_name(readings: Readings) -> Keys:
    return distinct(readings, readings.at_text(0), readings.activity.texts[:1], lambda: readings.text(0), c_string)


def by_filesystem(readings: Readings) -> Keys:
    """The mount point tells file systems apart: one can be mounted twice."""
    sizes = readings.activity.texts

    def both() -> np.ndarray:
        return np.concatenate([readings.text(0), readings.text(1)], axis=1)

    items = distinct(readings, readings.at_text(0), sizes, both,
                     lambda raw: (c_string(raw[sizes[0] :]), c_string(raw[: sizes[0]])))  # fmt: skip
    notes = {"filesystem": [f for _, f in items.names]}
    return replace(items, names=[m for m, _ in items.names], notes=notes, steady_stretches=False)


def by_line(readings: Readings) -> Keys:
    at = _at_narrow(readings, "line")
    return distinct(readings, at, (4,), lambda: readings.fields["line"][:, None], lambda raw: str(whole(raw)))


def by_battery(readings: Readings) -> Keys:
    """Its number, one byte."""
    return distinct(readings, readings.at_text(0), (1,), lambda: readings.text(0), lambda raw: str(raw[0]))


def by_device(readings: Readings) -> Keys:
    """Block devices are numbers in the file; their names are known to the machine that wrote it."""

    def major_minor() -> np.ndarray:
        return np.stack([readings.fields["major"], readings.fields["minor"]], axis=1)

    return distinct(readings, _at_narrow(readings, "major"), (4, 4), major_minor,
                    lambda raw: device(whole(raw[:4]), whole(raw[4:])))  # fmt: skip


def _at_narrow(readings: Readings, name: str) -> int:
    """Byte of a 32-bit number in its structure."""
    kinds = readings.listed.kinds
    return 8 * (kinds.wide + kinds.longs) + 4 * readings.activity.fields[2].index(name)


def distinct(
    readings: Readings, at: int, sizes: tuple[int, ...], values: Callable[[], np.ndarray], name: Callable[[bytes], Any]
) -> Keys:
    """Keys by bytes of each row: `values()` (rows, any), which begin at byte `at` of a structure and have `sizes`
    there. If a whole stretch of records has the same values, only the first record is read."""
    form = next(form for form in ("u8", "u4", "u1") if all(size % int(form[1:]) == 0 for size in sizes))
    same = readings.constant(at, form, sum(sizes) // int(form[1:]))
    if same is not None:
        known: dict[Any, int] = {}
        listed = [known.setdefault(name(row.tobytes()), len(known)) for row in same]
        differ = len(known) == len(listed)
        codes = readings.position if differ else np.tile(np.array(listed), readings.records.n)
        return Keys(codes, list(known), differ, steady_stretches=differ)
    return _distinct(readings, values(), name)


def _distinct(readings: Readings, values: np.ndarray, name: Callable[[bytes], Any]) -> Keys:
    if not len(values):
        return Keys(np.zeros(0, np.int64), [], True)
    flat = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)
    codes, known = np.zeros(len(flat), np.int64), {}
    at, parts, patterns = 0, [], set()
    for stretch in readings.records.stretches if len(readings.records.stretches) <= MANY else []:
        count = stretch.layout.counts[readings.number]
        rows = flat[at : at + stretch.n * count]
        pattern = rows[:count].tobytes()
        if count and (rows.reshape(stretch.n, -1) != rows[:count].reshape(-1)).any():
            break
        listed = [known.setdefault(name(row.tobytes()), len(known)) for row in rows[:count]]
        codes[at : at + len(rows)].reshape(stretch.n, count)[...] = listed
        parts, at = [*parts, listed], at + len(rows)
        patterns.add(pattern)
    if at == len(flat):
        differ = all(len(set(part)) == len(part) for part in parts)
        return Keys(codes, list(known), differ and len(patterns) == 1, steady_stretches=differ)
    unique, codes = np.unique(flat.view(f"V{flat.shape[1]}")[:, 0], return_inverse=True)
    names = [name(raw.tobytes()) for raw in unique]
    known = {text: i for i, text in enumerate(dict.fromkeys(names))}  # the same text with other rubbish behind it
    return Keys(np.array([known[text] for text in names], np.int64)[codes], list(known), False)


def whole(raw: bytes) -> int:
    """A 32-bit number of this machine's byte order."""
    return int(np.frombuffer(raw, np.uint32)[0])


@lru_cache(maxsize=4096)
def c_string(raw: bytes) -> str:
    """Text up to the first zero byte; what cannot be shown is escaped."""
    text = raw.split(b"\0")[0].decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def device(major: int, minor: int) -> str:
    """Name of a block device by Linux' list of numbers, where it has one there; else `dev253-0`."""
    if major in _SINGLE:
        return f"{_SINGLE[major]}{minor}"
    if major in _DISKS:
        first, prefix, parts = _DISKS[major]
        return f"{prefix}{_letters(first + minor // parts)}{minor % parts or ''}"
    return f"dev{major}-{minor}"


def _letters(n: int) -> str:
    """0 -> a, 25 -> z, 26 -> aa."""
    text = ""
    while n >= 0:
        text = chr(ord("a") + n % 26) + text
        n = n // 26 - 1
    return text


_SINGLE = {1: "ram", 7: "loop", 9: "md", 11: "sr", 43: "nbd"}
_DISKS = {major: (16 * i, "sd", 16) for i, major in enumerate((8, *range(65, 72), *range(128, 136)))} | {
    202: (0, "xvd", 16)
}
"""major -> (number of its first disk, prefix, minors of one disk); Linux' devices.txt."""
