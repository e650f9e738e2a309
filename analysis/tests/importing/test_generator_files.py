# ruff: noqa: E501 (tables: a line per case)
"""Files that k6, Locust and Gatling left, and tables of other programs, as their readers take them."""

import csv
import gzip
import json
import re
import subprocess
from pathlib import Path

import load_files
import numpy as np
import pandas as pd
import pytest
import zstandard
from ntier_analysis.errors import DataError
from ntier_analysis.importing.loads import plateaus
from ntier_analysis.parsers.gatling import gatling
from ntier_analysis.parsers.k6 import k6
from ntier_analysis.parsers.locust import locust

DATA = Path(__file__).parent / "data" / "loadtests"


def test_an_access_log_is_imported_as_its_page_says(tmp_path):
    """The awk of docs/how-to/imports.md, on lines of nginx."""
    page = (Path(__file__).parents[3] / "docs/how-to/imports.md").read_text()
    (program,) = re.findall(r"awk '(BEGIN.*?)' ntier.log", page, re.DOTALL)
    log = '1790000000.123 0.256 200 GET /items\n1790000001.500 1.002 404 GET /a,b"c d\n'
    done = subprocess.run(["awk", program], input=log, capture_output=True, text=True, check=True)
    (tmp_path / "requests.csv").write_text(done.stdout)
    read = locust(tmp_path / "requests.csv").requests
    assert read["interaction"].tolist() == ["GET /items", "GET /a_b_c"]
    assert read["t_s"].tolist() == [1790000000.123, 1790000001.5]
    assert read["response_time_ms"].tolist() == [256, 1002]
    assert read["ok"].tolist() == [True, False]


HAPROXY = """\
Nov 29 23:40:12 lb1 haproxy[4711]: 127.0.0.1:40206 [29/Nov/2026:23:40:11.838] shop pages/s1 0/0/0/5/5 200 2202 - - ---- 1/1/0/0/0 0/0 "GET /story.html?a=1,2 HTTP/1.1"
127.0.0.1:40228 [29/Nov/2026:23:40:12.508] shop pages/s1 0/0/0/9/9 404 283 - - ---- 1/1/0/0/0 0/0 "GET /a,b HTTP/1.1"
127.0.0.1:40230 [29/Nov/2026:23:40:13.008] shop pages/s1 0/0/0/-1/14 -1 0 - - CH-- 1/1/0/0/0 0/0 "POST / HTTP/1.1"
"""
AB = "starttime\tseconds\tctime\tdtime\tttime\twait\nSun Nov 29 23:38:11 2026\t1795995491\t0\t4\t4\t3\n"
PAGE = [
    ("haproxy.log", HAPROXY, ["GET /story.html", "GET /a_b", "POST /"], [1795995611.838, 1795995612.508, 1795995613.008], [5, 9, 14], [True, False, False]),
    ("ab.tsv", AB, ["page"], [1795995491], [4], [True]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "log", "names", "begun", "ms", "ok"), PAGE)
def test_the_page_makes_tables_of_other_programs(tmp_path, name, log, names, begun, ms, ok):
    """The awk of docs/how-to/imports.md, on lines of HAProxy 2.6.12 (one with what syslog puts before) and ab 2.3."""
    page = (Path(__file__).parents[3] / "docs/how-to/imports.md").read_text()
    (command,) = re.findall(
        rf"^    ((?:TZ=UTC )?awk [^\n]*(?:\n {{6,}}[^\n]*)*{name}) > requests.csv", page, re.MULTILINE
    )
    (tmp_path / name).write_text(log)
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True)
    (tmp_path / "requests.csv").write_text(done.stdout)
    read = locust(tmp_path / "requests.csv").requests.sort_values("start_s")
    assert read["interaction"].tolist() == names
    assert read["start_s"].tolist() == pytest.approx(begun, abs=0.002 if name == "haproxy.log" else 1)
    assert read["response_time_ms"].tolist() == ms
    assert read["ok"].tolist() == ok


