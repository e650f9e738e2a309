"""Distributions are those of scipy.stats, and a command that needs no more does not load it."""

import subprocess
import sys

import numpy as np
import pytest
from ntier_analysis.statistics import distributions
from scipy import stats

CHANCES = [1e-12, 0.0025, 0.025, 0.05, 0.5, 0.975, 0.9999, 1.0, np.nan]
DEGREES = [0.0, 0.5, 1.0, 4.0, 9.0, 59.5, 1e6, np.inf, np.nan]
VALUES = [-np.inf, -5.0, 0.0, 0.3, 40.0, np.inf, np.nan]


@pytest.mark.parametrize(
    ("name", "function", "grids"),
    [
        ("t", "ppf", (CHANCES, DEGREES)), ("t", "isf", (CHANCES, DEGREES)), ("t", "cdf", (VALUES, DEGREES)),
        ("t", "sf", (VALUES, DEGREES)), ("norm", "isf", (CHANCES,)), ("norm", "sf", (VALUES,)),
        ("beta", "ppf", (CHANCES, [0.0, 1.0, 5.0, 5e4], [1e-9, 1.0, 200.0])),
        ("f", "ppf", (CHANCES, [1.0, 4.0], [2.0, 9.0, 50.0])),
    ],
)  # fmt: skip
def test_values_are_those_of_scipy_to_the_last_bit(name, function, grids):
    at = np.meshgrid(*grids)
    ours, theirs = (getattr(getattr(where, name), function)(*at) for where in (distributions, stats))
    np.testing.assert_array_equal(ours, theirs)


def test_the_others_are_scipys_own():
    assert distributions.spearmanr is stats.spearmanr
    with pytest.raises(AttributeError):
        _ = distributions.nosuch


ALONE = """
import sys
from ntier_analysis import cli
cli.app(["verdict", sys.argv[1]], standalone_mode=False)
print("scipy.stats" in sys.modules)
"""


def test_to_say_a_verdict_does_not_load_it(demo):
    """It took a third of the start of the program."""
    done = subprocess.run([sys.executable, "-c", ALONE, demo], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
