"""A system that runs already (`deploy: none`): brings the programs that measure and drive it, and removes them again.

All of it is in two folders of a machine: HOME has the programs, from `up` to `down`; what they write is in
`drivers.REMOTE` until it is fetched. Packages, accounts, units, the packet filter and the services stay as they are."""

from __future__ import annotations

import io
import json
import shlex
import sys
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.nodes import Node

from ntier_harness.drivers import REMOTE, of_system
from ntier_harness.errors import WorkError
from ntier_harness.lab import Lab
from ntier_harness.paths import Paths
from ntier_harness.spec import CLIENT, Spec

HOME = "/opt/ntier"
OWNER_FILE = f"{HOME}/owner"
"""Which deployment's the folder is."""
COPY_S = 300
PROCSTAT = f'#!/bin/sh\nexec /usr/bin/python3 -I {HOME}/lib/sampler.py --machine "$1"\n'
ASK = """
import json, re, sys, urllib.error, urllib.request
ask = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
for wanted in json.load(sys.stdin):
    try:
        with ask(wanted["url"], timeout=60) as answer:
            status, text = answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read().decode(errors="replace")
    except OSError as error:
        sys.exit(f"{wanted['name']}: {wanted['url']}: {error}")
    if status != wanted["status"]:
        sys.exit(f"{wanted['name']}: {wanted['url']}: status {status}, expected {wanted['status']}")
    if not re.search(wanted["contains"], text):
        sys.exit(f"{wanted['name']}: {wanted['url']}: {wanted['contains']!r} is not in the answer {text[:80]!r}")
"""


def whose(*files: str) -> str:
    """Command that prints the owner's name from the first of these files that has one; nothing if none has."""
    return f"cat {' '.join(files)} 2>/dev/null | head -n 1"


LOCKED = "exec 9</etc && flock 9"
"""Begins a command that one shell at a time does on the machine."""


def claim(owner: str, file: str, other: str) -> str:
    """Command that writes the owner's name to `file`, unless by then another name is in it, or in `other`, the file of
    the other kind of deployment: two who looked at the machine at the same time both found it free. It prints the name
    that is there. A file that is empty, as a crash or a full disk leaves it, is nobody's. The lock leaves nothing
    behind."""
    folder, new, printed = Path(file).parent, f"{file}.new", whose(file, other)
    free = f'owner={shlex.quote(owner)}; there=$({printed}); [ "${{there:-$owner}}" = "$owner" ]'
    tidy = f"rmdir {folder} 2>/dev/null"
    write = f'echo "$owner" | tee {new} >/dev/null && mv {new} {file} || {{ rm -f {new}; {tidy}; exit 1; }}'
    end = f"{printed}; {tidy}; true"
    return f"{LOCKED} && mkdir -p {folder} && {{ if {free}; then {write}; fi; {end}; }}"


def unclaim(owner: str, file: str) -> str:
    """Command that takes the claim back, where nothing else was done since."""
    mine = f'[ "$(cat {file} 2>/dev/null)" = {shlex.quote(owner)} ]'
    return f"{LOCKED} && if {mine}; then rm -f {file}; rmdir {Path(file).parent} 2>/dev/null; fi; true"


def leave(owner: str) -> str:
    """Command that ends what runs of ours and removes both folders; nothing if they are not ours. The owner's name goes
    last: should something stay, or the machine restart meanwhile, the folder is still known as ours."""
    mine = f'[ "$(cat {OWNER_FILE} 2>/dev/null)" = {shlex.quote(owner)} ]'
    end = f"if [ -x {HOME}/bin/ntier-node ]; then {HOME}/bin/ntier-node end-all; fi"
    rest = f'for thing in {HOME}/*; do [ "$thing" = {OWNER_FILE} ] || rm -rf "$thing" || exit 1; done'
    return f"if {mine}; then {end}; rm -rf {REMOTE} && {rest} && {LOCKED} && rm -rf {HOME}; fi"


