"""The Java tests of the proxy before two real MySQL servers: rows, balancing, writes to every replica."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.nodes
POM = Path(__file__).resolve().parents[1] / "pom.xml"


def test_the_proxy_before_two_databases(database_node):
    nodes = [database_node("mysql", number) for number in (23, 24)]
    for node in nodes:  # one account for both
        node.run(["mysql", "-e", f"ALTER USER tester@'198.18.0.1' IDENTIFIED BY '{nodes[0].password}'"])
    databases = ",".join(f"{node.address}:3306" for node in nodes)
    given = {
        "NTIER_TEST_MYSQL": databases,
        "NTIER_TEST_MYSQL_USER": "tester",
        "NTIER_TEST_MYSQL_PASSWORD": nodes[0].password,
    }
    command = ["mvn", "-B", "-q", "-f", POM, "test", "-Dtest=ProxyTest"]
    done = subprocess.run(command, env=os.environ | given, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:]
