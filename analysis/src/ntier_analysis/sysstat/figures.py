"""Counters and levels -> the figures that sysstat shows, by its definitions.

All divide first and multiply by 100 then, as sysstat does, so that the last printed digit is the same. A counter that
ran backwards by more than a wrap can explain has no value (NaN), unless sysstat says what it then is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ntier_analysis.sysstat.items import c_string

if TYPE_CHECKING:
    from ntier_analysis.sysstat.items import Readings, Rows

Values = dict[str, np.ndarray]
TOP = np.uint64(2**64 - 1 - 0x7FFFF)
"""From here on a CPU counter that ran backwards has wrapped."""
SECTORS_PER_KB = 2


@dataclass(frozen=True)
class Columns:
    """`values`: {name: (rows,)}. `rows()` -> (rows,) number of the record, (rows,) of the item's name in `names`."""

    values: Values
    rows: Callable[[], tuple[np.ndarray, np.ndarray]]
    names: list[str]
    notes: dict[str, list[str]] = field(default_factory=dict)


def columns(readings: Readings, rows: Rows, values: Values) -> Columns:
    keys = readings.keys
    return Columns(values, lambda: (readings.record[rows], keys.codes[rows]), keys.names, keys.notes)


# ---- the usual cases -----------------------------------------------------------------------------------------------


def rates(readings: Readings) -> Columns:
    """Every field is a counter: per second."""
    rows, before = readings.pairs()
    return columns(readings, rows, _rates(readings, rows, before))


def new_rates(readings: Readings) -> Columns:
    """The same; an item that is new began at zero."""
    rows, before = readings.pairs_or_new()
    return columns(readings, rows, _rates(readings, rows, before))


def serial(readings: Readings) -> Columns:
    """Per second."""
    rows, before = readings.pairs()
    values = _rates(readings, rows, before)
    del values["line"]
    return columns(readings, rows, values)


def _rates(readings: Readings, rows: Rows, before: Rows) -> Values:
    interval, values = readings.interval_cs(rows), {}
    for names, block in readings.blocks:
        rates = per_second(difference(block[rows], at(block, before)), interval)
        values.update(zip(names, rates.T, strict=True))
    return values


def rates_or_zero(readings: Readings) -> Columns:
    """Per second; a counter that ran backwards stands still: devices went, and their share of the sum with them."""
    rows, before = readings.pairs()
    ((names, block),) = readings.blocks
    later, earlier = block[rows], block[before]
    delta = np.where(later < earlier, 0, later - earlier)
    rates = per_second(delta, readings.interval_cs(rows))
    return columns(readings, rows, dict(zip(names, rates.T, strict=True)))


def levels(readings: Readings) -> Columns:
    """Every field is a level."""
    rows = readings.ends
    return columns(readings, rows, _levels(readings, rows))


def _levels(readings: Readings, rows: Rows) -> Values:
    return {
        name: values
        for names, block in readings.blocks
        for name, values in zip(names, block[rows].astype(float).T, strict=True)
    }


def at(block: np.ndarray, rows: Rows) -> np.ndarray:
    """Rows of the block, zeros for row -1."""
    values = block[rows]
    if isinstance(rows, np.ndarray):
        values[rows < 0] = 0
    return values


def difference(later: np.ndarray, earlier: np.ndarray) -> np.ndarray:
    """later - earlier of unsigned counters of 32 or 64 bits, modulo their size; NaN for more than half of it."""
    delta = (later - earlier).view(f"i{later.itemsize}")
    values = delta.astype(float)
    if delta.size and delta.min() < 0:
        values[delta < 0] = np.nan
    return values


def per_second(delta: np.ndarray, interval_cs: np.ndarray) -> np.ndarray:
    """(rows, ...) differences -> per second."""
    rates = delta / (interval_cs if delta.ndim == 1 else interval_cs[:, None])
    rates *= 100
    return rates


