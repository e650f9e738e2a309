"""What tests of several parts share: nodes, and the order in which deployments are needed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "setup"))

import testnode

ROOT = Path(__file__).resolve().parent
STATE = Path(os.environ.get("NTIER_STATE") or "/var/lib/ntier")
# Deployments in the order that replaces the fewest nodes. A test names its own: pytest.mark.nodes("1/1/1/1M").
TOPOLOGIES = ("", "1/1/1/1M", "2/2/2/2M", "1/1/1/2M", "1/1/1/2P", "1/1/1/1ML")


def topology(item: pytest.Item) -> str:
    """Of the deployment that the test uses; empty if it uses none, or nodes of its own."""
    mark = item.get_closest_marker("nodes")
    return mark.args[0] if mark and mark.args else ""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one deployment follow each other, so that it is made once."""
    items.sort(key=lambda item: TOPOLOGIES.index(topology(item)))


@pytest.fixture(scope="session")
def deployments() -> Iterator[None]:
    """For tests that deploy: the nodes of the last deployment go at the end, unless there were some before."""
    before = (STATE / "local/nodes.json").exists()
    yield
    if not before and (STATE / "local/nodes.json").exists():
        subprocess.run([Path(sys.executable).with_name("ntier"), "down"], cwd=ROOT, check=True)


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
