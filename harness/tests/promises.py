"""Checks what a harness promises of a crash or a fault (I1..I9), by reading only what it left: manifests, files, the
store, exit codes and the log of injected faults. Used by the tests on the dry twin and on real nodes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ntier_analysis.contracts.manifest import Manifest, State
from ntier_harness import ledger

EXIT_CODES = (0, 1, 2, 130)


@dataclass
class Verdict:
    """Violations found so far, as `I4: ...` lines."""

    violations: list[str] = field(default_factory=list)

    def expect(self, promise: str, holds: bool, what: str) -> None:
        if not holds:
            self.violations.append(f"{promise}: {what}")


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder."""
    files = (p for p in sorted(folder.rglob("*")) if p.is_file())
    return {p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def sealed_valid(raw: Path) -> dict[str, dict[str, str]]:
    """Digests of every sealed valid attempt: what must survive whatever happens next."""
    return {f"{d.parent.name}/{d.name}": digests(d) for d in attempt_dirs(raw) if _valid(d)}


def attempt_dirs(raw: Path) -> list[Path]:
    return sorted(d for s in raw.glob("*") if s.is_dir() for d in s.iterdir() if d.is_dir()) if raw.is_dir() else []


def _valid(directory: Path) -> bool:
    try:
        return Manifest.read(directory).valid
    except (OSError, ValueError):
        return False


def check_survival(verdict: Verdict, raw: Path, before: dict[str, dict[str, str]]) -> None:
    """I1: sealed valid trials are as they were, byte for byte."""
    for name, files in before.items():
        verdict.expect("I1", digests(raw / name) == files, f"{name} changed after it was sealed")


def check_records(verdict: Verdict, raw: Path) -> None:
    """I4, and the seal of I1: each attempt is a sealed record with state and, if it failed, a reason."""
    for directory in attempt_dirs(raw):
        name = f"{directory.parent.name}/{directory.name}"
        verdict.expect("I4", not directory.name.startswith("."), f"{name} is half made")
        try:
            m = Manifest.read(directory)
        except (OSError, ValueError) as error:
            verdict.expect("I4", False, f"{name}: no manifest ({error})")
            continue
        verdict.expect("I4", m.state in (State.COLLECTED, State.FAILED), f"{name} is {m.state} after the end")
        verdict.expect("I4", m.state is not State.FAILED or bool(m.failure), f"{name} failed without a reason")
        on_disk = {k: v for k, v in digests(directory).items() if k != "manifest.json"}
        verdict.expect("I1", on_disk == {f.path: f.sha256 for f in m.files}, f"{name}: files differ from the seal")
        writable = [p for p in [directory, *directory.rglob("*")] if p.stat().st_mode & 0o222]
        verdict.expect("I1", not writable, f"{name} is not read-only")


def check_faults(verdict: Verdict, raw: Path, fault_times_s: Iterable[float]) -> None:
    """I3: an attempt whose run phase met a fault is never valid."""
    for directory in attempt_dirs(raw):
        if not _valid(directory):
            continue
        run = Manifest.read(directory).phase("run")
        met = [t for t in fault_times_s if run.start_s <= t < run.end_s]
        verdict.expect("I3", not met, f"{directory.name} is valid although a fault met its run phase at {met}")


def check_done(verdict: Verdict, raw: Path, sweep: str, trials: Iterable[str], code: int) -> None:
    """I5: the same command ended the sweep; I2 on raw: one valid attempt at most per trial."""
    verdict.expect("I5", code == 0, f"the same command ended with {code}")
    by_trial = ledger.attempts(raw / sweep)
    for trial in trials:
        valid = [a for a in by_trial.get(trial, []) if a.outcome == "valid"]
        verdict.expect("I5", bool(valid), f"{trial} has no valid attempt")
        verdict.expect("I2", len(valid) <= 1, f"{trial} counts {len(valid)} times")


def check_exit(verdict: Verdict, code: int, promised: Iterable[int] = EXIT_CODES) -> None:
    """I8."""
    verdict.expect("I8", code in promised, f"exit code {code}, promised {tuple(promised)}")


def check_unchanged(verdict: Verdict, before: dict[str, str], after: dict[str, str]) -> None:
    """I6: a further run changes nothing."""
    differing = sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k))
    verdict.expect("I6", not differing, f"a further run changed {differing[:5]}")


def check_leftovers(verdict: Verdict, leftovers: Iterable[str]) -> None:
    """I7: processes, limits and temporary files that should be gone."""
    left = list(leftovers)
    verdict.expect("I7", not left, f"left over: {left[:5]}")


def trials(lab, spec) -> dict[str, list[ledger.Attempt]]:
    """The attempts of each trial of a sweep."""
    return ledger.attempts(lab.paths.raw / spec.sweep)
