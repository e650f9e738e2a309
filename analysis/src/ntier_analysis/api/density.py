"""Density of a resource's utilization over the users."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from ntier_analysis.density import GRID_PCT
from ntier_analysis.described import OVER_USERS, LoadAxis
from ntier_analysis.errors import DataError
from ntier_analysis.figures import densities
from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.load_axis import listed, over
from ntier_analysis.wording import counted


@dataclass(frozen=True)
class Resource:
    """`item`: part of it (disk, interface, pool); empty: the whole."""

    node: str
    tier: str
    name: str
    item: str = ""


@dataclass(frozen=True, repr=False)
class Density:
    """The density of one resource of one node, one curve per load. The curves are only for display; the shares are
    counted from the raw samples, with intervals that respect their correlation (docs/decisions/density.md).

    `users`: shape (k,), nominal users of the loads, or values of what the sweep is over. `grid_pct`: shape (401,), 0
    to 100 %. `curves`: shape (k, 401), share per percentage point, each with the integral 1, from means of one second;
    invalid repetitions of a load that has a valid one are not in them. `share`: one row per trial with trial, users,
    valid, saturation (share of the run phase at or above 95 %, 0 to 1), saturation_low, saturation_high (95 %
    interval), n (samples), n_effective (what they are worth).

    >>> import ntier_analysis as na
    >>> density = na.Store.demo().sweep("1-1-1-1M.browse_only.shardingsphere").density("db1", "cpu")
    >>> density
    Density of db1 cpu: 13 loads of 1,000 to 13,000 users; share at or above 95 %: 0.0... at 13,000
    >>> density.curves.shape, density.grid_pct.shape
    ((13, 401), (401,))
    >>> density.figure().name
    'density-map-db1-cpu'
    """

    node: str
    tier: str
    resource: str
    scale: float
    users: npt.NDArray[np.float64]
    curves: npt.NDArray[np.float64]
    share: pd.DataFrame
    _frame: pd.DataFrame
    item: str = ""
    """Part of the resource: disk, interface, pool."""
    _axis: LoadAxis = OVER_USERS

    @property
    def grid_pct(self) -> npt.NDArray[np.float64]:
        return GRID_PCT

    def curve(self, users: int) -> npt.NDArray[np.float64]:
        """Density at one load, shape (401,). Raises DataError for a load that was not measured.

        >>> import ntier_analysis as na
        >>> density = na.Store.demo().sweep("1-1-1-1M.browse_only.shardingsphere").density("db1", "cpu")
        >>> mode_pct = density.grid_pct[density.curve(13000).argmax()]
        >>> bool(mode_pct > 95)
        True
        """
        places = np.flatnonzero(self.users == users)
        if not len(places):
            raise DataError(
                f"no load of {users} {self._axis.name}; there are: {', '.join(f'{u:g}' for u in self.users)}"
            )
        return self.curves[places[0]]

    def figure(self) -> Drawing:
        """The flat map, with the shares and their intervals beside it."""
        of = {"node": self.node, "resource": self.resource, "item": self.item, "scale": self.scale}
        with over(self._axis):
            return densities.density_map(self._frame, self.share, tier=self.tier, **of)

    def surface(self) -> Drawing:
        """The same as a surface, as in the study's Figure 1."""
        of = {"node": self.node, "resource": self.resource, "item": self.item, "scale": self.scale}
        with over(self._axis):
            return densities.density_surface(self._frame, self.share, **of)

    def __repr__(self) -> str:
        ends = self.share.iloc[[0, -1]] if len(self.share) else self.share
        shares = ", ".join(
            f"{s.saturation:.2f} [{s.saturation_low:.2f}, {s.saturation_high:.2f}] at {listed([s.users])}"
            for s in ends.itertuples()
        )
        ends_of = f"{listed([self.users.min()])} to {listed([self.users.max()])} {self._axis.name}"
        loads = f"{counted(len(self.users), 'load')} of {ends_of}"
        return f"Density of {self.node} {self.resource}: {loads}; share at or above 95 %: {shares}"

    def _repr_png_(self) -> bytes:
        return self.figure()._repr_png_()


def density(
    samples: pd.DataFrame,
    share: pd.DataFrame,
    of: Resource,
    scale: float,
    interval_s: float,
    axis: LoadAxis = OVER_USERS,
) -> Density:
    """`samples`: columns trial, users, t_s, value (percent) of one resource; `share`: rows of table `saturation`;
    `axis`: what figures are `load_axis.over`."""
    samples = densities.without_invalid(samples, share)
    curves = densities.node_densities(densities.averaged(samples, interval_s))
    if curves.empty:
        raise DataError(f"{of.node} {of.name}: no samples of its utilization in the run phase")
    columns = ["trial", "users", "valid", "saturation", "saturation_low", "saturation_high", "n", "n_effective"]
    users = curves["users"].to_numpy(dtype=float)
    ordered = share.sort_values(["users", "trial"], ignore_index=True)[columns]
    stacked = np.stack(curves["density"].to_list())
    return Density(of.node, of.tier, of.name, scale, users, stacked, ordered, curves, of.item, axis)
