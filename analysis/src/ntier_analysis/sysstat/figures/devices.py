"""Disks, interfaces, file systems, sensors, USB, batteries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ntier_analysis.sysstat.figures.usual import (
    Columns,
    Values,
    at,
    columns,
    difference,
    levels_of,
    per_second,
    percent,
    quick,
    remainder,
)

if TYPE_CHECKING:
    from ntier_analysis.sysstat.items import Readings


SECTORS_PER_KB = 2
SECTORS, TICKS = ("rd_sec", "wr_sec", "dc_sec"), ("rd_ticks", "wr_ticks", "dc_ticks")
FEW_OF_32_BITS = (2**31 - 1) // len(TICKS)
"""A sum of as many differences does not wrap."""


def disk(readings: Readings) -> Columns:
    """Requests and sectors (512 bytes) per second, kB; mean size, wait (ms) and queue; share of the time in use."""
    rows, before = readings.pairs_or_new()
    grown = quick(readings, lambda kind: readings.steps(kind, most=FEW_OF_32_BITS))
    if grown:
        return columns(readings, rows, _of_disk(grown, grown, readings.interval_cs(rows)))
    later = {name: f[rows] for name, f in readings.fields.items()}
    earlier = {name: at(f, before) for name, f in readings.fields.items()}
    other = later["ios"] < earlier["ios"]  # if all went back it is another disk, or it was put back
    for name in (n for n in SECTORS if n in later) if other.any() else ():
        other &= (earlier[name] == 0) | (later[name] < earlier[name])
    if other.any():
        earlier = {name: np.where(other, 0, f).astype(f.dtype) for name, f in earlier.items()}
    signed = {name: difference(later[name], earlier[name]) for name in later}
    delta = {name: later[name] - earlier[name] for name in later}
    delta["ios"] = np.where(later["ios"] > earlier["ios"], delta["ios"], 0)
    delta["tot_ticks"] = np.where(later["tot_ticks"] < earlier["tot_ticks"], 0, delta["tot_ticks"])
    return columns(readings, rows, _of_disk(signed, delta, readings.interval_cs(rows)))


def _of_disk(signed: Values, delta: Values, interval: np.ndarray) -> Values:
    """`signed`: what the counters grew by, NaN for what ran backwards. `delta`: the same in the file's own size, which
    wraps; 0 for requests and time in use that ran backwards."""

    def rate(name: str) -> np.ndarray:
        return per_second(signed[name], interval)

    moved = [name for name in SECTORS if name in delta]
    served = delta["ios"] > 0
    requests = np.where(served, delta["ios"].astype(float), 1.0)
    sectors = np.where(served, sum(delta[name] for name in moved) / requests, 0.0)
    waited = sum(delta[name] for name in TICKS if name in delta)  # of 32 bits, as are the ticks
    v = {"tps": rate("ios")} | {name: rate(name) for name in moved}
    v |= {name.replace("_sec", "kB")[0] + "kB": v[name] / SECTORS_PER_KB for name in moved}
    v["avgrq-sz"], v["areq-sz"] = sectors, sectors / SECTORS_PER_KB
    v["aqu-sz"] = v["avgqu-sz"] = rate("rq_ticks") / 1000.0
    v["await"] = np.where(served, waited / requests, 0.0)
    v["util-percent"] = per_second(delta["tot_ticks"], interval) / 10.0
    return v


FULL_DUPLEX = 2
DUPLEX = 1
"""Place of the duplex among the texts."""
HALF = np.uint64(2**63 - 1)
TOGETHER = ("rxbytes", "rxpck"), ("txbytes", "txpck"), ("rxpck", "rxbytes"), ("txpck", "txbytes")
"""Counters that advance with each other."""


def interface(readings: Readings) -> Columns:
    """Packets and kB (1024 bytes) per second; the share of its speed, of both directions if it has half duplex."""
    rows, before = readings.pairs_or_new()
    rates = readings.rates()
    if rates is None:
        names, block = readings.blocks[0]
        later, earlier = block[rows], at(block, before)
        less = later < earlier
        if less.any():  # it was taken away and put back, unless bytes or packets wrapped while the others went on
            wrapped = np.zeros(len(less), bool)
            for column, other in TOGETHER:
                i, j = names.index(column), names.index(other)
                wrapped |= less[:, i] & (later[:, j] > earlier[:, j]) & (earlier[:, i] > HALF)
            earlier = np.where((less.any(axis=1) & ~wrapped)[:, None], 0, earlier)
        rates = per_second(difference(later, earlier).T, readings.interval_cs(rows))
    v = dict(zip(readings.names(0), rates, strict=True))
    rx, tx = v.pop("rxbytes"), v.pop("txbytes")
    v["rxkB"], v["txkB"] = rx / 1024, tx / 1024
    full = _duplex(readings)[rows] == FULL_DUPLEX
    speed = levels_of(readings, rows, kind=1)["speed"] * 1e6
    carried = np.where(full, np.maximum(rx, tx), rx + tx)
    v["ifutil-percent"] = np.divide(carried * 800, speed, out=np.zeros_like(speed), where=speed != 0)
    return columns(readings, rows, v)


def _duplex(readings: Readings) -> np.ndarray:
    """(rows,) the kernel's number."""
    if readings.views:
        return readings.view(readings.at_text(DUPLEX), "u1", 1, 1).ravel()
    return readings.text(DUPLEX)[:, 0]


def interface_errors(readings: Readings) -> Columns:
    """Per second."""
    rows, before = readings.pairs_or_new()
    rates = readings.rates()
    if rates is None:
        ((names, block),) = readings.blocks
        later, earlier = block[rows], at(block, before)
        less = later < earlier
        less[:, names.index("rxerr")] = False  # sysstat does not look at these
        if less.any():  # it was taken away and put back
            earlier = np.where(less.any(axis=1)[:, None], 0, earlier)
        rates = per_second(difference(later, earlier).T, readings.interval_cs(rows))
    return columns(readings, rows, dict(zip(readings.names(0), rates, strict=True)))


def filesystem(readings: Readings) -> Columns:
    """MiB, inodes and percent. The file has bytes."""
    rows = readings.ends
    v = levels_of(readings, rows)
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
    v = levels_of(readings, rows)
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
    v = levels_of(readings, rows)
    low, high = v.pop("low"), v.pop("high")
    v[share] = percent(v[value] - low, high - low)
    return columns(readings, rows, v)


def usb(readings: Readings) -> Columns:
    """Numbers of bus, maker and product; most power, mA."""
    rows = readings.ends
    v = levels_of(readings, rows)
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
