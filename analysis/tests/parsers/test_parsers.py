"""Parsers: exact values, errors that name file and line, gaps that stay gaps."""

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ntier_analysis.errors import DataError
from ntier_analysis.importing.sysstat_files import NodeFile, read_node
from ntier_analysis.parsers import client, host, status, sysstat, weblog
from ntier_analysis.parsers.csvfile import read_csv
from synthetic import T0, sysstat_json

CPU = "t_s,usage_user_ns,usage_system_ns,usage_ns,throttled_ns,nr_periods,nr_throttled,quota_us,period_us"


def wide(frame, metric, item=""):
    return frame.loc[(frame["metric"] == metric) & (frame["item"] == item), "value"].to_numpy()


def approx(values):
    """Epoch seconds as floats are exact to 0.2 us, 2e-6 of a 100 ms interval."""
    return pytest.approx(values, rel=1e-5)


def cpu_file(folder: Path, rows) -> Path:
    path = folder / "cgroup_cpu.csv"
    path.write_text("\n".join([CPU, *(",".join(map(str, r)) for r in rows)]) + "\n")
    return path


def cpu_rows(usage_ns, quota=2000, step_s=0.1, throttled=0):
    return [(T0 + step_s * i, u, 0, u, 0, 10 * i, throttled * i, quota, 10000) for i, u in enumerate(usage_ns)]


def test_utilization_is_used_time_over_quota(tmp_path):
    frame, backwards = host.cgroup_cpu(cpu_file(tmp_path, cpu_rows([0, 10_000_000, 30_000_000], throttled=10)), 2)
    assert wide(frame, "utilization_pct") == approx([50, 100])
    assert wide(frame, "throttled_pct") == approx([100, 100])
    assert backwards == 0


def test_t8_quota_of_several_cores(tmp_path):
    """2.5 cores: 0.2 s used in 0.1 s are 80 %, not 200."""
    frame, _ = host.cgroup_cpu(cpu_file(tmp_path, cpu_rows([0, 200_000_000], quota=25000)), 4)
    assert wide(frame, "utilization_pct") == approx([80])


def test_without_quota_the_capacity_counts(tmp_path):
    frame, _ = host.cgroup_cpu(cpu_file(tmp_path, cpu_rows([0, 100_000_000], quota=-1)), 2)
    assert wide(frame, "utilization_pct") == approx([50])
    assert np.isnan(wide(frame, "throttled_pct")).all()


def test_t34_more_than_the_quota_is_not_clipped(tmp_path):
    frame, _ = host.cgroup_cpu(cpu_file(tmp_path, cpu_rows([0, 40_000_000])), 2)
    assert wide(frame, "utilization_pct") == approx([200])


def test_t21_gap_stays_a_gap(tmp_path):
    rows = cpu_rows([0, 10_000_000, 20_000_000])
    rows.append((T0 + 3.2, 30_000_000, 0, 30_000_000, 0, 320, 0, 2000, 10000))
    frame, _ = host.cgroup_cpu(cpu_file(tmp_path, rows), 2)
    values = wide(frame, "utilization_pct")
    assert values[:2] == approx([50, 50])
    assert np.isnan(values[2])


def test_one_lost_reading_is_no_gap_however_late_the_next_one_is(tmp_path):
    """Two are one: nobody knows then when the work was done."""
    late = [0.0, 0.1, 0.3004, 0.4, 0.7]
    rows = [(T0 + t, int(1e8 * t), 0, int(1e8 * t), 0, int(100 * t), 0, 2000, 10000) for t in late]
    frame, _ = host.cgroup_cpu(cpu_file(tmp_path, rows), 2)
    values = wide(frame, "utilization_pct")
    assert values[:3] == pytest.approx([50, 50, 50], abs=0.01)
    assert np.isnan(values[3])


def test_interval_in_which_the_quota_changes_has_no_value(tmp_path):
    rows = [*cpu_rows([0, 10_000_000]), (T0 + 0.2, 20_000_000, 0, 20_000_000, 0, 20, 0, -1, 10000)]
    frame, _ = host.cgroup_cpu(cpu_file(tmp_path, rows), 2)
    assert np.isnan(wide(frame, "utilization_pct")[1])


