"""`ntier-analysis figure`: any resource of any node, any trial, any stretch of it, as PNG, PDF or SVG."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ntier_analysis.contracts.files import check_file, replacing
from ntier_analysis.errors import DataError
from ntier_analysis.figures import course, events, percentiles, sequence, tiers, timeline
from ntier_analysis.figures.drawing import Drawing, Origin, pdf_fonts, svg
from ntier_analysis.figures.load_axis import over
from ntier_analysis.figures.style import resource_name, tier_order
from ntier_analysis.report import drawings, measured
from ntier_analysis.report.data import SweepData, read_sweep


@dataclass(frozen=True)
class Request:
    """What is to be drawn. `nodes`: of a density one, of a course up to three; empty: the telling ones. `trial`: empty:
    the one next to the knee. `stretch`: seconds of the run phase."""

    kind: str
    nodes: tuple[str, ...] = ()
    resource: str = "cpu"
    item: str | None = None
    trial: str = ""
    stretch: tuple[float | None, float | None] = (None, None)


def run(store: Path, sweep: str, request: Request, out: Path) -> str:
    """Draws into `out`; returns the finding and the caption."""
    draw = KINDS.get(request.kind)
    if draw is None:
        raise DataError(f"--kind {request.kind}: unknown; allowed are {', '.join(KINDS)}")
    if out.suffix not in FORMATS:
        raise DataError(f"--out {out}: unknown format; allowed are {', '.join(f'*{f}' for f in FORMATS)}")
    check_file(out, "--out")
    _used(request)
    data = read_sweep(store, sweep)
    with over(data.axis):
        drawing = draw(data, request)
    write(drawing, data.origin, out)
    return f"{out}\n{drawing.finding}\n{drawing.caption}"


def _used(request: Request) -> None:
    """Raises DataError for an option that its kind does not use."""
    kind = request.kind
    given = {
        "--node": bool(request.nodes),
        "--resource": request.resource != Request(kind).resource,
        "--item": request.item is not None,
        "--trial": bool(request.trial),
        "--from and --to": request.stretch != (None, None),
    }
    for option, there in given.items():
        if there and option not in USES[kind]:
            has = f"it uses {', '.join(USES[kind])}" if USES[kind] else "it uses no option"
            raise DataError(f"{option}: a figure of kind {kind} does not use it; {has}")


FORMATS = (".png", ".pdf", ".svg")


def write(drawing: Drawing, origin: Origin, out: Path) -> None:
    """With where the numbers come from in the file's own description."""
    out.parent.mkdir(parents=True, exist_ok=True)
    if out.suffix == ".svg":
        with replacing(out) as file:
            file.write_bytes(svg(drawing, origin))
        return
    fields = {".png": ("Description", "Source"), ".pdf": ("Subject", "Keywords")}[out.suffix]
    metadata = {"Title": drawing.finding, "Creator": "Ntier"}
    metadata |= dict(zip(fields, (drawing.caption, origin.text()), strict=True))
    with replacing(out) as file, pdf_fonts():
        drawing.figure.savefig(file, format=out.suffix[1:], dpi=300, metadata=metadata)


# ---- kinds ---------------------------------------------------------------------------------------------------------


def _density(data: SweepData, request: Request, draw: Callable[[measured.Density, float], Drawing]) -> Drawing:
    known = measured.resources(data)
    if len(request.nodes) != 1:
        raise DataError(f"--node: a density shows one node; choose one of {_among(known['node'])}")
    node = _known(request.nodes[0], known["node"], "--node")
    mine = known[known["node"] == node]
    resource = _known(request.resource, mine["resource"], f"--resource of {node}")
    items = mine.loc[mine["resource"] == resource, "item"]
    if request.item is None and len(items) > 1:
        raise DataError(f"--item: {node} {resource} has several items; choose one of {_among(items)}")
    item = items.iloc[0] if request.item is None else _known(request.item, items, f"--item of {node} {resource}")
    density = measured.density_of(data, node, resource, str(item))
    if density is None:
        raise DataError(f"{node}: {resource_name(resource, str(item))} has no sample in a run phase")
    return draw(density, data.scale)


def density_surface(data: SweepData, request: Request) -> Drawing:
    return _density(data, request, drawings.density_surface)


def density_map(data: SweepData, request: Request) -> Drawing:
    return _density(data, request, drawings.density_map)


