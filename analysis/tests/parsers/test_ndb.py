"""Counters of MySQL Cluster's data nodes, in the columns of the collectors (roles/ndbmtd). No file of a real cluster is
among these: their sources are the columns of ndbinfo as MySQL's manual has them."""

from __future__ import annotations

import pytest
from ntier_analysis.parsers.status import mysql_status, ndb_status, ndb_threads


def values(frame, metric, item=""):
    return frame[(frame["metric"] == metric) & (frame["item"] == item)]["value"].tolist()


def test_a_thread_s_share_is_of_one_core_by_the_clock_of_its_readings(tmp_path):
    """The first reading of ldm2 says 250 ms of CPU in 500 ms, although the collector came 1 s later."""
    file = tmp_path / "ndb_threads.csv"
    rows = ["1.0,main0,1000,0", "1.0,ldm2,1000,0", "2.0,main0,2000,100000", "2.0,ldm2,1500,250000"]
    rows += ["3.0,main0,3000,1100000", "3.0,ldm2,2500,1250000"]
    file.write_text("t_s,thread,at_ms,cpu_us\n" + "\n".join(rows) + "\n")
    frame, backwards = ndb_threads(file)
    assert backwards == 0
    assert set(frame["resource"]) == {"thread"}
    assert values(frame, "utilization_pct", "main0") == [10, 100]
    assert values(frame, "utilization_pct", "ldm2") == [50, 100]


def test_a_data_node_that_was_started_again_is_seen(tmp_path):
    file = tmp_path / "ndb_threads.csv"
    file.write_text("t_s,thread,at_ms,cpu_us\n1,ldm2,1000,900\n2,ldm2,2000,100\n")
    frame, backwards = ndb_threads(file)
    assert backwards == 1
    assert frame["value"].isna().all()


def test_counters_become_rates_and_readings_stay(tmp_path):
    file = tmp_path / "ndb_status.csv"
    header = "t_s,data_memory_used_bytes,redo_log_used_bytes,locks_waiting,lock_wait_ms_total"
    file.write_text(f"{header},sent_bytes_total,overloads_total\n1,100,7,0,0,0,0\n2,110,7,3,500,4096,1\n")
    frame, backwards = ndb_status(file)
    assert backwards == 0
    assert values(frame, "data_memory_used_bytes") == [100, 110]
    assert values(frame, "row_lock_waiting") == [0, 3]
    assert values(frame, "lock_wait_ms_per_s") == [500]
    assert values(frame, "sent_bytes_per_s") == [4096]
    by_metric = frame.set_index("metric")["resource"]
    assert by_metric["overloads_per_s"] == by_metric["sent_bytes_per_s"] == "network"
    assert frame.set_index("metric")["unit"]["sent_bytes_per_s"] == "bytes_per_s"


def test_what_was_not_asked_for_in_a_second_is_no_gap(tmp_path):
    file = tmp_path / "ndb_status.csv"
    file.write_text("t_s,locks_waiting,sent_bytes_total\n1,2,\n2,,1000\n8,3,\n9,,8000\n27,1,\n28,,9000\n")
    frame, backwards = ndb_status(file)
    assert backwards == 0
    assert values(frame, "row_lock_waiting") == [2, 3, 1]
    rates = frame[frame["metric"] == "sent_bytes_per_s"]
    assert rates["value"].tolist()[:1] == [1000]
    assert rates["value"].isna().tolist() == [False, True], "19 s without a reading are a gap"
    assert rates["interval_s"].tolist() == [7, 19]


def test_reads_scans_and_pushed_joins_are_queries(tmp_path):
    file = tmp_path / "ndb_status.csv"
    file.write_text("t_s,reads_total,index_scans_total,pushed_joins_total\n1,10,,\n2,,5,0\n8,80,,\n9,,12,49\n")
    frame, backwards = ndb_status(file)
    assert backwards == 0
    assert set(frame["resource"]) == {"query"}
    assert values(frame, "reads_per_s") == [10]
    assert values(frame, "index_scans_per_s") == [1]
    assert values(frame, "pushed_joins_per_s") == [7]


@pytest.mark.parametrize(("metric", "value"), [("ready_data_nodes", [2, 2]), ("ndb_api_wait_nanos_count_per_s", [5e8])])
def test_a_sql_node_s_waits_for_data_nodes(tmp_path, metric, value):
    file = tmp_path / "mysql_status.csv"
    file.write_text("t_s,Ndb_api_wait_nanos_count,Ndb_number_of_ready_data_nodes\n1,0,2\n2,500000000,2\n")
    assert values(mysql_status(file)[0], metric) == value
