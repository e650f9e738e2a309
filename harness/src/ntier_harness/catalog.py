"""Names that a request may use: phases, mixes, loads (data in `workloads/`), middlewares, targets, data profiles."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ntier_harness.errors import RequestError, unknown

MIDDLEWARES = ("shardingsphere",)
TARGETS = ("local",)
PROFILES = ("tiny", "small", "standard")
SEARCHES = ("grid",)
SUPPORTED_DBMS = ("M",)
DEFAULT_MIX = "browse_only"
DEFAULT_PROFILE = "small"
MAX_PHASE_S = 86_400
MIN_RUN_S = 5.0  # below this no check of the run phase can be decided


@dataclass(frozen=True)
class Phases:
    """Seconds of ramp-up, run and ramp-down; `name` is the catalogue's or `a-b-c`."""

    name: str
    ramp_up_s: float
    run_s: float
    ramp_down_s: float

    @property
    def total_s(self) -> float:
        return self.ramp_up_s + self.run_s + self.ramp_down_s


@dataclass(frozen=True)
class Mix:
    """What the harness needs to know of a mix: mean think time and the response-time objective of goodput."""

    name: str
    file: Path
    think_time_s: float
    slo_ms: float | None


def _yaml(file: Path) -> Any:
    import yaml

    try:
        return yaml.safe_load(file.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise RequestError(f"{file}: cannot be read: {error}") from None


def phase_names(workloads: Path) -> dict[str, Phases]:
    """Named phases of `workloads/phases.yaml`."""
    data = _yaml(workloads / "phases.yaml")
    entries = data.get("phases", data) if isinstance(data, dict) else {}
    keys = ("ramp_up_s", "run_s", "ramp_down_s")
    return {n: Phases(n, *(float(e[k]) for k in keys)) for n, e in entries.items() if set(keys) <= set(e)}


def default(workloads: Path, key: str) -> str:
    """`default_phases` or `default_users` of `workloads/phases.yaml`."""
    try:
        return str(_yaml(workloads / "phases.yaml")[key])
    except (KeyError, TypeError):
        raise RequestError(f"{workloads / 'phases.yaml'}: {key} is missing") from None


def parse_phases(text: str, workloads: Path) -> Phases:
    """A name of the catalogue, or `ramp-up/run/ramp-down` in seconds."""
    known = phase_names(workloads)
    if text in known:
        return known[text]
    numbers = re.fullmatch(r"(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)", text)
    if not numbers:
        raise unknown("phases", text, known, ", or seconds as ramp-up/run/ramp-down: 20/40/5")
    up, run, down = (float(n) for n in numbers.groups())
    if run < MIN_RUN_S or max(up, run, down) > MAX_PHASE_S:
        raise RequestError(f"phases: {text!r}: run is {MIN_RUN_S:g}..{MAX_PHASE_S} s, the others 0..{MAX_PHASE_S} s")
    same = [p for p in known.values() if (p.ramp_up_s, p.run_s, p.ramp_down_s) == (up, run, down)]
    return same[0] if same else Phases(text.replace("/", "-"), up, run, down)


def mix_names(workloads: Path) -> list[str]:
    return sorted(p.stem for p in (workloads / "mixes").glob("*.csv"))


def read_mix(name: str, workloads: Path) -> Mix:
    names = mix_names(workloads)
    if name not in names:
        raise unknown("mix", name, names)
    file = workloads / "mixes" / f"{name}.csv"
    described = file.with_suffix(".yaml")
    data = _yaml(described) if described.exists() else {}
    slo = data.get("slo_ms")
    return Mix(name, file, float(data.get("think_time_s", 7.0)), float(slo) if slo is not None else None)
