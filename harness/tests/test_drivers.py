"""The contract of drivers (docs/drivers.md) with real programs: the reference driver, and faults that must be seen."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from ntier_analysis.contracts.nodes import Node
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.parsers import client
from ntier_harness import load
from ntier_harness.catalog import Phases
from ntier_harness.drivers import Command, Entry, Run, Share, bench, check, rules
from ntier_harness.errors import RequestError, WorkError
from ntier_harness.load import Generator, last_words
from ntier_harness.paths import Paths
from ntier_harness.runner import Runner
from ntier_harness.ssh import Nodes

from .this_machine import node

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent / "drivers"
STARTER = ROOT / "workloads/bin/run-driver"
REFERENCE = [sys.executable, str(ROOT / "drivers/http_driver.py")]
BROKEN = [sys.executable, str(HERE / "broken_driver.py")]
PARAMETERS = {"requests": str(HERE / "requests.csv"), "rate_per_s": 20, "amount": 60}


# ---- ntier driver check ----------------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter phases: a check takes ten seconds."""
    for phase, seconds in {"ramp_up_s": 0.5, "run_s": 2.5, "ramp_down_s": 0.5}.items():
        monkeypatch.setitem(bench.PHASES, phase, seconds)


class Enough(Exception):
    """The rule that the test is about has been tried."""


def examine(
    command: list[str], model: str = "closed", last: str = "", **parameters: object
) -> dict[str, rules.Finding]:
    """Findings by rule, up to the rule `last`."""
    findings = {}

    def show(finding: rules.Finding) -> None:
        findings[finding.rule] = finding
        if finding.rule == last:
            raise Enough

    with contextlib.suppress(Enough):
        check.check(command, {"parameters": PARAMETERS | parameters}, model, STARTER, show)
    return findings


@pytest.mark.whole
@pytest.mark.parametrize("model", ["closed", "open", "work"])
def test_the_reference_driver_keeps_the_contract(quick, measured, model):
    findings = measured(lambda: examine(REFERENCE, model), lambda findings: all(f.kept for f in findings.values()))
    assert not [finding for finding in findings.values() if not finding.kept]
    assert len(findings) == (13 if model == "closed" else 12)
    if model == "closed":
        assert "refuses" in findings["lets users leave, or refuses"].said


@pytest.mark.whole
@pytest.mark.parametrize(
    ("fault", "rule", "said"),
    [
        ("never_ready", "ready", "no heartbeat within 10 s: waiting for a database that is not there"),
        ("early", "waits", "1 requests before the start"),
        ("silent", "waits", "0 heartbeats"),
        ("too_many", "heartbeat", "but only"),
        ("columns", "results", "column timeStamp is missing"),
        ("dies", "ends", "exit code 3: out of cheese"),
        ("flood", "ends", "exit code 125: run-driver: more than 1048576 bytes were printed"),
        ("ends_late", "ends", "still runs"),
        ("begins_late", "keeps the phases", "s after the start, expected 1.4 s at most (the start is told 0.2 s"),
        ("child", "leaves nothing", "1 processes are left"),
        ("shared_draws", "same draws on two clients", "workers did other things"),
        ("no_seed", "the seed counts", "the same draws with another seed"),
        ("deaf", "ends on SIGTERM", "still runs 3 s later"),
        ("ignores_leaving", "lets users leave, or refuses", "user 6 is not there"),
    ],
)
@pytest.mark.long
def test_each_fault_is_named(quick, monkeypatch, fault, rule, said):
    if fault == "never_ready":
        monkeypatch.setattr(bench, "READY_S", 10.0)
    if fault == "ends_late":
        monkeypatch.setattr(check, "END_S", 3.0)
    findings = examine(BROKEN, last=rule, fault=fault)
    assert findings[rule].kept is False, findings
    assert said in findings[rule].said


def test_a_driver_is_found_from_where_it_is_named(monkeypatch):
    """Also its files, although it is started in the folder of its run."""
    monkeypatch.chdir(ROOT)
    for command in (["drivers/http_driver.py"], [sys.executable, "drivers/http_driver.py"]):
        assert examine(command, last="ready")["ready"].kept
    assert check.absolute(["sh", "-c", "true", "./none"]) == ["sh", "-c", "true", "./none"]


