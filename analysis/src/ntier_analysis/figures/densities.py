"""Densities of a node's utilization over the users: the paper's surface, and a flat map beside the raw share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ntier_analysis.density import GRID_PCT, densities
from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.load_axis import axis_label, listed
from ntier_analysis.figures.style import (
    COLUMN_IN,
    DENSITY_MAP,
    INVALID_COLOR,
    THRESHOLD_PCT,
    resource_name,
    styled,
    tier_look,
    users_ticks,
    utilization_label,
)
from ntier_analysis.statistics.share import pooled

BANDWIDTH_PCT = 2.0
"""One bandwidth for all densities, so that nodes, loads and sweeps can be compared (docs/decisions/density.md)."""
EXCESS_PCT = 0.5
"""Samples this far above 100 % are counted and mentioned: a quota of short periods is not exact within one sample."""
LONG_LABEL = 32
"""Letters of 8 points that fit under the map."""
SLANTED_LABEL = 27
"""The same along the surface's edge."""

Array = npt.NDArray[np.float64]


def averaged(samples: pd.DataFrame, interval_s: float) -> pd.DataFrame:
    """Means over whole intervals of `interval_s`, as a coarser collector would have seen; intervals that lack more than
    a tenth of their samples are left out. Trials that were sampled no finer keep their samples: collectors of one sweep
    may differ. Columns trial, users, t_s, value in; the same out, ordered by trial and time."""
    fine_s = samples.groupby("trial")["t_s"].diff().groupby(samples["trial"]).median()
    fine_s = fine_s[fine_s < 0.9 * interval_s]
    if fine_s.empty:
        return samples
    columns = ["trial", "users", "t_s", "value"]
    fine = samples["trial"].isin(fine_s.index)
    bin_s = np.ceil(samples.loc[fine, "t_s"] / interval_s - 1e-6) * interval_s
    groups = samples[fine].assign(t_s=bin_s).groupby(["trial", "users", "t_s"], as_index=False)["value"]
    means = groups.agg(["mean", "count"])
    whole = means[means["count"] >= 0.9 * interval_s / means["trial"].map(fine_s).astype(float)]
    means = whole.rename(columns={"mean": "value"})[columns]
    if not fine.all():
        means = pd.concat([means, samples.loc[~fine, columns]]).sort_values(["trial", "t_s"], ignore_index=True)
    means.attrs["interval_s"] = interval_s
    return means


def without_invalid(samples: pd.DataFrame, shares: pd.DataFrame) -> pd.DataFrame:
    """Without the invalid repetitions of loads that have a valid one. shares: columns trial, users, valid."""
    good = set(shares.loc[shares["valid"], "users"])
    dropped = shares.loc[~shares["valid"].astype(bool) & shares["users"].isin(good), "trial"]
    return samples[~samples["trial"].isin(set(dropped))]


def node_densities(samples: pd.DataFrame, bandwidth_pct: float = BANDWIDTH_PCT) -> pd.DataFrame:
    """Density of one node's utilization per number of users; repetitions are pooled.

    samples: columns users, value (percent); missing values are left out and counted. Returns columns users, n,
    n_missing, n_above (samples above 100.5 %, drawn at 100 %), density (arrays on GRID_PCT, share per point)."""
    rows = []
    for users, group in samples.groupby("users", sort=True):
        values = group["value"].to_numpy(dtype=np.float64)
        present = values[~np.isnan(values)]
        if len(present):
            n_above = int((present > 100.0 + EXCESS_PCT).sum())
            rows.append((users, len(present), len(values) - len(present), n_above, np.clip(present, 0.0, 100.0)))
    curves = densities([r[4] for r in rows], bandwidth_pct)
    frame = pd.DataFrame([r[:4] for r in rows], columns=["users", "n", "n_missing", "n_above"])
    frame = frame.assign(density=list(curves))
    frame.attrs |= samples.attrs
    return frame


