"""Where each record of a file begins and what it holds.

Records differ in length only where items come or go, so long stretches of them are alike. The first of a stretch is
read field by field; how far the stretch goes is one comparison over all that follow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ntier_analysis.sysstat.header import MAX_ITEMS, Bytes, Header, Listing
from ntier_analysis.sysstat.lazy import lazy

STATISTICS, RESTART, COMMENT, EXTRA_FIRST, EXTRA_LAST = 1, 2, 4, 5, 15
"""Kinds of records. (3 is written as 1; whatever is none of the others is statistics.)"""
COMMENT_BYTES = 64
FIRST_STRETCH = 1024
"""Records that are compared first."""
MANY = 64
"""Stretches beyond which they are not copied one by one."""
GROUP_BYTES = 1024
"""Of a record, that are copied together."""
ROOM = 2
"""Memory for the figures of a file, in its size. They need less, but the GNU C library keeps up to twice the largest
piece that was freed, and gives more back to the kernel. Files of some MB that are read in a row would ask for it again
page by page, which takes as long as all else."""
MOST_ROOM = 2**25
"""Bytes; the library keeps no larger pieces."""
KEPT_ROWS = 2**17
"""Rows up to which their numbers are kept for the next file: at most 64 MiB in all."""
BILLION = 10**9
"""s since 1970: no record is older (2001)."""


@dataclass(frozen=True)
class Layout:
    """Of one record: `counts` (activities,) items, `offsets` (activities,) of the first item from the record's
    statistics on, `size` of all statistics, bytes. `groups` (activities,): begin and end of the group of neighbours
    that an activity is copied with."""

    counts: tuple[int, ...]
    offsets: tuple[int, ...]
    size: int
    groups: tuple[tuple[int, int], ...]


@lru_cache(maxsize=1024)
def layout_of(activities: Listing, counts: tuple[int, ...]) -> Layout:
    """Of a record with these numbers of items."""
    offsets, groups, at, begin, members = [], [], 0, 0, 0
    for listed, count in zip(activities, counts, strict=True):
        at += 4 * listed.counted
        offsets.append(at)
        end = at + count * listed.sub_items * listed.size
        if end - begin > GROUP_BYTES:
            groups += [(begin, at)] * members
            begin, members = at, 0
        members, at = members + 1, end
    return Layout(counts, tuple(offsets), at, (*groups, *[(begin, at)] * members))


@dataclass(frozen=True)
class Stretch:
    """`n` records of one layout, directly behind each other; the first's header and statistics begin at these bytes."""

    header: int
    body: int
    n: int
    step: int
    layout: Layout