def files(paths: Paths, spec: Spec, tier: str) -> Iterator[tuple[str, Path | str, int]]:
    """(place below HOME, file here or text, mode) of all that a node of a tier gets."""
    node = paths.root / "ansible" / "roles" / "monitor" / "files"
    yield "bin/ntier-node", node / "ntier-node", 0o755
    for file in sorted((node / "lib").glob("*.py")):
        yield f"lib/{file.name}", file, 0o644
    yield "lib/sampler.py", Path(__file__).with_name("sampler.py"), 0o644
    yield "etc/collectors.d/procstat", PROCSTAT, 0o755
    definition = spec.system.definition
    if tier == CLIENT:
        yield from _of_client(paths, spec)
        return
    yield "etc/services.d/system", "".join(f"{unit}\n" for unit in definition.tier(tier).units), 0o644
    if script := definition.reset_of(tier):
        yield "etc/reset.d/90-system", script, 0o755


def _of_client(paths: Paths, spec: Spec) -> Iterator[tuple[str, Path | str, int]]:
    yield "bin/run-driver", paths.workloads / "bin" / "run-driver", 0o755
    whole = {of_system.on_client(p, paths.workloads): p for p in of_system.named(spec.system)}
    if spec.system.definition.load.driver.kind == "jmeter":
        yield "bin/run-jmeter", paths.workloads / "bin" / "run-jmeter", 0o755
        whole[f"{HOME}/jmeter"] = paths.jmeter
    for place, path in whole.items():
        for file in [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file()):
            below = f"/{file.relative_to(path).as_posix()}" if file != path else ""
            yield place.removeprefix(f"{HOME}/") + below, file, file.stat().st_mode & 0o777


def archive(entries: Iterable[tuple[str, Path | str, int]]) -> bytes:
    """A tar file of `files`, of root's."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for place, content, mode in entries:
            data = content.encode() if isinstance(content, str) else content.read_bytes()
            entry = tarfile.TarInfo(place)
            entry.size, entry.mode = len(data), mode
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def make_parts(paths: Paths, spec: Spec) -> list[str]:
    """Command that makes here what the clients get and is not there: JMeter with its plug-in; empty: nothing."""
    if spec.system.definition.load.driver.kind != "jmeter":
        return []
    return [sys.executable, str(paths.root / "setup" / "build.py"), "workloads"]


def driver_program(spec: Spec) -> str:
    """The program that must be on a client to run the driver; empty if the system brings it."""
    driver = spec.system.definition.load.driver
    if driver.kind == "jmeter":
        return "java"
    return "" if of_system.is_file(driver.command[0], spec.system) else driver.command[0]


def bring(lab: Lab, spec: Spec) -> None:
    """Every node has the programs of this request, and no others of ours. Raises WorkError naming the node."""
    of = {tier: archive(files(lab.paths, spec, tier)) for tier in (*spec.topology.counts, CLIENT)}
    old = " ".join(f"{HOME}/{name}" for name in ("bin", "lib", "etc", "load", "workloads", "jmeter"))
    # the machine's own umask must not decide whether the driver can be run
    unpack = f"umask 022; rm -rf {old} && tar --extract --no-same-owner --directory {HOME}"

    def install_on(node: Node) -> None:
        lab.nodes.call(node, unpack, input=of[node.tier], timeout=COPY_S)

    lab.runner.parallel(install_on, lab.nodes.all)


def verify(lab: Lab, requests: list[dict[str, Any]]) -> None:
    """Each client sends the requests that show that the system serves. Raises WorkError naming the first one that got
    another answer."""
    if requests:
        command = f"/usr/bin/python3 -I -c {shlex.quote(ASK)}"  # -I: no module of the home's
        for client in lab.nodes.clients:
            done = lab.nodes.call(client, command, input=json.dumps(requests), timeout=60 * len(requests), check=False)
            if done.code:
                raise WorkError(f"verify from {client.name}: {done.problem}")
