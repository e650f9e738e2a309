"""A Prometheus, or a snapshot of it -> tidy samples of nodes, and what its scrapes hide."""

from __future__ import annotations

from pathlib import Path

from ntier_analysis.errors import DataError
from ntier_analysis.importing.mapping import Mapping
from ntier_analysis.importing.prometheus.asking import TOOK, asked, is_url
from ntier_analysis.importing.prometheus.nodes import by_node, matches, node_name
from ntier_analysis.importing.prometheus.reader import AROUND_S, Reader, Scraped
from ntier_analysis.parsers.prometheus import snapshot

__all__ = ["AROUND_S", "Scraped", "node_name", "scraped"]


def scraped(
    source: str, mapping: Mapping, start_s: float, end_s: float, *, containers: bool, offset_s: float
) -> Scraped:
    """`source`: URL or file; of the loads' time [start_s, end_s] on the client's clock, and AROUND_S more at both ends.
    Prometheus' clock is ahead by `offset_s`. `containers`: what shows a machine is that of their host.

    Raises DataError naming source and place."""
    names = {name for exporter in mapping.exporters.values() for name in exporter.metrics} | {TOOK}
    grid = False
    if is_url(source):
        read_series = asked(source, mapping, start_s - AROUND_S + offset_s, end_s + AROUND_S + offset_s)
    else:
        read_series, grid = snapshot(Path(source), names.__contains__)
    read_series = [s for s in read_series if matches(s.labels, mapping.match)]
    durations = [s for s in read_series if s.name == TOOK] if not grid else []
    read_series = [s for s in read_series if s.name != TOOK]
    if not read_series:
        raise DataError(f"{source}: none of the metrics that the mapping names, or no series with its labels")
    notices: list[str] = []
    nodes = by_node(source, read_series, mapping, notices)
    reader = Reader(source, containers, offset_s, grid, (start_s, end_s), durations, notices)
    for (exporter, node), series in sorted(nodes.items()):
        reader.read(exporter, mapping.exporters[exporter], node, series)
    return reader.result({node: tier for _, (node, tier) in nodes})
