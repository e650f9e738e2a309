"""The compiled loops find what NumPy finds, to the last bit, and leave to it what they are not for."""

import struct
import sys

import pytest
from ntier_analysis.errors import DataError
from ntier_analysis.sysstat import SaFile, loops
from ntier_analysis.sysstat.loops import Loops
from numba.core import caching
from sa_fuzz import plain, unlike
from test_sa_files import FILES, IMPORTED, content, opened, unpacked

COMPILED = loops.compiled()
PLAIN = {name: plain(bytes(content(name))) for name in FILES} | {"db1": unpacked(IMPORTED / "db1-12.7.5.sa.zst")}
"""Files on whose machine nothing comes or goes, which the loops are for."""
COUNTERS = ("cpu-load", "paging", "io", "interrupts", "disk", "net-dev", "net-edev", "net-nfs", "softnet", "psi-io")


def counting(calls: list[str]) -> Loops:
    def counted(name: str):
        return lambda *args: calls.append(name) or getattr(COMPILED, name)(*args)

    return Loops(*map(counted, Loops._fields))


@pytest.mark.parametrize("name", PLAIN)
def test_compiled_loops_find_the_same_to_the_last_bit(name):
    calls = []
    quick = SaFile("f.sa", PLAIN[name], counting(calls))
    quick.tables()
    assert unlike(SaFile("f.sa", PLAIN[name]), quick) == []
    assert set(calls) == (set() if name == "12.6.1-s390x" else set(Loops._fields))  # not of the other byte order


@pytest.mark.parametrize("name", ["12.7.5", "12.6.1-i386"])
@pytest.mark.parametrize("activity", COUNTERS)
def test_compiled_loops_leave_counters_that_run_backwards_to_the_others(name, activity):
    """Each number of each item in turn: smaller than before, larger than half of its size, zero from the start."""
    file = SaFile("f.sa", PLAIN[name])
    if activity not in file.activities:
        pytest.skip(f"{name} has none")
    number, known = file._known[activity]
    listed, at = file.header.activities[number], [file._records.place_of(number, r) for r in range(file._records.n)]
    size = 4 if activity in ("interrupts", "net-nfs", "softnet") else 8
    half, top = 2 ** (8 * size - 1), 2 ** (8 * size)
    fields = sum(map(len, known.fields)) if size == 4 else listed.kinds.wide + listed.kinds.longs
    for item in range(min(3, file._records.counts(number)[0])):
        for field in range(fields):
            for values in ((9, 5, 5), (half - 1, top - 1, 3), (0, 0, half + 5), (top - 9, 2, 3)):
                data = bytearray(PLAIN[name])
                for begin, value in zip(at, (*values, *values[-1:] * len(at)), strict=False):
                    place = begin + item * listed.size + size * field
                    data[place : place + size] = value.to_bytes(size, "little")
                assert unlike_compiled(data) == [], (item, field, values)


def unlike_compiled(data: bytes) -> list[str]:
    return unlike(SaFile("f.sa", bytes(data)), SaFile("f.sa", bytes(data), COMPILED))


def numbers_of(data: bytearray, activity: str, item: int) -> list[tuple[int, int, int]]:
    """(record, byte, size) of each number of an item, but for those that are its name."""
    file = opened(data)
    number, known = file._known[activity]
    names = sum(known.fields, ())
    listed, found = file.header.activities[number], []
    for record in range(file._records.n):
        at = file._records.place_of(number, record) + item * listed.size * listed.sub_items
        sizes = [8] * (listed.kinds.wide + listed.kinds.longs) + [4] * listed.kinds.narrow
        numbers = zip(names, range(len(sizes)), sizes, strict=True)
        found += [(record, at + sum(sizes[:i]), size) for name, i, size in numbers if name not in ("major", "minor")]
    return found


@pytest.mark.parametrize("activity", ["cpu-load", "disk", "softnet"])
def test_compiled_loops_leave_sums_that_wrap_or_are_not_exact_to_the_others(activity):
    """All numbers of 32 bits, or all of a CPU, grow by nearly as much as they can, once."""
    data = bytearray(PLAIN["12.7.5"])
    number, _ = opened(data)._known[activity]
    for item in range(opened(data)._records.counts(number)[0]):
        for record, at, size in numbers_of(data, activity, item):
            grows = 2**31 - 1 - item if size == 4 else 2**60 + 2 * item + 1 if activity == "cpu-load" else 1000
            data[at : at + size] = (1 + grows * (record > 0)).to_bytes(size, "little")
    assert unlike_compiled(data) == []


