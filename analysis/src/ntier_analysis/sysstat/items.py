"""The content of one activity's structures, item by item, and which readings of an item are compared.

Items are identified by their names in the file, not by their place: if an interface goes, the next one's counters do
not become its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ntier_analysis.sysstat.header import Listed
from ntier_analysis.sysstat.lazy import lazy
from ntier_analysis.sysstat.loops import Loops
from ntier_analysis.sysstat.records import Records

if TYPE_CHECKING:
    from ntier_analysis.sysstat.activities import Activity
    from ntier_analysis.sysstat.keys import Keys

Rows = slice | np.ndarray
FARTHEST = {8: 2**63 - 1, 4: 2**31 - 1}
"""Bytes of a counter -> most that it can grow by: beyond, it ran backwards."""


class Kind(NamedTuple):
    """Numbers that stand side by side in a structure and are of one kind: `names` of them, `form` of each, `step` bytes
    from one to the next, `at` byte of the first."""

    names: tuple[str, ...]
    form: str
    step: int
    at: int


def kinds_of(activity: Activity, listed: Listed, long_bytes: int) -> list[Kind]:
    """Of what the file has. Fields that it does not have are in none, nor are those of later versions."""
    wide, longs, narrow = activity.fields
    kinds = listed.kinds
    parts = [Kind(wide[: kinds.wide], "f8" if activity.floats else "u8", 8, 0),
             Kind(longs[: kinds.longs], f"u{long_bytes}", 8, 8 * kinds.wide),
             Kind(narrow[: kinds.narrow], "u4", 4, 8 * (kinds.wide + kinds.longs))]  # fmt: skip
    return [part for part in parts if part.names]


class Readings:
    """All structures of one activity: a row per item and record, in the order of the file. `loops`: compiled ones.
    `even`: items of each record if all hold as many, and the file has one run; else 0.
    `views`: [(names, (records, items, names) numbers)] as they lie in the file, sub-items count as items; None unless
    all records are alike."""

    def __init__(
        self, records: Records, activity: Activity, number: int, kinds: list[Kind], loops: Loops | None
    ) -> None:
        self.records, self.activity, self.number, self.loops = records, activity, number, loops
        self.listed: Listed = records.header.activities[number]
        self.sub = self.listed.sub_items
        self.even = records.evens[number]
        self._kinds = kinds
        self.views = self._views()

    @lazy
    def counts(self) -> np.ndarray:
        """(records,) items of each."""
        return self.records.counts(self.number)

    @property
    def most(self) -> int:
        """Most items of a record."""
        return max((s.layout.counts[self.number] for s in self.records.stretches), default=0)

    @lazy
    def record(self) -> np.ndarray:
        """(rows,) number of the record."""
        return self.records.record_of(self.even) if self.even else np.repeat(np.arange(self.records.n), self.counts)

    @lazy
    def position(self) -> np.ndarray:
        """(rows,) place among the items of the record."""
        if self.even:
            return self.records.position_of(self.even)
        return np.arange(len(self.record)) - np.repeat(self.first, self.counts)

    @lazy
    def first(self) -> np.ndarray:
        """(records,) first row of each."""
        return np.cumsum(self.counts) - self.counts

    @lazy
    def keys(self) -> Keys:
        return self.activity.keys(self)

    # ---- fields ----

    def names(self, kind: int) -> tuple[str, ...]:
        return self._kinds[kind].names

    @lazy
    def blocks(self) -> list[tuple[tuple[str, ...], np.ndarray]]:
        """[(names, (rows, names) numbers)], with sub-items (rows, sub-items, names), a block of each kind."""
        return [(names, self._gather(at, form, len(names), step)) for names, form, step, at in self._kinds]

    def _gather(self, at: int, form: str, count: int, step: int) -> np.ndarray:
        shape, steps = (count,), (step,)
        if self.activity.sub_items > 1:
            shape, steps = (self.sub, count), (self.listed.size, step)
        return self.records.gather(self.number, at, form, shape, steps)

    @lazy
    def fields(self) -> dict[str, np.ndarray]:
        """{name: (rows,) or (rows, sub-items)}"""
        return {name: block[..., i] for names, block in self.blocks for i, name in enumerate(names)}

    def text(self, number: int) -> np.ndarray:
        """(rows, bytes), or (rows, sub-items, bytes), of a text that follows the numbers."""
        size = self.activity.texts[number]
        return self._gather(self.at_text(number), f"V{size}", 1, size).view(np.uint8)

    def at_text(self, number: int) -> int:
        return self.listed.kinds.bytes + sum(self.activity.texts[:number])

    # ---- numbers as they lie in the file, not copied ----

    def _views(self) -> list[tuple[tuple[str, ...], np.ndarray]] | None:
        if not self.even or not self.records.plain:
            return None
        return [(names, self.view(at, form, len(names), step)) for names, form, step, at in self._kinds]

    def view(self, at: int, form: str, count: int, step: int) -> np.ndarray:
        return self.records.view(self.number, at, form, count, step)

    def constant(self, at: int, form: str, count: int, items: slice = slice(None)) -> np.ndarray | None:
        """(items, count) numbers if all records hold the same there; None where they do not, or `views` are none."""
        if not self.views:
            return None
        numbers = self.view(at, form, count, int(form[1:]))[:, items]
        same = self.loops.constant(numbers) if self.loops else (numbers[1:] == numbers[0]).all()
        return numbers[0] if same else None

    # ---- counters that only grow, by the compiled loops; None where they cannot serve ----

    @property
    def _steady(self) -> bool:
        return bool(self.loops and self.views and self.keys.steady)

    def steps(self, kind: int = 0, items: slice = slice(None), fields: slice = slice(None),
              most: int | None = None) -> np.ndarray | None:  # fmt: skip
        """(fields, rows) what the counters of one kind grew by from record to record."""
        if not self._steady:
            return None
        counters = self.views[kind][1][:, items, fields]
        grown = self._room(counters)
        most = FARTHEST[counters.itemsize] if most is None else most
        return grown.reshape(len(grown), -1) if self.loops.steps(counters, most, grown) else None

    def rates(self, kind: int = 0) -> np.ndarray | None:
        """(fields, rows) the same per second."""
        if not self._steady:
            return None
        counters = self.views[kind][1]
        rates = self._room(counters)
        only_grew = self.loops.rates(counters, FARTHEST[counters.itemsize], self.records.interval_cs, rates)
        return rates.reshape(len(rates), -1) if only_grew else None

    def shares(self, names: int, most: int) -> np.ndarray | None:
        """(names, rows) of the CPUs' time: of all, then of the single ones."""
        if not self._steady:
            return None
        counters = self.views[0][1]
        records, items, _ = counters.shape
        shares = self.records.room((names, (records - 1) * items))
        return shares if self.loops.shares(counters, most, shares) else None

    def levels(self, view: np.ndarray) -> np.ndarray:
        """(records, items, fields) -> (fields, rows) floats, without the first record."""
        levels = self._room(view)
        if self.loops:
            self.loops.levels(view, levels)
        else:
            levels[...] = view[1:].transpose(2, 0, 1)
        return levels.reshape(len(levels), -1)

    def _room(self, counters: np.ndarray) -> np.ndarray:
        records, items, fields = counters.shape
        return self.records.room((fields, records - 1, items))

    # ---- which reading is compared with which ----

    @lazy
    def ends(self) -> Rows:
        """Rows of records that end an interval; the others only begin one."""
        if self.even:
            return slice(self.even, None)
        return np.flatnonzero(self.records.follows[self.record])

    def pairs(self) -> tuple[Rows, Rows]:
        """(later, earlier) rows of the same item in two records, one directly behind the other and of one run."""
        if self.even and self.keys.steady:
            return slice(self.even, None), slice(None, -self.even)
        known = np.flatnonzero(self.before >= 0)
        return known, self.before[known]

    def pairs_or_new(self) -> tuple[Rows, Rows]:
        """The same for every row that ends an interval: -1 where the item is new."""
        if self.even and self.keys.steady:
            return self.pairs()
        return self.ends, self.before[self.ends]

    def pairs_across(self, there: np.ndarray) -> tuple[Rows, Rows]:
        """The same of the rows that are `there` (rows,) only; records that lack the item may lie between."""
        if self.even and there.all():
            return slice(self.even, None), slice(None, -self.even)
        rows = np.flatnonzero(there)
        record, code, run = self.record[rows], self.keys.codes[rows], self.records.run
        order = np.lexsort((record, code))
        same = (np.diff(code[order]) == 0) & (np.diff(run[record[order]]) == 0)
        before = np.full(len(rows), -1)
        before[order[1:][same]] = rows[order[:-1][same]]
        return rows[before >= 0], before[before >= 0]

    @lazy
    def before(self) -> np.ndarray:
        """(rows,) row of the same item in the record before, -1 without one or where that is of another run. Raises
        DataError if a record holds one item twice.

        Nearly always it is at the same place there; only where it is not, the items are looked for."""
        record, codes = self.record, self.keys.codes
        if not len(record):
            return np.zeros(0, np.int64)
        if self.keys.steady_stretches and self.records.one_run:
            return self._of_stretches()
        place = self.first[record - 1] + self.position  # of record 0: any, its rows follow nothing
        same = (self.position < self.counts[record - 1]) & self.records.follows[record]
        place[~same] = 0
        same &= codes[place] == codes
        places = np.where(same, place, -1)
        unlike = np.unique(record[~same])
        if unlike.size:
            self._look_for(unlike, places)
        return places

    def _of_stretches(self) -> np.ndarray:
        """The same where each stretch of records has the same items all along: only its first record is looked at."""
        places = np.arange(len(self.record))
        at, starts, record = 0, [], 0
        for stretch in self.records.stretches:
            count = stretch.layout.counts[self.number]
            places[at : at + stretch.n * count] -= count
            starts.append(record)
            at, record = at + stretch.n * count, record + stretch.n
        self._look_for(np.array(starts), places)
        return places

    def _look_for(self, unlike: np.ndarray, places: np.ndarray) -> None:
        """Fills `places` in for the rows of some records."""
        concerned = np.zeros(self.records.n, bool)
        concerned[unlike] = concerned[np.maximum(unlike - 1, 0)] = True
        rows = np.flatnonzero(concerned[self.record])
        record, code = self.record[rows], self.keys.codes[rows]
        order = np.lexsort((record, code))
        rows, record, code = rows[order], record[order], code[order]
        same, step = np.diff(code) == 0, np.diff(record)
        twice = np.flatnonzero(same & (step == 0))
        if twice.size:
            at = self.records.place_of(self.number, int(record[twice[0]]))
            name = self.keys.names[code[twice[0]]]
            raise self.records.source.wrong(at, f"{self.activity.name}: {name!r} occurs twice in one record")
        asked = np.zeros(self.records.n, bool)
        asked[unlike] = True
        good = np.flatnonzero(same & (step == 1) & self.records.follows[record[1:]] & asked[record[1:]])
        places[rows[asked[record]]] = -1
        places[rows[good + 1]] = rows[good]

    def interval_cs(self, rows: Rows) -> np.ndarray:
        """(rows,) of the interval that ends with each row, 1/100 s."""
        if isinstance(rows, slice):
            return self.records.intervals_of(self.even)
        return self.records.interval_cs[self.record[rows]]