def percent(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """100 part / whole, 0 where the whole is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole == 0, 0.0, part / whole * 100)


def remainder(whole: np.ndarray, part: np.ndarray) -> np.ndarray:
    """What is left of the whole; NaN where the part is larger."""
    return np.where(whole >= part, whole - part, np.nan)


# ---- CPUs ----------------------------------------------------------------------------------------------------------

BUSY = slice(0, 8)
USER, NICE, SYS, IDLE, IOWAIT, STEAL, IRQ, SOFT, GUEST, GUEST_NICE = range(10)
SHARES = ("usr", "nice", "sys", "idle", "iowait", "steal", "irq", "soft", "guest", "gnice", "user", "system")


def cpu(readings: Readings) -> Columns:
    """Shares of each CPU's own time, and of all of them: the sum over the CPUs, not the kernel's own line of all.

    A CPU without any time is offline. While it is, it has no rows; when it comes back it goes on where it was."""
    ((_, block),) = readings.blocks
    if readings.most < 2:  # a kernel for one CPU: only "all"
        rows, before = readings.pairs()
        return columns(readings, rows, shares(*passed(block[rows], block[before]), whole=True))
    rows, before = _online(readings, block[:, BUSY].any(axis=1))
    delta, ticks = passed(block[rows], block[before])
    each = shares(delta, ticks, whole=False)
    starts = _starts(readings, rows)
    of_all = shares(_sum(delta, starts), _sum(ticks, starts), whole=True)
    return _with_all(readings, rows, starts, {name: np.concatenate([of_all[name], each[name]]) for name in each})


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
    """(rows, ...) -> (records, ...) in the type of the values: counters that wrap do so in the sum."""
    return np.add.reduceat(values, starts, dtype=values.dtype) if len(starts) else values


def _with_all(readings: Readings, rows: np.ndarray, starts: np.ndarray, values: Values) -> Columns:
    """Columns of all CPUs, a row per record, and behind them of the single ones."""

    def where() -> tuple[np.ndarray, np.ndarray]:
        record, item = readings.record[rows], readings.position[rows]
        return np.concatenate([record[starts], record]), np.concatenate([np.zeros(len(starts), np.int64), item])

    return Columns(values, where, readings.keys.names)


def passed(later: np.ndarray, earlier: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rows, 10) differences of the counters, (rows,) ticks that passed. What the kernel set back counts as sysstat has
    it: idle and iowait of a CPU that was offline begin at zero again; iowait may run backwards while idle does not."""
    delta = (later - earlier).view(np.int64).astype(float)
    wait, wait_before, idle, idle_before = later[:, IOWAIT], earlier[:, IOWAIT], later[:, IDLE], earlier[:, IDLE]
    back = (wait < wait_before) & (wait_before < TOP)
    if back.any():
        idle_goes_on = (idle > idle_before) | (idle_before >= TOP)
        delta[back, IOWAIT] = np.where(idle_goes_on, 0, wait)[back]
    back = (idle < idle_before) & (idle_before < TOP)
    if back.any():
        delta[back, IDLE] = idle[back]
    ticks = np.maximum(delta[:, BUSY], 0).sum(axis=1)
    for total, guest in (
        (USER, GUEST),
        (NICE, GUEST_NICE),
    ):  # the guest's counter may be ahead of the one it is part of
        ticks += np.where(delta[:, total] >= 0, np.maximum(delta[:, guest] - delta[:, total], 0), 0)
    return delta, ticks


def shares(delta: np.ndarray, ticks: np.ndarray, *, whole: bool) -> Values:
    """{name: (rows,)} percent of the ticks, 0 for what ran backwards. `user` and `system` are those of `sar -u`, the
    others of `sar -u ALL`. A single CPU without a tick idles."""
    parts = np.empty((len(delta), len(SHARES)))
    parts[:, :10] = delta
    parts[:, 0] -= np.maximum(delta[:, GUEST], 0)
    parts[:, 1] -= np.maximum(delta[:, GUEST_NICE], 0)
    parts[:, 10] = delta[:, USER]
    parts[:, 11] = delta[:, SYS] + delta[:, IRQ] + delta[:, SOFT]
    np.maximum(parts, 0, out=parts)
    none = ticks == 0
    parts /= np.where(none, 1, ticks)[:, None]
    parts *= 100
    if none.any():
        parts[none] = 0
        parts[none, IDLE] = 0 if whole else 100
    return dict(zip(SHARES, parts.T, strict=True))


def interrupts(readings: Readings) -> Columns:
    """Items are CPUs, sub-items the interrupts, the first their sum -> items `name` (all CPUs) and `name:CPU0`.

    A CPU whose sum is zero is offline."""
    count = readings.fields["value"]
    rows, before = readings.pairs_across(count[:, 0] > 0)
    delta = difference(count[rows], count[before])
    if np.isnan(delta).any():
        delta[(readings.position[rows] == 0)[:, None] & np.isnan(delta)] = 0
    values = per_second(delta, readings.interval_cs(rows))
    names, changing = _interrupt_names(readings, rows, before)
    ends = ["", *(f":CPU{i}" for i in range(readings.most - 1))]

    def where() -> tuple[np.ndarray, np.ndarray]:
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
    )