def quoted(path: Path) -> Path:
    """With quotation marks around all, as R and csv.QUOTE_ALL write."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    with (path.parent / f"quoted-{path.name}").open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    return path.parent / f"quoted-{path.name}"


def test_quoted_headers_are_the_same_headers(tmp_path):
    table = tmp_path / "requests.csv"
    table.write_text("name,timestamp,response_time\nHome,1790000000.5,3\nStory,1790000001.5,4\n")
    pairs = [(k6, load_files.k6_csv(tmp_path / "k6.csv")), (locust, table)]
    for read, path in pairs:
        pd.testing.assert_frame_equal(read(quoted(path)).requests, read(path).requests)
    history = load_files.locust_history(tmp_path / "history.csv")
    pd.testing.assert_frame_equal(locust(quoted(history)).totals, locust(history).totals)


def test_real_k6_csv_and_json_agree():
    """One run of k6, both outputs: CSV has whole seconds."""
    table, points = k6(DATA / "k6.csv.zst"), k6(DATA / "k6.json.zst")
    assert len(table.requests) == len(points.requests) == 650
    for run in (table, points):
        assert run.requests["interaction"].value_counts().to_dict() == {"Home": 323, "Story": 323, "Missing": 4}
        assert (run.requests.loc[run.requests["interaction"] == "Missing", "ok"] == False).all()  # noqa: E712
        assert run.requests.loc[run.requests["interaction"] == "Home", "ok"].all()
        assert run.think_s == pytest.approx(0.5, abs=0.01)  # sleep(0.5)
        assert run.idle < 0.05
        assert [p.users for p in plateaus(run.users)] == [4, 10, 24]
    assert np.abs(table.requests["t_s"] - points.requests["t_s"]).max() < 1
    assert any("times within a second" in note for note in table.notes)
    assert not any("times within a second" in note for note in points.notes)


def test_real_locust_tables_agree():
    history, requests = locust(DATA / "locust_stats_history.csv.zst"), locust(DATA / "locust_requests.csv.zst")
    assert history.requests is None
    last = history.totals.iloc[-1]
    assert last["done"] == pytest.approx(len(requests.requests), abs=12)
    assert last["failed"] == pytest.approx((~requests.requests["ok"]).sum(), abs=2)
    assert last["time_ms"] / last["done"] == pytest.approx(requests.requests["response_time_ms"].mean(), rel=0.02)
    assert [p.users for p in plateaus(history.users)] == [p.users for p in plateaus(requests.users)] == [4, 10, 24]
    with pytest.raises(DataError, match=r"sums of the whole test, without times; expected its .*_stats_history.csv"):
        locust(DATA / "locust_stats.csv")


def test_real_gatling_log():
    run = gatling(DATA / "simulation.log.zst")
    names = run.requests["interaction"].unique().tolist()
    assert sorted(names) == ["Home", "Missing", "Stories/Story"]
    assert len(run.requests) == 495
    assert set(run.requests.loc[~run.requests["ok"], "interaction"]) == {"Missing"}
    assert run.users["users"].max() <= 30
    assert run.users["users"].iloc[-1] == 0


def test_real_binary_log_of_gatling():
    """Gatling 3.15.1; its own summary says 265 requests, 30 of them failed, of at most 177 ms and 6 on average."""
    run = gatling(DATA / "simulation.binary.log.zst")
    names = {"Übersicht": 92, "頁/Story": 87, "Missing": 30, "Redir": 28, "Redir Redirect 1": 28}
    assert run.requests["interaction"].value_counts().to_dict() == names
    assert set(run.requests.loc[~run.requests["ok"], "interaction"]) == {"Missing"}
    assert run.requests["response_time_ms"].agg(["mean", "max"]).round().tolist() == [6, 177]
    assert [p.users for p in plateaus(run.users)] == [6, 10]


def test_a_killed_gatling_had_its_users_until_its_last_request(tmp_path):
    """It writes no END of users who were there when it was killed."""
    users = [f"USER\tReader\tSTART\t{1790000000000 + n}" for n in range(10)]
    done = [f"REQUEST\t\tHome\t{t}\t{t + 100}\tOK\t " for t in range(1790000000500, 1790000060000, 1000)]
    log = tmp_path / "simulation.log"
    log.write_text("\n".join(["RUN\tSteps\tsteps\t1790000000000\t \t3.10.5", *users, *done, ""]))
    (part,) = plateaus(gatling(log).users)
    assert part.users == 10
    assert part.end_s == 1790000060.0
    log.write_text(log.read_text() + "REQUEST\t\tHome\t17900000")
    with pytest.raises(DataError, match=r"simulation.log:72: REQUEST with 3 fields.* is incomplete: delete it"):
        gatling(log)


@pytest.mark.parametrize("kind", ["k6.csv", "k6.json"])
def test_k6_writes_gzip_where_its_file_ends_with_gz(tmp_path, kind):
    content = zstandard.ZstdDecompressor().stream_reader((DATA / f"{kind}.zst").read_bytes()).read()
    packed = tmp_path / f"{kind}.gz"
    packed.write_bytes(gzip.compress(content))
    pd.testing.assert_frame_equal(k6(packed).requests, k6(DATA / f"{kind}.zst").requests)
    packed.write_bytes(packed.read_bytes()[:-500])
    with pytest.raises(DataError, match=r"k6\.(csv|json)\.gz: cannot be read \(Compressed file ended"):
        k6(packed)


@pytest.mark.parametrize(("ended", "think_s"), [(2, 5.0), (1, float("nan"))])
def test_iterations_that_were_cut_off_do_not_shorten_think_times(tmp_path, ended, think_s):
    """A user thinks for 5 s after each of 10 requests, twice; the second time the test ends before the iteration does.
    All requests over one iteration's thinks would be 2.4 s."""
    rows = ["metric_name,timestamp,metric_value,expected_response,name,status"]
    for n in range(20):
        rows += [f"http_req_duration,{1790000000000 + 5100 * n},100,true,Home,200"]
        rows += [f"http_req_blocked,{1790000000000 + 5100 * n},0,true,Home,200"]
    rows += [f"vus,{1790000000000 + 1000 * n},1,,," for n in range(102)]
    rows += [f"iteration_duration,{1790000051000 + 51000 * n},51000,,," for n in range(ended)]
    (tmp_path / "k6.csv").write_text("\n".join([*rows, ""]))
    run = k6(tmp_path / "k6.csv")
    assert run.think_s == pytest.approx(think_s, nan_ok=True)
    assert any("many iterations did not end" in note for note in run.notes) == (ended == 1)