def test_counter_that_runs_backwards_is_flagged_and_has_no_value(tmp_path):
    frame, backwards = host.cgroup_cpu(cpu_file(tmp_path, cpu_rows([0, 10_000_000, 0])), 2)
    assert backwards > 0
    assert np.isnan(wide(frame, "utilization_pct")[1])


@pytest.mark.parametrize(("second", "word"), [(0.0, "repeated"), (-1.0, "goes back")])
def test_t33_repeated_or_unordered_times_are_refused(tmp_path, second, word):
    rows = cpu_rows([0, 1])
    rows[1] = (T0 + second, *rows[1][1:])
    with pytest.raises(DataError, match=rf"cgroup_cpu.csv:3: .*{word}"):
        host.cgroup_cpu(cpu_file(tmp_path, rows), 2)


def test_t8_neither_iowait_nor_steal_is_busy(tmp_path):
    path = tmp_path / "host_stat.csv"
    path.write_text(
        f"t_s,user,nice,system,idle,iowait,irq,softirq,steal\n{T0},0,0,0,0,0,0,0,0\n{T0 + 0.1},1,2,3,4,50,5,6,29\n"
    )
    frame, _ = host.host_stat(path)
    assert wide(frame, "utilization_pct") == approx([17])
    assert wide(frame, "steal_pct") == approx([29])
    assert wide(frame, "iowait_pct") == approx([50])


def test_what_only_keeps_the_cpus_awake_is_not_busy(tmp_path):
    """100 ticks of 10 ms, of which it used 60: 0.6 s. More than what was counted as busy leaves nothing. Two readings
    within a tick tell nothing, not infinity."""
    path = tmp_path / "host_stat.csv"
    columns = "t_s,user,nice,system,idle,iowait,irq,softirq,steal,awake_ns"
    rows = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0),
        (15, 59, 15, 10, 0, 0, 0, 1, 600_000_000),
        (15, 159, 15, 10, 0, 0, 0, 1, 1.7e9),
        (15, 159, 15, 10, 0, 0, 0, 1, 1.701e9),
    ]
    lines = [f"{T0 + i / 10}," + ",".join(f"{v:.0f}" for v in row) for i, row in enumerate(rows)]
    path.write_text("\n".join([columns, *lines]) + "\n")
    frame, _ = host.host_stat(path)
    assert wide(frame, "utilization_pct")[:2] == approx([29, 0])
    assert wide(frame, "awake_pct")[:2] == approx([60, 110])
    assert wide(frame, "steal_pct")[:2] == approx([1, 0])
    assert np.isnan(frame.loc[frame["t_s"] > T0 + 0.25, "value"]).all()


# ---- errors name file and line -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"x.csv: empty"),
        ("a\n1\n", r"x.csv:1: column 'b' is missing; found a"),
        ("a,b,a\n1,2,3\n", r"x.csv:1: column 'a' occurs twice"),
        ("a,b\n1,2\n3,4,5\n", r"x.csv:3: 3 fields, the header has 2"),
        ("a,b\n1,2\n3,x\n", r"x.csv:3: b is 'x', expected a number"),
        ("a,b\n1.5,2\n", r"x.csv:2: a is '1.5', expected a whole number"),
        ("a,b\n,2\n", r"x.csv:2: a is empty"),
        ("# why\na,b\n1,2\n3,x\n", r"x.csv:4: b is 'x', expected a number"),
    ],
)
def test_bad_csv(tmp_path, text, message):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_csv(path, {"a": "count", "b": "number"})


def test_torn_last_line_is_counted_not_an_error(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n3,")
    frame = read_csv(path, {"a": "count", "b": "number"})
    assert len(frame) == 1
    assert frame.attrs["torn_lines"] == 1


def test_truncated_archive_is_an_error(tmp_path):
    path = tmp_path / "x.csv.zst"
    path.write_bytes(b"not zstd at all")
    with pytest.raises(DataError, match=r"x.csv.zst: cannot be read"):
        read_csv(path, {"a": "count"})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=300))