def density_map(
    curves: pd.DataFrame, shares: pd.DataFrame, *, node: str, tier: str, resource: str, item: str = "", scale: float
) -> Drawing:
    """Flat map: utilization against users, density as colour, and beside it the share of samples at or above the
    threshold, counted from the raw samples.

    curves: as `node_densities`. shares: columns users, saturation, saturation_low, saturation_high, n_effective, valid.
    item: part of the resource (disk, interface, pool); empty = the whole.
    Loads whose trials are all invalid are hatched."""
    with styled():
        figure = Figure(figsize=(COLUMN_IN, 2.5))
        flat, side = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1.15))
        users = curves["users"].to_numpy(dtype=float)
        surface = np.stack(curves["density"].to_list())
        mesh = flat.pcolormesh(
            _edges(GRID_PCT), _edges(users), surface, cmap=DENSITY_MAP, norm=PowerNorm(0.5, vmin=0), rasterized=True
        )
        invalid = invalid_users(shares)
        _hatch(flat, users, invalid)
        flat.axvline(THRESHOLD_PCT, color="white", linewidth=0.6, linestyle="--")
        flat.set(ylabel=axis_label(), xlim=(0, 100))
        _x_label(flat, utilization_label(resource, item, node))
        flat.grid(False)
        flat.set_xticks((0, 25, 50, 75, 95))
        users_ticks(flat.yaxis, users)
        bar = figure.colorbar(mesh, ax=[flat], location="top", aspect=30, pad=0.02, ticks=_root_ticks(surface.max()))
        bar.set_label("density [share per % point]")
        bar.outline.set_linewidth(0.5)
        _share_strip(side, shares, tier, invalid, resource)
    return Drawing(
        name=drawing_name("density-map", node, resource, item),
        figure=figure,
        finding=_finding(shares, node, resource, item),
        caption=_caption(curves, node, resource, item, scale, invalid),
        data=_long(curves, node),
    )


def density_surface(
    curves: pd.DataFrame, shares: pd.DataFrame, *, node: str, resource: str, item: str = "", scale: float
) -> Drawing:
    """The paper's Figure 1: density (z) of utilization (x) over users (y), with a line at each measured load.

    curves: as `node_densities`, of 1-s means for likeness with the paper. shares: as `density_map`."""
    with styled():
        figure = Figure(figsize=(COLUMN_IN, 2.6), layout="none")
        axes = figure.add_axes((-0.06, -0.02, 1.06, 1.14), projection="3d", computed_zorder=False)
        users = curves["users"].to_numpy(dtype=float)
        surface = np.stack(curves["density"].to_list())
        look = {"cmap": DENSITY_MAP, "norm": PowerNorm(0.5, vmin=0, vmax=surface.max())}
        invalid = invalid_users(shares)
        for row in reversed(range(len(users))):  # from the back, so that peaks hide what lies behind them
            depth = 3 * (len(users) - row)
            if row + 1 < len(users):
                x, y = np.meshgrid(GRID_PCT, users[row : row + 2])
                axes.plot_surface(x, y, surface[row : row + 2], rcount=2, ccount=134, linewidth=0, antialiased=False,
                                  rasterized=True, zorder=depth, **look)  # fmt: skip
            dead = users[row] in invalid
            # over its own strip and the one before it, both of which end in this line
            axes.plot(GRID_PCT, np.full_like(GRID_PCT, users[row]), surface[row], color="white" if dead else "black",
                      linewidth=0.5, linestyle=":" if dead else "-", zorder=depth + 4)  # fmt: skip
        axes.set(xlim=(0, 100), ylim=(users.min(), max(users.max(), users.min() + 1)), zlim=(0, surface.max()))
        label = utilization_label(resource, item, node)
        axes.set_xlabel(label, labelpad=-6, fontsize=8 * min(1.0, SLANTED_LABEL / len(label)))
        axes.set_ylabel(axis_label(), labelpad=-4)
        axes.set_zlabel("density [share per % point]", labelpad=-5)
        axes.set_xticks((0, 20, 40, 60, 80))
        axes.zaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))  # longer numbers would reach the label
        axes.zaxis.set_major_formatter(FuncFormatter(lambda z, _: f"{z:.3g}".replace("0.", ".", 1)))
        axes.set_zticks([z for z in axes.get_zticks() if 0 < z <= surface.max()])  # a 0 would cover the last load
        users_ticks(axes.yaxis, users)
        for axis, pad in (("x", -4), ("y", -4), ("z", -2)):
            axes.tick_params(axis=axis, pad=pad)
        axes.view_init(elev=30, azim=-58)
        axes.set_box_aspect((1.2, 1.2, 0.8), zoom=0.92)
    return Drawing(
        name=drawing_name("density-surface", node, resource, item),
        figure=figure,
        finding=_finding(shares, node, resource, item),
        caption="Between the measured loads (lines; dotted if INVALID) the surface is interpolated. "
        + _caption(curves, node, resource, item, scale, invalid),
        data=_long(curves, node),
    )


