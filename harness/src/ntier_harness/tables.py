"""Tables of a data profile, generated on this machine, for roles that load them at deployment."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path
from typing import Any

from ntier_harness.errors import WorkError
from ntier_harness.paths import Paths
from ntier_harness.runner import Runner
from ntier_harness.spec import Spec
from ntier_harness.systems import makers

LIMIT_S = 1800.0


def generated(runner: Runner, paths: Paths, spec: Spec) -> Path | None:
    """Folder of the tables; kept, since each new node that holds data loads them again. None: roles make them. Raises
    WorkError."""
    data = spec.system.definition.data
    if data is None or not data.generate:
        return None
    folder = paths.data / spec.data_folder
    if not (folder / "data.json").exists():
        new = folder.with_name(f".{folder.name}.new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        facts = {"profile": spec.data_profile, "seed": data.seed, "now_s": int(runner.now()), "out": new}
        runner.run([part.format(**facts) for part in data.generate], cwd=paths.root, timeout=LIMIT_S)
        if not (new / "data.json").exists():
            said = f"the command made no {new / 'data.json'}, which describes the data"
            raise WorkError(f"{spec.system.folder / 'system.yaml'}: data.generate: {said}")
        new.rename(folder)
    return folder


def digest(folder: Path) -> str:
    """Of what was generated; equal digests mean the same tables."""
    return hashlib.sha256((folder / "data.json").read_bytes()).hexdigest()


def for_roles(runner: Runner, paths: Paths, spec: Spec) -> dict[str, Any]:
    """Variables with which roles load the tables at deployment; none if an image has them. Makes the tables, and the
    program that makes them if it is one of the project's, if they are not there."""
    data = spec.system.definition.data
    if data is None or not spec.loads_data:
        return {}
    if modules := makers(paths.root, data.generate):
        runner.run([sys.executable, str(paths.root / "setup" / "build.py"), *modules], timeout=LIMIT_S)
    folder = generated(runner, paths, spec)
    return {} if folder is None else {"ntier_data_source": str(folder), "ntier_data_digest": digest(folder)}
