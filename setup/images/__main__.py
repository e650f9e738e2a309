"""Builds the images that are missing or stale. Usage: python setup/images [--help]"""

from __future__ import annotations

import argparse
import fcntl
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import base
import build as artefacts
import digests
import golden
import incus

PARALLEL = 3  # package installation waits for the network and the disk as much as for a core
DEFAULT_PROFILE = "small"
BUILDERS = "198.18.200"  # network of the build nodes' addresses


@dataclass
class Step:
    """One image or artefact: what it is made of, what must be there before, and how it is made."""

    name: str
    digest: str
    make: Callable[[Any], object]
    """Gets the open log file; says what versions are in an image."""
    needs: list[str] = field(default_factory=list)
    is_image: bool = True


def plan(spec: dict, profiles: dict[str, list[str]], *, pinned: bool = False) -> dict[str, Step]:
    """All steps by name, each after those it needs. `profiles`: DBMS -> data profiles wanted. `pinned`: packages come
    from snapshots of Debian's archive."""
    role_digests = digests.of_installs(spec["images"])
    tool = digests.of(files=["setup/images/seal.sh", "setup/images/load.yml", "setup/images/install.yml"])
    steps: dict[str, Step] = {}
    options = [*spec["base_options"], f"--include={','.join(spec['base_packages'])}"]
    for name, definition in spec["bases"].items():
        steps[f"base-{name}"] = base_step(name, definition, pinned, options)
    for name, definition in spec["artefacts"].items():
        steps[name] = Step(name, "", partial(artefacts.build, name, definition), is_image=False)

    def add(name: str, below: str, roles: Iterable[str], tier: str, needed: list[str]) -> None:
        """The image `below` with these roles; the node that it is built on is of the last one."""
        parts = {role: role_digests[role] for role in roles}
        digest = digests.of(steps[below].digest, tool, sorted(parts.items()))
        node = golden.BuildNode(name, address(len(steps)), role=[*parts][-1], tier=tier)
        steps[name] = Step(name, digest, partial(golden.build, node, below, digest, parts), [below, *needed])

    for name in spec["bases"]:
        add(f"node-{name}", f"base-{name}", golden.OF_EACH_NODE, "node", [])
    for name, image in spec["images"].items():
        add(name, f"node-{image['base']}", [name], image["tier"], image["artefacts"])
    data = golden.data_of(spec["data_system"])
    made = {"generate": data["generate"], "seed": data["seed"]}
    for dbms, profile in ((d, p) for d in spec["data"] for p in profiles.get(d, [])):
        definition, name = spec["data"][dbms], f"{dbms}-{profile}"
        digest = digests.of(steps[dbms].digest, tool, profile, made, files=[definition["load"], *definition["sources"]])
        node = golden.BuildNode(name, address(len(steps)), role=dbms, tier="db")
        make = partial(golden.build_data, node, dbms, made, profile, digest)
        steps[name] = Step(name, digest, make, [dbms, *definition["artefacts"]])
    return steps


def address(number: int) -> str:
    return f"{BUILDERS}.{number + 1}"


def base_step(name: str, definition: dict, pinned: bool, options: list[str]) -> Step:
    inputs = ["setup/images/rootfs", "setup/images/customize.sh", base.HOST_CERTIFICATES]
    parts = [
        name,
        definition,
        options,
        base.sources(definition, pinned),
        base.apt_options(definition, pinned),
        base.TEMPLATES,
    ]
    digest = digests.of(*parts, files=inputs)
    return Step(f"base-{name}", digest, partial(base.build, name, definition, pinned, options, digest))


def with_needs(steps: dict[str, Step], wanted: list[str]) -> list[str]:
    """`wanted` and all they need, in the order of `steps`."""
    todo, seen = list(wanted), set()
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += steps[name].needs
    return [name for name in steps if name in seen]