def _x_label(axes, text: str) -> None:
    """In smaller letters where it would run into the label of the strip beside it."""
    axes.set_xlabel(text, fontsize=8 if len(text) <= LONG_LABEL else 7)


def _share_strip(axes, shares: pd.DataFrame, tier: str, invalid: set[float], resource: str) -> None:
    """Saturation with its interval for each load, on the users axis of the map beside it."""
    look = tier_look(tier)
    for row in shares.itertuples():
        color = INVALID_COLOR if row.users in invalid else look.color
        axes.plot([row.saturation_low, row.saturation_high], [row.users] * 2, color=color, linewidth=1.0)
        marker = "x" if row.users in invalid else look.marker
        axes.plot(row.saturation, row.users, marker=marker, color=color, linestyle="none", markersize=3.5)
    axes.set(xlim=(-0.04, 1.04), xticks=(0, 0.5, 1), xticklabels=("0", ".5", "1"))
    axes.set_xlabel("share full" if resource == "pool" else f"share ≥ {THRESHOLD_PCT:g} %")
    axes.tick_params(axis="y", length=0, labelleft=False)


def _hatch(axes, users: Array, invalid: set[float]) -> None:
    edges = _edges(users)
    for position, load in enumerate(users):
        if load in invalid:
            axes.fill_between([0, 100], edges[position], edges[position + 1], facecolor="none", edgecolor="white",
                              hatch="////", linewidth=0)  # fmt: skip
            box = {"facecolor": "black", "edgecolor": "none", "pad": 1}
            axes.text(50, load, "INVALID", color="white", ha="center", va="center", fontsize=5.5, bbox=box)


def _root_ticks(top: float) -> list[float]:
    """Three round ticks that a square-root colour scale keeps apart."""
    digits = 10.0 ** np.floor(np.log10(top))
    highest = np.floor(top / digits) * digits
    return [0.0, highest / 10, highest / 2, highest]


def invalid_users(shares: pd.DataFrame) -> set[float]:
    """Loads none of whose trials is valid."""
    return {float(u) for u, ok in shares.groupby("users")["valid"].any().items() if not ok}


def _edges(centers: Array) -> Array:
    """Cell borders halfway between the centers; the outer cells are as wide as their neighbours, but not beyond 0."""
    if len(centers) == 1:
        return np.array([centers[0] * 0.5, centers[0] * 1.5])
    middle = (centers[1:] + centers[:-1]) / 2
    first = 2 * centers[0] - middle[0]
    return np.r_[max(0.0, first) if centers[0] >= 0 else first, middle, 2 * centers[-1] - middle[-1]]


def drawing_name(kind: str, node: str, resource: str, item: str = "") -> str:
    """`density-map-db1-disk-vda`."""
    return "-".join(part for part in (kind, node, resource, item) if part)


