"""sysstat's binary files, read directly: the figures are sadf's; what is not understood is an error with a place."""

import json
import struct
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import zstandard
from against_sadf import differences, ours, printed
from ntier_analysis.errors import DataError
from ntier_analysis.parsers.sysstat import sysstat
from ntier_analysis.sysstat import NAMES, SaFile, keys, read, records
from ntier_analysis.sysstat.figures import Columns
from ntier_analysis.sysstat.reader import Table
from ntier_analysis.trial import RawTrial
from sa_fuzz import plain, unlike
from sa_fuzz import run as fuzz
from synthetic import Spec, Truth, write_trial

DATA = Path(__file__).parent / "data"
IMPORTED = Path(__file__).parents[1] / "importing" / "data"
FILES = ["12.5.2", "12.6.1", "12.7.5", "12.6.1-i386", "12.6.1-s390x"]


def unpacked(path: Path) -> bytes:
    return zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read()


def content(name: str = "12.6.1") -> bytearray:
    return bytearray(unpacked(DATA / f"{name}.sa.zst"))


def opened(data: bytes, name: str = "f.sa") -> SaFile:
    return read(name, bytes(data))


# ---- the figures are sadf's ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_every_value_is_the_one_that_sadf_of_the_same_version_prints(name):
    """To the last printed digit. Two runs, CPUs and interfaces that come and go, both byte orders, 32 and 64 bits."""
    document = json.loads(unpacked(DATA / f"{name}.json.zst"), parse_float=str, parse_int=str)
    theirs = printed(document["sysstat"]["hosts"][0]["statistics"])
    assert len(theirs) > 4000
    assert differences(theirs, ours(opened(content(name)))) == []


def test_samples_of_the_binary_file_are_those_of_its_json():
    """But for a disk whose name only the machine knows that wrote the file, which holds its number."""
    binary, text = (sysstat(IMPORTED / f"db1-12.7.5.{kind}.zst", own_machine=True) for kind in ("sa", "json"))
    both = binary.merge(text, on=["t_s", "resource", "item", "metric", "unit"], suffixes=("", "_json"))
    assert len(both) == (text["item"] != "vda").sum() == (binary["item"] != "dev254-0").sum()
    half_a_digit = np.where(both["unit"].str.startswith("bytes"), 1024, 1) * 0.0051
    assert (abs(both["value"] - both["value_json"]) <= half_a_digit * 2).all()
    assert len(binary) == len(text)


def test_ingest_reads_the_binary_file_of_a_node_that_left_no_json(tmp_path):
    folder = write_trial(tmp_path, Spec(300, Truth({"db": 0.01})))
    node = folder / "nodes" / "db1"
    (node / "sysstat.json.zst").unlink()
    (node / "sysstat.sa.zst").write_bytes((IMPORTED / "db1-12.7.5.sa.zst").read_bytes())
    trial = RawTrial(folder)
    assert ("db1", "sysstat") in trial.collectors()
    frame, backwards = trial.samples_of("db1", "sysstat")
    assert (len(frame.query("metric == 'busy_pct' and resource == 'cpu'")), backwards) == (43, 0)


def test_ingest_reads_the_binary_file_where_its_json_is_larger_than_is_read(tmp_path, monkeypatch):
    folder = write_trial(tmp_path, Spec(300, Truth({"db": 0.01})))
    (folder / "nodes/db1/sysstat.sa.zst").write_bytes((IMPORTED / "db1-12.7.5.sa.zst").read_bytes())
    told = RawTrial(folder).samples_of("db1", "sysstat")[0]
    monkeypatch.setattr("ntier_analysis.trial.JSON_BYTES", 1000)
    made = RawTrial(folder).samples_of("db1", "sysstat")[0]
    assert len(made.query("metric == 'busy_pct' and resource == 'cpu'")) == 43
    assert len(told.query("metric == 'busy_pct' and resource == 'cpu'")) != 43
    assert len(RawTrial(folder).samples_of("web1", "sysstat")[0]) > 0, "it left no binary file, and is small enough"


