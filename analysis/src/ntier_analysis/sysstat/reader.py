"""A file of sysstat as tables: one per activity, each computed when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import count

import numpy as np
import pandas as pd

from ntier_analysis.errors import DataError
from ntier_analysis.sysstat.activities import KNOWN, Activity
from ntier_analysis.sysstat.figures import Columns
from ntier_analysis.sysstat.header import Bytes, Header, Listed, Listing, read_header
from ntier_analysis.sysstat.items import Kind, Readings, kinds_of
from ntier_analysis.sysstat.lazy import lazy
from ntier_analysis.sysstat.loops import Loops, loops
from ntier_analysis.sysstat.records import Records

_files = count(1)
MAGIC = (b"\x96\xd5", b"\xd5\x96")
"""First bytes of a file of sysstat, in either byte order."""


class Table:
    """One activity, in columns. A row is one item in one interval: `values` {column: (rows,)}, `record` (rows,) number
    of the record that ends it, from 0 on in the file, `t_s` (rows,) its end, s since 1970, `interval_s` (rows,), `item`
    (rows,) into `items` (names: of a device, a CPU, ...; "" where there is but one). Rows of one item are in the order
    of time; an item has none where it was not there. `notes`: {what: text of each item}. Tables share
    `record`, `t_s` and `item`, which are read-only."""

    def __init__(self, name: str, columns: Columns, records: Records) -> None:
        self.name, self.values, self.items, self.notes = name, columns.values, columns.names, columns.notes
        self._found, self._records = columns, records

    @lazy
    def _rows(self) -> tuple[np.ndarray, np.ndarray]:
        return self._found.rows()

    @property
    def record(self) -> np.ndarray:
        return self._rows[0]

    @property
    def item(self) -> np.ndarray:
        return self._rows[1]

    @lazy
    def t_s(self) -> np.ndarray:
        each = self._found.each
        return self._records.times_of(each) if each else self._records.t_s[self.record]

    @lazy
    def interval_s(self) -> np.ndarray:
        each = self._found.each
        return (self._records.intervals_of(each) if each else self._records.interval_cs[self.record]) / 100

    def of(self, item: str = "") -> dict[str, np.ndarray]:
        """{column: (rows,)} of one item, `t_s` and `interval_s` with them; empty columns if none has the name."""
        rows = self.item == (self.items.index(item) if item in self.items else -1)
        return {"t_s": self.t_s[rows], "interval_s": self.interval_s[rows]} | {
            name: values[rows] for name, values in self.values.items()
        }

    def frame(self) -> pd.DataFrame:
        """The table as a data frame: t_s, interval_s, item (a category) and the columns."""
        codes, names = pd.factorize(pd.Index(self.items, dtype="str"))  # a mount point may have had two file systems
        item = pd.Categorical.from_codes(codes[self.item], names)
        return pd.DataFrame({"t_s": self.t_s, "interval_s": self.interval_s, "item": item} | self.values)


class SaFile:
    """What a file says. Attributes: `version` of the sysstat that wrote it, `host`, `kernel`, `machine`, `cpus` (online
    or not), `activities` names of its tables, `not_read` {activity: its format} those of a later version, which
    are left out."""

    def __init__(self, name: str, content: bytes, loops: Loops | None = None) -> None:
        self._loops = loops
        self._source = Bytes(name, content)
        self.header: Header = read_header(self._source)
        self._tables: dict[str, Table] = {}
        self._known, not_read, mistakes = _known(self.header.activities)
        self._kinds = _kinds(self.header.activities, self.header.long_bytes)
        self.not_read = dict(not_read)
        for at, what in mistakes:
            raise self._source.wrong(at, what)
        self._records = Records(self._source, self.header, grouped=loops is None)
        self._most()

    version = property(lambda self: self.header.version)
    host = property(lambda self: self.header.host)
    kernel = property(lambda self: self.header.kernel)
    machine = property(lambda self: self.header.machine)
    cpus = property(lambda self: self._records.cpus)

    @property
    def activities(self) -> list[str]:
        return list(self._known)

    @lazy
    def t_s(self) -> np.ndarray:
        """(intervals,) end of each, s since 1970."""
        return self._records.t_s[self._records.follows]

    @lazy
    def interval_s(self) -> np.ndarray:
        """(intervals,) length of each by the machine's uptime, s."""
        return self._records.interval_cs[self._records.follows] / 100

    def items(self, name: str) -> list[str]:
        """Names of the items of an activity; none if the file does not hold it."""
        return self.table(name).items if name in self._known else []

    def table(self, name: str) -> Table:
        """One activity, computed once. Raises DataError if the file does not hold it, or an item is not understood."""
        if name not in self._known:
            raise DataError(f"{self._source.name}: no {name}; the file has {', '.join(self._known) or 'nothing known'}")
        number, activity = self._known[name]
        if name not in self._tables:
            columns = activity.figures(Readings(self._records, activity, number, self._kinds[name], self._loops))
            self._tables[name] = Table(name, columns, self._records)
        return self._tables[name]

    def tables(self) -> dict[str, Table]:
        return {name: self.table(name) for name in self._known}

    def _most(self) -> None:
        for name, (number, known) in self._known.items():
            for stretch in self._records.stretches:
                if stretch.layout.counts[number] > known.most:
                    raise self._source.wrong(
                        stretch.body + stretch.layout.offsets[number],
                        f"{name}: {stretch.layout.counts[number]} items, at most {known.most} can be")  # fmt: skip