def test_any_text_is_a_frame_or_a_data_error(tmp_path, text):
    path = tmp_path / "x.csv"
    path.write_text("t_start_ms,user,state,drawn_ms,actual_ms\n" + text, errors="surrogatepass")
    with contextlib.suppress(DataError):
        frame = client.thinks(path)
        assert list(frame.columns) == ["start_s", "end_s", "user", "state", "drawn_ms", "actual_ms"]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**6),
            st.integers(0, 10**5),
            st.text(st.characters(codec="utf-8"), max_size=20),
            st.booleans(),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_jtl_round_trip(tmp_path, records):
    """Any label and message survives JMeter's quoting."""

    def quoted(text):
        return '"' + text.replace('"', '""') + '"'

    header = (
        "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,failureMessage,bytes,Latency,Connect"
    )
    lines = [f"{t},{e},{quoted(s)},200,OK,T 1-1,{str(ok).lower()},{quoted(s)},10,{e},0" for t, e, s, ok in records]
    path = tmp_path / "i.jtl.csv.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(("\n".join([header, *lines]) + "\n").encode()))
    frame = client.interactions(path)
    assert len(frame) == len(records)
    assert sorted(frame["interaction"]) == sorted(s for _, _, s, _ in records)
    assert frame["ok"].sum() == sum(ok for *_, ok in records)
    assert frame["t_s"].is_monotonic_increasing


def test_jtl_with_a_garbled_flag_names_the_line(tmp_path):
    path = tmp_path / "i.jtl.csv"
    path.write_text(
        "timeStamp,elapsed,label,responseCode,threadName,success,failureMessage,bytes,Latency,Connect\n"
        "1,1,A,200,T,true,,1,1,0\n2,1,A,200,T,maybe,,1,1,0\n"
    )
    with pytest.raises(DataError, match=r"i.jtl.csv:3: success is 'maybe'"):
        client.interactions(path)


def test_users_are_authors_or_not_or_unknown(tmp_path):
    path = tmp_path / "users.csv"
    path.write_text("user,t_start_ms,t_end_ms,author\n7,0,1000,1\n8,0,1000,0\n")
    assert client.users(path)["author"].tolist() == [1, 0]
    path.write_text("user,t_start_ms,t_end_ms\n7,0,1000\n")
    assert client.users(path)["author"].isna().all()
    path.write_text("user,t_start_ms,t_end_ms,author\n7,0,1000,1\n8,0,1000,2\n")
    with pytest.raises(DataError, match=r"users.csv:3: author is 2, expected 0 or 1"):
        client.users(path)


# ---- services ------------------------------------------------------------------------------------------------------


def test_middleware_per_replica(tmp_path):
    path = tmp_path / "middleware_status.csv"
    path.write_text(
        "t_s,replica,pending,awaiting,pool_size,executed_total,chosen_total\n"
        "1.0,db1,12,2,10,100,1\n1.0,db2,5,0,10,50,1\n2.0,db1,4,0,10,130,1\n2.0,db2,5,0,10,50,1\n"
    )
    frame, _ = status.middleware_status(path)
    assert wide(frame, "utilization_pct", "db1") == approx([100, 40])
    assert wide(frame, "statements_per_s", "db1") == approx([30])
    assert wide(frame, "statements_per_s", "db2") == approx([0])
    assert wide(frame, "waiting", "db1") == approx([2, 0])


def test_a_middleware_that_sees_no_statements(tmp_path):
    """HAProxy: connections instead of statements. PgBouncer: no counter at all. What it cannot tell has no samples."""
    path = tmp_path / "middleware_status.csv"
    header = "t_s,replica,pending,awaiting,pool_size,executed_total,chosen_total\n"
    path.write_text(header + "1.0,db1,12,2,20,,5\n2.0,db1,12,0,20,,7\n")
    frame, backwards = status.middleware_status(path)
    assert set(frame["metric"]) == {"utilization_pct", "active", "pending", "waiting", "choices_per_s"}
    assert wide(frame, "choices_per_s", "db1") == approx([2])
    path.write_text(header + "1.0,db1,3,,,,\n2.0,db1,4,,,,\n")
    frame, backwards = status.middleware_status(path)
    assert set(frame["metric"]) == {"active", "pending"}
    assert wide(frame, "active", "db1") == approx([3, 4])
    assert backwards == 0


def test_mysql_gauges_and_counters(tmp_path):
    path = tmp_path / "mysql_status.csv"
    path.write_text("t_s,Questions,Threads_running,Innodb_row_lock_time\n1.0,10,3,0\n2.0,30,1,5\n")
    frame, backwards = status.mysql_status(path)
    assert wide(frame, "threads_running") == approx([3, 1])
    assert wide(frame, "questions_per_s") == approx([20])
    assert backwards == 0


