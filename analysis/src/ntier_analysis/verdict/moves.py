"""How saturation moves within one trial: from node to node, and through a node whose long queries turn the balancer."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from ntier_analysis.statistics.chains import (
    MIN_SAMPLES,
    STRONG,
    Link,
    Step,
    all_pairs,
    chain,
    linked,
    possible,
)
from ntier_analysis.verdict.saturation import Saturation, middles
from ntier_analysis.wording import counted, join

SHORTEST_S = 0.3
"""Saturation that lasts at least this long counts as a turn: three samples at 10 Hz."""
LENGTHS = 0.01
"""Series of one run that differ by less in length were sampled at the same interval: late samples are lost."""
DISK = "disk"
SOURCES = {
    DISK: (("disk", "utilization_pct"), ("disk", "read_bytes_per_s")),
    "queue": (("queue", "threads_running"), ("pool", "pending")),
    "statements": (("query", "questions_per_s"), ("query", "statements_per_s")),
    "cpu": (("cpu", "utilization_pct"),),
}
"""What is looked at on each database, the first that was measured: its own samples, or the middleware's of that replica
(item). A disk without a limit has no utilization: what it reads stands for it."""
CHAIN_METRICS = sorted({metric for sources in SOURCES.values() for _, metric in sources})


@dataclass(frozen=True)
class Move:
    """Saturation went from `first` to `second` (names of resources) `times` times in the run."""

    first: str
    second: str
    times: int


def moves(found: list[Saturation]) -> list[Move]:
    """Handovers of saturation between resources on one clock: a resource that was saturated alone is no longer, and the
    next that is alone is another one. Resources must have been sampled at the same interval; most frequent first."""
    usable = [s for s in found if len(s.indicator) and np.nanmax(s.indicator, initial=0.0) > 0]
    if len(usable) < 2:
        return []
    cells = Counter(len(s.indicator) for s in usable).most_common(1)[0][0]
    usable = [s for s in usable if abs(len(s.indicator) - cells) <= LENGTHS * cells]
    at = (np.arange(cells) + 0.5) / cells
    on = np.array([np.nan_to_num(s.indicator[(at * len(s.indicator)).astype(int)]) for s in usable])
    alone = np.where(on.sum(axis=0) == 1, on.argmax(axis=0), -1)
    least = max(1, round(SHORTEST_S / usable[0].interval_s))
    turns = [i for i, n in _runs(alone) if i >= 0 and n >= least]
    counted = Counter((a, b) for a, b in itertools.pairwise(turns) if a != b)
    return [Move(usable[a].name, usable[b].name, n) for (a, b), n in counted.most_common()]


def _runs(values: np.ndarray) -> list[tuple[int, int]]:
    """(value, length) of each stretch of equal values."""
    edges = np.flatnonzero(np.diff(values)) + 1
    bounds = [0, *edges.tolist(), len(values)]
    return [(int(values[a]), b - a) for a, b in itertools.pairwise(bounds) if b > a]


def node_series(samples: pd.DataFrame, node: str, start: float, end: float) -> dict[str, np.ndarray]:
    """Disk, queue, statements and CPU of one database on a clock of 1 s; only what was measured.

    `samples`: rows of one trial (t_s, node, resource, metric, item, value, and for `middles` interval_s, source)."""
    middle = middles(samples)
    inside = samples.assign(middle=middle)[(middle >= start) & (middle < end)]
    cells = max(1, round(end - start))
    found = {}
    for name, sources in SOURCES.items():
        for resource, metric in sources:
            rows = inside[(inside["resource"] == resource) & (inside["metric"] == metric)]
            rows = rows[(rows["node"] == node) | (rows["item"] == node)]
            if len(rows):
                found[name] = _per_second(rows, start, cells)
                break
    return found


def _per_second(rows: pd.DataFrame, start: float, cells: int) -> np.ndarray:
    cell = np.clip((rows["middle"].to_numpy() - start).astype(int), 0, cells - 1)
    value = rows["value"].to_numpy(float)
    known = ~np.isnan(value)
    count = np.bincount(cell[known], minlength=cells)
    total = np.bincount(cell[known], weights=value[known], minlength=cells)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


@dataclass(frozen=True)
class Chain:
    """Series that move with the disk of `node`, one of `replicas`, from there outwards; `links`: all pairs that
    correlate."""

    node: str
    steps: list[Step]
    links: list[Link]
    replicas: int

    @property
    def text(self) -> str:
        """`db1: when its disk is busy, queue up (r +0.45 with disk), statements down (...), cpu down (...)`."""
        words = [f"{s.name} {'up' if s.sign > 0 else 'down'} (r {s.r:+.2f} with {s.before})" for s in self.steps]
        return f"{self.node}: when its disk is busy, " + ", ".join(words)

    @property
    def turned_away(self) -> bool:
        """The balancer turned away: the node gets fewer statements, and uses less CPU, while its disk is busy. With one
        replica there is nowhere to turn to: it is the disk that holds the statements up."""
        if self.replicas < 2:
            return False
        signs = {s.name: s.sign for s in self.steps}
        return signs.get("statements") == -1 and signs.get("cpu") == -1


@dataclass(frozen=True)
class Looked:
    """What was seen of one database in a trial. `chain`: perhaps without a step; `measured`: series with enough values
    to compare them; `every`: all pairs of series; `run_s`: length of the run, whole seconds."""

    chain: Chain
    measured: frozenset[str]
    every: list[Link]
    run_s: int

    @property
    def told(self) -> bool:
        """Whether the disk and anything that could move with it were measured."""
        return DISK in self.measured and len(self.measured) > 1

    @property
    def text(self) -> str:
        return self.chain.text + ("; one link only, no chain" if len(self.chain.steps) == 1 else "")

    def moved(self, wanted: set[tuple[str, int]]) -> bool | None:
        """Whether all that is named (series, 1 or -1) moved so with the disk. That it did not is only known if all of
        it was measured, and no chain could reach some of it; else None."""
        seen = {(step.name, step.sign) for step in self.chain.steps}
        if wanted <= seen:
            return True
        if not {DISK, *(name for name, _ in wanted)} <= self.measured:
            return None
        return None if wanted <= seen | possible(self.every, DISK) else False


def looked_at(samples: pd.DataFrame, nodes: list[str], start: float, end: float) -> list[Looked]:
    """Each of the databases, in this order. `samples`: as of `node_series`, perhaps none."""
    series = [node_series(samples, node, start, end) for node in nodes]
    every = [all_pairs(one, 1.0) for one in series]
    links = linked([[pair for pair in pairs if pair.compared] for pairs in every])
    measured = [{name for name, x in one.items() if np.isfinite(x).sum() >= MIN_SAMPLES} for one in series]
    return [
        Looked(Chain(node, chain(own, DISK), own, len(nodes)), frozenset(names), pairs, round(end - start))
        for node, own, names, pairs in zip(nodes, links, measured, every, strict=True)
    ]


def long_chains(looked: list[Looked]) -> list[Chain]:
    """Those of two links or more.

    The study's section 4: long reads fill a database's disk; its queue grows; the balancer, which counts running
    statements, turns to other replicas; its statements and with them its CPU drop, though the CPU has room."""
    return [one.chain for one in looked if len(one.chain.steps) >= 2]


def as_json(looked: dict[str, list[Looked]]) -> dict[str, list[dict[str, Any]]]:
    """Trial -> what was seen of each database: node, replicas (of its tier), measured (series with enough values; a
    link can be found only if `disk` and another one are), steps (of the chain from its disk outwards; none: no link
    was found), links, turned_away, text."""
    return {
        trial: [
            asdict(one.chain)
            | {"measured": sorted(one.measured), "turned_away": one.chain.turned_away}
            | {"text": one.text if one.chain.steps else ""}
            for one in found
        ]
        for trial, found in looked.items()
    }


def sentences(looked: dict[str, list[Looked]]) -> list[str]:
    """What moves with the disks of a sweep's databases, by trial: a sentence for each database and trial with a link,
    then what is known of the others. Never empty."""
    every = [(trial, one) for trial, found in looked.items() for one in found]
    if not every:
        return ["not known what moves with the disk of a database: no valid trial has one"]
    said = [f"{trial}: {one.text}" for trial, one in every if one.chain.steps]
    rest = [(trial, one) for trial, one in every if not one.chain.steps]
    if quiet := [pair for pair in rest if pair[1].told]:
        said.append(
            f"no link was found with the disk of {_named(quiet)}; links below {STRONG:g} are not looked for, and in a "
            "short run strong ones stay unseen, too"
        )
    if dark := [pair for pair in rest if not pair[1].told]:
        said.append(f"not measured: the disk, or anything that could move with it, of {_named(dark)}")
    return said


def _named(of: list[tuple[str, Looked]]) -> str:
    """`db1 and db2 (3 trials of 40 s)`."""
    nodes, lengths = {one.chain.node for _, one in of}, {one.run_s for _, one in of}
    seconds = " to ".join(str(s) for s in sorted({min(lengths), max(lengths)}))
    return f"{join(sorted(nodes))} ({counted(len({trial for trial, _ in of}), 'trial')} of {seconds} s)"
