"""The study's figures: what each needs of a store is kept as CSV beside this file, small enough to be committed; the
pictures are drawn from that alone."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import ntier_analysis as na
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle
from ntier_analysis.api.density import Resource, density
from ntier_analysis.comparison.values import has_valid_trial
from ntier_analysis.figures.course import METRICS, course
from ntier_analysis.figures.densities import averaged
from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.maps import NO_LIMIT, Grid, tint
from ntier_analysis.figures.style import PAGE_IN, styled
from ntier_analysis.store.tables import sweeps

HERE = Path(__file__).resolve().parent
DATA, PICTURES = HERE / "data", HERE / "figures"
ALL = "browse_only.shardingsphere"
LONG = f"1-2-1-9ML.{ALL}.long-searches"
LONG_8000 = f"1-2-1-9ML.{ALL}.long-8000"  # the load of section 4
SECOND_S = 1.0  # as the paper's samples
SHARE = ["trial", "users", "valid", "saturation", "saturation_low", "saturation_high", "n", "n_effective"]
SAMPLE = ["resource", "item", "metric", "source", "t_s", "value"]
DPI = 150


@dataclass(frozen=True)
class Densities:
    """A figure of densities of one node over the users."""

    paper: str
    shows: str
    sweep: str
    node: str
    tier: str
    resource: str = "cpu"

    @property
    def name(self) -> str:
        return f"figure-{self.paper.replace('(', '').replace(')', '')}"


DENSITIES = (
    Densities(
        "1(a)", "density of the database's CPU over the users, one database", f"1-1-1-1M.{ALL}.s0_2", "db1", "db"
    ),
    Densities("1(b)", "the same, two databases", f"1-1-1-2M.{ALL}.s0_2", "db1", "db"),
    Densities("4(a)", "density of the first database's disk", LONG, "db1", "db", "disk"),
    Densities("4(b)", "density of the middleware's CPU", LONG, "middleware1", "middleware"),
)
COURSE = "figure-5"


def keep(store: Path) -> None:
    """What the figures need of the sweeps that the store has; what was kept of others stays."""
    DATA.mkdir(exist_ok=True)
    there = set(sweeps(store))
    for figure in DENSITIES:
        if figure.sweep in there and has_valid_trial(figure.sweep, store):
            _keep_densities(figure, na.Store(store).sweep(figure.sweep))
    if LONG_8000 in there and has_valid_trial(LONG_8000, store):
        _keep_course(na.Store(store).sweep(LONG_8000))


def _keep_densities(figure: Densities, sweep: na.Sweep) -> None:
    """Means of one second, and the shares of the raw samples."""
    share = sweep.saturation
    share = share[(share["node"] == figure.node) & (share["resource"] == figure.resource)]
    samples = sweep.samples(figure.node, figure.resource, "utilization_pct")
    trusted = share[["trial", "item", "source"]].drop_duplicates()
    valid = sweep.trials.loc[sweep.trials["valid"].fillna(False).astype(bool), "trial"]
    samples = samples[samples["trial"].isin(valid)].merge(trusted, on=["trial", "item", "source"])
    seconds = averaged(samples.sort_values(["trial", "t_s"])[["trial", "users", "t_s", "value"]], SECOND_S)
    begins = sweep.trials.set_index("trial")["run_start_s"]
    seconds = seconds.assign(
        t_s=(seconds["t_s"] - seconds["trial"].map(begins)).round(2), value=seconds["value"].round(2)
    )
    seconds.to_csv(DATA / f"{figure.name}.csv", index=False)
    share.loc[share["trial"].isin(valid), SHARE].round(4).to_csv(DATA / f"{figure.name}-shares.csv", index=False)


def _keep_course(sweep: na.Sweep) -> None:
    """The first database in the first valid trial."""
    trial = sweep.trials[sweep.trials["valid"].fillna(False).astype(bool)].sort_values("trial").iloc[0]
    samples = sweep.samples()
    samples = samples[(samples["trial"] == trial["trial"]) & samples["metric"].isin(METRICS)]
    samples = samples[(samples["node"] == "db1") | (samples["item"] == "db1")]
    samples = samples.assign(t_s=(samples["t_s"] - trial["run_start_s"]).round(3), value=samples["value"].round(3))
    samples[["node", *SAMPLE]].to_csv(DATA / f"{COURSE}.csv", index=False)
    facts = {"trial": trial["trial"], "users": trial["users"], "scale": sweep.scale,
             "run_s": round(trial["run_end_s"] - trial["run_start_s"], 3)}  # fmt: skip
    with (DATA / f"{COURSE}-trial.csv").open("w", newline="") as out:
        writer = csv.DictWriter(out, list(facts), lineterminator="\n")
        writer.writeheader()
        writer.writerow(facts)


def drawings() -> dict[str, Drawing]:
    """Figure of the paper -> drawing, of all whose data are kept."""
    drawn = {f.paper: _densities(f) for f in DENSITIES if (DATA / f"{f.name}.csv").exists()}
    return drawn | ({"5": _course()} if (DATA / f"{COURSE}.csv").exists() else {})


def save(drawn: dict[str, Drawing]) -> None:
    for paper, drawing in drawn.items():
        _write(drawing.figure, picture(paper))


def picture(paper: str) -> str:
    return f"figure-{paper.replace('(', '').replace(')', '')}.png"


def _write(figure: Figure, name: str) -> None:
    PICTURES.mkdir(exist_ok=True)
    figure.savefig(PICTURES / name, dpi=DPI, metadata={"Software": None})


def _densities(figure: Densities) -> Drawing:
    seconds, share = (pd.read_csv(DATA / f"{figure.name}{end}.csv") for end in ("", "-shares"))
    if figure.resource == "cpu":  # ten samples a second; a disk has one
        seconds.attrs["interval_s"] = SECOND_S
    return density(seconds, share, Resource(figure.node, figure.tier, figure.resource), 0.2, SECOND_S).figure()


def _course() -> Drawing:
    samples = pd.read_csv(DATA / f"{COURSE}.csv", keep_default_na=False).astype({"value": float})
    told = pd.read_csv(DATA / f"{COURSE}-trial.csv").iloc[0]
    trial = SimpleNamespace(trial=told["trial"], users=int(told["users"]), scale=told["scale"], valid=True,
                            invalid_reasons="", run_start_s=0.0, run_end_s=float(told["run_s"]))  # fmt: skip
    return course(samples, trial, [("db1", "db")])


_KEYS = ("the tier whose CPU limits; mw: middleware", "bold: maximum throughput, in anchors (* at scale 0.1)")
Limits = Callable[[int, int], tuple[str, str]]
"""Application servers, databases -> what limits and a second line; both empty: not measured."""


class Pair(NamedTuple):
    """Our map and the paper's, each with its title."""

    here: tuple[str, Limits]
    paper: tuple[str, Limits]