def test_a_late_reading_shares_the_rate_of_the_one_on_time_after_it(tmp_path):
    """201 statements in 2.001 s, of which the last 112 seem to fall into 1 ms."""
    file = tmp_path / "mysql_status.csv"
    readings = [(0.0, 0), (1.0, 50), (3.0, 139), (3.001, 251), (4.0, 300)]
    file.write_text("t_s,Com_select\n" + "".join(f"{t},{n}\n" for t, n in readings))
    rates = status.mysql_status(file)[0]["value"].to_numpy()
    assert rates == pytest.approx([50, 201 / 2.001, 201 / 2.001, 49 / 0.999])
    file.write_text("t_s,Com_select\n0.0,1\n")
    assert len(status.mysql_status(file)[0]) == 0


def test_of_two_readings_in_one_millisecond_the_later_one_counts(tmp_path):
    """A writer that was held up makes up for it. The whole file twice over is refused as ever."""
    file = tmp_path / "mysql_status.csv"
    lines = "1.0,50,3\n3.2,139,4\n3.2,150,5\n4.0,190,6\n"
    file.write_text("t_s,Com_select,Threads_running\n" + lines)
    frame, backwards = status.mysql_status(file)
    assert wide(frame, "com_select_per_s") == approx([100 / 2.2, 50])
    assert (wide(frame, "threads_running").tolist(), backwards) == ([3, 5, 6], 0)
    file.write_text("t_s,Com_select,Threads_running\n" + 2 * lines)
    with pytest.raises(DataError, match="goes back"):
        status.mysql_status(file)
    columns = "t_s,replica,pending,awaiting,pool_size,executed_total,chosen_total\n"
    twice = "1.0,{0},1,0,9,10,1\n3.2,{0},2,0,9,20,2\n3.2,{0},3,0,9,30,3\n"
    file.write_text(columns + twice.format("db1") + twice.format("db2"))
    frame, _ = status.middleware_status(file)
    assert wide(frame, "pending", "db2").tolist() == [1, 3]


def test_postgresql_gauges_and_counters(tmp_path):
    path = tmp_path / "postgresql_status.csv"
    path.write_text(
        "t_s,xact_commit,xact_rollback,blks_read,blks_hit,tup_returned,tup_fetched,tup_inserted,tup_updated,"
        "tup_deleted,temp_files,temp_bytes,deadlocks,active,idle_in_transaction,connections,lock_waits\n"
        "1.0,100,0,5,50,900,90,9,3,1,1,8192,0,4,2,24,1\n"
        "2.0,130,1,9,90,990,99,9,3,1,2,24576,1,2,0,24,0\n"
        "4.0,190,1,9,90,990,99,9,3,1,2,24576,1,3,0,23,0\n"
    )
    frame, backwards = status.postgresql_status(path)
    assert backwards == 0
    # the names of MySQL's parser where the meaning is the same
    assert wide(frame, "threads_running") == approx([4, 2, 3])
    assert wide(frame, "connections") == approx([24, 24, 23])
    assert wide(frame, "idle_in_transaction") == approx([2, 0, 0])
    assert wide(frame, "lock_waiting") == approx([1, 0, 0])
    assert wide(frame, "xact_commit_per_s") == approx([30, 30])
    assert wide(frame, "temp_bytes_per_s") == approx([16384, 0])
    kinds = frame.drop_duplicates("metric").set_index("metric")[["resource", "unit"]].apply(tuple, axis=1).to_dict()
    assert len(kinds) == 16
    assert kinds["threads_running"] == ("queue", "count")
    assert kinds["connections"] == kinds["idle_in_transaction"] == ("pool", "count")
    assert kinds["xact_commit_per_s"] == kinds["tup_inserted_per_s"] == ("query", "per_s")
    assert kinds["blks_hit_per_s"] == kinds["blks_read_per_s"] == ("memory", "per_s")
    assert kinds["temp_files_per_s"] == ("disk", "per_s")
    assert kinds["temp_bytes_per_s"] == ("disk", "bytes_per_s")
    assert (kinds["lock_waiting"], kinds["deadlocks_per_s"]) == (("lock", "count"), ("lock", "per_s"))


def test_postgresql_statistics_that_were_reset_are_flagged(tmp_path):
    path = tmp_path / "postgresql_status.csv"
    path.write_text("t_s,xact_commit,active\n1.0,100,9\n2.0,3,1\n")
    frame, backwards = status.postgresql_status(path)
    assert backwards == 1
    assert np.isnan(wide(frame, "xact_commit_per_s")).all()


