"""The front of a file of sysstat: what wrote it, on which machine, and which activities its records hold.

Each structure in the file says how many 64-bit, long and 32-bit numbers it begins with, so that a reader finds the
fields it knows in a file of an earlier or later version: fields are only ever added at the end of their kind."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache

from ntier_analysis.errors import DataError

SYSSTAT, FORMAT = 0xD596, 0x2175
"""Magic numbers: a file of sysstat; its format since 11.7.1 (all of generation 12)."""
MAGIC_BYTES = 76
LONG_SLOT = 8
"""Bytes that a long takes in the file, whatever its size on the machine that wrote it."""
EXTRA = struct.calcsize("6I")
MAX_HEADER, MAX_ACTIVITIES, MAX_ACTIVITY, MAX_RECORD, MAX_ITEM = 8192, 256, 1024, 512, 1024
MAX_ITEMS, MAX_SUB_ITEMS, MAX_EXTRAS, MAX_EXTRA = 65536 * 4096, 4096, 8192, 1024
"""sysstat's own limits of what a sane file says of itself."""
NAME_BYTES, ZONE_BYTES = 65, 8


@dataclass(frozen=True)
class Kinds:
    """How many 64-bit numbers, longs and 32-bit numbers a structure begins with."""

    wide: int
    longs: int
    narrow: int

    @property
    def bytes(self) -> int:
        return 8 * self.wide + LONG_SLOT * self.longs + 4 * self.narrow


@dataclass(frozen=True)
class Listed:
    """One activity as the file lists it. `items` x `sub_items` structures of `size` bytes in each record; with
    `counted` the record itself says how many items it holds."""

    id: int
    magic: int
    items: int
    sub_items: int
    counted: bool
    size: int
    kinds: Kinds
    at: int


