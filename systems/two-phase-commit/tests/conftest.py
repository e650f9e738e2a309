"""Two nodes for the tests of a file."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "load")]

from clusters import Cluster, clusters  # noqa: E402
from trials import Trial, nodes_of  # noqa: E402
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


@pytest.fixture
def ended(measured: Callable[..., Trial]) -> Callable[..., Trial]:
    """ended(nodes, folder, mode, ...): a run that ended well and, unless `meanwhile` disturbed it, said nothing. It is
    made again, on fresh data, if the machine was so short of CPU that the changes had not reached all nodes, or were
    not checked, in the seconds that the driver gives them."""

    def ended(
        nodes: list[Cluster], folder: Path, mode: str, meanwhile: Callable[[], None] | None = None, **more: object
    ) -> Trial:
        numbers = itertools.count(1)

        def run() -> Trial:
            if (number := next(numbers)) > 1:
                asyncio.run(end(nodes_of(nodes)))
                for node in nodes:
                    node.load(200)
            trial = Trial(folder / f"run{number}", nodes, mode, **more)
            trial.begin()
            if meanwhile:
                meanwhile()
            trial.ended = trial.end()
            return trial

        def is_good(trial: Trial) -> bool:
            code, said = trial.ended
            return code == 0 and bool(meanwhile or not said) and trial.work["drained"] and bool(trial.work["state"])

        trial = measured(run, is_good)
        code, said = trial.ended
        assert code == 0, said
        assert meanwhile or not said, said
        return trial

    return ended
