"""ntier-node without a node: its own folders, collectors that behave and misbehave, the machine's own sadc."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

FILES = Path(__file__).resolve().parents[1] / "roles/monitor/files"
STEADY = """#!/bin/sh
echo t_s,value >"$1/NAME.csv"
while :; do echo "$(date +%s.%N),1" >>"$1/NAME.csv"; sleep 0.2; done
"""


class Node:
    def __init__(self, folder: Path) -> None:
        self.run, self.etc, self.trial = folder / "run", folder / "etc", folder / "trial"
        for name in ("collectors.d", "reset.d", "logs.d", "services.d", "installed", "versions.d", "packages.d"):
            (self.etc / name).mkdir(parents=True)

    def call(self, *arguments: object, text: str = "") -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
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
    time.sleep(1.2)
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


def test_a_killed_collector_is_seen_with_its_exit_status(node):
    node.start()
    os.kill(node.pids()["sysstat"], signal.SIGKILL)
    time.sleep(0.3)
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
    time.sleep(3.5)
    alive = node.call("alive")
    assert alive.returncode == 1
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
    (node.etc / "versions.d/proxy").write_text("5.1.0\n")
    facts = json.loads(node.call("facts").stdout)
    assert facts["installed"] == {"web": "abc"}
    assert facts["packages"] == {"proxy": "5.1.0"}
    assert facts["services"] == []
    assert abs(facts["time_s"] - time.time()) < 5
    assert facts["boot_id"] == json.loads(node.call("facts").stdout)["boot_id"]
    times = [float(line) for line in node.call("clock", text="x\nx\nx\n").stdout.split()]
    assert len(times) == 3
    assert times == sorted(times)


@pytest.mark.parametrize(
    "arguments", [["stat"], ["start"], ["start", "relative"], ["facts", "/x"], ["stop", "/a", "/b"]]
)
def test_a_wrong_request_names_what_is_allowed(node, arguments):
    done = node.call(*arguments)
    assert done.returncode == 2
    assert "allowed: facts, clock, reset, alive, start DIR, stop DIR, pack DIR, drop DIR" in done.stderr
