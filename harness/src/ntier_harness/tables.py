"""Tables of a data profile, generated on this machine, for roles that load them at deployment."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.files import read_json

from ntier_harness.errors import WorkError
from ntier_harness.installed import hash_of
from ntier_harness.paths import Paths
from ntier_harness.runner import Runner
from ntier_harness.spec import Spec
from ntier_harness.systems import makers, sources

LIMIT_S = 1800.0
MADE_FROM = "made_from"
"""File beside the tables: digest of the files that made them, and of the schema that they are loaded into."""


def generated(runner: Runner, paths: Paths, spec: Spec) -> Path | None:
    """Folder of the tables; kept, since each new node that holds data loads them again, until an upgrade makes them
    otherwise. None: roles make them. Raises WorkError."""
    data = spec.system.definition.data
    if data is None or not data.generate:
        return None
    folder = paths.data / spec.data_folder
    made_from = origin(paths.root, data.generate)
    if not (folder / "data.json").exists() or _noted(folder) != made_from:
        new = folder.with_name(f".{folder.name}.new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        facts = {"profile": spec.data_profile, "seed": data.seed, "now_s": int(runner.now()), "out": new}
        runner.run([part.format(**facts) for part in data.generate], cwd=paths.root, timeout=LIMIT_S)
        if not (new / "data.json").exists():
            said = f"the command made no {new / 'data.json'}, which describes the data"
            raise WorkError(f"{spec.system.folder / 'system.yaml'}: data.generate: {said}")
        (new / MADE_FROM).write_text(made_from)
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)
    return folder


def origin(root: Path, command: list[str]) -> str:
    """What tables that the command makes are noted to be made from."""
    return hash_of(root, sources(root, command))


def _noted(folder: Path) -> str:
    """Empty for tables of a version that did not note it."""
    file = folder / MADE_FROM
    return file.read_text() if file.exists() else ""


def digest(folder: Path) -> str:
    """Of what was generated and what it was made from; equal digests mean the same tables, under the same schema."""
    return hashlib.sha256((folder / "data.json").read_bytes() + (folder / MADE_FROM).read_bytes()).hexdigest()


def of_image(paths: Paths, spec: Spec) -> dict[str, Any]:
    """Variable for roles that must know when an image with other data was made: its fingerprint; none if no image has
    the data."""
    file = paths.state / "images.json"
    if spec.data_tier is None or not spec.data_in_image or paths.target != "local" or not file.exists():
        return {}
    return {"ntier_data_image": read_json(file).get(spec.image(spec.data_tier), "")}


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
