"""From which target a series was scraped: no two may tell one metric of one node at the same time."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable

from ntier_analysis.errors import DataError
from ntier_analysis.importing.mapping import Exporter
from ntier_analysis.parsers.prometheus import Series

COPIES = ("prometheus_replica", "replica", "prometheus", "receive_replica", "thanos_replica")
"""External labels of two Prometheus servers that scrape the same targets, as Prometheus Operator and Thanos set them;
they are on every series of a server, and one of the servers may have none."""


def target(series: Series) -> tuple[str, str]:
    """Job and instance."""
    return series.labels.get("job", ""), series.labels.get("instance", "")


def of_target(rules: Exporter, series: list[Series]) -> tuple[str, ...]:
    """Labels that tell where the series of a node were read, rather than what they count."""
    copies = [c for c in COPIES if c not in rules.labels and any(c in s.labels for s in series)]
    return tuple(dict.fromkeys((rules.node, "instance", "job", *copies)))


def told(series: Series, labels: Iterable[str]) -> str:
    return ", ".join(f"{k}={series.labels[k]}" for k in labels if k in series.labels)


def refuse_twins(place: str, series: list[Series], labels: tuple[str, ...]) -> None:
    """Two targets that tell a metric at the same time would be added up: what one counts, the other counts too,
    whatever labels the two scrape jobs put on it. `labels`: as of_target. Raises DataError."""
    spans: dict[str, dict[tuple, list[Series]]] = defaultdict(lambda: defaultdict(list))
    for s in series:
        spans[s.name][(*target(s), *(s.labels.get(c) for c in COPIES if c in labels))].append(s)
    for name, targets in spans.items():
        known = [(min(s.t[0] for s in some), max(s.t[-1] for s in some), some[0]) for some in targets.values()]
        for (_, end, one), (begin, _, other) in itertools.pairwise(sorted(known, key=lambda span: span[:2])):
            if begin <= end:
                raise same_time(place, name, one, other, labels)


def same_time(place: str, name: str, one: Series, other: Series, labels: tuple[str, ...]) -> DataError:
    return DataError(
        f"{place}: {name} of {told(one, labels)} and of {told(other, labels)} are of the same time; choose one by "
        "`match` of a mapping, or by `where` of its exporter"
    )
