"""`ntier-analysis import --jtl ... --sa ...`: what JMeter and sysstat users already have."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import orjson
import pandas as pd
import pytest
import zstandard
from ntier_analysis.contracts import Outcome
from ntier_analysis.errors import DataError
from ntier_analysis.importing import Run, import_runs
from ntier_analysis.importing.command import run as command
from ntier_analysis.importing.nodes import _missing
from ntier_analysis.importing.run import read_list
from ntier_analysis.importing.sysstat_files import NodeFile, read_node
from ntier_analysis.store.tables import read_table
from ntier_analysis.validity.imported import Imported, topology
from ntier_analysis.verdict.store import verdicts
from synthetic import Truth, write_sweep

DATA = Path(__file__).parent / "data"
JTL = DATA / "u01000.jtl.zst"
PROGRAM = Path(sys.executable).with_name("ntier-analysis")
TRUTH = Truth({"web": 0.002, "app": 0.005, "middleware": 0.004, "db": 0.01}, cores=1.0)  # 100/s by the db


@pytest.fixture(scope="module")
def raw(tmp_path_factory) -> Path:
    """Users at scale 1, each node a machine of one core: JTL and sysstat's JSON of known truth."""
    return write_sweep(tmp_path_factory.mktemp("raw"), TRUTH, [300, 500, 900, 1000, 1100], scale=1.0)


def files_of(raw: Path, users: int) -> tuple[list[Path], list[NodeFile]]:
    folder = raw / f"u{users:05d}.r01"
    nodes = [f"{node}={folder}/nodes/{node}/sysstat.json.zst" for node in ("web1", "app1", "middleware1", "db1")]
    return sorted(folder.glob("clients/*/interactions.jtl.csv.zst")), [NodeFile.parse(text) for text in nodes]


def a_run(raw: Path, users: int, **options) -> Run:
    jtl, sa = files_of(raw, users)
    common = {"topology": "1/1/1/1M", "users": users, "ramp_up_s": 20.0, "ramp_down_s": 5.0}
    return Run(**({"jtl": tuple(jtl), "sa": tuple(sa)} | common | options))


def test_runs_of_known_truth_get_the_right_verdict(raw, tmp_path):
    for users in (300, 500, 900):  # one by one, as they come
        import_runs([a_run(raw, users)], tmp_path)
    notices = import_runs([a_run(raw, users) for users in (1000, 1100)], tmp_path)
    assert notices[-1].startswith("1-1-1-1M.imported: 5 trials")
    verdict = verdicts(tmp_path, [])[0]
    assert verdict.verdict == "single"
    assert [(b.tier, b.resource, b.nodes) for b in verdict.bottlenecks] == [("db", "cpu", ("db1",))]
    assert verdict.max_throughput.value == pytest.approx(100, rel=0.05)
    assert [v.verdict for _, v in verdict.trials] == ["none", "none", "single", "single", "single"]
    assert any("utilization law: db1 needs 10." in text or "db1 needs 9." in text for text in verdict.evidence)


def test_that_parts_may_be_counted_is_said_where_threads_have_no_names(raw, tmp_path):
    """Each page with its redirect, `ViewStory-0`: twice the interactions, half the response time."""
    (file,), _ = files_of(raw, 300)
    pages = pd.read_csv(file, dtype=str).drop(columns="threadName")
    both = pd.concat([pages, pages.assign(label=pages["label"] + "-0")]).sort_values("timeStamp", kind="stable")
    both.to_csv(tmp_path / "run.jtl", index=False)
    notices = import_runs([a_run(raw, 300, jtl=(tmp_path / "run.jtl",))], tmp_path / "store")
    assert any(
        text.endswith(
            "within another one of the same name left out (redirects, embedded files, what a controller "
            f"sums up); the other {len(pages)} are the interactions"
        )
        for text in notices
    ), notices
    assert any("threads are not told apart (threadName): samples within others" in text for text in notices)
    (told,) = read_table(tmp_path / "store", "trials")["not_validated"]
    assert "unless they have JMeter's numbers" in told
    import_runs([a_run(raw, 300)], tmp_path / "named")
    rates = [read_table(tmp_path / s, "trials")["throughput_per_s"].item() for s in ("store", "named")]
    assert rates[0] == pytest.approx(rates[1])


