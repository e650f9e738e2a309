"""sysstat's own files, or their JSON (`sadf -j -U FILE -- -A`) -> tidy samples.

sysstat is the source of network, disk, memory and queue. Its CPU is the source only on a machine without a quota: in a
container /proc/stat is lxcfs's view, whose idle counter runs backwards, and a pegged node then reads 2-5 %
(metric `busy_pct` there, never `utilization_pct`)."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pandas as pd

from ntier_analysis.contracts.files import JSON_BYTES, read_bytes, size
from ntier_analysis.errors import DataError
from ntier_analysis.parsers.counters import long_form
from ntier_analysis.sysstat import SaFile, is_sa, read

KIB = 1024
CARRIES_BYTES = 1e6
"""Bytes per s from which on an interface whose use always reads 0.00 % has no known speed: one of 160 Gbit/s would read
that."""
_PARTITION = re.compile(r"([^-]*\d(?=p\d)|[^-]*[^-\d])p?\d+")
"""Linux calls a partition by its disk's name and a number, with a p between them if that name ends with a digit: sda1
of sda, nvme0n1p2 of nvme0n1. dm-10 is no partition of dm-1, nor the volume vg-root2 of vg-root."""
_IGNORED_INTERFACES = ("lo", "veth", "docker", "incusbr", "ntierbr", "virbr", "tap")

# group -> {sysstat's field: (resource, metric, unit, factor)}
FLAT = {
    "memory": {
        "memused-percent": ("memory", "used_pct", "pct", 1),
        "avail": ("memory", "available_bytes", "bytes", KIB),
        "swpused": ("memory", "swap_bytes", "bytes", KIB),
    },
    "swap-pages": {
        "pswpin": ("memory", "swap_in_per_s", "per_s", 1),
        "pswpout": ("memory", "swap_out_per_s", "per_s", 1),
    },
    "paging": {"majflt": ("memory", "major_faults_per_s", "per_s", 1)},
    "process-and-context-switch": {"cswch": ("cpu", "context_switches_per_s", "per_s", 1)},
    "queue": {
        "runq-sz": ("queue", "runnable", "count", 1),
        "blocked": ("queue", "blocked", "count", 1),
        "ldavg-1": ("queue", "load_average_1m", "count", 1),
    },
}
NETWORK_FLAT = {
    "net-etcp": {
        "retrans": ("network", "tcp_retransmits_per_s", "per_s", 1),
        "retrseg": ("network", "tcp_retransmits_per_s", "per_s", 1),  # so called in the JSON of 12.7.8 and later
        "orsts": ("network", "tcp_resets_sent_per_s", "per_s", 1),
        "atmptf": ("network", "tcp_failed_connects_per_s", "per_s", 1),
    },
    "net-tcp": {
        "active": ("network", "tcp_opened_per_s", "per_s", 1),
        "passive": ("network", "tcp_accepted_per_s", "per_s", 1),
    },
    "net-sock": {"tcpsck": ("network", "tcp_sockets", "count", 1)},
}
DISK = {
    "tps": ("disk", "operations_per_s", "per_s", 1),
    "rkB": ("disk", "read_bytes_per_s", "bytes_per_s", KIB),
    "wkB": ("disk", "write_bytes_per_s", "bytes_per_s", KIB),
    "aqu-sz": ("disk", "queue", "count", 1),
    "await": ("disk", "wait_ms", "ms", 1),
}
INTERFACE = {
    "rxkB": ("network", "rx_bytes_per_s", "bytes_per_s", KIB),
    "txkB": ("network", "tx_bytes_per_s", "bytes_per_s", KIB),
    "rxpck": ("network", "rx_packets_per_s", "per_s", 1),
    "txpck": ("network", "tx_packets_per_s", "per_s", 1),
    "ifutil-percent": ("network", "utilization_pct", "pct", 1),
}


def sysstat(
    path: Path, *, own_machine: bool, network_bits_s: float | None = None, content: bytes | None = None
) -> pd.DataFrame:
    """-> tidy samples (1 s resolution of the times, t_s = end of the interval).

    `network_bits_s`: what the node may receive, and as much send; without it, what sysstat takes the interface for.

    `own_machine`: the node is a machine of its own without a quota, so sysstat's CPU and disk count as utilization;
    otherwise they are `busy_pct`, since they show a part of the host. `content`: what the file holds, if that has been
    read. Raises DataError naming file and record, or byte."""
    content = read_bytes(path) if content is None else content
    if is_sa(content):
        return _of_file(path, read(str(path), content), own_machine, network_bits_s)
    host = _host(path, content)
    wide: dict[tuple[str, str, str, str], dict[int, float]] = {}
    times, intervals = [], []
    for number, record in enumerate(host["statistics"]):
        try:
            t, interval = _time(record["timestamp"])
            times.append(t)
            intervals.append(interval)
            for key, value in _values(record, own_machine, network_bits_s):
                if not isinstance(value, int | float):
                    raise ValueError(f"{' '.join(key[:3])}: {str(value)[:40]!r} is no number")
                wide.setdefault(key, {})[number] = value
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            said = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
            said = f"a figure is no number ({said})" if isinstance(error, (TypeError, AttributeError)) else said
            raise DataError(f"{path}: record {number + 1}: {said}") from error
    t = np.array(times, dtype=float)
    late = _late(path, t)
    left_out = _unused_loops(wide) | _partitions({item for resource, item, *_ in wide if resource == "disk"})
    wide = {key: values for key, values in wide.items() if key[0] != "disk" or key[1] not in left_out}
    return _long(wide, _in_turn(t, late), np.array(intervals, dtype=float))


def _of_known_speed(series: list[Series]) -> list[Series]:
    """Without the use of interfaces whose speed the kernel does not tell, as of many virtual ones: sysstat shows 0."""
    most: dict[tuple[str, str], float] = {}
    for (resource, item, metric, _), _, values, _ in series:
        if resource == "network" and len(values):
            most[item, metric] = float(values.max())

    def known(item: str, metric: str) -> bool:
        carried = max(most.get((item, way), 0.0) for way in ("rx_bytes_per_s", "tx_bytes_per_s"))
        return metric != "utilization_pct" or most.get((item, metric), 0.0) > 0 or carried < CARRIES_BYTES

    return [s for s in series if s[0][0] != "network" or known(*s[0][1:3])]


def cpus(path: Path, content: bytes | None = None) -> int:
    """Number of CPUs that were online at some time; of a file without single CPUs, those that its header names, online
    or not. Raises DataError if it names none."""
    content = read_bytes(path) if content is None else content
    if is_sa(content):
        file = read(str(path), content)
        item = file.table("cpu-load").item if "cpu-load" in file.activities else np.zeros(0, int)
        return len(np.unique(item[item > 0])) or file.cpus
    host = _host(path, content)
    if single := {str(cpu["cpu"]) for record in host["statistics"] for cpu in _loads(record)} - {"all"}:
        return len(single)
    count = host.get("number-of-cpus")
    if not isinstance(count, int) or count < 1:
        raise DataError(f"{path}: number-of-cpus is {count!r}, expected a whole number from 1")
    return count


def host(path: Path, content: bytes) -> str:
    """The machine on which the file was written; empty if it does not say."""
    return read(str(path), content).host if is_sa(content) else str(_host(path, content).get("nodename", ""))


def _loads(record: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Of each CPU; 11.6 and earlier have another name for them with -A."""
    return record.get("cpu-load") or record.get("cpu-load-all") or ()


