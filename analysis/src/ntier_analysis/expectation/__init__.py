"""Expectations of a store, for `ntier-analysis check`: each holds, does not hold, or cannot be decided."""

from ntier_analysis.expectation.expressions import Outcome, Result
from ntier_analysis.expectation.files import check

__all__ = ["Outcome", "Result", "check"]
