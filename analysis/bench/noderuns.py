"""Files of sysstat of made-up node-runs, from a real one: the same machine and activities, other numbers.

The steps of all counters are drawn again from those of the real file, in stretches of some seconds (so that what
belongs together stays together), each item's times a factor of its own, and each step times its own noise: so no two
node-runs share a sequence, as no two real ones do, and nothing compresses because it is a copy. CPU time is moved from
idle to user and system by how busy the node is meant to be. Memory walks by the real file's steps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import zstandard
from ntier_analysis.sysstat import figures
from ntier_analysis.sysstat.activities import KNOWN, Activity
from ntier_analysis.sysstat.header import Bytes, Header, Listed, read_header
from ntier_analysis.sysstat.records import Records, Stretch

STRETCH_S = 8
"""Seconds that are drawn together."""
SPREAD, NOISE = 0.5, 0.1
"""Standard deviation of the logarithm of an item's factor, and of a step's."""
WALKS = (figures.memory, figures.hugepages)
LEVELS = (figures.levels, figures.queue, figures.frequency, figures.filesystem)
USER, SYSTEM, IDLE = 0, 2, 3
PAGE_KIB = 4


@dataclass(frozen=True)
class Block:
    """Numbers of one kind of one activity, in every record: (records, items, numbers) of `form` from byte `at` on."""

    activity: Activity
    at: int
    items: int
    size: int
    numbers: int
    form: str

    def of(self, records: np.ndarray) -> np.ndarray:
        width = np.dtype(self.form).itemsize
        shape, steps = (len(records), self.items, self.numbers), (records.strides[0], self.size, width)
        return np.ndarray(shape, self.form, records, self.at, steps)


class Seed:
    """A real file: the longest run of its records that hold the same items."""

    def __init__(self, path: Path) -> None:
        content = path.read_bytes()
        if path.suffix == ".zst":
            content = zstandard.ZstdDecompressor().stream_reader(content).read()
        source = Bytes(str(path), content)
        self.header: Header = read_header(source)
        stretch: Stretch = max(Records(source, self.header).stretches, key=lambda s: s.n)
        if stretch.n < 2 * STRETCH_S:
            raise SystemExit(f"{path}: {stretch.n} records of one kind in a row, needed are {2 * STRETCH_S}")
        self.front = content[: self.header.end]
        end = stretch.header + stretch.n * stretch.step
        self.records = np.frombuffer(content[stretch.header : end], np.uint8).reshape(stretch.n, stretch.step)
        self.blocks = [b for i, a in enumerate(self.header.activities) for b in self._blocks(a, stretch, i)]

    def _blocks(self, listed: Listed, stretch: Stretch, number: int) -> list[Block]:
        activity = KNOWN.get((listed.id, listed.magic))
        count = stretch.layout.counts[number] * listed.sub_items
        if activity is None or not count or activity.floats:
            return []
        at = self.header.record_bytes + stretch.layout.offsets[number]
        order, kinds = "<" if self.front[0] == 0x96 else ">", listed.kinds
        wide = kinds.wide + kinds.longs
        both = [(at, wide, f"{order}u8"), (at + 8 * wide, kinds.narrow, f"{order}u4")]
        return [Block(activity, place, count, listed.size, n, form) for place, n, form in both if n]

    def make(self, rng: np.random.Generator, seconds: int, t_s: int, busy: float) -> bytes:
        """A file of `seconds` intervals from `t_s` on, of a node that is busy for that share of its CPU time."""
        n, real = seconds + 1, len(self.records)
        begin = rng.integers(1, real - STRETCH_S, size=seconds // STRETCH_S + 1)
        drawn = (begin[:, None] + np.arange(STRETCH_S)).ravel()[:seconds]
        made = np.repeat(self.records[:1], n, axis=0)
        intervals = self._interval_cs()[drawn - 1]
        self._heads(made, t_s, intervals)
        factors: dict[tuple[str, int], np.ndarray] = {}
        for block in self.blocks:
            values = block.of(self.records).astype(np.int64)
            activity = block.activity
            if activity.figures in LEVELS:
                block.of(made)[...] = values[np.concatenate([[0], drawn])]
                continue
            steps = np.diff(values, axis=0)[drawn - 1]
            if activity.figures in WALKS:
                block.of(made)[...] = _walk(values[0], steps, rng)
                continue
            if activity.name == "cpu-load":
                _busier(steps, busy, rng)
            else:
                key = activity.name, block.items
                factor = factors.setdefault(key, np.exp(rng.normal(0, SPREAD, (1, block.items, 1))))
                noise = np.exp(rng.normal(0, NOISE, (seconds, block.items, 1)))
                steps = np.rint(np.maximum(steps, 0) * factor * noise).astype(np.int64)
                if activity.name == "disk" and block.form.endswith("4"):
                    steps[:, :, 2] = np.minimum(steps[:, :, 2], 10 * intervals[:, None])  # in use: at most all the time
            whole = np.concatenate([values[:1], values[:1] + np.cumsum(steps, axis=0)])
            block.of(made)[...] = whole.astype(np.uint64)
        return self.front + made.tobytes()

    def _field(self, records: np.ndarray, form: str, offset: int) -> np.ndarray:
        order = "<" if self.front[0] == 0x96 else ">"
        return np.ndarray((len(records),), order + form, records, offset, (records.strides[0],))

    def _interval_cs(self) -> np.ndarray:
        return np.diff(self._field(self.records, "u8", 0).astype(np.int64))

    def _heads(self, made: np.ndarray, t_s: int, intervals: np.ndarray) -> None:
        uptime = self._field(made, "u8", 0)
        uptime[1:] = uptime[0] + np.cumsum(intervals).astype(np.uint64)
        times = t_s + np.arange(len(made))
        self._field(made, "u8", 8)[...] = times
        at = self.header.record_kinds.bytes
        for offset, of_day in ((1, times // 3600 % 24), (2, times // 60 % 60), (3, times % 60)):
            made[:, at + offset] = of_day


def _walk(first: np.ndarray, steps: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Levels that never fall below zero, in the pages (4 KiB) in which a kernel counts; fields that do not change in
    the real file do not here."""
    factor = np.exp(rng.normal(0, SPREAD, steps.shape)) * rng.choice([-1, 1], (len(steps), 1, 1))
    moved = np.rint(steps / PAGE_KIB * factor) * PAGE_KIB
    walk = first[None] + np.concatenate([np.zeros((1, *first.shape)), np.cumsum(moved, axis=0)])
    return np.maximum(walk, 0).astype(np.uint64)


def _busier(steps: np.ndarray, busy: float, rng: np.random.Generator) -> None:
    """Ticks of each CPU (seconds, items, counters): of the idle ones, a share that changes from second to second."""
    idle = np.maximum(steps[:, 1:, IDLE], 0)
    share = np.clip(busy + rng.normal(0, 0.05, idle.shape), 0, 1)
    used = rng.binomial(idle, share)
    system = rng.binomial(used, 0.3)
    steps[:, 1:, IDLE] -= used
    steps[:, 1:, USER] += used - system
    steps[:, 1:, SYSTEM] += system
