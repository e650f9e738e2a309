"""Names that a request may use: phases, mixes, loads (data in `workloads/`), targets, data profiles."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ntier_harness.errors import RequestError, unknown

TARGETS = ("local", "hosts")
PROFILES = ("tiny", "small", "standard", "expanded")
SEARCHES = ("grid", "capacity")
SUPPORTED_DBMS = {"M": "MySQL", "P": "PostgreSQL"}
DEFAULT_MIX = "browse_only"
DEFAULT_PROFILE = "small"
WRITING = {"RegisterUser", "StoreComment", "StoreModerateLog", "StoreStory", "AcceptStory", "RejectStory"}
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
    """What the harness needs to know of a mix: its tables, mean think time and the response-time objective of goodput.
    A share of the users may be authors, who walk a table of their own."""

    name: str
    file: Path
    think_time_s: float
    slo_ms: float | None
    author_file: Path | None = None
    author_share: float = 0.0

    @cached_property
    def writes(self) -> bool:
        """Whether its users change the data."""
        return bool(WRITING & {to for file in (self.file, self.author_file) if file for to in _targets(file)})


def _targets(file: Path) -> Iterator[str]:
    """States that a mix's table leads to."""
    with file.open() as lines:
        for row in csv.DictReader(line for line in lines if not line.startswith("#")):
            yield row["to"]


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


def node_types(root: Path) -> dict[str, dict[str, float]]:
    """What a node of each type has at scale 1: the file that Terraform's module reads."""
    import json

    file = root / "terraform/modules/topology/node_types.json"
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise RequestError(f"{file}: cannot be read: {error}") from None


def mix_names(workloads: Path) -> list[str]:
    return sorted(p.stem for p in (workloads / "mixes").glob("*.csv"))


def read_mix(name: str, workloads: Path) -> Mix:
    names = mix_names(workloads)
    if name not in names:
        raise unknown("mix", name, names)
    file = workloads / "mixes" / f"{name}.csv"
    described = file.with_suffix(".yaml")
    data = _yaml(described) if described.exists() else {}
    slo, authors = data.get("slo_ms"), data.get("author_table")
    author_file = workloads / "mixes" / authors if authors else None
    if author_file and not author_file.is_file():
        raise RequestError(f"{described}: author_table: {author_file} does not exist")
    share = float(data.get("author_share", 0.0)) if author_file else 0.0
    if not 0 <= share <= 1:
        raise RequestError(f"{described}: author_share: {share:g} is out of range; allowed is 0..1")
    think_s, slo_ms = float(data.get("think_time_s", 7.0)), float(slo) if slo is not None else None
    return Mix(name, file, think_s, slo_ms, author_file, share)
