"""Collectors and resets of roles as programs, with answers of the tests' own."""

from __future__ import annotations

import csv
import os
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROLES = Path(__file__).resolve().parents[1] / "roles"
LIBRARY = ROLES / "monitor/files/lib"
HEAD = "# pxname,svname,qcur,qmax,scur,smax,slim,stot,"
ROWS = {4: ["database,db1,0,0,432,432,452,900,", "database,db2,1,1,452,452,452,950,"]}
ROWS[6] = [*ROWS[4], "database,BACKEND,6,9,884,884,1000,1850,"]


class Answer(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        kind = int(self.rfile.readline().split()[3])
        self.wfile.write("\n".join([HEAD, *ROWS[kind], ""]).encode())


@pytest.fixture
def haproxy(tmp_path: Path) -> Iterator[Path]:
    """A statistics socket whose replicas are full."""
    path = tmp_path / "admin.sock"
    with socketserver.ThreadingUnixStreamServer(str(path), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield path
        server.shutdown()


def lines_of(role: str, places: dict[str, object], folder: Path) -> list[dict[str, str]]:
    """The first lines that the collector of a role writes, with other places of its own."""
    program = (ROLES / role / "files/middleware_status").read_text()
    for there, here in {"/usr/local/lib/ntier": LIBRARY, **places}.items():
        assert there in program
        program = program.replace(there, str(here))
    (folder / "collector").write_text(program)
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen([sys.executable, folder / "collector", folder], env=environment) as collector:
        file, until = folder / "middleware_status.csv", time.monotonic() + 30
        while collector.poll() is None and time.monotonic() < until:
            if file.exists() and file.read_text().count("\n") >= 3:
                break
            time.sleep(0.1)
        collector.terminate()
    with file.open() as text:
        return list(csv.DictReader(text))[:2]


def test_haproxy_tells_who_waits_for_a_replica_and_no_pool_that_is_always_full(haproxy, tmp_path):
    """All replicas are full: those that come wait at the backend."""
    rows = lines_of("haproxy", {"/run/haproxy/admin.sock": haproxy}, tmp_path)
    assert [row["replica"] for row in rows] == ["db1", "db2"]
    assert [int(row["awaiting"]) for row in rows] == [3, 4]  # six at the backend, one at db2
    assert [int(row["pending"]) for row in rows] == [432 + 3, 452 + 4]
    assert [row["chosen_total"] for row in rows] == ["900", "950"]
    assert {row["pool_size"] for row in rows} == {""}
    assert len({row["t_s"] for row in rows}) == 1, "two times of one reading"


def test_mysql_router_tells_no_pool_that_is_always_full(tmp_path):
    settings = tmp_path / "mysqlrouter.conf"
    settings.write_text("[routing:database]\ndestinations = 198.18.1.41:3306,198.18.1.42:3306\nmax_connections = 532\n")
    rows = lines_of("mysqlrouter", {"/etc/ntier/mysqlrouter/mysqlrouter.conf": settings}, tmp_path)
    assert [(row["replica"], row["pending"], row["pool_size"]) for row in rows] == [("db1", "0", ""), ("db2", "0", "")]
    assert len({row["t_s"] for row in rows}) == 1, "two times of one reading"


def test_each_collector_that_writes_a_line_per_replica_stamps_its_reading_once():
    """Values of replicas are compared at the same moment, and the time between readings is checked."""
    programs = list(ROLES.glob("*/files/middleware_status"))
    assert len(programs) >= 5
    for program in programs:
        lines = program.read_text().splitlines()
        assert not [line for line in lines if "time.time()" in line and ".write(" in line], program


CLIENTS = {"mysql": ("mysql", "Threads_running\t1"), "pgpool": ("psql", "1|t|Execute command\n2|t|Idle")}


@pytest.mark.parametrize("role", CLIENTS)
@pytest.mark.parametrize("answers", [True, False])
def test_a_service_that_does_not_answer_is_not_idle(role, answers, tmp_path):
    name, said = CLIENTS[role]
    (tmp_path / "said").write_text(f"{said}\n")
    (tmp_path / name).write_text(f"#!/bin/sh\n{f'cat {tmp_path}/said' if answers else 'exit 1'}\n")
    (tmp_path / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", ROLES / role / "files/reset"], env=environment, timeout=20)
    assert (done.returncode == 0) is answers
