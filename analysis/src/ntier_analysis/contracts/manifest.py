"""`manifest.json`: what a trial was meant to be, what happened, and whether it counts."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ntier_analysis.contracts.nodes import Node

MANIFEST_SCHEMA = 1


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class State(StrEnum):
    PLANNED = "planned"
    RUNNING = "running"
    COLLECTED = "collected"
    FAILED = "failed"


class Outcome(StrEnum):
    """`undecidable`: too few samples to tell; it never invalidates by itself unless the check is required."""

    PASS = "pass"  # noqa: S105 (an outcome, not a password)
    FAIL = "fail"
    UNDECIDABLE = "undecidable"


class Phase(_Part):
    """Absolute bounds, UTC epoch seconds; the end is exclusive."""

    name: Literal["ramp_up", "run", "ramp_down"]
    planned_s: float
    start_s: float | None = None
    end_s: float | None = None


class Check(_Part):
    """One validity check (docs/validity.md). A required check must pass; it fails only beyond its limit and, where it
    is a sampled quantity, beyond three standard errors."""

    id: str
    title: str
    required: bool
    outcome: Outcome
    value: float | None = None
    limit: float | None = None
    unit: str = ""
    n: int | None = None
    standard_error: float | None = None
    reason: str = ""
    """Short machine name used in `invalid_reasons`, for example `generator_lag`; empty when passed."""
    detail: str = ""
    """One sentence for a person: what was seen, where, and what to do."""


class Validity(_Part):
    valid: bool
    checks: list[Check] = Field(default_factory=list)

    @property
    def reasons(self) -> list[str]:
        """Reasons of the checks that invalidate the trial, in the order of the checks."""
        return [c.reason or c.id for c in self.checks if c.required and c.outcome is not Outcome.PASS]


class Host(_Part):
    cores: int
    memory_bytes: int
    kernel: str
    os: str
    cgroup_version: int
    facts: dict[str, Any] = Field(default_factory=dict)


class FileEntry(_Part):
    path: str
    """Relative to the trial's directory, forward slashes."""
    bytes: int
    sha256: str


class Manifest(_Part):
    """Written before the trial starts and after each step; sealed (files with hashes) at the end.

    Times are UTC epoch seconds. `users` is the nominal load of the notation; `users_real` = round(users x scale)."""

    schema_version: Literal[1] = MANIFEST_SCHEMA
    ntier_version: str
    sweep: str
    trial: str
    attempt: int = 1
    topology: str
    nodes: list[Node] = Field(default_factory=list)
    target: str = "local"
    mix: str
    middleware: str
    data_profile: str
    users: int
    users_real: int
    scale: float
    rep: int
    seed: int
    seeds: dict[str, int] = Field(default_factory=dict)
    think_time_s: float = 7.0
    slo_ms: float | None = None
    """Response-time objective of goodput, ms; from the mix's data."""
    phases: list[Phase]
    soft_resources: dict[str, Any] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    host: Host | None = None
    git_commit: str | None = None
    git_clean: bool | None = None
    command: str = ""
    state: State = State.PLANNED
    steps: list[dict[str, Any]] = Field(default_factory=list)
    """Each step begun or done: {"step": "ramp_up", "t_s": ..., "event": "begin|end|error", "detail": ...}."""
    failure: str | None = None
    clock_offsets_s: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Per node: offset_before, offset_after, rtt_before, rtt_after (node minus controller), seconds."""
    collectors: dict[str, list[str]] = Field(default_factory=dict)
    """Per node (and `host`): names of the collectors that were started, so that a missing file is noticed."""
    quota_readback: list[dict[str, Any]] = Field(default_factory=list)
    """Limits as read back from the control group: {"node", "t_s", "moment": ramp_up|run|end, "cpu_cores"}."""
    validity: Validity | None = None
    files: list[FileEntry] = Field(default_factory=list)

    @property
    def valid(self) -> bool:
        return self.state is State.COLLECTED and self.validity is not None and self.validity.valid

    def phase(self, name: str) -> Phase:
        return next(p for p in self.phases if p.name == name)

    @classmethod
    def read(cls, trial_dir: Path) -> Manifest:
        """Reads `trial_dir/manifest.json`; raises OSError or pydantic.ValidationError."""
        return cls.model_validate_json((trial_dir / "manifest.json").read_bytes())

    def write(self, trial_dir: Path) -> None:
        """Replaces `manifest.json` durably: temporary file, fsync, rename, fsync of the directory."""
        final = trial_dir / "manifest.json"
        temporary = trial_dir / ".manifest.json.tmp"
        with temporary.open("w") as file:
            file.write(self.model_dump_json(indent=1))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(final)
        directory = os.open(trial_dir, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