def draw_maps(pairs: Sequence[Pair], rows: tuple[int, ...], columns: tuple[int, ...]) -> None:
    """maps.png: the paper's maps on the left, ours on the right, a row for each pair."""
    grid = Grid([(x, y) for x in columns for y in rows])
    with styled():
        figure = Figure(figsize=(PAGE_IN, 1.75 * len(pairs)))
        panels = figure.subplots(len(pairs), 2, squeeze=False, sharex=True)
        for pair, both in zip(pairs, panels, strict=True):
            for axes, (title, limits), key in zip(both, (pair.paper, pair.here), _KEYS, strict=True):
                for x, y, column, row in grid:
                    limit, below = limits(y, x)
                    _place(axes, grid, column, row, limit, below)
                grid.finish(axes)
                axes.set_title(title, fontsize=7, loc="left")
                axes.set_xlabel(f"{grid.x_label}\n{key}" if pair is pairs[-1] else "")
    _write(figure, "maps.png")


def _place(axes, grid: Grid, column: int, row: int, limit: str, below: str) -> None:
    """`limit`: `db cpu`, `db disk and middleware cpu`, `none`. A place has the colours of the tiers that limit it."""
    if not limit:
        return grid.missing(axes, column, row)
    tiers = [part.split()[0] for part in limit.replace(", then ", " and ").split(" and ") if " " in part]
    colors = [tint(tier) for tier in tiers[:2]] or [NO_LIMIT]
    look = {"linewidth": 0.4, "edgecolor": "#666666"}
    axes.add_patch(Rectangle((column, row), 1, 1, facecolor=colors[0], **look))
    if len(colors) == 2:
        corners = [(column, row), (column + 1, row), (column + 1, row + 1)]
        axes.add_patch(Polygon(corners, facecolor=colors[1], **look))
    words = limit.replace("middleware", "mw").replace(" cpu", "").replace(", then ", " and then\n").split(" and ")
    if len(words) == 2:  # each in its triangle
        places, low = [(0.27, 0.78, "center"), (0.95, 0.52 if below else 0.3, "right")], (0.97, 0.16, "right")
    else:
        words, places, low = ["\n".join(words)], [(0.5, 0.66 if below else 0.5, "center")], (0.5, 0.24, "center")
    for word, (right, up, aligned) in zip(words, places, strict=True):
        axes.text(column + right, row + up, word, ha=aligned, va="center", fontsize=6)
    right, up, aligned = low
    return axes.text(column + right, row + up, below, ha=aligned, va="center", fontsize=6.5, fontweight="bold")