@pytest.mark.parametrize("activity", ["cpu-load", "interrupts", "softnet"])
@pytest.mark.parametrize("records", [1, 2, 5])
def test_compiled_loops_leave_cpus_that_are_offline_at_first_to_the_others(activity, records):
    data = bytearray(PLAIN["12.7.5"])
    for record, at, size in numbers_of(data, activity, 1):
        if record < records:
            data[at : at + size] = bytes(size)
    assert unlike_compiled(data) == []
    table = SaFile("f.sa", bytes(data), COMPILED).table(activity)
    item = 1 if activity != "interrupts" else table.items.index("sum:CPU0")
    assert (table.item == item).sum() == max(len(opened(data).t_s) - records, 0)


def test_compiled_loops_leave_items_that_come_and_go_to_the_others():
    """One run, in which only the interfaces change; the other activities have as many items all along."""
    data, file = content(), opened(content())
    stretches, _ = file._records.restarts[0]
    first = file._records.stretches[0 if stretches == 0 else stretches - 1]
    one_run = bytes(data[: first.header + first.n * first.step])
    assert len(opened(one_run)._records.stretches) > 1
    assert unlike_compiled(one_run) == []


def with_name(name: bytes, since: int) -> bytearray:
    """The second interface has another name from one record on."""
    data = bytearray(PLAIN["db1"])
    file = opened(data)
    number, _ = file._known["net-dev"]
    listed = file.header.activities[number]
    for record in range(since, file._records.n):
        at = file._records.place_of(number, record) + listed.size + listed.kinds.bytes
        data[at : at + 16] = name.ljust(16, b"\0")
    return data


def test_compiled_loops_leave_an_item_in_the_place_of_another_to_the_others():
    data = with_name(b"new", 20)
    assert unlike_compiled(data) == []
    assert len(opened(data).table("net-dev").of("new")["t_s"]) == 44 - 20


def test_compiled_loops_refuse_two_items_of_one_name():
    data = with_name(opened(PLAIN["db1"]).items("net-dev")[0].encode(), 0)
    for compiled in (None, COMPILED):
        with pytest.raises(DataError, match=r"net-dev: '\w+' occurs twice in one record"):
            SaFile("f.sa", bytes(data), compiled).table("net-dev")


def test_compiled_loops_serve_from_some_number_of_files_on(monkeypatch):
    """numba takes half a second to import."""
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    assert loops.loops(loops.WORTH - 1) is None


@pytest.mark.parametrize("lacks", ["numba", "a folder for its compiled code"])
def test_without_numba_there_are_no_compiled_loops(monkeypatch, lacks):
    """numba is an extra: the package installs alone, and the user of a read-only installation may have no home."""
    if lacks == "numba":
        monkeypatch.setitem(sys.modules, "numba", None)  # import numba raises ImportError
    else:
        monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    loops.compiled.cache_clear()
    try:
        assert loops.loops(loops.WORTH) is None
    finally:
        loops.compiled.cache_clear()


@pytest.mark.parametrize("activity", ["serial", "disk", "net-dev", "filesystems"])
def test_activity_without_any_item_is_an_empty_table(activity):
    data, file = bytearray(PLAIN["12.7.5"]), opened(PLAIN["12.7.5"])
    number, _ = file._known[activity]
    size = file.header.activities[number].size * file._records.counts(number)[0]
    for record in reversed(range(file._records.n)):
        at = file._records.place_of(number, record)
        struct.pack_into("<i", data, at - 4, 0)
        del data[at : at + size]
    table = opened(data).table(activity)
    assert (table.items, len(table.record), len(table.t_s)) == ([], 0, 0)
    assert all(len(values) == 0 for values in table.values.values())
    assert unlike_compiled(data) == []


@pytest.mark.parametrize("idle", [[1], [2], [1, 2]])
def test_compiled_loops_know_cpus_on_which_no_tick_passes(idle):
    """Online all the time, but their counters stand still: a single one idles, all of them have no share."""
    data = bytearray(PLAIN["12.7.5"])
    for item in idle:
        for _, at, size in numbers_of(data, "cpu-load", item):
            data[at : at + size] = (7).to_bytes(size, "little")
    assert unlike_compiled(data) == []
    table = SaFile("f.sa", bytes(data), COMPILED).table("cpu-load")
    assert set(table.of(str(idle[0] - 1))["idle"]) == {100.0}
