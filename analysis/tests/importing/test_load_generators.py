# ruff: noqa: E501 (tables: a line per case)
"""`import --k6`, `--locust`, `--gatling`: what those generators wrote, from a known truth and as they left it."""

import csv
import gzip
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import load_files
import numpy as np
import pandas as pd
import pytest
import zstandard
from ntier_analysis.errors import DataError
from ntier_analysis.importing import Run, import_runs, runs
from ntier_analysis.importing.generator import load_of, parts_of
from ntier_analysis.importing.loads import plateaus, read_loads
from ntier_analysis.importing.trials import MANY_NAMES
from ntier_analysis.parsers.gatling import gatling
from ntier_analysis.parsers.generated import steps
from ntier_analysis.parsers.k6 import k6
from ntier_analysis.parsers.locust import locust
from ntier_analysis.store.schema import TABLES
from ntier_analysis.store.tables import read_table, to_table
from ntier_analysis.validity.imported import WORKERS
from ntier_analysis.verdict.store import verdicts

DATA = Path(__file__).parent / "data" / "loadtests"
WRITERS = {"k6": load_files.k6_csv, "gatling": load_files.simulation_log, "locust": load_files.locust_history}


@pytest.fixture(scope="module")
def scrapes(tmp_path_factory) -> Path:
    return load_files.openmetrics(tmp_path_factory.mktemp("prometheus") / "dump.txt")


@pytest.mark.parametrize("kind", WRITERS)
def test_a_test_of_several_loads_gets_the_right_verdict(scrapes, tmp_path, kind):
    path = WRITERS[kind](tmp_path / kind)
    notices = import_runs([Run(**{kind: (path,)}, prometheus=str(scrapes), topology="1/1/1/1M")], tmp_path / "store")
    assert any("3 plateaus of the users: 200 users" in text for text in notices)
    trials = read_table(tmp_path / "store", "trials")
    assert trials["trial"].tolist() == ["u00200.r01", "u01000.r01", "u01400.r01"]
    assert trials["valid"].all(), notices
    assert trials["think_time_s"].to_numpy() == pytest.approx([7.0] * 3, rel=0.02)
    assert "the think time (7" in trials["not_validated"].iloc[0]
    verdict = verdicts(tmp_path / "store", [])[0]
    assert verdict.verdict == "single"
    assert [(b.tier, b.resource, b.nodes) for b in verdict.bottlenecks] == [("db", "cpu", ("db1",))]
    assert verdict.max_throughput.value == pytest.approx(100, rel=0.02)
    assert any("N/X - R at the lowest load" in text for text in verdict.evidence)


def test_parts_that_a_file_names_are_the_trials(scrapes, tmp_path):
    path = load_files.k6_csv(tmp_path / "run.csv")
    loads = tmp_path / "loads.csv"
    loads.write_text("start,end,users,trial\n5,50,200,low\n1005,1050,1000,\n2026-09-21T14:46:45Z,1790002050,1400,top\n")
    run = Run(k6=(path,), prometheus=str(scrapes), topology="1/1/1/1M", loads=loads, think_time_s=7.0)
    import_runs([run], tmp_path / "store")
    trials = read_table(tmp_path / "store", "trials")
    assert trials["trial"].tolist() == ["low", "u01000.r01", "top"]
    assert (trials["run_end_s"] - trials["run_start_s"]).to_numpy() == pytest.approx([45, 45, 45], abs=1)
    assert not trials["not_validated"].str.contains("the think time").any()


@pytest.mark.parametrize(
    ("row", "empty"), [("2005,2080,1400", True), ("1990,2060,1400", False), ("2000,2063,1400", False)]
)
def test_a_load_of_whose_time_there_are_no_requests_is_refused(scrapes, tmp_path, row, empty):
    """Its throughput would be too low by a quarter; the requests end before 2060 s."""
    path, loads = load_files.k6_csv(tmp_path / "run.csv"), tmp_path / "loads.csv"
    loads.write_text(f"start,end,users\n1005,1050,1000\n{row}\n")
    run = Run(k6=(path,), prometheus=str(scrapes), topology="1/1/1/1M", loads=loads, think_time_s=7.0)
    if not empty:
        import_runs([run], tmp_path / "store")
        return
    with pytest.raises(
        DataError, match=r"has requests from .* to 14:47:39, the load of 1400 is from .*14:46:45 UTC to 14:48:00"
    ):
        import_runs([run], tmp_path / "store")


