"""Systems under test as data: `systems/<name>/system.yaml`. Nothing else of the harness knows a system by name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ntier_harness.errors import unknown
from ntier_harness.files import read_text, read_yaml
from ntier_harness.systems.definition import Definition
from ntier_harness.systems.on_disk import IMAGES
from ntier_harness.systems.reading import FILE, read
from ntier_harness.systems.rules import Rules
from ntier_harness.systems.rules import load as load_rules

__all__ = ["Definition", "System", "find", "names"]


@dataclass(frozen=True)
class System:
    """A definition and where it is."""

    definition: Definition
    folder: Path
    is_default: bool = False
    """Whether requests that name no system mean this one."""

    @property
    def name(self) -> str:
        return self.definition.name

    @cached_property
    def rules(self) -> Rules:
        name = self.definition.rules
        return load_rules(self.path(name) if name else None)

    @cached_property
    def built_roles(self) -> tuple[str, ...]:
        """Roles that set-up makes images of; none where there is no set-up."""
        return tuple(bases(self.folder.parents[1]))

    def path(self, name: str) -> Path:
        """A file that the definition names. A link stays one, so that errors name it and not what it leads to."""
        path = self.folder / name
        return path.parent.resolve() / path.name

    def role(self, name: str) -> Path | None:
        """Folder of one of its own Ansible roles; None if it has no role of that name, and the shared one is meant."""
        folder = self.folder / "roles" / name
        return folder if folder.is_dir() else None


def names(root: Path) -> list[str]:
    """Systems of the checkout, in order of their names: the folders of `systems/` with a `system.yaml`."""
    return [name for name in _folders(root) if os.path.lexists(root / "systems" / name / FILE)]


def _folders(root: Path) -> list[str]:
    folder = root / "systems"
    return sorted(p.name for p in folder.iterdir() if p.is_dir() and p.name[0] not in "._") if folder.is_dir() else []


def default(root: Path) -> str:
    """The system of a request that names none: what `systems/default` says."""
    return read_text(root / "systems" / "default").strip()


def find(root: Path, name: str) -> System:
    """Raises RequestError if there is no such system, or if something is wrong with it."""
    if name not in _folders(root):
        raise unknown("system", name, names(root))
    folder = root / "systems" / name
    return System(read(folder, root / "ansible" / "roles"), folder, name == default(root))


def bases(root: Path) -> dict[str, str]:
    """Role -> the distribution that its image is made from, which has its packages; empty where there is no set-up."""
    file = root / IMAGES
    return {role: image["base"] for role, image in read_yaml(file)[0]["images"].items()} if file.exists() else {}


def makers(root: Path, command: list[str]) -> list[str]:
    """Modules of set-up's that make a file which the command uses."""
    file = root / IMAGES
    artefacts = read_yaml(file)[0]["artefacts"] if file.exists() else {}
    return [module for module, made in artefacts.items() if set(made["outputs"]) & set(command)]


def sources(root: Path, command: list[str]) -> list[Path]:
    """What data depend on that the command generates: its files, and for a program that set-up makes, the files that
    images with these data and roles that load them depend on."""
    file = root / IMAGES
    known = read_yaml(file)[0] if file.exists() else {}
    built = {path for made in known.get("artefacts", {}).values() for path in made["outputs"]}
    made_by = set(makers(root, command))
    holders = [*known.get("data", {}).values(), *known.get("loaded_by", {}).values()]
    of_holders = [
        [*holder["sources"], *filter(None, [holder.get("load")])]
        for holder in holders
        if made_by & set(holder["artefacts"])
    ]
    named = [part for part in command if part not in built and (root / part).is_file()]
    return [root / path for path in dict.fromkeys([*named, *(path for paths in of_holders for path in paths)])]
