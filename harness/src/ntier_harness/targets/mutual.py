"""Whether machines that somebody else set up reach each other: asked before anything is installed on them."""

from __future__ import annotations

import shlex
from collections.abc import Collection

from ntier_harness.connections import services
from ntier_harness.errors import RequestError, WorkError
from ntier_harness.paths import Paths
from ntier_harness.runner import Runner
from ntier_harness.spec import CLIENT, Spec
from ntier_harness.ssh import ALONE, CONNECT_S, options
from ntier_harness.targets.inventory import Host, wanted_nodes

WAIT_S = 3
LOOK = f"""import socket, sys
from concurrent.futures import ThreadPoolExecutor
def look(place):
    host, port = place.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), {WAIT_S}).close()
    except ConnectionRefusedError:
        return ""  # nobody listens yet, but the machine answers
    except OSError as error:
        return f"cut={{place}} {{error.strerror or error}}"
for line in filter(None, ThreadPoolExecutor(32).map(look, sys.argv[1:])):
    print(line)
print("looked")
"""
"""Python for the machine: of the addresses and ports it is given, those that it does not reach, and why; then that it
is done."""


def cut_off(runner: Runner, paths: Paths, spec: Spec, hosts: dict[str, Host], known: Collection[str]) -> list[str]:
    """A line for each connection that the system needs and that something between two machines stops. `known`: nodes
    that are this deployment's already: their packet filter may be that of another assignment, and is made anew."""
    places = _needed(spec, hosts, known)

    def ask(asker: str) -> list[str]:
        access = hosts[asker].access
        command = access.as_root(shlex.join(["python3", "-c", LOOK, *places[asker]]))
        argv = ["ssh", *ALONE, *options(access, paths), access.destination, command]
        place = f"hosts: {asker} ({access.destination})"
        try:
            done = runner.run(argv, check=False, timeout=4 * CONNECT_S)
        except WorkError:
            raise RequestError(f"{place}: no answer within {4 * CONNECT_S} s") from None
        if "looked" not in done.out.splitlines():
            raise RequestError(f"{place}: could not look which of the others it reaches: {done.problem}")
        said = [line for line in done.out.splitlines() if line.startswith("cut=")]
        cut = dict(line.removeprefix("cut=").split(" ", 1) for line in said)
        return [
            f"{place} does not reach {places[asker][peer]}, {peer}: {why}; open the firewalls between the two, or give "
            "an address by which they reach each other"
            for peer, why in cut.items()
        ]

    return [line for lines in runner.parallel(ask, places) for line in lines]


def _needed(spec: Spec, hosts: dict[str, Host], known: Collection[str]) -> dict[str, dict[str, str]]:
    """Node -> address:port of those that it asks -> their node. Where the system runs already, its parts have found
    each other, perhaps by other addresses; only the clients are new."""
    tiers = {name: tier for name, tier, _ in wanted_nodes(spec)}
    deploys = spec.system.definition.deploys
    needed: dict[str, dict[str, str]] = {}
    for tier, callers in services(spec).items():
        for caller in callers:
            if caller["from"] != CLIENT and not deploys:
                continue
            asked = [n for n, of in tiers.items() if of == tier and n not in known]
            for asker in (n for n, of in tiers.items() if of == caller["from"]):
                found = {f"{hosts[n].address}:{caller['port']}": n for n in asked if n != asker}
                if found:
                    needed.setdefault(asker, {}).update(found)
    return needed
