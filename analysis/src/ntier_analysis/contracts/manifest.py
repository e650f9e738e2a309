"""`manifest.json`: what a trial was meant to be, what happened, and whether it counts."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ntier_analysis.contracts import implied
from ntier_analysis.contracts.files import RECORD_BYTES, read_bytes, replacing, sync_folder
from ntier_analysis.contracts.nodes import Name, Node, said
from ntier_analysis.contracts.system import System
from ntier_analysis.errors import DataError

MANIFEST_SCHEMA = 1

Count = Annotated[int, Field(ge=1, le=10**9)]
Positive = Annotated[float, Field(gt=0)]
Time = Annotated[float, Field(ge=0, le=1e11)]
"""UTC epoch seconds."""


class _Part(BaseModel):
    """Numbers are finite."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


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
    planned_s: Annotated[float, Field(ge=0, le=1e6)]
    start_s: Time | None = None
    end_s: Time | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Phase:
        if self.start_s is not None and self.end_s is not None and not 0 <= self.end_s - self.start_s <= 1e6:
            raise ValueError(f"end_s is {self.end_s!r}, expected 0 to 1e6 s after start_s ({self.start_s!r})")
        return self


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
        """Reasons of the checks that invalidate the trial, in the order of the checks, each once."""
        failed = (c for c in self.checks if c.required and c.outcome is not Outcome.PASS)
        return list(dict.fromkeys(c.reason or c.id for c in failed))


class Host(_Part):
    cores: Annotated[int, Field(ge=1, le=10**5)]
    memory_bytes: Annotated[int, Field(ge=1)]
    kernel: str
    os: str
    cgroup_version: int
    facts: dict[str, Any] = Field(default_factory=dict)


class Rent(_Part):
    """What the rented machines of the deployment cost. Keys are nodes."""

    currency: str
    price_per_hour: dict[Name, Annotated[float, Field(ge=0)]]
    types: dict[Name, str] = Field(default_factory=dict)
    """The provider's name of each machine's type."""
    since_s: dict[Name, Time] = Field(default_factory=dict)
    """When each was asked for."""
    location: str = ""
    source: str = ""
    """Where the prices come from, and their date."""
    calibration: dict[Name, dict[str, Any]] = Field(default_factory=dict)
    """What each machine was found to do before it was used (docs/decisions/clouds.md)."""


class FileEntry(_Part):
    path: str
    """Relative to the trial's directory, forward slashes."""
    bytes: Annotated[int, Field(ge=0)]
    sha256: str


class Manifest(_Part):
    """Written before the trial starts and after each step; sealed (files with hashes) at the end.

    Times are UTC epoch seconds. `users` is the nominal load of the notation; `users_real` = round(users x scale)."""

    schema_version: Literal[1] = MANIFEST_SCHEMA
    ntier_version: str
    sweep: Name
    trial: Name
    attempt: Count = 1
    topology: str
    nodes: list[Node] = Field(default_factory=list)
    target: str = "local"
    system: System | None = None
    """None: written before systems were data."""
    mix: Name
    middleware: str
    data_profile: str
    users: Count
    users_real: Count
    above: Count | None = None
    """Most nominal users before the run, if more were there than in the run: those beyond `users` left during the
    ramp-up. None: nobody left."""
    above_real: Count | None = None
    """The same, times the scale."""
    scale: Positive
    rep: Count
    seed: int
    seeds: dict[str, int] = Field(default_factory=dict)
    think_time_s: Positive = 7.0
    slo_ms: Positive | None = None
    """Response-time objective of goodput, ms; from the mix's data."""
    phases: list[Phase]
    soft_resources: dict[str, Any] = Field(default_factory=dict)
    settings: dict[str, Any] | None = None
    """Those of the soft resources and of the load's parameters that were asked for (SET); None: of before 2026-12."""
    versions: dict[str, str] = Field(default_factory=dict)
    host: Host | None = None
    rent: Rent | None = None
    """None: nothing is paid for."""
    git_commit: str | None = None
    git_clean: bool | None = None
    command: str = ""
    state: State = State.PLANNED
    steps: list[dict[str, Any]] = Field(default_factory=list)
    """Each step begun or done: {"step": "ramp_up", "t_s": ..., "event": "begin|end|error", "detail": ...}."""
    failure: str | None = None
    clock_offsets_s: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Per node: offset_before, offset_after, rtt_before, rtt_after (node minus controller), seconds."""
    collectors: dict[Name, list[Name]] = Field(default_factory=dict)
    """Per node (and `host`): names of the collectors that were started, so that a missing file is noticed."""
    quota_readback: list[dict[str, Any]] = Field(default_factory=list)
    """Limits as read back from the control group: {"node", "t_s", "moment": ramp_up|run|end, "cpu_cores"}."""
    validity: Validity | None = None
    files: list[FileEntry] = Field(default_factory=list)

    @model_validator(mode="after")
    def _some_leave(self) -> Manifest:
        if (self.above is None) != (self.above_real is None):
            raise ValueError("above and above_real: expected both or neither")
        if self.above is not None and self.above <= self.users:
            raise ValueError(f"above is {self.above}, expected more than users ({self.users})")
        return self

    @property
    def leavers(self) -> int:
        """Real users who leave during the ramp-up."""
        return 0 if self.above_real is None else self.above_real - self.users_real

    @property
    def valid(self) -> bool:
        return self.state is State.COLLECTED and self.validity is not None and self.validity.valid

    @property
    def described(self) -> System:
        """The system, also of a manifest that was written before it named one."""
        return self.system or implied.system(self.users)

    def phase(self, name: str) -> Phase:
        return next(p for p in self.phases if p.name == name)

    @classmethod
    def read(cls, trial_dir: Path) -> Manifest:
        """Reads `trial_dir/manifest.json`. Raises DataError naming the file and the field that is wrong."""
        path = trial_dir / "manifest.json"
        try:
            return cls.model_validate_json(read_bytes(path, RECORD_BYTES))
        except ValidationError as error:
            raise DataError(f"{path}: {said(error)}") from None

    def write(self, trial_dir: Path) -> None:
        """Replaces `manifest.json` durably: temporary file, fsync, rename, fsync of the directory."""
        with replacing(trial_dir / "manifest.json", durable=True) as temporary:
            temporary.write_text(self.model_dump_json(indent=1))
        sync_folder(trial_dir)
