"""What a system says of files, roles and data, held against those that there are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.checks import CHECK_NAMES

from ntier_harness.errors import RequestError
from ntier_harness.files import read_yaml
from ntier_harness.systems.definition import GENERATE_NAMES, WORKLOAD_NAME, Definition
from ntier_harness.systems.problems import Key, among

IMAGES = Path("setup", "images", "images.yml")  # of the checkout: what set-up makes images of
OWN_ROLES = ("client", "common", "database", "machine", "monitor", "ndb", "program")
"""Roles that Ntier's playbooks and shared roles include by name; a system's own one of that name would replace them."""


def data(d: Definition, root: Path) -> Iterator[tuple[Key, str]]:
    """`root`: the checkout, whose set-up makes images with the data of one system only."""
    from ntier_harness.systems import makers

    if d.data is None:
        return
    yield from among(("data", "tier"), d.data.tier, d.tier_names, "tier")
    yield from among(("data", "default"), d.data.default, d.data.profiles, "profile")
    if d.data.in_image and (root / IMAGES).exists():
        whose = read_yaml(root / IMAGES)[0]["data_system"]
        if d.name != whose:
            text = f"{IMAGES} makes images with the data of {whose} only; leave it out: roles make or load the data"
            yield ("data", "in_image"), text
    if d.data.told and not d.data.generate:
        yield ("data", "told"), "needs generate: CMD, whose data.json it is taken from"
    for i, word in enumerate(d.data.generate):
        script = word.endswith((".py", ".sh", ".jar")) and not word.startswith(("/", "-")) and "{" not in word
        if script and not (root / word).exists() and not makers(root, [word]):
            yield ("data", "generate", i), f"{root / word} does not exist; the command is run in the project's folder"
        try:
            word.format_map(dict.fromkeys(GENERATE_NAMES, ""))
        except (KeyError, IndexError, ValueError, AttributeError):
            allowed = ", ".join(f"{{{name}}}" for name in GENERATE_NAMES)
            yield ("data", "generate", i), f"{word!r}: in braces are allowed {allowed}; write {{{{ and }}}} for braces"


def images(d: Definition, root: Path) -> Iterator[tuple[Key, str]]:
    """`root`: the checkout, whose set-up makes them; nothing is known of them without it."""
    if not (root / IMAGES).exists():
        return
    made = read_yaml(root / IMAGES)[0]
    known = [*made["images"], *(f"base-{name}" for name in made["bases"])]
    known += [f"{dbms}-{profile}" for dbms, data in made["data"].items() for profile in data["profiles"]]
    for i, tier in enumerate(d.tiers):
        if tier.image is not None:
            yield from among(("tiers", i, "image"), tier.image, known, "image")


def roles(d: Definition, folder: Path, shared: Path) -> Iterator[tuple[Key, str]]:
    if d.deploy == "none":
        yield from _not_deployed(d)
        return
    for i, tier in enumerate(d.tiers):
        if tier.units:
            yield ("tiers", i, "units"), "are for deploy: none; a role says which units it starts"
    named: list[tuple[Key, str]] = []
    for i, tier in enumerate(d.tiers):
        named += [(("tiers", i, "roles", j), role) for j, role in enumerate(tier.roles)]
        by_variant = any(v.tier == tier.name and any(c.roles for c in v.choices.values()) for v in d.variants.values())
        if not tier.roles and not by_variant:
            yield ("tiers", i), "roles: missing; name the Ansible roles of the tier, or of a variant's choices"
    for name, variant in d.variants.items():
        for choice, what in variant.choices.items():
            at: Key = ("variants", name, "choices", choice, "roles")
            named += [((*at, j), role) for j, role in enumerate(what.roles) if what.available]
    for key, role in named:
        if not any((place / role / "tasks").is_dir() for place in (folder / "roles", shared)):
            yield key, f"{role}: no such role in {folder / 'roles'} or {shared}"
    for role in OWN_ROLES:
        if (folder / "roles" / role).exists():
            yield (), f"{folder / 'roles' / role}: would replace Ntier's own role {role}; give it another name"
    used: dict[str, Key] = {}
    for key, role in named:
        used.setdefault(role, key)
    yield from _handlers(used, folder, shared)


def _handlers(used: dict[str, Key], folder: Path, shared: Path) -> Iterator[tuple[Key, str]]:
    """Nodes of all tiers are worked on in one play, in which the last handler of a name is meant by all roles. `used`:
    role -> where it is named."""
    whose: dict[str, str] = {}
    for role in dict.fromkeys([*OWN_ROLES, *used]):
        place = next((p / role for p in (folder / "roles", shared) if (p / role / "tasks").is_dir()), shared / role)
        for file in sorted((place / "handlers").glob("*.yml")):
            names = {name for handler in read_yaml(file)[0] or [] for name in _called(handler)}
            for name in sorted(names):
                if whose.setdefault(name, role) != role and role in used:
                    text = f"{file}: {whose[name]} has a handler {name!r} too; put the unit's name into it"
                    yield used[role], text


def _called(handler: Any) -> set[str]:
    """Names by which a handler is notified; those with a variable are left out, since nobody knows them yet."""
    told = [handler.get(key) or [] for key in ("name", "listen")] if isinstance(handler, dict) else []
    names = {str(name) for part in told for name in (part if isinstance(part, list) else [part])}
    return {name for name in names if "{{" not in name}


def _not_deployed(d: Definition) -> Iterator[tuple[Key, str]]:
    """With `deploy: none` there is nobody who would heed these."""
    why = "with deploy: none nothing is deployed"
    for i, tier in enumerate(d.tiers):
        for key in ("roles", "holds"):
            if getattr(tier, key):
                yield ("tiers", i, key), why
    for name, variant in d.variants.items():
        for choice, what in variant.choices.items():
            if what.roles:
                yield ("variants", name, "choices", choice, "roles"), why
    for name in d.settings:
        yield (
            ("settings", name),
            f"{why}, so nothing would apply the setting; variables of the driver go to load.parameters",
        )
    if d.data:
        yield ("data",), why
    if d.verify.playbook:
        yield ("verify", "playbook"), f"{why}; give requests:"


def files(d: Definition, folder: Path, root: Path) -> Iterator[tuple[Key, str]]:
    driver = d.load.driver
    named: list[tuple[Key, str | None]] = [
        (("rules",), d.rules),
        (("verify", "playbook"), d.verify.playbook),
        (("load", "mixes"), d.load.mixes),
        (("load", "phases_file"), d.load.phases_file),
        (("load", "driver", "plan"), driver.plan),
        *((("load", "driver", "files", i), file) for i, file in enumerate(driver.files)),
    ]
    for key, name in named:
        if name and not (folder / name).exists():
            yield key, f"{folder / name} does not exist"
    yield from _command(d, folder)
    from ntier_harness.drivers.of_system import twice
    from ntier_harness.systems import System

    if name := twice(System(d, folder), root / "workloads"):
        yield ("load", "driver"), f"two files have the name {name}; on a client all are in one folder"
    mixes = sorted((folder / d.load.mixes).glob("*.csv")) if d.load.mixes else []
    if d.load.mixes and (folder / d.load.mixes).is_dir():
        yield from among(("load", "default_workload"), d.load.default_workload, [f.stem for f in mixes], "mix")
    for file in (f for f in mixes if not re.fullmatch(WORKLOAD_NAME, f.stem)):
        text = f"{file}: a mix is called by the name of its file, which may have a-z, 0-9, _ and -"
        yield ("load", "mixes"), text


def contents(d: Definition, folder: Path) -> Iterator[tuple[Key, str]]:
    """Files that are read when a request needs them, and names of checks, which only the analysis knows."""
    from ntier_harness import catalog
    from ntier_harness.systems import System

    load, system = d.load, System(d, folder)
    reads: list[tuple[Key, Callable[[], object]]] = []
    if d.rules and (folder / d.rules).is_file():
        reads.append((("rules",), lambda: system.rules))
    if load.phases_file and (folder / load.phases_file).is_file():
        reads.append((("load", "phases_file"), lambda: catalog.parse_phases(catalog.default_phases(system), system)))
    if load.mixes and (folder / load.mixes).is_dir():
        names = catalog.mix_names(system)
        reads += [(("load", "mixes"), partial(catalog.read_mix, name, system)) for name in names]
    for key, read_it in reads:
        try:
            read_it()
        except RequestError as error:
            yield key, str(error)
    for name in d.checks.off:
        yield from among(("checks", "off", name), name, CHECK_NAMES, "check")


def _command(d: Definition, folder: Path) -> Iterator[tuple[Key, str]]:
    """Words of the driver's command: a word with a slash is a file of the system, one without a program of the
    client."""
    at: Key = ("load", "driver", "command")
    listed = {Path(file).name: file for file in d.load.driver.files}
    for i, word in enumerate(d.load.driver.command):
        if word in listed:
            own = listed[word] if "/" in listed[word] else f"./{listed[word]}"
            yield (*at, i), f"{word!r} is a program of the client; the system's own file is called {own}"
        elif "/" in word and not word.startswith(("/", "-")) and "://" not in word and not (folder / word).is_file():
            yield (*at, i), f"{folder / word} is no file; a word with / names a file of the system's folder"
