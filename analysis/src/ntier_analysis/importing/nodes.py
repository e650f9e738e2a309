"""What was measured on the nodes of a test: by sysstat, by Prometheus, or by both."""

from __future__ import annotations

import pandas as pd

from ntier_analysis.contracts.layout import counts_of
from ntier_analysis.errors import DataError
from ntier_analysis.importing.loads import Part
from ntier_analysis.importing.mapping import read_mapping
from ntier_analysis.importing.prometheus import scraped
from ntier_analysis.importing.run import Run
from ntier_analysis.importing.sysstat_files import read_node
from ntier_analysis.importing.trials import unmeasured
from ntier_analysis.wording import moment


def samples_of(run: Run, loads: list[Part]) -> tuple[pd.DataFrame, pd.DataFrame, tuple[str, ...]]:
    """Samples of all nodes, the nodes, and what the samples hide."""
    parts, nodes, hidden = [], [], ()
    first, last = min(p.start_s for p in loads), max(p.end_s for p in loads)
    for file in run.sa:
        frame, cores = read_node(file, containers=run.containers)
        if not any(((frame["t_s"] >= p.start_s) & (frame["t_s"] < p.end_s)).any() for p in loads):
            measured = f"{moment(frame['t_s'].min())} to {moment(frame['t_s'].max())}"
            raise DataError(
                f"{file.path}: {file.node} was measured from {measured}, the run phase is {moment(first)} to "
                f"{moment(last)}: no sample in it; another day, or a wrong clock (--clock-offset {file.node}=SECONDS)?"
            )
        same = next((f for f, of in zip(run.sa, parts, strict=False) if _alike(of, frame)), None)
        if same is not None:
            raise DataError(f"{file.path}: {file.node} has the same samples as {same.node}; expected a file of its own")
        if (host := frame.attrs["host"]) != file.node and any(host == other.node for other in run.sa):
            run.notices.append(f"{file.path}: was written on {host}, but given as {file.node}: is it the right file?")
        parts.append(frame)
        nodes.append((file.node, file.tier, cores))
    if run.prometheus:
        mapping = read_mapping(run.mapping)
        mapping = mapping.model_copy(update={"nodes": [*run.node, *mapping.nodes]})
        scrapes = scraped(
            run.prometheus, mapping, first, last, containers=run.containers, offset_s=run.prometheus_offset_s
        )
        t = scrapes.samples["t_s"]
        if not any(((t >= p.start_s) & (t < p.end_s)).any() for p in loads):
            raise DataError(
                f"{run.prometheus}: no sample in the run phase {moment(first)} to {moment(last)}; "
                "another day, or a wrong clock (--clock-offset prometheus=SECONDS)?"
            )
        run.notices.extend(scrapes.notices)
        hidden = scrapes.unknown
        parts.append(scrapes.samples)
        known = {file.node for file in run.sa}
        nodes += [(n, tier, scrapes.cores.get(n)) for n, tier in scrapes.tiers.items() if n not in known]
    if run.containers:
        said = "by sysstat" if run.sa else "by an exporter of machines"
        run.notices.append(f"containers: their CPU is not measured {said}, so no CPU can be named as bottleneck")
    nodes += _missing(run, nodes)
    named = pd.DataFrame(nodes, columns=["node", "tier", "cpu_cores"]).astype({"cpu_cores": float})
    return pd.concat(parts, ignore_index=True), named, hidden


def _alike(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Of two machines, figures differ."""
    own = ["node", "tier", "t_s"]  # t_s: a file may be given with another offset of the clock
    return one.drop(columns=own).equals(other.drop(columns=own))


def _missing(run: Run, nodes: list[tuple]) -> list[tuple[str, str, None]]:
    """Nodes of the topology without samples: the verdict must know that they were not measured."""
    counts = counts_of(run.topology, run.tiers, (tier for _, tier, _ in nodes)) or {}
    lacking = unmeasured(counts, [tier for _, tier, _ in nodes], {node for node, *_ in nodes})
    missing = [(node, tier, None) for node, tier in lacking]
    if missing:
        what = "a sysstat file" if not run.prometheus else "samples"
        run.notices.append(f"topology {run.topology} has nodes without {what}: {', '.join(n for n, *_ in missing)}")
    return missing