@pytest.mark.parametrize(("users", "told"), [(1000, False), (1400, True)])
def test_users_who_are_not_those_of_the_file_are_told(scrapes, tmp_path, users, told):
    path, loads = load_files.k6_csv(tmp_path / "run.csv"), tmp_path / "loads.csv"
    loads.write_text(f"start,end,users\n1005,1050,{users}\n")
    run = Run(k6=(path,), prometheus=str(scrapes), topology="1/1/1/1M", loads=loads, think_time_s=7.0)
    notices = import_runs([run], tmp_path / "store")
    said = "1400 users told from 2026-09-21 14:30:05 UTC to 14:30:50, but it has 1000 on average then"
    assert any(said in text for text in notices) == told, notices


def test_without_a_generator_the_file_of_loads_tells_the_figures(scrapes, tmp_path):
    loads = tmp_path / "loads.csv"
    loads.write_text(
        "start,end,users,throughput_per_s,response_time_mean_ms\n"
        "1790000000,1790000060,200,28.55,5\n1790001000,1790001060,1000,100,3000\n1790002000,1790002060,1400,100,7000\n"
    )
    run = Run(prometheus=str(scrapes), topology="1/1/1/1M", loads=loads, think_time_s=7.0)
    import_runs([run], tmp_path / "store")
    verdict = verdicts(tmp_path / "store", [])[0]
    assert (verdict.verdict, verdict.bottlenecks[0].nodes) == ("single", ("db1",))
    loads.write_text("start,end,users\n1790000000,1790000060,200\n")
    with pytest.raises(DataError, match="each load needs throughput_per_s and response_time_mean_ms"):
        import_runs([run], tmp_path / "other")


def test_users_who_do_not_think_are_workers(scrapes, tmp_path):
    path = tmp_path / "run.csv"
    lines = [load_files.K6_HEADER, *(f"vus,{1_790_000_000 + n},2,,,," for n in range(31))]
    lines += [f"http_req_duration,{1_790_000_000_000 + 50 * n},100,,true,Home,200" for n in range(600)]
    path.write_text("\n".join([*lines, ""]))
    notices = import_runs([Run(k6=(path,), prometheus=str(scrapes), topology="1/1/1/1M")], tmp_path / "store")
    assert any("users do not think" in text for text in notices)
    assert read_table(tmp_path / "store", "trials")["load_model"].tolist() == ["work"]


def test_who_brings_a_jtl_of_workers_is_told_the_option_for_them(scrapes, tmp_path):
    """A JTL does not tell the think time: with the 7 s that are assumed, two threads that never pause look like 142."""
    path = tmp_path / "run.jtl"
    lines = [f"{1_790_000_000_000 + 50 * n},100,Home,true,2" for n in range(600)]
    path.write_text("\n".join(["timeStamp,elapsed,label,success,allThreads", *lines, ""]))
    run = Run(jtl=(path,), prometheus=str(scrapes), topology="1/1/1/1M")
    for think_s, reason in ((None, "law"), (0.0, "no_think_time")):
        notices = import_runs([replace(run, think_time_s=think_s, notices=[])], tmp_path / reason)
        assert any(f"INVALID ({reason})" in text and WORKERS in text for text in notices)
    import_runs([replace(run, load_model="work", notices=[])], tmp_path / "work")
    assert read_table(tmp_path / "work", "trials")["valid"].all()