def test_header_says_what_wrote_the_file_and_where():
    file = opened(content("12.7.5"))
    assert (file.version, file.machine, file.cpus, file.not_read) == ("12.7.5", "x86_64", 4, {})
    assert set(file.activities) <= set(NAMES)
    assert opened(content("12.6.1-s390x")).header.order == ">"
    assert opened(content("12.6.1-i386")).header.long_bytes == 4


def test_all_cpus_are_their_sum_and_one_that_is_offline_has_no_rows():
    table = opened(content()).table("cpu-load")
    rows = {item: table.of(item) for item in table.items}
    assert [len(rows[item]["t_s"]) for item in ("all", "0", "1", "2", "3")] == [10, 10, 10, 6, 10]
    each = [rows[item]["idle"][rows[item]["t_s"] == rows["all"]["t_s"][0]] for item in "0123"]
    assert rows["all"]["idle"][0] == pytest.approx(np.mean(np.concatenate([e for e in each if len(e)])), abs=0.5)


def test_a_table_is_a_data_frame_too():
    table = opened(content()).table("net-dev")
    frame = table.frame()
    assert list(frame)[:3] == ["t_s", "interval_s", "item"]
    assert (frame["item"] == "lo").sum() == 10
    assert frame.loc[frame["item"] == "veth1", "rxpck"].tolist() == table.of("veth1")["rxpck"].tolist()


def test_two_items_of_one_name_are_one_category():
    columns = Columns({"free": np.array([1.0, 2.0])}, lambda: (np.array([0, 1]), np.array([0, 1])), ["/mnt", "/mnt"])
    times = SimpleNamespace(t_s=np.array([10, 11]), interval_cs=np.array([100, 100]))
    assert Table("filesystems", columns, times).frame()["item"].tolist() == ["/mnt", "/mnt"]


def test_interfaces_come_and_go_without_shifting_the_others():
    table = opened(content()).table("net-dev")
    assert set(table.items) == {"lo", "eth7", "veth1", "veth2"}
    assert [len(table.of(item)["t_s"]) for item in ("lo", "eth7", "veth1", "veth2")] == [10, 10, 4, 4]


@pytest.mark.parametrize("name", FILES)
def test_file_whose_layout_changes_all_the_time_is_read_the_same(name, monkeypatch):
    """Beyond some stretches of alike records they are not copied one by one."""
    expected = ours(opened(content(name)))
    for module in (records, keys):
        monkeypatch.setattr(module, "MANY", 0)
    assert ours(opened(content(name))) == pytest.approx(expected, nan_ok=True)


def test_file_of_many_rows_is_read_the_same(monkeypatch):
    """Beyond some rows their numbers are not kept for the next file, only within the file."""
    data = plain(bytes(content()))
    expected = SaFile("f.sa", data)
    assert all(len(table.record) == len(table.item) for table in expected.tables().values())  # computed now
    monkeypatch.setattr(records, "KEPT_ROWS", 0)
    assert unlike(expected, SaFile("f.sa", data)) == []


def test_interrupt_that_takes_the_place_of_another_has_no_value_there():
    data, file = content(), opened(content())
    number, _ = file._known["interrupts"]
    for record in range(3, 12):
        at = file._records.place_of(number, record) + 5 * 12 + 4  # the sixth of all CPUs
        data[at : at + 8] = b"new\0\0\0\0\0"
    before, after = file.table("interrupts"), opened(data).table("interrupts")
    old = before.items[5]
    assert len(before.of(old)["value"]) == 10
    assert [len(after.of(item)["value"]) for item in (f"{old}#5", "new#5")] == [2, 7]
    assert after.of("sum#0")["value"] == pytest.approx(before.of("sum")["value"])


# ---- counters that wrap or go back, restarts -----------------------------------------------------------------------