class Listing(tuple[Listed, ...]):
    """The activities of a file in its order. Files of one machine share one, so that what follows from it is found out
    once: it is a key by its identity."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


@dataclass(frozen=True)
class Header:
    """`cpus`: those of the machine when the file was begun, online or not; `end`: where the records begin, byte."""

    version: str
    order: str
    long_bytes: int
    host: str
    kernel: str
    machine: str
    time_zone: str
    cpus: int
    activities: Listing
    record_bytes: int
    record_kinds: Kinds
    end: int


class Bytes:
    """The content with its name and byte order; whatever is not there, or not as stated, is a DataError."""

    def __init__(self, name: str, content: bytes) -> None:
        self.name, self.content, self.order = name, content, "<"

    def wrong(self, at: int, what: str) -> DataError:
        return DataError(f"{self.name}: byte {at}: {what}")

    def need(self, at: int, size: int, what: str) -> None:
        if at + size > len(self.content):
            raise self.wrong(at, f"{what} needs {size} bytes, the file ends after {len(self.content) - at}")

    def numbers(self, at: int, form: str, what: str) -> tuple[int, ...]:
        form = self.order + form
        self.need(at, struct.calcsize(form), what)
        return struct.unpack_from(form, self.content, at)

    def kinds(self, at: int, size: int, least: tuple[int, int, int], what: str) -> Kinds:
        """The three counts at a place, of a structure of `size` bytes that has at least the given numbers."""
        counts = Kinds(*self.numbers(at, "3I", what))
        if counts.bytes > size:
            raise self.wrong(at, f"{what} has {size} bytes, too few for its {counts.bytes} bytes of numbers")
        if any(a < b for a, b in zip((counts.wide, counts.longs, counts.narrow), least, strict=True)):
            raise self.wrong(at, f"{what} lacks numbers that every version has")
        return counts

    def text(self, at: int, size: int) -> str:
        return self.content[at : at + size].split(b"\0")[0].decode("utf-8", "backslashreplace")

    def skip_extras(self, at: int) -> int:
        """Behind the structures of later versions that are announced at a place. They hold nothing that is known."""
        more = 1
        while more:
            count, size, more, *kinds = self.numbers(at, "6I", "extra structure")
            if count > MAX_EXTRAS or size > MAX_EXTRA or Kinds(*kinds).bytes > size:
                raise self.wrong(at, f"{count} extra structures of {size} bytes: out of range")
            at += EXTRA
            self.need(at, count * size, "extra structures")
            at += count * size
        return at


def read_header(source: Bytes) -> Header:
    """Raises DataError with the place if it is no file of sysstat, of another format, or contradicts itself."""
    version, at, size, kinds = _magic(source)
    numbers = at + kinds.bytes
    (cpus, activities) = source.numbers(at + 16, "2I", "header")
    of_activity, of_record = at + 28, at + 40
    activity_bytes, record_bytes = source.numbers(at + 52, "2I", "header")
    extra = source.numbers(at + 60, "I", "header")[0] if kinds.narrow > 11 else 0
    long_bytes = source.content[numbers + 2]
    if long_bytes not in (4, 8):
        raise source.wrong(numbers + 2, f"a long has {long_bytes} bytes, expected 4 or 8")
    if not 1 <= cpus <= 2**16 or not 1 <= activities <= MAX_ACTIVITIES:
        raise source.wrong(at + 16, f"{cpus} CPUs and {activities} activities: out of range")
    if activity_bytes > MAX_ACTIVITY or record_bytes > MAX_RECORD:
        raise source.wrong(at + 52, f"structures of {activity_bytes} and {record_bytes} bytes: out of range")
    names = [numbers + 3 + i * NAME_BYTES for i in range(4)]
    zone = names[-1] + NAME_BYTES
    record = source.kinds(of_record, record_bytes - 4, (2, 0, 0), "record header")
    listed = _activities(source, at + size, activities, activity_bytes, of_activity)
    end = at + size + activities * activity_bytes
    return Header(
        version=version,
        order=source.order,
        long_bytes=long_bytes,
        host=source.text(names[1], NAME_BYTES),
        kernel=source.text(names[2], NAME_BYTES),
        machine=source.text(names[3], NAME_BYTES),
        time_zone=source.text(zone, ZONE_BYTES) if zone + ZONE_BYTES <= at + size else "",
        cpus=max(cpus - 1, 1),  # counted with "all", except on a kernel for one CPU
        activities=listed,
        record_bytes=record_bytes,
        record_kinds=record,
        end=source.skip_extras(end) if extra else end,
    )


def _magic(source: Bytes) -> tuple[str, int, int, Kinds]:
    """-> version, and of the header: place, size and numbers. Sets the byte order."""
    source.need(0, 8, "magic number")
    for source.order in "<>":
        magic, form, *version = source.numbers(0, "2H4B", "magic number")
        if magic == SYSSTAT:
            break
    else:
        raise source.wrong(0, f"{source.content[:2].hex()} is not sysstat's magic number")
    said = ".".join(map(str, version[:3])) + (f".{version[3]}" if version[3] else "")
    if form != FORMAT:
        raise source.wrong(
            2, f"format {form:#x} of sysstat {said}; readable is {FORMAT:#x}, that of 11.7.1 and all of 12"
        )
    source.need(0, MAGIC_BYTES, "magic structure")
    (size,) = source.numbers(8, "I", "magic structure")
    if not 0 < size <= MAX_HEADER:
        raise source.wrong(8, f"a header of {size} bytes: out of range")
    source.need(MAGIC_BYTES, size, "header")
    kinds = source.kinds(16, size - 3 - 4 * NAME_BYTES, (1, 1, 11), "header")
    if (kinds.wide, kinds.longs) != (1, 1):
        raise source.wrong(16, "a header with numbers of a later format")
    return said, MAGIC_BYTES, size, kinds


@lru_cache(maxsize=64)
def _kept(key: object) -> list[Listing]:
    """Where the listing of files whose list of activities has the same bytes is kept."""
    return []


def _activities(source: Bytes, at: int, count: int, size: int, of_kinds: int) -> Listing:
    of_same = _kept((source.order, at, count, size, source.content[of_kinds : of_kinds + 12],
                     source.content[at : at + count * size]))  # fmt: skip
    if not of_same:
        of_same.append(_read_activities(source, at, count, size, of_kinds))
    return of_same[0]


def _read_activities(source: Bytes, at: int, count: int, size: int, of_kinds: int) -> Listing:
    numbers = source.kinds(of_kinds, size, (0, 0, 9), "list of activities")
    if numbers.wide or numbers.longs:
        raise source.wrong(of_kinds, "a list of activities with numbers of a later format")
    activities: dict[int, Listed] = {}
    for number in range(count):
        place = at + number * size
        number_id, magic, items, sub_items, counted, item_size = source.numbers(place, "2I4i", "activity")
        what = f"activity {number_id}"
        if not (0 < items <= MAX_ITEMS and 0 < sub_items <= MAX_SUB_ITEMS and 0 < item_size <= MAX_ITEM):
            raise source.wrong(place, f"{what}: {items} x {sub_items} items of {item_size} bytes: out of range")
        if number_id in activities:
            raise source.wrong(place, f"{what} is listed twice")
        kinds = source.kinds(place + 24, item_size, (0, 0, 0), what)
        activities[number_id] = Listed(number_id, magic, items, sub_items, bool(counted), item_size, kinds, place)
    return Listing(activities.values())
