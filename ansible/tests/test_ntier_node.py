"""ntier-node without a node: its own folders, collectors that behave and misbehave, the machine's own sadc."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

FILES = Path(__file__).resolve().parents[1] / "roles/monitor/files"
PROGRAMS = Path(__file__).resolve().parents[2] / "workloads/bin"
STEADY = """#!/bin/sh
echo t_s,value >"$1/NAME.csv"
while :; do echo "$(date +%s.%N),1" >>"$1/NAME.csv"; sleep 0.2; done
"""


class Node:
    def __init__(self, folder: Path) -> None:
        self.run, self.etc, self.trial = folder / "run", folder / "etc", folder / "trial"
        for name in ("collectors.d", "reset.d", "logs.d", "services.d", "installed", "running.d", "packages.d"):
            (self.etc / name).mkdir(parents=True)

    def call(self, *arguments: object, text: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            **settings,
            "NTIER_RUN": str(self.run),
            "NTIER_ETC": str(self.etc),
            "NTIER_LIB": str(FILES / "lib"),
        }
        command = [sys.executable, str(FILES / "ntier-node"), *map(str, arguments)]
        return subprocess.run(command, env=environment, input=text, capture_output=True, text=True, timeout=60)

    def hook(self, folder: str, name: str, text: str) -> None:
        path = self.etc / folder / name
        path.write_text(text)
        path.chmod(0o755)

    def collector(self, name: str, text: str = STEADY) -> None:
        self.hook("collectors.d", name, text.replace("NAME", name))

    def start(self) -> dict:
        done = self.call("start", self.trial)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def pids(self) -> dict[str, int]:
        """Main process of each collector: the child of its shell."""
        state = json.loads((self.run / "collectors.json").read_text())
        children = {c["name"]: Path(f"/proc/{c['pid']}/task/{c['pid']}/children") for c in state["collectors"]}
        return {name: int(path.read_text().split()[0]) for name, path in children.items()}


@pytest.fixture
def node(tmp_path):
    node = Node(tmp_path)
    node.collector("first")
    yield node
    node.call("reset")


def wait_until(happened: Callable[[], bool]) -> None:
    """Returns at once when it has; fails after 30 s."""
    end_s = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < end_s
        time.sleep(0.05)


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def test_start_alive_stop_pack_drop(node, tmp_path):
    log = tmp_path / "service.log"
    log.write_text("before\n")
    (node.etc / "logs.d/service").write_text(f"# a comment\n{log}\n")
    assert node.start()["collectors"] == ["sysstat", "first"]
    with log.open("a") as file:
        file.write("during\n")
    alive = node.call("alive")
    assert alive.returncode == 0
    assert json.loads(alive.stdout)["alive"] == ["sysstat", "first"]
    first_sample = (node.trial / "sysstat.sa").stat().st_size
    wait_until(lambda: (node.trial / "sysstat.sa").stat().st_size > first_sample)
    stopped = node.call("stop", node.trial)
    assert stopped.returncode == 0, stopped.stderr
    end = json.loads((node.trial / "end.json").read_text())
    assert {name: c["state"] for name, c in end["collectors"].items()} == {"sysstat": "stopped", "first": "stopped"}
    assert end["collectors"]["first"]["bytes"] == (node.trial / "first.csv").stat().st_size > 0
    assert (node.trial / "logs/service.log").read_text() == "during\n"
    host = json.loads((node.trial / "sysstat.json").read_text())["sysstat"]["hosts"][0]
    assert len(host["statistics"]) >= 1
    assert node.call("stop", node.trial).stdout == stopped.stdout  # a second call changes nothing
    assert not list(node.trial.glob("*.err"))

    packed = tmp_path / "trial.tar.zst"
    environment = {**os.environ, "NTIER_RUN": str(node.run), "NTIER_LIB": str(FILES / "lib")}
    with packed.open("wb") as output:
        subprocess.run(
            [sys.executable, FILES / "ntier-node", "pack", node.trial], stdout=output, env=environment, check=True
        )
    listed = subprocess.run(["tar", "--zstd", "-tf", packed], capture_output=True, text=True, check=True).stdout.split()
    assert {"./end.json", "./first.csv", "./sysstat.sa", "./logs/service.log"} <= set(listed)
    assert node.call("drop", node.trial).returncode == 0
    assert not node.trial.exists()


def test_what_sadf_cannot_turn_into_json_stays_as_sadc_wrote_it(node, tmp_path):
    """It may fail, or take too long for a file of many CPUs: the analysis reads sysstat.sa, too."""
    sadf = tmp_path / "sadf"
    fails, hangs = ("exit 3", "30", "sadf: exit code 3: "), ("exec sleep 9", "0.5", "sadf: not done after 0.5 s")
    for text, limit_s, said in (fails, hangs):
        sadf.write_text(f"#!/bin/sh\necho {{\n{text}\n")
        sadf.chmod(0o755)
        node.start()
        stopped = node.call("stop", node.trial, NTIER_SADF=str(sadf), NTIER_SADF_LIMIT_S=limit_s)
        assert stopped.returncode == 0, stopped.stderr
        assert said in json.loads(stopped.stdout)["errors"]
        assert sorted(path.name for path in node.trial.glob("sysstat*")) == ["sysstat.sa"]
        assert node.call("drop", node.trial).returncode == 0


def test_the_json_of_sysstat_has_what_is_read_and_no_interrupts(node):
    node.start()
    first = (node.trial / "sysstat.sa").stat().st_size
    wait_until(lambda: (node.trial / "sysstat.sa").stat().st_size > first)
    assert node.call("stop", node.trial).returncode == 0
    (record, *_) = json.loads((node.trial / "sysstat.json").read_text())["sysstat"]["hosts"][0]["statistics"]
    read = {"cpu-load", "memory", "swap-pages", "paging", "queue", "process-and-context-switch", "disk"}
    assert read <= record.keys()
    assert {"net-dev", "net-tcp", "net-etcp", "net-sock"} <= record["network"].keys()
    assert {"memused-percent", "avail", "swpused"} <= record["memory"].keys()
    assert [cpu["cpu"] for cpu in record["cpu-load"]][:2] == ["all", "0"]
    assert "interrupts" not in record


def test_a_killed_collector_is_seen_with_its_exit_status(node):
    node.start()
    os.kill(node.pids()["sysstat"], signal.SIGKILL)
    wait_until(lambda: node.call("alive").returncode == 1)
    alive = node.call("alive")
    assert alive.returncode == 1
    assert json.loads(alive.stdout)["dead"] == ["sysstat"]
    node.call("stop", node.trial)
    end = json.loads((node.trial / "end.json").read_text())["collectors"]
    assert (end["sysstat"]["state"], end["sysstat"]["exit_code"]) == ("died", 137)
    assert end["first"]["state"] == "stopped"


def test_a_collector_that_hangs_is_silent(node):
    node.start()
    os.kill(node.pids()["first"], signal.SIGSTOP)
    wait_until(lambda: node.call("alive").returncode == 1)
    alive = node.call("alive")
    assert json.loads(alive.stdout)["silent"] == ["first"]


def test_a_collector_that_ignores_sigterm_is_killed(node):
    node.collector("stubborn", "#!/bin/sh\ntrap '' TERM\n" + STEADY.split("\n", 1)[1])
    node.start()
    pid = node.pids()["stubborn"]
    assert node.call("stop", node.trial).returncode == 0
    assert json.loads((node.trial / "end.json").read_text())["collectors"]["stubborn"]["state"] == "killed"
    assert not running(pid)


def test_reset_stops_orphans_even_without_the_state_file(node):
    node.start()
    pids = node.pids()
    (node.run / "collectors.json").unlink()
    done = node.call("reset")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["stopped_orphans"] == 2
    assert not any(running(pid) for pid in pids.values())
    node.start()  # and the next trial starts


def test_load_is_known_by_its_mark_and_the_owners_jmeter_goes_on(node, tmp_path):
    """The real starter and driver, with a stand-in for the JVM that takes no notice of SIGTERM."""
    trial, java = node.run / "trial", tmp_path / "java"
    for file in ("bin/ApacheJMeter.jar", "plan.jmx"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    trial.mkdir(parents=True)
    told = {
        "workers": 1, "first_worker": 0, "workers_total": 1, "seed": 1, "think_time_s": 7, "parameters": {},
        "phases": {"ramp_up_s": 1, "run_s": 1, "ramp_down_s": 1},
        "entry": {"addresses": ["127.0.0.1"], "port": 80, "path": ""},
        "jmeter": {"plan": str(tmp_path / "plan.jmx")},
    }  # fmt: skip
    (trial / "driver.json").write_text(json.dumps(told))
    java.write_text("#!/bin/sh\ncase $* in *-version*) exit;; esac\ntrap '' TERM\nwhile :; do sleep 0.1; done\n")
    java.chmod(0o755)
    owners = subprocess.Popen(["sh", "-c", "sleep 60; : -jar ApacheJMeter.jar"])
    environment = {**os.environ, "JMETER_HOME": str(tmp_path), "JAVA": str(java)}
    subprocess.run([PROGRAMS / "run-driver", trial, PROGRAMS / "run-jmeter"], env=environment, check=True)
    node.start()
    written = trial / "jmeter.pid"
    wait_until(lambda: written.exists() and written.read_text().endswith("\n"))
    pid = int(written.read_text())
    assert running(pid)
    try:
        assert json.loads(node.call("end-load").stdout) == {"ended": 1}
        assert not running(pid)
        assert not running(int((trial / "driver.pid").read_text()))
        assert node.call("alive").returncode == 0
        assert json.loads(node.call("end-all").stdout) == {"ended": 2}
        assert owners.poll() is None
    finally:
        owners.kill()
        owners.wait()


def test_a_process_may_have_any_name(monkeypatch):
    """The kernel keeps 15 bytes of it, which may end in the middle of a character."""
    from ntier_harness.runner import start_ticks

    monkeypatch.syspath_prepend(FILES / "lib")
    program = "import ctypes; ctypes.CDLL(None).prctl(15, b'\\xce\\x95) \\xff'); print(flush=True); input()"
    named = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        named.stdout.readline()
        assert importlib.import_module("processes").start_ticks(named.pid) == int(start_ticks(named.pid)) > 0
    finally:
        named.communicate(b"\n")


def test_what_is_killed_is_gone_when_its_end_is_told(monkeypatch):
    """A process of much memory takes a tenth of a second to die."""
    monkeypatch.syspath_prepend(FILES / "lib")
    program = "from signal import *; signal(SIGTERM, SIG_IGN); x = b'1' * 2**29; print(flush=True); pause()"
    heavy = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True)
    heavy.stdout.readline()
    try:
        assert importlib.import_module("processes").stop_groups({heavy.pid}, 0.1) == {heavy.pid}
        assert not running(heavy.pid)
    finally:
        heavy.kill()
        heavy.wait()
        heavy.stdout.close()


def test_a_second_start_is_refused(node):
    node.start()
    again = node.call("start", node.trial.with_name("other"))
    assert again.returncode == 1
    assert f"collectors of {node.trial} are running" in again.stderr


def test_a_collector_without_output_fails_the_start_with_its_reason(node):
    node.collector("broken", "#!/bin/sh\necho 'no such server' >&2\nexit 7\n")
    done = node.call("start", node.trial)
    assert done.returncode == 1
    assert "broken" in done.stderr
    assert "no such server" in done.stderr


def test_reset_says_what_is_wrong(node):
    node.hook("reset.d", "50-service", "#!/bin/sh\necho 'the queue is not empty' >&2\nexit 3\n")
    done = node.call("reset")
    assert done.returncode == 1
    assert "50-service: the queue is not empty" in done.stderr
    assert json.loads(done.stdout)["problems"] == ["50-service: the queue is not empty"]


SYSTEMCTL = """#!/bin/sh
# As systemd tells: a socket has no main process and no restarts.
case "$*" in *--timestamp*) echo "systemctl: unrecognized option '--timestamp=unix'" >&2; exit 1;; esac
echo Id=docker.socket; echo ActiveState=active; echo ActiveEnterTimestampMonotonic=2500000; echo
echo MainPID=7; echo NRestarts=1; echo Id=a.service; echo ActiveState=active; echo ActiveEnterTimestampMonotonic=0
"""


def test_units_that_are_no_services_and_an_older_systemd(node, tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/systemctl").write_text(SYSTEMCTL)
    (tmp_path / "bin/systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (node.etc / "services.d/system").write_text("docker.socket\na.service\n")
    done = node.call("facts")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["services"] == [
        {"unit": "docker.socket", "main_pid": 0, "active_enter_s": 2.5, "n_restarts": 0, "state": "active"},
        {"unit": "a.service", "main_pid": 7, "active_enter_s": 0.0, "n_restarts": 1, "state": "active"},
    ]


def test_logs_of_one_name_are_all_kept(node, tmp_path):
    paths = [tmp_path / place for place in ("nginx/error.log", "app/error.log", "nginx/access.log", "app/journal.log")]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.touch()
    (node.etc / "logs.d/both").write_text("".join(f"{path}\n" for path in paths))
    node.start()
    for path in paths:
        path.write_text(f"{path.parent.name} {path.name}\n")
    assert node.call("stop", node.trial).returncode == 0
    kept = {file.name: file.read_text() for file in (node.trial / "logs").iterdir() if file.name != "journal.log"}
    prefix = str(tmp_path).strip("/").replace("/", "_")
    assert kept == {
        f"{prefix}_nginx_error.log": "nginx error.log\n",
        f"{prefix}_app_error.log": "app error.log\n",
        "access.log": "nginx access.log\n",
        f"{prefix}_app_journal.log": "app journal.log\n",
    }


def test_drop_removes_only_trials(node, tmp_path):
    other = tmp_path / "precious"
    other.mkdir()
    done = node.call("drop", other)
    assert done.returncode == 2
    assert other.exists()
    assert node.call("drop", tmp_path / "absent").returncode == 0
    node.start()
    assert node.call("drop", node.trial).returncode == 1  # still collecting
    assert node.trial.exists()


def test_facts_and_clock(node):
    (node.etc / "installed/web").write_text("abc\n")
    before_s = time.time()
    facts = json.loads(node.call("facts").stdout)
    assert before_s <= facts["time_s"] <= time.time()
    assert facts["installed"] == {"web": "abc"}
    assert facts["packages"] == {}
    assert facts["services"] == []
    assert facts["boot_id"] == json.loads(node.call("facts").stdout)["boot_id"]
    times = [float(line) for line in node.call("clock", text="x\nx\nx\n").stdout.split()]
    assert len(times) == 3
    assert times == sorted(times)


def test_several_commands_in_one_call(node, tmp_path):
    before_s = time.time()
    done = node.call("start", node.trial, "facts", "clock", text="x\n")
    after_s = time.time()
    assert done.returncode == 0, done.stderr
    started, facts, now = map(json.loads, done.stdout.splitlines())
    assert "sysstat" in started["collectors"]
    assert facts["services"] == []
    assert before_s <= now <= after_s


def test_a_call_ends_with_the_command_that_fails(node):
    node.start()
    done = node.call("start", node.trial, "facts")
    assert done.returncode == 1
    assert "are running" in done.stderr
    assert not done.stdout


@pytest.mark.parametrize("wrong", [["fact"], ["drop"], ["drop", "facts"], [""]])
def test_a_call_with_a_wrong_command_does_nothing(node, wrong):
    done = node.call("start", node.trial, *wrong)
    assert done.returncode == 2
    assert "is not a command" in done.stderr
    assert not node.trial.exists()


def jar(path: Path, version: str) -> None:
    with zipfile.ZipFile(path.with_suffix(".new"), "w") as file:
        file.writestr("META-INF/MANIFEST.MF", f"Manifest-Version: 1.0\r\nBundle-Version: {version}\r\n")
    path.with_suffix(".new").replace(path)


def test_versions_are_those_of_what_runs_not_of_what_was_installed_since(node, tmp_path):
    program, archive, pid = tmp_path / "sleep", tmp_path / "driver-1.jar", tmp_path / "run/one/pid"
    shutil.copy("/bin/sleep", program)
    jar(archive, "1.2.3")
    pid.parent.mkdir(parents=True)
    lines = [f"server {tmp_path}/run/*/pid says --version", f"driver {tmp_path}/run/*/pid jar */driver-*.jar",
             f"absent {tmp_path}/run/*/other says --version", f"closed {tmp_path}/run/*/pid jar */none.jar",
             f"told {tmp_path}/run/*/pid wrote {tmp_path}/told"]  # fmt: skip
    (node.etc / "running.d/role").write_text("\n".join(lines))
    (tmp_path / "told").write_text("42.7\n")
    before = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[3]
    with archive.open("rb") as used, subprocess.Popen([program, "60"], pass_fds=[used.fileno()]) as server:
        pid.write_text(f"{server.pid}\n")
        program.unlink()
        program.write_text("#!/bin/sh\necho 99.9\n")
        jar(archive, "2.0")
        versions = json.loads(node.call("versions").stdout)
        server.kill()
    unknown = {"absent": "unknown", "closed": "unknown"}
    assert versions.pop("sysstat")[0].isdigit()
    assert versions == {"server": before, "driver": "1.2.3", "told": "42.7", **unknown}


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ("Server version: Apache/2.4.66 (Debian)\nServer built:   2026-01-01T10:00:00", "2.4.66"),
        ('openjdk version "25.0.1" 2025-10-21', "25.0.1"),
        ('openjdk version "25" 2025-09-16', "25"),
        ("mysqld  Ver 9.7.4-1 for Linux on x86_64 ((Debian))", "9.7.4-1"),
        ("postgres (PostgreSQL) 17.6 (Debian 17.6-0+deb13u1)", "17.6"),
        ("HAProxy version 3.0.11-1+deb13u2 2025/12/01 - https://haproxy.org/", "3.0.11-1+deb13u2"),
        ("pgpool-II version 4.6.3 (chirikoboshi)", "4.6.3"),
        ("MySQL Router  Ver 9.7.4 for Linux on x86_64 ((Debian))", "9.7.4"),
        ("ProxySQL version 2.7.1-16-g52bb8a9, codename Truls", "2.7.1-16-g52bb8a9"),
        ("sysstat version 12.7.5", "12.7.5"),
    ],
)
def test_the_version_is_the_first_number_that_a_program_prints(monkeypatch, says, version):
    monkeypatch.syspath_prepend(FILES / "lib")
    said = importlib.import_module("running").said
    assert said(subprocess.CompletedProcess([], 0, says, "")) == version


@pytest.mark.parametrize(
    "arguments", [["stat"], ["start"], ["start", "relative"], ["facts", "/x"], ["stop", "/a", "/b"]]
)
def test_a_wrong_request_names_what_is_allowed(node, arguments):
    done = node.call(*arguments)
    assert done.returncode == 2
    allowed = "facts, versions, clock, reset, alive, end-load, end-all, start DIR, stop DIR, pack DIR, drop DIR"
    assert f"allowed: {allowed}" in done.stderr
