"""Of each CPU and of all of them: time, interrupts, packets, frequency."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ntier_analysis.sysstat.figures.usual import Columns, Values, columns, difference, levels_of, per_second
from ntier_analysis.sysstat.keys import c_string

if TYPE_CHECKING:
    from ntier_analysis.sysstat.items import Readings, Rows


BUSY = slice(0, 8)
SINGLE = slice(1, None)
"""Items of single CPUs; the first is that of all."""
TOP = np.uint64(2**64 - 1 - 0x7FFFF)
"""From here on a CPU counter that ran backwards has wrapped."""
EXACT = 2**48
"""Up to here floats are exact whole numbers, also in sums of a dozen."""
USER, NICE, SYS, IDLE, IOWAIT, STEAL, IRQ, SOFT, GUEST, GUEST_NICE = range(10)
SHARES = ("usr", "nice", "sys", "idle", "iowait", "steal", "irq", "soft", "guest", "gnice", "user", "system")


def cpu(readings: Readings) -> Columns:
    """Shares of each CPU's own time, and of all of them: the sum over the CPUs, not the kernel's own line of all.

    A CPU without any time is offline. While it is, it has no rows; when it comes back it goes on where it was."""
    if readings.most < 2:  # a kernel for one CPU: only "all"
        ((_, block),) = readings.blocks
        rows, before = readings.pairs()
        delta = passed(block[rows].T, block[before].T)
        return columns(readings, rows, shares(delta, ticks(delta), whole=len(delta.T)))
    if readings.views and readings.views[0][1][0, 1:, BUSY].any(axis=1).all():
        found = readings.shares(len(SHARES), most=EXACT // readings.most)
        if found is not None:
            return _with_all(readings, None, dict(zip(SHARES, found, strict=True)))
    ((_, block),) = readings.blocks
    rows, before = _online(readings, block[:, BUSY].any(axis=1))
    starts = _starts(readings, rows)
    delta = passed(block[rows].T, block[before].T)
    own, of_all = ticks(delta), _sum(delta, starts)
    both = np.concatenate([of_all, delta], axis=1), np.concatenate([_sum(own, starts), own])
    return _with_all(readings, rows, shares(*both, whole=of_all.shape[1]))


def _online(readings: Readings, online: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of readings of single CPUs that are online, whatever lies between them; in the order of the file."""
    if readings.even and online.reshape(-1, readings.even)[:, 1:].all():
        rows = np.arange(len(online)).reshape(-1, readings.even)
        return rows[1:, 1:].ravel(), rows[:-1, 1:].ravel()
    return readings.pairs_across(online & (readings.position > 0))


def _starts(readings: Readings, rows: np.ndarray) -> np.ndarray:
    """Which of the rows are the first of their record."""
    return np.flatnonzero(np.diff(readings.record[rows], prepend=-1))


