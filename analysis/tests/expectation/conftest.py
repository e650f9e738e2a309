"""The measured sweeps, and what is known of two of them."""

from pathlib import Path

import pytest
from ntier_analysis.demo import SWEEP
from ntier_analysis.expectation.quantities import read_facts


@pytest.fixture(scope="module")
def store(demo) -> Path:
    return demo


@pytest.fixture(scope="module")
def facts(store):
    return read_facts(store, [SWEEP, SWEEP.replace("1M", "1P")])