def _interrupt_names(
    readings: Readings, rows: np.ndarray, before: np.ndarray
) -> tuple[list[str], tuple[np.ndarray, np.ndarray] | None]:
    """Names of the interrupts, which stand in the items of all CPUs only. If they change in mid-file also, for each row
    and place, the number of the name and whether the row before had the same there."""
    size = readings.activity.texts[0]
    whole = readings.text(0).reshape(-1, readings.sub * size)
    whole = whole[:: readings.even] if readings.even else whole[readings.position == 0]
    if not len(whole):
        return [], (np.zeros((0, readings.sub), np.int64), np.zeros((0, readings.sub), bool))
    if (whole == whole[0]).all():
        names = [c_string(whole[0, i : i + size].tobytes()) for i in range(0, readings.sub * size, size)]
        return [f"{n}#{i}" if not n or names.index(n) < i else n for i, n in enumerate(names)], None
    per_record = np.full((len(readings.counts), readings.sub), -1)
    unique, codes = np.unique(np.ascontiguousarray(whole).reshape(-1, size).view(f"V{size}")[:, 0], return_inverse=True)
    place = np.arange(readings.sub)
    pair, coded = np.unique(codes.reshape(-1, readings.sub) * readings.sub + place, return_inverse=True)
    per_record[readings.counts > 0] = coded.reshape(-1, readings.sub)
    texts = [c_string(raw.tobytes()) for raw in unique]
    names = [f"{texts[key // readings.sub]}#{key % readings.sub}" for key in pair]
    later, earlier = per_record[readings.record[rows]], per_record[readings.record[before]]
    return names, (later, later == earlier)


def softnet(readings: Readings) -> Columns:
    """Of each CPU, and their sum; the file's own item of all is empty. A CPU without any count is offline."""
    ((names, block),) = readings.blocks
    rows, before = _online(readings, block.any(axis=1))
    starts, later = _starts(readings, rows), block[rows]
    delta = later - block[before]
    delta = np.concatenate([_sum(delta, starts), delta])
    interval = readings.interval_cs(rows)
    rates = per_second(difference(delta, np.zeros_like(delta)), np.concatenate([interval[starts], interval]))
    values = dict(zip(names, rates.T, strict=True))
    if "blg_len" in names:
        length = later[:, names.index("blg_len")].astype(float)
        values["blg_len"] = np.concatenate([_sum(length, starts), length])
    return _with_all(readings, rows, starts, values)


def frequency(readings: Readings) -> Columns:
    """MHz; the file has hundredths."""
    rows = readings.ends
    return columns(readings, rows, {"frequency": readings.fields["frequency"][rows].astype(float) / 100})


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


# ---- memory and queues ---------------------------------------------------------------------------------------------


def memory(readings: Readings) -> Columns:
    """KiB and percent. Used is what is neither free nor buffers, cache or slab, as sysstat has it up to 12.7.7, so that
    one word means one thing in files of all versions. Later ones take total - avail; both columns are there."""
    rows = readings.ends
    v = _levels(readings, rows)
    total, swap = v["total"], v["swptotal"]
    idle = np.minimum(v["memfree"] + v["buffers"] + v["cached"] + v["slab"], total)
    v["memused"] = remainder(total, idle)
    v["memused-percent"] = percent(v["memused"], total)
    v["commit-percent"] = percent(v["commit"], total + swap)
    v["swpused"] = remainder(swap, v["swpfree"])
    v["swpused-percent"] = percent(v["swpused"], swap)
    v["swpcad-percent"] = percent(v["swpcad"], v["swpused"])
    return columns(readings, rows, v)


