"""A sweep as the verdict takes it and gives it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ntier_analysis.statistics.throughput import Interval
from ntier_analysis.verdict.load import TIERS, Bottleneck, Load, Verdict
from ntier_analysis.verdict.saturation import Saturation


@dataclass
class SweepVerdict:
    """`at_least`: the maximum is only a lower bound, since too few loads lie on the plateau."""

    sweep: str
    topology: str
    verdict: str
    kind: str = ""
    bottlenecks: list[Bottleneck] = field(default_factory=list)
    max_throughput: Interval | None = None
    at_least: bool = True
    knee_users: float = float("nan")
    knee_bracketed: bool = False
    plateau_users: tuple[int, ...] = ()
    """Nominal users of the trials whose throughputs are pooled."""
    knee_interval: tuple[float, float] = (float("nan"), float("nan"))
    trials: list[tuple[Load, Verdict]] = field(default_factory=list)
    migration: list[dict] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)
    next: list[str] = field(default_factory=list)
    """What to measure next, so that the verdict becomes surer."""
    load_model: str = "closed"
    factor: str = "users"
    factor_unit: str = ""
    checks_off: dict[str, str] = field(default_factory=dict)
    """Validity checks that the system switches off, and why."""
    reasoning: str = ""
    """Which reasoning the load allowed, in a sentence (reasoning.py)."""
    analysis_version: str = ""
    """By whose rules (package version and digest of the rules' source)."""


@dataclass(frozen=True)
class TrialData:
    """One trial as the verdict needs it."""

    load: Load
    saturations: list[Saturation]
    nodes: dict[str, str]
    used_cores: dict[str, float] = field(default_factory=dict)
    """Mean CPU use of each node in cores (absolute, not per quota); may be empty."""
    capacity_cores: dict[str, float] = field(default_factory=dict)
    order: tuple[str, ...] = TIERS
    """Tiers from the client inwards, as far as they are known."""
    complete: frozenset[str] = frozenset()
    """Tiers that have as many nodes as the system allows."""
    imported: bool = False
    """Whether it was measured elsewhere."""
    nodes_told: bool = True
    """Whether it is known which servers the system has."""