WITHOUT_GROUPS = (
    "import asyncio, runpy, sys; del asyncio.TaskGroup; sys.argv = sys.argv[1:]; "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


def open_load(
    folder: Path,
    table: str,
    program: tuple[str, ...] = (),
    port: int = 1,
    run_s: float = 0.8,
    also: dict[str, object] | None = None,
    **parameters: object,
) -> subprocess.CompletedProcess[str]:
    """The reference driver's run, from when it is ready, against a port, closed unless one is given. `also`: what it is
    told other than this."""
    (folder / "requests.csv").write_text(table, encoding="utf-8")
    told = {
        "load_model": "open", "parameters": {"requests": str(folder / "requests.csv"), "rate_per_s": 50} | parameters,
        "seed": 1, "workers_total": 1, "first_worker": 0, "workers": 1, "phases": {"run_s": run_s},
        "entry": {"addresses": ["127.0.0.1"], "port": port, "path": ""}, **(also or {}),
    }  # fmt: skip
    (folder / "driver.json").write_text(json.dumps(told))
    argv = [sys.executable, *program, REFERENCE[1], str(folder)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as driver:
        try:
            deadline = time.monotonic() + 60
            while driver.poll() is None and not (folder / "progress.csv").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            (folder / "start.new").write_text(f"{1000 * time.time():.0f}")
            (folder / "start.new").rename(folder / "start")
            out, error = driver.communicate(timeout=60)
        finally:
            driver.kill()
    return subprocess.CompletedProcess(argv, driver.returncode, out, error)


def test_open_load_needs_no_newer_python_than_a_machine_must_have(tmp_path):
    """Python 3.9 has no asyncio.TaskGroup."""
    done = open_load(tmp_path, "interaction,method,path,weight\nItem,GET,/,1\n", ("-c", WITHOUT_GROUPS))
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "interactions.jtl.csv").read_text().splitlines()) > 10


def test_what_goes_wrong_within_a_request_ends_the_run_at_once(tmp_path):
    """Not when the requests under way have been answered: a driver without a heartbeat is called silent instead."""
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as deaf:
        table = "interaction,method,path,weight\nItem,GET,/,20\nItem,GET,/\u20ac,1\n"
        done = open_load(tmp_path, table, port=deaf.getsockname()[1], run_s=20, rate_per_s=200)
    assert done.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1].startswith("UnicodeEncodeError")


ONE_PAGE = "interaction,method,path,weight\nItem,GET,/,1\n"


def test_no_request_waits_within_the_driver(tmp_path):
    """Its time there would be taken for the system's."""
    closed = {
        "load_model": "closed",
        "think_time_s": 5,
        "workers_total": 2000,
        "phases": {"ramp_up_s": 0, "run_s": 0.5},
    }
    done = open_load(tmp_path, ONE_PAGE, also=closed | {"workers": 1001})
    assert (done.returncode, done.stderr) == (
        2, "http_driver: ValueError: 1001 workers on one client; 1000 are allowed, so give more clients\n",
    )  # fmt: skip
    assert open_load(tmp_path, ONE_PAGE, also=closed | {"workers": 1000}).returncode == 0


def test_open_load_that_the_driver_cannot_carry_ends_with_the_reason(tmp_path):
    with socket.create_server(("127.0.0.1", 0), backlog=2000) as deaf:
        done = open_load(tmp_path, ONE_PAGE, port=deaf.getsockname()[1], run_s=20, rate_per_s=4000)
    assert done.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1].startswith("RuntimeError: 1000 requests are under way, and no more can be")


@pytest.mark.parametrize(
    ("table", "parameters", "says"),
    [
        ("interaction,method,path,weight\n", {}, "one of them above 0"),
        ("interaction,method,path,weight\nItem,GET,/,0\n", {}, "one of them above 0"),
        ("interaction,method,path,weight\nItem,GET,/,2\nList,GET,/,-1\n", {}, "weights must be 0 or more"),
        ("interaction,method,path,weight\nItem,GET,/,nan\n", {}, "one of them above 0"),
        ("name,method,path,weight\nItem,GET,/,1\n", {}, "'interaction'"),
        ("interaction,path,weight\nItem,/,1\n", {}, "'method'"),
        ("interaction,method,weight,path\nItem,GET,1\n", {}, "is not whole"),
        ("interaction,method,path,weight\nItem,GET,/{n},1\n", {"n": 0}, "and n 1 or more"),
    ],
)
def test_an_impossible_table_of_requests_is_refused_before_the_driver_is_ready(tmp_path, table, parameters, says):
    done = open_load(tmp_path, table, **parameters)
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "progress.csv").exists()


