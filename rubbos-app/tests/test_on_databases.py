"""The Java suite of every interaction, and the fuzz run, on a real MySQL and a real PostgreSQL."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.nodes
POM = Path(__file__).resolve().parents[1] / "pom.xml"
URLS = {
    "mysql": "jdbc:mysql://{address}:3306/?sslMode=DISABLED&allowPublicKeyRetrieval=true",
    "postgresql": "jdbc:postgresql://{address}:5432/?sslmode=disable",
}


@pytest.mark.parametrize("dbms", list(URLS))
def test_every_interaction_on_a_real_database(database_node, dbms):
    node = database_node(dbms, 21)
    url = URLS[dbms].format(address=node.address)
    database = {"RUBBOS_TEST_JDBC_URL": url, "RUBBOS_TEST_USER": node.user, "RUBBOS_TEST_PASSWORD": node.password}
    command = ["mvn", "-B", "-q", "-f", POM, "surefire:test", "-Dtest=BoardTest,WriteTest,FuzzTest"]
    done = subprocess.run(command, env=os.environ | database, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:]