def _full(resource: str) -> str:
    """What the saturation counts: of a pool also that requests wait for a place (docs/analysis.md, saturation)."""
    return "full (or requests wait for it)" if resource == "pool" else f"at or above {THRESHOLD_PCT:g} %"


def _finding(shares: pd.DataFrame, node: str, resource: str, item: str) -> str:
    known = shares.dropna(subset="saturation")
    if known.empty:
        return f"How often the {_quoted(resource, item)} of {node} is {_full(resource)} is not known."
    usable = known[known["valid"]] if known["valid"].any() else known
    top = usable.loc[usable["saturation"].idxmax()]
    interval = f"{top.saturation:.2f} [{top.saturation_low:.2f}, {top.saturation_high:.2f}]"
    name, full = f"The {_quoted(resource, item)}", _full(resource)
    if top.saturation < 0.01:
        return f"{name} of {node} was hardly ever {full} (share {interval})."
    loads = [load for load, rows in usable.groupby("users") if _surely_half(rows)]
    if not loads:
        return (
            f"{name} of {node} was {full} for a share of at most {interval} of the run phase, at {listed([top.users])} "
            "users."
        )
    upwards = len(loads) > 1 and loads == sorted(set(usable.loc[usable["users"] >= loads[0], "users"]))
    where = f"from {listed(loads[:1])} users on" if upwards else f"at {listed(loads)} users"
    return (
        f"{name} of {node} was {full} for more than half of the run phase {where}; "
        f"share at {listed([top.users])} users: {interval}."
    )


def _surely_half(rows: pd.DataFrame) -> bool:
    """Whether the trials of a load show, by the whole interval, that it was more than half of the run."""
    _, low, _ = pooled(*(rows[c].to_numpy(dtype=float) for c in ("saturation", "saturation_low", "saturation_high")))
    return low >= 0.5


def _quoted(resource: str, item: str) -> str:
    """A pool's name in a sentence: `pool "workers"`, since names of pools are words of their own."""
    return f'pool "{item}"' if resource == "pool" and item else resource_name(resource, item)


def _measured(resource: str, item: str) -> str:
    """A pool does no work: its places are in use."""
    if resource == "pool":
        return f"the share of places in use in the {_quoted(resource, item)}"
    return f"the {resource_name(resource, item)} utilization"


def _caption(curves: pd.DataFrame, node: str, resource: str, item: str, scale: float, invalid: set[float]) -> str:
    low, high = curves["n"].min(), curves["n"].max()
    count = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    interval = f"means of {curves.attrs['interval_s']:g} s" if "interval_s" in curves.attrs else "samples"
    also = {"pool": ", or in which requests waited for a place,", "cpu": ", or throttled by a quota,"}
    waiting = also.get(resource, "")
    parts = [
        f"Kernel density of {_measured(resource, item)} of {node} in the run phase, reflected at 0 and 100 %, "
        f"bandwidth {BANDWIDTH_PCT:g} points, n = {count} {interval} per load; the shares at or above "
        f"{THRESHOLD_PCT:g} %{waiting} are counted from the raw samples, not read from the density; scale {scale:g}."
    ]
    if curves["n_missing"].sum():
        parts.append(f"Missing samples (gaps): {curves['n_missing'].sum():,}.")
    if curves["n_above"].sum():
        parts.append(f"{curves['n_above'].sum():,} of {curves['n'].sum():,} {interval} above 100 % are drawn at 100 %.")
    if invalid:
        parts.append(f"INVALID trials at {listed(sorted(invalid))} users.")
    return " ".join(parts)


def _long(curves: pd.DataFrame, node: str) -> pd.DataFrame:
    frame = curves[["users", "n", "density"]].explode("density", ignore_index=True)
    grid = np.tile(GRID_PCT, len(curves))
    return frame.assign(node=node, bandwidth_pct=BANDWIDTH_PCT, utilization_pct=grid)[
        ["node", "users", "n", "bandwidth_pct", "utilization_pct", "density"]
    ].astype({"density": float})
