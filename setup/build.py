#!/usr/bin/env python3
"""Builds what Maven makes, module by module, and only what changed.

Usage: setup/build.py [--stale] [--digests FILE] [MODULE ...]

--stale: only names the modules that would be built. --digests: also writes what the installation of each role depends
on, as deployment wants to know it."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "images"))

import digests
import yaml

ROOT = digests.ROOT
STAMPS = ROOT / "build" / ".stamps"


def load() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "setup/images/images.yml").read_text())


def stale(module: str, spec: dict) -> str | None:
    """The digest to note after building, or None if the module's outputs are those of its sources."""
    digest = digests.of(files=spec["sources"])
    stamp = STAMPS / module.replace("/", "-")
    built = stamp.exists() and stamp.read_text() == digest and all((ROOT / path).exists() for path in spec["outputs"])
    return None if built else digest


def build(module: str, spec: dict, log: Any = None) -> bool:
    """Builds one module if it is stale; returns whether it was. Raises CalledProcessError (Maven has said why)."""
    digest = stale(module, spec)
    if digest is None:
        return False
    command = ["mvn", "-q", "-B", "-DskipTests", "-f", f"{module}/pom.xml", "package"]
    subprocess.run(
        command, cwd=ROOT, check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT if log else None
    )
    missing = [path for path in spec["outputs"] if not (ROOT / path).exists()]
    if missing:
        raise FileNotFoundError(f"{module}: Maven did not make {', '.join(missing)}")
    STAMPS.mkdir(parents=True, exist_ok=True)
    (STAMPS / module.replace("/", "-")).write_text(digest)
    return True


def main() -> int:
    spec = load()
    artefacts = spec["artefacts"]
    parser = argparse.ArgumentParser(prog="setup/build.py")
    parser.add_argument("--digests", type=Path, metavar="FILE")
    parser.add_argument("--stale", action="store_true")
    parser.add_argument("modules", nargs="*", metavar="MODULE")
    given = parser.parse_args()
    modules = given.modules or list(artefacts)
    unknown = [module for module in modules if module not in artefacts]
    if unknown:
        print(f"error: unknown module {unknown[0]!r}; allowed: {', '.join(artefacts)}", file=sys.stderr)
        return 2
    if given.stale:
        print("".join(f"{module}\n" for module in modules if stale(module, artefacts[module])), end="")
        return 0
    for module in modules:
        try:
            if build(module, artefacts[module]):
                print(f"build: {module}")
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    if given.digests:
        digests.note(given.digests, spec["images"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
