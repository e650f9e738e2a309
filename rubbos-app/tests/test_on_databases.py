"""The whole Java suite, every interaction included, on a real MySQL and a real PostgreSQL: nodes of their golden images."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.nodes
ROOT = Path(__file__).resolve().parents[2]
STATE = Path(os.environ.get("NTIER_STATE") or "/var/lib/ntier")
NODE_SH = ROOT / "terraform/targets/local/node.sh"
CONTROLLER = "198.18.0.1"
ADDRESSES = {"mysql": "198.18.190.21", "postgresql": "198.18.190.22"}

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
URLS = {
    "mysql": "jdbc:mysql://{address}:3306/?sslMode=DISABLED&allowPublicKeyRetrieval=true",
    "postgresql": "jdbc:postgresql://{address}:5432/?sslmode=disable",
}


@pytest.fixture(params=list(ADDRESSES))
def database(request, tmp_path) -> Iterator[dict[str, str]]:
    """Environment of the Java tests for one DBMS on a node of its own."""
    dbms, address, name = request.param, ADDRESSES[request.param], f"build-test-{request.param}"
    environment = {**os.environ, "NTIER_NODES": str(tmp_path / "nodes"), "NTIER_STATE": str(STATE)}
    subprocess.run([NODE_SH, "create", name, dbms, address], env=environment, check=True)
    try:
        password = secrets.token_urlsafe(16)
        script = PREPARE[dbms].format(address=address, controller=CONTROLLER)
        command = ["incus", "exec", "--project", "ntier", name, "--", "sh", "-euc", script]
        subprocess.run(command, input=f"{password}\n", text=True, check=True)
        url = URLS[dbms].format(address=address)
        yield {"RUBBOS_TEST_JDBC_URL": url, "RUBBOS_TEST_USER": "tester", "RUBBOS_TEST_PASSWORD": password}
    finally:
        subprocess.run([NODE_SH, "delete", name], env=environment, check=True)


def test_every_interaction_on_a_real_database(database):
    command = ["mvn", "-B", "-q", "-f", ROOT / "rubbos-app/pom.xml", "surefire:test", "-Dtest=BoardTest,WriteTest"]
    done = subprocess.run(command, env=os.environ | database, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:]