def _host(path: Path, content: bytes) -> dict[str, Any]:
    if len(content) > JSON_BYTES:
        most = f"allowed are at most {size(JSON_BYTES)}; import a part of its time (sadf -s START -e END)"
        raise DataError(f"{path}: {size(len(content))} of JSON, {most}")
    try:
        document = orjson.loads(content.removeprefix(BOM_UTF8))
        host = document["sysstat"]["hosts"][0]
        if not isinstance(host["statistics"], list):
            raise TypeError("statistics is not a list")
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError) as error:
        raise DataError(f"{path}: not sysstat's JSON ({type(error).__name__} {error})") from error
    return host


def _time(stamp: dict[str, Any]) -> tuple[float, float]:
    # 12.6 and earlier say "utc": 1, later ones "tz": "UTC"
    if stamp.get("utc") != 1 and stamp.get("tz") != "UTC":
        raise ValueError("the times are local, expected UTC: TZ=UTC sadf -j FILE -- -A writes them so")
    moment = datetime.fromisoformat(f"{stamp['date']}T{stamp['time']}").replace(tzinfo=UTC)
    # Told in whole seconds; 0 is less than half of one, after a record that came late.
    return moment.timestamp(), float(stamp["interval"]) or 0.25


def _values(record: dict[str, Any], own_machine: bool, network_bits_s: float | None):
    busy = "utilization_pct" if own_machine else "busy_pct"
    cores = []
    for cpu in _loads(record):
        if cpu["cpu"] == "all":
            idle = cpu["idle"] + cpu["iowait"] + cpu["steal"]
            yield ("cpu", "", busy, "pct"), 100 - idle
            yield ("cpu", "", "iowait_pct", "pct"), cpu["iowait"]
            yield ("cpu", "", "steal_pct", "pct"), cpu["steal"]
        elif own_machine:  # in a container, lxcfs' view of single cores is as wrong as that of all
            cores.append(100 - cpu["idle"] - cpu["iowait"] - cpu["steal"])
    if cores:
        yield ("cpu", "", "core_max_pct", "pct"), max(cores)
    for clock in record.get("power-management", {}).get("cpu-frequency", ()):
        if clock["number"] == "all":
            yield ("cpu", "", "frequency_mhz", "mhz"), clock["frequency"]
    for group, fields in FLAT.items():
        yield from _fields(record.get(group), "", fields)
    network = record.get("network", {})
    for group, fields in NETWORK_FLAT.items():
        yield from _fields(network.get(group), "", fields)
    for disk in record.get("disk", ()):
        yield from _fields(disk, disk["disk-device"], DISK)
        yield ("disk", disk["disk-device"], busy, "pct"), disk["util-percent"]
    for interface in network.get("net-dev", ()):
        if not interface["iface"].startswith(_IGNORED_INTERFACES):
            if network_bits_s:
                busier = 8 * KIB * max(interface["rxkB"], interface["txkB"])
                interface = interface | {"ifutil-percent": 100 * busier / network_bits_s}
            yield from _fields(interface, interface["iface"], INTERFACE)


