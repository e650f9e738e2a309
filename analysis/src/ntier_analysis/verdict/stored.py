"""The whole of a verdict as one JSON text, and by which rules it was made."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import orjson

from ntier_analysis.places import as_given
from ntier_analysis.verdict.data import SweepVerdict

_PACKAGE = Path(__file__).parents[1]
_NO_RULES = {
    "verdict": {"store.py", "stored.py", "search.py", "replicas.py", "settings.py"},
    "statistics": {"balance.py", "groups.py", "ratios.py", "scaling.py"},
}
"""Modules that no stored verdict depends on: they read, plan, compare or predict. What other sweeps of the store say
(replicas, settings) is added when a verdict is read."""
_CHECKS = ("lines.py", "loads.py", "registry.py", "sweep.py")
"""Modules of `validity` that decide the checks of a sweep, and by them whether it was cold."""


def rule_files() -> list[Path]:
    """The source files that decide a verdict, in order of their folders and names."""
    rules = [
        path
        for folder, others in _NO_RULES.items()
        for path in sorted((_PACKAGE / folder).glob("*.py"))
        if path.name not in others
    ]
    return [*rules, *(_PACKAGE / "validity" / name for name in _CHECKS)]


@cache
def analysis_version() -> str:
    """`0.1.0+1a2b3c4d`: the version of the package and a digest of the rules' source, so that no rule
    can change without it."""
    digest = hashlib.sha256()
    for path in rule_files():
        digest.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n"))
    try:
        package = version("ntier-analysis")
    except PackageNotFoundError:  # run from a source tree that is not installed
        package = "0"
    return f"{package}+{digest.hexdigest()[:8]}"


def made_elsewhere(judged: SweepVerdict, store: Path) -> list[str]:
    """A sentence if other rules than those of this program made the verdict."""
    if judged.analysis_version in ("", analysis_version()):
        return []
    return [
        f"judged by the rules of {judged.analysis_version}, this is {analysis_version()}: "
        f"`ntier-analysis judge {as_given(store)} {judged.sweep}` judges again"
    ]


def to_text(judged: SweepVerdict) -> str:
    """All but the times of single interactions, which the table `interactions` holds."""
    light = [(replace(load, done_s=None, spans=None), verdict) for load, verdict in judged.trials]
    found = _converter().unstructure(replace(judged, trials=light))
    return orjson.dumps(found, option=orjson.OPT_SERIALIZE_NUMPY).decode()


def from_text(text: str) -> SweepVerdict | None:
    """None for a text that another version of the program wrote in a form that this one cannot read."""
    from cattrs import BaseValidationError

    try:
        return _converter().structure(orjson.loads(text), SweepVerdict)
    except (orjson.JSONDecodeError, BaseValidationError):
        return None


@cache
def _converter():
    """JSON has no NaN and no infinity, and orjson writes null for them: they are written as words. Of an empty array
    the shape is kept."""
    from cattrs import Converter

    converter = Converter()
    converter.register_unstructure_hook(float, lambda v: float(v) if np.isfinite(v) else str(float(v)))
    converter.register_unstructure_hook(bool, bool)
    converter.register_unstructure_hook(int, int)
    converter.register_unstructure_hook(np.ndarray, _listed)
    converter.register_structure_hook(np.ndarray, lambda v, _: _array(v))
    return converter


def _listed(values: np.ndarray) -> list | dict:
    if not values.size:
        return {"shape": list(values.shape)}
    return (values if np.isfinite(values).all() else values.astype(str)).tolist()


def _array(values: list | dict) -> np.ndarray:
    return np.empty(values["shape"]) if isinstance(values, dict) else np.asarray(values, dtype=float)
