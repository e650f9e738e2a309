"""The loaders' shell, with clients that take the place of psql and mysql."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCHEMA = Path(__file__).resolve().parents[1] / "schema"
TABLES = "categories users stories old_stories submissions comments old_comments moderator_log"


@pytest.fixture
def called(tmp_path, monkeypatch):
    """Runs a program of the schema; `client`: what the DBMS's client does, in shell."""

    def call(name: str, client: str, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\n{client}\n")
        file.chmod(0o755)
        environment = os.environ | {"PATH": f"{file.parent}:{os.environ['PATH']}"}
        command = ["sh", str(SCHEMA / program), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)

    return call


def test_an_index_that_cannot_be_made_says_why(called):
    psql = 'case "$*" in *"CREATE INDEX"*) echo "ERROR:  No space left on device" >&2; exit 3;; esac'
    done = called("psql", psql, "postgresql/search_index.sh", "full")
    assert done.returncode == 3
    assert "No space left on device" in done.stderr


MYSQL = """case "$*" in
  *--defaults-extra-file*) [ "$1" = --defaults-extra-file=/root/my.cnf ] || { echo "unknown variable" >&2; exit 7; } ;;
esac
case "$*" in
  *"COUNT(*)"*) echo 1 ;;
  *" -e "*) ;;
  *) cat >/dev/null; echo "rubbos.stories analyze status OK" ;;
esac"""


@pytest.mark.parametrize("program", ["mysql/load.sh", "mysql/search_index.sh", "mysql_cluster/load.sh"])
def test_a_file_with_the_password_can_be_given(called, tmp_path, program):
    """The client takes such an option in the first place only."""
    for table in TABLES.split():
        (tmp_path / f"{table}.tsv").write_text("1\n")
    first = "prefix" if "search_index" in program else str(tmp_path)
    done = called("mysql", MYSQL, program, first, "--defaults-extra-file=/root/my.cnf")
    assert done.returncode == 0, done.stderr
