"""What an image or an artefact is made of, as one hash: it is made again only if that changes."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IGNORED = {"target", "campaigns", "__pycache__", ".pytest_cache", "test", "tests", "bench", "README.md"}
# The parts of a role that its tasks/install.yml may use; configuration is done at deployment, not in images.
ROLE_PARTS = ("tasks/install.yml", "files", "vars", "defaults")


def of(*parts: object, files: Iterable[str | Path] = ()) -> str:
    """Hash of the parts' text and of the files' (or folders') names and bytes; what does not exist counts as absent."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{part}\n".encode())
    for path in files:
        for file in walk(ROOT / path):
            name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file  # the same in every checkout
            digest.update(f"{name} {file.stat().st_size} {file.stat().st_mode & 0o100:o}\n".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


def walk(path: Path) -> list[Path]:
    """The files below `path`, in a fixed order, without what builds and tests leave there."""
    if path.is_file():
        return [path]
    files = (f for f in path.rglob("*") if f.is_file() and not IGNORED & set(f.relative_to(path).parts))
    return sorted(files)


def of_installs(images: dict[str, dict]) -> dict[str, str]:
    """Role -> what its installation depends on (`images` as in images.yml): deployment compares it with the stamp."""
    sources = {"common": [], "monitor": []} | {name: image["sources"] for name, image in images.items()}
    state = os.environ.get("NTIER_STATE") or "/var/lib/ntier"
    given = {
        role: [os.path.expandvars(file.replace("$NTIER_STATE", state)) for file in files]
        for role, files in sources.items()
    }
    return {role: of_role(role, [file for file in files if file]) for role, files in given.items()}


def note(file: Path, images: dict[str, dict]) -> None:
    """The same as variables for Ansible."""
    write_if_changed(file, {"ntier_install_digests": of_installs(images)})


def write_if_changed(file: Path, content: dict) -> None:
    text = json.dumps(content, indent=1, sort_keys=True)
    if not file.exists() or file.read_text() != text:
        file.write_text(text)


def of_role(role: str, sources: Iterable[str]) -> str:
    """What the role's install tasks depend on; the role `program` has those that all share."""
    parts = [f"ansible/roles/{name}/{part}" for name in ("program", role) for part in ROLE_PARTS]
    return of("role", role, files=[*parts, *sources])
