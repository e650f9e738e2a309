"""Two nodes for the tests of a file."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "load")]

from clusters import Cluster, clusters  # noqa: E402
from trials import nodes_of  # noqa: E402
from twophase.builtin import end  # noqa: E402


@pytest.fixture(scope="module")
def pair() -> Iterator[list[Cluster]]:
    with tempfile.TemporaryDirectory(prefix="two-phase-") as folder:
        os.chmod(folder, 0o755)  # the databases' user must enter it
        with clusters(Path(folder) / "pair", 2, oldest=16) as made:
            yield made


@pytest.fixture
def two(pair: list[Cluster]) -> list[Cluster]:
    """The two nodes with fresh data, and nothing that replicates them."""
    asyncio.run(end(nodes_of(pair)))
    for node in pair:
        node.load(200)
    return pair
