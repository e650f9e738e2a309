"""Writes roles/*/README.md from meta/argument_specs.yml and defaults/main.yml: `python ansible/readme.py [--check]`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROLES = Path(__file__).resolve().parent / "roles"
HEAD = "<!-- Written by ansible/readme.py from meta/argument_specs.yml; change that file. -->\n"


def cell(value: Any) -> str:
    text = value if isinstance(value, str) else yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n")
    return " ".join(text.split()).replace("|", "\\|")


def row(name: str, option: dict[str, Any], defaults: dict[str, Any]) -> str:
    if option.get("required"):
        default = "required"
    else:
        default = defaults.get(name, option.get("default"))
        default = "-" if default is None else f"`{cell(default)}`"
    kind = f"{option['type']} of {option['elements']}" if "elements" in option else option["type"]
    if "choices" in option:
        kind = ", ".join(f"`{choice}`" for choice in option["choices"])
    return f"| `{name}` | {kind} | {default} | {cell(option['description'])} |\n"


def flat(options: dict[str, Any], known: dict[str, Any], before: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Each option, and after it those of its parts as `option.part`, unless they are among the `known` ones."""
    for name, option in options.items():
        yield before + name, option
        if option != known.get(name):
            yield from flat(option.get("options", {}), {}, f"{before}{name}.")


def readme(role: Path) -> str:
    specs = yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]
    file = role / "defaults/main.yml"
    defaults = (yaml.safe_load(file.read_text()) or {}) if file.exists() else {}
    text = f"{HEAD}# ntier.bench.{role.name}\n\n{specs['main']['short_description']}.\n"
    for sentence in specs["main"].get("description", []):
        text += f"{sentence}\n"
    known: dict[str, Any] = {}
    for entry, spec in specs.items():
        options = spec.get("options", {})
        if entry != "main":
            text += f"\n## tasks_from: {entry}\n\n{spec['short_description']}.\n"
        if options:
            text += "\n| variable | type | default | meaning |\n|---|---|---|---|\n"
            text += "".join(row(name, option, defaults) for name, option in flat(options, known))
            known |= options
    return text


def main(arguments: list[str]) -> int:
    stale = []
    for role in sorted(path for path in ROLES.iterdir() if path.is_dir()):
        file, text = role / "README.md", readme(role)
        if not file.exists() or file.read_text() != text:
            stale.append(f"roles/{role.name}/README.md")
            if "--check" not in arguments:
                file.write_text(text)
    if "--check" in arguments and stale:
        print(f"not current: {', '.join(stale)}; run  python ansible/readme.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