def test_sysstat_values_and_absent_items(tmp_path):
    path = tmp_path / "sysstat.json"
    document = json.loads(sysstat_json(np.array([T0, T0 + 1]), np.array([20.0, 30.0]), "db1"))
    records = document["sysstat"]["hosts"][0]["statistics"]
    records[1]["disk"].insert(0, {"disk-device": "vdb", "tps": 1.0, "rkB": 2.0, "wkB": 0.0, "util-percent": 50.0})
    path.write_text(json.dumps(document))
    frame = sysstat.sysstat(path, own_machine=False)
    assert wide(frame, "busy_pct") == approx([20, 30])
    assert not ((frame["resource"] == "cpu") & (frame["metric"] == "utilization_pct")).any()
    assert wide(frame, "rx_bytes_per_s", "eth0") == approx([10240, 10240])
    assert wide(frame, "busy_pct", "vdb") == approx([50])  # a disk that appeared later shifts nothing
    assert wide(frame, "operations_per_s", "vda") == approx([3, 3])
    own = sysstat.sysstat(path, own_machine=True)
    assert wide(own[own["resource"] == "cpu"], "utilization_pct") == approx([20, 30])


def test_partitions_are_not_counted_beside_their_disk(tmp_path):
    """sadc lists both (-S XALL). Volumes of LVM (dm-1, dm-10) have a disk's name; of vdb1 there is no disk."""
    path = tmp_path / "sysstat.json"
    document = json.loads(sysstat_json(np.array([T0, T0 + 1]), np.array([20.0, 30.0]), "db1"))
    names = ["sda", "sda1", "sda12", "nvme0n1", "nvme0n1p2", "nvme0n12", "dm-1", "dm-10", "vdb1", "vg-a", "vg-a1"]
    for record in document["sysstat"]["hosts"][0]["statistics"]:
        record["disk"] = [record["disk"][0] | {"disk-device": name} for name in names]
    path.write_text(json.dumps(document))
    frame = sysstat.sysstat(path, own_machine=True)
    disks = frame.loc[frame["resource"] == "disk", "item"].unique().tolist()
    assert disks == ["sda", "nvme0n1", "nvme0n12", "dm-1", "dm-10", "vdb1", "vg-a", "vg-a1"]


def test_cpus_that_are_offline_are_not_counted(tmp_path):
    """sysstat's header has those that the machine may have."""
    path = tmp_path / "db1.json"
    document = json.loads(sysstat_json(np.array([T0, T0 + 1]), np.array([25.0, 25.0]), "db1"))
    host_ = document["sysstat"]["hosts"][0] | {"number-of-cpus": 4}
    path.write_text(json.dumps({"sysstat": {"hosts": [host_]}}))
    assert sysstat.cpus(path) == 4, "without single CPUs nothing better is known"
    for record in host_["statistics"]:
        record["cpu-load"] += [record["cpu-load"][0] | {"cpu": str(n)} for n in (0, 1)]
    path.write_text(json.dumps({"sysstat": {"hosts": [host_]}}))
    frame, cores = read_node(NodeFile("db1", "db", path), containers=False)
    assert cores == 2
    assert wide(frame, "used_cores") == approx([0.5, 0.5])


def test_later_sysstat_names_its_time_zone(tmp_path):
    """12.7.5 and later: "tz" instead of "utc"."""
    text = sysstat_json(np.array([T0, T0 + 1]), np.array([20.0, 30.0]), "db1")
    path = tmp_path / "sysstat.json"
    path.write_text(text.replace('"utc": 1', '"tz": "UTC"'))
    assert sysstat.sysstat(path, own_machine=False)["t_s"].min() == T0
    path.write_text(text.replace('"utc": 1', '"tz": "CET"'))
    with pytest.raises(DataError, match="local"):
        sysstat.sysstat(path, own_machine=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("sysstat"), "not sysstat's JSON"),
        (lambda d: d["sysstat"]["hosts"][0]["statistics"][1].pop("timestamp"), "record 2: timestamp is missing"),
        (
            lambda d: d["sysstat"]["hosts"][0]["statistics"][0]["timestamp"].update(utc=0),
            "record 1: the times are local, expected UTC: TZ=UTC sadf",
        ),
        (
            lambda d: d["sysstat"]["hosts"][0]["statistics"].append(d["sysstat"]["hosts"][0]["statistics"][1]),
            "repeated",
        ),
    ],
)
def test_bad_sysstat(tmp_path, change, message):
    document = json.loads(sysstat_json(np.array([T0, T0 + 1]), np.array([20.0, 30.0]), "db1"))
    change(document)
    path = tmp_path / "sysstat.json"
    path.write_text(json.dumps(document))
    with pytest.raises(DataError, match=message):
        sysstat.sysstat(path, own_machine=False)


