"""Measured sweeps inside the package: a store and the manifests beside it (README.md says where they come from)."""

from __future__ import annotations

import zipfile
from importlib.resources import as_file, files
from pathlib import Path

from ntier_analysis.contracts.files import check_folder

SWEEP = "1-1-1-1M.browse_only.shardingsphere"
"""The sweep whose report the demonstration writes: MySQL over the paper's 13 loads."""


def unpack(folder: Path) -> Path:
    """Writes `store/`, `raw/` (manifests only) and `README.md` into `folder`; returns the store. Files of these
    names are replaced."""
    package = files("ntier_analysis.demo")
    check_folder(folder, "--out")
    folder.mkdir(parents=True, exist_ok=True)
    with as_file(package / "data.zip") as path, zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    (folder / "README.md").write_text((package / "README.md").read_text(encoding="utf-8"), encoding="utf-8")
    return folder / "store"