@pytest.mark.parametrize(("iterations", "length_ms"), [(2, 25000), (60, 990), (1, 31000)])
def test_k6_users_whose_iterations_were_cut_off_were_not_idle(tmp_path, iterations, length_ms):
    rows = [load_files.K6_HEADER, *(f"vus,{1790000000 + n},5,,,," for n in range(60))]
    for n in range(iterations):
        t = 1790000000000 + length_ms * (n + 1)
        rows += [f"http_req_duration,{t},50,,true,Home,200", *[f"iteration_duration,{t},{length_ms},,true,,"] * 5]
    (tmp_path / "k6.csv").write_text("\n".join([*rows, ""]))
    assert k6(tmp_path / "k6.csv").idle < 0.05


def test_setup_and_teardown_of_k6_are_no_users(tmp_path):
    """They are iterations, too, and may take minutes."""
    header = "metric_name,timestamp,metric_value,expected_response,group,name,status"
    rows = []
    for group, t, iteration_ms in (
        ("::setup", 1790000000, 90000),
        ("", 1790000100, 1010),
        ("::teardown", 1790000110, 40000),
    ):
        rows += [f"http_req_duration,{t},10,true,{group},Home,200", f"http_req_blocked,{t},0,true,{group},Home,200",
                 f"iteration_duration,{t},{iteration_ms},,{group},,"]  # fmt: skip
    (tmp_path / "k6.csv").write_text("\n".join([header, *rows, ""]))
    points = [
        {
            "type": "Point",
            "metric": name,
            "data": {"time": f"{row[1]}", "value": float(row[2]), "tags": {"group": row[4]}},
        }
        for row in (text.split(",") for text in rows)
        for name in [row[0]]
    ]
    (tmp_path / "k6.json").write_text("\n".join(json.dumps(point) for point in points))
    for name in ("k6.csv", "k6.json"):
        run = k6(tmp_path / name)
        assert run.requests["t_s"].tolist() == pytest.approx([1790000100.5], abs=0.5)
        assert run.think_s == pytest.approx(1.0)
        assert any("the 2 requests of setup and teardown" in note for note in run.notes)


def test_gatlings_text_and_binary_say_the_same(tmp_path):
    """One run in both forms, with groups, a failed request, and names that Latin has no letters for."""
    lines = ["RUN\tSteps\tsteps\t1790000000000\t \t3.12.0"]
    for n in range(50):
        begin = 1790000000000 + 100 * n
        lines += [f"USER\tReader\tSTART\t{begin}", f"REQUEST\tStories,頁\tÜbersicht\t{begin}\t{begin + n}\tOK\t "]
        lines += [f"REQUEST\t\tHome\t{begin + 50}\t{begin + 60}\tKO\tstatus 404", f"GROUP\tStories\t{begin}\t{begin}"]
        lines += [f"ERROR\tno such key\t{begin}", f"USER\tReader\tEND\t{begin + 5000}"]
    text, log = tmp_path / "text.log", tmp_path / "simulation.log"
    text.write_text("\n".join([*lines, ""]))
    log.write_bytes(load_files.binary_log(lines))
    expected, run = gatling(text), gatling(log)
    pd.testing.assert_frame_equal(run.requests, expected.requests)
    pd.testing.assert_frame_equal(run.users, expected.users)
    assert run.notes == expected.notes
    assert set(run.requests["interaction"]) == {"Stories/頁/Übersicht", "Home"}
    log.write_bytes(load_files.binary_log(lines, version="3.16.0"))
    assert any("Gatling '3.16.0' has the form of those up to 3.15" in note for note in gatling(log).notes)