def place(file: SaFile, activity: str, record: int, field: int, *, item: int = 0) -> int:
    """Byte of a 64-bit or long field of an item."""
    number, _ = file._known[activity]
    size = file.header.activities[number].size
    return file._records.place_of(number, record) + item * size + 8 * field


def with_numbers(name: str, activity: str, form: str, field: int, *values: int) -> SaFile:
    """The file with other values of one field in its first records."""
    data, file = content(name), opened(content(name))
    for record, value in enumerate(values):
        struct.pack_into(form, data, place(file, activity, record, field), value)
    return opened(data)


@pytest.mark.parametrize(
    ("name", "form", "bits"), [("12.6.1", "<Q", 64), ("12.6.1-i386", "<I", 32), ("12.6.1-s390x", ">Q", 64)]
)
def test_long_counter_that_wraps_goes_on_and_one_that_goes_back_has_no_value(name, form, bits):
    """By the size that a long has on the machine that wrote the file. sadf takes any to have 64 bits here."""
    file = with_numbers(name, "paging", form, 2, 2**bits - 100, 2**bits - 50, 250, 200)
    faults_per_s, interval = file.table("paging").of()["fault"], file.interval_s
    assert faults_per_s[:2] == pytest.approx([50 / interval[0], 300 / interval[1]])
    assert np.isnan(faults_per_s[2])


def test_sum_of_devices_that_goes_back_is_zero_as_sysstat_has_it():
    file = with_numbers("12.6.1", "io", "<Q", 0, 1000, 400, 500)
    assert file.table("io").of()["tps"][:2] == pytest.approx([0, 100 / file.interval_s[1]])


def test_no_interval_crosses_a_restart_written_down_or_not():
    file = opened(content())
    assert (len(file.t_s), file._records.n, len(file._records.restarts)) == (10, 12, 1)
    data = content()
    for record in range(3, 6):
        struct.pack_into("<Q", data, int(file._records.headers[record]), 100 * (record + 1))  # uptime
    again = opened(data)
    assert len(again.t_s) == 9
    assert (again.interval_s[2:4] == 1).all()


def test_disk_that_was_replaced_begins_at_zero():
    file = opened(content())
    data = content()
    for field in (0, 3, 4, 5):
        at = place(file, "disk", 2, field)
        struct.pack_into("<Q", data, at, 7)
    number, _ = file._known["disk"]
    first = opened(data).table("disk")
    assert first.values["tps"][first.record == 2][0] == pytest.approx(7 / file.interval_s[1])
    assert number


# ---- files of other versions ---------------------------------------------------------------------------------------


def listed_at(file: SaFile, activity: str) -> int:
    return file.header.activities[file._known[activity][0]].at


def test_activity_of_a_later_version_is_left_out_and_named():
    data = content()
    at = listed_at(opened(data), "paging")
    struct.pack_into("<I", data, at + 4, 0x99)
    file = opened(data)
    assert file.not_read == {"paging": 0x99}
    assert len(file.table("swap-pages").t_s) == 10
    with pytest.raises(DataError, match=r"f\.sa: no paging; the file has cpu-load, "):
        file.table("paging")


def test_import_does_without_no_activity_that_it_needs(tmp_path):
    data = content()
    struct.pack_into("<I", data, listed_at(opened(data), "cpu-load") + 4, 0x99)
    path = tmp_path / "db1.sa"
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"db1\.sa: cpu-load has format 0x99 of sysstat 12\.6\.1, which is not known"):
        sysstat(path, own_machine=True)


def test_fields_of_another_version_are_left_out():
    later, earlier = opened(content("12.7.5")).table("paging").values, opened(content("12.6.1")).table("paging").values
    assert set(later) - set(earlier) == {"pgprom", "pgdem"}


def test_extra_structures_of_a_later_version_are_skipped():
    data = content()
    file = opened(data)
    extra = struct.pack("<6I", 2, 8, 0, 1, 0, 0) + bytes(16)
    for record in (7, 2):  # the later first: the places of the others stay
        at = int(file._records.headers[record])
        struct.pack_into("<I", data, at + 16, 1)
        data[at + 24 : at + 24] = extra
    data[file.header.end : file.header.end] = extra
    struct.pack_into("<I", data, 76 + 60, 1)
    assert ours(opened(data)) == pytest.approx(ours(file), nan_ok=True)