def test_the_last_words_are_a_reason():
    assert last_words("reading users.csv\nout of cheese\n\n") == ": out of cheese"
    assert last_words("") == ""
    crash = """summary = 12 in 00:00:01
#
# A fatal error has been detected by the Java Runtime Environment:
#
#  SIGSEGV (0xb) at pc=0x00007f2d1, pid=17, tid=17
#
# JRE version: OpenJDK Runtime Environment (25.0.5+2)
# If you would like to submit a bug report, please visit:
#   https://bugs.debian.org/openjdk-25
#
"""
    assert last_words(crash) == ": SIGSEGV (0xb) at pc=0x00007f2d1, pid=17, tid=17"


@pytest.mark.whole
@pytest.mark.parametrize(
    ("ends", "beats", "said"),
    [
        ([9.0] * 6 + [2.01, 2.1, 2.0, 2.9], [10, 6], ""),
        ([9.0] * 6 + [2.01, 2.1, 2.0, 3.1], [10, 6], "user 9 left 3.10 s after the start, expected 2 to 3 s"),
        ([9.0] * 6 + [2.01, 1.2, 2.0, 2.0], [10, 6], "user 7 left 1.20 s after the start"),
        ([9.0, 5.0] + [9.0] * 4 + [2.0] * 4, [10, 6], "user 1 left 5.00 s after the start, expected to stay until 6 s"),
        ([9.0] * 6 + [2.0] * 4, [10, 7], "progress.csv: 7 users after 4 of them had left"),
    ],
)
def test_who_leaves_too_late_or_too_early_is_named(tmp_path, ends, beats, said):
    run = bench.Started(tmp_path, Share(0, 1, 6, 0), 0.0, start_s=100.0)
    lives = [f"{user},100500,{1000 * (100 + end):.0f},0" for user, end in enumerate(ends)]
    (tmp_path / "users.csv").write_text("\n".join(["user,t_start_ms,t_end_ms,pending_ms", *lives]) + "\n")
    rows = [f"{101.9 + 2 * n},{users}" for n, users in enumerate(beats)]
    (tmp_path / "progress.csv").write_text("\n".join(["t_s,users", *rows]) + "\n")
    problem = rules.stayed(run)
    assert problem.startswith(said) if said else problem == ""


def test_whether_work_of_its_own_amount_can_be_ended_is_unknown(quick):
    """It is done before anybody could end it."""
    rule = "ends on SIGTERM"
    finding = examine(BROKEN, "work", last=rule, fault="own_amount")[rule]
    assert finding.kept is None
    assert "ended by itself within 2.8 s of the start: exit code 0" in finding.said


def test_what_cannot_be_started_is_named(quick):
    findings = examine(["/no/such/driver"])
    assert "exit code 127: run-driver: /no/such/driver cannot be started: No such file" in findings["ready"].said


def test_a_wrong_request_of_the_check_is_refused(tmp_path):
    with pytest.raises(RequestError, match="a command is missing"):
        check.read_settings(None, (), [])
    with pytest.raises(RequestError, match="'users': expected NAME=VALUE"):
        check.read_settings(None, ("users",), ["x"])
    (tmp_path / "wrong.json").write_text("[]")
    with pytest.raises(RequestError, match="expected a JSON object"):
        check.read_settings(str(tmp_path / "wrong.json"), (), ["x"])
    assert check.read_settings(None, ("a=1", "b=0.5", "c=x"), ["x"]) == {"parameters": {"a": 1, "b": 0.5, "c": "x"}}


# ---- whether two clients draw what one does --------------------------------------------------------------------------


def done(first: int, *rows: str) -> bench.Started:
    """A driver's results: `THREAD-NUMBER LABEL [DRAWN]`, in the order of their starts."""
    run = bench.Started(Path(), Share(0, 1, 1, first), 0.0)
    for ms, row in enumerate(rows):
        thread, label, *drawn = row.split(" ")
        told = {"timeStamp": str(ms), "threadName": thread, "label": label}
        run.rows.append(told | ({"drawn": drawn[0]} if drawn else {}))
    return run


