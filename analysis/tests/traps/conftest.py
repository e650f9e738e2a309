import sys
from pathlib import Path

import pytest

# The simulator of known limits lives with the bench that scores the detector; pytest's importlib mode does not see
# modules beside a test.
sys.path[:0] = [str(Path(__file__).parents[2] / "bench"), str(Path(__file__).parent)]


@pytest.fixture(scope="session", autouse=True)
def compiled(made_once) -> None:
    """The simulator takes 20 s to compile, and keeps what it has compiled: one process of the tests does it, while the
    others wait."""
    from networks import plan, throughput

    made_once("simulator", lambda _: throughput(plan({}).build(), 10))