# ---- what is not understood ----------------------------------------------------------------------------------------


def put(form: str, at: int, *values: int):
    def change(data: bytearray) -> bytearray:
        struct.pack_into(form, data, at, *values)
        return data

    return change


FIRST = 76 + 336  # the list of activities
RECORD = opened(content()).header.end


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d[:0], r"byte 0: magic number needs 8 bytes, the file ends after 0"),
        (lambda d: d[:50], r"byte 0: magic structure needs 76 bytes, the file ends after 50"),
        (lambda d: d[:200], r"byte 76: header needs 336 bytes"),
        (lambda d: b"Linux 6.1 (db1)" * 10, r"byte 0: 4c69 is not sysstat's magic number"),
        (put("<H", 2, 0x2173), r"byte 2: format 0x2173 of sysstat 12\.6\.1; readable is 0x2175, that of 11\.7\.1"),
        (put("<I", 8, 10**6), r"byte 8: a header of 1000000 bytes"),
        (put("<I", 16, 100), r"byte 16: header has .* bytes, too few"),
        (put("<I", 16, 0), r"byte 16: header lacks numbers"),
        (put("<I", 76 + 20, 300), r"byte 92: 5 CPUs and 300 activities: out of range"),
        (put("<I", 76 + 52, 8), r"byte 104: list of activities has 8 bytes, too few for its 36"),
        (put("<I", 76 + 56, 2000), r"byte 128: structures of 36 and 2000 bytes: out of range"),
        (put("<I", FIRST + 8, 0), r"byte 412: activity 1: 0 x 1 items of 80 bytes: out of range"),
        (put("<I", FIRST + 36, 1), r"byte 448: activity 1 is listed twice"),
        (put("<3I", FIRST + 24, 11, 0, 0), r"byte 436: activity 1 has 80 bytes, too few for its 88 bytes"),
        (put("<3I", FIRST + 24, 0, 0, 10), r"byte 412: cpu-load: \(0, 0, 10\) numbers, known are \(10, 0, 0\)"),
        (put("<I", FIRST + 36 + 8, 5), r"byte 448: process-and-context-switch: 5 x 1 items, at most 1 x 1"),
        (put("<B", RECORD + 20, 0), rf"byte {RECORD}: no record \(kind 0"),
        (put("<B", RECORD + 21, 24), rf"byte {RECORD}: no record \(kind 1, 24:"),
        (put("<Q", RECORD + 8, 17), rf"byte {RECORD}: no record"),
        (put("<i", RECORD + 24, -1), rf"byte {RECORD + 24}: -1 items of activity 1: out of range"),
        (put("<i", RECORD + 24, 10**6), rf"byte {RECORD + 28}: 1000000 items of activity 1 needs 80000000 bytes"),
        (lambda d: d[:-10], r"byte \d+: .* needs \d+ bytes, the file ends after \d+"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_an_error_with_the_place(change, message):
    with pytest.raises(DataError, match=rf"f\.sa: {message}"):
        opened(change(content())).tables()


def test_two_items_of_one_name_in_one_record_are_an_error():
    data, file = content(), opened(content())
    number, _ = file._known["net-dev"]
    listed, at = file.header.activities[number], file._records.place_of(number, 3)
    name = at + listed.kinds.bytes
    data[name + listed.size : name + listed.size + 16] = data[name : name + 16]
    with pytest.raises(DataError, match=rf"byte {at}: net-dev: '\w+' occurs twice in one record"):
        opened(data).table("net-dev")


def test_damaged_files_give_errors_or_figures_that_can_be():
    """A part of what `sa_fuzz.py` runs: 1,000 cases."""
    count = fuzz(1000, seed=1)
    assert count["read"] > 100
    assert count["refused"] > 500
