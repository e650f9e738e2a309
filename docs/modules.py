"""Draws who calls whom inside harness and analysis, for architecture.md. Usage: python docs/modules.py [FILE.svg]

A module stands above all that it imports. An arrow that follows from others is left out (A -> C beside A -> B -> C),
and so are imports for type hints. Modules that import each other share a box."""

from __future__ import annotations

import sys
from pathlib import Path

import grimp
import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

PACKAGES = {"ntier_harness": "Harness (ntier)", "ntier_analysis": "Analysis (ntier-analysis)"}
FILE = Path(__file__).parent / "figures/modules.svg"
COLUMN, ROW = 1.0, 0.62  # inches between boxes

Calls = dict[str, set[str]]


def calls(package: str) -> Calls:
    """What each direct child of `package` imports; children that import each other are one, `a\\nb`."""
    graph = grimp.build_graph(package, exclude_type_checking_imports=True)
    children = sorted(name.removeprefix(f"{package}.") for name in graph.find_children(package))
    direct: Calls = {name: set() for name in children}
    for module in graph.modules - {package}:
        child = module.split(".")[1]
        imported = graph.find_modules_directly_imported_by(module) - {package}
        direct[child] |= {name.split(".")[1] for name in imported} - {child}
    reached = {name: reach(direct, name) for name in children}
    box = {a: "\n".join(sorted([a, *(b for b in reached[a] if a in reached[b] and a != b)])) for a in children}
    return {box[a]: {box[c] for b in children if box[b] == box[a] for c in direct[b]} - {box[a]} for a in children}


def reach(graph: Calls, start: str) -> set[str]:
    """All that `start` imports, directly or not."""
    seen: set[str] = set()
    ahead = [start]
    while ahead:
        new = graph[ahead.pop()] - seen
        seen |= new
        ahead += new
    return seen


def without_shortcuts(graph: Calls) -> Calls:
    return {a: {b for b in graph[a] if not any(b in reach(graph, c) for c in graph[a] - {b})} for a in graph}


def levels(graph: Calls) -> dict[str, int]:
    """0 for what imports nothing; else one more than the highest that it imports."""
    level: dict[str, int] = {}
    while len(level) < len(graph):
        level |= {a: 1 + max((level[b] for b in graph[a]), default=-1) for a in graph if graph[a] <= set(level)}
    return level


def places(graph: Calls) -> dict[str, tuple[float, float]]:
    """Column and level of each box. Within its level a box goes where its neighbours are, on average."""
    level = levels(graph)
    rows = [sorted(a for a in graph if level[a] == n) for n in range(max(level.values()) + 1)]
    column = {a: i - (len(row) - 1) / 2 for row in rows for i, a in enumerate(row)}
    near = {a: [*graph[a], *(b for b in graph if a in graph[b])] for a in graph}
    for _ in range(50):  # settles after about twenty
        for row in rows:
            row.sort(key=lambda a: (sum(column[b] for b in near[a]) / max(1, len(near[a])), a))
            column |= {a: i - (len(row) - 1) / 2 for i, a in enumerate(row)}
    return {a: (column[a], level[a]) for a in graph}


def draw(axes: Axes, graph: Calls, title: str) -> None:
    at = places(graph)
    style = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": "#35618f"}
    boxes = {
        a: axes.text(*at[a], a, ha="center", va="center", fontsize=8, bbox=style, zorder=3).get_bbox_patch() for a in at
    }
    for caller, called in ((a, b) for a in at for b in sorted(graph[a])):
        arrow = {"arrowstyle": "-|>", "color": "#8a9bb0", "lw": 0.8, "shrinkA": 0, "shrinkB": 1}
        ends = {"patchA": boxes[caller], "patchB": boxes[called]}
        axes.annotate("", at[called], at[caller], arrowprops=arrow | ends, zorder=1)
    axes.set_title(title, fontsize=11)
    columns = [x for x, _ in at.values()]
    axes.set(xlim=(min(columns) - 0.6, max(columns) + 0.6), ylim=(-0.6, max(y for _, y in at.values()) + 0.6))
    axes.axis("off")


def picture() -> Figure:
    graphs = {title: without_shortcuts(calls(package)) for package, title in PACKAGES.items()}
    sizes = [places(graph).values() for graph in graphs.values()]
    widths = [COLUMN * (2 * max(x for x, _ in at) + 1.4) for at in sizes]
    height = ROW * (max(y for at in sizes for _, y in at) + 2)
    figure = Figure((sum(widths), height), layout="constrained")
    for axes, (title, graph) in zip(figure.subplots(1, 2, width_ratios=widths), graphs.items(), strict=True):
        draw(axes, graph, title)
    return figure


if __name__ == "__main__":
    mpl.rcParams["svg.hashsalt"] = "modules"  # the same picture gives the same bytes
    picture().savefig(sys.argv[1] if len(sys.argv) > 1 else FILE, metadata={"Date": None})