def _sum(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """(..., rows) -> (..., records) in the type of the values: counters that wrap do so in the sum."""
    return np.add.reduceat(values, starts, axis=-1, dtype=values.dtype) if len(starts) else values


def _sum_of_records(values: np.ndarray, items: int) -> np.ndarray:
    """The same where each record has as many rows, of whole numbers whose sum a float holds exactly."""
    total = values[..., ::items].copy()
    for item in range(1, items):
        total += values[..., item::items]
    return total


def _with_all(readings: Readings, rows: np.ndarray | None, values: Values) -> Columns:
    """Columns of all CPUs, a row per record, and behind them of the single ones, by default of all in all records."""

    def where() -> tuple[np.ndarray, np.ndarray]:
        if rows is None:
            per_record = (x.reshape(-1, readings.even)[1:] for x in (readings.record, readings.position))
            record, item = (np.concatenate([x[:, 0], x[:, SINGLE].ravel()]) for x in per_record)
            return record, item
        record, item, starts = readings.record[rows], readings.position[rows], _starts(readings, rows)
        return np.concatenate([record[starts], record]), np.concatenate([np.zeros(len(starts), np.int64), item])

    return Columns(values, where, readings.keys.names)


def passed(later: np.ndarray, earlier: np.ndarray) -> np.ndarray:
    """(10, rows) differences of the counters. What the kernel set back counts as sysstat has it: idle and iowait of a
    CPU that was offline begin at zero again; iowait may run backwards while idle does not."""
    delta = (later - earlier).view(np.int64).astype(float)
    wait, wait_before, idle, idle_before = later[IOWAIT], earlier[IOWAIT], later[IDLE], earlier[IDLE]
    back = (wait < wait_before) & (wait_before < TOP)
    if back.any():
        idle_goes_on = (idle > idle_before) | (idle_before >= TOP)
        delta[IOWAIT, back] = np.where(idle_goes_on, 0, wait)[back]
    back = (idle < idle_before) & (idle_before < TOP)
    if back.any():
        delta[IDLE, back] = idle[back]
    return delta


def ticks(delta: np.ndarray) -> np.ndarray:
    """(rows,) that passed. The guest's counter may be ahead of the one it is part of."""
    ticks = np.maximum(delta[BUSY], 0).sum(axis=0)
    for total, guest in ((USER, GUEST), (NICE, GUEST_NICE)):
        ticks += np.where(delta[total] >= 0, np.maximum(delta[guest] - delta[total], 0), 0)
    return ticks


def shares(delta: np.ndarray, ticks: np.ndarray, *, whole: int) -> Values:
    """{name: (rows,)} percent of the ticks, 0 for what ran backwards. `user` and `system` are those of `sar -u`, the
    others of `sar -u ALL`. The first `whole` rows are of all CPUs; a single one without a tick idles."""
    parts = np.empty((len(SHARES), delta.shape[1]))
    parts[:10] = delta
    parts[0] -= np.maximum(delta[GUEST], 0)
    parts[1] -= np.maximum(delta[GUEST_NICE], 0)
    parts[10] = delta[USER]
    parts[11] = delta[SYS] + delta[IRQ] + delta[SOFT]
    np.maximum(parts, 0, out=parts)
    none = ticks == 0
    parts /= np.where(none, 1, ticks)
    parts *= 100
    if none.any():
        parts[:, none] = 0
        parts[IDLE, whole:][none[whole:]] = 100
    return dict(zip(SHARES, parts, strict=True))


def interrupts(readings: Readings) -> Columns:
    """Items are CPUs, sub-items the interrupts, the first their sum -> items `name` (all CPUs) and `name:CPU0`.

    A CPU whose sum is zero is offline."""
    rows: Rows
    before: Rows
    values = None
    if readings.views and (readings.views[0][1][0, :: readings.sub] > 0).all():
        values, (rows, before) = readings.rates(), (slice(readings.even, None), slice(None, -readings.even))
    if values is None:
        count = readings.fields["value"]
        rows, before = readings.pairs_across(count[:, 0] > 0)
        delta = difference(count[rows], count[before])
        if np.isnan(delta).any():
            delta[(readings.position[rows] == 0)[:, None] & np.isnan(delta)] = 0
        values = per_second(delta.T, readings.interval_cs(rows)).T
    else:
        values = values.reshape(-1, readings.sub)
    names, changing = _interrupt_names(readings, rows, before)
    ends = ["", *(f":CPU{i}" for i in range(readings.most - 1))]

    def where() -> tuple[np.ndarray, np.ndarray]:
        if keep is None and isinstance(rows, slice):
            items = readings.even * readings.sub
            return readings.records.record_of(items)[items:], readings.records.position_of(items)[items:]
        item = readings.position[rows][:, None] * len(names) + (
            np.arange(readings.sub) if keep is None else changing[0]
        )
        record = np.broadcast_to(readings.record[rows][:, None], item.shape)
        return (record.ravel(), item.ravel()) if keep is None else (record[keep], item[keep])

    keep = None if changing is None else changing[1]
    return Columns(
        {"value": values.ravel() if keep is None else values[keep]},
        where,
        [name + end for end in ends for name in names],
        each=readings.even * readings.sub if keep is None and isinstance(rows, slice) else 0,
    )


def _interrupt_names(
    readings: Readings, rows: Rows, before: Rows
) -> tuple[list[str], tuple[np.ndarray, np.ndarray] | None]:
    """Names of the interrupts, which stand in the items of all CPUs only. If they change in mid-file also, for each row
    and place, the number of the name and whether the row before had the same there."""
    size = readings.activity.texts[0]
    same = readings.constant(readings.at_text(0), "u8", size // 8, slice(readings.sub))
    if same is not None:
        return _told_apart([c_string(raw.tobytes()) for raw in same]), None
    whole = readings.text(0).reshape(-1, readings.sub * size)
    whole = whole[:: readings.even] if readings.even else whole[readings.position == 0]
    if not len(whole):
        return [], (np.zeros((0, readings.sub), np.int64), np.zeros((0, readings.sub), bool))
    if (whole == whole[0]).all():
        names = [c_string(whole[0, i : i + size].tobytes()) for i in range(0, readings.sub * size, size)]
        return _told_apart(names), None
    per_record = np.full((len(readings.counts), readings.sub), -1)
    unique, codes = np.unique(np.ascontiguousarray(whole).reshape(-1, size).view(f"V{size}")[:, 0], return_inverse=True)
    place = np.arange(readings.sub)
    pair, coded = np.unique(codes.reshape(-1, readings.sub) * readings.sub + place, return_inverse=True)
    per_record[readings.counts > 0] = coded.reshape(-1, readings.sub)
    texts = [c_string(raw.tobytes()) for raw in unique]
    names = [f"{texts[key // readings.sub]}#{key % readings.sub}" for key in pair]
    later, earlier = per_record[readings.record[rows]], per_record[readings.record[before]]
    return names, (later, later == earlier)


def _told_apart(names: list[str]) -> list[str]:
    """A name that occurs again, or is empty, gets its number."""
    first: dict[str, int] = {}
    return [f"{n}#{i}" if not n or first.setdefault(n, i) < i else n for i, n in enumerate(names)]


def softnet(readings: Readings) -> Columns:
    """Of each CPU, and their sum; the file's own item of all is empty. A CPU without any count is offline."""
    quick = _quick_softnet(readings)
    if quick is not None:
        return _with_all(readings, None, quick)
    ((names, block),) = readings.blocks
    rows, before = _online(readings, block.any(axis=1))
    starts, later = _starts(readings, rows), block[rows].T
    delta = later - block[before].T
    delta = np.concatenate([_sum(delta, starts), delta], axis=1)
    interval = readings.interval_cs(rows)
    interval = np.concatenate([interval[starts], interval])
    values = dict(zip(names, per_second(difference(delta, np.zeros_like(delta)), interval), strict=True))
    if "blg_len" in names:
        length = later[names.index("blg_len")].astype(float)
        values["blg_len"] = np.concatenate([_sum(length, starts), length])
    return _with_all(readings, rows, values)


def _quick_softnet(readings: Readings) -> Values | None:
    """All CPUs are online from the first record on."""
    if not readings.views or readings.even < 2:
        return None
    ((names, view),) = readings.views
    counters = slice(5)
    if not view[0, SINGLE, counters].any(axis=1).all():
        return None
    each = readings.steps(items=SINGLE, fields=counters, most=(2**31 - 1) // readings.even)
    if each is None:
        return None
    both = np.concatenate([_sum_of_records(each, readings.even - 1), each], axis=1)
    interval = np.concatenate([readings.records.interval_cs[1:], readings.records.intervals_of(readings.even - 1)])
    values = dict(zip(names[counters], per_second(both, interval), strict=True))
    if "blg_len" in names:
        length = view[1:, SINGLE, names.index("blg_len")].astype(float)
        values["blg_len"] = np.concatenate([length.sum(axis=1), length.ravel()])
    return values


def frequency(readings: Readings) -> Columns:
    """MHz; the file has hundredths."""
    rows = readings.ends
    return columns(readings, rows, {"frequency": levels_of(readings, rows)["frequency"] / 100})


def weighted_frequency(readings: Readings) -> Columns:
    """MHz: mean of the states (sub-items, kHz) by the time spent in each. A state without a frequency ends the list."""
    rows, before = readings.pairs()
    time, khz = readings.fields["time"], readings.fields["frequency"]
    used = np.logical_and.accumulate(khz[rows] != 0, axis=1)
    spent = np.where(used, time[rows] - time[before], 0)
    back = (spent.view(np.int64) < 0).any(axis=1)
    weight = (khz[rows].astype(np.uint64) // np.uint64(1000)).astype(float) * spent
    total = spent.sum(axis=1).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(total == 0, 0.0, weight.sum(axis=1) / total)
    mean[back] = np.nan
    return columns(readings, rows, {"weighted-frequency": mean})
