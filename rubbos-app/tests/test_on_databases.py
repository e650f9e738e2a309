"""On a real MySQL and a real PostgreSQL: the Java suite of every interaction, the fuzz run, the nodes' programs."""

from __future__ import annotations

import json
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
    command = ["mvn", "-B", "-q", "-f", POM, "test", "-Dtest=BoardTest,ElbaTest,WriteTest,ConcurrencyTest,FuzzTest"]
    done = subprocess.run(command, env=os.environ | database, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:]


RUN_AS = {"mysql": [], "postgresql": ["runuser", "-u", "postgres", "--"]}
PREFIX_INDEXES = {
    "mysql": "SELECT COUNT(SUB_PART) FROM information_schema.STATISTICS WHERE INDEX_NAME = 'search'",
    "postgresql": "SELECT COUNT(*) FROM pg_index WHERE indexprs IS NOT NULL",
}


@pytest.mark.parametrize("dbms", list(URLS))
def test_the_search_index_is_switched_and_the_digest_sees_every_change(database_node, dbms):
    node = database_node(f"{dbms}-small", 22)

    def switch(kind: str) -> str:
        return node.run([*RUN_AS[dbms], "/usr/local/lib/ntier/search-index", kind]).strip()

    def data() -> dict[str, dict]:
        return json.loads(node.run(["ntier-data"]))

    for kind, number in (("full", "0"), ("prefix", "4"), ("full", "0")):
        switch(kind)
        assert node.sql(PREFIX_INDEXES[dbms]).strip() == number
        assert switch(kind) == "", "nothing is changed a second time"

    before = data()
    assert before["comments"]["rows"] == int(node.sql("SELECT COUNT(*) FROM comments"))
    assert len(before) == 8
    assert data() == before
    for statement, table in (
        ("UPDATE comments SET rating = rating + 1 WHERE id = 7", "comments"),
        ("UPDATE users SET nickname = 'User7' WHERE id = 7", "users"),
        ("DELETE FROM old_comments WHERE id = 7", "old_comments"),
        (
            "UPDATE stories SET writer = 8 WHERE id = (SELECT id FROM (SELECT MAX(id) AS id FROM stories) newest)",
            "stories",
        ),
    ):
        node.sql(statement)
        after = data()
        assert [name for name in before if after[name] != before[name]] == [table]
        before = after