Series = tuple[tuple[str, str, str, str], np.ndarray, np.ndarray, np.ndarray]


def _of_file(path: Path, file: SaFile, own_machine: bool, network_bits_s: float | None) -> pd.DataFrame:
    """The same samples from sysstat's own format."""
    for name in sorted({"cpu-load", "disk", "net-dev", *FLAT, *NETWORK_FLAT} & file.not_read.keys()):
        raise DataError(
            f"{path}: {name} has format {file.not_read[name]:#x} of sysstat {file.version}, which is not known"
        )
    late, all_ = _late(path, file.t_s), _series(file, own_machine, network_bits_s)
    return long_form(_of_known_speed([(key, _in_turn(t, late), *more) for key, t, *more in all_ if len(t)]))


def _series(file: SaFile, own_machine: bool, network_bits_s: float | None) -> Iterator[Series]:
    busy = "utilization_pct" if own_machine else "busy_pct"
    for name, fields in (FLAT | NETWORK_FLAT).items():
        yield from _columns(file, name, "", fields)
    if "cpu-load" in file.activities:
        yield from _cpu(file, busy, own_machine)
    yield from _columns(file, "cpu-frequency", "all", {"frequency": ("cpu", "frequency_mhz", "mhz", 1)})
    disks = file.items("disk")
    partitions = _partitions(disks)
    for item in (name for name in disks if name not in partitions):
        operations = file.table("disk").of(item)["tps"]
        if operations.any() or not item.startswith("loop"):  # the kernel always shows eight of these
            yield from _columns(file, "disk", item, DISK | {"util-percent": ("disk", busy, "pct", 1)})
    for item in file.items("net-dev"):
        if not item.startswith(_IGNORED_INTERFACES):
            shown = _columns(file, "net-dev", item, INTERFACE)
            yield from (_of_limit(file, item, s, network_bits_s) for s in shown)


def _columns(file: SaFile, name: str, item: str, fields: dict[str, tuple[str, str, str, float]]) -> Iterator[Series]:
    if name not in file.activities:
        return
    columns = file.table(name).of(item)
    for column, (resource, metric, unit, factor) in fields.items():
        if column in columns:
            key = (resource, item if item != "all" else "", metric, unit)
            yield key, columns["t_s"].astype(float), columns[column] * factor, columns["interval_s"]


