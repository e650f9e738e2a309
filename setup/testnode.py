"""Nodes of tests. Database nodes beside any experiment, also for benchmarks: clones of the golden images that run
alone."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
STATE = Path(os.environ.get("NTIER_STATE") or "/var/lib/ntier")
NODE_SH = ROOT / "terraform/targets/local/node.sh"
CONTROLLER = "198.18.0.1"
SCALE = ("--scale", "0.1")
"""Of every deployment that tests make, as of `make smoke`: at 0.2 a slow machine is full, and no trial on it is valid;
at one scale they share their nodes."""

# An account that may do everything. The password comes by standard input: it is in no list of processes.
PREPARE = {
    "mysql": """
read -r password
printf '[mysqld]\\nbind_address = {address}\\n' >/etc/mysql/mysql.conf.d/zz-test.cnf
systemctl start mysql
account="tester@'{controller}'"
mysql -e "CREATE USER $account IDENTIFIED BY '$password'; GRANT ALL ON *.* TO $account WITH GRANT OPTION"
""",
    "postgresql": """
read -r password
cd /etc/postgresql/17/main
printf "listen_addresses = '{address}'\\n" >conf.d/zz-test.conf
printf 'host all tester {controller}/32 scram-sha-256\\n' >>pg_hba.conf
systemctl start postgresql@17-main
cd / && printf "CREATE ROLE tester SUPERUSER LOGIN PASSWORD '%s'" "$password" | runuser -u postgres -- psql --quiet
""",
}
CLIENT = {
    "mysql": ["mysql", "--batch", "--skip-column-names"],
    "postgresql": ["runuser", "-u", "postgres", "--", "psql", "--no-psqlrc", "--tuples-only", "--no-align", "--quiet"],
}


@dataclass(frozen=True)
class DatabaseNode:
    """A running MySQL or PostgreSQL at 198.18.190.<number>. `image`: mysql, postgresql, or one of them with data, as
    mysql-small."""

    image: str
    number: int
    folder: Path
    password: str
    user: str = "tester"

    @property
    def name(self) -> str:
        return f"build-test-{self.number}"

    @property
    def address(self) -> str:
        return f"198.18.190.{self.number}"

    @property
    def dbms(self) -> str:
        return self.image.partition("-")[0]

    def run(self, command: list[str], **options: Any) -> str:
        """A program on the node, as root; returns its output."""
        argv = ["incus", "exec", "--project", "ntier", "--cwd", "/", self.name, "--", *command]
        return subprocess.run(argv, check=True, capture_output=True, text=True, **options).stdout

    def sql(self, text: str, database: str = "rubbos") -> str:
        """Statements, on the node itself; fields are separated by tab (MySQL) or | (PostgreSQL)."""
        return self.run([*CLIENT[self.dbms], database], input=text)

    def mount(self, source: Path, path: str) -> None:
        """A folder of this machine, read-only."""
        disk = ["disk", f"source={source}", f"path={path}", "readonly=true", "shift=true"]
        subprocess.run(
            [
                "incus",
                "--project",
                "ntier",
                "config",
                "device",
                "add",
                self.name,
                path.strip("/").replace("/", "-"),
                *disk,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def delete(self) -> None:
        node_sh("delete", self.name, folder=self.folder)


def remove_leftovers() -> None:
    """Nodes of tests that were killed, which would go on running: those of this file, of harness/tests/real and of
    ansible/tests."""
    listed = ["incus", "--project", "ntier", "list", "--format", "csv", "--columns", "n"]
    done = subprocess.run(listed, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    for name in done.stdout.split():
        if re.fullmatch(r"build-(bare|(host|own|test)-\d+)", name):
            delete = ["incus", "--project", "ntier", "delete", "--force", name]
            subprocess.run(delete, capture_output=True, stdin=subprocess.DEVNULL)


def node_sh(*arguments: str, folder: Path) -> None:
    environment = {**os.environ, "NTIER_NODES": str(folder / "nodes"), "NTIER_STATE": str(STATE)}
    subprocess.run([NODE_SH, *arguments], env=environment, check=True)


def create(image: str, number: int, folder: Path) -> DatabaseNode:
    """`folder` keeps the node's keys while it lives."""
    node = DatabaseNode(image, number, folder, secrets.token_urlsafe(16))
    script = PREPARE[node.dbms].format(address=node.address, controller=CONTROLLER)
    try:
        node_sh("create", node.name, image, node.address, folder=folder)
        node.run(["sh", "-euc", script], input=f"{node.password}\n")
    except BaseException:
        node.delete()
        raise
    return node