READS = [f"read-1 Read {n}" for n in range(6)]
WRITES = [f"write-1 Write {n}" for n in range(6)]


def compared(whole: list[str], *shares: list[str]) -> rules.Finding:
    return rules.same("draws", "work", done(0, *whole), [done(n, *rows) for n, rows in enumerate(shares)])


def test_how_the_threads_of_a_worker_take_turns_is_no_draw():
    in_turns = [row for pair in zip(READS, WRITES, strict=True) for row in pair]
    assert compared(in_turns, [*WRITES, *READS]).kept
    other = [*READS[:3], "read-1 Read 9", *READS[4:], *WRITES]
    finding = compared(in_turns, other)
    assert finding.kept is False
    assert finding.said == "1 of 2 threads did other things"


def test_threads_that_have_no_name_in_common_say_nothing():
    assert compared([*READS, *WRITES], [row.replace("-1", "x-1") for row in (*READS, *WRITES)]).kept is None


def test_without_what_was_drawn_the_order_of_a_worker_counts():
    names = [row.rpartition(" ")[0] for row in (*READS, *WRITES)]
    assert compared(names, names).kept
    assert compared(names, names[::-1]).said == "1 of 1 workers did other things"


# ---- the harness and its drivers -------------------------------------------------------------------------------------


class Here(Nodes):
    """Nodes whose commands run on this machine."""

    def argv(self, node: Node, command: str, *, shared: bool = True) -> list[str]:
        return ["sh", "-c", command]


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    server.daemon_threads = True
    server.handle_error = lambda *_: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture
def generator(tmp_path, port, monkeypatch) -> Iterator[Callable[..., Generator]]:
    """A generator whose client is this machine, with the node's own programs. Afterwards nothing may be left of it."""
    run = tmp_path / "run"
    programs = tmp_path / "bin"
    programs.mkdir()
    files = ROOT / "ansible/roles/monitor/files"
    node_program = programs / "ntier-node"
    node_program.write_text(f'#!/bin/sh\nexec {sys.executable} {files / "ntier-node"} "$@"\n')
    node_program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("NTIER_RUN", str(run))
    monkeypatch.setenv("NTIER_LIB", str(files / "lib"))
    monkeypatch.setattr(load, "BIN", str(STARTER.parent))
    monkeypatch.setattr(load, "MAX_BOOT_S", 30.0)
    monkeypatch.setattr(load, "LEAD_S", 5.0)
    paths = Paths(ROOT, tmp_path / "state", tmp_path / "results")
    paths.logs.mkdir(parents=True)
    made = []

    def make(
        command: list[str], model: LoadModel = LoadModel.CLOSED, run_s: float = 2.5, **parameters: object
    ) -> Generator:
        nodes = Here(Runner(), paths, [node("web1", "web"), node("client1", "client")])
        entry = Entry("web", port)
        told = Run(
            str(run / "trial"), 4, Phases("test", 0.5, run_s, 0.5), 3, entry, model, 0.2, "", PARAMETERS | parameters
        )
        (tmp_path / "trial").mkdir()
        patience_s = 4.0 if parameters.get("fault") == "silent" else 20.0  # a machine may stand still for some seconds
        made.append(Generator(nodes, lambda *_: None, told, Command(tuple(command)), tmp_path / "trial", patience_s))
        return made[-1]

    yield make
    for each in made:
        each.end()
    left = [p for p in Path("/proc").glob("[0-9]*") if marked(p, f"NTIER_LOAD={run}")]
    assert not left, [(p / "cmdline").read_text() for p in left]