def node_course(data: SweepData, request: Request) -> Drawing:
    trial = of_trial(data, request.trial, data.cpu["trial"])
    samples = drawings.course_samples(data, trial.trial)
    tier = samples.drop_duplicates("node").set_index("node")["tier"]
    if request.nodes:
        nodes = [(n, str(tier[n])) for n in (_known(n, tier.index, "--node") for n in request.nodes)]
    else:
        named = [n for b in data.verdict["bottlenecks"] for n in b["nodes"]]
        shown = [n for n in named if n in tier.index][: course.MOST_NODES] or [tier.index[0]]
        nodes = course.telling_nodes(samples, named) or [(str(n), str(tier[n])) for n in shown]
    if len(nodes) > course.MOST_NODES:
        raise DataError(f"--node: {len(nodes)} nodes are given; a page has room for {course.MOST_NODES}")
    return course.course(samples, trial, nodes, _stretch(request.stretch, trial.run_end_s - trial.run_start_s))


def over_time(data: SweepData, request: Request) -> Drawing:
    """Throughput of whole trials; if nodes or a stretch are given, what these nodes do."""
    if request.nodes or request.stretch != (None, None):
        return node_course(data, request)
    known = data.trials[data.trials["trial"].isin(data.interactions["trial"].unique())]
    chosen = drawings.telling_trials(known, data.verdict["knee_users"])
    if request.trial:
        chosen = known[known["trial"] == _known(request.trial, known["trial"], "--trial")]
    _not_empty(chosen, "no trial has single interactions")
    return timeline.timeline(data.interactions, chosen, events.events(data.samples))


def load_throughput(data: SweepData, request: Request) -> Drawing:
    trials = data.trials
    if request.trial:
        trials = trials[trials["trial"] == _known(request.trial, trials["trial"], "--trial")]
    elif trials["valid"].any():
        trials = trials[trials["valid"]]
    sources = measured.load_sources(data, trials)
    names = pd.Series([s.node for s in sources], dtype=str)
    for node in request.nodes:
        if node not in set(names):
            raise DataError(f"--node {node}: its load was not measured; measured are {_among(names)}")
    sources = [s for s in sources if not request.nodes or s.node in request.nodes]
    _not_empty(sources, "neither single interactions nor logs nor readings of what is running are there")
    return sequence.load_throughput(sources, data.scale)


def of_interactions(data: SweepData, request: Request) -> Drawing:
    trial = of_trial(data, request.trial, data.interactions["trial"])
    return percentiles.percentiles(data.interactions[data.interactions["trial"] == trial.trial], trial)


def per_tier(data: SweepData, request: Request) -> Drawing:
    levels = measured.tier_levels(data)
    _not_empty(levels, "neither the log of the first tier nor readings of threads in use are there")
    return tiers.per_tier(levels, data.trials)


KINDS: dict[str, Callable[[SweepData, Request], Drawing]] = {
    "density-surface": density_surface,
    "density-map": density_map,
    "course": node_course,
    "timeline": over_time,
    "load-throughput": load_throughput,
    "percentiles": of_interactions,
    "tiers": per_tier,
}


USES: dict[str, tuple[str, ...]] = {
    "density-surface": ("--node", "--resource", "--item"),
    "density-map": ("--node", "--resource", "--item"),
    "course": ("--node", "--trial", "--from and --to"),
    "timeline": ("--node", "--trial", "--from and --to"),
    "load-throughput": ("--node", "--trial"),
    "percentiles": ("--trial",),
    "tiers": (),
}
"""Kind -> the options that change it."""


def of_trial(data: SweepData, name: str, known: pd.Series) -> tuple:
    """The named trial, else the one next to the knee."""
    if name:
        rows = data.trials[data.trials["trial"] == _known(name, known, "--trial")]
        return next(rows.itertuples())
    trial = drawings.knee_trial(data, known)
    if trial is None:
        raise DataError(f"{data.sweep}: no trial has what this figure needs")
    return trial


def _stretch(stretch: tuple[float | None, float | None], run_s: float) -> tuple[float, float] | None:
    if stretch == (None, None):
        return None
    begin, end = stretch[0] or 0.0, run_s if stretch[1] is None else stretch[1]
    if not 0 <= begin < end <= run_s:
        raise DataError(f"--from {begin:g} --to {end:g}: expected 0 <= from < to <= {run_s:g} s of the run phase")
    return begin, end


def _known(name: str, names, option: str) -> str:
    if name not in set(names):
        raise DataError(f"{option} {name}: unknown; there are {_among(names)}")
    return name


def _among(names) -> str:
    ordered = sorted({str(n) for n in names}, key=lambda n: (tier_order(n.rstrip("0123456789")), len(n), n))
    return ", ".join(ordered) or "none"


def _not_empty(rows, problem: str) -> None:
    if len(rows) == 0:
        raise DataError(f"nothing to draw: {problem}")