def test_a_run_of_the_same_name_is_replaced(raw, tmp_path):
    for _ in range(2):
        import_runs([a_run(raw, 500)], tmp_path)
    assert len(read_table(tmp_path, "trials")) == 1
    import_runs([a_run(raw, 500, rep=2)], tmp_path)
    assert read_table(tmp_path, "trials")["trial"].tolist() == ["u00500.r01", "u00500.r02"]


def test_one_test_twice_is_told_to_be_no_repetition(raw, tmp_path):
    first = import_runs([a_run(raw, 500)], tmp_path)
    again = import_runs([a_run(raw, 500, rep=2)], tmp_path)
    assert not any("ran at the same time" in text for text in first)
    assert any("u00500.r01 and u00500.r02 ran at the same time" in text for text in again)


def test_a_node_whose_clock_is_wrong_can_be_corrected(raw, tmp_path):
    _, sa = files_of(raw, 900)
    late = [NodeFile(f.node, f.tier, shifted(f.path, 3600, tmp_path / f"{f.node}.json")) for f in sa]
    with pytest.raises(DataError, match=r"no sample in it; another day, or a wrong clock \(--clock-offset web1="):
        import_runs([a_run(raw, 900, sa=tuple(late))], tmp_path / "store")
    assert not (tmp_path / "store").exists()
    right = tuple(NodeFile(f.node, f.tier, f.path, 3600.0) for f in late)
    import_runs([a_run(raw, 900, sa=right)], tmp_path / "store")
    assert [b.tier for b in verdicts(tmp_path / "store", [])[0].bottlenecks] == ["db"]


def shifted(path: Path, seconds: int, target: Path) -> Path:
    document = orjson.loads(zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read())
    for record in document["sysstat"]["hosts"][0]["statistics"]:
        hour, rest = record["timestamp"]["time"].split(":", 1)
        assert int(hour) + seconds // 3600 < 24
        record["timestamp"]["time"] = f"{int(hour) + seconds // 3600:02d}:{rest}"
    target.write_bytes(orjson.dumps(document))
    return target


def test_nodes_without_a_file_make_the_verdict_unknown_not_hidden(raw, tmp_path):
    _, sa = files_of(raw, 1000)
    web = tuple(f for f in sa if f.tier == "web")
    notices = import_runs([a_run(raw, 1000, sa=web), a_run(raw, 300, sa=tuple(files_of(raw, 300)[1][:1]))], tmp_path)
    assert any("nodes without a sysstat file: app1, middleware1, db1" in text for text in notices)
    verdict = verdicts(tmp_path, [])[0]
    assert verdict.verdict == "unknown"


NODES = [("web1", "web"), ("app1", "app"), ("app2", "app"), ("cache1", "cache"), ("db1", "db")]


@pytest.mark.parametrize(
    ("tiers", "names", "missing"),
    [
        ("web,app,cache,db", NODES, []),
        ("web,app,cache,db", NODES[:2] + NODES[3:], ["app2"]),
        ("", NODES, []),  # whose tiers these four numbers count is not known
        ("", [*NODES[:3], ("client1", "client"), NODES[4]], ["middleware1"]),
        ("web,app,db", [*NODES[:2], NODES[4]], ["app2", "middleware1"]),
    ],
)
def test_nodes_are_missing_of_the_tiers_that_are_there(tiers, names, missing):
    run = Run(topology="1/2/1/1", tiers=tiers)
    assert [node for node, *_ in _missing(run, [(*name, 1.0) for name in names])] == missing


def test_a_topology_of_thousands_of_nodes_is_an_error(raw, tmp_path):
    with pytest.raises(DataError, match="the topology has 5000 nodes of tier db, allowed are at most 999"):
        import_runs([a_run(raw, 300, topology="1/1/1/5000M")], tmp_path)


