"""What a Prometheus stored, as `promtool tsdb dump-openmetrics` or query_range show it, and its import."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from ntier_analysis.importing.mapping import read_mapping
from ntier_analysis.importing.prometheus import node_name, scraped

T0 = 1_790_000_000.0
CPU = "node_cpu_seconds_total"


def dump(path: Path, series: dict[str, list[tuple[float, float]]]) -> Path:
    """{name with labels: [(time, value), ...]} as `promtool tsdb dump-openmetrics` writes it."""
    lines = [f"{name} {float(v)!r} {t:.3f}" for name, points in series.items() for t, v in points]
    path.write_text("\n".join([*lines, "# EOF", ""]))
    return path


def cpu(instance: str, times: np.ndarray, busy: float = 0.25) -> dict[str, list[tuple[float, float]]]:
    """A node with one CPU that is busy for a share of the time, since the first time."""
    shares = {"user": busy, "idle": 1 - busy}
    return {
        f'{CPU}{{cpu="0",instance="{instance}",mode="{mode}"}}': [(t, 1000 + share * (t - T0)) for t in times]
        for mode, share in shares.items()
    }


def read(path: Path | str, *nodes: str, start: float = T0, end: float = T0 + 60, mapping: Path | None = None):
    known = read_mapping(mapping)
    named = [node_name(text) for text in nodes]
    known = known.model_copy(update={"nodes": [*named, *known.nodes]})
    return scraped(str(path), known, start, end, containers=False, offset_s=0.0)


def utilization(metrics, node: str = "db1"):
    rows = metrics.samples.query("node == @node and metric == 'utilization_pct' and resource == 'cpu'")
    return rows.set_index("t_s")["value"]


SECONDS = T0 + np.arange(0.0, 61.0)


def ranged(path: Path, series: dict[str, list[tuple[float, float]]], step: float) -> Path:
    """The same as query_range answers: at each step the last value before it."""
    result = []
    for name, points in series.items():
        metric, _, labels = name.partition("{")
        told = dict(part.split("=") for part in labels.rstrip("}").replace('"', "").split(","))
        t, v = np.array(points).T
        grid = np.arange(t[0], t[-1] + 1e-9, step)
        seen = v[np.searchsorted(t, grid, side="right") - 1]
        values = [[at, str(value)] for at, value in zip(grid, seen, strict=True)]
        result.append({"metric": told | {"__name__": metric}, "values": values})
    path.write_text(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}))
    return path