def marked(process: Path, mark: str) -> bool:
    try:
        return mark.encode() in (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


@pytest.mark.whole
def drive(generator: Generator) -> None:
    """As a trial does."""
    generator.start()
    generator.watch()
    end = generator.release() + generator.run.phases.total_s
    while generator.nodes.runner.now() < end and generator.finished_s is None:
        generator.nodes.runner.sleep(0.2)
        if generator.nodes.runner.now() < end - 0.1:
            generator.poll()
    generator.ended_well(3.0)


class Greets(Here):
    """A client whose shell prints a banner before all that a command says."""

    def argv(self, node: Node, command: str, *, shared: bool = True) -> list[str]:
        return super().argv(node, f"echo Welcome to host42; {command}", shared=shared)


@pytest.mark.whole
def test_an_answer_that_is_no_start_names_the_client_and_what_it_said(generator):
    made = generator(REFERENCE)
    made.start()
    made.watch()
    made.await_ready()
    made.nodes.__class__ = Greets
    with pytest.raises(WorkError, match=r"late_start: client1 answered 'Welcome to host42\\n\d+' when told to start"):
        made.release()


@pytest.mark.whole
def test_a_trial_with_any_driver(generator):
    made = generator(REFERENCE)
    drive(made)
    assert made.codes == {"client1": 0}
    assert made.poll().completed > 20
    folder = Path(made.run.directory)
    assert {"interactions.jtl.csv", "progress.csv", "driver.out", "driver.json"} <= {p.name for p in folder.iterdir()}
    told = json.loads((made.local_dir / "config/driver.json").read_text())
    assert told == json.loads((folder / "driver.json").read_text())
    assert told["targets"] == {"web": ["127.0.0.1"]}
    assert (told["workers"], told["first_worker"], told["seed"]) == (4, 0, 3)


@pytest.mark.whole
def test_the_reference_driver_accounts_for_each_second_of_its_users(generator):
    made = generator(REFERENCE)
    drive(made)
    folder = Path(made.run.directory)
    users, thinks = client.users(folder / "users.csv"), client.thinks(folder / "thinks.csv")
    answers = client.interactions(folder / "interactions.jtl.csv")
    assert set(users["user"]) == set(thinks["user"]) == {0, 1, 2, 3}
    thought = thinks.groupby("user")["actual_ms"].sum() / 1000
    waited = answers.groupby("user")["response_time_ms"].sum() / 1000 + users.set_index("user")["pending_s"]
    lived = users.set_index("user").eval("end_s - start_s")
    assert (thought + waited).to_numpy() == pytest.approx(lived.to_numpy(), rel=0.02)
    assert set(thinks[thinks["actual_ms"] < thinks["drawn_ms"] - 5].groupby("user").size()) <= {1}, "cut by the end"


def test_fixed_work_ends_when_it_is_done(generator):
    made = generator(REFERENCE, LoadModel.WORK, run_s=60.0, amount=40)
    drive(made)
    assert made.finished_s is not None
    assert made.finished_s < made.start_s + 30
    assert made.poll().completed == 40


@pytest.mark.whole
@pytest.mark.whole
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("never_ready", r"late_start: python\S* on client1 is not ready after 8 s: waiting for a database"),
        ("dies", r"client_exit 3: python\S* on client1 ended early: out of cheese"),
        ("flood", r"client_exit 125: python\S* on client1.*: run-driver: more than 1048576 bytes were printed: ended"),
        (
            "too_many",
            r"driver_wrong: python\S* on client1: progress.csv: line '.*': \d+ completed and .* only \d+ started",
        ),
        ("silent", r"client_silent: no heartbeat from client1 for \d+ s"),
        ("ends_late", r"client_hangs: python\S* on client1 did not end 3 s after its time"),
        ("child", None),
    ],
)
def test_a_driver_that_breaks_the_contract_has_a_reason_and_leaves_nothing(generator, monkeypatch, fault, reason):
    if fault == "never_ready":
        monkeypatch.setattr(load, "MAX_BOOT_S", 8.0)
    made = generator(BROKEN, run_s=2.5 if fault in ("child", "ends_late") else 20.0, fault=fault)
    if reason is None:
        drive(made)
    else:
        with pytest.raises(WorkError, match=reason):
            drive(made)


def test_a_wrong_request_is_the_drivers_last_word(generator):
    made = generator([*REFERENCE], requests="/no/such/file.csv")
    with pytest.raises(WorkError, match=r"client_exit 2: python\S* on client1 ended early: http_driver: .*file.csv"):
        drive(made)


def test_the_starter_refuses_what_is_no_run(tmp_path):
    done = subprocess.run([STARTER, tmp_path, "true"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"run-driver: '{tmp_path / 'driver.json'}' is missing\n")
    done = subprocess.run([STARTER], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "run-driver: usage: run-driver DIR PROGRAM [ARGUMENT ...]\n")