def test_i14_counts_the_tiers_as_the_import_does():
    nodes = [("web1", "web"), ("middleware1", "middleware"), ("app1", "app"), ("app2", "app"), ("db1", "db")]
    run = Run(topology="1/1/2/1", tiers="web,middleware,app,db")
    assert _missing(run, [(*name, 1.0) for name in nodes]) == []
    frame = pd.DataFrame(nodes, columns=["node", "tier"])
    row = pd.Series({"topology": run.topology, "tiers": run.tiers})
    found = topology(Imported(row, frame, frame, None, {}))
    assert (found.outcome, found.detail) == (Outcome.PASS, "none")
    found = topology(Imported(row.replace({run.topology: "1/2/1/1"}), frame, frame, None, {}))
    assert (found.outcome, found.detail) == (Outcome.FAIL, "1/2/1/1: nodes with samples: 2 app for 1")


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf", "1e12", "soon", ""])
def test_an_offset_that_is_no_number_of_seconds_is_an_error(seconds, tmp_path):
    options = {"sa": ["web1=web1.sa"], "clock_offset": [f"web1={seconds}"], "stamp": "start", "jtl": [Path("a.jtl")]}
    with pytest.raises(DataError, match=rf"clock offset 'web1={seconds}': expected NODE=SECONDS"):
        command(None, None, options, tmp_path)


def test_wrong_users_or_think_time_do_not_count(raw, tmp_path):
    notices = import_runs([a_run(raw, 300, think_time_s=1.0)], tmp_path / "wrong")
    assert any("INVALID (law)" in text and "are users, think time and units right?" in text for text in notices)
    assert verdicts(tmp_path / "wrong", [])[0].verdict == "unknown"
    import_runs([a_run(raw, 300)], tmp_path / "right")
    assert read_table(tmp_path / "right", "trials")["valid"].all()


def test_other_contents_under_the_same_name_must_be_asked_for(raw, tmp_path):
    import_runs([a_run(raw, 300)], tmp_path)
    with pytest.raises(
        DataError, match=r"trial u00300.r01 of sweep 1-1-1-1M.imported is already stored with other contents"
    ):
        import_runs([a_run(raw, 300, ramp_up_s=22.0)], tmp_path)
    import_runs([a_run(raw, 300, ramp_up_s=22.0)], tmp_path, replace=True)
    assert len(read_table(tmp_path, "trials")) == 1
    with pytest.raises(DataError, match=r"think_time_s is '3.0', expected '7.0' as in its other trials"):
        import_runs([a_run(raw, 500, think_time_s=3.0)], tmp_path)


def test_tiers_of_any_name(raw, tmp_path):
    _, sa = files_of(raw, 1000)
    names = {"web": "frontend", "app": "backend", "middleware": "cache", "db": "postgres"}
    own = tuple(NodeFile(f.node, names[f.tier], f.path) for f in sa)
    notices = import_runs([a_run(raw, 1000, sa=own, topology="blue")], tmp_path / "unordered")
    assert any("is unknown: give --tiers" in text for text in notices)
    order = "frontend,backend,cache,postgres"
    import_runs([a_run(raw, 1000, sa=own, topology="blue", tiers=order)], tmp_path / "store")
    assert read_table(tmp_path / "store", "trials")["tiers"].tolist() == [order]
    assert set(read_table(tmp_path / "store", "saturation")["tier"]) == set(names.values())
    with pytest.raises(DataError, match="--tiers is 'frontend,postgres', expected each of frontend, backend"):
        import_runs([a_run(raw, 1000, sa=own, topology="blue", tiers="frontend,postgres")], tmp_path / "other")


def spoilt(raw: Path, folder: Path, change, users: int = 900) -> Path:
    """The JTL of a good run with other bytes."""
    (jtl,), _ = files_of(raw, users)
    content = zstandard.ZstdDecompressor().stream_reader(jtl.read_bytes()).read()
    path = folder / "run.jtl"
    path.write_bytes(change(content))
    return path


