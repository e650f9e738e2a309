# ruff: noqa: E501 (tables: a line per case)
"""`import --k6`, `--locust`, `--gatling`: what those generators wrote, from a known truth."""

from dataclasses import replace
from pathlib import Path

import load_files
import numpy as np
import pandas as pd
import pytest
from ntier_analysis.errors import DataError
from ntier_analysis.importing import Run, import_runs, runs
from ntier_analysis.importing.generator import load_of, parts_of
from ntier_analysis.importing.loads import plateaus, read_loads
from ntier_analysis.importing.trials import MANY_NAMES
from ntier_analysis.parsers.generated import steps
from ntier_analysis.store.schema import TABLES
from ntier_analysis.store.tables import read_table, to_table
from ntier_analysis.validity.imported import WORKERS
from ntier_analysis.verdict.store import verdicts

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


@pytest.mark.parametrize(("stays_s", "found"), [(0.06, []), (0.13, []), (0.099, [1]), (0.2, [2])])
def test_arrivals_that_each_stay_for_a_moment_are_no_plateau_of_whole_users(stays_s, found):
    """Ten arrive each second: 0.6 and 1.3 users on average would round to one, 0.99 and 2 are what they seem."""
    begins = 1000 + np.arange(300) / 10
    changes = sorted([(t, 1) for t in begins] + [(t + stays_s, -1) for t in begins])
    users = steps([t for t, _ in changes], np.cumsum([n for _, n in changes]))
    assert [p.users for p in plateaus(users)] == found


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


def test_users_whom_k6_paces_think_as_long_as_it_makes_them_wait(scrapes, tmp_path):
    """minIterationDuration of 1 s: k6 waits after the iteration whose length it writes (50 ms, and a sleep as long)."""
    rows = [load_files.K6_HEADER, *(f"vus,{1790000000 + n},20,,,," for n in range(60))]
    for n in range(60 * 20):
        t = 1790000000100 + 50 * n
        rows += [f"{metric},{t},{ms},,true,Home,200" for metric, ms in
                 (("http_req_duration", 50), ("http_req_blocked", 0), ("iteration_duration", 100))]  # fmt: skip
    (tmp_path / "k6.csv").write_text("\n".join([*rows, ""]))
    run = Run(k6=(tmp_path / "k6.csv",), prometheus=str(scrapes), topology="1/1/1/1M")
    with pytest.raises(DataError, match=r"else --load-model work, or closed \(minIterationDuration .* --think-time"):
        import_runs([run], tmp_path / "store")
    import_runs([replace(run, load_model="closed", notices=[])], tmp_path / "store")
    trials = read_table(tmp_path / "store", "trials")
    assert trials["think_time_s"].tolist() == pytest.approx([0.95], rel=0.02)
    assert "N/X - R" in trials["not_validated"].iloc[0]


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