@lru_cache(maxsize=64)
def _known(activities: Listing) -> tuple[dict[str, tuple[int, Activity]], dict[str, int], list[tuple[int, str]]]:
    """{name: (place in the list, activity)}, {name: format that is not known}, [(byte, what is wrong)]"""
    known, not_read, mistakes = {}, {}, []
    for number, listed in enumerate(activities):
        activity = KNOWN.get((listed.id, listed.magic))
        if activity is None:
            name = next((a.name for a in KNOWN.values() if a.id == listed.id), f"activity {listed.id}")
            not_read[name] = listed.magic
            continue
        mistakes += [(listed.at, f"{activity.name}: {what}") for what in _mistakes(activity, listed)]
        known[activity.name] = number, activity
    return known, not_read, mistakes


@lru_cache(maxsize=64)
def _kinds(activities: Listing, long_bytes: int) -> dict[str, list[Kind]]:
    known, _, _ = _known(activities)
    return {name: kinds_of(activity, activities[number], long_bytes) for name, (number, activity) in known.items()}


def _mistakes(known: Activity, listed: Listed) -> Iterator[str]:
    """Unless the structure in the file is the known one, or that of an earlier or later version."""
    ours = tuple(map(len, known.fields))
    theirs = (listed.kinds.wide, listed.kinds.longs, listed.kinds.narrow)
    pairs, least = list(zip(ours, theirs, strict=True)), zip(known.least, theirs, strict=True)
    grown, shrunk = all(a <= b for a, b in pairs), all(a >= b for a, b in pairs) and all(a <= b for a, b in least)
    if not grown and not shrunk:
        yield f"{theirs} numbers, known are {ours}"
    if listed.kinds.bytes + sum(known.texts) > listed.size:
        yield f"{listed.size} bytes an item are too few"
    if listed.items > known.most or listed.sub_items > known.sub_items:
        yield (f"{listed.items} x {listed.sub_items} items, "
               f"at most {known.most} x {known.sub_items} can be")  # fmt: skip


def is_sa(content: bytes) -> bool:
    """Whether this is a file of sysstat, by its first bytes."""
    return content[:2] in MAGIC


def read(name: str, content: bytes) -> SaFile:
    """`content` of a file, `name` for messages. Raises DataError with the byte at which it is not understood."""
    return SaFile(name, content, loops(next(_files)))
