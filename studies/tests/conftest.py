"""The measured store that comes with the program."""

from __future__ import annotations

from pathlib import Path

import pytest
from ntier_analysis.demo import SWEEP, unpack
from ntier_analysis.expectation.quantities import read_facts
from ntier_analysis.verdict.store import judge_again


@pytest.fixture(scope="session")
def demo(made_once) -> Path:
    """With its verdicts in it."""
    return made_once("demo", lambda folder: judge_again(unpack(folder), [])) / "store"


@pytest.fixture(scope="session")
def facts(demo):
    return read_facts(demo, [SWEEP])[SWEEP]