def lines(of):
    """of: (header, [line, ...]) -> the same, as text without line ends."""

    def change(content: bytes) -> bytes:
        head, *rest = content.decode().splitlines()
        head, rest = of(head, rest)
        return "\n".join([head, *rest, ""]).encode()

    return change


def field(name: str, of, *, only: int | None = None):
    """Changes one field of each line (or of line `only`, from 0)."""

    def change(head: str, rest: list[str]):
        at = head.split(",").index(name)
        rows = [row.split(",") for row in rest]
        for number, row in enumerate(rows):
            if only in (None, number):
                row[at] = str(of(row[at]))
        return head, [",".join(row) for row in rows]

    return lines(change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b.decode().encode("utf-16"), "UTF-16, expected UTF-8"),
        (lambda b: b"", "column 'timeStamp' is missing"),
        (lambda b: b'<?xml version="1.0"?><testResults/>', "XML; expected a CSV JTL"),
        (lambda b: b.split(b"\n", 1)[1], "no header with the names of the columns"),
        (lambda b: b.split(b"\n", 1)[0] + b"\n", "no samples"),
        (lambda b: b[:-15], r"run.jtl:\d+: \d+ fields, the header has|is empty|expected"),
        (lambda b: b.replace(b"label", b"Label", 1), "column 'label' is missing; found timeStamp"),
        (lambda b: b.replace(b"label", b"sampler_label", 1), "column 'label' is missing"),
        (lambda b: b.replace(b"elapsed", b"Latency2", 1), "column 'elapsed' is missing"),
        (lambda b: b.replace(b"success", b"ok", 1), "column 'success' is missing"),
        (lambda b: b.replace(b"bytes", b"label", 1), "column 'label' occurs twice"),
        (field("timeStamp", lambda v: int(v) // 1000), "timeStamp is .*13 digits.*are these seconds"),
        (field("timeStamp", lambda v: f"{int(v) / 1000:.3f}"), "timeStamp is '.*', expected a whole number"),
        (field("timeStamp", lambda v: int(v) * 1000), "run.jtl:2: timeStamp is .*13 digits"),
        (
            field("timeStamp", lambda v: "2026/11/22 10:00:00"),
            "timeStamp is '2026/11/22 10:00:00', expected a whole number: milliseconds since 1970, which JMeter writes "
            "with -Jjmeter.save.saveservice.timestamp_format=ms",
        ),
        (field("timeStamp", lambda v: "-5", only=3), "run.jtl:5: timeStamp is -5"),
        (field("timeStamp", lambda v: "", only=3), "run.jtl:5: timeStamp is empty"),
        (field("elapsed", lambda v: int(v) / 1000), "elapsed is '.*', expected a whole number"),
        (field("elapsed", lambda v: -1, only=3), "run.jtl:5: elapsed is -1, expected >= 0"),
        (field("elapsed", lambda v: "nan", only=3), "run.jtl:5: elapsed is empty"),
        (field("elapsed", lambda v: "fast", only=3), "run.jtl:5: elapsed is 'fast'"),
        (field("success", lambda v: "maybe", only=3), "run.jtl:5: success is maybe, expected true or false"),
        (field("success", lambda v: "", only=3), "run.jtl:5: success is , expected true or false"),
        (field("label", lambda v: "a,b", only=3), "run.jtl:5: .* fields, the header has"),
    ],
)  # fmt: skip
def test_a_jtl_that_cannot_be_true_is_an_error(raw, tmp_path, change, message):
    path = spoilt(raw, tmp_path, change)
    with pytest.raises(DataError, match=message):
        import_runs([a_run(raw, 900, jtl=(path,))], tmp_path / "store")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda b: b, ""),
        (lambda b: b"\xef\xbb\xbf" + b, ""),
        (lambda b: b.replace(b"\n", b"\r\n"), ""),
        (lines(lambda head, rest: (head, rest[::-1])), ""),
        (lines(lambda head, rest: (head, rest + rest)), "law"),
        (lines(lambda head, rest: (head, rest[::2])), "law"),
        (field("success", lambda v: "false"), "no_throughput"),
        (field("elapsed", lambda v: int(v) // 1000), "response_time_unit"),
        (field("elapsed", lambda v: int(v) * 1000), "law"),
    ],
)
def test_a_jtl_that_does_not_fit_does_not_count(raw, tmp_path, change, reason):
    path = spoilt(raw, tmp_path, change, users=300)
    import_runs([a_run(raw, 300, jtl=(path,))], tmp_path / "store")
    trial = read_table(tmp_path / "store", "trials").iloc[0]
    assert trial["valid"] == (reason == "")
    assert reason in trial["invalid_reasons"]


