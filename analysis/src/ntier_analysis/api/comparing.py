"""Two sweeps side by side."""

from __future__ import annotations

import pandas as pd

from ntier_analysis.api import html
from ntier_analysis.comparison import Comparison as Computed
from ntier_analysis.comparison.texts import comparison_text, conclusion, table
from ntier_analysis.figures.comparison import ratios
from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.load_axis import over


class Comparison:
    """Ratios B/A with 95 % intervals (docs/analysis.md, "Two sweeps side by side").

    >>> import ntier_analysis as na
    >>> mysql, *_, postgresql = na.Store.demo().sweeps
    >>> comparison = na.Store.demo().compare(mysql, postgresql)
    >>> comparison
    maximum throughput: B is 0.5... of A: undecided...
    >>> comparison.outcome  # of B only a lower bound is known
    'undecided'
    """

    def __init__(self, comparison: Computed) -> None:
        self._comparison = comparison

    @property
    def outcome(self) -> str:
        """Outcome for the maximum throughput: `same` (shown to be within the margin), `different` or `undecided`."""
        return self._comparison.outcome

    @property
    def conclusion(self) -> str:
        return conclusion(self._comparison)

    @property
    def warnings(self) -> list[str]:
        """What a reader must know before using a ratio."""
        return list(self._comparison.warnings)

    @property
    def ratios(self) -> pd.DataFrame:
        """One row per ratio: scope (maximum, all loads, load), users (or the value of the factor that both vary),
        metric (unit as its suffix), tier, a, b, ratio (b / a), low, high (95 %), low_90, high_90, n, outcome, basis
        (what the interval is made of, or why there is no ratio).

        >>> import ntier_analysis as na
        >>> mysql, *_, postgresql = na.Store.demo().sweeps
        >>> ratios = na.Store.demo().compare(mysql, postgresql).ratios
        >>> ratios["scope"].iloc[0], ratios["metric"].iloc[0]
        ('maximum', 'throughput_per_s')
        """
        return table(self._comparison)

    def text(self, *, loads: bool = True) -> str:
        """As `ntier-analysis compare` prints it; without `loads` the single loads are left out."""
        return comparison_text(self._comparison, loads=loads)

    def figure(self) -> Drawing:
        """Every ratio with its interval."""
        a, b = self._comparison.a.label, self._comparison.b.label
        with over(self._comparison.axis):
            return ratios(self.ratios, a, b, self._comparison.margin, self.conclusion)

    def __repr__(self) -> str:
        return self.conclusion

    def _repr_html_(self) -> str:
        rows = [(letter, side.label) for letter, side in (("A", self._comparison.a), ("B", self._comparison.b))]
        return html.table(self.conclusion, rows, self.warnings)
