"""Bottleneck maps over topologies."""

from __future__ import annotations

from functools import cached_property

import pandas as pd

from ntier_analysis.api import html
from ntier_analysis.campaign.cells import Campaign
from ntier_analysis.campaign.costs import Prices
from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.report.maps import drawings, sentence


class Maps:
    """What limits each topology of a store (docs/maps.md).

    >>> import ntier_analysis as na
    >>> maps = na.Store.demo().map()
    >>> maps
    What limits 3 topologies: ...
    >>> maps.figures[0].name
    'bottleneck-map-M.browse_only.shardingsphere.1-1'
    """

    def __init__(self, campaign: Campaign, prices: Prices) -> None:
        self._campaign, self._prices = campaign, prices

    @property
    def sentence(self) -> str:
        return sentence(self._campaign)

    @property
    def warnings(self) -> list[str]:
        """What a reader must know before comparing topologies."""
        return list(self._campaign.warnings)

    @cached_property
    def figures(self) -> list[Drawing]:
        """Maps, throughput as lines and surface, scale-out, ratios between the maps, and costs, as far as the sweeps
        tell them; each with `finding` and `caption` (texts) and `data` (what is drawn)."""
        return drawings(self._campaign, self._prices)

    @property
    def table(self) -> pd.DataFrame:
        """One row per topology: sweep, topology, map, verdict, limit (in words), saturation (0 to 1),
        max_throughput_per_s (nominal: measured / scale) with low_per_s and high_per_s (95 %), at_least, valid_trials.

        >>> import ntier_analysis as na
        >>> na.Store.demo().map().table["topology"].tolist()
        ['1/1/1/1M', '1/1/1/1P', '1/1/1/1P']
        """
        rows = [
            {
                "sweep": c.sweep,
                "topology": str(c.topology),
                "map": c.map_key.label,
                "verdict": c.verdict,
                "limit": c.limit,
                "saturation": c.saturation,
                "max_throughput_per_s": c.max_per_s,
                "low_per_s": c.low_per_s,
                "high_per_s": c.high_per_s,
                "at_least": c.at_least,
                "valid_trials": c.valid,
            }
            for c in self._campaign.cells
        ]
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        rows = [(str(c.topology), f"{c.limit} ({c.map_key.label})") for c in self._campaign.cells]
        return html.table(self.sentence, rows, self.warnings)
