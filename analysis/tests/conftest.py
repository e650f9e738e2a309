import sys
from pathlib import Path

import pytest
from ntier_analysis.demo import unpack
from ntier_analysis.verdict.store import judge_again

# The synthetic trials are shared by several folders of tests; pytest's importlib mode does not see siblings.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def demo(made_once) -> Path:
    """The measured store that comes with the program, with its verdicts in it; to be read only."""
    return made_once("demo", lambda folder: judge_again(unpack(folder), [])) / "store"


@pytest.fixture(scope="session", autouse=True)
def simulated(made_once) -> None:
    """Sweeps and trials that several tests want are made once."""
    import once

    once.made_once = made_once