def _of_limit(file: SaFile, item: str, series: Series, network_bits_s: float | None) -> Series:
    """The interface's utilization by what the node may carry, if that is known."""
    key, t, values, interval = series
    if key[2] == "utilization_pct" and network_bits_s:
        columns = file.table("net-dev").of(item)
        values = 100 * 8 * KIB * np.maximum(columns["rxkB"], columns["txkB"]) / network_bits_s
    return key, t, values, interval


def _cpu(file: SaFile, busy: str, own_machine: bool) -> Iterator[Series]:
    table = file.table("cpu-load")
    used = 100 - table.values["idle"] - table.values["iowait"] - table.values["steal"]
    of_all = table.item == 0
    t, interval = table.t_s[of_all].astype(float), table.interval_s[of_all]
    for metric, values in ((busy, used), ("iowait_pct", table.values["iowait"]), ("steal_pct", table.values["steal"])):
        yield ("cpu", "", metric, "pct"), t, values[of_all], interval
    if own_machine and not of_all.all():  # in a container, lxcfs' view of single cores is as wrong as that of all
        record = table.record[~of_all]
        starts = np.flatnonzero(np.diff(record, prepend=-1))
        yield ("cpu", "", "core_max_pct", "pct"), t, np.maximum.reduceat(used[~of_all], starts), interval


def _unused_loops(wide: dict[tuple[str, str, str, str], dict[int, float]]) -> set[str]:
    """Loop devices without a single operation: the kernel always shows eight."""
    return {
        item
        for (_, item, metric, _), values in wide.items()
        if item.startswith("loop") and metric == "operations_per_s" and not any(values.values())
    }


def _partitions(names: Iterable[str]) -> set[str]:
    """Those whose whole disk is there too: it counts the same requests."""
    there = set(names)
    return {name for name in there if (found := _PARTITION.fullmatch(name)) and found[1] in there}


def _fields(group: dict[str, float] | None, item: str, fields: dict[str, tuple[str, str, str, float]]):
    for name, (resource, metric, unit, factor) in fields.items():
        if group is not None and name in group:
            yield (resource, item, metric, unit), group[name] * factor


@dataclass(frozen=True)
class Late:
    """Seconds, as sysstat tells them, whose records belong to the second before: of `doubled` the first of two records,
    of `moved` the only one."""

    doubled: np.ndarray
    moved: np.ndarray


def _late(path: Path, t: np.ndarray) -> Late:
    """Of 50, 52, 52, 53 the first 52 came late, as on a machine that was busy for a moment: it is the record of 51. Of
    50, 52, 53, 53 two came late. Raises DataError if the records do not then follow each other second by second from
    one that was on time."""
    if (np.diff(t) > 0).all():
        return Late(t[:0], t[:0])
    own = t.copy()
    for i in range(len(t) - 2, 0, -1):
        own[i] -= own[i] == own[i + 1]
    late, step = own < t, np.diff(own)
    if (step <= 0).any() or (step[late[1:]] > 1).any():
        bad = int(np.flatnonzero(np.diff(t) <= 0)[0])
        what = "is repeated" if t[bad + 1] == t[bad] else "goes back"
        raise DataError(f"{path}: record {bad + 2}: time {t[bad + 1]:.0f} {what}")
    double = np.append(np.diff(t) == 0, False)
    return Late(t[late & double], t[late & ~double])


def _in_turn(t: np.ndarray, late: Late) -> np.ndarray:
    """The times of records or of one item, each late one at its own second."""
    if not len(late.doubled):
        return t
    first = np.append(np.diff(t) == 0, False) & np.isin(t, late.doubled)
    return t - (first | np.isin(t, late.moved))


def _long(wide: dict[tuple[str, str, str, str], dict[int, float]], t: np.ndarray, dt: np.ndarray) -> pd.DataFrame:
    """An item that is absent from a record (a disk that came later) has no row there; nothing is shifted."""
    series = []
    for key, values in wide.items():
        rows = np.fromiter(values, dtype=int)
        series.append((key, t[rows], np.fromiter(values.values(), dtype=float), dt[rows]))
    return long_form(_of_known_speed(series))