def test_a_record_of_sysstat_right_after_one_that_came_late_has_a_length(tmp_path):
    """10:02:40 of 2 s, and 10:02:41 of "0" s: less than half a second, as on a node that waited for its CPU."""
    document = json.loads(sysstat_json(T0 + np.array([0, 2, 3]), np.array([20.0, 30.0, 40.0]), "db1"))
    records = document["sysstat"]["hosts"][0]["statistics"]
    for record, interval in zip(records, (1, 2, 0), strict=True):
        record["timestamp"]["interval"] = interval
    path = tmp_path / "sysstat.json"
    path.write_text(json.dumps(document))
    frame = sysstat.sysstat(path, own_machine=False)
    assert wide(frame, "busy_pct") == approx([20, 30, 40])
    assert sorted(frame["interval_s"].unique()) == [0.25, 1.0, 2.0]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ([0, 2, 2, 3], [0, 1, 2, 3]),
        ([0, 1, 3, 3, 5, 5, 6], [0, 1, 2, 3, 4, 5, 6]),
        ([0, 2, 3, 3, 5, 5, 7, 8, 8, 9], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ([0, 3, 4, 4], "record 4: time 1\\d+ is repeated"),
        ([0, 1, 1], "record 3: time 1\\d+ is repeated"),
        ([0, 2, 2, 2], "record 3: time 1\\d+ is repeated"),
        ([0, 3, 3], "record 3: time 1\\d+ is repeated"),
        ([0, 2, 1], "record 3: time 1\\d+ goes back"),
    ],
)
def test_a_record_of_sysstat_that_came_late_is_one_of_its_own_second(tmp_path, seconds, expected):
    """It tells whole seconds, so two records have the same one and none has the one before."""
    path, busy = tmp_path / "sysstat.json", np.arange(20.0, 20 + len(seconds))
    path.write_text(sysstat_json(T0 + np.array(seconds), busy, "db1"))
    if isinstance(expected, str):
        with pytest.raises(DataError, match=expected):
            sysstat.sysstat(path, own_machine=True)
        return
    cpu = sysstat.sysstat(path, own_machine=True).query("resource == 'cpu' and metric == 'utilization_pct'")
    assert list(cpu["t_s"] - T0) == expected
    assert list(cpu["value"]) == approx(busy)


def test_access_log_counts_what_it_cannot_read(tmp_path):
    path = tmp_path / "access.log"
    path.write_text(
        '1790000000.123 50000 200 5000 app1 "GET /rubbos/servlet/x?a=1 HTTP/1.1"\n'
        '1790000000.223 100 200 900 - "GET /rubbos/logo.gif HTTP/1.1"\n'
        "half a line\n"
    )
    log = weblog.access_log(path)
    assert list(log["image"]) == [False, True]
    assert log["t_s"][0] == pytest.approx(1790000000.173, abs=1e-6)
    assert log.attrs["garbled_lines"] == [3]


def test_the_busiest_core_of_a_machine_is_kept_and_of_a_container_not(tmp_path):
    """Four cores of which one is full: the mean is a quarter, and says nothing of the thread that is."""

    def cpu(name: str, busy: float) -> dict:
        return {"cpu": name, "idle": 100 - busy, "iowait": 0.0, "steal": 0.0}

    loads = [cpu("all", 25.0), *(cpu(str(i), 100.0 if i == 2 else 0.0) for i in range(4))]
    stamp = {"date": "2026-11-21", "time": "12:00:00", "utc": 1, "interval": 1}
    record = {"timestamp": stamp, "cpu-load": loads, "power-management": {
        "cpu-frequency": [{"number": "all", "frequency": 2300.0}, {"number": "0", "frequency": 2300.0}]}}  # fmt: skip
    path = tmp_path / "sysstat.json"
    path.write_text(json.dumps({"sysstat": {"hosts": [{"statistics": [record]}]}}))
    machine = sysstat.sysstat(path, own_machine=True).set_index("metric")["value"]
    assert machine["core_max_pct"] == 100
    assert machine["utilization_pct"] == 25
    assert machine["frequency_mhz"] == 2300
    assert "core_max_pct" not in set(sysstat.sysstat(path, own_machine=False)["metric"])


