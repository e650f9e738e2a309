"""Nodes that tests which were killed left running."""

from __future__ import annotations

import os

import testnode

INCUS = """#!/bin/sh
case $* in
  *list*) printf '%s\\n' build-test-91 build-own-2 db1 build-ndb build-host-1 build-bare build-web build-test-x ;;
  *delete*) echo "$*" >>"$CALLS" ;;
esac
"""


def test_only_nodes_of_tests_are_removed(monkeypatch, tmp_path):
    (tmp_path / "incus").write_text(INCUS)
    (tmp_path / "incus").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    testnode.remove_leftovers()
    removed = [line.split()[-1] for line in (tmp_path / "calls").read_text().splitlines()]
    assert removed == ["build-test-91", "build-own-2", "build-host-1", "build-bare"]