def hugepages(readings: Readings) -> Columns:
    """KiB and percent."""
    rows = readings.ends
    v = _levels(readings, rows)
    v["hugused"] = remainder(v["hugtotal"], v["hugfree"])
    v["hugused-percent"] = percent(v["hugused"], v["hugtotal"])
    return columns(readings, rows, v)


def queue(readings: Readings) -> Columns:
    """Counts; load averages are hundredths in the file."""
    rows = readings.ends
    v = _levels(readings, rows)
    return columns(readings, rows, {k: x / 100 if k.startswith("ldavg") else x for k, x in v.items()})


def pressure(readings: Readings) -> Columns:
    """Percent of the time that some or all tasks waited. Averages of the kernel (10, 60, 300 s) are hundredths in the
    file; `some_avg` and `full_avg` are those of the interval itself, from the totals in microseconds."""
    rows, before = readings.pairs()
    interval = readings.interval_cs(rows)
    v = {}
    for name, field_ in readings.fields.items():
        if name.endswith("_total"):
            waited = difference(field_[rows], field_[before])
            v[name.replace("_total", "_avg")] = waited / (100 * interval)
        else:
            v[name] = field_[rows].astype(float) / 100
    return columns(readings, rows, v)


# ---- devices -------------------------------------------------------------------------------------------------------


def disk(readings: Readings) -> Columns:
    """Requests and sectors (512 bytes) per second, kB; mean size, wait (ms) and queue; share of the time in use."""

    rows, before = readings.pairs_or_new()
    later = {name: f[rows] for name, f in readings.fields.items()}
    earlier = {name: at(f, before) for name, f in readings.fields.items()}
    moved = [name for name in ("rd_sec", "wr_sec", "dc_sec") if name in later]
    other = later["ios"] < earlier["ios"]  # if all went back it is another disk, or it was put back
    for name in moved if other.any() else ():
        other &= (earlier[name] == 0) | (later[name] < earlier[name])
    if other.any():
        earlier = {name: np.where(other, 0, f).astype(f.dtype) for name, f in earlier.items()}
    interval = readings.interval_cs(rows)
    delta = {name: later[name] - earlier[name] for name in later}
    ticks = [name for name in ("rd_ticks", "wr_ticks", "dc_ticks") if name in later]

    def rate(name: str) -> np.ndarray:
        return per_second(difference(later[name], earlier[name]), interval)

    served = later["ios"] > earlier["ios"]
    requests = np.where(served, delta["ios"].astype(float), 1.0)
    sectors = np.where(served, sum(delta[name] for name in moved) / requests, 0.0)
    waited = sum(delta[name] for name in ticks)  # of 32 bits, as are the ticks
    v = {"tps": rate("ios")} | {name: rate(name) for name in moved}
    v |= {name.replace("_sec", "kB")[0] + "kB": v[name] / SECTORS_PER_KB for name in moved}
    v["avgrq-sz"], v["areq-sz"] = sectors, sectors / SECTORS_PER_KB
    v["aqu-sz"] = v["avgqu-sz"] = rate("rq_ticks") / 1000.0
    v["await"] = np.where(served, waited / requests, 0.0)
    busy = per_second(delta["tot_ticks"], interval) / 10.0
    v["util-percent"] = np.where(later["tot_ticks"] < earlier["tot_ticks"], 0.0, busy)
    return columns(readings, rows, v)


FULL_DUPLEX = 2
HALF = np.uint64(2**63 - 1)


