"""The stated condition of the nodes before a trial: nothing left of earlier ones, services healthy, data restored."""

from __future__ import annotations

import json
from typing import Any

from ntier_analysis.contracts.files import read_json
from ntier_analysis.contracts.nodes import Node

from ntier_harness import durable
from ntier_harness.drivers import REMOTE
from ntier_harness.errors import WorkError
from ntier_harness.lab import Lab
from ntier_harness.spec import Spec

RESTORE_LIMIT_S = 300  # copies the data where the file system cannot share blocks
LOADED, WARM = "loaded", "warm"
"""Copies of the data: as they were loaded, and as the users of the warm-up left them. Users of trials begin with the
second."""
DATA_LIMIT_S = 300  # reads all rows of a replica


def in_force(lab: Lab) -> dict[str, Any]:
    """What was deployed and warmed up; empty if nothing is known."""
    try:
        return read_json(lab.paths.in_force)
    except (OSError, ValueError):
        return {}


def identity(lab: Lab) -> dict[str, Any]:
    """Which processes serve: a restart of one of them, or of its node, changes this."""
    facts = dict(zip((n.name for n in lab.nodes.all), lab.runner.parallel(lab.nodes.facts, lab.nodes.all), strict=True))
    return {
        name: sorted([s["unit"], s["main_pid"], s.get("active_enter_s")] for s in f["services"])
        for name, f in facts.items()
    }


def reset(lab: Lab, nodes: list[Node] | None = None) -> None:
    """Removes leftovers of earlier trials from these nodes (default: all); their services are healthy afterwards.
    Raises WorkError naming the node."""
    leftovers = f'for d in {REMOTE}/*.r[0-9][0-9]*; do [ -d "$d" ] && ntier-node drop "$d"; done; true'
    command = f"ntier-node reset && {{ {leftovers}; }}"
    lab.runner.parallel(lambda n: lab.nodes.call(n, command, timeout=60), lab.nodes.all if nodes is None else nodes)


def keep(lab: Lab, spec: Spec, name: str, stamp: str) -> None:
    """Keeps the data of every replica as they are, unless they were kept with this stamp; restarts the databases."""
    _on_replicas(lab, spec, f"ntier-restore keep {name} {stamp}")


def restore(lab: Lab, spec: Spec, name: str) -> None:
    """Puts back the data of every replica as they were kept; does nothing where none were kept. The databases are
    restarted, with cold caches; other warm services stay warm."""
    before = in_force(lab)
    warm = before.get("warm_identity")
    known = warm is not None and warm == identity(lab)
    _on_replicas(lab, spec, f"ntier-restore back {name}", joined=name == LOADED)
    if known:
        durable.write(lab.paths.in_force, json.dumps(before | {"warm_identity": identity(lab)}))


def are_kept(lab: Lab, spec: Spec, names: list[str]) -> bool:
    """Whether the data as they were loaded can be put back. Where nodes hold parts of one set of data, all that were
    there (`names`) must be, and no other ones, each with its copy: without one of them the others would not start. No
    names: an earlier version kept the data, whose programs are still on the nodes; they can only put back."""
    holders = lab.nodes.tier(spec.data_tier) if spec.data_tier else []
    if spec.showing_tier == spec.data_tier or not names:
        return True
    if sorted(node.name for node in holders) != sorted(names):
        return False
    has = lab.runner.parallel(lambda n: lab.nodes.call(n, f"ntier-restore has {LOADED}", check=False), holders)
    return all(done.code == 0 for done in has)


def drop(lab: Lab, spec: Spec) -> None:
    """Nodes that hold parts of one set of data begin without any, and the next deployment loads them anew."""
    _on_replicas(lab, spec, "ntier-restore drop all", joined=True, resume=False)


def data(lab: Lab, node: Node) -> str:
    """Rows and digest of each table of a replica, JSON; reading all rows is also what warms its caches."""
    return lab.nodes.call(node, "ntier-data", timeout=DATA_LIMIT_S).out


def check_restored(lab: Lab, node: Node, now: str) -> None:
    """Raises WorkError if the data of a replica are not those that were kept."""
    if json.loads(now) != json.loads(lab.nodes.call(node, f"ntier-restore kept {WARM}").out):
        raise WorkError(f"{node.name}: the data before the trial differ from those kept after the warm-up")


def _on_replicas(lab: Lab, spec: Spec, command: str, *, joined: bool = False, resume: bool = True) -> None:
    """On all nodes that hold the data, at the same time. Where others show the data, these are stopped before and
    started again afterwards, if `resume`. `joined`: machines that have just joined are left out, which have neither the
    program nor data of ours yet."""

    def able(nodes: list[Node]) -> list[Node]:
        there = lab.runner.parallel(lambda n: lab.nodes.call(n, "command -v ntier-restore", check=False), nodes)
        return [n for n, done in zip(nodes, there, strict=True) if done.code == 0]

    def call(nodes: list[Node], command: str) -> None:
        lab.runner.parallel(lambda n: lab.nodes.call(n, command, timeout=RESTORE_LIMIT_S), nodes)

    holders = lab.nodes.tier(spec.data_tier) if spec.data_tier else []
    showing = replicas(lab, spec) if spec.showing_tier != spec.data_tier else []
    if joined:
        holders, showing = able(holders), able(showing)
    if showing:
        call(showing, command)
    call(holders, command)
    if showing and resume:
        call(showing, "ntier-restore resume")


def replicas(lab: Lab, spec: Spec) -> list[Node]:
    """Nodes that show what the data are, and compared with each other show the same: those that hold them, unless the
    system says otherwise."""
    return lab.nodes.tier(spec.showing_tier) if spec.showing_tier else []