def test_procstat_keeps_the_busiest_core_where_it_was_sampled(tmp_path):
    path = tmp_path / "procstat.csv"
    header = "t_s,user,nice,system,idle,iowait,irq,softirq,steal,oom_kills"
    path.write_text(f"{header},core_max_pct\n1.0,0,0,0,0,0,0,0,0,0,\n1.1,10,0,0,30,0,0,0,0,0,100.0\n")
    frame, _ = host.procstat(path)
    assert frame.loc[frame["metric"] == "core_max_pct", "value"].tolist() == [100.0]
    path.write_text(f"{header}\n1.0,0,0,0,0,0,0,0,0,0\n1.1,10,0,0,30,0,0,0,0,0\n")
    assert "core_max_pct" not in set(host.procstat(path)[0]["metric"])


def test_counters_of_tcp_become_rates_and_what_is_not_counted_has_none(tmp_path):
    path = tmp_path / "tcp.csv"
    header = "t_s,out_segs,retrans_segs,attempt_fails,listen_overflows,listen_drops"
    path.write_text(f"{header}\n1,100,0,0,,5\n2,150,3,0,,5\n3,200,3,0,,4\n")
    frame, backwards = host.tcp(path)
    values = {metric: part["value"].tolist() for metric, part in frame.groupby("metric")}
    assert values["tcp_retransmitted_per_s"] == [3, 0]
    assert "tcp_listen_overflows_per_s" not in values
    assert backwards == 1
    assert np.isnan(values["tcp_listen_drops_per_s"][1])


def test_what_the_receiver_had_twice_was_not_lost(tmp_path):
    path = tmp_path / "tcp.csv"
    header = "t_s,out_segs,retrans_segs,attempt_fails,listen_overflows,listen_drops,dsacks"
    path.write_text(f"{header}\n1,100,0,0,0,0,0\n2,150,3,0,0,0,2\n3,200,5,0,0,0,4\n")
    frame, _ = host.tcp(path)
    values = {metric: part["value"].tolist() for metric, part in frame.groupby("metric")}
    assert values["tcp_retransmitted_per_s"] == [3, 2]
    assert values["tcp_lost_per_s"] == [1, 0]


def test_a_systems_own_collector_says_by_its_columns_what_they_are(tmp_path):
    path = tmp_path / "till_status.csv"
    path.write_text(
        "t_s,tills_used,tills_limit,tills_waiting,sold_total,guests,spare_used\n1,2,4,0,5,7,1\n2,4,4,3,9,8,1\n"
    )
    frame, backwards = status.own_status(path)
    pool = frame[frame["resource"] == "pool"]
    assert wide(pool, "utilization_pct", "tills") == approx([50, 100])
    assert wide(pool, "waiting", "tills") == approx([0, 3])
    assert wide(frame, "sold_per_s") == approx([4])
    assert wide(frame, "guests") == approx([7, 8])
    assert wide(frame, "spare_used") == approx([1, 1]), "no pool: nobody says how many there are"
    assert backwards == 0


def test_a_systems_own_collector_may_have_a_pool_and_nothing_else(tmp_path):
    path = tmp_path / "till_status.csv"
    path.write_text("t_s,tills_used,tills_limit\n1,2,4\n2,4,4\n")
    frame, _ = status.own_status(path)
    assert frame["value"].dtype == float
    assert wide(frame, "utilization_pct", "tills") == approx([50, 100])


def test_a_counter_of_a_systems_own_that_runs_backwards_is_flagged(tmp_path):
    path = tmp_path / "till_status.csv"
    path.write_text("t_s,sold_total\n1,5\n2,3\n3,4\n")
    assert status.own_status(path)[1] == 1


def test_a_column_of_a_systems_own_is_a_word(tmp_path):
    path = tmp_path / "till_status.csv"
    path.write_text("t_s,a b\n1,5\n")
    with pytest.raises(DataError, match=r"till_status.csv:1: column 'a b', expected letters, digits and _"):
        status.own_status(path)
