"""Database nodes for tests: clones of the golden images, with an account that may do everything and is told to nobody else."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent
STATE = Path(os.environ.get("NTIER_STATE") or "/var/lib/ntier")
NODE_SH = ROOT / "terraform/targets/local/node.sh"
CONTROLLER = "198.18.0.1"

# The password comes by standard input: it is in no list of processes.
PREPARE = {
    "mysql": """
read -r password
printf '[mysqld]\\nbind_address = {address}\\n' >/etc/mysql/mysql.conf.d/zz-test.cnf
systemctl start mysql
mysql -e "CREATE USER tester@'{controller}' IDENTIFIED BY '$password'; GRANT ALL ON *.* TO tester@'{controller}' WITH GRANT OPTION"
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


@dataclass(frozen=True)
class DatabaseNode:
    name: str
    address: str
    password: str
    user: str = "tester"

    def run(self, command: list[str], **options: object) -> subprocess.CompletedProcess:
        """A program on the node, as root."""
        argv = ["incus", "exec", "--project", "ntier", self.name, "--", *command]
        return subprocess.run(argv, check=True, capture_output=True, text=True, **options)


@pytest.fixture
def database_node(tmp_path: Path) -> Iterator[Callable[[str, int], DatabaseNode]]:
    """database_node(image, number): a running MySQL or PostgreSQL at 198.18.190.<number>, gone after the test. The image
    is `mysql`, `postgresql`, or one of them with data, as `mysql-small`."""
    environment = {**os.environ, "NTIER_NODES": str(tmp_path / "nodes"), "NTIER_STATE": str(STATE)}
    names: list[str] = []

    def create(image: str, number: int) -> DatabaseNode:
        node = DatabaseNode(f"build-test-{number}", f"198.18.190.{number}", secrets.token_urlsafe(16))
        names.append(node.name)
        subprocess.run([NODE_SH, "create", node.name, image, node.address], env=environment, check=True)
        script = PREPARE[image.partition("-")[0]].format(address=node.address, controller=CONTROLLER)
        node.run(["sh", "-euc", script], input=f"{node.password}\n")
        return node

    yield create
    for name in names:
        subprocess.run([NODE_SH, "delete", name], env=environment, check=True)
