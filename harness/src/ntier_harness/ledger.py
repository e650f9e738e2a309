"""The ledger is the manifests on disk: `results/raw/<sweep>/<trial>[.a<n>]/manifest.json`. Resuming is reading them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.manifest import FileEntry, Manifest, State
from ntier_analysis.errors import DataError

from ntier_harness import durable
from ntier_harness.errors import RequestError
from ntier_harness.plan import Trial
from ntier_harness.spec import USERS, Spec

INTERRUPTED = "interrupted"
_DIR = re.compile(r"((?:u\d{5,}(?:\.above\d{5,})?|[a-z][a-z0-9_]*-[0-9_e-]+)\.r\d\d)(?:\.a(\d+))?")
# What must be equal for trials to stand in one sweep: manifest field -> option that sets it.
SAME = {"target": "target", "scale": "scale", "seed": "seed", "data_profile": "data", "soft_resources": "set"}


@dataclass(frozen=True)
class Attempt:
    """One attempt of a trial as found on disk. `manifest` is None when the file is torn: the attempt then failed."""

    directory: Path
    trial: str
    number: int
    manifest: Manifest | None
    problem: str = ""
    lost: str = ""
    """A file of a sealed attempt that is not there any more: no store can be made from it."""

    @property
    def outcome(self) -> str:
        """`valid`, `invalid`, `failed`, `interrupted`, or `running` (also if its harness has died)."""
        m = self.manifest
        if m is None:
            return "failed"
        if m.state is State.COLLECTED:
            if self.lost:
                return "failed"
            return "valid" if m.valid else "invalid"
        if m.state is State.FAILED:
            return INTERRUPTED if (m.failure or "").startswith(INTERRUPTED) else "failed"
        return "running"


_READ: ContextVar[dict[Path, dict[str, list[Attempt]]] | None] = ContextVar("read", default=None)


@contextlib.contextmanager
def read_once() -> Iterator[None]:
    """Inside, each sweep's manifests are read once, however often they are asked for: only where nothing is written."""
    token = None if _READ.get() is not None else _READ.set({})
    try:
        yield
    finally:
        if token:
            _READ.reset(token)


def attempts(sweep_dir: Path) -> dict[str, list[Attempt]]:
    """All attempts of a sweep by trial key, oldest first."""
    known = _READ.get()
    if known is None:
        return _read(sweep_dir)
    if sweep_dir not in known:
        known[sweep_dir] = _read(sweep_dir)
    return known[sweep_dir]


def _read(sweep_dir: Path) -> dict[str, list[Attempt]]:
    tries: dict[str, list[Attempt]] = {}
    for directory in sorted(sweep_dir.glob("*.r*")) if sweep_dir.is_dir() else []:
        match = _DIR.fullmatch(directory.name)
        if not match or not directory.is_dir():
            continue
        manifest, problem, lost = None, "", ""
        try:
            manifest = Manifest.read(directory)
            if manifest.state is State.COLLECTED:
                lost = next((f.path for f in manifest.files if not (directory / f.path).is_file()), "")
                problem = f"{lost} is missing" if lost else ""
        except DataError as error:
            problem = str(error).splitlines()[0]
        attempt = Attempt(directory, match[1], int(match[2] or 1), manifest, problem, lost)
        tries.setdefault(match[1], []).append(attempt)
    for list_ in tries.values():
        list_.sort(key=lambda a: a.number)
    return tries


def took_s(attempts_: dict[str, list[Attempt]]) -> list[float]:
    """What each valid attempt took, from its first step to its last, s."""
    valid = (a.manifest.steps for tries in attempts_.values() for a in tries if a.manifest and a.outcome == "valid")
    return [steps[-1]["t_s"] - steps[0]["t_s"] for steps in valid if steps]


def warm_ups(attempts_: dict[str, list[Attempt]]) -> dict[float, float]:
    """When each warm-up began that these attempts had -> how long it drove the system, s."""
    manifests = [a.manifest for tries in attempts_.values() for a in tries if a.manifest]
    details = [step.get("detail") for m in manifests for step in m.steps if step.get("step") == "reset"]
    found = [d["warm_up"] for d in details if isinstance(d, dict) and d.get("warm_up")]
    return {w["t_s"]: w["seconds"] for w in found}


def counted(attempts_: list[Attempt]) -> list[Attempt]:
    """Attempts that count against the limit: an interruption, or the loss of a file, says nothing about the trial."""
    return [a for a in attempts_ if a.outcome != INTERRUPTED and not a.lost]


