"""Fixtures that tests of several parts use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "setup"))

import testnode


@pytest.fixture
def database_node(tmp_path: Path) -> Iterator[Callable[[str, int], testnode.DatabaseNode]]:
    """database_node(image, number): a database node of its own, gone after the test."""
    nodes: list[testnode.DatabaseNode] = []

    def create(image: str, number: int) -> testnode.DatabaseNode:
        nodes.append(testnode.create(image, number, tmp_path))
        return nodes[-1]

    yield create
    for node in nodes:
        node.delete()
