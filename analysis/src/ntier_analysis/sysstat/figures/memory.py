"""Memory, queues and what tasks wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ntier_analysis.sysstat.figures.usual import Columns, columns, difference, levels_of, percent, remainder

if TYPE_CHECKING:
    from ntier_analysis.sysstat.items import Readings


def memory(readings: Readings) -> Columns:
    """KiB and percent. Used is what is neither free nor buffers, cache or slab, as sysstat has it up to 12.7.7, so that
    one word means one thing in files of all versions. Later ones take total - avail; both columns are there."""
    rows = readings.ends
    v = levels_of(readings, rows)
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
    v = levels_of(readings, rows)
    v["hugused"] = remainder(v["hugtotal"], v["hugfree"])
    v["hugused-percent"] = percent(v["hugused"], v["hugtotal"])
    return columns(readings, rows, v)


def queue(readings: Readings) -> Columns:
    """Counts; load averages are hundredths in the file."""
    rows = readings.ends
    v = levels_of(readings, rows)
    return columns(readings, rows, {k: x / 100 if k.startswith("ldavg") else x for k, x in v.items()})


def pressure(readings: Readings) -> Columns:
    """Percent of the time that some or all tasks waited. Averages of the kernel (10, 60, 300 s) are hundredths in the
    file; `some_avg` and `full_avg` are those of the interval itself, from the totals in microseconds."""
    rows, before = readings.pairs()
    interval = readings.interval_cs(rows)
    waited = readings.steps()
    if waited is None:
        _, block = readings.blocks[0]
        waited = difference(block[rows], block[before]).T
    v = dict(zip((n.replace("_total", "_avg") for n in readings.names(0)), waited / (100 * interval), strict=True))
    averages = {name: x / 100 for name, x in levels_of(readings, rows, kind=1).items()}
    return columns(readings, rows, v | averages)
