"""The exported JSON: its keys, in models of pydantic, from which docs/schema/export.schema.json is made."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field

from ntier_analysis.errors import DataError
from ntier_analysis.store.tables import read_table, sweeps
from ntier_analysis.verdict.store import verdicts
from ntier_analysis.verdict.tables import as_json, sweep_scale

SCHEMA_VERSION = 1
"""Raised when a key changes its meaning or goes; new keys do not raise it."""

Number = float | None
Interval = Annotated[list[Number], Field(min_length=2, max_length=2, description="95 % interval; null: unknown.")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Bottleneck(_Part):
    tier: str
    resource: str
    nodes: list[str]
    item: str | None = Field(None, description="Device, interface or pool; null: the whole resource.")
    saturation: Number = Field(description="Share of the run phase at or above 95 % of utilization, 0 to 1.")
    saturation_interval: Interval


class ExportedFactor(_Part):
    name: str = Field(description="What the sweep changes from trial to trial; `users`, if nothing else.")
    unit: str


class ExportedCheck(_Part):
    id: str
    title: str
    required: bool = Field(description="The trial is invalid unless it passes.")
    outcome: Annotated[str, Field(pattern="^(pass|fail|undecidable)$")]
    detail: str


class ExportedTrial(_Part):
    trial: str
    users: int = Field(description="Nominal.")
    factor_value: Number = Field(description="Value of the sweep's factor; the users if there is no other factor.")
    valid: bool
    invalid_reasons: list[str]
    verdict: str
    bottlenecks: list[Bottleneck]
    throughput_per_s: Number = Field(description="Measured.")
    throughput_interval: Interval
    goodput_per_s: Number = Field(description="Measured.")
    response_time_mean_ms: Number
    response_time_p50_ms: Number
    response_time_p95_ms: Number
    response_time_p99_ms: Number
    errors: int | None
    lost_share: Number = Field(description="Share of the throughput that waiting costs.")
    explained_share: Number = Field(description="Share of the waiting in which a named bottleneck was saturated.")
    not_validated: str | None = Field(description="Imported trials: what no check examined; null: not imported.")
    checks: list[ExportedCheck]


class Export(_Part):
    """Verdict and key figures of one sweep."""

    schema_version: int = Field(SCHEMA_VERSION, description="Version of this schema.")
    sweep: str
    topology: str
    mix: str | None = Field(description="Which interactions in which order; null: unknown.")
    scale: float = Field(description="Measured rates divided by it are nominal; numbers of users are nominal.")
    factor: ExportedFactor
    verdict: Annotated[str, Field(pattern="^(none|single|multi|hidden|unknown)$")]
    kind: str | None = Field(description="stable, simultaneous or alternating; null: no bottleneck.")
    bottlenecks: list[Bottleneck]
    max_throughput_per_s: Number = Field(description="Measured.")
    max_throughput_interval: Interval
    max_throughput_at_least: bool = Field(description="The maximum was not reached; it is this or more.")
    knee_users: Number = Field(description="Nominal.")
    knee_interval: Interval
    load_model: str
    evidence: list[str]
    next: list[str] = Field(description="What would make the verdict surer.")
    analysis_version: str = Field(description="Version and digest of the rules that made the verdict.")
    trials: list[ExportedTrial]
    sweep_checks: list[ExportedCheck] = Field(description="Checks of all trials together; none is required.")


OF_THE_TRIAL = (
    "throughput_per_s",
    "goodput_per_s",
    "response_time_mean_ms",
    "response_time_p50_ms",
    "response_time_p95_ms",
    "response_time_p99_ms",
)
OF_THE_SWEEP = (
    "sweep", "topology", "factor", "verdict", "kind", "max_throughput_per_s", "max_throughput_interval",
    "max_throughput_at_least", "knee_users", "knee_interval", "load_model", "evidence", "next", "analysis_version",
)  # fmt: skip


def exported(store: Path, sweep: str) -> Export:
    """Raises DataError if the store has no such sweep."""
    names = sweeps(store)
    if sweep not in names:
        raise DataError(f"no sweep {sweep!r} in {store}; there are: {', '.join(names) or 'none'}")
    verdict = as_json(verdicts(store, [sweep])[0])
    table = read_table(store, "trials", sweep)
    rows = table.set_index("trial")
    checks = read_table(store, "checks", sweep)
    of_trial = dict(iter(checks.groupby("trial", sort=False)))  # once, and not for each of perhaps thousands
    trials = [
        _trial(trial, rows.loc[trial["trial"]], of_trial.get(trial["trial"], checks[:0])) for trial in verdict["trials"]
    ]
    return Export(
        **{name: verdict[name] for name in OF_THE_SWEEP},
        mix=next(map(str, table["mix"].dropna()), None),
        scale=sweep_scale(table),
        bottlenecks=_bottlenecks(verdict["bottlenecks"]),
        trials=trials,
        sweep_checks=_checks(read_table(store, "sweep_checks", sweep)),
    )


def _trial(judged: dict[str, Any], row: pd.Series, checks: pd.DataFrame) -> ExportedTrial:
    told = {name: _number(row.get(name)) for name in OF_THE_TRIAL}
    errors, unseen = row.get("errors"), row.get("not_validated")
    same = ("trial", "users", "factor_value", "valid", "invalid_reasons", "verdict", "lost_share", "explained_share")
    return ExportedTrial(
        **{name: judged[name] for name in same},
        **told,
        throughput_interval=[_number(row.get(f"throughput_{end}_per_s")) for end in ("low", "high")],
        bottlenecks=_bottlenecks(judged["bottlenecks"]),
        errors=None if pd.isna(errors) else int(errors),
        not_validated=None if unseen is None or pd.isna(unseen) else str(unseen),
        checks=_checks(checks),
    )


def _bottlenecks(bottlenecks: list[dict[str, Any]]) -> list[Bottleneck]:
    return [
        Bottleneck(**{k: v for k, v in b.items() if k != "interval"}, saturation_interval=b["interval"])
        for b in bottlenecks
    ]


def _checks(rows: pd.DataFrame) -> list[ExportedCheck]:
    return [
        ExportedCheck(id=str(r.id), title=str(r.title), required=bool(r.required), outcome=str(r.outcome),
                      detail="" if pd.isna(r.detail) else str(r.detail))
        for r in rows.itertuples()
    ]  # fmt: skip


def _number(value: Any) -> float | None:
    return None if value is None or pd.isna(value) else float(value)


def json_schema() -> dict[str, Any]:
    """The schema as it is published."""
    title = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "ntier-analysis export --json"}
    return title | Export.model_json_schema()