def test_a_packed_log_that_is_cut_names_the_byte_of_the_unpacked_one(tmp_path):
    begin = 1790000000000
    lines = [f"RUN\tSteps\tsteps\t{begin}\t \t3.15.1", f"REQUEST\t\tHome\t{begin}\t{begin + 9}\tOK\t "]
    kept, packed = len(load_files.binary_log(lines[:1])), tmp_path / "simulation.log.gz"
    packed.write_bytes(gzip.compress(load_files.binary_log(lines)[:-1]))
    with pytest.raises(DataError, match=f"byte {kept} of the unpacked file, .* head -c {kept} of the unpacked file$"):
        gatling(packed)


def test_a_binary_log_that_is_cut_or_wrong_names_the_byte(tmp_path):
    """Each cut either falls between two records, or is refused with the length of what is whole."""
    begin = 1790000000000
    lines = [f"RUN\tSteps\tsteps\t{begin}\t \t3.15.1", f"REQUEST\t\tHome\t{begin}\t{begin + 9}\tOK\t "]
    lines += [f"REQUEST\t\tHome\t{begin + 50}\t{begin + 60}\tOK\t "]
    whole, log = load_files.binary_log(lines), tmp_path / "simulation.log"
    shorter = [len(load_files.binary_log(lines[:n])) for n in (1, 2, 3)]
    for n in range(1, len(whole)):
        log.write_bytes(whole[:n])
        kept = max((k for k in shorter if k <= n), default=0)
        if n == shorter[1]:
            assert len(gatling(log).requests) == 1
        else:
            said = "no requests" if n == shorter[0] else f"begins at byte {kept}, .* head -c {kept}$"
            said = said if kept else "ends within its first record, .* nothing of it can be used"
            with pytest.raises(DataError, match=f"simulation.log: .*{said}"):
                gatling(log)
    for at, byte, said in (
        (shorter[1], 9, f"byte {shorter[1]} is a record of kind 9, expected 1 to 4"),
        (shorter[1] + 4, 200, f"byte {shorter[1] + 1} is a length of 200|ends within the record"),
        (shorter[1] + 8, 7, f"byte {shorter[1] + 5} is a string "),
        (shorter[1] + 16, 49, f"record at byte {shorter[1]}: end is {begin + 49}, expected at least the start"),
        (shorter[1] + 17, 2, f"byte {shorter[1] + 17} is 2, expected 0 or 1"),
    ):
        log.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
        with pytest.raises(DataError, match=said):
            gatling(log)


BAD = [
    (k6, "metric_name,timestamp,metric_value\nhttp_req_duration,yesterday,3\n", r":2: timestamp is 'yesterday'"),
    (k6, "metric_name,timestamp,metric_value\nvus,1790000000,1\nhttp_req_duration,1790000000,-3\n", r":3: metric_value is"),
    (k6, "metric_name,timestamp,metric_value\nvus,1790000000,1\n", r"no points of http_req_duration"),
    (k6, "time,value\n1,2\n", r":1: no header with metric_name"),
    (k6, '{"type":"Point","metric":"vus","data":{"time":"2026-11-23T10:00:00","value":1}}\n', r":1: time is '2026.*its zone"),
    (k6, '{"type":"Point","metric":"vus","data":{"value":1}}\n', r":1: no point of k6 \('time' is missing"),
    (k6, '{"type":"Metric","metric":"vus"}\n{"type":\n', r":2: not JSON"),
    (locust, "timestamp,start_time,name,response_time\n1,1,a,1\n", r":1: neither Locust's history nor a line per request"),
    (locust, "timestamp,name,response_time\n1790000000,a,fast\n", r":2: response_time is 'fast'"),
    (locust, "timestamp,name,response_time,success\n1790000000,a,1,perhaps\n", r":2: success is 'perhaps'"),
    (locust, "timestamp,name,response_time\n1790000000,,1\n", r":2: name is ''"),
    (gatling, "REQUEST\t\tHome\t1790000000000\t1790000000001\tOK\t \n", r": no line RUN"),
    (gatling, "RUN\tx\nREQUEST\t\tHome\t1790000000002\t1790000000001\tOK\t \n", r":2: end is 1790000000001, expected at least"),
    (gatling, "RUN\tx\nREQUEST\t7\t\tHome\t1790000000002\t1790000000003\tOK\t \n", r":2: REQUEST with 7 fields"),
    (gatling, "RUN\tx\nUSER\ts\tSTART\tnow\n", r":2: time is 'now', expected milliseconds"),
    (gatling, "RUN\tx\nHELLO\n", r":2: 'HELLO', expected RUN, USER"),
]  # fmt: skip


