"""Digests of what roles install: a node on which another installation was made gets it anew."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from ntier_analysis.contracts.files import read_json

from ntier_harness.paths import Paths
from ntier_harness.spec import Spec


def of_own_roles(paths: Paths, spec: Spec) -> dict[str, str]:
    """Of the roles of the system's own; empty if it has none. Any change of theirs counts."""
    roles = {role for tier in spec.topology.counts for role in spec.roles(tier)}
    own = {role: folder for role in sorted(roles) if (folder := spec.system.role(role))}
    program = paths.root / "ansible" / "roles" / "program"
    return {role: hash_of(spec.system.folder, [folder], hash_of(paths.root, [program]).encode())
            for role, folder in own.items()}  # fmt: skip


def of_roles(paths: Paths, spec: Spec) -> dict[str, str]:
    """Of all roles, the shared ones as set-up noted them."""
    known = read_json(paths.install_digests) if paths.install_digests.exists() else {}
    return known.get("ntier_install_digests", {}) | of_own_roles(paths, spec)


def hash_of(root: Path, places: Iterable[Path], begun: bytes = b"") -> str:
    """Digest of the names, relative to `root`, and the contents of all files in these places, and of which can be run;
    documentation excepted."""
    h = hashlib.sha256(begun)
    files = {p for place in places for p in (place, *place.rglob("*")) if p.is_file()}
    for path in sorted(p for p in files if "__pycache__" not in p.parts and p.suffix != ".md"):
        h.update(Path(os.path.relpath(path, root)).as_posix().encode())  # a folder of the checkout may be a link
        h.update(b"x" if path.stat().st_mode & stat.S_IXUSR else b"")
        h.update(path.read_bytes())
    return h.hexdigest()