def interface(readings: Readings) -> Columns:
    """Packets and kB (1024 bytes) per second; the share of its speed, of both directions if it has half duplex."""
    rows, before = readings.pairs_or_new()
    names, block = readings.blocks[0]
    later, earlier = block[rows], at(block, before)
    less = later < earlier
    if less.any():  # it was taken away and put back, unless bytes or packets wrapped while the others went on
        wrapped = np.zeros(len(less), bool)
        of = {name: i for i, name in enumerate(names)}
        for column, other in (("rxbytes", "rxpck"), ("txbytes", "txpck"), ("rxpck", "rxbytes"), ("txpck", "txbytes")):
            i, j = of[column], of[other]
            wrapped |= less[:, i] & (later[:, j] > earlier[:, j]) & (earlier[:, i] > HALF)
        earlier = np.where((less.any(axis=1) & ~wrapped)[:, None], 0, earlier)
    v = dict(zip(names, per_second(difference(later, earlier), readings.interval_cs(rows)).T, strict=True))
    rx, tx = v.pop("rxbytes"), v.pop("txbytes")
    v["rxkB"], v["txkB"] = rx / 1024, tx / 1024
    full = readings.text(1)[rows][:, 0] == FULL_DUPLEX
    speed = readings.fields["speed"][rows].astype(float) * 1e6
    carried = np.where(full, np.maximum(rx, tx), rx + tx)
    v["ifutil-percent"] = np.where(speed == 0, 0.0, carried * 800 / np.where(speed == 0, 1.0, speed))
    return columns(readings, rows, v)


def interface_errors(readings: Readings) -> Columns:
    """Per second."""
    rows, before = readings.pairs_or_new()
    ((names, block),) = readings.blocks
    later, earlier = block[rows], at(block, before)
    less = later < earlier
    less[:, names.index("rxerr")] = False  # sysstat does not look at these
    if less.any():  # it was taken away and put back
        earlier = np.where(less.any(axis=1)[:, None], 0, earlier)
    rates = per_second(difference(later, earlier), readings.interval_cs(rows))
    return columns(readings, rows, dict(zip(names, rates.T, strict=True)))


def filesystem(readings: Readings) -> Columns:
    """MiB, inodes and percent. The file has bytes."""
    rows = readings.ends
    v = _levels(readings, rows)
    blocks, files, free = v.pop("blocks"), v.pop("files"), v.pop("bfree")
    used = remainder(blocks, free)
    v["MBfsfree"], v["MBfsused"] = free / 1024 / 1024, used / 1024 / 1024
    v["%fsused"], v["%ufsused"] = percent(used, blocks), percent(remainder(blocks, v.pop("bavail")), blocks)
    v["Iused"] = remainder(files, v["Ifree"])
    v["%Iused"] = percent(v["Iused"], files)
    return columns(readings, rows, v)


# ---- sensors, USB, batteries ---------------------------------------------------------------------------------------


def fan(readings: Readings) -> Columns:
    """Rounds per minute, and how many more than the least."""
    rows = readings.ends
    v = _levels(readings, rows)
    v["drpm"] = v["rpm"] - v.pop("rpm_min")
    return columns(readings, rows, v)


def temperature(readings: Readings) -> Columns:
    """Degrees Celsius, and the place between the sensor's limits in percent."""
    return _within(readings, "degC", "percent-temp")


def voltage(readings: Readings) -> Columns:
    """Volts, and the place between the sensor's limits in percent."""
    return _within(readings, "inV", "percent-in")


def _within(readings: Readings, value: str, share: str) -> Columns:
    rows = readings.ends
    v = _levels(readings, rows)
    low, high = v.pop("low"), v.pop("high")
    v[share] = percent(v[value] - low, high - low)
    return columns(readings, rows, v)


def usb(readings: Readings) -> Columns:
    """Numbers of bus, maker and product; most power, mA."""
    rows = readings.ends
    v = _levels(readings, rows)
    v["maxpower"] = 2 * v["maxpower"]
    return columns(readings, rows, v)


def battery(readings: Readings) -> Columns:
    """Charge in percent, and its change per minute; the kernel's number of the status."""
    rows, before = readings.pairs()
    charge = readings.text(1)[:, 0].astype(float)
    change = (charge[rows] - charge[before]) * 6000 / readings.interval_cs(rows)
    return columns(readings, rows, {
        "percent-capacity": charge[rows], "variation": change, "status": readings.text(2)[rows][:, 0].astype(float),
    })  # fmt: skip