def test_each_run_of_a_list_may_have_a_load_model_of_its_own(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("k6,load_model\na.csv,open\nb.csv,\n")
    assert [run.load_model for run in read_list(path, Run(load_model="closed"))] == ["open", "closed"]
    path.write_text("k6,load_model\na.csv,Open\n")
    with pytest.raises(DataError, match=r"runs\.csv:2: load_model is 'Open', expected closed, open or work"):
        read_list(path, Run())


def test_a_list_of_runs(raw, tmp_path):
    lines = ["jtl,sa,users"]
    for users in (300, 500, 900):
        jtl, sa = files_of(raw, users)
        lines.append(f"{jtl[0]},{';'.join(f'{f.node}={f.path}' for f in sa)},{users}")
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(lines) + "\n")
    runs = read_list(path, Run(topology="1/1/1/1M", ramp_up_s=20.0, ramp_down_s=5.0, sweep="mine"))
    assert [r.users for r in runs] == [300, 500, 900]
    import_runs(runs, tmp_path / "store")
    assert read_table(tmp_path / "store", "trials", "mine")["trial"].tolist() == [
        "u00300.r01", "u00500.r01", "u00900.r01",
    ]  # fmt: skip
    path.write_text("jtl,sa,colour\na,b,red\n")
    with pytest.raises(DataError, match=r"runs.csv:2: column 'colour'; allowed are jtl, k6, locust, gatling, sa, "):
        read_list(path, Run())


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("users=0", "users is '0', expected a whole number from 1, below 1,000,000,000"),
        ("users=99999999999999999999", "users is '9+', expected a whole number from 1"),
        ("rep=-1", "rep is '-1', expected a whole number from 1"),
        ("ramp_up_s=-5", "ramp_up_s is '-5', expected a number >= 0"),
        ("ramp_down_s=nan", "ramp_down_s is 'nan', expected a number >= 0"),
        ("slo_ms=inf", "slo_ms is 'inf', expected a number >= 0"),
    ],
)
def test_a_figure_of_a_run_that_cannot_be_is_an_error_with_its_line(tmp_path, row, message):
    name, value = row.split("=")
    (tmp_path / "runs.csv").write_text(f"jtl,{name}\nrun.jtl,{value}\n")
    with pytest.raises(DataError, match=rf"runs\.csv:2: {message}"):
        read_list(tmp_path / "runs.csv", Run())
    given = {name: float(value) if name.endswith(("_s", "_ms")) else int(value)}
    with pytest.raises(DataError, match=f"^{name} is .*expected"):
        import_runs([Run(jtl=(tmp_path / "run.jtl",), **given)], tmp_path / "store")


def test_a_measured_sweep_is_not_mixed_with_imported_runs(raw, tmp_path):
    from ntier_analysis.demo import SWEEP, unpack

    store = unpack(tmp_path)
    with pytest.raises(DataError, match="was not made by this import; choose another name"):
        import_runs([a_run(raw, 300, sweep=SWEEP)], store)


# ---- files as JMeter and sysstat left them -------------------------------------------------------------------------