class Records:
    """The statistics of a file. Per record, in the file's order: `t_s` (n,) its time, s since 1970; `run` (n,) how many
    restarts came before it; `uptime_cs` (n,) of the machine, 1/100 s."""

    def __init__(self, source: Bytes, header: Header, *, grouped: bool = True) -> None:
        self.source, self.header, self._grouped = source, header, grouped
        self.buffer = np.frombuffer(source.content, np.uint8)
        self.stretches: list[Stretch] = []
        self.restarts: list[tuple[int, int]] = []  # (stretches before it, CPUs after it)
        self._groups: dict[tuple[int, int], np.ndarray] = {}
        self._of_items: dict[tuple[str, int], np.ndarray] = {}
        self._grids: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._room: np.ndarray | None = None
        self._walk()

    # ---- one pass over the file ----

    def _walk(self) -> None:
        at, end = self.header.end, len(self.source.content)
        while at < end:
            kind, extra = self._record(at)
            body = at + self.header.record_bytes
            if kind == COMMENT:
                self.source.need(body, COMMENT_BYTES, "comment")
                body += COMMENT_BYTES
            elif kind == RESTART:
                (cpus,) = self.source.numbers(body, "I", "restart")
                if not 1 <= cpus <= 2**16:
                    raise self.source.wrong(body, f"restart with {cpus} CPUs: out of range")
                self.restarts.append((len(self.stretches), max(cpus - 1, 1)))
                body += 4
            if extra:
                body = self.source.skip_extras(body)
            if kind in (RESTART, COMMENT) or EXTRA_FIRST <= kind <= EXTRA_LAST:
                at = body
                continue
            layout = self._layout(body)
            step = self.header.record_bytes + layout.size
            alike = 1 if extra else self._alike(at, step, layout)
            self.stretches.append(Stretch(at, body, alike, step, layout))
            at = body + layout.size + (alike - 1) * step

    def _record(self, at: int) -> tuple[int, int]:
        """-> kind of the record that begins here, and whether extra structures follow its header."""
        kinds, number = self.header.record_kinds, len(self.stretches) + 1
        self.source.need(at, self.header.record_bytes, f"record (behind {number - 1} stretches of alike ones)")
        numbers = at + kinds.bytes
        kind, hour, minute, second = self.source.content[numbers : numbers + 4]
        (t_s,) = self.source.numbers(at + 8, "Q", "record")
        extra = self.source.numbers(at + 8 * kinds.wide + 8 * kinds.longs, "I", "record")[0] if kinds.narrow else 0
        if not 1 <= kind <= EXTRA_LAST or hour > 23 or minute > 59 or second > 60 or not BILLION <= t_s < 2**40:
            raise self.source.wrong(at, f"no record (kind {kind}, {hour:02}:{minute:02}:{second:02}, {t_s} s)")
        return kind, extra

    def _layout(self, body: int) -> Layout:
        """Of the statistics that begin here: reads the counts, and makes sure that all is in the file."""
        at, counts = body, []
        for listed in self.header.activities:
            count = listed.items
            if listed.counted:
                (count,) = self.source.numbers(at, "i", f"number of items of activity {listed.id}")
                if not 0 <= count <= MAX_ITEMS:
                    raise self.source.wrong(at, f"{count} items of activity {listed.id}: out of range")
                at += 4
            self.source.need(at, count * listed.sub_items * listed.size, f"{count} items of activity {listed.id}")
            at += count * listed.sub_items * listed.size
            counts.append(count)
        return layout_of(self.header.activities, tuple(counts))

    def _alike(self, at: int, step: int, layout: Layout) -> int:
        """How many records from this one on have its layout and are plain statistics."""
        room = (len(self.source.content) - at) // step
        done, ahead = 1, FIRST_STRETCH
        if self.stretches and self.stretches[-1].n < FIRST_STRETCH:
            ahead = 2 * self.stretches[-1].n
        while done < room:
            ahead = min(ahead, room - done)
            same = self._same(at + done * step, ahead, step, layout)
            done += same
            if same < ahead:
                break
            ahead *= 8
        return done

    def _same(self, at: int, n: int, step: int, layout: Layout) -> int:
        """Number of places, from the first on, that hold a record of this layout, out of `n` places `step` bytes
        apart."""
        kinds, order = self.header.record_kinds, self.source.order

        def field(form: str, offset: int) -> np.ndarray:
            return np.ndarray((n,), order + form, self.source.content, at + offset, (step,))

        flags = kinds.bytes
        t_s = field("u8", 8)
        good = field("u1", flags) == STATISTICS
        good &= (t_s >= BILLION) & (t_s < 2**40)
        for offset, most in ((1, 23), (2, 59), (3, 60)):
            good &= field("u1", flags + offset) <= most
        if kinds.narrow:
            good &= field("u4", 8 * kinds.wide + 8 * kinds.longs) == 0
        body = self.header.record_bytes
        for listed, count, offset in zip(self.header.activities, layout.counts, layout.offsets, strict=True):
            if listed.counted:
                good &= field("i4", body + offset - 4) == count
        return n if good.all() else int(good.argmin())

    # ---- what the records say ----

    @lazy
    def n(self) -> int:
        return sum(s.n for s in self.stretches)

    @lazy
    def headers(self) -> np.ndarray:
        """(n,) place of each record, bytes."""
        return _spread(self.stretches, [s.header for s in self.stretches])

    def _field(self, form: str, offset: int) -> np.ndarray:
        """(n,) of a number in the headers."""
        if len(self.stretches) == 1:
            only = self.stretches[0]
            view = np.ndarray(
                (only.n,), self.source.order + form, self.source.content, only.header + offset, (only.step,)
            )
            return view.astype(form)
        return _blocks(self.buffer, self.headers + offset, np.dtype(form).itemsize).view(self.source.order + form)[:, 0]

    @lazy
    def t_s(self) -> np.ndarray:
        return self._field("u8", 8).astype(np.int64) if self.n else np.zeros(0, np.int64)

    @lazy
    def uptime_cs(self) -> np.ndarray:
        return self._field("u8", 0).astype(np.uint64) if self.n else np.zeros(0, np.uint64)

    @lazy
    def run(self) -> np.ndarray:
        run = np.zeros(self.n + 1, np.int64)
        ends = np.cumsum([0] + [s.n for s in self.stretches])
        for stretches, _ in self.restarts:
            run[ends[stretches]] = 1
        # an uptime that goes back is a restart that nobody wrote down
        run[1:-1] |= self.uptime_cs[1:] < self.uptime_cs[:-1] if self.n else False
        return np.cumsum(run[:-1])

    @lazy
    def one_run(self) -> bool:
        return self.n > 0 and self.run[-1] == self.run[0]

    @lazy
    def follows(self) -> np.ndarray:
        """(n,) whether the record ends an interval: the one before it is of the same run."""
        follows = np.zeros(self.n, bool)
        follows[1:] = self.run[1:] == self.run[:-1]
        return follows

    @lazy
    def interval_cs(self) -> np.ndarray:
        """(n,) of the interval that ends with each record, 1/100 s; as sysstat has it, none is shorter than one."""
        interval = np.ones(self.n)
        interval[1:] = np.maximum(self.uptime_cs[1:] - self.uptime_cs[:-1], 1)
        return interval

    def room(self, shape: tuple[int, ...]) -> np.ndarray:
        """For figures, uninitialised; all from one piece of memory."""
        if self._room is None:
            self._room = np.empty(min(ROOM * len(self.source.content), MOST_ROOM) // 8)
        size = math.prod(shape)
        if size > len(self._room):
            return np.empty(shape)
        taken, self._room = self._room[:size], self._room[size:]
        return taken.reshape(shape)

    @lazy
    def evens(self) -> tuple[int, ...]:
        """(activities,) items of each record if all hold as many, and the file has one run; else 0."""
        if self.n < 2 or not self.one_run:
            return (0,) * len(self.header.activities)
        of_stretches = {s.layout.counts for s in self.stretches}
        return tuple(c[0] if len(set(c)) == 1 else 0 for c in zip(*of_stretches, strict=True))

    # ---- the same per item, for activities of which each record holds as many: (records x items,) ----

    def record_of(self, items: int) -> np.ndarray:
        """Number of the record."""
        return self._grid(items)[0]

    def position_of(self, items: int) -> np.ndarray:
        """Place among the items of the record."""
        return self._grid(items)[1]

    def _grid(self, items: int) -> tuple[np.ndarray, np.ndarray]:
        if self.n * items <= KEPT_ROWS:
            return _kept_grid(self.n, items)
        if items not in self._grids:
            self._grids[items] = _grid_of(self.n, items)
        return self._grids[items]

    def intervals_of(self, items: int) -> np.ndarray:
        """interval_cs, without the first record."""
        return self._each("interval", items, lambda: self.interval_cs[1:, None])

    def times_of(self, items: int) -> np.ndarray:
        """t_s, without the first record."""
        return self._each("time", items, lambda: self.t_s[1:, None])

    def _each(self, what: str, items: int, values: Callable[[], np.ndarray]) -> np.ndarray:
        """(records, 1) values -> (records x items,). Made once: many activities have as many items."""
        if (what, items) not in self._of_items:
            self._of_items[what, items] = _flat(values(), (self.n - 1, items))
        return self._of_items[what, items]

    # ---- their content ----

    def counts(self, number: int) -> np.ndarray:
        """(n,) items of the activity at a place in the list."""
        counts = np.array([s.layout.counts[number] for s in self.stretches], np.int64)
        return np.repeat(counts, [s.n for s in self.stretches])

    def gather(self, number: int, offset: int, form: str, shape: tuple[int, ...], steps: tuple[int, ...]) -> np.ndarray:
        """For every item of an activity, the (items, *shape) numbers of `form`, `steps` bytes apart, that begin
        `offset` bytes behind its start. (Sub-items are one more dimension of the shape.)"""
        listed = self.header.activities[number]
        size = listed.size * listed.sub_items
        form_here = self.source.order + form
        if len(self.stretches) > MANY:
            rows = self._rows(number, size)
            return np.ndarray((len(rows), *shape), form_here, rows, offset, (size, *steps)).astype(form)
        gathered = np.empty((sum(s.n * s.layout.counts[number] for s in self.stretches), *shape), form)
        at = 0
        for index, stretch in enumerate(self.stretches):
            count = stretch.layout.counts[number]
            here = stretch.n * count
            if here:
                near, step, start = self._near(index, number)
                view = np.ndarray((stretch.n, count, *shape), form_here, near, start + offset, (step, size, *steps))
                gathered[at : at + here].reshape(view.shape)[...] = view
                at += here
        return gathered

    @lazy
    def plain(self) -> bool:
        """Whether the file is one stretch of records, in this machine's byte order."""
        return len(self.stretches) == 1 and np.dtype(f"{self.source.order}u8").isnative

    def view(self, number: int, offset: int, form: str, count: int, step: int) -> np.ndarray:
        """(records, items x sub-items, count) numbers in a plain file, as `gather` has them, but not copied."""
        listed, (stretch,) = self.header.activities[number], self.stretches
        near, record, start = self._near(0, number)
        shape = stretch.n, stretch.layout.counts[number] * listed.sub_items, count
        return np.ndarray(shape, form, near, start + offset, (record, listed.size, step))

    def _near(self, index: int, number: int) -> tuple[bytes | np.ndarray, int, int]:
        """Where the items of an activity are in a stretch -> buffer, bytes from record to record, first byte.

        Records are some kB long, so that each activity read from the file itself would wait for memory in every record:
        neighbours are copied together once. A large one is read from the file, as are all by one pass of a loop."""
        stretch = self.stretches[index]
        begin, end = stretch.layout.groups[number]
        start = stretch.layout.offsets[number]
        if end - begin > GROUP_BYTES or not self._grouped:
            return self.source.content, stretch.step, stretch.body + start
        if (index, begin) not in self._groups:
            view = (stretch.n, end - begin), np.uint8, self.source.content, stretch.body + begin, (stretch.step, 1)
            self._groups[index, begin] = np.ascontiguousarray(np.ndarray(*view))
        return self._groups[index, begin], end - begin, start - begin

    def _rows(self, number: int, size: int) -> np.ndarray:
        """(items, bytes) whole items of a file whose layout changes all the time."""
        counts = self.counts(number)
        places = _spread(self.stretches, [s.body + s.layout.offsets[number] for s in self.stretches])
        first = np.cumsum(counts) - counts
        rows = np.empty((int(counts.sum()), size), np.uint8)
        for count in np.unique(counts[counts > 0]):
            which = np.flatnonzero(counts == count)
            into = (first[which][:, None] + np.arange(count)).ravel()
            rows[into] = _blocks(self.buffer, places[which], int(count) * size).reshape(-1, size)
        return rows

    def place_of(self, number: int, record: int) -> int:
        """Byte where the items of an activity begin in a record, for messages."""
        for stretch in self.stretches:
            if record < stretch.n:
                return stretch.body + stretch.layout.offsets[number] + record * stretch.step
            record -= stretch.n
        raise IndexError(record)

    @property
    def cpus(self) -> int:
        """CPUs of the machine, online or not, by the last restart record, else by the header."""
        return self.restarts[-1][1] if self.restarts else self.header.cpus


def _grid_of(records: int, items: int) -> tuple[np.ndarray, np.ndarray]:
    """(records x items,) number of the record, place among its items."""
    shape = records, items
    return _flat(np.arange(records)[:, None], shape), _flat(np.arange(items), shape)


_kept_grid = lru_cache(maxsize=32)(_grid_of)
"""For the next file: those of one study have as many records and items."""


def _flat(values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Spread over the shape, in one row; read-only."""
    made = np.empty(shape, values.dtype)
    made[...] = values
    made.flags.writeable = False
    return made.reshape(-1)


def _spread(stretches: list[Stretch], first: list[int]) -> np.ndarray:
    """(n,) place in each record of what is at `first` in the first record of each stretch."""
    n, step = np.array([(s.n, s.step) for s in stretches], np.int64).reshape(-1, 2).T
    inside = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
    return np.repeat(np.array(first, np.int64), n) + inside * np.repeat(step, n)


def _blocks(buffer: np.ndarray, places: np.ndarray, size: int) -> np.ndarray:
    """(places, size) copies of the bytes at each place."""
    windows = np.lib.stride_tricks.as_strided(buffer, (len(buffer) - size + 1, size), (1, 1), writeable=False)
    return windows[places]
