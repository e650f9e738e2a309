"""PostgreSQL clusters of this machine for tests: temporary folders, loopback ports, an ordinary user's processes."""

from __future__ import annotations

import contextlib
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

SYSTEM = Path(__file__).resolve().parents[1]
SCHEMA = SYSTEM / "load/twophase/schema.sql"
CONNINFO = "dbname=postgres user=tester"
SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = on
shared_buffers = 16MB
max_connections = 60
max_wal_size = 64MB
wal_level = minimal
max_wal_senders = 0
logging_collector = off
"""


def binaries() -> Path | None:
    """Folder of the newest PostgreSQL that is installed, None if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    if found:
        return found[-1].parent
    usual = shutil.which("initdb")
    return Path(usual).parent if usual else None


def owner() -> pwd.struct_passwd | None:
    """Whose processes they are: PostgreSQL refuses root."""
    if os.geteuid():
        return None
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("postgres")
    return pwd.getpwnam("nobody")


def call(*command: object) -> str:
    """Raises RuntimeError with what the program said."""
    user = owner()
    as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
    done = subprocess.run(
        list(map(str, command)), cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, **as_user
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

    def start(self, **settings: object) -> None:
        if settings:
            with (self.folder / "postgresql.auto.conf").open("a") as file:
                file.writelines(f"{name} = {value}\n" for name, value in settings.items())
        while any(map(alive, self.processes())):  # a server does not start beside one of the last one's processes
            time.sleep(0.02)
        # The dead one may still have its number, until its parent asks for it; PostgreSQL takes it for alive then.
        (self.folder / "postmaster.pid").unlink(missing_ok=True)
        log = self.folder.with_suffix(".log")
        call(self.bin / "pg_ctl", "start", "-D", self.folder, "-l", log, "-o", f"-p {self.port}", "-w", "-t", 60)

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

    def restart(self, **settings: object) -> None:
        self.stop("fast")  # what the log still has to replay may need the settings of before
        self.start(**settings)

    @property
    def pid(self) -> int:
        return int((self.folder / "postmaster.pid").read_text().split("\n")[0])

    def kill(self) -> None:
        kill_cluster(self.pid)

    def load(self, items: int) -> None:
        options = ["-X", "-q", "-v", "ON_ERROR_STOP=1", "-v", f"items={items}"]
        call(self.bin / "psql", *options, "-f", self._readable(), "-d", self.conninfo)

    def _readable(self) -> Path:
        """The checkout may be in a folder that the databases' user cannot enter."""
        copy = self.folder.parent / "schema.sql"
        shutil.copy(SCHEMA, copy)
        copy.chmod(0o644)
        return copy


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


@contextlib.contextmanager
def clusters(folder: Path, n: int, items: int = 200) -> Iterator[list[Cluster]]:
    """`n` clusters with the schema; they are gone afterwards."""
    place, user = binaries(), owner()
    if place is None:
        raise RuntimeError("PostgreSQL's programs (initdb) are missing; Debian: apt-get install postgresql")
    folder.mkdir(parents=True, exist_ok=True)
    if user:
        os.chown(folder, user.pw_uid, user.pw_gid)
    first = folder / "node1"
    call(place / "initdb", "-D", first, "-U", "tester", "--auth=trust", "--no-locale", "-E", "UTF8", "--no-sync")
    call("sh", "-c", f"cat >>{first}/postgresql.conf <<'END'\n{SETTINGS}END")
    made = []
    try:
        for i in range(n):
            if i:
                call("cp", "-a", first, folder / f"node{i + 1}")
            made.append(Cluster(place, folder / f"node{i + 1}", free_port()))
        for cluster in made:
            cluster.start(max_prepared_transactions=32)
            cluster.load(items)
        yield made
    finally:
        for cluster in made:
            cluster.stop()