def test_real_binary_file_of_sysstat(tmp_path):
    store = tmp_path / "store"
    done = subprocess.run(
        [PROGRAM, "import", "--jtl", JTL, "--sa", f"db1={DATA}/host-12.6.1.sa.zst", "--topology", "1/1/1/1M",
         "--ramp-up", "10", "--ramp-down", "2", "--slo-ms", "1000", "--store", store],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    trial = read_table(store, "trials").iloc[0]
    assert trial["users"] == 200  # from the JTL's allThreads
    assert 20 <= trial["throughput_per_s"] <= 40
    samples = read_table(store, "samples")
    cpu = samples[(samples["resource"] == "cpu") & (samples["phase"] == "run")]
    assert len(cpu[cpu["metric"] == "utilization_pct"]) >= 18
    both = cpu.pivot(index="t_s", columns="metric", values="value")
    assert both["used_cores"].to_numpy() == pytest.approx(2 * both["utilization_pct"].to_numpy() / 100)  # two CPUs


@pytest.mark.parametrize("file", ["db1-12.7.5.sa.zst", "host-12.6.1.sa.zst"])
def test_binary_file_of_any_version_needs_no_sysstat_here(file, monkeypatch):
    """sadf 12.6 gives no records of a file of 12.7, no message, and exit code 0."""
    monkeypatch.setenv("PATH", "/nowhere")
    frame, cores = read_node(NodeFile("db1", "db", DATA / file), containers=False)
    assert len(frame) > 1000
    assert cores == 2
    assert {"utilization_pct", "used_cores", "core_max_pct"} <= set(frame["metric"])


def test_a_container_has_no_cpu_utilization():
    file = NodeFile("db1", "db", DATA / "db1-12.7.5.json.zst")
    frame, cores = read_node(file, containers=True)
    assert cores is None
    cpu = frame[frame["resource"] == "cpu"]
    assert "busy_pct" in set(cpu["metric"])
    assert not {"utilization_pct", "used_cores"} & set(cpu["metric"])


@pytest.mark.parametrize("value", [b'"0,52"', b"[]", b'"1.5"', b"null"])
def test_a_figure_that_is_no_number_is_an_error_with_its_record(tmp_path, value):
    content = zstandard.ZstdDecompressor().stream_reader((DATA / "db1-12.7.5.json.zst").read_bytes()).read()
    (tmp_path / "db1.json").write_bytes(re.sub(rb'"majflt": *[\d.]+', b'"majflt": ' + value, content, count=2))
    with pytest.raises(DataError, match=r"db1\.json: record 1: .*is no number"):
        read_node(NodeFile("db1", "db", tmp_path / "db1.json"), containers=False)


def test_older_versions_have_another_name_for_the_load_of_all_modes(tmp_path):
    """11.6 writes cpu-load-all with -A."""
    content = zstandard.ZstdDecompressor().stream_reader((DATA / "db1-12.7.5.json.zst").read_bytes()).read()
    (tmp_path / "old.json").write_bytes(content.replace(b'"cpu-load"', b'"cpu-load-all"'))
    old, new = (read_node(NodeFile("db1", "db", p), containers=False) for p in
                (tmp_path / "old.json", DATA / "db1-12.7.5.json.zst"))  # fmt: skip
    pd.testing.assert_frame_equal(old[0], new[0])
    assert old[1] == new[1] == 2


def test_a_file_is_of_one_node(raw, tmp_path):
    """Two nodes would be full at the same times."""
    _, sa = files_of(raw, 900)
    copy = tmp_path / "app1.json.zst"
    copy.write_bytes(sa[3].path.read_bytes())
    twice = (*sa[:1], NodeFile("app1", "app", copy, 0.5), *sa[2:])
    with pytest.raises(DataError, match="db1 has the same samples as app1; expected a file of its own"):
        import_runs([a_run(raw, 900, sa=twice)], tmp_path / "store")


def test_a_file_of_another_node_is_told(raw, tmp_path):
    _, (web, app, middleware, db) = files_of(raw, 900)
    for node in (app, db):
        document = orjson.loads(zstandard.ZstdDecompressor().stream_reader(node.path.read_bytes()).read())
        document["sysstat"]["hosts"][0]["nodename"] = node.node
        (tmp_path / f"{node.node}.json").write_bytes(orjson.dumps(document))
    right = [replace(n, path=tmp_path / f"{n.node}.json") for n in (app, db)]
    swapped = [replace(app, path=right[1].path), replace(db, path=right[0].path)]
    for some, told in ((right, 0), (swapped, 2)):
        notices = import_runs([a_run(raw, 900, sa=(web, *some, middleware))], tmp_path / f"store{told}")
        assert sum("is it the right file?" in text for text in notices) == told
    assert any("app1.json: was written on app1, but given as db1" in text for text in notices)


def test_files_that_are_something_else(tmp_path):
    text = tmp_path / "sar.txt"
    text.write_text("Linux 6.1.0 (db1) \t11/21/26 \t_x86_64_\t(2 CPU)\n")
    with pytest.raises(DataError, match="neither sysstat's own format nor its JSON"):
        read_node(NodeFile("db1", "db", text), containers=False)
    text.write_text('{"sysstat": 1}')
    with pytest.raises(DataError, match="not sysstat's JSON"):
        read_node(NodeFile("db1", "db", text), containers=False)


def test_binary_rubbish_is_refused(tmp_path):
    path = tmp_path / "db1.sa"
    path.write_bytes(b"\x96\xd5" + bytes(range(256)) * 40)
    with pytest.raises(DataError, match=r"db1\.sa: byte 2: format 0x100 of sysstat "):
        read_node(NodeFile("db1", "db", path), containers=False)


# ---- requests ------------------------------------------------------------------------------------------------------

OPTIONS = {
    "jtl": [], "sa": [], "users": None, "topology": "1/1/1/1M", "sweep": "", "rep": 1, "ramp_up_s": None,
    "ramp_down_s": None, "think_time_s": None, "slo_ms": None, "stamp": "start", "containers": False,
    "clock_offset": [],
}  # fmt: skip
SA = [f"db1={DATA}/db1-12.7.5.json.zst"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "import needs one of"),
        ({"jtl": [JTL]}, "no sysstat file"),
        ({"sa": SA}, "no JTL file"),
        ({"jtl": [JTL], "sa": ["db1"]}, "expected NODE=FILE or NODE=FILE:TIER"),
        ({"jtl": [JTL], "sa": ["x9=f"]}, "the tier of x9 is missing; put it behind the file: web, app"),
        ({"jtl": [JTL], "sa": SA * 2}, "node db1 has two sysstat files"),
        ({"jtl": [JTL], "sa": SA, "topology": "big"}, "topology 'big': expected numbers"),
        ({"jtl": [JTL], "sa": SA, "stamp": "middle"}, "--stamp is 'middle', allowed are start and end"),
        ({"jtl": [JTL], "sa": SA, "clock_offset": ["db1=soon"]}, "clock offset 'db1=soon'"),
        ({"jtl": [JTL], "sa": SA, "clock_offset": ["web1=1"]}, "clock offset of web1: no such node; there are: db1"),
        ({"jtl": [JTL], "sa": SA, "ramp_up_s": 900.0}, "nothing is left between ramp-up and ramp-down"),
        ({"jtl": [JTL], "sa": SA, "sweep": "a/b"}, "sweep is 'a/b', expected letters"),
    ],
)
def test_wrong_requests_name_what_is_wrong(tmp_path, options, message):
    with pytest.raises(DataError, match=message):
        command(None, None, OPTIONS | {"clock_offset": []} | options, tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_a_tier_after_the_path():
    assert NodeFile.parse("box=/data/a:b/c.sa:db") == NodeFile("box", "db", Path("/data/a:b/c.sa"))
    assert NodeFile.parse("app12=c.sa") == NodeFile("app12", "app", Path("c.sa"))
