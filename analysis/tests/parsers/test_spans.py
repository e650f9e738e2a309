"""Logs of the tiers that carry a trace context: what is read, and what is refused."""

from __future__ import annotations

import pytest
from ntier_analysis.errors import DataError
from ntier_analysis.parsers import spans, weblog

TRACE, SPAN, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "b7ad6b7169203331"
COMMENT = f"/*traceparent='00-{TRACE}-{SPAN}-01'*/"
HEADER = "trace_id,span_id,parent_id,kind,name,start_us,duration_us"

MYSQL = f"""/usr/sbin/mysqld, Version: 9.7.0 (Debian). started with:
Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock
Time                 Id Command    Argument
# Time: 2026-11-25T01:43:45.250000Z
# User@Host: ntier_middleware[ntier_middleware] @  [198.18.0.3]  Id:    12
# Query_time: 0.050000  Lock_time: 0.000003 Rows_sent: 10  Rows_examined: 200
use rubbos;
SET timestamp=1795571025;
SELECT id, '/*traceparent=''00-{PARENT * 2}-{PARENT}-01''*/' FROM stories
WHERE date > '2026-11-01' {COMMENT};
# Time: 2026-11-25T01:43:46.000001Z
# User@Host: ntier_middleware[ntier_middleware] @  [198.18.0.3]  Id:    13
# Query_time: 1.000000  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 1
SET timestamp=1795571025;
SELECT 1;
"""
POSTGRESQL = f"""1795571025.250 [77] LOG:  duration: 50.000 ms  execute <unnamed>: SELECT id FROM stories
\tWHERE "date" > $1 {COMMENT}
1795571025.260 [77] LOG:  duration: 12.500 ms  bind <unnamed>: SELECT id FROM users {COMMENT}
1795571025.300 [78] ERROR:  relation "nothing" does not exist at character 15 {COMMENT}
1795571026.000 [77] LOG:  duration: 1000.000 ms  statement: SELECT 1
2026-11-25 01:43:46.001 UTC [1] LOG:  checkpoint starting: time
"""


def written(tmp_path, text):
    path = tmp_path / "file"
    path.write_text(text)
    return path


def test_statements_of_mysql_are_known_by_the_comment_at_their_end(tmp_path):
    frame = spans.mysql_statements(written(tmp_path, MYSQL))
    assert frame[["trace_id", "parent_id"]].to_numpy().tolist() == [[TRACE, SPAN]]
    assert frame.loc[0, "end_s"] == pytest.approx(1795571025.25, abs=1e-6)
    assert frame.loc[0, "end_s"] - frame.loc[0, "start_s"] == pytest.approx(0.05, abs=1e-6)
    assert frame.attrs["others"] == 1


def test_a_time_of_another_zone_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"file:4: time is .*\+01:00.*log_timestamps=UTC"):
        spans.mysql_statements(written(tmp_path, MYSQL.replace("45.250000Z", "45.250000+01:00")))


def test_statements_of_postgresql_are_those_with_a_duration(tmp_path):
    frame = spans.postgresql_statements(written(tmp_path, POSTGRESQL))
    assert frame["trace_id"].to_list() == [TRACE, TRACE]
    assert (frame["end_s"] - frame["start_s"]).to_list() == pytest.approx([0.05, 0.0125], abs=1e-6)
    assert frame["end_s"].to_list() == pytest.approx([1795571025.25, 1795571025.26], abs=1e-6)
    assert frame.attrs["others"] == 1


def test_nothing_logged_is_an_empty_table(tmp_path):
    assert len(spans.mysql_statements(written(tmp_path, ""))) == 0
    assert len(spans.postgresql_statements(written(tmp_path, ""))) == 0


def test_spans_are_read_with_their_times(tmp_path):
    name = '"SELECT a, ""b"" FROM t"'
    frame = spans.spans(written(tmp_path, f"{HEADER}\n{TRACE},{SPAN},{PARENT},client,{name},1795571025250001,50000\n"))
    assert frame.loc[0, "name"] == 'SELECT a, "b" FROM t'
    assert frame.loc[0, "start_s"] == pytest.approx(1795571025.250001, abs=1e-6)
    assert frame.loc[0, "end_s"] - frame.loc[0, "start_s"] == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"{TRACE.upper()},{SPAN},{PARENT},server,x,1,1", r"file:2: trace_id is '4BF9.* 32 hexadecimal"),
        (f"{TRACE},,{PARENT},server,x,1,1", r"file:2: span_id is '', expected 16"),
        (f"{TRACE},{SPAN},{PARENT},producer,x,1,1", r"file:2: kind 'producer'.*server, internal, client"),
        (f"{TRACE},{SPAN},{PARENT},server,x,1,-1", r"file:2: .*duration_us -1"),
        (f"{TRACE},{SPAN},{PARENT},server,x,soon,1", r"file:2: start_us is 'soon', expected a whole number"),
    ],
)
def test_a_wrong_span_is_named(tmp_path, line, message):
    with pytest.raises(DataError, match=message):
        spans.spans(written(tmp_path, f"{HEADER}\n{line}\n"))


def test_the_access_log_has_the_id_where_the_server_writes_it(tmp_path):
    line = '1795571025.100 12000 200 5000 app1 "GET /rubbos/servlet/x HTTP/1.1"'
    contexts = ["", ' "-"', f' "00-{TRACE}-{SPAN}-01"', ' "mine"', " 00-1-2-01"]
    frame = weblog.access_log(written(tmp_path, "".join(f"{line}{c}\n" for c in contexts)), addresses=True)
    assert frame["trace_id"].to_list() == ["", "", TRACE, ""]
    assert frame.attrs["garbled_lines"] == [5]
