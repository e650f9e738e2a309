"""What a low-cost database node really gets, measured inside it while its limits are in force."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from ntier_analysis.contracts.nodes import Node
from ntier_harness.commands.begin import make_lab
from ntier_harness.lab import Lab
from ntier_harness.sampler import CGROUP, is_v2
from ntier_harness.targets.local import BESIDE_QUOTA

from .conftest import DEADLINE_S, NTIER

pytestmark = [pytest.mark.nodes("1/1/1/1ML"), pytest.mark.alone]

LEAST = 0.3  # of what a node may have: a machine that stands still in these few seconds gives it less

CPU = """
import time
t, used = time.monotonic(), time.process_time()
while time.monotonic() < t + 4: pass
print((time.process_time() - used) / (time.monotonic() - t))
"""
MEMORY = """
blocks = []
for taken in range(0, {}, 8 << 20):
    blocks.append(bytearray(8 << 20))
    print(taken + (8 << 20), flush=True)
"""
DISK = """
import os, mmap, time
size, block = {size}, mmap.mmap(-1, 1 << 20) # large: with 0.03 cores the loop itself would take time
fd = os.open("/var/tmp/limit", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
for name, do in (("write", lambda i: os.pwritev(fd, [block], i)), ("read", lambda i: os.preadv(fd, [block], i))):
    t = time.monotonic()
    for i in range(0, size, 1 << 20): do(i)
    print(name, size / (time.monotonic() - t))
os.unlink("/var/tmp/limit")
"""
RECEIVE = """
n = len(connection.recv(1 << 16)); t, total = time.monotonic(), 0
while (n := len(connection.recv(1 << 20, socket.MSG_WAITALL))): total += n
print(8 * total / (time.monotonic() - t))
"""
SEND = """
connection.sendall(bytes(6 << 20)); connection.close()
"""
SLEEPERS = """
import os, subprocess
quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
sadc, sleep = ["/usr/libexec/sysstat/sadc", "1", "/tmp/sleeper.sa"], ["sleep", "60"]
mark = {"NTIER_COLLECTOR": "/run/ntier"}
for program, more in ((sleep, mark), (sleep, {}), (sadc, mark)):
    print(subprocess.Popen(program, env={**os.environ, **more}, start_new_session=True, **quiet).pid)
"""
LISTEN = """
import socket, time
with socket.create_server(("0.0.0.0", 5999)) as server:
    connection, _ = server.accept()
"""
CONNECT = """
import socket, time
for _ in range(600):
    try: connection = socket.create_connection(("{address}", 5999)); break
    except OSError: time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def lab(deployments: None) -> Iterator[Lab]:
    command = [NTIER, "up", "--topo", "1/1/1/1ML", "--scale", "0.1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr
    lab = make_lab()
    lab.nodes.connect()
    lab.target.set_limits(lab.nodes.all)
    yield lab
    lab.target.lift_limits(lab.nodes.all)


@pytest.fixture(scope="module")
def db(lab: Lab) -> Node:
    return lab.nodes.tier("db")[0]


def python(lab: Lab, node: Node, program: str) -> str:
    return lab.nodes.call(node, "python3 -", input=program, timeout=120).out


def test_its_cpu(lab, db):
    assert db.cpu_cores == pytest.approx(0.03, rel=0.02)
    assert LEAST < float(python(lab, db, CPU)) / db.cpu_cores < 1.1


def test_its_memory(lab, db):
    total = int(lab.nodes.call(db, "awk '/^MemTotal/ {print $2 * 1024}' /proc/meminfo").out)
    assert total == pytest.approx(db.memory_bytes, rel=0.01)
    # With 0.03 cores and a slow disk, the kernel takes half a minute or two until it ends the program.
    program = MEMORY.format(db.memory_bytes)
    done = lab.nodes.call(db, "timeout 60 python3 -", input=program, check=False, timeout=240)
    taken = int(done.out.split()[-1])
    assert db.memory_bytes / 4 < taken < db.memory_bytes


def test_its_disk(lab, db):
    assert db.disk_bytes_s == 2_000_000
    rates = dict(line.split() for line in python(lab, db, DISK.format(size=8 << 20)).splitlines())
    for direction in ("write", "read"):
        assert LEAST < float(rates[direction]) / db.disk_bytes_s < 1.15, direction


@pytest.mark.parametrize("direction", ["in", "out"])
def test_its_network(lab, db, direction):
    """The client connects both times: its packet filter lets nobody in."""
    assert db.network_bits_s == 10_000_000
    own, other = (RECEIVE, SEND) if direction == "in" else (SEND, RECEIVE)
    programs = {db: LISTEN + own, lab.nodes.clients[0]: CONNECT.format(address=db.address) + other}
    said = lab.runner.parallel(lambda node: python(lab, node, programs[node]), programs)
    (rate,) = (float(text) for text in said if text.strip())
    assert LEAST < rate / db.network_bits_s < 1.15


def test_its_collectors_come_before_its_servers(lab, db):
    """Whatever `ntier-node start` started has the mark; the second one stands for a server. sysstat's own collector
    does not wait for the node's quota."""
    numbers = python(lab, db, SLEEPERS).split()
    lab.target.set_limits([db])
    beside = Path(CGROUP, "" if is_v2() else "cpu", BESIDE_QUOTA, "cgroup.procs").read_text().split()
    assert [Path(f"/proc/{n}/comm").read_text().strip() for n in beside] == ["sadc"]
    asked = f"ps -o ni= -p {','.join(numbers)}; kill {' '.join(numbers)}; rm -f /tmp/sleeper.sa"
    assert lab.nodes.call(db, asked).out.split() == ["-20", "0", "-20"]


def test_limits_are_lifted_afterwards(lab, db):
    lab.target.lift_limits(lab.nodes.all)
    rates = dict(line.split() for line in python(lab, db, DISK.format(size=8 << 20)).splitlines())
    assert float(rates["write"]) > 3 * db.disk_bytes_s
    assert lab.target.quota(db) is None