def test_redirects_of_a_page_are_no_pages(scrapes, tmp_path):
    """JMeter writes both beside the page that they are part of."""
    path, lines = tmp_path / "run.jtl", ["timeStamp,elapsed,label,success,allThreads,threadName"]
    for n in range(600):
        t, rest = 1_790_000_000_000 + 100 * n, f"true,50,Users 1-{n % 50}"
        lines += [f"{t},60,Home,{rest}", f"{t},20,Home-0,{rest}", f"{t + 20},40,Home-1,{rest}"]
    path.write_text("\n".join([*lines, ""]))
    run = Run(jtl=(path,), prometheus=str(scrapes), topology="1/1/1/1M", load_model="work")
    notices = import_runs([run], tmp_path / "store")
    assert any("1200 samples within another one of the same thread left out" in text for text in notices)
    assert read_table(tmp_path / "store", "trials")["throughput_per_s"].iloc[0] == pytest.approx(10, rel=0.01)
    assert set(read_table(tmp_path / "store", "interactions")["interaction"]) == {"Home"}


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


def test_arrivals_at_a_rate_have_a_backlog(scrapes, tmp_path):
    """30/s arrive for 60 s, 20/s are served."""
    path = tmp_path / "requests.csv"
    rows = [f"{1_790_000_000 + n / 30:.4f},Home,{1000 * max(0.05, (n + 1) / 20 - n / 30):.1f}" for n in range(1800)]
    path.write_text("\n".join(["start_time,name,response_time", *rows, ""]))
    run = Run(locust=(path,), prometheus=str(scrapes), topology="1/1/1/1M", users=30, load_model="open")
    import_runs([run], tmp_path / "store")
    trial = read_table(tmp_path / "store", "trials").iloc[0]
    assert trial["offered_per_s"] == pytest.approx(30, rel=0.02)
    assert trial["backlog_growth_per_s"] == pytest.approx(10, rel=0.05)


def test_clients_think_as_often_as_they_ask(tmp_path):
    """1,000 requests after 1 s each, 10 after 10 s each: 1,100 s in 1,010 requests."""
    paths = []
    for think_s, n in ((1, 1000), (10, 10)):
        rows = [f"http_req_duration,{1_790_000_000_000 + 50 * i},100,,true,Home,200" for i in range(n)]
        rows += [f"iteration_duration,{1_790_000_000_000 + 50 * i},{1000 * think_s + 100},,,," for i in range(n)]
        paths.append(tmp_path / f"{n}.csv")
        paths[-1].write_text("\n".join([load_files.K6_HEADER, *rows, ""]))
    assert load_of(Run(k6=tuple(paths))).think_s == pytest.approx(1100 / 1010)


@pytest.mark.parametrize("hosts", [["10.0.0.5", "10.0.0.6"], ["10.0.0.5", "10.0.0.5"]])
def test_each_jmeter_of_a_distributed_test_has_its_own_threads(tmp_path, hosts):
    """One file, in which `allThreads` counts those of the JMeter that wrote the line."""
    lines = [f"{1_790_000_000_000 + 50 * n},100,Home,true,50,{hosts[n % 2]}" for n in range(1200)]
    (tmp_path / "run.jtl").write_text("\n".join(["timeStamp,elapsed,label,success,allThreads,Hostname", *lines, ""]))
    run = Run(jtl=(tmp_path / "run.jtl",))
    load = load_of(run)
    (part,) = parts_of(run, load)
    assert part.users == 50 * len({*hosts})
    assert load.users["users"].iloc[-1] == part.users
    assert load.done["client"].nunique() == len({*hosts})
    assert any("2 JMeters (10.0.0.5, 10.0.0.6)" in text for text in run.notices) == (len({*hosts}) == 2)


@pytest.mark.parametrize("files", [1, 2])
@pytest.mark.parametrize(
    ("begins", "loads"),
    [
        ((0, 100), [(50, 60), (50, 60)]),  # one after the other
        ((0, 60), [(50, 60), (50, 60)]),  # the first ends in the same second
        ((0, 60.05), [(50, 120)]),  # when the last request of the first is done
        ((0, 30), [(50, 30), (100, 30), (50, 30)]),
    ],
)
def test_a_jmeter_that_has_ended_has_no_users(tmp_path, begins, loads, files):
    """Two JMeters of 50 threads for 60 s each, in one JTL or two."""
    lines = [
        [f"{1_790_000_000_000 + round(1000 * begin) + 50 * n},100,Home,true,50,{host}" for n in range(1200)]
        for host, begin in zip(("a", "b"), begins, strict=True)
    ]
    paths = tuple(tmp_path / f"{n}.jtl" for n in range(files))
    for path, own in zip(paths, lines if files == 2 else [lines[0] + lines[1]], strict=True):
        path.write_text("\n".join(["timeStamp,elapsed,label,success,allThreads,Hostname", *own, ""]))
    run = Run(jtl=paths, ramp_up_s=0.0)
    parts = parts_of(run, load_of(run))
    assert [(p.users, round(p.end_s - p.start_s)) for p in parts] == [(n, pytest.approx(s, abs=1)) for n, s in loads]