def next_attempt(trial: Trial, attempts: dict[str, list[Attempt]], limit: int) -> int | None:
    """Number of the attempt to make now, or None if the trial is done (valid, or out of attempts)."""
    mine = attempts.get(trial.key, [])
    if any(a.outcome == "valid" for a in mine) or len(counted(mine)) >= limit:
        return None
    return max((a.number for a in mine), default=0) + 1


def check_same_experiment(spec: Spec, attempts: dict[str, list[Attempt]], soft_resources: dict[str, Any]) -> None:
    """Raises RequestError if the sweep's folder holds trials of another experiment."""
    mine = {
        "target": spec.target,
        "scale": spec.scale,
        "seed": spec.seed,
        "data_profile": spec.data_profile,
        "soft_resources": soft_resources,
    }
    phases = [spec.phases.ramp_up_s, spec.phases.run_s, spec.phases.ramp_down_s]
    for list_ in attempts.values():
        for m in (a.manifest for a in list_ if a.manifest):
            differing = [f"{option} ({getattr(m, f)} there)" for f, option in SAME.items() if getattr(m, f) != mine[f]]
            if [p.planned_s for p in m.phases] != phases:
                differing.append(f"phases ({'/'.join(f'{p.planned_s:g}' for p in m.phases)} there)")
            clients = sum(n.tier == "client" for n in m.nodes)
            if clients != spec.clients:
                differing.append(f"clients ({clients} there)")
            if spec.factor != USERS and m.users != spec.users[0]:
                differing.append(f"users ({m.users} there)")
            if differing:
                raise RequestError(
                    f"name: sweep {spec.sweep} exists with other {', '.join(differing)}; give another --name, "
                    f"or remove {list_[0].directory.parent}"
                )


def create(sweep_dir: Path, name: str, manifest: Manifest) -> Path:
    """Makes the folder of an attempt with its manifest inside, at once: a folder without a manifest never exists."""
    sweep_dir.mkdir(parents=True, exist_ok=True)
    temporary = sweep_dir / f".{name}.new"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    save(temporary, manifest)
    durable.rename(temporary, sweep_dir / name)
    return sweep_dir / name


def save(directory: Path, manifest: Manifest) -> None:
    durable.write(directory / "manifest.json", manifest.model_dump_json(indent=1))


def note(directory: Path, manifest: Manifest, step: str, event: str, t_s: float, detail: Any = None) -> None:
    """Adds a step to the manifest and saves it."""
    manifest.steps.append({"step": step, "t_s": t_s, "event": event} | ({"detail": detail} if detail else {}))
    save(directory, manifest)


def file_entries(directory: Path) -> list[FileEntry]:
    """Every file of a trial but the manifest itself, with size and SHA-256, ordered by path."""
    entries = []
    for path in sorted(
        p for p in directory.rglob("*") if p.is_file() and p.parent / p.name != directory / "manifest.json"
    ):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        entries.append(FileEntry(path=path.relative_to(directory).as_posix(), bytes=path.stat().st_size, sha256=digest))
    return entries


def seal(directory: Path, manifest: Manifest, state: State) -> None:
    """The last write of an attempt: state and files with hashes; from then on nothing in it changes."""
    for path in directory.rglob(".*.tmp"):
        path.unlink()
    manifest.files = file_entries(directory)
    manifest.state = state
    save(directory, manifest)
    make_readonly(directory)


def make_readonly(directory: Path) -> None:
    durable.step(f"readonly {directory.name}")
    for path in [*directory.rglob("*"), directory]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)


def recover(raw: Path, now_s: float) -> list[str]:
    """Cleans up after a crash: removes half-made folders, marks unsealed attempts `failed: interrupted`, makes sealed
    ones read-only. Call only under the lock. Returns the names of the attempts that were marked."""
    marked = []
    for sweep_dir in sorted(p for p in raw.iterdir() if p.is_dir()) if raw.is_dir() else []:
        for half in sweep_dir.glob(".*.new"):
            shutil.rmtree(half)
        for attempt in (a for list_ in attempts(sweep_dir).values() for a in list_):
            m = attempt.manifest
            if m is None:
                continue
            if m.state in (State.COLLECTED, State.FAILED):
                if os.stat(attempt.directory).st_mode & 0o222:
                    make_readonly(attempt.directory)
                continue
            last = m.steps[-1]["step"] if m.steps else "plan"
            m.failure = f"{INTERRUPTED}: the harness ended during {last}"
            m.steps.append({"step": last, "t_s": now_s, "event": "error", "detail": m.failure})
            seal(attempt.directory, m, State.FAILED)
            marked.append(f"{sweep_dir.name}/{attempt.directory.name}")
    return marked


def local_time(t_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(t_s))