def stale(steps: dict[str, Step], wanted: list[str], rebuild: bool) -> list[str]:
    """The steps to make: wanted images that are absent or of another digest, and the artefacts those need."""
    made = {alias: image["properties"].get(incus.DIGEST) for alias, image in incus.images().items()}
    needed = [steps[name] for name in with_needs(steps, wanted)]
    images = [s for s in needed if s.is_image and (rebuild or made.get(s.name) != s.digest)]
    parts = {need for s in images for need in s.needs if not steps[need].is_image}
    return [name for name in steps if name in parts or steps[name] in images]


class Screen:
    """Plain lines with the seconds since the start."""

    def __init__(self) -> None:
        self.begin = time.monotonic()
        self.lock = threading.Lock()

    def say(self, text: str) -> None:
        with self.lock:
            print(f"setup: {time.monotonic() - self.begin:4.0f} s  {text}", flush=True)


def make_all(steps: dict[str, Step], names: list[str], screen: Screen) -> list[str]:
    """Makes the named steps, several at a time; returns the names that failed (with all that needed them)."""
    futures: dict[str, Future] = {}

    at_work = threading.Semaphore(PARALLEL)

    def work(step: Step) -> None:
        for need in step.needs:
            if need in futures:
                futures[need].result()
        with at_work:
            if interrupted.is_set():
                raise InterruptedError(step.name)
            make_one(step, screen)

    interrupted = threading.Event()
    with ThreadPoolExecutor(len(names)) as pool:  # in the order of the plan: what a step needs is submitted before it
        for name in names:
            futures[name] = pool.submit(work, steps[name])
        try:
            wait(futures.values())
        except KeyboardInterrupt:  # the programs that run got it too, and end; nothing else begins
            interrupted.set()
            screen.say("interrupted; build nodes are removed")
            raise
    return [name for name, future in futures.items() if future.exception()]


def make_one(step: Step, screen: Screen) -> None:
    log = golden.STATE / "logs" / f"setup-{step.name.replace('/', '-')}.log"
    begin = time.monotonic()
    screen.say(f"{step.name} ...")
    try:
        with log.open("w") as file:
            held = step.make(file)
    except Exception as error:
        tail = "\n".join(f"    {line}" for line in told(log.read_text(errors="replace")))
        screen.say(f"{step.name}: failed: {short(error)}\n{tail}\n  its log: {log}")
        raise
    screen.say(f"{step.name}: done in {time.monotonic() - begin:.0f} s" + (f" ({held})" if held else ""))


def told(log: str) -> list[str]:
    """What a log says of a failure: Ansible's own errors if there are any (other lines follow them), with what a
    program that failed printed; else its end."""
    errors = re.findall(r"^\[ERROR\]: (.+)$", log, re.M)
    results = [json.loads(text) for text in re.findall(r"^fatal: .*? => (\{.*\})$", log, re.M)]
    said = [r.get("stderr") or r.get("module_stderr") or (r.get("stdout") if "rc" in r else "") or "" for r in results]
    return errors + [line for text in said for line in text.splitlines()[-5:]] or log.splitlines()[-15:]