def _client_of(kind: str, path: Path, begin_s: float, *, whole: bool) -> Path:
    """50 users for 60 s. Only Gatling's file says that they leave, and only if it is `whole`."""
    at = [1_790_000_000_000 + round(1000 * begin_s) + 50 * n for n in range(1200)]
    lines = {
        "k6": [load_files.K6_HEADER, *(f"vus,{t},50,,,," for t in at[::20])]
        + [f"http_req_duration,{t},40,,true,Home,200" for t in at],
        "locust": ["name,timestamp,response_time,user_count", *(f"Home,{t / 1000:.3f},40,50" for t in at)],
        "gatling": ["RUN\tSteps\tsteps\t1790000000000\t \t3.10.5", *[f"USER\tReader\tSTART\t{at[0]}"] * 50]
        + [f"REQUEST\t\tHome\t{t - 40}\t{t}\tOK\t " for t in at]
        + [f"USER\tReader\tEND\t{at[-1]}"] * (50 * whole),
    }
    path.write_text("\n".join([*lines[kind], ""]))
    return path


@pytest.mark.parametrize("kind", ["k6", "locust", "gatling"])
@pytest.mark.parametrize(
    ("begins", "loads"),
    [
        ((0, 100), [(50, 60), (50, 60)]),  # one after the other
        ((0, 30), [(50, 30), (100, 30), (50, 30)]),
        ((0, 0.01), [(100, 60)]),
    ],
)
def test_a_client_that_has_ended_has_no_users(tmp_path, kind, begins, loads):
    paths = tuple(_client_of(kind, tmp_path / f"{n}", begin_s, whole=n > 0) for n, begin_s in enumerate(begins))
    run = Run(**{kind: paths}, ramp_up_s=0.0)
    parts = parts_of(run, load_of(run))
    # vus is written once a second
    assert [(p.users, round(p.end_s - p.start_s)) for p in parts] == [(n, pytest.approx(s, abs=1)) for n, s in loads]


def test_the_threads_of_a_jmeter_last_as_long_as_its_longest_pause(tmp_path):
    """Of two JMeters at the same time one has few samples: after its last one its user still thinks."""
    lines = [f"{1_790_000_000_000 + 50 * n},100,Home,true,50,a" for n in range(1200)]
    lines += [f"{1_790_000_000_000 + at},100,Home,true,1,b" for at in (0, 20_000, 45_000)]
    (tmp_path / "run.jtl").write_text("\n".join(["timeStamp,elapsed,label,success,allThreads,Hostname", *lines, ""]))
    load = load_of(Run(jtl=(tmp_path / "run.jtl",)))
    assert load.users["users"].iloc[-1] == 51
    (tmp_path / "run.jtl").write_text(
        "\n".join(["timeStamp,elapsed,label,success,allThreads,Hostname", *lines[:-1], ""])
    )
    users = load_of(Run(jtl=(tmp_path / "run.jtl",))).users.set_index("t_s")["users"]
    ended = 1_790_000_000 + 20.1 + 19.9
    assert (users[users.index < ended - 0.01].min(), users.index[users == 51].max()) == (
        51,
        pytest.approx(39.95 + 1_790_000_000),
    )
    assert set(users[users.index > ended + 0.01]) == {50}


def test_the_page_tells_from_how_many_names_on_an_import_warns():
    page = (Path(__file__).parents[3] / "docs/how-to/imports.md").read_text()
    assert f"The import warns if there are more than {MANY_NAMES} names" in page


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


