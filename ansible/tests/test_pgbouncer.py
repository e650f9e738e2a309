"""The reset of PgBouncer as a program, against PgBouncer itself with the role's own configuration. It runs as its user,
the reset as root, as on a node."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest

ROLES = Path(__file__).resolve().parents[1] / "roles"
ROLE = ROLES / "pgbouncer"
PACKAGES = ("pgbouncer", "libc-ares2")
NEWER = ("max_prepared_statements = .*", "load_balance_hosts=round-robin")
"""What PgBouncer of Debian 12 does not know yet: 1.21 and 1.24 brought them."""
USER = "postgres"


def fetched() -> Path:
    """Folder with Debian's packages, unpacked; fetched once. Skips the test where they are not to be had."""
    folder = Path(tempfile.gettempdir()) / f"ntier-pgbouncer-{os.getuid()}"
    if not (folder / "usr/sbin/pgbouncer").exists():
        if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
            pytest.skip("no PgBouncer here, and no apt-get to fetch it")
        with tempfile.TemporaryDirectory() as there:
            with contextlib.suppress(subprocess.TimeoutExpired):
                argv = ["apt-get", "download", *PACKAGES]
                subprocess.run(argv, cwd=there, capture_output=True, timeout=60, check=False)
            packages = sorted(Path(there).glob("*.deb"))
            if len(packages) < len(PACKAGES):
                pytest.skip(f"no PgBouncer here, and the archive has no {' '.join(PACKAGES)}, or does not answer")
            for package in packages:
                subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
        folder.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def program() -> tuple[str, dict[str, str]]:
    """PgBouncer, and its environment."""
    if os.getuid() or USER not in {u.pw_name for u in pwd.getpwall()} or not shutil.which("psql"):
        pytest.skip(f"needs root, psql and the user {USER} (apt-get install postgresql-client)")
    if own := shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin"):
        return own, dict(os.environ)
    folder = fetched()
    (libraries,) = {str(file.parent) for file in folder.rglob("libcares.so.2")}
    return str(folder / "usr/sbin/pgbouncer"), os.environ | {"LD_LIBRARY_PATH": libraries}


class Place:
    """PgBouncer and its reset with a folder of their own for /etc/ntier and /run/pgbouncer, before a database that
    listens and says nothing."""

    def __init__(self, folder: Path, database: int) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        values = {"address": "127.0.0.1", "pgbouncer_port": self.port, "pgbouncer_databases": ["127.0.0.1"],
                  "pgbouncer_database_port": database, "pgbouncer_schema": "rubbos", "pgbouncer_pool_max": 2,
                  "pgbouncer_database_user": "ntier_middleware", "middleware_db_password": "secret-of-the-database",
                  "pgbouncer_clients": ["127.0.0.1"], "pgbouncer_client_user": "ntier_app", "app_db_password": "secret",
                  "pgbouncer_clients_max": 10, "pgbouncer_pool_wait_ms": 4000}  # fmt: skip
        templates = jinja2.Environment(loader=jinja2.FileSystemLoader(ROLE / "templates"), trim_blocks=True)
        for name in ("pgbouncer.ini", "hba.conf", "userlist.txt"):
            self.write(f"pgbouncer/{name}", templates.get_template(f"{name}.j2").render(values))
        self.write("collectors.d/middleware_status", (ROLE / "files/middleware_status").read_text())
        self.write("reset", (ROLE / "files/reset").read_text())
        self.write("reset-soon", (ROLE / "files/reset").read_text().replace("LIMIT_S = 45", "LIMIT_S = 1.5"))

    def write(self, name: str, text: str) -> None:
        """What is there is for root and PgBouncer's user."""
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        text = text.replace("/etc/ntier", str(self.folder)).replace("/run/pgbouncer", str(self.folder / "run"))
        file.write_text(text.replace("/usr/local/lib/ntier", str(ROLES / "monitor/files/lib")))

    def reset(self, name: str = "reset") -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, str(self.folder / name)]
        return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)

    def client(self) -> subprocess.Popen[bytes]:
        """One of the application's, with a statement."""
        place = f"host=127.0.0.1 port={self.port} dbname=rubbos user=ntier_app password=secret"
        argv = ["psql", "--no-psqlrc", "--command", "SELECT 1", place]
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture
def place(program) -> Iterator[Place]:
    executable, environment = program
    with tempfile.TemporaryDirectory(prefix="nt-") as name, socket.create_server(("127.0.0.1", 0)) as database:
        folder = Path(name)
        (folder / "run").mkdir()
        made = Place(folder, database.getsockname()[1])
        settings = folder / "pgbouncer/pgbouncer.ini"
        version = subprocess.run([executable, "--version"], env=environment, capture_output=True, text=True).stdout
        if tuple(map(int, re.findall(r"\d+", version)[:2])) < (1, 24):
            settings.write_text(re.sub("|".join(NEWER), "", settings.read_text()))
        for path in (folder, *folder.rglob("*")):
            shutil.chown(path, USER, USER)
        argv = [executable, "--quiet", str(settings)]
        with subprocess.Popen(argv, env=environment, user=USER, group=USER, extra_groups=()) as process:
            deadline = time.monotonic() + 10
            while not list((folder / "run").glob(".s.*")) and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)
            try:
                yield made
            finally:
                process.kill()


def test_a_reset_ends_when_nobody_has_or_awaits_a_connection(place):
    done = place.reset()
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reset_says_what_still_waits_and_ends_when_it_has_gone(place):
    """PgBouncer does not look at a client that waits: it learns that it has gone when its time to wait is over."""
    client = place.client()
    time.sleep(0.5)
    done = place.reset("reset-soon")
    assert done.returncode == 1
    assert done.stderr == "PgBouncer: 1 statements are executed or wait after 1.5 s\n"
    client.kill()
    client.wait()
    done = place.reset()
    assert (done.returncode, done.stderr) == (0, "")


def test_the_collector_understands_what_pgbouncer_shows(place, tmp_path):
    client = place.client()
    time.sleep(0.5)  # by now a connection to the database is begun, which answers nothing
    argv = [sys.executable, str(place.folder / "collectors.d/middleware_status"), str(tmp_path)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as collector:
        time.sleep(1.7)
        collector.terminate()
        _, said = collector.communicate(timeout=30)
    client.kill()
    client.wait()
    assert said == ""
    lines = (tmp_path / "middleware_status.csv").read_text().splitlines()
    assert len(lines) >= 2
    assert {line.partition(",")[2] for line in lines[1:]} == {"db1,0,,2,,"}


def test_a_reset_without_pgbouncer_fails(place):
    (place.folder / "pgbouncer/pgbouncer.ini").write_text(
        (place.folder / "pgbouncer/pgbouncer.ini").read_text().replace(f"= {place.port}", "= 1")
    )
    done = place.reset()
    assert done.returncode == 1
    assert "psql showed nothing" in done.stderr
