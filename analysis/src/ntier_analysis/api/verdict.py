"""The verdict of a sweep, as values, as a sentence and as a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from ntier_analysis.api import html
from ntier_analysis.report.words import (
    NEXT,
    migration_sentence,
    migrations,
    named,
    rate,
    rounded,
    share,
    verdict_sentence,
    who,
)
from ntier_analysis.wording import counted, with_item


@dataclass(frozen=True)
class Bottleneck:
    """A resource that limits. `saturation`: share of the run phase at or above 95 % of its capacity, 0 to 1, with its
    95 % interval `interval`; `nodes`: those that saturate; `item`: which device, interface, pool or thread of them;
    empty: the whole resource."""

    tier: str
    resource: str
    nodes: tuple[str, ...]
    saturation: float
    interval: tuple[float, float]
    item: str = ""

    def __str__(self) -> str:
        return f"{self.tier} {with_item(self.resource, self.item)} on {', '.join(self.nodes)}: {self.share}"

    @property
    def share(self) -> str:
        """`0.97 [0.95, 0.98]`."""
        return share(self.saturation, *self.interval)


class Verdict:
    """The verdict of one sweep, as `ntier-analysis verdict --json` prints it (docs/detector.md says how it is found).

    >>> import ntier_analysis as na
    >>> verdict = na.Store.demo().sweep("1-1-1-1M.browse_only.shardingsphere").verdict
    >>> verdict
    db CPU on db1 limits 1/1/1/1M at ... interactions/s ...; saturation ... [..., ...].
    single (stable), 13 of 13 trials valid, judged by the rules of ...
    What to do next: repeat with one more db node: throughput grows if its CPU limits
    >>> verdict.name, verdict.kind, verdict.max_throughput_at_least
    ('single', 'stable', False)
    >>> low, high = verdict.max_throughput_interval
    >>> low < verdict.max_throughput_per_s < high
    True
    """

    def __init__(self, document: dict[str, Any], scale: float) -> None:
        self._document, self.scale = document, scale

    def to_dict(self) -> dict[str, Any]:
        """The document of `verdict --json` for this sweep; numbers that are not known are None.

        >>> import ntier_analysis as na
        >>> na.Store.demo().sweep("1-1-1-1M.browse_only.shardingsphere").verdict.to_dict()["verdict"]
        'single'
        """
        return self._document

    @property
    def name(self) -> str:
        """`none`, `single`, `multi`, `hidden` or `unknown`."""
        return self._document["verdict"]

    @property
    def kind(self) -> str:
        """`stable`, `simultaneous` or `alternating`; empty if no resource is named."""
        return self._document["kind"] or ""

    @property
    def sentence(self) -> str:
        """The report's first sentence, with intervals."""
        return verdict_sentence(self._document, self.scale)

    @property
    def bottlenecks(self) -> list[Bottleneck]:
        """The most saturated first; empty for `none`, `hidden` and `unknown`.

        >>> import ntier_analysis as na
        >>> (limit,) = na.Store.demo().sweep("1-1-1-1M.browse_only.shardingsphere").verdict.bottlenecks
        >>> limit.tier, limit.resource, limit.nodes, limit.saturation > 0.9
        ('db', 'cpu', ('db1',), True)
        """
        return [
            Bottleneck(
                b["tier"], b["resource"], tuple(b["nodes"]), b["saturation"], tuple(b["interval"]), b.get("item", "")
            )
            for b in self._document["bottlenecks"]
        ]

    @property
    def evidence(self) -> list[str]:
        """The sentences that led to it, and what other sweeps of the store say."""
        return list(self._document["evidence"])

    @property
    def next(self) -> list[str]:
        """What to measure next, so that the verdict becomes surer: the most telling first, three at most.

        >>> import ntier_analysis as na
        >>> na.Store.demo().sweep("1-1-1-1M.browse_only.shardingsphere").verdict.next[0]
        'repeat with one more db node: ...'
        """
        return list(self._document["next"])

    @property
    def max_throughput_per_s(self) -> float | None:
        """Interactions per second as measured (divide by `scale` for nominal ones); None if it is not known."""
        return self._document["max_throughput_per_s"]

    @property
    def max_throughput_interval(self) -> tuple[float | None, float | None]:
        """95 % interval of it, 1/s; None where it is not known."""
        return tuple(self._document["max_throughput_interval"])

    @property
    def max_throughput_at_least(self) -> bool:
        """Whether it is only a lower bound: too few loads lie beyond the knee."""
        return self._document["max_throughput_at_least"]

    @property
    def knee_users(self) -> float | None:
        """Nominal users at which N/(Z+R0) meets the maximum; None if there is none, or no load tells where."""
        return self._document["knee_users"]

    @property
    def knee_interval(self) -> tuple[float | None, float | None]:
        """95 % interval of it, users."""
        return tuple(self._document["knee_interval"])

    @property
    def migration(self) -> list[str]:
        """One sentence for each change of the bottleneck from one load to the next.

        >>> import ntier_analysis as na
        >>> na.Store.demo().sweep("1-1-1-1M.browse_only.shardingsphere").verdict.migration
        []
        """
        return migrations(self._document)

    @property
    def migration_sentence(self) -> str:
        """Whether the bottleneck changes over the loads; that is not known unless two loads or more name one.

        >>> import ntier_analysis as na
        >>> na.Store.demo().sweep("1-1-1-1M.browse_only.shardingsphere").verdict.migration_sentence
        'The bottleneck does not change over the ... loads that name one: db CPU.'
        """
        return migration_sentence(self._document)

    @property
    def analysis_version(self) -> str:
        """By whose rules it was made: version of the package and a digest of the rules."""
        return self._document["analysis_version"]

    @cached_property
    def trials(self) -> pd.DataFrame:
        """One row per trial, ordered by load: trial, users, valid, verdict, named (in words), throughput_per_s,
        lost_share (of the throughput, to waiting), explained_share (of the time in which users waited: a bottleneck
        that the verdict names was saturated), evidence (sentences).

        >>> import ntier_analysis as na
        >>> trials = na.Store.demo().sweep("1-1-1-1M.browse_only.shardingsphere").verdict.trials
        >>> trials.shape, trials["verdict"].iloc[0], trials["named"].iloc[-1]
        ((13, 9), 'none', 'single: db CPU')
        """
        names = ["trial", "users", "valid", "verdict", "named", "throughput_per_s", "lost_share"]
        names += ["explained_share", "evidence"]
        rows = [t | {"named": named(t), "evidence": "\n".join(t["evidence"])} for t in self._document["trials"]]
        return pd.DataFrame(rows, columns=names)

    def _valid(self) -> str:
        trials = self._document["trials"]
        return f"{sum(t['valid'] for t in trials)} of {counted(len(trials), 'trial')} valid"

    def __repr__(self) -> str:
        kind = f"{self.name} ({self.kind})" if self.kind else self.name
        what_next = "".join(f"\n{NEXT}: {text}" for text in self.next)
        return f"{self.sentence}\n{kind}, {self._valid()}, judged by the rules of {self.analysis_version}{what_next}"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [("verdict", f"{self.name} ({self.kind})" if self.kind else self.name)]
        rows += [("bottleneck", str(b)) for b in self.bottlenecks]
        if self.max_throughput_per_s is not None:
            rows.append(("maximum throughput", rate(self._document, self.scale)))
        if self.knee_users is not None and self.name != "none":
            least = ", at least" if self.max_throughput_at_least else ""
            rows.append((f"knee{least}", f"{rounded(self.knee_users)} {who(self._document)}"))
        rows += [("migration", text) for text in self.migration]
        rows += [("trials", self._valid()), ("rules", self.analysis_version)]
        return html.table(self.sentence, rows, self.evidence, first=(NEXT, self.next))