def test_trials_are_put_together_at_once_and_as_one_by_one(scrapes, tmp_path, monkeypatch):
    """Adding them one by one would copy the whole sweep for each."""
    begins = [1000 * load + after for load in range(3) for after in (2, 14, 26, 38)]
    rows = [f"{at},{at + 11},{(200, 1000, 1400)[at // 1000]},t{at}" for at in begins]
    (tmp_path / "loads.csv").write_text("\n".join(["start,end,users,trial", *rows, ""]))
    path = load_files.k6_csv(tmp_path / "run.csv")
    trials = runs._trials(Run(k6=(path,), prometheus=str(scrapes), topology="1/1/1/1M", loads=tmp_path / "loads.csv"))
    nothing = {name: schema.empty_table().to_pandas() for name, schema in TABLES.items()}
    single = nothing
    for tables in trials:
        single = runs._merged("s", single, [tables], tmp_path, replace=False)
    joined, concat = [], pd.concat
    monkeypatch.setattr(pd, "concat", lambda *given, **options: joined.append(1) or concat(*given, **options))
    whole = runs._merged("s", nothing, trials, tmp_path, replace=False)
    assert len(joined) <= len(TABLES)
    assert len(whole["trials"]) == 12
    for name in ("trials", "samples", "nodes", "interactions", "checks"):
        assert to_table(name, single[name]).equals(to_table(name, whole[name]))


def test_of_two_runs_of_one_name_the_later_counts_if_it_may(scrapes, tmp_path):
    path = load_files.k6_csv(tmp_path / "run.csv")
    two = []
    for end in (50, 40):
        (tmp_path / f"{end}.csv").write_text(f"start,end,users,trial\n5,{end},200,low\n")
        two.append(Run(k6=(path,), prometheus=str(scrapes), topology="1/1/1/1M", loads=tmp_path / f"{end}.csv"))
    with pytest.raises(DataError, match=r"trial low of sweep .* is already stored with other contents"):
        import_runs(two, tmp_path / "store")
    import_runs(two, tmp_path / "store", replace=True)
    trials = read_table(tmp_path / "store", "trials")
    assert (trials["run_end_s"] - trials["run_start_s"]).tolist() == pytest.approx([35.0], abs=0.1)


# ---- plateaus ------------------------------------------------------------------------------------------------------


def of_seconds(users: list[int]) -> pd.DataFrame:
    return steps(1000.0 + np.arange(len(users) + 1), [*users, users[-1]])


def test_ramps_and_short_stays_are_no_plateaus():
    users = [*range(20), *[20] * 30, *range(21, 40), *[40] * 9, *[60] * 20]
    stays = plateaus(of_seconds(users))
    assert [(p.users, p.start_s, p.end_s) for p in stays] == [(20, 1023.0, 1050.0), (60, 1080.0, 1098.0)]