@pytest.mark.parametrize(("reader", "content", "message"), BAD)
def test_what_cannot_be_true_is_an_error_with_its_place(tmp_path, reader, content, message):
    (tmp_path / "bad").write_text(content)
    with pytest.raises(DataError, match="bad" + message if message.startswith(":") else message):
        reader(tmp_path / "bad")


@pytest.mark.parametrize("every_s", [1, 3])
def test_sums_that_workers_report_are_those_of_the_time_between(tmp_path, every_s):
    """A distributed Locust repeats its sums until the next report. Ten requests a second from 0 to 26 s and from 56 s
    to the end, and none between: no part of a load has fewer, and no request is from the pause."""
    lines, done, reported = (
        ["Timestamp,User Count,Name,Total Request Count,Total Failure Count,Total Average Response Time"],
        0,
        0,
    )
    for second in range(83):
        busy = second <= 26 or second >= 56
        reported = done if second % every_s == 0 else reported
        lines.append(f"{1790000000 + second},{5 * busy},Aggregated,{reported},0,{40 if reported else 0}")
        done += 10 * busy
    (tmp_path / "h.csv").write_text("\n".join([*lines, ""]))
    run = locust(tmp_path / "h.csv")
    t, sums = run.totals["t_s"].to_numpy() - 1790000000, run.totals["done"].to_numpy()
    first, second = plateaus(run.users)
    for part, last in ((first, 24), (second, 81)):
        begin, end = part.start_s - 1790000000, min(part.end_s - 1790000000, last)
        for length in (10, 14, 20):
            edges = np.arange(np.ceil(begin), end - length + 1)
            assert len(edges)
            per_s = np.interp(edges + length, t, sums) - np.interp(edges, t, sums)
            assert per_s / length == pytest.approx(np.full(len(edges), 10.0), rel=0.01)
    assert np.interp(50, t, sums) == np.interp(30, t, sums)
    assert second.end_s <= 1790000082
    assert any("within 3 s requests ended" in note for note in run.notes) == (every_s == 3)


def history(tmp_path, sums):
    """Read of a history with these sums: {second: requests until then}."""
    header = "Timestamp,User Count,Name,Total Request Count,Total Failure Count,Total Average Response Time"
    lines = [f"{1790000000 + t},5,Aggregated,{done},0,{40 if done else 0}" for t, done in sums.items()]
    (tmp_path / "h.csv").write_text("\n".join([header, *lines, ""]))
    return locust(tmp_path / "h.csv")


def test_workers_that_report_in_different_seconds_are_said_to_be_there(tmp_path):
    """Two of 10 requests a second each, 3 s from report to report, one of them a second later: the median of the
    changes is a second, and windows of 10 s read 18 to 21 a second."""
    run = history(tmp_path, {t: 10 * (t // 3 * 3) + 10 * (max(t - 1, 0) // 3 * 3) for t in range(60)})
    assert len(run.totals) == 60
    assert any("perhaps Locust's workers report in different seconds" in note for note in run.notes)


def test_no_workers_are_guessed_where_requests_or_lines_are_rare(tmp_path):
    """One process with 0.4 requests a second at random, and a history of a line each 5 s (CSV_STATS_INTERVAL_SEC)."""
    ends = np.cumsum(np.random.default_rng(4).exponential(2.5, 200))
    rare = history(tmp_path, {t: int((ends <= t).sum()) for t in range(400)})
    assert len(rare.totals) == 400
    seldom = history(tmp_path, {t: 20 * t for t in range(0, 120, 5)})
    assert len(seldom.totals) == 24
    assert any("within 5 s requests ended (a line of the history each 5 s)" in note for note in seldom.notes)
    assert not any("workers" in note for note in (*rare.notes, *seldom.notes))


def test_a_history_whose_sums_fall_is_refused(tmp_path):
    good = load_files.locust_history(tmp_path / "h.csv").read_text().splitlines()
    fields = good[20].split(",")
    fields[7] = "1"
    (tmp_path / "h.csv").write_text("\n".join([*good[:20], ",".join(fields), *good[21:], ""]))
    with pytest.raises(
        DataError, match=r"h.csv:21: Total Request Count is 1, expected no less .*without --reset-stats"
    ):
        locust(tmp_path / "h.csv")
