"""P1: trials of one sweep are compared with each other, so all of them must have measured the same system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ntier_analysis.contracts import Manifest, Outcome
from ntier_analysis.contracts.system import System
from ntier_analysis.contracts.versions import differing
from ntier_analysis.errors import DataError
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.registry import Finding, check, exact

SAME = (
    "topology",
    "target",
    "nodes",
    "mix",
    "middleware",
    "data_profile",
    "scale",
    "think_time_s",
    "soft_resources",
)
SAME_HOST = ("cores", "memory_bytes", "kernel", "os")


def _facts(manifest: Manifest) -> dict[str, Any]:
    whole = manifest.model_dump(mode="json")
    host = whole["host"] or {}
    return {name: whole[name] for name in SAME} | {f"host.{name}": host.get(name) for name in SAME_HOST}


def _fixed(system: System) -> dict[str, Any]:
    """What stays the same within a sweep: all but the value of its factor."""
    return system.model_dump(mode="json", exclude={"factor": {"value"}})


def _differences(ours: dict[str, Any], theirs: dict[str, Any], prefix: str = "") -> list[str]:
    differences = []
    for name in sorted(ours.keys() | theirs.keys()):
        mine, other = ours.get(name), theirs.get(name)
        if isinstance(mine, dict) and isinstance(other, dict):
            differences += _differences(mine, other, f"{prefix}{name}.")
        elif mine != other:
            differences.append(
                f"{prefix}{name}" if isinstance(mine, list) else f"{prefix}{name}: {other} then, {mine} now"
            )
    return differences


def _started_since(trial: RawTrial, first: RawTrial) -> list[str]:
    """Nodes whose kernel was started since: restarted on purpose, or another machine of the same name."""
    return [
        node
        for node in trial.nodes
        if trial.facts(node, "before").get("boot_id") != first.facts(node, "before").get("boot_id")
    ]


def _first(folder: Path) -> tuple[Path, Manifest] | None:
    """The oldest valid trial of the sweep."""
    earlier = []
    for path in folder.parent.glob("*/manifest.json"):
        try:
            manifest = Manifest.read(path.parent)
        except DataError:
            continue  # a trial under way, or one that its own checks report
        if manifest.valid and path.parent != folder and manifest.phase("run").start_s is not None:
            earlier.append((path.parent, manifest))
    return min(earlier, key=lambda m: m[1].phase("run").start_s or 0.0, default=None)


@check("P1", "Provenance: what differs from the first valid trial of the sweep", "provenance")
def same_system(trial: RawTrial) -> Finding:
    """Versions, nodes, soft resources and host must be the same. If only the project's commit differs, that is reported
    but does not fail: most commits do not touch what is measured, and what is measured has versions of its own."""
    earlier, own = _first(trial.folder), trial.manifest
    if earlier is None:
        return exact(0.0, 0.0, "settings", "the first one", 0)
    folder, first = earlier
    different = _differences(_facts(own), _facts(first))
    if own.system and first.system:
        different += _differences(_fixed(own.system), _fixed(first.system), "system.")
        factor = own.system.factor.name
        different = [text for text in different if text.partition(":")[0].rpartition(".")[2] != factor]
    different += [f"{k}: {then} then, {now} now" for k, then, now in differing(first.versions, own.versions)]
    if different:
        text = f"{'; '.join(different[:5])} (compared with {first.trial}): start another sweep"
        return exact(float(len(different)), 0.0, "settings", text, 1)
    since = _started_since(trial, RawTrial(folder))
    if since:
        text = (
            f"{', '.join(since)} started since {first.trial}: caches were lost, or it is another machine of that name"
        )
        return Finding(Outcome.UNDECIDABLE, float(len(since)), 0.0, "nodes", len(since), None, text, required=False)
    if own.git_commit != first.git_commit or not (own.git_clean and first.git_clean):
        text = f"same system; the project's files may differ ({first.git_commit} then, {own.git_commit} now)"
        return Finding(Outcome.UNDECIDABLE, 0.0, 0.0, "settings", 1, None, text, required=False)
    return exact(0.0, 0.0, "settings", f"same system as in {first.trial}", 1)
