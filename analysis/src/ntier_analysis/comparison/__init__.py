"""Two sweeps side by side: ratios with intervals, the same or not, or undecided."""

from ntier_analysis.comparison.sweeps import Comparison, NotComparable, compare

__all__ = ["Comparison", "NotComparable", "compare"]