def test_a_slow_ramp_has_no_plateau():
    assert plateaus(of_seconds([500 + n // 5 for n in range(500)])) == []


def test_a_user_who_is_replaced_does_not_end_a_plateau():
    users = [100] * 60
    users[30] = 99
    assert [p.users for p in plateaus(of_seconds(users), ramp_up_s=0, ramp_down_s=5)] == [100]
    users[30:34] = [99] * 4
    assert [(p.users, p.end_s - p.start_s) for p in plateaus(of_seconds(users), ramp_up_s=0)] == [(100, 30), (100, 26)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("start,users\n1,2\n", r":1: column 'end' is missing; allowed are start, end, users"),
        ("start,end,users,colour\n1,2,3,4\n", r":1: column 'colour'; allowed are"),
        ("start,end,users\n1,2\n", r":2: another number of fields"),
        ("start,end,users\n2,1,3\n", r":2: end is '1', expected more than start, '2'"),
        ("start,end,users\n1,2,0\n", r":2: users is '0', expected a whole number from 1"),
        ("start,end,users\n1,2,\n", r":2: users is empty"),
        ("start,end,users\nnoon,2,3\n", r":2: start is 'noon', expected seconds since 1970"),
        ("start,end,users,errors\n1,2,3,-1\n", r":2: errors is '-1', expected a number >= 0"),
        ("start,end,users\n", r": no loads"),
    ],
)
def test_bad_loads_are_errors(tmp_path, content, message):
    (tmp_path / "loads.csv").write_text(content)
    with pytest.raises(DataError, match=r"loads.csv" + message):
        read_loads(tmp_path / "loads.csv", 1_790_000_000.0)


# ---- files as the generators left them (data/loadtests/README.md) --------------------------------------------------


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


@pytest.mark.parametrize("kind", ["k6", "gatling"])
def test_a_client_is_not_counted_twice(scrapes, tmp_path, kind):
    """It would have twice the users and twice the throughput, which fit each other."""
    path = WRITERS[kind](tmp_path / "one")
    (tmp_path / "copy").write_bytes(path.read_bytes())
    run = Run(**{kind: (path, tmp_path / "copy")}, prometheus=str(scrapes), topology="1/1/1/1M")
    with pytest.raises(DataError, match=r"copy: the same requests as .*one; expected a file of another client"):
        import_runs([run], tmp_path / "store")


def test_a_jmeter_is_not_counted_twice(scrapes, tmp_path):
    lines = [f"{t},50,Home,true,5" for t in range(1790000000000, 1790000060000, 500)]
    path = tmp_path / "run.jtl"
    path.write_text("\n".join(["timeStamp,elapsed,label,success,allThreads", *lines, ""]))
    with pytest.raises(DataError, match="the same requests as"):
        import_runs([Run(jtl=(path, path), prometheus=str(scrapes), topology="1/1/1/1M")], tmp_path / "store")


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


@pytest.mark.parametrize(("rate", "vus", "sleep_ms"), [(10, 50, 0), (10, 50, 400), (2, 100, 0)])
def test_k6_users_who_wait_for_arrivals_are_no_users(scrapes, tmp_path, rate, vus, sleep_ms):
    """constant-arrival-rate for 60 s: all users that were allocated count as active, however few are needed."""
    rows = [load_files.K6_HEADER, *(f"vus,{1790000000 + n},{vus},,,," for n in range(60))]
    for n in range(60 * rate):
        t = 1790000000500 + 1000 * n // rate
        rows += [f"{metric},{t},{ms},,true,Home,200" for metric, ms in
                 (("http_req_duration", 50), ("http_req_blocked", 0), ("iteration_duration", 50 + sleep_ms))]  # fmt: skip
    (tmp_path / "k6.csv").write_text("\n".join([*rows, ""]))
    run = Run(k6=(tmp_path / "k6.csv",), prometheus=str(scrapes), topology="1/1/1/1M")
    with pytest.raises(DataError, match=r"k6.csv: .* no iteration for \d+ %.* give --load-model open, and --loads or"):
        import_runs([run], tmp_path / "store")
    import_runs([replace(run, load_model="open", users=rate, notices=[])], tmp_path / "store")
    assert read_table(tmp_path / "store", "trials")["load_model"].tolist() == ["open"]


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


def test_a_history_whose_sums_fall_is_refused(tmp_path):
    good = load_files.locust_history(tmp_path / "h.csv").read_text().splitlines()
    fields = good[20].split(",")
    fields[7] = "1"
    (tmp_path / "h.csv").write_text("\n".join([*good[:20], ",".join(fields), *good[21:], ""]))
    with pytest.raises(
        DataError, match=r"h.csv:21: Total Request Count is 1, expected no less .*without --reset-stats"
    ):
        locust(tmp_path / "h.csv")


def test_tests_of_one_load_each_are_one_sweep(scrapes, tmp_path):
    """Each measures its own think time, which differs a little."""
    whole = load_files.k6_csv(tmp_path / "all.csv").read_text().splitlines()
    for number, begin in enumerate((1_790_000_000, 1_790_001_000)):
        mine = [line for line in whole[1:] if begin <= float(line.split(",")[1]) / 1000 < begin + 61]
        path = tmp_path / f"{number}.csv"
        path.write_text("\n".join([whole[0], *mine, ""]))
        import_runs([Run(k6=(path,), prometheus=str(scrapes), topology="1/1/1/1M")], tmp_path / "store")
    trials = read_table(tmp_path / "store", "trials")
    assert trials["trial"].tolist() == ["u00200.r01", "u01000.r01"]
    assert trials["think_time_s"].nunique() == 2