def short(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return f"{Path(error.cmd[0]).name} ended with {error.returncode}"
    return str(error)


def origin(bases: dict[str, dict], pinned: bool) -> str:
    if pinned:
        days = ", ".join(f"{name} of {definition['snapshot'][:8]}" for name, definition in bases.items())
        return f"{base.SNAPSHOT}, {days}"
    return (
        "as this machine's mirror has them now (the snapshots of Debian's archive are not reached, or a mirror was "
        "named): another machine may get other versions; each image and each trial says which"
    )


def note(spec: dict) -> None:
    """What other parts read: fingerprint of each image (Terraform), digest of each role (deployment)."""
    fingerprints = {alias: image["fingerprint"] for alias, image in incus.images().items()}
    digests.write_if_changed(golden.STATE / "images.json", fingerprints)
    digests.note(golden.STATE / "local/install_digests.json", spec["images"])


def arguments(spec: dict) -> argparse.Namespace:
    roles = [*(f"{kind}-{name}" for kind in ("base", "node") for name in spec["bases"]), *spec["images"]]
    loaded = {
        f"{dbms}-{profile}": (dbms, profile) for dbms, entry in spec["data"].items() for profile in entry["profiles"]
    }
    allowed = ", ".join([*roles, *loaded])
    parser = argparse.ArgumentParser(prog="setup/setup.sh", description="Builds the images that are missing or stale.")
    parser.add_argument("--images", help=f"comma-separated; default: all, with data as --data says: {allowed}")
    parser.add_argument(
        "--data", default=DEFAULT_PROFILE, help="comma-separated: with data of these profiles (default: %(default)s)"
    )
    parser.add_argument(
        "--topo", default="", metavar="W/A/C/D+DBMS", help="only the DBMS of this topology; default: all"
    )
    middlewares = [name for name, entry in spec["images"].items() if entry["tier"] == "middleware"]
    parser.add_argument(
        "--middleware",
        default=spec["default_middleware"],
        metavar="NAME,...",
        help=f"only these middlewares: {', '.join(middlewares)} (default: %(default)s)",
    )
    parser.add_argument("--rebuild", action="store_true", help="also those that are up to date (newer packages)")
    parser.add_argument("--check", action="store_true", help="only say what would be built; exit code 1 if anything")
    given = parser.parse_args()
    asked = given.data.split(",")
    usual = [name for name in roles if not spec["images"].get(name, {}).get("asked")]
    default = [*usual, *(name for name, (_, profile) in loaded.items() if profile in asked)]
    wanted = [dbms for dbms, letter in spec["letters"].items() if given.topo.removesuffix("L").endswith(letter)]
    if given.topo and not wanted:
        parser.error(
            f"--topo: {given.topo!r} ends in no letter of a DBMS; allowed: {', '.join(spec['letters'].values())}"
        )
    others = [dbms for dbms in spec["letters"] if wanted and dbms not in wanted]
    chosen = given.middleware.split(",")
    others += [name for name in middlewares if name not in chosen]
    default = [name for name in default if name.partition("-")[0] not in others]
    given.names = given.images.split(",") if given.images else default
    for option, names, known in (
        ("--images", given.names, [*roles, *loaded]),
        ("--middleware", chosen, middlewares),
        ("--data", asked, [profile for _, profile in loaded.values()]),
    ):
        unknown = [name for name in names if name not in known]
        if unknown:
            parser.error(f"{option}: unknown {unknown[0]!r}; allowed: {', '.join(known)}")
    given.profiles = {
        dbms: [loaded[n][1] for n in given.names if n in loaded and loaded[n][0] == dbms] for dbms in spec["data"]
    }
    return given


def main() -> int:
    spec = artefacts.load()
    given = arguments(spec)
    base.keep_proxies(golden.STATE, ask=given.rebuild)
    pinned = base.is_pinned(golden.STATE, spec["bases"], ask=given.rebuild)
    steps = plan(spec, given.profiles, pinned=pinned)
    names = stale(steps, given.names, given.rebuild)
    if given.check:
        print("\n".join(name for name in names if steps[name].is_image))
        return 1 if names else 0
    failed: list[str] = []
    if names:
        with (golden.STATE / "setup.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # a second set-up waits, then finds everything done
            if names := stale(steps, given.names, given.rebuild):
                base.remove_leftovers()
                incus.delete_nameless_images()
                screen = Screen()
                screen.say(f"images to build: {', '.join(name for name in names if steps[name].is_image)}")
                screen.say(f"packages: {origin(spec['bases'], pinned)}")
                failed = make_all(steps, names, screen)
    note(spec)
    if failed:
        print(f"error: not built: {', '.join(failed)} (logs: {golden.STATE}/logs/setup-*.log)", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except incus.IncusError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
